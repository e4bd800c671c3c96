/* cross.cu - cross products along the middle of (outer, 3, inner). */

#include "cuda.h"

enum { THREADS = 256 };

/* A vector a thread; inner ones lie side by side. */
template <class T>
static __global__ void cross_kernel (T *z, const T *x, const T *y, int64_t n,
                                     int64_t inner) {
  typedef Real<T> real;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t o = inner == 1 ? 3 * i : i / inner * 3 * inner + i % inner;
    real u[3], v[3];
    for (int k = 0; k < 3; k++) {
      u[k] = number<real>(x[o + k * inner]);
      v[k] = number<real>(y[o + k * inner]);
    }
    z[o] = number<T>(u[1] * v[2] - u[2] * v[1]);
    z[o + inner] = number<T>(u[2] * v[0] - u[0] * v[2]);
    z[o + 2 * inner] = number<T>(u[0] * v[1] - u[1] * v[0]);
  }
}

extern "C" void cuda_cross (Tensor *z, const Tensor *x, const Tensor *y,
                            int64_t outer, int64_t inner) {
  int64_t n = outer * inner;
  if (n == 0) return;
  WITH_FLOAT(z->dtype,
             RUN(z, (cross_kernel<T>), blocks_for(n, THREADS), THREADS, 0,
                 data_of<T>(z), data_of<T>(x), data_of<T>(y), n, inner))
}
