/* shadow.cc - the checking build: what is known of each word of memory.
**
** In it the .cu files are compiled with -fsanitize=thread, but its library is
** not linked: the calls that the compiler puts before each access come here.
** Of every four bytes are kept the last write, the last two readers, and which
** bytes were written at all.  A race is two accesses to the same bytes in one
** launch, one of them a write, not both atomic, by different blocks, or by
** threads of one block with no barrier between; for lanes of one warp a
** __syncwarp will do.  It is found in whatever order the fibers ran.  After a
** __threadfence a block is not held against others, since the order that it
** makes is not known.
**
** Limit: three readers of different bytes of one word can hide one of them
** from a later writer. */

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace emu {

struct Access {
  uint32_t launch, block, epoch, warp_epoch;
  uint16_t thread;
  uint8_t mask; /* of the word's bytes */
  uint8_t atomic;
};

struct Cell {
  Access write, reader, reader_before;
  uint32_t block;  /* of shared memory: whose this is, by now.blocks */
  uint8_t written; /* bytes */
};

static Cell *heap_cells, *arena_cells;

void shadow_open () {
  if (!checking || (heap == NULL || heap_cells != NULL)) return;
  auto map = [] (size_t bytes) {
    return (Cell *)mmap(NULL, bytes / 4 * sizeof(Cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  heap_cells = map(HEAP);
  arena_cells = map(ARENA);
  faults_open();
}

/* A page of the heap has a whole number of pages of cells. */
static_assert(PAGE / 4 * sizeof(Cell) % PAGE == 0, "cells of a page");

void shadow_forget (const void *p, size_t n) {
  if (!checking) return;
  size_t at = (size_t)((const uint8_t *)p - heap);
  madvise(&heap_cells[at / 4], n / 4 * sizeof(Cell), MADV_DONTNEED);
}

/* The cells of the memory that p is in, and where that begins. */
static Cell *cells_of (const void *p, const uint8_t **begin) {
  *begin = on_card(p) ? heap : arena;
  return on_card(p) ? heap_cells : arena_cells;
}

void mark (const void *p, size_t n, bool written) {
  if (!checking) return;
  const uint8_t *begin;
  Cell *cells = cells_of(p, &begin);
  size_t i = (size_t)((const uint8_t *)p - begin), end = i + n;
  while (i < end) {
    size_t k = i % 4, m = end - i < 4 - k ? end - i : 4 - k;
    uint8_t mask = (uint8_t)(((1 << m) - 1) << k);
    Cell *c = &cells[i / 4];
    c->written = (uint8_t)(written ? c->written | mask : c->written & ~mask);
    i += m;
  }
}

/*
** {======================================================
** Where an access goes
** =======================================================
*/

static const char *word_of (int kind) {
  return kind == EMU_READ ? "read" : kind == EMU_WRITE ? "write" : "atomic";
}

static void check_card (const uint8_t *p, size_t n, int kind, void *pc) {
  Allocation *a = allocation_of(p);
  if (a == NULL)
    FAIL("out of bounds", pc,
         "%s of %zu bytes at %p, which is no device "
         "allocation",
         word_of(kind), n, (const void *)p);
  if (!a->live || p < a->p || p + n > a->p + a->size)
    FAIL("out of bounds", pc,
         "%s of %zu bytes, %ld bytes from the start of a device allocation "
         "of %zu%s",
         word_of(kind), n, (long)(p - a->p), a->size,
         a->live ? "" : " (freed)");
  memory_unlock(a);
}

static void check_shared (const uint8_t *p, size_t n, int kind, void *pc) {
  const Array *a = array_of(p);
  if (a == NULL)
    FAIL("out of bounds", pc,
         "%s of %zu bytes at offset %ld of shared memory, outside every array",
         word_of(kind), n, (long)(p - arena));
  if (p + n > a->p + a->size)
    FAIL("out of bounds", pc, "%s of %zu bytes at '%s' + %ld, which has %zu",
         word_of(kind), n, a->name, (long)(p - a->p), a->size);
}

/* Kernels may read their arguments and constants, and use pinned memory. */
static void check_host (const uint8_t *p, size_t n, int kind, void *pc) {
  const uint8_t *body = (const uint8_t *)now.body;
  if (p >= body && p < body + now.body->size) return;
  if (pinned(p) || (kind == EMU_READ && constant(p))) return;
  FAIL("host pointer", pc, "%s of %zu bytes of host memory at %p",
       word_of(kind), n, (const void *)p);
}

/* Host code of a .cu file, which is instrumented too. */
static void check_host_code (const void *p, void *pc) {
  if (heap == NULL || !on_card(p)) return;
  report("host", pc, "host code touches device memory");
  abort();
}

/* }====================================================== */

/*
** {======================================================
** What an access meets there
** =======================================================
*/

static bool races (const Access *a, const Access *b) {
  if ((a->mask & b->mask) == 0 || a->launch != b->launch) return false;
  if (a->atomic && b->atomic) return false;
  if (a->block != b->block) return !now.fenced;
  if (a->thread == b->thread || a->epoch != b->epoch) return false;
  return a->thread / LANES != b->thread / LANES ||
         a->warp_epoch == b->warp_epoch;
}

static const char *name_of (char *to, size_t n, const uint8_t *p) {
  const Allocation *a = allocation_of(p);
  if (a != NULL)
    snprintf(to, n, "device allocation of %zu + %ld", a->size,
             (long)(p - a->p));
  else {
    const Array *s = array_of(p);
    snprintf(to, n, "shared '%s' + %ld", s->name, (long)(p - s->p));
  }
  return to;
}

[[noreturn]] static void tell_race (const Access *other, const char *verb,
                                    const uint8_t *p, size_t n, int kind,
                                    void *pc) {
  char name[128];
  unsigned t = other->thread, x = now.block.x, y = now.block.y;
  FAIL("race", pc,
       "%s of %zu bytes of %s, %s by block %u thread (%u,%u,%u) with no "
       "barrier between",
       word_of(kind), n, name_of(name, sizeof name, p), verb, other->block,
       t % x, t / x % y, t / x / y);
}

static bool same (const Access *a, const Access *b) {
  return a->launch == b->launch && a->block == b->block &&
         a->thread == b->thread && a->epoch == b->epoch &&
         a->warp_epoch == b->warp_epoch && a->atomic == b->atomic;
}

static void remember (Cell *c, const Access *a, int kind) {
  if (kind == EMU_READ) {
    if (same(&c->reader, a)) c->reader.mask |= a->mask;
    else {
      c->reader_before = c->reader;
      c->reader = *a;
    }
    return;
  }
  if (same(&c->write, a)) c->write.mask |= a->mask;
  else c->write = *a;
  c->written |= a->mask;
}

/* One word's part of an access of n bytes, at p. */
static void meet (Cell *c, const Access *a, const uint8_t *p, size_t n,
                  int kind, void *pc) {
  if (races(&c->write, a)) tell_race(&c->write, "written", p, n, kind, pc);
  if (kind != EMU_READ && races(&c->reader, a))
    tell_race(&c->reader, "read", p, n, kind, pc);
  if (kind != EMU_READ && races(&c->reader_before, a))
    tell_race(&c->reader_before, "read", p, n, kind, pc);
  if (kind != EMU_WRITE && (c->written & a->mask) != a->mask) {
    char name[128];
    FAIL("uninitialised", pc, "%s of %zu bytes of %s, never written",
         word_of(kind), n, name_of(name, sizeof name, p));
  }
  remember(c, a, kind);
}

void access (const void *ptr, size_t n, int kind, void *pc) {
  const uint8_t *p = (const uint8_t *)ptr, *end = p + n, *begin;
  if (self == NULL) {
    check_host_code(p, pc);
    return;
  }
  if (on_stacks(p)) return;
  if (on_card(p)) check_card(p, n, kind, pc);
  else if (on_arena(p)) check_shared(p, n, kind, pc);
  else {
    check_host(p, n, kind, pc);
    return;
  }
  Cell *cells = cells_of(p, &begin);
  bool shared = cells == arena_cells;
  Access a = { now.serial,
               now.linear,
               now.epoch,
               self->epoch,
               (uint16_t)self->linear,
               0,
               kind == EMU_ATOMIC };
  while (p < end) {
    size_t at = (size_t)(p - begin), k = at % 4;
    size_t m = (size_t)(end - p) < 4 - k ? (size_t)(end - p) : 4 - k;
    Cell *c = &cells[at / 4];
    if (shared && c->block != now.blocks) { /* another block's */
      memset((void *)c, 0, sizeof *c);
      c->block = now.blocks;
    }
    a.mask = (uint8_t)(((1 << m) - 1) << k);
    meet(c, &a, p, n, kind, pc);
    p += m;
  }
}

/* }====================================================== */

} // namespace emu

using namespace emu;

/*
** {======================================================
** Accesses that the compiler does not see
** =======================================================
*/

void emu_touch (const volatile void *p, size_t n, int kind, size_t align,
                void *pc) {
  if ((uintptr_t)p & (align - 1))
    FAIL("misaligned", pc, "%zu-byte access at %p", n, (const void *)p);
  if (checking) access((const void *)p, n, kind, pc);
}

/* Until the wait nothing is there. */
void emu_cp_async (void *to, const void *from, size_t n, size_t there) {
  void *pc = __builtin_return_address(0);
  if (((uintptr_t)to | (uintptr_t)from) & (n - 1))
    FAIL("misaligned", pc, "cp.async of %zu bytes from %p to %p", n, from, to);
  if (!on_arena(to))
    FAIL("out of bounds", pc, "cp.async to %p, not in shared memory", to);
  if (checking) {
    if (there > 0) access(from, there, EMU_READ, pc);
    access(to, n, EMU_WRITE, pc);
  }
  memset(to, UNKNOWN, n);
  mark(to, n, false);
  self->copies.push_back({ to, from, n, there, self->group });
}

void emu_cp_commit () { self->group++; }

void emu_cp_wait (int keep) {
  void *pc = __builtin_return_address(0);
  std::vector<Copy> *copies = &self->copies;
  size_t kept = 0;
  for (const Copy &c : *copies) {
    if (c.group >= self->group - keep) {
      (*copies)[kept++] = c;
      continue;
    }
    memcpy(c.to, c.from, c.there);
    memset((uint8_t *)c.to + c.there, 0, c.n - c.there);
    if (checking) access(c.to, c.n, EMU_WRITE, pc);
  }
  copies->resize(kept);
}

/* }====================================================== */

#ifdef EMU_CHECK

/*
** {======================================================
** Those that it does
** =======================================================
*/

/* Before the engine reads its environment: with its cache of freed memory a
** use after free, or of what another tensor left, would not be seen. */
__attribute__((constructor(101))) static void turn_cache_off () {
  setenv("FNN_CACHE", "0", 0);
}

static void aligned_access (void *p, size_t n, int kind, void *pc) {
  if (self != NULL && ((uintptr_t)p & (n - 1)))
    FAIL("misaligned", pc, "%zu-byte access at %p", n, p);
  access(p, n, kind, pc);
}

#define CALLBACK __attribute__((visibility("default"))) void
#define HERE __builtin_return_address(0)
#define CALLBACKS(n) \
  CALLBACK __tsan_read##n(void *p) { aligned_access(p, n, EMU_READ, HERE); } \
  CALLBACK __tsan_write##n(void *p) { \
    aligned_access(p, n, EMU_WRITE, HERE); \
  } \
  CALLBACK __tsan_unaligned_read##n(void *p) { \
    access(p, n, EMU_READ, HERE); \
  } \
  CALLBACK __tsan_unaligned_write##n(void *p) { \
    access(p, n, EMU_WRITE, HERE); \
  } \
  CALLBACK __tsan_volatile_read##n(void *p) { \
    aligned_access(p, n, EMU_READ, HERE); \
  } \
  CALLBACK __tsan_volatile_write##n(void *p) { \
    aligned_access(p, n, EMU_WRITE, HERE); \
  }

