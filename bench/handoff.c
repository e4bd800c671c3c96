/* handoff.c - how long the pool takes to have a second thread at work.
**
** Each round is a rendezvous: two tasks, neither of which ends before the
** other has begun, so the caller cannot do both.  Hot: the worker spins since
** the round before; parked: it sleeps.  Times in microseconds. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../src/core/core.h"

enum { HOT = 2001, PARKED = 501, ASLEEP_NS = 2000000 };

static atomic_int arrived;

static void meet (void *ud, int64_t task, int worker) {
  (void)ud, (void)task, (void)worker;
  atomic_fetch_add(&arrived, 1);
  while (atomic_load(&arrived) < 2) continue;
}

static double now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value (const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void rounds (const char *name, int n, long pause) {
  double *t = malloc((size_t)n * sizeof *t);
  for (int i = 0; i < n; i++) {
    if (pause > 0) nanosleep(&(struct timespec){ 0, pause }, NULL);
    atomic_store(&arrived, 0);
    double start = now();
    threads_run(2, meet, NULL);
    t[i] = now() - start;
  }
  qsort(t, (size_t)n, sizeof *t, by_value);
  printf("handoff  %-7s median %8.2f us  p90 %8.2f us  (%d rounds)\n", name,
         t[n / 2], t[n * 9 / 10], n);
  free(t);
}

int main (void) {
  fnn_Context *c = fnn_open(NULL);
  fnn_use(c);
  fnn_threads(2);
  rounds("warm-up", 11, 0);
  rounds("hot", HOT, 0);
  rounds("parked", PARKED, ASLEEP_NS);
  fnn_close(c);
  return 0;
}
