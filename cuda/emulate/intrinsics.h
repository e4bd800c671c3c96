/* intrinsics.h - the functions of CUDA's device library that a host has not.
** Those that approximate on the card are exact here: tests compare with a
** tolerance. */

#ifndef emulate_intrinsics_h
#define emulate_intrinsics_h

#include <stdlib.h> /* C++'s own abs */

#define EMU_INLINE static inline

/* glibc declares these names itself. */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __fma_rn(a, b, c) fma((double)(a), (double)(b), (double)(c))

/* And newer ones these. */
#define rsqrt(x) emu_rsqrt(x)
#define rsqrtf(x) emu_rsqrtf(x)
#define sinpi emu_sinpi
#define sinpif emu_sinpif
#define cospi emu_cospi
#define cospif emu_cospif

EMU_INLINE float rsqrtf (float x) { return 1 / sqrtf(x); }
EMU_INLINE double rsqrt (double x) { return 1 / sqrt(x); }
EMU_INLINE float rsqrt (float x) { return 1 / sqrtf(x); }
EMU_INLINE float normcdff (float x) { return 0.5f * erfcf(x * -0.70710678f); }
EMU_INLINE double normcdf (double x) {
  return 0.5 * erfc(x * -0.70710678118654752440);
}
EMU_INLINE float sinpif (float x) { return (float)sin(M_PI * x); }
EMU_INLINE float cospif (float x) { return (float)cos(M_PI * x); }
EMU_INLINE double sinpi (double x) { return sin(M_PI * x); }
EMU_INLINE double cospi (double x) { return cos(M_PI * x); }
EMU_INLINE void sincospif (float x, float *s, float *c) {
  *s = sinpif(x);
  *c = cospif(x);
}
EMU_INLINE void sincospi (double x, double *s, double *c) {
  *s = sinpi(x);
  *c = cospi(x);
}
EMU_INLINE float rcbrtf (float x) { return 1 / cbrtf(x); }
EMU_INLINE float rhypotf (float x, float y) { return 1 / hypotf(x, y); }

EMU_INLINE float __fadd_rn (float a, float b) { return a + b; }
EMU_INLINE float __fsub_rn (float a, float b) { return a - b; }
EMU_INLINE float __fmul_rn (float a, float b) { return a * b; }
EMU_INLINE float __fdiv_rn (float a, float b) { return a / b; }
EMU_INLINE float __fdividef (float a, float b) { return a / b; }
EMU_INLINE float __frcp_rn (float a) { return 1 / a; }
EMU_INLINE float __fsqrt_rn (float a) { return sqrtf(a); }
EMU_INLINE float __frsqrt_rn (float a) { return 1 / sqrtf(a); }
EMU_INLINE double __dadd_rn (double a, double b) { return a + b; }
EMU_INLINE double __dsub_rn (double a, double b) { return a - b; }
EMU_INLINE double __dmul_rn (double a, double b) { return a * b; }
EMU_INLINE double __ddiv_rn (double a, double b) { return a / b; }
EMU_INLINE double __dsqrt_rn (double a) { return sqrt(a); }
EMU_INLINE float __saturatef (float x) { return x > 0 ? x < 1 ? x : 1 : 0; }

/* min and max for every pair of types that CUDA has them for; those of floats
** give the number where one is a NaN. */
#define EMU_MIN_MAX(R, A, B) \
  EMU_INLINE R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  EMU_INLINE R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }

EMU_MIN_MAX(int, int, int)
EMU_MIN_MAX(unsigned, unsigned, unsigned)
EMU_MIN_MAX(unsigned, int, unsigned)
EMU_MIN_MAX(unsigned, unsigned, int)
EMU_MIN_MAX(long, long, long)
EMU_MIN_MAX(unsigned long, unsigned long, unsigned long)
EMU_MIN_MAX(unsigned long, long, unsigned long)
EMU_MIN_MAX(unsigned long, unsigned long, long)
EMU_MIN_MAX(long long, long long, long long)
EMU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
EMU_MIN_MAX(unsigned long long, long long, unsigned long long)
EMU_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef EMU_MIN_MAX

EMU_INLINE float min (float a, float b) { return fminf(a, b); }
EMU_INLINE float max (float a, float b) { return fmaxf(a, b); }
EMU_INLINE double min (double a, double b) { return fmin(a, b); }
EMU_INLINE double max (double a, double b) { return fmax(a, b); }
EMU_INLINE double min (float a, double b) { return fmin(a, b); }
EMU_INLINE double max (float a, double b) { return fmax(a, b); }
EMU_INLINE double min (double a, float b) { return fmin(a, b); }
EMU_INLINE double max (double a, float b) { return fmax(a, b); }

