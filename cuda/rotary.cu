/* rotary.cu - pairs of numbers turned by their place. */

#include "cuda.h"

enum { THREADS = 256 };

/* Sizes of x and y (batch, heads, length, size), whose last stride is 1, and
** the strides of the places (batch, length). */
typedef struct Turn {
  int64_t heads, length, size, pairs, first;
  int64_t count; /* of rows of the tables */
  int64_t x[3], y[3], places[2];
  bool interleaved, back;
} Turn;

/* Two numbers a thread: a pair, or two of those that pass; neighbours within
** a head, then heads of one place, which share the tables. */
template <class T>
static __global__ void
rotary_kernel (T *y, const T *x, const Real<T> *cos_, const Real<T> *sin_,
               const int64_t *places, int64_t n, Turn k) {
  typedef Real<T> real;
  int64_t each = (k.size + 1) / 2;
  int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < n; at += (int64_t)gridDim.x * blockDim.x) {
    int64_t i = at % each, row = at / each, h = row % k.heads;
    int64_t s = row / k.heads % k.length, b = row / k.heads / k.length;
    const T *from = x + b * k.x[0] + h * k.x[1] + s * k.x[2];
    T *to = y + b * k.y[0] + h * k.y[1] + s * k.y[2];
    if (i >= k.pairs) {
      to[2 * i] = from[2 * i];
      if (2 * i + 1 < k.size) to[2 * i + 1] = from[2 * i + 1];
      continue;
    }
    int64_t p = places == NULL ? k.first + s
                               : places[b * k.places[0] + s * k.places[1]];
    if (p < 0 || p >= k.count) p = 0; /* check_ids tells */
    int64_t l = k.interleaved ? 2 * i : i;
    int64_t r = k.interleaved ? l + 1 : i + k.pairs;
    real u = number<real>(from[l]), v = number<real>(from[r]);
    real c = cos_[p * k.pairs + i], t = sin_[p * k.pairs + i];
    if (k.back) t = -t;
    to[l] = number<T>(u * c - v * t);
    to[r] = number<T>(v * c + u * t);
  }
}

extern "C" void cuda_rotary (Tensor *y, const Tensor *x, const Tensor *cos_,
                             const Tensor *sin_, const Tensor *places,
                             int64_t first, bool interleaved, bool back) {
  Turn k;
  memset(&k, 0, sizeof k);
  k.heads = x->shape[1];
  k.length = x->shape[2];
  k.size = x->shape[3];
  k.pairs = cos_->shape[1];
  k.first = first;
  k.count = cos_->shape[0];
  for (int d = 0; d < 3; d++) {
    k.x[d] = x->stride[d];
    k.y[d] = y->stride[d];
  }
  for (int d = 0; d < 2 && places != NULL; d++)
    k.places[d] = places->stride[d];
  k.interleaved = interleaved;
  k.back = back;
  int64_t n = x->numel / k.size * ((k.size + 1) / 2);
  WITH_FLOAT(x->dtype,
             RUN(y, (rotary_kernel<T>), blocks_for(n, THREADS), THREADS, 0,
                 data_of<T>(y), data_of<T>(x), data_of<Real<T>>(cos_),
                 data_of<Real<T>>(sin_), data_of<int64_t>(places), n, k))
}
