/* random_test.c - Philox, the laws, generators, dropout, and what PyTorch's
** CPU generator draws (tests/fixtures/torch_random.txt). */

#include "test.h"

#include <inttypes.h>
#include <math.h>

#define FIXTURE "tests/fixtures/torch_random.txt"

enum { MANY = 1000000 };

static Tensor *uniform (int64_t n, double lo, double hi, fnn_Dtype t,
                        fnn_Generator *g) {
  return fnn_uniform(1, &n, lo, hi, t, NULL, g);
}

static Tensor *normal (int64_t n, fnn_Dtype t, fnn_Generator *g) {
  return fnn_normal(1, &n, 0, 1, t, NULL, g);
}

static Tensor *randint (int64_t n, int64_t lo, int64_t hi, fnn_Dtype t,
                        fnn_Generator *g) {
  return fnn_randint(1, &n, lo, hi, t, NULL, g);
}

static double at (const Tensor *x, int64_t i) {
  return dtype_get((fnn_Dtype)x->dtype, fnn_data(x), i);
}

static void same (const Tensor *a, const Tensor *b, int64_t n) {
  assert_memory_equal(fnn_data(a), fnn_data(b),
                      (size_t)n * fnn_dtype_size((fnn_Dtype)a->dtype));
}

/*
** {======================================================
** Philox and the laws
** =======================================================
*/

