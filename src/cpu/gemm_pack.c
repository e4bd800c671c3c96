/* gemm_pack.c - panels of a matrix product's operands.
**
** Any strides, any storage dtype.  What is contiguous along one side is moved
** by vectors: along k (a) or along n (b) directly, across by transposition in
** registers.  Whatever has two strides goes element by element. */

#include "gemm.h"

/* Panels of b that one sweep over k fills together, so that each of its reads
** takes a long piece of a row. */
enum { SWEEP = 8, AHEAD = 8 /* rows */ };

/*
** {======================================================
** a
** =======================================================
*/

static void a_by_element (int64_t h, int64_t k, Operand a, real *to) {
  for (int64_t j = 0; j < k; j++)
    for (int64_t i = 0; i < h; i++)
      *to++ = source_get(a.source, a.data, i * a.row + j * a.col);
}

/* Rows of a are contiguous: VEC of k at a time.  Each store but the last of a
** panel is followed by the next, which covers what it wrote past its h. */
VEC_INLINE void a_from_rows (int64_t h, int64_t k, Operand a, real *to,
                             Source source) {
  int64_t j = 0;
  for (; j + VEC <= k; j += VEC, to += VEC * h)
    for (int64_t i = 0; i < h; i += VEC) {
      vec r[VEC];
      for (int l = 0; l < VEC; l++)
        r[l] = i + l < h ? vec_from(source, a.data, (i + l) * a.row + j)
                         : (vec){ 0 };
      vec_transpose(r);
      if (i + VEC <= h)
        for (int l = 0; l < VEC; l++) vec_store(to + l * h + i, r[l]);
      else
        for (int l = 0; l < VEC; l++)
          vec_store_part(to + l * h + i, r[l], h - i);
    }
  a_by_element(h, k - j, operand_at(a, 0, j), to);
}

/* Columns of a are contiguous. */
static void a_from_columns (int64_t h, int64_t k, Operand a, real *to) {
  const real *from = a.data;
  if (h == TILE_ROWS)
    for (int64_t j = 0; j < k; j++, from += a.col, to += TILE_ROWS)
      memcpy(to, from, TILE_ROWS * sizeof(real));
  else
    for (int64_t j = 0; j < k; j++, from += a.col, to += h)
      for (int64_t i = 0; i < h; i++) to[i] = from[i];
}

/* The whole panels among m rows whose columns are contiguous: a few k at a
** time across all panels, so that reads follow the columns. */
static int64_t a_whole_panels (int64_t m, int64_t k, Operand a, real *to) {
  enum { GROUP = 8 };
  int64_t whole = 0;
  while (whole < m && gemm_height(m, whole) == TILE_ROWS) whole += TILE_ROWS;
  for (int64_t j = 0; j < k; j += GROUP) {
    int64_t group = min64(GROUP, k - j);
    for (int64_t i = 0; i < whole; i += TILE_ROWS)
      a_from_columns(TILE_ROWS, group, operand_at(a, i, j),
                     to + i * k + j * TILE_ROWS);
  }
  return whole;
}

void CPU (gemm_pack_a)(int64_t m, int64_t k, Operand a, real *to) {
  int64_t i = 0;
  bool columns = a.row == 1 && source_is_real(a.source);
  if (columns) i = a_whole_panels(m, k, a, to);
  for (int64_t h; i < m; i += h) {
    h = gemm_height(m, i);
    Operand rows = operand_at(a, i, 0);
    real *panel = to + i * k;
    if (columns) a_from_columns(h, k, rows, panel);
    else if (a.col != 1) a_by_element(h, k, rows, panel);
    else if (source_is_real(a.source))
      a_from_rows(h, k, rows, panel, SOURCE_REAL);
    else if (a.source == SOURCE_F16)
      a_from_rows(h, k, rows, panel, SOURCE_F16);
    else a_from_rows(h, k, rows, panel, SOURCE_BF16);
  }
}

/* }====================================================== */

/*
** {======================================================
** b
** =======================================================
*/

