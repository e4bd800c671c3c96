/* core_test.c - frames, errors, ownership, contexts, the graph's walk. */

#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHAIN = 200000 };

static Tensor *vector (int64_t n, double value) {
  Tensor *x = fnn_empty(1, &n, FNN_F32, NULL);
  for (int64_t i = 0; i < n; i++) ((float *)tensor_data(x))[i] = (float)value;
  return x;
}

static uint64_t objects (void) { return fnn_memory().objects; }

/*
** {======================================================
** Frames and errors
** =======================================================
*/

static int deep (int depth) {
  Tensor *x = vector(10, depth);
  if (depth > 0) return deep(depth - 1) + x->ndim;
  if (x->numel > 0) fnn_throw(FNN_ESHAPE, "deep: %s at %d", "bottom", depth);
  return 0;
}

static void throw_at_depth (void *ud) { (void)ud, deep(50); }

TEST(a_throw_releases_the_temporaries) {
  uint64_t before = objects();
  size_t mark = fnn_mark();
  Frame *frame = test_context->frame;
  throws(FNN_ESHAPE, "deep: bottom at 0", throw_at_depth, NULL);
  assert_string_equal(fnn_message(), "deep: bottom at 0");
  assert_int_equal(objects(), before);
  assert_int_equal(fnn_mark(), mark);
  assert_ptr_equal(test_context->frame, frame);
}

/* What an inner frame makes goes with it, what was retained stays. */
static void inner (void *ud) {
  vector(3, 1);
  *(Tensor **)ud = fnn_retain(vector(3, 2));
}

static void inner_and_throw (void *ud) {
  inner(ud);
  fnn_throw(FNN_EARG, "inner: no");
}

static void outer (void *ud) {
  Tensor *mine = vector(4, 1), *kept = NULL;
  uint64_t before = objects();
  if (fnn_pcall(inner, &kept) != FNN_OK) fnn_throw(FNN_EARG, "outer: no");
  if (objects() != before + 1) fnn_throw(FNN_EARG, "outer: count");
  fnn_release(kept);
  if (fnn_pcall(inner_and_throw, &kept) != FNN_EARG)
    fnn_throw(FNN_EARG, "outer: no error");
  fnn_release(kept);
  *(int64_t *)ud = mine->numel + (int64_t)(objects() - before);
}

TEST(frames_nest) {
  int64_t seen = 0;
  assert_int_equal(fnn_pcall(outer, &seen), FNN_OK);
  assert_int_equal(seen, 4);
}

static void throw_again (void *ud) {
  fnn_Status s = fnn_pcall(throw_at_depth, ud);
  fnn_throw(s, "%s", fnn_message());
}

static void throw_much (void *ud) {
  char text[2 * MESSAGE_MAX];
  (void)ud;
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  fnn_throw(FNN_EARG, "%s", text);
}

TEST(messages_are_kept_whole) {
  throws(FNN_ESHAPE, "deep: bottom at 0", throw_again, NULL);
  assert_string_equal(fnn_message(), "deep: bottom at 0");
  throws(FNN_EARG, "xxxx", throw_much, NULL);
  assert_int_equal(strlen(fnn_message()), MESSAGE_MAX - 1);
}

static void no_grad_and_throw (void *ud) {
  fnn_grad_mode(false);
  throw_at_depth(ud);
}

TEST(a_throw_restores_the_grad_mode) {
  assert_true(fnn_is_grad_mode());
  throws(FNN_ESHAPE, "deep", no_grad_and_throw, NULL);
  assert_true(fnn_is_grad_mode());
}

TEST(escape_passes_one_up) {
  Tensor *old = vector(1, 1);
  uint64_t before = objects();
  size_t m = fnn_mark();
  vector(2, 0);
  Tensor *y = vector(3, 7);
  vector(4, 0);
  assert_ptr_equal(fnn_escape(m, y), y);
  assert_int_equal(y->o.refs, 1);
  assert_int_equal(objects(), before + 1);
  assert_int_equal(fnn_mark(), m + 1);
  vector(5, 0);
  assert_null(fnn_escape(m, NULL));
  assert_int_equal(objects(), before);
  vector(6, 0);
  assert_ptr_equal(fnn_escape(m, old), old); /* an older one: twice in it */
  assert_int_equal(old->o.refs, 2);
  assert_null(fnn_escape(m, NULL));
  assert_int_equal(old->o.refs, 1);
}

/* As a collector does inside an allocation: gives the frame all it takes. */
static void fill_pool (void *ud) {
  fnn_Tensor *x = ud;
  while (frame_try_adopt(fnn_retain(x))) continue;
  fnn_release(x);
}

