/* machine.h - what the parts of the emulator know of each other.
**
**   fiber.cc    the threads of a block        launch.cc  blocks, shared memory
**   fault.cc    reports, signals, the timer   shadow.cc  the checking build
**   memory.cc   the card's memory, copies     stream.cc  streams, events
**   graph.cc    captures and their replay     runtime.cc devices, errors
**   blas.cc     products of matrices
**
** There is one lock; whoever calls the runtime holds it, kernels too. */

#ifndef emulate_machine_h
#define emulate_machine_h

#include <deque>
#include <functional>
#include <mutex>
#include <pthread.h>
#include <set>
#include <vector>

#include "language.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace emu {

#ifdef EMU_CHECK
const bool checking = true;
#else
const bool checking = false;
#endif

enum {
  LANES = 32,
  MOST_THREADS = 1024,
  PAGE = 4096,
  GUARD = 256,    /* bytes on both sides of what must not be left */
  CANARY = 0xa5,  /* what they hold */
  UNKNOWN = 0xff, /* what memory holds that nobody wrote: NaN */
  STACK = 256 << 10,
  ARENA = 256 << 10,
  SHARED_DEFAULT = 48 << 10,
  SHARED_OPTIN = 99 << 10 /* of compute capability 8.6: few have less */
};

const size_t HEAP = (size_t)64 << 30; /* addresses, not memory */

extern std::recursive_mutex lock;

struct Locked {
  std::lock_guard<std::recursive_mutex> hold;
  Locked() : hold(lock) {}
};

/*
** {======================================================
** Fibers
** =======================================================
*/

/* A copy by cp.async that nobody has waited for yet. */
struct Copy {
  void *to;
  const void *from;
  size_t n, there; /* bytes; of them, those that are copied and not zero */
  int group;
};

enum State { NEW, READY, AT_BARRIER, IN_WARP, DONE };

struct Thread {
  uint3 index;
  int linear;
  State state;
  void *sp;       /* where it waits */
  int stack;      /* its stack's number */
  int line;       /* of the barrier or primitive it waits in */
  uint32_t epoch; /* counts its __syncwarp since the last barrier */
  unsigned mask;  /* of the primitive, */
  void *mine;     /* what it brought, */
  const char *op; /* and its name */
  int group;      /* of cp.async: the one that is open */
  std::vector<Copy> copies;
};

struct Launch {
  const char *name; /* NULL: none */
  dim3 grid, block;
  size_t shared, most; /* dynamic bytes; the limit of all */
  EmuBody *body;
  uint32_t serial;         /* counts launches */
  uint3 index;             /* the block that runs */
  uint32_t linear, blocks; /* its number; counts all blocks ever run */
  int threads, live, waiting;
  int votes, vote; /* of the barrier that fills, of the last one */
  uint32_t epoch;  /* counts the block's barriers */
  bool failed, fenced;
  cudaError_t code; /* why it failed */
};

extern Launch now;
extern Thread threads[MOST_THREADS];

/* The running fiber; NULL in host code and in other threads of the host. */
extern __thread Thread *self __attribute__((tls_model("initial-exec")));

void fibers_open ();
/* The order in which threads start and go on after a barrier. */
void fibers_order (int n);
void fibers_run_block ();
bool on_stacks (const void *p);

/* Ends the launch, from within a fiber. */
[[noreturn]] void fail (cudaError_t e);

/* }====================================================== */

/*
** {======================================================
** Faults
** =======================================================
*/

/* Writes the kind, the kernel, block, thread, the text, and the line of pc
** unless NULL, to emu_report and stderr. */
__attribute__((format(printf, 3, 4))) void report (const char *kind, void *pc,
                                                   const char *fmt, ...);

#define FAIL(kind, pc, ...) \
  (emu::report(kind, pc, __VA_ARGS__), emu::fail(cudaErrorLaunchFailure))

/* Signals and the timer, from the first launch on. */
void faults_open ();
void timer_start ();
void timer_stop ();