/* The same bits as another type. */
#define EMU_AS(name, To, From) \
  EMU_INLINE To name(From v) { \
    To r; \
    static_assert(sizeof r == sizeof v, #name); \
    memcpy(&r, &v, sizeof r); \
    return r; \
  }

EMU_AS(__float_as_uint, unsigned, float)
EMU_AS(__float_as_int, int, float)
EMU_AS(__uint_as_float, float, unsigned)
EMU_AS(__int_as_float, float, int)
EMU_AS(__double_as_longlong, long long, double)
EMU_AS(__longlong_as_double, double, long long)
#undef EMU_AS

EMU_INLINE int __double2hiint (double d) {
  return (int)(__double_as_longlong(d) >> 32);
}
EMU_INLINE int __double2loint (double d) {
  return (int)__double_as_longlong(d);
}
EMU_INLINE double __hiloint2double (int hi, int lo) {
  return __longlong_as_double(
      (long long)((uint64_t)(uint32_t)hi << 32 | (uint32_t)lo));
}

/* Numbers to integers: to nearest even, to zero, down, up.  The card gives
** the nearest number of the type where there is none, and 0 for NaN. */
template <class To> To emu_integer (double v) {
  const To lowest = (To)-1 < 0 ? (To)((To)1 << (sizeof(To) * 8 - 1)) : 0;
  const To most = (To)~lowest;
  if (v != v) return 0;
  if (v <= (double)lowest) return lowest;
  if (v >= (double)most) return most;
  return (To)v;
}

#define EMU_TO(word, To) \
  EMU_INLINE To __float2##word##_rn(float v) { \
    return emu_integer<To>(rint(v)); \
  } \
  EMU_INLINE To __float2##word##_rz(float v) { return emu_integer<To>(v); } \
  EMU_INLINE To __float2##word##_rd(float v) { \
    return emu_integer<To>(floor(v)); \
  } \
  EMU_INLINE To __float2##word##_ru(float v) { \
    return emu_integer<To>(ceil(v)); \
  } \
  EMU_INLINE To __double2##word##_rn(double v) { \
    return emu_integer<To>(rint(v)); \
  } \
  EMU_INLINE To __double2##word##_rz(double v) { return emu_integer<To>(v); } \
  EMU_INLINE float __##word##2float_rn(To v) { return (float)v; } \
  EMU_INLINE double __##word##2double_rn(To v) { return (double)v; }

EMU_TO(int, int)
EMU_TO(uint, unsigned)
EMU_TO(ll, long long)
EMU_TO(ull, unsigned long long)
#undef EMU_TO

EMU_INLINE float __double2float_rn (double v) { return (float)v; }

/* Bits. */
EMU_INLINE int __popc (unsigned x) { return __builtin_popcount(x); }
EMU_INLINE int __popcll (unsigned long long x) {
  return __builtin_popcountll(x);
}
EMU_INLINE int __ffs (int x) { return __builtin_ffs(x); }
EMU_INLINE int __ffsll (long long x) { return __builtin_ffsll(x); }
EMU_INLINE int __clz (int x) { return x ? __builtin_clz((unsigned)x) : 32; }
EMU_INLINE int __clzll (long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
EMU_INLINE unsigned __brev (unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
EMU_INLINE unsigned long long __brevll (unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 |
         __brev((unsigned)(x >> 32));
}
EMU_INLINE unsigned __byte_perm (unsigned a, unsigned b, unsigned s) {
  uint64_t ab = (uint64_t)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned pick = s >> 4 * i, byte = (unsigned)(ab >> 8 * (pick & 7)) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0; /* its sign, eight times */
    r |= byte << 8 * i;
  }
  return r;
}
EMU_INLINE unsigned __funnelshift_l (unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((uint64_t)hi << 32 | lo) << (n & 31) >> 32);
}
EMU_INLINE unsigned __funnelshift_r (unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((uint64_t)hi << 32 | lo) >> (n & 31));
}

/* The upper half of a product. */
EMU_INLINE int __mulhi (int a, int b) { return (int)((int64_t)a * b >> 32); }
EMU_INLINE unsigned __umulhi (unsigned a, unsigned b) {
  return (unsigned)((uint64_t)a * b >> 32);
}
EMU_INLINE long long __mul64hi (long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
EMU_INLINE unsigned long long __umul64hi (unsigned long long a,
                                          unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
EMU_INLINE int __mul24 (int a, int b) {
  return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8));
}

/* Loads and stores with a hint for the caches. */
#define EMU_LOAD(name) \
  template <class T> static inline T name(const T *p) { return *p; }
#define EMU_STORE(name) \
  template <class T> static inline void name(T *p, T v) { *p = v; }

EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldcv)
EMU_LOAD(__ldlu)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwb)
EMU_STORE(__stwt)
#undef EMU_LOAD
#undef EMU_STORE
#undef EMU_INLINE

#endif
