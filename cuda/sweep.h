/* sweep.h - elementwise kernels over tensors of any strides.
**
** The host merges the dims of all operands, the result's largest strides
** outermost, and splits what 32-bit places do not reach.  A thread takes a
** group of V elements along the innermost dim: as vectors of up to 16 bytes
** where every operand lies so that it can (or repeats one element), else one
** element at a time.  The 16-bit floats are loaded into floats. */

#ifndef cuda_sweep_h
#define cuda_sweep_h

#include "cuda.h"

enum {
  SWEEP_MAX = 6,      /* operands, the result among them */
  SWEEP_THREADS = 256 /* of a block: 8 blocks fill a multiprocessor */
};

/*
** {======================================================
** The host's view
** =======================================================
*/

/* Operands of one shape, the result first; data is NULL where one is not
** read.  Dims are merged, the innermost first; strides are in elements. */
typedef struct Geometry {
  int count, ndim;
  int64_t numel;
  int64_t shape[FNN_MAXDIM];
  int64_t stride[SWEEP_MAX][FNN_MAXDIM];
  char *data[SWEEP_MAX];
  int size[SWEEP_MAX]; /* bytes of an element */
} Geometry;

void geometry_open (Geometry *g, int count, const Tensor *const *t);

/* x, which may be NULL; or a copy that lies as y does, where x runs along
** another dim than y and reading it beside y would fetch most lines for one
** element.  Copies turn in shared memory (copy.cu). */
const Tensor *sweep_operand (const Tensor *x, const Tensor *y);

/* Leaves in g what 32-bit places reach and puts the other half, if there is
** one, into rest. */
bool geometry_halve (Geometry *g, Geometry *rest);

/* Whether n elements along the innermost dim can be moved as vectors. */
bool geometry_runs (const Geometry *g, int n);

/* The dtype that elements of t are computed in: f32, f64 or i64. */
static inline fnn_Dtype lane_of (fnn_Dtype t) {
  return t == FNN_F64 ? FNN_F64 : t >= FNN_F16 ? FNN_F32 : FNN_I64;
}

/* }====================================================== */

/*
** {======================================================
** Places
** =======================================================
*/

/* Division of numbers below 2^31 by a constant: Granlund and Montgomery 1994,
** "Division by invariant integers using multiplication", figure 4.1. */
typedef struct Divisor {
  uint32_t by, factor, shift;
} Divisor;

Divisor divisor_of (uint32_t by);

static __device__ inline uint32_t quotient (uint32_t n, Divisor d) {
  return ((uint32_t)((uint64_t)n * d.factor >> 32) + n) >> d.shift;
}

/* A geometry as kernels get it: by[0] divides by the groups of a run. */
template <int K> struct Sweep {
  int ndim;
  uint32_t groups, length; /* groups in all; elements of a run */
  Divisor by[FNN_MAXDIM];
  int32_t stride[K][FNN_MAXDIM];
  char *data[K];
};

template <int K>
static void sweep_of (Sweep<K> *s, const Geometry *g, int width) {
  s->ndim = g->ndim;
  s->length = (uint32_t)g->shape[0];
  uint32_t run = (s->length + (uint32_t)width - 1) / (uint32_t)width;
  s->groups = s->length > 0 ? (uint32_t)(g->numel / s->length) * run : 0;
  for (int d = 0; d < g->ndim; d++) {
    s->by[d] = divisor_of(d == 0 ? run : (uint32_t)g->shape[d]);
    for (int k = 0; k < K; k++) s->stride[k][d] = (int32_t)g->stride[k][d];
  }
  for (int k = 0; k < K; k++) s->data[k] = g->data[k];
}

/* Where group i begins in each operand; gives how much of its run is left. */
template <int K>
static __device__ KERNEL_PART uint32_t sweep_find (const Sweep<K> &s,
                                                   uint32_t i, uint32_t width,
                                                   int32_t *at) {
  uint32_t place = i;
  uint32_t rest = 0;
  if (s.ndim > 1) {
    rest = quotient(i, s.by[0]);
    place = i - rest * s.by[0].by;
  }
  place *= width;
  for (int k = 0; k < K; k++) at[k] = (int32_t)place * s.stride[k][0];
  for (int d = 1; d < s.ndim; d++) {
    uint32_t next = d + 1 < s.ndim ? quotient(rest, s.by[d]) : 0;
    int32_t r = (int32_t)(rest - next * s.by[d].by);
    for (int k = 0; k < K; k++) at[k] += r * s.stride[k][d];
    rest = next;
  }
  return s.length - place;
}

