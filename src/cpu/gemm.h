/* gemm.h - the parts of the matrix product, c = alpha a b.
**
** gemm_kernel.c  tiles of c in registers, and blocks of tiles
** gemm_pack.c    panels: copies of a and b in the order the tiles read them
** gemm.c         which way a product goes; packed weights
** gemv.c         products with few rows or few columns
** matmul.c       the kernel: leading dims, strides, dtypes
**
** c is cut into tiles of TILE_ROWS by TILE_COLS that live in registers.  A
** panel of a holds, for each k, the elements of a tile's rows side by side; a
** panel of b those of its columns.  k is cut into blocks, so that what the
** tiles read again and again stays in a core's caches.  Tiles sum in the order
** of k, and blocks follow each other: the bits of an element of c do not
** depend on how c is cut, nor on what is packed and what is read in place. */

#ifndef gemm_h
#define gemm_h

#include "simd.h"

/* TILE_ROWS * 2 accumulators, two vectors of b and one element of a fill the
** register file: 32 registers on AVX-512 and NEON, else 16. */
#if VEC_BYTES == 64
#define TILE_ROWS 14
#elif defined(__aarch64__)
#define TILE_ROWS 12
#elif VEC_BYTES == 32
#define TILE_ROWS 6
#else
#define TILE_ROWS 5
#endif
#define TILE_COLS (2 * VEC)

/* What a tile does to its sums, in this order, before it stores them. */
enum {
  TILE_SCALE = 1, /* times alpha */
  TILE_ADD = 2,   /* plus what c holds */
  TILE_BIAS = 4,  /* plus the bias of the column */
  TILE_RELU = 8
};

/* One operand: element (i, j) is data[i * row + j * col]. */
typedef struct Operand {
  const void *data;
  int64_t row, col;
  Source source;
} Operand;

/* c (m, n) = a (m, k) b (k, n); rows of c are ldc apart. */
typedef struct Gemm {
  int64_t m, n, k;
  Operand a, b;
  real *c;
  int64_t ldc;
  const real *bias; /* (n), or NULL */
  real alpha;
  bool accumulate, relu;
} Gemm;

/* What is read next, fetched into the cache while a tile works: for each k one
** or two lines, which a vector of b fills, at `at`; this then moves on by step
** bytes, and by turn more after each TILE_COLS of k. */
typedef struct Ahead {
  const char *at;
  int64_t step, turn;
} Ahead;

/* A block of c and its sources over one block of k.  a: panels or, in place,
** elements at i * a_row + k * a_col where one of the two is 1.  b: panels
** `panel` apart whose rows are ldb apart (a matrix of unit column stride is
** panels TILE_COLS apart, but for a partial last one). */
typedef struct Block {
  int64_t m, n, k;
  const real *a;
  bool in_place;
  int64_t a_row, a_col;
  const real *b;
  int64_t ldb, panel;
  real *c;
  int64_t ldc;
  const real *bias; /* of the block's first column */
  real alpha;
  int flags;
  Ahead next;                      /* of its first panel */
  int64_t next_panels, next_panel; /* how many, and the bytes between */
} Block;

void CPU(gemm_block)(const Block *s);

/* Rows of the panel of a that starts at row i of m. */
static inline int64_t gemm_height (int64_t m, int64_t i) {
  int64_t left = m - i;
  if (left <= TILE_ROWS) return left;
  /* The last two are balanced: a tile of few rows waits for its sums. */
  return left >= TILE_ROWS + (TILE_ROWS + 2) / 3 ? TILE_ROWS : (left + 1) / 2;
}

/* Reals from one panel of b to the next: one cache line more where panels
** would otherwise lie 4096 bytes apart and share cache sets. */
static inline int64_t gemm_panel (int64_t k) {
  int64_t n = k * TILE_COLS;
  int64_t line = 64 / (int64_t)sizeof(real);
  return n % (4096 / (int64_t)sizeof(real)) == 0 ? n + line : n;
}

/* Reals that a pack of m rows of a may write: a little past its end. */
static inline int64_t gemm_pack_a_size (int64_t m, int64_t k) {
  return m * k + TILE_ROWS + VEC;
}

/* Panels of a (m, k), one after the other, and of b (k, n), gemm_panel(k)
** apart, zero in the columns past n. */
void CPU(gemm_pack_a)(int64_t m, int64_t k, Operand a, real *to);
void CPU(gemm_pack_b)(int64_t n, int64_t k, Operand b, real *to);

/* The operand that starts at (i, j) of x. */
static inline Operand operand_at (Operand x, int64_t i, int64_t j) {
  x.data = source_at(x.source, x.data, i * x.row + j * x.col);
  return x;
}

static inline Operand operand_transposed (Operand x) {
  int64_t row = x.row;
  x.row = x.col;
  x.col = row;
  return x;
}

/* The product on all threads, or, as an element of a batch, on the caller
** alone with scratch of gemm_scratch(g) reals. */
void CPU(gemm)(const Gemm *g);
void CPU(gemm_serial)(const Gemm *g, real *scratch);
int64_t CPU(gemm_scratch)(const Gemm *g);

/* Weights packed once.  The blob depends on the instruction set. */
size_t CPU(gemm_packed_size)(int64_t k, int64_t n);
void CPU(gemm_prepack)(int64_t k, int64_t n, Operand b, void *blob);
void CPU(gemm_packed)(const Gemm *g, const void *blob); /* g->b unused */
/* Where element (i, j) of the (k, n) weights lies; those beside it, up to the
** end of a panel, follow it. */
real *CPU(gemm_packed_at)(int64_t k, int64_t n, int64_t i, int64_t j,
                          void *blob);
/* n columns from j on, a multiple of TILE_COLS, by the caller alone, with
** gemm_packed_scratch(g) reals of scratch. */
void CPU(gemm_packed_serial)(const Gemm *g, const void *blob, int64_t j,
                             int64_t n, real *scratch);
int64_t CPU(gemm_packed_scratch)(const Gemm *g);

/* Products with at most GEMV_ROWS rows or columns, without packing. */
enum { GEMV_ROWS = 4 };
bool CPU(gemv_fits)(const Gemm *g);
void CPU(gemv)(const Gemm *g);
void CPU(gemv_serial)(const Gemm *g, real *scratch);
int64_t CPU(gemv_scratch)(const Gemm *g);

#endif
