/* launch.cc - launches: their limits, their blocks one after another, and
** shared memory.
**
** Shared memory is one arena: guard, array, guard, array ...  Every block finds
** it full of NaN.
**
** EMU_FAIL=softmax:3 has the third launch (or the first) of a kernel with this
** in its name fail as it runs, and the card is lost, as a real one would be;
** EMU_REFUSE has it refused when it is asked for. */

#include "machine.h"

#include <map>
#include <memory>
#include <stdlib.h>
#include <string>
#include <sys/mman.h>

int emu_order;

namespace emu {

uint8_t *arena;
std::vector<Array> arrays;

static size_t arena_top;
static std::map<const void *, int> optin; /* dynamic bytes, by kernel */

static void open_all () {
  static bool opened;
  if (opened) return;
  opened = true;
  memory_open();
  fibers_open();
  arena = (uint8_t *)mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  shadow_open();
  if (getenv("EMU_ORDER") != NULL) emu_order = atoi(getenv("EMU_ORDER"));
}

/*
** {======================================================
** Shared memory
** =======================================================
*/

static uint8_t *array_new (const void *site, const char *name, size_t size) {
  size_t at = (arena_top + GUARD + 127) & ~(size_t)127;
  memset(arena + arena_top, CANARY, at - arena_top);
  memset(arena + at, UNKNOWN, size);
  memset(arena + at + size, CANARY, GUARD);
  arrays.push_back({ site, name, arena + at, size });
  arena_top = at + size;
  return arena + at;
}

Array *array_of (const void *p) {
  for (Array &a : arrays)
    if ((size_t)((const uint8_t *)p - a.p) < a.size) return &a;
  return NULL;
}

static void check_guards () {
  for (const Array &a : arrays)
    for (int i = 0; i < GUARD / 2 && !now.failed; i++)
      if (a.p[a.size + i] != CANARY || a.p[-1 - i] != CANARY) {
        report("out of bounds", NULL,
               "block %u wrote beside shared array '%s'", now.linear, a.name);
        now.failed = true;
        now.code = cudaErrorIllegalAddress;
      }
}

/* }====================================================== */

/*
** {======================================================
** Blocks
** =======================================================
*/

static void run_block (uint64_t b) {
  now.linear = (uint32_t)b;
  now.blocks++;
  now.index.x = (unsigned)(b % now.grid.x);
  now.index.y = (unsigned)(b / now.grid.x % now.grid.y);
  now.index.z = (unsigned)(b / now.grid.x / now.grid.y);
  for (const Array &a : arrays) memset(a.p, UNKNOWN, a.size);
  fibers_run_block();
  if (!now.failed) check_guards();
}

static void number_threads () {
  const dim3 b = now.block;
  now.threads = (int)(b.x * b.y * b.z);
  for (int i = 0; i < now.threads; i++) {
    unsigned u = (unsigned)i;
    threads[i].linear = i;
    threads[i].index = { u % b.x, u / b.x % b.y, u / b.x / b.y };
  }
  fibers_order(now.threads);
}

static void run_blocks () {
  now.serial++;
  now.failed = false;
  arrays.clear();
  arena_top = 0;
  if (now.shared > 0) array_new(&now.shared, "dynamic", now.shared);
  number_threads();
  uint64_t n = (uint64_t)now.grid.x * now.grid.y * now.grid.z;
  for (uint64_t i = 0; i < n && !now.failed; i++)
    run_block(emu_order == 1 ? n - 1 - i : i);
  if (!now.failed && !canaries_live()) {
    now.failed = true;
    now.code = cudaErrorIllegalAddress;
  }
  memory_lock();
  if (now.failed) set_error(now.code, true);
}

/* }====================================================== */

/*
** {======================================================
** Limits
** =======================================================
*/

static size_t shared_limit (const void *kernel) {
  auto i = optin.find(kernel);
  return i != optin.end() ? (size_t)i->second : (size_t)SHARED_DEFAULT;
}

/* Whether the variable asks for the failure of this launch; *seen counts. */
static bool asked_to_fail (const char *variable, const char *kernel,
                           int *seen) {
  const char *s = getenv(variable);
  if (s == NULL) return false;
  const char *colon = strrchr(s, ':');
  std::string part(s, colon != NULL ? (size_t)(colon - s) : strlen(s));
  if (strstr(kernel, part.c_str()) == NULL) return false;
  return ++*seen == (colon != NULL ? atoi(colon + 1) : 1);
}

static bool refused (const char *kernel) {
  static int seen;
  return asked_to_fail("EMU_REFUSE", kernel, &seen);
}

static bool fails (const char *kernel) {
  static int seen;
  return asked_to_fail("EMU_FAIL", kernel, &seen);
}

/* What a card would refuse, or NULL. */
static const char *launch_fault (dim3 g, dim3 b, size_t shared, size_t most,
                                 size_t parameters) {
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0)
    return "an empty grid or block";
  if (b.x > 1024 || b.y > 1024 || b.z > 64 ||
      (uint64_t)b.x * b.y * b.z > MOST_THREADS)
    return "too many threads in a block";
  if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return "a grid dimension over its limit";
  if (shared > most)
    return "more dynamic shared memory than allowed (cudaFuncSetAttribute)";
  if (parameters > 4096) return "over 4096 bytes of parameters";
  return NULL;
}

} // namespace emu

