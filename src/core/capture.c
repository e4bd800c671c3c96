/* capture.c - steps that are recorded once and replayed.
**
** A replay does what the card was asked for, with the same addresses and
** numbers.  What else a step is made of is brought along here:
**
** memory     an arena (arena.c) keeps every block that the recording used
** random     the kernels start at a counter plus a word on the card, which
**            says how far the generator has come since the recording
** writes     the storages that the step writes count a write, so that what
**            was derived from them is derived anew
** the rest   whoever has numbers of the host in a kernel's arguments keeps
**            them on the card instead, and a Refresh that fills them in
**
** A value derived from a weight before the recording is not used in it, or
** replays would go on with the old one (param.c). */

#include <string.h>

#include "core.h"

/* One word on the card. */
typedef struct Ahead {
  Object o;
  fnn_Storage *word;
} Ahead;

typedef struct Draws {
  struct Draws *next;
  fnn_Generator *g;     /* retained */
  uint64_t seed, start; /* when it first drew */
  uint64_t count;       /* blocks that one step takes */
  Ahead *ahead;         /* retained; nodes may have it for longer */
} Draws;

typedef struct Before {
  struct Before *next;
  Refresh refresh;
} Before;

typedef struct Written {
  struct Written *next;
  fnn_Storage *s; /* retained */
} Written;

struct fnn_Capture {
  Object o;
  fnn_Context *context;
  const fnn_Device *device;
  uint64_t number;
  Arena *arena;
  Recording *recording; /* NULL until it is complete */
  Draws *draws;
  Before *before, **last; /* in the order of the recording */
  Written *written;
};

/* Lets go of all but the recording itself.  What was drawn or counted for a
** step that was never done is as if it had not been. */
static void forget (fnn_Capture *p) {
  while (p->draws != NULL) {
    Draws *d = p->draws;
    p->draws = d->next;
    if (p->recording == NULL) d->g->counter = d->start;
    fnn_release(d->g);
    fnn_release(d->ahead);
    mem_free(d, sizeof *d);
  }
  while (p->before != NULL) {
    Before *b = p->before;
    p->before = b->next;
    if (b->refresh.done != NULL)
      b->refresh.done(b->refresh.ud, p->recording != NULL);
    mem_free(b, sizeof *b);
  }
  p->last = &p->before;
  while (p->written != NULL) {
    Written *w = p->written;
    p->written = w->next;
    storage_release(w->s);
    mem_free(w, sizeof *w);
  }
}

static void stop (fnn_Context *c) {
  fnn_Capture *p = c->capture;
  if (p == NULL) return;
  c->capture = NULL;
  p->device->queues->record_stop(p->device);
  arena_close(c);
  forget(p);
}

static void capture_destroy (void *o) {
  fnn_Capture *p = o;
  if (p->context != NULL && p->context->capture == p) stop(p->context);
  forget(p);
  if (p->recording != NULL)
    p->device->queues->recording_free(p->device, p->recording);
  if (p->arena != NULL) arena_free(p->arena);
}

static const Type capture_type = { "capture", capture_destroy };

fnn_Capture *fnn_capture_begin (const fnn_Device *d) {
  fnn_Context *c = context();
  if (d->host)
    fnn_throw(FNN_EDEVICE, "capture_begin: a step is recorded on a card, "
                           "not on the cpu");
  if (c->capture != NULL)
    fnn_throw(FNN_EGRAPH, "capture_begin: a step is being recorded already");
  fnn_Capture *p = object_new(&capture_type, sizeof *p);
  p->context = c;
  p->device = d;
  p->number = ++c->recordings;
  p->last = &p->before;
  p->arena = arena_open(c, d);
  if (p->arena == NULL) fnn_throw(FNN_EMEMORY, "capture_begin: no memory");
  c->capture = p;
  c->capture_device = d;
  d->queues->record(d);
  return p;
}

void fnn_capture_stop (void) { stop(context()); }

/* The word of d, before a replay. */
static void send_ahead (const fnn_Capture *p, const Draws *d) {
  uint64_t ahead = d->g->counter - d->start;
  p->device->upload(p->device, d->ahead->word->data, &ahead, sizeof ahead);
}

