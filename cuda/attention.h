/* attention.h - what the kernels of attention share.
**
** attention.cu         the result, and what its parts are joined from
** attention_back.cu    the derivative
** attention_tensor.h   the kernel of 16-bit numbers, on tensor cores
** attention_plain.h    that of all numbers and sizes
** attention_run.h      which of them a call gets
**
** Each kernel makes one of four things, always in the same way.  A block owns
** some rows of the result and of x, and goes over tiles of the other side, y:
**
**   scores = x[0] y[0]', slopes = x[1] y[1]', to += f(scores, slopes) y
**
**            own rows  x[0]  x[1]  y[0]  y[1]  f                      y
**   FORWARD  queries   q           k     v     e^scores, rescaled     v
**   GRAD_Q   queries   q     gy    k     v     p (slopes - delta)     k
**   GRAD_K   keys      k     v     q     gy    p (slopes - delta)     q
**   GRAD_V   keys      k           q     gy    p                      gy
**
** where p = e^(scores - lse) are the weights, and delta = sum gy y of a row
** (Dao 2023, arXiv:2307.08691).  All that is added to an element of a result
** is added by one thread in one order. */

#ifndef cuda_attention_h
#define cuda_attention_h

#include "draw.h"
#include "rows.h"

enum { FORWARD, GRAD_Q, GRAD_K, GRAD_V };

static __host__ __device__ constexpr bool owns_keys (int make) {
  return make == GRAD_K || make == GRAD_V;
}
static __host__ __device__ constexpr bool has_slopes (int make) {
  return make == GRAD_Q || make == GRAD_K;
}
/* Which of y the weights multiply. */
static __host__ __device__ constexpr int taken_by (int make) {
  return has_slopes(make) ? 0 : 1;
}

/* A tensor (batch, heads, length, width). */
typedef struct Heads {
  void *data;
  int64_t batch, head, row; /* strides; the last is 1 */
  int width;
  bool packed; /* in runs of 16 bytes, and of 4 elements */
} Heads;

typedef struct Work {
  Heads x[2], y[2], to;
  int m, n, heads;    /* queries, keys, heads of queries */
  int each, together; /* of them to one of keys, and to a block's rows */
  int rows, tiles;    /* own rows that follow each other, and tiles of them */
  int splits, keys;   /* parts of the keys, and how many are in one */
  const void *mask;   /* or NULL */
  int64_t mask_stride[4];
  bool mask_is_bool, causal;
  const void *slopes; /* or NULL */
  double scale;
  Draw draw;
  uint64_t least; /* words from here on keep a weight; 0: all do */
  double keep;    /* by which these are multiplied */
  void *lse;      /* (batch, heads, m), written by FORWARD unless NULL */
  void *delta;    /* (batch, heads, m) */
  void *part;     /* with splits: (splits, batch, heads, m, width) */
  void *stats;    /* (splits, batch, heads, m): a Soft */
} Work;

Work attention_task (const Tensor *q, const Tensor *k, const Tensor *v,
                     const Attention *a);
Heads attention_heads (const Tensor *x);

/*
** {======================================================
** Where a block is
** =======================================================
*/

/* Batch, first head of queries, head of keys, own row, part of the keys. */
typedef struct Spot {
  int batch, head, group, first, split;
} Spot;

/* Blocks count through (batch, heads, tiles, splits). */
template <int MAKE>
static __device__ inline Spot spot_of (const Work &t, int rows) {
  unsigned x = blockIdx.x, each = owns_keys(MAKE) ? t.each : t.together;
  unsigned units = (unsigned)t.heads / each;
  Spot s;
  s.split = (int)(x % (unsigned)t.splits);
  x /= (unsigned)t.splits;
  int tile = (int)(x % (unsigned)t.tiles);
  x /= (unsigned)t.tiles;
  /* the longest work first */
  if (t.causal && !owns_keys(MAKE)) tile = t.tiles - 1 - tile;
  s.first = tile * rows;
  s.head = (int)(x % units * each);
  s.batch = (int)(x / units);
  s.group = s.head / t.each;
  return s;
}

/* The tiles of the other side: `per` of each head, from the first-th on. */
typedef struct Walk {
  int at, end, first, per;
} Walk;

template <int MAKE>
static __device__ inline Walk walk_of (const Work &t, const Spot &s, int rows,
                                       int cols) {
  int late = t.n - t.m; /* query i is at place i + late */
  if (owns_keys(MAKE)) {
    int tiles = (t.m + cols - 1) / cols;
    int first = t.causal ? max(s.first - late, 0) / cols : 0;
    int per = max(tiles - first, 0);
    return { 0, per * t.each, first, per };
  }
  int last = t.together > 1 ? t.m : min(s.first + rows, t.m);
  int seen = t.causal ? max(min(last + late, t.n), 0) : t.n;
  int tiles = (seen + cols - 1) / cols, per = t.keys / cols;
  return { s.split * per, min((s.split + 1) * per, tiles), 0, tiles };
}

/* The tile there: a head of queries, and its first row. */
typedef struct Step {
  int head, first;
} Step;

template <int MAKE>
static __device__ inline Step step_at (const Spot &s, const Walk &w,
                                       int cols) {
  if (!owns_keys(MAKE)) return { s.head, w.at * cols };
  return { s.head + w.at / w.per, (w.first + w.at % w.per) * cols };
}

