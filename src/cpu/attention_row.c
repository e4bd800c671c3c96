/* attention_row.c - attention of a few queries, as in decoding: the time is
** that of reading keys and values, once.
**
** Keys are cut into ranges of RANGE, each a task that sums for all queries of
** all heads of a group; then the ranges are put together, in their order.
** Keys' and queries' products are taken along d, values added up in rows. */

#include "attention.h"

enum {
  RANGE = 1024, /* keys */
  KEYS = 128,   /* that stay in the first cache for all queries */
  ROWS = 4,     /* queries at a time */
  MOST = VEC / 2
};

typedef struct Job {
  Tensor *y, *lse;
  const Tensor *q, *k, *v;
  const Attention *a;
  int64_t heads, groups, each;
  int64_t m, n, d, e;
  int64_t deep; /* d rounded up to whole vectors */
  int64_t ranges;
  real *queries; /* (b, heads, m, deep), times scale */
  real *part;    /* (ranges, b, heads, m, e + 2): sums, maximum and its sum */
} Job;

bool CPU (attention_few)(const Tensor *q) {
  return q->shape[2] <= (MOST > 1 ? MOST : 1);
}

/* Lanes from c on of a row of d elements, 0 past its end. */
__attribute__((noinline)) static vec last_lanes (Source s, const void *row,
                                                 int64_t c, int64_t d) {
  real v[VEC] = { 0 };
  for (int64_t l = 0; l < min64(VEC, d - c); l++)
    v[l] = source_get(s, row, c + l);
  return vec_load(v);
}

/*
** {======================================================
** Products of queries and keys
** =======================================================
*/

/* x[r][j] for `rows` queries, `deep` apart, and n keys from key on.  Those
** that follow are asked for: the hardware's own foresight ends with a page. */
VEC_INLINE void dots (const real *q, int64_t deep, const void *key,
                      int64_t stride, int64_t d, int64_t n, real (*x)[KEYS],
                      const int rows, Source s) {
  enum { COLS = VEC };
  const int cols = COLS / rows > 1 ? COLS / rows : 1;
  const int64_t whole = d / VEC * VEC;
  for (int64_t j = 0; j < n; j += cols) {
    vec sum[ROWS * COLS] = { 0 };
    const void *at[COLS];
    for (int c = 0; c < cols; c++) /* past the end the last again */
      at[c] = source_at(s, key, min64(j + c, n - 1) * stride);
    for (int64_t i = 0; i < whole; i += VEC) {
      vec w[ROWS];
      VEC_UNROLL
      for (int r = 0; r < rows; r++) w[r] = vec_load(q + r * deep + i);
      VEC_UNROLL
      for (int c = 0; c < cols; c++) {
        vec u = vec_from(s, at[c], i);
        __builtin_prefetch(source_at(s, at[c], cols * stride + i));
        VEC_UNROLL
        for (int r = 0; r < rows; r++) sum[c * rows + r] += w[r] * u;
      }
    }
    for (int c = 0; whole < d && c < cols; c++) {
      vec u = last_lanes(s, at[c], whole, d);
      for (int r = 0; r < rows; r++)
        sum[c * rows + r] += vec_load(q + r * deep + whole) * u;
    }
    real total[ROWS * COLS];
    for (int c = 0; c < rows * cols; c += VEC)
      vec_store(total + c, vec_sums(sum + c));
    for (int c = 0; c < cols && j + c < n; c++)
      for (int r = 0; r < rows; r++) x[r][j + c] = total[c * rows + r];
  }
}

/* }====================================================== */

/*
** {======================================================
** Sums of values
** =======================================================
*/

/* o[r] = fall[r] o[r] + the sum of x[r][j] times value j, lanes c onwards. */
VEC_INLINE void add_lanes (real *const *o, const real *fall, real (*x)[KEYS],
                           const void *value, int64_t stride, int64_t c,
                           int64_t n, const int rows, const int vecs,
                           Source s) {
  vec sum[ROWS * ROWS] = { 0 };
  for (int64_t j = 0; j < n; j++) {
    const void *row = source_at(s, value, j * stride);
    VEC_UNROLL
    for (int v = 0; v < vecs; v++) {
      vec u = vec_from(s, row, c + v * VEC);
      VEC_UNROLL
      for (int r = 0; r < rows; r++) sum[v * rows + r] += x[r][j] * u;
    }
  }
  for (int v = 0; v < vecs; v++)
    for (int r = 0; r < rows; r++) {
      real *to = o[r] + c + v * VEC;
      vec_store(to, vec_load(to) * fall[r] + sum[v * rows + r]);
    }
}

