/* where.c - a choice between two tensors, element by element. */

#include "sweep.h"

#ifdef CPU_ANY

#define LOOP(name, T) \
  static void name(void *z_, const void *const *in, int64_t n, double a, \
                   double b) { \
    T *z = z_; \
    const uint8_t *c = in[0]; \
    const T *x = in[1], *y = in[2]; \
    (void)a, (void)b; \
    LANES for (int64_t i = 0; i < n; i++) z[i] = c[i] ? x[i] : y[i]; \
  }

LOOP(where_8, uint8_t)
LOOP(where_16, uint16_t)
LOOP(where_32, uint32_t)
LOOP(where_64, uint64_t)

/* Elements move as they are, whatever they mean. */
void CPU (where)(Tensor *y, const Tensor *c, const Tensor *a,
                 const Tensor *b) {
  Sweep s;
  ONCE(sweep_open)(&s, 4, (const Tensor *[]){ y, c, a, b });
  for (int j = 0; j < 4; j++) s.at[j].lane = s.at[j].dtype;
  switch (fnn_dtype_size((fnn_Dtype)y->dtype)) {
    case 1: s.loop = where_8; break;
    case 2: s.loop = where_16; break;
    case 4: s.loop = where_32; break;
    default: s.loop = where_64;
  }
  ONCE(sweep_run)(&s);
}

#endif
