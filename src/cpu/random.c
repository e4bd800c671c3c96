/* random.c - uniform, normal and integer numbers, and dropout.
**
** All come from Philox4x32-10.  A chunk of blocks is made at a time, in a
** loop over counters that the compiler turns into vectors; what an element
** is depends on its place alone, not on who makes it.  Normals are Box and
** Muller's: sqrt(-2 log u) times the cosine and sine of a random angle. */

#include "cpu.h"

/* Blocks and words made at a time.  A task starts at a whole block. */
enum { BLOCKS = 64, WORDS = 4 * BLOCKS, TASK = GRAIN / WORDS * WORDS };

typedef struct Words {
  uint32_t w[WORDS];
} Words;

/* The blocks of d from the first on. */
static void make_words (Words *to, Draw d, int64_t first) {
  const uint32_t key[2] = { (uint32_t)d.seed, (uint32_t)(d.seed >> 32) };
  uint64_t start = d.counter + (uint64_t)first;
  for (uint32_t i = 0; i < BLOCKS; i++) {
    uint64_t at = start + i;
    uint32_t c[4] = { (uint32_t)at, (uint32_t)(at >> 32), 0, 0 };
    philox_block(key, c);
    for (int k = 0; k < 4; k++) to->w[4 * i + k] = c[k];
  }
}

#ifdef CPU_ANY

/* What a range of elements is made of. */
typedef struct Job {
  Tensor *y;
  Draw draw;
  double a, b; /* the law's parameters */
  double most; /* uniform: the largest number below b */
  int64_t lo;
  uint64_t span;
} Job;

/* Elements to + 0 .. n-1 of y from floats. */
static void store (Tensor *y, int64_t to, const float *x, int64_t n) {
  uint16_t *half = (uint16_t *)tensor_data(y) + to;
  if (y->dtype == FNN_F32)
    memcpy((float *)tensor_data(y) + to, x, (size_t)n * sizeof *x);
  else if (y->dtype == FNN_F16)
    for (int64_t i = 0; i < n; i++) half[i] = f16_from_f32(x[i]);
  else
    for (int64_t i = 0; i < n; i++) half[i] = bf16_from_f32(x[i]);
}

static uint64_t pair (const Words *words, int64_t i) {
  return (uint64_t)words->w[2 * i + 1] << 32 | words->w[2 * i];
}

/*
** {======================================================
** Uniform
** =======================================================
*/

static void uniform32 (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  float a = (float)j->a, span = (float)j->b - a, most = (float)j->most;
  Words words;
  float x[WORDS];
  for (int64_t at = lo; at < hi; at += WORDS) {
    make_words(&words, j->draw, at / 4);
    for (int i = 0; i < WORDS; i++) {
      float u = a + (float)(int32_t)(words.w[i] >> 8) * 0x1p-24f * span;
      x[i] = u < most ? u : most;
    }
    store(j->y, at, x, min64(WORDS, hi - at));
  }
  if (j->y->dtype == FNN_F32) return;
  for (int64_t i = lo; i < hi; i++) /* what rounding to 16 bits took to b */
    if (dtype_get((fnn_Dtype)j->y->dtype, tensor_data(j->y), i) > j->most)
      dtype_set((fnn_Dtype)j->y->dtype, tensor_data(j->y), i, j->most);
}

static void uniform64 (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  double *y = tensor_data(j->y), span = j->b - j->a;
  Words words;
  for (int64_t at = lo; at < hi; at += WORDS / 2) {
    make_words(&words, j->draw, at / 2);
    for (int64_t i = 0; i < min64(WORDS / 2, hi - at); i++) {
      double u = j->a + (double)(pair(&words, i) >> 11) * 0x1p-53 * span;
      y[at + i] = u < j->most ? u : j->most;
    }
  }
}

void CPU (uniform)(Tensor *y, Draw d, double a, double b) {
  Job j = { .y = y, .draw = d, .a = a, .b = b };
  j.most = random_most((fnn_Dtype)y->dtype, a, b);
  threads_range(y->numel, TASK, y->dtype == FNN_F64 ? uniform64 : uniform32,
                &j);
}

/* }====================================================== */

/*
** {======================================================
** Normal
** =======================================================
*/

/* log u for u in (0, 1]: u = m 2^e with m in [sqrt(1/2), sqrt(2)), and log m
** = 2 artanh s with s = (m - 1)/(m + 1), |s| < 0.172, by its series. */
static inline float log_of (float u) {
  const int32_t root = 0x3f3504f3; /* the bits of sqrt(1/2) */
  union {
    float f;
    int32_t i;
  } v = { u };
  int32_t e = (v.i - root) >> 23;
  v.i -= e * (1 << 23);
  float s = (v.f - 1) / (v.f + 1), q = s * s;
  float p = 1 + q * (1 / 3.0f + q * (1 / 5.0f + q * (1 / 7.0f + q / 9)));
  return (float)e * 0.693147181f + 2 * s * p;
}

