/* cross.c - cross products along the middle of (outer, 3, inner). */

#include "cpu.h"

typedef struct Job {
  real *z;
  const real *x, *y;
  int64_t inner;
} Job;

static void range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  int64_t n = k->inner;
  for (int64_t o = lo; o < hi; o++) {
    const real *x = k->x + 3 * o * n, *y = k->y + 3 * o * n;
    real *z = k->z + 3 * o * n;
    for (int64_t j = 0; j < n; j++) {
      real x0 = x[j], x1 = x[n + j], x2 = x[2 * n + j];
      real y0 = y[j], y1 = y[n + j], y2 = y[2 * n + j];
      z[j] = x1 * y2 - x2 * y1;
      z[n + j] = x2 * y0 - x0 * y2;
      z[2 * n + j] = x0 * y1 - x1 * y0;
    }
  }
}

void CPU (cross)(Tensor *z, const Tensor *x, const Tensor *y, int64_t outer,
                 int64_t inner) {
  Job k = { tensor_data(z), tensor_data(x), tensor_data(y), inner };
  threads_range(outer, grain_rows(3 * inner), range, &k);
}
