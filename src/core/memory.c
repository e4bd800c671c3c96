/* memory.c - counted memory, its limit, and the cache of freed storage.
**
** An account counts what its contexts hold.  A fresh page of the system costs
** about as much as computing on it, so freed storage is kept, bytes and all,
** in lists by size class (eight to a doubling) and handed out again.  A
** collector frees what it finds all at once and the next ops want it back, so
** live and idle bytes together may reach the crest: the most that was live of
** late, and a quarter more since classes do not crest at once.  Late are this
** era and the last; an era ends when ERA times its crest were freed.  IDLE_MIN
** bytes may be idle in any case, with the headers that object.c keeps.  The
** oldest go first.  What is tiny each context keeps for itself, without a
** lock, counted and holding its account as if it were in use; fnn_memory
** tells it as idle.
**
** Each device has lists, counters and a limit of its own.  On a card a freed
** block may be handed out while work that uses it still waits: what uses it
** next comes later in the same queue (queues.c of cuda tells of the other).
**
** When an allocation fails: the host reclaims, the cache is trimmed, one more
** try, then a throw that says what was asked, held, allowed and, on a card,
** free.
**
** Under ASan the cache is off, and with FNN_CACHE=0 (for valgrind), so that a
** use after free is seen. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

enum {
  ALIGN = 64,
  HUGE_PAGE = 2 << 20,
  CLASS_MIN = 64,     /* bytes of the smallest class */
  CARD_MIN = 512,     /* the same on a card, which has no smaller blocks */
  TINY_MAX = 1024,    /* bytes of a tiny storage: the last of TINY_CLASSES */
  TINY_KEEP = 1 << 20 /* of them in a context */
};

static const uint64_t IDLE_MIN = 64 << 20, ERA = 8;

/*
** {======================================================
** Accounts
** =======================================================
*/

/* gcc says it by a macro, clang by a feature. */
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
bool mem_checking (void) { return true; }
#else
static bool cache_off;

__attribute__((constructor)) static void read_environment (void) {
  const char *s = getenv("FNN_CACHE");
  cache_off = s != NULL && strcmp(s, "0") == 0;
}

bool mem_checking (void) { return cache_off; }
#endif

static void *default_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  (void)ud, (void)osize;
  if (nsize == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, nsize);
}

Account *account_new (const fnn_Host *host) {
  fnn_Host h = *host;
  if (h.alloc == NULL) h.alloc = default_alloc;
  Account *a = h.alloc(h.ud, NULL, 0, sizeof *a);
  if (a == NULL) return NULL;
  memset(a, 0, sizeof *a);
  a->refs = 1;
  a->host = h;
  a->pool[0].limit = h.memory_limit;
  pthread_mutex_init(&a->lock, NULL);
  return a;
}

Account *account_retain (Account *a) {
  a->refs++;
  return a;
}

void account_release (Account *a) {
  if (--a->refs > 0) return;
  account_trim(a, NULL);
  pthread_mutex_destroy(&a->lock);
  a->host.alloc(a->host.ud, a, sizeof *a, 0);
}

void *account_alloc (Account *a, size_t bytes) {
  return a->host.alloc(a->host.ud, NULL, 0, bytes);
}

void account_free (Account *a, void *p, size_t bytes) {
  if (p != NULL) a->host.alloc(a->host.ud, p, bytes, 0);
}

static Pool *pool_of (Account *a, const fnn_Device *d) {
  return &a->pool[d->index];
}

static Pool *pool_of_host (Account *a) { return &a->pool[0]; }

static void count (Pool *p, uint64_t bytes) {
  uint64_t live = atomic_fetch_add(&p->live, bytes) + bytes;
  uint64_t peak = p->peak;
  while (live > peak && !atomic_compare_exchange_weak(&p->peak, &peak, live))
    ;
}

static void uncount (Pool *p, uint64_t bytes) { p->live -= bytes; }

static uint64_t idle_of (Account *a, const Pool *p) {
  pthread_mutex_lock(&a->lock);
  uint64_t idle = p->idle;
  pthread_mutex_unlock(&a->lock);
  return idle;
}

