/* winograd.c - convolutions of 3 by 3 by transformed tiles.
**
**   winograd [THREADS [ROUNDS [CHANNELS,SIZE ...]]]
**
** Of one image, as many channels out as in, the weight's packed copy kept: the
** median time of a call, in wall and in CPU time, and the GFLOP/s with which
** the definition would take as long.  `exact` is the definition.  Without
** arguments: 1 and 2 threads.  winograd.py runs it beside PyTorch. */

#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../src/fnn.h"

enum { ROUNDS_MOST = 101, SIZES_MOST = 16, PAUSE_NS = 15000000 };

static double now (clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value (const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median (double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return v[n / 2];
}

typedef struct Layer {
  fnn_Tensor *x, *w, *b;
  double wall[ROUNDS_MOST], cpu[ROUNDS_MOST];
} Layer;

static void convolve (const Layer *l) {
  fnn_ConvOptions o = FNN_CONV_INIT;
  size_t mark = fnn_mark();
  for (int d = 0; d < 2; d++) o.before[d] = o.after[d] = 1;
  fnn_conv(l->x, l->w, l->b, &o);
  fnn_escape(mark, NULL);
}

static void measure (Layer *l, const char *name, int rounds, int threads,
                     int channels, int size) {
  convolve(l);
  for (int r = 0; r < rounds; r++) {
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    convolve(l);
    l->wall[r] = now(CLOCK_MONOTONIC) - wall;
    l->cpu[r] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
  }
  double wall = median(l->wall, rounds), area = (double)size * size;
  printf("conv3x3 %d thread%s %4d channels %3d^2 %-8s %8.2f ms, CPU %8.2f ms, "
         "%6.0f GFLOP/s\n",
         threads, threads > 1 ? "s" : " ", channels, size, name, 1e3 * wall,
         1e3 * median(l->cpu, rounds),
         18e-9 * area * channels * channels / wall);
  fflush(stdout);
}

static void compare (int channels, int size, int rounds, int threads) {
  size_t mark = fnn_mark();
  int64_t image[] = { 1, channels, size, size };
  int64_t weight[] = { channels, channels, 3, 3 };
  double deviation = 1.0 / (3 * channels);
  Layer l = { NULL, NULL, NULL, { 0 }, { 0 } };
  l.x = fnn_channels_last(fnn_normal(4, image, 0, 1, FNN_F32, NULL, NULL));
  l.w = fnn_value(
      fnn_param(fnn_normal(4, weight, 0, deviation, FNN_F32, NULL, NULL)));
  l.b = fnn_normal(1, weight, 0, 1, FNN_F32, NULL, NULL);
  measure(&l, "tiles", rounds, threads, channels, size);
  bool exact = fnn_exact_convolution(true);
  measure(&l, "exact", rounds, threads, channels, size);
  fnn_exact_convolution(exact);
  fnn_escape(mark, NULL);
}

int main (int argc, char **argv) {
  int sizes[SIZES_MOST][2] = {
    { 320, 64 }, { 640, 32 }, { 1280, 16 }, { 128, 256 }
  };
  int n = 4, rounds = argc > 2 ? atoi(argv[2]) : 5;
  int least = argc > 1 ? atoi(argv[1]) : 1, most = argc > 1 ? least : 2;
  if (rounds < 1 || rounds > ROUNDS_MOST) rounds = 5;
  if (argc > 3) n = 0;
  for (int i = 3; i < argc && n < SIZES_MOST; i++)
    if (sscanf(argv[i], "%d,%d", &sizes[n][0], &sizes[n][1]) == 2) n++;
  fnn_Context *c = fnn_open(NULL);
  fnn_use(c);
  fnn_grad_mode(false);
  for (int threads = least; threads <= most; threads++) {
    fnn_threads(threads);
    for (int i = 0; i < n; i++)
      compare(sizes[i][0], sizes[i][1], rounds, threads);
  }
  fnn_close(c);
  return EXIT_SUCCESS;
}
