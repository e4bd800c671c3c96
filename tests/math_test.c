/* math_test.c - the words of vmath.h against the C library in double, and
** those of doubles against it in long double.
**
** Each float function is tried, through its row of map.def and so in the
** vector code of the instruction set in use (FNN_ISA), on every 2003rd float
** there is and on a dense sweep of where it bends.  Errors are in units in the
** last place of the float nearest to the true value. */

#include "test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BATCH = 1 << 16, STEP = 2003 };

static double log_sigmoid_of (double x) {
  return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}

static double sigmoid_of (double x) { return 1 / (1 + exp(-x)); }
static double gelu_of (double x) { return 0.5 * x * erfc(-x / sqrt(2.0)); }

static double silu_of (double x) { return x / (1 + exp(-x)); }
static double rsqrt_of (double x) { return 1 / sqrt(x); }

/* most: ulps allowed.  floor: errors below it count as none (where a function
** is a difference of others, or its tail underflows). */
static const struct Case {
  const char *name;
  double (*of)(double x);
  double lo, hi; /* of the dense sweep */
  double most, floor;
} cases[] = {
  { "exp", exp, -104, 89, 1, 0 },
  { "exp2", exp2, -150, 128, 1, 0 },
  { "expm1", expm1, -20, 89, 1.5, 0 },
  { "log", log, 0, 4, 1, 0 },
  { "log1p", log1p, -1, 3, 1, 0 },
  { "log2", log2, 0, 4, 1.5, 0 },
  { "log10", log10, 0, 4, 1.5, 0 },
  { "sqrt", sqrt, 0, 4, 0.5, 0 },
  { "rsqrt", rsqrt_of, 0, 4, 1.5, 0 },
  { "sin", sin, -100, 100, 0.8, 0 },
  { "cos", cos, -100, 100, 0.8, 0 },
  { "tan", tan, -100, 100, 2, 0 },
  { "asin", asin, -1, 1, 2.5, 0 },
  { "acos", acos, -1, 1, 1.5, 0 },
  { "atan", atan, -10, 10, 2, 0 },
  { "sinh", sinh, -20, 20, 2.1, 0 },
  { "cosh", cosh, -20, 20, 1.5, 0 },
  { "tanh", tanh, -10, 10, 1.5, 0 },
  { "erf", erf, -4, 4, 2.5, 0 },
  { "sigmoid", sigmoid_of, -90, 90, 2.5, 1e-37 },
  { "log_sigmoid", log_sigmoid_of, -90, 90, 2.5, 1e-37 },
  { "silu", silu_of, -90, 90, 3.5, 1e-35 },
  { "gelu", gelu_of, -8, 10, 3, 2e-7 },
};

static double ulp (float got, double want) {
  float w = (float)want;
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf(w) || !isfinite(got)) return got == w ? 0 : INFINITY;
  float a = fabsf(w);
  double unit = (double)nextafterf(a, INFINITY) - (double)a;
  return fabs((double)got - want) / unit;
}

typedef struct Sweep {
  int op, n;
  float x[BATCH], worst;
  double most;
  const struct Case *c;
} Sweep;

/* Runs the row over what has been gathered. */
static void flush (Sweep *s) {
  if (s->n == 0) return;
  size_t m = fnn_mark();
  int64_t n = s->n;
  fnn_Tensor *x = fnn_tensor(FNN_F32, 1, &n, s->x);
  const float *y = fnn_data(fnn_map(s->op, x, 0, 0));
  for (int i = 0; i < s->n; i++) {
    double want = s->c->of((double)s->x[i]), u = ulp(y[i], want);
    if (fabs((double)y[i] - want) <= s->c->floor) continue;
    if (u <= s->most) continue;
    s->most = u;
    s->worst = s->x[i];
  }
  fnn_escape(m, NULL);
  s->n = 0;
}

static void take (Sweep *s, float x) {
  s->x[s->n++] = x;
  if (s->n == BATCH) flush(s);
}

static void sweep (Sweep *s) {
  const struct Case *c = s->c;
  unsigned sparse = mem_checking() ? 20 : 1; /* wild accesses need no more */
  for (uint64_t u = 0; u < (1ull << 32); u += STEP * sparse) {
    union {
      uint32_t u;
      float f;
    } v = { (uint32_t)u };
    take(s, v.f);
  }
  for (unsigned i = 0; i <= 400000; i += sparse)
    take(s, (float)(c->lo + (c->hi - c->lo) * i / 400000));
  const float special[] = {
    0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN
  };
  for (int i = 0; i < countof(special); i++) take(s, special[i]);
  flush(s);
}

TEST(words_keep_their_accuracy) {
  Sweep *s = calloc(1, sizeof *s);
  int bad = 0;
  for (int i = 0; i < countof(cases); i++) {
    memset(s, 0, sizeof *s);
    s->c = &cases[i];
    s->op = fnn_map_find(cases[i].name);
    assert_true(s->op >= 0);
    sweep(s);
    print_message("# %-12s %5.2f ulp at %.9g\n", cases[i].name, s->most,
                  (double)s->worst);
    bad += s->most > cases[i].most;
  }
  free(s);
  assert_int_equal(bad, 0);
}

