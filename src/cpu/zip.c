/* zip.c - the rows of zip.def over floats, doubles and integers. */

#include "sweep.h"

#include "../core/ops.h"
#include "../core/vmath.h"

/*
** {======================================================
** One loop a row
** =======================================================
*/

#define LOOP(name, T, Z, f) \
  static void name(void *z_, const void *const *in, int64_t n, double a, \
                   double b) { \
    Z *z = z_; \
    const T *px = in[0], *py = in[1]; \
    (void)a, (void)b; \
    LANES for (int64_t i = 0; i < n; i++) { \
      const T x = px[i], y = py[i]; \
      z[i] = (Z)(f); \
    } \
  }

#define REAL(name, f, k) LOOP(real_##name, real, real, f)
#define SAME(name, f, k) LOOP(real_##name, real, real, f)
#define TEST(name, f, k) LOOP(real_##name, real, uint8_t, f)
#define INT(name, f, k)
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name, f, k)
#include "../core/zip.def"
#undef REAL
#undef SAME
#undef TEST
#undef INT

#define REAL(name) [ZIP_##name] = real_##name,
#define SAME(name) REAL(name)
#define TEST(name) REAL(name)
#define INT(name)
#undef ZIP
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name)
extern const Loop CPU(zip_loops)[ZIP_COUNT];
const Loop CPU(zip_loops)[ZIP_COUNT] = {
#include "../core/zip.def"
};
#undef REAL
#undef SAME
#undef TEST
#undef INT
#undef ZIP

/* }====================================================== */

/*
** {======================================================
** Gradients: in[0] is g, in[1] and in[2] are x and y, or g where not read
** =======================================================
*/

#define BACK(name, gradient) \
  static void name(void *z_, const void *const *in, int64_t n, double a, \
                   double b) { \
    real *z = z_; \
    const real *pg = in[0], *px = in[1], *py = in[2]; \
    (void)a, (void)b; \
    LANES for (int64_t i = 0; i < n; i++) { \
      const real g = pg[i], x = px[i], y = py[i]; \
      (void)x, (void)y; \
      z[i] = (gradient); \
    } \
  }

#define REAL(name, gx, gy) BACK(first_##name, gx) BACK(second_##name, gy)
#define SAME(name, gx, gy) REAL(name, gx, gy)
#define TEST(name, gx, gy)
#define INT(name, gx, gy)
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name, gx, gy)
#include "../core/zip.def"
#undef ZIP
#undef REAL
#undef SAME

#define REAL(name) [ZIP_##name] = { first_##name, second_##name },
#define SAME(name) REAL(name)
#undef TEST
#undef INT
#define TEST(name)
#define INT(name)
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name)
static const Loop backs[ZIP_COUNT][2] = {
#include "../core/zip.def"
};
#undef ZIP
#undef REAL
#undef SAME
#undef TEST
#undef INT

void CPU (zip_back)(int op, int which, Tensor *gx, const Tensor *gz,
                    const Tensor *x, const Tensor *y) {
  Sweep s;
  ONCE(sweep_open)
  (&s, 4,
   (const Tensor *[]){ gx, gz, x != NULL ? x : gz, y != NULL ? y : gz });
  s.loop = backs[op][which];
  ONCE(sweep_run)(&s);
}

/* }====================================================== */

#ifdef CPU_ANY

/*
** {======================================================
** Integers, in int64
** =======================================================
*/

#define REAL(name, f, k)
#define SAME(name, f, k) LOOP(int_##name, int64_t, int64_t, k)
#define TEST(name, f, k) LOOP(int_##name, int64_t, uint8_t, k)
#define INT(name, f, k) SAME(name, f, k)
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name, f, k)
#include "../core/zip.def"
#undef ZIP
#undef SAME
#undef TEST
#undef INT

#define SAME(name) [ZIP_##name] = int_##name,
#define TEST(name) SAME(name)
#define INT(name) SAME(name)
#undef REAL
#define REAL(name)
#define ZIP(name, kind, f, k, rx, gx, ry, gy) kind(name)
static const Loop ints[ZIP_COUNT] = {
#include "../core/zip.def"
};
#undef ZIP

/* Rows whose result is bool. */
#undef REAL
#undef SAME
#undef TEST
#undef INT
enum { REAL, SAME, TEST, INT };
#define ZIP(name, kind, f, k, rx, gx, ry, gy) [ZIP_##name] = kind == TEST,
static const bool tests[ZIP_COUNT] = {
#include "../core/zip.def"
};
#undef ZIP

/* }====================================================== */

extern const Loop CPU_PASTE(zip_loops, CPU_ISA, f64)[ZIP_COUNT];

static void run (Sweep *s, int op) {
  fnn_Dtype lane = (fnn_Dtype)s->at[1].lane;
  s->loop = lane == FNN_I64   ? ints[op]
            : lane == FNN_F64 ? CPU_PASTE(zip_loops, CPU_ISA, f64)[op]
                              : CPU(zip_loops)[op];
  if (tests[op]) s->at[0].lane = FNN_BOOL;
  ONCE(sweep_run)(s);
}

void CPU (zip)(int op, Tensor *z, const Tensor *x, const Tensor *y) {
  Sweep s;
  ONCE(sweep_open)(&s, 3, (const Tensor *[]){ z, x, y });
  run(&s, op);
}

/* The number is an operand of stride 0 in x's lane. */
void CPU (zip_number)(int op, Tensor *z, const Tensor *x, double v,
                      bool left) {
  Number number;
  Sweep s;
  ONCE(sweep_open)(&s, 2, (const Tensor *[]){ z, x });
  Operand *n = &s.at[left ? 1 : 2];
  if (left) s.at[2] = s.at[1];
  n->data = (char *)&number;
  n->dtype = n->lane = s.at[left ? 2 : 1].lane;
  memset(n->stride, 0, sizeof n->stride);
  s.count = 3;
  if (n->lane == FNN_I64) number.i = integer_of(v);
  else if (n->lane == FNN_F64) number.d = v;
  else number.f = (float)v;
  run(&s, op);
}

#endif
