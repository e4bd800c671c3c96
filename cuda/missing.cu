/* missing.cu - kernels that are not written yet: delete a line here when its
** kernel has a file. */

#include "cuda.h"

#define MISSING(name, args) \
  extern "C" void cuda_##name args { \
    fnn_throw(FNN_EDEVICE, "%s: not on cuda yet", #name); \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

MISSING(optimize, (Formula row, Tensor *p, const Tensor *g, Tensor *const *s, const Update *u))
MISSING(adafactor, (Tensor *p, const Tensor *g, Tensor *const *s, const Update *u, double small, double most))
MISSING(square_sum, (const Tensor *x, double *sum))
