/* gemm_kernel.c - tiles of a matrix product in registers.
**
** One macro makes the tile of each height from 1 to TILE_ROWS, with named
** accumulators (an array of them ends up in memory).  Of each there are four:
** over elements of a that lie side by side for one k (panels, transposed
** matrices) or for one row; two vectors wide, or one. */

#include "gemm.h"

/* Calls X(0) .. X(n - 1). */
#define ROWS_1(X) X(0)
#define ROWS_2(X) ROWS_1(X) X(1)
#define ROWS_3(X) ROWS_2(X) X(2)
#define ROWS_4(X) ROWS_3(X) X(3)
#define ROWS_5(X) ROWS_4(X) X(4)
#define ROWS_6(X) ROWS_5(X) X(5)
#define ROWS_7(X) ROWS_6(X) X(6)
#define ROWS_8(X) ROWS_7(X) X(7)
#define ROWS_9(X) ROWS_8(X) X(8)
#define ROWS_10(X) ROWS_9(X) X(9)
#define ROWS_11(X) ROWS_10(X) X(10)
#define ROWS_12(X) ROWS_11(X) X(11)
#define ROWS_13(X) ROWS_12(X) X(12)
#define ROWS_14(X) ROWS_13(X) X(13)

#define ZERO(i) vec p##i = { 0 }, q##i = { 0 };

/* Row i is reached from one of four pointers, so that its address is a
** pointer, an index and a constant. */
#define ROW(i) \
  (((i) < 4 ? a : (i) < 8 ? a4 : (i) < 12 ? a8 : a12)[(i) % 4 * row])

