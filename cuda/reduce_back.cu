/* reduce_back.cu - gradients of reductions.  x and gx are (outer, n, inner),
** gy and y (outer, inner): an elementwise pass over views that repeat these. */

#include "reduce.h"

#include "../src/core/ops.h"
#include "sweep.h"
#include "words.h"

/* The operands of a pass: what the formulas call c, g, x, y. */
enum { CENTRE, GRADIENT, ARGUMENT, RESULT, OPERANDS };

#define OPERAND(name, k) \
  const real name = v[k][j]; \
  (void)name

/* A gradient of the table. */
#define REDUCE(name, kind, centre, how, f, result, reads, gx) \
  template <class real> struct slope_##name { \
    typedef real Lane; \
    real a, n; \
    template <int V> \
    __device__ inline real operator()(const real (&v)[OPERANDS][V], \
                                      int j) const { \
      OPERAND(c, CENTRE); \
      OPERAND(g, GRADIENT); \
      OPERAND(x, ARGUMENT); \
      OPERAND(y, RESULT); \
      const real m = n > a ? n - a : (real)0; \
      (void)m; \
      return (gx); \
    } \
  };
#include "../src/core/reduce.def"
#undef REDUCE

/* Its share for each number that is the extreme; c: how many they are. */
template <class real> struct Share {
  typedef real Lane;
  real a, n;
  template <int V>
  __device__ inline real operator()(const real (&v)[OPERANDS][V],
                                    int j) const {
    real x = v[ARGUMENT][j], y = v[RESULT][j];
    bool same = x == y || (x != x && y != y);
    return same ? v[GRADIENT][j] / v[CENTRE][j] : (real)0;
  }
};

typedef struct Back {
  Tensor *gx;
  const Tensor *gy, *x, *y, *c; /* x, y and c NULL where not read */
  int64_t outer, n, inner;
  double a;
} Back;

/*
** {======================================================
** The elementwise pass
** =======================================================
*/

static const Tensor *as_rows (const Back *k, const Tensor *x, bool repeat) {
  int64_t shape[3] = { k->outer, k->n, k->inner };
  int64_t whole[3] = { k->n * k->inner, k->inner, 1 };
  int64_t few[3] = { k->inner, 0, 1 };
  if (x == NULL) return NULL;
  return tensor_view(x, 3, shape, repeat ? few : whole, x->offset);
}

template <class F, class T> static void pass (const Back *k) {
  const Tensor *t[1 + OPERANDS] = {
    as_rows(k, k->gx, false), as_rows(k, k->c, true), as_rows(k, k->gy, true),
    as_rows(k, k->x, false), as_rows(k, k->y, true)
  };
  Geometry g;
  typedef typename F::Lane real;
  real a = (real)k->a, n = (real)k->n;
  geometry_open(&g, 1 + OPERANDS, t);
  if (geometry_runs(&g, 4))
    sweep_launch<F, T, real, T, OPERANDS, 4>(k->gx, g, a, n);
  else sweep_launch<F, T, real, T, OPERANDS, 1>(k->gx, g, a, n);
}

typedef void (*Launch)(const Back *k);

#define REAL(name) pass<slope_##name<Real<T>>, T>
#define SUM REAL
#define SAME(name) pass<Share<Real<T>>, T>
#define TEST(name) NULL
#define ID TEST
#define REDUCE(name, kind, centre, how, f, result, reads, gx) kind(name),
template <class T> static Launch launch_of (int op) {
  static const Launch launches[REDUCE_COUNT] = {
#include "../src/core/reduce.def"
  };
  return launches[op];
}
#undef REDUCE

/* }====================================================== */

/*
** {======================================================
** The first extreme: gx is 0 but at its place
** =======================================================
*/

enum { BLOCK = 256 };

template <class T>
static __global__ void put_first (T *gx, const T *gy, const int64_t *at,
                                  int64_t columns, int64_t n, int64_t inner) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < columns; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t o = i / inner, j = i - o * inner;
    gx[(o * n + at[i]) * inner + j] = gy[i];
  }
}

static Reduction over (const Back *k, void *y, fnn_Dtype to) {
  Reduction r = {};
  r.x = tensor_data(k->x);
  r.y = y;
  r.to = to;
  r.outer = k->outer;
  r.n = k->n;
  r.inner = k->inner;
  return r;
}

