/* softmax.cu - normalized exponentials, and their logarithms, along the middle
** of (outer, n, inner); x may be y, and gy gx.
**
** Rows of up to HeldMost numbers stay in the registers of a team.  Longer ones
** are read by a block for the running maximum and sum, and once more as they
** are written; so are columns, by the tile. */

#include "rows.h"

enum { BLOCK = 512 };

/* What a number becomes, given its row's maximum and sum. */
template <class real>
static __device__ inline real scaled (real x, Soft<real> k, bool log_) {
  return log_ ? x - (k.m + log(k.s)) : exp(x - k.m) / k.s;
}

/*
** {======================================================
** Rows in registers
** =======================================================
*/

template <class T, int E, int N>
static __global__ void HELD_BOUNDS (Real<T>, E)
    softmax_held(T *y, const T *x, int64_t rows, int n, int team, bool log_) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, rows, team) {
    real v[E], m, s = 0;
    int count = row < rows ? n : 0;
    held_load<E, N>(v, x + row * n, count, t, team, -(real)INFINITY);
    m = v[0];
    for (int e = 1; e < E; e++) m = Most::of(m, v[e]);
    m = team_fold<Most>(m, team);
    for (int e = 0; e < E; e++) {
      real p = exp(v[e] - m);
      s += held_place<N>(e, t, team) < count ? p : 0;
      if (!log_) v[e] = p;
    }
    s = team_fold<Sum>(s, team);
    real c = log_ ? m + log(s) : 1 / s;
    for (int e = 0; e < E; e++) v[e] = log_ ? v[e] - c : v[e] * c;
    held_store<E, N>(y + row * n, v, count, t, team);
  }
}

/* gx = y (gy - sum gy y), or gy - e^y sum gy */
template <class T, int E, int N>
static __global__ void HELD_BOUNDS (Real<T>, E)
    back_held(T *gx, const T *gy, const T *y, int64_t rows, int n, int team,
              bool log_) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, rows, team) {
    real g[E], v[E], s = 0;
    int count = row < rows ? n : 0;
    held_load<E, N>(g, gy + row * n, count, t, team, (real)0);
    held_load<E, N>(v, y + row * n, count, t, team, (real)0);
    for (int e = 0; e < E; e++) s += log_ ? g[e] : g[e] * v[e];
    s = team_fold<Sum>(s, team);
    for (int e = 0; e < E; e++)
      g[e] = log_ ? g[e] - exp(v[e]) * s : v[e] * (g[e] - s);
    held_store<E, N>(gx + row * n, g, count, t, team);
  }
}

/* }====================================================== */

/*
** {======================================================
** Long rows, a block each
** =======================================================
*/

template <class T>
static __global__ void softmax_long (T *y, const T *x, int64_t rows, int64_t n,
                                     bool log_) {
  typedef Real<T> real;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *p = x + row * n;
    T *q = y + row * n;
    int64_t head = packed_from(p, n);
    Soft<real> k = soft_none<real>();
    row_walk(n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      real v[decltype(count)::n];
      load<decltype(count)::n>(v, p + i);
      soft_take<decltype(count)::n>(&k, v);
    });
    k = team_fold<SoftFold>(k, BLOCK);
    if (!is_packed(q + head)) head = n;
    row_walk(n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      real v[decltype(count)::n];
      load<decltype(count)::n>(v, p + i);
      for (int j = 0; j < decltype(count)::n; j++)
        v[j] = scaled(v[j], k, log_);
      store<decltype(count)::n>(q + i, v);
    });
  }
}

template <class T>
static __global__ void back_long (T *gx, const T *gy, const T *y, int64_t rows,
                                  int64_t n, bool log_) {
  typedef Real<T> real;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *g = gy + row * n, *p = y + row * n;
    T *q = gx + row * n;
    int64_t head = packed_from(p, n);
    if (!is_packed(g + head) || !is_packed(q + head)) head = n;
    double sum = 0;
    row_walk(n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      real v[decltype(count)::n], u[decltype(count)::n], few = 0;
      load<decltype(count)::n>(v, p + i);
      load<decltype(count)::n>(u, g + i);
      for (int j = 0; j < decltype(count)::n; j++)
        few += log_ ? u[j] : u[j] * v[j];
      sum += (double)few;
    });
    real s = (real)team_fold<Sum>(sum, BLOCK);
    row_walk(n, head, threadIdx.x, BLOCK, [&] (int64_t i, auto count) {
      real v[decltype(count)::n], u[decltype(count)::n];
      load<decltype(count)::n>(v, p + i);
      load<decltype(count)::n>(u, g + i);
      for (int j = 0; j < decltype(count)::n; j++)
        u[j] = log_ ? u[j] - exp(v[j]) * s : v[j] * (u[j] - s);
      store<decltype(count)::n>(q + i, u);
    });
  }
}

