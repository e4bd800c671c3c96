/* kernel_test.c - elementwise, copying and reducing kernels against plain
** loops: odd sizes, all dtypes, all strides, sizes that split the work, and
** the same bits whatever the number of threads. */

#include "test.h"

#include <math.h>

#include "../src/core/ops.h"

#define INTS(...) ((const int64_t[]){ __VA_ARGS__ })

/* Numbers from a linear congruence: multiples of 1/8 in [-16, 16). */
static Tensor *numbers (int ndim, const int64_t *shape, fnn_Dtype t) {
  Tensor *x = tensor_new(ndim, shape, t, device_cpu());
  uint32_t seed = 12345;
  for (int64_t i = 0; i < x->numel; i++) {
    seed = seed * 1664525u + 1013904223u;
    double v = (double)(int)(seed >> 24) / 8 - 16;
    dtype_set(t, tensor_data(x), i, dtype_is_float(t) ? v : trunc(fabs(v)));
  }
  return x;
}

/* The element of x with these coordinates. */
static double at (const Tensor *x, const int64_t *c) {
  int64_t i = x->offset;
  for (int d = 0; d < x->ndim; d++) i += c[d] * x->stride[d];
  return dtype_get((fnn_Dtype)x->dtype, x->storage->data, i);
}

static bool next (const Tensor *x, int64_t *c) {
  for (int d = x->ndim - 1; d >= 0; d--) {
    if (++c[d] < x->shape[d]) return true;
    c[d] = 0;
  }
  return false;
}

/*
** {======================================================
** Copies
** =======================================================
*/

static void check_copy (const Tensor *y, const Tensor *x) {
  int64_t c[FNN_MAXDIM] = { 0 };
  kernel(y, copy)((Tensor *)y, x);
  if (x->numel == 0) return;
  do {
    double want = at(x, c);
    if (y->dtype == FNN_BOOL) want = want != 0;
    else if (!dtype_is_float((fnn_Dtype)y->dtype)) want = trunc(want);
    if (y->dtype == FNN_U8) want = (double)((int)want & 255);
    if (at(y, c) != want)
      fail_msg("%s to %s, shape %s: %g became %g",
               fnn_dtype_name((fnn_Dtype)x->dtype),
               fnn_dtype_name((fnn_Dtype)y->dtype), shape_text(x), want,
               at(y, c));
  } while (next(x, c));
}

/* Ways to see a (9, 7, 5) tensor as (5, 7, 9), or parts of it. */
static Tensor *seen (Tensor *x, int way) {
  switch (way) {
    case 0: return fnn_permute(x, 3, (int[]){ 2, 1, 0 });
    case 1: return fnn_permute(x, 3, (int[]){ 1, 0, 2 });
    case 2: return fnn_slice(x, 2, 1, 2, 2);
    case 3: return fnn_flip(x, 2, (int[]){ 0, 2 });
    default: return fnn_expand(fnn_select(x, 0, 3), 3, INTS(9, 7, 5));
  }
}

TEST(copies_go_from_anything_to_anything) {
  for (fnn_Dtype from = FNN_BOOL; from <= FNN_F64; from++)
    for (fnn_Dtype to = FNN_BOOL; to <= FNN_F64; to++)
      for (int way = 0; way < 5; way++) {
        size_t m = fnn_mark();
        Tensor *x = seen(numbers(3, INTS(9, 7, 5), from), way);
        Tensor *y = tensor_like_as(x, to);
        check_copy(y, x);
        if (x->ndim == 3)
          check_copy(
              fnn_transpose(
                  tensor_new(3, INTS(x->shape[2], x->shape[1], x->shape[0]),
                             to, device_cpu()),
                  0, 2),
              x);
        fnn_escape(m, NULL);
      }
}

TEST(transpositions_of_all_sizes) {
  static const fnn_Dtype types[] = { FNN_U8, FNN_F16, FNN_F32, FNN_F64 };
  static const int64_t sizes[] = { 1, 3, 4, 5, 8, 31, 32, 33, 64, 70, 257 };
  for (int t = 0; t < countof(types); t++)
    for (int i = 0; i < countof(sizes); i++)
      for (int j = 0; j < countof(sizes); j++) {
        size_t m = fnn_mark();
        Tensor *x = numbers(3, INTS(2, sizes[i], sizes[j]), types[t]);
        Tensor *v = fnn_transpose(x, 1, 2);
        check_copy(tensor_like(v), v);
        fnn_escape(m, NULL);
      }
}

/* }====================================================== */

/*
** {======================================================
** Elementwise
** =======================================================
*/

