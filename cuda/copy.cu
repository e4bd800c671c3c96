/* copy.cu - from any strides to any strides, from any dtype to any dtype.
**
** Where the result runs along one dim and the source along another the copy
** is a transposition, done in square tiles in shared memory; so that both
** sides are walked in order.  All else goes by groups. */

#include "sweep.h"

/*
** {======================================================
** Transposition
** =======================================================
*/

enum {
  TILE = 32,     /* a warp walks a row of it */
  TILE_ROWS = 8, /* rows that a block walks at a time */
  TILE_LEAST = 8 /* below it most lanes would idle */
};

/* Tiles of dim 0, along which the result runs, and of the dim along which the
** source does; then the other dims. */
typedef struct Tiles {
  uint32_t count;
  uint32_t size[2]; /* of the two dims */
  Divisor by[2];    /* tiles of each */
  int32_t x_step;   /* of the source in dim 0 */
  int32_t y_step;   /* of the result in the other */
  int ndim;
  Divisor dim[FNN_MAXDIM];
  int32_t x_stride[FNN_MAXDIM], y_stride[FNN_MAXDIM];
} Tiles;

template <class T>
static __global__ void copy_transposed (T *y, const T *x, Tiles t) {
  SHARED(T, tile, [TILE][TILE + 1]); /* + 1: columns in different banks */
  for (uint32_t b = blockIdx.x; b < t.count; b += gridDim.x) {
    uint32_t rest = quotient(b, t.by[0]);
    uint32_t i = (b - rest * t.by[0].by) * TILE;
    uint32_t outer = quotient(rest, t.by[1]);
    uint32_t j = (rest - outer * t.by[1].by) * TILE;
    int32_t ox = 0, oy = 0;
    for (int d = 0; d < t.ndim; d++) {
      uint32_t next = quotient(outer, t.dim[d]);
      int32_t r = (int32_t)(outer - next * t.dim[d].by);
      ox += r * t.x_stride[d];
      oy += r * t.y_stride[d];
      outer = next;
    }
    uint32_t lane = threadIdx.x;
    for (uint32_t k = threadIdx.y; k < TILE; k += TILE_ROWS)
      if (i + k < t.size[0] && j + lane < t.size[1])
        tile[k][lane] =
            x[ox + (int32_t)(i + k) * t.x_step + (int32_t)(j + lane)];
    __syncthreads();
    for (uint32_t k = threadIdx.y; k < TILE; k += TILE_ROWS)
      if (j + k < t.size[1] && i + lane < t.size[0])
        y[oy + (int32_t)(j + k) * t.y_step + (int32_t)(i + lane)] =
            tile[lane][k];
    __syncthreads(); /* not needed by a block's last tile */
  }
}

static int tiles_of (int64_t n) { return (int)((n + TILE - 1) / TILE); }

/* Whether g, which 32-bit places reach, is a transposition. */
static bool find_tiles (Tiles *t, const Geometry *g) {
  int along = -1;
  const int64_t *y = g->stride[0], *x = g->stride[1];
  if (y[0] != 1 || x[0] == 1 || x[0] == 0) return false;
  for (int d = 1; d < g->ndim; d++)
    if (x[d] == 1) along = d;
  if (along < 0) return false;
  if (min64(g->shape[0], g->shape[along]) < TILE_LEAST) return false;
  memset(t, 0, sizeof *t);
  int64_t n[2] = { g->shape[0], g->shape[along] };
  for (int k = 0; k < 2; k++) {
    t->size[k] = (uint32_t)n[k];
    t->by[k] = divisor_of((uint32_t)tiles_of(n[k]));
  }
  t->count = (uint32_t)(g->numel / n[0] / n[1]) * t->by[0].by * t->by[1].by;
  t->x_step = (int32_t)x[0];
  t->y_step = (int32_t)y[along];
  for (int d = 1; d < g->ndim; d++) {
    if (d == along) continue;
    t->dim[t->ndim] = divisor_of((uint32_t)g->shape[d]);
    t->x_stride[t->ndim] = (int32_t)x[d];
    t->y_stride[t->ndim++] = (int32_t)y[d];
  }
  return true;
}

/* }====================================================== */

/* Elements of one dtype move as they are, whatever they mean. */
template <class T> struct Move {
  typedef T Lane;
  T a, b; /* unused */
  template <int V> __device__ T operator()(const T (&x)[1][V], int j) const {
    return x[0][j];
  }
};

template <class T> static void move (const Tensor *on, Geometry g) {
  enum { V = 16 / sizeof(T) };
  typedef Move<T> F;
  Geometry rest;
  while (geometry_halve(&g, &rest)) move<T>(on, rest);
  Tiles t;
  if (g.numel == 0) return;
  if (find_tiles(&t, &g))
    RUN(on, (copy_transposed<T>), (unsigned)min64(t.count, 1 << 20),
        dim3(TILE, TILE_ROWS), 0, (T *)g.data[0], (const T *)g.data[1], t);
  else if (geometry_runs(&g, V)) sweep_launch<F, T, T, T, 1, V>(on, g, 0, 0);
  else sweep_launch<F, T, T, T, 1, 1>(on, g, 0, 0);
}

/* By way of the source's lane L. */
template <class L, int V>
static __global__ void copy_converted (Sweep<2> s, fnn_Dtype to,
                                       fnn_Dtype from) {
  EACH_GROUP(i, s) {
    int32_t at[2];
    L v[V];
    uint32_t left = sweep_find(s, i, V, at);
    group_load_any<V>(v, s.data[1], from, at[1], s.stride[1][0], left);
    group_store_any<V>(s.data[0], to, at[0], v, left);
  }
}

template <class L>
static void convert (const Tensor *on, Geometry g, fnn_Dtype to,
                     fnn_Dtype from) {
  enum { V = 8 };
  Geometry rest;
  while (geometry_halve(&g, &rest)) convert<L>(on, rest, to, from);
  Sweep<2> s;
  bool runs = geometry_runs(&g, V);
  sweep_of(&s, &g, runs ? V : 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  if (runs)
    RUN(on, (copy_converted<L, V>), blocks, SWEEP_THREADS, 0, s, to, from);
  else RUN(on, (copy_converted<L, 1>), blocks, SWEEP_THREADS, 0, s, to, from);
}

extern "C" void cuda_copy (Tensor *y, const Tensor *x) {
  Geometry g;
  const Tensor *t[] = { y, x };
  geometry_open(&g, 2, t);
  fnn_Dtype to = (fnn_Dtype)y->dtype, from = (fnn_Dtype)x->dtype;
  if (to == from) switch (g.size[0]) {
      case 1: move<uint8_t>(y, g); break;
      case 2: move<uint16_t>(y, g); break;
      case 4: move<uint32_t>(y, g); break;
      default: move<uint64_t>(y, g);
    }
  else if (lane_of(from) == FNN_F32) convert<float>(y, g, to, from);
  else if (lane_of(from) == FNN_F64) convert<double>(y, g, to, from);
  else convert<int64_t>(y, g, to, from);
}
