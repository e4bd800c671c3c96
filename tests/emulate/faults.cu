/* faults.cu - plants every fault that the emulator should see, and looks
** whether the report names its kind, kernel, thread and line.
**
** The plain build sees some; of those that the checking build alone sees, it
** gives a wrong result where the table says WRONG. */

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/*
** {======================================================
** Kernels
** =======================================================
*/

static __global__ void early_return (float *y, int n) {
  SHARED(float, s, [64]);
  int i = threadIdx.x;
  if (i >= n) return;
  s[i] = y[i];
  __syncthreads(); /* here: early return */
  y[i] = s[n - 1 - i];
}

static __global__ void no_barrier (float *y) {
  SHARED(float, s, [64]);
  s[threadIdx.x] = y[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x]; /* here: no barrier */
}

/* The next round writes what others still read. */
static __global__ void one_barrier (float *y, int steps) {
  SHARED(float, s, [64]);
  float v = y[threadIdx.x];
  for (int i = 0; i < steps; i++) {
    s[threadIdx.x] = v; /* here: one barrier */
    __syncthreads();
    v += s[(threadIdx.x + 1) % 64]; /* here: one barrier */
  }
  y[threadIdx.x] = v;
}

static __global__ void no_syncwarp (float *y) {
  SHARED(float, s, [64]);
  s[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32)
    for (int d = 32; d > 0; d /= 2)
      s[threadIdx.x] += s[threadIdx.x + d]; /* here: no syncwarp */
  if (threadIdx.x == 0) y[0] = s[0];
}

static __global__ void write_past (float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = 1; /* here: write past */
}

static __global__ void read_past (float *y, int n) {
  int i = threadIdx.x;
  y[i] = y[i + n]; /* here: read past */
}

static __global__ void read_before (float *y) {
  y[threadIdx.x + 64] = y[(int)threadIdx.x - 1]; /* here: read before */
}

static __global__ void unwritten_shared (float *y) {
  SHARED(float, s, [64]);
  if (threadIdx.x < 63) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x]; /* here: unwritten shared */
}

static __global__ void unwritten_global (float *y, const float *x) {
  y[threadIdx.x] = x[threadIdx.x]; /* here: unwritten global */
}

static __global__ void misaligned (float *y, int shift) {
  float4 v = *(const float4 *)(y + shift); /* here: misaligned */
  v.x = 2;
  *(float4 *)y = v;
}

