/* nn_norm_test.c - layers of norms and pools from C: a step in which each
** allocation fails in turn leaves nothing behind, and changes no buffer by
** half. */

#include "test.h"

#include "../src/fnn_nn.h"

/* A host that has no memory after some allocations. */
typedef struct Host {
  int64_t left, live;
} Host;

static void *host_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  Host *h = ud;
  (void)osize;
  if (nsize == 0) {
    if (p != NULL) h->live--;
    free(p);
    return NULL;
  }
  if (h->left-- <= 0) return NULL;
  if (p == NULL) h->live++;
  return realloc(p, nsize);
}

static Tensor *layers (Tensor *x) {
  const fnn_PoolOptions pool = { .dims = 2, .kernel = { 2, 2 } };
  fnn_Module *batch = fnn_nn_batch_norm(2, x->shape[1], NULL, FNN_F32, NULL);
  fnn_Module *group =
      fnn_nn_group_norm(2, x->shape[1], 1e-5, true, FNN_F32, NULL);
  fnn_Module *rms =
      fnn_nn_rms_norm(1, (int64_t[]){ 6 }, 1e-6, true, FNN_F32, NULL);
  Tensor *y = fnn_max_pool(fnn_forward(batch, x), &pool, NULL);
  y = fnn_interpolate(fnn_forward(group, y), (int64_t[]){ 3, 6 }, NULL,
                      FNN_LINEAR, false, false);
  y = fnn_avg_pool(fnn_forward(rms, y), &pool);
  return fnn_glu(fnn_adaptive_max_pool(y, 2, (int64_t[]){ 1, 2 }, NULL), -1);
}

static void step (void *ud) {
  bool last = *(bool *)ud;
  Tensor *x =
      fnn_uniform(4, (int64_t[]){ 3, 4, 6, 6 }, -1, 1, FNN_F32, NULL, NULL);
  fnn_Param *p = fnn_param(x);
  x = fnn_value(p);
  Tensor *y = layers(last ? fnn_channels_last(x) : x);
  fnn_backward(fnn_sum(y, 0, NULL, false), NULL, false);
  assert_non_null(fnn_gradient(p));
}

static void a_failed_allocation_leaks_nothing (void **state) {
  (void)state;
  for (int last = 0; last < 2; last++) {
    fnn_Status status = FNN_EMEMORY;
    int n = 0;
    for (; status != FNN_OK; n++) {
      Host h = { INT32_MAX, 0 };
      fnn_Host host = FNN_HOST_INIT;
      host.alloc = host_alloc;
      host.ud = &h;
      fnn_Context *c = fnn_open(&host);
      fnn_use(c);
      h.left = n;
      status = fnn_pcall(step, &(bool){ last });
      if (status != FNN_OK) assert_int_equal(status, FNN_EMEMORY);
      assert_int_equal(fnn_memory().nodes, 0);
      h.left = INT32_MAX;
      fnn_close(c);
      assert_int_equal(h.live, 0);
      assert_true(n < 5000);
    }
    print_message("# %d allocations\n", n);
  }
  fnn_use(test_context);
}

TEST(batch_norm_counts_batches) {
  fnn_BatchNormOptions o = FNN_BATCH_NORM_INIT;
  fnn_Member e;
  o.momentum = -1;
  fnn_Module *m = fnn_nn_batch_norm(1, 1, &o, FNN_F32, NULL);
  for (int i = 0; i < 3; i++) {
    const float x[] = { (float)i, (float)i + 2 };
    fnn_forward(m, fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 1 }, x));
  }
  assert_true(fnn_member(m, 2, &e));
  assert_string_equal(e.name, "running_mean");
  assert_float_equal(fnn_item(e.buffer), 2, 1e-6);
  assert_true(fnn_member(m, 4, &e));
  assert_string_equal(e.name, "num_batches_tracked");
  assert_int_equal(fnn_item(e.buffer), 3);
}

static void four_dims (void *ud) {
  (void)ud;
  fnn_nn_batch_norm(4, 1, NULL, FNN_F32, NULL);
}
static void no_dims (void *ud) {
  Tensor *x = fnn_zeros(1, (int64_t[]){ 3 }, FNN_F32, NULL);
  (void)ud;
  fnn_max_pool(x, &(fnn_PoolOptions){ .dims = 3 }, NULL);
}

TEST(dims_are_checked) {
  throws(FNN_EARG, "BatchNorm: expected 1 to 3 dims, got 4", four_dims, NULL);
  throws(FNN_EARG, "pool: expected 1 or 2 dims, got 3", no_dims, NULL);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_failed_allocation_leaks_nothing),
    cmocka_unit_test(batch_norm_counts_batches),
    cmocka_unit_test(dims_are_checked),
  };
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return cmocka_run_group_tests(tests, open_context, close_context);
}
