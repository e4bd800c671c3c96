/* channel_norm.cu - batch, group and instance normalization.
**
** Three passes.  A block has a part of a plane.  Its threads take mean and sum
** of squared distances from it of a few elements in registers at a time, seen
** from a first one, so that large means cost nothing, and join them (Chan et
** al. 1983).  These moments are joined in double, those of threads and then
** those of parts, into statistics.  The last pass scales.  In row-major order
** threads go along a plane, in channels-last order across channels. */

#include "channel_norm.h"

Split norm_split (const Norm *k, dim3 *grid, dim3 *block) {
  Split s;
  int64_t across = 1, planes, most;
  if (k->batch > INT32_MAX || k->channels > INT32_MAX / 8)
    fnn_throw(FNN_ESHAPE, "norm: too many images or channels (%lld, %lld)",
              (long long)k->batch, (long long)k->channels);
  s.batch = (int)k->batch;
  s.channels = (int)k->channels;
  s.groups = (int)k->groups;
  s.space = k->space;
  s.last = k->last;
  s.pooled = k->pooled || k->given;
  s.given = k->given;
  if (k->last) {
    while (across < WIDE && across < k->channels) across *= 2;
    *block = dim3((unsigned)across, (unsigned)(THREADS / across));
    s.tiles = (int)((k->channels + across - 1) / across);
  } else {
    unsigned down = 32;
    while (down < THREADS && down * EACH < k->space) down *= 2;
    *block = dim3(1, down);
    s.tiles = s.channels;
  }
  planes = s.batch * (int64_t)s.tiles;
  most = max64(1, BLOCKS / planes);
  int64_t tile = (int64_t)block->y * EACH, tiles = (k->space + tile - 1) / tile;
  s.len = (tiles + most - 1) / most * tile;
  s.parts = (int)((k->space + s.len - 1) / s.len);
  if (planes > INT32_MAX)
    fnn_throw(FNN_ESHAPE, "norm: more than 2^31 - 1 planes");
  *grid = dim3((unsigned)planes, (unsigned)s.parts);
  return s;
}

/* Those of two sets of elements together. */
static __device__ inline Moments joined (Moments p, Moments q) {
  double n = p.n + q.n, d = q.mean - p.mean;
  if (p.n == 0 || q.n == 0) return p.n == 0 ? q : p;
  p.mean += d * (q.n / n);
  p.spread += q.spread + d * d * (p.n * (q.n / n));
  p.n = n;
  return p;
}

/* Over the columns of a block; for threads of row 0. */
static __device__ inline Moments column_joined (Moments *shared, Moments v) {
  unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
  shared[me] = v;
  __syncthreads();
  for (unsigned k = blockDim.y / 2; k > 0; k /= 2) {
    if (threadIdx.y < k) {
      v = joined(v, shared[me + k * blockDim.x]);
      shared[me] = v;
    }
    __syncthreads();
  }
  return v;
}

/* Of n elements, step apart: EACH at a time, seen from the first of all. */
template <class T>
static __device__ inline Moments run_moments (const T *x, int64_t n,
                                              int64_t step) {
  typedef Real<T> R;
  const R first = (R)x[0];
  R count = 0, mean = 0, spread = 0;
  for (int64_t at = 0; at < n; at += EACH) {
    R v[EACH], m = (R)(n - at < EACH ? n - at : EACH), sum = 0, rest = 0;
    for (int k = 0; k < EACH; k++) {
      v[k] = at + k < n ? (R)x[(at + k) * step] - first : 0;
      sum += v[k];
    }
    sum /= m;
    for (int k = 0; k < EACH; k++)
      rest += at + k < n ? (v[k] - sum) * (v[k] - sum) : 0;
    R d = sum - mean, share = m / (count + m);
    mean += d * share;
    spread += rest + d * d * (count * share);
    count += m;
  }
  Moments all = { (double)count, (double)first + (double)mean,
                  (double)spread };
  return all;
}

/* Moments of a part: pairs of mean and spread. */
template <class T>
static __global__ void moments (Pair *to, const T *x, Split s) {
  SHARED(Moments, shared, [THREADS]);
  int64_t image = blockIdx.x / (unsigned)s.tiles;
  int c = (int)(blockIdx.x % (unsigned)s.tiles * blockDim.x + threadIdx.x);
  int64_t at = (int64_t)blockIdx.y * s.len + threadIdx.y;
  int64_t hi = (int64_t)(blockIdx.y + 1) * s.len;
  int64_t step = s.last ? s.channels : 1;
  Moments all = { 0, 0, 0 };
  if (hi > s.space) hi = s.space;
  if (c < s.channels && at < hi) {
    int64_t n = (hi - at + blockDim.y - 1) / blockDim.y;
    x += image * s.channels * s.space + (s.last ? c : c * s.space);
    all = run_moments(x + at * step, n, step * blockDim.y);
  }
  all = column_joined(shared, all);
  if (c >= s.channels || threadIdx.y != 0) return;
  int64_t plane = image * s.channels + c;
  Pair p = { all.mean, all.spread };
  to[s.last ? (image * s.parts + blockIdx.y) * s.channels + c
            : plane * s.parts + blockIdx.y] = p;
}

