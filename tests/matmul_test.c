/* matmul_test.c - the matrix product against sums in double.
**
** Operands hold small multiples of 1/8, so that every product and sum is exact
** in f32, whatever the order: results must be equal, not near. */

#include "test.h"

#include <math.h>

#include "../src/core/ops.h"
#include "../src/cpu/gemm.h"

static uint32_t seed;

static int64_t draw (int64_t n) {
  seed = seed * 1664525u + 1013904223u;
  return (int64_t)(seed >> 8) % n;
}

static void fill (Tensor *x) {
  for (int64_t i = 0; i < x->numel; i++)
    dtype_set((fnn_Dtype)x->dtype, tensor_data(x), i,
              (double)(draw(32) - 16) / 8);
}

static double get (const Tensor *x, int64_t offset) {
  return dtype_get((fnn_Dtype)x->dtype, x->storage->data, offset);
}

/*
** {======================================================
** Random cases
** =======================================================
*/

typedef struct Case {
  int ndim;
  int64_t lead[2], m, n, k;
  Tensor *a, *b, *c, *before; /* before: c's values, when it accumulates */
  Epilogue e;
} Case;

/* A tensor (lead ..., rows, cols) with one of many layouts. */
static Tensor *operand (const Case *p, int64_t rows, int64_t cols,
                        fnn_Dtype t) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM], step = 1, offset = 0;
  int last = p->ndim - 1, first = last - (int)draw(2), way = (int)draw(4);
  for (int d = 0; d < p->ndim - 2; d++) shape[d] = p->lead[d];
  shape[last - 1] = rows;
  shape[last] = cols;
  if (way == 1) step = 2; /* neither side is contiguous */
  for (int i = 0; i < p->ndim; i++) {
    int d = i == 0 ? first : i == 1 ? 2 * last - 1 - first : last - i;
    stride[d] = step;
    step = step * shape[d] + (way == 2 ? draw(5) : 0);
    if (d < last - 1 && draw(2) == 0) stride[d] = 0; /* broadcast */
    if (way != 3 || draw(2) == 0) continue;
    offset += stride[d] * (shape[d] - 1); /* backwards */
    stride[d] = -stride[d];
  }
  Tensor *all = tensor_new(1, &step, t, device_cpu());
  fill(all);
  return tensor_view(all, p->ndim, shape, stride, offset);
}

static Case make_case (fnn_Dtype t, const fnn_Dtype *sources, int nsources) {
  static const int64_t most[][3] = { { 5, 5, 20 },    { 70, 70, 70 },
                                     { 4, 200, 600 }, { 200, 4, 600 },
                                     { 20, 300, 90 }, { 33, 65, 1100 } };
  const int64_t *size = most[draw(countof(most))];
  Case p = { .ndim = 2 + (int)(draw(4) == 0) + (int)(draw(4) == 0) };
  p.m = 1 + draw(size[0]);
  p.n = 1 + draw(size[1]);
  p.k = draw(size[2]);
  p.lead[0] = 1 + draw(3);
  p.lead[1] = 1 + draw(4);
  p.a = operand(&p, p.m, p.k, sources[draw(nsources)]);
  p.b = operand(&p, p.k, p.n, sources[draw(nsources)]);
  int64_t shape[] = { p.lead[0], p.lead[1], p.m, p.n };
  shape[p.ndim - 2] = p.m;
  shape[p.ndim - 1] = p.n;
  p.c = tensor_new(p.ndim, shape, t, device_cpu());
  p.e = (Epilogue){ NULL, -1, draw(3) == 0, (double[]){ 1, .5, -2 }[draw(3)] };
  if (p.e.accumulate) {
    fill(p.c);
    p.before = fnn_clone(p.c);
    return p;
  }
  fnn_fill_(p.c, NAN); /* must not show */
  Tensor *bias = tensor_new(1, &p.n, t, device_cpu());
  fill(bias);
  if (draw(2) == 0) p.e.bias = bias;
  if (draw(2) == 0) p.e.act = MAP_relu;
  return p;
}

