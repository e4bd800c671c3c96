/* winograd_test.c - convolution by transformed tiles against sums in double,
** with the kernels of the instruction set in use. */

#include "test.h"

#include <math.h>

#include "../src/core/ops.h"
#include "../src/cpu/winograd.h"

/* The kernels of one instruction set, whose names are made by CPU. */
typedef struct Isa {
  const char *name;
  size_t (*size)(int side, int64_t c, int64_t k);
  void (*pack)(int side, int64_t c, int64_t k, const float *w, bool back,
               void *blob);
  void (*run)(const Winograd *g, const void *blob);
  void (*run_by)(const Winograd *g, const void *blob, bool alone,
                 int64_t block);
  int (*choice)(const Winograd *g, bool kept);
  void (*once)(const Winograd *g, const float *w, bool back);
  void (*weight)(const Winograd *g, const float *gy, float *gw);
} Isa;

#define PROTOTYPES(isa) \
  size_t cpu_winograd_size_##isa##_f32(int side, int64_t c, int64_t k); \
  void cpu_winograd_pack_##isa##_f32(int side, int64_t c, int64_t k, \
                                     const float *w, bool back, void *blob); \
  void cpu_winograd_##isa##_f32(const Winograd *g, const void *blob); \
  void cpu_winograd_by_##isa##_f32(const Winograd *g, const void *blob, \
                                   bool alone, int64_t block); \
  int cpu_winograd_choice_##isa##_f32(const Winograd *g, bool kept); \
  void cpu_winograd_once_##isa##_f32(const Winograd *g, const float *w, \
                                     bool back); \
  void cpu_winograd_weight_##isa##_f32(const Winograd *g, const float *gy, \
                                       float *gw);
/* clang-format off */
#define KERNELS(isa) \
  { #isa, cpu_winograd_size_##isa##_f32, cpu_winograd_pack_##isa##_f32, \
    cpu_winograd_##isa##_f32, cpu_winograd_by_##isa##_f32, \
    cpu_winograd_choice_##isa##_f32, cpu_winograd_once_##isa##_f32, \
    cpu_winograd_weight_##isa##_f32 }
/* clang-format on */

#ifdef ISA_avx2
PROTOTYPES(avx2)
#endif
#ifdef ISA_avx512
PROTOTYPES(avx512)
#endif

/* Those that are built: the Makefile's ISAS. */
static const Isa isas[] = {
  KERNELS(baseline),
#ifdef ISA_avx2
  KERNELS(avx2),
#endif
#ifdef ISA_avx512
  KERNELS(avx512),
#endif
};

static const Isa *isa_now (void) {
  for (int i = 0; i < countof(isas); i++)
    if (strcmp(isas[i].name, fnn_isa()) == 0) return &isas[i];
  fail_msg("no kernels for %s", fnn_isa());
  return NULL;
}

static uint32_t seed;

static int64_t draw (int64_t n) {
  seed = seed * 1664525u + 1013904223u;
  return (int64_t)(seed >> 8) % n;
}

static float *numbers (int64_t n) {
  float *x = mem_scratch((size_t)(n + 1) * sizeof *x);
  for (int64_t i = 0; i < n; i++) {
    double sum = -2; /* about normal */
    for (int j = 0; j < 4; j++) sum += (double)draw(1 << 20) / (1 << 20);
    x[i] = (float)sum;
  }
  return x;
}

/*
** {======================================================
** Random cases
** =======================================================
*/

typedef struct Case {
  Winograd g;
  float *w; /* (k, c, 3, 3); back: (c, k, 3, 3) */
  bool back;
} Case;

static double weight (const Case *p, int64_t k, int64_t c, int i, int j) {
  if (p->back) return p->w[((c * p->g.k + k) * 3 + 2 - i) * 3 + 2 - j];
  return p->w[((k * p->g.c + c) * 3 + i) * 3 + j];
}

/* The element of y, by the definition, before its activation. */
static double expected (const Case *p, int64_t n, int64_t y, int64_t x,
                        int64_t k) {
  const Winograd *g = &p->g;
  double sum = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      int64_t row = y + i - g->top, col = x + j - g->left;
      if (row < 0 || row >= g->h || col < 0 || col >= g->w) continue;
      const float *px = g->x + ((n * g->h + row) * g->w + col) * g->c;
      for (int64_t c = 0; c < g->c; c++) sum += px[c] * weight(p, k, c, i, j);
    }
  sum *= (double)g->alpha;
  if (g->bias != NULL) sum += (double)g->bias[k];
  if (g->add != NULL)
    sum += (double)g->add[((n * g->oh + y) * g->ow + x) * g->k + k];
  return sum;
}

