/* attention_tensor.h - the kernel of f16 and bf16, which adds up in f32.
**
** Four warps own 16 rows each.  x and two stages of y are in shared memory:
** the next tile is copied while this one is multiplied.  Scores stay in the
** registers in which a product leaves them, which are those in which the next
** one takes its left operand, once rounded to 16 bits. */

#ifndef cuda_attention_tensor_h
#define cuda_attention_tensor_h

#include "attention.h"

enum { TENSOR_THREADS = 128, TENSOR_ROWS = 64 };

/* The shape of what is in shared memory; D: the width, zeros behind what there
** is.  Rows are 16 bytes longer, so that 8 of them lie in different banks. */
template <int D, int MAKE> struct Tiles {
  enum {
    COLS = D <= 64    ? 64
           : D <= 128 ? 32
                      : 16,
    STAGES = D > 128 && has_slopes(MAKE) ? 1 : 2,
    AT_A_TIME = D > 32 ? 0 : 3, /* blocks to leave registers for; 0: any */
    PITCH = D + 8,
    OWN = TENSOR_ROWS * PITCH,
    OTHER = COLS * PITCH,
    NUMBERS = OWN * (has_slopes(MAKE) ? 2 : 1) + STAGES * 2 * OTHER,
    BYTES = NUMBERS * 2 + (owns_keys(MAKE) ? STAGES * 2 * COLS * 4 : 0)
  };
};

/*
** {======================================================
** Copies to shared memory
** =======================================================
*/

/* Rows first .. of a head; those of the heads behind it follow where `total`
** is more than length.  Zeros where there is nothing. */
template <int D, int ROWS, class H>
static __device__ __forceinline__ void
tile_fetch (H *to, const Heads &x, int batch, int head, int length, int first,
            int total) {
  enum { EACH = D / 8 };
  const H *from = row_at<H>(x, batch, head, 0);
  for (int k = threadIdx.x; k < ROWS * EACH; k += TENSOR_THREADS) {
    int r = first + k / EACH, c = k % EACH * 8;
    int more = r < length ? 0 : r / length;
    const H *p = from + more * x.head + (int64_t)(r - more * length) * x.row;
    H *put = to + k / EACH * (D + 8) + c;
    bool there = r < total && c < x.width;
    if (x.packed) cp_async16_or_zero(put, there ? p + c : from, there);
    else
      for (int i = 0; i < 8; i++)
        put[i] = there && c + i < x.width ? p[c + i] : number<H>(0.0f);
  }
}

/* The tiles of y at w, and the statistics of its rows. */
template <int D, int MAKE, class H>
static __device__ __forceinline__ void
stage_fetch (const Work &t, const Spot &s, const Walk &w, H *room) {
  typedef Tiles<D, MAKE> K;
  int stage = K::STAGES > 1 ? w.at % 2 : 0;
  Step step = step_at<MAKE>(s, w, K::COLS);
  int head = owns_keys(MAKE) ? step.head : s.group;
  int length = owns_keys(MAKE) ? t.m : t.n;
  H *to = room + K::NUMBERS - (K::STAGES - stage) * 2 * K::OTHER;
  for (int i = 0; i < 2; i++)
    tile_fetch<D, K::COLS>(to + i * K::OTHER, t.y[i], s.batch, head, length,
                           step.first, length);
  if (owns_keys(MAKE) && threadIdx.x < K::COLS) {
    Two<float> *stats = (Two<float> *)(room + K::NUMBERS) + stage * K::COLS;
    stats[threadIdx.x] =
        row_stats<float>(t, s, { step.head, step.first + (int)threadIdx.x });
  }
  cp_async_commit();
}

/* }====================================================== */

/*
** {======================================================
** Products by a warp
** =======================================================
*/

