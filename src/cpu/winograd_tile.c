/* winograd_tile.c - a tile of x or of y's gradient to its points, and points
** to a tile of y.
**
** All go along one side of the tile and then along the other, VEC channels
** at a time: size lines of size numbers each. */

#include "sweep.h"
#include "winograd.h"

#include "../core/ops.h"

#ifdef CPU_ANY

extern const Loop CPU(map_loops)[MAP_COUNT];

/* n lanes, or a whole vector where there are more. */
VEC_INLINE vec load (const real *p, int64_t n) {
  return n >= VEC ? vec_load(p) : vec_load_part(p, n);
}

VEC_INLINE void store (real *p, vec v, int64_t n) {
  if (n >= VEC) vec_store(p, v);
  else vec_store_part(p, v, n);
}

/* Where a tile begins. */
typedef struct Place {
  int64_t n, y, x; /* its image, and pixel of y */
} Place;

static Place place_of (const Winograd *g, int64_t tile) {
  int64_t across = divide_up(g->ow, g->side), down = divide_up(g->oh, g->side);
  int64_t row = tile / across;
  return (Place){ row / down, row % down * g->side, tile % across * g->side };
}

/*
** {======================================================
** To points
** =======================================================
*/

/* A d of a line of y's gradient, or B' d of one of x. */
VEC_INLINE void expand (const vec *d, vec *v, const int side,
                        const bool of_y) {
  const real a = (real)WINOGRAD_A, aa = (real)(WINOGRAD_A * WINOGRAD_A);
  const real b = (real)WINOGRAD_B, bb = (real)(WINOGRAD_B * WINOGRAD_B);
  if (of_y && side == 2) {
    v[0] = d[0];
    v[1] = d[0] + d[1];
    v[2] = d[0] - d[1];
    v[3] = -d[1];
  } else if (of_y) {
    vec even = d[0] + aa * d[2], odd = d[1] + aa * d[3];
    vec far_even = d[0] + bb * d[2], far_odd = d[1] + bb * d[3];
    v[0] = d[0];
    v[1] = even + a * odd;
    v[2] = even - a * odd;
    v[3] = far_even + b * far_odd;
    v[4] = far_even - b * far_odd;
    v[5] = d[3];
  } else if (side == 2) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  } else {
    vec even = d[4] - bb * d[2], odd = d[3] - bb * d[1];
    vec far_even = d[4] - aa * d[2], far_odd = d[3] - aa * d[1];
    v[0] = d[0] + (d[4] - (aa + bb) * d[2]);
    v[1] = even + a * odd;
    v[2] = even - a * odd;
    v[3] = far_even + b * far_odd;
    v[4] = far_even - b * far_odd;
    v[5] = d[1] + (d[5] - (aa + bb) * d[3]);
  }
}

/* Channels c .. c + n - 1, of which VEC at most are taken.  ahead: where the
** next tile has what this one does not. */
VEC_INLINE void read_lanes (const real *const *pixel, int64_t ahead, int64_t c,
                            int64_t n, real *v, int64_t plane, const int side,
                            const bool of_y) {
  const int size = side + 2, lines = of_y ? side : size;
  vec t[WINOGRAD_SIZE][WINOGRAD_SIZE], d[WINOGRAD_SIZE], o[WINOGRAD_SIZE];
  VEC_UNROLL
  for (int j = 0; j < lines; j++) {
    VEC_UNROLL
    for (int i = 0; i < lines; i++) {
      const real *at = pixel[i * lines + j] + c;
      d[i] = load(at, n);
      if (j >= lines - side) __builtin_prefetch(at + ahead);
    }
    expand(d, o, side, of_y);
    VEC_UNROLL
    for (int i = 0; i < size; i++) t[i][j] = o[i];
  }
  v += c;
  VEC_UNROLL
  for (int i = 0; i < size; i++) {
    expand(t[i], o, side, of_y);
    VEC_UNROLL
    for (int j = 0; j < size; j++, v += plane) vec_store(v, o[j]);
  }
}

VEC_INLINE void read_tile (int64_t c, const real *const *pixel, real *v,
                           int64_t plane, const int side, const bool of_y) {
  int64_t i = 0, ahead = side * c;
  for (; i + VEC <= c; i += VEC)
    read_lanes(pixel, ahead, i, VEC, v, plane, side, of_y);
  if (i < c) read_lanes(pixel, ahead, i, c - i, v, plane, side, of_y);
}

/* The pixels of a square of x (n, h, w, c); those outside are `zeros`. */
static void find_pixels (const real *x, int64_t h, int64_t w, int64_t c,
                         Place at, int lines, const real *zeros,
                         const real **pixel) {
  for (int i = 0; i < lines; i++)
    for (int j = 0; j < lines; j++) {
      int64_t row = at.y + i, col = at.x + j;
      bool inside = row >= 0 && row < h && col >= 0 && col < w;
      *pixel++ = inside ? x + ((at.n * h + row) * w + col) * c : zeros;
    }
}