static double activated (int act, double x) {
  return act == MAP_relu ? fmax(x, 0) : act == MAP_tanh ? tanh(x) : x;
}

/* Padding of 0 to 2 at each side, apart. */
static Case make_case (void) {
  Case p = { .back = draw(2) };
  Winograd *g = &p.g;
  *g = (Winograd){ .side = 2 + 2 * (int)draw(2),
                   .n = 1 + draw(3),
                   .c = 1 + draw(40),
                   .k = 1 + draw(40),
                   .top = draw(3),
                   .left = draw(3),
                   .alpha = draw(3) == 0 ? -0.5f : 1 };
  do {
    g->h = 1 + draw(13);
    g->w = 1 + draw(13);
    g->oh = g->h + g->top + draw(3) - 2;
    g->ow = g->w + g->left + draw(3) - 2;
  } while (g->oh < 1 || g->ow < 1);
  int64_t numel = g->n * g->oh * g->ow * g->k;
  g->x = numbers(g->n * g->h * g->w * g->c);
  p.w = numbers(g->c * g->k * 9);
  if (draw(2) == 0) g->bias = numbers(g->k);
  if (draw(2) == 0) g->add = numbers(numel);
  g->act = (int[]){ -1, MAP_relu, MAP_tanh }[draw(3)];
  return p;
}

/* The largest error allowed, in parts of the largest sum (activations change
** nothing by more than it was). */
static double bound (int side) { return side == 4 ? 2e-5 : 2e-6; }

static void check_result (const Case *p, const float *y) {
  const Winograd *g = &p->g;
  double error = 0, most = 1e-3;
  const float *got = y;
  for (int64_t n = 0; n < g->n; n++)
    for (int64_t i = 0; i < g->oh; i++)
      for (int64_t j = 0; j < g->ow; j++)
        for (int64_t k = 0; k < g->k; k++, got++) {
          double sum = expected(p, n, i, j, k);
          double e = fabs(activated(g->act, sum) - (double)*got);
          if (!(e <= error)) error = e;
          most = fmax(most, fabs(sum));
        }
  if (!(error <= bound(g->side) * most))
    fail_msg("side %d, (%d, %d, %d, %d) to (%d, %d, %d), padding %d %d: "
             "error %g of %g",
             g->side, (int)g->n, (int)g->h, (int)g->w, (int)g->c, (int)g->oh,
             (int)g->ow, (int)g->k, (int)g->top, (int)g->left, error, most);
}

TEST(convolutions_of_any_shape) {
  const Isa *isa = isa_now();
  seed = 1;
  for (int i = 0; i < some_of(300); i++) {
    size_t mark = fnn_mark();
    Case p = make_case();
    Winograd *g = &p.g;
    size_t numel = (size_t)(g->n * g->oh * g->ow * g->k), bytes = numel * 4;
    void *blob = mem_scratch(isa->size(g->side, g->c, g->k));
    float *y = mem_scratch(bytes + 4), *first = mem_scratch(bytes);
    isa->pack(g->side, g->c, g->k, p.w, p.back, blob);
    g->y = first;
    isa->run(g, blob);
    check_result(&p, first);
    for (int way = 0; way < 4; way++) {
      static const int blocks[] = { 1, 5, 14, 1000 };
      memset(y, 0xff, bytes); /* NaN: must not show */
      y[numel] = 7;
      g->y = y;
      isa->run_by(g, blob, way % 2 == 0, blocks[draw(countof(blocks))]);
      assert_memory_equal(y, first, bytes);
      assert_true(y[numel] == 7);
    }
    fnn_escape(mark, NULL);
  }
}

