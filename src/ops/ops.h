/* ops.h - what the files of ops lend to each other. */

#ifndef ops_ops_h
#define ops_ops_h

#include "../core/core.h"

/* Plain views of x: with dims of one place added or dropped, two dims
** exchanged, or in another shape (NULL where only a copy could show it). */
Tensor *view_insert (const Tensor *x, int dim);
Tensor *view_drop (const Tensor *x, int dim);
Tensor *view_swap (const Tensor *x, int a, int b);
Tensor *view_fold (const Tensor *x, int ndim, const int64_t *shape);
/* length places of a dim from start on, step apart. */
Tensor *view_part (const Tensor *x, int dim, int64_t start, int64_t length,
                   int64_t step);

/* ids as dense i64 on x's device, all of them checked to lie in 0 .. n-1;
** what names the n in the error ("rows"). */
Tensor *ids_checked (const char *op, const Tensor *x, Tensor *ids, int64_t n,
                     const char *what);

/* The sizes before and behind a dim: x as (outer, n, inner). */
int64_t dims_before (const Tensor *x, int dim);
int64_t dims_behind (const Tensor *x, int dim);

#endif
