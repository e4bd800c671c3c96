/* map.c - the rows of map.def over floats, doubles and integers. */

#include "sweep.h"

#include "../core/ops.h"
#include "../core/vmath.h"

/*
** {======================================================
** One loop a row
** =======================================================
*/

/* z[i] = f(x[i]), x and the parameters of type T. */
#define LOOP(name, T, P, Z, f) \
  static void name(void *z_, const void *const *in, int64_t n, double a_, \
                   double b_) { \
    Z *z = z_; \
    const T *px = in[0]; \
    const P a = (P)a_, b = (P)b_; \
    (void)a, (void)b; \
    LANES for (int64_t i = 0; i < n; i++) { \
      const T x = px[i]; \
      (void)x; \
      z[i] = (Z)(f); \
    } \
  }

#define REAL(name, f, k) LOOP(real_##name, real, real, real, f)
#define SAME(name, f, k) LOOP(real_##name, real, real, real, f)
#define TEST(name, f, k) LOOP(real_##name, real, real, uint8_t, f)
#define INT(name, f, k)
#define MAP(name, parameters, kind, f, k, saves, gx) kind(name, f, k)
#include "../core/map.def"
#undef REAL
#undef SAME
#undef TEST
#undef INT

#define REAL(name) [MAP_##name] = real_##name,
#define SAME(name) REAL(name)
#define TEST(name) REAL(name)
#define INT(name)
#undef MAP
#define MAP(name, parameters, kind, f, k, saves, gx) kind(name)
extern const Loop CPU(map_loops)[MAP_COUNT];
const Loop CPU(map_loops)[MAP_COUNT] = {
#include "../core/map.def"
};
#undef REAL
#undef SAME
#undef TEST
#undef INT
#undef MAP

/* }====================================================== */

/*
** {======================================================
** Gradients: in[0] is gy, in[1] what the row saves (or gy again)
** =======================================================
*/

#define SAVES_X const real x = ps[i];
#define SAVES_Y const real y = ps[i];
#define SAVES_NONE

#define BACK(name, saves, gx) \
  static void back_##name(void *z_, const void *const *in, int64_t n, \
                          double a_, double b_) { \
    real *z = z_; \
    const real *pg = in[0], *ps = in[1], a = (real)a_, b = (real)b_; \
    (void)ps, (void)a, (void)b; \
    LANES for (int64_t i = 0; i < n; i++) { \
      const real g = pg[i]; \
      saves z[i] = (gx); \
    } \
  }

#define REAL(name, saves, gx) BACK(name, saves, gx)
#define SAME(name, saves, gx) BACK(name, saves, gx)
#define TEST(name, saves, gx)
#define INT(name, saves, gx)
#define MAP(name, parameters, kind, f, k, saves, gx) \
  kind(name, SAVES_##saves, gx)
#include "../core/map.def"
#undef MAP
#undef REAL
#undef SAME

#define REAL(name, saves, gx) [MAP_##name] = back_##name,
#define SAME(name, saves, gx) REAL(name, saves, gx)
#define MAP(name, parameters, kind, f, k, saves, gx) kind(name, saves, gx)
static const Loop backs[MAP_COUNT] = {
#include "../core/map.def"
};
#undef MAP
#undef REAL
#undef SAME
#undef TEST
#undef INT

/* }====================================================== */

#ifdef CPU_ANY

/*
** {======================================================
** Integers, in int64
** =======================================================
*/

#define REAL(name, f, k)
#define SAME(name, f, k) LOOP(int_##name, int64_t, double, int64_t, k)
#define TEST(name, f, k) LOOP(int_##name, int64_t, double, uint8_t, k)
#define INT(name, f, k) SAME(name, f, k)
#define MAP(name, parameters, kind, f, k, saves, gx) kind(name, f, k)
#include "../core/map.def"
#undef MAP
#undef SAME
#undef TEST
#undef INT

#define SAME(name, f, k) [MAP_##name] = int_##name,
#define TEST(name, f, k) SAME(name, f, k)
#define INT(name, f, k) SAME(name, f, k)
#define MAP(name, parameters, kind, f, k, saves, gx) kind(name, f, k)
static const Loop ints[MAP_COUNT] = {
#include "../core/map.def"
};
#undef MAP

/* }====================================================== */

/* The C library's sin, cos and tan for a block with an argument beyond where
** the words hold; elements that are not take the words' values still. */
#define FAR(name) \
  static void far_##name(void *z_, const void *const *in, int64_t n, \
                         double a, double b) { \
    const float *x = in[0]; \
    float *z = z_, part[64]; \
    for (int64_t i = 0; i < n; i += 64) { \
      int64_t m = min64(64, n - i); \
      const void *from = x + i; \
      real_##name(part, &from, m, a, b); \
      for (int64_t j = 0; j < m; j++) { \
        float v = x[i + j]; \
        z[i + j] = abs_f32(v) > TRIG_FAR ? (name##f)(v) : part[j]; \
      } \
    } \
  } \
  static void near_##name(void *z, const void *const *in, int64_t n, \
                          double a, double b) { \
    const float *x = in[0]; \
    int far = 0; \
    _Pragma("omp simd reduction(|:far)") for (int64_t i = 0; i < n; i++) \
        far |= abs_f32(x[i]) > TRIG_FAR; \
    (far ? far_##name : real_##name)(z, in, n, a, b); \
  }

FAR(sin)
FAR(cos)
FAR(tan)

extern const Loop CPU_PASTE(map_loops, CPU_ISA, f64)[MAP_COUNT];

static Loop loop_of (int op, fnn_Dtype lane) {
  if (lane == FNN_I64) return ints[op];
  if (lane == FNN_F64) return CPU_PASTE(map_loops, CPU_ISA, f64)[op];
  switch (op) {
    case MAP_sin: return near_sin;
    case MAP_cos: return near_cos;
    case MAP_tan: return near_tan;
    default: return CPU(map_loops)[op];
  }
}

void CPU (map)(int op, Tensor *y, const Tensor *x, double a, double b) {
  Sweep s;
  ONCE(sweep_open)(&s, 2, (const Tensor *[]){ y, x });
  s.loop = loop_of(op, (fnn_Dtype)s.at[1].lane);
  if (y->dtype == FNN_BOOL) s.at[0].lane = FNN_BOOL; /* a TEST */
  s.a = a;
  s.b = b;
  ONCE(sweep_run)(&s);
}

#endif

void CPU (map_back)(int op, Tensor *gx, const Tensor *gy, const Tensor *s,
                    double a, double b) {
  Sweep w;
  ONCE(sweep_open)(&w, 3, (const Tensor *[]){ gx, gy, s != NULL ? s : gy });
  w.loop = backs[op];
  w.a = a;
  w.b = b;
  ONCE(sweep_run)(&w);
}
