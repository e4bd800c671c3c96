/* simd.h - the widest vector of `real` that the compilation's instruction set
** has, on the compilers' vector types: 16 bytes for SSE2 and NEON, 32 for
** AVX2, 64 for AVX-512.  Arithmetic is the operators'; a real with a vector
** broadcasts.  Only what no operator says stands here. */

#ifndef simd_h
#define simd_h

#include "cpu.h"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

#define VEC_INLINE static inline __attribute__((always_inline, unused))

typedef real vec __attribute__((vector_size(VEC_BYTES)));
typedef real vec_unaligned
    __attribute__((vector_size(VEC_BYTES), aligned(sizeof(real)), may_alias));

/* Bits of a vec, for masks: what a comparison of two gives. */
#ifdef CPU_DOUBLE
typedef int64_t vec_bits __attribute__((vector_size(VEC_BYTES)));
#else
typedef int32_t vec_bits __attribute__((vector_size(VEC_BYTES)));
#endif

enum { VEC = VEC_BYTES / sizeof(real) }; /* lanes */

VEC_INLINE vec vec_load (const real *p) { return *(const vec_unaligned *)p; }
VEC_INLINE void vec_store (real *p, vec v) { *(vec_unaligned *)p = v; }
VEC_INLINE vec vec_set (real x) { return x - (vec){ 0 }; }

/* The first n < VEC lanes only; no other memory is touched. */
VEC_INLINE vec vec_load_part (const real *p, int64_t n) {
#if VEC_BYTES == 64 && defined(CPU_DOUBLE)
  return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#elif VEC_BYTES == 64
  return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  vec v = { 0 };
  for (int i = 0; i < VEC - 1; i++)
    if (i < n) v[i] = p[i];
  return v;
#endif
}

VEC_INLINE void vec_store_part (real *p, vec v, int64_t n) {
#if VEC_BYTES == 64 && defined(CPU_DOUBLE)
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif VEC_BYTES == 64
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
  for (int i = 0; i < VEC - 1; i++)
    if (i < n) p[i] = v[i];
#endif
}

/* max(v, 0) that keeps NaN. */
VEC_INLINE vec vec_relu (vec v) {
  return (vec)((vec_bits)v & ~(vec_bits)(v < 0));
}

/* The larger of each pair of lanes; b's where either is NaN. */
VEC_INLINE vec vec_max (vec a, vec b) {
#if VEC_BYTES == 64 && defined(CPU_DOUBLE)
  return (vec)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif VEC_BYTES == 64
  return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif VEC_BYTES == 32 && defined(__F16C__) && defined(CPU_DOUBLE)
  return (vec)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif VEC_BYTES == 32 && defined(__F16C__)
  return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
  vec_bits more = (vec_bits)(a > b);
  return (vec)(((vec_bits)a & more) | ((vec_bits)b & ~more));
#endif
}

/* Zero in the lanes where v is minus infinity. */
VEC_INLINE vec vec_finite_floor (vec v) {
  return (vec)((vec_bits)v & ~(vec_bits)(v == vec_set(-(real)INFINITY)));
}

/* 2^x - tiny for x <= 0 or little above, 0 where that would be negative; NaN
** of NaN.  tiny, which no other result notices, is so large that products with
** what is left are no subnormal numbers, which are slow.
** x is rounded to an integer by a number so large that the integer is left in
** the low bits of the sum; the rest, at most 1/2, goes through a polynomial, of
** minimal error for floats (9e-8) and Taylor's for doubles. */
VEC_INLINE vec vec_exp2 (vec x) {
#ifdef CPU_DOUBLE
  const real magic = 6755399441055744.0; /* 1.5 2^52 */
  static const real c[] = { 1 / 479001600.0,
                            1 / 39916800.0,
                            1 / 3628800.0,
                            1 / 362880.0,
                            1 / 40320.0,
                            1 / 5040.0,
                            1 / 720.0,
                            1 / 120.0,
                            1 / 24.0,
                            1 / 6.0,
                            0.5,
                            1,
                            1 };
  const real unit = 0.69314718055994530942;
  vec p = vec_set(1 / 6227020800.0);
  const real tiny = 0x1p-900;
  enum { BIAS = 1023, SHIFT = 52, LEAST = -900 };
#else
  const real magic = 12582912; /* 1.5 2^23 */
  static const real c[] = { 1.339887e-3f, 9.618437e-3f, 5.550332e-2f,
                            2.402265e-1f, 6.931472e-1f, 1 };
  const real unit = 1;
  vec p = vec_set(1.535336e-4f);
  const real tiny = 0x1p-90f;
  enum { BIAS = 127, SHIFT = 23, LEAST = -90 };
#endif
  x = vec_max(vec_set(LEAST), x);
  vec t = x + magic, r = (x - (t - magic)) * unit;
  _Pragma("GCC unroll 16") for (int i = 0; i < countof(c); i++) p =
      p * r + c[i];
  return p * (vec)(((vec_bits)t + BIAS) << SHIFT) - tiny;
}

