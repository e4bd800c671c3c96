/* nn_test.c - modules in C: parts, ties, modes, moves, and what each layer
** computes without Lua. */

#include "test.h"

#include <math.h>

#include "../src/nn/nn.h"

/* A module with a part of each kind: x scale + shift, then child. */
typedef struct Whole {
  fnn_Module m;
  fnn_Param *scale;
  Tensor *shift;
  fnn_Module *child;
} Whole;

static Tensor *forward (fnn_Module *m, Tensor *x) {
  Whole *w = (Whole *)m;
  x = fnn_add(fnn_mul(x, fnn_value(w->scale)), w->shift);
  return fnn_forward(w->child, x);
}

static const Class whole_class = { { "Whole", module_destroy },
                                   forward,
                                   NULL };

static Tensor *vector (double a, double b) {
  float v[2] = { (float)a, (float)b };
  return fnn_tensor(FNN_F32, 1, (int64_t[]){ 2 }, v);
}

static Whole *whole_new (void) {
  Whole *w = module_new(&whole_class, sizeof *w);
  module_param(&w->m, "scale", &w->scale, vector(2, 3));
  module_buffer(&w->m, "shift", &w->shift, vector(1, -1));
  module_child(&w->m, "child", &w->child,
               fnn_nn_linear(2, 2, true, FNN_F32, NULL, NULL));
  return w;
}

static double at (Tensor *x, int i) {
  return dtype_get((fnn_Dtype)x->dtype, fnn_data(fnn_contiguous(x)), i);
}

TEST(names_parts) {
  fnn_Module *m = &whole_new()->m;
  fnn_Member e;
  assert_string_equal(fnn_module_class(m), "Whole");
  assert_true(fnn_member(m, 0, &e));
  assert_string_equal(e.name, "scale");
  assert_non_null(e.param);
  assert_true(fnn_member(m, 1, &e));
  assert_string_equal(e.name, "shift");
  assert_non_null(e.buffer);
  assert_null(e.param);
  assert_true(fnn_member(m, 2, &e));
  assert_string_equal(fnn_module_class(e.child), "Linear");
  assert_false(fnn_member(m, 3, &e));
  assert_false(fnn_member(m, -1, &e));
}

TEST(computes) {
  Whole *w = whole_new();
  fnn_Member weight, bias;
  fnn_member(w->child, 0, &weight);
  fnn_member(w->child, 1, &bias);
  float m[4] = { 1, 2, 0, -1 };
  fnn_set_value(weight.param, fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 2 }, m));
  fnn_set_value(bias.param, vector(0.5, 0));
  Tensor *x = fnn_unsqueeze(vector(1, 2), 0);
  Tensor *y = fnn_forward(&w->m, x); /* of (3, 5) */
  assert_float_equal(at(y, 0), 13.5, 1e-6);
  assert_float_equal(at(y, 1), -5, 1e-6);
}

TEST(collects_parameters_once) {
  Whole *w = whole_new();
  fnn_Param *p[8];
  assert_int_equal(fnn_parameters(&w->m, NULL, 0), 3);
  assert_int_equal(fnn_parameters(&w->m, p, 8), 3);
  assert_ptr_equal(p[0], w->scale);
  fnn_member_param(w->child, "bias", w->scale); /* tied */
  assert_int_equal(fnn_parameters(&w->m, p, 8), 2);
}

TEST(reaches_children) {
  Whole *w = whole_new();
  assert_true(fnn_is_training(w->child));
  fnn_train(&w->m, false);
  assert_false(fnn_is_training(&w->m));
  assert_false(fnn_is_training(w->child));
  fnn_Param *scale = w->scale;
  fnn_module_to(&w->m, fnn_device("cpu"), FNN_F64);
  assert_ptr_equal(w->scale, scale);
  assert_int_equal(fnn_value(scale)->dtype, FNN_F64);
  assert_int_equal(w->shift->dtype, FNN_F64);
  fnn_Member e;
  fnn_member(w->child, 0, &e);
  assert_int_equal(fnn_value(e.param)->dtype, FNN_F64);
}

static void no_such_part (void *m) { fnn_member_param(m, "bais", NULL); }
static void wrong_kind (void *m) { fnn_member_buffer(m, "scale", NULL); }
static void wrong_shape (void *m) {
  fnn_member_buffer(m, "shift", fnn_zeros(1, (int64_t[]){ 3 }, FNN_F32, NULL));
}
static void no_function (void *m) {
  fnn_forward(module_plain(), ((Whole *)m)->shift);
}
static void no_size (void *ud) {
  (void)ud;
  fnn_nn_linear(0, 2, true, FNN_F32, NULL, NULL);
}
static void no_fan (void *ud) {
  (void)ud;
  fnn_init_std(1, (int64_t[]){ 3 }, FNN_FAN_IN, 1);
}

TEST(names_mistakes) {
  Whole *w = whole_new();
  throws(FNN_EARG, "Whole has no part 'bais'", no_such_part, w);
  throws(FNN_EARG, "Whole.scale is no buffer", wrong_kind, w);
  throws(FNN_ESHAPE, "Whole.shift: expected shape (2), got (3)", wrong_shape,
         w);
  throws(FNN_EARG, "Module: a module without a function", no_function, w);
  throws(FNN_EARG, "at least 1, got in 0 and out 2", no_size, NULL);
  throws(FNN_ESHAPE, "at least 2 dims (got shape (3))", no_fan, NULL);
}

TEST(tells_what_it_was_made_with) {
  char text[64];
  fnn_module_text(fnn_nn_linear(3, 4, false, FNN_F32, NULL, NULL), text,
                  sizeof text);
  assert_string_equal(text, "3, 4, { bias = false }");
  fnn_module_text(
      fnn_nn_layer_norm(2, (int64_t[]){ 3, 4 }, 1e-5, true, FNN_F32, NULL),
      text, sizeof text);
  assert_string_equal(text, "{ 3, 4 }");
  fnn_module_text(fnn_nn_dropout(0.25, NULL), text, 3);
  assert_string_equal(text, "0.");
}

TEST(spreads_by_fan) {
  const int64_t shape[4] = { 8, 4, 3, 3 };
  assert_float_equal(fnn_init_std(4, shape, FNN_FAN_IN, 1), 1.0 / 6, 1e-12);
  assert_float_equal(fnn_init_std(4, shape, FNN_FAN_OUT, 2), 2 / sqrt(72.0),
                     1e-12);
  assert_float_equal(fnn_init_std(4, shape, FNN_FAN_BOTH, 1), 1 / sqrt(54.0),
                     1e-12);
}

TEST(an_optimizer_of_nothing_steps) {
  fnn_Optimizer *o = fnn_optimizer("SGD");
  fnn_optimizer_step(o);
  assert_float_equal(fnn_optimizer_step_clipped(o, 2, 1), 0, 0);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_parts),
    cmocka_unit_test(computes),
    cmocka_unit_test(collects_parameters_once),
    cmocka_unit_test(reaches_children),
    cmocka_unit_test(names_mistakes),
    cmocka_unit_test(tells_what_it_was_made_with),
    cmocka_unit_test(spreads_by_fan),
    cmocka_unit_test(an_optimizer_of_nothing_steps),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
