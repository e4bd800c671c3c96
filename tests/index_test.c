/* index_test.c - what Lua cannot see of ops that move elements and multiply:
** memory that fails at every allocation, results under any number of threads,
** a long sort cancelled, and products that copy no operand. */

#include <pthread.h>
#include <time.h>

#include "test.h"

static Tensor *ids_of (int n, const int64_t *v) {
  return fnn_tensor(FNN_I64, 1, (int64_t[]){ n }, v);
}

/* Whole numbers from a linear congruence, below many. */
static Tensor *whole (int ndim, const int64_t *shape, int64_t many,
                      fnn_Dtype t) {
  Tensor *x = tensor_new(ndim, shape, t, device_cpu());
  uint64_t seed = 1;
  for (int64_t i = 0; i < x->numel; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    dtype_set(t, tensor_data(x), i, (double)((int64_t)(seed >> 40) % many));
  }
  return x;
}

/*
** {======================================================
** Every allocation fails once
** =======================================================
*/

typedef struct Heap {
  long left; /* allocations until all fail; less than 0: none does */
  long used, blocks;
} Heap;

static void *heap_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  Heap *h = ud;
  (void)osize;
  if (nsize == 0) {
    if (p != NULL) h->blocks--;
    free(p);
    return NULL;
  }
  h->used++;
  if (h->left == 0) return NULL;
  if (h->left > 0) h->left--;
  if (p == NULL) h->blocks++;
  return realloc(p, nsize);
}

static Tensor *views (Tensor *x) {
  int64_t twice[2] = { 2, 2 };
  x = fnn_permute(x, 2, (int[]){ 1, 0 });
  x = fnn_reshape(x, 2, (int64_t[]){ 2, 6 });
  x = fnn_slice(x, 1, 5, 3, -2);
  x = fnn_cat(2, (Tensor *[]){ x, fnn_narrow(x, 1, 0, 2) }, 1);
  x = fnn_stack(2, (Tensor *[]){ x, fnn_flip(x, 0, NULL) }, 0);
  x = fnn_roll(fnn_tril(fnn_select(x, 0, 1), 0), 1, 1);
  return fnn_repeat(fnn_unsqueeze(fnn_diagonal(x, 0, 0, 1), 0), 2, twice);
}

static Tensor *moved (Tensor *x) {
  Tensor *ids = ids_of(4, (int64_t[]){ 0, 2, 2, 1 }), *order;
  Tensor *y = fnn_index_select(x, 0, ids);
  y = fnn_topk(y, 2, 0, true, &order);
  y = fnn_gather(y, 0, fnn_zeros(2, y->shape, FNN_I64, NULL));
  y = fnn_scatter_add(y, 0, fnn_zeros(2, y->shape, FNN_I64, NULL), y);
  y = fnn_masked_select(y, fnn_cast(y, FNN_BOOL));
  return fnn_sort(y, 0, false, &order);
}

static void step (void *ud) {
  fnn_Param *p = fnn_param(whole(2, (int64_t[]){ 3, 4 }, 9, FNN_F32));
  Tensor *x = fnn_value(p);
  (void)ud;
  Tensor *y = fnn_matmul(x, fnn_transpose(x, 0, 1));
  y = fnn_linear(y, y, fnn_select(y, 0, 0), fnn_map_find("relu"));
  y = fnn_einsum("ij,jk,k->i", 3, (Tensor *[]){ y, x, fnn_select(x, 0, 1) });
  Tensor *sum = fnn_sum(y, 0, NULL, false);
  sum = fnn_add(sum, fnn_sum(views(x), 0, NULL, false));
  sum = fnn_add(sum, fnn_sum(moved(x), 0, NULL, false));
  fnn_backward(sum, NULL, false);
  assert_non_null(fnn_gradient(p));
}

static long run_step (long fail_at, fnn_Status *status) {
  Heap h = { fail_at, 0, 0 };
  fnn_Host host = FNN_HOST_INIT;
  host.ud = &h;
  host.alloc = heap_alloc;
  *status = FNN_EMEMORY;
  fnn_Context *c = fnn_open(&host), *before = fnn_use(c);
  if (c != NULL) {
    uint64_t objects = fnn_memory().objects;
    *status = fnn_pcall(step, NULL);
    assert_int_equal(fnn_memory().objects, objects);
    assert_int_equal(fnn_memory().nodes, 0);
    fnn_use(before);
    fnn_close(c);
  }
  assert_int_equal(h.blocks, 0);
  return h.used;
}

static void allocations_fail (void **state) {
  fnn_Status s;
  long n = run_step(-1, &s);
  (void)state;
  assert_int_equal(s, FNN_OK);
  for (long i = 0; i < n; i++) {
    run_step(i, &s);
    assert_int_equal(s, FNN_EMEMORY);
  }
  print_message("# failed each of %ld allocations\n", n);
}

/* }====================================================== */

/*
** {======================================================
** Threads
** =======================================================
*/

/* The bytes of y under each count of threads are those under one. */
static void same_for_threads (Tensor *(*f)(Tensor *, Tensor *), Tensor *x,
                              Tensor *ids) {
  fnn_threads(1);
  Tensor *one = f(x, ids);
  size_t n = (size_t)one->numel * fnn_dtype_size((fnn_Dtype)one->dtype);
  for (int threads = 2; threads <= 7; threads += 5) {
    fnn_threads(threads);
    Tensor *y = f(x, ids);
    assert_memory_equal(tensor_data(one), tensor_data(y), n);
  }
  fnn_threads(0);
}

