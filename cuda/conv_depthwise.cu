/* conv_depthwise.cu - channels that do not mix: each has one output, or a few
** that follow one another.  Threads go across channels, and weights are read
** as (taps, channels). */

#include "conv.h"

#include "../src/core/ops.h"

/* Outputs of a line that a thread has, so that it reads weights once. */
enum { SPAN = 4 };

/*
** {======================================================
** The result
** =======================================================
*/

/* items: runs of SPAN outputs, `across` on a line; width: packs of outputs. */
template <class T, int N>
static __global__ void depthwise (T *y, const T *x, const T *w, const T *bias,
                                  Places s, unsigned items, unsigned across,
                                  unsigned width, unsigned each, bool relu) {
  unsigned step = gridDim.x * blockDim.y;
  unsigned c = blockIdx.y * blockDim.x + threadIdx.x, cx = c / each;
  if (c >= width) return;
  const Pack<T, N> *from = (const Pack<T, N> *)x + cx;
  const Pack<T, N> *weights = (const Pack<T, N> *)w + c;
  for (unsigned i = blockIdx.x * blockDim.y + threadIdx.y; i < items;
       i += step) {
    unsigned line = i / across, ox = i % across * SPAN;
    unsigned oy = line % s.out[1], image = line / s.out[1];
    unsigned oz = image % s.out[0];
    Real<T> sum[SPAN][N];
    image /= s.out[0];
    for (int e = 0; e < N; e++)
      for (int p = 0; p < SPAN; p++)
        sum[p][e] = bias != NULL ? (Real<T>)bias[c * N + e] : 0;
    for (unsigned tap = 0; tap < s.taps; tap++) {
      unsigned k = tap / s.size[2];
      unsigned iy = oy * s.stride[1] + k % s.size[1] * s.dilation[1] -
                    (unsigned)s.before[1];
      unsigned iz = oz * s.stride[0] + k / s.size[1] * s.dilation[0] -
                    (unsigned)s.before[0];
      if (iy >= s.in[1] || iz >= s.in[0]) continue;
      unsigned ix = ox * s.stride[2] + tap % s.size[2] * s.dilation[2] -
                    (unsigned)s.before[2];
      Pack<T, N> f = weights[(int64_t)tap * width];
      int64_t row = ((int64_t)image * s.in[0] + iz) * s.in[1] + iy;
      for (int p = 0; p < SPAN; p++, ix += s.stride[2]) {
        if (ix >= s.in[2]) continue;
        Pack<T, N> v = from[(row * s.in[2] + ix) * (width / each)];
        for (int e = 0; e < N; e++)
          sum[p][e] += (Real<T>)v.v[e] * (Real<T>)f.v[e];
      }
    }
    for (int p = 0; p < SPAN && ox + p < s.out[2]; p++) {
      Pack<T, N> v;
      for (int e = 0; e < N; e++)
        v.v[e] = number<T>(relu && sum[p][e] < 0 ? 0 : sum[p][e]);
      ((Pack<T, N> *)y)[((int64_t)line * s.out[2] + ox + p) * width + c] = v;
    }
  }
}

template <class T, int N>
static void run_depthwise (Tensor *y, const Tensor *x, const void *w,
                           const Epilogue *e, const Places *s) {
  unsigned across = (s->out[2] + SPAN - 1) / SPAN, width = s->cout / N;
  int64_t items = y->numel / s->cout / s->out[2] * across;
  dim3 block = conv_block(width);
  dim3 grid(blocks_for(items, block.y), blocks_for(width, block.x));
  if (items > INT32_MAX)
    fnn_throw(FNN_ESHAPE, "conv: a result has more than 2^31 - 1 places");
  RUN(x, (depthwise<T, N>), grid, block, 0, data_of<T>(y), data_of<const T>(x),
      (const T *)w, data_of<const T>(e->bias), *s, (unsigned)items, across,
      width, s->cout / s->cin, e->act == MAP_relu);
}

void conv_depthwise (Tensor *y, const Tensor *x, const Tensor *w,
                     const Epilogue *e, const ConvShape *s) {
  Places places = conv_places(s);
  const void *turned = conv_weights(w, s);
  bool packs =
      s->cin == s->cout && pack_fits((fnn_Dtype)x->dtype, s->cout,
                                     tensor_data(x), tensor_data(y), turned);
  WITH_FLOAT(x->dtype, {
    if (packs) run_depthwise<T, 4>(y, x, turned, e, &places);
    else run_depthwise<T, 1>(y, x, turned, e, &places);
  })
  if (e->act >= 0 && e->act != MAP_relu) kernel(y, map)(e->act, y, y, 0, 0);
}

