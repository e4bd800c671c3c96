/* missing.cu - kernels that are not written yet: delete a line here when its
** kernel has a file. */

#include "cuda.h"

#define MISSING(name, args) \
  extern "C" void cuda_##name args { \
    fnn_throw(FNN_EDEVICE, "%s: not on cuda yet", #name); \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

MISSING(uniform, (Tensor *y, Draw d, double a, double b))
MISSING(normal, (Tensor *y, Draw d, double mean, double std))
MISSING(randint, (Tensor *y, Draw d, int64_t lo, int64_t hi))
MISSING(dropout, (Tensor *y, const Tensor *x, double p, Draw d))
MISSING(map, (int op, Tensor *y, const Tensor *x, double a, double b))
MISSING(map_back, (int op, Tensor *gx, const Tensor *gy, const Tensor *s, double a, double b))
MISSING(zip, (int op, Tensor *z, const Tensor *x, const Tensor *y))
MISSING(zip_back, (int op, int which, Tensor *gx, const Tensor *gz, const Tensor *x, const Tensor *y))
MISSING(zip_number, (int op, Tensor *z, const Tensor *x, double v, bool left))
MISSING(where, (Tensor *y, const Tensor *c, const Tensor *a, const Tensor *b))
MISSING(reduce, (int op, Tensor *y, const Tensor *x, int64_t outer, int64_t n, int64_t inner, double a))
MISSING(reduce_back, (int op, Tensor *gx, const Tensor *gy, const Tensor *x, const Tensor *y, int64_t outer, int64_t n, int64_t inner, double a))
MISSING(cumsum, (Tensor *y, const Tensor *x, int64_t outer, int64_t n, int64_t inner, bool reverse))
MISSING(cross, (Tensor *z, const Tensor *x, const Tensor *y, int64_t outer, int64_t inner))
MISSING(softmax, (Tensor *y, const Tensor *x, int64_t outer, int64_t n, int64_t inner, bool log))
MISSING(softmax_back, (Tensor *gx, const Tensor *gy, const Tensor *y, int64_t outer, int64_t n, int64_t inner, bool log))
MISSING(layer_norm, (Tensor *y, Tensor *stats, const Tensor *x, const Tensor *w, const Tensor *b, int64_t rows, int64_t n, double eps, bool centred))
MISSING(layer_norm_back, (Tensor *gx, Tensor *gw, Tensor *gb, const Tensor *gy, const Tensor *x, const Tensor *w, const Tensor *stats, int64_t rows, int64_t n, bool centred))
MISSING(channel_norm, (Tensor *y, Tensor *stats, Tensor *mean, Tensor *var, const Tensor *x, const Tensor *w, const Tensor *b, const Norm *k))
MISSING(channel_norm_back, (Tensor *gx, Tensor *gw, Tensor *gb, const Tensor *gy, const Tensor *x, const Tensor *w, const Tensor *stats, const Norm *k))
MISSING(pool, (Tensor *y, Tensor *ids, const Tensor *x, const Pooling *p))
MISSING(pool_back, (Tensor *gx, const Tensor *gy, const Tensor *ids, const Pooling *p))
MISSING(resize, (Tensor *y, const Tensor *x, const Resize *r))
MISSING(conv, (Tensor *y, const Tensor *x, const Tensor *w, const Epilogue *e, const ConvShape *s))
MISSING(conv_back_input, (Tensor *gx, const Tensor *gy, const Tensor *w, const Epilogue *e, const ConvShape *s))
MISSING(conv_back_weight, (Tensor *gw, const Tensor *gy, const Tensor *x, const ConvShape *s))
MISSING(cross_entropy, (Tensor *y, Tensor *lse, const Tensor *x, const Tensor *ids, const Tensor *w, int64_t rows, int64_t n, int64_t ignore, double smooth))
MISSING(cross_entropy_back, (Tensor *gx, const Tensor *gy, const Tensor *lse, const Tensor *x, const Tensor *ids, const Tensor *w, int64_t rows, int64_t n, int64_t ignore, double smooth, double scale))
MISSING(loss, (int op, Tensor *y, const Tensor *const *in, double a, double b, double scale))
MISSING(loss_back, (int op, int which, Tensor *gx, const Tensor *gy, const Tensor *const *in, double a, double b, double scale))
MISSING(ctc, (Tensor *y, Tensor *alpha, Tensor *loss, const Tensor *x, const Tensor *labels, const Tensor *spans, int64_t blank, bool zero_infinity))
MISSING(ctc_back, (Tensor *gx, const Tensor *gy, const Tensor *alpha, const Tensor *loss, const Tensor *x, const Tensor *labels, const Tensor *spans, int64_t blank, bool zero_infinity))
MISSING(optimize, (Formula row, Tensor *p, const Tensor *g, Tensor *const *s, const Update *u))
MISSING(adafactor, (Tensor *p, const Tensor *g, Tensor *const *s, const Update *u, double small, double most))
MISSING(square_sum, (const Tensor *x, double *sum))
