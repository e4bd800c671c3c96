/* winograd.h - 3x3 convolutions of stride 1 by minimal filtering (Lavin and
** Gray 2016, arXiv:1509.09308), f32 and channels-last.
**
** winograd_pack.c  the weights' transform, in panels of the matrix product
** winograd_tile.c  the transforms of a tile of x, and back to one of y
** winograd.c       the products between them, and whether it all is worth it
** winograd_weight.c  the gradient of the weights, by the same transforms
**
** y is cut into tiles of side by side pixels.  The size = side + 2 by size
** pixels of x that a tile reads become as many points, channel by channel; at
** each point, the channels of all tiles by the weights' is one product of
** matrices; and its results become the tile of y.  Of side 4 a pixel costs 36
** / 16 multiplications where the definition has 9, of side 2 16 / 4.
**
** The largest error, in parts of the largest |y|, is about 3e-6 for side 4 and
** 5e-7 for side 2 where the definition's own is 2e-7. */

#ifndef winograd_h
#define winograd_h

#include "simd.h"

#ifdef CPU_ANY

/* Points along a tile of side 4, and in all. */
enum { WINOGRAD_SIZE = 6, WINOGRAD_POINTS = 36 };

/* Where the polynomials of side 4 are taken: at 0, infinity and the positive
** and negative of these.  As their product is 1 powers stay near 1: the error
** is a third of what the usual 1 and 2 give. */
#define WINOGRAD_A 0.70710678118654752440
#define WINOGRAD_B 1.41421356237309504880

/* y = act(alpha conv(x, weights) + bias + add).  Tensors are dense; the sums
** of an output have one order, whatever else is computed beside it. */
typedef struct Winograd {
  int side;             /* of a tile: 2 or 4 */
  int64_t n, h, w, c;   /* x (n, h, w, c) */
  int64_t oh, ow, k;    /* y (n, oh, ow, k) */
  int64_t top, left;    /* rows and columns of zeros before x */
  const real *x, *bias; /* bias (k), or NULL */
  const real *add;      /* y's shape, may be y itself, or NULL */
  real *y;
  real alpha;
  int act; /* a row of map.def, or -1 */
} Winograd;

/* The side with which the shape of g is computed fastest, or 0: by the
** definition.  kept: the packed weights are there from an earlier call, or
** will serve many; else packing them counts. */
int CPU(winograd_choice)(const Winograd *g, bool kept);

/* Bytes of the packed weights of c by k channels, and packing them.  w is
** dense (k, c, 3, 3); or, back set, (c, k, 3, 3), for the gradient of the
** input of a convolution by w: that of y by w turned around, with 2 rows and
** columns of zeros less those which the convolution had.  The blob depends on
** the instruction set. */
size_t CPU(winograd_size)(int side, int64_t c, int64_t k);
void CPU(winograd_pack)(int side, int64_t c, int64_t k, const real *w,
                        bool back, void *blob);

/* Of channels j .. j + n - 1 of k alone, as if there were no others. */
void CPU(winograd_pack_part)(int side, int64_t c, int64_t k, const real *w,
                             bool back, int64_t j, int64_t n, void *blob);

/* Reals from a point's packed weights to the next's. */
int64_t CPU(winograd_plane)(int64_t c, int64_t k);

/* Convolves with packed weights, or with weights as winograd_pack takes them:
** a part of these is packed at a time, where all would come from memory. */
void CPU(winograd)(const Winograd *g, const void *blob);
void CPU(winograd_once)(const Winograd *g, const real *w, bool back);

/* The same with the schedule given: blocks of `block` tiles, each from x to y
** by one thread (alone), or each step by all threads. */
void CPU(winograd_by)(const Winograd *g, const void *blob, bool alone,
                      int64_t block);

/* gw (k, c, 3, 3), the gradient of the weights, from x and gy, y's gradient.
** The tiles summed into one block, and so the bits, follow from shapes. */
int CPU(winograd_weight_choice)(const Winograd *g);
void CPU(winograd_weight)(const Winograd *g, const real *gy, real *gw);

/*
** {======================================================
** Between the files
** =======================================================
*/

static inline int64_t winograd_tiles (const Winograd *g) {
  return g->n * divide_up(g->oh, g->side) * divide_up(g->ow, g->side);
}

/* Reals from a tile's channels to the next tile's: whole vectors, and seldom
** whole pages. */
static inline int64_t winograd_row (int64_t channels) {
  return divide_up(channels, VEC) * VEC + 16;
}

/* Tiles of a task that only transforms. */
enum { WINOGRAD_FEW = 4 };

/* The steps of one tile, which are counted along rows, images last.  Points
** lie plane reals apart, at v for x, at m for y; channels are read and written
** in whole vectors there.  zeros: c of them, of the source. */
void CPU(winograd_read)(const Winograd *g, int64_t tile, const real *zeros,
                        real *v, int64_t plane);
void CPU(winograd_read_y)(const Winograd *g, const real *gy, int64_t tile,
                          const real *zeros, real *v, int64_t plane);
void CPU(winograd_write)(const Winograd *g, int64_t tile, const real *m,
                         int64_t plane);

/* gw (k, c, 3, 3) from its points (c, k), plane reals apart, rows `row`. */
void CPU(winograd_collect)(int side, int64_t c, int64_t k, const real *points,
                           int64_t row, int64_t plane, real *gw);

/* }====================================================== */

#endif

#endif
