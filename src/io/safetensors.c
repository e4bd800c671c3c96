/* safetensors.c - reading the safetensors format: named tensors in one file.
**
** A file is the header's length as u64, the header in JSON, then the data,
** which the tensors must fill without overlap and without holes.  The header
** is checked whole when the file is opened; each tensor is then read from its
** place, so that the file is never resident. */

#include "io.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8, HEADER_MAX = 100000000 };

/* One tensor of the file; begin and end count from the data's start. */
typedef struct Entry {
  const char *name; /* the header's */
  int64_t begin, end;
  int64_t shape[FNN_MAXDIM];
  uint8_t element, ndim;
} Entry;

struct fnn_Safetensors {
  Object o;
  Reader *reader; /* retained, as is header */
  Json *header;
  json_t *meta; /* or NULL */
  int64_t data; /* where the data start in the file */
  int64_t n;
  Entry *entry;   /* in the file's order */
  Entry **sorted; /* by name */
};

typedef fnn_Safetensors File;

/* Memory is asked for at least one place. */
static size_t places (const File *f) { return (size_t)max64(f->n, 1); }

static void safetensors_destroy (void *o) {
  File *f = o;
  mem_free(f->entry, places(f) * sizeof *f->entry);
  mem_free(f->sorted, places(f) * sizeof *f->sorted);
  fnn_release(f->header);
  fnn_release(f->reader);
}

static const Type safetensors_type = { "Safetensors", safetensors_destroy };

/* A non-negative integer of the header, or -1. */
static int64_t whole (const json_t *j) {
  int64_t v = json_is_integer(j) ? json_integer_value(j) : -1;
  return v >= 0 ? v : -1;
}

static void check_shape (File *f, Entry *e, const json_t *shape) {
  const char *path = f->reader->name;
  if (!json_is_array(shape))
    fnn_throw(FNN_EFORMAT, "%s: tensor %s: has no list 'shape'", path,
              e->name);
  if (json_array_size(shape) > FNN_MAXDIM)
    fnn_throw(FNN_EFORMAT, "%s: tensor %s: has %zu dimensions (at most %d)",
              path, e->name, json_array_size(shape), FNN_MAXDIM);
  e->ndim = (uint8_t)json_array_size(shape);
  for (int i = 0; i < e->ndim; i++) {
    e->shape[i] = whole(json_array_get(shape, (size_t)i));
    if (e->shape[i] < 0)
      fnn_throw(FNN_EFORMAT, "%s: tensor %s: shape[%d] is not a whole number",
                path, e->name, i);
  }
}

static void check_dtype (File *f, Entry *e, const json_t *dtype) {
  const char *name = json_string_value(dtype);
  if (name == NULL)
    fnn_throw(FNN_EFORMAT, "%s: tensor %s: has no 'dtype'", f->reader->name,
              e->name);
  e->element = element_find(name);
  if (e->element == ELEMENT_NONE)
    fnn_throw(FNN_EFORMAT, "%s: tensor %s: its dtype %.32s is not known",
              f->reader->name, e->name, name);
}

static void check_offsets (File *f, Entry *e, const json_t *offsets) {
  int64_t size = f->reader->size - f->data, bytes;
  bool pair = json_is_array(offsets) && json_array_size(offsets) == 2;
  e->begin = pair ? whole(json_array_get(offsets, 0)) : -1;
  e->end = pair ? whole(json_array_get(offsets, 1)) : -1;
  if (e->begin < 0 || e->end < e->begin)
    fnn_throw(FNN_EFORMAT,
              "%s: tensor %s: its 'data_offsets' are not two whole numbers "
              "in order",
              f->reader->name, e->name);
  bytes = element_bytes((Element)e->element, e->ndim, e->shape);
  if (bytes < 0)
    fnn_throw(FNN_EFORMAT, "%s: tensor %s: its shape %s is too large",
              f->reader->name, e->name,
              shape_print(&(ShapeText){ "" }, e->ndim, e->shape));
  if (bytes != e->end - e->begin)
    fnn_throw(FNN_EFORMAT,
              "%s: tensor %s: its offsets hold %lld bytes, %s of shape %s "
              "needs %lld",
              f->reader->name, e->name, (long long)(e->end - e->begin),
              element_name((Element)e->element),
              shape_print(&(ShapeText){ "" }, e->ndim, e->shape),
              (long long)bytes);
  if (e->end > size)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: tensor %s ends at byte %lld of the data, the "
              "file has %lld of them (an incomplete download?)",
              f->reader->name, e->name, (long long)e->end, (long long)size);
}

static void check_meta (File *f, json_t *meta) {
  const char *key;
  json_t *value;
  if (!json_is_object(meta))
    fnn_throw(FNN_EFORMAT, "%s: __metadata__ is not an object",
              f->reader->name);
  json_object_foreach(meta, key, value) if (!json_is_string(value))
      fnn_throw(FNN_EFORMAT, "%s: __metadata__: %s is not a string",
                f->reader->name, key);
  f->meta = meta;
}

