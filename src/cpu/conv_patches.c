/* conv_patches.c - patches of an image, gathered as rows of a matrix. */

#include "conv.h"

/*
** {======================================================
** Taps
** =======================================================
*/

/* The taps of one axis in the order of their offsets. */
typedef struct Axis {
  int64_t count, *tap, *offset;
} Axis;

static Axis axis_new (int64_t size) {
  return (Axis){ .tap = mem_scratch((size_t)size * sizeof(int64_t)),
                 .offset = mem_scratch((size_t)size * sizeof(int64_t)) };
}

static void axis_add (Axis *a, int64_t tap, int64_t offset) {
  a->tap[a->count] = tap;
  a->offset[a->count++] = offset;
}

static bool is_side_by_side (const Axis *a) {
  for (int64_t i = 1; i < a->count; i++)
    if (a->offset[i] != a->offset[i - 1] + 1) return false;
  return true;
}

static Taps taps_of (const ConvShape *s, const Axis a[3]) {
  Taps t = { .count = a[0].count * a[1].count * a[2].count, .across = 1 };
  t.tap = mem_scratch((size_t)t.count * sizeof *t.tap);
  t.offset = mem_scratch((size_t)t.count * sizeof *t.offset);
  int64_t i = 0;
  for (int64_t z = 0; z < a[0].count; z++)
    for (int64_t y = 0; y < a[1].count; y++)
      for (int64_t x = 0; x < a[2].count; x++, i++) {
        t.tap[i] = (a[0].tap[z] * s->size[1] + a[1].tap[y]) * s->size[2] +
                   a[2].tap[x];
        t.offset[i][0] = a[0].offset[z];
        t.offset[i][1] = a[1].offset[y];
        t.offset[i][2] = a[2].offset[x];
      }
  if (s->groups == 1 && t.count > 0 && is_side_by_side(&a[2]))
    t.across = a[2].count;
  return t;
}

Taps CPU (conv_taps)(const ConvShape *s) {
  Axis a[3];
  for (int d = 0; d < 3; d++) {
    a[d] = axis_new(s->size[d]);
    for (int64_t t = 0; t < s->size[d]; t++)
      axis_add(&a[d], t, t * s->dilation[d] - s->before[d]);
  }
  return taps_of(s, a);
}

/* Input place i = class + stride q meets tap t at place (i + before - t
** dilation) / stride of the result, if that is whole: at q + offset. */
Taps CPU (conv_taps_back)(const ConvShape *s, const int64_t class[3]) {
  Axis a[3];
  for (int d = 0; d < 3; d++) {
    a[d] = axis_new(s->size[d]);
    for (int64_t t = s->size[d] - 1; t >= 0; t--) {
      int64_t at = class[d] + s->before[d] - t * s->dilation[d];
      if (at % s->stride[d] == 0) axis_add(&a[d], t, at / s->stride[d]);
    }
  }
  return taps_of(s, a);
}

/* }====================================================== */

/*
** {======================================================
** Gathering
** =======================================================
*/

/* count pieces of n reals.  Short ones are moved as whole vectors where the
** image does not end: what is written too much is written again, by the next
** run of the row. */
static void copy_pieces (int64_t count, int64_t n, const real *from,
                         int64_t step, real *to, int64_t ldto,
                         const real *end) {
  if (n >= VEC) {
    for (; count > 0; count--, from += step, to += ldto) {
      int64_t j = 0;
      for (; j + VEC <= n; j += VEC) vec_store(to + j, vec_load(from + j));
      vec_store(to + n - VEC, vec_load(from + n - VEC));
    }
    return;
  }
  for (; count > 0 && end - from >= VEC; count--, from += step, to += ldto)
    vec_store(to, vec_load(from));
  for (; count > 0; count--, from += step, to += ldto)
    for (int64_t j = 0; j < n; j++) to[j] = from[j];
}

static void clear_pieces (int64_t count, int64_t n, real *to, int64_t ldto) {
  for (; count > 0; count--, to += ldto)
    for (int64_t j = 0; j < n; j += VEC) vec_store(to + j, (vec){ 0 });
}

/* Reals a .. b of a run that starts at place x of a line and ends outside. */
static void copy_clipped (const Patches *p, const real *line, int64_t x,
                          int64_t a, int64_t b, real *to) {
  int64_t lo = max64(a, min64(b, -x * p->ld));
  int64_t hi = max64(lo, min64(b, (p->in[2] - x) * p->ld));
  for (int64_t j = a; j < lo; j++) *to++ = 0;
  for (int64_t j = lo; j < hi; j++) *to++ = line[x * p->ld + j];
  for (int64_t j = hi; j < b; j++) *to++ = 0;
}

/* Reals a .. b of a run for `count` places of a line of the grid, the first
** with its origin at place x of the image's line. */
static void gather_run (const Patches *p, const real *line, int64_t x,
                        int64_t count, int64_t a, int64_t b, real *to,
                        int64_t ldto) {
  int64_t step = p->step[2], last = p->in[2] - p->across;
  for (; count > 0 && x < 0; count--, x += step, to += ldto)
    if (p->across > 1) copy_clipped(p, line, x, a, b, to);
    else clear_pieces(1, b - a, to, ldto);
  int64_t inside = x > last ? 0 : min64(count, (last - x) / step + 1);
  copy_pieces(inside, b - a, line + x * p->ld + a, step * p->ld, to, ldto,
              p->end);
  to += inside * ldto;
  x += inside * step;
  for (count -= inside; count > 0; count--, x += step, to += ldto)
    if (p->across > 1) copy_clipped(p, line, x, a, b, to);
    else clear_pieces(1, b - a, to, ldto);
}

/* Columns k0 .. k0 + k for places x .. x + count of one line of the grid. */
static void gather_line (const Patches *p, const int64_t at[3], int64_t image,
                         int64_t count, int64_t k0, int64_t k, real *to,
                         int64_t ldto) {
  int64_t size = p->across * p->channels;
  for (int64_t r = k0 / size; r * size < k0 + k; r++) {
    int64_t a = max64(0, k0 - r * size), b = min64(size, k0 + k - r * size);
    const int64_t *offset = p->offset[r * p->across];
    int64_t z = at[0] * p->step[0] + offset[0];
    int64_t y = at[1] * p->step[1] + offset[1];
    if (z < 0 || z >= p->in[0] || y < 0 || y >= p->in[1]) {
      clear_pieces(count, b - a, to, ldto);
    } else {
      int64_t line = ((image * p->in[0] + z) * p->in[1] + y) * p->in[2];
      gather_run(p, p->data + line * p->ld, at[2] * p->step[2] + offset[2],
                 count, a, b, to, ldto);
    }
    to += b - a;
  }
}

void CPU (patches_gather)(const Patches *p, int64_t i0, int64_t m, int64_t k0,
                          int64_t k, real *to, int64_t ldto) {
  while (m > 0) {
    int64_t at[3], i = i0;
    for (int d = 2; d >= 0; d--) {
      at[d] = i % p->out[d];
      i /= p->out[d];
    }
    int64_t count = min64(m, p->out[2] - at[2]);
    gather_line(p, at, i, count, k0, k, to, ldto);
    to += count * ldto;
    i0 += count;
    m -= count;
  }
}

/* }====================================================== */