extern "C" {
CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)

CALLBACK __tsan_read_range (void *p, long n) {
  access(p, (size_t)n, EMU_READ, HERE);
}

CALLBACK __tsan_write_range (void *p, long n) {
  access(p, (size_t)n, EMU_WRITE, HERE);
}

/* Atomics of C and C++, which the host half of a .cu file may use. */
#define ATOMIC(T, bits) \
  __attribute__((visibility("default"))) \
  T __tsan_atomic##bits##_load(const volatile T *p, int) { \
    access((const void *)p, sizeof *p, EMU_ATOMIC, HERE); \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST); \
  } \
  CALLBACK __tsan_atomic##bits##_store(volatile T *p, T v, int) { \
    access((const void *)p, sizeof *p, EMU_ATOMIC, HERE); \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST); \
  } \
  ATOMIC_OP(T, bits, exchange, __atomic_exchange_n) \
  ATOMIC_OP(T, bits, fetch_add, __atomic_fetch_add) \
  ATOMIC_OP(T, bits, fetch_sub, __atomic_fetch_sub) \
  ATOMIC_OP(T, bits, fetch_and, __atomic_fetch_and) \
  ATOMIC_OP(T, bits, fetch_or, __atomic_fetch_or) \
  ATOMIC_OP(T, bits, fetch_xor, __atomic_fetch_xor) \
  ATOMIC_CAS(T, bits, strong) \
  ATOMIC_CAS(T, bits, weak)

#define ATOMIC_OP(T, bits, name, f) \
  __attribute__((visibility("default"))) \
  T __tsan_atomic##bits##_##name(volatile T *p, T v, int) { \
    access((const void *)p, sizeof *p, EMU_ATOMIC, HERE); \
    return f(p, v, __ATOMIC_SEQ_CST); \
  }

#define ATOMIC_CAS(T, bits, kind) \
  __attribute__((visibility("default"))) int \
      __tsan_atomic##bits##_compare_exchange_##kind( \
          volatile T *p, T *expected, T v, int, int) { \
    access((const void *)p, sizeof *p, EMU_ATOMIC, HERE); \
    return __atomic_compare_exchange_n(p, expected, v, false, \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }

ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)

CALLBACK __tsan_atomic_thread_fence (int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

CALLBACK __tsan_init () {}
CALLBACK __tsan_func_entry (void *) {}
CALLBACK __tsan_func_exit () {}
CALLBACK __tsan_vptr_update (void **, void *) {}
CALLBACK __tsan_vptr_read (void **) {}
}

/* }====================================================== */

#endif
