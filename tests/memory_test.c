/* memory_test.c - counted memory: the limit, the cache, shared and wrapped
** storage, and every allocation of a training step failed in turn. */

#include "test.h"

#include <limits.h>
#include <pthread.h>

#include "../src/fnn_nn.h"
#include "slow.h"

enum { MB = 1 << 20 };

static Tensor *bytes (int64_t n) { return fnn_empty(1, &n, FNN_U8, NULL); }

/*
** {======================================================
** A heap that counts, checks and fails
** =======================================================
*/

enum { HEADER = 64, FRESH = 0xa5, FREED = 0xdd };

/* Calls from the first to the last to fail return NULL. */
typedef struct Heap {
  atomic_long calls, blocks, wrong;
  long first, last;
  int asked; /* how often it reclaimed */
} Heap;

static void *heap_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  Heap *h = ud;
  if (nsize == 0) {
    if (p == NULL) return NULL;
    char *block = (char *)p - HEADER;
    if (*(size_t *)(void *)block != osize) h->wrong++;
    memset(block, FREED, osize + HEADER);
    free(block);
    h->blocks--;
    return NULL;
  }
  if (p != NULL) h->wrong++; /* the engine grows by copying */
  long call = ++h->calls;
  if (call >= h->first && call <= h->last) return NULL;
  char *block = malloc(nsize + HEADER);
  if (block == NULL) return NULL;
  memset(block, FRESH, nsize + HEADER);
  *(size_t *)(void *)block = nsize;
  h->blocks++;
  return block + HEADER;
}

static fnn_Context *open_on (Heap *h) {
  fnn_Host host = FNN_HOST_INIT;
  host.ud = h;
  host.alloc = heap_alloc;
  return fnn_open(&host);
}

/* }====================================================== */

/*
** {======================================================
** The limit
** =======================================================
*/

static void ask (void *ud) { bytes(*(int64_t *)ud); }

TEST(the_limit_holds) {
  fnn_Host host = FNN_HOST_INIT;
  host.memory_limit = 4 * MB;
  fnn_Context *c = fnn_open(&host);
  fnn_use(c);
  size_t m = fnn_mark();
  assert_int_equal(fnn_memory().limit, 4 * MB);
  bytes(3 * MB);
  throws(FNN_EMEMORY, "out of memory on cpu: asked for 2.0 MB, holding 3.",
         ask, &(int64_t){ 2 * MB });
  assert_non_null(strstr(fnn_message(), "of the 4.0 MB allowed"));
  fnn_escape(m, NULL);
  bytes(2 * MB); /* the 3 MB that are idle make room */
  assert_true(fnn_memory().live + fnn_memory().idle <= 4 * MB);
  throws(FNN_EMEMORY, "asked for", ask, &(int64_t){ 1LL << 46 });
  fnn_memory_limit(0);
  bytes(16 * MB);
  assert_true(fnn_memory().peak >= 18 * MB);
  fnn_close(fnn_use(test_context));
}

/* A host that has one tensor to drop. */
typedef struct Hoard {
  Tensor *x;
  int asked;
} Hoard;

static void drop_it (void *ud) {
  Hoard *h = ud;
  h->asked++;
  fnn_release(h->x);
  h->x = NULL;
}

TEST(the_host_reclaims_before_a_throw) {
  Hoard hoard = { 0 };
  fnn_Host host = FNN_HOST_INIT;
  host.ud = &hoard;
  host.reclaim = drop_it;
  host.memory_limit = 4 * MB;
  fnn_Context *c = fnn_open(&host);
  fnn_use(c);
  size_t m = fnn_mark();
  hoard.x = fnn_retain(bytes(3 * MB));
  fnn_escape(m, NULL);
  bytes(2 * MB);
  assert_int_equal(hoard.asked, 1);
  assert_null(hoard.x);
  throws(FNN_EMEMORY, "asked for 3.0 MB", ask, &(int64_t){ 3 * MB });
  assert_int_equal(hoard.asked, 2);
  c->finalizing = true;
  throws(FNN_EMEMORY, "asked for 3.0 MB", ask, &(int64_t){ 3 * MB });
  assert_int_equal(hoard.asked, 2); /* a collector must not run again */
  c->finalizing = false;
  fnn_close(fnn_use(test_context));
}

