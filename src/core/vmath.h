/* vmath.h - the words in which map.def, zip.def, reduce.def and loss.def are
** written.
**
** Scalar inline functions without branches, tables or calls, so that a loop
** over one becomes vector code under gcc and clang for any instruction set.
** Each has a float body here and a double body, which is the C library's but
** for those that have one here: exp, log, log1p 1 ulp; expm1 1.5; tanh 2;
** sigmoid 2.5.
** Accuracy of the float bodies, in units in the last place over their whole
** range, checked by tests/math_test.c: pow 0.6; sin, cos 0.8; exp, exp2, log,
** log1p 1; log2, log10, tanh, expm1, acos, cosh 1.5; tan, atan, sinh 2; erf,
** asin 2.5; normal_cdf 4e-7 of 1.
** sin, cos and tan hold for |x| <= TRIG_FAR; kernels take the C library's for
** what is further.
**
** Polynomials are near-minimax fits made by scripts/fit_vmath.py; the
** reductions are Cody and Waite's.  At the end the
** words proper: exp(x) means the body for `real`. */

#ifndef vmath_h
#define vmath_h

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TRIG_FAR 1e5f

/*
** {======================================================
** Bits
** =======================================================
*/

typedef union FloatBits {
  float f;
  uint32_t u;
} FloatBits;

static inline uint32_t float_bits (float x) {
  return ((FloatBits){ .f = x }).u;
}

static inline float float_of (uint32_t u) { return ((FloatBits){ .u = u }).f; }

static inline float abs_f32 (float x) {
  return float_of(float_bits(x) & 0x7fffffffu);
}

/* |x| with the sign of s; x must not be negative. */
static inline float sign_of_f32 (float x, float s) {
  return float_of(float_bits(x) | (float_bits(s) & 0x80000000u));
}

/* 2^k for -126 <= k <= 127. */
static inline float pow2_f32 (int32_t k) {
  return float_of((uint32_t)(k + 127) << 23);
}

typedef union DoubleBits {
  double f;
  int64_t i;
  uint64_t u;
} DoubleBits;

static inline uint64_t double_bits (double x) {
  return ((DoubleBits){ .f = x }).u;
}

static inline double double_of (uint64_t u) {
  return ((DoubleBits){ .u = u }).f;
}

/* 2^k for -1022 <= k <= 1023; k may have wrapped around. */
static inline double pow2_f64 (uint64_t k) {
  return double_of((k + 1023) << 52);
}

/* }====================================================== */

/*
** {======================================================
** Exponentials.  x = k log 2 + r with |r| <= log(2) / 2
** =======================================================
*/

/* Adding it leaves the nearest integer in the low bits of a float. */
#define ROUND_MAGIC 12582912.0f /* 1.5 2^23 */

/* k, the nearest integer to t, and *n the same as a float. */
static inline int32_t round_f32 (float t, float *n) {
  float m = t + ROUND_MAGIC;
  *n = m - ROUND_MAGIC;
  return (int32_t)(float_bits(m) - 0x4b400000u);
}

/* e^r - 1 */
static inline float expm1_poly (float r) {
  float p = 1.979014050e-4f;
  p = p * r + 1.394486870e-3f;
  p = p * r + 8.333498612e-3f;
  p = p * r + 4.166629165e-2f;
  p = p * r + 1.666666567e-1f;
  p = p * r + 0.5f;
  return p * (r * r) + r;
}

/* p 2^k in two steps, so that subnormal results round once. */
static inline float scale_f32 (float p, int32_t k) {
  int32_t h = k >> 1;
  return p * pow2_f32(h) * pow2_f32(k - h);
}

/* x - n log(2), n a small integer: the first part has 9 bits. */
static inline float less_logs (float x, float n) {
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}

/* e^x 2^extra */
static inline float exp_scaled_f32 (float x, int32_t extra) {
  x = x < -104.0f ? -104.0f : x; /* NaN passes both */
  x = x > 90.0f ? 90.0f : x;
  float n;
  int32_t k = round_f32(x * 1.44269504f, &n);
  return scale_f32(1.0f + expm1_poly(less_logs(x, n)), k + extra);
}

/* e^x for -80 <= x <= 80, without what the ends of the range need. */
static inline float exp_mid_f32 (float x) {
  float n;
  int32_t k = round_f32(x * 1.44269504f, &n);
  return (1.0f + expm1_poly(less_logs(x, n))) * pow2_f32(k);
}

