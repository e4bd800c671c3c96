/* cancel.c - the token by which a host stops running work.
**
** A token is a flag that any thread or signal handler may set, in a lock-free
** atomic.  It may be made before any context is, so its memory is the
** system's, not an account's.  It is counted: a context holds a reference on
** the token it was opened with.
**
** One that is armed is asked instead of set, once: no work stops, and who
** armed it looks whether it was asked.  It is set from the second time on. */

#include <stdlib.h>

#include "core.h"

enum { SET = 1, ARMED = 2, ASKED = 4 };

struct fnn_Cancel {
  atomic_int refs;
  atomic_uint state;
};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler sets the flag");

fnn_Cancel *fnn_cancel_new (void) {
  fnn_Cancel *t = malloc(sizeof *t);
  if (t == NULL) return NULL;
  atomic_init(&t->refs, 1);
  atomic_init(&t->state, 0);
  return t;
}

fnn_Cancel *cancel_retain (fnn_Cancel *t) {
  atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

void fnn_cancel_free (fnn_Cancel *t) {
  if (t == NULL) return;
  if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
    free(t);
}

void fnn_cancel (fnn_Cancel *t) {
  unsigned now = atomic_load_explicit(&t->state, memory_order_relaxed), next;
  do next = now & ARMED ? (now & ~(unsigned)ARMED) | ASKED : now | SET;
  while (!atomic_compare_exchange_weak_explicit(
      &t->state, &now, next, memory_order_release, memory_order_relaxed));
}

void cancel_arm (fnn_Cancel *t, bool on) {
  if (on) atomic_fetch_or_explicit(&t->state, ARMED, memory_order_relaxed);
  else
    atomic_fetch_and_explicit(&t->state, ~(unsigned)ARMED,
                              memory_order_relaxed);
}

bool cancel_is_asked (const fnn_Cancel *t) {
  return atomic_load_explicit(&t->state, memory_order_relaxed) & ASKED;
}

bool cancel_take (fnn_Cancel *t) {
  return atomic_fetch_and_explicit(&t->state, ~(unsigned)ASKED,
                                   memory_order_acquire) &
         ASKED;
}

fnn_Cancel *fnn_cancel_token (fnn_Context *c) { return c->cancel; }

bool cancel_is_set (const fnn_Cancel *t) {
  return atomic_load_explicit(&t->state, memory_order_acquire) & SET;
}

/* A child's thread leaves the token set, for the thread that it works for. */
FNN_NORETURN void cancel_throw (void) {
  fnn_Context *c = context();
  if (!c->child)
    atomic_fetch_and_explicit(&c->cancel->state, ~(unsigned)SET,
                              memory_order_relaxed);
  fnn_throw(FNN_ECANCEL, "cancelled");
}

void fnn_poll (void) {
  const fnn_Context *c = context();
  if (c->cancel != NULL && !c->finalizing && cancel_is_set(c->cancel))
    cancel_throw();
}