TEST(operands_of_all_strides) {
  Tensor *x = numbers(3, INTS(9, 7, 5), FNN_F32);
  Tensor *y = numbers(3, INTS(9, 7, 5), FNN_F32);
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) {
      size_t m = fnn_mark();
      int64_t c[FNN_MAXDIM] = { 0 };
      Tensor *a = seen(x, i), *b = seen(y, j);
      if (tensor_same_shape(a, b)) {
        Tensor *z = fnn_sub(a, b);
        do assert_true(at(z, c) == at(a, c) - at(b, c));
        while (next(z, c));
      }
      fnn_escape(m, NULL);
    }
}

/* Results past the caches: the streamed path and the plain one agree. */
TEST(large_results_are_what_small_ones_are) {
  int64_t rows = 4200, n = 1031; /* 17 MB, rows at odd addresses */
  Tensor *x = fnn_uniform(2, INTS(rows, n), -4, 4, FNN_F32, NULL, NULL);
  Tensor *large[] = { fnn_exp(x),
                      fnn_add(x, x),
                      fnn_softmax(x, 1),
                      fnn_layer_norm(x, 1, NULL, NULL, 1e-5),
                      fnn_zip(ZIP_lt, x, fnn_narrow(x, 1, 3, 1)),
                      fnn_cast(x, FNN_F16),
                      fnn_contiguous(fnn_transpose(x, 0, 1)) };
  for (int64_t r = 0; r < rows; r += 419) {
    size_t m = fnn_mark();
    Tensor *p = fnn_clone(fnn_narrow(x, 0, r, 1));
    Tensor *small[] = { fnn_exp(p),
                        fnn_add(p, p),
                        fnn_softmax(p, 1),
                        fnn_layer_norm(p, 1, NULL, NULL, 1e-5),
                        fnn_zip(ZIP_lt, p, fnn_narrow(p, 1, 3, 1)),
                        fnn_cast(p, FNN_F16) };
    for (int i = 0; i < countof(small); i++) {
      size_t size = fnn_dtype_size((fnn_Dtype)small[i]->dtype);
      assert_memory_equal((char *)tensor_data(large[i]) +
                              (size_t)(r * n) * size,
                          tensor_data(small[i]), (size_t)n * size);
    }
    Tensor *column = fnn_contiguous(fnn_narrow(large[6], 1, r, 1));
    assert_memory_equal(tensor_data(column), tensor_data(p),
                        (size_t)n * sizeof(float));
    fnn_escape(m, NULL);
  }
}

TEST(overlapping_operands_act_as_through_a_buffer) {
  int64_t n = 5000;
  Tensor *x = numbers(1, &n, FNN_F32), *was = fnn_clone(x);
  fnn_zip_(ZIP_add, fnn_narrow(x, 0, 1, n - 1), fnn_narrow(x, 0, 0, n - 1));
  for (int64_t i = 1; i < n; i++)
    assert_true(at(x, &i) == at(was, &i) + at(was, INTS(i - 1)));
  fnn_copy_(x, was);
  fnn_copy_(fnn_narrow(x, 0, 0, n - 3), fnn_narrow(x, 0, 3, n - 3));
  for (int64_t i = 0; i < n - 3; i++)
    assert_true(at(x, &i) == at(was, INTS(i + 3)));
  fnn_copy_(x, was);
  fnn_copy_(x, fnn_flip(x, 1, (int[]){ 0 }));
  for (int64_t i = 0; i < n; i++)
    assert_true(at(x, &i) == at(was, INTS(n - 1 - i)));
}

/* }====================================================== */

/*
** {======================================================
** Reductions
** =======================================================
*/

/* Row op over column (o, j) of x (outer, n, inner), in double. */
static double column (int op, const float *x, int64_t n, int64_t inner) {
  double s = op == REDUCE_prod || op == REDUCE_all, c = 0;
  double best = x[0];
  int64_t place = 0;
  for (int64_t i = 0; i < n; i++) c += (double)x[i * inner] / (double)n;
  for (int64_t i = 0; i < n; i++) {
    double v = (double)x[i * inner];
    if (op == REDUCE_max || op == REDUCE_argmax ? v > best : v < best) {
      best = v;
      place = i;
    }
    switch (op) {
      case REDUCE_sum: s += v; break;
      case REDUCE_mean: s += v / (double)n; break;
      case REDUCE_var: s += (v - c) * (v - c) / (double)(n - 1); break;
      case REDUCE_logsumexp: s += exp(v - 16); break;
      case REDUCE_any: s = s != 0 || v != 0; break;
      default: break;
    }
  }
  if (op == REDUCE_logsumexp) return log(s) + 16;
  if (op == REDUCE_argmax || op == REDUCE_argmin) return (double)place;
  return op == REDUCE_max || op == REDUCE_min ? best : s;
}

static const int reductions[] = {
  REDUCE_sum,       REDUCE_mean,   REDUCE_max,    REDUCE_min, REDUCE_var,
  REDUCE_logsumexp, REDUCE_argmax, REDUCE_argmin, REDUCE_any
};