/* Sum of the lanes, always in the same order. */
VEC_INLINE real vec_sum (vec v) {
  real part[VEC];
  vec_store(part, v);
  for (int width = VEC / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) part[i] += part[i + width];
  return part[0];
}

/* Makes the compiler hold v in a register here, so that a load is not folded
** into each of its uses. */
#if defined(__AVX512F__)
#define VEC_KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__x86_64__)
#define VEC_KEEP(v) __asm__ volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define VEC_KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define VEC_KEEP(v) ((void)0)
#endif
/* Makes the compiler forget what it knows of the pointer or integer x. */
#define VEC_HIDE(x) __asm__("" : "+r"(x))

/*
** {======================================================
** Storage dtypes, widened as they are read
** =======================================================
*/

/* What a source operand holds.  The double pass knows only reals. */
typedef enum Source { SOURCE_REAL, SOURCE_F16, SOURCE_BF16 } Source;

VEC_INLINE Source source_of (const Tensor *x) {
  return x->dtype == FNN_F16    ? SOURCE_F16
         : x->dtype == FNN_BF16 ? SOURCE_BF16
                                : SOURCE_REAL;
}

/* In the double pass true whatever s: no other code is made. */
VEC_INLINE bool source_is_real (Source s) {
  return sizeof(real) == 8 || s == SOURCE_REAL;
}

VEC_INLINE real source_get (Source s, const void *p, int64_t i) {
  if (source_is_real(s)) return ((const real *)p)[i];
  uint16_t h = ((const uint16_t *)p)[i];
  return s == SOURCE_F16 ? (real)f16_to_f32(h) : (real)bf16_to_f32(h);
}

VEC_INLINE const void *source_at (Source s, const void *p, int64_t i) {
  return (const char *)p + i * (int64_t)(source_is_real(s) ? sizeof(real) : 2);
}

#ifndef CPU_DOUBLE
typedef uint16_t vec_half
    __attribute__((vector_size(VEC_BYTES / 2), aligned(2), may_alias));
typedef uint32_t vec_word __attribute__((vector_size(VEC_BYTES)));

VEC_INLINE vec vec_from_bf16 (const uint16_t *p) {
  return (vec)(__builtin_convertvector(*(const vec_half *)p, vec_word) << 16);
}

/* Without an instruction for it: the exponent is moved by a product, which
** also makes subnormals right; infinity and NaN get theirs by hand. */
VEC_INLINE vec vec_from_f16 (const uint16_t *p) {
#if VEC_BYTES == 64
  return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif defined(__F16C__)
  return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#elif defined(__aarch64__)
  return (vec)vcvt_f32_f16((float16x4_t) * (const vec_half *)p);
#else
  vec_word h = __builtin_convertvector(*(const vec_half *)p, vec_word);
  vec_word sign = (h & 0x8000) << 16;
  vec_word special = (vec_word)((h & 0x7c00) == 0x7c00) & 0x7f800000;
  vec scaled = (vec)((h & 0x7fff) << 13) * 0x1p112f;
  return (vec)((vec_word)scaled | special | sign);
#endif
}
#endif

VEC_INLINE vec vec_from (Source s, const void *p, int64_t i) {
#ifndef CPU_DOUBLE
  if (s == SOURCE_F16) return vec_from_f16((const uint16_t *)p + i);
  if (s == SOURCE_BF16) return vec_from_bf16((const uint16_t *)p + i);
#endif
  (void)s;
  return vec_load((const real *)p + i);
}

/* }====================================================== */

/*
** {======================================================
** Transposition in registers
** =======================================================
*/