/* The lanes that do not fill a vector. */
static void add_last (real *const *o, const real *fall, real (*x)[KEYS],
                      const void *value, int64_t stride, int64_t e, int64_t n,
                      int rows, Source s) {
  int64_t c = e / VEC * VEC;
  vec sum[ROWS] = { 0 };
  for (int64_t j = 0; j < n; j++) {
    vec u = last_lanes(s, source_at(s, value, j * stride), c, e);
    for (int r = 0; r < rows; r++) sum[r] += x[r][j] * u;
  }
  for (int r = 0; r < rows; r++) {
    vec was = vec_load_part(o[r] + c, e - c);
    vec_store_part(o[r] + c, was * fall[r] + sum[r], e - c);
  }
}

VEC_INLINE void add (real *const *o, const real *fall, real (*x)[KEYS],
                     const void *value, int64_t stride, int64_t e, int64_t n,
                     const int rows, Source s) {
  int64_t c = 0;
  for (; c + 4 * VEC <= e; c += 4 * VEC)
    add_lanes(o, fall, x, value, stride, c, n, rows, 4, s);
  for (; c + VEC <= e; c += VEC)
    add_lanes(o, fall, x, value, stride, c, n, rows, 1, s);
  if (c < e) add_last(o, fall, x, value, stride, e, n, rows, s);
}

/* }====================================================== */

/*
** {======================================================
** A range of keys
** =======================================================
*/

/* Where a task is: n keys from j on, of a head's group. */
typedef struct Place {
  int64_t b, group, j, n;
  Rows k, v;
  real *part; /* of the group's first query in this range */
} Place;

/* A query's scores become weights; what its sums fall by. */
static real soften (const Job *g, const Scores *s, int64_t i, const Place *p,
                    real *x, real *o) {
  real most = o[g->e], was = most, sum = 0;
  CPU(attention_bias_row)(s, i, p->j, p->n, x);
  for (int64_t j = 0; j < p->n; j++) most = x[j] > most ? x[j] : most;
  o[g->e] = most;
  if (most == -(real)INFINITY) most = 0;
  int64_t whole = p->n / VEC * VEC;
  vec sums = { 0 };
  for (int64_t j = 0; j < whole; j += VEC) {
    vec w = vec_exp2(vec_load(x + j) - most);
    sums += w;
    vec_store(x + j, w);
  }
  if (whole < p->n) {
    vec w = vec_exp2(vec_load_part(x + whole, p->n - whole) - most);
    vec_store_part(x + whole, w, p->n - whole);
    for (int64_t j = whole; j < p->n; j++) sum += x[j];
  }
  real fall = vec_exp2(vec_set(was - most))[0];
  o[g->e + 1] = o[g->e + 1] * fall + (sum + vec_sum(sums));
  if (s->keep != 0) {
    real keep[KEYS];
    CPU(attention_keep_row)(s, i, p->j, p->n, keep);
    for (int64_t j = 0; j < p->n; j++) x[j] *= keep[j];
  }
  return fall;
}

/* `rows` queries of the group, from r on, meet the keys. */
VEC_INLINE void few (const Job *g, const Scores *scores, const Place *p,
                     int64_t r, const int rows, Source s) {
  _Alignas(64) real x[ROWS][KEYS];
  real fall[ROWS], *o[ROWS];
  int64_t query = (p->b * g->heads + p->group * g->each) * g->m + r;
  const void *key = source_at(s, p->k.data, p->j * p->k.stride);
  dots(g->queries + query * g->deep, g->deep, key, p->k.stride, g->d, p->n, x,
       rows, s);
  for (int i = 0; i < rows; i++) {
    o[i] = p->part + (r + i) * (g->e + 2);
    fall[i] = soften(g, &scores[i], (r + i) % g->m, p, x[i], o[i]);
  }
  add(o, fall, x, source_at(s, p->v.data, p->j * p->v.stride), p->v.stride,
      g->e, p->n, rows, s);
}

VEC_INLINE void block (const Job *g, const Place *p, Source s) {
  int64_t all = g->each * g->m;
  for (int64_t r = 0; r < all;) {
    Scores scores[ROWS];
    int64_t left = all - r;
    int rows = left >= ROWS ? ROWS : 1;
    for (int i = 0; i < rows; i++)
      scores[i] = CPU(attention_scores)(g->q, g->k, g->a, p->b,
                                        p->group * g->each + (r + i) / g->m);
    if (rows == ROWS) few(g, scores, p, r, ROWS, s);
    else few(g, scores, p, r, 1, s);
    r += rows;
  }
}

