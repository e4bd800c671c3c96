/* zip.cu - the rows of zip.def.
**
** As in map.cu: a kernel a row and float dtype that takes vectors, and one
** that chooses the row as it runs for the rest.  Operands that repeat along
** some dims have strides of 0 there, which vectors know: rows, columns and
** single numbers beside a matrix are read in place.  A number from the host
** is an operand that is not read. */

#include "sweep.h"
#include "words.h"

#include "../src/core/ops.h"

/*
** {======================================================
** The formulas
** =======================================================
*/

/* z = f(x, y); its twin for integers; and the gradients of both. */
template <int OP> struct ZipRow;
template <int OP> struct ZipInteger;
template <int OP, int WHICH> struct ZipSlope;

#define REAL(name, f, k, gx, gy) \
  FORWARD(name, f) \
  BACKWARD(name, 0, gx) \
  BACKWARD(name, 1, gy)
#define SAME(name, f, k, gx, gy) \
  REAL(name, f, k, gx, gy) \
  INTEGER(name, k)
#define TEST(name, f, k, gx, gy) \
  FORWARD(name, f) \
  INTEGER(name, k)
#define INT(name, f, k, gx, gy) INTEGER(name, k)

#define FORWARD(name, f) \
  template <> struct ZipRow<ZIP_##name> { \
    template <class real> static __device__ inline real of (real x, real y) { \
      return (real)(f); \
    } \
  };

#define INTEGER(name, k) \
  template <> struct ZipInteger<ZIP_##name> { \
    static __device__ inline int64_t of (int64_t x, int64_t y) { \
      return (int64_t)(k); \
    } \
  };

#define BACKWARD(name, which, gradient) \
  template <> struct ZipSlope<ZIP_##name, which> { \
    template <class real> \
    static __device__ inline real of (real g, real x, real y) { \
      (void)x, (void)y; \
      return (real)(gradient); \
    } \
  };

#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name, f, k, gx, gy)
#include "../src/core/zip.def"
#undef ZIP
#undef REAL
#undef SAME
#undef TEST
#undef INT

/* }====================================================== */

/*
** {======================================================
** A kernel a row
** =======================================================
*/

template <class real, int OP> struct ZipForward {
  typedef real Lane;
  real a, b; /* a: the number, if there is one */
  template <int V>
  __device__ real operator()(const real (&x)[2][V], int j) const {
    return ZipRow<OP>::of(x[0][j], x[1][j]);
  }
};

template <class real, int OP, int WHICH> struct ZipBackward {
  typedef real Lane;
  real a, b; /* unused */
  template <int V>
  __device__ real operator()(const real (&x)[3][V], int j) const {
    return ZipSlope<OP, WHICH>::of(x[0][j], x[1][j], x[2][j]);
  }
};

template <class Z, class T, int OP>
static void forward (const Tensor *on, const Geometry *g, double number) {
  typedef Real<T> real;
  sweep_launch<ZipForward<real, OP>, Z, T, T, 2, 16 / sizeof(T)>(
      on, *g, (real)number, 0);
}

template <class T, int OP, int WHICH>
static void backward (const Tensor *on, const Geometry *g) {
  sweep_launch<ZipBackward<Real<T>, OP, WHICH>, T, T, T, 3, 16 / sizeof(T)>(
      on, *g, 0, 0);
}

#define ZIP(name, kind, ...) kind(name)

#define REAL(name) \
  case ZIP_##name: \
    forward<T, T, ZIP_##name>(on, g, number); \
    break;
#define SAME(name) REAL(name)
#define TEST(name) \
  case ZIP_##name: \
    forward<uint8_t, T, ZIP_##name>(on, g, number); \
    break;
#define INT(name)

template <class T>
static void forward_row (int op, const Tensor *on, const Geometry *g,
                         double number) {
  switch (op) {
#include "../src/core/zip.def"
  }
}

#undef REAL
#undef TEST
#define REAL(name) \
  case ZIP_##name: \
    if (which == 0) backward<T, ZIP_##name, 0>(on, g); \
    else backward<T, ZIP_##name, 1>(on, g); \
    break;