/* Makes more temporaries than its frame's first pool has room for. */
static void make_many (void *ud) {
  (void)ud;
  for (int i = 0; i < 600; i++) bytes(1);
}

static void work_on_reclaim (void *ud) {
  Heap *h = ud;
  h->first = LONG_MAX;
  if (fnn_pcall(make_many, NULL) == FNN_OK) h->asked++;
}

/* The pool of temporaries grows while it grows: the collector of a host may
** run finalizers that compute. */
TEST(a_reclaim_may_compute) {
  Heap h = { .first = LONG_MAX, .last = LONG_MAX };
  fnn_Host host = FNN_HOST_INIT;
  host.ud = &h;
  host.alloc = heap_alloc;
  host.reclaim = work_on_reclaim;
  fnn_Context *c = fnn_open(&host);
  fnn_use(c);
  bytes(1);
  while (c->npool < c->poolcap) bytes(1);
  h.calls = 0;
  h.first = h.last = 1;
  frame_room(1);
  assert_int_equal(h.asked, 1);
  assert_true(c->poolcap - c->npool >= 1);
  bytes(1);
  fnn_close(fnn_use(test_context));
  assert_int_equal(h.blocks, 0);
  assert_int_equal(h.wrong, 0);
}

TEST(live_bytes_return) {
  fnn_trim();
  fnn_Memory before = fnn_memory();
  size_t m = fnn_mark();
  for (int i = 0; i < 300; i++) bytes(1000 * (i + 1));
  fnn_Memory during = fnn_memory();
  assert_true(during.live > before.live + 45000000);
  assert_int_equal(during.objects, before.objects + 300);
  fnn_escape(m, NULL);
  assert_int_equal(fnn_memory().objects, before.objects);
  fnn_trim();
  /* What stays is the pool of temporaries, which has grown. */
  assert_true(fnn_memory().live - before.live < 16384);
  assert_int_equal(fnn_memory().idle, 0);
  assert_true(fnn_memory().peak >= during.live);
  fnn_memory_peak_reset();
  assert_true(fnn_memory().peak == fnn_memory().live);
}

/* Live and idle bytes together stay within what was live of late, and a
** quarter; or 64 MB are idle, and 1 MB of tiny ones. */
TEST(the_cache_is_bounded) {
  uint64_t crest = 0;
  for (uint64_t i = 0; i < 12; i++) {
    size_t k = fnn_mark();
    for (uint64_t j = 0; j <= i; j++) bytes(8 * MB + 1000000 * i);
    if (crest < fnn_memory().live) crest = fnn_memory().live;
    fnn_escape(k, NULL);
    fnn_Memory m = fnn_memory();
    assert_true(m.idle <= 65 * MB || m.live + m.idle <= crest + crest / 4);
  }
  fnn_trim();
}

/* What a large phase left idle goes once a small one has gone on for long. */
TEST(the_cache_forgets_a_crest) {
  if (mem_checking()) skip();
  size_t k = fnn_mark();
  for (int j = 0; j < 10; j++) bytes(20 * MB);
  fnn_escape(k, NULL);
  assert_true(fnn_memory().idle >= 200 * MB);
  for (int i = 0; i < 2000; i++) {
    bytes(2 * MB);
    fnn_escape(k, NULL);
  }
  assert_true(fnn_memory().idle <= 65 * MB);
  fnn_trim();
}

/* }====================================================== */

/*
** {======================================================
** Storage of more than one context
** =======================================================
*/

typedef struct Passed {
  Heap heap;
  fnn_Share *share;
  int released;
  bool ok;
  double sum;
} Passed;

static void on_release (void *ud, void *data) {
  Passed *p = ud;
  p->released++;
  free(data);
}