void account_memory (Account *a, const fnn_Device *d, fnn_Memory *m) {
  Pool *p = pool_of(a, d);
  m->idle = idle_of(a, p);
  m->live = p->live;
  m->peak = p->peak;
  m->limit = p->limit;
  m->allocations = p->allocations;
  m->workspace = d->workspace;
}

void account_limit (Account *a, const fnn_Device *d, uint64_t bytes) {
  pool_of(a, d)->limit = bytes;
}

void account_peak_reset (Account *a, const fnn_Device *d) {
  Pool *p = pool_of(a, d);
  p->peak = (uint64_t)p->live;
}

uint64_t account_live (Account *a) {
  uint64_t live = 0;
  for (int i = 0; i < DEVICES; i++) live += a->pool[i].live;
  return live;
}

/* }====================================================== */

/*
** {======================================================
** The cache
** =======================================================
*/

int memory_class (const fnn_Device *d, size_t bytes, size_t *capacity) {
  size_t least = d->host ? CLASS_MIN : CARD_MIN;
  if (bytes < least) bytes = least;
  int e = 63 - __builtin_clzll(bytes); /* 2^e <= bytes */
  size_t step = (size_t)1 << (e - 3);
  size_t k = (bytes - ((size_t)1 << e) + step - 1) / step; /* 0 .. 8 */
  *capacity = ((size_t)1 << e) + k * step;
  return (e - 6) * 8 + (int)k;
}

static void unlink_idle (Pool *p, fnn_Storage *s, int k) {
  if (s->prev != NULL) s->prev->next = s->next;
  else p->free[k] = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  if (s->newer != NULL) s->newer->older = s->older;
  else p->newest = s->older;
  if (s->older != NULL) s->older->newer = s->newer;
  else p->oldest = s->newer;
  p->idle -= s->capacity;
}

static void link_idle (Pool *p, fnn_Storage *s, int k) {
  fnn_Storage **head = &p->free[k];
  s->prev = NULL;
  s->next = *head;
  if (*head != NULL) (*head)->prev = s;
  *head = s;
  s->newer = NULL;
  s->older = p->newest;
  if (p->newest != NULL) p->newest->newer = s;
  else p->oldest = s;
  p->newest = s;
  p->idle += s->capacity;
}

/* Bytes of the allocation behind a host storage: room to align it. */
static size_t padded (size_t capacity) { return capacity + ALIGN; }

static bool uses_host_alloc (const Account *a, const fnn_Device *d) {
  return d->host && a->host.alloc != default_alloc;
}

/* The host's block is found from its aligned part by the byte before it. */
static void *host_block_new (Account *a, size_t capacity) {
  unsigned char *p = account_alloc(a, padded(capacity));
  if (p == NULL) return NULL;
  size_t shift = ALIGN - (uintptr_t)p % ALIGN;
  p[shift - 1] = (unsigned char)shift;
  return p + shift;
}

static void host_block_free (Account *a, void *data, size_t capacity) {
  unsigned char *p = data;
  account_free(a, p - p[-1], padded(capacity));
}

static void *block_new (Account *a, const fnn_Device *d, size_t capacity) {
  if (uses_host_alloc(a, d)) return host_block_new(a, capacity);
  return d->alloc(d, capacity);
}

static void data_free (Account *a, const fnn_Device *d, void *data,
                       size_t capacity) {
  if (uses_host_alloc(a, d)) host_block_free(a, data, capacity);
  else d->free(d, data, capacity);
}

static void block_free (Account *a, fnn_Storage *s) {
  data_free(a, s->device, s->data, s->capacity);
  account_free(a, s, sizeof *s);
}

/* Frees idle storage, the oldest first, until at most keep bytes are idle. */
static void trim (Account *a, Pool *p, uint64_t keep) {
  for (;;) {
    pthread_mutex_lock(&a->lock);
    fnn_Storage *s = p->idle > keep && !arena_records(a, p) ? p->oldest : NULL;
    if (s != NULL) {
      size_t capacity;
      unlink_idle(p, s, memory_class(s->device, s->capacity, &capacity));
    }
    pthread_mutex_unlock(&a->lock);
    if (s == NULL) return;
    block_free(a, s);
  }
}

