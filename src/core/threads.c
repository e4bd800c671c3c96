/* threads.c - the process's one pool of threads.
**
** One job runs at a time.  Its word holds generation << 32 | tasks not yet
** taken; a thread takes a task by counting the word down, and reads what the
** job is only after it has won one: then the job cannot end before it reports.
** Whoever comes late finds another generation, or no task left, and goes.
** The caller takes tasks like any worker, so a worker that is slow to wake
** delays nothing, and a job that finds the pool busy runs on its caller.
**
** A worker without work spins for SPIN_NS, then parks; at once if it sits on
** the CPU of the job's caller, who could not go on.  Worker i writes parked,
** then reads the word; the caller writes the word, then reads parked (all
** sequentially consistent): one of them sees the other.
**
** A scheduler may wake a thread where its waker runs (in a virtual machine an
** idle CPU looks taken), and there it waits until the waker's slice is over: 2
** ms instead of 50 us.  So the caller bars its own CPU to a worker before it
** wakes it; no thread is bound to one. */

#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum {
  WIDTH_MAX = 256,
  SPIN_NS = 50000,      /* between two ops of a model; then sleep */
  SPINS_A_LOOK = 32,    /* at the clock */
  SPINS_A_YIELD = 64,   /* about 2 us: the caller's wait */
  STACK_BYTES = 1 << 21 /* of a worker, whatever the host's limits */
};

typedef struct Worker {
  _Alignas(64) atomic_uint parked;
  pthread_t id;
#ifdef __linux__
  int barred; /* the CPU it keeps off; -1: none yet */
#else
  pthread_mutex_t mutex;
  pthread_cond_t wake;
#endif
} Worker;

/* All that is not atomic belongs to the job's caller, and is read by workers
** while they hold a task of the job. */
static struct Pool {
  _Alignas(64) _Atomic uint64_t word;
  _Alignas(64) _Atomic int64_t done; /* tasks finished or skipped */
  atomic_bool skipped;
  _Alignas(64) atomic_bool busy;
  _Atomic(fnn_Context *) owner; /* the caller's context, while busy */
  atomic_int width;             /* workers from this index on stay out */
  atomic_int cpu;               /* where the last caller ran */
  atomic_int cpus;              /* 0: not counted yet */
  int started;                  /* workers that run */
  bool watches_fork;
#ifdef __linux__
  cpu_set_t allowed; /* CPUs of who started the workers */
#endif
  Task f;
  void *ud;
  int64_t base; /* the first task of this generation */
  uint32_t n;   /* tasks of this generation */
  const fnn_Cancel *cancel;
  Worker worker[WIDTH_MAX]; /* 0, the caller, has no use for its place */
} pool;

/*
** {======================================================
** Waiting
** =======================================================
*/

