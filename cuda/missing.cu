/* missing.cu - kernels that are not written yet: delete a line here when its
** kernel has a file. */

#include "cuda.h"

#define MISSING(name, args) \
  extern "C" void cuda_##name args { \
    fnn_throw(FNN_EDEVICE, "%s: not on cuda yet", #name); \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

MISSING(topk, (Tensor *y, Tensor *ids, const Tensor *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest))
