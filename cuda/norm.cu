/* norm.cu - layer normalization: rows of n numbers shifted to mean 0 (RMS norm
** leaves this out) and scaled to variance 1, times w, plus b.
**
** Rows of up to HeldMost numbers stay in the registers of a team: the variance
** is taken from the mean outwards without another read.  Longer rows are read
** thrice by a block.  w and b are of x's dtype or, beside a 16-bit x, f32;
** statistics are of Real<T>. */

#include "rows.h"

enum { BLOCK = 512 };

/* The arguments of a pass over rows, the same for all its kernels. */
template <class T, class W> struct Job {
  T *y; /* or gx */
  Real<T> *stats;
  const T *x, *gy;
  const W *w, *b;
  int64_t rows, n;
  double eps;
  bool centred;
};

/* 1 / sqrt(var + eps), in the type of the spread.  All threads of a row make
** it, and in double that would take a card that has few units for it longer
** than a short row's memory does. */
template <class S>
static __device__ inline S inverse_root (S spread, int64_t n, double eps) {
  return 1 / sqrt(spread / (S)n + (S)eps);
}

/*
** {======================================================
** Forward
** =======================================================
*/

/* The mean is taken from the first number outwards: a row of equal numbers
** has exactly theirs. */
template <class T, class W, int E, int N>
static __global__ void HELD_BOUNDS (Real<T>, E)
    norm_held(Job<T, W> k, int team) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, k.rows, team) {
    real v[E], mean = 0, s = 0;
    int n = row < k.rows ? (int)k.n : 0;
    const T *x = k.x + row * k.n;
    real first = n > 0 ? (real)x[0] : 0;
    held_load<E, N>(v, x, n, t, team, first);
    if (k.centred) {
      for (int e = 0; e < E; e++) s += v[e] - first;
      mean = first + team_fold<Sum>(s, team) / (real)k.n;
    }
    s = 0;
    for (int e = 0; e < E; e++)
      if (held_place<N>(e, t, team) < n) s += (v[e] - mean) * (v[e] - mean);
    s = team_fold<Sum>(s, team);
    real r = inverse_root(s, k.n, k.eps);
    if (n > 0 && t == 0) {
      k.stats[2 * row] = mean;
      k.stats[2 * row + 1] = r;
    }
    real u[N];
    for (int e = 0; e < E; e += N) {
      int i = held_place<N>(e, t, team);
      if (i >= n) continue;
      for (int j = 0; j < N; j++) v[e + j] = (v[e + j] - mean) * r;
      if (k.w != NULL) {
        load<N>(u, k.w + i);
        for (int j = 0; j < N; j++) v[e + j] *= u[j];
      }
      if (k.b != NULL) {
        load<N>(u, k.b + i);
        for (int j = 0; j < N; j++) v[e + j] += u[j];
      }
    }
    held_store<E, N>(k.y + row * k.n, v, n, t, team);
  }
}

template <class T, class W> static __global__ void norm_long (Job<T, W> k) {
  typedef Real<T> real;
  for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
    const T *x = k.x + row * k.n;
    T *y = k.y + row * k.n;
    int64_t head = packed_from(x, k.n);
    real first = (real)x[0], mean = 0;
    double sum = 0;
    auto spread = [&] (int64_t i, auto count) {
      real v[decltype(count)::n], s = 0;
      load<decltype(count)::n>(v, x + i);
      for (int j = 0; j < decltype(count)::n; j++)
        s += (v[j] - mean) * (v[j] - mean);
      sum += (double)s;
    };
    auto total = [&] (int64_t i, auto count) {
      real v[decltype(count)::n], s = 0;
      load<decltype(count)::n>(v, x + i);
      for (int j = 0; j < decltype(count)::n; j++) s += v[j] - first;
      sum += (double)s;
    };
    if (k.centred) {
      row_walk(k.n, head, threadIdx.x, BLOCK, total);
      sum = team_fold<Sum>(sum, BLOCK);
      mean = (real)((double)first + sum / (double)k.n);
      sum = 0;
    }
    row_walk(k.n, head, threadIdx.x, BLOCK, spread);
    sum = team_fold<Sum>(sum, BLOCK);
    real r = (real)inverse_root(sum, k.n, k.eps);
    if (threadIdx.x == 0) {
      k.stats[2 * row] = mean;
      k.stats[2 * row + 1] = r;
    }
    if (!is_packed(y + head) || (k.w != NULL && !is_packed(k.w + head)) ||
        (k.b != NULL && !is_packed(k.b + head)))
      head = k.n;
    row_walk(k.n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      enum { N = decltype(count)::n };
      real v[N], w[N], b[N];
      load<N>(v, x + i);
      if (k.w != NULL) load<N>(w, k.w + i);
      if (k.b != NULL) load<N>(b, k.b + i);
      for (int j = 0; j < N; j++) {
        v[j] = (v[j] - mean) * r;
        if (k.w != NULL) v[j] *= w[j];
        if (k.b != NULL) v[j] += b[j];
      }
      store<N>(y + i, v);
    });
  }
}

