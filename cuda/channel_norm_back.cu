/* channel_norm_back.cu - the derivatives of batch, group and instance
** normalization.
**
** With h = (x - mean) r, u = gy w and means over what shares the statistics,
** gx = r (u - mean(u) - h mean(u h)), gw = sum gy h, gb = sum gy.  A plane's
** sums of gy and of gy (x - mean) give all of these, and
**
**   gx = gy p + (x - m) q + o   with m, p, q, o of the plane.
**
** The passes are those of channel_norm.cu. */

#include "channel_norm.h"

/* Two sums over the columns of a block, in double; for threads of row 0. */
static __device__ inline Pair column_sums (Pair *shared, Pair v) {
  unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
  shared[me] = v;
  __syncthreads();
  for (unsigned k = blockDim.y / 2; k > 0; k /= 2) {
    if (threadIdx.y < k) {
      v.a += shared[me + k * blockDim.x].a;
      v.b += shared[me + k * blockDim.x].b;
      shared[me] = v;
    }
    __syncthreads();
  }
  return v;
}

/* The sums of a part: of gy, and of gy (x - mean); EACH of a thread at a time
** are added up in Real. */
template <class T>
static __global__ void sums (Pair *to, const T *gy, const T *x,
                             const Real<T> *stats, Split s) {
  SHARED(Pair, shared, [THREADS]);
  int64_t image = blockIdx.x / (unsigned)s.tiles;
  int c = (int)(blockIdx.x % (unsigned)s.tiles * blockDim.x + threadIdx.x);
  int64_t lo = (int64_t)blockIdx.y * s.len, step = s.last ? s.channels : 1;
  int64_t hi = lo + s.len < s.space ? lo + s.len : s.space;
  int64_t from = image * s.channels * s.space + (s.last ? c : c * s.space);
  bool mine = c < s.channels;
  const Real<T> mean = mine ? stats[2 * norm_of(&s, image, c)] : 0;
  Pair all = { 0, 0 };
  int64_t n = mine ? hi : lo;
  for (int64_t at = lo + threadIdx.y; at < n; at += blockDim.y * EACH) {
    Real<T> a = 0, b = 0;
    for (int k = 0; k < EACH; k++) {
      int64_t i = at + (int64_t)k * blockDim.y;
      if (i >= hi) break;
      Real<T> g = (Real<T>)gy[from + i * step];
      a += g;
      b += g * ((Real<T>)x[from + i * step] - mean);
    }
    all.a += (double)a;
    all.b += (double)b;
  }
  all = column_sums(shared, all);
  if (!mine || threadIdx.y != 0) return;
  int64_t plane = image * s.channels + c;
  to[s.last ? (image * s.parts + blockIdx.y) * s.channels + c
            : plane * s.parts + blockIdx.y] = all;
}

/* q and o of a block's statistic into to; and where it is a channel's, the
** gradients of weight and bias. */
template <class T>
static __global__ void fold_sums (Real<T> *to, T *gw, T *gb, const Pair *of,
                                  const T *w, const Real<T> *stats, Split s) {
  SHARED(Pair, shared, [THREADS]);
  int64_t i = blockIdx.x, many = norm_share(&s);
  Pair all = { 0, 0 };
  for (int64_t j = threadIdx.y; j < many; j += blockDim.y) {
    int64_t place = norm_pair(&s, i, j);
    int64_t c = s.last ? place % s.channels : place / s.parts % s.channels;
    double f = w != NULL && !s.pooled ? (double)w[c] : 1;
    all.a += f * of[place].a;
    all.b += f * of[place].b;
  }
  all = column_sums(shared, all);
  if (threadIdx.y != 0) return;
  double r = (double)stats[2 * i + 1], f = 1;
  if (s.pooled) {
    if (w != NULL) f = (double)w[i];
    if (gb != NULL) gb[i] = number<T>(all.a);
    if (gw != NULL) gw[i] = number<T>(r * all.b);
  }
  double count = (double)s.space;
  count *= s.pooled ? s.batch : s.channels / s.groups;
  to[2 * i] = (Real<T>)(-r * r * r * f * all.b / count);
  to[2 * i + 1] = (Real<T>)(-r * f * all.a / count);
}

