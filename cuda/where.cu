/* where.cu - a choice between two tensors, element by element. */

#include "sweep.h"

/* Elements move as they are, whatever they mean; T is that of the choices. */
template <class T> struct Choose {
  typedef T Lane;
  T a, b; /* unused */
  template <int V> __device__ T operator()(const T (&x)[3][V], int j) const {
    return x[0][j] != 0 ? x[1][j] : x[2][j];
  }
};

template <class T> static void choose (const Tensor *on, const Geometry *g) {
  enum { V = 16 / sizeof(T) };
  typedef Choose<T> F;
  if (geometry_runs(g, V)) sweep_launch<F, T, uint8_t, T, 3, V>(on, *g, 0, 0);
  else sweep_launch<F, T, uint8_t, T, 3, 1>(on, *g, 0, 0);
}

extern "C" void cuda_where (Tensor *y, const Tensor *c, const Tensor *a,
                            const Tensor *b) {
  Geometry g;
  size_t mark = fnn_mark();
  const Tensor *t[] = { y, sweep_operand(c, y), sweep_operand(a, y),
                        sweep_operand(b, y) };
  geometry_open(&g, 4, t);
  switch (g.size[0]) {
    case 1: choose<uint8_t>(y, &g); break;
    case 2: choose<uint16_t>(y, &g); break;
    case 4: choose<uint32_t>(y, &g); break;
    default: choose<uint64_t>(y, &g);
  }
  fnn_escape(mark, NULL);
}
