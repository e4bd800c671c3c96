/* copy.c - from any strides to any strides, from any dtype to any dtype.
**
** Dense runs of one dtype are moved as bytes.  Where the result runs along
** one dim and the source along another the copy is a transposition, done in
** square tiles that fit the first cache.  All else goes by runs. */

#include "sweep.h"

#ifdef CPU_ANY

enum { TILE = 32 };

/* A merged geometry whose last dim of the result has stride 1 and whose dim
** `along` has stride 1 in the source. */
typedef struct Transposition {
  const Sweep *s;
  int along;
  int64_t tiles, across; /* of TILE in the dim along and in the last dim */
} Transposition;

/* y[i, j] = x[i, j] for a tile of n by m; sy and sx are the strides of i and
** of j that are not 1. */
#define TRANSPOSE(name, T)                                                   \
  static void name (void *y_, const void *x_, int64_t n, int64_t m,          \
                    int64_t sy, int64_t sx) {                                \
    T *y = y_;                                                               \
    const T *x = x_;                                                         \
    if (n == TILE && m == TILE)                                              \
      for (int64_t j = 0; j < TILE; j += 8)                                  \
        for (int64_t i = 0; i < TILE; i += 8) {                              \
          T t[8][8];                                                         \
          for (int k = 0; k < 8; k++)                                        \
            memcpy(t[k], x + (j + k) * sx + i, sizeof t[k]);                 \
          for (int k = 0; k < 8; k++) {                                      \
            T r[8];                                                          \
            for (int l = 0; l < 8; l++) r[l] = t[l][k];                      \
            memcpy(y + (i + k) * sy + j, r, sizeof r);                       \
          }                                                                  \
        }                                                                    \
    else                                                                     \
      for (int64_t i = 0; i < n; i++)                                        \
        for (int64_t j = 0; j < m; j++) y[i * sy + j] = x[j * sx + i];       \
  }

TRANSPOSE(transpose_8, uint8_t)
TRANSPOSE(transpose_16, uint16_t)
TRANSPOSE(transpose_32, uint32_t)
TRANSPOSE(transpose_64, uint64_t)

static void transpose_tile (void *y, const void *x, int64_t n, int64_t m,
                            int64_t sy, int64_t sx, size_t size) {
  switch (size) {
    case 1: transpose_8(y, x, n, m, sy, sx); break;
    case 2: transpose_16(y, x, n, m, sy, sx); break;
    case 4: transpose_32(y, x, n, m, sy, sx); break;
    default: transpose_64(y, x, n, m, sy, sx);
  }
}

/* A task is a strip: one tile of the dim along, all of the last dim. */
static void transpose_strips (void *ud, int64_t lo, int64_t hi) {
  const Transposition *t = ud;
  const Sweep *s = t->s;
  const Operand *y = &s->at[0], *x = &s->at[1];
  int last = s->ndim - 1;
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)y->dtype);
  for (int64_t k = lo; k < hi; k++) {
    int64_t rest = k / t->tiles, i = k % t->tiles * TILE;
    int64_t oy = i * y->stride[t->along], ox = i;
    for (int d = last - 1; d >= 0; d--) {
      if (d == t->along) continue;
      int64_t at = rest % s->shape[d];
      rest /= s->shape[d];
      oy += at * y->stride[d];
      ox += at * x->stride[d];
    }
    int64_t n = min64(TILE, s->shape[t->along] - i);
    for (int64_t j = 0; j < s->shape[last]; j += TILE)
      transpose_tile(y->data + (oy + j) * size,
                     x->data + (ox + j * x->stride[last]) * size, n,
                     min64(TILE, s->shape[last] - j), y->stride[t->along],
                     x->stride[last], (size_t)size);
  }
}

/* Whether s is a transposition; then does it. */
static bool transpose (const Sweep *s) {
  const Operand *y = &s->at[0], *x = &s->at[1];
  int last = s->ndim - 1, along = -1;
  if (y->stride[last] != 1 || x->stride[last] == 1 || s->shape[last] < 4)
    return false;
  for (int d = 0; d < last; d++)
    if (x->stride[d] == 1 && s->shape[d] >= 4) along = d;
  if (along < 0) return false;
  Transposition t = { s, along, (s->shape[along] + TILE - 1) / TILE, 0 };
  int64_t strips = t.tiles;
  for (int d = 0; d < last; d++)
    if (d != along) strips *= s->shape[d];
  threads_range(strips, grain_rows(TILE * s->shape[last]), transpose_strips,
                &t);
  return true;
}

/* The result is what the load made: nothing is left to compute. */
#define MOVE(name, T)                                                        \
  static void name (void *z, const void *const *in, int64_t n, double a,     \
                    double b) {                                              \
    (void)a, (void)b;                                                        \
    if (z != in[0]) memcpy(z, in[0], (size_t)n * sizeof(T));                 \
  }

MOVE(move_8, uint8_t)
MOVE(move_16, uint16_t)
MOVE(move_32, uint32_t)
MOVE(move_64, uint64_t)

void CPU(copy)(Tensor *y, const Tensor *x) {
  Sweep s;
  ONCE(sweep_open)(&s, 2, (const Tensor *[]){ y, x });
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  if (y->dtype == x->dtype) {
    if (s.numel > 0 && transpose(&s)) return;
    s.at[0].lane = s.at[1].lane = x->dtype;
  } else s.at[0].lane = s.at[1].lane = (uint8_t)(t = lane_of(t));
  switch (fnn_dtype_size(t)) {
    case 1: s.loop = move_8; break;
    case 2: s.loop = move_16; break;
    case 4: s.loop = move_32; break;
    default: s.loop = move_64;
  }
  ONCE(sweep_run)(&s);
}

#endif
