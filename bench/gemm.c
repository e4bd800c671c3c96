/* gemm.c - matrix products beside OpenBLAS, BLIS and oneDNN, where installed.
**
**   gemm [THREADS [ROUNDS [M,K,N ...]]]
**
** One process, one competitor after the other in each round, with a pause
** between them in which the pools of threads fall asleep.  Prints the median
** of GFLOP/s over the rounds, and how ours compares with the best other.
** Without arguments: 1 and 2 threads, five rounds.  NT: b is transposed, TN:
** a is.  The single row is a matrix by a vector, which memory bounds. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../src/fnn.h"

enum {
  ROUNDS_MOST = 101,
  PAUSE_NS = 15000000, /* OpenMP's threads spin a few ms after a call */
  WINDOW_NS = 12000000 /* of calls that are timed together */
};

typedef enum Way { NN, NT, TN } Way;

typedef struct Product {
  int m, k, n;
  Way way;
  float *a, *b, *c;
  fnn_Tensor *x, *y; /* a and b as we see them */
} Product;

typedef struct Peer {
  const char *name;
  void (*run)(const Product *p);
  double speed[ROUNDS_MOST];
} Peer;

static double now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/*
** {======================================================
** The competitors
** =======================================================
*/

/* Enumerators of the C interface to BLAS. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef void (*Gemm)(int order, int ta, int tb, int m, int n, int k,
                     float alpha, const float *a, int lda, const float *b,
                     int ldb, float beta, float *c, int ldc);
typedef int (*Dnnl)(char ta, char tb, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float beta, float *c, int64_t ldc);

static Gemm openblas, blis;
static Dnnl dnnl;

static void run_blas (Gemm f, const Product *p) {
  bool ta = p->way == TN, tb = p->way == NT;
  f(ROW_MAJOR, ta ? TRANSPOSED : AS_IS, tb ? TRANSPOSED : AS_IS, p->m, p->n,
    p->k, 1, p->a, ta ? p->m : p->k, p->b, tb ? p->k : p->n, 0, p->c, p->n);
}

static void run_openblas (const Product *p) { run_blas(openblas, p); }
static void run_blis (const Product *p) { run_blas(blis, p); }

static void run_dnnl (const Product *p) {
  bool ta = p->way == TN, tb = p->way == NT;
  dnnl(ta ? 'T' : 'N', tb ? 'T' : 'N', p->m, p->n, p->k, 1, p->a,
       ta ? p->m : p->k, p->b, tb ? p->k : p->n, 0, p->c, p->n);
}

static void run_fnn (const Product *p) {
  size_t mark = fnn_mark();
  fnn_matmul(p->x, p->y);
  fnn_escape(mark, NULL);
}

/* The first of the libraries that is there, each with symbols of its own. */
static void *symbol (const char *name, const char *const *libraries) {
  void *found = NULL;
  for (; *libraries != NULL && found == NULL; libraries++) {
    void *l = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (l != NULL) found = dlsym(l, name);
  }
  return found;
}

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"

static int find_peers (Peer *peers) {
  int n = 0;
  openblas = (Gemm)symbol("cblas_sgemm",
                          (const char *[]){ LIBRARIES
                                            "openblas-openmp/libopenblas.so.0",
                                            "libopenblas.so.0", NULL });
  blis = (Gemm)symbol("cblas_sgemm",
                      (const char *[]){ LIBRARIES "blis-openmp/libblas.so.3",
                                        "libblis.so.4", NULL });
  dnnl = (Dnnl)symbol(
      "dnnl_sgemm", (const char *[]){ "libdnnl.so.3", "libdnnl.so.2", NULL });
  peers[n++] = (Peer){ .name = "fnn", .run = run_fnn };
  if (openblas) peers[n++] = (Peer){ .name = "OpenBLAS", .run = run_openblas };
  if (blis) peers[n++] = (Peer){ .name = "BLIS", .run = run_blis };
  if (dnnl) peers[n++] = (Peer){ .name = "oneDNN", .run = run_dnnl };
  return n;
}

/* }====================================================== */

