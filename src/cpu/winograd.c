/* winograd.c - convolution by products of transformed tiles.
**
** Two schedules.  Where the packed weights stay in a shared cache each thread
** takes a block of tiles from x to y by itself, its points in its own cache.
** Else the weights come from memory and should do so seldom: then many tiles
** are transformed by all threads, multiplied by all, and transformed back. */

#include "gemm.h"
#include "winograd.h"

#ifdef CPU_ANY

typedef struct Job {
  const Winograd *g;
  const real *weights;
  int64_t weights_plane; /* reals of the weights of a point */
  int64_t tiles, block;  /* in all; in a block */
  int64_t first;         /* tile of the block at hand */
  int points;
  int64_t v_row, m_row;     /* reals from tile to tile */
  int64_t v_plane, m_plane; /* and from point to point */
  int64_t columns;          /* of a task's product */
  real *zeros, *v, *m, *scratch;
  int64_t scratch_each;
} Job;

static Job job_of (const Winograd *g, const void *weights, int64_t block) {
  Job p = { .g = g, .weights = weights };
  p.points = (g->side + 2) * (g->side + 2);
  p.weights_plane = CPU(winograd_plane)(g->c, g->k);
  p.tiles = winograd_tiles(g);
  p.block = min64(block, p.tiles);
  p.v_row = winograd_row(g->c);
  p.m_row = winograd_row(g->k);
  p.v_plane = p.block * p.v_row + 16;
  p.m_plane = p.block * p.m_row + 16;
  p.columns = divide_up(g->k, TILE_COLS) * TILE_COLS;
  return p;
}

/* The product at one point: of n tiles, by columns from j on. */
static Gemm product (const Job *p, int point, int64_t n, const real *v,
                     real *m) {
  return (Gemm){ .m = n,
                 .n = p->g->k,
                 .k = p->g->c,
                 .a = { v + point * p->v_plane, p->v_row, 1, SOURCE_REAL },
                 .c = m + point * p->m_plane,
                 .ldc = p->m_row,
                 .alpha = 1 };
}

static void multiply (const Job *p, int point, int64_t n, int64_t j,
                      const real *v, real *m, real *scratch) {
  Gemm g = product(p, point, n, v, m);
  CPU(gemm_packed_serial)
  (&g, p->weights + point * p->weights_plane, j,
   min64(p->columns, p->g->k - j), scratch);
}

/* Tiles at .. end - 1 to points, the first at v; and back. */
static void read_tiles (const Job *p, int64_t at, int64_t end, real *v) {
  for (; at < end; at++, v += p->v_row)
    CPU(winograd_read)(p->g, at, p->zeros, v, p->v_plane);
}

static void write_tiles (const Job *p, int64_t at, int64_t end,
                         const real *m) {
  for (; at < end; at++, m += p->m_row)
    CPU(winograd_write)(p->g, at, m, p->m_plane);
}

/* A block, from x to y. */
static void alone_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t at = task * p->block, end = min64(at + p->block, p->tiles);
  real *v = p->v + worker * p->points * p->v_plane;
  real *m = p->m + worker * p->points * p->m_plane;
  real *scratch = p->scratch + worker * p->scratch_each;
  read_tiles(p, at, end, v);
  for (int i = 0; i < p->points; i++)
    multiply(p, i, end - at, 0, v, m, scratch);
  write_tiles(p, at, end, m);
}

/* Tiles of the block at hand. */
static int64_t block_end (const Job *p) {
  return min64(p->first + p->block, p->tiles);
}

static void read_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t at = p->first + task * WINOGRAD_FEW;
  (void)worker;
  read_tiles(p, at, min64(at + WINOGRAD_FEW, block_end(p)),
             p->v + task * WINOGRAD_FEW * p->v_row);
}

static void write_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t at = p->first + task * WINOGRAD_FEW;
  (void)worker;
  write_tiles(p, at, min64(at + WINOGRAD_FEW, block_end(p)),
              p->m + task * WINOGRAD_FEW * p->m_row);
}

static void multiply_task (void *ud, int64_t task, int worker) {
  const Job *p = ud;
  int64_t pieces = divide_up(p->g->k, p->columns);
  multiply(p, (int)(task / pieces), block_end(p) - p->first,
           task % pieces * p->columns, p->v, p->m,
           p->scratch + worker * p->scratch_each);
}