static inline float exp_f32 (float x) { return exp_scaled_f32(x, 0); }

/* e^x with 0 for what is subnormal and, from 2^127.5 on, infinity: these two
** are what the bits of 2^k come to for k = -127 and 128. */
static inline float exp_flush_f32 (float x) {
  x = x < -88.0f ? -88.0f : x;
  return exp_mid_f32(x > 89.0f ? 89.0f : x);
}

static inline float exp2_f32 (float x) {
  x = x < -151.0f ? -151.0f : x;
  x = x > 129.0f ? 129.0f : x;
  float n;
  int32_t k = round_f32(x, &n);
  return scale_f32(1.0f + expm1_poly((x - n) * 0.693147181f), k);
}

static inline float expm1_f32 (float x) {
  float c = x < -20.0f ? -20.0f : x;
  c = c > 90.0f ? 90.0f : c;
  float n;
  int32_t k = round_f32(c * 1.44269504f, &n);
  float p = expm1_poly(less_logs(c, n));
  float s = pow2_f32(k < 127 ? k : 127);
  float y = p * s + (s - 1.0f);
  return c > 80.0f ? scale_f32(1.0f + p, k) : y;
}

/* An odd polynomial, and 1 - 2 / (e^2|x| + 1) where that loses nothing. */
static inline float tanh_f32 (float x) {
  float a = abs_f32(x), s = a * a;
  float p = -5.717048887e-3f;
  p = p * s + 2.065059170e-2f;
  p = p * s - 5.374350026e-2f;
  p = p * s + 1.333149076e-1f;
  p = p * s - 3.333328366e-1f;
  p = p * (s * a) + a;
  a = a > 10.0f ? 10.0f : a;
  float q = 1.0f - 2.0f / (exp_mid_f32(a + a) + 1.0f);
  return sign_of_f32(a < 0.625f ? p : q, x);
}

static inline float sigmoid_f32 (float x) {
  return 1.0f / (1.0f + exp_flush_f32(-x));
}

static inline float sinh_f32 (float x) {
  float a = abs_f32(x), q = expm1_f32(a);
  float y = 0.5f * (q + q / (q + 1.0f));
  return sign_of_f32(a > 80.0f ? exp_scaled_f32(a, -1) : y, x);
}

static inline float cosh_f32 (float x) {
  float h = exp_scaled_f32(abs_f32(x), -1);
  return h + 0.25f / h;
}

/* }====================================================== */

/*
** {======================================================
** Logarithms.  x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)
** =======================================================
*/

/* log(1 + f) - f */
static inline float log_poly (float f) {
  float p = 6.915108860e-2f;
  p = p * f - 1.179384440e-1f;
  p = p * f + 1.187516376e-1f;
  p = p * f - 1.238384768e-1f;
  p = p * f + 1.421831995e-1f;
  p = p * f - 1.666926742e-1f;
  p = p * f + 2.000224292e-1f;
  p = p * f - 2.499998659e-1f;
  p = p * f + 3.333331048e-1f;
  float s = f * f;
  return f * s * p - 0.5f * s;
}

