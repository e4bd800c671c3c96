/* device_test.c - a card as C sees it: steps that are recorded and replayed,
** and copies of pinned memory.  CUDA=emulate has one; where there is none, only
** what the CPU says is tested, unless TEST_CARD=1 wants one. */

#include "test.h"

enum { N = 5 };

static const int64_t shape[] = { N };

static const fnn_Device *card;

static fnn_Tensor *on_card (double v) {
  return fnn_full(1, shape, v, FNN_F32, card);
}

/* Whether all of x is v. */
static bool all_are (const fnn_Tensor *x, float v) {
  float read[N];
  fnn_read(x, read);
  for (int i = 0; i < N; i++)
    if (read[i] != v) return false;
  return true;
}

/*
** {======================================================
** What is replayed
** =======================================================
*/

TEST(replays_go_from_the_same_to_the_same) {
  fnn_Tensor *x = on_card(3), *sum = on_card(0), *y;
  fnn_Capture *p = fnn_capture_begin(card);
  y = fnn_mul(x, x);
  fnn_copy_(sum, fnn_add(sum, y));
  fnn_capture_end(p);
  assert_true(all_are(y, 9) && all_are(sum, 9)); /* the end has done it */
  fnn_copy_(x, on_card(4));
  assert_true(fnn_capture_replay(p));
  assert_true(fnn_capture_replay(p));
  assert_true(all_are(y, 16) && all_are(sum, 9 + 2 * 16));
  assert_true(all_are(x, 4));
}

/* What a step freed in between is the recording's, and nobody else's. */
TEST(memory_of_a_recording_is_not_handed_out) {
  fnn_Tensor *x = on_card(2), *y, *others[8];
  fnn_Capture *p = fnn_capture_begin(card);
  size_t m = fnn_mark();
  y = fnn_escape(m, fnn_add(fnn_mul(x, x), x));
  fnn_capture_end(p);
  for (int i = 0; i < 8; i++) others[i] = on_card(100 + i);
  assert_true(fnn_capture_replay(p) && all_are(y, 6));
  for (int i = 0; i < 8; i++) assert_true(all_are(others[i], 100 + (float)i));
}

static void draw (float *to, fnn_Tensor *x) { fnn_read(x, to); }

TEST(replays_draw_the_next_numbers) {
  enum { STEPS = 4 };
  float want[STEPS][N], got[STEPS][N];
  fnn_Generator *g = fnn_generator("philox", 7);
  for (int i = 0; i < STEPS; i++)
    draw(want[i], fnn_uniform(1, shape, 0, 1, FNN_F32, card, g));
  fnn_manual_seed(g, 7);
  fnn_Capture *p = fnn_capture_begin(card);
  fnn_Tensor *u = fnn_uniform(1, shape, 0, 1, FNN_F32, card, g);
  fnn_capture_end(p);
  draw(got[0], u);
  for (int i = 1; i < STEPS; i++) {
    assert_true(fnn_capture_replay(p));
    draw(got[i], u);
  }
  assert_memory_equal(want, got, sizeof want);
}

TEST(another_seed_ends_it) {
  fnn_Generator *g = fnn_generator("philox", 7);
  fnn_Capture *p = fnn_capture_begin(card);
  fnn_Tensor *u = fnn_uniform(1, shape, 0, 1, FNN_F32, card, g);
  fnn_capture_end(p);
  float before[N], after[N];
  draw(before, u);
  fnn_manual_seed(g, 8);
  assert_false(fnn_capture_replay(p));
  draw(after, u);
  assert_memory_equal(before, after, sizeof before);
}

TEST(nothing_is_left_of_a_recording) {
  fnn_trim();
  uint64_t before = fnn_device_memory(card).live;
  size_t m = fnn_mark();
  fnn_Tensor *x = on_card(1);
  fnn_Capture *p = fnn_capture_begin(card);
  for (int i = 0; i < 3; i++) x = fnn_add(x, x);
  fnn_capture_end(p);
  assert_true(fnn_capture_replay(p));
  assert_true(fnn_device_memory(card).live > before);
  fnn_escape(m, NULL);
  assert_int_equal(fnn_device_memory(card).live, before);
}

/* }====================================================== */

/*
** {======================================================
** Mistakes
** =======================================================
*/

static void begin (void *d) { fnn_capture_begin(d); }

static void end (void *p) { fnn_capture_end(p); }

static void replay (void *p) { (void)fnn_capture_replay(p); }

TEST(the_cpu_records_nothing) {
  throws(FNN_EDEVICE, "a step is recorded on a card, not on the cpu", begin,
         (void *)(intptr_t)fnn_device("cpu"));
  fnn_capture_stop(); /* of nothing */
}

static void read_one (void *x) { draw((float[N]){ 0 }, x); }

static void send (void *x) { (void)fnn_to_device(x, card); }

static void synchronize (UNUSED void *ud) { fnn_synchronize(card); }