/* The statistic of a block: all its pairs joined.  Running ones, of S, move
** towards it, the variance being that of a sample. */
template <class T, class S>
static __global__ void fold_moments (S *stats, T *mean, T *var, const Pair *of,
                                     Split s, double eps, double momentum) {
  SHARED(Moments, shared, [THREADS]);
  int64_t i = blockIdx.x, many = norm_share(&s);
  Moments all = { 0, 0, 0 };
  for (int64_t j = threadIdx.y; j < many; j += blockDim.y) {
    int64_t place = norm_pair(&s, i, j);
    int64_t part = s.last ? place / s.channels % s.parts : place % s.parts;
    int64_t rest = s.space - part * s.len;
    Moments m = { (double)(rest < s.len ? rest : s.len), of[place].a,
                  of[place].b };
    all = joined(all, m);
  }
  all = column_joined(shared, all);
  if (threadIdx.y != 0) return;
  stats[2 * i] = (S)all.mean;
  stats[2 * i + 1] = (S)(1 / sqrt(all.spread / all.n + eps));
  if (mean == NULL) return;
  double f = momentum, v = all.spread / (all.n - 1);
  mean[i] = number<T>((1 - f) * (double)mean[i] + f * all.mean);
  var[i] = number<T>((1 - f) * (double)var[i] + f * v);
}

template <class T, class S>
static __global__ void given_stats (S *stats, const T *mean, const T *var,
                                    int n, double eps) {
  int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= n) return;
  stats[2 * c] = (S)mean[c];
  stats[2 * c + 1] = (S)(1 / sqrt((double)var[c] + eps));
}

/* y = (x - m) a + b, over the parts of moments. */
template <class T>
static __global__ void scale (T *y, const T *x, const Real<T> *stats,
                              const T *w, const T *b, Split s) {
  int64_t image = blockIdx.x / (unsigned)s.tiles;
  int c = (int)(blockIdx.x % (unsigned)s.tiles * blockDim.x + threadIdx.x);
  if (c >= s.channels) return;
  int64_t lo = (int64_t)blockIdx.y * s.len, step = s.last ? s.channels : 1;
  int64_t hi = lo + s.len < s.space ? lo + s.len : s.space;
  int64_t from = image * s.channels * s.space + (s.last ? c : c * s.space);
  const Real<T> *p = stats + 2 * norm_of(&s, image, c);
  const Real<T> m = p[0], a = w != NULL ? p[1] * (Real<T>)w[c] : p[1];
  const Real<T> o = b != NULL ? (Real<T>)b[c] : 0;
  x += from;
  y += from;
  for (int64_t i = lo + threadIdx.y; i < hi; i += blockDim.y)
    y[i * step] = number<T>(((Real<T>)x[i * step] - m) * a + o);
}

template <class T>
static void run (Tensor *y, Tensor *stats, Tensor *mean, Tensor *var,
                 const Tensor *x, const Tensor *w, const Tensor *b,
                 const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, &grid, &block);
  Real<T> *to = data_of<Real<T>>(stats);
  if (k->given) {
    RUN(x, (given_stats<T, Real<T>>), blocks_for(s.channels, THREADS), THREADS,
        0, to, data_of<const T>(mean), data_of<const T>(var), s.channels,
        k->eps);
  } else {
    int64_t bytes = norm_pairs(&s) * (int64_t)sizeof(Pair);
    Tensor *pairs = tensor_new(1, &bytes, FNN_U8, x->storage->device);
    Pair *p = data_of<Pair>(pairs);
    RUN(x, moments<T>, grid, block, 0, p, data_of<const T>(x), s);
    dim3 fold(1, norm_threads(norm_share(&s)));
    RUN(x, (fold_moments<T, Real<T>>), (unsigned)norm_stats(&s), fold, 0, to, data_of<T>(mean),
        data_of<T>(var), p, s, k->eps, k->momentum);
  }
  RUN(x, scale<T>, grid, block, 0, data_of<T>(y), data_of<const T>(x), to,
      data_of<const T>(w), data_of<const T>(b), s);
}

extern "C" void cuda_channel_norm (Tensor *y, Tensor *stats, Tensor *mean,
                                   Tensor *var, const Tensor *x,
                                   const Tensor *w, const Tensor *b,
                                   const Norm *k) {
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, { run<T>(y, stats, mean, var, x, w, b, k); })
  fnn_escape(mark, NULL);
}
