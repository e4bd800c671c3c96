/* winograd_weight.c - the gradient of a convolution's weights by transformed
** tiles: what the chain rule makes of the forward pass.
**
** With V the points of x's tiles and D those of gy's, which A takes there, the
** gradient at a point is V' D, a sum over tiles: one product of matrices,
** (c, tiles) by (tiles, k).  Blocks of tiles are summed one after the other;
** G' and G then make the nine taps. */

#include "gemm.h"
#include "winograd.h"

#ifdef CPU_ANY

typedef struct Job {
  const Winograd *g;
  const real *gy;
  int points;
  int64_t tiles, block, first;
  int64_t v_row, d_row, u_row; /* reals from tile to tile, or c to c */
  int64_t v_plane, d_plane, u_plane;
  int64_t rows; /* channels of x in a task's product */
  real *zeros, *v, *d, *u, *scratch;
  int64_t scratch_each;
} Job;

static int64_t block_end (const Job *p) {
  return min64(p->first + p->block, p->tiles);
}

static void read_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t at = p->first + task * WINOGRAD_FEW;
  int64_t end = min64(at + WINOGRAD_FEW, block_end(p));
  (void)worker;
  for (; at < end; at++) {
    int64_t i = at - p->first;
    CPU(winograd_read)(p->g, at, p->zeros, p->v + i * p->v_row, p->v_plane);
    CPU(winograd_read_y)
    (p->g, p->gy, at, p->zeros, p->d + i * p->d_row, p->d_plane);
  }
}

/* The product of a point, for c's channels i .. i + m - 1 and n tiles. */
static Gemm product (const Job *p, int point, int64_t i, int64_t m,
                     int64_t n) {
  const real *v = p->v + point * p->v_plane + i;
  const real *d = p->d + point * p->d_plane;
  return (Gemm){ .m = m,
                 .n = p->g->k,
                 .k = n,
                 .a = { v, 1, p->v_row, SOURCE_REAL },
                 .b = { d, p->d_row, 1, SOURCE_REAL },
                 .c = p->u + point * p->u_plane + i * p->u_row,
                 .ldc = p->u_row,
                 .alpha = 1,
                 .accumulate = p->first > 0 };
}

static void multiply_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t pieces = divide_up(p->g->c, p->rows), i = task % pieces * p->rows;
  Gemm g = product(p, (int)(task / pieces), i, min64(p->rows, p->g->c - i),
                   block_end(p) - p->first);
  CPU(gemm_serial)(&g, p->scratch + worker * p->scratch_each);
}

/* Tiles of a block: about as many as let its points stay in a shared cache,
** yet so many that a tile of the product is worth its start. */
static int64_t block_of (const Winograd *g, int64_t tiles) {
  enum { POINTS = 16 << 20, LEAST = 128 };
  int64_t size = (g->side + 2) * (g->side + 2) * (int64_t)sizeof(real);
  int64_t most = max64(POINTS / (size * (g->c + g->k)), LEAST);
  return divide_up(tiles, divide_up(tiles, most));
}

static Job job_of (const Winograd *g, const real *gy, int64_t tiles) {
  Job p = { .g = g, .gy = gy, .tiles = tiles, .block = block_of(g, tiles) };
  p.points = (g->side + 2) * (g->side + 2);
  p.v_row = winograd_row(g->c);
  p.d_row = p.u_row = winograd_row(g->k);
  p.v_plane = p.block * p.v_row + 16;
  p.d_plane = p.block * p.d_row + 16;
  p.u_plane = g->c * p.u_row + 16;
  /* A task of a product ends within some 10 ms. */
  double most = VEC * 5e6 / ((double)p.block * (double)g->k);
  p.rows = 12 * TILE_ROWS;
  if (most < (double)p.rows) p.rows = max64(TILE_ROWS, (int64_t)most);
  p.rows = min64(p.rows, g->c);
  return p;
}

/* Scratch of a product: the last block may be cut as no other is. */
static int64_t scratch_of (const Job *p) {
  int64_t last = p->tiles - (p->tiles - 1) / p->block * p->block, most = 0;
  int64_t rows = p->g->c - (p->g->c - 1) / p->rows * p->rows;
  real none = 0; /* in place of points: sizes alone count */
  Job k = *p;
  k.v = k.d = k.u = &none;
  for (int i = 0; i < 4; i++) {
    Gemm g = product(&k, 0, 0, i % 2 == 0 ? p->rows : rows,
                     i < 2 ? p->block : last);
    most = max64(most, CPU(gemm_scratch)(&g));
  }
  return (most + 15) / 16 * 16;
}

static void take_scratch (Job *p) {
  int64_t v = p->points * p->v_plane, d = p->points * p->d_plane;
  int64_t u = p->points * p->u_plane;
  int64_t zeros = winograd_row(max64(p->g->c, p->g->k));
  p->scratch_each = scratch_of(p);
  int64_t reals = v + d + u + zeros + threads_width() * p->scratch_each;
  p->v = mem_scratch((size_t)reals * sizeof(real));
  p->d = p->v + v;
  p->u = p->d + d;
  p->zeros = p->u + u;
  p->scratch = p->zeros + zeros;
  memset(p->zeros, 0, (size_t)zeros * sizeof(real));
}

void CPU (winograd_weight)(const Winograd *g, const real *gy, real *gw) {
  int64_t tiles = winograd_tiles(g);
  if (tiles == 0 || g->c == 0 || g->k == 0) {
    memset(gw, 0, (size_t)(g->c * g->k * 9) * sizeof(real));
    return;
  }
  size_t mark = fnn_mark();
  Job p = job_of(g, gy, tiles);
  take_scratch(&p);
  int64_t products = p.points * divide_up(g->c, p.rows);
  for (; p.first < tiles; p.first += p.block) {
    threads_run(divide_up(block_end(&p) - p.first, WINOGRAD_FEW), read_task,
                &p);
    threads_run(products, multiply_task, &p);
  }
  CPU(winograd_collect)(g->side, g->c, g->k, p.u, p.u_row, p.u_plane, gw);
  fnn_escape(mark, NULL);
}

#endif
