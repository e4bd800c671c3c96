/* state.c - frames: landings for errors that own their temporaries.
**
** Each context has a chain of frames and one pool, an array of objects with a
** reference each.  A frame owns what stands above its mark.  A throw drains
** the pool to the mark of the innermost frame, closes that frame and jumps;
** so code between needs no cleanup of its own. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core.h"

enum { POOL_FIRST = 256 };

/* Releases the temporaries above mark, newest first. */
static void drain (fnn_Context *c, size_t mark) {
  while (c->npool > mark) fnn_release(c->pool[--c->npool]);
}

void frame_enter (Frame *f) {
  fnn_Context *c = context();
  f->prev = c->frame;
  f->mark = c->npool;
  f->grad_mode = c->grad_mode;
  f->watch = c->watch;
  f->autocast = c->autocast;
  c->frame = f;
}

void frame_leave (Frame *f) {
  fnn_Context *c = context_now;
  if (c->watch != 0 && f->prev == NULL) watch_leave();
  c->frame = f->prev;
  drain(c, f->mark);
}

/* Makes room for n more temporaries, so that adding them cannot fail.  What
** is allocated may make the host reclaim, and that may run ops of its own,
** which grow the pool: it is read after. */
static void pool_grow (fnn_Context *c, size_t n) {
  size_t cap = c->poolcap == 0 ? POOL_FIRST : 2 * c->poolcap;
  while (cap - c->npool < n) cap *= 2;
  Object **pool = mem_new(cap * sizeof *pool), **old = c->pool;
  size_t oldcap = c->poolcap;
  if (cap <= oldcap) { /* it has grown enough already */
    mem_free(pool, cap * sizeof *pool);
    return;
  }
  if (c->npool > 0) memcpy(pool, old, c->npool * sizeof *pool);
  c->pool = pool;
  c->poolcap = cap;
  mem_free(old, oldcap * sizeof *old);
}

static void pool_room (fnn_Context *c) {
  if (c->npool == c->poolcap) pool_grow(c, 1);
}

void *object_new (const Type *type, size_t size) {
  fnn_Context *c = context();
  pool_room(c);
  Object *o = object_alloc(c, size);
  o->type = type;
  o->refs = 1;
  c->pool[c->npool++] = o;
  return o;
}

void frame_room (size_t n) {
  fnn_Context *c = context();
  if (c->poolcap - c->npool < n) pool_grow(c, n);
}

void *frame_adopt (void *o) {
  fnn_Context *c = context();
  if (o == NULL) return NULL;
  pool_room(c);
  c->pool[c->npool++] = o;
  return o;
}

bool frame_try_adopt (void *o) {
  fnn_Context *c = context();
  /* One place stays free: object_new counts on the room that it made, while
  ** what it allocates may run the host's collector, and so this. */
  if (c->poolcap - c->npool < 2) return false;
  c->pool[c->npool++] = o;
  return true;
}

size_t fnn_mark (void) { return context()->npool; }

void *fnn_escape (size_t mark, void *o) {
  fnn_Context *c = context_now;
  pool_room(c);
  fnn_retain(o);
  drain(c, mark);
  return frame_adopt(o);
}

FNN_NORETURN void fnn_throw (fnn_Status code, const char *fmt, ...) {
  fnn_Context *c = context();
  char text[MESSAGE_MAX]; /* c->message may be among the arguments */
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  memcpy(c->message, text, sizeof text);
  Frame *f = c->frame;
  if (f == NULL) context_panic(c, c->message);
  c->status = code;
  drain(c, f->mark);
  c->frame = f->prev;
  c->grad_mode = f->grad_mode;
  if (c->watcher != NULL) watch_thrown();
  c->watch = f->watch;
  c->autocast = f->autocast;
  longjmp(f->jump, 1);
}

fnn_Status fnn_pcall (void (*f)(void *ud), void *ud) {
  Frame frame;
  frame_enter(&frame);
  if (setjmp(frame.jump) != 0) return context_now->status;
  f(ud);
  frame_leave(&frame);
  return FNN_OK;
}

const char *fnn_message (void) { return context()->message; }
