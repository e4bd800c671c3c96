/* missing.cu - kernels that are not written yet: delete a line here when its
** kernel has a file. */

#include "cuda.h"

#define MISSING(name, args) \
  extern "C" void cuda_##name args { \
    fnn_throw(FNN_EDEVICE, "%s: not on cuda yet", #name); \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

MISSING(zip, (int op, Tensor *z, const Tensor *x, const Tensor *y))
MISSING(zip_back, (int op, int which, Tensor *gx, const Tensor *gz, const Tensor *x, const Tensor *y))
MISSING(zip_number, (int op, Tensor *z, const Tensor *x, double v, bool left))
MISSING(where, (Tensor *y, const Tensor *c, const Tensor *a, const Tensor *b))
MISSING(cross, (Tensor *z, const Tensor *x, const Tensor *y, int64_t outer, int64_t inner))
MISSING(channel_norm, (Tensor *y, Tensor *stats, Tensor *mean, Tensor *var, const Tensor *x, const Tensor *w, const Tensor *b, const Norm *k))
MISSING(channel_norm_back, (Tensor *gx, Tensor *gw, Tensor *gb, const Tensor *gy, const Tensor *x, const Tensor *w, const Tensor *stats, const Norm *k))
MISSING(pool, (Tensor *y, Tensor *ids, const Tensor *x, const Pooling *p))
MISSING(pool_back, (Tensor *gx, const Tensor *gy, const Tensor *ids, const Pooling *p))
MISSING(resize, (Tensor *y, const Tensor *x, const Resize *r))
MISSING(matmul, (Tensor *c, const Tensor *a, const Tensor *b, const Epilogue *e))
MISSING(matmul_int, (Tensor *c, const Tensor *a, const Tensor *b))
MISSING(conv, (Tensor *y, const Tensor *x, const Tensor *w, const Epilogue *e, const ConvShape *s))
MISSING(conv_back_input, (Tensor *gx, const Tensor *gy, const Tensor *w, const Epilogue *e, const ConvShape *s))
MISSING(conv_back_weight, (Tensor *gw, const Tensor *gy, const Tensor *x, const ConvShape *s))
MISSING(check_ids, (const Tensor *ids, int64_t n, int64_t ignore, const char *op, int64_t *bad))
MISSING(index_select, (Tensor *y, const Tensor *x, const Tensor *ids, int64_t outer, int64_t n, int64_t inner))
MISSING(index_add, (Tensor *y, const Tensor *x, const Tensor *ids, int64_t outer, int64_t n, int64_t inner))
MISSING(gather, (Tensor *y, const Tensor *x, const Tensor *ids, int dim))
MISSING(scatter_add, (Tensor *y, const Tensor *ids, const Tensor *x, int dim))
MISSING(nonzero, (Tensor *y, const Tensor *x, int64_t *count))
MISSING(topk, (Tensor *y, Tensor *ids, const Tensor *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest))
MISSING(triangle, (Tensor *y, const Tensor *x, int64_t rows, int64_t cols, int64_t diagonal, bool upper))
