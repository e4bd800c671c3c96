/* run.c - short runs of elements: gathered, converted and scattered.
**
** Conversions go through the lane of the source (f32, f64 or i64).  A float
** that no int64 holds, NaN too, becomes the least int64, as x86 has it. */

#include "sweep.h"

#ifdef CPU_ANY

#if defined(__SSE2__)
#include <immintrin.h>
#endif

void ONCE (run_stream)(void *to, const void *from, size_t bytes) {
  char *y = to;
  const char *x = from;
  size_t i = 0;
#if defined(__AVX__)
  if ((uintptr_t)y % 32 == 0)
    for (; i + 32 <= bytes; i += 32)
      _mm256_stream_si256((__m256i *)(y + i),
                          _mm256_loadu_si256((const __m256i *)(x + i)));
#elif defined(__SSE2__)
  if ((uintptr_t)y % 16 == 0)
    for (; i + 16 <= bytes; i += 16)
      _mm_stream_si128((__m128i *)(y + i),
                       _mm_loadu_si128((const __m128i *)(x + i)));
#endif
  memcpy(y + i, x + i, bytes - i);
}

void ONCE (run_fence)(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/*
** {======================================================
** The storage floats
** =======================================================
*/

typedef union Bits {
  float f;
  uint32_t u;
} Bits;

/* The fields of a half shifted into a float's are 2^112 too small. */
static inline float half_load (uint16_t h) {
  Bits v = { .u = (uint32_t)(h & 0x7fffu) << 13 };
  Bits big = { .u = v.u | 0x7f800000u };
  v.f *= 0x1p112f;
  v.u = (h & 0x7c00u) == 0x7c00u ? big.u : v.u;
  v.u |= (uint32_t)(h & 0x8000u) << 16;
  return v.f;
}

/* Rounds to nearest even: in the integers for normal results, by the addition
** of 1/2 (whose last place is a half's least subnormal) for subnormal ones. */
static inline uint16_t half_store (float f) {
  Bits v = { .f = f }, small;
  uint32_t sign = v.u & 0x80000000u, a = v.u ^ sign;
  small.u = a;
  small.f += 0.5f;
  uint32_t low = small.u - 0x3f000000u;
  uint32_t normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
  uint32_t h = a < 0x38800000u ? low : normal;
  h = a >= 0x47800000u ? 0x7c00u : h;
  h = a > 0x7f800000u ? 0x7e00u : h;
  return (uint16_t)(h | sign >> 16);
}

static inline float brain_load (uint16_t h) {
  return ((Bits){ .u = (uint32_t)h << 16 }).f;
}

static inline uint16_t brain_store (float f) {
  Bits v = { .f = f };
  uint32_t r = (v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16;
  return (uint16_t)((v.u & 0x7fffffffu) > 0x7f800000u ? v.u >> 16 | 64u : r);
}

/* }====================================================== */

/*
** {======================================================
** Loads into a lane and stores out of one
** =======================================================
*/

static inline int64_t whole (double v) {
  return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

/* One loop for a dense run, one for a reversed one and one for any stride. */
#define LOAD(name, from, to, e) \
  static void name(to *y, const from *p, int64_t stride, int64_t n) { \
    if (stride == 1) { \
      LANES for (int64_t i = 0; i < n; i++) { \
        from v = p[i]; \
        y[i] = (to)(e); \
      } \
    } else if (stride == -1) { \
      LANES for (int64_t i = 0; i < n; i++) { \
        from v = p[-i]; \
        y[i] = (to)(e); \
      } \
    } else \
      for (int64_t i = 0; i < n; i++) { \
        from v = p[i * stride]; \
        y[i] = (to)(e); \
      } \
  }

#define STORE(name, from, to, e) \
  static void name(to *p, int64_t stride, const from *x, int64_t n) { \
    if (stride == 1) { \
      LANES for (int64_t i = 0; i < n; i++) { \
        from v = x[i]; \
        p[i] = (to)(e); \
      } \
    } else \
      for (int64_t i = 0; i < n; i++) { \
        from v = x[i]; \
        p[i * stride] = (to)(e); \
      } \
  }

LOAD(load_8, uint8_t, uint8_t, v)
LOAD(load_16, uint16_t, uint16_t, v)
LOAD(load_32, uint32_t, uint32_t, v)
LOAD(load_64, uint64_t, uint64_t, v)
STORE(store_8, uint8_t, uint8_t, v)
STORE(store_16, uint16_t, uint16_t, v)
STORE(store_32, uint32_t, uint32_t, v)
STORE(store_64, uint64_t, uint64_t, v)

LOAD(load_bool, uint8_t, int64_t, v != 0)
LOAD(load_u8, uint8_t, int64_t, v)
LOAD(load_i32, int32_t, int64_t, v)
LOAD(load_f16, uint16_t, float, half_load(v))
LOAD(load_bf16, uint16_t, float, brain_load(v))

/* Dense halves by the instructions there are for them. */
#if defined(__F16C__)
static void halve (uint16_t *p, const float *x, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(p + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
  for (; i < n; i++) p[i] = half_store(x[i]);
}

static void widen (float *y, const uint16_t *p, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(
        y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + i))));
  for (; i < n; i++) y[i] = half_load(p[i]);
}
#else
static void halve (uint16_t *p, const float *x, int64_t n) {
  LANES for (int64_t i = 0; i < n; i++) p[i] = half_store(x[i]);
}

static void widen (float *y, const uint16_t *p, int64_t n) {
  LANES for (int64_t i = 0; i < n; i++) y[i] = half_load(p[i]);
}
#endif

#define STORES(lane, type, integer) \
  STORE(lane##_bool, type, uint8_t, v != 0) \
  STORE(lane##_u8, type, uint8_t, integer) \
  STORE(lane##_i32, type, int32_t, integer) \
  STORE(lane##_i64, type, int64_t, integer) \
  STORE(lane##_f16, type, uint16_t, half_store((float)v)) \
  STORE(lane##_bf16, type, uint16_t, brain_store((float)v)) \
  STORE(lane##_f32, type, float, v) \
  STORE(lane##_f64, type, double, v)

STORES(f32, float, whole(v))
STORES(f64, double, whole(v))
STORES(i64, int64_t, v)

/* }====================================================== */

/* n elements of the same size, stride apart, into a dense run. */
static void gather (void *y, const void *p, size_t size, int64_t stride,
                    int64_t n) {
  switch (size) {
    case 1: load_8(y, p, stride, n); break;
    case 2: load_16(y, p, stride, n); break;
    case 4: load_32(y, p, stride, n); break;
    default: load_64(y, p, stride, n);
  }
}

static void scatter (void *p, const void *x, size_t size, int64_t stride,
                     int64_t n) {
  switch (size) {
    case 1: store_8(p, stride, x, n); break;
    case 2: store_16(p, stride, x, n); break;
    case 4: store_32(p, stride, x, n); break;
    default: store_64(p, stride, x, n);
  }
}

const void *ONCE (run_load)(void *buf, const void *p, fnn_Dtype t,
                            fnn_Dtype lane, int64_t stride, int64_t n) {
  if (t == lane) {
    if (stride == 1) return p;
    gather(buf, p, fnn_dtype_size(t), stride, n);
  } else switch (t) {
      case FNN_BOOL: load_bool(buf, p, stride, n); break;
      case FNN_U8: load_u8(buf, p, stride, n); break;
      case FNN_I32: load_i32(buf, p, stride, n); break;
      case FNN_F16:
        if (stride == 1) widen(buf, p, n);
        else load_f16(buf, p, stride, n);
        break;
      default: load_bf16(buf, p, stride, n);
    }
  return buf;
}

#define STORE_SWITCH(lane) \
  switch (t) { \
    case FNN_BOOL: lane##_bool(p, stride, buf, n); break; \
    case FNN_U8: lane##_u8(p, stride, buf, n); break; \
    case FNN_I32: lane##_i32(p, stride, buf, n); break; \
    case FNN_I64: lane##_i64(p, stride, buf, n); break; \
    case FNN_F16: lane##_f16(p, stride, buf, n); break; \
    case FNN_BF16: lane##_bf16(p, stride, buf, n); break; \
    case FNN_F32: lane##_f32(p, stride, buf, n); break; \
    case FNN_F64: lane##_f64(p, stride, buf, n); break; \
  }

void ONCE (run_store)(void *p, fnn_Dtype t, int64_t stride, const void *buf,
                      fnn_Dtype lane, int64_t n) {
  if (t == lane) scatter(p, buf, fnn_dtype_size(t), stride, n);
  else if (lane == FNN_F32 && t == FNN_F16 && stride == 1) halve(p, buf, n);
  else if (lane == FNN_F32) STORE_SWITCH(f32)
  else if (lane == FNN_F64) STORE_SWITCH(f64)
  else STORE_SWITCH(i64)
}

#endif