static double expected (const Case *p, int64_t a, int64_t b, int64_t j,
                        double before) {
  const int64_t *sa = &p->a->stride[p->ndim - 2];
  const int64_t *sb = &p->b->stride[p->ndim - 2];
  double sum = 0;
  for (int64_t l = 0; l < p->k; l++)
    sum += get(p->a, a + l * sa[1]) * get(p->b, b + l * sb[0]);
  sum *= p->e.alpha;
  if (p->e.bias != NULL) sum += get(p->e.bias, j);
  if (p->e.act == MAP_relu && sum < 0) sum = 0;
  return sum + before;
}

static void check_case (const Case *p) {
  const Tensor *a = p->a, *b = p->b, *c = p->c;
  for (int64_t at = 0; at < c->numel; at++) {
    int64_t j = at % p->n, i = at / p->n % p->m, rest = at / p->n / p->m;
    int64_t oa = a->offset + i * a->stride[p->ndim - 2];
    int64_t ob = b->offset + j * b->stride[p->ndim - 1];
    for (int d = p->ndim - 3; d >= 0; rest /= p->lead[d--]) {
      oa += rest % p->lead[d] * a->stride[d];
      ob += rest % p->lead[d] * b->stride[d];
    }
    double was = p->before != NULL ? get(p->before, at) : 0;
    double want = expected(p, oa, ob, j, was), got = get(c, at);
    if (got != want)
      fail_msg("%s of %s (%lld, %lld) and %s (%lld, %lld), element %lld: "
               "%g (expected %g)",
               shape_text(c), fnn_dtype_name((fnn_Dtype)a->dtype),
               (long long)a->stride[p->ndim - 2],
               (long long)a->stride[p->ndim - 1],
               fnn_dtype_name((fnn_Dtype)b->dtype),
               (long long)b->stride[p->ndim - 2],
               (long long)b->stride[p->ndim - 1], (long long)at, got, want);
  }
}

static void check_cases (int count, fnn_Dtype t, const fnn_Dtype *sources,
                         int nsources) {
  for (int i = 0; i < some_of(count); i++) {
    size_t mark = fnn_mark();
    Case p = make_case(t, sources, nsources);
    kernel(p.c, matmul)(p.c, p.a, p.b, &p.e);
    check_case(&p);
    fnn_escape(mark, NULL);
  }
}

TEST(products_of_any_layout_are_exact) {
  static const fnn_Dtype halves[] = { FNN_F32, FNN_F16, FNN_BF16 };
  static const fnn_Dtype whole[] = { FNN_F32 }, wide[] = { FNN_F64 };
  seed = 1;
  check_cases(300, FNN_F32, whole, 1);
  check_cases(200, FNN_F32, halves, 3);
  check_cases(200, FNN_F64, wide, 1);
}

/* }====================================================== */

/*
** {======================================================
** Large ones
** =======================================================
*/

static Tensor *numbers (int64_t rows, int64_t cols, fnn_Dtype t) {
  Tensor *x = tensor_new(2, (int64_t[]){ rows, cols }, t, device_cpu());
  fill(x);
  return x;
}

static void product (Tensor *c, const Tensor *a, const Tensor *b) {
  kernel(c, matmul)(c, a, b, &(Epilogue){ NULL, -1, false, 1 });
}

/* Checks some elements of the product, of every tile. */
static void check_some (int64_t m, int64_t n, int64_t k, fnn_Dtype t) {
  size_t mark = fnn_mark();
  Tensor *a = numbers(m, k, t), *b = numbers(k, n, t), *c = numbers(m, n, t);
  Tensor *views[2][2] = { { a, b },
                          { fnn_transpose(numbers(k, m, t), 0, 1),
                            fnn_transpose(numbers(n, k, t), 0, 1) } };
  for (int v = 0; v < 4; v++) {
    Case p = {
      .ndim = 2, .m = m, .n = n, .k = k, .e = { .act = -1, .alpha = 1 }
    };
    p.a = views[v & 1][0];
    p.b = views[v >> 1][1];
    product(c, p.a, p.b);
    for (int64_t i = 0; i < m; i += 1 + draw(5))
      for (int64_t j = i % 4; j < n; j += 1 + draw(50)) {
        double want =
            expected(&p, i * p.a->stride[0], j * p.b->stride[1], j, 0);
        assert_true(get(c, i * n + j) == want);
      }
  }
  fnn_escape(mark, NULL);
}

