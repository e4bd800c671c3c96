/* winograd_tile.c - a tile of x to its points, and points to a tile of y.
**
** Both go along one side of the tile and then along the other, VEC channels
** at a time: size lines of size numbers each. */

#include "winograd.h"

#include "../core/ops.h"
#include "sweep.h"

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

/*
** {======================================================
** From x
** =======================================================
*/

/* B' d of a line of pixels. */
VEC_INLINE void spread (const vec *d, vec *v, const int side) {
  if (side == 2) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
    return;
  }
  const real a = (real)WINOGRAD_A, aa = (real)(WINOGRAD_A * WINOGRAD_A);
  const real b = (real)WINOGRAD_B, bb = (real)(WINOGRAD_B * WINOGRAD_B);
  vec even = d[4] - bb * d[2], odd = d[3] - bb * d[1];
  v[1] = even + a * odd;
  v[2] = even - a * odd;
  even = d[4] - aa * d[2], odd = d[3] - aa * d[1];
  v[3] = even + b * odd;
  v[4] = even - b * odd;
  v[0] = d[0] + (d[4] - (aa + bb) * d[2]);
  v[5] = d[1] + (d[5] - (aa + bb) * d[3]);
}

/* n: channels from c on, of which VEC at most are taken. */
VEC_INLINE void read_lanes (const real *const *pixel, int64_t ahead, int64_t c,
                            int64_t n, real *v, int64_t plane,
                            const int side) {
  const int size = side + 2;
  vec t[WINOGRAD_SIZE][WINOGRAD_SIZE], d[WINOGRAD_SIZE], o[WINOGRAD_SIZE];
  VEC_UNROLL
  for (int j = 0; j < size; j++) {
    VEC_UNROLL
    for (int i = 0; i < size; i++) {
      const real *at = pixel[i * size + j] + c;
      d[i] = load(at, n);
      if (j >= 2) __builtin_prefetch(at + ahead);
    }
    spread(d, o, side);
    VEC_UNROLL
    for (int i = 0; i < size; i++) t[i][j] = o[i];
  }
  v += c;
  VEC_UNROLL
  for (int i = 0; i < size; i++) {
    spread(t[i], o, side);
    VEC_UNROLL
    for (int j = 0; j < size; j++, v += plane) vec_store(v, o[j]);
  }
}

VEC_INLINE void read_tile (int64_t c, const real *const *pixel, real *v,
                           int64_t plane, const int side) {
  int64_t i = 0;
  for (; i + VEC <= c; i += VEC)
    read_lanes(pixel, side * c, i, VEC, v, plane, side);
  if (i < c) read_lanes(pixel, side * c, i, c - i, v, plane, side);
}

void CPU (winograd_read)(const Winograd *g, int64_t n, int64_t i, int64_t j,
                         const real *zeros, real *v, int64_t plane) {
  const real *pixel[WINOGRAD_POINTS];
  int size = g->side + 2;
  int64_t y0 = i * g->side - g->top, x0 = j * g->side - g->left;
  for (int dy = 0; dy < size; dy++)
    for (int dx = 0; dx < size; dx++) {
      int64_t y = y0 + dy, x = x0 + dx;
      bool inside = y >= 0 && y < g->h && x >= 0 && x < g->w;
      pixel[dy * size + dx] =
          inside ? g->x + ((n * g->h + y) * g->w + x) * g->c : zeros;
    }
  if (g->side == 4) read_tile(g->c, pixel, v, plane, 4);
  else read_tile(g->c, pixel, v, plane, 2);
}

/* }====================================================== */

/*
** {======================================================
** To y
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
      store(g->y + at, y, n);
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

void CPU (winograd_write)(const Winograd *g, int64_t n, int64_t i, int64_t j,
                          const real *m, int64_t plane) {
  int64_t y = i * g->side, x = j * g->side;
  Target to = { .at = ((n * g->oh + y) * g->ow + x) * g->k,
                .row = g->ow * g->k,
                .rows = (int)min64(g->side, g->oh - y),
                .cols = (int)min64(g->side, g->ow - x) };
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
