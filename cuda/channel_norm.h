/* channel_norm.h - what the passes of batch, group and instance normalization
** share: see channel_norm.cu. */

#ifndef cuda_channel_norm_h
#define cuda_channel_norm_h

#include "pack.h"

enum {
  THREADS = 256,
  EACH = 8,      /* elements that a thread has of a tile, in registers */
  WIDE = 32,     /* channels of a tile in channels-last order, at most */
  BLOCKS = 4096, /* enough to keep a card busy */
};

/* How the elements of x are shared: each plane (of an image and a channel, or
** a tile of channels in channels-last order) is cut into `parts` of len
** places.  A block has a part, and its threadIdx.x is a channel.  Elements may
** be packs: of places, or of channels in channels-last order. */
typedef struct Split {
  int batch, channels;
  int groups, size; /* of an image, channels of one */
  int64_t space, len;
  int parts, tiles;
  bool last, pooled, given; /* pooled: also where given */
} Split;

/* Weights and biases, or running means and variances: of a 16-bit T each of it
** or (wide) of f32; or NULL. */
typedef struct Vectors {
  void *a, *b;
  bool awide, bwide;
} Vectors;

static inline Vectors norm_vectors (const Tensor *a, const Tensor *b) {
  Vectors v = { data_of<void>(a), data_of<void>(b), false, false };
  v.awide = a != NULL && a->dtype == FNN_F32;
  v.bwide = b != NULL && b->dtype == FNN_F32;
  return v;
}

/* Element i of one that is not NULL. */
template <class T>
static __device__ inline Real<T> norm_get (const void *p, bool wide,
                                           int64_t i) {
  return wide ? (Real<T>)((const float *)p)[i] : (Real<T>)((const T *)p)[i];
}

template <class T>
static __device__ inline void norm_set (void *p, bool wide, int64_t i,
                                        double v) {
  if (wide) ((float *)p)[i] = (float)v;
  else ((T *)p)[i] = number<T>(v);
}

/* How many elements, their mean, and the sum of squared distances from it. */
typedef struct Moments {
  double n, mean, spread;
} Moments;

/* What is known of a part: mean and spread, or two sums. */
typedef struct Pair {
  double a, b;
} Pair;

Split norm_split (const Norm *k, int pack, dim3 *grid, dim3 *block);

/* The part of a block: places lo .. hi - 1 of a plane that begins at `from`,
** step apart; c is the thread's channel, which may be behind the last. */
typedef struct Part {
  int64_t image, from, lo, hi, step;
  int c;
} Part;

static __device__ inline Part norm_part (const Split *s) {
  Part p;
  p.image = blockIdx.x / (unsigned)s->tiles;
  p.c = (int)(blockIdx.x % (unsigned)s->tiles * blockDim.x + threadIdx.x);
  p.lo = (int64_t)blockIdx.y * s->len;
  p.hi = p.lo + s->len < s->space ? p.lo + s->len : s->space;
  p.step = s->last ? s->channels : 1;
  p.from = p.image * s->channels * s->space +
           (s->last ? p.c : (int64_t)p.c * s->space);
  return p;
}

/* Pairs of (batch, channels, parts), or (batch, parts, channels). */
static inline int64_t norm_pairs (const Split *s) {
  return (int64_t)s->batch * s->channels * s->parts;
}

/* The place of a channel's pair. */
static __device__ inline int64_t norm_place (const Split *s, int64_t image,
                                             int64_t channel, int64_t part) {
  if (s->last) return (image * s->parts + part) * s->channels + channel;
  return (image * s->channels + channel) * s->parts + part;
}

/* The i-th statistic is of norm_share pairs: the j-th of them. */
static __device__ inline int64_t norm_pair (const Split *s, int64_t i,
                                            int64_t j) {
  if (s->pooled) return norm_place(s, j / s->parts, i, j % s->parts);
  int64_t image = i / s->groups, first = i % s->groups * s->size;
  if (s->last) return norm_place(s, image, first + j % s->size, j / s->size);
  return norm_place(s, image, first + j / s->parts, j % s->parts);
}

/* Pairs of one statistic, and statistics. */
static __host__ __device__ inline int64_t norm_share (const Split *s) {
  int64_t many = s->pooled ? s->batch : s->size;
  return many * s->parts;
}

static inline int64_t norm_stats (const Split *s) {
  return s->pooled ? s->channels : (int64_t)s->batch * s->groups;
}

/* The statistic of channel c of an image. */
static __device__ inline int64_t norm_of (const Split *s, int64_t image,
                                          int c) {
  if (s->pooled) return c;
  return image * s->groups + c / s->size;
}

/* A block for folding n pairs. */
static inline dim3 norm_fold (int64_t n) {
  return dim3(1, pack_power((n + 31) / 32, THREADS / 32) * 32);
}

#endif