/* The loop of a thread over its groups. */
#define EACH_GROUP(i, s) \
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (s).groups; \
       i += gridDim.x * blockDim.x)

/* }====================================================== */

/*
** {======================================================
** Groups of elements
** =======================================================
*/

template <int BYTES> struct WordOf;
template <> struct WordOf<1> { typedef uint8_t type; };
template <> struct WordOf<2> { typedef uint16_t type; };
template <> struct WordOf<4> { typedef uint32_t type; };
template <> struct WordOf<8> { typedef int2 type; };
template <> struct WordOf<16> { typedef int4 type; };

/* N elements and the word that moves them. */
template <class T, int N> union Pack {
  typename WordOf<N *(int)sizeof(T)>::type word;
  T v[N];
};

/* How many of a group's V elements one word holds. */
template <class T, int V> struct PackOf {
  enum { N = V * sizeof(T) <= 16 ? V : 16 / sizeof(T) };
};

/* V elements at p, in L; step is 0 where it is one that repeats.  Of a group
** that its run does not fill only `left` are read, the others are 0. */
template <int V, class L, class T>
static __device__ KERNEL_PART void group_load (L *v, const T *p, int step,
                                               uint32_t left) {
  enum { N = PackOf<T, V>::N };
  typedef Pack<T, N> P;
  if (V == 1 || step == 0) {
    L x = number<L>(*p);
    for (int j = 0; j < V; j++) v[j] = x;
  } else if (left >= V) {
    for (int j = 0; j < V; j += N) {
      P x;
      x.word = *(const decltype(x.word) *)(p + j);
      for (int k = 0; k < N; k++) v[j + k] = number<L>(x.v[k]);
    }
  } else
    for (uint32_t j = 0; j < V; j++) v[j] = j < left ? number<L>(p[j]) : L(0);
}

template <int V, class L, class T>
static __device__ KERNEL_PART void group_store (T *p, const L *v,
                                                uint32_t left) {
  enum { N = PackOf<T, V>::N };
  typedef Pack<T, N> P;
  if (V == 1) *p = number<T>(v[0]);
  else if (left >= V) {
    for (int j = 0; j < V; j += N) {
      P x;
      for (int k = 0; k < N; k++) x.v[k] = number<T>(v[j + k]);
      *(decltype(x.word) *)(p + j) = x.word;
    }
  } else
    for (uint32_t j = 0; j < V; j++)
      if (j < left) p[j] = number<T>(v[j]);
}

/* The same with a dtype that is only known now, which must have lane L. */
template <int V>
static __device__ inline void group_load_any (double *v, const char *data,
                                              fnn_Dtype t, int64_t at,
                                              int step, uint32_t left) {
  (void)t;
  group_load<V>(v, (const double *)data + at, step, left);
}

template <int V>
static __device__ inline void group_load_any (float *v, const char *data,
                                              fnn_Dtype t, int64_t at,
                                              int step, uint32_t left) {
  switch (t) {
    case FNN_F16: group_load<V>(v, (const half *)data + at, step, left); break;
    case FNN_BF16:
      group_load<V>(v, (const nv_bfloat16 *)data + at, step, left);
      break;
    default: group_load<V>(v, (const float *)data + at, step, left);
  }
}

template <int V>
static __device__ inline void group_load_any (int64_t *v, const char *data,
                                              fnn_Dtype t, int64_t at,
                                              int step, uint32_t left) {
  switch (t) {
    case FNN_I64:
      group_load<V>(v, (const int64_t *)data + at, step, left);
      break;
    case FNN_I32:
      group_load<V>(v, (const int32_t *)data + at, step, left);
      break;
    default: group_load<V>(v, (const uint8_t *)data + at, step, left);
  }
  if (t == FNN_BOOL)
    for (int j = 0; j < V; j++) v[j] = v[j] != 0;
}

