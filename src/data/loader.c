/* loader.c - batches of a dataset, epoch by epoch.
**
** The order of an epoch is a function of the seed and the epoch's number
** alone, and the cursor counts batches that were taken, so a run is resumed
** exactly.  With prefetch a thread reads ahead: it has a context of its own
** and hands over storages; the taker makes its tensors of them, and rethrows
** the thread's error.  A child of a fork has no such thread: it leaves the
** parent's as it is and starts one of its own. */

#include "data.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Philox gives a key for (seed, epoch), and with it the draws of a
** Fisher-Yates shuffle. */
void fnn_epoch_order (int64_t n, uint64_t seed, int64_t epoch,
                      int64_t *order) {
  uint32_t w[4];
  philox(seed, (uint64_t)epoch, w);
  uint64_t key = (uint64_t)w[1] << 32 | w[0];
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    philox(key, (uint64_t)i, w);
    uint64_t r = (uint64_t)w[1] << 32 | w[0];
    /* r scaled to 0 .. i: the bias is below n / 2^64. */
    int64_t j = (int64_t)((unsigned __int128)r * (uint64_t)(i + 1) >> 64);
    int64_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

/* A batch that waits.  One for a card is in a block of the loader's stages
** until it is sent; then the storages are the card's. */
typedef struct Ready {
  fnn_Storage *storage[FIELDS];
  int64_t n;
  int stage;
} Ready;

/* The thread that reads ahead, and what it shares with the taker. */
typedef struct Reader {
  pthread_t thread;
  pid_t process; /* that it runs in */
  fnn_Context *context;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Ready *ring;
  int size;
  int64_t made, taken; /* batches, since the thread started */
  /* The blocks of stages go round: filled, sent, taken, copied, filled.  How
  ** often each came; the taker counts the first, the thread looks. */
  int64_t copied, sent;
  bool stop;
  fnn_Status status; /* what ended it; then message */
  char message[MESSAGE_MAX];
} Reader;

struct fnn_Loader {
  Object o;
  fnn_Dataset *d;
  fnn_LoaderOptions options;
  int64_t epoch, cursor; /* batches of it that were taken */
  int64_t batches;       /* in an epoch */
  int64_t *order;        /* d->n items */
  Reader *reader;        /* NULL: no reading ahead now */
  Stages *stages;        /* of batches for a card, or NULL */
};

enum { MORE_STAGES = 2 }; /* than batches that are read ahead */

static int stage_count (const fnn_Loader *l) {
  return l->options.prefetch + MORE_STAGES;
}

/* The items of batch b, as a part of the order. */
static const int64_t *items_of (const fnn_Loader *l, int64_t b, int64_t *n) {
  int64_t lo = b * l->options.batch;
  *n = min64(l->options.batch, l->d->n - lo);
  return l->order + lo;
}

/*
** {======================================================
** Reading ahead
** =======================================================
*/

typedef struct ReadJob {
  fnn_Loader *l;
  int64_t batch;
  Ready *to;
} ReadJob;

static void read_batch (void *ud) {
  ReadJob *j = ud;
  Tensor *x[FIELDS];
  const int64_t *ids = items_of(j->l, j->batch, &j->to->n);
  if (j->l->stages != NULL) {
    stage_fill(j->l->stages, j->to->stage, j->l->d, j->to->n, ids);
    return;
  }
  fnn_dataset_read(j->l->d, j->to->n, ids, x);
  for (int k = 0; k < j->l->d->nfields; k++)
    j->to->storage[k] = storage_retain(x[k]->storage);
}

static bool has_room (const fnn_Loader *l, const Reader *r) {
  if (r->made - r->taken == r->size) return false;
  return l->stages == NULL || r->made - r->copied < stage_count(l);
}

/* Waits for room in the ring, and for a block; false when the reader is to
** stop. */
static bool wait_room (const fnn_Loader *l) {
  Reader *r = l->reader;
  pthread_mutex_lock(&r->lock);
  while (!r->stop && !has_room(l, r)) pthread_cond_wait(&r->changed, &r->lock);
  bool go = !r->stop;
  pthread_mutex_unlock(&r->lock);
  return go;
}

static void *reader_main (void *ud) {
  fnn_Loader *l = ud;
  Reader *r = l->reader;
  fnn_use(r->context);
  int64_t first = l->cursor, count = l->batches - first;
  for (int64_t i = 0; i < count && wait_room(l); i++) {
    Ready ready = { .stage = (int)(i % stage_count(l)) };
    ReadJob job = { l, first + i, &ready };
    fnn_Status s = fnn_pcall(read_batch, &job);
    pthread_mutex_lock(&r->lock);
    if (s == FNN_OK) r->ring[r->made++ % r->size] = ready;
    else {
      r->status = s;
      memcpy(r->message, r->context->message, sizeof r->message);
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (s != FNN_OK) break;
  }
  fnn_use(NULL);
  return NULL;
}

/* Waits for the copies that are under way, and makes what the card does next
** come after them: their tensors are let go. */
static void await_copies (void *ud) {
  fnn_Loader *l = ud;
  Reader *r = l->reader;
  for (int64_t i = r->taken; i < r->sent; i++)
    stage_await(l->stages, (int)(i % stage_count(l)));
  if (r->sent > r->copied)
    stage_sent(l->stages, (int)((r->sent - 1) % stage_count(l)), true);
}

static void reader_free (fnn_Loader *l, Reader *r) {
  for (int64_t i = r->taken; i < r->made; i++)
    for (int k = 0; k < l->d->nfields; k++)
      storage_release(r->ring[i % r->size].storage[k]);
  fnn_close(r->context);
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->changed);
  mem_free(r->ring, (size_t)r->size * sizeof *r->ring);
  mem_free(r, sizeof *r);
}

/* Forgets a reader of the process that this one is a fork of: its lock may be
** held, and what it has is not known. */
static void reader_forget (fnn_Loader *l) {
  if (l->reader != NULL && l->reader->process != getpid()) l->reader = NULL;
}

/* What a lost card says of its copies is left to who uses it next. */
static void reader_stop (fnn_Loader *l) {
  reader_forget(l);
  Reader *r = l->reader;
  if (r == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->stop = true;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
  pthread_join(r->thread, NULL);
  if (l->stages != NULL) fnn_pcall(await_copies, l);
  l->reader = NULL;
  reader_free(l, r);
}

static void reader_start (fnn_Loader *l) {
  const fnn_Device *d = l->options.device;
  if (d != NULL && !d->host && !l->options.pageable && l->stages == NULL)
    l->stages = stages_new(d, l->d, l->options.batch, stage_count(l));
  Ready *ring = mem_new((size_t)l->options.prefetch * sizeof *ring);
  Reader *r = mem_try(sizeof *r);
  fnn_Context *c = r != NULL ? context_child(context()) : NULL;
  if (c == NULL) {
    mem_free(r, sizeof *r);
    mem_free(ring, (size_t)l->options.prefetch * sizeof *ring);
    fnn_throw(FNN_EMEMORY, "DataLoader: no memory to read ahead");
  }
  memset(r, 0, sizeof *r);
  r->ring = ring;
  r->size = l->options.prefetch;
  r->context = c;
  r->process = getpid();
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, NULL);
  l->reader = r;
  if (pthread_create(&r->thread, NULL, reader_main, l) != 0) {
    l->reader = NULL;
    reader_free(l, r);
    fnn_throw(FNN_EMEMORY, "DataLoader: no thread to read ahead");
  }
}

/* Counts the copies that are done.  The thread may lack a block, and waits for
** nothing else: then the oldest copy is waited for. */
static void count_copied (fnn_Loader *l) {
  Reader *r = l->reader;
  int64_t copied = r->copied;
  pthread_mutex_lock(&r->lock);
  bool wait = r->made == r->taken && r->made - copied == stage_count(l);
  pthread_mutex_unlock(&r->lock);
  while (copied < r->taken &&
         stage_sent(l->stages, (int)(copied % stage_count(l)), wait)) {
    copied++;
    wait = false;
  }
  if (copied == r->copied) return;
  pthread_mutex_lock(&r->lock);
  r->copied = copied;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

/* Sends what has been read to the card.  It is called before the kernels on
** the batch that is handed out next: only what comes before them is waited for
** by the copies of the batches after it. */
static void send_ready (fnn_Loader *l, int64_t made) {
  Reader *r = l->reader;
  for (; r->sent < made; r->sent++) {
    size_t m = fnn_mark();
    Ready *b = &r->ring[r->sent % r->size];
    Tensor *x[FIELDS];
    stage_send(l->stages, b->stage, l->d, b->n, x);
    for (int k = 0; k < l->d->nfields; k++)
      b->storage[k] = storage_retain(x[k]->storage);
    fnn_escape(m, NULL);
  }
}

/* Waits for a batch, or the end of the thread; made: how many there are. */
static fnn_Status wait_batch (Reader *r, int64_t *made) {
  pthread_mutex_lock(&r->lock);
  while (r->made == r->taken && r->status == FNN_OK)
    pthread_cond_wait(&r->changed, &r->lock);
  fnn_Status s = r->made > r->taken ? FNN_OK : r->status;
  *made = r->made;
  pthread_mutex_unlock(&r->lock);
  return s;
}

/* The thread has ended with s: throws it, or starts again. */
static void reader_failed (fnn_Loader *l, fnn_Status s) {
  char message[MESSAGE_MAX];
  memcpy(message, l->reader->message, sizeof message);
  reader_stop(l);
  if (s != FNN_ECANCEL) fnn_throw(s, "%s", message);
  fnn_poll(); /* it is of now, or of a job that is over */
  reader_start(l);
}

/* Takes the next batch off the ring, into the caller's tensors.  It leaves the
** ring when these are made, so that a throw before loses nothing. */
static void take_ready (fnn_Loader *l, Tensor **x) {
  int64_t made = 0;
  if (l->stages != NULL) count_copied(l);
  fnn_Status s = wait_batch(l->reader, &made);
  if (s != FNN_OK) {
    reader_failed(l, s);
    take_ready(l, x);
    return;
  }
  Reader *r = l->reader;
  const Ready *ready = &r->ring[r->taken % r->size];
  if (l->stages != NULL) {
    send_ready(l, made);
    stage_await(l->stages, ready->stage);
  }
  for (int k = 0; k < l->d->nfields; k++) {
    int64_t shape[FNN_MAXDIM];
    int ndim = dataset_shape(l->d, k, ready->n, shape);
    x[k] = tensor_over(ready->storage[k], ndim, shape, l->d->fields[k].dtype);
    context_now->since_collect += ready->storage[k]->capacity;
  }
  for (int k = 0; k < l->d->nfields; k++) storage_release(ready->storage[k]);
  pthread_mutex_lock(&r->lock);
  r->taken++;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

/* }====================================================== */

static void loader_destroy (void *o) {
  fnn_Loader *l = o;
  reader_stop(l);
  stages_free(l->stages);
  if (l->order != NULL) mem_free(l->order, (size_t)l->d->n * sizeof *l->order);
  fnn_release(l->d);
}

static const Type loader_type = { "loader", loader_destroy };

fnn_Loader *fnn_loader (fnn_Dataset *d, const fnn_LoaderOptions *o) {
  if (o->batch < 1)
    fnn_throw(FNN_EARG,
              "DataLoader: the batch must have at least one item "
              "(got %lld)",
              (long long)o->batch);
  if (o->prefetch < 0 || o->prefetch > 1024)
    fnn_throw(FNN_EARG, "DataLoader: prefetch must be 0 to 1024 (got %d)",
              o->prefetch);
  fnn_Loader *l = object_new(&loader_type, sizeof *l);
  l->d = fnn_retain(d);
  l->options = *o;
  l->batches = o->drop_last ? d->n / o->batch
                            : d->n / o->batch + (d->n % o->batch != 0);
  if (d->n > 0) l->order = mem_new((size_t)d->n * sizeof *l->order);
  fnn_loader_start(l, 0, 0);
  return l;
}

/* Puts the cursor behind the first batch batches of an epoch. */
void fnn_loader_start (fnn_Loader *l, int64_t epoch, int64_t batch) {
  if (epoch < 0 || batch < 0 || batch > l->batches)
    fnn_throw(FNN_EARG,
              "DataLoader: no batch %lld in epoch %lld (an epoch "
              "has %lld)",
              (long long)batch, (long long)epoch, (long long)l->batches);
  reader_stop(l);
  l->epoch = epoch;
  l->cursor = batch;
  if (l->options.shuffle)
    fnn_epoch_order(l->d->n, l->options.seed, epoch, l->order);
  else
    for (int64_t i = 0; i < l->d->n; i++) l->order[i] = i;
}

bool fnn_loader_next (fnn_Loader *l, fnn_Tensor **x) {
  if (l->cursor == l->batches) return false;
  reader_forget(l);
  if (l->options.prefetch > 0 && l->reader == NULL) reader_start(l);
  if (l->reader != NULL) take_ready(l, x);
  else {
    int64_t n;
    const int64_t *ids = items_of(l, l->cursor, &n);
    fnn_dataset_read(l->d, n, ids, x);
  }
  l->cursor++;
  for (int k = 0; k < l->d->nfields; k++)
    if (l->options.device != NULL) x[k] = tensor_move(x[k], l->options.device);
  return true;
}

int64_t fnn_loader_batches (const fnn_Loader *l) { return l->batches; }

void fnn_loader_cursor (const fnn_Loader *l, int64_t *epoch, int64_t *batch) {
  *epoch = l->epoch;
  *batch = l->cursor;
}

fnn_Dataset *fnn_loader_dataset (const fnn_Loader *l) { return l->d; }

const fnn_LoaderOptions *loader_settings (const fnn_Loader *l) {
  return &l->options;
}