/* }====================================================== */

/*
** {======================================================
** The gradient of the input
** =======================================================
*/

/* The output whose tap meets input place `at` of axis d. */
static __device__ inline bool meets (const Places *s, int d, unsigned at,
                                     unsigned tap, unsigned *o) {
  unsigned from = at + (unsigned)s->before[d] - tap * s->dilation[d];
  if ((int)from < 0 || from % s->stride[d] != 0) return false;
  *o = from / s->stride[d];
  return *o < s->out[d];
}

/* width: packs of inputs; each: outputs of one. */
template <class T, int N>
static __global__ void
depthwise_input (T *gx, const T *gy, const T *w, const T *bias, Places s,
                 unsigned places, unsigned width, unsigned each, bool relu) {
  unsigned step = gridDim.x * blockDim.y, o[3];
  unsigned c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= width) return;
  const Pack<T, N> *from = (const Pack<T, N> *)gy + (int64_t)c * each;
  const Pack<T, N> *weights = (const Pack<T, N> *)w + (int64_t)c * each;
  for (unsigned i = blockIdx.x * blockDim.y + threadIdx.y; i < places;
       i += step) {
    unsigned x = i % s.in[2], line = i / s.in[2];
    unsigned y = line % s.in[1], image = line / s.in[1], z = image % s.in[0];
    Real<T> sum[N];
    image /= s.in[0];
    for (int e = 0; e < N; e++)
      sum[e] = bias != NULL ? (Real<T>)bias[c * N + e] : 0;
    for (unsigned tap = 0; tap < s.taps; tap++) {
      unsigned k = tap / s.size[2];
      if (!meets(&s, 2, x, tap % s.size[2], &o[2])) continue;
      if (!meets(&s, 1, y, k % s.size[1], &o[1])) continue;
      if (!meets(&s, 0, z, k / s.size[1], &o[0])) continue;
      int64_t row = ((int64_t)image * s.out[0] + o[0]) * s.out[1] + o[1];
      row = (row * s.out[2] + o[2]) * width * each;
      for (unsigned j = 0; j < each; j++) {
        Pack<T, N> g = from[row + j];
        Pack<T, N> f = weights[(int64_t)tap * width * each + j];
        for (int e = 0; e < N; e++)
          sum[e] += (Real<T>)g.v[e] * (Real<T>)f.v[e];
      }
    }
    Pack<T, N> v;
    for (int e = 0; e < N; e++)
      v.v[e] = number<T>(relu && sum[e] < 0 ? 0 : sum[e]);
    ((Pack<T, N> *)gx)[(int64_t)i * width + c] = v;
  }
}

template <class T, int N>
static void run_input (Tensor *gx, const Tensor *gy, const void *w,
                       const Epilogue *e, const Places *s) {
  int64_t places = gx->numel / s->cin;
  unsigned width = s->cin / N;
  dim3 block = conv_block(width);
  dim3 grid(blocks_for(places, block.y), blocks_for(width, block.x));
  if (places > INT32_MAX)
    fnn_throw(FNN_ESHAPE, "conv: an input has more than 2^31 - 1 places");
  RUN(gy, (depthwise_input<T, N>), grid, block, 0, data_of<T>(gx),
      data_of<const T>(gy), (const T *)w, data_of<const T>(e->bias), *s,
      (unsigned)places, width, s->cout / s->cin, e->act == MAP_relu);
}

void conv_depthwise_input (Tensor *gx, const Tensor *gy, const Tensor *w,
                           const Epilogue *e, const ConvShape *s) {
  Places places = conv_places(s);
  const void *turned = conv_weights(w, s);
  bool packs =
      s->cin == s->cout && pack_fits((fnn_Dtype)gy->dtype, s->cin,
                                     tensor_data(gy), tensor_data(gx), turned);
  WITH_FLOAT(gy->dtype, {
    if (packs) run_input<T, 4>(gx, gy, turned, e, &places);
    else run_input<T, 1>(gx, gy, turned, e, &places);
  })
  if (e->act >= 0 && e->act != MAP_relu) kernel(gx, map)(e->act, gx, gx, 0, 0);
}

/* }====================================================== */

/*
** {======================================================
** The gradient of the weights: sums of parts, then of these
** =======================================================
*/

/* A block of WIDE channels by ROWS has TAPS taps of a part of the places, of
** which there are at most PARTS, none shorter than LEAST. */
enum { WIDE = 32, ROWS = 8, TAPS = 9, PARTS = 1024, LEAST = 512 };

