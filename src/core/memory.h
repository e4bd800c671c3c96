/* memory.h - accounts, as memory.c and arena.c see them. */

#ifndef core_memory_h
#define core_memory_h

#include <pthread.h>

#include "core.h"

enum {
  CLASSES = 8 * 48, /* to 2^53 bytes: no machine has as many */
  DEVICES = 16
};

/* What an account holds on one device. */
typedef struct Pool {
  _Atomic uint64_t live, peak, limit, allocations;
  /* Under the account's lock: */
  uint64_t idle;
  uint64_t crest, last_crest; /* the most that was live this era, and last */
  uint64_t freed;             /* bytes, this era */
  fnn_Storage *newest, *oldest;
  fnn_Storage *free[CLASSES];
} Pool;

struct Account {
  atomic_int refs; /* contexts and storages */
  fnn_Host host;
  _Atomic uint64_t births; /* of storages on cards, so far */
  pthread_mutex_t lock;
  Arena *_Atomic arenas; /* open or kept, the latest first */
  Pool pool[DEVICES];
};

/* See arena.c. */
struct Arena {
  Arena *next; /* of the account */
  Account *account;
  const fnn_Device *device;
  uint64_t start; /* what was born before may be used by the recording */
  bool open, kept;
  int64_t lent; /* storages out of it that are in use */
  fnn_Storage *free[CLASSES], *held;
};

/* The class that holds bytes on d, and through *capacity its size. */
int memory_class (const fnn_Device *d, size_t bytes, size_t *capacity);

/* Nobody holds s any more, and no recording may use it. */
void storage_free (fnn_Storage *s);

/* A block that the recording has released, in use once more, or NULL. */
fnn_Storage *arena_take (Arena *r, size_t bytes);

/* s, new, is the recording's. */
void arena_lend (Arena *r, fnn_Storage *s);

/* Whether a recording keeps s, which nobody else holds.  It stays counted as
** live: nothing else can have it. */
bool arena_keeps (fnn_Storage *s);

/* Whether a step is recorded on the device of p: nothing is freed there, which
** would wait for the work that is being written down. */
bool arena_records (Account *a, const Pool *p);

#endif