void account_trim (Account *a, const fnn_Device *d) {
  for (int i = 0; i < DEVICES; i++)
    if (d == NULL || d->index == i) trim(a, &a->pool[i], 0);
}

static fnn_Storage *take_idle (Account *a, const fnn_Device *d, int k) {
  Pool *p = pool_of(a, d);
  pthread_mutex_lock(&a->lock);
  fnn_Storage *s = p->free[k];
  if (s != NULL) unlink_idle(p, s, k);
  pthread_mutex_unlock(&a->lock);
  return s;
}

void *mem_pages (size_t bytes) {
  if (bytes < HUGE_PAGE)
    return aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
  void *p = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE *
                                         (size_t)HUGE_PAGE);
  if (p != NULL) madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

void mem_pages_free (void *p, size_t bytes) {
  (void)bytes;
  free(p);
}

/* }====================================================== */

/*
** {======================================================
** Allocation that collects before it gives up
** =======================================================
*/

/* Writes "12.3 MB". */
static const char *size_text (char *to, size_t n, uint64_t bytes) {
  static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
  double v = (double)bytes;
  int u = 0;
  while (v >= 1024 && u < countof(units) - 1) v /= 1024, u++;
  snprintf(to, n, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
  return to;
}

/* " of the 1.0 GB allowed", or nothing where there is no limit. */
static const char *allowed_text (char *to, size_t n, uint64_t limit) {
  char size[32];
  if (limit == 0) snprintf(to, n, "%s", "");
  else
    snprintf(to, n, " of the %s allowed", size_text(size, sizeof size, limit));
  return to;
}

/* ", with 1.0 GB of 24.0 GB free", of a card. */
static const char *free_text (char *to, size_t n, const fnn_Device *d) {
  char size[2][32];
  snprintf(to, n, "%s", "");
  if (d->host) return to;
  fnn_DeviceInfo info = fnn_device_info(d);
  snprintf(to, n, "; %s of the card's %s are free",
           size_text(size[0], sizeof size[0], info.free),
           size_text(size[1], sizeof size[1], info.total));
  return to;
}

FNN_NORETURN static void out_of_memory (Account *a, const fnn_Device *d,
                                        const char *where, uint64_t bytes) {
  char asked[32], held[32], allowed[64], rest[96];
  const Pool *p = pool_of(a, d);
  fnn_throw(FNN_EMEMORY, "out of memory on %s: asked for %s, holding %s%s%s",
            where, size_text(asked, sizeof asked, bytes),
            size_text(held, sizeof held, p->live),
            allowed_text(allowed, sizeof allowed, p->limit),
            free_text(rest, sizeof rest, d));
}

static bool over_limit (Account *a, Pool *p, uint64_t bytes) {
  uint64_t limit = p->limit;
  if (limit == 0) return false;
  if (p->live + idle_of(a, p) + bytes > limit) trim(a, p, 0);
  return p->live + bytes > limit;
}

void memory_free_tiny (fnn_Context *c) {
  Account *a = c->account;
  for (int k = 0; k < TINY_CLASSES; k++)
    while (c->tiny[k] != NULL) {
      fnn_Storage *s = c->tiny[k];
      c->tiny[k] = s->next;
      uncount(pool_of_host(a), s->capacity);
      block_free(a, s);
      account_release(a);
    }
  c->tiny_bytes = 0;
}

/* Asks the host to drop what it can; it may run finalizers of ours. */
static void reclaim (fnn_Context *c) {
  if (!c->reclaiming && !c->finalizing) {
    c->reclaiming = true;
    if (c->reclaim_library != NULL) c->reclaim_library(c->library);
    if (c->host.reclaim != NULL) c->host.reclaim(c->host.ud);
    c->reclaiming = false;
  }
  object_free_lists(c);
  memory_free_tiny(c);
  account_trim(c->account, NULL);
}

void *device_take (fnn_Device *d, size_t bytes) {
  void *p = d->alloc(d, bytes);
  if (p == NULL) {
    reclaim(context());
    p = d->alloc(d, bytes);
  }
  if (p != NULL) d->workspace += bytes;
  return p;
}

void device_give (fnn_Device *d, void *p, size_t bytes) {
  d->free(d, p, bytes);
  d->workspace -= bytes;
}

void *mem_try (size_t bytes) {
  Account *a = context()->account;
  if (over_limit(a, pool_of_host(a), bytes)) return NULL;
  void *p = account_alloc(a, bytes);
  if (p != NULL) count(pool_of_host(a), bytes);
  return p;
}

void *mem_new (size_t bytes) {
  void *p = mem_try(bytes);
  if (p == NULL) {
    reclaim(context_now);
    p = mem_try(bytes);
  }
  if (p == NULL)
    out_of_memory(context_now->account, device_cpu(), "the host", bytes);
  return p;
}

void mem_free (void *p, size_t bytes) {
  if (p == NULL) return;
  Account *a = context()->account;
  account_free(a, p, bytes);
  uncount(pool_of_host(a), bytes);
}

void *mem_grow (void *p, size_t old, size_t bytes) {
  void *q = mem_new(bytes);
  if (old > 0) memcpy(q, p, old < bytes ? old : bytes);
  mem_free(p, old);
  return q;
}

int64_t mem_mul (int64_t a, int64_t b, const char *what) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    fnn_throw(FNN_EARG, "%s: %lld x %lld is too large", what, (long long)a,
              (long long)b);
  return r;
}