#define TEST(name)

template <class T>
static void backward_row (int op, int which, const Tensor *on,
                          const Geometry *g) {
  switch (op) {
#include "../src/core/zip.def"
  }
}

/* }====================================================== */

/*
** {======================================================
** One kernel for all rows
** =======================================================
*/

#undef REAL
#undef TEST
#define REAL(name) \
  case ZIP_##name: \
    return ZipRow<ZIP_##name>::of(x, y);
#define TEST(name) REAL(name)

template <class real>
static __device__ inline real any_row (int op, real x, real y) {
  switch (op) {
#include "../src/core/zip.def"
  }
  return x;
}

#undef REAL
#undef TEST
#define REAL(name) \
  case ZIP_##name: \
    return which == 0 ? ZipSlope<ZIP_##name, 0>::of(g, x, y) \
                      : ZipSlope<ZIP_##name, 1>::of(g, x, y);
#define TEST(name)

template <class real>
static __device__ inline real any_slope (int op, int which, real g, real x,
                                         real y) {
  switch (op) {
#include "../src/core/zip.def"
  }
  return g;
}

#undef REAL
#undef SAME
#undef TEST
#undef INT
#define REAL(name)
#define SAME(name) \
  case ZIP_##name: \
    for (int j = 0; j < V; j++) \
      x[j] = ZipInteger<ZIP_##name>::of(x[j], y[j]); \
    break;
#define TEST(name) SAME(name)
#define INT(name) SAME(name)

/* x[j] = f(x[j], y[j]) */
template <int V>
static __device__ inline void any_integers (int op, int64_t *x,
                                            const int64_t *y) {
  switch (op) {
#include "../src/core/zip.def"
  }
}

#undef REAL
#undef SAME
#undef TEST
#undef INT
#undef ZIP

/* Operand k of a group, of dtype t, or the number in its place. */
template <int V, class L, int K>
static __device__ inline void operand (L *v, const Sweep<K> &s, int k,
                                       fnn_Dtype t, const int32_t *at,
                                       uint32_t left, L number) {
  for (int j = 0; j < V; j++) v[j] = number;
  if (s.data[k] != NULL)
    group_load_any<V>(v, s.data[k], t, at[k], s.stride[k][0], left);
}

template <class real>
static __global__ void zip_strided (int op, Sweep<3> s, fnn_Dtype to,
                                    fnn_Dtype from, real number) {
  EACH_GROUP(i, s) {
    int32_t at[3];
    real x[1], y[1];
    sweep_find(s, i, 1, at);
    operand<1>(x, s, 1, from, at, 1, number);
    operand<1>(y, s, 2, from, at, 1, number);
    x[0] = any_row(op, x[0], y[0]);
    group_store_any<1>(s.data[0], to, at[0], x, 1);
  }
}

template <int V>
static __global__ void zip_integers (int op, Sweep<3> s, fnn_Dtype to,
                                     fnn_Dtype from, int64_t number) {
  EACH_GROUP(i, s) {
    int32_t at[3];
    int64_t x[V], y[V];
    uint32_t left = sweep_find(s, i, V, at);
    operand<V>(x, s, 1, from, at, left, number);
    operand<V>(y, s, 2, from, at, left, number);
    any_integers<V>(op, x, y);
    group_store_any<V>(s.data[0], to, at[0], x, left);
  }
}

/* t: of all four. */
template <class real>
static __global__ void zip_back_strided (int op, int which, Sweep<4> s,
                                         fnn_Dtype t) {
  EACH_GROUP(i, s) {
    int32_t at[4];
    real g[1], x[1], y[1], none = 0;
    sweep_find(s, i, 1, at);
    operand<1>(g, s, 1, t, at, 1, none);
    operand<1>(x, s, 2, t, at, 1, none);
    operand<1>(y, s, 3, t, at, 1, none);
    g[0] = any_slope(op, which, g[0], x[0], y[0]);
    group_store_any<1>(s.data[0], t, at[0], g, 1);
  }
}

