/* index.c - elements and rows moved by ids, and triangles of matrices.
**
** What is added at one place is added in the order of the ids by one task,
** which owns the place: results do not depend on how work is split. */

#include "cpu.h"

#ifdef CPU_ANY

#define INLINE static inline __attribute__((always_inline))

static size_t size_of (const Tensor *x) {
  return fnn_dtype_size((fnn_Dtype)x->dtype);
}

/*
** {======================================================
** Check_ids
** =======================================================
*/

typedef struct Check {
  const int64_t *ids;
  int64_t n, ignore;
  _Atomic int64_t bad; /* the first place, or INT64_MAX */
} Check;

static void check_range (void *ud, int64_t lo, int64_t hi) {
  Check *c = ud;
  const int64_t *ids = c->ids;
  uint64_t n = (uint64_t)c->n;
  int64_t ignore = c->ignore, wrong = 0;
  for (int64_t i = lo; i < hi; i++)
    wrong |= ((uint64_t)ids[i] >= n) & (ids[i] != ignore);
  if (wrong == 0) return;
  while ((uint64_t)ids[lo] < n || ids[lo] == ignore) lo++;
  int64_t seen = atomic_load(&c->bad);
  while (lo < seen && !atomic_compare_exchange_weak(&c->bad, &seen, lo))
    ;
}

void CPU (check_ids)(const Tensor *ids, int64_t n, int64_t ignore,
                     const char *op, const char *what, int64_t *bad) {
  (void)op;
  (void)what;
  Check c = { tensor_data(ids), n, ignore, INT64_MAX };
  threads_range(ids->numel, GRAIN, check_range, &c);
  *bad = c.bad == INT64_MAX ? -1 : c.bad;
}

/* }====================================================== */

/*
** {======================================================
** Index_select and gather
** =======================================================
*/

/* y (outer, count, inner) from x (outer, n, inner); bytes: of inner for
** index_select, of one element for gather. */
typedef struct Move {
  char *y;
  const char *x;
  const int64_t *ids;
  int64_t count, n, inner;
  size_t bytes;
} Move;

/* Rows lo .. hi-1 of the outer * count rows of y, b bytes each. */
INLINE void select_rows (const Move *m, int64_t lo, int64_t hi, size_t b) {
  while (lo < hi) {
    int64_t outer = lo / m->count, end = min64(hi, (outer + 1) * m->count);
    const char *x = m->x + (size_t)(outer * m->n) * b;
    const int64_t *ids = m->ids - outer * m->count;
    for (; lo < end; lo++)
      memcpy(m->y + (size_t)lo * b, x + (size_t)ids[lo] * b, b);
  }
}

/* Rows of the sizes that one move instruction makes are special. */
static void select_range (void *ud, int64_t lo, int64_t hi) {
  const Move *m = ud;
  switch (m->bytes) {
    case 1: select_rows(m, lo, hi, 1); break;
    case 2: select_rows(m, lo, hi, 2); break;
    case 4: select_rows(m, lo, hi, 4); break;
    case 8: select_rows(m, lo, hi, 8); break;
    default: select_rows(m, lo, hi, m->bytes); break;
  }
}

void CPU (index_select)(Tensor *y, const Tensor *x, const Tensor *ids,
                        int64_t outer, int64_t n, int64_t inner) {
  Move m = { tensor_data(y),
             tensor_data(x),
             tensor_data(ids),
             ids->numel,
             n,
             inner,
             (size_t)inner * size_of(x) };
  threads_range(outer * m.count, grain_rows(inner), select_range, &m);
}

/* Elements lo .. hi-1 of y, of b bytes each, in pieces of its rows. */
INLINE void gather_elements (const Move *m, int64_t lo, int64_t hi, size_t b) {
  while (lo < hi) {
    int64_t row = lo / m->inner, i = lo % m->inner;
    int64_t end = min64(m->inner, i + hi - lo);
    const char *x = m->x + (size_t)(row / m->count * m->n * m->inner) * b;
    const int64_t *ids = m->ids + row * m->inner;
    char *y = m->y + (size_t)(row * m->inner) * b;
    lo += end - i;
    for (; i < end; i++)
      memcpy(y + (size_t)i * b, x + (size_t)(ids[i] * m->inner + i) * b, b);
  }
}

/* The same where a row is one element: its dim is the last. */
INLINE void gather_last (const Move *m, int64_t lo, int64_t hi, size_t b) {
  while (lo < hi) {
    int64_t outer = lo / m->count, end = min64(hi, (outer + 1) * m->count);
    const char *x = m->x + (size_t)(outer * m->n) * b;
    for (; lo < end; lo++)
      memcpy(m->y + (size_t)lo * b, x + (size_t)m->ids[lo] * b, b);
  }
}

INLINE void gather_some (const Move *m, int64_t lo, int64_t hi, size_t b) {
  if (m->inner == 1) gather_last(m, lo, hi, b);
  else gather_elements(m, lo, hi, b);
}