/* }====================================================== */

/*
** {======================================================
** Columns
** =======================================================
*/

/* Where a thread's column begins; it takes places y, y + tall ... of it. */
static __device__ inline int64_t column_base (const Tile &k, int64_t inner,
                                              int64_t n, bool *live) {
  int x = threadIdx.x & (k.wide - 1);
  int64_t column = (int64_t)blockIdx.x * k.wide + x;
  *live = column < k.columns;
  int64_t o = *live ? column / inner : 0;
  return *live ? o * n * inner + (column - o * inner) : 0;
}

template <class T>
static __global__ void softmax_columns (T *y, const T *x, int64_t n,
                                        int64_t inner, Tile tile, bool log_) {
  typedef Real<T> real;
  bool live;
  int64_t base = column_base(tile, inner, n, &live);
  int64_t first = threadIdx.x / tile.wide, end = live ? n : 0;
  Soft<real> k = soft_none<real>();
  for (int64_t i = first; i < end; i += tile.tall) {
    real v = (real)x[base + i * inner];
    soft_take<1>(&k, &v);
  }
  k = tile_fold<SoftFold>(k, tile.wide);
  for (int64_t i = first; i < end; i += tile.tall) {
    int64_t at = base + i * inner;
    y[at] = number<T>(scaled((real)x[at], k, log_));
  }
}

template <class T>
static __global__ void back_columns (T *gx, const T *gy, const T *y, int64_t n,
                                     int64_t inner, Tile tile, bool log_) {
  typedef Real<T> real;
  bool live;
  int64_t base = column_base(tile, inner, n, &live);
  int64_t first = threadIdx.x / tile.wide, end = live ? n : 0;
  double sum = 0;
  for (int64_t i = first; i < end; i += tile.tall) {
    real g = (real)gy[base + i * inner];
    sum += (double)(log_ ? g : g * (real)y[base + i * inner]);
  }
  real s = (real)tile_fold<Sum>(sum, tile.wide);
  for (int64_t i = first; i < end; i += tile.tall) {
    int64_t at = base + i * inner;
    real g = (real)gy[at], v = (real)y[at];
    gx[at] = number<T>(log_ ? g - exp(v) * s : v * (g - s));
  }
}

/* }====================================================== */

template <class T>
static void forward (Tensor *to, const Tensor *from, int64_t outer, int64_t n,
                     int64_t inner, bool log_) {
  T *y = data_of<T>(to);
  const T *x = data_of<T>(from);
  if (inner > 1) {
    Tile tile = tile_of(outer, n, inner, false);
    RUN(to, (softmax_columns<T>), tile.grid, TILE, 0, y, x, n, inner, tile,
        log_);
  } else if (n <= HeldMost<Real<T>>::n) {
    Held h = held_rows(outer, n);
    bool packed = n % 4 == 0 && is_packed(x) && is_packed(y);
    WITH_HELD(h, packed,
              RUN(to, (softmax_held<T, E, N>), h.grid, h.block, 0, y, x, outer,
                  (int)n, h.team, log_));
  } else
    RUN(to, (softmax_long<T>), blocks_for(outer, 1), BLOCK, 0, y, x, outer, n,
        log_);
}

template <class T>
static void backward (Tensor *to, const Tensor *from, const Tensor *result,
                      int64_t outer, int64_t n, int64_t inner, bool log_) {
  T *gx = data_of<T>(to);
  const T *gy = data_of<T>(from), *y = data_of<T>(result);
  if (inner > 1) {
    Tile tile = tile_of(outer, n, inner, false);
    RUN(to, (back_columns<T>), tile.grid, TILE, 0, gx, gy, y, n, inner, tile,
        log_);
  } else if (n <= HeldMost<Real<T>>::n) {
    Held h = held_rows(outer, n);
    bool packed = n % 4 == 0 && is_packed(gx) && is_packed(gy) && is_packed(y);
    WITH_HELD(h, packed,
              RUN(to, (back_held<T, E, N>), h.grid, h.block, 0, gx, gy, y,
                  outer, (int)n, h.team, log_));
  } else
    RUN(to, (back_long<T>), blocks_for(outer, 1), BLOCK, 0, gx, gy, y, outer,
        n, log_);
}

extern "C" void cuda_softmax (Tensor *y, const Tensor *x, int64_t outer,
                              int64_t n, int64_t inner, bool log) {
  if (x->numel == 0) return;
  WITH_FLOAT(x->dtype, forward<T>(y, x, outer, n, inner, log));
}

extern "C" void cuda_softmax_back (Tensor *gx, const Tensor *gy,
                                   const Tensor *y, int64_t outer, int64_t n,
                                   int64_t inner, bool log) {
  if (gx->numel == 0) return;
  WITH_FLOAT(gx->dtype, backward<T>(gx, gy, y, outer, n, inner, log));
}
