/* flags.cu - ids out of range, told by kernels and thrown later.
**
** A check of ids runs with everything else on the compute stream, so its call
** is long over when it finds something.  It then writes a record into memory
** of the host that the card sees; whoever has synchronized next looks there,
** which costs nothing, and throws.  What the record's call was - its op, and
** the script's line - is kept in a ring of texts, which only the host sees. */

#include "flags.h"

#include <pthread.h>
#include <stdio.h>

enum { CARDS = 16, RING = 256, WHERE = 96 };

/* What is told of a call if its ids are wrong. */
typedef struct Call {
  int64_t number;
  const char *op, *what;
  char where[WHERE];
} Call;

typedef struct Flags {
  Flag *flag, *mapped; /* the same, as the host and as the card see it */
  Search *search;
  int64_t calls;
  Call ring[RING];
} Flags;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Flags cards[CARDS];

/* n bytes of 0 on the card.  Not by way of the stream compute: that may be
** recorded, and would then set them to 0 at each replay and not now. */
static cudaError_t make_zeros (void **p, size_t n, Cuda *card) {
  cudaError_t e = cudaMalloc(p, n);
  if (e != cudaSuccess) return e;
  e = cudaMemsetAsync(*p, 0, n, card->copy);
  if (e == cudaSuccess) e = cudaStreamSynchronize(card->copy);
  if (e != cudaSuccess) cudaFree(*p);
  return e;
}

/* Makes the record and the words of the search; an error is the caller's. */
static cudaError_t make (Flags *f, Cuda *card) {
  cudaError_t e = cudaSuccess;
  void *p = NULL;
  if (f->search == NULL) {
    e = make_zeros(&p, sizeof *f->search, card);
    if (e != cudaSuccess) return e;
    f->search = (Search *)p;
  }
  e = cudaHostAlloc(&p, sizeof *f->flag, cudaHostAllocMapped);
  if (e != cudaSuccess) return e;
  memset(p, 0, sizeof *f->flag);
  f->flag = (Flag *)p;
  e = cudaHostGetDevicePointer(&p, f->flag, 0);
  f->mapped = (Flag *)p;
  return e;
}

int64_t flags_call (Cuda *card, const char *op, const char *what, Flag **flag,
                    Search **search) {
  fnn_Context *c = context();
  Flags *f = &cards[card->id];
  cudaError_t e = cudaSuccess;
  char where[WHERE] = "";
  if (c->where != NULL) c->where(c->library, where, sizeof where);
  pthread_mutex_lock(&lock);
  if (f->mapped == NULL) e = make(f, card);
  int64_t number = f->calls++;
  Call *call = &f->ring[number % RING];
  call->number = number;
  call->op = op;
  call->what = what;
  memcpy(call->where, where, sizeof where);
  pthread_mutex_unlock(&lock);
  cuda_check(e, op);
  *flag = f->mapped;
  *search = f->search;
  return number;
}

/* A call so long ago that the ring has lost it leaves its number only. */
void cuda_check_flags (Cuda *card) {
  Flags *f = &cards[card->id];
  if (f->flag == NULL || !f->flag->set) return;
  pthread_mutex_lock(&lock);
  Flag was = *f->flag;
  Call call = f->ring[was.call % RING];
  f->flag->set = 0;
  pthread_mutex_unlock(&lock);
  if (!was.set) return;
  if (call.number != was.call) call = (Call){ 0, "ids", "places", "" };
  bool known = call.where[0] != '\0';
  fnn_throw(FNN_EARG,
            "%s: id %lld at position %lld is out of range for %lld %s (ids "
            "count from 0%s%s)",
            call.op, (long long)was.id, (long long)was.place + 1,
            (long long)was.n, call.what, known ? "; called at " : "",
            call.where);
}
