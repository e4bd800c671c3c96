/* attention_test.c - what of attention a script cannot see: that a long one
** stops when it is told to. */

#include "test.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../src/core/ops.h"

enum { LENGTH = 16384, SIZE = 64, WAIT_MS = 30 };

static fnn_Cancel *token;
static struct timespec set_at;

static void *cancel_soon (void *ud) {
  (void)ud;
  usleep(WAIT_MS * 1000);
  clock_gettime(CLOCK_MONOTONIC, &set_at);
  fnn_cancel(token);
  return NULL;
}

/* Seconds since the token was set. */
static double since_set (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)(t.tv_sec - set_at.tv_sec) +
         (double)(t.tv_nsec - set_at.tv_nsec) * 1e-9;
}

/* f must end by the token, in less time than a core that others use, too, has
** for a few tasks. */
static void stops (void (*f)(void *), void *ud) {
  pthread_t thread;
  token = fnn_cancel_token(fnn_current());
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
  fnn_Status s = fnn_pcall(f, ud);
  pthread_join(thread, NULL);
  assert_int_equal(s, FNN_ECANCEL);
  assert_true(since_set() < 1);
}

static void forward (void *ud) {
  fnn_Tensor *x = ud;
  fnn_scaled_dot_product_attention(x, x, x, &(fnn_Attention){ .scale = 1 });
}

static void backward (void *ud) { fnn_backward(ud, NULL, false); }

static fnn_Tensor *zeros (int64_t length) {
  return fnn_full(2, (int64_t[]){ length, SIZE }, 0, FNN_F32, NULL);
}

TEST(a_set_token_stops_forward) { stops(forward, zeros(LENGTH)); }

TEST(a_set_token_stops_backward) {
  fnn_Tensor *x = fnn_value(fnn_param(zeros(LENGTH / 2)));
  fnn_Tensor *y = fnn_scaled_dot_product_attention(
      x, x, x, &(fnn_Attention){ .scale = 1 });
  stops(backward, fnn_sum(y, 0, NULL, false));
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_set_token_stops_forward),
    cmocka_unit_test(a_set_token_stops_backward),
  };
  return cmocka_run_group_tests_name("attention", tests, open_context,
                                     close_context);
}