static inline void relax (void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef __linux__

static int this_cpu (void) { return sched_getcpu(); }

static void worker_init (Worker *w) {
  atomic_store(&w->parked, 0);
  w->barred = -1;
}

/* Keeps w off a CPU, if there is another.  For the job's caller alone. */
static void bar (Worker *w, int cpu) {
  cpu_set_t set = pool.allowed;
  if (cpu < 0 || w->barred == cpu || CPU_COUNT(&set) < 2) return;
  CPU_CLR(cpu, &set);
  w->barred = cpu; /* if it is refused, it would be again */
  pthread_setaffinity_np(w->id, sizeof set, &set);
}

/* Sleeps while w->parked is 1; may return early. */
static void park (Worker *w) {
  syscall(SYS_futex, &w->parked, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void unpark (Worker *w) {
  if (atomic_exchange(&w->parked, 0) != 0)
    syscall(SYS_futex, &w->parked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#else

static int this_cpu (void) { return -1; }

static void worker_init (Worker *w) {
  atomic_store(&w->parked, 0);
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->wake, NULL);
}

static void bar (Worker *w, int cpu) { (void)w, (void)cpu; }

static void park (Worker *w) {
  pthread_mutex_lock(&w->mutex);
  while (atomic_load(&w->parked) != 0) pthread_cond_wait(&w->wake, &w->mutex);
  pthread_mutex_unlock(&w->mutex);
}

static void unpark (Worker *w) {
  if (atomic_exchange(&w->parked, 0) == 0) return;
  pthread_mutex_lock(&w->mutex);
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->mutex);
}

#endif

static uint32_t generation (void) {
  return (uint32_t)(atomic_load(&pool.word) >> 32);
}

/* Whether a worker idle since then should go on spinning. */
static bool may_spin (int64_t since) {
  int cpu = this_cpu();
  return now() - since < SPIN_NS &&
         (cpu < 0 ||
          cpu != atomic_load_explicit(&pool.cpu, memory_order_relaxed));
}

/* Returns when there is a generation other than seen. */
static void await (Worker *w, uint32_t seen, int64_t *since) {
  for (unsigned i = 1; generation() == seen; i++) {
    relax();
    if (i % SPINS_A_LOOK != 0 || may_spin(*since)) continue;
    atomic_store(&w->parked, 1);
    if (generation() == seen) park(w);
    atomic_store(&w->parked, 0);
    *since = now();
  }
}

/* }====================================================== */

/*
** {======================================================
** Tasks
** =======================================================
*/

/* Takes one task of generation g, or all that are left; returns how many
** were left before, 0 when there is none for this worker. */
static uint32_t take (uint32_t g, int index, bool all) {
  uint64_t v = atomic_load_explicit(&pool.word, memory_order_acquire);
  while ((uint32_t)(v >> 32) == g && (uint32_t)v > 0 &&
         index < atomic_load_explicit(&pool.width, memory_order_relaxed)) {
    uint64_t to = all ? (uint64_t)g << 32 : v - 1;
    if (atomic_compare_exchange_weak_explicit(
            &pool.word, &v, to, memory_order_acq_rel, memory_order_acquire))
      return (uint32_t)v;
  }
  return 0;
}

/* Runs tasks of generation g while there are any, and says whether it ran
** one.  Once the token is set what is left counts as done. */
static bool work (uint32_t g, int index) {
  int64_t count = 0;
  uint32_t left;
  while ((left = take(g, index, false)) > 0) {
    count++;
    if (pool.cancel != NULL && cancel_is_set(pool.cancel)) {
      atomic_store_explicit(&pool.skipped, true, memory_order_relaxed);
      count += take(g, index, true);
    } else pool.f(pool.ud, pool.base + (pool.n - left), index);
  }
  if (count > 0)
    atomic_fetch_add_explicit(&pool.done, count, memory_order_release);
  return count > 0;
}

static void *worker_main (void *arg) {
  int index = (int)(intptr_t)arg;
  uint32_t seen = 0;
  int64_t since = now();
  for (;;) {
    await(&pool.worker[index], seen, &since);
    seen = generation();
    if (work(seen, index)) since = now();
  }
  return NULL;
}

/* }====================================================== */

/*
** {======================================================
** Jobs
** =======================================================
*/

static bool enter (void) {
  bool no = false;
  return !atomic_load_explicit(&pool.busy, memory_order_relaxed) &&
         atomic_compare_exchange_strong_explicit(&pool.busy, &no, true,
                                                 memory_order_acquire,
                                                 memory_order_relaxed);
}

static void leave (void) {
  atomic_store_explicit(&pool.owner, NULL, memory_order_relaxed);
  atomic_store_explicit(&pool.busy, false, memory_order_release);
}

/* In the child of a fork no worker lives, and no job runs. */
static void forked (void) {
  pool.started = 0;
  atomic_store(&pool.cpus, 0);
  atomic_fetch_and(&pool.word, (uint64_t)UINT32_MAX << 32); /* its tasks */
  leave();
}

/* Starts workers until there are width - 1, or the system gives no more.
** They leave all signals to the host's threads. */
static void grow (int width) {
  if (pool.started >= width - 1) return;
#ifdef __linux__
  if (sched_getaffinity(0, sizeof pool.allowed, &pool.allowed) != 0)
    CPU_ZERO(&pool.allowed); /* more CPUs than the set holds: bar none */
#endif
  sigset_t all, before;
  pthread_attr_t detached;
  if (!pool.watches_fork)
    pool.watches_fork = pthread_atfork(NULL, NULL, forked) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&detached, STACK_BYTES);
  while (pool.started < width - 1) {
    int index = pool.started + 1;
    Worker *w = &pool.worker[index];
    worker_init(w);
    if (pthread_create(&w->id, &detached, worker_main,
                       (void *)(intptr_t)index) != 0)
      break;
    pool.started = index;
  }
  pthread_attr_destroy(&detached);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Publishes tasks base .. base + n - 1 and works until all are done. */
static void run_generation (int64_t base, uint32_t n, int width) {
  pool.base = base;
  pool.n = n;
  atomic_store_explicit(&pool.done, 0, memory_order_relaxed);
  uint32_t g = generation() + 1;
  atomic_store(&pool.word, (uint64_t)g << 32 | n);
  int wanted = (int)min64(n, min64(width, pool.started + 1));
  int cpu = atomic_load_explicit(&pool.cpu, memory_order_relaxed);
  for (int i = 1; i < wanted; i++)
    if (atomic_load(&pool.worker[i].parked) != 0) {
      bar(&pool.worker[i], cpu);
      unpark(&pool.worker[i]);
    }
  work(g, 0);
  /* A worker that was woken onto this CPU waits for it: yield early. */
  for (unsigned i = 1;
       atomic_load_explicit(&pool.done, memory_order_acquire) < n; i++)
    if (i < SPINS_A_YIELD) relax();
    else sched_yield();
}

/* Both return false when the token was set before the last task. */
static bool run_parallel (int64_t n, Task f, void *ud, int width,
                          const fnn_Cancel *cancel) {
  grow(width);
  pool.f = f;
  pool.ud = ud;
  pool.cancel = cancel;
  atomic_store_explicit(&pool.owner, context_now, memory_order_relaxed);
  atomic_store_explicit(&pool.skipped, false, memory_order_relaxed);
  atomic_store_explicit(&pool.cpu, this_cpu(), memory_order_relaxed);
  atomic_store_explicit(&pool.width, width, memory_order_relaxed);
  bool whole = true;
  for (int64_t base = 0; base < n && whole; base += UINT32_MAX) {
    run_generation(base, (uint32_t)min64(n - base, UINT32_MAX), width);
    whole = !atomic_load_explicit(&pool.skipped, memory_order_relaxed);
  }
  leave();
  return whole;
}

static bool run_serial (int64_t n, Task f, void *ud,
                        const fnn_Cancel *cancel) {
  for (int64_t i = 0; i < n; i++) {
    if (cancel != NULL && cancel_is_set(cancel)) return false;
    f(ud, i, 0);
  }
  return true;
}

void threads_run (int64_t n, Task f, void *ud) {
  fnn_Context *c = context_now;
  /* A job inside a task of this context leaves the polling to the outer. */
  bool polls = c != NULL && !c->finalizing &&
               c != atomic_load_explicit(&pool.owner, memory_order_relaxed);
  const fnn_Cancel *cancel = polls ? c->cancel : NULL;
  int width = n > 1 ? threads_width() : 1;
  bool whole = width > 1 && enter() ? run_parallel(n, f, ud, width, cancel)
                                    : run_serial(n, f, ud, cancel);
  if (!whole) cancel_throw();
}

typedef struct Ranges {
  int64_t n, grain;
  Range f;
  void *ud;
} Ranges;

static void range_task (void *ud, int64_t task, int worker) {
  const Ranges *r = ud;
  int64_t lo = task * r->grain;
  (void)worker;
  r->f(r->ud, lo, min64(lo + r->grain, r->n));
}

void threads_range (int64_t n, int64_t grain, Range f, void *ud) {
  if (n <= 0) return;
  threads_run((n - 1) / grain + 1, range_task,
              &(Ranges){ n, min64(grain, n), f, ud });
}

/* }====================================================== */

/* CPUs that the process may use. */
static int cpus (void) {
  int n = atomic_load_explicit(&pool.cpus, memory_order_relaxed);
  if (n > 0) return n;
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
  if (n <= 0) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
  n = (int)max64(1, min64(n, WIDTH_MAX));
  atomic_store_explicit(&pool.cpus, n, memory_order_relaxed);
  return n;
}

int threads_width (void) {
  const fnn_Context *c = context_now;
  int n = c != NULL ? c->host.threads : 0;
  return n > 0 ? (int)min64(n, WIDTH_MAX) : cpus();
}

void fnn_threads (int n) {
  if (n < 0 || n > WIDTH_MAX)
    fnn_throw(FNN_EARG,
              "threads: count out of range (expected 0 to %d, "
              "got %d)",
              WIDTH_MAX, n);
  context()->host.threads = n;
}

int fnn_thread_count (void) { return threads_width(); }