/* The gradient of one tap by the definition. */
static double expected_weight (const Winograd *g, const float *gy, int64_t k,
                               int64_t c, int i, int j) {
  double sum = 0;
  for (int64_t n = 0; n < g->n; n++)
    for (int64_t y = 0; y < g->oh; y++)
      for (int64_t x = 0; x < g->ow; x++) {
        int64_t row = y + i - g->top, col = x + j - g->left;
        if (row < 0 || row >= g->h || col < 0 || col >= g->w) continue;
        double a = g->x[((n * g->h + row) * g->w + col) * g->c + c];
        sum += a * gy[((n * g->oh + y) * g->ow + x) * g->k + k];
      }
  return sum;
}

static void check_weight (const Winograd *g, const float *gy,
                          const float *gw) {
  double error = 0, most = 1e-3;
  for (int64_t at = 0; at < g->k * g->c * 9; at++) {
    int64_t tap = at % 9, c = at / 9 % g->c, k = at / 9 / g->c;
    double want = expected_weight(g, gy, k, c, (int)tap / 3, (int)tap % 3);
    double e = fabs(want - (double)gw[at]);
    if (!(e <= error)) error = e;
    most = fmax(most, fabs(want));
  }
  if (!(error <= bound(g->side) * most))
    fail_msg("side %d, (%d, %d, %d, %d) by (%d, %d, %d): error %g of %g",
             g->side, (int)g->n, (int)g->h, (int)g->w, (int)g->c, (int)g->oh,
             (int)g->ow, (int)g->k, error, most);
}

TEST(gradients_of_weights_of_any_shape) {
  const Isa *isa = isa_now();
  seed = 2;
  for (int i = 0; i < some_of(150); i++) {
    size_t mark = fnn_mark();
    Case p = make_case();
    Winograd *g = &p.g;
    int64_t numel = g->c * g->k * 9;
    const float *gy = numbers(g->n * g->oh * g->ow * g->k);
    float *gw = numbers(numel);
    gw[numel] = 7;
    isa->weight(g, gy, gw);
    check_weight(g, gy, gw);
    assert_true(gw[numel] == 7);
    fnn_escape(mark, NULL);
  }
}

/* }====================================================== */

/*
** {======================================================
** Schedules and choices
** =======================================================
*/

/* A convolution of one image with padding 1, weights packed. */
static Winograd whole (const Isa *isa, int side, int64_t size, int64_t c,
                       int64_t k, const void **blob) {
  Winograd g = { .side = side,
                 .n = 1,
                 .h = size,
                 .w = size,
                 .c = c,
                 .oh = size,
                 .ow = size,
                 .k = k,
                 .top = 1,
                 .left = 1,
                 .alpha = 1,
                 .act = -1 };
  void *packed = mem_scratch(isa->size(side, c, k));
  isa->pack(side, c, k, numbers(c * k * 9), false, packed);
  *blob = packed;
  g.x = numbers(size * size * c);
  return g;
}

