/* conv_test.c - convolutions and their gradients against the loops of their
** definition, in double.
**
** Operands hold small multiples of 1/8, so that every product and sum is exact
** in f32, whatever the order: results must be equal, not near. */

#include "test.h"

#include <math.h>

#include "../src/core/ops.h"

static uint32_t seed;

static int64_t draw (int64_t n) {
  seed = seed * 1664525u + 1013904223u;
  return (int64_t)(seed >> 8) % n;
}

static Tensor *random_tensor (int ndim, const int64_t *shape, fnn_Dtype t) {
  Tensor *x = tensor_new(ndim, shape, t, device_cpu());
  for (int64_t i = 0; i < x->numel; i++)
    dtype_set(t, tensor_data(x), i, (double)(draw(32) - 16) / 8);
  return x;
}

/* The elements in row-major order. */
static double *values (Tensor *x) {
  double *v = mem_scratch((size_t)(x->numel + 1) * sizeof *v);
  fnn_read(fnn_cast(x, FNN_F64), v);
  return v;
}

/*
** {======================================================
** The definition
** =======================================================
*/

/* One case: C maps x (n, cin, in) to y (n, cout, out), w (cout, cin / groups,
** size). */
typedef struct Case {
  int dims;
  int64_t n, cin, cout, groups;
  int64_t in[3], out[3], size[3];
  fnn_ConvOptions o;
} Case;

typedef void (*Visit)(void *ud, int64_t x, int64_t w, int64_t y);

/* Visits each triple of places of x, w and y whose product C sums. */
static void each_product (const Case *c, Visit f, void *ud) {
  int64_t ci = c->cin / c->groups, co = c->cout / c->groups, at[3], taps = 1;
  int64_t places = c->out[0] * c->out[1] * c->out[2];
  for (int d = 0; d < 3; d++) taps *= c->size[d];
  for (int64_t i = 0; i < c->n * c->cout * places * taps; i++) {
    int64_t tap = i % taps, y = i / taps, place = y % places, x = 0, t = tap;
    int64_t o = y / places % c->cout, image = y / places / c->cout;
    bool inside = true;
    for (int d = 2; d >= 0; d--) {
      at[d] = place % c->out[d] * c->o.stride[d] - c->o.before[d] +
              t % c->size[d] * c->o.dilation[d];
      place /= c->out[d];
      t /= c->size[d];
      inside = inside && at[d] >= 0 && at[d] < c->in[d];
    }
    if (!inside) continue;
    for (int64_t k = 0; k < ci; k++) {
      x = image * c->cin + o / co * ci + k;
      for (int d = 0; d < 3; d++) x = x * c->in[d] + at[d];
      f(ud, x, (o * ci + k) * taps + tap, y);
    }
  }
}

typedef struct Sums {
  const double *x, *w, *gy;
  double *y, *gx, *gw;
} Sums;

static void add_products (void *ud, int64_t x, int64_t w, int64_t y) {
  Sums *s = ud;
  s->y[y] += s->x[x] * s->w[w];
  s->gx[x] += s->gy[y] * s->w[w];
  s->gw[w] += s->gy[y] * s->x[x];
}

static double *zeros (int64_t n) {
  double *v = mem_scratch((size_t)(n + 1) * sizeof *v);
  memset(v, 0, (size_t)n * sizeof *v);
  return v;
}

/* }====================================================== */

static const char *describe (const Case *c, const char *what) {
  static char text[400];
  snprintf(text, sizeof text,
           "%s: %dd n %d c %d -> %d groups %d in %d %d %d size %d %d %d "
           "stride %d %d %d dilation %d %d %d before %d %d %d",
           what, c->dims, (int)c->n, (int)c->cin, (int)c->cout, (int)c->groups,
           (int)c->in[0], (int)c->in[1], (int)c->in[2], (int)c->size[0],
           (int)c->size[1], (int)c->size[2], (int)c->o.stride[0],
           (int)c->o.stride[1], (int)c->o.stride[2], (int)c->o.dilation[0],
           (int)c->o.dilation[1], (int)c->o.dilation[2], (int)c->o.before[0],
           (int)c->o.before[1], (int)c->o.before[2]);
  return text;
}

static void same (const Case *c, const char *what, Tensor *x,
                  const double *want) {
  double *got = values(x);
  for (int64_t i = 0; i < x->numel; i++)
    if (got[i] != want[i])
      fail_msg("%s, place %d: %.9g (expected %.9g)", describe(c, what), (int)i,
               got[i], want[i]);
}

