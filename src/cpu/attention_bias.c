/* attention_bias.c - what is added to scores: masks, slopes, the end of what
** is seen; and which weights dropout takes.
**
** Masks and draws lie along the keys, tiles along the queries: rows of them
** are made in a buffer and cross over by squares of registers.  What is one
** number for all queries, or a formula, is added where the scores stand. */

#include <float.h>

#include "attention.h"

#ifdef CPU_DOUBLE
#define MOST DBL_MAX
#else
#define MOST FLT_MAX
#endif

Scores CPU (attention_scores)(const Tensor *q, const Tensor *k,
                              const Attention *a, int64_t b, int64_t h) {
  Scores s = { .m = q->shape[2], .n = k->shape[2], .causal = a->causal };
  const Tensor *mask = a->mask;
  if (mask != NULL) {
    int64_t at = b * mask->stride[0] + h * mask->stride[1];
    s.binary = mask->dtype == FNN_BOOL;
    s.mask = s.binary ? (const void *)((const bool *)tensor_data(mask) + at)
                      : (const void *)((const real *)tensor_data(mask) + at);
    s.row = mask->stride[2];
    s.col = mask->stride[3];
  }
  if (a->slopes != NULL)
    s.slope = ((const real *)tensor_data(a->slopes))[h] * (real)LOG2_E;
  if (a->dropout > 0) {
    s.none = a->dropout >= 1;
    s.keep = s.none ? 1 : (real)(1 / (1 - a->dropout));
    s.least = s.none ? 0 : (uint32_t)floor(a->dropout * 0x1p32);
    s.draw = a->draw;
    s.first = (uint64_t)((b * q->shape[1] + h) * s.m) * (uint64_t)s.n;
  }
  return s;
}

/* A mask's number in scores: one that is finite stays so. */
VEC_INLINE real bias_of (real x) {
  real y = x * (real)LOG2_E;
  return y < -MOST && x >= -MOST ? -MOST : y;
}

VEC_INLINE real bias_of_bool (int seen) {
  return seen != 0 ? 0 : -(real)INFINITY;
}

/*
** {======================================================
** Rows
** =======================================================
*/

/* x += the mask, for n keys from (i, j) on.  As in PyTorch false adds minus
** infinity, and so leaves a NaN. */
static void mask_row (const Scores *s, int64_t i, int64_t j, int64_t n,
                      real *x) {
  int64_t at = i * s->row + j * s->col, col = s->col;
  if (s->binary) {
    const uint8_t *p = (const uint8_t *)s->mask + at;
    if (col == 1) {
      _Pragma("omp simd") for (int64_t l = 0; l < n; l++) x[l] +=
          bias_of_bool(p[l]);
    } else {
      for (int64_t l = 0; l < n; l++) x[l] += bias_of_bool(p[l * col]);
    }
    return;
  }
  const real *p = (const real *)s->mask + at;
  if (col == 1) {
    for (int64_t l = 0; l < n; l++) x[l] += bias_of(p[l]);
  } else {
    for (int64_t l = 0; l < n; l++) x[l] += bias_of(p[l * col]);
  }
}

void CPU (attention_bias_row)(const Scores *s, int64_t i, int64_t j, int64_t n,
                              real *x) {
  int64_t place = i + s->n - s->m;
  if (s->slope != 0)
    for (int64_t l = 0; l < n; l++) {
      real far = (real)(place - j - l);
      x[l] -= s->slope * (far < 0 ? -far : far);
    }
  if (s->mask != NULL) mask_row(s, i, j, n, x);
  if (s->causal)
    for (int64_t l = max64(0, place + 1 - j); l < n; l++)
      x[l] = -(real)INFINITY;
}

/* The words of a few blocks of Philox, in a loop that becomes vectors. */
enum { BLOCKS = 64, WORDS = 4 * BLOCKS };

static void make_words (uint32_t *to, const Draw *d, uint64_t first,
                        uint32_t blocks) {
  const uint32_t key[2] = { (uint32_t)d->seed, (uint32_t)(d->seed >> 32) };
  uint64_t start = d->counter + first;
  for (uint32_t i = 0; i < blocks; i++) {
    uint64_t at = start + i;
    uint32_t c[4] = { (uint32_t)at, (uint32_t)(at >> 32), 0, 0 };
    philox_block(key, c);
    for (int k = 0; k < 4; k++) to[4 * i + k] = c[k];
  }
}