/* w (16, COLS) += x y', of x (16, D) and y (COLS, D) */
template <int D, int COLS, class H>
static __device__ __forceinline__ void multiply (float (*w)[4], const H *x,
                                                 const H *y) {
  int lane = threadIdx.x % WARP;
  x += lane % 16 * (D + 8) + lane / 16 * 8;
  y += (lane % 8 + lane / 16 * 8) * (D + 8) + lane / 8 % 2 * 8;
  UNROLL
  for (int k = 0; k < D; k += 16) {
    uint32_t a[4], b[4];
    ldmatrix_x4(a, x + k);
    UNROLL
    for (int c = 0; c < COLS / 16; c++) {
      ldmatrix_x4(b, y + c * 16 * (D + 8) + k);
      mma16816(w[2 * c], a, b, w[2 * c], H());
      mma16816(w[2 * c + 1], a, b + 2, w[2 * c + 1], H());
    }
  }
}

static __device__ inline uint32_t two_of (float a, float b, half) {
  __half2 h = __floats2half2_rn(a, b);
  return *(uint32_t *)&h;
}

static __device__ inline uint32_t two_of (float a, float b, nv_bfloat16) {
  __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
  return *(uint32_t *)&h;
}

/* out (16, D) += w z, of w (16, COLS) and z (COLS, D) */
template <int D, int COLS, class H>
static __device__ __forceinline__ void take (float (*out)[4],
                                             const float (*w)[4], const H *z) {
  int lane = threadIdx.x % WARP;
  z += lane % 16 * (D + 8) + lane / 16 * 8;
  UNROLL
  for (int k = 0; k < COLS / 16; k++) {
    const float *u = w[2 * k], *v = w[2 * k + 1];
    uint32_t b[4], a[4] = { two_of(u[0], u[1], H()), two_of(u[2], u[3], H()),
                            two_of(v[0], v[1], H()), two_of(v[2], v[3], H()) };
    UNROLL
    for (int c = 0; c < D / 16; c++) {
      ldmatrix_x4_trans(b, z + k * 16 * (D + 8) + c * 16);
      mma16816(out[2 * c], a, b, out[2 * c], H());
      mma16816(out[2 * c + 1], a, b + 2, out[2 * c + 1], H());
    }
  }
}

/* The fold over the lanes that have a row. */
template <class Fold> static __device__ inline float quad_fold (float v) {
  v = Fold::of(v, lane_swap(v, 1));
  return Fold::of(v, lane_swap(v, 2));
}

/* }====================================================== */

/*
** {======================================================
** From scores to what y is multiplied by
** =======================================================
*/

/* What a thread has of two rows, 8 apart: columns 2 (lane % 4) and the next of
** each eight. */
typedef struct Pair {
  Query q[2];        /* where queries are owned */
  int64_t number[2]; /* of them */
  Soft<float> soft[2];
  Two<float> stats[2];
} Pair;

/* Column of w[c][i]. */
static __device__ inline int column_of (int c, int i) {
  return c * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
}

/* Which query and key w[c][i] is of. */
typedef struct Place {
  Query q;
  int key;
} Place;

template <int MAKE>
static __device__ __forceinline__ Place place_at (const Spot &s, Step step,
                                                  const Pair *p, int c,
                                                  int i) {
  int other = step.first + column_of(c, i);
  if (!owns_keys(MAKE)) return { p->q[i / 2], other };
  int row = threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4 + i / 2 * 8;
  return { { step.head, other }, s.first + row };
}

/* Products to scores. */
template <int MAKE, int COLS>
static __device__ __forceinline__ void
score (const Work &t, const Spot &s, Step step, const Pair *p, float (*w)[4]) {
  bool plain = is_plain<MAKE>(t, s, step.first, TENSOR_ROWS, COLS);
  if (plain) {
    UNROLL
    for (int e = 0; e < COLS / 2; e++) w[e / 4][e % 4] *= (float)t.scale;
    return;
  }
  UNROLL
  for (int e = 0; e < COLS / 2; e++) {
    Place at = place_at<MAKE>(s, step, p, e / 4, e % 4);
    w[e / 4][e % 4] = score_of(t, s.batch, at.q, at.key, w[e / 4][e % 4]);
  }
}