static Tensor *image (const Case *c, int64_t channels, const int64_t *size,
                      fnn_Dtype t) {
  int64_t shape[5] = { c->n, channels };
  memcpy(shape + 2, size + 3 - c->dims, (size_t)c->dims * sizeof *size);
  return random_tensor(c->dims + 2, shape, t);
}

/* The options as the call takes them: of the last dims alone. */
static fnn_ConvOptions options_of (const Case *c) {
  fnn_ConvOptions o = FNN_CONV_INIT;
  size_t n = (size_t)c->dims * sizeof(int64_t);
  int from = 3 - c->dims;
  memcpy(o.stride, c->o.stride + from, n);
  memcpy(o.dilation, c->o.dilation + from, n);
  memcpy(o.before, c->o.before + from, n);
  memcpy(o.after, c->o.after + from, n);
  memcpy(o.output_padding, c->o.output_padding + from, n);
  o.groups = c->groups;
  o.act = c->o.act;
  return o;
}

static double relu_of (double x) { return x < 0 ? 0 : x; }

/* C with a bias, and both gradients of it. */
static void check_conv (const Case *c, fnn_Dtype t) {
  Tensor *x = image(c, c->cin, c->in, t), *gy = image(c, c->cout, c->out, t);
  int64_t shape[5] = { c->cout, c->cin / c->groups };
  memcpy(shape + 2, c->size + 3 - c->dims, (size_t)c->dims * 8);
  Tensor *w = random_tensor(c->dims + 2, shape, t);
  Tensor *b = random_tensor(1, &c->cout, t);
  double *bias = values(b), *gb = zeros(c->cout);
  Sums s = { values(x),        values(w),       values(gy),
             zeros(gy->numel), zeros(x->numel), zeros(w->numel) };
  int64_t places = gy->numel / max64(1, c->n * c->cout);
  fnn_ConvOptions o = options_of(c);
  memset(o.output_padding, 0, sizeof o.output_padding);
  each_product(c, add_products, &s);
  if (draw(2) == 0) x = fnn_channels_last(x);
  fnn_Param *p[3] = { fnn_param(x), fnn_param(w), fnn_param(b) };
  fnn_Tensor *g[3];
  bool plain = draw(2) == 0;
  if (plain) o.act = MAP_relu;
  for (int64_t i = 0; i < gy->numel; i++) {
    int64_t k = i / places % c->cout;
    s.y[i] += bias[k];
    gb[k] += s.gy[i];
    if (plain) s.y[i] = relu_of(s.y[i]);
  }
  fnn_grad_mode(!plain);
  Tensor *y = fnn_conv(fnn_value(p[0]), fnn_value(p[1]), fnn_value(p[2]), &o);
  fnn_grad_mode(true);
  assert_true(tensor_is_channels_last(y));
  same(c, "y", y, s.y);
  if (plain) return;
  fnn_grad(y, gy, 3, p, g, false);
  same(c, "gx", g[0], s.gx);
  same(c, "gw", g[1], s.gw);
  same(c, "gb", g[2], gb);
}

/* C' with a bias, and both gradients of it. */
static void check_transpose (const Case *c, fnn_Dtype t) {
  Tensor *x = image(c, c->cout, c->out, t), *gy = image(c, c->cin, c->in, t);
  int64_t shape[5] = { c->cout, c->cin / c->groups };
  memcpy(shape + 2, c->size + 3 - c->dims, (size_t)c->dims * 8);
  Tensor *w = random_tensor(c->dims + 2, shape, t);
  Tensor *b = random_tensor(1, &c->cin, t);
  double *bias = values(b), *gb = zeros(c->cin);
  Sums s = { values(gy),      values(w),        values(x),
             zeros(x->numel), zeros(gy->numel), zeros(w->numel) };
  int64_t places = gy->numel / max64(1, c->n * c->cin);
  fnn_ConvOptions o = options_of(c);
  each_product(c, add_products, &s);
  for (int64_t i = 0; i < gy->numel; i++) {
    s.gx[i] += bias[i / places % c->cin];
    gb[i / places % c->cin] += s.x[i];
  }
  fnn_Param *p[3] = { fnn_param(x), fnn_param(w), fnn_param(b) };
  fnn_Tensor *g[3];
  Tensor *y = fnn_conv_transpose(fnn_value(p[0]), fnn_value(p[1]),
                                 fnn_value(p[2]), &o);
  same(c, "transposed y", y, s.gx);
  fnn_grad(y, gy, 3, p, g, false);
  same(c, "transposed gx", g[0], s.y);
  same(c, "transposed gw", g[1], s.gw);
  same(c, "transposed gb", g[2], gb);
}