template <class T, class W>
static void forward (const Tensor *on, const Job<T, W> &k) {
  if (k.n > HeldMost<Real<T>>::n) {
    RUN(on, (norm_long<T, W>), blocks_for(k.rows, 1), BLOCK, 0, k);
    return;
  }
  Held h = held_rows(k.rows, k.n);
  bool packed = k.n % 4 == 0 && is_packed(k.x) && is_packed(k.y) &&
                is_packed(k.w) && is_packed(k.b);
  WITH_HELD(h, packed,
            RUN(on, (norm_held<T, W, E, N>), h.grid, h.block, 0, k, h.team));
}

/* }====================================================== */

/*
** {======================================================
** Backward.  With h = (x - mean) r and u = gy w:
** gx = r (u - mean(u) - h mean(u h)), gw = sum gy h, gb = sum gy
** =======================================================
*/

/* u of N places from i on. */
template <int N, class R, class T, class W>
static __device__ inline void load_u (R *u, const T *gy, const W *w,
                                      int64_t i) {
  load<N>(u, gy + i);
  if (w == NULL) return;
  R v[N];
  load<N>(v, w + i);
  for (int j = 0; j < N; j++) u[j] *= v[j];
}

template <class T, class W, int E, int N>
static __global__ void HELD_BOUNDS (Real<T>, E)
    back_held(Job<T, W> k, int team) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, k.rows, team) {
    real h[E], u[E];
    int n = row < k.rows ? (int)k.n : 0;
    real mean = n > 0 ? k.stats[2 * row] : 0;
    real r = n > 0 ? k.stats[2 * row + 1] : 0;
    held_load<E, N>(h, k.x + row * k.n, n, t, team, mean);
    Two<real> s = { 0, 0 };
    for (int e = 0; e < E; e += N) {
      int i = held_place<N>(e, t, team);
      for (int j = 0; j < N; j++) u[e + j] = 0;
      if (i < n) load_u<N>(u + e, k.gy + row * k.n, k.w, i);
      for (int j = 0; j < N; j++) {
        h[e + j] = (h[e + j] - mean) * r;
        s = s + Two<real>{ u[e + j], u[e + j] * h[e + j] };
      }
    }
    s = team_fold<Sum>(s, team);
    real mu = k.centred ? s.a / (real)k.n : 0, mh = s.b / (real)k.n;
    for (int e = 0; e < E; e++) u[e] = r * (u[e] - mu - h[e] * mh);
    held_store<E, N>(k.y + row * k.n, u, n, t, team);
  }
}

template <class T, class W> static __global__ void back_long (Job<T, W> k) {
  typedef Real<T> real;
  for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
    const T *x = k.x + row * k.n, *gy = k.gy + row * k.n;
    T *gx = k.y + row * k.n;
    real mean = k.stats[2 * row], r = k.stats[2 * row + 1];
    int64_t head = packed_from(x, k.n);
    if (!is_packed(gy + head) || !is_packed(gx + head) ||
        (k.w != NULL && !is_packed(k.w + head)))
      head = k.n;
    Two<double> s = { 0, 0 };
    row_walk(k.n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      enum { N = decltype(count)::n };
      real h[N], u[N], a = 0, b = 0;
      load<N>(h, x + i);
      load_u<N>(u, gy, k.w, i);
      for (int j = 0; j < N; j++) {
        a += u[j];
        b += u[j] * ((h[j] - mean) * r);
      }
      s = s + Two<double>{ (double)a, (double)b };
    });
    s = team_fold<Sum>(s, BLOCK);
    real mu = k.centred ? (real)(s.a / (double)k.n) : 0;
    real mh = (real)(s.b / (double)k.n);
    row_walk(k.n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      enum { N = decltype(count)::n };
      real h[N], u[N];
      load<N>(h, x + i);
      load_u<N>(u, gy, k.w, i);
      for (int j = 0; j < N; j++)
        u[j] = r * (u[j] - mu - (h[j] - mean) * r * mh);
      store<N>(gx + i, u);
    });
  }
}

/* }====================================================== */

/*
** {======================================================
** Gradients of w and b: sums down the columns, of a few rows in a number of
** Real<T>, of these in double; pieces of the rows first
** =======================================================
*/

