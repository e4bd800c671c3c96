/* reduce.cu - the rows of reduce.def, over x (outer, n, inner).
**
** A row (inner 1) is folded by a thread, a few lanes, a warp or a block; of
** columns a block takes a tile, threads side by side along inner.  Where rows
** and columns are few their pieces go to blocks of their own, and a second
** kernel folds what these give.  Four numbers at a time are folded in Real<T>,
** and sums of those in double, so the error does not grow with the length; all
** folds are trees of a shape that depends on the sizes alone. */

#include "reduce.h"

#include "../src/core/ops.h"
#include "words.h"

/*
** {======================================================
** Folds.  A number of T is read as `real` and summed as `wide`
** =======================================================
*/

template <class T> struct Kind {
  typedef Real<T> real;
  typedef double wide;
};
template <> struct Kind<int64_t> { typedef int64_t real, wide; };
template <> struct Kind<int32_t> : Kind<int64_t> {};
template <> struct Kind<uint8_t> : Kind<int64_t> {};

static __device__ inline int64_t plus (int64_t a, int64_t b) {
  return WRAP(a, +, b);
}
static __device__ inline double plus (double a, double b) { return a + b; }
static __device__ inline float plus (float a, float b) { return a + b; }
static __device__ inline int64_t times (int64_t a, int64_t b) {
  return WRAP(a, *, b);
}
static __device__ inline double times (double a, double b) { return a * b; }

template <class S> static __device__ inline S lowest (void) {
  return -(S)INFINITY;
}
template <> __device__ inline int64_t lowest<int64_t>(void) {
  return INT64_MIN;
}
template <class S> static __device__ inline S highest (void) {
  return (S)INFINITY;
}
template <> __device__ inline int64_t highest<int64_t>(void) {
  return INT64_MAX;
}

/* State: what a thread keeps; Leaf: what a few numbers are folded in. */
struct fold_ADD {
  enum { greatest = 0 };
  template <class K> using State = typename K::wide;
  template <class K> using Leaf = typename K::real;
  template <class S> static __device__ inline S start (void) { return 0; }
  template <class S> static __device__ inline S of (S a, S b) {
    return plus(a, b);
  }
};

/* Products leave float's range early. */
struct fold_MUL {
  enum { greatest = 0 };
  template <class K> using State = typename K::wide;
  template <class K> using Leaf = typename K::wide;
  template <class S> static __device__ inline S start (void) { return 1; }
  template <class S> static __device__ inline S of (S a, S b) {
    return times(a, b);
  }
};

struct fold_MAX {
  enum { greatest = 1 };
  template <class K> using State = typename K::real;
  template <class K> using Leaf = typename K::real;
  template <class S> static __device__ inline S start (void) {
    return lowest<S>();
  }
  template <class S> static __device__ inline S of (S a, S b) {
    return b != b || b > a ? b : a;
  }
};

struct fold_MIN {
  enum { greatest = 0 };
  template <class K> using State = typename K::real;
  template <class K> using Leaf = typename K::real;
  template <class S> static __device__ inline S start (void) {
    return highest<S>();
  }
  template <class S> static __device__ inline S of (S a, S b) {
    return b != b || b < a ? b : a;
  }
};

/* }====================================================== */

/*
** {======================================================
** Rows of the table
** =======================================================
*/

/* No centre. */
struct row_NONE {
  typedef fold_ADD Fold;
  enum { exists = 0 };
};

#define REDUCE(name, kind, centre, how, f, result, reads, gx) \
  struct row_##name { \
    typedef row_##centre Centre; \
    typedef fold_##how Fold; \
    enum { exists = 1 }; \
    template <class real> \
    static __device__ inline real value (real x, real c, real a) { \
      (void)c, (void)a; \
      return (real)(f); \
    } \
    static __device__ inline double finish (double s, double c, double n, \
                                            double m, double a) { \
      (void)c, (void)n, (void)m, (void)a; \
      return result; \
    } \
  };
