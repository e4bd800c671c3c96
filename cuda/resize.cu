/* resize.cu - images of another size: nearest, linear and cubic.
**
** Along each axis an output is a weighted sum of inputs: a sparse matrix whose
** rows, which the CPU makes by the same formulas, go to a table first.  On the
** way back an input adds up the outputs that read it, which lie side by side,
** for the places read only grow with the output. */

#include "pack.h"

/* TAPS: of the cubic, the widest but for antialias. */
enum { TAPS = 4, THREADS = 256 };

/* One axis: the places and weights of each output, taps of them; and from
** which output to which (less one) each input is read. */
template <class R> struct Table {
  int *at;
  R *w;
  int *lo, *hi;
  int in, out, taps;
};

typedef struct Way {
  fnn_Interpolation mode;
  bool align_corners;
  double scale, reach;
} Way;

/*
** {======================================================
** Tables
** =======================================================
*/

/* Where output o lies among the inputs. */
static __device__ inline double source (Way r, int o, int in, int out) {
  if (r.align_corners)
    return out > 1 ? (double)o * ((double)(in - 1) / (double)(out - 1)) : 0;
  return ((double)o + 0.5) * r.scale - 0.5;
}

/* Keys 1981: the weight of a place at distance d < 2. */
static __device__ inline double cubic (double a, double d) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static __device__ inline int within (double place, int in) {
  return place < 0 ? 0 : place < in ? (int)place : in - 1;
}

/* Each output's taps; the ones that a mode does not have weigh nothing. */
template <class R> static __global__ void fill_taps (Table<R> t, Way r) {
  int o = (int)(blockIdx.x * blockDim.x + threadIdx.x), at[TAPS];
  double w[TAPS] = { 1, 0, 0, 0 };
  if (o >= t.out) return;
  if (r.mode == FNN_NEAREST) {
    R place = (R)o * (R)r.scale; /* as PyTorch rounds it */
    for (int k = 0; k < TAPS; k++) at[k] = within((double)place, t.in);
  } else if (r.mode == FNN_LINEAR) {
    double place = source(r, o, t.in, t.out);
    if (place < 0) place = 0;
    at[0] = within(place, t.in);
    for (int k = 1; k < TAPS; k++)
      at[k] = at[0] + 1 < t.in ? at[0] + 1 : at[0];
    w[1] = place - (double)at[0];
    w[0] = 1 - w[1];
  } else {
    double place = source(r, o, t.in, t.out), whole = floor(place);
    for (int k = 0; k < TAPS; k++) {
      at[k] = within(whole - 1 + k, t.in);
      w[k] = cubic(-0.75, fabs(place - whole + 1 - k));
    }
  }
  for (int k = 0; k < TAPS; k++) {
    t.at[(int64_t)o * TAPS + k] = at[k];
    t.w[(int64_t)o * TAPS + k] = (R)w[k];
  }
}

static __device__ inline double filter (Way r, double d) {
  d = fabs(d);
  if (r.mode == FNN_LINEAR) return d < 1 ? 1 - d : 0;
  return d < 2 ? cubic(-0.5, d) : 0;
}

/* The same for antialias: all that an output covers, with weights that add
** up to 1; places behind the last weigh nothing. */
template <class R> static __global__ void fill_wide (Table<R> t, Way r) {
  int o = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (o >= t.out) return;
  double centre = r.scale * ((double)o + 0.5), sum = 0;
  double width = r.scale > 1 ? r.scale : 1;
  int lo = within(centre - r.reach + 0.5, t.in);
  int hi = within(centre + r.reach + 0.5, t.in + 1);
  if (hi <= lo) hi = lo + 1;
  int64_t row = (int64_t)o * t.taps;
  for (int i = lo; i < hi; i++) sum += filter(r, (i - centre + 0.5) / width);
  for (int k = 0; k < t.taps; k++) {
    bool there = lo + k < hi && sum != 0;
    t.at[row + k] = lo + k < t.in ? lo + k : t.in - 1;
    t.w[row + k] =
        there ? (R)(filter(r, (lo + k - centre + 0.5) / width) / sum) : 0;
  }
}

