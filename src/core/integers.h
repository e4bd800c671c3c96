/* integers.h - the words for integers, and division that rounds down.
**
** Includers say by WORD_INLINE how a function is declared. */

#ifndef integers_h
#define integers_h

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* v as an integer; what does not fit saturates, NaN is 0. */
WORD_INLINE int64_t integer_of (double v) {
  if (v >= 0x1p63) return INT64_MAX;
  return v >= -0x1p63 ? (int64_t)v : v < 0 ? INT64_MIN : 0;
}

/* Sums and products of int64 that wrap. */
#define WRAP(x, op, y) ((int64_t)((uint64_t)(x)op(uint64_t)(y)))

/* Divisors are not 0 here: the op has looked.  -1 by hand, since the least
** integer has no opposite. */
WORD_INLINE int64_t floor_div_i64 (int64_t x, int64_t y) {
  if (y == -1 || y == 0) return WRAP(0, -, x);
  return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}

WORD_INLINE int64_t floor_mod_i64 (int64_t x, int64_t y) {
  return WRAP(x, -, WRAP(floor_div_i64(x, y), *, y));
}

WORD_INLINE int64_t mod_i64 (int64_t x, int64_t y) {
  return y == -1 || y == 0 ? 0 : x % y;
}

/* x^y, 0 for the fractions that a negative y makes. */
WORD_INLINE int64_t pow_i64 (int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t p = 1, b = (uint64_t)x;
  for (; y > 0; y >>= 1, b *= b)
    if (y & 1) p *= b;
  return (int64_t)p;
}

/* Shifts by a negative count or by 64 and more shift everything out. */
WORD_INLINE int64_t shl_i64 (int64_t x, int64_t y) {
  return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}

WORD_INLINE int64_t shr_i64 (int64_t x, int64_t y) {
  return x >> (y < 0 || y > 63 ? 63 : y);
}

WORD_INLINE float floor_mod_f32 (float x, float y) {
  float m = fmodf(x, y);
  return m != 0.0f && (m < 0.0f) != (y < 0.0f) ? m + y : m;
}

WORD_INLINE double floor_mod_f64 (double x, double y) {
  double m = fmod(x, y);
  return m != 0.0 && (m < 0.0) != (y < 0.0) ? m + y : m;
}

/* (x - x mod y) / y is within rounding of an integer. */
WORD_INLINE double floor_div_f64 (double x, double y) {
  if (y == 0.0) return x / y;
  double m = fmod(x, y), q = (x - m) / y;
  if (m != 0.0 && (m < 0.0) != (y < 0.0)) q -= 1.0;
  return rint(q);
}

WORD_INLINE float floor_div_f32 (float x, float y) {
  if (y == 0.0f) return x / y;
  float m = fmodf(x, y), q = (x - m) / y;
  if (m != 0.0f && (m < 0.0f) != (y < 0.0f)) q -= 1.0f;
  return rintf(q);
}

#endif