void CPU (attention_keep_row)(const Scores *s, int64_t i, int64_t j, int64_t n,
                              real *x) {
  uint64_t at = s->first + (uint64_t)i * (uint64_t)s->n + (uint64_t)j;
  const uint32_t least = s->least;
  const real keep = s->keep;
  uint32_t words[WORDS];
  if (s->none) {
    memset(x, 0, (size_t)n * sizeof *x);
    return;
  }
  for (int64_t done = 0; done < n;) {
    int64_t skip = (int64_t)(at % 4), count = min64(WORDS - skip, n - done);
    make_words(words, &s->draw, at / 4, (uint32_t)divide_up(skip + count, 4));
    for (int64_t l = 0; l < count; l++)
      x[done + l] = words[skip + l] >= least ? keep : 0;
    done += count;
    at += (uint64_t)count;
  }
}

/* }====================================================== */

/*
** {======================================================
** Tiles
** =======================================================
*/

bool CPU (attention_hidden)(const Scores *s, int64_t j, int64_t n) {
  if (s->mask == NULL || !s->binary || s->row != 0) return false;
  const bool *p = (const bool *)s->mask + j * s->col;
  for (int64_t l = 0; l < n; l++)
    if (p[l * s->col]) return false;
  return true;
}

/* x plus or times what stands in buf, (WIDTH, n), rows `apart` apart. */
VEC_INLINE void cross (real *x, int64_t ld, int64_t rows, int64_t n,
                       const real *buf, int64_t apart, const bool times) {
  for (int64_t i = 0; i < rows; i += VEC)
    for (int64_t j = 0; j < n; j += VEC) {
      vec r[VEC];
      for (int l = 0; l < VEC; l++) r[l] = vec_load(buf + (i + l) * apart + j);
      vec_transpose(r);
      for (int l = 0; l < min64(VEC, n - j); l++) {
        real *at = x + (j + l) * ld + i;
        vec was = vec_load(at);
        vec_store(at, times ? was * r[l] : was + r[l]);
      }
    }
}

/* One number a key, for all queries. */
static void mask_keys (const Scores *s, int64_t j, int64_t n, real *x,
                       int64_t ld, real *buf) {
  memset(buf, 0, (size_t)n * sizeof *buf);
  mask_row(s, 0, j, n, buf);
  for (int64_t l = 0; l < n; l++) {
    if (buf[l] == 0) continue;
    for (int i = 0; i < WIDTH; i += VEC)
      vec_store(x + l * ld + i, vec_load(x + l * ld + i) + buf[l]);
  }
}

static void mask_tile (const Scores *s, int64_t i, int64_t rows, int64_t j,
                       int64_t n, real *x, int64_t ld, real *buf) {
  int64_t apart = attention_buffer(n) / WIDTH;
  memset(buf, 0, (size_t)attention_buffer(n) * sizeof *buf);
  for (int64_t r = 0; r < rows; r++) mask_row(s, i + r, j, n, buf + r * apart);
  cross(x, ld, rows, n, buf, apart, false);
}

/* The places of lanes, less those of keys, as far as they go. */
static void slope_tile (const Scores *s, int64_t i, int64_t j, int64_t n,
                        real *x, int64_t ld) {
  vec place[2];
  for (int l = 0; l < WIDTH; l++)
    place[l / VEC][l % VEC] = (real)(i + l + s->n - s->m);
  for (int64_t l = 0; l < n; l++)
    for (int v = 0; v < 2; v++) {
      real *at = x + l * ld + v * VEC;
      vec far = place[v] - (real)(j + l);
      vec_store(at, vec_load(at) - s->slope * vec_max(far, -far));
    }
}

/* Keys after a query's place. */
static void end_tile (const Scores *s, int64_t i, int64_t j, int64_t n,
                      real *x, int64_t ld) {
  int64_t place = i + s->n - s->m;
  for (int64_t l = max64(0, place + 1 - j); l < n; l++)
    for (int64_t q = 0; q < min64(WIDTH, j + l - place); q++)
      x[l * ld + q] = -(real)INFINITY;
}

void CPU (attention_bias)(const Scores *s, int64_t i, int64_t rows, int64_t j,
                          int64_t n, real *x, int64_t ld, real *buf) {
  if (s->slope != 0) slope_tile(s, i, j, n, x, ld);
  if (s->mask != NULL && s->row == 0) mask_keys(s, j, n, x, ld, buf);
  else if (s->mask != NULL) mask_tile(s, i, rows, j, n, x, ld, buf);
  if (s->causal) end_tile(s, i, j, n, x, ld);
}

void CPU (attention_keep)(const Scores *s, int64_t i, int64_t rows, int64_t j,
                          int64_t n, real *buf) {
  int64_t apart = attention_buffer(n) / WIDTH;
  memset(buf, 0, (size_t)attention_buffer(n) * sizeof *buf);
  for (int64_t r = 0; r < rows; r++)
    CPU(attention_keep_row)(s, i + r, j, n, buf + r * apart);
}

void CPU (attention_drop)(int64_t rows, int64_t n, real *x, int64_t ld,
                          const real *buf) {
  cross(x, ld, rows, n, buf, attention_buffer(n) / WIDTH, true);
}

/* }====================================================== */