/* C's result from its input, or, for odd ends of C', the padding that makes
** it so; false if there is none. */
static bool finish_case (Case *c) {
  for (int d = 0; d < 3; d++) {
    int64_t reach = (c->size[d] - 1) * c->o.dilation[d] + 1;
    int64_t room = c->in[d] + c->o.before[d] + c->o.after[d] - reach;
    if (room < 0) return false;
    c->out[d] = room / c->o.stride[d] + 1;
    c->o.output_padding[d] = room % c->o.stride[d];
  }
  return true;
}

static void check (Case *c) {
  size_t mark = fnn_mark();
  fnn_Dtype t = draw(4) == 0 ? FNN_F64 : FNN_F32;
  if (finish_case(c)) {
    check_conv(c, t);
    check_transpose(c, t);
  }
  fnn_escape(mark, NULL);
}

static Case usual (int dims, int64_t n, int64_t cin, int64_t cout) {
  Case c = { .dims = dims, .n = n, .cin = cin, .cout = cout, .groups = 1 };
  for (int d = 0; d < 3; d++) {
    c.in[d] = c.size[d] = 1;
    c.o.stride[d] = c.o.dilation[d] = 1;
  }
  c.o.act = -1;
  return c;
}

TEST(convolutions_of_any_options_are_exact) {
  seed = 1;
  for (int i = 0; i < some_of(1500); i++) {
    int64_t groups = draw(3) == 0 ? 1 + draw(4) : 1;
    int64_t deep = draw(4) == 0 ? 40 : 5;
    Case c = usual(1 + (int)draw(3), 1 + draw(3), groups * (1 + draw(deep)),
                   groups * (1 + draw(deep)));
    c.groups = groups;
    for (int d = 3 - c.dims; d < 3; d++) {
      c.in[d] = 1 + draw(c.dims == 1 ? 60 : c.dims == 2 ? 12 : 6);
      c.size[d] = 1 + draw(4);
      c.o.stride[d] = draw(2) == 0 ? 1 : 1 + draw(3);
      c.o.dilation[d] = draw(2) == 0 ? 1 : 1 + draw(3);
      c.o.before[d] = draw(3) == 0 ? 0 : draw(6);
      c.o.after[d] = draw(3) == 0 ? c.o.before[d] : draw(6);
    }
    check(&c);
  }
}

TEST(depthwise_convolutions_are_exact) {
  seed = 2;
  for (int i = 0; i < some_of(300); i++) {
    int64_t channels = 2 + draw(40);
    Case c = usual(1 + (int)draw(3), 1 + draw(2), channels, channels);
    c.groups = channels;
    for (int d = 3 - c.dims; d < 3; d++) {
      c.in[d] = 1 + draw(c.dims == 1 ? 60 : c.dims == 2 ? 15 : 6);
      c.size[d] = 1 + draw(5);
      c.o.stride[d] = 1 + draw(3);
      c.o.dilation[d] = 1 + draw(2);
      c.o.before[d] = draw(4);
      c.o.after[d] = draw(4);
    }
    check(&c);
  }
}

/* More than one block of k, of places and of columns. */
TEST(large_convolutions_cross_every_block) {
  seed = 3;
  Case c = usual(2, 2, 130, 70);
  c.in[1] = 19, c.in[2] = 23;
  c.size[1] = c.size[2] = 3;
  c.o.before[1] = c.o.before[2] = c.o.after[1] = c.o.after[2] = 1;
  check(&c);
  c.o.stride[1] = c.o.stride[2] = 2;
  check(&c);
  if (mem_checking()) return;
  c = usual(2, 1, 3, 600);
  c.in[1] = 40, c.in[2] = 31;
  c.size[1] = c.size[2] = 5;
  check(&c);
  c = usual(1, 1, 600, 40);
  c.in[2] = 90;
  c.size[2] = 2;
  check(&c);
  c = usual(2, 3, 50, 90);
  c.in[1] = c.in[2] = 14;
  check(&c);
  c = usual(2, 40, 1, 16);
  c.in[1] = c.in[2] = 28;
  c.size[1] = c.size[2] = 3;
  c.o.before[1] = c.o.before[2] = c.o.after[1] = c.o.after[2] = 1;
  check(&c);
}

