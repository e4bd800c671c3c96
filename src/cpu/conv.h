/* conv.h - the parts of convolution.
**
** conv.c            which way a convolution and its gradients go
** conv_patches.c    patches of an image, gathered as rows of a matrix
** conv_product.c    patches times weights
** conv_block.c      the same where patches are read in a copy of the image
** conv_keep.c       packed weights that are kept
** conv_weight.c     patches times gradients: the gradient of the weights
** conv_depthwise.c  channels that do not mix
** conv_few.c        few outputs a place
** winograd_conv.c   3 by 3 of stride 1 by way of transformed tiles
**
** Images are channels-last: (n, in[0], in[1], in[2], channels).  A patch is
** what the taps of a kernel meet at one place: a row of a matrix that is never
** whole in memory, but gathered a block at a time, where a product of matrices
** packs its operand.  So a convolution is a product of patches (places, taps x
** channels) and weights (taps x channels, outputs).
**
** The gradient of the input is one too.  With a stride of s, input places fall
** into s classes an axis by their remainder; those of one class meet the same
** taps, at places of the result that lie side by side.  So each class is a
** convolution of stride 1 over the gradient, with some of the taps. */

#ifndef conv_h
#define conv_h

#include "gemm.h"

/* Taps in the order of the patches' columns. */
typedef struct Taps {
  int64_t count;
  int64_t *tap;         /* which of the kernel's, counted row-major */
  int64_t (*offset)[3]; /* the place they meet, seen from the origin's */
  int64_t across;       /* how many side by side on the last axis */
} Taps;

/* The patches of an image.  Place (z, y, x) of the grid `out` has its origin
** at step times that in the image; what lies outside of it is 0.  Taps side by
** side, whose elements are, make one run. */
typedef struct Patches {
  const real *data, *end; /* of the group's channels; behind the image */
  int64_t channels, ld;   /* of the group; of all groups */
  int64_t in[3], out[3], step[3];
  int64_t runs, across;       /* runs of `across` taps */
  const int64_t (*offset)[3]; /* of each tap */
} Patches;

/* All taps of s; or those that meet the input places of one class, as seen
** from the gradient of the result. */
Taps CPU(conv_taps)(const ConvShape *s);
Taps CPU(conv_taps_back)(const ConvShape *s, const int64_t class[3]);

static inline int64_t patches_width (const Patches *p) {
  return p->runs * p->across * p->channels;
}

/* Columns k0 .. k0 + k of rows i0 .. i0 + m, ldto apart.  Up to VEC reals
** behind each row are written too. */
void CPU(patches_gather)(const Patches *p, int64_t i0, int64_t m, int64_t k0,
                         int64_t k, real *to, int64_t ldto);

/* Reals from one row of gathered patches to the next: room to write past k,
** and no multiple of a page. */
static inline int64_t patches_ld (int64_t k) {
  int64_t ld = divide_up(k, VEC) * VEC + VEC;
  return ld % (1024 / (int64_t)sizeof(real)) == 0 ? ld + VEC : ld;
}

/* k cut into blocks: units of whole runs, or of one that is cut by itself. */
typedef struct KBlocks {
  int64_t k, unit, depth, each; /* each: blocks of a unit */
} KBlocks;

static inline KBlocks kblocks_of (int64_t k, int64_t run) {
  enum { DEPTH = VEC_BYTES == 64 ? 512 : 344 };
  KBlocks b = { .k = k, .unit = run };
  if (run < DEPTH) b.unit = min64(k, DEPTH / run * run);
  b.each = divide_up(b.unit, DEPTH);
  b.depth = divide_up(b.unit, b.each);
  return b;
}

/* The block of row k, its row there, and how many follow in the block. */
static inline int64_t kblocks_index (const KBlocks *b, int64_t k) {
  return k / b->unit * b->each + k % b->unit / b->depth;
}

static inline int64_t kblocks_row (const KBlocks *b, int64_t k) {
  return k % b->unit % b->depth;
}

