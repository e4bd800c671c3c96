/* attention.h - the parts of attention.
**
** attention.c       forward, for many queries: tiles of scores
** attention_row.c   forward, for few queries: rows of scores
** attention_back.c  the gradients
** attention_bias.c  what is added to scores, and which weights are dropped
** attention_pack.c  rows to panels and back
**
** Scores stand transposed, S' = K Q': a panel is WIDTH queries side by side,
** the columns of a tile of the matrix product, and each key is a row.  So
** maxima, sums and exponentials of queries need nothing of other lanes, keys
** and values are read where they lie, and the weights already are the panel of
** b that O' = V' P' wants.  Scores are logarithms to the base 2: log2 e is in
** the factor of the queries and of all that is added. */

#ifndef attention_h
#define attention_h

#include "gemm.h"

enum { WIDTH = TILE_COLS };

#define LOG2_E 1.44269504088896340736
#define LOG_2 0.69314718055994530942

/* One head's scores besides products: query i, key j. */
typedef struct Scores {
  int64_t m, n;
  bool causal, binary; /* binary: the mask is bool */
  const void *mask;    /* element (i, j) at i * row + j * col; or NULL */
  int64_t row, col;
  real slope; /* that scores fall by with the distance; or 0 */
  real keep; /* what weights that are not dropped count; 0: none are dropped */
  uint32_t least; /* words from it on keep a weight */
  bool none;      /* all are dropped */
  Draw draw;
  uint64_t first; /* element (0, 0) among those of the draw */
} Scores;

Scores CPU(attention_scores)(const Tensor *q, const Tensor *k,
                             const Attention *a, int64_t b, int64_t h);

/* How many keys queries up to i may see. */
static inline int64_t attention_seen (const Scores *s, int64_t i) {
  return s->causal ? max64(0, min64(s->n, i + s->n - s->m + 1)) : s->n;
}

/* Whether no query may see any of the n keys from j on. */
bool CPU(attention_hidden)(const Scores *s, int64_t j, int64_t n);

/* Adds to the scores x of query i what belongs to the n keys from j on. */
void CPU(attention_bias_row)(const Scores *s, int64_t i, int64_t j, int64_t n,
                             real *x);
/* What their weights are multiplied by. */
void CPU(attention_keep_row)(const Scores *s, int64_t i, int64_t j, int64_t n,
                             real *x);

/* The same of x (n, WIDTH), rows ld apart, for `rows` queries from i on.
** buf: attention_buffer(n) reals. */
void CPU(attention_bias)(const Scores *s, int64_t i, int64_t rows, int64_t j,
                         int64_t n, real *x, int64_t ld, real *buf);
/* What their weights are multiplied by, into buf, and the product. */
void CPU(attention_keep)(const Scores *s, int64_t i, int64_t rows, int64_t j,
                         int64_t n, real *buf);
void CPU(attention_drop)(int64_t rows, int64_t n, real *x, int64_t ld,
                         const real *buf);
static inline int64_t attention_buffer (int64_t n) {
  return (n + VEC - 1) / VEC * VEC * WIDTH;
}

/* The panel (d, WIDTH) of `rows` rows of x, times scale, with 0 where there are
** no more; and rows of a panel, each times the factor of its lane. */
void CPU(attention_pack)(const real *x, int64_t stride, int64_t rows,
                         int64_t d, real scale, real *to);
void CPU(attention_unpack)(const real *x, int64_t rows, int64_t d,
                           const real *factor, real *to, int64_t stride);

/* Rows of keys or values from one of a tensor's heads on. */
typedef struct Rows {
  const void *data;
  int64_t stride, d;
  Source source;
} Rows;

/* n rows from row j on as reals, *ld apart: in place, or copied to buf, of
** attention_rows_size reals, where they are 16 bits wide or would share cache
** sets. */
const real *CPU(attention_rows)(const Rows *x, int64_t j, int64_t n, real *buf,
                                int64_t *ld);
int64_t CPU(attention_rows_size)(const Rows *x, int64_t n);

static inline Rows attention_head (const Tensor *x, int64_t b, int64_t h) {
  Source s = source_of(x);
  return (
      Rows){ source_at(s, tensor_data(x), b * x->stride[0] + h * x->stride[1]),
             x->stride[2], x->shape[3], s };
}

/* Keys of a block: at most `most`, about equal, a multiple of 8. */
static inline int64_t attention_keys (int64_t n, int64_t most) {
  int64_t blocks = max64(1, divide_up(n, most));
  return max64(1, divide_up(divide_up(n, blocks), 8)) * 8;
}

/* Few queries: attention's way for them. */
bool CPU(attention_few)(const Tensor *q);
void CPU(attention_row)(Tensor *y, Tensor *lse, const Tensor *q,
                        const Tensor *k, const Tensor *v, const Attention *a);

#endif
