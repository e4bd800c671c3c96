/* data_digits_test.c - the digits that the library carries. */

#include "../src/fnn_nn.h"

#include "io_test.h"

/* The sums are of the original file: 561718 over all pixels; how many there
** are of each digit; the first image's first and last ink. */
TEST(are_the_originals) {
  static const int want[10] = { 178, 182, 177, 183, 181,
                                182, 181, 179, 174, 180 };
  Tensor *y, *x = fnn_digits(&y);
  const uint8_t *p = tensor_data(x);
  const int64_t *id = tensor_data(y);
  int64_t sum = 0, most = 0;
  int count[10] = { 0 };
  assert_true(x->ndim == 3 && x->shape[0] == 1797 && x->shape[1] == 8 &&
              x->shape[2] == 8 && y->ndim == 1 && y->numel == 1797);
  for (int64_t i = 0; i < x->numel; i++) {
    sum += p[i];
    most = max64(most, p[i]);
  }
  for (int64_t i = 0; i < y->numel; i++) count[id[i]]++;
  assert_int_equal(sum, 561718);
  assert_int_equal(most, 16);
  assert_memory_equal(count, want, sizeof want);
  assert_true(p[2] == 5 && p[3] == 13 && p[60] == 10 && id[0] == 0);
  assert_true(id[1] == 1 && id[1796] == 8);
}

int main (void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(are_the_originals) };
  return cmocka_run_group_tests(tests, start, stop);
}