/* A storage of a new block, or NULL.  The block first: a card may throw. */
static fnn_Storage *block_storage (Account *a, const fnn_Device *d,
                                   size_t capacity) {
  void *data = block_new(a, d, capacity);
  fnn_Storage *s = data != NULL ? account_alloc(a, sizeof *s) : NULL;
  if (s == NULL) {
    if (data != NULL) data_free(a, d, data, capacity);
    return NULL;
  }
  memset(s, 0, sizeof *s);
  s->device = d;
  s->account = a;
  s->capacity = capacity;
  s->data = data;
  return s;
}

static fnn_Storage *storage_try (Account *a, const fnn_Device *d,
                                 size_t bytes) {
  size_t capacity;
  int k = memory_class(d, bytes, &capacity);
  Pool *p = pool_of(a, d);
  fnn_Storage *s = take_idle(a, d, k);
  if (s == NULL) {
    if (over_limit(a, p, capacity)) return NULL;
    s = block_storage(a, d, capacity);
    if (s == NULL) return NULL;
    p->allocations++;
  } else if (p->limit != 0 && p->live + capacity > p->limit) {
    block_free(a, s);
    return NULL;
  }
  s->refs = 1;
  s->version = 0;
  s->readonly = false;
  s->bytes = bytes;
  s->birth = d->host ? 0 : ++a->births;
  account_retain(a);
  count(p, capacity);
  return s;
}

/* A tiny storage that c freed before, or NULL. */
static fnn_Storage *take_tiny (fnn_Context *c, const fnn_Device *d,
                               size_t bytes) {
  size_t capacity;
  if (bytes > TINY_MAX || !d->host) return NULL;
  int k = memory_class(d, bytes, &capacity);
  fnn_Storage *s = c->tiny[k];
  if (s == NULL) return NULL;
  c->tiny[k] = s->next;
  c->tiny_bytes -= capacity;
  s->refs = 1;
  s->version = 0;
  s->readonly = false;
  s->bytes = bytes;
  return s;
}

/* Keeps s, which nobody holds, if it is tiny and the calling thread's. */
static bool keep_tiny (fnn_Storage *s) {
  fnn_Context *c = context_now;
  size_t capacity;
  if (s->capacity > TINY_MAX || c == NULL || c->account != s->account ||
      s->wrapped || !s->device->host || c->tiny_bytes >= TINY_KEEP ||
      mem_checking())
    return false;
  int k = memory_class(s->device, s->capacity, &capacity);
  s->next = c->tiny[k];
  c->tiny[k] = s;
  c->tiny_bytes += capacity;
  return true;
}

/* What the cache and the system have, the cache of a recording first; apart
** from it when apart is set. */
static fnn_Storage *storage_find (fnn_Context *c, const fnn_Device *d,
                                  size_t bytes, bool apart) {
  bool records = c->arena != NULL && c->arena->device == d && !apart;
  Arena *r = records ? c->arena : NULL;
  fnn_Storage *s = r != NULL ? arena_take(r, bytes) : NULL;
  if (s == NULL) s = take_tiny(c, d, bytes);
  if (s == NULL) s = storage_try(c->account, d, bytes);
  if (r != NULL && s != NULL && s->arena == NULL) arena_lend(r, s);
  return s;
}

