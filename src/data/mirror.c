/* mirror.c - the items of a dataset, then all of them again mirrored. */

#include "data.h"

#include <string.h>

typedef struct Mirror {
  fnn_Dataset d;
  fnn_Dataset *base;
  int64_t width; /* of a row that runs backwards */
} Mirror;

static void mirror_destroy (fnn_Dataset *d) {
  fnn_release(((Mirror *)d)->base);
}

/* Runs of width elements of size bytes, in place. */
static void reverse (char *p, int64_t rows, int64_t width, size_t size) {
  char t[16];
  for (; rows > 0; rows--, p += width * (int64_t)size) {
    char *a = p, *b = p + (width - 1) * (int64_t)size;
    for (; a < b; a += size, b -= size) {
      memcpy(t, a, size);
      memcpy(a, b, size);
      memcpy(b, t, size);
    }
  }
}

static void mirror_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                         Tensor *const *to) {
  Mirror *m = (Mirror *)d;
  size_t mark = fnn_mark(), size = fnn_dtype_size(d->fields[0].dtype);
  int64_t *inner = mem_scratch((size_t)n * sizeof *inner);
  for (int64_t i = 0; i < n; i++)
    inner[i] = ids[i] < m->base->n ? ids[i] : ids[i] - m->base->n;
  m->base->kind->read(m->base, n, inner, to);
  if (to[0] != NULL) {
    int64_t item = to[0]->numel / n;
    for (int64_t i = 0; i < n; i++)
      if (ids[i] >= m->base->n)
        reverse((char *)tensor_data(to[0]) + i * item * (int64_t)size,
                item / m->width, m->width, size);
  }
  fnn_escape(mark, NULL);
}

static const DatasetClass mirror_class = { "Mirrored", mirror_read,
                                           mirror_destroy };

fnn_Dataset *fnn_mirrored (fnn_Dataset *base, int64_t width) {
  const Field *f = &base->fields[0];
  int64_t last = f->ndim > 0 ? f->shape[f->ndim - 1] : 0;
  ShapeText text;
  shape_print(&text, f->ndim, f->shape);
  if (last < 1 || fnn_dtype_size(f->dtype) == 0)
    fnn_throw(FNN_ESHAPE,
              "flip_horizontal: expected images or rows of pixels, got items "
              "of shape %s of %s",
              text.s, fnn_dtype_name(f->dtype));
  if (f->ndim == 1 ? width < 1 || last % width != 0
                   : width != last && width != 0)
    fnn_throw(FNN_ESHAPE,
              "flip_horizontal: a width of %lld does not fit items of shape "
              "%s (expected %s)",
              (long long)width, text.s,
              f->ndim == 1 ? "a part of the row" : "the last dim");
  Mirror *m = dataset_new(&mirror_class, sizeof *m);
  m->base = fnn_retain(base);
  m->width = f->ndim == 1 ? width : last;
  m->d.n = mem_mul(base->n, 2, "flip_horizontal: items");
  dataset_like(&m->d, base);
  return &m->d;
}