TEST(bits_do_not_depend_on_threads) {
  const Isa *isa = isa_now();
  const void *blob;
  seed = 3;
  /* Weights near and far; k that cuts products into several tasks. */
  static const int64_t shapes[][3] = { { 50, 24, 40 }, { 21, 200, 600 } };
  int before = fnn_thread_count();
  for (int i = 0; i < (mem_checking() ? 1 : countof(shapes)); i++) {
    size_t mark = fnn_mark();
    int64_t size = shapes[i][0], c = shapes[i][1], k = shapes[i][2];
    Winograd g = whole(isa, 4, size, c, k, &blob);
    size_t bytes = (size_t)(size * size * k) * sizeof(float);
    size_t weights = (size_t)(c * k * 9) * sizeof(float);
    float *one = mem_scratch(bytes), *many = mem_scratch(bytes);
    float *gw = mem_scratch(weights), *gw_many = mem_scratch(weights);
    fnn_threads(1);
    g.y = one;
    isa->run(&g, blob);
    isa->weight(&g, one, gw);
    for (int threads = 2; threads <= 3; threads++) {
      fnn_threads(threads);
      g.y = many;
      isa->run(&g, blob);
      assert_memory_equal(one, many, bytes);
      isa->weight(&g, one, gw_many);
      assert_memory_equal(gw, gw_many, weights);
    }
    fnn_escape(mark, NULL);
  }
  fnn_threads(before);
}

typedef struct Run {
  const Isa *isa;
  const Winograd *g;
  const void *blob;
} Run;

static void run_it (void *ud) {
  const Run *r = ud;
  r->isa->run(r->g, r->blob);
}

TEST(a_set_token_stops_it) {
  Run r = { .isa = isa_now() };
  Winograd g = whole(r.isa, 4, 60, 32, 32, &r.blob);
  g.y = numbers(60 * 60 * 32);
  r.g = &g;
  fnn_cancel(fnn_cancel_token(fnn_current()));
  assert_int_equal(fnn_pcall(run_it, &r), FNN_ECANCEL);
}

TEST(weights_that_are_packed_in_parts_give_the_same_bits) {
  const Isa *isa = isa_now();
  seed = 4;
  for (int way = 0; way < 4; way++) {
    size_t mark = fnn_mark();
    const void *blob;
    int side = 2 + 2 * (way % 2);
    bool back = way / 2;
    Winograd g = whole(isa, side, 9, 390, 421, &blob);
    int64_t numel = 9 * 9 * g.k;
    float *w = numbers(g.c * g.k * 9), *one = numbers(numel);
    float *parts = numbers(numel);
    isa->pack(side, g.c, g.k, w, back, (void *)blob);
    g.y = one;
    isa->run(&g, blob);
    g.y = parts;
    isa->once(&g, w, back);
    assert_memory_equal(one, parts, (size_t)numel * sizeof *one);
    fnn_escape(mark, NULL);
  }
}

static int chosen (int64_t n, int64_t size, int64_t c, int64_t k, bool kept) {
  Winograd g = { .n = n,
                 .h = size,
                 .w = size,
                 .c = c,
                 .oh = size,
                 .ow = size,
                 .k = k,
                 .top = 1,
                 .left = 1 };
  return isa_now()->choice(&g, kept);
}

TEST(tiles_are_chosen_by_what_they_cost) {
  assert_int_equal(chosen(1, 64, 320, 320, true), 4);
  assert_int_equal(chosen(1, 256, 128, 128, false), 4);
  assert_int_equal(chosen(1, 16, 1280, 1280, true), 2); /* for memory */
  assert_int_equal(chosen(1, 224, 3, 64, true), 0);
  assert_int_equal(chosen(1, 2, 64, 64, false), 0);
  /* Packing does not pay for one small image. */
  assert_int_not_equal(chosen(1, 7, 512, 512, true), 0);
  assert_int_equal(chosen(1, 7, 512, 512, false), 0);
}

/* }====================================================== */

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bits_do_not_depend_on_threads),
    cmocka_unit_test(a_set_token_stops_it),
    cmocka_unit_test(weights_that_are_packed_in_parts_give_the_same_bits),
    cmocka_unit_test(tiles_are_chosen_by_what_they_cost),
    cmocka_unit_test(convolutions_of_any_shape),
    cmocka_unit_test(gradients_of_weights_of_any_shape),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