/* Cosine and sine of 2 pi turn/2^32: the quadrant by integers, exactly, and
** in it the series for |x| <= pi/4 (error under 1e-8). */
static inline void circle (uint32_t turn, float *cosine, float *sine) {
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

static void normal32 (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  float mean = (float)j->a, std = (float)j->b;
  Words words;
  float x[WORDS];
  for (int64_t at = lo; at < hi; at += WORDS) {
    make_words(&words, j->draw, at / 4);
    for (int i = 0; i < WORDS; i += 2) {
      float u = (float)(int32_t)(words.w[i] >> 1) * 0x1p-31f + 0x1p-32f;
      float r = sqrtf(-2 * log_of(u)), c, s;
      circle(words.w[i + 1], &c, &s);
      x[i] = r * c * std + mean;
      x[i + 1] = r * s * std + mean;
    }
    store(j->y, at, x, min64(WORDS, hi - at));
  }
}

static void normal64 (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  double *y = tensor_data(j->y);
  Words words;
  for (int64_t at = lo; at < hi; at += WORDS / 2) {
    make_words(&words, j->draw, at / 2);
    int64_t n = min64(WORDS / 2, hi - at);
    for (int64_t i = 0; i < n; i += 2) {
      double u = (double)((pair(&words, i) >> 11) + 1) * 0x1p-53;
      double turn = (double)(pair(&words, i + 1) >> 11) * 0x1p-53;
      double r = sqrt(-2 * log(u));
      y[at + i] = r * cos(2 * M_PI * turn) * j->b + j->a;
      if (i + 1 < n) y[at + i + 1] = r * sin(2 * M_PI * turn) * j->b + j->a;
    }
  }
}

void CPU (normal)(Tensor *y, Draw d, double mean, double std) {
  Job j = { .y = y, .draw = d, .a = mean, .b = std };
  threads_range(y->numel, TASK, y->dtype == FNN_F64 ? normal64 : normal32, &j);
}

/* }====================================================== */

/*
** {======================================================
** Integers
** =======================================================
*/

/* lo + span times a 64-bit fraction of one: every value's probability is
** right to 2^-64. */
static void integers (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  void *y = tensor_data(j->y);
  Words words;
  for (int64_t at = lo; at < hi; at += WORDS / 2) {
    make_words(&words, j->draw, at / 2);
    for (int64_t i = 0; i < min64(WORDS / 2, hi - at); i++) {
      unsigned __int128 product = (unsigned __int128)pair(&words, i) * j->span;
      int64_t v = (int64_t)((uint64_t)j->lo + (uint64_t)(product >> 64));
      switch (j->y->dtype) {
        case FNN_I64: ((int64_t *)y)[at + i] = v; break;
        case FNN_I32: ((int32_t *)y)[at + i] = (int32_t)v; break;
        case FNN_F32: ((float *)y)[at + i] = (float)v; break;
        default: dtype_set((fnn_Dtype)j->y->dtype, y, at + i, (double)v);
      }
    }
  }
}

void CPU (randint)(Tensor *y, Draw d, int64_t lo, int64_t hi) {
  Job j = { .y = y, .draw = d, .lo = lo, .span = (uint64_t)hi - (uint64_t)lo };
  threads_range(y->numel, TASK, integers, &j);
}

/* }====================================================== */

#endif

typedef struct Drop {
  const real *x;
  real *y, scale;
  uint32_t least; /* words from here on keep their element */
  Draw draw;
} Drop;

static void drop (void *ud, int64_t lo, int64_t hi) {
  const Drop *j = ud;
  real scale = j->scale;
  uint32_t least = j->least;
  Words words;
  for (int64_t at = lo; at < hi; at += WORDS) {
    make_words(&words, j->draw, at / 4);
    int64_t n = min64(WORDS, hi - at);
    const real *x = j->x + at;
    real *y = j->y + at;
    for (int64_t i = 0; i < n; i++) {
      real kept = x[i] * scale;
      y[i] = words.w[i] >= least ? kept : 0;
    }
  }
}

void CPU (dropout)(Tensor *y, const Tensor *x, double p, Draw d) {
  if (p >= 1) {
    memset(tensor_data(y), 0, (size_t)y->numel * sizeof(real));
    return;
  }
  double least = floor(p * 0x1p32);
  Drop j = { tensor_data(x), tensor_data(y), (real)(1 / (1 - p)),
             (uint32_t)fmin(least, UINT32_MAX), d };
  threads_range(y->numel, TASK, drop, &j);
}