/* The known answers that Random123 publishes for philox4x32 10. */
TEST(philox_gives_the_known_answers) {
  static const struct {
    uint32_t c[4], key[2], out[4];
  } known[] = {
    { { 0, 0, 0, 0 },
      { 0, 0 },
      { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
  };
  for (int i = 0; i < countof(known); i++) {
    uint32_t c[4];
    memcpy(c, known[i].c, sizeof c);
    philox_block(known[i].key, c);
    assert_memory_equal(c, known[i].out, sizeof c);
  }
}

/* Element by element from the words that kernels.def says; 1003 blocks begin
** below a counter of 2^32 and end above it. */
TEST(kernels_use_the_words_they_should) {
  enum { N = 2006 };
  fnn_Generator *g = fnn_generator("philox", 0x123456789abcdef0);
  uint64_t start = (1ull << 32) - 100;
  uint32_t w[4];
  double worst32 = 0, worst64 = 0;
  g->counter = start;
  Tensor *u32 = uniform(N, 0, 1, FNN_F32, g);
  assert_int_equal(g->counter, start + (N + 3) / 4);
  g->counter = start;
  Tensor *n32 = normal(N, FNN_F32, g);
  g->counter = start;
  Tensor *u64 = uniform(N, 0, 1, FNN_F64, g);
  assert_int_equal(g->counter, start + N / 2);
  g->counter = start;
  Tensor *n64 = normal(N, FNN_F64, g);
  g->counter = start;
  Tensor *z = randint(N, -1000000, 5000000000, FNN_I64, g);
  for (int i = 0; i < N; i++) {
    philox(g->seed, start + (uint64_t)i / 4, w);
    assert_true(at(u32, i) == (w[i % 4] >> 8) * 0x1p-24);
    int p = i % 4 / 2 * 2;
    double r = sqrt(-2 * log(((w[p] >> 1) + 0.5) * 0x1p-31));
    double angle = 2 * M_PI * w[p + 1] * 0x1p-32;
    double want = i % 2 == 0 ? r * cos(angle) : r * sin(angle);
    worst32 = fmax(worst32, fabs(at(n32, i) - want) / fmax(1, fabs(want)));
    philox(g->seed, start + (uint64_t)i / 2, w);
    uint64_t a = (uint64_t)w[1] << 32 | w[0], b = (uint64_t)w[3] << 32 | w[2];
    uint64_t v = i % 2 == 0 ? a : b;
    assert_true(at(u64, i) == (double)(v >> 11) * 0x1p-53);
    r = sqrt(-2 * log((double)((a >> 11) + 1) * 0x1p-53));
    angle = 2 * M_PI * (double)(b >> 11) * 0x1p-53;
    want = i % 2 == 0 ? r * cos(angle) : r * sin(angle);
    worst64 = fmax(worst64, fabs(at(n64, i) - want));
    long double fraction = (long double)v * 0x1p-64L;
    assert_true(((const int64_t *)fnn_data(z))[i] ==
                (int64_t)floorl(fraction * 5001000000.0L) - 1000000);
  }
  print_message("normals: off by %.1e in f32, %.1e in f64\n", worst32,
                worst64);
  assert_true(worst32 < 1e-6 && worst64 < 1e-14);
}

/* The n-th central moment of x about m. */
static double moment (const Tensor *x, double m, int n) {
  double sum = 0;
  for (int64_t i = 0; i < x->numel; i++) {
    double power = 1;
    for (int k = 0; k < n; k++) power *= at(x, i) - m;
    sum += power;
  }
  return sum / (double)x->numel;
}

/* Limits are five standard deviations of the estimate. */
TEST(moments_are_right) {
  static const fnn_Dtype dtypes[] = { FNN_F32, FNN_F64 };
  fnn_Generator *g = fnn_generator("philox", 1);
  for (int i = 0; i < countof(dtypes); i++) {
    size_t m = fnn_mark();
    Tensor *x = uniform(MANY, -1, 3, dtypes[i], g);
    assert_true(fabs(moment(x, 0, 1) - 1) < 5 * 1.1547e-3);
    assert_true(fabs(moment(x, 1, 2) - 16 / 12.0) < 5 * 1.1926e-3);
    x = normal(MANY, dtypes[i], g);
    assert_true(fabs(moment(x, 0, 1)) < 5e-3);
    assert_true(fabs(moment(x, 0, 2) - 1) < 5 * 1.4142e-3);
    assert_true(fabs(moment(x, 0, 3)) < 5 * 3.873e-3);
    assert_true(fabs(moment(x, 0, 4) - 3) < 5 * 9.798e-3);
    fnn_escape(m, NULL);
  }
}

/* Chi squared of counts against a flat law, in its standard deviations. */
static double flatness (const int64_t *count, int n, int64_t draws) {
  double expected = (double)draws / n, chi = 0;
  for (int i = 0; i < n; i++)
    chi += (count[i] - expected) * (count[i] - expected) / expected;
  return (chi - (n - 1)) / sqrt(2.0 * (n - 1));
}

TEST(laws_are_flat_where_they_should_be) {
  enum { BINS = 250 };
  int64_t u[BINS] = { 0 }, z[BINS] = { 0 }, k[BINS] = { 0 };
  fnn_Generator *g = fnn_generator("philox", 2);
  Tensor *x = uniform(MANY, 0, BINS, FNN_F32, g);
  Tensor *y = normal(MANY, FNN_F32, g);
  Tensor *i32 = randint(MANY, 0, BINS, FNN_I32, g);
  for (int64_t i = 0; i < MANY; i++) {
    u[(int)at(x, i)]++;
    z[(int)(BINS * 0.5 * erfc(-at(y, i) / M_SQRT2))]++;
    k[(int)at(i32, i)]++;
  }
  assert_true(fabs(flatness(u, BINS, MANY)) < 5);
  assert_true(fabs(flatness(z, BINS, MANY)) < 5);
  assert_true(fabs(flatness(k, BINS, MANY)) < 5);
}

/* Rounding to few bits must not reach the upper bound. */
TEST(uniform_stays_below_its_upper_bound) {
  static const struct {
    fnn_Dtype t;
    double lo, hi;
  } law[] = {
    { FNN_F32, 1, 2 },    { FNN_F32, -2, -1 },       { FNN_F32, 5, 5 },
    { FNN_F16, 0, 1 },    { FNN_F16, -1, 0 },        { FNN_BF16, 0, 1 },
    { FNN_BF16, -3, -2 }, { FNN_F64, 1, 1 + 4e-16 }, { FNN_F16, 7, 7 },
    { FNN_F16, 0, 1e5 },
  };
  for (int i = 0; i < countof(law); i++) {
    size_t m = fnn_mark();
    double most = -INFINITY, least = INFINITY;
    Tensor *x = uniform(50000, law[i].lo, law[i].hi, law[i].t, NULL);
    for (int64_t j = 0; j < x->numel; j++) {
      most = fmax(most, at(x, j));
      least = fmin(least, at(x, j));
    }
    assert_true(least >= law[i].lo);
    assert_true(law[i].lo == law[i].hi ? most == law[i].lo : most < law[i].hi);
    fnn_escape(m, NULL);
  }
}

TEST(randint_covers_its_range) {
  static const fnn_Dtype dtypes[] = { FNN_BOOL, FNN_U8,   FNN_I32, FNN_I64,
                                      FNN_F16,  FNN_BF16, FNN_F32, FNN_F64 };
  for (int i = 0; i < countof(dtypes); i++) {
    unsigned seen = 0;
    Tensor *x = randint(1000, 0, 2, dtypes[i], NULL);
    for (int j = 0; j < 1000; j++) seen |= 1u << (int)at(x, j);
    assert_int_equal(seen, 3);
  }
  Tensor *x = randint(1000, INT64_MIN, INT64_MAX, FNN_I64, NULL);
  const int64_t *v = fnn_data(x);
  int negative = 0;
  for (int j = 0; j < 1000; j++) negative += v[j] < 0;
  assert_in_range(negative, 400, 600);
}

TEST(randperm_is_a_permutation) {
  for (int64_t n = 0; n < 300; n += 1 + n / 3) {
    bool seen[300] = { false };
    Tensor *x = fnn_randperm(n, NULL, NULL);
    assert_int_equal(x->numel, n);
    for (int64_t i = 0; i < n; i++) {
      int64_t v = ((const int64_t *)fnn_data(x))[i];
      assert_in_range(v, 0, n - 1);
      assert_false(seen[v]);
      seen[v] = true;
    }
  }
  int64_t count[24] = { 0 }; /* the orders of four, by the first three */
  for (int i = 0; i < 24000; i++) {
    size_t m = fnn_mark();
    const int64_t *v = fnn_data(fnn_randperm(4, NULL, NULL));
    int64_t b = v[1] - (v[1] > v[0]);
    int64_t c = v[2] - (v[2] > v[0]) - (v[2] > v[1]);
    count[v[0] * 6 + b * 2 + c]++;
    fnn_escape(m, NULL);
  }
  assert_true(fabs(flatness(count, 24, 24000)) < 5);
}

/* }====================================================== */

/*
** {======================================================
** Generators
** =======================================================
*/

/* One of each kind of draw of n. */
static void draw_all (int64_t n, Tensor *to[6]) {
  fnn_Generator *g = fnn_generator("philox", 99);
  to[0] = uniform(n, -1, 1, FNN_F32, g);
  to[1] = uniform(n, -1, 1, FNN_F64, g);
  to[2] = normal(n, FNN_F16, g);
  to[3] = normal(n, FNN_F64, g);
  to[4] = randint(n, 0, 1000, FNN_I32, g);
  to[5] = fnn_dropout(to[0], 0.5, g);
}

TEST(bits_do_not_depend_on_threads_or_length) {
  static const int64_t sizes[] = { 1, 5, 255, 257, 70001 };
  for (int i = 0; i < countof(sizes); i++) {
    Tensor *one[6], *two[6], *four[6];
    size_t m = fnn_mark();
    fnn_threads(1);
    draw_all(sizes[i], one);
    fnn_threads(2);
    draw_all(sizes[i], two);
    fnn_threads(4);
    draw_all(sizes[i], four);
    fnn_threads(0);
    for (int k = 0; k < 6; k++) {
      same(one[k], two[k], sizes[i]);
      same(one[k], four[k], sizes[i]);
    }
    fnn_escape(m, NULL);
  }
  fnn_Generator *g = fnn_generator("philox", 5);
  Tensor *few = normal(5, FNN_F32, g);
  fnn_manual_seed(g, 5);
  same(few, normal(1000, FNN_F32, g), 5);
}

TEST(seeds_repeat_and_differ) {
  fnn_manual_seed(NULL, 4);
  assert_int_equal(fnn_generator_seed(fnn_default_generator()), 4);
  Tensor *a = normal(100, FNN_F32, NULL), *b = normal(100, FNN_F32, NULL);
  fnn_manual_seed(NULL, 4);
  same(a, normal(100, FNN_F32, NULL), 100);
  same(b, normal(100, FNN_F32, fnn_default_generator()), 100);
  assert_memory_not_equal(fnn_data(a), fnn_data(b), 400);
  fnn_manual_seed(NULL, 4ull << 32);
  assert_memory_not_equal(fnn_data(a), fnn_data(normal(100, FNN_F32, NULL)),
                          400);
  fnn_Context *other = fnn_open(NULL), *third = fnn_open(NULL);
  assert_true(other->generator->seed != third->generator->seed);
  fnn_close(other);
  fnn_close(third);
}

TEST(states_are_restored) {
  static const char *const kinds[] = { "philox", "torch" };
  for (int i = 0; i < 2; i++) {
    fnn_Generator *g = fnn_generator(kinds[i], 11);
    assert_string_equal(fnn_generator_kind(g), kinds[i]);
    normal(3, FNN_F64, g); /* leaves one over in the torch kind */
    Tensor *kept = fnn_generator_state(g);
    Tensor *a = normal(3, FNN_F64, g), *b = uniform(1000, 0, 1, FNN_F32, g);
    fnn_Generator *h = fnn_generator(kinds[i], 0);
    fnn_generator_restore(h, kept);
    assert_int_equal(fnn_generator_seed(h), 11);
    same(a, normal(3, FNN_F64, h), 3);
    same(b, uniform(1000, 0, 1, FNN_F32, h), 1000);
    fnn_generator_restore(h, kept);
    same(kept, fnn_generator_state(h), kept->numel);
  }
}

/* }====================================================== */

/*
** {======================================================
** Dropout
** =======================================================
*/

TEST(dropout_drops_and_scales) {
  int64_t n = MANY, dropped = 0;
  Tensor *x = fnn_full(1, &n, 3, FNN_F64, NULL);
  Tensor *y = fnn_dropout(x, 0.25, NULL);
  for (int64_t i = 0; i < n; i++) {
    assert_true(at(y, i) == 0 || fabs(at(y, i) - 4) < 1e-12);
    dropped += at(y, i) == 0;
  }
  assert_true(fabs((double)dropped / (double)n - 0.25) < 5 * 4.33e-4);
  assert_ptr_equal(fnn_dropout(x, 0, NULL), x);
}

TEST(dropout_of_all_gives_zeros) {
  int64_t n = 100;
  Tensor *x = fnn_full(1, &n, NAN, FNN_F32, NULL);
  Tensor *y = fnn_dropout(x, 1, NULL);
  for (int64_t i = 0; i < n; i++) assert_true(at(y, i) == 0);
  n = 0;
  assert_int_equal(
      fnn_dropout(uniform(0, 0, 1, FNN_F32, NULL), 0.5, NULL)->numel, 0);
}

/* The gradient passes where the value did, with the value's scale. */
TEST(dropout_has_its_gradient) {
  static const double p[] = { 0.4, 1 };
  int64_t shape[] = { 30, 20 };
  for (int i = 0; i < 2; i++) {
    fnn_Param *w = fnn_param(fnn_full(2, shape, 1, FNN_F64, NULL));
    fnn_Generator *g = fnn_generator("philox", 21);
    Tensor *y = fnn_dropout(fnn_value(w), p[i], g);
    fnn_dropout(fnn_value(w), p[i], g); /* moves the generator on */
    Tensor *gy = fnn_normal(2, shape, 0, 1, FNN_F64, NULL, NULL);
    fnn_backward(y, gy, false);
    Tensor *gx = fnn_gradient(w);
    for (int64_t k = 0; k < 600; k++)
      assert_true(at(gx, k) == at(y, k) * at(gy, k));
  }
}

/* }====================================================== */

/*
** {======================================================
** What PyTorch draws
** =======================================================
*/

typedef struct Line {
  char law[16], dtype[8], seed[24], a[32], b[32];
  int64_t n;
  int shown;
} Line;

static Tensor *draw (const Line *l, fnn_Generator *g) {
  if (strcmp(l->law, "randperm") == 0) return fnn_randperm(l->n, NULL, g);
  if (strcmp(l->law, "randint") == 0)
    return randint(l->n, strtoll(l->a, NULL, 10), strtoll(l->b, NULL, 10),
                   FNN_I64, g);
  double a = strtod(l->a, NULL), b = strtod(l->b, NULL);
  fnn_Dtype t = fnn_dtype(l->dtype);
  return strcmp(l->law, "normal") == 0
             ? fnn_normal(1, &l->n, a, b, t, NULL, g)
             : fnn_uniform(1, &l->n, a, b, t, NULL, g);
}

/* Compares x[i] with a word of the file: the distance in units of the larger
** of 1 and the value. */
static double distance (const Tensor *x, int64_t i, const char *word) {
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  if (t == FNN_I64)
    return ((const int64_t *)fnn_data(x))[i] != strtoll(word, NULL, 10);
  uint64_t bits = strtoull(word, NULL, 16);
  double want = dtype_get(t, &bits, 0);
  return fabs(at(x, i) - want) / fmax(1, fabs(want));
}

/* Integers and uniforms are equal; normals to a few units in the last place
** (a whole one of the dtype, where a rounding went the other way). */
static double allowed (const Line *l) {
  if (strcmp(l->law, "normal") != 0) return 0;
  return strcmp(l->dtype, "f64") == 0   ? 1e-14
         : strcmp(l->dtype, "f32") == 0 ? 1e-6
         : strcmp(l->dtype, "f16") == 0 ? 0x1p-10
                                        : 0x1p-7;
}

TEST(torch_generator_draws_what_pytorch_draws) {
  static char text[8192];
  FILE *f = fopen(FIXTURE, "r");
  fnn_Generator *g = NULL;
  double worst = 0;
  int lines = 0;
  assert_non_null(f);
  while (fgets(text, sizeof text, f) != NULL) {
    Line l;
    int used = 0;
    assert_int_equal(sscanf(text, "%15s %7s %23s %" SCNd64 " %31s %31s %d%n",
                            l.law, l.dtype, l.seed, &l.n, l.a, l.b, &l.shown,
                            &used),
                     7);
    if (l.seed[0] != '-')
      g = fnn_generator("torch", strtoull(l.seed, NULL, 10));
    Tensor *x = draw(&l, g);
    char *word = strtok(text + used, " \n");
    for (int k = 0; k < l.shown; k++, word = strtok(NULL, " \n")) {
      double d = distance(x, l.n - l.shown + k, word);
      if (!(d <= allowed(&l)))
        fail_msg("line %d, value %d: off by %g", lines + 1, k + 1, d);
      if (strcmp(l.dtype, "f32") == 0) worst = fmax(worst, d);
    }
    lines++;
  }
  fclose(f);
  assert_true(lines > 200);
  print_message("%d draws; f32 normals off by at most %.1e\n", lines, worst);
}

TEST(torch_generator_seeds_other_draws) {
  fnn_Generator *g = fnn_generator("torch", 1), *h = fnn_generator("torch", 1);
  Tensor *x = uniform(1000, 1, 2, FNN_F32, NULL);
  same(fnn_dropout(x, 0.5, g), fnn_dropout(x, 0.5, h), 1000);
  assert_int_equal(generator_next(g), generator_next(h));
}

/* }====================================================== */

static void bad_kind (void *ud) { (void)ud, fnn_generator("mt", 0); }
static void bad_bounds (void *ud) {
  (void)ud, uniform(3, 2, 1, FNN_F32, NULL);
}
static void bad_span (void *ud) {
  (void)ud, uniform(3, -3e38, 3e38, FNN_F32, NULL);
}
static void bad_dtype (void *ud) { (void)ud, normal(3, FNN_I32, NULL); }
static void bad_std (void *ud) {
  int64_t n = 3;
  (void)ud, fnn_normal(1, &n, 0, -1, FNN_F32, NULL, NULL);
}
static void bad_range (void *ud) { (void)ud, randint(3, 5, 5, FNN_I64, NULL); }
static void bad_fit (void *ud) { (void)ud, randint(3, 0, 257, FNN_U8, NULL); }
static void bad_count (void *ud) { (void)ud, fnn_randperm(-1, NULL, NULL); }
static void bad_big (void *ud) {
  (void)ud;
  fnn_randperm(214748364, NULL, fnn_generator("torch", 0));
}
static void bad_p (void *ud) { fnn_dropout(ud, 1.5, NULL); }
static void bad_nan (void *ud) { fnn_dropout(ud, NAN, NULL); }
static void bad_half (void *ud) {
  fnn_dropout(fnn_cast(ud, FNN_F16), 0.5, NULL);
}
static void bad_state (void *ud) {
  fnn_generator_restore(fnn_generator("torch", 0), ud);
}
static void bad_bytes (void *ud) {
  fnn_Generator *g = ud;
  Tensor *s = fnn_generator_state(g);
  memset(fnn_mutable_data(s), 0xff, (size_t)s->numel);
  fnn_generator_restore(g, s);
}

TEST(mistakes_are_named) {
  Tensor *x = uniform(3, 0, 1, FNN_F32, NULL);
  throws(FNN_EARG, "(expected \"philox\" or \"torch\", got \"mt\")", bad_kind,
         NULL);
  throws(FNN_EARG,
         "uniform: no such law (expected finite bounds, the lower "
         "first, got 2 and 1)",
         bad_bounds, NULL);
  throws(FNN_EARG, "uniform: no such law", bad_span, NULL);
  throws(FNN_EDTYPE, "normal: no numbers of dtype i32", bad_dtype, NULL);
  throws(FNN_EARG, "normal: no such law", bad_std, NULL);
  throws(FNN_EARG,
         "randint: no integer to draw (expected lo < hi, got 5 and "
         "5)",
         bad_range, NULL);
  throws(FNN_EARG,
         "randint: beyond what u8 holds (expected integers of 0 to "
         "255, got [0, 257))",
         bad_fit, NULL);
  throws(FNN_EARG, "randperm: count out of range", bad_count, NULL);
  throws(FNN_EARG, "randperm: too many for the torch generator", bad_big,
         NULL);
  throws(FNN_EARG, "dropout: p out of range (expected 0 to 1, got 1.5)", bad_p,
         x);
  throws(FNN_EARG, "dropout: p out of range", bad_nan, x);
  throws(FNN_EDTYPE, "dropout: ", bad_half, x);
  throws(FNN_EARG, "restore: no state of a torch generator", bad_state,
         fnn_generator_state(fnn_generator("philox", 0)));
  throws(FNN_EARG, "its bytes say otherwise", bad_bytes,
         fnn_generator("torch", 0));
  throws(FNN_EARG, "its bytes say otherwise", bad_bytes,
         fnn_generator("philox", 0));
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(philox_gives_the_known_answers),
    cmocka_unit_test(kernels_use_the_words_they_should),
    cmocka_unit_test(moments_are_right),
    cmocka_unit_test(laws_are_flat_where_they_should_be),
    cmocka_unit_test(uniform_stays_below_its_upper_bound),
    cmocka_unit_test(randint_covers_its_range),
    cmocka_unit_test(randperm_is_a_permutation),
    cmocka_unit_test(bits_do_not_depend_on_threads_or_length),
    cmocka_unit_test(seeds_repeat_and_differ),
    cmocka_unit_test(states_are_restored),
    cmocka_unit_test(dropout_drops_and_scales),
    cmocka_unit_test(dropout_of_all_gives_zeros),
    cmocka_unit_test(dropout_has_its_gradient),
    cmocka_unit_test(torch_generator_draws_what_pytorch_draws),
    cmocka_unit_test(torch_generator_seeds_other_draws),
    cmocka_unit_test(mistakes_are_named),
  };
  return cmocka_run_group_tests_name("random", tests, open_context,
                                     close_context);
}