static void first (const Back *k, bool least) {
  int64_t columns = k->outer * k->inner;
  int64_t *at = (int64_t *)scratch_for(k->gx, columns * (int64_t)sizeof *at);
  Reduction r = over(k, at, FNN_I64);
  reduce_run(k->x, least ? REDUCE_argmin : REDUCE_argmax, &r);
  size_t size = fnn_dtype_size((fnn_Dtype)k->gx->dtype);
  cuda_check(cudaMemsetAsync(tensor_data(k->gx), 0,
                             (size_t)k->gx->numel * size,
                             cuda_of(k->gx)->compute),
             "reduce_back");
  WITH_FLOAT(k->gx->dtype,
             RUN(k->gx, (put_first<T>), blocks_for(columns, BLOCK), BLOCK, 0,
                 data_of<T>(k->gx), data_of<T>(k->gy), at, columns, k->n,
                 k->inner));
}

/* }====================================================== */

/*
** {======================================================
** Products: each number's gradient is the product of the others, without a
** division: what lies left of it times what lies right of it
** =======================================================
*/

/* A thread has a run of its column.  after: what lies right of each number,
** in the order of x. */
template <class T>
static __global__ void prod_back (T *gx, const T *gy, const T *x,
                                  double *after, int64_t n, int64_t inner,
                                  Tile tile) {
  SHARED(double, part, [TILE]);
  int at = threadIdx.x & (tile.wide - 1), y = threadIdx.x / tile.wide;
  int64_t column = (int64_t)blockIdx.x * tile.wide + at;
  bool live = column < tile.columns;
  int64_t o = live ? column / inner : 0, j = live ? column - o * inner : 0;
  int64_t run = (n + tile.tall - 1) / tile.tall;
  int64_t lo = y * run, hi = live ? lesser(lo + run, n) : 0;
  int64_t base = o * n * inner + j;
  double all = 1, left = 1, right = 1;
  for (int64_t i = lo; i < hi; i++)
    all *= (double)(Real<T>)x[base + i * inner];
  part[threadIdx.x] = all;
  __syncthreads();
  for (int k = 0; k < tile.tall; k++) {
    double p = part[k * tile.wide + at];
    if (k < y) left *= p;
    if (k > y) right *= p;
  }
  for (int64_t i = hi - 1; i >= lo; i--) {
    after[base + i * inner] = right;
    right *= (double)(Real<T>)x[base + i * inner];
  }
  if (live) left *= (double)(Real<T>)gy[column];
  for (int64_t i = lo; i < hi; i++) {
    gx[base + i * inner] = number<T>(left * after[base + i * inner]);
    left *= (double)(Real<T>)x[base + i * inner];
  }
}

static void product (const Back *k) {
  Tile tile = tile_of(k->outer, k->n, k->inner, false);
  double *after =
      (double *)scratch_for(k->gx, k->gx->numel * (int64_t)sizeof *after);
  WITH_FLOAT(k->gx->dtype, RUN(k->gx, (prod_back<T>), tile.grid, TILE, 0,
                               data_of<T>(k->gx), data_of<T>(k->gy),
                               data_of<T>(k->x), after, k->n, k->inner, tile));
}

/* }====================================================== */

/* A tensor of Real<T> for the centres. */
static Tensor *centres (const Back *k) {
  int64_t n = k->outer * k->inner;
  return tensor_new(1, &n, real_dtype(k->gx), k->gx->storage->device);
}

/* The number of extremes, by extremes that are of x's dtype. */
static Tensor *count_equal (const Back *k) {
  Tensor *c = centres(k);
  Reduction r = over(k, tensor_data(c), (fnn_Dtype)c->dtype);
  r.centre = tensor_data(tensor_convert(k->y, (fnn_Dtype)c->dtype));
  reduce_equal(k->x, &r);
  return c;
}

extern "C" void cuda_reduce_back (int op, Tensor *gx, const Tensor *gy,
                                  const Tensor *x, const Tensor *y,
                                  int64_t outer, int64_t n, int64_t inner,
                                  double a) {
  Back k = { gx, gy, x, y, NULL, outer, n, inner, a };
  bool extreme = op == REDUCE_max || op == REDUCE_min;
  if (gx->numel == 0) return;
  size_t mark = fnn_mark();
  if (op == REDUCE_prod) product(&k);
  else if (extreme && a == 0) first(&k, op == REDUCE_min);
  else {
    if (extreme) k.c = count_equal(&k);
    if (op == REDUCE_var || op == REDUCE_std) {
      Tensor *c = centres(&k);
      Reduction r = over(&k, tensor_data(c), (fnn_Dtype)c->dtype);
      reduce_run(x, REDUCE_mean, &r);
      k.c = c;
    }
    Launch f = NULL;
    WITH_FLOAT(gx->dtype, f = launch_of<T>(op));
    f(&k);
  }
  fnn_escape(mark, NULL);
}