/* Cuts the columns of a product so that a task ends within some 10 ms and
** there are some for each thread. */
static void cut_columns (Job *p) {
  const double most = VEC * 5e6;
  enum { PIECE = 8 * TILE_COLS };
  double work = (double)p->block * (double)p->g->c;
  double n = max64(1, (int64_t)(most / work / TILE_COLS)) * TILE_COLS;
  int64_t pieces = divide_up(p->g->k, PIECE);
  p->columns = divide_up(divide_up(p->g->k, pieces), TILE_COLS) * TILE_COLS;
  if (n < (double)p->columns) p->columns = (int64_t)n;
}

static void run_together (Job *p) {
  cut_columns(p);
  int64_t products = p->points * divide_up(p->g->k, p->columns);
  for (; p->first < p->tiles; p->first += p->block) {
    int64_t transforms = divide_up(block_end(p) - p->first, WINOGRAD_FEW);
    threads_run(transforms, read_task, p);
    threads_run(products, multiply_task, p);
    threads_run(transforms, write_task, p);
  }
}

/* All tiles at once, by weights that are packed for `part` channels of y at a
** time: these packed weights stay in a shared cache. */
static void run_in_parts (Job *p, const real *w, bool back, int64_t part,
                          real *blob) {
  const Winograd *g = p->g;
  Winograd narrow = *g;
  Job some = *p;
  int64_t transforms = divide_up(p->tiles, WINOGRAD_FEW);
  threads_run(transforms, read_task, p);
  some.g = &narrow;
  some.weights = blob;
  for (int64_t j = 0; j < g->k; j += part) {
    narrow.k = min64(part, g->k - j);
    some.weights_plane = CPU(winograd_plane)(g->c, narrow.k);
    some.m = p->m + j;
    CPU(winograd_pack_part)(g->side, g->c, g->k, w, back, j, narrow.k, blob);
    cut_columns(&some);
    threads_run(some.points * divide_up(narrow.k, some.columns), multiply_task,
                &some);
  }
  threads_run(transforms, write_task, p);
}

/* Scratch for as many blocks at once as `blocks`. */
static void take_scratch (Job *p, int64_t blocks) {
  real none = 0; /* in place of points: sizes alone count */
  Gemm g = product(p, 0, p->block, &none, &none);
  int64_t width = threads_width();
  int64_t v = blocks * p->points * p->v_plane;
  int64_t m = blocks * p->points * p->m_plane, zeros = winograd_row(p->g->c);
  p->scratch_each = (CPU(gemm_packed_scratch)(&g) + 15) / 16 * 16;
  p->v = mem_scratch((size_t)(v + m + zeros + width * p->scratch_each) *
                     sizeof(real));
  p->m = p->v + v;
  p->zeros = p->m + m;
  p->scratch = p->zeros + zeros;
  memset(p->zeros, 0, (size_t)zeros * sizeof(real));
}

