/* map.cu - the rows of map.def.
**
** Rows have a kernel for each float dtype that takes vectors.  Integers, and
** floats whose strides allow none, go through one kernel that chooses the row
** as it runs. */

#include "sweep.h"
#include "words.h"

#include "../src/core/ops.h"

/*
** {======================================================
** The formulas
** =======================================================
*/

/* y = f(x); its twin for integers; and its gradient, s being what is saved. */
template <int OP> struct MapRow;
template <int OP> struct MapInteger;
template <int OP> struct MapSlope;

#define REAL(name, f, k, saves, gx) \
  FORWARD(name, f) \
  BACKWARD(name, SAVES_##saves, gx)
#define SAME(name, f, k, saves, gx) \
  REAL(name, f, k, saves, gx) \
  INTEGER(name, k)
#define TEST(name, f, k, saves, gx) \
  FORWARD(name, f) \
  INTEGER(name, k)
#define INT(name, f, k, saves, gx) INTEGER(name, k)

#define FORWARD(name, f) \
  template <> struct MapRow<MAP_##name> { \
    template <class real> \
    static __device__ inline real of (real x, real a, real b) { \
      (void)a, (void)b; \
      return (real)(f); \
    } \
  };

#define INTEGER(name, k) \
  template <> struct MapInteger<MAP_##name> { \
    static __device__ inline int64_t of (int64_t x, double a, double b) { \
      (void)x, (void)a, (void)b; \
      return (int64_t)(k); \
    } \
  };

#define SAVES_X const real x = s;
#define SAVES_Y const real y = s;
#define SAVES_NONE

#define BACKWARD(name, saved, gx) \
  template <> struct MapSlope<MAP_##name> { \
    template <class real> \
    static __device__ inline real of (real g, real s, real a, real b) { \
      (void)s, (void)a, (void)b; \
      saved return (real)(gx); \
    } \
  };

#define MAP(name, parameters, kind, f, k, saves, gx) \
  kind(name, f, k, saves, gx)
#include "../src/core/map.def"
#undef MAP
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

template <class real, int OP> struct MapForward {
  typedef real Lane;
  real a, b;
  template <int V>
  __device__ real operator()(const real (&x)[1][V], int j) const {
    return MapRow<OP>::of(x[0][j], a, b);
  }
};

template <class real, int OP> struct MapBackward {
  typedef real Lane;
  real a, b;
  template <int V>
  __device__ real operator()(const real (&x)[2][V], int j) const {
    return MapSlope<OP>::of(x[0][j], x[1][j], a, b);
  }
};

template <class Z, class T, int OP>
static void forward (const Tensor *on, const Geometry *g, double a, double b) {
  sweep_launch<MapForward<Real<T>, OP>, Z, T, T, 1, 16 / sizeof(T)>(
      on, *g, (Real<T>)a, (Real<T>)b);
}

template <class T, int OP>
static void backward (const Tensor *on, const Geometry *g, double a,
                      double b) {
  sweep_launch<MapBackward<Real<T>, OP>, T, T, T, 2, 16 / sizeof(T)>(
      on, *g, (Real<T>)a, (Real<T>)b);
}

#define MAP(name, parameters, kind, ...) kind(name)

#define REAL(name) \
  case MAP_##name: \
    forward<T, T, MAP_##name>(on, g, a, b); \
    break;
#define SAME(name) REAL(name)
#define TEST(name) \
  case MAP_##name: \
    forward<uint8_t, T, MAP_##name>(on, g, a, b); \
    break;
#define INT(name)

template <class T>
static void forward_row (int op, const Tensor *on, const Geometry *g, double a,
                         double b) {
  switch (op) {
#include "../src/core/map.def"
  }
}

#undef REAL
#undef TEST
#define REAL(name) \
  case MAP_##name: \
    backward<T, MAP_##name>(on, g, a, b); \
    break;
#define TEST(name)

