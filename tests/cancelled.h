/* cancelled.h - that long work ends where its token is set, not where it would
** have ended anyway.  The measure is the work of the thread that does it: what
** else the machine does, and a slower run under a checker, change nothing. */

#ifndef cancelled_h
#define cancelled_h

#include "slow.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef struct Watch {
  clockid_t work; /* the processor time of the thread that works */
  double at;      /* of it, when to set the token */
  double set_at, end;
  atomic_bool over;
  fnn_Cancel *token;
} Watch;

static double seconds_of (clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *cancel_in_time (void *ud) {
  Watch *w = ud;
  while ((w->set_at = seconds_of(w->work)) < w->at && !w->over)
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
  fnn_cancel(w->token);
  return NULL;
}

static void poll (UNUSED void *ud) { fnn_poll(); }

/* Runs f(ud) with a token that is set once it has worked for so long: whether
** it ended by the token. */
static bool ended_by_token (void (*f)(void *), void *ud, double after,
                            Watch *w) {
  pthread_t thread;
  w->at = seconds_of(w->work) + after;
  w->over = false;
  assert_int_equal(pthread_create(&thread, NULL, cancel_in_time, w), 0);
  fnn_Status s = fnn_pcall(f, ud);
  w->end = seconds_of(w->work);
  w->over = true;
  pthread_join(thread, NULL);
  if (s != FNN_ECANCEL) fnn_pcall(poll, NULL); /* takes the token back */
  assert_true(s == FNN_ECANCEL || s == FNN_OK);
  return s == FNN_ECANCEL;
}

/* f(ud), stopped early on, must end within half of what it takes whole.  It
** may have become faster than it was: then it is stopped earlier. */
static void stops_early (void (*f)(void *), void *ud) {
  Watch w = { .token = fnn_cancel_token(fnn_current()) };
  fnn_threads(1); /* all of it is done here */
  pthread_getcpuclockid(pthread_self(), &w.work);
  double begin = seconds_of(w.work);
  assert_int_equal(fnn_pcall(f, ud), FNN_OK);
  double whole = seconds_of(w.work) - begin, after = whole / 4;
  while (!ended_by_token(f, ud, after, &w))
    assert_true((after /= 2) > whole / 100);
  fnn_threads(0);
  print_message("# %.1f ms of %.1f ms after the token\n",
                (w.end - w.set_at) * 1e3, whole * 1e3);
  assert_true(w.end - w.set_at < whole / 2);
}

#endif