static void gather_range (void *ud, int64_t lo, int64_t hi) {
  const Move *m = ud;
  switch (m->bytes) {
    case 1: gather_some(m, lo, hi, 1); break;
    case 2: gather_some(m, lo, hi, 2); break;
    case 4: gather_some(m, lo, hi, 4); break;
    default: gather_some(m, lo, hi, 8); break;
  }
}

/* The number of elements behind one of dim. */
static int64_t inner_of (const Tensor *x, int dim) {
  int64_t n = 1;
  for (int d = dim + 1; d < x->ndim; d++) n *= x->shape[d];
  return n;
}

void CPU (gather)(Tensor *y, const Tensor *x, const Tensor *ids, int dim) {
  Move m = { tensor_data(y),  tensor_data(x), tensor_data(ids),
             ids->shape[dim], x->shape[dim],  inner_of(ids, dim),
             size_of(x) };
  threads_range(y->numel, GRAIN, gather_range, &m);
}

/* }====================================================== */

/*
** {======================================================
** Index_add and scatter_add
** =======================================================
*/

/* y (outer, n, inner) += x (outer, count, inner) at ids, which is (count) or
** has x's shape.  The tasks are (outer, chunks of inner, bands of n). */
typedef struct Add {
  char *y;
  const char *x;
  const int64_t *ids;
  int64_t count, n, inner;
  int64_t chunks, width; /* of columns */
  int64_t bands, height; /* of rows */
  fnn_Dtype dtype;
  bool rows; /* ids is (count) */
} Add;

static void add_f16 (uint16_t *y, uint16_t x) {
  *y = f16_from_f32(f16_to_f32(*y) + f16_to_f32(x));
}

static void add_bf16 (uint16_t *y, uint16_t x) {
  *y = bf16_from_f32(bf16_to_f32(*y) + bf16_to_f32(x));
}

/* y[i] += x[j] */
INLINE void add_at (fnn_Dtype t, void *y, int64_t i, const void *x,
                    int64_t j) {
  switch (t) {
    case FNN_BOOL: ((uint8_t *)y)[i] |= ((const uint8_t *)x)[j]; break;
    case FNN_U8: ((uint8_t *)y)[i] += ((const uint8_t *)x)[j]; break;
    case FNN_I32: ((uint32_t *)y)[i] += ((const uint32_t *)x)[j]; break;
    case FNN_I64: ((uint64_t *)y)[i] += ((const uint64_t *)x)[j]; break;
    case FNN_F32: ((float *)y)[i] += ((const float *)x)[j]; break;
    case FNN_F64: ((double *)y)[i] += ((const double *)x)[j]; break;
    case FNN_F16: add_f16((uint16_t *)y + i, ((const uint16_t *)x)[j]); break;
    case FNN_BF16: add_bf16((uint16_t *)y + i, ((const uint16_t *)x)[j]);
  }
}

/* Columns c .. cend-1 of the outer-th part, where the id is in r .. rend-1. */
INLINE void add_part (const Add *a, int64_t outer, int64_t c, int64_t cend,
                      int64_t r, int64_t rend, fnn_Dtype t, bool rows) {
  size_t size = fnn_dtype_size(t);
  char *y = a->y + (size_t)(outer * a->n * a->inner) * size;
  const char *x = a->x + (size_t)(outer * a->count * a->inner) * size;
  const int64_t *ids = rows ? a->ids : a->ids + outer * a->count * a->inner;
  for (int64_t j = 0; j < a->count; j++) {
    int64_t from = j * a->inner;
    if (rows) {
      if (ids[j] < r || ids[j] >= rend) continue;
      char *restrict to = y + (size_t)(ids[j] * a->inner) * size;
      const char *restrict row = x + (size_t)from * size;
      for (int64_t i = c; i < cend; i++) add_at(t, to, i, row, i);
    } else {
      for (int64_t i = c; i < cend; i++) {
        int64_t id = ids[from + i];
        if (id < r || id >= rend) continue;
        add_at(t, y, id * a->inner + i, x, from + i);
      }
    }
  }
}

INLINE void add_tasks (const Add *a, int64_t lo, int64_t hi, fnn_Dtype t,
                       bool rows) {
  if (a->chunks * a->bands == 1) {
    for (int64_t outer = lo; outer < hi; outer++)
      add_part(a, outer, 0, a->inner, 0, a->n, t, rows);
    return;
  }
  for (int64_t task = lo; task < hi; task++) {
    int64_t band = task % a->bands, chunk = task / a->bands % a->chunks;
    int64_t outer = task / a->bands / a->chunks;
    int64_t c = chunk * a->width, r = band * a->height;
    add_part(a, outer, c, min64(c + a->width, a->inner), r,
             min64(r + a->height, a->n), t, rows);
  }
}

static void add_range (void *ud, int64_t lo, int64_t hi) {
  const Add *a = ud;
#define CASE(t) \
  case t: \
    if (a->rows) add_tasks(a, lo, hi, t, true); \
    else add_tasks(a, lo, hi, t, false); \
    break
  switch (a->dtype) {
    CASE(FNN_BOOL);
    CASE(FNN_U8);
    CASE(FNN_I32);
    CASE(FNN_I64);
    CASE(FNN_F16);
    CASE(FNN_BF16);
    CASE(FNN_F32);
    CASE(FNN_F64);
  }
#undef CASE
}