#include "../src/core/reduce.def"
#undef REDUCE

/* What gradients of extremes need: how many equal the centre. */
struct row_equal {
  typedef row_NONE Centre;
  typedef fold_ADD Fold;
  template <class real>
  static __device__ inline real value (real x, real c, real a) {
    (void)a;
    return (real)(x == c || (x != x && c != c));
  }
  static __device__ inline double finish (double s, double, double, double,
                                          double) {
    return s;
  }
};

/* }====================================================== */

/*
** {======================================================
** How numbers are taken and what is made of them
** =======================================================
*/

static __device__ void put_number (const Reduction &k, int64_t i, double v) {
  switch (k.to) {
    case FNN_BOOL: ((uint8_t *)k.y)[i] = v > 0; break;
    case FNN_F16: ((half *)k.y)[i] = number<half>(v); break;
    case FNN_BF16: ((nv_bfloat16 *)k.y)[i] = number<nv_bfloat16>(v); break;
    case FNN_F32: ((float *)k.y)[i] = (float)v; break;
    default: ((double *)k.y)[i] = v; break;
  }
}

static __device__ void put_number (const Reduction &k, int64_t i, int64_t v) {
  switch (k.to) {
    case FNN_BOOL: ((uint8_t *)k.y)[i] = v > 0; break;
    case FNN_U8: ((uint8_t *)k.y)[i] = (uint8_t)v; break;
    case FNN_I32: ((int32_t *)k.y)[i] = (int32_t)v; break;
    default: ((int64_t *)k.y)[i] = v; break;
  }
}

template <class Row>
static __device__ inline double finish (const Reduction &k, double s,
                                        double c) {
  double n = (double)k.n, m = n > k.a ? n - k.a : 0;
  return Row::finish(s, c, n, m, k.a);
}

template <class Row>
static __device__ inline int64_t finish (const Reduction &, int64_t s,
                                         int64_t) {
  return s;
}

/* Numbers folded by a row of the table. */
template <class T_, class R> struct Folding {
  typedef T_ T;
  typedef R Row;
  typedef typename Row::Fold Fold;
  typedef typename Row::Centre Centre;
  typedef typename Kind<T>::real real;
  typedef typename Kind<T>::wide wide;
  typedef typename Fold::template State<Kind<T>> State;
  typedef typename Fold::template Leaf<Kind<T>> Leaf;

  static __device__ inline State start (void) {
    return Fold::template start<State>();
  }
  static __device__ inline State of (State a, State b) {
    return Fold::of(a, b);
  }
  /* N numbers, the first at place i, others `step` apart. */
  template <int N>
  static __device__ inline void take (State *s, const real *v, int64_t i,
                                      int64_t step, real c, real a) {
    (void)i, (void)step;
    Leaf l = (Leaf)Row::value(v[0], c, a);
    for (int k = 1; k < N; k++) l = Fold::of(l, (Leaf)Row::value(v[k], c, a));
    *s = Fold::of(*s, (State)l);
  }
  static __device__ inline void put (const Reduction &k, int64_t i, State s,
                                     real c) {
    put_number(k, i, finish<Row>(k, (wide)s, (wide)c));
  }
};

/* A place and what is there.  The place is in halves, so that no byte of what
** goes through memory is padding. */
template <class real> struct Best {
  real v;
  uint32_t high, low;
};

template <class real>
static __device__ inline Best<real> best_at (real v, int64_t at) {
  return { v, (uint32_t)((uint64_t)at >> 32), (uint32_t)at };
}

template <class real>
static __device__ inline int64_t place_of (Best<real> b) {
  return (int64_t)((uint64_t)b.high << 32 | b.low);
}

template <class real>
static __device__ inline Best<real> lane_swap (Best<real> b, int x) {
  return { lane_swap(b.v, x), lane_swap(b.high, x), lane_swap(b.low, x) };
}