/* Fractions, of which the order of a sum shows. */
static Tensor *fractions (int ndim, const int64_t *shape) {
  return fnn_zip_number(fnn_zip_find("div"),
                        whole(ndim, shape, 100003, FNN_F32), 7, false);
}

static Tensor *added (Tensor *x, Tensor *ids) {
  Tensor *y = fnn_zeros(3, (int64_t[]){ x->shape[0], 300, x->shape[2] },
                        FNN_F32, NULL);
  kernel(y, index_add)(y, x, ids, x->shape[0], 300, x->shape[2]);
  return y;
}

static Tensor *scattered (Tensor *x, Tensor *ids) {
  int64_t shape[3] = { x->shape[0], 300, x->shape[2] };
  return fnn_scatter_add(fnn_zeros(3, shape, FNN_F32, NULL), 1, ids, x);
}

static Tensor *sorted (Tensor *x, Tensor *ids) {
  (void)ids;
  Tensor *order;
  fnn_sort(x, 1, true, &order);
  return order;
}

static Tensor *best (Tensor *x, Tensor *ids) {
  (void)ids;
  Tensor *order;
  fnn_topk(x, 40, 1, true, &order);
  return order;
}

TEST(threads_do_not_show) {
  static const int64_t shapes[][3] = {
    { 1, 70000, 1 }, { 1, 14000, 5 }, { 40, 2000, 1 }, { 3, 300, 130 }
  };
  for (int i = 0; i < countof(shapes); i++) {
    Tensor *x = fractions(3, shapes[i]);
    same_for_threads(added, x, whole(1, &shapes[i][1], 300, FNN_I64));
    same_for_threads(scattered, x, whole(3, shapes[i], 300, FNN_I64));
    Tensor *ties = whole(3, shapes[i], 5000, FNN_F32);
    same_for_threads(sorted, ties, NULL);
    same_for_threads(best, ties, NULL);
  }
}

/* }====================================================== */

/* Of long lines among others, and of a k for which two rounds are needed. */
TEST(topk_is_the_start_of_sort) {
  static const int64_t shapes[][3] = { { 2, 20000, 2 }, { 1, 700000, 1 } };
  static const int64_t count[][2] = { { 100, 7000 }, { 8000, 30 } };
  for (int i = 0; i < countof(shapes); i++) {
    Tensor *x = whole(3, shapes[i], 100000, FNN_F32), *all, *some;
    fnn_sort(x, 1, true, &all);
    for (int k = 0; k < 2; k++) {
      fnn_topk(x, count[i][k], 1, true, &some);
      Tensor *same = fnn_contiguous(fnn_narrow(all, 1, 0, count[i][k]));
      assert_memory_equal(tensor_data(some), tensor_data(same),
                          (size_t)some->numel * sizeof(int64_t));
    }
  }
}

/*
** {======================================================
** Cancel
** =======================================================
*/

static double now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cancelled_at;

static void *cancel_soon (void *ud) {
  struct timespec wait = { 0, 30000000 };
  nanosleep(&wait, NULL);
  cancelled_at = now();
  fnn_cancel(ud);
  return NULL;
}

static void sort_long (void *ud) {
  Tensor *order;
  fnn_sort(ud, 0, false, &order);
}

TEST(a_long_sort_stops) {
  pthread_t thread;
  Tensor *x = fnn_arange(0, 1e7, 1, FNN_F32, NULL); /* half a second of work */
  pthread_create(&thread, NULL, cancel_soon, fnn_cancel_token(test_context));
  fnn_Status s = fnn_pcall(sort_long, x);
  double end = now();
  pthread_join(thread, NULL);
  assert_int_equal(s, FNN_ECANCEL);
  print_message("# stopped %.1f ms after\n", (end - cancelled_at) * 1e3);
}

/* }====================================================== */

/* The most bytes that f(a, b) held beyond what was there. */
static uint64_t peak_of (Tensor *a, Tensor *b) {
  fnn_trim();
  fnn_memory_peak_reset();
  uint64_t before = fnn_memory().live;
  size_t mark = fnn_mark();
  fnn_matmul(a, b);
  fnn_escape(mark, NULL);
  return fnn_memory().peak - before;
}

/* Packing takes a bounded part of an operand, or of the narrow one, at once:
** never as much as half of the large one. */
TEST(transposed_products_copy_nothing) {
  int64_t large[2] = { 2000, 600 }, small[2] = { 600, 16 };
  Tensor *a = whole(2, large, 10, FNN_F32), *b = whole(2, small, 9, FNN_F32);
  Tensor *at = fnn_transpose(fnn_contiguous(fnn_transpose(a, 0, 1)), 0, 1);
  uint64_t half = 2000 * 600 * sizeof(float) / 2;
  assert_false(fnn_is_contiguous(at));
  assert_true(peak_of(at, b) < peak_of(a, b) + half);
  Tensor *bt = fnn_transpose(b, 0, 1);
  assert_true(peak_of(bt, fnn_transpose(a, 0, 1)) <
              peak_of(bt, fnn_transpose(at, 0, 1)) + half);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(allocations_fail),
    cmocka_unit_test(threads_do_not_show),
    cmocka_unit_test(topk_is_the_start_of_sort),
    cmocka_unit_test(a_long_sort_stops),
    cmocka_unit_test(transposed_products_copy_nothing),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
