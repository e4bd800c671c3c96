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
  Part p = norm_part(&s);
  bool mine = p.c < s.channels;
  const Real<T> mean = mine ? stats[2 * norm_of(&s, p.image, p.c)] : 0;
  int64_t end = mine ? p.hi : p.lo, step = blockDim.y;
  Pair all = { 0, 0 };
  for (int64_t at = p.lo + threadIdx.y; at < end; at += step * EACH) {
    Real<T> a = 0, b = 0;
    for (int k = 0; k < EACH; k++) {
      int64_t i = at + k * step;
      if (i >= end) break;
      Real<T> g = (Real<T>)gy[p.from + i * p.step];
      a += g;
      b += g * ((Real<T>)x[p.from + i * p.step] - mean);
    }
    all.a += (double)a;
    all.b += (double)b;
  }
  all = column_sums(shared, all);
  if (!mine || threadIdx.y != 0) return;
  to[norm_place(&s, p.image, p.c, blockIdx.y)] = all;
}

/* q and o of a block's statistic into to; and where it is a channel's, the
** gradients of weight and bias. */
template <class T>
static __global__ void fold_sums (Real<T> *to, Vectors g, const Pair *of,
                                  Vectors w, const Real<T> *stats, Split s) {
  SHARED(Pair, shared, [THREADS]);
  int64_t i = blockIdx.x, many = norm_share(&s);
  Pair all = { 0, 0 };
  for (int64_t j = threadIdx.y; j < many; j += blockDim.y) {
    int64_t place = norm_pair(&s, i, j);
    int64_t c = s.last ? place % s.channels : place / s.parts % s.channels;
    double f = 1;
    if (w.a != NULL && !s.pooled) f = (double)norm_get<T>(w.a, w.awide, c);
    all.a += f * of[place].a;
    all.b += f * of[place].b;
  }
  all = column_sums(shared, all);
  if (threadIdx.y != 0) return;
  double r = (double)stats[2 * i + 1], f = 1;
  if (s.pooled) {
    if (w.a != NULL) f = (double)norm_get<T>(w.a, w.awide, i);
    if (g.b != NULL) norm_set<T>(g.b, g.bwide, i, all.a);
    if (g.a != NULL) norm_set<T>(g.a, g.awide, i, r * all.b);
  }
  double count = (double)s.space;
  count *= s.pooled ? s.batch : s.size;
  to[2 * i] = (Real<T>)(-r * r * r * f * all.b / count);
  to[2 * i + 1] = (Real<T>)(-r * f * all.a / count);
}

/* The gradients of a block's channel, whose statistics are the images'. */
template <class T>
static __global__ void fold_weights (Vectors g, const Pair *of,
                                     const Real<T> *stats, Split s) {
  SHARED(Pair, shared, [THREADS]);
  int64_t c = blockIdx.x, many = (int64_t)s.batch * s.parts;
  Pair all = { 0, 0 };
  for (int64_t j = threadIdx.y; j < many; j += blockDim.y) {
    int64_t image = j / s.parts, part = j % s.parts;
    double r = (double)stats[2 * norm_of(&s, image, (int)c) + 1];
    Pair p = of[norm_place(&s, image, c, part)];
    all.a += p.a;
    all.b += r * p.b;
  }
  all = column_sums(shared, all);
  if (threadIdx.y != 0) return;
  if (g.b != NULL) norm_set<T>(g.b, g.bwide, c, all.a);
  if (g.a != NULL) norm_set<T>(g.a, g.awide, c, all.b);
}

/* back: q and o of each statistic; NULL where it was given. */
template <class T, int N>
static __global__ void slope (T *gx, const T *gy, const T *x, Vectors w,
                              const Real<T> *stats, const Real<T> *back,
                              Split s) {
  Part part = norm_part(&s);
  Real<T> m[N], p[N], q[N], o[N];
  if (part.c >= s.channels) return;
  for (int e = 0; e < N; e++) {
    int c = s.last ? part.c * N + e : part.c;
    int64_t at = 2 * norm_of(&s, part.image, c);
    m[e] = stats[at];
    p[e] = stats[at + 1];
    if (w.a != NULL) p[e] *= norm_get<T>(w.a, w.awide, c);
    q[e] = back != NULL ? back[at] : 0;
    o[e] = back != NULL ? back[at + 1] : 0;
  }
  const Pack<T, N> *g = (const Pack<T, N> *)gy + part.from;
  const Pack<T, N> *h = (const Pack<T, N> *)x + part.from;
  Pack<T, N> *to = (Pack<T, N> *)gx + part.from;
  for (int64_t i = part.lo + threadIdx.y; i < part.hi; i += blockDim.y) {
    Pack<T, N> v = g[i * part.step], u = v;
    if (back != NULL) u = h[i * part.step];
    for (int e = 0; e < N; e++) {
      Real<T> add = back != NULL ? ((Real<T>)u.v[e] - m[e]) * q[e] + o[e] : 0;
      v.v[e] = number<T>((Real<T>)v.v[e] * p[e] + add);
    }
    to[i * part.step] = v;
  }
}

template <class T, int N>
static void run_slope (Tensor *gx, const Tensor *gy, const Tensor *x,
                       Vectors w, const Real<T> *stats, const Real<T> *back,
                       const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, N, &grid, &block);
  RUN(x, (slope<T, N>), grid, block, 0, data_of<T>(gx), data_of<const T>(gy),
      data_of<const T>(x), w, stats, back, s);
}

static void *room (const Tensor *x, int64_t bytes) {
  return tensor_data(tensor_new(1, &bytes, FNN_U8, x->storage->device));
}

template <class T>
static void run (Tensor *gx, Tensor *gw, Tensor *gb, const Tensor *gy,
                 const Tensor *x, const Tensor *w, const Tensor *stats,
                 const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, 1, &grid, &block);
  Vectors affine = norm_vectors(w, NULL), grads = norm_vectors(gw, gb);
  const Real<T> *known = data_of<const Real<T>>(stats);
  int64_t size = 2 * norm_stats(&s) * (int64_t)sizeof(Real<T>);
  Real<T> *back = (Real<T> *)room(x, size);
  if (!k->given || gw != NULL || gb != NULL) {
    Pair *p = (Pair *)room(x, norm_pairs(&s) * (int64_t)sizeof(Pair));
    dim3 fold = norm_fold(norm_share(&s));
    RUN(x, sums<T>, grid, block, 0, p, data_of<const T>(gy),
        data_of<const T>(x), known, s);
    RUN(x, fold_sums<T>, (unsigned)norm_stats(&s), fold, 0, back, grads, p,
        affine, known, s);
    fold = norm_fold((int64_t)s.batch * s.parts);
    if (!s.pooled && (gw != NULL || gb != NULL))
      RUN(x, fold_weights<T>, (unsigned)s.channels, fold, 0, grads, p, known,
          s);
  }
  if (k->given) back = NULL;
  bool packs = pack_fits((fnn_Dtype)x->dtype, k->last ? k->channels : k->space,
                         tensor_data(x), tensor_data(gx), tensor_data(gy));
  if (packs) run_slope<T, 4>(gx, gy, x, affine, known, back, k);
  else run_slope<T, 1>(gx, gy, x, affine, known, back, k);
}

extern "C" void cuda_channel_norm_back (Tensor *gx, Tensor *gw, Tensor *gb,
                                        const Tensor *gy, const Tensor *x,
                                        const Tensor *w, const Tensor *stats,
                                        const Norm *k) {
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, { run<T>(gx, gw, gb, gy, x, w, stats, k); })
  fnn_escape(mark, NULL);
}
