/* random.cu - uniform, normal and integer numbers, and dropout.
**
** All come from Philox4x32-10, whose block is made by the thread that writes
** the elements it is for: four of a 32-bit law, two of a 64-bit one.  What an
** element is depends on its place alone, and integers and uniforms are the
** bits that the CPU makes.  Normals are Box and Muller's. */

#include "draw.h"

enum { THREADS = 256 };

/* Elements that one thread makes of one block, moved at once where they lie on
** a boundary of their size (of 16 bytes at most). */
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Some {
  T v[N];
};

template <class T, int N> static bool is_aligned (const void *p) {
  return (uintptr_t)p % alignof(Some<T, N>) == 0;
}

/* Elements at .. at + N - 1, of which those from n on are not there. */
template <class T, int N>
static __device__ inline void put (T *y, int64_t at, int64_t n, bool wide,
                                   const Some<T, N> &x) {
  if (wide && at + N <= n) *(Some<T, N> *)(y + at) = x;
  else
    for (int k = 0; k < N; k++)
      if (at + k < n) y[at + k] = x.v[k];
}

/* The i-th (0, 1) 64 bits of a block. */
static __device__ inline uint64_t pair (const uint32_t w[4], int i) {
  return (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
}

/* Runs the body for each block of N elements of the n that there are. */
#define EACH_BLOCK(N, n) \
  for (int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x; \
       block * (N) < (n); block += (int64_t)gridDim.x * THREADS)

/*
** {======================================================
** Uniform
** =======================================================
*/

/* One rounding, as the CPU's compiler has it. */
template <class T>
static __global__ void uniform32 (T *y, int64_t n, bool wide, Draw d, float a,
                                  float span, float most) {
  EACH_BLOCK(4, n) {
    uint32_t w[4];
    Some<T, 4> x;
    draw_block(d, (uint64_t)block, w);
    for (int k = 0; k < 4; k++) {
      float u = fmaf((float)(w[k] >> 8) * 0x1p-24f, span, a);
      x.v[k] = number<T>(u < most ? u : most);
      /* what rounding to 16 bits took to the bound */
      if ((float)x.v[k] > most) x.v[k] = number<T>(most);
    }
    put(y, 4 * block, n, wide, x);
  }
}

static __global__ void uniform64 (double *y, int64_t n, bool wide, Draw d,
                                  double a, double span, double most) {
  EACH_BLOCK(2, n) {
    uint32_t w[4];
    Some<double, 2> x;
    draw_block(d, (uint64_t)block, w);
    for (int k = 0; k < 2; k++) {
      double u = fma((double)(pair(w, k) >> 11) * 0x1p-53, span, a);
      x.v[k] = u < most ? u : most;
    }
    put(y, 2 * block, n, wide, x);
  }
}

/* }====================================================== */

/*
** {======================================================
** Normal
** =======================================================
*/

/* Cosine and sine of 2 pi turn/2^32: the quadrant by integers, exactly, and
** in it the series for |x| <= pi/4 (error under 1e-8). */
static __device__ inline void circle (uint32_t turn, float *cosine,
                                      float *sine) {
  uint32_t quadrant = (turn + (1u << 29)) >> 30;
  float x = (float)(int32_t)(turn - (quadrant << 30)) * 1.46291808e-9f;
  float q = x * x;
  float s =
      x +
      x * q * (-1 / 6.0f + q * (1 / 120.0f + q * (-1 / 5040.0f + q / 362880)));
  float c = 1 + q * (-1 / 2.0f +
                     q * (1 / 24.0f + q * (-1 / 720.0f +
                                           q * (1 / 40320.0f - q / 3628800))));
  float a = quadrant & 1 ? s : c, b = quadrant & 1 ? c : s;
  *cosine = (quadrant + 1) & 2 ? -a : a;
  *sine = quadrant & 2 ? -b : b;
}

template <class T>
static __global__ void normal32 (T *y, int64_t n, bool wide, Draw d,
                                 float mean, float std) {
  EACH_BLOCK(4, n) {
    uint32_t w[4];
    Some<T, 4> x;
    draw_block(d, (uint64_t)block, w);
    for (int k = 0; k < 4; k += 2) {
      float u = (float)(int32_t)(w[k] >> 1) * 0x1p-31f + 0x1p-32f;
      float r = sqrtf(-2 * logf(u)), c, s;
      circle(w[k + 1], &c, &s);
      x.v[k] = number<T>(r * c * std + mean);
      x.v[k + 1] = number<T>(r * s * std + mean);
    }
    put(y, 4 * block, n, wide, x);
  }
}

static __global__ void normal64 (double *y, int64_t n, bool wide, Draw d,
                                 double mean, double std) {
  const double whole = 6.283185307179586;
  EACH_BLOCK(2, n) {
    uint32_t w[4];
    Some<double, 2> x;
    draw_block(d, (uint64_t)block, w);
    double u = (double)((pair(w, 0) >> 11) + 1) * 0x1p-53;
    double turn = (double)(pair(w, 1) >> 11) * 0x1p-53;
    double r = sqrt(-2 * log(u));
    x.v[0] = r * cos(whole * turn) * std + mean;
    x.v[1] = r * sin(whole * turn) * std + mean;
    put(y, 2 * block, n, wide, x);
  }
}

/* }====================================================== */

/*
** {======================================================
** Integers
** =======================================================
*/

/* v is a value of T: the op has seen to it. */
template <class T> static __device__ inline T whole (int64_t v) {
  return (T)v;
}
template <> __device__ inline half whole<half>(int64_t v) {
  return (half)(float)v;
}
template <> __device__ inline nv_bfloat16 whole<nv_bfloat16>(int64_t v) {
  return (nv_bfloat16)(float)v;
}

/* lo + span times a 64-bit fraction of one. */
template <class T>
static __global__ void integers (T *y, int64_t n, bool wide, Draw d,
                                 uint64_t lo, uint64_t span) {
  EACH_BLOCK(2, n) {
    uint32_t w[4];
    Some<T, 2> x;
    draw_block(d, (uint64_t)block, w);
    for (int k = 0; k < 2; k++)
      x.v[k] = whole<T>(
          (int64_t)(lo +
                    (uint64_t)((unsigned __int128)pair(w, k) * span >> 64)));
    put(y, 2 * block, n, wide, x);
  }
}

template <class T>
static void run_integers (Tensor *y, Draw d, uint64_t lo, uint64_t span) {
  T *to = data_of<T>(y);
  RUN(y, (integers<T>), blocks_for((y->numel + 1) / 2, THREADS), THREADS, 0,
      to, y->numel, is_aligned<T, 2>(to), d, lo, span);
}

/* }====================================================== */

/* Words from least on keep their element; scale is 0 where none does. */
template <class T>
static __global__ void drop (T *y, const T *x, int64_t n, bool wide, Draw d,
                             uint64_t least, Real<T> scale) {
  EACH_BLOCK(4, n) {
    uint32_t w[4];
    Some<T, 4> v;
    int64_t at = 4 * block;
    draw_block(d, (uint64_t)block, w);
    if (wide && at + 4 <= n) v = *(const Some<T, 4> *)(x + at);
    else
      for (int k = 0; k < 4; k++)
        v.v[k] = at + k < n ? x[at + k] : number<T>(0.0f);
    for (int k = 0; k < 4; k++) {
      Real<T> kept = (Real<T>)v.v[k] * scale;
      v.v[k] = number<T>(w[k] >= least ? kept : (Real<T>)0);
    }
    put(y, at, n, wide, v);
  }
}

/*
** {======================================================
** Launchers
** =======================================================
*/

/* Of four, or of f64 two, elements a thread. */
static unsigned blocks_of (const Tensor *y) {
  int each = y->dtype == FNN_F64 ? 2 : 4;
  return blocks_for((y->numel + each - 1) / each, THREADS);
}

extern "C" void cuda_uniform (Tensor *y, Draw d, double a, double b) {
  double most = random_most((fnn_Dtype)y->dtype, a, b);
  if (y->numel == 0) return;
  if (y->dtype == FNN_F64) {
    double *to = data_of<double>(y);
    RUN(y, uniform64, blocks_of(y), THREADS, 0, to, y->numel,
        (is_aligned<double, 2>(to)), d, a, b - a, most);
    return;
  }
  float from = (float)a, span = (float)b - from;
  WITH_FLOAT(y->dtype, T *to = data_of<T>(y);
             RUN(y, (uniform32<T>), blocks_of(y), THREADS, 0, to, y->numel,
                 (is_aligned<T, 4>(to)), d, from, span, (float)most))
}

extern "C" void cuda_normal (Tensor *y, Draw d, double mean, double std) {
  if (y->numel == 0) return;
  if (y->dtype == FNN_F64) {
    double *to = data_of<double>(y);
    RUN(y, normal64, blocks_of(y), THREADS, 0, to, y->numel,
        (is_aligned<double, 2>(to)), d, mean, std);
    return;
  }
  WITH_FLOAT(y->dtype, T *to = data_of<T>(y);
             RUN(y, (normal32<T>), blocks_of(y), THREADS, 0, to, y->numel,
                 (is_aligned<T, 4>(to)), d, (float)mean, (float)std))
}

extern "C" void cuda_randint (Tensor *y, Draw d, int64_t lo, int64_t hi) {
  uint64_t from = (uint64_t)lo, span = (uint64_t)hi - from;
  if (y->numel == 0) return;
  switch ((fnn_Dtype)y->dtype) {
    case FNN_BOOL: run_integers<bool>(y, d, from, span); break;
    case FNN_U8: run_integers<uint8_t>(y, d, from, span); break;
    case FNN_I32: run_integers<int32_t>(y, d, from, span); break;
    case FNN_I64: run_integers<int64_t>(y, d, from, span); break;
    default: WITH_FLOAT(y->dtype, run_integers<T>(y, d, from, span))
  }
}

/* The CPU's f64 takes a word an element too. */
extern "C" void cuda_dropout (Tensor *y, const Tensor *x, double p, Draw d) {
  uint64_t least = (uint64_t)floor(p * 0x1p32);
  double scale = p < 1 ? 1 / (1 - p) : 0;
  if (y->numel == 0) return;
  WITH_FLOAT(y->dtype, T *to = data_of<T>(y); const T *from = data_of<T>(x);
             bool wide = is_aligned<T, 4>(to) && is_aligned<T, 4>(from);
             RUN(y, (drop<T>), blocks_for((y->numel + 3) / 4, THREADS),
                 THREADS, 0, to, from, y->numel, wide, d, least,
                 (Real<T>)scale))
}

/* }====================================================== */
