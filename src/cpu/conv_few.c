/* conv_few.c - convolutions with so few outputs a place (grey, RGB) that tiles
** of a product would be mostly empty.
**
** Products come first: what each place of the input gives to each tap and
** output, z (taps x outputs, places).  Then each place of the result adds up
** what its taps gave; places lie side by side in z: vectors run over them. */

#include "conv.h"

enum { CHUNK = 1 << 20 /* elements of z computed at a time */ };

/* One chunk of images, from `first` on. */
typedef struct Chunk {
  const Few *f;
  int64_t first, places; /* places: of all its images */
  const real *z;
  real *lines; /* (outputs, places of a line) for each worker */
  int64_t each;
  const FewPart *part;
} Chunk;

static int64_t count (const int64_t size[3]) {
  return size[0] * size[1] * size[2];
}

/* Adds what tap t gave to a line of the part's grid. */
static void add_tap (const Chunk *k, int64_t t, int64_t image,
                     const int64_t at[2], real *line) {
  const Few *f = k->f;
  const FewPart *p = k->part;
  const int64_t *offset = p->taps.offset[t];
  int64_t z = at[0] + offset[0], y = at[1] + offset[1], dx = offset[2];
  if (z < 0 || z >= f->in[0] || y < 0 || y >= f->in[1]) return;
  int64_t lo = max64(0, -dx), hi = min64(p->grid[2], f->in[2] - dx);
  int64_t from = ((image * f->in[0] + z) * f->in[1] + y) * f->in[2] + dx;
  for (int64_t o = 0; o < f->n; o++) {
    const real *x = k->z + (p->taps.tap[t] * f->n + o) * k->places + from;
    real *to = line + o * p->grid[2];
    for (int64_t i = lo; i < hi; i++) to[i] += x[i];
  }
}

static void line_task (void *ud, int64_t task, int worker) {
  const Chunk *k = ud;
  const Few *f = k->f;
  const FewPart *p = k->part;
  int64_t n = p->grid[2], lines = p->grid[0] * p->grid[1];
  int64_t image = task / lines;
  int64_t at[2] = { task % lines / p->grid[1], task % p->grid[1] };
  real *line = k->lines + worker * k->each;
  for (int64_t o = 0; o < f->n; o++)
    for (int64_t i = 0; i < n; i++)
      line[o * n + i] = f->bias != NULL ? f->bias[o] : 0;
  for (int64_t t = 0; t < p->taps.count; t++) add_tap(k, t, image, at, line);
  int64_t place = (k->first + image) * f->out[0] + p->first[0];
  place = (place + at[0] * f->stride[0]) * f->out[1] + p->first[1];
  place = (place + at[1] * f->stride[1]) * f->out[2] + p->first[2];
  real *y = f->y + place * f->n;
  for (int64_t o = 0; o < f->n; o++)
    for (int64_t i = 0; i < n; i++) {
      real v = line[o * n + i];
      y[i * f->stride[2] * f->n + o] = f->relu && v < 0 ? 0 : v;
    }
}

/* (taps, outputs, channels) */
static const real *turned (const Few *f) {
  int64_t size = f->taps * f->n * f->channels;
  real *a = mem_scratch((size_t)size * sizeof *a), *to = a;
  for (int64_t t = 0; t < f->taps; t++)
    for (int64_t o = 0; o < f->n; o++)
      for (int64_t c = 0; c < f->channels; c++)
        *to++ = f->weights[t + o * f->ldo + c * f->ldc];
  return a;
}

void CPU (conv_few)(const Few *f) {
  size_t mark = fnn_mark();
  const real *a = turned(f);
  int64_t rows = f->taps * f->n, places = count(f->in);
  int64_t images = max64(1, min64(f->images, CHUNK / (rows * places)));
  real *z = mem_scratch((size_t)(images * rows * places) * sizeof *z);
  Chunk k = { .f = f, .z = z, .each = f->n * f->out[2] };
  k.lines = mem_scratch((size_t)(threads_width() * k.each) * sizeof(real));
  for (; k.first < f->images; k.first += images) {
    int64_t n = min64(images, f->images - k.first);
    k.places = n * places;
    const real *x = f->x + k.first * places * f->channels;
    CPU(gemm)
    (&(Gemm){ .m = rows,
              .n = k.places,
              .k = f->channels,
              .a = { .data = a, .row = f->channels, .col = 1 },
              .b = { .data = x, .row = 1, .col = f->channels },
              .c = z,
              .ldc = k.places,
              .alpha = 1 });
    for (int64_t i = 0; i < f->parts; i++) {
      k.part = &f->part[i];
      const int64_t *grid = k.part->grid;
      threads_run(n * grid[0] * grid[1], line_task, &k);
    }
  }
  fnn_escape(mark, NULL);
}
