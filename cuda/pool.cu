/* pool.cu - maxima and averages over windows of planes.
**
** x is (planes, h, w, channels), channels being 1 in row-major order.  A thread
** has one output; windows of more places than SMALL are shared by threads,
** whose sums and maxima are then joined in a fixed order.  Of equal maxima the
** first wins, the last of NaNs wins over all else, as on the CPU.
**
** On the way back each input asks the windows that cover it. */

#include "pack.h"

enum { SMALL = 64, THREADS = 256, WIDE = 32 };

/* A Pooling for kernels, in 32 bits. */
typedef struct Axis {
  int in, out, kernel, stride, pad, dilation;
} Axis;

typedef struct Windows {
  Axis h, w;
  int channels;
  bool adaptive, count_pad;
} Windows;

/* Where a window lies along one axis: places lo, lo + dilation .. below hi;
** size counts padding too. */
typedef struct Span {
  int lo, hi, size;
} Span;

static __device__ inline Span span_of (Axis a, int o, bool adaptive) {
  Span s;
  if (adaptive) {
    s.lo = (int)((int64_t)o * a.in / a.out);
    s.hi = (int)(((int64_t)(o + 1) * a.in + a.out - 1) / a.out);
    s.size = s.hi - s.lo;
    return s;
  }
  int64_t start = (int64_t)o * a.stride - a.pad;
  int64_t end = start + (int64_t)a.dilation * (a.kernel - 1) + 1;
  int64_t lo = start;
  if (start < 0) lo += (a.dilation - 1 - start) / a.dilation * a.dilation;
  s.lo = (int)lo;
  s.hi = (int)(end < a.in ? end : a.in);
  s.size = (int)((end < a.in + a.pad ? end : a.in + a.pad) - start);
  return s;
}

/* What a window counts along an axis for an average. */
static __device__ inline int count_of (const Windows *p, Span s) {
  return p->count_pad || p->adaptive ? s.size : s.hi - s.lo;
}

/*
** {======================================================
** Maxima
** =======================================================
*/

/* A value and its place, -1 for none. */
template <class R> struct Found {
  R v;
  int id;
};

template <class R> static __device__ inline Found<R> found_none () {
  Found<R> f = { -(R)INFINITY, -1 };
  return f;
}

/* Whether b, which may lie before or behind a, wins over it. */
template <class R>
static __device__ inline bool wins (Found<R> b, Found<R> a) {
  bool na = a.v != a.v, nb = b.v != b.v;
  if (b.id < 0 || a.id < 0) return b.id >= 0;
  if (na || nb) return nb && (!na || b.id > a.id);
  return b.v > a.v || (b.v == a.v && b.id < a.id);
}

/* Places first, first + step .. of the window; the place t of it lies at row
** t / across and column t % across. */
template <class T>
static __device__ inline Found<Real<T>>
most_of (const T *x, const Windows *p, Span h, Span w, int first, int step) {
  int dh = p->adaptive ? 1 : p->h.dilation;
  int dw = p->adaptive ? 1 : p->w.dilation;
  int down = h.hi > h.lo ? (h.hi - h.lo - 1) / dh + 1 : 0;
  int across = w.hi > w.lo ? (w.hi - w.lo - 1) / dw + 1 : 0;
  Found<Real<T>> best = found_none<Real<T>>();
  for (int t = first; t < down * across; t += step) {
    int id = (h.lo + t / across * dh) * p->w.in + w.lo + t % across * dw;
    Found<Real<T>> next = { (Real<T>)x[(int64_t)id * p->channels], id };
    if (wins(next, best)) best = next;
  }
  return best;
}

/* }====================================================== */

/* The sum over the places first, first + step .. of the window; chunks of
** SMALL are added up in double. */
template <class T>
static __device__ inline double sum_of (const T *x, const Windows *p, Span h,
                                        Span w, int first, int step) {
  int across = w.hi - w.lo, n = (h.hi - h.lo) * across, added = 0;
  Real<T> sum = 0;
  double all = 0;
  if (h.hi <= h.lo || across <= 0) return 0;
  for (int t = first; t < n; t += step) {
    int id = (h.lo + t / across) * p->w.in + w.lo + t % across;
    sum += (Real<T>)x[(int64_t)id * p->channels];
    if (++added < SMALL) continue;
    all += (double)sum;
    sum = 0;
    added = 0;
  }
  return all + (double)sum;
}

