/* param_test.c - what is derived from a weight and kept with it. */

#include "test.h"

static int destroyed;

static void copy_destroy (void *o) { (void)o, destroyed++; }

static const Type copy_type = { "copy", copy_destroy };
enum { N = 1000 }; /* elements of a weight: alone in their size class */

static const char packed = 0, transformed = 0;

/* An object as a packed copy would be, with its frame's reference alone. */
static void *copy_new (void) { return object_new(&copy_type, 64); }

static void derive (Param *p, const void *key) {
  size_t m = fnn_mark();
  param_derive(p, key, copy_new());
  fnn_escape(m, NULL);
}

static Param *weight (void) {
  return fnn_param(fnn_full(1, (int64_t[]){ N }, 1, FNN_F32, NULL));
}

TEST(each_key_has_its_object) {
  Param *p = weight();
  destroyed = 0;
  assert_null(param_derived(p, &packed));
  derive(p, &packed);
  derive(p, &transformed);
  void *a = param_derived(p, &packed), *b = param_derived(p, &transformed);
  assert_non_null(a);
  assert_non_null(b);
  assert_ptr_not_equal(a, b);
  derive(p, &packed); /* takes the place of the first */
  assert_int_equal(destroyed, 1);
  assert_non_null(param_derived(p, &packed));
  assert_ptr_equal(param_derived(p, &transformed), b);
}

TEST(the_param_destroys_what_is_derived) {
  size_t m = fnn_mark();
  destroyed = 0;
  derive(weight(), &packed);
  assert_int_equal(destroyed, 0);
  fnn_escape(m, NULL);
  assert_int_equal(destroyed, 1);
}

TEST(a_write_ends_it) {
  Param *p = weight();
  destroyed = 0;
  derive(p, &packed);
  fnn_set_value(p, fnn_full(1, (int64_t[]){ N }, 2, FNN_F32, NULL));
  assert_null(param_derived(p, &packed));
  assert_int_equal(destroyed, 1);
  derive(p, &packed);
  fnn_mutable_data(fnn_detach(fnn_value(p))); /* through another view */
  derive(p, &transformed);
  assert_null(param_derived(p, &packed));
  assert_non_null(param_derived(p, &transformed));
}

/* A weight that is converted and back may get its first storage again: the
** same address and the same count of writes. */
TEST(a_recycled_storage_is_another) {
  size_t m = fnn_mark();
  Param *p = fnn_escape(m, weight());
  const fnn_Storage *first = fnn_value(p)->storage;
  unsigned version = first->version;
  destroyed = 0;
  derive(p, &packed);
  m = fnn_mark();
  fnn_param_to(p, device_cpu(), FNN_F64);
  fnn_escape(m, NULL);
  assert_int_equal(destroyed, 1);
  fnn_param_to(p, device_cpu(), FNN_F32);
  if (!mem_checking()) {
    assert_ptr_equal(fnn_value(p)->storage, first);
    assert_int_equal(first->version, version);
  }
  assert_null(param_derived(p, &packed));
}

TEST(freezing_changes_nothing) {
  Param *p = weight();
  derive(p, &packed);
  fnn_freeze(p, true);
  assert_ptr_equal(param_of(fnn_value(p)), p);
  assert_false(fnn_has_graph(fnn_value(p)));
  assert_false(fnn_has_graph(fnn_exp(fnn_value(p))));
  assert_non_null(param_derived(p, &packed));
  fnn_freeze(p, false);
  assert_true(fnn_has_graph(fnn_exp(fnn_value(p))));
  assert_null(param_of(fnn_detach(fnn_value(p))));
}

/* What a host may write at any time is not trusted; what it may not, is. */
TEST(memory_of_the_host_is_not_derived_from) {
  float data[3] = { 1, 2, 3 };
  int64_t n = 3;
  for (int readonly = 0; readonly < 2; readonly++) {
    Tensor *x = fnn_wrap(FNN_F32, 1, &n, data, NULL, NULL, readonly);
    Param *p = fnn_param(x);
    derive(p, &packed);
    assert_int_equal(param_derived(p, &packed) != NULL, readonly);
  }
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_key_has_its_object),
    cmocka_unit_test(the_param_destroys_what_is_derived),
    cmocka_unit_test(a_write_ends_it),
    cmocka_unit_test(a_recycled_storage_is_another),
    cmocka_unit_test(freezing_changes_nothing),
    cmocka_unit_test(memory_of_the_host_is_not_derived_from),
  };
  return cmocka_run_group_tests_name("param", tests, open_context,
                                     close_context);
}