static int by_place (const void *a, const void *b) {
  const Entry *x = *(Entry *const *)a, *y = *(Entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name (const void *a, const void *b) {
  return strcmp((*(Entry *const *)a)->name, (*(Entry *const *)b)->name);
}

/* In the order of the data each tensor begins where the one before ends. */
static void check_places (File *f) {
  const char *path = f->reader->name;
  int64_t at = 0, size = f->reader->size - f->data;
  qsort(f->sorted, (size_t)f->n, sizeof *f->sorted, by_place);
  for (int64_t i = 0; i < f->n; i++) {
    const Entry *e = f->sorted[i];
    if (e->begin < at)
      fnn_throw(FNN_EFORMAT, "%s: tensors %s and %s overlap", path,
                f->sorted[i - 1]->name, e->name);
    if (e->begin > at)
      fnn_throw(FNN_EFORMAT,
                "%s: %lld bytes before tensor %s belong to no "
                "tensor",
                path, (long long)(e->begin - at), e->name);
    at = e->end;
  }
  if (at != size)
    fnn_throw(FNN_EFORMAT, "%s: has %lld bytes after its last tensor", path,
              (long long)(size - at));
}

static void read_entries (File *f) {
  const char *key;
  json_t *value, *root = f->header->root;
  int64_t i = 0;
  f->n = (int64_t)json_object_size(root);
  if (json_object_get(root, "__metadata__") != NULL) f->n--;
  f->entry = mem_new(places(f) * sizeof *f->entry);
  f->sorted = mem_new(places(f) * sizeof *f->sorted);
  json_object_foreach(root, key, value) {
    if (strcmp(key, "__metadata__") == 0) {
      check_meta(f, value);
      continue;
    }
    Entry *e = f->sorted[i] = &f->entry[i];
    i++;
    e->name = key;
    if (!json_is_object(value))
      fnn_throw(FNN_EFORMAT,
                "%s: tensor %s: is not described by dtype, "
                "shape and data_offsets",
                f->reader->name, key);
    check_dtype(f, e, json_object_get(value, "dtype"));
    check_shape(f, e, json_object_get(value, "shape"));
    check_offsets(f, e, json_object_get(value, "data_offsets"));
  }
  check_places(f);
  qsort(f->sorted, (size_t)f->n, sizeof *f->sorted, by_name);
}

/* Reads the header's length and the header; leaves the reader at the data. */
static void read_header (File *f) {
  Reader *r = f->reader;
  unsigned char head[LENGTH + 1];
  uint64_t n = 0;
  if (r->size < LENGTH + 2) reader_wrong(r, "a safetensors file");
  reader_read(r, head, LENGTH + 1);
  for (int i = LENGTH - 1; i >= 0; i--) n = n << 8 | head[i];
  if (head[LENGTH] != '{') reader_wrong(r, "a safetensors file");
  if (n > HEADER_MAX)
    fnn_throw(FNN_EFORMAT, "%s: its header has %llu bytes (at most %d)",
              r->name, (unsigned long long)n, HEADER_MAX);
  if (n > (uint64_t)r->size - LENGTH)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: its header has %llu bytes, the "
              "file has %lld (an incomplete download?)",
              r->name, (unsigned long long)n, (long long)r->size);
  size_t m = fnn_mark();
  char *text = mem_scratch((size_t)n);
  reader_seek(r, LENGTH);
  reader_read(r, text, (int64_t)n);
  f->header = fnn_retain(json_parse(r->name, text, (size_t)n));
  fnn_escape(m, NULL);
  if (!json_is_object(f->header->root)) reader_wrong(r, "a safetensors file");
  f->data = r->at;
}

File *safetensors_open (Reader *r) {
  size_t m = fnn_mark();
  File *f = object_new(&safetensors_type, sizeof *f);
  f->reader = fnn_retain(r);
  read_header(f);
  read_entries(f);
  return fnn_escape(m, f);
}

File *fnn_safetensors_open (const char *path) {
  size_t m = fnn_mark();
  return fnn_escape(m, safetensors_open(reader_open(path)));
}

int64_t fnn_safetensors_count (const File *f) { return f->n; }

static const Entry *entry_at (const File *f, int64_t i) {
  if (i < 0 || i >= f->n)
    fnn_throw(FNN_EARG, "%s: tensor %lld is out of range (it has %lld)",
              f->reader->name, (long long)i, (long long)f->n);
  return &f->entry[i];
}

const char *fnn_safetensors_name (const File *f, int64_t i) {
  return entry_at(f, i)->name;
}

const char *fnn_safetensors_dtype (const File *f, int64_t i) {
  return element_name((Element)entry_at(f, i)->element);
}

int fnn_safetensors_shape (const File *f, int64_t i, const int64_t **shape) {
  const Entry *e = entry_at(f, i);
  if (shape != NULL) *shape = e->shape;
  return e->ndim;
}

int64_t fnn_safetensors_find (const File *f, const char *name) {
  Entry key = { .name = name }, *p = &key;
  if (f->n == 0) return -1;
  Entry **e = bsearch(&p, f->sorted, (size_t)f->n, sizeof p, by_name);
  return e != NULL ? *e - f->entry : -1;
}

const char *fnn_safetensors_meta (const File *f, const char *key) {
  return json_string_value(json_object_get(f->meta, key));
}

int64_t fnn_safetensors_meta_count (const File *f) {
  return (int64_t)json_object_size(f->meta);
}

const char *fnn_safetensors_meta_key (const File *f, int64_t i) {
  void *at = json_object_iter(f->meta);
  for (; at != NULL && i > 0; i--) at = json_object_iter_next(f->meta, at);
  return at != NULL && i == 0 ? json_object_iter_key(at) : NULL;
}

Tensor *fnn_safetensors_read (File *f, int64_t i) {
  const Entry *e = entry_at(f, i);
  reader_seek(f->reader, f->data + e->begin);
  return element_read(f->reader, (Element)e->element, false, e->ndim, e->shape,
                      e->name);
}