/*
** {======================================================
** Forward
** =======================================================
*/

static __device__ inline unsigned first_row () {
  return blockIdx.y * blockDim.y + threadIdx.y;
}

/* An output a thread: those of a row of windows, across all channels. */
template <class T>
static __global__ void pool_max (T *y, int32_t *ids, const T *x, Windows p,
                                 unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = p.w.out * p.channels;
  if (i >= width) return;
  int c = i % p.channels;
  Span w = span_of(p.w, i / p.channels, p.adaptive);
  for (unsigned r = first_row(); r < rows; r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)p.h.out;
    Span h = span_of(p.h, (int)(r % (unsigned)p.h.out), p.adaptive);
    const T *from = x + plane * p.h.in * p.w.in * p.channels + c;
    Found<Real<T>> best = most_of(from, &p, h, w, 0, 1);
    y[(int64_t)r * width + i] = number<T>(best.v);
    if (ids != NULL) ids[(int64_t)r * width + i] = best.id;
  }
}

template <class T>
static __global__ void pool_mean (T *y, const T *x, Windows p, unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = p.w.out * p.channels;
  if (i >= width) return;
  int c = i % p.channels;
  Span w = span_of(p.w, i / p.channels, p.adaptive);
  for (unsigned r = first_row(); r < rows; r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)p.h.out;
    Span h = span_of(p.h, (int)(r % (unsigned)p.h.out), p.adaptive);
    const T *from = x + plane * p.h.in * p.w.in * p.channels + c;
    Real<T> sum = (Real<T>)sum_of(from, &p, h, w, 0, 1);
    Real<T> d = (Real<T>)count_of(&p, h) * (Real<T>)count_of(&p, w);
    y[(int64_t)r * width + i] = number<T>(sum / d);
  }
}

/* Large windows: blockDim.x channels, each with blockDim.y threads; without
** channels blockDim.x is 1 and threads go along the window. */
template <class T>
static __global__ void pool_max_wide (T *y, int32_t *ids, const T *x,
                                      Windows p, int64_t windows) {
  SHARED(Real<T>, values, [THREADS]);
  SHARED(int, places, [THREADS]);
  int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int me = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  for (int64_t o = blockIdx.y; o < windows; o += gridDim.y) {
    int64_t row = o / p.w.out, plane = row / p.h.out;
    Span w = span_of(p.w, (int)(o % p.w.out), p.adaptive);
    Span h = span_of(p.h, (int)(row % p.h.out), p.adaptive);
    const T *from = x + plane * p.h.in * p.w.in * p.channels + c;
    Found<Real<T>> best = found_none<Real<T>>();
    if (c < p.channels)
      best = most_of(from, &p, h, w, (int)threadIdx.y, (int)blockDim.y);
    values[me] = best.v;
    places[me] = best.id;
    __syncthreads();
    for (unsigned k = blockDim.y / 2; k > 0; k /= 2) {
      if (threadIdx.y < k) {
        int at = me + (int)(k * blockDim.x);
        Found<Real<T>> other = { values[at], places[at] };
        if (wins(other, best)) best = other;
        values[me] = best.v;
        places[me] = best.id;
      }
      __syncthreads();
    }
    if (threadIdx.y != 0 || c >= p.channels) continue;
    y[o * p.channels + c] = number<T>(best.v);
    if (ids != NULL) ids[o * p.channels + c] = best.id;
  }
}

