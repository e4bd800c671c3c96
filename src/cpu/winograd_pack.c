/* winograd_pack.c - the weights' points, U = G g G', as panels; and back, the
** gradient G' U G of the weights from that of their points.
**
** Of each point the (c, k) weights lie as gemm_prepack would leave them.  The
** nine taps of VEC weights side by side are brought together, and each of
** their points is one vector of a panel. */

#include "gemm.h"
#include "winograd.h"

#ifdef CPU_ANY

typedef struct Job {
  int side;
  int64_t c, k, row, col; /* row, col: of w, from one c or k to the next */
  const real *w;
  bool back;
  real *blob;
  int64_t plane; /* reals of a point */
} Job;

/* G g of three taps in a line. */
VEC_INLINE void spread (const vec *g, vec *u, const int side) {
  if (side == 2) {
    vec even = (real)0.5 * (g[0] + g[2]), odd = (real)0.5 * g[1];
    u[0] = g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = g[2];
    return;
  }
  const double a = WINOGRAD_A, b = WINOGRAD_B, aa = a * a, bb = b * b;
  const double na = 2 * aa * (aa - bb), nb = 2 * bb * (bb - aa);
  vec even = (real)(1 / na) * g[0] + (real)(aa / na) * g[2];
  vec odd = (real)(a / na) * g[1];
  u[0] = g[0];
  u[1] = even + odd;
  u[2] = even - odd;
  even = (real)(1 / nb) * g[0] + (real)(bb / nb) * g[2];
  odd = (real)(b / nb) * g[1];
  u[3] = even + odd;
  u[4] = even - odd;
  u[5] = g[2];
}

/* The points of n <= VEC weights from (i, j) on, the lanes past n zero. */
VEC_INLINE void pack_lanes (const Job *p, int64_t i, int64_t j, int64_t n,
                            const int side) {
  const int size = side + 2;
  _Alignas(64) real taps[9][VEC] = { { 0 } };
  vec t[WINOGRAD_SIZE][3], g[3], u[WINOGRAD_SIZE];
  const real *w = p->w + i * p->row + j * p->col;
  for (int64_t l = 0; l < n; l++, w += p->col)
    for (int tap = 0; tap < 9; tap++)
      taps[tap][l] = w[p->back ? 8 - tap : tap];
  VEC_UNROLL
  for (int x = 0; x < 3; x++) {
    VEC_UNROLL
    for (int y = 0; y < 3; y++) g[y] = vec_load(taps[3 * y + x]);
    spread(g, u, side);
    VEC_UNROLL
    for (int y = 0; y < size; y++) t[y][x] = u[y];
  }
  real *to = CPU(gemm_packed_at)(p->c, p->k, i, j, p->blob);
  VEC_UNROLL
  for (int y = 0; y < size; y++) {
    spread(t[y], u, side);
    VEC_UNROLL
    for (int x = 0; x < size; x++, to += p->plane) vec_store(to, u[x]);
  }
}

static void panel_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t end = (task + 1) * TILE_COLS;
  (void)worker;
  for (int64_t j = task * TILE_COLS; j < end; j += VEC) {
    int64_t n = max64(0, min64(VEC, p->k - j));
    for (int64_t i = 0; i < p->c; i++)
      if (p->side == 4) pack_lanes(p, i, j, n, 4);
      else pack_lanes(p, i, j, n, 2);
  }
}

/* A cache line more than they take: the points are written side by side, and
** would often lie whole pages apart. */
int64_t CPU (winograd_plane)(int64_t c, int64_t k) {
  return (int64_t)(CPU(gemm_packed_size)(c, k) / sizeof(real)) + 16;
}

size_t CPU (winograd_size)(int side, int64_t c, int64_t k) {
  int64_t points = (side + 2) * (side + 2);
  return (size_t)(points * CPU(winograd_plane)(c, k)) * sizeof(real);
}

void CPU (winograd_pack_part)(int side, int64_t c, int64_t k, const real *w,
                              bool back, int64_t j, int64_t n, void *blob) {
  Job p = { .side = side, .c = c, .k = n, .back = back, .blob = blob };
  p.row = back ? 9 * k : 9;
  p.col = back ? 9 : 9 * c;
  p.w = w + j * p.col;
  p.plane = CPU(winograd_plane)(c, n);
  threads_run(divide_up(n, TILE_COLS), panel_task, &p);
}

void CPU (winograd_pack)(int side, int64_t c, int64_t k, const real *w,
                         bool back, void *blob) {
  CPU(winograd_pack_part)(side, c, k, w, back, 0, k, blob);
}

/*
** {======================================================
** Back
** =======================================================
*/

typedef struct Collect {
  int side;
  int64_t c, k, row, plane;
  const real *points;
  real *gw;
} Collect;

/* G' u of a line of points. */
VEC_INLINE void gather (const vec *u, vec *g, const int side) {
  vec even = u[1] + u[2], odd = u[1] - u[2];
  if (side == 2) {
    g[0] = u[0] + (real)0.5 * even;
    g[1] = (real)0.5 * odd;
    g[2] = (real)0.5 * even + u[3];
    return;
  }
  const double a = WINOGRAD_A, b = WINOGRAD_B, aa = a * a, bb = b * b;
  const double na = 2 * aa * (aa - bb), nb = 2 * bb * (bb - aa);
  vec far_even = u[3] + u[4], far_odd = u[3] - u[4];
  g[0] = u[0] + ((real)(1 / na) * even + (real)(1 / nb) * far_even);
  g[1] = (real)(a / na) * odd + (real)(b / nb) * far_odd;
  g[2] = (real)(aa / na) * even + ((real)(bb / nb) * far_even + u[5]);
}

/* The taps of n <= VEC weights from (i, j) on. */
VEC_INLINE void collect_lanes (const Collect *p, int64_t i, int64_t j,
                               int64_t n, const int side) {
  const int size = side + 2;
  _Alignas(64) real taps[9][VEC];
  vec t[3][WINOGRAD_SIZE], u[WINOGRAD_SIZE], g[3];
  const real *from = p->points + i * p->row + j;
  VEC_UNROLL
  for (int x = 0; x < size; x++) {
    VEC_UNROLL
    for (int y = 0; y < size; y++)
      u[y] = vec_load(from + (y * size + x) * p->plane);
    gather(u, g, side);
    VEC_UNROLL
    for (int y = 0; y < 3; y++) t[y][x] = g[y];
  }
  VEC_UNROLL
  for (int y = 0; y < 3; y++) {
    gather(t[y], g, side);
    VEC_UNROLL
    for (int x = 0; x < 3; x++) vec_store(taps[3 * y + x], g[x]);
  }
  real *to = p->gw + (j * p->c + i) * 9;
  for (int64_t l = 0; l < n; l++, to += p->c * 9)
    for (int tap = 0; tap < 9; tap++) to[tap] = taps[tap][l];
}

static void collect_task (void *ud, int64_t task, int worker) {
  const Collect *p = ud;
  int64_t j = task * VEC, n = min64(VEC, p->k - j);
  (void)worker;
  for (int64_t i = 0; i < p->c; i++)
    if (p->side == 4) collect_lanes(p, i, j, n, 4);
    else collect_lanes(p, i, j, n, 2);
}

void CPU (winograd_collect)(int side, int64_t c, int64_t k, const real *points,
                            int64_t row, int64_t plane, real *gw) {
  Collect p = { side, c, k, row, plane, points, gw };
  threads_run(divide_up(k, VEC), collect_task, &p);
}

/* }====================================================== */

#endif
