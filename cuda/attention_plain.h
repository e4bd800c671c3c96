/* attention_plain.h - the kernel of all numbers and sizes, by multiplications
** and additions: of f32 and f64, of heads wider than the tensor cores' kernel
** takes, of bf16 where there are none.
**
** A block of 16 x 16 threads owns 16 M rows, and makes 64 WIDE columns of their
** result; blocks along the grid's y make the others.  Columns of x and y go
** through shared memory a few at a time; thread (tx, ty) has the scores of rows
** ty M .. and columns tx, tx + 16 .. of a tile, and of the result 4 columns
** from 4 tx on of each 64. */

#ifndef cuda_attention_plain_h
#define cuda_attention_plain_h

#include "attention.h"

enum { PLAIN_THREADS = 256, ACROSS = 16, SPAN = 64 };

/* M rows and as many columns of scores a thread; DEEP columns of x and y at a
** time.  Rows in shared memory are a Four longer than they need, so that they
** lie in different banks. */
template <class real> struct Plain {
  enum {
    M = sizeof(real) > 4 ? 2 : 4,
    ROWS = ACROSS * M,
    DEEP = 32,
    PITCH = DEEP / 4 + 1,
    WEIGHTS = ROWS / 4 + 1,
    ROOM = ROWS * (SPAN / 4 + 1) /* Fours of y */
  };
};

/* In shared memory. */
template <class real> struct Room { Four<real> *x, *y, *weights; };

/* Fours of columns from..from + 4 fours - 1 of `rows` rows, as tile_fetch. */
template <class T, class real>
static __device__ KERNEL_PART void
four_fetch (Four<real> *to, int pitch, int rows, int fours, const Heads &x,
            int batch, int head, int length, int first, int total, int from) {
  const T *base = row_at<T>(x, batch, head, 0);
  for (int k = threadIdx.x; k < rows * fours; k += PLAIN_THREADS) {
    int r = first + k / fours, c = from + k % fours * 4;
    int more = r < length ? 0 : r / length;
    const T *p = base + more * x.head + (int64_t)(r - more * length) * x.row;
    real v[4] = { 0, 0, 0, 0 };
    if (r < total && x.packed && c < x.width) load<4>(v, p + c);
    else if (r < total)
      for (int i = 0; i < 4; i++) v[i] = c + i < x.width ? (real)p[c + i] : 0;
    store<4>((real *)(to + k / fours * pitch + k % fours), v);
  }
}

/* A tensor's rows: those of x that the block owns, or the tile's of y. */
typedef struct Side {
  const Heads *x;
  int head, length, first, total;
} Side;

/* w (ROWS, ROWS) += x y' */
template <class T, class real, int M>
static __device__ inline void plain_multiply (real (*w)[M], Room<real> room,
                                              int batch, Side x, Side y,
                                              bool busy) {
  typedef Plain<real> P;
  int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
  for (int from = 0; from < x.x->width; from += P::DEEP) {
    __syncthreads(); /* what is there has been read */
    four_fetch<T>(room.x, P::PITCH, P::ROWS, P::DEEP / 4, *x.x, batch, x.head,
                  x.length, x.first, x.total, from);
    four_fetch<T>(room.y, P::PITCH, P::ROWS, P::DEEP / 4, *y.x, batch, y.head,
                  y.length, y.first, y.total, from);
    __syncthreads();
    int fours = busy ? min((x.x->width - from + 3) / 4, P::DEEP / 4) : 0;
    for (int k = 0; k < fours; k++) {
      Four<real> a[M], b[M];
      UNROLL
      for (int i = 0; i < M; i++) {
        a[i] = room.x[(ty * M + i) * P::PITCH + k];
        b[i] = room.y[(tx + i * ACROSS) * P::PITCH + k];
      }
      UNROLL
      for (int i = 0; i < M * M * 4; i++)
        w[i / 4 / M][i / 4 % M] +=
            a[i / 4 / M].v[i % 4] * b[i / 4 % M].v[i % 4];
    }
  }
}

