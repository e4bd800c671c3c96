/* channel_norm.h - what the passes of batch, group and instance normalization
** share: see channel_norm.cu. */

#ifndef cuda_channel_norm_h
#define cuda_channel_norm_h

#include "cuda.h"

enum {
  THREADS = 256,
  EACH = 8,      /* elements that a thread has of a tile, in registers */
  WIDE = 32,     /* channels of a tile in channels-last order, at most */
  BLOCKS = 4096, /* enough to keep a card busy */
};

/* How the elements of x are shared: each of `planes` (images by channels, or
** images by tiles of channels in channels-last order) is cut into `parts` of
** len places.  A block of (across, down) threads has a part, of which it sees
** down * EACH places at a time. */
typedef struct Split {
  int batch, channels, groups; /* groups of an image */
  int64_t space, len;
  int parts, tiles;
  bool last, pooled, given; /* pooled: also where given */
} Split;

/* How many elements, their mean, and the sum of squared distances from it. */
typedef struct Moments {
  double n, mean, spread;
} Moments;

/* What is known of a part: mean and spread, or two sums. */
typedef struct Pair {
  double a, b;
} Pair;

Split norm_split (const Norm *k, dim3 *grid, dim3 *block);

/* Pairs of (batch, channels, parts), or (batch, parts, channels). */
static inline int64_t norm_pairs (const Split *s) {
  return (int64_t)s->batch * s->channels * s->parts;
}

/* The i-th statistic is of `count` pairs; the j-th of them, its place. */
static __device__ inline int64_t norm_pair (const Split *s, int64_t i,
                                            int64_t j) {
  int64_t n = s->channels, size = n / s->groups, image, channel;
  int64_t part = s->last ? j / (s->pooled ? 1 : size) : j;
  if (s->pooled) {
    channel = i;
    image = j / s->parts;
    part = j % s->parts;
  } else {
    image = i / s->groups;
    channel = i % s->groups * size + (s->last ? j % size : j / s->parts);
    part = s->last ? j / size : j % s->parts;
  }
  if (s->last) return (image * s->parts + part) * n + channel;
  return (image * n + channel) * s->parts + part;
}

/* Pairs of one statistic, and statistics. */
static __host__ __device__ inline int64_t norm_share (const Split *s) {
  int64_t many = s->pooled ? s->batch : s->channels / s->groups;
  return many * s->parts;
}

static inline int64_t norm_stats (const Split *s) {
  return s->pooled ? s->channels : (int64_t)s->batch * s->groups;
}

/* The statistic of channel c of an image. */
static __device__ inline int64_t norm_of (const Split *s, int64_t image,
                                          int c) {
  if (s->pooled) return c;
  return image * s->groups + c / (s->channels / s->groups);
}

/* Threads of a block for folding n pairs. */
static inline unsigned norm_threads (int64_t n) {
  unsigned threads = 32;
  while (threads < THREADS && threads < n) threads *= 2;
  return threads;
}

#endif
