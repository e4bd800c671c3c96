/* rows.h - what kernels along rows share: four numbers at a load, folds of
** what the threads of a team have, and rows held in registers.
**
** A team is a power of two of lanes side by side, or a whole block of a power
** of two of warps; `t` is a thread's number in it.  Folds are trees whose
** shape depends on the team alone, so the same numbers give the same bits. */

#ifndef cuda_rows_h
#define cuda_rows_h

#include "cuda.h"

enum { WARP = 32 };
enum : unsigned { LANES_ALL = 0xffffffffu };

/* Memory on x's card until the frame's mark is passed.  What is enqueued later
** may have it again, since kernels run in the order of their calls. */
static inline void *scratch_for (const Tensor *x, int64_t bytes) {
  bytes = max64(bytes, 1);
  return tensor_data(tensor_new(1, &bytes, FNN_U8, x->storage->device));
}

/* min64 for kernels. */
static __device__ inline int64_t lesser (int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The least power of two that is n or more. */
static inline int64_t power_from (int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/* The dtype of Real<T>: of sums, statistics and weights beside a 16-bit x. */
static inline fnn_Dtype real_dtype (const Tensor *x) {
  return x->dtype == FNN_F64 ? FNN_F64 : FNN_F32;
}

/*
** {======================================================
** Loads and stores
** =======================================================
*/

/* Four numbers that lie in a row: 8 or 16 bytes, or twice 16. */
template <class T>
struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) Four {
  T v[4];
};

template <class T>
static __host__ __device__ inline bool is_packed (const T *p) {
  return (uintptr_t)p % alignof(Four<T>) == 0;
}

/* N numbers, 1 or 4, from p (then four are aligned), and back. */
template <int N, class R, class T>
static __device__ inline void load (R *v, const T *p) {
  if constexpr (N == 1) v[0] = (R)p[0];
  else {
    Four<T> f = *(const Four<T> *)p;
    for (int i = 0; i < N; i++) v[i] = (R)f.v[i];
  }
}

template <int N, class R, class T>
static __device__ inline void store (T *p, const R *v) {
  if constexpr (N == 1) p[0] = number<T>(v[0]);
  else {
    Four<T> f;
    for (int i = 0; i < N; i++) f.v[i] = number<T>(v[i]);
    *(Four<T> *)p = f;
  }
}

/* A number of elements known to the compiler. */
template <int N> struct Count {
  enum { n = N };
};

/* The first of p's n numbers that four can be loaded from. */
template <class T>
static __device__ inline int64_t packed_from (const T *p, int64_t n) {
  const int size = alignof(Four<T>);
  int64_t skip = (size - (int)((uintptr_t)p % size)) % size / (int)sizeof(T);
  return skip < n ? skip : n;
}

/* f(i, Count) for the places of a row of n that fall to thread t: one at a
** time up to `head`, fours from there, one at a time behind them.  With head n
** there are no fours. */
template <class F>
static __device__ inline void row_walk (int64_t n, int64_t head, int t,
                                        int team, F f) {
  for (int64_t i = t; i < head; i += team) f(i, Count<1>());
  int64_t fours = (n - head) / 4;
  for (int64_t k = t; k < fours; k += team) f(head + k * 4, Count<4>());
  for (int64_t i = head + fours * 4 + t; i < n; i += team) f(i, Count<1>());
}

/* }====================================================== */

/*
** {======================================================
** Folds
** =======================================================
*/

struct Sum {
  template <class S> static __device__ inline S of (S a, S b) { return a + b; }
};

/* The larger; a NaN goes on. */
struct Most {
  template <class S> static __device__ inline S of (S a, S b) {
    return b != b || b > a ? b : a;
  }
};

/* The value of the lane x from here. */
template <class S> static __device__ inline S lane_swap (S v, int x) {
  return __shfl_xor_sync(LANES_ALL, v, x);
}

/* Two sums at once. */
template <class S> struct Two {
  S a, b;
  __device__ inline Two operator+(const Two &o) const {
    return { a + o.a, b + o.b };
  }
};

template <class S>
static __device__ inline Two<S> lane_swap (Two<S> v, int x) {
  return { lane_swap(v.a, x), lane_swap(v.b, x) };
}

/* The fold of the whole block, of what each warp has in all lanes. */
template <class Fold, class S> static __device__ inline S block_fold (S v) {
  SHARED(S, part, [WARP]);
  int warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
  __syncthreads(); /* the last call's have been read */
  if (lane == 0) part[threadIdx.x / WARP] = v;
  __syncthreads();
  v = part[lane & (warps - 1)];
  for (int x = warps / 2; x > 0; x /= 2) v = Fold::of(v, lane_swap(v, x));
  return v;
}

/* The fold of v over a team, for all its threads; all of the block call. */
template <class Fold, class S>
static __device__ inline S team_fold (S v, int team) {
  for (int x = (team < WARP ? team : WARP) / 2; x > 0; x /= 2)
    v = Fold::of(v, lane_swap(v, x));
  return team > WARP ? block_fold<Fold>(v) : v;
}

/* }====================================================== */

/*
** {======================================================
** The running maximum and sum of exponentials (Milakov and Gimelshein 2018,
** arXiv:1805.02867)
** =======================================================
*/

template <class real> struct Soft {
  real m; /* the maximum, NaN if there is one */
  real s; /* the sum of e^(x - m) */
};

template <class real>
static __device__ inline Soft<real> lane_swap (Soft<real> v, int x) {
  return { lane_swap(v.m, x), lane_swap(v.s, x) };
}

struct SoftFold {
  template <class real>
  static __device__ inline Soft<real> of (Soft<real> a, Soft<real> b) {
    if (!(a.m >= b.m) && a.m == a.m) { /* a NaN, or the larger, to a */
      Soft<real> c = a;
      a = b;
      b = c;
    }
    /* -inf twice: there is no number yet, and no sum. */
    real share = b.m == a.m ? (real)1 : (real)exp(b.m - a.m);
    return { a.m, a.s + b.s * share };
  }
};

/* Takes N more numbers. */
template <int N, class real>
static __device__ inline void soft_take (Soft<real> *k, const real *v) {
  real m = v[0], s = 0;
  for (int i = 1; i < N; i++) m = Most::of(m, v[i]);
  m = Most::of(k->m, m);
  real from = m == -(real)INFINITY ? (real)0 : m;
  for (int i = 0; i < N; i++) s += exp(v[i] - from);
  real share = k->m == m ? (real)1 : (real)exp(k->m - from);
  *k = { m, k->s * share + s };
}

template <class real> static __device__ inline Soft<real> soft_none (void) {
  return { -(real)INFINITY, 0 };
}

/* }====================================================== */

/*
** {======================================================
** Rows in registers: E numbers a thread, N side by side
** =======================================================
*/

/* The longest row of R, and the threads that hold it: 16 numbers each, and of
** shorter rows, whose threads have E, no block of more than a few warps.
** Kernels say so, as many registers would else be too many for a block; twice
** as many for doubles. */
template <class R> struct HeldMost {
  enum { block = sizeof(R) > 4 ? 256 : 512, n = 16 * block };
};
enum { HELD_FEW = 128 };
#define HELD_BOUNDS(R, E) \
  __launch_bounds__((E) < 16 ? (int)HELD_FEW : (int)HeldMost<R>::block)

/* How rows are dealt out. */
typedef struct Held {
  int team, slots; /* threads of a row, and numbers in each */
  unsigned grid, block;
} Held;

static inline Held held_rows (int64_t rows, int64_t n) {
  Held h;
  h.slots = n <= 128 ? 4 : n <= 256 ? 8 : 16;
  h.team = (int)power_from((n + h.slots - 1) / h.slots);
  h.block = h.team > WARP ? (unsigned)h.team : (unsigned)HELD_FEW;
  h.grid = blocks_for(rows, h.block / (unsigned)h.team);
  return h;
}

/* Runs the statement with E the slots and N what a load takes. */
#define WITH_SLOTS(slots, ...) \
  switch (slots) { \
    case 4: { \
      enum { E = 4 }; \
      __VA_ARGS__; \
    } break; \
    case 8: { \
      enum { E = 8 }; \
      __VA_ARGS__; \
    } break; \
    default: { \
      enum { E = 16 }; \
      __VA_ARGS__; \
    } break; \
  }
#define WITH_HELD(h, packed, ...) \
  if (packed) { \
    enum { N = 4 }; \
    WITH_SLOTS((h).slots, __VA_ARGS__) \
  } else { \
    enum { N = 1 }; \
    WITH_SLOTS((h).slots, __VA_ARGS__) \
  }

/* Where slot e of thread t lies in its row. */
template <int N>
static __device__ inline int held_place (int e, int t, int team) {
  return N == 1 ? e * team + t : (e / N * team + t) * N + e % N;
}

/* v = p's numbers, `none` behind the n of them. */
template <int E, int N, class R, class T>
static __device__ inline void held_load (R *v, const T *p, int n, int t,
                                         int team, R none) {
  for (int e = 0; e < E; e += N) {
    int i = held_place<N>(e, t, team);
    if (i < n) load<N>(v + e, p + i);
    else
      for (int k = 0; k < N; k++) v[e + k] = none;
  }
}

template <int E, int N, class R, class T>
static __device__ inline void held_store (T *p, const R *v, int n, int t,
                                          int team) {
  for (int e = 0; e < E; e += N) {
    int i = held_place<N>(e, t, team);
    if (i < n) store<N>(p + i, v + e);
  }
}

/* The rows of a block, one after the other: `row` is the team's, and all
** threads go round together; rows behind the last are empty. */
#define EACH_ROW(row, rows, team) \
  for (int64_t per_ = blockDim.x / (team), first_ = blockIdx.x * per_, \
               row = first_ + threadIdx.x / (team); \
       first_ < (rows); first_ += gridDim.x * per_, row += gridDim.x * per_)

/* }====================================================== */

/*
** {======================================================
** Columns: blocks of `wide` columns by `tall` threads along n
** =======================================================
*/

typedef struct Tile {
  int wide, tall;    /* powers of two whose product is TILE */
  int64_t columns;   /* (outer, inner) counted through */
  int64_t splits, n; /* pieces of n, and numbers in one */
  unsigned grid;     /* blocks over columns and pieces */
} Tile;

/* Blocks that fill a card: fixed, so that sums do not depend on it. */
enum { TILE = 256, BLOCKS_ENOUGH = 512 };

/* split: pieces of n may go to different blocks. */
static inline Tile tile_of (int64_t outer, int64_t n, int64_t inner,
                            bool split) {
  Tile k;
  int64_t wide = min64(power_from(inner), TILE);
  k.columns = outer * inner;
  if (k.columns / wide < BLOCKS_ENOUGH) wide = min64(wide, WARP);
  k.tall = (int)min64(TILE / wide, power_from(max64(n, 1)));
  k.wide = TILE / k.tall;
  int64_t blocks = (k.columns + k.wide - 1) / k.wide;
  k.splits = 1;
  k.n = n;
  if (split && blocks < BLOCKS_ENOUGH && n > 32 * k.tall) {
    int64_t most = (n + 16 * k.tall - 1) / (16 * k.tall);
    k.splits = min64((BLOCKS_ENOUGH + blocks - 1) / blocks, most);
    k.n = (n + k.splits - 1) / k.splits;
    k.splits = (n + k.n - 1) / k.n;
  }
  k.grid = (unsigned)min64(blocks * k.splits, 1 << 30);
  return k;
}

/* The fold of v down a column of the tile, for all its threads. */
template <class Fold, class S>
static __device__ inline S tile_fold (S v, int wide) {
  SHARED(S, part, [TILE]);
  int i = threadIdx.x;
  part[i] = v;
  __syncthreads();
  for (int h = TILE / 2; h >= wide; h /= 2) {
    if (i < h) part[i] = Fold::of(part[i], part[i + h]);
    __syncthreads();
  }
  v = part[i & (wide - 1)];
  __syncthreads(); /* not needed by a block's last tile */
  return v;
}

/* }====================================================== */

#endif