static const int64_t shapes[][3] = {
  { 1, 300000, 1 }, { 3, 140001, 1 }, { 2, 300, 300 },
  { 1, 100000, 3 }, { 5, 7, 1000 },   { 400, 10, 1 },
  { 1, 1, 1 },      { 7, 257, 1 },    { 1, 70000, 5 },
};

TEST(reductions_of_shapes_that_split) {
  for (int s = 0; s < countof(shapes); s++)
    for (int r = 0; r < countof(reductions); r++) {
      size_t m = fnn_mark();
      int op = reductions[r];
      int64_t n = shapes[s][1], inner = shapes[s][2];
      if (op == REDUCE_var && n == 1) continue;
      Tensor *x = numbers(3, shapes[s], FNN_F32);
      Tensor *y = fnn_reduce(op, x, 1, (int[]){ 1 }, false, 1);
      const float *p = tensor_data(x);
      for (int64_t i = 0; i < y->numel; i += 1 + y->numel / 50) {
        double want =
            column(op, p + i / inner * n * inner + i % inner, n, inner);
        double got = dtype_get((fnn_Dtype)y->dtype, tensor_data(y), i);
        if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
          fail_msg("row %d, shape %s: got %.9g, expected %.9g", op,
                   shape_text(x), got, want);
      }
      fnn_escape(m, NULL);
    }
}

TEST(sums_keep_their_precision) {
  int64_t n = 10000019;
  Tensor *x = fnn_full(1, &n, 0.1, FNN_F32, NULL);
  double want = (double)0.1f * (double)n;
  double got = fnn_item(fnn_sum(x, 0, NULL, false));
  assert_true(fabs(got - want) < 1e-5 * want); /* one by one: 1e-2 */
  Tensor *columns =
      fnn_reshape(fnn_narrow(x, 0, 0, 10000000), 2, INTS(5000000, 2));
  Tensor *y = fnn_sum(columns, 1, (int[]){ 0 }, false);
  for (int64_t i = 0; i < 2; i++)
    assert_true(fabs(at(y, &i) - (double)0.1f * 5e6) < 1e-5 * 5e5);
  Tensor *d = fnn_full(1, &n, 0.1, FNN_F64, NULL);
  got = fnn_item(fnn_sum(d, 0, NULL, false));
  assert_true(fabs(got - 0.1 * (double)n) < 1e-13 * got);
}

/* }====================================================== */

/* Everything that splits its work, as one list of results. */
static int everything (Tensor **y) {
  int k = 0;
  Tensor *x = numbers(2, INTS(700, 1000), FNN_F32);
  Tensor *w = numbers(1, INTS(1000), FNN_F32);
  Tensor *ids = fnn_cast(
      fnn_zip_number(ZIP_mul, numbers(1, INTS(700), FNN_F32), 20, false),
      FNN_I64);
  ids = fnn_map(MAP_abs, ids, 0, 0);
  for (int r = 0; r < countof(reductions); r++)
    for (int d = 0; d < 3; d++)
      y[k++] = fnn_reduce(reductions[r], x, d < 2, &d, false, 1);
  y[k++] = fnn_softmax(x, 1);
  y[k++] = fnn_softmax(x, 0);
  y[k++] = fnn_cumsum(x, 0);
  y[k++] = fnn_map(MAP_gelu, x, 0, 0);
  Param *p = fnn_param(x), *q = fnn_param(w);
  Tensor *g[2];
  Tensor *n = fnn_layer_norm(fnn_value(p), 1, fnn_value(q), NULL, 1e-5);
  Tensor *loss = fnn_sum(fnn_mul(n, fnn_softmax(n, 1)), 0, NULL, false);
  fnn_grad(loss, NULL, 2, (Param *[]){ p, q }, g, false);
  y[k++] = loss;
  y[k++] = g[0];
  y[k++] = g[1];
  y[k++] = ids;
  return k;
}

TEST(threads_change_no_bit) {
  Tensor *one[64], *two[64];
  int width = fnn_thread_count();
  fnn_threads(1);
  int n = everything(one);
  fnn_threads(4);
  everything(two);
  fnn_threads(width);
  for (int i = 0; i < n; i++)
    assert_memory_equal(tensor_data(one[i]), tensor_data(two[i]),
                        (size_t)one[i]->numel *
                            fnn_dtype_size((fnn_Dtype)one[i]->dtype));
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_go_from_anything_to_anything),
    cmocka_unit_test(transpositions_of_all_sizes),
    cmocka_unit_test(operands_of_all_strides),
    cmocka_unit_test(large_results_are_what_small_ones_are),
    cmocka_unit_test(overlapping_operands_act_as_through_a_buffer),
    cmocka_unit_test(reductions_of_shapes_that_split),
    cmocka_unit_test(sums_keep_their_precision),
    cmocka_unit_test(threads_change_no_bit),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