static void make_and_share (void *ud) {
  Passed *p = ud;
  int64_t n = 1000;
  int32_t *data = malloc((size_t)n * sizeof *data);
  for (int i = 0; i < n; i++) data[i] = i;
  Tensor *x = fnn_wrap(FNN_I32, 1, &n, data, on_release, p, false);
  p->share = fnn_share(x);
  Tensor *y = fnn_tensor(FNN_I32, 1, &n, data);
  fnn_Share *copy = fnn_share(y), *again = fnn_share(fnn_shared(copy));
  fnn_share_free(copy);
  p->ok = ((const int32_t *)fnn_data(fnn_shared(again)))[999] == 999;
  fnn_share_free(again);
}

static void receive (void *ud) {
  Passed *p = ud;
  Tensor *x = fnn_shared(p->share), *z = fnn_shared(p->share);
  fnn_share_free(p->share);
  Tensor *view = tensor_view(x, 1, (int64_t[]){ 500 }, (int64_t[]){ 2 }, 1);
  for (int i = 0; i < 500; i++)
    p->ok = p->ok && dtype_get(FNN_I32, tensor_data(view), 2 * i) == 2 * i + 1;
  ((int32_t *)fnn_mutable_data(x))[3] = -3; /* all that share it see it */
  p->ok = p->ok && ((const int32_t *)fnn_data(z))[3] == -3;
  p->ok = p->ok && p->released == 0;
}

static void *receive_on_thread (void *ud) {
  Passed *p = ud;
  fnn_Context *c = open_on(&p->heap);
  fnn_use(c);
  if (fnn_pcall(receive, p) != FNN_OK) p->ok = false;
  fnn_close(c);
  return NULL;
}

/* The receiver works when the maker's context is closed already. */
TEST(storage_is_shared_between_contexts) {
  Passed p = { .released = 0 };
  pthread_t id;
  fnn_Context *c = open_on(&p.heap);
  fnn_use(c);
  assert_int_equal(fnn_pcall(make_and_share, &p), FNN_OK);
  fnn_close(fnn_use(test_context));
  assert_true(p.ok);
  assert_int_equal(p.released, 0);
  assert_int_equal(pthread_create(&id, NULL, receive_on_thread, &p), 0);
  pthread_join(id, NULL);
  assert_true(p.ok);
  assert_int_equal(p.released, 1);
  assert_int_equal(p.heap.blocks, 0);
  assert_int_equal(p.heap.wrong, 0);
}

typedef struct Both {
  fnn_Share *share;
  atomic_int bad;
} Both;

static void use_shared (void *ud) {
  Both *b = ud;
  for (int i = 0; i < 500; i++) {
    size_t m = fnn_mark();
    Tensor *x = fnn_shared(b->share);
    if (fnn_item(fnn_sum(x, 0, NULL, false)) != 1000) b->bad++;
    fnn_share_free(fnn_share(x));
    fnn_escape(m, NULL);
  }
}

static void *use_on_thread (void *ud) {
  Both *b = ud;
  fnn_Context *c = fnn_open(NULL);
  fnn_use(c);
  if (fnn_pcall(use_shared, b) != FNN_OK) b->bad++;
  fnn_close(c);
  return NULL;
}

TEST(two_threads_share_one_storage) {
  int64_t n = 1000;
  pthread_t id;
  Both b = { .share = fnn_share(fnn_full(1, &n, 1, FNN_F32, NULL)) };
  assert_int_equal(pthread_create(&id, NULL, use_on_thread, &b), 0);
  use_shared(&b);
  pthread_join(id, NULL);
  fnn_share_free(b.share);
  assert_int_equal(b.bad, 0);
}

static void write_it (void *ud) { fnn_mutable_data(ud); }

static void wrap_odd (void *ud) {
  int64_t n = 3;
  fnn_wrap(FNN_F32, 1, &n, (char *)ud + 1, NULL, NULL, false);
}

TEST(wrapped_memory_may_be_read_only) {
  static const float data[] = { 1, 2, 3 };
  int64_t n = 3;
  Tensor *x =
      fnn_wrap(FNN_F32, 1, &n, (void *)(uintptr_t)data, NULL, NULL, true);
  assert_ptr_equal(fnn_data(x), data);
  throws(FNN_EARG, "mutable_data: the tensor of shape (3) is read-only",
         write_it, x);
  throws(FNN_EARG, "wrap: the memory is not aligned for f32", wrap_odd,
         (void *)(uintptr_t)data);
}

