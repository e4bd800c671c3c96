/* fill.c - one value everywhere, and arithmetic progressions. */

#include "sweep.h"

#include "../core/vmath.h"

#ifdef CPU_ANY

/* Writes a run of the value into the buffer; reads nothing. */
static void fill_double (void *z_, const void *const *in, int64_t n, double a,
                         double b) {
  double *z = z_;
  (void)in, (void)b;
  LANES for (int64_t i = 0; i < n; i++) z[i] = a;
}

static void fill_float (void *z_, const void *const *in, int64_t n, double a,
                        double b) {
  float *z = z_, v = (float)a;
  (void)in, (void)b;
  LANES for (int64_t i = 0; i < n; i++) z[i] = v;
}

static void fill_int (void *z_, const void *const *in, int64_t n, double a,
                      double b) {
  int64_t *z = z_, v = integer_of(a);
  (void)in, (void)b;
  LANES for (int64_t i = 0; i < n; i++) z[i] = v;
}

static void fill_byte (void *z, const void *const *in, int64_t n, double a,
                       double b) {
  (void)in, (void)b;
  memset(z, (int)a, (size_t)n);
}

void CPU (fill)(Tensor *y, double value) {
  Sweep s;
  ONCE(sweep_open)(&s, 1, (const Tensor *[]){ y });
  s.a = value;
  if (y->dtype == FNN_BOOL || y->dtype == FNN_U8) {
    s.at[0].lane = y->dtype;
    s.a = y->dtype == FNN_BOOL ? value != 0 : (uint8_t)integer_of(value);
    s.loop = fill_byte;
  } else if (s.at[0].lane == FNN_I64) s.loop = fill_int;
  else s.loop = s.at[0].lane == FNN_F64 ? fill_double : fill_float;
  ONCE(sweep_run)(&s);
}

typedef struct Progression {
  Tensor *y;
  double start, step;
} Progression;

/* Each element from its place, so that errors do not add up. */
static void arange_range (void *ud, int64_t lo, int64_t hi) {
  enum { BLOCK = 256 };
  const Progression *p = ud;
  fnn_Dtype t = (fnn_Dtype)p->y->dtype;
  size_t size = fnn_dtype_size(t);
  char *to = tensor_data(p->y);
  for (int64_t i = lo; i < hi; i += BLOCK) {
    int64_t n = min64(BLOCK, hi - i);
    if (lane_of(t) == FNN_I64) {
      int64_t v[BLOCK], start = (int64_t)p->start, step = (int64_t)p->step;
      for (int64_t j = 0; j < n; j++)
        v[j] = (int64_t)((uint64_t)start + (uint64_t)(i + j) * (uint64_t)step);
      ONCE(run_store)(to + i * (int64_t)size, t, 1, v, FNN_I64, n);
    } else {
      double v[BLOCK];
      for (int64_t j = 0; j < n; j++)
        v[j] = p->start + (double)(i + j) * p->step;
      ONCE(run_store)(to + i * (int64_t)size, t, 1, v, FNN_F64, n);
    }
  }
}

void CPU (arange)(Tensor *y, double start, double step) {
  Progression p = { y, start, step };
  threads_range(y->numel, GRAIN, arange_range, &p);
}

#endif