static inline int64_t kblocks_left (const KBlocks *b, int64_t k) {
  int64_t left = min64(b->depth - kblocks_row(b, k), b->unit - k % b->unit);
  return min64(left, b->k - k);
}

static inline int64_t kblocks_count (const KBlocks *b) {
  return kblocks_index(b, b->k - 1) + 1;
}

/* Weights of one group as the product takes them: for each tap `rows` rows,
** of n columns: element (row, column) of tap t is w[t + row * ldr + column *
** ldc].  size: taps of the kernel, of which some may be left out. */
typedef struct Weights {
  const real *data;
  const Taps *taps;
  int64_t rows, ldr, n, ldc, size;
} Weights;

int64_t CPU(weights_size)(const Weights *w); /* reals, packed */
void CPU(weights_pack)(const Weights *w, real *to);

/* Those of all groups, `group` reals apart in the weight `from`, packed: kept
** with it, or in scratch.  m: places that they serve.  back: taps are in the
** order of the gradient of the input.  from NULL: they are not all. */
const real *CPU(weights_packed)(const Tensor *from, const Weights *w,
                                int64_t group, int64_t groups, int64_t m,
                                bool back);

/* c (m, n) = patches (m, k) times packed weights (k, n), plus bias, relu;
** rows of c are ldc apart. */
typedef struct PatchProduct {
  const Patches *patches;
  int64_t m, n;
  const real *weights;
  real *c;
  int64_t ldc;
  const real *bias; /* (n), or NULL */
  bool relu;
} PatchProduct;

void CPU(patches_product)(const PatchProduct *p);
bool CPU(block_product)(const PatchProduct *p); /* false: not worth it */

/* gw (n, channels, taps) = gy (m, n)' times patches (m, taps x channels). */
void CPU(patches_gradient)(const Patches *patches, int64_t m, const real *gy,
                           int64_t ldg, int64_t n, real *gw);

/* One group a channel: the result, or a class of the gradient of the input,
** whose places lie `place` apart on each axis of (n, z, y, x).  weights:
** (channels, taps of the kernel). */
typedef struct Depthwise {
  Patches patches;
  const Taps *taps;
  int64_t n;
  const real *weights;
  int64_t size; /* taps of the kernel */
  real *y;
  int64_t place[4];
  const real *bias;
  bool relu;
} Depthwise;

void CPU(depthwise)(const Depthwise *d);
void CPU(depthwise_gradient)(const Patches *p, int64_t n, const real *gy,
                             real *gw);

/* Few outputs a place: from x (images, in, channels) to y (images, out, n).
** Place q of a part's grid meets the places q + offset of x, and is place
** first + stride q of y.  Weights of tap t, output o and channel c: at t + o
** ldo + c ldc. */
typedef struct FewPart {
  Taps taps;
  int64_t first[3], grid[3];
} FewPart;

typedef struct Few {
  const real *x, *weights, *bias;
  real *y;
  int64_t images, channels, n, taps, ldo, ldc;
  int64_t in[3], out[3], stride[3];
  int64_t parts;
  const FewPart *part;
  bool relu;
} Few;

void CPU(conv_few)(const Few *f);

/* A convolution, the gradient of its input (back: y is gx, x gy) or that of
** its weights by transformed tiles, where that is faster; else false. */
#ifdef CPU_ANY
bool CPU(conv_winograd)(Tensor *y, const Tensor *x, const Tensor *w,
                        const Epilogue *e, const ConvShape *s, bool back);
bool CPU(conv_winograd_weight)(Tensor *gw, const Tensor *gy, const Tensor *x,
                               const ConvShape *s);
#define CONV_WINOGRAD(...) CPU(conv_winograd)(__VA_ARGS__)
#define CONV_WINOGRAD_WEIGHT(...) CPU(conv_winograd_weight)(__VA_ARGS__)
#else /* doubles are for those who want all digits */
#define CONV_WINOGRAD(...) false
#define CONV_WINOGRAD_WEIGHT(...) false
#endif

#endif
