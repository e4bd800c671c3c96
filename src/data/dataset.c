/* dataset.c - datasets in memory, and parts of others. */

#include "data.h"

#include <string.h>

static void dataset_destroy (void *o) {
  fnn_Dataset *d = o;
  if (d->kind->destroy != NULL) d->kind->destroy(d);
  fnn_release(d->classes);
}

static const Type dataset_type = { "dataset", dataset_destroy };

void *dataset_new (const DatasetClass *kind, size_t size) {
  fnn_Dataset *d = object_new(&dataset_type, size);
  d->kind = kind;
  return d;
}

int64_t fnn_dataset_size (const fnn_Dataset *d) { return d->n; }
int fnn_dataset_fields (const fnn_Dataset *d) { return d->nfields; }

int fnn_dataset_field (const fnn_Dataset *d, int k, const int64_t **shape,
                       fnn_Dtype *t) {
  if (k < 0 || k >= d->nfields)
    fnn_throw(FNN_EARG, "dataset: there are %d fields", d->nfields);
  *shape = d->fields[k].shape;
  *t = d->fields[k].dtype;
  return d->fields[k].ndim;
}

int dataset_shape (const fnn_Dataset *d, int k, int64_t n, int64_t *shape) {
  const Field *f = &d->fields[k];
  shape[0] = n;
  for (int i = 0; i < f->ndim; i++) shape[i + 1] = f->shape[i];
  return f->ndim + 1;
}

void dataset_fill (fnn_Dataset *d, int64_t n, const int64_t *ids,
                   Tensor *const *to) {
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= d->n)
      fnn_throw(FNN_EARG,
                "dataset: item %lld of %lld (items count from 0 "
                "here)",
                (long long)ids[i], (long long)d->n);
  if (n > 0) d->kind->read(d, n, ids, to);
}

void fnn_dataset_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                       fnn_Tensor **to) {
  for (int k = 0; k < d->nfields; k++) {
    int64_t shape[FNN_MAXDIM];
    int ndim = dataset_shape(d, k, n, shape);
    to[k] = tensor_new(ndim, shape, d->fields[k].dtype, device_cpu());
  }
  dataset_fill(d, n, ids, to);
}

Tensor *fnn_dataset_read_field (fnn_Dataset *d, int k, int64_t n,
                                const int64_t *ids) {
  int64_t shape[FNN_MAXDIM];
  fnn_Dtype t;
  const int64_t *item;
  Tensor *to[FIELDS] = { NULL };
  fnn_dataset_field(d, k, &item, &t);
  int ndim = dataset_shape(d, k, n, shape);
  to[k] = tensor_new(ndim, shape, t, device_cpu());
  dataset_fill(d, n, ids, to);
  return to[k];
}

void dataset_like (fnn_Dataset *d, const fnn_Dataset *base) {
  d->nfields = base->nfields;
  memcpy(d->fields, base->fields, sizeof d->fields);
  if (base->classes != NULL) d->classes = fnn_retain(base->classes);
}

int64_t fnn_dataset_class_count (const fnn_Dataset *d) {
  return d->classes != NULL ? d->classes->n : 0;
}

const char *fnn_dataset_class (const fnn_Dataset *d, int64_t i) {
  if (i < 0 || i >= fnn_dataset_class_count(d))
    fnn_throw(FNN_EARG, "dataset: class %lld of %lld", (long long)i,
              (long long)fnn_dataset_class_count(d));
  const char *s = d->classes->text;
  while (i-- > 0) s += strlen(s) + 1;
  return s;
}

/*
** {======================================================
** Tensors in memory
** =======================================================
*/

typedef struct Memory {
  fnn_Dataset d;
  Tensor *x[FIELDS]; /* (n, item ...), dense, on the CPU */
  double scale[FIELDS];
} Memory;

static void memory_destroy (fnn_Dataset *d) {
  Memory *m = (Memory *)d;
  for (int k = 0; k < d->nfields; k++) fnn_release(m->x[k]);
}