TEST(adopting_leaves_a_place) {
  fnn_Tensor *x = fnn_zeros(0, NULL, FNN_F32, NULL);
  frame_room(1);
  fill_pool(x);
  assert_true(test_context->npool < test_context->poolcap);
  size_t cap = test_context->poolcap;
  tensor_like(x); /* takes that place, and the next makes room */
  assert_int_equal(test_context->poolcap, cap);
  tensor_like(x);
  assert_true(test_context->poolcap > cap);
}

TEST(references_are_counted) {
  size_t m = fnn_mark();
  uint64_t before = objects();
  Tensor *x = vector(8, 1);
  assert_int_equal(x->o.refs, 1);
  assert_ptr_equal(fnn_retain(x), x);
  fnn_escape(m, NULL);
  assert_int_equal(x->o.refs, 1);
  Tensor *view = tensor_alias(x);
  assert_int_equal(x->storage->refs, 2);
  fnn_release(x);
  assert_int_equal(view->storage->refs, 1);
  assert_true(((const float *)fnn_data(view))[7] == 1);
  fnn_escape(m, NULL);
  assert_int_equal(objects(), before);
  assert_null(fnn_retain(NULL));
  fnn_release(NULL);
}

/* }====================================================== */

/*
** {======================================================
** Panics
** =======================================================
*/

static int panic_pipe[2];

static void tell (void *ud, const char *text) {
  (void)ud;
  if (write(panic_pipe[1], text, strlen(text) + 1) < 0) _exit(3);
}

static void without_frame (void) {
  fnn_Host host = FNN_HOST_INIT;
  host.panic = tell;
  fnn_use(fnn_open(&host));
  fnn_throw(FNN_EARG, "panic: %d", 12);
}

static void without_context (void) {
  fnn_use(NULL);
  fnn_mark();
}

/* Runs f in a child, which must abort. */
static void aborts (void (*f)(void)) {
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    signal(SIGABRT, SIG_DFL);
    f();
    _exit(0);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
}

TEST(a_throw_outside_a_frame_panics) {
  char text[64] = "";
  assert_int_equal(pipe(panic_pipe), 0);
  aborts(without_frame);
  assert_int_equal(read(panic_pipe[0], text, sizeof text), 10);
  assert_string_equal(text, "panic: 12");
  aborts(without_context);
  close(panic_pipe[0]);
  close(panic_pipe[1]);
}

/* }====================================================== */

/*
** {======================================================
** Contexts and threads
** =======================================================
*/

/* Some work with an error in it; the result depends on the seed alone. */
static void work (void *ud) {
  double *result = ud;
  int64_t shape[] = { 40, 30 };
  Param *w = fnn_param(fnn_normal(2, shape, 0, 1, FNN_F32, NULL, NULL));
  Tensor *x = fnn_normal(2, shape, 0, 1, FNN_F32, NULL, NULL);
  for (int i = 0; i < 20; i++) {
    size_t m = fnn_mark();
    Tensor *y = fnn_tanh(fnn_mul(fnn_value(w), x));
    fnn_backward(fnn_mean(y, 0, NULL, false), NULL, false);
    fnn_pcall(throw_at_depth, NULL);
    fnn_escape(m, NULL);
  }
  *result = fnn_item(fnn_sum(fnn_gradient(w), 0, NULL, false));
}

/* Each with a context, opened here when c is NULL. */
typedef struct Job {
  pthread_t id;
  fnn_Context *c;
  fnn_Status status;
  double result;
} Job;

static void *work_on_thread (void *ud) {
  Job *j = ud;
  fnn_Context *c = j->c != NULL ? j->c : fnn_open(NULL);
  fnn_use(c);
  fnn_manual_seed(NULL, 6);
  j->status = fnn_pcall(work, &j->result);
  fnn_use(NULL);
  if (j->c == NULL) fnn_close(c);
  return NULL;
}

static void run_on_thread (Job *j, size_t stack, void *(*f)(void *)) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  if (stack > 0) pthread_attr_setstacksize(&a, stack);
  assert_int_equal(pthread_create(&j->id, &a, f, j), 0);
  pthread_attr_destroy(&a);
}

TEST(each_thread_has_its_context) {
  Job job[4];
  double result = 0;
  memset(job, 0, sizeof job);
  fnn_manual_seed(NULL, 6);
  for (int i = 0; i < 4; i++) run_on_thread(&job[i], 0, work_on_thread);
  work(&result);
  for (int i = 0; i < 4; i++) {
    pthread_join(job[i].id, NULL);
    assert_int_equal(job[i].status, FNN_OK);
    assert_true(job[i].result == result);
  }
  assert_true(result != 0);
}

TEST(a_context_may_change_threads) {
  fnn_Context *c = fnn_open(NULL);
  double first = 0;
  for (int i = 0; i < 3; i++) {
    Job job = { .c = c };
    run_on_thread(&job, 0, work_on_thread);
    pthread_join(job.id, NULL);
    assert_int_equal(job.status, FNN_OK);
    if (i == 0) first = job.result;
    assert_true(job.result == first);
  }
  fnn_close(c);
}

