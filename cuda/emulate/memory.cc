/* memory.cc - the memory of the emulated card: allocations, and copies.
**
** An allocation ends (rounded to 256, where canaries stand) at a page that
** cannot be touched, and is full of NaN.  A freed one cannot be touched; its
** addresses come again only when much else was freed since.  EMU_MEMORY is how
** many bytes the card has. */

#include "machine.h"

#include <map>
#include <memory>
#include <stdlib.h>
#include <sys/mman.h>

namespace emu {

std::recursive_mutex lock;
uint8_t *heap;

static const size_t QUARANTINE = (size_t)4 << 30; /* addresses */

static uint32_t *page_owner; /* of each page: an index into allocations */
static std::deque<Allocation> allocations;
static size_t heap_top; /* addresses given out */
static size_t used;     /* bytes */
static std::vector<Allocation *> with_canaries, unlocked;
static std::map<size_t, std::deque<Allocation *>> freed; /* by pages */
static size_t freed_addresses;
static std::map<const uint8_t *, size_t> pinned_blocks; /* by their ends */

static uint8_t *map (size_t n, int protection) {
  return (uint8_t *)mmap(NULL, n, protection,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void memory_open () {
  if (heap != NULL) return;
  heap = map(HEAP, PROT_NONE);
  page_owner = (uint32_t *)map(HEAP / PAGE * sizeof *page_owner,
                               PROT_READ | PROT_WRITE);
  allocations.push_back(Allocation()); /* 0: nobody */
  heap_top = PAGE;
  shadow_open();
}

Allocation *allocation_of (const void *p) {
  uint32_t i = on_card(p) ? page_owner[((const uint8_t *)p - heap) / PAGE] : 0;
  return i != 0 ? &allocations[i] : NULL;
}

/*
** {======================================================
** Locking: see machine.h
** =======================================================
*/

void memory_unlock (Allocation *a) {
  if (!checking || a->unlocked) return;
  mprotect(a->low, a->pages * PAGE, PROT_READ | PROT_WRITE);
  a->unlocked = true;
  unlocked.push_back(a);
}

void memory_unlock (const void *p) {
  Allocation *a = allocation_of(p);
  if (a != NULL && a->live) memory_unlock(a);
}

void memory_lock () {
  for (Allocation *a : unlocked) {
    if (a->live) mprotect(a->low, a->pages * PAGE, PROT_NONE);
    a->unlocked = false;
  }
  unlocked.clear();
}

/* }====================================================== */

/*
** {======================================================
** Allocations
** =======================================================
*/

static size_t card_bytes () {
  const char *s = getenv("EMU_MEMORY");
  return s != NULL ? strtoull(s, NULL, 10) : (size_t)8 << 30;
}

static size_t rounded (size_t n) { return (n + 255) & ~(size_t)255; }

/* The one of those freed that lies longest, of at least so many pages. */
static Allocation *take_freed (size_t pages, bool larger) {
  auto i = larger ? freed.lower_bound(pages) : freed.find(pages);
  if (i == freed.end()) return NULL;
  Allocation *a = i->second.front();
  i->second.pop_front();
  if (i->second.empty()) freed.erase(i);
  freed_addresses -= (a->pages + 1) * PAGE;
  return a;
}

static Allocation *take_new (size_t pages) {
  if (heap_top + (pages + 1) * PAGE > HEAP) return NULL;
  uint32_t index = (uint32_t)allocations.size();
  allocations.push_back(Allocation());
  Allocation *a = &allocations.back();
  a->low = heap + heap_top;
  a->pages = pages;
  for (size_t i = 0; i <= pages; i++) page_owner[heap_top / PAGE + i] = index;
  heap_top += (pages + 1) * PAGE;
  return a;
}

static Allocation *take (size_t pages) {
  Allocation *a = NULL;
  if (freed_addresses > QUARANTINE) a = take_freed(pages, false);
  if (a == NULL) a = take_new(pages);
  if (a == NULL) a = take_freed(pages, true);
  return a;
}

static void *card_alloc (size_t n) {
  size_t room = rounded(n);
  if (n > HEAP || used + room > card_bytes()) return NULL;
  Allocation *a = take((room + PAGE - 1) / PAGE);
  if (a == NULL) return NULL;
  mprotect(a->low, a->pages * PAGE, PROT_READ | PROT_WRITE);
  a->p = a->low + a->pages * PAGE - room;
  a->size = n;
  a->live = true;
  memset(a->p, UNKNOWN, n);
  memset(a->p + n, CANARY, room - n);
  a->unlocked = false;
  if (checking) mprotect(a->low, a->pages * PAGE, PROT_NONE);
  else if (room > n) {
    a->place = with_canaries.size();
    with_canaries.push_back(a);
  }
  used += room;
  return a->p;
}

static void card_free (Allocation *a) {
  size_t bytes = a->pages * PAGE;
  madvise(a->low, bytes, MADV_DONTNEED);
  if (!checking || a->unlocked) mprotect(a->low, bytes, PROT_NONE);
  shadow_forget(a->low, bytes);
  a->live = false;
  if (!checking && rounded(a->size) > a->size) {
    with_canaries[a->place] = with_canaries.back();
    with_canaries[a->place]->place = a->place;
    with_canaries.pop_back();
  }
  used -= rounded(a->size);
  freed[a->pages].push_back(a);
  freed_addresses += bytes + PAGE;
}

bool canaries_live () {
  for (const Allocation *a : with_canaries)
    for (size_t i = a->size; i < rounded(a->size); i++)
      if (a->p[i] != CANARY) {
        report("out of bounds", NULL,
               "wrote %zu bytes past a device allocation of %zu", i - a->size,
               a->size);
        memset(a->p + a->size, CANARY, rounded(a->size) - a->size);
        return false;
      }
  return true;
}

/* }====================================================== */

/*
** {======================================================
** Copies
** =======================================================
*/

bool pinned (const void *p) {
  auto i = pinned_blocks.upper_bound((const uint8_t *)p);
  return i != pinned_blocks.end() &&
         (const uint8_t *)p >= i->first - i->second;
}

bool inside (const void *p, size_t n, bool card, const char *what) {
  const uint8_t *b = (const uint8_t *)p;
  const Allocation *a = allocation_of(p);
  bool in = card ? a != NULL && a->live && b >= a->p && b + n <= a->p + a->size
                 : !on_card(p) && (p != NULL || n == 0);
  if (!in && n > 0)
    report("copy", NULL, "%s: %zu bytes at %p are not inside %s", what, n, p,
           card ? "one device allocation" : "host memory");
  return in || n == 0;
}

/* Whether kind k says that the destination, or else the source, is on the
** card. */
static bool is_card (cudaMemcpyKind k, bool to, const void *p) {
  if (k == cudaMemcpyDefault) return on_card(p);
  return k == cudaMemcpyDeviceToDevice ||
         k == (to ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

static void copy (void *to, const void *from, size_t n) {
  memory_unlock(to);
  memory_unlock(from);
  memcpy(to, from, n);
  if (on_card(to)) mark(to, n, true);
  memory_lock();
}

bool host_pages () { return getenv("EMU_PAGES") != NULL; }

static cudaError_t copy_later (void *to, const void *from, size_t n,
                               cudaMemcpyKind k, cudaStream_t s) {
  bool to_card = is_card(k, true, to), from_card = is_card(k, false, from);
  if (!inside(to, n, to_card, "destination") ||
      !inside(from, n, from_card, "source"))
    return set_error(cudaErrorInvalidValue, true);
  if (n == 0) return cudaSuccess;
  bool pageable = !from_card && !pinned(from);
  if (capturing(s) && (pageable || (!to_card && !pinned(to)))) {
    report("copy", NULL, "a graph records no copy of pageable host memory");
    return set_error(capture_refuses(s), true);
  }
  if (!pageable || host_pages()) return enqueue(s, [=] { copy(to, from, n); });
  /* staged now: the caller may change it at once */
  auto staged = std::make_shared<std::vector<uint8_t>>(
      (const uint8_t *)from, (const uint8_t *)from + n);
  return enqueue(s, [=] { copy(to, staged->data(), n); });
}

/* }====================================================== */

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaMalloc (void **p, size_t n) {
  Locked locked;
  *p = NULL;
  cudaError_t e = capture_refuses();
  if (e != cudaSuccess || n == 0) return e;
  memory_open();
  *p = card_alloc(n);
  return *p != NULL ? cudaSuccess : set_error(cudaErrorMemoryAllocation);
}

/* It waits for all streams, as the card's does. */
cudaError_t cudaFree (void *p) {
  Locked locked;
  cudaError_t e = capture_refuses();
  if (e != cudaSuccess || p == NULL) return e;
  drain_all();
  Allocation *a = allocation_of(p);
  if (a == NULL || a->p != p || !a->live)
    return set_error(cudaErrorInvalidValue);
  card_free(a);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync (void **p, size_t n, cudaStream_t s) {
  if (capturing(s)) return set_error(cudaErrorNotSupported);
  return cudaMalloc(p, n);
}

cudaError_t cudaFreeAsync (void *p, cudaStream_t s) {
  Locked locked;
  if (capturing(s)) return set_error(cudaErrorNotSupported);
  Allocation *a = allocation_of(p);
  if (p == NULL) return cudaSuccess;
  if (a == NULL || a->p != p || !a->live)
    return set_error(cudaErrorInvalidValue);
  return enqueue(s, [=] {
    if (a->live) card_free(a);
  });
}

cudaError_t cudaHostAlloc (void **p, size_t n, unsigned flags) {
  Locked locked;
  (void)flags;
  *p = NULL;
  cudaError_t e = capture_refuses();
  if (e != cudaSuccess || n == 0) return e;
  *p = aligned_alloc(PAGE, (n + PAGE - 1) / PAGE * PAGE);
  if (*p == NULL) return set_error(cudaErrorMemoryAllocation);
  pinned_blocks[(uint8_t *)*p + n] = n;
  return cudaSuccess;
}

cudaError_t cudaMallocHost (void **p, size_t n) {
  return cudaHostAlloc(p, n, cudaHostAllocDefault);
}

static bool unpin (void *p) {
  auto i = pinned_blocks.upper_bound((uint8_t *)p);
  if (i == pinned_blocks.end() || i->first - i->second != p) return false;
  pinned_blocks.erase(i);
  return true;
}

cudaError_t cudaFreeHost (void *p) {
  Locked locked;
  cudaError_t e = capture_refuses();
  if (e != cudaSuccess || p == NULL) return e;
  drain_all();
  if (!unpin(p)) return set_error(cudaErrorInvalidValue);
  free(p);
  return cudaSuccess;
}

cudaError_t cudaHostRegister (void *p, size_t n, unsigned flags) {
  Locked locked;
  (void)flags;
  pinned_blocks[(uint8_t *)p + n] = n;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister (void *p) {
  Locked locked;
  return unpin(p) ? cudaSuccess : set_error(cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer (void **p, void *host, unsigned flags) {
  Locked locked;
  (void)flags;
  if (!pinned(host)) return set_error(cudaErrorInvalidValue);
  *p = host;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo (size_t *available, size_t *total) {
  Locked locked;
  if (lost != cudaSuccess) return lost;
  *total = card_bytes();
  *available = *total > used ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes (cudaPointerAttributes *a,
                                      const void *p) {
  Locked locked;
  const Allocation *x = allocation_of(p);
  memset(a, 0, sizeof *a);
  if (x != NULL && x->live) {
    a->type = cudaMemoryTypeDevice;
    a->devicePointer = (void *)p;
  } else if (pinned(p)) {
    a->type = cudaMemoryTypeHost;
    a->devicePointer = a->hostPointer = (void *)p;
  } else a->device = -1;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync (void *to, const void *from, size_t n,
                             cudaMemcpyKind k, cudaStream_t s) {
  Locked locked;
  memory_open();
  return copy_later(to, from, n, k, s);
}

cudaError_t cudaMemcpy (void *to, const void *from, size_t n,
                        cudaMemcpyKind k) {
  Locked locked;
  cudaError_t e = cudaMemcpyAsync(to, from, n, k, NULL);
  if (e != cudaSuccess) return e;
  drain_all();
  return last_error();
}

cudaError_t cudaMemsetAsync (void *p, int v, size_t n, cudaStream_t s) {
  Locked locked;
  memory_open();
  if (!inside(p, n, true, "memset"))
    return set_error(cudaErrorInvalidValue, true);
  if (n == 0) return cudaSuccess;
  return enqueue(s, [=] {
    memory_unlock(p);
    memset(p, v, n);
    mark(p, n, true);
    memory_lock();
  });
}

cudaError_t cudaMemset (void *p, int v, size_t n) {
  return cudaMemsetAsync(p, v, n, NULL);
}
}
