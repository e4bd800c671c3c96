/* attention_run.h - which kernel makes a result. */

#ifndef cuda_attention_run_h
#define cuda_attention_run_h

#include <limits.h>

#include "attention_plain.h"
#include "attention_tensor.h"

/* Blocks of so many own rows. */
static inline unsigned attention_grid (const Tensor *q, Work *t, int make,
                                       int rows) {
  t->tiles = (t->rows + rows - 1) / rows;
  int64_t units = t->heads / (owns_keys(make) ? t->each : t->together);
  int64_t blocks = q->shape[0] * units * t->tiles * t->splits;
  if (blocks > INT_MAX)
    fnn_throw(FNN_ESHAPE, "scaled_dot_product_attention: too many rows");
  return (unsigned)blocks;
}

/*
** {======================================================
** On tensor cores
** =======================================================
*/

template <class T> struct IsTensor {
  enum { yes = 0, since = 0 };
};
template <> struct IsTensor<half> {
  enum { yes = 1, since = 7 };
};
template <> struct IsTensor<nv_bfloat16> {
  enum { yes = 1, since = 8 };
};

template <class H, int D, int MAKE>
static bool tensor_launch (const Tensor *q, Work t, int shared_most) {
  enum { BYTES = Tiles<D, MAKE>::BYTES };
  if (BYTES > shared_most) return false;
  unsigned grid = attention_grid(q, &t, MAKE, TENSOR_ROWS);
  cuda_check(cudaFuncSetAttribute(attention_tensor<H, D, MAKE>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  BYTES),
             "attention");
  RUN(q, (attention_tensor<H, D, MAKE>), grid, TENSOR_THREADS, BYTES, t);
  return true;
}

/* False where the card or the kernel cannot. */
template <class H, int MAKE>
static bool tensor_run (const Tensor *q, const Work &t) {
  int width = t.x[0].width, id = cuda_of(q)->id, most, major;
  for (int i = 0; i < 2; i++)
    if (t.y[i].width > width) width = t.y[i].width;
  cuda_check(cudaDeviceGetAttribute(
                 &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, id),
             "attention");
  cuda_check(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id),
      "attention");
  if (major < IsTensor<H>::since) return false;
  if constexpr (MAKE == FORWARD) {
    if (width > 32 && width <= 48)
      return tensor_launch<H, 48, MAKE>(q, t, most);
    if (width > 64 && width <= 96)
      return tensor_launch<H, 96, MAKE>(q, t, most);
  }
  if (width <= 32) return tensor_launch<H, 32, MAKE>(q, t, most);
  if (width <= 64) return tensor_launch<H, 64, MAKE>(q, t, most);
  if (width <= 128) return tensor_launch<H, 128, MAKE>(q, t, most);
  if (width <= 256) return tensor_launch<H, 256, MAKE>(q, t, most);
  return false;
}

/* }====================================================== */

template <class T, int WIDE, int MAKE>
static void plain_launch (const Tensor *q, Work t) {
  unsigned grid = attention_grid(q, &t, MAKE, Plain<Real<T>>::ROWS);
  unsigned across = (unsigned)((t.to.width + SPAN * WIDE - 1) / (SPAN * WIDE));
  RUN(q, (attention_plain<T, WIDE, MAKE>), dim3(grid, across), PLAIN_THREADS,
      0, t);
}

template <class T, int MAKE>
static void attention_make (const Tensor *q, const Work &t) {
  enum { MOST = sizeof(T) > 4 ? 2 : 4 };
  if constexpr (IsTensor<T>::yes) {
    if (!tensor_run<T, MAKE>(q, t)) plain_launch<T, 2, MAKE>(q, t);
  } else if (t.to.width <= SPAN) plain_launch<T, 1, MAKE>(q, t);
  else if (t.to.width <= 2 * SPAN) plain_launch<T, 2, MAKE>(q, t);
  else plain_launch<T, MOST, MAKE>(q, t);
}

#endif
