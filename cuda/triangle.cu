/* triangle.cu - what matrices have on one side of a diagonal. */

#include "cuda.h"

enum {
  THREADS = 256,
  STEP_Y = 65535 /* the most blocks in the grid's second direction */
};

/* A row a block in y; blocks in x share the row. */
template <class T>
static __global__ void triangle_kernel (T *y, const T *x, int64_t all,
                                        int64_t rows, int64_t cols,
                                        int64_t diagonal, bool upper) {
  for (int64_t r = blockIdx.y; r < all; r += gridDim.y) {
    int64_t edge = r % rows + diagonal;
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; j < cols; j += (int64_t)gridDim.x * blockDim.x) {
      bool keep = upper ? j >= edge : j <= edge;
      y[r * cols + j] = keep ? x[r * cols + j] : T(0);
    }
  }
}

template <class T>
static void run (Tensor *y, const Tensor *x, int64_t rows, int64_t cols,
                 int64_t diagonal, bool upper) {
  int64_t all = y->numel / cols;
  dim3 grid(blocks_for(cols, THREADS), (unsigned)min64(all, STEP_Y));
  int threads = cols < 128 ? 32 * (int)((cols + 31) / 32) : THREADS;
  RUN(y, (triangle_kernel<T>), grid, threads, 0, data_of<T>(y), data_of<T>(x),
      all, rows, cols, diagonal, upper);
}

/* Elements move as they are, whatever they mean: 0 is all bits 0. */
extern "C" void cuda_triangle (Tensor *y, const Tensor *x, int64_t rows,
                               int64_t cols, int64_t diagonal, bool upper) {
  if (y->numel == 0) return;
  switch (fnn_dtype_size((fnn_Dtype)y->dtype)) {
    case 1: run<uint8_t>(y, x, rows, cols, diagonal, upper); break;
    case 2: run<uint16_t>(y, x, rows, cols, diagonal, upper); break;
    case 4: run<uint32_t>(y, x, rows, cols, diagonal, upper); break;
    default: run<uint64_t>(y, x, rows, cols, diagonal, upper);
  }
}