TEST(a_step_waits_for_nothing) {
  fnn_Tensor *x = on_card(1), *host = fnn_full(1, shape, 1, FNN_F32, NULL);
  (void)fnn_capture_begin(card);
  throws(FNN_EGRAPH, "reading a value: not in a step that is recorded",
         read_one, x);
  throws(FNN_EGRAPH, "copy to the device: not in a step", send, host);
  throws(FNN_EGRAPH, "synchronize: not in a step", synchronize, NULL);
  fnn_capture_stop();
  assert_true(all_are(fnn_add(x, x), 2)); /* and the card goes on */
}

TEST(steps_come_one_after_another) {
  fnn_Tensor *x = on_card(1);
  fnn_Capture *p = fnn_capture_begin(card);
  throws(FNN_EGRAPH, "a step is being recorded already", begin,
         (void *)(intptr_t)card);
  throws(FNN_EGRAPH, "the step was not recorded", replay, p);
  fnn_Tensor *y = fnn_add(x, x);
  fnn_capture_end(p);
  throws(FNN_EGRAPH, "this step is not being recorded", end, p);
  fnn_Capture *q = fnn_capture_begin(card);
  throws(FNN_EGRAPH, "another step is being recorded", replay, p);
  fnn_capture_stop();
  throws(FNN_EGRAPH, "the step was not recorded", replay, q);
  assert_true(fnn_capture_replay(p) && all_are(y, 2));
}

/* What was drawn for a step that was never done was not drawn. */
TEST(a_step_that_is_given_up_leaves_no_trace) {
  float want[N], got[N];
  fnn_Generator *g = fnn_generator("philox", 3);
  draw(want, fnn_uniform(1, shape, 0, 1, FNN_F32, card, g));
  fnn_manual_seed(g, 3);
  (void)fnn_capture_begin(card);
  (void)fnn_uniform(1, shape, 0, 1, FNN_F32, card, g);
  fnn_capture_stop();
  draw(got, fnn_uniform(1, shape, 0, 1, FNN_F32, card, g));
  assert_memory_equal(want, got, sizeof want);
}

/* }====================================================== */

/*
** {======================================================
** Copies of pinned memory
** =======================================================
*/

static void set (float *p, float v) {
  for (int i = 0; i < N; i++) p[i] = v;
}

/* Synchronized, a copy has read its source, which may be written then. */
TEST(synchronize_waits_for_copies) {
  const Queues *q = card->queues;
  fnn_Tensor *x = fnn_empty(1, shape, FNN_F32, card);
  Event *before = q->event(card);
  float *pinned = q->pin(card, sizeof(float[N]));
  set(pinned, 1);
  q->copy_after(card, before);
  q->copy(card, tensor_data(x), pinned, sizeof(float[N]));
  fnn_synchronize(card);
  set(pinned, 2);
  assert_true(all_are(x, 1));
  q->event_free(card, before);
  q->unpin(card, pinned);
}

/* An event that has passed says that what came before it is done. */
TEST(events_pass_when_copies_are_done) {
  const Queues *q = card->queues;
  fnn_Tensor *x = fnn_empty(1, shape, FNN_F32, card);
  Event *before = q->event(card), *done = q->event(card);
  float *pinned = q->pin(card, sizeof(float[N]));
  set(pinned, 1);
  q->copy_after(card, before);
  q->copy(card, tensor_data(x), pinned, sizeof(float[N]));
  q->copy_mark(card, done);
  while (!q->passed(card, done, false)) {}
  set(pinned, 2);
  q->compute_after(card, done);
  assert_true(all_are(x, 1));
  q->event_free(card, before);
  q->event_free(card, done);
  q->unpin(card, pinned);
}

/* }====================================================== */

static int open_card (void **state) {
  if (open_context(state) != 0) return -1;
  card = fnn_best_device();
  return 0;
}

int main (void) {
  const struct CMUnitTest cpu[] = { cmocka_unit_test(
      the_cpu_records_nothing) };
  const struct CMUnitTest cards[] = {
    cmocka_unit_test(replays_go_from_the_same_to_the_same),
    cmocka_unit_test(memory_of_a_recording_is_not_handed_out),
    cmocka_unit_test(replays_draw_the_next_numbers),
    cmocka_unit_test(another_seed_ends_it),
    cmocka_unit_test(nothing_is_left_of_a_recording),
    cmocka_unit_test(a_step_waits_for_nothing),
    cmocka_unit_test(steps_come_one_after_another),
    cmocka_unit_test(a_step_that_is_given_up_leaves_no_trace),
    cmocka_unit_test(synchronize_waits_for_copies),
    cmocka_unit_test(events_pass_when_copies_are_done),
  };
  int failed = cmocka_run_group_tests_name("device, cpu", cpu, open_card,
                                           close_context);
  if (card->host && getenv("TEST_CARD") == NULL) return failed;
  return failed + cmocka_run_group_tests_name("device, card", cards, open_card,
                                              close_context);
}
