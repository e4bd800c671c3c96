/* channel_norm.cu - batch, group and instance normalization.
**
** Three passes.  A block has a part of a plane.  Its threads take mean and sum
** of squared distances from it of a few elements in registers at a time, seen
** from a first one, so that large means cost nothing, and join them (Chan et
** al. 1983).  These moments are joined in double, those of threads and then
** those of parts, into statistics.  The last pass scales.  In row-major order
** threads go along a plane, in channels-last order across channels. */

#include "channel_norm.h"

Split norm_split (const Norm *k, int pack, dim3 *grid, dim3 *block) {
  Split s;
  int64_t planes, most, tile, tiles, down;
  unsigned across = 1;
  if (k->batch > INT32_MAX || k->channels > INT32_MAX / 8)
    fnn_throw(FNN_ESHAPE, "norm: too many images or channels (%lld, %lld)",
              (long long)k->batch, (long long)k->channels);
  s.batch = (int)k->batch;
  s.channels = (int)(k->last ? k->channels / pack : k->channels);
  s.space = k->last ? k->space : k->space / pack;
  s.groups = (int)k->groups;
  s.size = (int)(k->channels / k->groups);
  s.last = k->last;
  s.pooled = k->pooled || k->given;
  if (k->last) across = pack_power(s.channels, WIDE);
  down = (s.space + EACH - 1) / EACH;
  *block = dim3(across, THREADS / across);
  if (!k->last) block->y = 32 * pack_power((down + 31) / 32, THREADS / 32);
  s.tiles = (int)((s.channels + across - 1) / across);
  planes = s.batch * (int64_t)s.tiles;
  most = max64(1, BLOCKS / planes);
  tile = (int64_t)block->y * EACH;
  tiles = (s.space + tile - 1) / tile;
  s.len = (tiles + most - 1) / most * tile;
  s.parts = (int)((s.space + s.len - 1) / s.len);
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
    R v[EACH], sum = 0, rest = 0;
    R m = n - at < EACH ? (R)(n - at) : (R)EACH;
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
  Part p = norm_part(&s);
  int64_t at = p.lo + threadIdx.y;
  Moments all = { 0, 0, 0 };
  if (p.c < s.channels && at < p.hi)
    all = run_moments(x + p.from + at * p.step,
                      (p.hi - at + blockDim.y - 1) / blockDim.y,
                      p.step * blockDim.y);
  all = column_joined(shared, all);
  if (p.c >= s.channels || threadIdx.y != 0) return;
  Pair pair = { all.mean, all.spread };
  to[norm_place(&s, p.image, p.c, blockIdx.y)] = pair;
}

/* The statistic of a block: all its pairs joined.  Running ones move
** towards it, the variance being that of a sample. */
template <class T>
static __global__ void fold_moments (Real<T> *stats, Vectors running,
                                     const Pair *of, Split s, double eps,
                                     double momentum) {
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
  stats[2 * i] = (Real<T>)all.mean;
  stats[2 * i + 1] = (Real<T>)(1 / sqrt(all.spread / all.n + eps));
  if (running.a == NULL) return;
  double f = momentum, v = all.spread / (all.n - 1);
  double mean = (double)norm_get<T>(running.a, running.awide, i);
  double var = (double)norm_get<T>(running.b, running.bwide, i);
  norm_set<T>(running.a, running.awide, i, (1 - f) * mean + f * all.mean);
  norm_set<T>(running.b, running.bwide, i, (1 - f) * var + f * v);
}

template <class T>
static __global__ void given_stats (Real<T> *stats, Vectors v, int n,
                                    double eps) {
  int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= n) return;
  double var = (double)norm_get<T>(v.b, v.bwide, c);
  stats[2 * c] = norm_get<T>(v.a, v.awide, c);
  stats[2 * c + 1] = (Real<T>)(1 / sqrt(var + eps));
}

/* y = (x - m) a + o, packs of N at a time. */
template <class T, int N>
static __global__ void scale (T *y, const T *x, const Real<T> *stats,
                              Vectors w, Split s) {
  Part p = norm_part(&s);
  Real<T> m[N], a[N], o[N];
  if (p.c >= s.channels) return;
  for (int e = 0; e < N; e++) {
    int c = s.last ? p.c * N + e : p.c;
    const Real<T> *of = stats + 2 * norm_of(&s, p.image, c);
    m[e] = of[0];
    a[e] = w.a != NULL ? of[1] * norm_get<T>(w.a, w.awide, c) : of[1];
    o[e] = w.b != NULL ? norm_get<T>(w.b, w.bwide, c) : 0;
  }
  const Pack<T, N> *from = (const Pack<T, N> *)x + p.from;
  Pack<T, N> *to = (Pack<T, N> *)y + p.from;
  for (int64_t i = p.lo + threadIdx.y; i < p.hi; i += blockDim.y) {
    Pack<T, N> v = from[i * p.step];
    for (int e = 0; e < N; e++)
      v.v[e] = number<T>(((Real<T>)v.v[e] - m[e]) * a[e] + o[e]);
    to[i * p.step] = v;
  }
}

template <class T, int N>
static void run_scale (Tensor *y, const Tensor *x, const Real<T> *stats,
                       Vectors w, const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, N, &grid, &block);
  RUN(x, (scale<T, N>), grid, block, 0, data_of<T>(y), data_of<const T>(x),
      stats, w, s);
}

template <class T>
static void run (Tensor *y, Tensor *stats, Tensor *mean, Tensor *var,
                 const Tensor *x, const Tensor *w, const Tensor *b,
                 const Norm *k) {
  dim3 grid, block;
  Split s = norm_split(k, 1, &grid, &block);
  Real<T> *to = data_of<Real<T>>(stats);
  Vectors running = norm_vectors(mean, var), affine = norm_vectors(w, b);
  if (k->given) {
    RUN(x, given_stats<T>, blocks_for(s.channels, THREADS), THREADS, 0, to,
        running, s.channels, k->eps);
  } else {
    int64_t bytes = norm_pairs(&s) * (int64_t)sizeof(Pair);
    Tensor *pairs = tensor_new(1, &bytes, FNN_U8, x->storage->device);
    Pair *p = data_of<Pair>(pairs);
    RUN(x, moments<T>, grid, block, 0, p, data_of<const T>(x), s);
    RUN(x, fold_moments<T>, (unsigned)norm_stats(&s),
        norm_fold(norm_share(&s)), 0, to, running, p, s, k->eps, k->momentum);
  }
  bool packs = pack_fits((fnn_Dtype)x->dtype, k->last ? k->channels : k->space,
                         tensor_data(x), tensor_data(y), NULL);
  if (packs) run_scale<T, 4>(y, x, to, affine, k);
  else run_scale<T, 1>(y, x, to, affine, k);
}

extern "C" void cuda_channel_norm (Tensor *y, Tensor *stats, Tensor *mean,
                                   Tensor *var, const Tensor *x,
                                   const Tensor *w, const Tensor *b,
                                   const Norm *k) {
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, { run<T>(y, stats, mean, var, x, w, b, k); })
  fnn_escape(mark, NULL);
}