static __global__ void shared_past (float *y, int n) {
  DYNAMIC_SHARED(float, s);
  for (int i = threadIdx.x; i <= n; i += 32) s[i] = 1; /* here: shared past */
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

static __global__ void index_past (float *y, int n) {
  SHARED(float, s, [4][8]);
  s[0][n] = 1; /* here: index past */
  y[0] = s[0][0];
}

static __global__ void divergent (float *y) {
  if (threadIdx.x < 32) {
    __syncthreads(); /* here: divergent */
    y[threadIdx.x] = 1;
  } else {
    y[threadIdx.x] = 2;
    __syncthreads();
  }
}

static __global__ void absent_lanes (int *y) {
  if (threadIdx.x < 16)
    y[threadIdx.x] = __shfl_xor_sync(~0u, y[threadIdx.x], 1);
}

static __global__ void not_in_mask (int *y) {
  y[threadIdx.x] = __shfl_xor_sync(0xfu, y[threadIdx.x], 1);
}

static __global__ void returned_lanes (int *y) {
  if (threadIdx.x < 16) return;
  y[threadIdx.x] = __shfl_xor_sync(~0u, y[threadIdx.x], 1);
}

static __global__ void other_primitive (int *y) {
  if (threadIdx.x < 16) __syncwarp();
  else y[threadIdx.x] = __any_sync(~0u, 1);
}

static __global__ void two_blocks (float *y) {
  y[threadIdx.x] += 1; /* here: two blocks */
}

static __global__ void two_warps (float *y) {
  if (threadIdx.x % 32 == 0) y[0] = (float)threadIdx.x; /* here: two warps */
}

static __global__ void plain_and_atomic (unsigned *y) {
  if (threadIdx.x == 0) y[0] = 1; /* here: plain and atomic */
  else atomicAdd(y, 1u);
}

static __global__ void touch (float *y) {
  y[threadIdx.x] = 1; /* here: touch */
}

static volatile int host_number;

static __global__ void write_host_variable (float *y) {
  host_number = (int)y[0]; /* here: host variable */
}

static __global__ void no_wait (int *y) {
  SHARED(int, s, [4]);
  cp_async16(s, y);
  cp_async_commit();
  y[4] = s[0]; /* here: no wait */
  cp_async_wait<0>();
}

static __global__ void early_group (int *y) {
  SHARED(int, s, [8]);
  cp_async16(s, y);
  cp_async_commit();
  cp_async16(s + 4, y + 4);
  cp_async_commit();
  cp_async_wait<1>();
  y[8] = s[4]; /* here: early group */
  cp_async_wait<0>();
}

static __global__ void misaligned_copy (int *y) {
  SHARED(int, s, [8]);
  cp_async16(s, y + 1); /* here: misaligned copy */
  cp_async_wait<0>();
}

static __global__ void spin (volatile int *y) {
  while (*y != 77) {}
}

static __global__ void trap (int *y) {
  if (y[0] > 0) __trap();
}

static __device__ int deep (volatile int *y, int n) {
  volatile int room[64];
  room[n % 64] = n;
  return n == *y + 1000000 ? 0 : deep(y, n + 1) + room[n % 64];
}

static __global__ void stack_full (int *y) { y[1] = deep(y, 0); }

static __global__ void much_shared (float *y) {
  SHARED(float, s, [13000]);
  s[threadIdx.x] = 1;
  y[threadIdx.x] = s[threadIdx.x];
}

struct Large {
  char bytes[5000];
};

static __global__ void large_arguments (Large a, float *y) {
  y[0] = a.bytes[0];
}

/* }====================================================== */

/*
** {======================================================
** The table
** =======================================================
*/

/* Each gets 256 floats of the device: 1, 2, 3 ... */
static void run_early_return (float *y) {
  LAUNCH(early_return, 1, 64, 0, 0, y, 40);
}
static void run_no_barrier (float *y) { LAUNCH(no_barrier, 1, 64, 0, 0, y); }
static void run_one_barrier (float *y) {
  LAUNCH(one_barrier, 1, 64, 0, 0, y, 3);
}
static void run_no_syncwarp (float *y) { LAUNCH(no_syncwarp, 1, 64, 0, 0, y); }
static void run_write_past (float *y) {
  (void)y;
  LAUNCH(write_past, 2, 64, 0, 0, (float *)device(NULL, 400), 100);
}
static void run_read_past (float *y) { /* in what it is rounded to */
  float *p = (float *)device(NULL, 1000);
  cudaMemcpy(p, y, 1000, cudaMemcpyDeviceToDevice);
  LAUNCH(read_past, 1, 32, 0, 0, p, 224);
}
static void run_far_past (float *y) { LAUNCH(read_past, 1, 32, 0, 0, y, 256); }
static void run_read_before (float *y) { LAUNCH(read_before, 1, 32, 0, 0, y); }
static void run_unwritten_shared (float *y) {
  LAUNCH(unwritten_shared, 1, 64, 0, 0, y);
}
static void run_unwritten_global (float *y) {
  LAUNCH(unwritten_global, 1, 64, 0, 0, y, (float *)device(NULL, 256));
}
static void run_misaligned (float *y) { LAUNCH(misaligned, 1, 1, 0, 0, y, 1); }
static void run_shared_past (float *y) {
  LAUNCH(shared_past, 1, 32, 64 * sizeof(float), 0, y, 64);
}
static void run_index_past (float *y) { LAUNCH(index_past, 1, 1, 0, 0, y, 9); }
static void run_divergent (float *y) { LAUNCH(divergent, 1, 64, 0, 0, y); }
static void run_absent_lanes (float *y) {
  LAUNCH(absent_lanes, 1, 32, 0, 0, (int *)y);
}
static void run_not_in_mask (float *y) {
  LAUNCH(not_in_mask, 1, 32, 0, 0, (int *)y);
}
static void run_returned_lanes (float *y) {
  LAUNCH(returned_lanes, 1, 32, 0, 0, (int *)y);
}
static void run_other_primitive (float *y) {
  LAUNCH(other_primitive, 1, 32, 0, 0, (int *)y);
}
static void run_two_blocks (float *y) { LAUNCH(two_blocks, 4, 64, 0, 0, y); }
static void run_two_warps (float *y) { LAUNCH(two_warps, 1, 64, 0, 0, y); }
static void run_plain_and_atomic (float *y) {
  LAUNCH(plain_and_atomic, 1, 2, 0, 0, (unsigned *)y);
}
static void run_many_threads (float *y) { LAUNCH(touch, 1, 2048, 0, 0, y); }
static void run_many_rows (float *y) {
  LAUNCH(touch, dim3(1, 65536), 1, 0, 0, y);
}
static void run_empty_grid (float *y) { LAUNCH(touch, 0, 64, 0, 0, y); }
static void run_much_dynamic (float *y) {
  LAUNCH(touch, 1, 64, 64 << 10, 0, y);
}
static void run_much_shared (float *y) { LAUNCH(much_shared, 1, 32, 0, 0, y); }
static void run_large_arguments (float *y) {
  static const Large a = {};
  LAUNCH(large_arguments, 1, 1, 0, 0, a, y);
}
static void run_host_pointer (float *y) {
  static float host[64];
  (void)y;
  LAUNCH(touch, 1, 64, 0, 0, host);
}
static void run_host_variable (float *y) {
  LAUNCH(write_host_variable, 1, 1, 0, 0, y);
}
static void run_null (float *y) {
  (void)y;
  LAUNCH(touch, 1, 64, 0, 0, (float *)NULL);
}
static void run_freed (float *y) {
  float *p = (float *)device(NULL, 4096);
  (void)y;
  cudaFree(p);
  LAUNCH(touch, 1, 64, 0, 0, p);
}
static void run_no_wait (float *y) { LAUNCH(no_wait, 1, 1, 0, 0, (int *)y); }
static void run_early_group (float *y) {
  LAUNCH(early_group, 1, 1, 0, 0, (int *)y);
}
static void run_misaligned_copy (float *y) {
  LAUNCH(misaligned_copy, 1, 1, 0, 0, (int *)y);
}
static void run_spin (float *y) {
  setenv("EMU_TIMEOUT", "1", 1);
  LAUNCH(spin, 1, 1, 0, 0, (volatile int *)y);
  cudaDeviceSynchronize();
  unsetenv("EMU_TIMEOUT");
}
static void run_trap (float *y) { LAUNCH(trap, 1, 32, 0, 0, (int *)y); }
static void run_stack_full (float *y) {
  LAUNCH(stack_full, 1, 1, 0, 0, (int *)y);
}
static void run_copy_past (float *y) {
  float host[300];
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
}

#define NONE NULL
#define WRONG "a wrong result"

/* Of each build: the kind of report.  The checking build's names the line of
** the comment, the plain build's where said. */
static const struct Fault {
  const char *name;
  void (*run)(float *y);
  const char *plain, *check, *line;
  bool line_in_plain;
} faults[] = {
  { "early return", run_early_return, "barrier", "barrier", NULL, false },
  { "no barrier", run_no_barrier, WRONG, "uninitialised", "no barrier",
    false },
  { "one barrier", run_one_barrier, WRONG, "race", "one barrier", false },
  { "no syncwarp", run_no_syncwarp, WRONG, "race", "no syncwarp", false },
  { "write past", run_write_past, "out of bounds", "out of bounds",
    "write past", false },
  { "read past", run_read_past, NONE, "out of bounds", "read past", false },
  { "far past", run_far_past, "out of bounds", "out of bounds", "read past",
    true },
  { "read before", run_read_before, NONE, "out of bounds", "read before",
    false },
  { "unwritten shared", run_unwritten_shared, WRONG, "uninitialised",
    "unwritten shared", false },
  { "unwritten global", run_unwritten_global, WRONG, "uninitialised",
    "unwritten global", false },
  { "misaligned", run_misaligned, "misaligned", "misaligned", "misaligned",
    true },
  { "shared past", run_shared_past, "out of bounds", "out of bounds",
    "shared past", false },
  { "index past", run_index_past, "out of bounds", "out of bounds",
    "index past", true },
  { "divergent", run_divergent, "barrier", "barrier", NULL, false },
  { "absent lanes", run_absent_lanes, "deadlock|warp", "deadlock|warp", NULL,
    false },
  { "not in mask", run_not_in_mask, "warp", "warp", NULL, false },
  { "returned lanes", run_returned_lanes, "deadlock|warp", "deadlock|warp",
    NULL, false },
  { "other primitive", run_other_primitive, "warp", "warp", NULL, false },
  { "two blocks", run_two_blocks, NONE, "race", "two blocks", false },
  { "two warps", run_two_warps, NONE, "race", "two warps", false },
  { "plain and atomic", run_plain_and_atomic, NONE, "race", NULL, false },
  { "2048 threads", run_many_threads, "launch", "launch", NULL, false },
  { "65536 rows", run_many_rows, "launch", "launch", NULL, false },
  { "empty grid", run_empty_grid, "launch", "launch", NULL, false },
  { "64 KB dynamic", run_much_dynamic, "launch", "launch", NULL, false },
  { "52 KB static", run_much_shared, "shared", "shared", NULL, false },
  { "large arguments", run_large_arguments, "launch", "launch", NULL, false },
  { "host pointer", run_host_pointer, NONE, "host pointer", "touch", false },
  { "host variable", run_host_variable, NONE, "host pointer", "host variable",
    false },
  { "NULL", run_null, "fault", "host pointer", "touch", true },
  { "freed", run_freed, "out of bounds", "out of bounds", "touch", true },
  { "no wait", run_no_wait, WRONG, "uninitialised", "no wait", false },
  { "early group", run_early_group, WRONG, "uninitialised", "early group",
    false },
  { "misaligned copy", run_misaligned_copy, "misaligned", "misaligned",
    "misaligned copy", true },
  { "spin", run_spin, "hang", "hang", NULL, false },
  { "trap", run_trap, "trap", "trap", NULL, false },
  { "stack full", run_stack_full, "fault", "fault", NULL, false },
  { "copy past", run_copy_past, "copy", "copy", NULL, false },
};

/* }====================================================== */

/*
** {======================================================
** Looking at reports
** =======================================================
*/

/* "emulate: KIND: ... at faults.cu:LINE"; of two kinds, by the order in which
** the threads ran, either. */
static bool told (const char *kind, const char *word) {
  const char *place = strstr(emu_report, " at faults.cu:");
  size_t n = strcspn(kind, "|");
  if (word != NULL &&
      (place == NULL || !line_says(__FILE__, atoi(place + 14), word)))
    return false;
  if (strncmp(emu_report, "emulate: ", 9) != 0) return false;
  if (strncmp(emu_report + 9, kind, n) == 0 && emu_report[9 + n] == ':')
    return true;
  return kind[n] == '|' && told(kind + n + 1, word);
}

/* What y has where no fault was, as far as WRONG rows need it. */
static bool right (const struct Fault *f, const float *y) {
  if (strcmp(f->name, "no barrier") == 0) return y[0] == 64 && y[40] == 24;
  if (strcmp(f->name, "one barrier") == 0) return y[0] == 20 && y[63] == 76;
  if (strcmp(f->name, "no syncwarp") == 0) return y[0] == 2080;
  if (strcmp(f->name, "no wait") == 0) return y[4] == 1;
  if (strcmp(f->name, "early group") == 0) return y[8] == 5;
  for (int i = 0; i < 64; i++)
    if (isnan(y[i])) return false;
  return true;
}

static void test_fault (const struct Fault *f) {
  float x[256], y[256];
  const char *want = checking ? f->check : f->plain;
  const char *line = checking || f->line_in_plain ? f->line : NULL;
  for (int i = 0; i < 256; i++) x[i] = (float)(i + 1);
  float *d = (float *)device(x, sizeof x);
  emu_report[0] = '\0';
  f->run(d);
  cudaDeviceSynchronize();
  cudaError_t e = cudaGetLastError();
  fetch(y, d, sizeof y);
  cudaGetLastError();
  if (want == NONE) ok(e == cudaSuccess, "%s: not seen", f->name);
  else if (strcmp(want, WRONG) == 0)
    ok(e == cudaSuccess && !right(f, y), "%s: %s", f->name, want);
  else
    ok(e != cudaSuccess && told(want, line), "%s: %s%s%s (%s)", f->name, want,
       line != NULL ? " at " : "", line != NULL ? line : "",
       cudaGetErrorString(e));
}

/* Runs f in a process of its own; gives how it ended, and what it wrote to
** stderr. */
static int in_child (void (*f)(float *), float *y, char *text, size_t n) {
  int fd[2], status;
  size_t k = 0;
  ssize_t r;
  if (pipe(fd) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(fd[1], 2);
    f(y);
    _exit(0);
  }
  close(fd[1]);
  while ((r = read(fd[0], text + k, n - 1 - k)) > 0) k += (size_t)r;
  text[k] = '\0';
  close(fd[0]);
  waitpid(child, &status, 0);
  return status;
}

static void read_on_host (float *y) { printf("%g\n", y[0]); }

/* By code that is not instrumented, as the engine's is. */
static void search_on_host (float *y) {
  if (memchr(y, 7, 100) != NULL) printf("found\n");
}

static void write_nowhere (float *y) {
  volatile int *nowhere = (volatile int *)((uintptr_t)y & 8);
  *nowhere = 1;
}

/* The host's own mistakes. */
static void test_host () {
  char text[2000];
  float x = 1, *y = (float *)device(&x, sizeof x);
  int status = in_child(read_on_host, y, text, sizeof text);
  if (checking) {
    ok(WIFSIGNALED(status) && strstr(text, "host code touches device memory"),
       "the host reads device memory");
    status = in_child(search_on_host, y, text, sizeof text);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV &&
           strstr(text, "host code touches device memory"),
       "the engine reads device memory");
  } else ok(status == 0, "the host reads device memory: not seen");
  status = in_child(write_nowhere, y, text, sizeof text);
  ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && text[0] == '\0',
     "a fault of the host is passed on");
}

/* The launch after a fault is as good as any. */
static void test_after () {
  float y[64], *d = (float *)device(NULL, sizeof y);
  LAUNCH(touch, 1, 64, 0, 0, d);
  fetch(y, d, sizeof y);
  ok(cudaGetLastError() == cudaSuccess && y[63] == 1, "launches go on");
}

void test_faults () {
  for (const struct Fault &f : faults) test_fault(&f);
  test_after();
  test_host();
}

/* }====================================================== */
