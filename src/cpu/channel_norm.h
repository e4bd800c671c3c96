/* channel_norm.h - what the passes of batch, group and instance normalization
** share: see channel_norm.c. */

#ifndef channel_norm_h
#define channel_norm_h

#include "simd.h"
#include "sweep.h"

/* Elements and rows that are summed in real before double, and the vectors of
** a tile of channels. */
enum { LEAF = 512, ROWS = 64, COLS = 4 };

typedef struct Job {
  const Norm *k;
  const real *x, *gy;
  const real *w, *b;
  const real *stats;
  real *y;       /* or gx */
  double *plane; /* (batch, 2, channels): moments, or sums of gradients */
  double *part;  /* the same of a part of the rows, in channels-last order */
  real *chunk;   /* (workers, 2, channels) */
  real *coef;    /* (batch or 1, 4, channels) */
  int64_t first, images; /* the block at hand */
  int64_t parts, len;    /* of an image's rows, and how long they are */
} Job;

/* One statistic a channel, whatever the image. */
static inline bool shares (const Norm *k) { return k->pooled || k->given; }

static inline double *plane_of (const Job *j, int64_t n) {
  return j->plane + n * 2 * j->k->channels;
}

static inline real *coef_of (const Job *j, int64_t n) {
  return j->coef + (shares(j->k) ? 0 : n) * 4 * j->k->channels;
}

static inline const real *data_or_null (const Tensor *x) {
  return x != NULL ? tensor_data(x) : NULL;
}

/* Takes the scratch, with room for sums, and returns how many images a block
** has: all where the statistics are theirs together. */
int64_t CPU(channel_norm_open)(Job *j, bool sums);
/* A pass of either order over the block's elements. */
void CPU(channel_norm_pass)(Job *j, Range rows, Range last);

/* A vector at p; where it is the only one of a row, its first part lanes. */
VEC_INLINE vec load (const real *p, int64_t part) {
  return part > 0 ? vec_load_part(p, part) : vec_load(p);
}

VEC_INLINE void store (real *p, vec v, int64_t part) {
  if (part > 0) vec_store_part(p, v, part);
  else vec_store(p, v);
}

#endif