static int by_value (const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median (Peer *p, int rounds) {
  qsort(p->speed, (size_t)rounds, sizeof *p->speed, by_value);
  return p->speed[rounds / 2];
}

/* GFLOP/s of calls back to back. */
static double measure (const Peer *peer, const Product *p) {
  double work = 2e-9 * p->m * p->n * p->k, start = now();
  peer->run(p); /* wakes the threads, warms the caches */
  int calls = 1 + (int)(1e-9 * WINDOW_NS / (now() - start));
  start = now();
  for (int i = 0; i < calls; i++) peer->run(p);
  return work * calls / (now() - start);
}

static fnn_Tensor *wrapped (float *data, int rows, int cols, bool transposed) {
  int64_t shape[2] = { transposed ? cols : rows, transposed ? rows : cols };
  fnn_Tensor *x = fnn_wrap(FNN_F32, 2, shape, data, NULL, NULL, false);
  return transposed ? fnn_transpose(x, 0, 1) : x;
}

static float *numbers (size_t n, int period) {
  float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
  for (size_t i = 0; i < n; i++)
    x[i] = 0.1f * (float)(i % (size_t)period) - 0.6f;
  return x;
}

static void compare (Peer *peers, int npeers, int rounds, int threads,
                     const int *size, Way way) {
  static const char *const names[] = { "NN", "NT", "TN" };
  size_t mark = fnn_mark();
  Product p = { .m = size[0], .k = size[1], .n = size[2], .way = way };
  double best = 0;
  p.a = numbers((size_t)p.m * (size_t)p.k, 13);
  p.b = numbers((size_t)p.k * (size_t)p.n, 17);
  p.c = numbers((size_t)p.m * (size_t)p.n, 1);
  p.x = wrapped(p.a, p.m, p.k, way == TN);
  p.y = wrapped(p.b, p.k, p.n, way == NT);
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < npeers; i++) {
      peers[i].speed[r] = measure(&peers[i], &p);
      nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    }
  printf("gemm %d thread%s %4d x %4d x %4d %s", threads,
         threads > 1 ? "s" : " ", p.m, p.k, p.n, names[way]);
  for (int i = 0; i < npeers; i++) {
    double speed = median(&peers[i], rounds);
    if (i > 0 && speed > best) best = speed;
    printf("  %s %6.1f", peers[i].name, speed);
  }
  if (best > 0) printf("  ratio %.2f", peers[0].speed[rounds / 2] / best);
  printf("\n");
  fflush(stdout);
  fnn_escape(mark, NULL);
  free(p.a);
  free(p.b);
  free(p.c);
}

/* The libraries read how many threads they may use when they are loaded. */
static int run (int threads, int rounds, int nsizes, int (*sizes)[3]) {
  char count[16];
  Peer peers[4];
  snprintf(count, sizeof count, "%d", threads);
  setenv("OMP_NUM_THREADS", count, 1);
  setenv("OPENBLAS_NUM_THREADS", count, 1);
  setenv("BLIS_NUM_THREADS", count, 1);
  fnn_Context *c = fnn_open(NULL);
  fnn_use(c);
  fnn_threads(threads);
  int npeers = find_peers(peers);
  for (int i = 0; i < nsizes; i++)
    for (Way way = NN; way <= TN; way++)
      compare(peers, npeers, rounds, threads, sizes[i], way);
  fnn_close(c);
  return 0;
}

int main (int argc, char **argv) {
  static int sizes[64][3] = { { 128, 128, 128 },    { 256, 256, 256 },
                              { 512, 512, 512 },    { 1024, 1024, 1024 },
                              { 2048, 2048, 2048 }, { 128, 784, 128 },
                              { 4096, 320, 320 },   { 1, 4096, 4096 },
                              { 64, 768, 3072 },    { 77, 768, 768 },
                              { 128, 128, 10 },     { 16, 768, 768 } };
  int n = 12, rounds = argc > 2 ? atoi(argv[2]) : 5;
  if (rounds < 1 || rounds > ROUNDS_MOST) rounds = 5;
  if (argc > 3) n = 0;
  for (int i = 3; i < argc && n < 64; i++)
    if (sscanf(argv[i], "%d,%d,%d", &sizes[n][0], &sizes[n][1],
               &sizes[n][2]) == 3)
      n++;
  if (argc > 1) return run(atoi(argv[1]), rounds, n, sizes);
  /* A process each: libraries keep the number of threads they began with. */
  char command[4096];
  for (int threads = 1; threads <= 2; threads++) {
    snprintf(command, sizeof command, "'%s' %d %d", argv[0], threads, rounds);
    if (system(command) != 0) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