/* to (parts, taps, cout) */
template <class T>
static __global__ void weight_parts (Real<T> *to, const T *gy, const T *x,
                                     Places s, unsigned places, unsigned len) {
  SHARED(Real<T>, sums, [TAPS][ROWS][WIDE]);
  unsigned groups = (s.taps + TAPS - 1) / TAPS;
  unsigned c = blockIdx.x / groups * WIDE + threadIdx.x;
  unsigned first = blockIdx.x % groups * TAPS;
  unsigned rest = s.taps - first, count = rest < TAPS ? rest : (unsigned)TAPS;
  unsigned lo = blockIdx.y * len, off[TAPS][3];
  unsigned hi = places - lo < len ? places : lo + len;
  unsigned cx = c / (s.cout / s.cin);
  Real<T> sum[TAPS] = {};
  for (unsigned t = 0; t < TAPS; t++) {
    unsigned tap = first + t, k = tap / s.size[2];
    off[t][2] = tap % s.size[2] * s.dilation[2] - (unsigned)s.before[2];
    off[t][1] = k % s.size[1] * s.dilation[1] - (unsigned)s.before[1];
    off[t][0] = k / s.size[1] * s.dilation[0] - (unsigned)s.before[0];
  }
  for (unsigned i = lo + threadIdx.y; i < hi && c < s.cout; i += ROWS) {
    unsigned ox = i % s.out[2] * s.stride[2], line = i / s.out[2];
    unsigned oy = line % s.out[1] * s.stride[1], image = line / s.out[1];
    unsigned oz = image % s.out[0] * s.stride[0];
    Real<T> g = (Real<T>)gy[(int64_t)i * s.cout + c];
    image /= s.out[0];
    for (unsigned t = 0; t < TAPS; t++) {
      unsigned ix = ox + off[t][2], iy = oy + off[t][1], iz = oz + off[t][0];
      if (t >= count || ix >= s.in[2] || iy >= s.in[1] || iz >= s.in[0])
        continue;
      int64_t row = ((int64_t)image * s.in[0] + iz) * s.in[1] + iy;
      sum[t] += g * (Real<T>)x[(row * s.in[2] + ix) * s.cin + cx];
    }
  }
  for (unsigned t = 0; t < TAPS; t++)
    sums[t][threadIdx.y][threadIdx.x] = sum[t];
  __syncthreads();
  for (unsigned t = threadIdx.y; t < count && c < s.cout; t += ROWS) {
    Real<T> all = 0;
    for (unsigned k = 0; k < ROWS; k++) all += sums[t][k][threadIdx.x];
    to[((int64_t)blockIdx.y * s.taps + first + t) * s.cout + c] = all;
  }
}

/* gw (cout, taps) */
template <class T>
static __global__ void weight_fold (T *gw, const Real<T> *part, unsigned parts,
                                    unsigned taps, unsigned cout) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0;
  if (i >= taps * cout) return;
  for (unsigned p = 0; p < parts; p++)
    sum += (double)part[(int64_t)p * taps * cout + i];
  gw[(int64_t)(i % cout) * taps + i / cout] = number<T>(sum);
}

template <class T>
static void run_weight (Tensor *gw, const Tensor *gy, const Tensor *x,
                        const Places *s) {
  int64_t places = gy->numel / s->cout, size = s->taps * (int64_t)s->cout;
  int64_t len = max64(LEAST, (places + PARTS - 1) / PARTS);
  int64_t parts = (places + len - 1) / len;
  if (places > INT32_MAX || size > INT32_MAX)
    fnn_throw(FNN_ESHAPE, "conv: a gradient has more than 2^31 - 1 places");
  Real<T> *part =
      (Real<T> *)conv_room(x, parts * size * (int64_t)sizeof(Real<T>));
  unsigned tiles = (s->cout + WIDE - 1) / WIDE;
  dim3 grid(tiles * ((s->taps + TAPS - 1) / TAPS), (unsigned)parts);
  RUN(x, weight_parts<T>, grid, dim3(WIDE, ROWS), 0, part,
      data_of<const T>(gy), data_of<const T>(x), *s, (unsigned)places,
      (unsigned)len);
  RUN(x, weight_fold<T>, blocks_for(size, 128), 128, 0, data_of<T>(gw), part,
      (unsigned)parts, s->taps, s->cout);
}

void conv_depthwise_weight (Tensor *gw, const Tensor *gy, const Tensor *x,
                            const ConvShape *s) {
  Places places = conv_places(s);
  WITH_FLOAT(x->dtype, { run_weight<T>(gw, gy, x, &places); })
}

/* }====================================================== */
