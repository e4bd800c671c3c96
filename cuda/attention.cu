/* attention.cu - softmax(scale q k') v. */

#include "cuda.h"

extern "C" void cuda_attention (Tensor *, Tensor *, const Tensor *,
                                const Tensor *, const Tensor *,
                                const Attention *) {
  fnn_throw(FNN_EDEVICE, "scaled_dot_product_attention: not on this device");
}

extern "C" void cuda_attention_back (Tensor *, Tensor *, Tensor *,
                                     const Tensor *, const Tensor *,
                                     const Tensor *, const Tensor *,
                                     const Tensor *, const Tensor *,
                                     const Attention *) {
  fnn_throw(FNN_EDEVICE, "scaled_dot_product_attention: not on this device");
}