/* As src/cpu/run.c has it: a float that no int64 holds, NaN too, becomes the
** least int64; narrower integers take its low bits. */
static __device__ inline int64_t whole (int64_t v) { return v; }
static __device__ inline int64_t whole (double v) {
  return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
static __device__ inline int64_t whole (float v) { return whole((double)v); }

template <int V, class T, class M, class L>
static __device__ inline void group_store_as (char *data, int64_t at,
                                              const L *v, uint32_t left) {
  M w[V];
  for (int j = 0; j < V; j++) w[j] = (M)v[j];
  group_store<V>((T *)data + at, w, left);
}

template <int V, class L>
static __device__ inline void group_store_any (char *data, fnn_Dtype t,
                                               int64_t at, const L *v,
                                               uint32_t left) {
  int64_t w[V];
  switch (t) {
    case FNN_F64: group_store_as<V, double, double>(data, at, v, left); return;
    case FNN_F32: group_store_as<V, float, float>(data, at, v, left); return;
    case FNN_F16: group_store_as<V, half, float>(data, at, v, left); return;
    case FNN_BF16:
      group_store_as<V, nv_bfloat16, float>(data, at, v, left);
      return;
    case FNN_BOOL:
      for (int j = 0; j < V; j++) w[j] = v[j] != 0;
      break;
    default:
      for (int j = 0; j < V; j++) w[j] = whole(v[j]);
  }
  switch (t) {
    case FNN_I64: group_store<V>((int64_t *)data + at, w, left); break;
    case FNN_I32: group_store<V>((int32_t *)data + at, w, left); break;
    default: group_store<V>((uint8_t *)data + at, w, left);
  }
}

/* }====================================================== */

/*
** {======================================================
** Kernels of functors
** =======================================================
*/

/* z = f(x) of N operands, the first of type A, the others of T, each brought
** into F::Lane; what is not read is a.  F is made of two numbers, so that all
** rows of a table have kernels of one signature: fewer templates for the
** compilers. */
template <class F, class Z, class A, class T, int N, int V>
static __global__ void sweep_kernel (Sweep<N + 1> s, typename F::Lane a,
                                     typename F::Lane b) {
  typedef typename F::Lane L;
  const F f = { a, b };
  EACH_GROUP(i, s) {
    int32_t at[N + 1];
    uint32_t left = sweep_find(s, i, V, at);
    L x[N][V];
    decltype(f(x, 0)) z[V];
    for (int k = 0; k < N; k++) {
      for (int j = 0; j < V; j++) x[k][j] = a;
      if (s.data[k + 1] == NULL) continue;
      if (k == 0)
        group_load<V>(x[k], (const A *)s.data[k + 1] + at[k + 1],
                      s.stride[k + 1][0], left);
      else
        group_load<V>(x[k], (const T *)s.data[k + 1] + at[k + 1],
                      s.stride[k + 1][0], left);
    }
    for (int j = 0; j < V; j++) z[j] = f(x, j);
    group_store<V>((Z *)s.data[0] + at[0], z, left);
  }
}

/* Launches a kernel of groups of width elements; its errors name it so. */
template <class L, int K>
static void sweep_start (const Tensor *on,
                         void (*elementwise)(Sweep<K> s, L a, L b), int width,
                         Geometry g, L a, L b) {
  Geometry rest;
  while (geometry_halve(&g, &rest))
    sweep_start<L, K>(on, elementwise, width, rest, a, b);
  Sweep<K> s;
  sweep_of(&s, &g, width);
  if (s.groups > 0)
    RUN(on, elementwise, blocks_for(s.groups, SWEEP_THREADS), SWEEP_THREADS, 0,
        s, a, b);
}

template <class F, class Z, class A, class T, int N, int V>
static void sweep_launch (const Tensor *on, const Geometry &g,
                          typename F::Lane a, typename F::Lane b) {
  sweep_start<typename F::Lane>(on, sweep_kernel<F, Z, A, T, N, V>, V, g, a,
                                b);
}

/* }====================================================== */

#endif