/* x^y over bases of all sizes and what is special, for some exponents. */
TEST(powers_keep_their_accuracy) {
  static const double exponents[] = { 1.3,
                                      -2.7,
                                      0.1,
                                      3,
                                      7,
                                      -3,
                                      40.5,
                                      0.0,
                                      1,
                                      (double)INFINITY,
                                      -(double)INFINITY,
                                      (double)NAN,
                                      1e-8,
                                      1e8 };
  enum { N = 40000 };
  static float x[N];
  float most = 0;
  const float special[] = { 0.0f,      -0.0f, 1.0f,  -1.0f, INFINITY,
                            -INFINITY, NAN,   -2.0f, -0.5f };
  int64_t n = N;
  for (int i = 0; i < N; i++) {
    union {
      uint32_t u;
      float f;
    } v = { (uint32_t)i * 107357u };
    x[i] = i < countof(special) ? special[i]
           : i % 2              ? v.f
                                : 0.25f + (float)i / 10000;
  }
  Tensor *base = fnn_tensor(FNN_F32, 1, &n, x);
  for (int k = 0; k < countof(exponents); k++) {
    double y = (double)(float)exponents[k];
    const float *z =
        fnn_data(fnn_zip_number(fnn_zip_find("pow"), base, y, false));
    for (int i = 0; i < N; i++) {
      double u = ulp(z[i], pow((double)x[i], y));
      if (u > 1)
        fail_msg("%.9g ^ %g is %.9g: %.2f ulp off", (double)x[i], y,
                 (double)z[i], u);
      most = (float)u > most ? (float)u : most;
    }
  }
  print_message("# pow          %5.2f ulp\n", (double)most);
}

static long double sigmoid_long (long double x) { return 1 / (1 + expl(-x)); }

static double ulp_f64 (double got, long double want) {
  double w = (double)want, a = fabs(w);
  if (isnan(w)) return isnan(got) ? 0 : INFINITY;
  if (isinf(w) || !isfinite(got)) return got == w ? 0 : INFINITY;
  long double unit = (long double)nextafter(a, INFINITY) - a;
  return (double)(fabsl(got - want) / unit);
}

/* Half of them between lo and hi, the others of any bits. */
static void doubles_fill (double *x, int n, double lo, double hi,
                          uint64_t *state) {
  static const double special[] = { 0.0,      -0.0,      1,      -1,
                                    5e-324,   -1e-310,   709.78, 709.8,
                                    -745.13,  -746,      20,     700.5,
                                    INFINITY, -INFINITY, NAN };
  for (int i = 0; i < n; i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t u = *state ^ *state >> 32;
    x[i] = lo + (hi - lo) * (double)(u >> 11) * 0x1p-53;
    if (i % 2) memcpy(&x[i], &u, sizeof u);
    if (i < countof(special)) x[i] = special[i];
  }
}

TEST(doubles_keep_their_accuracy) {
  static const struct {
    const char *name;
    long double (*of)(long double x);
    double lo, hi, most, floor;
  } of[] = {
    { "exp", expl, -746, 710, 1, 0 },
    { "exp", expl, -2, 2, 1, 0 },
    { "expm1", expm1l, -2, 2, 1.5, 0 },
    { "expm1", expm1l, -40, 710, 1.5, 0 },
    { "log", logl, 0, 4, 1, 0 },
    { "log1p", log1pl, -1, 3, 1, 0 },
    { "tanh", tanhl, -2, 2, 2, 0 },
    { "tanh", tanhl, -22, 22, 2, 0 },
    { "sigmoid", sigmoid_long, -40, 40, 2.5, 1e-307 },
  };
  enum { N = 40001 };
  static double x[N];
  uint64_t seed = 1;
  int64_t n = mem_checking() ? N / 20 : N;
  volatile long double one = 1;
  bool longer = one + LDBL_EPSILON != one; /* not so under valgrind */
  if (LDBL_MANT_DIG == DBL_MANT_DIG) skip();
  for (int k = 0; k < countof(of); k++) {
    double most = 0, worst = 0;
    size_t m = fnn_mark();
    doubles_fill(x, (int)n, of[k].lo, of[k].hi, &seed);
    Tensor *t = fnn_tensor(FNN_F64, 1, &n, x);
    const double *y = fnn_data(fnn_map(fnn_map_find(of[k].name), t, 0, 0));
    for (int i = 0; i < n; i++) {
      long double want = of[k].of(x[i]);
      double u = ulp_f64(y[i], want);
      if (u <= most || fabsl(y[i] - want) <= of[k].floor) continue;
      most = u;
      worst = x[i];
    }
    fnn_escape(m, NULL);
    print_message("# f64 %-8s %5.2f ulp at %.17g\n", of[k].name, most, worst);
    if (longer) assert_true(most <= of[k].most);
  }
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_keep_their_accuracy),
    cmocka_unit_test(powers_keep_their_accuracy),
    cmocka_unit_test(doubles_keep_their_accuracy),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