void CPU (winograd_read)(const Winograd *g, int64_t tile, const real *zeros,
                         real *v, int64_t plane) {
  const real *pixel[WINOGRAD_POINTS];
  Place at = place_of(g, tile);
  at.y -= g->top;
  at.x -= g->left;
  find_pixels(g->x, g->h, g->w, g->c, at, g->side + 2, zeros, pixel);
  if (g->side == 4) read_tile(g->c, pixel, v, plane, 4, false);
  else read_tile(g->c, pixel, v, plane, 2, false);
}

void CPU (winograd_read_y)(const Winograd *g, const real *gy, int64_t tile,
                           const real *zeros, real *v, int64_t plane) {
  const real *pixel[WINOGRAD_POINTS];
  find_pixels(gy, g->oh, g->ow, g->k, place_of(g, tile), g->side, zeros,
              pixel);
  if (g->side == 4) read_tile(g->k, pixel, v, plane, 4, true);
  else read_tile(g->k, pixel, v, plane, 2, true);
}

/* }====================================================== */

/*
** {======================================================
** From points to y
** =======================================================
*/

/* A' m of a line of points. */
VEC_INLINE void gather (const vec *m, vec *y, const int side) {
  if (side == 2) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
    return;
  }
  const real a = (real)WINOGRAD_A, aa = (real)(WINOGRAD_A * WINOGRAD_A);
  const real b = (real)WINOGRAD_B, bb = (real)(WINOGRAD_B * WINOGRAD_B);
  vec even = m[1] + m[2], odd = m[1] - m[2];
  vec far_even = m[3] + m[4], far_odd = m[3] - m[4];
  y[0] = m[0] + even + far_even;
  y[1] = a * odd + b * far_odd;
  y[2] = aa * even + bb * far_even;
  y[3] = a * aa * odd + (b * bb * far_odd + m[5]);
}

/* Where a tile lies in y, and what of it does. */
typedef struct Target {
  int64_t at, row; /* of its first pixel; from one row to the next */
  int rows, cols;
} Target;

VEC_INLINE void write_lanes (const Winograd *g, const Target *to, int64_t c,
                             int64_t n, const real *m, int64_t plane,
                             const int side) {
  const int size = side + 2;
  vec t[4][WINOGRAD_SIZE], d[WINOGRAD_SIZE], o[4];
  VEC_UNROLL
  for (int j = 0; j < size; j++) {
    VEC_UNROLL
    for (int i = 0; i < size; i++)
      d[i] = vec_load(m + c + (i * size + j) * plane);
    gather(d, o, side);
    VEC_UNROLL
    for (int i = 0; i < side; i++) t[i][j] = o[i];
  }
  vec bias = g->bias != NULL ? load(g->bias + c, n) : (vec){ 0 };
  for (int i = 0; i < to->rows; i++) {
    int64_t at = to->at + i * to->row + c;
    gather(t[i], o, side);
    VEC_UNROLL
    for (int j = 0; j < side; j++, at += g->k) {
      if (j >= to->cols) continue;
      vec y = g->alpha * o[j] + bias;
      if (g->add != NULL) y += load(g->add + at, n);
      if (g->act == MAP_relu) y = vec_relu(y);
      store(g->y + at, y, n); /* and the next tile's */
      __builtin_prefetch(g->y + at + side * g->k, 1);
    }
  }
}

VEC_INLINE void write_tile (const Winograd *g, const Target *to, const real *m,
                            int64_t plane, const int side) {
  int64_t i = 0;
  for (; i + VEC <= g->k; i += VEC) write_lanes(g, to, i, VEC, m, plane, side);
  if (i < g->k) write_lanes(g, to, i, g->k - i, m, plane, side);
}

void CPU (winograd_write)(const Winograd *g, int64_t tile, const real *m,
                          int64_t plane) {
  Place at = place_of(g, tile);
  Target to = { .at = ((at.n * g->oh + at.y) * g->ow + at.x) * g->k,
                .row = g->ow * g->k,
                .rows = (int)min64(g->side, g->oh - at.y),
                .cols = (int)min64(g->side, g->ow - at.x) };
  if (g->side == 4) write_tile(g, &to, m, plane, 4);
  else write_tile(g, &to, m, plane, 2);
  if (g->act < 0 || g->act == MAP_relu) return;
  for (int r = 0; r < to.rows; r++) {
    real *run = g->y + to.at + r * to.row;
    const void *in[] = { run };
    CPU(map_loops)[g->act](run, in, to.cols * g->k, 0, 0);
  }
}

/* }====================================================== */

#endif