/* Splits columns first: a task then writes whole cache lines.  Where there are
** too few, tasks share out the rows, and each reads all ids. */
static void add (Add *a, int64_t outer) {
  int64_t workers = threads_width();
  int64_t share = (outer * a->inner + 4 * workers - 1) / (4 * workers);
  bool small = outer * a->count * a->inner < 2 * GRAIN;
  a->width = small ? a->inner : min64(a->inner, max64(16, share));
  a->chunks = (a->inner + a->width - 1) / a->width;
  a->bands = small || outer * a->chunks >= workers ? 1 : workers;
  a->height = (a->n + a->bands - 1) / a->bands;
  int64_t work = a->count * a->width; /* of one task */
  threads_range(outer * a->chunks * a->bands, small ? outer : grain_rows(work),
                add_range, a);
}

void CPU (index_add)(Tensor *y, const Tensor *x, const Tensor *ids,
                     int64_t outer, int64_t n, int64_t inner) {
  Add a = { .y = tensor_data(y),
            .x = tensor_data(x),
            .ids = tensor_data(ids),
            .count = ids->numel,
            .n = n,
            .inner = inner,
            .dtype = (fnn_Dtype)y->dtype,
            .rows = true };
  add(&a, outer);
}

void CPU (scatter_add)(Tensor *y, const Tensor *ids, const Tensor *x,
                       int dim) {
  int64_t count = ids->shape[dim], inner = inner_of(ids, dim);
  Add a = { .y = tensor_data(y),
            .x = tensor_data(x),
            .ids = tensor_data(ids),
            .count = count,
            .n = y->shape[dim],
            .inner = inner,
            .dtype = (fnn_Dtype)y->dtype };
  add(&a, ids->numel / (count * inner));
}

/* }====================================================== */

/*
** {======================================================
** Nonzero
** =======================================================
*/

typedef struct Search {
  const Tensor *x;
  int64_t *found; /* a block of GRAIN: how many, then where to write them */
  int64_t *y;
} Search;

static void count_range (void *ud, int64_t lo, int64_t hi) {
  const Search *s = ud;
  const uint8_t *x = tensor_data(s->x);
  int64_t n = 0;
  for (int64_t i = lo; i < hi; i++) n += x[i] != 0;
  s->found[lo / GRAIN] = n;
}

static void list_range (void *ud, int64_t lo, int64_t hi) {
  const Search *s = ud;
  const uint8_t *x = tensor_data(s->x);
  int ndim = s->x->ndim;
  int64_t *y = s->y + s->found[lo / GRAIN] * ndim;
  for (int64_t i = lo; i < hi; i++) {
    if (x[i] == 0) continue;
    int64_t rest = i;
    for (int d = ndim - 1; d >= 0; d--) {
      y[d] = rest % s->x->shape[d];
      rest /= s->x->shape[d];
    }
    y += ndim;
  }
}

void CPU (nonzero)(Tensor *y, const Tensor *x, int64_t *count) {
  int64_t blocks = (x->numel + GRAIN - 1) / GRAIN, sum = 0;
  Search s = { x, mem_scratch((size_t)blocks * sizeof(int64_t)),
               y != NULL ? tensor_data(y) : NULL };
  threads_range(x->numel, GRAIN, count_range, &s);
  for (int64_t i = 0; i < blocks; i++) {
    int64_t found = s.found[i];
    s.found[i] = sum;
    sum += found;
  }
  *count = sum;
  if (y != NULL) threads_range(x->numel, GRAIN, list_range, &s);
}

/* }====================================================== */

/*
** {======================================================
** Triangle
** =======================================================
*/

typedef struct Cut {
  char *y;
  const char *x;
  int64_t rows, cols, diagonal;
  size_t size;
  bool upper;
} Cut;

static void triangle_range (void *ud, int64_t lo, int64_t hi) {
  const Cut *c = ud;
  for (int64_t i = lo; i < hi; i++) {
    /* columns 0 .. at-1 are on the lower side */
    int64_t at = i % c->rows + c->diagonal + (c->upper ? 0 : 1);
    size_t low = (size_t)max64(0, min64(at, c->cols)) * c->size;
    size_t all = (size_t)c->cols * c->size, from = (size_t)i * all;
    char *y = c->y + from;
    const char *x = c->x + from;
    if (c->upper) {
      memset(y, 0, low);
      memcpy(y + low, x + low, all - low);
    } else {
      memcpy(y, x, low);
      memset(y + low, 0, all - low);
    }
  }
}

void CPU (triangle)(Tensor *y, const Tensor *x, int64_t rows, int64_t cols,
                    int64_t diagonal, bool upper) {
  Cut c = { tensor_data(y), tensor_data(x), rows, cols,
            diagonal,       size_of(x),     upper };
  threads_range(x->numel / cols, grain_rows(cols), triangle_range, &c);
}

/* }====================================================== */

#endif