template <class T>
static __global__ void pool_mean_wide (T *y, const T *x, Windows p,
                                       int64_t windows) {
  SHARED(double, sums, [THREADS]);
  int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int me = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  for (int64_t o = blockIdx.y; o < windows; o += gridDim.y) {
    int64_t row = o / p.w.out, plane = row / p.h.out;
    Span w = span_of(p.w, (int)(o % p.w.out), p.adaptive);
    Span h = span_of(p.h, (int)(row % p.h.out), p.adaptive);
    const T *from = x + plane * p.h.in * p.w.in * p.channels + c;
    double sum = 0;
    if (c < p.channels)
      sum = sum_of(from, &p, h, w, (int)threadIdx.y, (int)blockDim.y);
    sums[me] = sum;
    __syncthreads();
    for (unsigned k = blockDim.y / 2; k > 0; k /= 2) {
      if (threadIdx.y < k) {
        sum += sums[me + k * blockDim.x];
        sums[me] = sum;
      }
      __syncthreads();
    }
    if (threadIdx.y != 0 || c >= p.channels) continue;
    double d = (double)count_of(&p, h) * (double)count_of(&p, w);
    y[o * p.channels + c] = number<T>((Real<T>)(sum / d));
  }
}

/* }====================================================== */

static Axis axis_of (const PoolAxis *a) {
  Axis b;
  b.in = (int)a->in;
  b.out = (int)a->out;
  b.kernel = (int)a->kernel;
  b.stride = (int)a->stride;
  b.pad = (int)a->pad;
  b.dilation = (int)a->dilation;
  return b;
}

/* A thread knows its place in a row by 32 bits. */
static void check_row (const PoolAxis *a, int64_t size, int64_t channels) {
  if (size > INT32_MAX / channels - THREADS || a->pad > INT32_MAX / 4 ||
      a->in > INT32_MAX - a->pad)
    fnn_throw(FNN_ESHAPE, "pool: a row has more than 2^31 - 1 elements");
}

static Windows windows_of (const Pooling *p) {
  Windows w;
  check_row(&p->w, max64(p->w.in, p->w.out), p->channels);
  check_row(&p->h, 0, 1);
  w.h = axis_of(&p->h);
  w.w = axis_of(&p->w);
  w.channels = (int)p->channels;
  w.adaptive = p->adaptive;
  w.count_pad = p->count_pad;
  return w;
}

/* The places of the largest window. */
static int64_t places (const Pooling *p) {
  if (!p->adaptive)
    return min64(p->h.kernel, p->h.in) * min64(p->w.kernel, p->w.in);
  return (p->h.in / p->h.out + 1) * (p->w.in / p->w.out + 1);
}

static unsigned limited (int64_t n) { return (unsigned)min64(n, 65535); }

/* Blocks of threads for rows of `width` elements, a few short ones each. */
static dim3 grid_of (int64_t width, int64_t rows, dim3 *block) {
  unsigned across = pack_power(width, THREADS);
  *block = dim3(across, THREADS / across);
  if (rows > INT32_MAX)
    fnn_throw(FNN_ESHAPE, "pool: a tensor has more than 2^31 - 1 rows");
  int64_t down = (rows + block->y - 1) / block->y;
  return dim3(blocks_for(width, across), limited(down));
}

template <class T>
static void pool_rows (Tensor *y, Tensor *ids, const Tensor *x,
                       const Pooling *p) {
  int64_t width = p->w.out * p->channels, rows = p->planes * p->h.out;
  dim3 block, grid = grid_of(width, rows, &block);
  if (p->max)
    RUN(x, pool_max<T>, grid, block, 0, data_of<T>(y), data_of<int32_t>(ids),
        data_of<const T>(x), windows_of(p), (unsigned)rows);
  else
    RUN(x, pool_mean<T>, grid, block, 0, data_of<T>(y), data_of<const T>(x),
        windows_of(p), (unsigned)rows);
}

template <class T>
static void pool_wide (Tensor *y, Tensor *ids, const Tensor *x,
                       const Pooling *p) {
  int64_t windows = p->planes * p->h.out * p->w.out;
  unsigned across = pack_power(p->channels, WIDE);
  dim3 block(across, THREADS / across);
  dim3 grid(blocks_for(p->channels, across), limited(windows));
  if (p->max)
    RUN(x, pool_max_wide<T>, grid, block, 0, data_of<T>(y),
        data_of<int32_t>(ids), data_of<const T>(x), windows_of(p), windows);
  else
    RUN(x, pool_mean_wide<T>, grid, block, 0, data_of<T>(y),
        data_of<const T>(x), windows_of(p), windows);
}