/* Row h of scores to e^(score - maximum); out, which had another maximum,
** follows. */
template <int D, int COLS>
static __device__ __forceinline__ void
soften (float (*w)[4], int h, Soft<float> *k, float (*out)[4]) {
  float most = k->m, sum = 0;
  UNROLL
  for (int c = 0; c < COLS / 8; c++)
    most = fmaxf(most, fmaxf(w[c][2 * h], w[c][2 * h + 1]));
  most = fmaxf(most, lane_swap(most, 1));
  most = fmaxf(most, lane_swap(most, 2));
  float from = most == -INFINITY ? 0 : most, share = __expf(k->m - from);
  UNROLL
  for (int c = 0; c < COLS / 8; c++) {
    sum += w[c][2 * h] = __expf(w[c][2 * h] - from);
    sum += w[c][2 * h + 1] = __expf(w[c][2 * h + 1] - from);
  }
  k->m = most;
  k->s = k->s * share + sum;
  UNROLL
  for (int c = 0; c < D / 8; c++) {
    out[c][2 * h] *= share;
    out[c][2 * h + 1] *= share;
  }
}

/* w: of scores; becomes what y is multiplied by. */
template <int D, int COLS>
static __device__ __forceinline__ void
weigh (const Work &t, Step step, float (*w)[4], Pair *p, float (*out)[4]) {
  UNROLL
  for (int h = 0; h < 2; h++) soften<D, COLS>(w, h, &p->soft[h], out);
  if (t.least == 0) return;
  Words words[2] = { words_none(), words_none() };
  UNROLL
  for (int e = 0; e < COLS / 2; e++) {
    int c = e / 4, i = e % 4, j = step.first + column_of(c, i);
    if (!is_kept(t, &words[i / 2], p->number[i / 2], j)) w[c][i] = 0;
  }
}

/* The same of a derivative; dp: of slopes, stats: of a tile of queries. */
template <int MAKE, int COLS>
static __device__ __forceinline__ void
weigh_back (const Work &t, const Spot &s, Step step, float (*w)[4],
            const float (*dp)[4], const Pair *p, const Two<float> *stats) {
  Words words = words_none();
  UNROLL
  for (int e = 0; e < COLS / 2; e++) {
    int c = e / 4, i = e % 4;
    Place at = place_at<MAKE>(s, step, p, c, i);
    Two<float> k = owns_keys(MAKE) ? stats[column_of(c, i)] : p->stats[i / 2];
    float kept = 1;
    if (t.least > 0 && !is_kept(t, &words, query_number(t, s, at.q), at.key))
      kept = 0;
    else if (t.least > 0) kept = (float)t.keep;
    w[c][i] = slope_of<MAKE, true>(w[c][i], has_slopes(MAKE) ? dp[c][i] : 0,
                                   kept, k);
  }
}

/* }====================================================== */

/*
** {======================================================
** The kernel
** =======================================================
*/

/* Two numbers side by side of a row of the result. */
template <class H>
static __device__ inline void two_store (H *to, const float *v, int c,
                                         const Heads &x) {
  if (c >= x.width) return;
  if (x.packed) *(uint32_t *)(to + c) = two_of(v[0], v[1], H());
  else {
    to[c] = number<H>(v[0]);
    if (c + 1 < x.width) to[c + 1] = number<H>(v[1]);
  }
}

/* Row h of a thread's two, r among the block's. */
template <int D, int MAKE, class H>
static __device__ __forceinline__ void
row_store (const Work &t, const Spot &s, int r, Query q, Soft<float> soft,
           const float (*out)[4], int h) {
  bool parts = MAKE == FORWARD && t.splits > 1;
  float scale = has_slopes(MAKE) ? (float)t.scale : 1;
  if (MAKE == FORWARD) {
    soft.s = quad_fold<Sum>(soft.s);
    if (r < t.rows) scale = row_end(t, s, q, soft, threadIdx.x % 4 == 0);
  }
  if (r >= t.rows) return;
  H *to = owns_keys(MAKE) ? row_at<H>(t.to, s.batch, s.group, r)
                          : row_at<H>(t.to, s.batch, q.head, q.i);
  UNROLL
  for (int c = 0; c < D / 8; c++) {
    float v[2] = { out[c][2 * h] * scale, out[c][2 * h + 1] * scale };
    if (parts) part_store(t, s, q, v, column_of(c, 0), 2);
    else two_store(to, v, column_of(c, 0), t.to);
  }
}

