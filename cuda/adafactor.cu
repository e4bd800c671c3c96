/* adafactor.cu - Adafactor's update (see src/cpu/adafactor.c for the formula).
**
** Five passes, none of which the host waits for: squares of p, and of g by
** rows (a warp a row); of g by columns (a thread a column of some rows); the
** means of the rows' means; squares of the update (a warp a row); the update.
** What the second half of them needs of the first lies on the card.  A tensor
** without rows, which keeps an estimate for each element, is cut into rows of
** ROW elements, the last shorter.  Sums are in double and of fixed order. */

#include <float.h>

#include "rows.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
  ROW = 1024, /* of a tensor without rows */
  PARTS = 64  /* the most sums of a column */
};

/* batch matrices of r rows and c columns; n elements. */
template <class T> struct Matrices {
  typedef Real<T> R;
  T *p;
  const T *g;
  R *rows, *cols, *all; /* all: of a tensor without rows */
  int64_t n, batch, r, c;
  int64_t parts, grain; /* sums of a column, each of grain rows */
  double *col_sums;     /* (batch, parts, c) of squares of g */
  double *p_sums;       /* (batch * r) of squares of p */
  double *sums;         /* (batch * r) of squares of the update */
  double *inverse;      /* (batch): 1 / the mean of the rows' means */
  double *total;        /* squares of p, squares of the update */
  double scale, take, eps;
  R least, shrink;
  double step, small, most;
};

static __device__ inline double warp_sum (double v) {
  for (int d = WARP / 2; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

/* The sum over the block, for all of its threads. */
static __device__ inline double block_sum (double v) {
  SHARED(double, part, [WARPS]);
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = v;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < WARPS; i++) sum += part[i];
  return sum;
}

/* Squares of p, and of g where rows have a mean; a warp a row. */
template <class T> static __global__ void row_squares (Matrices<T> m) {
  typedef Real<T> R;
  int lane = (int)threadIdx.x % WARP;
  int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
  int64_t step = (int64_t)gridDim.x * WARPS;
  for (; row < m.batch * m.r; row += step) {
    int64_t from = row * m.c, to = lesser(from + m.c, m.n);
    double p = 0, g = 0;
    for (int64_t i = from + lane; i < to; i += WARP) {
      R x = (R)m.p[i], d = (R)m.g[i];
      p += (double)x * (double)x;
      if (m.all == NULL) {
        g += (double)d * (double)d;
        continue;
      }
      R v = m.all[i];
      d *= (R)m.scale;
      m.all[i] = v + (R)m.take * (d * d - v);
    }
    p = warp_sum(p);
    g = warp_sum(g);
    if (lane != 0) continue;
    m.p_sums[row] = p;
    if (m.all != NULL) continue;
    double mean = m.scale * m.scale * g / (double)m.c;
    m.rows[row] += (R)(m.take * (mean - (double)m.rows[row]));
  }
}

/* Squares of g by columns, in parts of some rows; block (columns, part, of
** which matrix). */
template <class T> static __global__ void column_squares (Matrices<T> m) {
  int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (int64_t b = blockIdx.z; j < m.c && b < m.batch; b += gridDim.z) {
    int64_t i = blockIdx.y * m.grain, end = lesser(i + m.grain, m.r);
    double sum = 0;
    for (; i < end; i++) {
      double d = (double)(Real<T>)m.g[(b * m.r + i) * m.c + j];
      sum += d * d;
    }
    m.col_sums[(b * m.parts + blockIdx.y) * m.c + j] = sum;
  }
}

template <class T> static __global__ void column_means (Matrices<T> m) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (; i < m.batch * m.c; i += step) {
    int64_t b = i / m.c, j = i - b * m.c;
    double sum = 0, mean = m.scale * m.scale / (double)m.r;
    for (int64_t k = 0; k < m.parts; k++)
      sum += m.col_sums[(b * m.parts + k) * m.c + j];
    m.cols[i] += (Real<T>)(m.take * (mean * sum - (double)m.cols[i]));
  }
}

/* 1 / the mean of a matrix's rows' means; a block a matrix. */
template <class T> static __global__ void row_means (Matrices<T> m) {
  for (int64_t b = blockIdx.x; b < m.batch; b += gridDim.x) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < m.r; i += THREADS)
      sum += (double)m.rows[b * m.r + i];
    sum = block_sum(sum) / (double)m.r;
    if (threadIdx.x == 0) m.inverse[b] = 1 / (sum > m.eps ? sum : m.eps);
  }
}

/* What g becomes at element i of a row with factor f, column j. */
template <class T>
static __device__ inline Real<T> update_at (const Matrices<T> &m, int64_t i,
                                            int64_t j, Real<T> f,
                                            const Real<T> *cols) {
  typedef Real<T> R;
  R estimate = m.all != NULL ? m.all[i] : f * cols[j];
  R g = (R)m.scale * (R)m.g[i];
  return g / sqrt(estimate < m.least ? m.least : estimate);
}

template <class T>
static __device__ inline Real<T> row_factor (const Matrices<T> &m, int64_t row,
                                             int64_t b) {
  return m.all != NULL ? 0 : (Real<T>)((double)m.rows[row] * m.inverse[b]);
}

