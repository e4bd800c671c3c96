/* recurrent_test.c - recurrent layers without Lua: a step by hand, a token that
** stops a long sequence, and what a node keeps. */

#include "cancelled.h"

#include <math.h>

static Tensor *matrix (int64_t rows, int64_t cols, const double *v) {
  return fnn_tensor(FNN_F64, 2, (int64_t[]){ rows, cols }, v);
}

static double at (Tensor *x, int64_t i) {
  return ((const double *)tensor_data(tensor_dense(x)))[i];
}

TEST(two_steps_by_hand) {
  double in[2] = { 2, -1 };
  Tensor *x = fnn_tensor(FNN_F64, 3, (int64_t[]){ 1, 2, 1 }, in), *last;
  fnn_Recurrent r = { .cell = FNN_RNN_TANH,
                      .w_ih = matrix(1, 1, (double[]){ 0.25 }),
                      .w_hh = matrix(1, 1, (double[]){ 0.5 }),
                      .h = matrix(1, 1, (double[]){ 1 }) };
  double h1 = tanh(0.5 + 0.5), h2 = tanh(-0.25 + 0.5 * h1);
  Tensor *y = fnn_recurrent(x, &r, &last, NULL);
  assert_float_equal(at(y, 0), h1, 1e-15);
  assert_float_equal(at(y, 1), h2, 1e-15);
  assert_float_equal(at(last, 0), h2, 1e-15);
  r.reverse = true;
  h1 = tanh(-0.25 + 0.5), h2 = tanh(0.5 + 0.5 * h1);
  y = fnn_recurrent(x, &r, &last, NULL);
  assert_float_equal(at(y, 1), h1, 1e-15);
  assert_float_equal(at(y, 0), h2, 1e-15);
  assert_float_equal(at(last, 0), h2, 1e-15);
}

static Tensor *random_tensor (int ndim, const int64_t *shape) {
  return fnn_uniform(ndim, shape, -0.1, 0.1, FNN_F32, NULL, NULL);
}

static void run_long (void *ud) {
  int64_t steps = is_slow() ? 1200 : 4000;
  fnn_recurrent(random_tensor(3, (int64_t[]){ 2, steps, 4 }), ud, NULL, NULL);
}

TEST(a_token_stops_a_long_sequence) {
  fnn_Recurrent r = { .cell = FNN_LSTM,
                      .w_ih = random_tensor(2, (int64_t[]){ 800, 4 }),
                      .w_hh = random_tensor(2, (int64_t[]){ 800, 200 }) };
  uint64_t live = fnn_memory().live;
  stops_early(run_long, &r);
  assert_int_equal(fnn_memory().live, live);
}

/* Only what a gradient wanted reads is kept. */
TEST(nothing_is_kept_that_no_gradient_reads) {
  Tensor *x = random_tensor(3, (int64_t[]){ 2, 3, 4 });
  Tensor *w = random_tensor(2, (int64_t[]){ 6, 4 });
  Tensor *u = random_tensor(2, (int64_t[]){ 6, 2 }), *h;
  fnn_Recurrent r = { .cell = FNN_GRU, .w_ih = w, .w_hh = u };
  assert_null(fnn_recurrent(x, &r, NULL, NULL)->source);
  r.w_ih = fnn_value(fnn_param(w));
  fnn_recurrent(x, &r, &h, NULL);
  Node *n = (Node *)((Node *)h->source)->in[0];
  assert_non_null(n->save[0]);
  assert_null(n->save[1]);
  r.w_ih = w;
  fnn_recurrent(fnn_value(fnn_param(x)), &r, &h, NULL);
  n = (Node *)((Node *)h->source)->in[0];
  assert_null(n->save[0]);
  assert_non_null(n->save[1]);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_steps_by_hand),
    cmocka_unit_test(a_token_stops_a_long_sequence),
    cmocka_unit_test(nothing_is_kept_that_no_gradient_reads),
  };
  return cmocka_run_group_tests_name("recurrent", tests, open_context,
                                     close_context);
}