void fnn_capture_end (fnn_Capture *p) {
  fnn_Context *c = context();
  if (c->capture != p)
    fnn_throw(FNN_EGRAPH, "capture_end: this step is not being recorded");
  const Queues *q = p->device->queues;
  p->recording = q->recorded(p->device);
  c->capture = NULL;
  arena_close(c);
  uint64_t zero = 0;
  for (Draws *d = p->draws; d != NULL; d = d->next) {
    d->count = d->g->counter - d->start;
    p->device->upload(p->device, d->ahead->word->data, &zero, sizeof zero);
  }
  for (Before *b = p->before; b != NULL; b = b->next)
    b->refresh.update(b->refresh.ud, true);
  q->replay(p->device, p->recording);
}

static bool holds (const fnn_Capture *p) {
  for (Draws *d = p->draws; d != NULL; d = d->next)
    if (d->g->seed != d->seed) return false;
  for (Before *b = p->before; b != NULL; b = b->next)
    if (b->refresh.holds != NULL && !b->refresh.holds(b->refresh.ud))
      return false;
  return true;
}

bool fnn_capture_replay (fnn_Capture *p) {
  if (p->recording == NULL)
    fnn_throw(FNN_EGRAPH, "capture_replay: the step was not recorded");
  if (context()->capture != NULL)
    fnn_throw(FNN_EGRAPH, "capture_replay: another step is being recorded");
  if (!holds(p)) return false;
  for (Draws *d = p->draws; d != NULL; d = d->next) send_ahead(p, d);
  for (Before *b = p->before; b != NULL; b = b->next)
    b->refresh.update(b->refresh.ud, false);
  for (Written *w = p->written; w != NULL; w = w->next)
    atomic_fetch_add_explicit(&w->s->version, 1, memory_order_relaxed);
  p->device->queues->replay(p->device, p->recording);
  for (Draws *d = p->draws; d != NULL; d = d->next) d->g->counter += d->count;
  return true;
}

/*
** {======================================================
** While a step is recorded
** =======================================================
*/

uint64_t capture_number (const fnn_Capture *p) { return p->number; }

void capture_before (fnn_Capture *p, const Refresh *r) {
  Before *b = mem_try(sizeof *b);
  if (b == NULL) {
    if (r->done != NULL) r->done(r->ud, false);
    fnn_throw(FNN_EMEMORY, "recording a step: no memory");
  }
  *b = (Before){ .refresh = *r };
  *p->last = b;
  p->last = &b->next;
}

void capture_written (fnn_Capture *p, fnn_Storage *s) {
  for (Written *w = p->written; w != NULL; w = w->next)
    if (w->s == s) return;
  Written *w = mem_new(sizeof *w);
  *w = (Written){ .next = p->written, .s = storage_retain(s) };
  p->written = w;
}

static void ahead_destroy (void *o) { storage_release(((Ahead *)o)->word); }

static const Type ahead_type = { "ahead", ahead_destroy };

/* What such a one gives was drawn on the host. */
static void check_draws (const fnn_Generator *g) {
  if (g->is_torch)
    fnn_throw(FNN_EGRAPH,
              "a generator of the kind \"torch\" draws on the host: not in a "
              "step that is recorded (fnn.graph_step)");
}

const uint64_t *capture_draw (fnn_Capture *p, fnn_Generator *g) {
  check_draws(g);
  Draws *d = p->draws;
  while (d != NULL && d->g != g) d = d->next;
  if (d != NULL) return d->ahead->word->data;
  size_t m = fnn_mark();
  Ahead *a = object_new(&ahead_type, sizeof *a);
  a->word = storage_new_apart(p->device, sizeof(uint64_t));
  d = mem_new(sizeof *d);
  *d = (Draws){
    p->draws, fnn_retain(g), g->seed, g->counter, 0, fnn_retain(a)
  };
  p->draws = d;
  fnn_escape(m, NULL);
  return a->word->data;
}

void *capture_ahead (const fnn_Capture *p, const uint64_t *ahead) {
  Draws *d = p->draws;
  while (d->ahead->word->data != ahead) d = d->next;
  return d->ahead;
}

/* }====================================================== */
