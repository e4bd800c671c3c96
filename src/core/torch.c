/* torch.c - the numbers of PyTorch's CPU generator, so that a seed gives
** here what it gives there.
**
** The engine is mt19937 (Matsumoto and Nishimura 1998).  The laws are
** PyTorch's: a float uniform takes 24 bits of a word, a double 53 bits of
** two.  Normal numbers are made sixteen at a time from eight pairs (Box and
** Muller); what is left over at the end is covered by drawing the last
** sixteen anew; a 16-bit dtype draws just for the whole sixteens before that.
** Fewer than sixteen are made one by one in double, and the second of a pair
** is kept for the next.  Words and uniforms are equal bit
** for bit; normals are equal to rounding, since the logarithm and the sine
** are another library's. */

#include <math.h>
#include <string.h>

#include "core.h"

enum { WORDS = 624, AHEAD = 397, FILL = 16 };

#define TWO_PI 6.283185307179586

void torch_seed (Mersenne *t, uint64_t seed) {
  uint32_t *s = t->state;
  s[0] = (uint32_t)seed;
  for (uint32_t i = 1; i < WORDS; i++)
    s[i] = 1812433253 * (s[i - 1] ^ (s[i - 1] >> 30)) + i;
  t->used = WORDS;
  t->has_normal = false;
}

static void twist (Mersenne *t) {
  uint32_t *s = t->state;
  for (int i = 0; i < WORDS; i++) {
    uint32_t both = (s[i] & 0x80000000) | (s[(i + 1) % WORDS] & 0x7fffffff);
    s[i] = s[(i + AHEAD) % WORDS] ^ (both >> 1) ^
           ((both & 1) != 0 ? 0x9908b0df : 0);
  }
  t->used = 0;
}

static uint32_t word (Mersenne *t) {
  if (t->used == WORDS) twist(t);
  uint32_t w = t->state[t->used++];
  w ^= w >> 11;
  w ^= (w << 7) & 0x9d2c5680;
  w ^= (w << 15) & 0xefc60000;
  return w ^ (w >> 18);
}

uint64_t torch_next (Mersenne *t) {
  uint64_t high = word(t);
  return high << 32 | word(t);
}

static float uniform32 (Mersenne *t) {
  return (float)(word(t) & 0xffffff) * 0x1p-24f;
}

static double uniform64 (Mersenne *t) {
  return (double)(torch_next(t) & 0x1fffffffffffff) * 0x1p-53;
}

void torch_uniform (Mersenne *t, Tensor *y, double lo, double hi) {
  float lo32 = (float)lo, span32 = (float)hi - (float)lo;
  float *to32 = tensor_data(y);
  double *to64 = tensor_data(y);
  if (y->dtype == FNN_F64)
    for (int64_t i = 0; i < y->numel; i++)
      to64[i] = uniform64(t) * (hi - lo) + lo;
  else
    for (int64_t i = 0; i < y->numel; i++)
      to32[i] = uniform32(t) * span32 + lo32;
}

/* Turns sixteen uniform numbers into normal ones. */
static void fill32 (float *x, float mean, float std) {
  for (int i = 0; i < FILL / 2; i++) {
    float r = sqrtf(-2 * logf(1 - x[i]));
    float angle = (float)TWO_PI * x[i + FILL / 2];
    x[i] = r * cosf(angle) * std + mean;
    x[i + FILL / 2] = r * sinf(angle) * std + mean;
  }
}

static void fill64 (double *x, double mean, double std) {
  for (int i = 0; i < FILL / 2; i++) {
    double r = sqrt(-2 * log(1 - x[i]));
    double angle = TWO_PI * x[i + FILL / 2];
    x[i] = r * cos(angle) * std + mean;
    x[i + FILL / 2] = r * sin(angle) * std + mean;
  }
}

static void normal32 (Mersenne *t, float *x, int64_t n, int64_t drawn,
                      float mean, float std) {
  for (int64_t i = 0; i < drawn; i++) x[i] = uniform32(t);
  for (int64_t i = 0; i + FILL <= n; i += FILL) fill32(x + i, mean, std);
  if (n % FILL == 0) return;
  for (int64_t i = n - FILL; i < n; i++) x[i] = uniform32(t);
  fill32(x + n - FILL, mean, std);
}

static void normal64 (Mersenne *t, double *x, int64_t n, double mean,
                      double std) {
  for (int64_t i = 0; i < n; i++) x[i] = uniform64(t);
  for (int64_t i = 0; i + FILL <= n; i += FILL) fill64(x + i, mean, std);
  if (n % FILL == 0) return;
  for (int64_t i = n - FILL; i < n; i++) x[i] = uniform64(t);
  fill64(x + n - FILL, mean, std);
}

static double normal_one (Mersenne *t) {
  t->has_normal = !t->has_normal;
  if (!t->has_normal) return t->normal;
  double turn = uniform64(t);
  double r = sqrt(-2 * log1p(-uniform64(t)));
  t->normal = r * sin(TWO_PI * turn);
  return r * cos(TWO_PI * turn);
}

void torch_normal (Mersenne *t, Tensor *y, double mean, double std,
                   fnn_Dtype as) {
  int64_t n = y->numel, whole = n - n % FILL;
  if (n < FILL)
    for (int64_t i = 0; i < n; i++)
      dtype_set((fnn_Dtype)y->dtype, tensor_data(y), i,
                normal_one(t) * std + mean);
  else if (y->dtype == FNN_F64) normal64(t, tensor_data(y), n, mean, std);
  else
    normal32(t, tensor_data(y), n, as == FNN_F32 ? n : whole, (float)mean,
             (float)std);
}

void torch_randint (Mersenne *t, Tensor *y, int64_t lo, uint64_t span) {
  int64_t *to = tensor_data(y);
  for (int64_t i = 0; i < y->numel; i++) {
    uint64_t w = span >= 1 << 28 ? torch_next(t) : word(t);
    to[i] = (int64_t)((uint64_t)lo + w % span);
  }
}

void torch_randperm (Mersenne *t, Tensor *y) {
  int64_t *to = tensor_data(y), n = y->numel;
  if (n >= UINT32_MAX / 20)
    fnn_throw(FNN_EARG,
              "randperm: too many for the torch generator "
              "(expected less than %lld, got %lld)",
              (long long)(UINT32_MAX / 20), (long long)n);
  for (int64_t i = 0; i < n; i++) to[i] = i;
  for (int64_t i = 0; i < n - 1; i++) {
    int64_t j = i + word(t) % (n - i), was = to[i];
    to[i] = to[j];
    to[j] = was;
  }
}
