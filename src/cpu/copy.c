/* copy.c - from any strides to any strides, from any dtype to any dtype.
**
** Dense runs of one dtype are moved as bytes, short ones without a call for
** each.  Where the result runs along one dim and the source along another the
** copy is a transposition, done in square tiles.  All else goes by runs. */

#include "sweep.h"

#ifdef CPU_ANY

enum { TILE = 32 };
enum { LINES = 256 }; /* bytes that a loop moves faster than memcpy */

/* A merged geometry whose last dim of the result has stride 1 and whose dim
** `along` has stride 1 in the source. */
typedef struct Transposition {
  const Sweep *s;
  int along;
  int64_t tiles, across; /* of TILE in the dim along and in the last dim */
} Transposition;

/* A tile is brought into the first cache by rows, transposed there and written
** out by rows: strides that are multiples of a page would throw one another
** out of it. */
typedef uint32_t Eight __attribute__((vector_size(32)));

/* Interleaves numbers, pairs or halves of two rows. */
#define MIX(a, b, ...) PICK(Eight, a, b, __VA_ARGS__)
#define ONES_LO 0, 8, 1, 9, 4, 12, 5, 13
#define ONES_HI 2, 10, 3, 11, 6, 14, 7, 15
#define TWOS_LO 0, 1, 8, 9, 4, 5, 12, 13
#define TWOS_HI 2, 3, 10, 11, 6, 7, 14, 15
#define FOURS_LO 0, 1, 2, 3, 8, 9, 10, 11
#define FOURS_HI 4, 5, 6, 7, 12, 13, 14, 15

/* 8 by 8 numbers, rows of TILE apart. */
static void transpose_eight (uint32_t *y, const uint32_t *x) {
  Eight r[8], t[8];
  for (int k = 0; k < 8; k++) memcpy(&r[k], x + k * TILE, sizeof r[k]);
  for (int k = 0; k < 8; k += 2) {
    t[k] = MIX(r[k], r[k + 1], ONES_LO);
    t[k + 1] = MIX(r[k], r[k + 1], ONES_HI);
  }
  for (int k = 0; k < 8; k += 4) {
    r[k] = MIX(t[k], t[k + 2], TWOS_LO);
    r[k + 1] = MIX(t[k], t[k + 2], TWOS_HI);
    r[k + 2] = MIX(t[k + 1], t[k + 3], TWOS_LO);
    r[k + 3] = MIX(t[k + 1], t[k + 3], TWOS_HI);
  }
  for (int k = 0; k < 4; k++) {
    t[k] = MIX(r[k], r[k + 4], FOURS_LO);
    t[k + 4] = MIX(r[k], r[k + 4], FOURS_HI);
  }
  for (int k = 0; k < 8; k++) memcpy(y + k * TILE, &t[k], sizeof t[k]);
}

static void transpose_32 (uint32_t *y, const uint32_t *x) {
  for (int i = 0; i < TILE; i += 8)
    for (int j = 0; j < TILE; j += 8)
      transpose_eight(y + i * TILE + j, x + j * TILE + i);
}

#define TRANSPOSE(name, T) \
  static void name(T *y, const T *x) { \
    for (int i = 0; i < TILE; i++) \
      for (int j = 0; j < TILE; j++) y[i * TILE + j] = x[j * TILE + i]; \
  }

TRANSPOSE(transpose_8, uint8_t)
TRANSPOSE(transpose_16, uint16_t)
TRANSPOSE(transpose_64, uint64_t)

/* y[i, j] = x[j, i] for n by m; sy and sx are the strides between rows. */
static void transpose_tile (char *y, const char *x, int64_t n, int64_t m,
                            int64_t sy, int64_t sx, size_t size, bool stream) {
  _Alignas(64) uint64_t from[TILE * TILE], to[TILE * TILE];
  size_t row = TILE * size;
  for (int64_t j = 0; j < m; j++)
    memcpy((char *)from + (size_t)j * row, x + j * sx * (int64_t)size,
           (size_t)n * size);
  switch (size) {
    case 1: transpose_8((void *)to, (const void *)from); break;
    case 2: transpose_16((void *)to, (const void *)from); break;
    case 4: transpose_32((void *)to, (const void *)from); break;
    default: transpose_64((void *)to, (const void *)from);
  }
  for (int64_t i = 0; i < n; i++) {
    char *z = y + i * sy * (int64_t)size;
    const char *t = (const char *)to + (size_t)i * row;
    if (stream) ONCE(run_stream)(z, t, (size_t)m * size);
    else memcpy(z, t, (size_t)m * size);
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
                     x->stride[last], (size_t)size, s->stream);
  }
  if (s->stream) ONCE(run_fence)();
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

/* A run of a few cache lines at most, where a call of memcpy shows. */
static void move_run (char *y, const char *x, int64_t bytes) {
  if (bytes > LINES || bytes < 16) {
    memcpy(y, x, (size_t)bytes);
    return;
  }
  for (int64_t i = 0; i + 16 <= bytes; i += 16) memcpy(y + i, x + i, 16);
  memcpy(y + bytes - 16, x + bytes - 16, 16); /* what is left, and before */
}

/* Rows lo .. hi - 1: runs along the last dim, dense on both sides. */
static void copy_rows (void *ud, int64_t lo, int64_t hi) {
  const Sweep *s = ud;
  const Operand *y = &s->at[0], *x = &s->at[1];
  int last = s->ndim - 1, d = last - 1;
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)y->dtype);
  int64_t bytes = s->shape[last] * size;
  while (lo < hi) {
    int64_t rest = lo / s->shape[d], first = lo % s->shape[d];
    int64_t oy = first * y->stride[d], ox = first * x->stride[d];
    for (int k = d - 1; k >= 0; k--) {
      oy += rest % s->shape[k] * y->stride[k];
      ox += rest % s->shape[k] * x->stride[k];
      rest /= s->shape[k];
    }
    int64_t n = min64(hi - lo, s->shape[d] - first);
    char *to = y->data + oy * size;
    const char *from = x->data + ox * size;
    for (int64_t i = 0; i < n; i++)
      move_run(to + i * y->stride[d] * size, from + i * x->stride[d] * size,
               bytes);
    lo += n;
  }
}

/* Whether s consists of short dense runs; then copies them.  Long ones, and
** those that should go past the caches, are the sweep's. */
static bool rows (const Sweep *s) {
  int last = s->ndim - 1;
  int64_t n = s->shape[last];
  if (s->ndim < 2 || s->at[0].stride[last] != 1 || s->at[1].stride[last] != 1)
    return false;
  if (n > GRAIN / 8 || (s->stream && n > LINES)) return false;
  threads_range(s->numel / n, grain_rows(n), copy_rows, (void *)s);
  return true;
}

/* The result is what the load made: nothing is left to compute. */
#define MOVE(name, T) \
  static void name(void *z, const void *const *in, int64_t n, double a, \
                   double b) { \
    (void)a, (void)b; \
    if (z != in[0]) memcpy(z, in[0], (size_t)n * sizeof(T)); \
  }

MOVE(move_8, uint8_t)
MOVE(move_16, uint16_t)
MOVE(move_32, uint32_t)
MOVE(move_64, uint64_t)

void CPU (copy)(Tensor *y, const Tensor *x) {
  Sweep s;
  ONCE(sweep_open)(&s, 2, (const Tensor *[]){ y, x });
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  if (y->dtype == x->dtype) {
    if (s.numel > 0 && (transpose(&s) || rows(&s))) return;
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
