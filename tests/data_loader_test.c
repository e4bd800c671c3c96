/* data_loader_test.c - what loaders allocate, and how errors of the reading
** thread arrive. */

#include "../src/fnn_nn.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* ThreadSanitizer ends a forked child that starts threads. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

static Tensor *zeros (int ndim, const int64_t *shape, fnn_Dtype t) {
  return fnn_full(ndim, shape, 0, t, NULL);
}

/* 60,000 images as bytes, which are read as floats. */
static fnn_Dataset *images (int64_t n) {
  int64_t shape[] = { n, 28, 28 };
  fnn_DataField f[2] = { { zeros(3, shape, FNN_U8), true, FNN_F32, 1.0 / 255 },
                         { zeros(1, &n, FNN_I64), false, FNN_I64, 1 } };
  return fnn_tensor_dataset(2, f);
}

/* Takes the batches of an epoch, and tells how often the allocator was asked
** from the second batch on. */
static size_t asked;

static void *counting (void *ud, void *p, size_t osize, size_t nsize) {
  (void)ud, (void)osize;
  if (nsize == 0) {
    free(p);
    return NULL;
  }
  asked++;
  return realloc(p, nsize);
}

static int64_t take_all (fnn_Loader *l) {
  int64_t items = 0;
  for (;;) {
    size_t m = fnn_mark();
    Tensor *x[2];
    bool more = fnn_loader_next(l, x);
    if (more) items += x[0]->shape[0];
    fnn_escape(m, NULL);
    if (!more) return items;
  }
}

static void epoch_of_60000 (void *ud) {
  fnn_LoaderOptions o = { .batch = 128, .shuffle = true };
  fnn_Loader *l = fnn_loader(images(60000), &o);
  (void)ud;
  assert_int_equal(take_all(l), 60000); /* fills the free lists */
  fnn_loader_start(l, 1, 0);
  uint64_t objects = fnn_memory().objects;
  asked = 0;
  assert_int_equal(take_all(l), 60000);
  assert_int_equal(fnn_memory().objects, objects);
  /* Far below one a batch (469), let alone an item. */
  assert_true(asked < 100);
}

static void batches_cost_no_memory (void **state) {
  (void)state;
  if (mem_checking()) skip();
  fnn_Host host = FNN_HOST_INIT;
  host.alloc = counting;
  fnn_Context *c = fnn_open(&host), *before = fnn_use(c);
  if (fnn_pcall(epoch_of_60000, NULL) != FNN_OK) fail_msg("%s", fnn_message());
  fnn_use(before);
  fnn_close(c);
}

static void next (void *ud) {
  Tensor *x[2];
  fnn_loader_next(ud, x);
}

TEST(the_readers_error_arrives_at_next) {
  fnn_LoaderOptions o = { .batch = 1000, .prefetch = 2 };
  fnn_Loader *l = fnn_loader(images(4000), &o);
  int64_t epoch, batch;
  fnn_trim();
  fnn_memory_limit(fnn_memory().live + 500000); /* a batch has 3136000 */
  throws(FNN_EMEMORY, "3", next, l);
  fnn_loader_cursor(l, &epoch, &batch);
  assert_true(epoch == 0 && batch == 0);
  fnn_memory_limit(0);
  assert_int_equal(take_all(l), 4000); /* it starts again where it was */
}

TEST(a_reader_is_left_at_any_place) {
  fnn_LoaderOptions o = { .batch = 10, .prefetch = 2 };
  fnn_Loader *l = fnn_loader(images(1000), &o);
  next(l);
  fnn_loader_start(l, 3, 99);
  assert_int_equal(take_all(l), 10);
  fnn_loader_start(l, 3, 100);
  assert_int_equal(take_all(l), 0);
}

/* A child says what it took by how it kills itself: at an exit valgrind would
** find what the threads of its parent held. */
TEST(a_child_of_a_fork_reads_on) {
#ifdef UNDER_TSAN
  skip();
#endif
  fnn_LoaderOptions o = { .batch = 10, .prefetch = 2 };
  fnn_Loader *l = fnn_loader(images(1000), &o);
  int status = 0;
  next(l);
  usleep(20000); /* it has read what it may, and waits */
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20); /* and not for ever */
    bool ok = take_all(l) == 990;
    fnn_loader_start(l, 1, 0);
    ok = ok && take_all(l) == 1000;
    kill(getpid(), ok ? SIGKILL : SIGTERM);
  }
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGKILL);
  assert_int_equal(take_all(l), 990);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(batches_cost_no_memory),
    cmocka_unit_test(the_readers_error_arrives_at_next),
    cmocka_unit_test(a_reader_is_left_at_any_place),
    cmocka_unit_test(a_child_of_a_fork_reads_on),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