/* }====================================================== */

/*
** {======================================================
** Every allocation failed
** =======================================================
*/

static Tensor *random_matrix (int64_t rows, int64_t cols, fnn_Generator *g) {
  return fnn_normal(2, (int64_t[]){ rows, cols }, 0, 1, FNN_F32, NULL, g);
}

/* x (6, 5) through two layers and views; the loss of a softmax. */
static Tensor *loss_of (Tensor *x, Param *const *w, fnn_Generator *g) {
  int64_t six = 6;
  Tensor *h = fnn_linear(x, fnn_value(w[0]), fnn_value(w[1]), -1);
  h = fnn_dropout(fnn_tanh(h), 0.2, g);
  h = fnn_matmul(h, fnn_value(w[2]));
  h = fnn_add(h, fnn_expand(fnn_narrow(x, 1, 0, 1), 2, (int64_t[]){ 6, 4 }));
  h = fnn_cat(2, (Tensor *[]){ h, fnn_flip(h, 1, (int[]){ 1 }) }, 1);
  h = fnn_log_softmax(fnn_transpose(fnn_transpose(h, 0, 1), 0, 1), 1);
  Tensor *ids = fnn_randint(1, &six, 0, 8, FNN_I64, NULL, g);
  Tensor *t = fnn_cast(fnn_one_hot(ids, 8), FNN_F32);
  return fnn_scale(fnn_mean(fnn_mul(h, t), 0, NULL, false), -1);
}

static void throw_shape (void *ud) {
  (void)ud;
  fnn_throw(FNN_ESHAPE, "%s", shape_text(bytes(3)));
}

/* The handle is no object: nobody but its holder frees it. */
static void sum_shared (void *ud) {
  Passed *p = ud;
  Tensor *x = fnn_reshape(fnn_shared(p->share), 1, (int64_t[]){ -1 });
  p->sum = fnn_item(fnn_sum(x, 0, NULL, false));
}

/* What a step does besides: an error caught, rows, a state, a share. */
static double others (Tensor *x, fnn_Generator *g) {
  Tensor *ids, *v = fnn_topk(x, 2, 1, true, &ids);
  fnn_Status s = fnn_pcall(throw_shape, NULL);
  if (s != FNN_ESHAPE) fnn_throw(s, "%s", fnn_message());
  fnn_generator_restore(g, fnn_generator_state(g));
  v = fnn_index_select(v, 0, fnn_select(ids, 1, 0));
  Passed p = { .share = fnn_share(v) };
  s = fnn_pcall(sum_shared, &p);
  fnn_share_free(p.share);
  if (s != FNN_OK) fnn_throw(s, "%s", fnn_message());
  return p.sum;
}

/* What optimizers hold and make for a step: state of all kinds, scratch. */
static void other_optimizers (Param **w) {
  static const char *const names[] = { "RMSprop", "Adafactor", "Muon" };
  const fnn_Option all[] = { { "momentum", { 0.9 } }, { "centered", { 1 } } };
  for (int i = 0; i < countof(names); i++) {
    fnn_Optimizer *o = fnn_optimizer(names[i]), *same;
    Param *p[] = { w[0], w[2] };
    fnn_optimizer_group(o, 1, &p[0], i == 0 ? 2 : 0, all);
    fnn_optimizer_group(o, 1, &p[1], 0, NULL);
    fnn_optimizer_step_clipped(o, 0.5, 1);
    same = fnn_optimizer(names[i]);
    fnn_optimizer_group(same, 2, p, i == 0 ? 2 : 0, all);
    fnn_OptimizerState s[] = { fnn_optimizer_state(o, p[0]),
                               fnn_optimizer_state(o, p[1]) };
    if (i > 0) fnn_optimizer_load(same, 2, s);
  }
}

