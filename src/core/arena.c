/* arena.c - the storage of a step that is recorded, and replayed while its
** arena is kept.
**
** The replays use the addresses of the recording, so what is released goes to
** lists of the arena and is handed out again to the recording alone; so does,
** not to be handed out, what was there before and is released later. */

#include <string.h>

#include "memory.h"

bool arena_records (Account *a, const Pool *p) {
  for (Arena *r = a->arenas; r != NULL; r = r->next)
    if (r->open && &a->pool[r->device->index] == p) return true;
  return false;
}

fnn_Storage *arena_take (Arena *r, size_t bytes) {
  size_t capacity;
  int k = memory_class(r->device, bytes, &capacity);
  pthread_mutex_lock(&r->account->lock);
  fnn_Storage *s = r->free[k];
  if (s != NULL) {
    r->free[k] = s->next;
    r->lent++;
  }
  pthread_mutex_unlock(&r->account->lock);
  if (s == NULL) return NULL;
  s->refs = 1;
  s->version = 0;
  s->readonly = false;
  s->bytes = bytes;
  return s;
}

void arena_lend (Arena *r, fnn_Storage *s) {
  pthread_mutex_lock(&r->account->lock);
  s->arena = r;
  r->lent++;
  pthread_mutex_unlock(&r->account->lock);
}

static void push (fnn_Storage **list, fnn_Storage *s) {
  s->next = *list;
  *list = s;
}

/* The latest recording that may use s, which is not of its own. */
static Arena *of_older (Account *a, const fnn_Storage *s) {
  for (Arena *r = a->arenas; r != NULL; r = r->next)
    if (r->kept && r->device == s->device && s->birth < r->start) return r;
  return NULL;
}

static void forget (Arena *r) {
  Account *a = r->account;
  account_free(a, r, sizeof *r);
  account_release(a);
}

bool arena_keeps (fnn_Storage *s) {
  Account *a = s->account;
  Arena *done = NULL;
  if (s->device->host || (s->arena == NULL && a->arenas == NULL)) return false;
  pthread_mutex_lock(&a->lock);
  Arena *r = s->arena;
  bool keeps = r != NULL && r->kept;
  if (r != NULL) {
    size_t capacity;
    int k = memory_class(s->device, s->capacity, &capacity);
    if (keeps) push(&r->free[k], s);
    else s->arena = NULL;
    if (--r->lent == 0 && !r->kept) done = r;
  }
  if (!keeps) {
    r = of_older(a, s);
    keeps = r != NULL;
    if (keeps) push(&r->held, s);
  }
  pthread_mutex_unlock(&a->lock);
  if (done != NULL) forget(done);
  return keeps;
}

Arena *arena_open (fnn_Context *c, const fnn_Device *d) {
  Account *a = c->account;
  Arena *r = account_alloc(a, sizeof *r);
  if (r == NULL) return NULL;
  memset(r, 0, sizeof *r);
  r->account = account_retain(a);
  r->device = d;
  r->open = r->kept = true;
  r->start = a->births + 1;
  pthread_mutex_lock(&a->lock);
  r->next = a->arenas;
  a->arenas = r;
  pthread_mutex_unlock(&a->lock);
  c->arena = r;
  return r;
}

void arena_close (fnn_Context *c) {
  if (c->arena == NULL) return;
  pthread_mutex_lock(&c->account->lock);
  c->arena->open = false;
  pthread_mutex_unlock(&c->account->lock);
  c->arena = NULL;
}

/* Takes one storage that the arena keeps, or NULL. */
static fnn_Storage *pop (Arena *r) {
  for (int k = 0; k <= CLASSES; k++) {
    fnn_Storage **list = k < CLASSES ? &r->free[k] : &r->held;
    fnn_Storage *s = *list;
    if (s == NULL) continue;
    *list = s->next;
    return s;
  }
  return NULL;
}

void arena_free (Arena *r) {
  Account *a = r->account;
  pthread_mutex_lock(&a->lock);
  Arena *before = NULL;
  for (Arena *p = a->arenas; p != r; p = p->next) before = p;
  if (before != NULL) before->next = r->next;
  else a->arenas = r->next;
  r->kept = false;
  r->lent++; /* so that it stays while it is emptied */
  pthread_mutex_unlock(&a->lock);
  for (fnn_Storage *s; (s = pop(r)) != NULL;) {
    s->arena = NULL;
    if (!arena_keeps(s)) storage_free(s); /* another recording may */
  }
  pthread_mutex_lock(&a->lock);
  bool done = --r->lent == 0;
  pthread_mutex_unlock(&a->lock);
  if (done) forget(r);
}