#define ADD_PRODUCT(i) \
  { \
    real x = ROW(i); \
    p##i += x * b0; \
    VEC_KEEP(p##i); \
    if (wide) { \
      q##i += x * b1; \
      VEC_KEEP(q##i); \
    } \
  }

#define STEP(ROWS) \
  { \
    const real *a4 = a + 4 * row, *a8 = a4 + 4 * row, *a12 = a8 + 4 * row; \
    vec b0 = vec_load(b), b1 = wide ? vec_load(b + VEC) : b0; \
    (void)a4, (void)a8, (void)a12; \
    VEC_KEEP(b0); \
    if (wide) VEC_KEEP(b1); \
    __builtin_prefetch(ahead, 0, 2); \
    if (VEC_BYTES == 64) __builtin_prefetch(ahead + 64, 0, 2); \
    ROWS(ADD_PRODUCT) \
    a += col; \
    b += ldb; \
    ahead += step; \
  }

/* What a tile needs outside its inner loop: in memory, so that the loop has
** the registers. */
typedef struct Finish {
  real *c;
  int64_t ldc;
  const real *bias; /* of the tile's columns */
  real alpha;
  int flags;
  Ahead next;
} Finish;

/* Each of these walks over the rows of c. */
#define FETCH(i) \
  __builtin_prefetch(to, 1, 3); \
  if (VEC_BYTES == 64 && wide) __builtin_prefetch(to + VEC, 1, 3); \
  to += ldc;
#define ADD(i) \
  p##i += vec_load(to); \
  if (wide) q##i += vec_load(to + VEC); \
  to += ldc;
#define STORE(i) \
  vec_store(to, p##i); \
  if (wide) vec_store(to + VEC, q##i); \
  to += ldc;
#define WALK(ROWS, X) \
  { \
    real *to = f->c; \
    int64_t ldc = f->ldc; \
    VEC_HIDE(to); \
    ROWS(X) \
  }

#define SCALE(i) p##i *= f->alpha, q##i *= f->alpha;
#define BIAS(i) p##i += bias0, q##i += bias1;
#define RELU(i) p##i = vec_relu(p##i), q##i = vec_relu(q##i);

/* A tile of c, from k elements of each row, at i * row + k * col, and k rows
** of b, ldb apart. */
#define TILE(name, ROWS) \
  VEC_INLINE void name(int64_t k, const real *restrict a, int64_t row, \
                       int64_t col, const real *restrict b, int64_t ldb, \
                       const Finish *f, const bool wide) { \
    const char *ahead = f->next.at; \
    int64_t step = f->next.step; \
    ROWS(ZERO) \
    while (k > 0) { \
      if (k <= 2 * TILE_COLS) WALK(ROWS, FETCH) \
      int64_t turn = k > TILE_COLS ? TILE_COLS : k; \
      k -= turn; \
      for (; turn > 0; turn--) STEP(ROWS) \
      VEC_HIDE(f); \
      ahead += f->next.turn; \
    } \
    if (f->flags & TILE_SCALE) { \
      ROWS(SCALE) \
    } \
    if (f->flags & TILE_ADD) WALK(ROWS, ADD) \
    if (f->flags & TILE_BIAS) { \
      vec bias0 = vec_load(f->bias), bias1 = bias0; \
      if (wide) bias1 = vec_load(f->bias + VEC); \
      ROWS(BIAS) \
    } \
    if (f->flags & TILE_RELU) { \
      ROWS(RELU) \
    } \
    WALK(ROWS, STORE) \
  }

/* The tiles of one height.  stride: from one k to the next, or from one row to
** the next. */
#define ENTRY(name, h, row, col, wide) \
  __attribute__((noinline)) static void name##_##h( \
      int64_t k, const real *a, int64_t stride, const real *b, int64_t ldb, \
      const Finish *f) { \
    tile_##h(k, a, row, col, b, ldb, f, wide); \
  }
#define HEIGHT(h) \
  TILE(tile_##h, ROWS_##h) \
  ENTRY(by_k, h, 1, stride, true) \
  ENTRY(by_row, h, stride, 1, true) \
  ENTRY(thin_by_k, h, 1, stride, false) \
  ENTRY(thin_by_row, h, stride, 1, false)

/* clang-format off */
HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)
#if TILE_ROWS >= 6
HEIGHT(6)
#endif
#if TILE_ROWS >= 12
HEIGHT(7) HEIGHT(8) HEIGHT(9) HEIGHT(10) HEIGHT(11) HEIGHT(12)
#endif
#if TILE_ROWS >= 14
HEIGHT(13) HEIGHT(14)
#endif

typedef void (*Tile)(int64_t k, const real *a, int64_t stride, const real *b,
                     int64_t ldb, const Finish *f);
/* clang-format on */

#define LIST_5(name) NULL, name##_1, name##_2, name##_3, name##_4, name##_5
#if TILE_ROWS == 5
#define LIST(name) \
  { LIST_5(name) }
#elif TILE_ROWS == 6
#define LIST(name) \
  { LIST_5(name), name##_6 }
#else
#define LIST_12(name) \
  LIST_5(name), name##_6, name##_7, name##_8, name##_9, name##_10, name##_11, \
      name##_12
#if TILE_ROWS == 12
#define LIST(name) \
  { LIST_12(name) }
#else
#define LIST(name) \
  { LIST_12(name), name##_13, name##_14 }
#endif
#endif

/* By whether rows of a are contiguous, whether two vectors are wanted, and
** height. */
static const Tile tiles[2][2][TILE_ROWS + 1] = {
  { LIST(thin_by_k), LIST(by_k) },
  { LIST(thin_by_row), LIST(by_row) },
};

/* Copies h rows of n < TILE_COLS columns. */
static void copy_part (int64_t h, int64_t n, real *to, int64_t ldto,
                       const real *from, int64_t ldfrom) {
  for (int64_t i = 0; i < h; i++, to += ldto, from += ldfrom) {
    if (n >= VEC) {
      vec_store(to, vec_load(from));
      if (n > VEC)
        vec_store_part(to + VEC, vec_load_part(from + VEC, n - VEC), n - VEC);
    } else {
      vec_store_part(to, vec_load_part(from, n), n);
    }
  }
}

/* A tile with n columns of c that do not fill it, by way of a whole one. */
static void edge (int64_t h, int64_t n, int64_t k, Tile tile, const real *a,
                  int64_t stride, const real *b, int64_t ldb,
                  const Finish *f) {
  _Alignas(64) real whole[TILE_ROWS * TILE_COLS];
  _Alignas(64) real bias[TILE_COLS] = { 0 };
  Finish part = *f;
  part.c = whole;
  part.ldc = TILE_COLS;
  part.bias = bias;
  if (f->flags & TILE_ADD) {
    memset(whole, 0, sizeof whole);
    copy_part(h, n, whole, TILE_COLS, f->c, f->ldc);
  }
  if (f->flags & TILE_BIAS) memcpy(bias, f->bias, (size_t)n * sizeof(real));
  tile(k, a, stride, b, ldb, &part);
  copy_part(h, n, f->c, f->ldc, whole, TILE_COLS);
}

/* The column of tiles over panel p of b. */
static void column (const Block *s, int64_t p, const real *b) {
  bool rows = s->in_place && s->a_col == 1;
  int64_t n = s->n - p * TILE_COLS, h;
  const Tile *tile = tiles[rows][n > VEC];
  Finish f = { .c = s->c + p * TILE_COLS,
               .ldc = s->ldc,
               .alpha = s->alpha,
               .flags = s->flags,
               .next = s->next };
  if (s->flags & TILE_BIAS) f.bias = s->bias + p * TILE_COLS;
  /* The first tile fetches the panel of this place of what is next. */
  if (p < s->next_panels) f.next.at += p * s->next_panel;
  else f.next = (Ahead){ .at = (const char *)b };
  for (int64_t i = 0; i < s->m; i += h, f.c += h * s->ldc) {
    h = gemm_height(s->m, i);
    const real *a = s->a + i * (s->in_place ? s->a_row : s->k);
    int64_t stride = !s->in_place ? h : rows ? s->a_row : s->a_col;
    if (n >= TILE_COLS || n == VEC) tile[h](s->k, a, stride, b, s->ldb, &f);
    else edge(h, n, s->k, tile[h], a, stride, b, s->ldb, &f);
    f.next = (Ahead){ .at = (const char *)b };
  }
}

/* One row over as many panels, from p on, as hide how long a sum takes: a tile
** of one row would wait for its two. */
enum { ABREAST = 4 };

static void row (const Block *s, int64_t p) {
  const real *a = s->a, *b = s->b + p * s->panel;
  int64_t col = s->in_place ? s->a_col : 1, panel = s->panel;
  real *c = s->c + p * TILE_COLS;
  vec sum[2 * ABREAST] = { 0 };
  for (int64_t k = 0; k < s->k; k++, b += s->ldb) {
    real x = a[k * col];
    VEC_UNROLL
    for (int i = 0; i < ABREAST; i++) {
      sum[2 * i] += x * vec_load(b + i * panel);
      sum[2 * i + 1] += x * vec_load(b + i * panel + VEC);
    }
  }
  VEC_UNROLL
  for (int i = 0; i < 2 * ABREAST; i++) {
    if (s->flags & TILE_SCALE) sum[i] *= s->alpha;
    if (s->flags & TILE_ADD) sum[i] += vec_load(c + i * VEC);
    if (s->flags & TILE_BIAS)
      sum[i] += vec_load(s->bias + p * TILE_COLS + i * VEC);
    if (s->flags & TILE_RELU) sum[i] = vec_relu(sum[i]);
    vec_store(c + i * VEC, sum[i]);
  }
}

void CPU (gemm_block)(const Block *s) {
  int64_t p = 0, whole = s->m == 1 ? s->n / TILE_COLS : 0;
  for (; p + ABREAST <= whole; p += ABREAST) row(s, p);
  for (; p * TILE_COLS < s->n; p++) column(s, p, s->b + p * s->panel);
}