TEST(large_products_cross_every_block) {
  seed = 2;
  if (!mem_checking()) check_some(360, 1100, 700, FNN_F32);
  check_some(1000, 40, 520, FNN_F32);
  check_some(150, 550, 700, FNN_F64);
}

/* The bits are those of one thread.  Numbers that round show the order. */
static void check_threads (int64_t m, int64_t n, int64_t k, bool transposed) {
  size_t mark = fnn_mark();
  Tensor *a = fnn_normal(2, (int64_t[]){ m, k }, 0, 1, FNN_F32, NULL, NULL);
  Tensor *b =
      transposed
          ? fnn_normal(2, (int64_t[]){ n, k }, 0, 1, FNN_F32, NULL, NULL)
          : fnn_normal(2, (int64_t[]){ k, n }, 0, 1, FNN_F32, NULL, NULL);
  if (transposed) b = fnn_transpose(b, 0, 1);
  Tensor *one = numbers(m, n, FNN_F32), *many = numbers(m, n, FNN_F32);
  int before = fnn_thread_count();
  fnn_threads(1);
  product(one, a, b);
  for (int threads = 2; threads <= 5; threads += mem_checking() ? 3 : 1) {
    fnn_threads(threads);
    product(many, a, b);
    assert_memory_equal(tensor_data(one), tensor_data(many),
                        (size_t)one->numel * sizeof(float));
  }
  fnn_threads(before);
  fnn_escape(mark, NULL);
}

TEST(bits_do_not_depend_on_threads) {
  static const int64_t shapes[][3] = { { 128, 128, 784 }, { 1, 1500, 700 },
                                       { 3, 900, 700 },   { 900, 2, 600 },
                                       { 77, 333, 600 },  { 350, 320, 700 },
                                       { 901, 65, 1000 } };
  for (int i = 0; i < countof(shapes); i += mem_checking() ? 3 : 1)
    for (int transposed = 0; transposed < 2; transposed++)
      check_threads(shapes[i][0], shapes[i][1], shapes[i][2], transposed);
}

/* }====================================================== */

/*
** {======================================================
** Corners
** =======================================================
*/

TEST(a_product_by_hand) {
  Tensor *a =
      fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 });
  Tensor *b =
      fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 2 }, (float[]){ 5, 6, 7, 8 });
  Tensor *c = numbers(2, 2, FNN_F32);
  product(c, a, b);
  assert_memory_equal(tensor_data(c), ((float[]){ 19, 22, 43, 50 }), 16);
}

TEST(nothing_summed_gives_the_bias) {
  Tensor *a = numbers(3, 0, FNN_F32), *b = numbers(0, 2, FNN_F32);
  Tensor *c = numbers(3, 2, FNN_F32);
  Tensor *bias = fnn_tensor(FNN_F32, 1, (int64_t[]){ 2 }, (float[]){ -1, 2 });
  fnn_fill_(c, NAN);
  kernel(c, matmul)(c, a, b, &(Epilogue){ bias, MAP_relu, false, 1 });
  for (int i = 0; i < 6; i++) assert_true(get(c, i) == (i % 2 == 0 ? 0 : 2));
  kernel(c, matmul)(c, a, b, &(Epilogue){ NULL, -1, true, 1 });
  assert_true(get(c, 5) == 2);
}