static fnn_Storage *storage_make (const fnn_Device *d, size_t bytes,
                                  bool apart) {
  fnn_Context *c = context();
  if (bytes >> 53 != 0) out_of_memory(c->account, d, d->name, bytes);
  fnn_Storage *s = storage_find(c, d, bytes, apart);
  if (s == NULL) {
    reclaim(c);
    s = storage_find(c, d, bytes, apart);
  }
  if (s == NULL) out_of_memory(c->account, d, d->name, bytes);
  c->since_collect += s->capacity;
  return s;
}

fnn_Storage *storage_new (const fnn_Device *d, size_t bytes) {
  return storage_make(d, bytes, false);
}

fnn_Storage *storage_new_apart (const fnn_Device *d, size_t bytes) {
  return storage_make(d, bytes, true);
}

fnn_Storage *storage_retain (fnn_Storage *s) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

/* How many bytes may be idle now that some more are. */
static uint64_t idle_most (Pool *p, uint64_t bytes) {
  uint64_t live = p->live;
  if (p->crest < live + bytes) p->crest = live + bytes;
  p->freed += bytes;
  if (p->freed / ERA > p->crest) {
    p->last_crest = p->crest;
    p->crest = live;
    p->freed = 0;
  }
  uint64_t crest = p->crest > p->last_crest ? p->crest : p->last_crest;
  uint64_t held = crest + crest / 4;
  uint64_t most = held > live ? held - live : 0;
  return (most > IDLE_MIN ? most : IDLE_MIN) - SPARE_MAX;
}

/* Keeps s for later, or gives it back when enough is kept. */
static void storage_idle (Account *a, fnn_Storage *s) {
  size_t capacity;
  int k = memory_class(s->device, s->capacity, &capacity);
  Pool *p = pool_of(a, s->device);
  pthread_mutex_lock(&a->lock);
  link_idle(p, s, k);
  uint64_t most = idle_most(p, s->capacity);
  bool much = p->idle > most;
  pthread_mutex_unlock(&a->lock);
  if (much) trim(a, p, most);
}

void storage_free (fnn_Storage *s) {
  Account *a = s->account;
  uncount(pool_of(a, s->device), s->capacity);
  if (s->wrapped) {
    if (s->release != NULL) s->release(s->ud, s->data);
    account_free(a, s, sizeof *s);
  } else if (mem_checking()) block_free(a, s);
  else storage_idle(a, s);
  account_release(a);
}

void storage_release (fnn_Storage *s) {
  if (s == NULL) return;
  /* Whoever has the only reference need not count it down. */
  if (atomic_load_explicit(&s->refs, memory_order_acquire) != 1 &&
      atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
    return;
  if (keep_tiny(s) || arena_keeps(s)) return;
  storage_free(s);
}

fnn_Storage *storage_wrap (void *data, size_t bytes,
                           void (*release)(void *ud, void *data), void *ud,
                           bool readonly) {
  Account *a = context()->account;
  fnn_Storage *s = account_alloc(a, sizeof *s);
  if (s == NULL) out_of_memory(a, device_cpu(), "the host", sizeof *s);
  memset(s, 0, sizeof *s);
  s->refs = 1;
  s->device = device_cpu();
  s->account = account_retain(a);
  s->data = data;
  s->bytes = bytes;
  s->release = release;
  s->ud = ud;
  s->wrapped = true;
  s->readonly = readonly;
  return s;
}

typedef struct Scratch {
  Object o;
  fnn_Storage *storage;
} Scratch;

static void scratch_destroy (void *o) {
  storage_release(((Scratch *)o)->storage);
}

static const Type scratch_type = { "scratch", scratch_destroy };

void *mem_scratch (size_t bytes) {
  Scratch *s = object_new(&scratch_type, sizeof *s);
  s->storage = storage_new(device_cpu(), bytes);
  return s->storage->data;
}

/* }====================================================== */
