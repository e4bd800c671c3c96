/* embedding.c - a table of vectors, looked up by ids. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nn.h"

typedef struct Embedding {
  fnn_Module m;
  int64_t count, dim;
  fnn_Param *weight; /* (count, dim) */
} Embedding;

/* ids (...), y (..., dim) */
static Tensor *forward (fnn_Module *m, Tensor *ids) {
  Embedding *l = (Embedding *)m;
  int64_t shape[FNN_MAXDIM];
  if (ids->ndim == FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE, "Embedding: expected ids of at most %d dims, got %s",
              FNN_MAXDIM - 1, shape_text(ids));
  tensor_check_ids("Embedding", ids);
  memcpy(shape, ids->shape, ids->ndim * sizeof *shape);
  shape[ids->ndim] = l->dim;
  Tensor *flat = fnn_reshape(ids, 1, (int64_t[]){ ids->numel });
  Tensor *rows = fnn_index_select(fnn_value(l->weight), 0, flat);
  return fnn_reshape(rows, ids->ndim + 1, shape);
}

static void text (const fnn_Module *m, char *to, size_t size) {
  const Embedding *l = (const Embedding *)m;
  snprintf(to, size, "%" PRId64 ", %" PRId64, l->count, l->dim);
}

static const Class embedding = { { "Embedding", module_destroy },
                                 forward,
                                 text };

fnn_Module *fnn_nn_embedding (int64_t count, int64_t dim, fnn_Dtype t,
                              const fnn_Device *d, fnn_Generator *g) {
  if (count < 1 || dim < 1)
    fnn_throw(FNN_EARG,
              "Embedding: expected sizes of at least 1, got count %" PRId64
              " and dim %" PRId64,
              count, dim);
  Embedding *l = module_new(&embedding, sizeof *l);
  l->count = count;
  l->dim = dim;
  module_param(&l->m, "weight", &l->weight,
               fnn_normal(2, (int64_t[]){ count, dim }, 0, 1, t, d, g));
  return &l->m;
}