/* out (ROWS, 64 WIDE) += weights y, of y's columns from..; those of room. */
template <class T, class real, int M, int WIDE>
static __device__ inline void plain_take (real (*out)[WIDE][4],
                                          Room<real> room, int batch, Side y,
                                          int from, bool busy) {
  typedef Plain<real> P;
  int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
  UNROLL
  for (int q = 0; q < WIDE; q++) {
    int at = from + q * SPAN;
    if (at >= y.x->width) break;
    __syncthreads(); /* y has been read, or the weights are there */
    four_fetch<T>(room.y, SPAN / 4 + 1, P::ROWS, SPAN / 4, *y.x, batch, y.head,
                  y.length, y.first, y.total, at);
    __syncthreads();
    for (int c = 0; busy && c < P::ROWS / 4; c++) {
      Four<real> a[M];
      UNROLL
      for (int i = 0; i < M; i++)
        a[i] = room.weights[(ty * M + i) * P::WEIGHTS + c];
      UNROLL
      for (int k = 0; k < 4; k++) {
        Four<real> b = room.y[(c * 4 + k) * (SPAN / 4 + 1) + tx];
        UNROLL
        for (int i = 0; i < M * 4; i++)
          out[i / 4][q][i % 4] += a[i / 4].v[k] * b.v[i % 4];
      }
    }
  }
}

/*
** {======================================================
** From scores to what y is multiplied by
** =======================================================
*/

/* The fold over the threads of a row. */
template <class Fold, class real>
static __device__ inline real across_fold (real v) {
  for (int x = ACROSS / 2; x > 0; x /= 2) v = Fold::of(v, lane_swap(v, x));
  return v;
}

struct Greater {
  template <class S> static __device__ inline S of (S a, S b) {
    return fmax(a, b);
  }
};

/* A row of scores: becomes e^(score - maximum); gives what was before is to be
** multiplied by. */
template <int M, class real>
static __device__ inline real plain_soft (real *w, Soft<real> *k) {
  real most = w[0], sum = 0;
  UNROLL
  for (int j = 1; j < M; j++) most = fmax(most, w[j]);
  most = fmax(k->m, across_fold<Greater>(most));
  real from = most == -(real)INFINITY ? (real)0 : most;
  real share = exp(k->m - from);
  UNROLL
  for (int j = 0; j < M; j++) sum += w[j] = exp(w[j] - from);
  k->m = most;
  k->s = k->s * share + sum;
  return share;
}

/* What a block has all the time. */
template <class real, int M> struct alignas(16) Own {
  Soft<real> soft[M];
  Two<real> stats[M];
  Query q[M]; /* where queries are owned */
  Spot s;
  int row; /* the thread's first */
};

/* Row i of scores w and of slopes dp. */
template <int MAKE, class real, int M>
static __device__ inline void plain_weigh (const Work &t, Own<real, M> *o,
                                           Step step, int i, real *w,
                                           const real *dp, real *share) {
  Words words = words_none();
  int tx = threadIdx.x % ACROSS;
  Query q = o->q[i];
  UNROLL
  for (int c = 0; c < M; c++) {
    int j = step.first + tx + c * ACROSS;
    if (owns_keys(MAKE)) q = { step.head, j };
    w[c] = score_of(t, o->s.batch, q, owns_keys(MAKE) ? o->row + i : j, w[c]);
  }
  if (MAKE == FORWARD) *share = plain_soft<M>(w, &o->soft[i]);
  if (MAKE == FORWARD && t.least == 0) return;
  UNROLL
  for (int c = 0; c < M; c++) {
    int j = step.first + tx + c * ACROSS;
    if (owns_keys(MAKE)) q = { step.head, j };
    int key = owns_keys(MAKE) ? o->row + i : j;
    bool there =
        t.least == 0 || is_kept(t, &words, query_number(t, o->s, q), key);
    if (MAKE == FORWARD) w[c] = there ? w[c] : 0;
    else
      w[c] = slope_of<MAKE, false>(
          w[c], dp[c], there ? (real)t.keep : (real)0,
          owns_keys(MAKE) ? row_stats<real>(t, o->s, q) : o->stats[i]);
  }
}

/* }====================================================== */

/*
** {======================================================
** The kernel
** =======================================================
*/