using namespace emu;

void *emu_shared (const void *site, const char *name, size_t size) {
  size_t used = size;
  for (const Array &a : arrays) {
    if (a.site == site) return a.p;
    if (a.site != &now.shared) used += a.size;
  }
  if (used > SHARED_DEFAULT || used + now.shared > now.most)
    FAIL("shared", NULL,
         "%zu bytes of static shared memory at '%s' and %zu dynamic: the "
         "limits are %d and, together, %zu",
         used, name, now.shared, SHARED_DEFAULT, now.most);
  return array_new(site, name, size);
}

void *emu_dynamic_shared () {
  return now.shared > 0 ? arrays[0].p : arena; /* there it is all guard */
}

void emu_run (const char *name, dim3 grid, dim3 block, size_t shared,
              cudaStream_t s, const void *kernel, EmuBody *body) {
  Locked locked;
  std::shared_ptr<EmuBody> own(body);
  open_all();
  size_t most = shared_limit(kernel);
  const char *bad = launch_fault(grid, block, shared, most, body->size);
  if (bad != NULL) {
    now.name = name;
    report("launch", NULL, "grid (%u,%u,%u) block (%u,%u,%u) shared %zu: %s",
           grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, bad);
    now.name = NULL;
    set_error(shared > most ? cudaErrorInvalidValue
                            : cudaErrorInvalidConfiguration,
              true);
    return;
  }
  if (refused(name)) {
    set_error(cudaErrorLaunchOutOfResources);
    return;
  }
  if (s != NULL) s->computes = true;
  enqueue(s, [=] {
    if (fails(name)) {
      lost = cudaErrorLaunchFailure;
      return;
    }
    now.name = name;
    now.grid = grid;
    now.block = block;
    now.shared = shared;
    now.most = most > SHARED_DEFAULT ? SHARED_OPTIN : SHARED_DEFAULT;
    now.body = own.get();
    faults_open();
    timer_start();
    run_blocks();
    timer_stop();
    now.name = NULL;
  });
}

extern "C" {

cudaError_t cudaFuncSetAttribute (const void *f, cudaFuncAttribute a, int v) {
  Locked locked;
  if (a != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (v < 0 || v > SHARED_OPTIN) return set_error(cudaErrorInvalidValue);
  optin[f] = v;
  return cudaSuccess;
}

/* By threads and shared memory alone: registers are not known. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor (int *n,
                                                           const void *f,
                                                           int block,
                                                           size_t shared) {
  Locked locked;
  if (block <= 0 || block > MOST_THREADS || shared > shared_limit(f))
    return set_error(cudaErrorInvalidValue);
  int by_threads = 1536 / block;
  int by_shared = shared > 0 ? (int)((100 << 10) / (shared + 1024)) : 16;
  *n = by_threads < by_shared ? by_threads : by_shared;
  if (*n > 16) *n = 16;
  return cudaSuccess;
}
}

/* }====================================================== */
