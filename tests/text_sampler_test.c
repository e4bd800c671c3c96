/* text_sampler_test.c - samplers in C: ids, histories, what is refused, and
** memory that stays as it is. */

#include "test.h"

#include <math.h>

#include "../src/text/text.h"

static fnn_Tensor *logits (double a, double b, double c) {
  return fnn_tensor(FNN_F64, 1, (int64_t[]){ 3 }, (double[]){ a, b, c });
}

static fnn_Sampler *sampler (double temperature, int64_t top_k,
                             uint64_t seed) {
  fnn_SamplerOptions o = FNN_SAMPLER_INIT;
  o.temperature = temperature;
  o.top_k = top_k;
  return fnn_sampler(&o, fnn_generator("philox", seed));
}

static int64_t sample (fnn_Sampler *s, fnn_Tensor *x) {
  int64_t id = -1;
  fnn_sample(s, x, NULL, NULL, &id);
  return id;
}

TEST(chooses) {
  assert_int_equal(sample(sampler(0, INT64_MAX, 1), logits(1, 3, 3)), 1);
  assert_int_equal(sample(sampler(100, 1, 1), logits(1, 2, 3)), 2);
  fnn_Sampler *s = sampler(1, INT64_MAX, 3), *t = sampler(1, INT64_MAX, 3);
  for (int i = 0; i < 20; i++)
    assert_int_equal(sample(s, logits(1, 2, 3)), sample(t, logits(1, 2, 3)));
}

/* 1/4, 1/2, 1/4 in 40,000 draws: within 5 standard deviations. */
TEST(draws_by_probability) {
  fnn_Sampler *s = sampler(0.5, INT64_MAX, 9);
  double half = log(2) / 2;
  fnn_Tensor *x = logits(0, half, 0);
  int count[3] = { 0 };
  for (int i = 0; i < 40000; i++) count[sample(s, x)]++;
  assert_true(abs(count[0] - 10000) < 5 * 87);
  assert_true(abs(count[1] - 20000) < 5 * 100);
}

TEST(looks_at_histories) {
  fnn_SamplerOptions o = FNN_SAMPLER_INIT;
  int64_t ids[2], history[] = { 1, 1, 0 }, count[] = { 2, 1 };
  o.temperature = 0;
  o.frequency_penalty = 0.25;
  assert_false(fnn_sampler_penalizes(sampler(1, 1, 1)));
  fnn_Sampler *s = fnn_sampler(&o, NULL);
  assert_true(fnn_sampler_penalizes(s));
  fnn_Tensor *x = fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 2 },
                             (float[]){ 1, 1.25f, 1, 1.125f });
  fnn_sample(s, x, history, count, ids);
  assert_int_equal(ids[0], 0);
  assert_int_equal(ids[1], 1);
  fnn_sample(s, x, NULL, NULL, ids);
  assert_int_equal(ids[0], 1);
}

TEST(makes_no_memory_from_the_second_call_on) {
  fnn_SamplerOptions o = FNN_SAMPLER_INIT;
  int64_t n = 5000, id, history[] = { 1, 4999 }, count = 2;
  o.top_k = 100;
  o.top_p = 0.9;
  o.min_p = 0.01;
  o.presence_penalty = 1;
  fnn_Sampler *s = fnn_sampler(&o, NULL);
  fnn_Tensor *x = fnn_normal(1, &n, 0, 1, FNN_F32, NULL, NULL);
  fnn_sample(s, x, history, &count, &id);
  fnn_Memory before = fnn_memory();
  for (int i = 0; i < 50; i++) fnn_sample(s, x, history, &count, &id);
  fnn_Memory after = fnn_memory();
  assert_int_equal(after.live, before.live);
  assert_int_equal(after.peak, before.peak);
  assert_int_equal(after.objects, before.objects);
  assert_int_equal(after.allocations, before.allocations);
}

static void no_share (void *ud) {
  fnn_SamplerOptions o = FNN_SAMPLER_INIT;
  o.top_p = *(double *)ud;
  fnn_sampler(&o, NULL);
}

static void no_number (void *ud) { sample(ud, logits(1, NAN, 3)); }

static void no_id (void *ud) {
  int64_t history = 3, count = 1, id;
  fnn_SamplerOptions o = FNN_SAMPLER_INIT;
  (void)ud;
  o.repetition_penalty = 2;
  fnn_sample(fnn_sampler(&o, NULL), logits(1, 2, 3), &history, &count, &id);
}

static void many_rows (void *ud) {
  int64_t *ids = ud;
  fnn_Tensor *x = fnn_zeros(2, (int64_t[]){ 4, 3 }, FNN_F32, NULL);
  fnn_Sampler *s = sampler(0, INT64_MAX, 1);
  fnn_cancel(fnn_cancel_token(fnn_current()));
  fnn_sample(s, x, NULL, NULL, ids);
}

TEST(can_be_cancelled) {
  int64_t ids[4] = { -1, -1, -1, -1 };
  throws(FNN_ECANCEL, "", many_rows, ids);
  assert_int_equal(ids[0], -1);
}

TEST(names_mistakes) {
  throws(FNN_EARG, "Sampler: option 'top_p': expected a number above 0",
         no_share, (double[]){ 0 });
  throws(FNN_EARG, "top_p': expected a number above 0, at most 1, got nan",
         no_share, (double[]){ NAN });
  throws(FNN_EARG, "the logit of id 1 is nan", no_number, sampler(1, 2, 1));
  throws(FNN_EARG, "id 3 in the history is out of range", no_id, NULL);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(chooses),
    cmocka_unit_test(draws_by_probability),
    cmocka_unit_test(looks_at_histories),
    cmocka_unit_test(makes_no_memory_from_the_second_call_on),
    cmocka_unit_test(can_be_cancelled),
    cmocka_unit_test(names_mistakes),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