/* A task: a range of the keys of a group. */
static void range_task (void *ud, int64_t task, int worker) {
  const Job *g = ud;
  int64_t range = task % g->ranges, group = task / g->ranges;
  Place p = { .b = group / g->groups, .group = group % g->groups };
  int64_t all = g->each * g->m, row = g->e + 2;
  int64_t total = g->q->shape[0] * g->heads * g->m;
  int64_t end = min64(g->n, (range + 1) * RANGE);
  (void)worker;
  p.part = g->part + (range * total + group * all) * row;
  memset(p.part, 0, (size_t)(all * row) * sizeof(real));
  for (int64_t r = 0; r < all; r++) p.part[r * row + g->e] = -(real)INFINITY;
  p.k = attention_head(g->k, p.b, p.group);
  p.v = attention_head(g->v, p.b, p.group);
  for (p.j = range * RANGE; p.j < end; p.j += KEYS) {
    p.n = min64(KEYS, end - p.j);
    if (source_is_real(p.k.source)) block(g, &p, SOURCE_REAL);
    else if (p.k.source == SOURCE_F16) block(g, &p, SOURCE_F16);
    else block(g, &p, SOURCE_BF16);
  }
}

/* }====================================================== */

/* The ranges of queries lo .. hi put together. */
static void join (void *ud, int64_t lo, int64_t hi) {
  const Job *g = ud;
  const Tensor *y = g->y;
  int64_t row = g->e + 2, step = g->q->shape[0] * g->heads * g->m * row;
  for (int64_t r = lo; r < hi; r++) {
    int64_t head = r / g->m;
    real *to = (real *)tensor_data(y) + head / g->heads * y->stride[0] +
               head % g->heads * y->stride[1] + r % g->m * y->stride[2];
    const real *part = g->part + r * row + g->e;
    real most = -(real)INFINITY, sum = 0;
    for (int64_t i = 0; i < g->ranges; i++)
      most = part[i * step] > most ? part[i * step] : most;
    real from = most == -(real)INFINITY ? 0 : most;
    memset(to, 0, (size_t)g->e * sizeof *to);
    for (int64_t i = 0; i < g->ranges; i++) {
      const real *o = g->part + i * step + r * row;
      real w = vec_exp2(vec_set(o[g->e] - from))[0];
      sum += o[g->e + 1] * w;
      for (int64_t c = 0; c < g->e; c++) to[c] += o[c] * w;
    }
    for (int64_t c = 0; c < g->e; c++) to[c] = sum == 0 ? 0 : to[c] / sum;
    if (g->lse != NULL)
      ((real *)tensor_data(g->lse))[r] =
          (real)((double)most * LOG_2 + log((double)sum));
  }
}

/* The queries, whole vectors each, times scale. */
static void take_queries (const Job *g) {
  const Tensor *q = g->q;
  real scale = (real)(g->a->scale * LOG2_E), *to = g->queries;
  for (int64_t r = 0; r < q->shape[0] * g->heads * g->m; r++, to += g->deep) {
    int64_t head = r / g->m;
    const real *from =
        (const real *)tensor_data(q) + head / g->heads * q->stride[0] +
        head % g->heads * q->stride[1] + r % g->m * q->stride[2];
    for (int64_t c = 0; c < g->deep; c++)
      to[c] = c < g->d ? from[c] * scale : 0;
  }
}

void CPU (attention_row)(Tensor *y, Tensor *lse, const Tensor *q,
                         const Tensor *k, const Tensor *v,
                         const Attention *a) {
  Job g = { .y = y,
            .lse = lse,
            .q = q,
            .k = k,
            .v = v,
            .a = a,
            .heads = q->shape[1],
            .groups = k->shape[1],
            .each = q->shape[1] / k->shape[1],
            .m = q->shape[2],
            .n = k->shape[2],
            .d = q->shape[3],
            .e = v->shape[3] };
  size_t mark = fnn_mark();
  int64_t rows = q->shape[0] * g.heads * g.m;
  int64_t part = rows * (g.e + 2) * (int64_t)sizeof(real); /* of one range */
  g.deep = divide_up(g.d, VEC) * VEC;
  g.ranges = divide_up(g.n, RANGE);
  g.queries = mem_scratch((size_t)(rows * g.deep) * sizeof(real));
  part = mem_mul(g.ranges, part, "scaled_dot_product_attention: bytes");
  g.part = mem_scratch((size_t)part + sizeof(real));
  take_queries(&g);
  threads_run(q->shape[0] * g.groups * g.ranges, range_task, &g);
  threads_range(rows, grain_rows((g.ranges + 2) * g.e), join, &g);
  fnn_escape(mark, NULL);
}