/* Squares of the update; a warp a row. */
template <class T> static __global__ void update_squares (Matrices<T> m) {
  int lane = (int)threadIdx.x % WARP;
  int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
  int64_t step = (int64_t)gridDim.x * WARPS;
  for (; row < m.batch * m.r; row += step) {
    int64_t b = row / m.r, from = row * m.c, to = lesser(from + m.c, m.n);
    Real<T> f = row_factor(m, row, b);
    double sum = 0;
    for (int64_t i = from + lane; i < to; i += WARP) {
      double u = (double)update_at(m, i, i - from, f, m.cols + b * m.c);
      sum += u * u;
    }
    sum = warp_sum(sum);
    if (lane == 0) m.sums[row] = sum;
  }
}

/* All rows' sums, of p and of the update: one block. */
template <class T> static __global__ void totals (Matrices<T> m) {
  double p = 0, u = 0;
  for (int64_t i = threadIdx.x; i < m.batch * m.r; i += THREADS) {
    p += m.p_sums[i];
    u += m.sums[i];
  }
  p = block_sum(p);
  u = block_sum(u);
  if (threadIdx.x == 0) {
    m.total[0] = p;
    m.total[1] = u;
  }
}

template <class T> static __global__ void apply (Matrices<T> m) {
  typedef Real<T> R;
  int lane = (int)threadIdx.x % WARP;
  int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
  int64_t stride = (int64_t)gridDim.x * WARPS;
  double size = sqrt(m.total[0] / (double)m.n);
  double over = sqrt(m.total[1] / (double)m.n) / m.most;
  R step =
      (R)((size > m.small ? size : m.small) * m.step / (over > 1 ? over : 1));
  for (; row < m.batch * m.r; row += stride) {
    int64_t b = row / m.r, from = row * m.c, to = lesser(from + m.c, m.n);
    R f = row_factor(m, row, b);
    for (int64_t i = from + lane; i < to; i += WARP) {
      R u = update_at(m, i, i - from, f, m.cols + b * m.c);
      m.p[i] = number<T>(m.shrink * (R)m.p[i] - step * u);
    }
  }
}

template <class T> static void shape_of (Matrices<T> *m, const Tensor *p) {
  bool flat = p->ndim < 2;
  m->n = p->numel;
  m->c = flat ? (int64_t)ROW : p->shape[p->ndim - 1];
  m->r = flat ? (m->n + ROW - 1) / ROW : p->shape[p->ndim - 2];
  m->batch = flat ? 1 : m->n / (m->r * m->c);
  m->grain = max64((m->r + PARTS - 1) / PARTS, 16);
  m->parts = (m->r + m->grain - 1) / m->grain;
}

template <class T> static void run (const Tensor *p, const Matrices<T> &m) {
  unsigned rows = blocks_for(m.batch * m.r, WARPS);
  RUN(p, (row_squares<T>), rows, THREADS, 0, m);
  if (m.all == NULL) {
    dim3 grid(blocks_for(m.c, THREADS), (unsigned)m.parts,
              (unsigned)min64(m.batch, 65535));
    RUN(p, (column_squares<T>), grid, THREADS, 0, m);
    RUN(p, (column_means<T>), blocks_for(m.batch * m.c, THREADS), THREADS, 0,
        m);
    RUN(p, (row_means<T>), (unsigned)min64(m.batch, 65535), THREADS, 0, m);
  }
  RUN(p, (update_squares<T>), rows, THREADS, 0, m);
  RUN(p, (totals<T>), 1, THREADS, 0, m);
  RUN(p, (apply<T>), rows, THREADS, 0, m);
}

static double *doubles (const Tensor *on, int64_t n) {
  return (double *)scratch_for(on, n * (int64_t)sizeof(double));
}

template <class T>
static void adafactor (Tensor *p, const Tensor *g, Tensor *const *s,
                       const Update *u, double small, double most) {
  typedef Real<T> R;
  Matrices<T> m;
  memset((void *)&m, 0, sizeof m);
  shape_of(&m, p);
  m.p = data_of<T>(p);
  m.g = data_of<T>(g);
  if (p->ndim < 2) m.all = data_of<R>(s[2]);
  else m.rows = data_of<R>(s[0]), m.cols = data_of<R>(s[1]);
  m.scale = u->scale;
  m.take = u->take2;
  m.eps = u->eps;
  m.step = u->step;
  m.small = small;
  m.most = most;
  m.shrink = (R)u->shrink;
  double smallest = p->dtype == FNN_F64 ? DBL_MIN : FLT_MIN;
  m.least = (R)(u->eps * u->eps > smallest ? u->eps * u->eps : smallest);
  m.p_sums = doubles(p, m.batch * m.r);
  m.sums = doubles(p, m.batch * m.r);
  m.inverse = doubles(p, m.batch);
  m.total = doubles(p, 2);
  if (m.all == NULL) m.col_sums = doubles(p, m.batch * m.parts * m.c);
  run(p, m);
}

extern "C" void cuda_adafactor (Tensor *p, const Tensor *g, Tensor *const *s,
                                const Update *u, double small, double most) {
  size_t mark = fnn_mark();
  if (p->numel > 0) WITH_FLOAT(p->dtype, adafactor<T>(p, g, s, u, small, most))
  fnn_escape(mark, NULL);
}