/* Whether nothing is done to the scores of the tile but scaling. */
template <int MAKE>
static __device__ inline bool is_plain (const Work &t, const Spot &s,
                                        int first, int rows, int cols) {
  int late = t.n - t.m;
  if (t.mask != NULL || t.slopes != NULL) return false;
  if (owns_keys(MAKE)) return !t.causal || s.first + rows - 1 <= first + late;
  int query = t.together > 1 ? 0 : s.first;
  return first + cols <= t.n &&
         (!t.causal || first + cols - 1 <= query + late);
}

/* Row r of those that follow each other: heads one behind the other. */
typedef struct Query {
  int head, i;
} Query;

/* i is m behind the last. */
static __device__ inline Query query_at (const Work &t, const Spot &s, int r) {
  if (r >= t.rows) return { s.head, t.m };
  int more = r < t.m ? 0 : r / t.m;
  return { s.head + more, r - more * t.m };
}

/* The number of a query among all. */
static __device__ inline int64_t query_number (const Work &t, const Spot &s,
                                               Query q) {
  return ((int64_t)s.batch * t.heads + q.head) * t.m + q.i;
}

/* Of all, by the blocks that there are. */
static __device__ inline int64_t query_count (const Work &t) {
  return (int64_t)gridDim.x / t.splits / t.tiles * t.together * t.m;
}

template <class T>
static __device__ inline T *row_at (const Heads &x, int batch, int head,
                                    int i) {
  return (T *)x.data + batch * x.batch + head * x.head + i * x.row;
}

/* }====================================================== */

/*
** {======================================================
** Scores
** =======================================================
*/

/* Score (i, j) as the softmax takes it, from a product; -inf where the key may
** not be attended, or one of the two is not there. */
template <class real>
static __device__ inline real score_of (const Work &t, int batch, Query q,
                                        int j, real s) {
  const real none = -(real)INFINITY;
  int far = q.i + t.n - t.m - j;
  if (q.i >= t.m || j >= t.n || (t.causal && far < 0)) return none;
  s *= (real)t.scale;
  if (t.slopes != NULL)
    s -= ((const real *)t.slopes)[q.head] * (real)(far < 0 ? -far : far);
  if (t.mask == NULL) return s;
  const int64_t *by = t.mask_stride;
  int64_t at = batch * by[0] + q.head * by[1] + q.i * by[2] + j * by[3];
  if (t.mask_is_bool) return ((const bool *)t.mask)[at] ? s : none;
  return s + ((const real *)t.mask)[at];
}

/* A block of random words, as neighbours share it. */
typedef struct Words {
  uint64_t block;
  uint32_t w[4];
} Words;

static __device__ inline Words words_none (void) {
  return { ~(uint64_t)0, { 0, 0, 0, 0 } };
}

/* Whether dropout keeps weight (i, j). */
static __device__ inline bool is_kept (const Work &t, Words *k, int64_t query,
                                       int j) {
  uint64_t e = (uint64_t)(query * t.n + j);
  if (e / 4 != k->block) {
    k->block = e / 4;
    draw_block(t.draw, k->block, k->w);
  }
  uint32_t a = e & 1 ? k->w[1] : k->w[0], b = e & 1 ? k->w[3] : k->w[2];
  return (e & 2 ? b : a) >= t.least;
}

/* e^x of scores, which tensor cores have only roughly. */
template <bool ROUGH, class real>
static __device__ inline real power (real x) {
  if constexpr (ROUGH) return __expf(x);
  else return exp(x);
}

/* What a derivative takes of y, given a score, the slope of the weight and
** the row's statistics: lse is -inf where there is no row. */
template <int MAKE, bool ROUGH, class real>
static __device__ inline real slope_of (real s, real slope, real kept,
                                        Two<real> row) {
  real p = row.a == -(real)INFINITY ? 0 : power<ROUGH>(s - row.a);
  return has_slopes(MAKE) ? p * (slope * kept - row.b) : p * kept;
}

/* lse and delta of a query. */
template <class real>
static __device__ inline Two<real> row_stats (const Work &t, const Spot &s,
                                              Query q) {
  if (q.i >= t.m) return { -(real)INFINITY, 0 };
  int64_t at = query_number(t, s, q);
  return { ((const real *)t.lse)[at], ((const real *)t.delta)[at] };
}

/* }====================================================== */

/*
** {======================================================
** Results
** =======================================================
*/

/* A row of FORWARD ends with the maximum and sum k: what its numbers are to be
** multiplied by.  lead: this thread writes the row's statistics. */
template <class real>
static __device__ inline real row_end (const Work &t, const Spot &s, Query q,
                                       Soft<real> k, bool lead) {
  if (t.splits > 1) {
    int64_t at = s.split * query_count(t) + query_number(t, s, q);
    if (lead) ((Soft<real> *)t.stats)[at] = k;
    return 1;
  }
  if (lead && t.lse != NULL)
    ((real *)t.lse)[query_number(t, s, q)] = k.m + log(k.s);
  return k.s == 0 ? 0 : (real)t.keep / k.s;
}

/* N numbers from column c on of a row of a part. */
template <class real>
static __device__ inline void part_store (const Work &t, const Spot &s,
                                          Query q, const real *v, int c,
                                          int n) {
  int64_t at = s.split * query_count(t) + query_number(t, s, q);
  real *to = (real *)t.part + at * t.to.width;
  for (int i = 0; i < n && c + i < t.to.width; i++) to[c + i] = v[i];
}

/* }====================================================== */

#endif