/* Two instructions per pair of rows.  EVEN and ODD split a pair by 16-byte
** blocks: even blocks of a, then of b.  LOW and HIGH interleave the lower and
** the upper halves within each block. */
#define VEC_PICK(a, b, ...) PICK(vec_bits, a, b, __VA_ARGS__)
#if VEC_BYTES == 64 && defined(CPU_DOUBLE)
#define VEC_EVEN(a, b) VEC_PICK(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define VEC_ODD(a, b) VEC_PICK(a, b, 2, 3, 6, 7, 10, 11, 14, 15)
#define VEC_LOW(a, b) VEC_PICK(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define VEC_HIGH(a, b) VEC_PICK(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#elif VEC_BYTES == 64
#define VEC_EVEN(a, b) \
  VEC_PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define VEC_ODD(a, b) \
  VEC_PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#define VEC_LOW(a, b) \
  VEC_PICK(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define VEC_HIGH(a, b) \
  VEC_PICK(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#elif VEC_BYTES == 32 && defined(CPU_DOUBLE)
#define VEC_EVEN(a, b) VEC_PICK(a, b, 0, 1, 4, 5)
#define VEC_ODD(a, b) VEC_PICK(a, b, 2, 3, 6, 7)
#define VEC_LOW(a, b) VEC_PICK(a, b, 0, 4, 2, 6)
#define VEC_HIGH(a, b) VEC_PICK(a, b, 1, 5, 3, 7)
#elif VEC_BYTES == 32
#define VEC_EVEN(a, b) VEC_PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define VEC_ODD(a, b) VEC_PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define VEC_LOW(a, b) VEC_PICK(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define VEC_HIGH(a, b) VEC_PICK(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#elif defined(CPU_DOUBLE)
#define VEC_LOW(a, b) VEC_PICK(a, b, 0, 2)
#define VEC_HIGH(a, b) VEC_PICK(a, b, 1, 3)
#else
#define VEC_LOW(a, b) VEC_PICK(a, b, 0, 4, 1, 5)
#define VEC_HIGH(a, b) VEC_PICK(a, b, 2, 6, 3, 7)
#endif

enum { VEC_BLOCKS = VEC_BYTES / 16, VEC_SIDE = 16 / sizeof(real) };

/* One step of a perfect shuffle of n rows; log2(n) of them transpose the n
** by n blocks (EVEN, ODD) or elements (LOW, HIGH). */
#define VEC_UNROLL _Pragma("GCC unroll 16")

/* The VEC by VEC square in r becomes its transpose: first its 16-byte blocks
** trade places, then each square of blocks is transposed in itself. */
VEC_INLINE void vec_transpose (vec *r) {
  vec t[VEC];
#if VEC_BYTES > 16
  VEC_UNROLL
  for (int step = 1; step < VEC_BLOCKS; step *= 2) {
    VEC_UNROLL
    for (int i = 0; i < VEC; i++) t[i] = r[i];
    VEC_UNROLL
    for (int i = 0; i < VEC; i++)
      if ((i / VEC_SIDE & step) == 0) {
        vec a = t[i], b = t[i + step * VEC_SIDE];
        r[i] = VEC_EVEN(a, b);
        r[i + step * VEC_SIDE] = VEC_ODD(a, b);
      }
  }
#endif
  VEC_UNROLL
  for (int g = 0; g < VEC; g += VEC_SIDE) {
    VEC_UNROLL
    for (int step = 1; step < VEC_SIDE; step *= 2) {
      VEC_UNROLL
      for (int i = 0; i < VEC_SIDE; i++) t[i] = r[g + i];
      VEC_UNROLL
      for (int i = 0; i < VEC_SIDE / 2; i++) {
        r[g + 2 * i] = VEC_LOW(t[i], t[i + VEC_SIDE / 2]);
        r[g + 2 * i + 1] = VEC_HIGH(t[i], t[i + VEC_SIDE / 2]);
      }
    }
  }
}

/* Lane i is the sum of r[i]'s lanes, in the order of vec_sum; r is lost. */
VEC_INLINE vec vec_sums (vec *r) {
  vec_transpose(r);
  VEC_UNROLL
  for (int width = VEC / 2; width > 0; width /= 2) {
    VEC_UNROLL
    for (int i = 0; i < width; i++) r[i] += r[i + width];
  }
  return r[0];
}

/* }====================================================== */

#endif