extern "C" void cuda_pool (Tensor *y, Tensor *ids, const Tensor *x,
                           const Pooling *p) {
  bool wide = places(p) > SMALL;
  WITH_FLOAT(x->dtype, {
    if (wide) pool_wide<T>(y, ids, x, p);
    else pool_rows<T>(y, ids, x, p);
  })
}

/*
** {======================================================
** Backward
** =======================================================
*/

/* The outputs lo .. hi - 1 whose windows may cover place i. */
static __device__ inline void covered (Axis a, int i, bool adaptive, int *lo,
                                       int *hi) {
  if (adaptive) {
    *lo = (int)((int64_t)i * a.out / a.in);
    *hi = (int)(((int64_t)(i + 1) * a.out + a.in - 1) / a.in);
    return;
  }
  int64_t first = (int64_t)i + a.pad - (int64_t)(a.kernel - 1) * a.dilation;
  int64_t end = ((int64_t)i + a.pad) / a.stride + 1;
  *lo = first > 0 ? (int)((first + a.stride - 1) / a.stride) : 0;
  *hi = (int)(end < a.out ? end : a.out);
}

/* An input a thread, of a row of them across all channels. */
template <class T>
static __global__ void max_back (T *gx, const T *gy, const int32_t *ids,
                                 Windows p, unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = p.w.in * p.channels, lo, hi, top, end;
  if (i >= width) return;
  int c = i % p.channels, column = i / p.channels;
  covered(p.w, column, p.adaptive, &lo, &hi);
  for (unsigned r = first_row(); r < rows; r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)p.h.in;
    int line = (int)(r % (unsigned)p.h.in), me = line * p.w.in + column;
    Real<T> sum = 0;
    covered(p.h, line, p.adaptive, &top, &end);
    for (int o = top; o < end; o++)
      for (int k = lo; k < hi; k++) {
        int64_t at = ((plane * p.h.out + o) * p.w.out + k) * p.channels + c;
        if (ids[at] == me) sum += (Real<T>)gy[at];
      }
    gx[(int64_t)r * width + i] = number<T>(sum);
  }
}

template <class T>
static __global__ void mean_back (T *gx, const T *gy, Windows p,
                                  unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = p.w.in * p.channels, lo, hi, top, end;
  if (i >= width) return;
  int c = i % p.channels;
  covered(p.w, i / p.channels, p.adaptive, &lo, &hi);
  for (unsigned r = first_row(); r < rows; r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)p.h.in;
    Real<T> sum = 0;
    covered(p.h, (int)(r % (unsigned)p.h.in), p.adaptive, &top, &end);
    for (int o = top; o < end; o++) {
      int high = count_of(&p, span_of(p.h, o, p.adaptive));
      for (int k = lo; k < hi; k++) {
        int wide = count_of(&p, span_of(p.w, k, p.adaptive));
        int64_t at = ((plane * p.h.out + o) * p.w.out + k) * p.channels + c;
        sum += (Real<T>)gy[at] / ((Real<T>)high * (Real<T>)wide);
      }
    }
    gx[(int64_t)r * width + i] = number<T>(sum);
  }
}

extern "C" void cuda_pool_back (Tensor *gx, const Tensor *gy,
                                const Tensor *ids, const Pooling *p) {
  int64_t width = p->w.in * p->channels, rows = p->planes * p->h.in;
  dim3 block, grid = grid_of(width, rows, &block);
  WITH_FLOAT(gx->dtype, {
    if (p->max)
      RUN(gx, max_back<T>, grid, block, 0, data_of<T>(gx),
          data_of<const T>(gy), data_of<const int32_t>(ids), windows_of(p),
          (unsigned)rows);
    else
      RUN(gx, mean_back<T>, grid, block, 0, data_of<T>(gx),
          data_of<const T>(gy), windows_of(p), (unsigned)rows);
  })
}

/* }====================================================== */
