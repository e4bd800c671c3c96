/* rotary.c - pairs of numbers turned by their place. */

#include "cpu.h"

typedef struct Job {
  const Tensor *y, *x, *places;
  const real *cos, *sin;
  int64_t pairs, first;
  bool interleaved, back;
} Job;

/* y = x turned: pair i is (i, i + n), or (2i, 2i + 1). */
static void turn (real *restrict y, const real *restrict x,
                  const real *restrict c, const real *restrict s, int64_t n,
                  bool interleaved, real sign) {
  if (interleaved)
    for (int64_t i = 0; i < n; i++) {
      real a = x[2 * i], b = x[2 * i + 1], t = sign * s[i];
      y[2 * i] = a * c[i] - b * t;
      y[2 * i + 1] = b * c[i] + a * t;
    }
  else
    for (int64_t i = 0; i < n; i++) {
      real a = x[i], b = x[n + i], t = sign * s[i];
      y[i] = a * c[i] - b * t;
      y[n + i] = b * c[i] + a * t;
    }
}

/* Places lo .. hi-1 of all images, with all their heads. */
static void range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  const Tensor *x = k->x, *y = k->y;
  int64_t heads = x->shape[1], length = x->shape[2], size = x->shape[3];
  int64_t n = k->pairs;
  for (int64_t p = lo; p < hi; p++) {
    int64_t b = p / length, s = p % length, at = k->first + s;
    if (k->places != NULL)
      at = ((const int64_t *)tensor_data(
          k->places))[b * k->places->stride[0] + s * k->places->stride[1]];
    for (int64_t h = 0; h < heads; h++) {
      const real *from = (const real *)tensor_data(x) + b * x->stride[0] +
                         h * x->stride[1] + s * x->stride[2];
      real *to = (real *)tensor_data(y) + b * y->stride[0] + h * y->stride[1] +
                 s * y->stride[2];
      turn(to, from, k->cos + at * n, k->sin + at * n, n, k->interleaved,
           k->back ? -1 : 1);
      memcpy(to + 2 * n, from + 2 * n, (size_t)(size - 2 * n) * sizeof *to);
    }
  }
}

void CPU (rotary)(Tensor *y, const Tensor *x, const Tensor *cos,
                  const Tensor *sin, const Tensor *places, int64_t first,
                  bool interleaved, bool back) {
  Job k = { y,
            x,
            places,
            tensor_data(cos),
            tensor_data(sin),
            cos->shape[1],
            first,
            interleaved,
            back };
  threads_range(x->shape[0] * x->shape[2],
                grain_rows(x->shape[1] * x->shape[3]), range, &k);
}