template <class T>
static void backward_row (int op, const Tensor *on, const Geometry *g,
                          double a, double b) {
  switch (op) {
#include "../src/core/map.def"
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
  case MAP_##name: \
    return MapRow<MAP_##name>::of(x, a, b);
#define TEST(name) REAL(name)

template <class real>
static __device__ inline real any_row (int op, real x, real a, real b) {
  switch (op) {
#include "../src/core/map.def"
  }
  return x;
}

#undef REAL
#undef TEST
#define REAL(name) \
  case MAP_##name: \
    return MapSlope<MAP_##name>::of(g, s, a, b);
#define TEST(name)

template <class real>
static __device__ inline real any_slope (int op, real g, real s, real a,
                                         real b) {
  switch (op) {
#include "../src/core/map.def"
  }
  return g;
}

#undef REAL
#undef SAME
#undef TEST
#undef INT
#define REAL(name)
#define SAME(name) \
  case MAP_##name: \
    for (int j = 0; j < V; j++) \
      v[j] = MapInteger<MAP_##name>::of(v[j], a, b); \
    break;
#define TEST(name) SAME(name)
#define INT(name) SAME(name)

template <int V>
static __device__ inline void any_integers (int op, int64_t *v, double a,
                                            double b) {
  switch (op) {
#include "../src/core/map.def"
  }
}

#undef REAL
#undef SAME
#undef TEST
#undef INT
#undef MAP

template <class real>
static __global__ void map_strided (int op, Sweep<2> s, fnn_Dtype to,
                                    fnn_Dtype from, real a, real b) {
  EACH_GROUP(i, s) {
    int32_t at[2];
    real v[1];
    sweep_find(s, i, 1, at);
    group_load_any<1>(v, s.data[1], from, at[1], 1, 1);
    v[0] = any_row(op, v[0], a, b);
    group_store_any<1>(s.data[0], to, at[0], v, 1);
  }
}

/* t: of all three. */
template <class real>
static __global__ void map_back_strided (int op, Sweep<3> s, fnn_Dtype t,
                                         real a, real b) {
  EACH_GROUP(i, s) {
    int32_t at[3];
    real g[1], v[1] = { 0 };
    sweep_find(s, i, 1, at);
    group_load_any<1>(g, s.data[1], t, at[1], 1, 1);
    if (s.data[2] != NULL) group_load_any<1>(v, s.data[2], t, at[2], 1, 1);
    g[0] = any_slope(op, g[0], v[0], a, b);
    group_store_any<1>(s.data[0], t, at[0], g, 1);
  }
}

template <int V>
static __global__ void map_integers (int op, Sweep<2> s, fnn_Dtype to,
                                     fnn_Dtype from, double a, double b) {
  EACH_GROUP(i, s) {
    int32_t at[2];
    int64_t v[V];
    uint32_t left = sweep_find(s, i, V, at);
    group_load_any<V>(v, s.data[1], from, at[1], s.stride[1][0], left);
    any_integers<V>(op, v, a, b);
    group_store_any<V>(s.data[0], to, at[0], v, left);
  }
}

/* }====================================================== */

enum { INTEGERS = 4 }; /* a group of them */

/* Whatever has no vectors of floats. */
static void any_map (int op, const Tensor *y, Geometry g, fnn_Dtype from,
                     double a, double b) {
  Geometry rest;
  while (geometry_halve(&g, &rest)) any_map(op, y, rest, from, a, b);
  Sweep<2> s;
  bool runs = lane_of(from) == FNN_I64 && geometry_runs(&g, INTEGERS);
  sweep_of(&s, &g, runs ? INTEGERS : 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  fnn_Dtype to = (fnn_Dtype)y->dtype;
  if (runs)
    RUN(y, (map_integers<INTEGERS>), blocks, SWEEP_THREADS, 0, op, s, to, from,
        a, b);
  else if (lane_of(from) == FNN_I64)
    RUN(y, (map_integers<1>), blocks, SWEEP_THREADS, 0, op, s, to, from, a, b);
  else if (from == FNN_F64)
    RUN(y, (map_strided<double>), blocks, SWEEP_THREADS, 0, op, s, to, from, a,
        b);
  else
    RUN(y, (map_strided<float>), blocks, SWEEP_THREADS, 0, op, s, to, from,
        (float)a, (float)b);
}

extern "C" void cuda_map (int op, Tensor *y, const Tensor *x, double a,
                          double b) {
  Geometry g;
  size_t mark = fnn_mark();
  x = sweep_operand(x, y);
  const Tensor *t[] = { y, x };
  geometry_open(&g, 2, t);
  if (!tensor_is_float(x) || !geometry_runs(&g, 16 / g.size[1]))
    any_map(op, y, g, (fnn_Dtype)x->dtype, a, b);
  else WITH_FLOAT(x->dtype, forward_row<T>(op, y, &g, a, b))
  fnn_escape(mark, NULL);
}

static void any_map_back (int op, const Tensor *gx, Geometry g, double a,
                          double b) {
  Geometry rest;
  while (geometry_halve(&g, &rest)) any_map_back(op, gx, rest, a, b);
  Sweep<3> s;
  sweep_of(&s, &g, 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  fnn_Dtype t = (fnn_Dtype)gx->dtype;
  if (t == FNN_F64)
    RUN(gx, (map_back_strided<double>), blocks, SWEEP_THREADS, 0, op, s, t, a,
        b);
  else
    RUN(gx, (map_back_strided<float>), blocks, SWEEP_THREADS, 0, op, s, t,
        (float)a, (float)b);
}

extern "C" void cuda_map_back (int op, Tensor *gx, const Tensor *gy,
                               const Tensor *saved, double a, double b) {
  Geometry g;
  size_t mark = fnn_mark();
  const Tensor *t[] = { gx, sweep_operand(gy, gx), sweep_operand(saved, gx) };
  geometry_open(&g, 3, t);
  if (!geometry_runs(&g, 16 / g.size[0])) any_map_back(op, gx, g, a, b);
  else WITH_FLOAT(gx->dtype, backward_row<T>(op, gx, &g, a, b))
  fnn_escape(mark, NULL);
}
