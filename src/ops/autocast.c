/* autocast.c - mixed precision: products in 16 bits, the rest as it is.
**
** Where a script asks for it, products (matmul, linear, convolution) read their
** f32 operands rounded to f16 or bf16, add up in f32 and give that dtype, or on
** the CPU, which only stores it, f32.  What needs the range of f32 (sums,
** norms, losses, exponentials ...: the ops of PyTorch's list for cards) takes
** 16-bit operands as f32.  All other ops keep what they get.
**
** Weights stay as they are: the rounded one is derived from the Param while its
** version stays.  No op is recorded for the rounding; a product gives its
** gradients in its inputs' own dtype, from sums in f32 that are not rounded in
** between.  f64 is never rounded. */

#include "ops.h"

fnn_Dtype fnn_autocast (fnn_Dtype t) {
  fnn_Context *c = context();
  fnn_Dtype was = (fnn_Dtype)c->autocast;
  if (t != FNN_F32 && t != FNN_F16 && t != FNN_BF16)
    fnn_throw(FNN_EDTYPE, "autocast: expected f16, bf16 or f32, got %s",
              fnn_dtype_name(t));
  c->autocast = (uint8_t)t;
  return was;
}

bool autocast_is_on (fnn_Dtype t) {
  return context()->autocast != FNN_F32 && dtype_is_float(t) && t != FNN_F64;
}

Tensor *autocast_data (Tensor *x) {
  static const char keys[FNN_F64 + 1]; /* an address a dtype */
  fnn_Dtype t = (fnn_Dtype)context()->autocast;
  Param *p = param_of(x);
  if (x->dtype == t) return x;
  Tensor *y = p != NULL ? param_derived(p, &keys[t]) : NULL;
  if (y != NULL) return y;
  y = tensor_convert(x, t);
  if (p != NULL) param_derive(p, &keys[t], y);
  return y;
}

Tensor *autocast_wide (Tensor *x) {
  bool narrow = x->dtype == FNN_F16 || x->dtype == FNN_BF16;
  return narrow && context()->autocast != FNN_F32 ? fnn_cast(x, FNN_F32) : x;
}

fnn_Dtype autocast_gradient (const Node *n, int i, const Tensor *gy) {
  fnn_Dtype t = (fnn_Dtype)gy->dtype;
  return graph_dtype(n, i) == FNN_F32 ? dtype_wide(t) : t;
}