/* f, and *e as a float; x positive and finite. */
static inline float log_split (float x, float *e) {
  float tiny = x < 1.17549435e-38f ? 23.0f : 0.0f;
  uint32_t u = float_bits(tiny > 0.0f ? x * 8388608.0f : x);
  u += 0x3f800000u - 0x3f3504f3u;
  *e = (float)((int32_t)(u >> 23) - 127) - tiny;
  return float_of((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

/* y unless x has no finite logarithm. */
static inline float log_edges (float x, float y) {
  y = x == INFINITY ? x : y;
  y = x == 0.0f ? -INFINITY : y;
  return x >= 0.0f ? y : NAN;
}

static inline float log_f32 (float x) {
  float e, f = log_split(x, &e);
  float y = log_poly(f) - e * 2.12194440e-4f;
  return log_edges(x, e * 0.693359375f + (f + y));
}

/* u = 1 + x rounded; what the rounding lost comes back as c / u. */
static inline float log1p_f32 (float x) {
  float u = 1.0f + x, c = (x - (u - 1.0f)) / u;
  float e, f = log_split(u, &e);
  float y = log_poly(f) + (c - e * 2.12194440e-4f);
  y = log_edges(u, e * 0.693359375f + (f + y));
  return x == 0.0f ? x : y;
}

/* f without its last 12 bits: its product with a short constant is exact. */
static inline float half_of (float f) {
  return float_of(float_bits(f) & 0xfffff000u);
}

static inline float log2_f32 (float x) {
  float e, f = log_split(x, &e), y = log_poly(f), h = half_of(f);
  float lo = (y + (f - h)) * 1.44269504f + h * 5.19504089e-3f;
  return log_edges(x, e + (h * 1.4375f + lo));
}

static inline float log10_f32 (float x) {
  float e, f = log_split(x, &e), y = log_poly(f), h = half_of(f);
  float lo = (y + (f - h)) * 0.434294482f + h * 7.00731903e-4f;
  lo += e * 2.48745663e-4f;
  return log_edges(x, e * 0.30078125f + (h * 0.43359375f + lo));
}

/* }====================================================== */

/*
** {======================================================
** Powers, by logarithm and exponential in double
** =======================================================
*/

/* log2 of a positive float, to about 1e-11 of itself: with s = f / (2 + f),
** log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 ...). */
static inline double pow_log2 (float x) {
  float e, f = log_split(x, &e);
  double s = (double)f / (2.0 + (double)f), t = s * s;
  double p = 1.0 / 15.0;
  p = p * t + 1.0 / 13.0;
  p = p * t + 1.0 / 11.0;
  p = p * t + 1.0 / 9.0;
  p = p * t + 1.0 / 7.0;
  p = p * t + 1.0 / 5.0;
  p = p * t + 1.0 / 3.0;
  return (double)e + (s + s * t * p) * 2.88539008177792681472;
}

/* 2^t rounded to float, for |t| <= 200. */
static inline float pow_exp2 (double t) {
  double m = t + 6755399441055744.0, r = t - (m - 6755399441055744.0);
  int64_t k = ((DoubleBits){ .f = m }).i; /* its low bits are the integer */
  r *= 0.69314718055994530942;
  double p = 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  DoubleBits two = { .i = (int64_t)((uint64_t)(k + 1023) << 52) };
  return (float)(p * two.f);
}

static inline float pow_f32 (float x, float y) {
  float a = abs_f32(x);
  double l = pow_log2(a);
  l = a == 0.0f ? -INFINITY : a == INFINITY ? INFINITY : l;
  double t = (double)y * l;
  t = t < -200.0 ? -200.0 : t > 200.0 ? 200.0 : t;
  float z = pow_exp2(t);
  bool whole = y == truncf(y), odd = whole && 0.5f * y != truncf(0.5f * y);
  z = float_bits(x) >> 31 && odd ? -z : z;
  z = x < 0.0f && !whole && a < INFINITY ? NAN : z;
  z = a == 1.0f && (x > 0.0f || abs_f32(y) == INFINITY) ? 1.0f : z;
  z = x != x || y != y ? NAN : z;
  return y == 0.0f || x == 1.0f ? 1.0f : z;
}

/* }====================================================== */

/*
** {======================================================
** Circular functions
** =======================================================
*/

/* x = n pi/2 + r, in double, which is exact enough up to |x| = 2^20.  *q: n
** mod 4 in its low bits. */
static inline double trig_reduce (float x, int32_t *q) {
  double t = (double)x * 0.63661977236758134308;
  double m = t + 6755399441055744.0, n = m - 6755399441055744.0;
  *q = (int32_t)((DoubleBits){ .f = m }).i; /* of NaN, too, it is a number */
  double r = (double)x - n * 1.57079632673412561417; /* 33 bits of pi/2 */
  return r - n * 6.07710050650619224932e-11;
}

/* The large terms in double, the small ones in float. */
static inline float sin_poly (double r) {
  float s = (float)r * (float)r;
  float p = 2.718237283e-6f;
  p = p * s - 1.983932743e-4f;
  p = p * s + 8.333329111e-3f;
  p = p * s - 1.666666716e-1f;
  return (float)(r + r * (double)(p * s));
}

static inline float cos_poly (double r) {
  double t = r * r;
  float s = (float)t;
  float p = -2.720954626e-7f;
  p = p * s + 2.479951218e-5f;
  p = p * s - 1.388888340e-3f;
  p = p * s + 4.166666791e-2f;
  return (float)((1.0 - 0.5 * t) + (double)(p * (s * s)));
}

/* In quadrant q the sine is s, c, -s, -c. */
static inline float trig_pick (double r, int32_t q) {
  float y = (q & 1) ? cos_poly(r) : sin_poly(r);
  return float_of(float_bits(y) ^ ((uint32_t)(q & 2) << 30));
}

static inline float trig_far (float x, float y) {
  return abs_f32(x) < INFINITY ? y : NAN;
}

static inline float sin_f32 (float x) {
  int32_t q;
  double r = trig_reduce(x, &q);
  return trig_far(x, trig_pick(r, q));
}

static inline float cos_f32 (float x) {
  int32_t q;
  double r = trig_reduce(x, &q);
  return trig_far(x, trig_pick(r, q + 1));
}

static inline float tan_f32 (float x) {
  int32_t q;
  double r = trig_reduce(x, &q);
  float s = sin_poly(r), c = cos_poly(r);
  return trig_far(x, (q & 1) ? -c / s : s / c);
}

/* atan t for 0 <= t <= 1 */
static inline float atan_poly (float t) {
  float s = t * t;
  float p = 1.134892809e-3f;
  p = p * s - 7.422710769e-3f;
  p = p * s + 2.276049741e-2f;
  p = p * s - 4.494662955e-2f;
  p = p * s + 6.759585440e-2f;
  p = p * s - 8.818854392e-2f;
  p = p * s + 1.106024608e-1f;
  p = p * s - 1.428013146e-1f;
  p = p * s + 1.999969333e-1f;
  p = p * s - 3.333332837e-1f;
  return p * (s * t) + t;
}

static inline float atan_f32 (float x) {
  float a = abs_f32(x);
  float y = atan_poly(a > 1.0f ? 1.0f / a : a);
  return sign_of_f32(a > 1.0f ? 1.57079633f - y : y, x);
}

/* The angle of (x, y). */
static inline float atan2_f32 (float y, float x) {
  float a = abs_f32(x), b = abs_f32(y);
  float hi = a > b ? a : b, lo = a > b ? b : a;
  float t = hi == lo ? 1.0f : lo / hi; /* both infinite */
  float r = atan_poly(hi == 0.0f ? 0.0f : t);
  r = b > a ? 1.57079633f - r : r;
  r = float_bits(x) >> 31 ? 3.14159265f - r : r;
  return x != x || y != y ? x + y : sign_of_f32(r, y);
}

/* asin t for 0 <= t <= 1/2 */
static inline float asin_poly (float t) {
  float s = t * t;
  float p = 3.756466880e-2f;
  p = p * s + 1.440300792e-2f;
  p = p * s + 3.181749582e-2f;
  p = p * s + 4.451573640e-2f;
  p = p * s + 7.500510663e-2f;
  p = p * s + 1.666665971e-1f;
  return p * (s * t) + t;
}

/* asin a = pi/2 - 2 asin sqrt((1 - a) / 2) above 1/2. */
static inline float asin_f32 (float x) {
  float a = abs_f32(x);
  float y = asin_poly(a > 0.5f ? sqrtf(0.5f * (1.0f - a)) : a);
  return sign_of_f32(a > 0.5f ? 1.57079633f - 2.0f * y : y, x);
}

static inline float acos_f32 (float x) {
  float a = abs_f32(x);
  float y = asin_poly(a > 0.5f ? sqrtf(0.5f * (1.0f - a)) : a);
  float small = 1.57079633f - sign_of_f32(y, x);
  float large = x > 0.0f ? 2.0f * y : 3.14159265f - 2.0f * y;
  return a > 0.5f ? large : small;
}

/* }====================================================== */

/*
** {======================================================
** The normal distribution
** =======================================================
*/

/* Below 1 an odd polynomial, above 1 - e^q with q fitted to log erfc. */
static inline float erf_f32 (float x) {
  float a = abs_f32(x), s = a * a;
  float p = -9.680295989e-6f;
  p = p * s + 1.127060386e-4f;
  p = p * s - 8.484720602e-4f;
  p = p * s + 5.221075378e-3f;
  p = p * s - 2.686544694e-2f;
  p = p * s + 1.128378287e-1f;
  p = p * s - 3.761263788e-1f;
  p = a + a * (p * s + 1.283791671e-1f);
  float u = (a > 4.0f ? 4.0f : a) - 2.5f;
  float q = 8.599615171e-7f;
  q = q * u + 5.628301551e-6f;
  q = q * u - 7.294823263e-6f;
  q = q * u + 7.891727728e-5f;
  q = q * u - 4.240299750e-4f;
  q = q * u + 2.162037184e-3f;
  q = q * u - 1.085903030e-2f;
  q = q * u - 9.438935518e-1f;
  q = q * u - 5.352680683f;
  q = q * u - 7.806815147f;
  return sign_of_f32(a < 1.0f ? p : 1.0f - exp_mid_f32(q), x);
}

/* The probability of a normal number below x: e^q(|x|) on the left, which
** keeps its relative accuracy down to -7; 0 beyond. */
static inline float normal_cdf_f32 (float x) {
  float a = abs_f32(x);
  float u = (a > 7.0f ? 7.0f : a) - 1.0f;
  float q = 7.387564449e-10f;
  q = q * u - 2.396799204e-8f;
  q = q * u + 3.307902716e-7f;
  q = q * u - 2.446469807e-6f;
  q = q * u + 8.820024050e-6f;
  q = q * u + 1.250597234e-5f;
  q = q * u - 4.028841504e-4f;
  q = q * u + 3.295161994e-3f;
  q = q * u - 1.948968880e-2f;
  q = q * u - 4.004490376e-1f;
  q = q * u - 1.525135159f;
  q = q * u - 1.841021776f;
  float e = a > 7.0f ? 0.0f : exp_mid_f32(q);
  return x < 0.0f ? e : 1.0f - e;
}

static inline double normal_cdf_f64 (double x) {
  return 0.5 * erfc(x * -0.70710678118654752440);
}

/* }====================================================== */

/*
** {======================================================
** Doubles, the same ways
** =======================================================
*/

/* Adding it leaves the nearest integer in the low bits of a double. */
#define ROUND_MAGIC_F64 6755399441055744.0 /* 1.5 2^52 */
#define ROUND_MAGIC_BITS UINT64_C(0x4338000000000000)

/* log(2) in two parts, the first of 42 bits. */
#define LOG2_HI 0.6931471805598903
#define LOG2_LO 5.4979230187083712e-14

static inline uint64_t round_f64 (double t, double *n) {
  double m = t + ROUND_MAGIC_F64;
  *n = m - ROUND_MAGIC_F64;
  return double_bits(m) - ROUND_MAGIC_BITS;
}

static inline double expm1_poly_f64 (double r) {
  double p = 2.23362773449768528e-09;
  p = p * r + 2.50781512821151225e-08;
  p = p * r + 2.75527705661870876e-07;
  p = p * r + 2.75573301689469936e-06;
  p = p * r + 2.48015924346473485e-05;
  p = p * r + 1.98412698068196859e-04;
  p = p * r + 1.38888888864459044e-03;
  p = p * r + 8.33333333334848603e-03;
  p = p * r + 4.16666666666708832e-02;
  p = p * r + 1.66666666666666519e-01;
  p = p * r + 5.00000000000000000e-01;
  return p * (r * r) + r;
}

/* e^r - 1 for x = k log(2) + r.  shift: 0, or -0.22, by which k stays 0 up to
** x = 1/2, where e^x - 1 would lose bits. */
static inline double exp_split_f64 (double x, double shift, uint64_t *k) {
  double n;
  *k = round_f64(x * 1.44269504088896340736 + shift, &n);
  return expm1_poly_f64((x - n * LOG2_HI) - n * LOG2_LO);
}

/* p 2^k in two steps, so that subnormal results round once. */
static inline double scale_f64 (double p, uint64_t k) {
  uint64_t h = ((k + 2048) >> 1) - 1024;
  return p * pow2_f64(h) * pow2_f64(k - h);
}

static inline double exp_f64 (double x) {
  uint64_t k;
  x = x < -746.0 ? -746.0 : x; /* NaN passes both */
  x = x > 710.0 ? 710.0 : x;
  double p = exp_split_f64(x, 0.0, &k);
  return scale_f64(1.0 + p, k);
}

static inline double expm1_f64 (double x) {
  uint64_t k;
  double c = x < -40.0 ? -40.0 : x;
  c = c > 710.0 ? 710.0 : c;
  double p = exp_split_f64(c, c < 0.0 ? 0.0 : -0.22, &k);
  double s = pow2_f64(c > 700.0 ? 0 : k), y = p * s + (s - 1.0);
  return c > 700.0 ? scale_f64(1.0 + p, k) : y;
}

/* An odd polynomial, and 1 - 2 / (e^2|x| + 1) where that loses nothing. */
static inline double tanh_f64 (double x) {
  double a = fabs(x), z = a * a;
  double p = 5.93576237454552640e-05;
  p = p * z - 2.20952883997262010e-04;
  p = p * z + 5.84912530504691540e-04;
  p = p * z - 1.45494681393927442e-03;
  p = p * z + 3.59203172986582737e-03;
  p = p * z - 8.86322912999111187e-03;
  p = p * z + 2.18694882909186462e-02;
  p = p * z - 5.39682539634683545e-02;
  p = p * z + 1.33333333333297027e-01;
  p = p * z - 3.33333333333333315e-01;
  p = p * (z * a) + a;
  a = a > 20.0 ? 20.0 : a;
  double q = 1.0 - 2.0 / (exp_f64(a + a) + 1.0);
  return copysign(a < 0.5 ? p : q, x);
}

static inline double sigmoid_f64 (double x) {
  return 1.0 / (1.0 + exp_f64(-x));
}

/* log(x) and a small number.  For x = 2^e (1 + f), with s = f / (2 + f) and
** z = s^2, log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z p(z))). */
static inline double log_parts_f64 (double x, double add) {
  double tiny = x < 2.2250738585072014e-308 ? 54.0 : 0.0;
  uint64_t u = double_bits(tiny > 0.0 ? x * 18014398509481984.0 : x);
  u += UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd);
  double e = double_of((u >> 52) + ROUND_MAGIC_BITS);
  e = (e - (ROUND_MAGIC_F64 + 1023.0)) - tiny;
  u = (u & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd);
  double f = double_of(u) - 1.0, s = f / (2.0 + f), z = s * s;
  double p = 1.46170375487916504e-01;
  p = p * z + 1.53316740301678606e-01;
  p = p * z + 1.81828905566956023e-01;
  p = p * z + 2.22222111151441609e-01;
  p = p * z + 2.85714286260958905e-01;
  p = p * z + 3.99999999998992384e-01;
  p = p * z + 6.66666666666666963e-01;
  double half = 0.5 * f * f;
  double lo = s * (half + z * p) + (e * LOG2_LO + add);
  double y = e * LOG2_HI + (f - (half - lo));
  y = x == INFINITY ? x : y;
  y = x == 0.0 ? -INFINITY : y;
  return x >= 0.0 ? y : NAN;
}

static inline double log_f64 (double x) { return log_parts_f64(x, 0.0); }

static inline double log1p_f64 (double x) {
  double u = 1.0 + x, y = log_parts_f64(u, (x - (u - 1.0)) / u);
  return x == 0.0 ? x : y;
}

/* }====================================================== */

#define WORD_INLINE static inline
#include "integers.h"

/*
** {======================================================
** The words
** =======================================================
*/

#ifdef CPU_DOUBLE
#define WORD(float_name, double_name) double_name
#else
#define WORD(float_name, double_name) float_name
#endif

/* A constant of the type at hand: R(0.5). */
#define R(v) ((real)(v))
#define select(c, a, b) ((c) ? (a) : (b))

#define exp(x) WORD(exp_f32, exp_f64)(x)
#define exp_flush(x) WORD(exp_flush_f32, exp_f64)(x)
#define expm1(x) WORD(expm1_f32, expm1_f64)(x)
#define log(x) WORD(log_f32, log_f64)(x)
#define log1p(x) WORD(log1p_f32, log1p_f64)(x)
#define tanh(x) WORD(tanh_f32, tanh_f64)(x)
#define sigmoid(x) WORD(sigmoid_f32, sigmoid_f64)(x)
#define normal_cdf(x) WORD(normal_cdf_f32, normal_cdf_f64)(x)
#define floor_mod(x, y) WORD(floor_mod_f32, floor_mod_f64)(x, y)
#define floor_div(x, y) WORD(floor_div_f32, floor_div_f64)(x, y)

#ifndef CPU_DOUBLE
#define exp2(x) exp2_f32(x)
#define log2(x) log2_f32(x)
#define log10(x) log10_f32(x)
#define sqrt(x) sqrtf(x)
#define sin(x) sin_f32(x)
#define cos(x) cos_f32(x)
#define tan(x) tan_f32(x)
#define asin(x) asin_f32(x)
#define acos(x) acos_f32(x)
#define atan(x) atan_f32(x)
#define atan2(y, x) atan2_f32(y, x)
#define sinh(x) sinh_f32(x)
#define cosh(x) cosh_f32(x)
#define erf(x) erf_f32(x)
#define fabs(x) abs_f32(x)
#define floor(x) floorf(x)
#define ceil(x) ceilf(x)
#define rint(x) rintf(x)
#define trunc(x) truncf(x)
#define pow(x, y) pow_f32(x, y)
#define fmod(x, y) fmodf(x, y)
#endif

#include "words.h"

/* }====================================================== */

#endif