TEST(contexts_do_not_see_each_other) {
  throws(FNN_EARG, "xxxx", throw_much, NULL);
  fnn_Context *other = fnn_open(NULL), *before = fnn_use(other);
  assert_ptr_equal(before, test_context);
  assert_ptr_equal(fnn_current(), other);
  fnn_grad_mode(false);
  throws(FNN_ESHAPE, "deep", throw_at_depth, NULL);
  assert_ptr_equal(fnn_use(before), other);
  assert_true(fnn_is_grad_mode());
  assert_int_equal(fnn_message()[0], 'x');
  fnn_use(other);
  vector(3, 1); /* no frame is open: the context's end takes it */
  fnn_use(before);
  fnn_close(other);
  assert_ptr_equal(fnn_current(), before);
}

/* }====================================================== */

/*
** {======================================================
** Long graphs
** =======================================================
*/

/* A chain of sums, as deep as the number of nodes. */
static Tensor *chain (Param *w, int n) {
  Tensor *y = fnn_value(w), *x = vector(1, 1);
  size_t m = fnn_mark();
  for (int i = 0; i < n; i++) y = fnn_escape(m, fnn_add(y, x));
  return y;
}

static void long_chain (void *ud) {
  Param *w = fnn_param(vector(1, 0));
  double *result = ud;
  size_t m = fnn_mark();
  chain(w, CHAIN); /* freed without a pass */
  fnn_escape(m, NULL);
  Tensor *y = chain(w, CHAIN);
  if (fnn_memory().nodes != CHAIN) fnn_throw(FNN_EGRAPH, "nodes are lost");
  result[0] = fnn_item(y);
  fnn_backward(y, NULL, true);
  fnn_backward(y, NULL, false);
  result[1] = fnn_item(fnn_gradient(w));
  result[2] = (double)fnn_memory().nodes;
}

static void *chain_on_thread (void *ud) {
  static double result[3];
  Job *j = ud;
  fnn_use(j->c);
  j->status = fnn_pcall(long_chain, result);
  j->result = result[0] == CHAIN && result[1] == 2 && result[2] == 1;
  return NULL;
}

/* Neither the walk nor the end of a graph uses stack for its depth. */
TEST(a_long_chain_fits_a_small_stack) {
  Job job = { .c = fnn_open(NULL) };
  run_on_thread(&job, 256 << 10, chain_on_thread);
  pthread_join(job.id, NULL);
  fnn_use(job.c);
  if (job.status != FNN_OK) fail_msg("%s", fnn_message());
  assert_true(job.result == 1);
  assert_int_equal(fnn_memory().nodes, 0);
  assert_int_equal(fnn_memory().objects, 1); /* the generator */
  fnn_close(fnn_use(test_context));
}

static void spent (void *ud) { fnn_backward(ud, NULL, false); }
static void overwritten (void *ud) { fnn_backward(ud, NULL, false); }

TEST(misuse_of_a_graph_is_named) {
  Param *w = fnn_param(vector(3, 1));
  Tensor *x = vector(3, 2);
  Tensor *y = fnn_sum(fnn_mul(fnn_value(w), x), 0, NULL, false);
  fnn_backward(y, NULL, false);
  throws(FNN_EGRAPH, "was used already", spent, y);
  throws(FNN_EGRAPH, "depends on no trainable parameter", spent, x);
  y = fnn_sum(fnn_mul(fnn_value(w), x), 0, NULL, false);
  fnn_fill_(x, 5);
  throws(FNN_EGRAPH, "an in-place op has overwritten since", overwritten, y);
  assert_null(test_context->walk);
  assert_true(fnn_is_grad_mode());
  assert_true(((const float *)fnn_data(fnn_gradient(w)))[2] == 2);
}

/* }====================================================== */

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_throw_releases_the_temporaries),
    cmocka_unit_test(frames_nest),
    cmocka_unit_test(messages_are_kept_whole),
    cmocka_unit_test(a_throw_restores_the_grad_mode),
    cmocka_unit_test(escape_passes_one_up),
    cmocka_unit_test(adopting_leaves_a_place),
    cmocka_unit_test(references_are_counted),
    cmocka_unit_test(a_throw_outside_a_frame_panics),
    cmocka_unit_test(each_thread_has_its_context),
    cmocka_unit_test(a_context_may_change_threads),
    cmocka_unit_test(contexts_do_not_see_each_other),
    cmocka_unit_test(a_long_chain_fits_a_small_stack),
    cmocka_unit_test(misuse_of_a_graph_is_named),
  };
  return cmocka_run_group_tests_name("core", tests, open_context,
                                     close_context);
}