/* The thread's rows, before the first tile. */
template <int MAKE>
static __device__ inline Pair pair_at (const Work &t, const Spot &s, int row) {
  Pair p;
  UNROLL
  for (int h = 0; h < 2; h++) {
    p.q[h] = query_at(t, s, row + h * 8);
    p.number[h] = query_number(t, s, p.q[h]);
    p.soft[h] = soft_none<float>();
    p.stats[h] = { 0, 0 };
    if (MAKE == GRAD_Q) p.stats[h] = row_stats<float>(t, s, p.q[h]);
  }
  return p;
}

/* The tile at w, that lies in y, taken by a warp whose rows lie in x. */
template <int D, int MAKE, class H>
static __device__ __forceinline__ void
tile_take (const Work &t, const Spot &s, const Walk &walk, const H *x,
           const H *y, Pair *p, const Two<float> *stats, float (*out)[4]) {
  typedef Tiles<D, MAKE> K;
  float w[K::COLS / 8][4] = {};
  Step step = step_at<MAKE>(s, walk, K::COLS);
  multiply<D, K::COLS>(w, x, y);
  score<MAKE, K::COLS>(t, s, step, p, w);
  if constexpr (MAKE == FORWARD) weigh<D, K::COLS>(t, step, w, p, out);
  else if constexpr (MAKE == GRAD_V)
    weigh_back<MAKE, K::COLS>(t, s, step, w, w, p, stats);
  else {
    float dp[K::COLS / 8][4] = {};
    multiply<D, K::COLS>(dp, x + K::OWN, y + K::OTHER);
    weigh_back<MAKE, K::COLS>(t, s, step, w, dp, p, stats);
  }
  take<D, K::COLS>(out, w, y + taken_by(MAKE) * K::OTHER);
}

template <class H, int D, int MAKE>
static __global__ void __launch_bounds__ (TENSOR_THREADS,
                                          (Tiles<D, MAKE>::AT_A_TIME))
    attention_tensor(Work t) {
  typedef Tiles<D, MAKE> K;
  DYNAMIC_SHARED(H, room);
  const Spot s = spot_of<MAKE>(t, TENSOR_ROWS);
  Walk w = walk_of<MAKE>(t, s, TENSOR_ROWS, K::COLS);
  int above = threadIdx.x / WARP * 16, row = s.first + above;
  bool busy = row < t.rows; /* the warp */
  float out[D / 8][4] = {};
  for (int i = 0; w.at < w.end && i < (has_slopes(MAKE) ? 2 : 1); i++)
    tile_fetch<D, TENSOR_ROWS>(room + i * K::OWN, t.x[i], s.batch,
                               owns_keys(MAKE) ? s.group : s.head,
                               owns_keys(MAKE) ? t.n : t.m, s.first, t.rows);
  row += threadIdx.x % WARP / 4;
  Pair p = pair_at<MAKE>(t, s, row);
  if (K::STAGES > 1 && w.at < w.end) stage_fetch<D, MAKE>(t, s, w, room);
  for (; w.at < w.end; w.at++) {
    if (K::STAGES == 1) {
      __syncthreads(); /* the last tile has been read */
      stage_fetch<D, MAKE>(t, s, w, room);
    }
    cp_async_wait<0>();
    __syncthreads();
    Walk next = w;
    next.at++;
    if (K::STAGES > 1 && next.at < w.end)
      stage_fetch<D, MAKE>(t, s, next, room);
    int stage = K::STAGES > 1 ? w.at % 2 : 0;
    const H *y = room + K::NUMBERS - (K::STAGES - stage) * 2 * K::OTHER;
    if (busy)
      tile_take<D, MAKE>(
          t, s, w, room + above * K::PITCH, y, &p,
          (const Two<float> *)(room + K::NUMBERS) + stage * K::COLS, out);
  }
  UNROLL
  for (int h = 0; h < 2; h++)
    row_store<D, MAKE, H>(t, s, row + h * 8, p.q[h], p.soft[h], out, h);
}

/* }====================================================== */

#endif