/* The first output whose k-th tap is at place i or behind it. */
template <class R>
static __device__ inline int first_at (Table<R> t, int k, int i) {
  int lo = 0, hi = t.out;
  while (lo < hi) {
    int middle = lo + (hi - lo) / 2;
    if (t.at[(int64_t)middle * t.taps + k] < i) lo = middle + 1;
    else hi = middle;
  }
  return lo;
}

template <class R> static __global__ void fill_readers (Table<R> t) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= t.in) return;
  t.lo[i] = first_at(t, t.taps - 1, i);
  t.hi[i] = first_at(t, 0, i + 1);
}

template <class R>
static Table<R> table_new (const Tensor *x, const ResizeAxis *a,
                           const Resize *r) {
  const fnn_Device *d = x->storage->device;
  fnn_Dtype real = sizeof(R) == 8 ? FNN_F64 : FNN_F32;
  Way way;
  Table<R> t;
  int64_t n, ends = 2 * a->in;
  if (a->in > INT32_MAX / 2 || a->out > INT32_MAX / 2)
    fnn_throw(FNN_ESHAPE, "interpolate: a dim has 2^30 places or more");
  way.mode = r->mode;
  way.align_corners = r->align_corners;
  way.scale = a->scale;
  way.reach = (r->mode == FNN_LINEAR ? 1 : 2) * (a->scale > 1 ? a->scale : 1);
  t.in = (int)a->in;
  t.out = (int)a->out;
  t.taps = r->antialias ? (int)min64(2 * (int64_t)way.reach + 3, a->in) : TAPS;
  n = a->out * t.taps;
  t.at = data_of<int>(tensor_new(1, &n, FNN_I32, d));
  t.w = data_of<R>(tensor_new(1, &n, real, d));
  if (r->antialias)
    RUN(x, fill_wide<R>, blocks_for(a->out, THREADS), THREADS, 0, t, way);
  else RUN(x, fill_taps<R>, blocks_for(a->out, THREADS), THREADS, 0, t, way);
  t.lo = t.hi = NULL;
  if (!r->back) return t;
  t.lo = data_of<int>(tensor_new(1, &ends, FNN_I32, d));
  t.hi = t.lo + a->in;
  RUN(x, fill_readers<R>, blocks_for(a->in, THREADS), THREADS, 0, t);
  return t;
}

/* }====================================================== */

/* An output a thread, of a row of them across all channels; n taps. */
template <class T, int N>
static __global__ void resize (T *y, const T *x, Table<Real<T>> h,
                               Table<Real<T>> w, int channels, unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = w.out * channels;
  if (i >= width) return;
  int c = i % channels;
  int64_t column = (int64_t)(i / channels) * TAPS;
  int at[N];
  Real<T> weight[N];
  for (int k = 0; k < N; k++) {
    at[k] = w.at[column + k] * channels + c;
    weight[k] = w.w[column + k];
  }
  for (unsigned r = blockIdx.y * blockDim.y + threadIdx.y; r < rows;
       r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)h.out;
    int64_t line = (int64_t)(r % (unsigned)h.out) * TAPS;
    Real<T> sum = 0;
    for (int a = 0; a < N; a++) {
      int64_t from = plane * h.in + h.at[line + a];
      const T *p = x + from * w.in * channels;
      Real<T> s = 0;
      for (int k = 0; k < N; k++) s += weight[k] * (Real<T>)p[at[k]];
      sum += h.w[line + a] * s;
    }
    y[(int64_t)r * width + i] = number<T>(sum);
  }
}

