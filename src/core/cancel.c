/* cancel.c - the token by which a host stops running work.
**
** A token is a flag that any thread or signal handler may set: one store to
** a lock-free atomic.  It may be made before any context is, so its memory is
** the system's, not an account's.  It is counted: a context holds a reference
** on the token it was opened with. */

#include <stdlib.h>

#include "core.h"

struct fnn_Cancel {
  atomic_int refs;
  atomic_bool set;
};

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler sets the flag");

fnn_Cancel *fnn_cancel_new (void) {
  fnn_Cancel *t = malloc(sizeof *t);
  if (t == NULL) return NULL;
  atomic_init(&t->refs, 1);
  atomic_init(&t->set, false);
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
  atomic_store_explicit(&t->set, true, memory_order_release);
}

fnn_Cancel *fnn_cancel_token (fnn_Context *c) { return c->cancel; }

bool cancel_is_set (const fnn_Cancel *t) {
  return atomic_load_explicit(&t->set, memory_order_acquire);
}

/* A child's thread leaves the token set, for the thread that it works for. */
FNN_NORETURN void cancel_throw (void) {
  fnn_Context *c = context();
  if (!c->child)
    atomic_store_explicit(&c->cancel->set, false, memory_order_relaxed);
  fnn_throw(FNN_ECANCEL, "cancelled");
}

void fnn_poll (void) {
  const fnn_Context *c = context();
  if (c->cancel != NULL && !c->finalizing && cancel_is_set(c->cancel))
    cancel_throw();
}