void CPU (winograd_by)(const Winograd *g, const void *weights, bool alone,
                       int64_t block) {
  size_t mark = fnn_mark();
  Job p = job_of(g, weights, block);
  if (p.tiles > 0 && g->k > 0) {
    take_scratch(&p, alone ? threads_width() : 1);
    if (alone) threads_run(divide_up(p.tiles, p.block), alone_task, &p);
    else run_together(&p);
  }
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** What to take
** =======================================================
*/

/* Costs in multiplications, as many as take the same time. */
enum {
  READ_4 = 270, /* to transform a tile, for each channel of x */
  WRITE_4 = 190,
  READ_2 = 70,
  WRITE_2 = 60,
  START = 24,  /* channels that would take as long as to begin a tile of c */
  STREAM = 20, /* to read a weight from memory */
  PACK = 20,   /* to make a packed one in the cache, or in memory */
  PACK_FAR = 40
};

/* Bytes of packed weights that a shared cache is sure to hold; and that are
** the most which the smaller tile may save. */
enum { NEAR = 4 << 20, LARGE = 128 << 20 };

/* Bytes of weights that are packed at a time where they are not kept, and of
** the points of all tiles then. */
enum { PART = 4 << 20, POINTS = 32 << 20 };

/* Channels with fewer than these leave vectors empty, and the products too
** small. */
enum { CHANNELS = 16 };

/* Whether weights that are not kept are packed a part at a time: where all of
** them are many and the tiles one block. */
static bool in_parts (const Winograd *g) {
  int64_t points = (g->side + 2) * (g->side + 2);
  int64_t each = points * (g->c + g->k) * (int64_t)sizeof(real);
  return CPU(winograd_size)(g->side, g->c, g->k) > 2 * PART &&
         winograd_tiles(g) <= POINTS / each;
}

static double cost (const Winograd *g, int side, bool kept) {
  double points = (side + 2) * (side + 2), c = (double)g->c;
  double k = (double)(divide_up(g->k, VEC) * VEC);
  Winograd shape = *g;
  shape.side = side;
  double tiles = (double)winograd_tiles(&shape);
  double products = points * tiles * k * (c + START);
  double weights = points * c * k;
  bool far = weights * sizeof(real) > NEAR && (kept || !in_parts(&shape));
  double streamed = far ? weights * STREAM : 0;
  double transforms =
      side == 4 ? c * READ_4 + k * WRITE_4 : c * READ_2 + k * WRITE_2;
  return (products > streamed ? products : streamed) + tiles * transforms +
         (kept ? 0 : weights * (far ? PACK_FAR : PACK));
}

/* What a side must save at least to be taken. */
static double by_definition (const Winograd *g) {
  return 0.9 * 9 * (double)g->c * (double)g->k * (double)g->n * (double)g->oh *
         (double)g->ow;
}

int CPU (winograd_choice)(const Winograd *g, bool kept) {
  if (g->c < CHANNELS || g->k < CHANNELS) return 0;
  double least = by_definition(g);
  int side = 0;
  for (int s = 2; s <= 4; s += 2) {
    double own = cost(g, s, kept);
    if (own >= least) continue;
    if (s == 4 && side != 0 && kept &&
        CPU(winograd_size)(s, g->c, g->k) > LARGE)
      continue;
    least = own;
    side = s;
  }
  return side;
}

/* The same steps the other way, and their products sum over tiles instead: of
** these there must be enough.  Both operands are packed. */
int CPU (winograd_weight_choice)(const Winograd *g) {
  enum { TILES = 64 };
  Winograd shape = *g;
  shape.side = 4;
  if (g->c < CHANNELS || g->k < CHANNELS || winograd_tiles(&shape) < TILES ||
      CPU(winograd_size)(4, g->c, g->k) > LARGE)
    return 0;
  double packing = (double)winograd_tiles(&shape) * WINOGRAD_POINTS *
                   (double)(g->c + g->k) * PACK;
  return cost(g, 4, false) + packing < by_definition(g) ? 4 : 0;
}

void CPU (winograd)(const Winograd *g, const void *weights) {
  enum { BLOCK = 16 << 20 }; /* bytes of a block's points, about */
  int64_t width = threads_width(), points = (g->side + 2) * (g->side + 2);
  int64_t tiles = winograd_tiles(g);
  int64_t blocks = divide_up(divide_up(tiles, 2 * TILE_ROWS), width) * width;
  if (tiles == 0) return;
  if (CPU(winograd_size)(g->side, g->c, g->k) <= NEAR && tiles >= 8 * width) {
    CPU(winograd_by)(g, weights, true, divide_up(tiles, blocks));
    return;
  }
  int64_t each = points * (g->c + g->k) * (int64_t)sizeof(real);
  int64_t most = max64(BLOCK / each, 8 * TILE_ROWS);
  blocks = divide_up(tiles, most);
  CPU(winograd_by)(g, weights, false, divide_up(tiles, blocks));
}

void CPU (winograd_once)(const Winograd *g, const real *w, bool back) {
  size_t mark = fnn_mark();
  if (in_parts(g)) {
    int64_t each = (int64_t)CPU(winograd_size)(g->side, g->c, TILE_COLS);
    int64_t part = max64(1, PART / each) * TILE_COLS;
    Job p = job_of(g, NULL, winograd_tiles(g));
    take_scratch(&p, 1);
    run_in_parts(&p, w, back, part,
                 mem_scratch(CPU(winograd_size)(g->side, g->c, part)));
  } else {
    void *blob = mem_scratch(CPU(winograd_size)(g->side, g->c, g->k));
    CPU(winograd_pack)(g->side, g->c, g->k, w, back, blob);
    CPU(winograd)(g, blob);
  }
  fnn_escape(mark, NULL);
}

/* }====================================================== */

#endif
