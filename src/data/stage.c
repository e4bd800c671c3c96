/* stage.c - batches on their way to a card.
**
** The loader's thread reads a batch into a block of pinned memory, which the
** card's copy engine reads by itself, beside what the card computes.  A block
** has a place for each field.  It is filled again when its copy is done, which
** an event tells; there are a few more blocks than batches that are read
** ahead, so that this is seldom waited for.
**
** Only the taker's thread talks to the card: the order of its calls is the
** order that the events of cuda/queues.cu rest on. */

#include "data.h"

#include <string.h>

enum { PLACE = 256 }; /* what a field's place is aligned to */

/* before: what was computed until its tensors were made; done: the copy. */
typedef struct Stage {
  void *block;
  Event *before, *done;
} Stage;

struct Stages {
  const fnn_Device *to;
  int n, nfields;
  size_t bytes, at[FIELDS]; /* of a block; where its fields are */
  Stage list[];
};

static size_t whole (const Stages *s) {
  return sizeof *s + (size_t)s->n * sizeof(Stage);
}

void stages_free (Stages *s) {
  if (s == NULL) return;
  const Queues *q = s->to->queues;
  for (int i = 0; i < s->n; i++) {
    const Stage *g = &s->list[i];
    if (g->before != NULL) q->event_free(s->to, g->before);
    if (g->done != NULL) q->event_free(s->to, g->done);
    if (g->block != NULL) q->unpin(s->to, g->block);
  }
  mem_free(s, whole(s));
}

/* Bytes of n items of field k. */
static size_t field_bytes (const fnn_Dataset *d, int k, int64_t n) {
  int64_t shape[FNN_MAXDIM];
  int ndim = dataset_shape(d, k, n, shape);
  return (size_t)shape_numel(ndim, shape) * fnn_dtype_size(d->fields[k].dtype);
}

/* What of a new Stages may throw. */
static void fill_in (void *ud) {
  Stages *s = ud;
  const Queues *q = s->to->queues;
  for (int i = 0; i < s->n; i++) {
    Stage *g = &s->list[i];
    g->before = q->event(s->to);
    g->done = q->event(s->to);
    g->block = q->pin(s->to, s->bytes);
    if (g->block == NULL)
      fnn_throw(FNN_EMEMORY,
                "DataLoader: no pinned memory for %d batches of %lld bytes "
                "(pin_memory = false does without)",
                s->n, (long long)s->bytes);
  }
}

Stages *stages_new (const fnn_Device *to, const fnn_Dataset *d, int64_t batch,
                    int n) {
  size_t bytes = 0, at[FIELDS] = { 0 };
  for (int k = 0; k < d->nfields; k++) {
    at[k] = bytes;
    bytes += (field_bytes(d, k, batch) + PLACE - 1) / PLACE * PLACE;
  }
  size_t size = sizeof(Stages) + (size_t)n * sizeof(Stage);
  Stages *s = mem_new(size);
  memset(s, 0, size);
  s->to = to;
  s->n = n;
  s->bytes = bytes > 0 ? bytes : PLACE;
  memcpy(s->at, at, sizeof at);
  fnn_Status status = fnn_pcall(fill_in, s);
  if (status != FNN_OK) {
    char message[MESSAGE_MAX];
    memcpy(message, fnn_message(), sizeof message);
    stages_free(s);
    fnn_throw(status, "%s", message);
  }
  return s;
}

static void *place (const Stages *s, int i, int k) {
  return (char *)s->list[i].block + s->at[k];
}

void stage_fill (Stages *s, int i, fnn_Dataset *d, int64_t n,
                 const int64_t *ids) {
  Tensor *x[FIELDS];
  for (int k = 0; k < d->nfields; k++) {
    int64_t shape[FNN_MAXDIM];
    int ndim = dataset_shape(d, k, n, shape);
    x[k] = fnn_wrap(d->fields[k].dtype, ndim, shape, place(s, i, k), NULL,
                    NULL, false);
  }
  dataset_fill(d, n, ids, x);
}

/* The tensors are made before copy_after: see cuda/queues.cu. */
void stage_send (Stages *s, int i, const fnn_Dataset *d, int64_t n,
                 Tensor **x) {
  const Queues *q = s->to->queues;
  for (int k = 0; k < d->nfields; k++) {
    int64_t shape[FNN_MAXDIM];
    int ndim = dataset_shape(d, k, n, shape);
    x[k] = tensor_new(ndim, shape, d->fields[k].dtype, s->to);
  }
  q->copy_after(s->to, s->list[i].before);
  for (int k = 0; k < d->nfields; k++)
    q->copy(s->to, tensor_data(x[k]), place(s, i, k), field_bytes(d, k, n));
  q->copy_mark(s->to, s->list[i].done);
}

void stage_await (Stages *s, int i) {
  s->to->queues->compute_after(s->to, s->list[i].done);
}

bool stage_sent (Stages *s, int i, bool wait) {
  return s->to->queues->passed(s->to, s->list[i].done, wait);
}
