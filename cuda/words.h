/* words.h - the words of the .def files as CUDA knows them: the functions of
** its C++ library, which choose their body by the type. */

#ifndef cuda_words_h
#define cuda_words_h

#include "cuda.h"

#define WORD_INLINE static __host__ __device__ inline
#include "../src/core/integers.h"

#define R(v) ((real)(v))
#define select(c, a, b) ((c) ? (a) : (b))

WORD_INLINE float sigmoid (float x) { return 1 / (1 + exp(-x)); }
WORD_INLINE double sigmoid (double x) { return 1 / (1 + exp(-x)); }
WORD_INLINE float exp_flush (float x) { return exp(x); }
WORD_INLINE double exp_flush (double x) { return exp(x); }
WORD_INLINE float normal_cdf (float x) {
  return 0.5f * erfc(x * -0.70710678118654752440f);
}
WORD_INLINE double normal_cdf (double x) {
  return 0.5 * erfc(x * -0.70710678118654752440);
}
WORD_INLINE float floor_mod (float x, float y) { return floor_mod_f32(x, y); }
WORD_INLINE double floor_mod (double x, double y) {
  return floor_mod_f64(x, y);
}
WORD_INLINE float floor_div (float x, float y) { return floor_div_f32(x, y); }
WORD_INLINE double floor_div (double x, double y) {
  return floor_div_f64(x, y);
}

#define real float
#include "../src/core/words.h"
#undef real
#define real double
#include "../src/core/words.h"
#undef real

#endif