/* Rows of a field, converted and scaled. */
static void memory_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                         Tensor *const *to) {
  Memory *m = (Memory *)d;
  Tensor *places = fnn_tensor(FNN_I64, 1, &n, ids);
  for (int k = 0; k < d->nfields; k++) {
    Tensor *x = m->x[k], *y = to[k];
    if (y == NULL) continue;
    Tensor *rows =
        x->dtype == y->dtype ? y : tensor_like_as(y, (fnn_Dtype)x->dtype);
    kernel(x, index_select)(rows, x, places, 1, d->n,
                            d->n > 0 ? x->numel / d->n : 0);
    if (rows != y) kernel(y, copy)(y, rows);
    if (m->scale[k] != 1)
      kernel(y, zip_number)(ZIP_mul, y, y, m->scale[k], false);
  }
}

static const DatasetClass memory_class = { "TensorDataset", memory_read,
                                           memory_destroy };

fnn_Dataset *fnn_tensor_dataset (int n, const fnn_DataField *f) {
  if (n < 1 || n > FIELDS)
    fnn_throw(FNN_EARG, "TensorDataset: expected 1 to %d tensors (got %d)",
              FIELDS, n);
  Memory *m = dataset_new(&memory_class, sizeof *m);
  for (int k = 0; k < n; k++) {
    Tensor *x = f[k].x;
    if (x->ndim == 0 || x->shape[0] != f[0].x->shape[0])
      fnn_throw(FNN_ESHAPE,
                "TensorDataset: tensor %d has shape %s, the first "
                "%s: they must have as many rows",
                k + 1, shape_text(x), shape_text(f[0].x));
    x = tensor_alias(tensor_dense(tensor_move(x, device_cpu())));
    Field *g = &m->d.fields[k];
    g->dtype = f[k].convert ? f[k].dtype : (fnn_Dtype)x->dtype;
    g->ndim = x->ndim - 1;
    memcpy(g->shape, x->shape + 1, (size_t)g->ndim * sizeof *g->shape);
    if (f[k].convert && f[k].scale != 1 && !dtype_is_compute(g->dtype))
      fnn_throw(FNN_EDTYPE,
                "TensorDataset: only f32 and f64 are scaled, not "
                "%s",
                fnn_dtype_name(g->dtype));
    m->scale[k] = f[k].convert ? f[k].scale : 1;
    m->x[k] = fnn_retain(x);
    m->d.nfields = k + 1;
  }
  m->d.n = f[0].x->shape[0];
  return &m->d;
}

/* }====================================================== */

/*
** {======================================================
** Parts
** =======================================================
*/

typedef struct Subset {
  fnn_Dataset d;
  fnn_Dataset *base;
  int64_t *ids; /* of base */
} Subset;

static void subset_destroy (fnn_Dataset *d) {
  Subset *s = (Subset *)d;
  fnn_release(s->base);
  mem_free(s->ids, (size_t)d->n * sizeof *s->ids);
}

static void subset_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                         Tensor *const *to) {
  Subset *s = (Subset *)d;
  int64_t *inner = mem_scratch((size_t)n * sizeof *inner);
  for (int64_t i = 0; i < n; i++) inner[i] = s->ids[ids[i]];
  s->base->kind->read(s->base, n, inner, to);
}

static const DatasetClass subset_class = { "Subset", subset_read,
                                           subset_destroy };

fnn_Dataset *fnn_subset (fnn_Dataset *base, int64_t n, const int64_t *ids) {
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= base->n)
      fnn_throw(FNN_EARG, "subset: item %lld of %lld", (long long)ids[i],
                (long long)base->n);
  Subset *s = dataset_new(&subset_class, sizeof *s);
  s->base = fnn_retain(base);
  if (n > 0) {
    s->ids = mem_new((size_t)n * sizeof *s->ids);
    memcpy(s->ids, ids, (size_t)n * sizeof *ids);
    s->d.n = n;
  }
  dataset_like(&s->d, base);
  return &s->d;
}

/* }====================================================== */