/* Runs C on a case of many tasks; the bits of all results in a row. */
static void bits (Tensor **r) {
  fnn_ConvOptions o = FNN_CONV_INIT;
  o.before[0] = o.before[1] = o.after[0] = o.after[1] = 1;
  fnn_Generator *g = fnn_generator("philox", 7);
  fnn_Param *p[2];
  p[0] = fnn_param(
      fnn_normal(4, (int64_t[]){ 4, 30, 33, 31 }, 0, 1, FNN_F32, NULL, g));
  p[1] = fnn_param(
      fnn_normal(4, (int64_t[]){ 50, 30, 3, 3 }, 0, 1, FNN_F32, NULL, g));
  r[0] = fnn_conv(fnn_value(p[0]), fnn_value(p[1]), NULL, &o);
  fnn_grad(r[0], r[0], 2, p, r + 1, true);
}

TEST(bits_do_not_depend_on_threads) {
  Tensor *one[3], *many[3];
  fnn_threads(1);
  bits(one);
  fnn_threads(3);
  bits(many);
  fnn_threads(0);
  for (int i = 0; i < 3; i++)
    assert_memory_equal(tensor_data(one[i]), tensor_data(many[i]),
                        (size_t)one[i]->numel * sizeof(float));
}

/* A frozen weight is packed once, and again after it has changed. */
TEST(kept_weights_follow_their_param) {
  fnn_ConvOptions o = FNN_CONV_INIT;
  seed = 4;
  fnn_Param *p =
      fnn_param(random_tensor(4, (int64_t[]){ 20, 10, 3, 3 }, FNN_F32));
  Tensor *x = random_tensor(4, (int64_t[]){ 1, 10, 6, 9 }, FNN_F32);
  Tensor *z = random_tensor(4, (int64_t[]){ 1, 20, 6, 9 }, FNN_F32);
  fnn_freeze(p, true);
  for (int turn = 0; turn < 6; turn++) {
    o.dilation[0] = o.dilation[1] = 1 + turn % 2;
    if (turn == 4) fnn_fill_(fnn_value(p), 0.5);
    Tensor *w = fnn_clone(fnn_value(p));
    double *y = values(fnn_conv(x, w, NULL, &o));
    double *back = values(fnn_conv_transpose(z, w, NULL, &o));
    Tensor *kept = fnn_conv(x, fnn_value(p), NULL, &o);
    Tensor *other = fnn_conv_transpose(z, fnn_value(p), NULL, &o);
    assert_memory_equal(values(kept), y, (size_t)kept->numel * sizeof *y);
    assert_memory_equal(values(other), back,
                        (size_t)other->numel * sizeof *back);
  }
}

static void conv_of (void *ud) {
  Tensor **t = ud;
  fnn_conv(t[0], t[1], NULL, NULL);
}

TEST(a_set_token_stops_a_convolution) {
  Tensor *t[2] = { random_tensor(4, (int64_t[]){ 4, 30, 40, 40 }, FNN_F32),
                   random_tensor(4, (int64_t[]){ 30, 30, 3, 3 }, FNN_F32) };
  fnn_cancel(fnn_cancel_token(fnn_current()));
  assert_int_equal(fnn_pcall(conv_of, t), FNN_ECANCEL);
}

/* Of a convolution that records, only what a gradient wanted reads is kept. */
TEST(nothing_is_kept_that_no_gradient_reads) {
  Tensor *x = random_tensor(4, (int64_t[]){ 1, 3, 9, 9 }, FNN_F32);
  Tensor *w = random_tensor(4, (int64_t[]){ 4, 3, 3, 3 }, FNN_F32);
  Tensor *b = random_tensor(1, (int64_t[]){ 4 }, FNN_F32);
  assert_null(fnn_conv(x, w, b, NULL)->source);
  Node *n = (Node *)fnn_conv(x, w, fnn_value(fnn_param(b)), NULL)->source;
  assert_null(n->save[0]);
  assert_null(n->save[1]);
  n = (Node *)fnn_conv(x, fnn_value(fnn_param(w)), b, NULL)->source;
  assert_non_null(n->save[0]);
  assert_null(n->save[1]);
}

/* Sums are compared bit by bit: no transformed tiles. */
static int open_exact (void **state) {
  int failed = open_context(state);
  fnn_exact_convolution(true);
  return failed;
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(convolutions_of_any_options_are_exact),
    cmocka_unit_test(depthwise_convolutions_are_exact),
    cmocka_unit_test(large_convolutions_cross_every_block),
    cmocka_unit_test(bits_do_not_depend_on_threads),
    cmocka_unit_test(kept_weights_follow_their_param),
    cmocka_unit_test(a_set_token_stops_a_convolution),
    cmocka_unit_test(nothing_is_kept_that_no_gradient_reads),
  };
  return cmocka_run_group_tests_name("conv", tests, open_exact, close_context);
}