/* Two steps of a small model with Adam; *ud is a number of all of it. */
static void train (void *ud) {
  fnn_Generator *g = fnn_generator("philox", 3);
  int64_t seven = 7;
  Tensor *x = random_matrix(6, 5, g);
  Param *w[] = { fnn_param(random_matrix(7, 5, g)),
                 fnn_param(fnn_zeros(1, &seven, FNN_F32, NULL)),
                 fnn_param(random_matrix(7, 4, g)) };
  fnn_Optimizer *o = fnn_optimizer("Adam");
  fnn_optimizer_group(o, 3, w, 0, NULL);
  double sum = 0;
  for (int i = 0; i < 2; i++) {
    size_t m = fnn_mark();
    fnn_optimizer_zero_grad(o);
    Tensor *loss = loss_of(x, w, g), *gw[3];
    fnn_backward(loss, NULL, true);
    fnn_grad(loss, NULL, 3, w, gw, false);
    fnn_optimizer_step(o);
    other_optimizers(w);
    sum += fnn_item(loss) + fnn_item(fnn_sum(gw[2], 0, NULL, false));
    sum += others(x, g);
    fnn_escape(m, NULL);
  }
  *(double *)ud = sum;
}

/* c as it should be after a step, however that ended. */
static void check_rested (const fnn_Context *c) {
  assert_int_equal(c->npool, 0);
  assert_null(c->frame);
  assert_null(c->walk);
  assert_true(c->grad_mode);
  assert_int_equal(c->nodes, 0);
  assert_int_equal(c->objects, 1); /* the generator */
}

/* A fresh context whose call n fails, and all after it if all is set.  Says
** through *threw whether that made the step throw; returns the calls. */
static long step_failing (long n, bool all, double right, bool *threw) {
  Heap h = { .first = n, .last = all ? LONG_MAX : n };
  double result = 0;
  *threw = false;
  fnn_Context *c = open_on(&h);
  if (c != NULL) {
    fnn_use(c);
    fnn_Status s = fnn_pcall(train, &result);
    if (s != FNN_OK) {
      *threw = true;
      assert_int_equal(s, FNN_EMEMORY);
      assert_non_null(strstr(fnn_message(), "out of memory"));
    } else assert_true(result == right);
  }
  long calls = h.calls;
  h.first = LONG_MAX;
  if (c != NULL) {
    check_rested(c);
    assert_int_equal(fnn_pcall(train, &result), FNN_OK);
    assert_true(result == right);
    check_rested(c);
    fnn_close(fnn_use(test_context));
  }
  assert_int_equal(h.blocks, 0);
  assert_int_equal(h.wrong, 0);
  return calls;
}

static void sweep (bool all) {
  double right = 0;
  long n = 0, calls, step = is_slow() ? 5 : 1, threw = 0;
  bool t;
  assert_int_equal(fnn_pcall(train, &right), FNN_OK);
  assert_true(right != 0);
  do {
    n += step;
    calls = step_failing(n, all, right, &t);
    threw += t;
  } while (calls >= n);
  print_message("%ld allocations failed in turn%s: %ld throws\n",
                (n - 1) / step, all ? ", with all after them" : "", threw);
  assert_true(n > 100);
}

TEST(every_allocation_may_fail) { sweep(true); }

/* The second try after the host's reclaim hides most of these. */
TEST(every_single_allocation_may_fail) { sweep(false); }

/* }====================================================== */

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_limit_holds),
    cmocka_unit_test(the_host_reclaims_before_a_throw),
    cmocka_unit_test(a_reclaim_may_compute),
    cmocka_unit_test(live_bytes_return),
    cmocka_unit_test(the_cache_is_bounded),
    cmocka_unit_test(the_cache_forgets_a_crest),
    cmocka_unit_test(storage_is_shared_between_contexts),
    cmocka_unit_test(two_threads_share_one_storage),
    cmocka_unit_test(wrapped_memory_may_be_read_only),
    cmocka_unit_test(every_allocation_may_fail),
    cmocka_unit_test(every_single_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("memory", tests, open_context,
                                     close_context);
}