/* Whether p is in the constants of the program that holds the kernels. */
bool constant (const void *p);

/* }====================================================== */

/*
** {======================================================
** Memory
** =======================================================
*/

struct Allocation {
  uint8_t *p; /* ends, but for the rounding to 256, at a guard page */
  size_t size;
  uint8_t *low; /* its pages */
  size_t pages; /* without the one that guards */
  size_t place; /* in the list of those with canaries */
  bool live;
  bool unlocked; /* see memory_unlock */
};

extern uint8_t *heap;

void memory_open ();
static inline bool on_card (const void *p) {
  return (size_t)((const uint8_t *)p - heap) < HEAP;
}
Allocation *allocation_of (const void *p); /* live or freed, or NULL */
bool inside (const void *p, size_t n, bool card, const char *what);
bool pinned (const void *p);
bool host_pages (); /* the card reads by itself what is not (EMU_PAGES) */

/* In the checking build the host cannot touch the card's memory, as on a real
** card: what kernels and copies use is opened at their first access, and all
** of it closed at their end. */
void memory_unlock (Allocation *a);
void memory_unlock (const void *p);
void memory_lock ();

/* Writes past the ends, that only canaries show.  False if there was one. */
bool canaries_live ();

/* }====================================================== */

/*
** {======================================================
** Shared memory
** =======================================================
*/

struct Array {
  const void *site; /* the place of its SHARED, for its name */
  const char *name;
  uint8_t *p;
  size_t size;
};

extern uint8_t *arena;
extern std::vector<Array> arrays; /* of this launch */

static inline bool on_arena (const void *p) {
  return (size_t)((const uint8_t *)p - arena) < ARENA;
}
Array *array_of (const void *p);

/* }====================================================== */

/*
** {======================================================
** The checking build
** =======================================================
*/

void shadow_open ();
/* An access by a kernel: fails the launch if it may not be. */
void access (const void *p, size_t n, int kind, void *pc);
/* Memory was, or was not, written by who is not a kernel. */
void mark (const void *p, size_t n, bool written);
/* Forgets all about pages that are free now. */
void shadow_forget (const void *p, size_t n);

/* }====================================================== */

/*
** {======================================================
** Streams
** =======================================================
*/

typedef std::function<void()> Work;

/* Does w in s's turn: now, or when something waits (EMU_LAZY), or when a
** graph that s is being recorded into runs. */
cudaError_t enqueue (cudaStream_t s, Work w);

/* Does all that waits. */
void drain_all ();

/* The failure of a kernel that EMU_FAIL asked for: from then on nothing is
** done, and all calls tell it. */
extern cudaError_t lost;

/* Keeps e for cudaGetLastError, and the report with it if told. */
cudaError_t set_error (cudaError_t e, bool reported = false);
cudaError_t last_error ();

/* cudaSuccess, or why a call that may wait is refused: the card is lost, or a
** graph is recorded, which is spoiled then. */
cudaError_t capture_refuses (cudaStream_t s);
cudaError_t capture_refuses ();

/* }====================================================== */

} // namespace emu

struct CUgraph_st {
  std::vector<emu::Work> works;
  cudaStream_t origin;
  std::set<cudaStream_t> streams; /* that record into it, */
  std::set<cudaStream_t> loose;   /* with work that origin did not wait for */
  cudaStreamCaptureMode mode;
  pthread_t thread;
  bool spoiled;
};

struct CUstream_st {
  std::deque<emu::Work> queue;
  bool blocking = true;  /* waits for the default stream, which waits for it */
  bool computes = false; /* a kernel was launched on it */
  CUgraph_st *graph = NULL; /* that it is recorded into */
};

namespace emu {

static inline bool capturing (cudaStream_t s) {
  return s != NULL && s->graph != NULL;
}

extern CUstream_st stream0;
void run_next (CUstream_st *s);

} // namespace emu

#endif