/* The place of the largest number or, LEAST, the least: the first of equals,
** and a NaN before all. */
template <class T_, bool LEAST> struct Finding {
  typedef T_ T;
  typedef row_NONE Centre;
  typedef typename Kind<T>::real real;
  typedef Best<real> State;

  static __device__ inline State start (void) {
    return best_at(LEAST ? highest<real>() : lowest<real>(), INT64_MAX);
  }
  static __device__ inline State of (State a, State b) {
    bool nan_a = a.v != a.v, nan_b = b.v != b.v;
    bool equal = a.v == b.v || (nan_a && nan_b);
    bool before = LEAST ? b.v < a.v : b.v > a.v;
    if (equal) return place_of(a) < place_of(b) ? a : b;
    return !nan_a && (nan_b || before) ? b : a;
  }
  template <int N>
  static __device__ inline void take (State *s, const real *v, int64_t i,
                                      int64_t step, real, real) {
    for (int k = 0; k < N; k++) *s = of(*s, best_at(v[k], i + k * step));
  }
  static __device__ inline void put (const Reduction &k, int64_t i, State s,
                                     real) {
    put_number(k, i, place_of(s));
  }
};

/* }====================================================== */

/*
** {======================================================
** Kernels
** =======================================================
*/

enum { BLOCK = 256 };

/* What is subtracted: an infinite maximum centres nothing. */
template <class Row, class real>
static __device__ inline real centre_from (real c) {
  if constexpr (Row::Fold::greatest)
    if (c == (real)INFINITY || c == -(real)INFINITY) return 0;
  return c;
}

/* What thread t of the team folds of the n numbers from p on, the first of
** which is at place i0. */
template <class P>
static __device__ inline typename P::State
walk_row (const typename P::T *p, int64_t i0, int64_t n, int t, int team,
          typename P::real c, typename P::real a) {
  typename P::State s = P::start();
  row_walk(n, packed_from(p, n), t, team, [&] (int64_t i, auto count) {
    typename P::real v[decltype(count)::n];
    load<decltype(count)::n>(v, p + i);
    P::template take<decltype(count)::n>(&s, v, i0 + i, 1, c, a);
  });
  return s;
}

template <class P>
static __device__ inline typename P::real
row_centre (const Reduction &k, const typename P::T *p, int64_t n, int t,
            int team) {
  typedef typename P::real real;
  if constexpr (P::Centre::exists) {
    typedef Folding<typename P::T, typename P::Centre> C;
    typename C::State s = walk_row<C>(p, 0, n, t, team, 0, 0);
    s = team_fold<C>(s, team);
    return centre_from<typename P::Centre>(
        (real)finish<typename P::Centre>(k, (double)s, 0.0));
  }
  return 0;
}

/* Rows, or pieces of rows, a team each. */
template <class P> static __global__ void reduce_rows (Reduction k, int team) {
  typedef typename P::real real;
  int t = threadIdx.x % team;
  EACH_ROW(task, k.outer * k.splits, team) {
    bool live = task < k.outer * k.splits;
    int64_t row = !live ? 0 : k.splits == 1 ? task : task / k.splits;
    int64_t i0 = live ? (task - row * k.splits) * k.len : 0;
    int64_t n = live ? lesser(k.len, k.n - i0) : 0;
    const typename P::T *p = (const typename P::T *)k.x + row * k.n + i0;
    real c =
        k.centre == NULL
            ? row_centre<P>(k, p, n, t, team)
            : centre_from<typename P::Centre>(((const real *)k.centre)[row]);
    typename P::State s = walk_row<P>(p, i0, n, t, team, c, (real)k.a);
    s = team_fold<P>(s, team);
    if (!live || t != 0) continue;
    if (k.part != NULL) ((typename P::State *)k.part)[task] = s;
    else P::put(k, row, s, c);
  }
}