/* A tile of y. */
template <int MAKE, class T, int WIDE, class real, int M>
static __device__ inline void plain_tile (const Work &t, Own<real, M> *o,
                                          Room<real> room, const Walk &walk,
                                          real (*out)[WIDE][4], bool busy) {
  typedef Plain<real> P;
  const Spot &s = o->s;
  Step step = step_at<MAKE>(s, walk, P::ROWS);
  int length = owns_keys(MAKE) ? t.m : t.n;
  Side x = { &t.x[0], owns_keys(MAKE) ? s.group : s.head,
             owns_keys(MAKE) ? t.n : t.m, s.first, t.rows };
  Side y = { &t.y[0], owns_keys(MAKE) ? step.head : s.group, length,
             step.first, length };
  real w[M][M] = {}, dp[M][M] = {}, share = 1;
  plain_multiply<T>(w, room, s.batch, x, y, busy);
  x.x = &t.x[1];
  y.x = &t.y[1];
  if (has_slopes(MAKE)) plain_multiply<T>(dp, room, s.batch, x, y, busy);
  int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
  real *to = (real *)(room.weights + ty * M * P::WEIGHTS);
  UNROLL
  for (int i = 0; i < M; i++) {
    plain_weigh<MAKE>(t, o, step, i, w[i], dp[i], &share);
    UNROLL
    for (int c = 0; c < M; c++)
      to[i * P::WEIGHTS * 4 + tx + c * ACROSS] = w[i][c];
    UNROLL
    for (int q = 0; MAKE == FORWARD && q < WIDE * 4; q++)
      out[i][q / 4][q % 4] *= share;
  }
  y.x = &t.y[taken_by(MAKE)];
  plain_take<T, real, M, WIDE>(out, room, s.batch, y,
                               (int)blockIdx.y * SPAN * WIDE, busy);
}

/* Row i of a thread. */
template <int MAKE, class T, int WIDE, class real, int M>
static __device__ inline void plain_store (const Work &t, Own<real, M> *o,
                                           int i, real (*out)[4]) {
  Query q = o->q[i];
  int tx = threadIdx.x % ACROSS, r = o->row + i;
  real scale = has_slopes(MAKE) ? (real)t.scale : 1;
  if (MAKE == FORWARD) {
    Soft<real> k = { o->soft[i].m, across_fold<Sum>(o->soft[i].s) };
    if (r < t.rows) scale = row_end(t, o->s, q, k, tx == 0 && blockIdx.y == 0);
  }
  if (r >= t.rows) return;
  T *to = owns_keys(MAKE) ? row_at<T>(t.to, o->s.batch, o->s.group, r)
                          : row_at<T>(t.to, o->s.batch, q.head, q.i);
  UNROLL
  for (int k = 0; k < WIDE; k++) {
    int c = ((int)blockIdx.y * WIDE + k) * SPAN + tx * 4;
    UNROLL
    for (int e = 0; e < 4; e++) out[k][e] *= scale;
    if (MAKE == FORWARD && t.splits > 1) part_store(t, o->s, q, out[k], c, 4);
    else if (t.to.packed && c < t.to.width) store<4>(to + c, out[k]);
    else
      for (int e = 0; e < 4; e++)
        if (c + e < t.to.width) to[c + e] = number<T>(out[k][e]);
  }
}

/* Two blocks at a time where their registers are not too many. */
template <class T, int WIDE, int MAKE> struct PlainBlocks {
  enum {
    LARGE = sizeof(T) > 4 || WIDE > 2 || (WIDE > 1 && MAKE == GRAD_K),
    AT_A_TIME = LARGE ? 1 : 2
  };
};

template <class T, int WIDE, int MAKE>
static __global__ void
__launch_bounds__ (PLAIN_THREADS, (PlainBlocks<T, WIDE, MAKE>::AT_A_TIME))
    attention_plain(Work t) {
  typedef Real<T> real;
  typedef Plain<real> P;
  enum { M = P::M };
  SHARED(Four<real>, x, [P::ROWS * P::PITCH]);
  SHARED(Four<real>, y, [P::ROOM]);
  SHARED(Four<real>, weights, [P::ROWS * P::WEIGHTS]);
  Room<real> room = { x, y, weights };
  Own<real, M> o;
  o.s = spot_of<MAKE>(t, P::ROWS);
  o.row = o.s.first + (int)threadIdx.x / ACROSS * M;
  UNROLL
  for (int i = 0; i < M; i++) {
    o.q[i] = query_at(t, o.s, o.row + i);
    o.soft[i] = soft_none<real>();
    o.stats[i] = { 0, 0 };
    if (MAKE == GRAD_Q) o.stats[i] = row_stats<real>(t, o.s, o.q[i]);
  }
  real out[M][WIDE][4] = {};
  /* whether the warp has rows: 2 M, as its threads are two rows of 16 */
  bool busy =
      o.s.first + (int)threadIdx.x / WARP * (WARP / ACROSS) * M < t.rows;
  Walk w = walk_of<MAKE>(t, o.s, P::ROWS, P::ROWS);
  for (; w.at < w.end; w.at++)
    plain_tile<MAKE, T, WIDE>(t, &o, room, w, out, busy);
  UNROLL
  for (int i = 0; i < M; i++) plain_store<MAKE, T, WIDE>(t, &o, i, out[i]);
}

/* }====================================================== */

#endif