/* The same for antialias, whose taps are as many as the table says. */
template <class T>
static __global__ void resize_wide (T *y, const T *x, Table<Real<T>> h,
                                    Table<Real<T>> w, int channels,
                                    unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = w.out * channels;
  if (i >= width) return;
  int c = i % channels;
  int64_t column = (int64_t)(i / channels) * w.taps;
  for (unsigned r = blockIdx.y * blockDim.y + threadIdx.y; r < rows;
       r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)h.out;
    int64_t line = (int64_t)(r % (unsigned)h.out) * h.taps;
    Real<T> sum = 0;
    for (int a = 0; a < h.taps; a++) {
      const T *p = x + (plane * h.in + h.at[line + a]) * w.in * channels + c;
      Real<T> s = 0;
      for (int k = 0; k < w.taps; k++)
        s +=
            w.w[column + k] * (Real<T>)p[(int64_t)w.at[column + k] * channels];
      sum += h.w[line + a] * s;
    }
    y[(int64_t)r * width + i] = number<T>(sum);
  }
}

/* What output o has of input i: the weights of the taps that are there. */
template <class R>
static __device__ inline R weight_of (Table<R> t, int o, int i) {
  R sum = 0;
  for (int k = 0; k < t.taps; k++)
    if (t.at[(int64_t)o * t.taps + k] == i)
      sum += t.w[(int64_t)o * t.taps + k];
  return sum;
}

/* An input a thread. */
template <class T>
static __global__ void resize_back (T *gx, const T *gy, Table<Real<T>> h,
                                    Table<Real<T>> w, int channels,
                                    unsigned rows) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int width = w.in * channels;
  if (i >= width) return;
  int c = i % channels, column = i / channels;
  int lo = w.lo[column], hi = w.hi[column];
  for (unsigned r = blockIdx.y * blockDim.y + threadIdx.y; r < rows;
       r += gridDim.y * blockDim.y) {
    int64_t plane = r / (unsigned)h.in;
    int line = (int)(r % (unsigned)h.in);
    Real<T> sum = 0;
    for (int o = h.lo[line]; o < h.hi[line]; o++) {
      const T *p = gy + (plane * h.out + o) * w.out * channels + c;
      Real<T> s = 0;
      for (int k = lo; k < hi; k++)
        s += weight_of(w, k, column) * (Real<T>)p[(int64_t)k * channels];
      sum += weight_of(h, o, line) * s;
    }
    gx[(int64_t)r * width + i] = number<T>(sum);
  }
}

template <class T>
static void run (Tensor *y, const Tensor *x, const Resize *r) {
  Table<Real<T>> h = table_new<Real<T>>(x, &r->h, r);
  Table<Real<T>> w = table_new<Real<T>>(x, &r->w, r);
  int64_t columns = max64(r->w.in, r->w.out);
  int64_t width = (r->back ? r->w.in : r->w.out) * r->channels;
  int64_t rows = r->planes * (r->back ? r->h.in : r->h.out);
  int channels = (int)r->channels;
  unsigned across = pack_power(width, THREADS);
  if (rows > INT32_MAX || columns > INT32_MAX / r->channels - THREADS)
    fnn_throw(FNN_ESHAPE,
              "interpolate: more than 2^31 - 1 rows, or elements of one");
  dim3 block(across, THREADS / across);
  dim3 grid(blocks_for(width, across),
            (unsigned)min64((rows + block.y - 1) / block.y, 65535));
  T *to = data_of<T>(y);
  const T *from = data_of<const T>(x);
  if (r->back)
    RUN(x, resize_back<T>, grid, block, 0, to, from, h, w, channels,
        (unsigned)rows);
  else if (r->antialias)
    RUN(x, resize_wide<T>, grid, block, 0, to, from, h, w, channels,
        (unsigned)rows);
  else if (r->mode == FNN_NEAREST)
    RUN(x, (resize<T, 1>), grid, block, 0, to, from, h, w, channels,
        (unsigned)rows);
  else if (r->mode == FNN_LINEAR)
    RUN(x, (resize<T, 2>), grid, block, 0, to, from, h, w, channels,
        (unsigned)rows);
  else
    RUN(x, (resize<T, 4>), grid, block, 0, to, from, h, w, channels,
        (unsigned)rows);
}

extern "C" void cuda_resize (Tensor *y, const Tensor *x, const Resize *r) {
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, { run<T>(y, x, r); })
  fnn_escape(mark, NULL);
}