/* What a thread folds of its column, which starts at p: places y, y + tall ...
** of a piece. */
template <class P>
static __device__ inline typename P::State
walk_column (const typename P::T *p, int64_t inner, int64_t i, int64_t end,
             int tall, typename P::real c, typename P::real a) {
  typename P::State s = P::start();
  typename P::real v[4];
  for (; i + 3 * tall < end; i += 4 * tall) {
    for (int k = 0; k < 4; k++)
      v[k] = (typename P::real)p[(i + k * tall) * inner];
    P::template take<4>(&s, v, i, tall, c, a);
  }
  for (; i < end; i += tall) {
    v[0] = (typename P::real)p[i * inner];
    P::template take<1>(&s, v, i, tall, c, a);
  }
  return s;
}

template <class P>
static __device__ inline typename P::real
column_centre (const Reduction &k, const typename P::T *p, int64_t i,
               int64_t end, Tile tile) {
  typedef typename P::real real;
  if constexpr (P::Centre::exists) {
    typedef Folding<typename P::T, typename P::Centre> C;
    typename C::State s = walk_column<C>(p, k.inner, i, end, tile.tall, 0, 0);
    s = tile_fold<C>(s, tile.wide);
    return centre_from<typename P::Centre>(
        (real)finish<typename P::Centre>(k, (double)s, 0.0));
  }
  return 0;
}

template <class P>
static __global__ void reduce_columns (Reduction k, Tile tile) {
  typedef typename P::real real;
  int64_t blocks = (tile.columns + tile.wide - 1) / tile.wide;
  int x = threadIdx.x & (tile.wide - 1), y = threadIdx.x / tile.wide;
  for (int64_t b = blockIdx.x; b < blocks * k.splits; b += gridDim.x) {
    int64_t piece = b / blocks, column = (b - piece * blocks) * tile.wide + x;
    bool live = column < tile.columns;
    int64_t o = live ? column / k.inner : 0, j = column - o * k.inner;
    int64_t i = piece * k.len + y;
    int64_t end = live ? lesser((piece + 1) * k.len, k.n) : 0;
    const typename P::T *p =
        (const typename P::T *)k.x + o * k.n * k.inner + (live ? j : 0);
    real c = 0;
    if (k.centre == NULL) c = column_centre<P>(k, p, i, end, tile);
    else if (live)
      c = centre_from<typename P::Centre>(((const real *)k.centre)[column]);
    typename P::State s =
        walk_column<P>(p, k.inner, i, end, tile.tall, c, (real)k.a);
    s = tile_fold<P>(s, tile.wide);
    if (!live || y != 0) continue;
    if (k.part != NULL)
      ((typename P::State *)k.part)[column * k.splits + piece] = s;
    else P::put(k, column, s, c);
  }
}

/* The pieces of each row or column, a warp each. */
template <class P> static __global__ void reduce_parts (Reduction k) {
  typedef typename P::real real;
  int lane = threadIdx.x % WARP;
  EACH_ROW(at, k.outer * k.inner, WARP) {
    bool live = at < k.outer * k.inner;
    const typename P::State *part = (const typename P::State *)k.part;
    typename P::State s = P::start();
    if (live)
      for (int64_t i = lane; i < k.splits; i += WARP)
        s = P::of(s, part[at * k.splits + i]);
    s = team_fold<P>(s, WARP);
    if (!live || lane != 0) continue;
    real c =
        k.centre == NULL
            ? (real)0
            : centre_from<typename P::Centre>(((const real *)k.centre)[at]);
    P::put(k, at, s, c);
  }
}

/* }====================================================== */

/*
** {======================================================
** Launching
** =======================================================
*/

/* The threads of a row and the pieces it goes in. */
static int row_team (Reduction *k) {
  if (k->n <= 1024) return (int)min64(power_from((k->n + 3) / 4), WARP);
  if (k->outer < BLOCKS_ENOUGH && k->n >= 8192) {
    k->splits = min64(BLOCKS_ENOUGH / max64(k->outer, 1), k->n / 4096);
    k->len = ((k->n + k->splits - 1) / k->splits + 3) / 4 * 4;
    k->splits = (k->n + k->len - 1) / k->len;
  }
  return BLOCK;
}

template <class P> static void run (const Tensor *on, Reduction *k);

