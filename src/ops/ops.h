/* ops.h - what the files of ops lend to each other. */

#ifndef ops_ops_h
#define ops_ops_h

#include "../core/core.h"
#include "../core/ops.h"

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

/* A random op's node keeps its draw in i[0] .. i[2], to draw the same again. */
void node_keep_draw (Node *n, Draw draw);
Draw node_draw (const Node *n);

/* The sizes before and behind a dim: x as (outer, n, inner). */
int64_t dims_before (const Tensor *x, int dim);
int64_t dims_behind (const Tensor *x, int dim);

/*
** {======================================================
** Rows of map.def, zip.def and reduce.def
** =======================================================
*/

/* What a row takes and gives: see the heads of the tables. */
enum { KIND_REAL, KIND_SAME, KIND_INT, KIND_TEST, KIND_SUM, KIND_ID };

/* What a derivative reads. */
enum { READ_NONE = 0, READ_X = 1, READ_Y = 2, READ_XY = 3, READ_SELF = 4 };

typedef struct MapRow {
  const char *name;
  uint8_t kind, saves, nargs;
  const char *arg[2]; /* names of the parameters, and their fallbacks */
  double fallback[2];
} MapRow;

typedef struct ZipRow {
  const char *name;
  uint8_t kind, first, second; /* what the two gradients read */
} ZipRow;

typedef struct ReduceRow {
  const char *name;
  uint8_t kind, reads;
} ReduceRow;

extern const MapRow map_rows[MAP_COUNT] LENT(map_rows);
extern const ZipRow zip_rows[ZIP_COUNT] LENT(zip_rows);
extern const ReduceRow reduce_rows[REDUCE_COUNT] LENT(reduce_rows);

/* Throws where x's device only stores its dtype (f16 and bf16 on the CPU). */
void check_computes (const char *op, const Tensor *x);
/* Throws unless a result of dtype t may be written into x. */
void check_holds (const char *op, const Tensor *x, fnn_Dtype t);
/* Throws when the graph is on and x, an operand of an in-place op, is in
** it. */
void check_operand (const char *op, const Tensor *x);

/* Whether a double rounds v. */
static inline bool is_rounded (int64_t v) {
  return v > (int64_t)1 << 53 || v < -((int64_t)1 << 53);
}
/* v as an i64 tensor without dims. */
Tensor *integer_scalar (int64_t v, const fnn_Device *d);

/* The dtype of sums and statistics of floats of dtype t: no 16-bit one. */
static inline fnn_Dtype dtype_wide (fnn_Dtype t) {
  return t == FNN_F16 || t == FNN_BF16 ? FNN_F32 : t;
}

/* A plain view of x in a shape that it broadcasts to. */
Tensor *view_broadcast (const Tensor *x, int ndim, const int64_t *shape);
/* x, or a copy where writing z would change x before it is read. */
Tensor *apart_from (const Tensor *z, const Tensor *x);

/* }====================================================== */

#endif