/* The gradients of a block's channel, whose statistics are the images'. */
template <class T>
static __global__ void fold_weights (T *gw, T *gb, const Pair *of,
                                     const Real<T> *stats, Split s) {
  SHARED(Pair, shared, [THREADS]);
  int64_t n = s.channels, c = blockIdx.x, many = (int64_t)s.batch * s.parts;
  Pair all = { 0, 0 };
  for (int64_t j = threadIdx.y; j < many; j += blockDim.y) {
    int64_t image = j / s.parts, part = j % s.parts;
    double r = (double)stats[2 * norm_of(&s, image, (int)c) + 1];
    Pair p = of[s.last ? (image * s.parts + part) * n + c
                       : (image * n + c) * s.parts + part];
    all.a += p.a;
    all.b += r * p.b;
  }
  all = column_sums(shared, all);
  if (threadIdx.y != 0) return;
  if (gb != NULL) gb[c] = number<T>(all.a);
  if (gw != NULL) gw[c] = number<T>(all.b);
}

/* back: q and o of each statistic; NULL where it was given. */
template <class T>
static __global__ void slope (T *gx, const T *gy, const T *x, const T *w,
                              const Real<T> *stats, const Real<T> *back,
                              Split s) {
  int64_t image = blockIdx.x / (unsigned)s.tiles;
  int c = (int)(blockIdx.x % (unsigned)s.tiles * blockDim.x + threadIdx.x);
  if (c >= s.channels) return;
  int64_t lo = (int64_t)blockIdx.y * s.len, step = s.last ? s.channels : 1;
  int64_t hi = lo + s.len < s.space ? lo + s.len : s.space;
  int64_t from = image * s.channels * s.space + (s.last ? c : c * s.space);
  int64_t at = 2 * norm_of(&s, image, c);
  const Real<T> m = stats[at], r = stats[at + 1];
  const Real<T> p = w != NULL ? r * (Real<T>)w[c] : r;
  gx += from;
  gy += from;
  x += from;
  if (back == NULL) {
    for (int64_t i = lo + threadIdx.y; i < hi; i += blockDim.y)
      gx[i * step] = number<T>((Real<T>)gy[i * step] * p);
    return;
  }
  const Real<T> q = back[at], o = back[at + 1];
  for (int64_t i = lo + threadIdx.y; i < hi; i += blockDim.y) {
    Real<T> v = ((Real<T>)x[i * step] - m) * q + o;
    gx[i * step] = number<T>((Real<T>)gy[i * step] * p + v);
  }
}

static void *room (const Tensor *x, int64_t bytes) {
  return tensor_data(tensor_new(1, &bytes, FNN_U8, x->storage->device));
}

template <class T>
static void run (Tensor *gx, Tensor *gw, Tensor *gb, const Tensor *gy,
                 const Tensor *x, const Tensor *w, const Tensor *stats,
                 const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, &grid, &block);
  const Real<T> *known = data_of<const Real<T>>(stats);
  int64_t size = 2 * norm_stats(&s) * (int64_t)sizeof(Real<T>);
  Real<T> *back = (Real<T> *)room(x, size);
  if (!k->given || gw != NULL || gb != NULL) {
    Pair *p = (Pair *)room(x, norm_pairs(&s) * (int64_t)sizeof(Pair));
    dim3 fold(1, norm_threads(norm_share(&s)));
    RUN(x, sums<T>, grid, block, 0, p, data_of<const T>(gy),
        data_of<const T>(x), known, s);
    RUN(x, fold_sums<T>, (unsigned)norm_stats(&s), fold, 0, back,
        data_of<T>(gw), data_of<T>(gb), p, data_of<const T>(w), known, s);
    fold.y = norm_threads((int64_t)s.batch * s.parts);
    if (!s.pooled && (gw != NULL || gb != NULL))
      RUN(x, fold_weights<T>, (unsigned)s.channels, fold, 0, data_of<T>(gw),
          data_of<T>(gb), p, known, s);
  }
  RUN(x, slope<T>, grid, block, 0, data_of<T>(gx), data_of<const T>(gy),
      data_of<const T>(x), data_of<const T>(w), known,
      (const Real<T> *)(k->given ? NULL : back), s);
}

extern "C" void cuda_channel_norm_back (Tensor *gx, Tensor *gw, Tensor *gb,
                                        const Tensor *gy, const Tensor *x,
                                        const Tensor *w, const Tensor *stats,
                                        const Norm *k) {
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, { run<T>(gx, gw, gb, gy, x, w, stats, k); })
  fnn_escape(mark, NULL);
}
