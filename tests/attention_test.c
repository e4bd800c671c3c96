/* attention_test.c - what of attention a script cannot see: that a long one
** stops when it is told to. */

#include "cancelled.h"

enum { SIZE = 64 };

static void forward (void *ud) {
  fnn_Tensor *x = ud;
  fnn_scaled_dot_product_attention(x, x, x, &(fnn_Attention){ .scale = 1 });
}

static void backward (void *ud) { fnn_backward(ud, NULL, true); }

static fnn_Tensor *zeros (void) {
  int64_t length = is_slow() ? 1024 : 4096;
  return fnn_full(2, (int64_t[]){ length, SIZE }, 0, FNN_F32, NULL);
}

TEST(a_set_token_stops_forward) { stops_early(forward, zeros()); }

TEST(a_set_token_stops_backward) {
  fnn_Tensor *x = fnn_value(fnn_param(zeros()));
  fnn_Tensor *y = fnn_scaled_dot_product_attention(
      x, x, x, &(fnn_Attention){ .scale = 1 });
  stops_early(backward, fnn_sum(y, 0, NULL, false));
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_set_token_stops_forward),
    cmocka_unit_test(a_set_token_stops_backward),
  };
  return cmocka_run_group_tests_name("attention", tests, open_context,
                                     close_context);
}
