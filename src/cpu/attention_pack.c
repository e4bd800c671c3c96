/* attention_pack.c - rows of queries, and what goes with them, as panels; rows
** of keys and values as reals. */

#include "attention.h"

/* Lanes c .. c + VEC of a row of d, 0 past its end. */
VEC_INLINE vec load_some (const real *x, int64_t c, int64_t d) {
  return c + VEC <= d ? vec_load(x + c) : vec_load_part(x + c, d - c);
}

VEC_INLINE void store_some (real *x, vec v, int64_t c, int64_t d) {
  if (c + VEC <= d) vec_store(x + c, v);
  else vec_store_part(x + c, v, d - c);
}

void CPU (attention_pack)(const real *x, int64_t stride, int64_t rows,
                          int64_t d, real scale, real *to) {
  for (int64_t i = 0; i < WIDTH; i += VEC)
    for (int64_t c = 0; c < d; c += VEC) {
      vec r[VEC];
      for (int l = 0; l < VEC; l++)
        r[l] =
            i + l < rows ? load_some(x + (i + l) * stride, c, d) : (vec){ 0 };
      vec_transpose(r);
      for (int l = 0; l < min64(VEC, d - c); l++)
        vec_store(to + (c + l) * WIDTH + i, r[l] * scale);
    }
}

void CPU (attention_unpack)(const real *x, int64_t rows, int64_t d,
                            const real *factor, real *to, int64_t stride) {
  for (int64_t i = 0; i < rows; i += VEC)
    for (int64_t c = 0; c < d; c += VEC) {
      vec r[VEC], f = vec_load(factor + i);
      for (int l = 0; l < VEC; l++)
        r[l] = c + l < d ? vec_load(x + (c + l) * WIDTH + i) * f : (vec){ 0 };
      vec_transpose(r);
      for (int l = 0; l < min64(VEC, rows - i); l++)
        store_some(to + (i + l) * stride, r[l], c, d);
    }
}

/* Rows so many bytes apart meet in a few sets of the first cache. */
static bool collide (int64_t stride) {
  return stride % (1024 / (int64_t)sizeof(real)) == 0;
}

static int64_t apart (int64_t d) {
  return collide(d) ? d + 64 / (int64_t)sizeof(real) : d;
}

static bool in_place (const Rows *x) {
  return source_is_real(x->source) &&
         (!collide(x->stride) || x->stride == x->d);
}

int64_t CPU (attention_rows_size)(const Rows *x, int64_t n) {
  return in_place(x) ? 0 : n * apart(x->d) + VEC;
}

VEC_INLINE void widen (const Rows *x, int64_t j, int64_t n, real *buf,
                       int64_t ld, Source s) {
  for (int64_t i = 0; i < n; i++) {
    const void *row = source_at(s, x->data, (j + i) * x->stride);
    real *to = buf + i * ld;
    int64_t c = 0;
    for (; c + VEC <= x->d; c += VEC) vec_store(to + c, vec_from(s, row, c));
    for (; c < x->d; c++) to[c] = source_get(s, row, c);
  }
}

const real *CPU (attention_rows)(const Rows *x, int64_t j, int64_t n,
                                 real *buf, int64_t *ld) {
  if (in_place(x)) {
    *ld = x->stride;
    return (const real *)x->data + j * x->stride;
  }
  *ld = apart(x->d);
  if (source_is_real(x->source)) widen(x, j, n, buf, *ld, SOURCE_REAL);
  else if (x->source == SOURCE_F16) widen(x, j, n, buf, *ld, SOURCE_F16);
  else widen(x, j, n, buf, *ld, SOURCE_BF16);
  return buf;
}
