/* nn_loss_test.c - losses in C: values, slopes, the same bits for any number
** of threads, and what is refused. */

#include "test.h"

#include <math.h>

#include "../src/nn/nn.h"

static Tensor *vector (double a, double b) {
  return fnn_tensor(FNN_F64, 1, (int64_t[]){ 2 }, (double[]){ a, b });
}

static double at (Tensor *x, int i) {
  return dtype_get((fnn_Dtype)x->dtype, fnn_data(fnn_contiguous(x)), i);
}

TEST(reduces) {
  Tensor *x = vector(0.5, 3), *t = vector(0, 0);
  assert_float_equal(fnn_item(fnn_mse(x, t, FNN_MEAN)), 4.625, 1e-12);
  assert_float_equal(fnn_item(fnn_l1(x, t, FNN_SUM)), 3.5, 1e-12);
  Tensor *each = fnn_huber(x, t, 1, FNN_NONE);
  assert_float_equal(at(each, 0), 0.125, 1e-12);
  assert_float_equal(at(each, 1), 2.5, 1e-12);
}

TEST(gives_both_their_slopes) {
  fnn_Param *x = fnn_param(vector(0.5, 3)), *t = fnn_param(vector(0, 1));
  fnn_backward(fnn_mse(fnn_value(x), fnn_value(t), FNN_MEAN), NULL, false);
  assert_float_equal(at(fnn_gradient(x), 0), 0.5, 1e-12);
  assert_float_equal(at(fnn_gradient(x), 1), 2, 1e-12);
  assert_float_equal(at(fnn_gradient(t), 1), -2, 1e-12);
}

TEST(takes_options_of_ids) {
  Tensor *x = fnn_log(
      fnn_tensor(FNN_F64, 2, (int64_t[]){ 1, 2 }, (double[]){ 0.25, 0.75 }));
  Tensor *id = fnn_tensor(FNN_I64, 1, (int64_t[]){ 1 }, (int64_t[]){ 1 });
  fnn_LossOptions o = FNN_LOSS_INIT;
  assert_float_equal(fnn_item(fnn_nll(x, id, NULL)), -log(0.75), 1e-12);
  o.label_smoothing = 0.2;
  assert_float_equal(fnn_item(fnn_cross_entropy(x, id, &o)),
                     -0.1 * log(0.25) - 0.9 * log(0.75), 1e-12);
  o.ignore_index = 1;
  assert_float_equal(fnn_item(fnn_cross_entropy(x, id, &o)), 0, 0);
}

TEST(counts_ways) {
  const int64_t two = 2, one = 1;
  Tensor *x = fnn_full(2, (int64_t[]){ 2, 2 }, log(0.5), FNN_F64, NULL);
  Tensor *ids = fnn_tensor(FNN_I64, 1, &one, &one);
  Tensor *steps = fnn_tensor(FNN_I64, 1, &one, &two);
  Tensor *y = fnn_ctc(x, ids, steps, ids, 0, false, FNN_SUM);
  assert_float_equal(fnn_item(y), log(4.0 / 3), 1e-12);
}

/* The bits do not depend on who sums which part. */
TEST(sums_alike_for_any_threads) {
  const int64_t n = 300001;
  fnn_Generator *g = fnn_generator("philox", 5);
  Tensor *x = fnn_normal(1, &n, 0, 1, FNN_F32, NULL, g);
  Tensor *t = fnn_normal(1, &n, 0, 1, FNN_F32, NULL, g);
  int before = fnn_thread_count();
  double first = 0;
  for (int k = 1; k <= 4; k++) {
    fnn_threads(k);
    double v = fnn_item(fnn_mse(x, t, FNN_MEAN));
    if (k == 1) first = v;
    assert_true(v == first);
  }
  fnn_threads(before);
}

static void no_shape (void *ud) {
  fnn_mse(vector(1, 2), fnn_zeros(0, NULL, FNN_F64, NULL), FNN_MEAN);
  (void)ud;
}

static void no_reduction (void *ud) {
  fnn_mse(vector(1, 2), vector(1, 2), FNN_BATCHMEAN);
  (void)ud;
}

static void no_delta (void *ud) {
  fnn_huber(vector(1, 2), vector(1, 2), NAN, FNN_MEAN);
  (void)ud;
}

static void no_margin (void *ud) {
  fnn_hinge(vector(1, 2), vector(1, -1), INFINITY, FNN_MEAN);
  (void)ud;
}

static void no_chance (void *ud) {
  fnn_bce(vector(0.5, NAN), vector(1, 0), NULL, FNN_MEAN);
  (void)ud;
}

static void no_rows (void *ud) {
  Tensor *x = fnn_zeros(0, NULL, FNN_F32, NULL);
  fnn_triplet(x, x, x, 1, 2, 1e-6, false, FNN_MEAN);
  (void)ud;
}

TEST(names_mistakes) {
  throws(FNN_ESHAPE, "mse: the prediction has shape (2), the target ()",
         no_shape, NULL);
  throws(FNN_EARG, "mse: reduction: expected mean, sum or none", no_reduction,
         NULL);
  throws(FNN_EARG, "huber: delta must be greater than 0 (got nan)", no_delta,
         NULL);
  throws(FNN_EARG, "hinge: margin must be a finite number (got inf)",
         no_margin, NULL);
  throws(FNN_EARG, "bce: predictions must lie in 0 .. 1 (got nan", no_chance,
         NULL);
  throws(FNN_ESHAPE, "triplet: expected rows of vectors, got shape ()",
         no_rows, NULL);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reduces),
    cmocka_unit_test(gives_both_their_slopes),
    cmocka_unit_test(takes_options_of_ids),
    cmocka_unit_test(counts_ways),
    cmocka_unit_test(sums_alike_for_any_threads),
    cmocka_unit_test(names_mistakes),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
