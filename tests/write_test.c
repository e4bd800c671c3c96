/* write_test.c - writes in place: counted before a cancel can stop them
** half-way, and refused over memory that may not be written. */

#include "test.h"

#include "../src/core/ops.h"
#include "../src/fnn_nn.h"

enum { N = 1 << 20 }; /* elements: several tasks */

static Tensor *filled (double v, fnn_Dtype t) {
  return fnn_full(1, (int64_t[]){ N }, v, t, NULL);
}

static Tensor *x, *y;
static Param *p;
static fnn_Optimizer *sgd;

static void do_fill (void *ud) { (void)ud, fnn_fill_(x, 3); }
static void do_copy (void *ud) { (void)ud, fnn_copy_(x, y); }
static void do_map (void *ud) { (void)ud, fnn_map_(MAP_neg, x, 0, 0); }
static void do_zip (void *ud) { (void)ud, fnn_zip_(ZIP_add, x, y); }
static void do_number (void *ud) { (void)ud, fnn_zip_number_(ZIP_add, x, 1); }
static void do_set (void *ud) { (void)ud, fnn_set_value(p, y); }
static void do_step (void *ud) { (void)ud, fnn_optimizer_step(sgd); }
static void do_norm (void *ud) { (void)ud, fnn_clip_grad_norm(1, &p, 1e-3); }
static void do_clamp (void *ud) { (void)ud, fnn_clip_grad_value(1, &p, 1e-3); }

/* f is stopped; what it writes must not look as if it had not been. */
static void cancelled_write (const Tensor *to, void (*f)(void *)) {
  unsigned before = to->storage->version;
  fnn_cancel(fnn_cancel_token(test_context));
  throws(FNN_ECANCEL, "cancelled", f, NULL);
  assert_true(to->storage->version != before);
}

static void make_param (Tensor *value, Tensor *gradient) {
  p = fnn_param(value);
  fnn_set_gradient(p, gradient);
  sgd = fnn_optimizer("SGD");
  fnn_optimizer_group(sgd, 1, &p, 1, &(fnn_Option){ "lr", { 0.1 } });
}

TEST(a_cancelled_write_is_counted) {
  x = filled(1, FNN_F32);
  y = filled(2, FNN_F32);
  make_param(filled(1, FNN_F32), filled(1, FNN_F32));
  cancelled_write(x, do_fill);
  cancelled_write(x, do_copy);
  cancelled_write(x, do_map);
  cancelled_write(x, do_zip);
  cancelled_write(x, do_number);
  cancelled_write(fnn_value(p), do_set);
  cancelled_write(fnn_value(p), do_step);
}

static float host_memory[N];

TEST(read_only_memory_is_not_written) {
  int64_t n = N;
  Tensor *fixed = fnn_wrap(FNN_F32, 1, &n, host_memory, NULL, NULL, true);
  make_param(fixed, filled(1, FNN_F32));
  throws(FNN_EARG, "SGD: the tensor of shape (1048576) is read-only", do_step,
         NULL);
  host_memory[0] = 1;
  make_param(filled(1, FNN_F32), fixed);
  throws(FNN_EARG,
         "clip_grad_norm: the tensor of shape (1048576) is read-only", do_norm,
         NULL);
  throws(FNN_EARG,
         "clip_grad_value: the tensor of shape (1048576) is read-only",
         do_clamp, NULL);
  assert_true(host_memory[0] == 1);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cancelled_write_is_counted),
    cmocka_unit_test(read_only_memory_is_not_written),
  };
  return cmocka_run_group_tests_name("write", tests, open_context,
                                     close_context);
}