/* Before pieces: the centres of whole rows. */
template <class P> static void make_centre (const Tensor *on, Reduction *k) {
  if constexpr (P::Centre::exists) {
    if (k->centre != NULL) return;
    Reduction c = *k;
    c.to = on->dtype == FNN_F64 ? FNN_F64 : FNN_F32;
    c.y = scratch_for(on, k->outer * k->inner * (int64_t)sizeof(double));
    run<Folding<typename P::T, typename P::Centre>>(on, &c);
    k->centre = c.y;
  }
}

template <class P> static void run (const Tensor *on, Reduction *k) {
  Tile tile;
  int team = 0;
  k->splits = 1;
  k->len = k->n;
  if (k->inner == 1) team = row_team(k);
  else {
    tile = tile_of(k->outer, k->n, k->inner, true);
    k->splits = tile.splits;
    k->len = tile.n;
  }
  k->part = NULL;
  if (k->splits > 1) {
    make_centre<P>(on, k);
    k->part = scratch_for(on, k->outer * k->inner * k->splits *
                                  (int64_t)sizeof(typename P::State));
  }
  if (k->inner == 1)
    RUN(on, (reduce_rows<P>), blocks_for(k->outer * k->splits, BLOCK / team),
        BLOCK, 0, *k, team);
  else RUN(on, (reduce_columns<P>), tile.grid, TILE, 0, *k, tile);
  if (k->splits > 1)
    RUN(on, (reduce_parts<P>), blocks_for(k->outer * k->inner, BLOCK / WARP),
        BLOCK, 0, *k);
}

typedef void (*Run)(const Tensor *on, Reduction *k);

/* Of which dtypes the rows of a kind are. */
#define REAL(name, T) run<Folding<T, row_##name>>
#define SUM REAL
#define SAME REAL
#define TEST REAL
#define ID(name, T) run<Finding<T, REDUCE_##name == REDUCE_argmin>>
#define REDUCE(name, kind, centre, how, f, result, reads, gx) kind(name, T),
template <class T> static Run float_run (int op) {
  static const Run runs[REDUCE_COUNT] = {
#include "../src/core/reduce.def"
  };
  return runs[op];
}
#undef REAL
#define REAL(name, T) NULL
#undef SUM
#undef SAME
#undef TEST
#define SUM(name, T) run<Folding<T, row_##name>>
#define SAME SUM
#define TEST SUM
template <class T> static Run int_run (int op) {
  static const Run runs[REDUCE_COUNT] = {
#include "../src/core/reduce.def"
  };
  return runs[op];
}
#undef REDUCE

void reduce_run (const Tensor *on, int op, Reduction *k) {
  if (k->outer == 0 || k->inner == 0) return;
  size_t mark = fnn_mark();
  Run f = NULL;
  switch ((fnn_Dtype)on->dtype) {
    case FNN_I64: f = int_run<int64_t>(op); break;
    case FNN_I32: f = int_run<int32_t>(op); break;
    case FNN_U8:
    case FNN_BOOL: f = int_run<uint8_t>(op); break;
    default: WITH_FLOAT(on->dtype, f = float_run<T>(op));
  }
  f(on, k);
  fnn_escape(mark, NULL);
}

void reduce_equal (const Tensor *on, Reduction *k) {
  if (k->outer == 0 || k->inner == 0) return;
  size_t mark = fnn_mark();
  WITH_FLOAT(on->dtype, run<Folding<T, row_equal>>(on, k));
  fnn_escape(mark, NULL);
}

/* }====================================================== */

extern "C" void cuda_reduce (int op, Tensor *y, const Tensor *x, int64_t outer,
                             int64_t n, int64_t inner, double a) {
  Reduction k = {};
  k.x = tensor_data(x);
  k.y = tensor_data(y);
  k.to = (fnn_Dtype)y->dtype;
  k.outer = outer;
  k.n = n;
  k.inner = inner;
  k.a = a;
  reduce_run(x, op, &k);
}
