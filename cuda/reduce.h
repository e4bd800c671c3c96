/* reduce.h - reductions for the kernels of other files: into memory of theirs,
** and by what gradients need. */

#ifndef cuda_reduce_h
#define cuda_reduce_h

#include "rows.h"

/* One reduction of x (outer, n, inner) to y (outer, inner). */
typedef struct Reduction {
  const void *x;
  void *y;
  fnn_Dtype to;       /* y's */
  const void *centre; /* (outer, inner) of Real<T>, or NULL: made on the way */
  void *part;         /* (outer, inner, splits), where a row has pieces */
  int64_t outer, n, inner;
  int64_t splits, len; /* pieces of n, and numbers in one */
  double a;
} Reduction;

/* A row of reduce.def over the numbers of on's dtype; k->x, y, to and sizes
** are set. */
void reduce_run (const Tensor *on, int op, Reduction *k);

/* How many numbers of each row or column equal its centre, NaN being equal to
** NaN. */
void reduce_equal (const Tensor *on, Reduction *k);

#endif