/* }====================================================== */

enum { INTEGERS = 4 }; /* a group of them */

static void zip_any_integers (int op, const Tensor *z, Geometry g,
                              fnn_Dtype from, int64_t number) {
  Geometry rest;
  while (geometry_halve(&g, &rest))
    zip_any_integers(op, z, rest, from, number);
  Sweep<3> s;
  bool runs = geometry_runs(&g, INTEGERS);
  sweep_of(&s, &g, runs ? INTEGERS : 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  fnn_Dtype to = (fnn_Dtype)z->dtype;
  if (runs)
    RUN(z, (zip_integers<INTEGERS>), blocks, SWEEP_THREADS, 0, op, s, to, from,
        number);
  else
    RUN(z, (zip_integers<1>), blocks, SWEEP_THREADS, 0, op, s, to, from,
        number);
}

template <class real>
static void zip_any_strides (int op, const Tensor *z, Geometry g,
                             fnn_Dtype from, real number) {
  Geometry rest;
  while (geometry_halve(&g, &rest))
    zip_any_strides<real>(op, z, rest, from, number);
  Sweep<3> s;
  sweep_of(&s, &g, 1);
  if (s.groups > 0)
    RUN(z, (zip_strided<real>), blocks_for(s.groups, SWEEP_THREADS),
        SWEEP_THREADS, 0, op, s, (fnn_Dtype)z->dtype, from, number);
}

/* x or y is NULL for the number. */
static void zip (int op, Tensor *z, const Tensor *x, const Tensor *y,
                 double number) {
  Geometry g;
  size_t mark = fnn_mark();
  const Tensor *t[] = { z, sweep_operand(x, z), sweep_operand(y, z) };
  const Tensor *one = x != NULL ? x : y;
  fnn_Dtype from = (fnn_Dtype)one->dtype;
  geometry_open(&g, 3, t);
  if (!tensor_is_float(one))
    zip_any_integers(op, z, g, from, integer_of(number));
  else if (geometry_runs(&g, 16 / (int)fnn_dtype_size(from)))
    WITH_FLOAT(from, forward_row<T>(op, z, &g, number))
  else if (from == FNN_F64) zip_any_strides<double>(op, z, g, from, number);
  else zip_any_strides<float>(op, z, g, from, (float)number);
  fnn_escape(mark, NULL);
}

extern "C" void cuda_zip (int op, Tensor *z, const Tensor *x,
                          const Tensor *y) {
  zip(op, z, x, y, 0);
}

extern "C" void cuda_zip_number (int op, Tensor *z, const Tensor *x, double v,
                                 bool left) {
  if (left) zip(op, z, NULL, x, v);
  else zip(op, z, x, NULL, v);
}

static void back_any_strides (int op, int which, const Tensor *gx,
                              Geometry g) {
  Geometry rest;
  while (geometry_halve(&g, &rest)) back_any_strides(op, which, gx, rest);
  Sweep<4> s;
  sweep_of(&s, &g, 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  fnn_Dtype t = (fnn_Dtype)gx->dtype;
  if (t == FNN_F64)
    RUN(gx, (zip_back_strided<double>), blocks, SWEEP_THREADS, 0, op, which, s,
        t);
  else
    RUN(gx, (zip_back_strided<float>), blocks, SWEEP_THREADS, 0, op, which, s,
        t);
}

extern "C" void cuda_zip_back (int op, int which, Tensor *gx, const Tensor *gz,
                               const Tensor *x, const Tensor *y) {
  Geometry g;
  size_t mark = fnn_mark();
  const Tensor *t[] = { gx, sweep_operand(gz, gx), sweep_operand(x, gx),
                        sweep_operand(y, gx) };
  geometry_open(&g, 4, t);
  if (!geometry_runs(&g, 16 / g.size[0])) back_any_strides(op, which, gx, g);
  else WITH_FLOAT(gx->dtype, backward_row<T>(op, which, gx, &g))
  fnn_escape(mark, NULL);
}