/* part (splits, 2, n) */
template <class T, class W>
static __global__ void weight_parts (double *part, Job<T, W> k, Tile tile) {
  typedef Real<T> real;
  int64_t blocks = (k.n + tile.wide - 1) / tile.wide;
  int x = threadIdx.x & (tile.wide - 1), y = threadIdx.x / tile.wide;
  for (int64_t b = blockIdx.x; b < blocks * tile.splits; b += gridDim.x) {
    int64_t piece = b / blocks, j = (b - piece * blocks) * tile.wide + x;
    int64_t row = piece * tile.n + y;
    int64_t end = j < k.n ? lesser((piece + 1) * tile.n, k.rows) : 0;
    Two<double> s = { 0, 0 };
    while (row < end) {
      Two<real> few = { 0, 0 };
      for (int i = 0; i < 8 && row < end; i++, row += tile.tall) {
        real g = (real)k.gy[row * k.n + j], v = (real)k.x[row * k.n + j];
        few = few +
              Two<real>{ g * ((v - k.stats[2 * row]) * k.stats[2 * row + 1]),
                         g };
      }
      s = s + Two<double>{ (double)few.a, (double)few.b };
    }
    s = tile_fold<Sum>(s, tile.wide);
    if (y != 0 || j >= k.n) continue;
    part[2 * piece * k.n + j] = s.a;
    part[(2 * piece + 1) * k.n + j] = s.b;
  }
}

/* gw or gb, from its half of the first piece on. */
template <class W>
static __global__ void weight_sums (W *to, const double *part, int64_t splits,
                                    int64_t n) {
  int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; j < n; j += (int64_t)gridDim.x * blockDim.x) {
    double s = 0;
    for (int64_t i = 0; i < splits; i++) s += part[2 * i * n + j];
    to[j] = number<W>(s);
  }
}

template <class T, class W>
static void weights (const Tensor *on, Tensor *gw, Tensor *gb,
                     const Job<T, W> &k) {
  typedef Real<T> real;
  Tile tile = tile_of(1, k.rows, k.n, true);
  size_t mark = fnn_mark();
  double *part =
      (double *)scratch_for(on, tile.splits * 2 * k.n * (int64_t)sizeof *part);
  RUN(on, (weight_parts<T, W>), tile.grid, TILE, 0, part, k, tile);
  for (int i = 0; i < 2; i++) {
    Tensor *to = i == 0 ? gw : gb;
    const double *from = part + i * k.n;
    unsigned blocks = blocks_for(k.n, TILE);
    if (to == NULL) continue;
    if (to->dtype == on->dtype)
      RUN(on, (weight_sums<T>), blocks, TILE, 0, data_of<T>(to), from,
          tile.splits, k.n);
    else
      RUN(on, (weight_sums<real>), blocks, TILE, 0, data_of<real>(to), from,
          tile.splits, k.n);
  }
  fnn_escape(mark, NULL);
}

/* }====================================================== */

template <class T, class W>
static void backward (const Tensor *on, Tensor *gw, Tensor *gb,
                      const Job<T, W> &k) {
  if (k.n > HeldMost<Real<T>>::n)
    RUN(on, (back_long<T, W>), blocks_for(k.rows, 1), BLOCK, 0, k);
  else {
    Held h = held_rows(k.rows, k.n);
    bool packed = k.n % 4 == 0 && is_packed(k.x) && is_packed(k.gy) &&
                  is_packed(k.y) && is_packed(k.w);
    WITH_HELD(h, packed,
              RUN(on, (back_held<T, W, E, N>), h.grid, h.block, 0, k, h.team));
  }
  if (gw != NULL || gb != NULL) weights(on, gw, gb, k);
}

/* Runs the statement with T x's type and W the weights'. */
#define WITH_WEIGHT(x, w, ...) \
  WITH_FLOAT((x)->dtype, \
             if ((w) == NULL || (w)->dtype == (x)->dtype) { \
               typedef T W; \
               __VA_ARGS__; \
             } else { \
               typedef Real<T> W; \
               __VA_ARGS__; \
             })

extern "C" void cuda_layer_norm (Tensor *y, Tensor *stats, const Tensor *x,
                                 const Tensor *w, const Tensor *b,
                                 int64_t rows, int64_t n, double eps,
                                 bool centred) {
  const Tensor *either = w != NULL ? w : b;
  if (x->numel == 0) return;
  WITH_WEIGHT(x, either,
              Job<T, W> k = { data_of<T>(y), data_of<Real<T>>(stats),
                              data_of<T>(x), NULL, data_of<W>(w),
                              data_of<W>(b), rows, n, eps, centred };
              forward(x, k));
}

extern "C" void cuda_layer_norm_back (Tensor *gx, Tensor *gw, Tensor *gb,
                                      const Tensor *gy, const Tensor *x,
                                      const Tensor *w, const Tensor *stats,
                                      int64_t rows, int64_t n, bool centred) {
  if (n == 0) return;
  if (rows == 0) { /* sums of nothing */
    if (gw != NULL) kernel(gw, fill)(gw, 0);
    if (gb != NULL) kernel(gb, fill)(gb, 0);
    return;
  }
  WITH_WEIGHT(x, w,
              Job<T, W> k = { data_of<T>(gx), data_of<Real<T>>(stats),
                              data_of<T>(x), data_of<T>(gy), data_of<W>(w),
                              NULL, rows, n, 0, centred };
              backward(x, gw, gb, k));
}