static void b_by_element (int64_t n, int64_t k, Operand b, real *to) {
  for (int64_t i = 0; i < k; i++, to += TILE_COLS) {
    int64_t j = 0;
    for (; j < n; j++)
      to[j] = source_get(b.source, b.data, i * b.row + j * b.col);
    for (; j < TILE_COLS; j++) to[j] = 0;
  }
}

/* Rows of b are contiguous: `panels` whole panels in one sweep over k. */
VEC_INLINE void b_from_rows (int64_t panels, int64_t k, Operand b, real *to,
                             Source source) {
  int64_t step = gemm_panel(k);
  for (int64_t i = 0; i < k; i++, to += TILE_COLS) {
    int64_t from = i * b.row;
    for (int64_t p = 0; p < panels; p++, from += TILE_COLS) {
      const char *ahead = source_at(source, b.data, from + AHEAD * b.row);
      for (size_t l = 0; l < TILE_COLS * sizeof(real); l += 64)
        __builtin_prefetch(ahead + l);
      vec x = vec_from(source, b.data, from);
      vec y = vec_from(source, b.data, from + VEC);
      vec_store(to + p * step, x);
      vec_store(to + p * step + VEC, y);
    }
  }
}

/* Rows of b are contiguous: a last panel of n < TILE_COLS columns. */
static void b_from_short_rows (int64_t n, int64_t k, Operand b, real *to) {
  const real *from = b.data;
  for (int64_t i = 0; i < k; i++, from += b.row, to += TILE_COLS) {
    bool half = n >= VEC;
    vec_store(to, half ? vec_load(from) : vec_load_part(from, n));
    vec_store(to + VEC,
              half ? vec_load_part(from + VEC, n - VEC) : (vec){ 0 });
  }
}

/* Columns of b are contiguous: one panel of n columns, those past n zero.  As
** many columns are read side by side as hardware follows streams. */
VEC_INLINE void b_from_columns (int64_t n, int64_t k, Operand b, real *to,
                                Source source) {
  enum { STREAMS = VEC > 16 ? VEC : TILE_COLS < 16 ? TILE_COLS : 16 };
  int64_t whole = k / VEC * VEC;
  for (int64_t first = 0; first < TILE_COLS; first += STREAMS)
    for (int64_t i = 0; i < whole; i += VEC)
      for (int64_t j = first; j < first + STREAMS; j += VEC) {
        vec r[VEC];
        for (int l = 0; l < VEC; l++)
          r[l] = j + l < n ? vec_from(source, b.data, (j + l) * b.col + i)
                           : (vec){ 0 };
        vec_transpose(r);
        for (int l = 0; l < VEC; l++)
          vec_store(to + (i + l) * TILE_COLS + j, r[l]);
      }
  b_by_element(n, k - whole, operand_at(b, whole, 0), to + whole * TILE_COLS);
}

VEC_INLINE void pack_b (int64_t n, int64_t k, Operand b, real *to,
                        Source source) {
  int64_t step = gemm_panel(k);
  while (n > 0) {
    int64_t panels = 1;
    if (b.col == 1 && n >= TILE_COLS) {
      panels = min64(SWEEP, n / TILE_COLS);
      b_from_rows(panels, k, b, to, source);
    } else if (b.col == 1 && source_is_real(source)) {
      b_from_short_rows(n, k, b, to);
    } else if (b.row == 1) {
      b_from_columns(min64(n, TILE_COLS), k, b, to, source);
    } else {
      b_by_element(min64(n, TILE_COLS), k, b, to);
    }
    n -= panels * TILE_COLS;
    b = operand_at(b, 0, panels * TILE_COLS);
    to += panels * step;
  }
}

void CPU (gemm_pack_b)(int64_t n, int64_t k, Operand b, real *to) {
  if (source_is_real(b.source)) pack_b(n, k, b, to, SOURCE_REAL);
  else if (b.source == SOURCE_F16) pack_b(n, k, b, to, SOURCE_F16);
  else pack_b(n, k, b, to, SOURCE_BF16);
}

/* }====================================================== */
