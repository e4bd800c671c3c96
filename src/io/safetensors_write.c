/* safetensors_write.c - writing the safetensors format.
**
** Tensors stand in the file in the order given, each as its own elements in
** row-major order, whatever it is a view of.  The header is padded with
** spaces to a multiple of 8 bytes.  The same tensors give the same bytes.
** What is resident beyond them is at most a copy of the largest. */

#include "io.h"

#include <string.h>

enum { ALIGN = 8, HEADER_MAX = 100000000 };

static FNN_NORETURN void no_memory (const char *path) {
  fnn_throw(FNN_EMEMORY, "%s: out of memory for its header", path);
}

static void check_text (const char *path, const char *what, const char *s) {
  if (!json_utf8(s, strlen(s)))
    fnn_throw(FNN_EARG, "%s: %s is not UTF-8: %s", path, what, s);
}

static void add_meta (json_t *root, const char *path, int n,
                      const char *const *keys, const char *const *values) {
  if (n == 0) return;
  json_t *meta = json_object();
  if (json_object_set_new(root, "__metadata__", meta) != 0) no_memory(path);
  for (int i = 0; i < n; i++) {
    check_text(path, "a metadata key", keys[i]);
    check_text(path, "a metadata value", values[i]);
    if (json_object_get(meta, keys[i]) != NULL)
      fnn_throw(FNN_EARG, "%s: the metadata key %s is given twice", path,
                keys[i]);
    if (json_object_set_new(meta, keys[i], json_string(values[i])) != 0)
      no_memory(path);
  }
}

/* {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, linked into root at
** once, so that root's object owns it when something throws. */
static void add_tensor (json_t *root, const char *path, const char *name,
                        const Tensor *x, int64_t *at) {
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  int64_t end;
  check_text(path, "a tensor's name", name);
  if (json_object_get(root, name) != NULL || strcmp(name, "__metadata__") == 0)
    fnn_throw(FNN_EARG, "%s: the name %s is given twice or reserved", path,
              name);
  if (__builtin_add_overflow(
          *at,
          mem_mul(x->numel, (int64_t)fnn_dtype_size(t), "safetensors_write"),
          &end))
    fnn_throw(FNN_EARG, "%s: its data are too large", path);
  json_t *entry = json_object();
  if (json_object_set_new(root, name, entry) != 0) no_memory(path);
  bool ok = json_object_set_new(entry, "dtype",
                                json_string(element_name(element_of(t)))) == 0;
  json_t *shape = json_array();
  ok &= json_object_set_new(entry, "shape", shape) == 0;
  for (int i = 0; ok && i < x->ndim; i++)
    ok = json_array_append_new(shape, json_integer(x->shape[i])) == 0;
  json_t *offsets =
      ok ? json_pack("[I,I]", (json_int_t)*at, (json_int_t)end) : NULL;
  if (json_object_set_new(entry, "data_offsets", offsets) != 0)
    no_memory(path);
  *at = end;
}

static void put_header (Writer *w, const char *path, const char *header) {
  uint64_t n = strlen(header), padded = (n + ALIGN - 1) / ALIGN * ALIGN;
  unsigned char length[8];
  if (padded > HEADER_MAX)
    fnn_throw(FNN_EARG, "%s: its header would have %llu bytes (at most %d)",
              path, (unsigned long long)padded, HEADER_MAX);
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> 8 * i);
  writer_put(w, length, 8);
  writer_put(w, header, (int64_t)n);
  writer_put(w, "        ", (int64_t)(padded - n));
}

void fnn_safetensors_write (const char *path, int n, const char *const *names,
                            Tensor *const *x, int nmeta,
                            const char *const *keys,
                            const char *const *values) {
  size_t m = fnn_mark();
  int64_t at = 0;
  Json *header = json_new();
  add_meta(header->root, path, nmeta, keys, values);
  for (int i = 0; i < n; i++)
    add_tensor(header->root, path, names[i], x[i], &at);
  Writer *w = writer_open(path);
  put_header(w, path, json_text(header));
  for (int i = 0; i < n; i++) {
    size_t mark = fnn_mark();
    int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x[i]->dtype);
    writer_put(w, writer_elements(x[i]), x[i]->numel * size);
    fnn_escape(mark, NULL);
  }
  writer_close(w);
  fnn_escape(m, NULL);
}