TEST(nan_and_infinity_stay_in_their_rows_and_columns) {
  static const int64_t sizes[] = { 3, 37, 130 };
  for (int s = 0; s < countof(sizes); s++) {
    int64_t n = sizes[s];
    Tensor *a = numbers(n, n, FNN_F32), *b = numbers(n, n, FNN_F32);
    Tensor *c = numbers(n, n, FNN_F32);
    dtype_set(FNN_F32, tensor_data(a), n * n - 1, NAN);
    dtype_set(FNN_F32, tensor_data(b), n - 1, INFINITY);
    kernel(c, matmul)(c, a, b, &(Epilogue){ NULL, MAP_relu, false, 1 });
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n - 1; j++)
        assert_true(isnan(get(c, i * n + j)) == (i == n - 1));
  }
}

TEST(other_activations_follow_the_product) {
  Tensor *a = numbers(40, 30, FNN_F32), *b = numbers(30, 50, FNN_F32);
  Tensor *c = numbers(40, 50, FNN_F32), *plain = numbers(40, 50, FNN_F32);
  kernel(c, matmul)(c, a, b, &(Epilogue){ NULL, MAP_tanh, false, .5 });
  kernel(c, matmul)(plain, a, b, &(Epilogue){ NULL, -1, false, .5 });
  Tensor *want = fnn_tanh(plain);
  assert_memory_equal(tensor_data(c), tensor_data(want), 40 * 50 * 4);
}

static void product_of (void *ud) {
  Tensor **t = ud;
  product(t[0], t[1], t[2]);
}

TEST(a_set_token_stops_a_product) {
  Tensor *t[3] = { numbers(400, 400, FNN_F32), numbers(400, 400, FNN_F32),
                   numbers(400, 400, FNN_F32) };
  fnn_cancel(fnn_cancel_token(fnn_current()));
  assert_int_equal(fnn_pcall(product_of, t), FNN_ECANCEL);
}

/* }====================================================== */

/*
** {======================================================
** Packed weights, as the baseline has them
** =======================================================
*/

static Operand operand_of (const Tensor *x) {
  return (Operand){ tensor_data(x), x->stride[0], x->stride[1], source_of(x) };
}

static void check_packed (int64_t m, int64_t n, int64_t k, fnn_Dtype t) {
  size_t mark = fnn_mark();
  Tensor *a = numbers(m, k, FNN_F32), *bias = numbers(1, n, FNN_F32);
  Tensor *b = fnn_transpose(numbers(n, k, t), 0, 1);
  Tensor *one = numbers(m, n, FNN_F32), *two = numbers(m, n, FNN_F32);
  Gemm g = { m,
             n,
             k,
             operand_of(a),
             operand_of(b),
             tensor_data(one),
             n,
             tensor_data(bias),
             1,
             false,
             true };
  void *blob = mem_scratch(CPU(gemm_packed_size)(k, n));
  CPU(gemm_prepack)(k, n, g.b, blob);
  CPU(gemm)(&g);
  g.c = tensor_data(two);
  CPU(gemm_packed)(&g, blob);
  assert_memory_equal(tensor_data(one), tensor_data(two),
                      (size_t)one->numel * sizeof(float));
  fnn_escape(mark, NULL);
}

TEST(packed_weights_give_the_same_product) {
  check_packed(1, 30, 40, FNN_F32);
  check_packed(16, 70, 900, FNN_F32);
  check_packed(16, 70, 900, FNN_BF16);
  check_packed(400, 200, 400, FNN_F16);
}

/* }====================================================== */

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_product_by_hand),
    cmocka_unit_test(products_of_any_layout_are_exact),
    cmocka_unit_test(large_products_cross_every_block),
    cmocka_unit_test(bits_do_not_depend_on_threads),
    cmocka_unit_test(nothing_summed_gives_the_bias),
    cmocka_unit_test(nan_and_infinity_stay_in_their_rows_and_columns),
    cmocka_unit_test(other_activations_follow_the_product),
    cmocka_unit_test(a_set_token_stops_a_product),
    cmocka_unit_test(packed_weights_give_the_same_product),
  };
  return cmocka_run_group_tests_name("matmul", tests, open_context,
                                     close_context);
}
