/* runtime.cu - memory, streams and events, as the card has them. */

#include "test.h"

static __global__ void fill (float *y, float v, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = v;
}

static __global__ void add_to (float *y, const float *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += x[i];
}

static bool lazy () { return getenv("EMU_LAZY") != NULL; }

/*
** {======================================================
** Memory
** =======================================================
*/

static void test_limit () {
  size_t before, available, total;
  void *p, *q = NULL;
  setenv("EMU_MEMORY", "50000000", 1);
  cudaMemGetInfo(&before, &total);
  ok(total == 50000000 && before < total, "EMU_MEMORY is what the card has");
  ok(cudaMalloc(&p, 30000000) == cudaSuccess && p != NULL &&
         cudaMalloc(&q, 30000000) == cudaErrorMemoryAllocation && q == NULL &&
         cudaGetLastError() == cudaErrorMemoryAllocation,
     "what does not fit is refused");
  cudaMemGetInfo(&available, &total);
  ok(before - available >= 30000000, "what is held is counted");
  cudaFree(p);
  cudaMemGetInfo(&available, &total);
  ok(available == before, "and what is freed");
  unsetenv("EMU_MEMORY");
  ok(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") ==
         0,
     "errors have CUDA's words");
}

static void test_reuse () {
  bool good = true;
  float x = 3, y;
  for (int i = 0; i < 40; i++) {
    void *p = NULL;
    good = good && cudaMalloc(&p, 1 << 12) == cudaSuccess;
    cudaMemcpy(p, &x, sizeof x, cudaMemcpyHostToDevice);
    fetch(&y, p, sizeof y);
    good = good && y == 3 && cudaFree(p) == cudaSuccess;
  }
  ok(good, "freed memory comes again");
  ok(cudaFree((void *)&x) == cudaErrorInvalidValue &&
         cudaGetLastError() == cudaErrorInvalidValue,
     "what is no allocation is not freed");
}

static void test_pointers () {
  cudaPointerAttributes a;
  void *d = device(NULL, 100), *h;
  int local;
  cudaMallocHost(&h, 100);
  ok(cudaPointerGetAttributes(&a, d) == cudaSuccess &&
         a.type == cudaMemoryTypeDevice &&
         cudaPointerGetAttributes(&a, (char *)h + 99) == cudaSuccess &&
         a.type == cudaMemoryTypeHost &&
         cudaPointerGetAttributes(&a, &local) == cudaSuccess &&
         a.type == cudaMemoryTypeUnregistered,
     "pointers are known by their memory");
  ok(cudaFreeHost(h) == cudaSuccess &&
         cudaFreeHost(h) == cudaErrorInvalidValue,
     "pinned memory is freed once");
  cudaGetLastError();
  cudaFree(d);
}

static void test_copies () {
  float x[4] = { 1, 2, 3, 4 }, y[4] = {};
  float *a = (float *)device(x, sizeof x), *b = (float *)device(x, sizeof x);
  cudaMemset(b, 0, sizeof x);
  cudaMemcpy(b + 1, a, 8, cudaMemcpyDefault);
  cudaMemcpy(y, b, sizeof y, cudaMemcpyDefault);
  ok(y[0] == 0 && y[1] == 1 && y[2] == 2 && y[3] == 0, "copies on the card");
  ok(cudaMemcpy(y, a + 2, 16, cudaMemcpyDeviceToHost) ==
             cudaErrorInvalidValue &&
         cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue,
     "a copy past an end, or of the wrong kind, is refused");
  cudaGetLastError();
}

/* }====================================================== */

/*
** {======================================================
** Streams
** =======================================================
*/

static cudaStream_t one, two;
static cudaEvent_t event;
static float *a, *b;

static float first (const float *p) {
  float v;
  fetch(&v, p, sizeof v);
  return v;
}

static void start () {
  cudaMemset(a, 0, 32);
  cudaMemset(b, 0, 32);
  cudaDeviceSynchronize();
}

static void test_waiting () {
  start();
  LAUNCH(fill, 1, 32, 0, one, a, 5.0f, 8);
  LAUNCH(add_to, 1, 32, 0, two, b, (const float *)a, 8);
  cudaStreamSynchronize(two);
  cudaDeviceSynchronize();
  ok(first(b) == (lazy() ? 0 : 5), "streams do not wait for each other");
  start();
  LAUNCH(fill, 1, 32, 0, one, a, 6.0f, 8);
  cudaEventRecord(event, one);
  cudaStreamWaitEvent(two, event);
  LAUNCH(add_to, 1, 32, 0, two, b, (const float *)a, 8);
  cudaStreamSynchronize(two);
  ok(first(b) == 6, "but for events");
  start();
  LAUNCH(fill, 1, 32, 0, one, a, 7.0f, 8);
  cudaEventRecord(event, one);
  cudaStreamWaitEvent(two, event);
  LAUNCH(fill, 1, 32, 0, one, a, 8.0f, 8);
  cudaEventRecord(event, one); /* not the one that two waits for */
  LAUNCH(add_to, 1, 32, 0, two, b, (const float *)a, 8);
  cudaStreamSynchronize(two);
  cudaDeviceSynchronize();
  ok(first(b) == (lazy() ? 7 : 8), "as they were when the wait was asked for");
}

static void test_queries () {
  start();
  LAUNCH(fill, 1, 32, 0, one, a, 1.0f, 8);
  LAUNCH(fill, 1, 32, 0, one, a, 2.0f, 8);
  cudaEventRecord(event, one);
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) {
    polls++;
    cudaGetLastError();
  }
  ok(polls == (lazy() ? 3 : 0) && cudaStreamQuery(one) == cudaSuccess &&
         cudaGetLastError() == cudaSuccess,
     "who polls gets on");
  float ms = -1;
  cudaEvent_t later;
  cudaEventCreate(&later);
  cudaEventRecord(later, one);
  cudaEventSynchronize(later);
  ok(cudaEventElapsedTime(&ms, event, later) == cudaSuccess && ms >= 0,
     "events have times");
  cudaEventDestroy(later);
}

static void note (void *data) { *(int *)data += 1; }

static void test_pinned () {
  float *h, pageable = 1;
  int calls = 0;
  cudaMallocHost(&h, 64);
  start();
  *h = 1;
  cudaMemcpyAsync(a, h, 4, cudaMemcpyHostToDevice, one);
  *h = 2; /* too early, unless the stream was fast */
  cudaMemcpyAsync(b, &pageable, 4, cudaMemcpyHostToDevice, one);
  pageable = 2; /* allowed: it was staged */
  cudaLaunchHostFunc(one, note, &calls);
  ok(calls == (lazy() ? 0 : 1), "host functions have their turn");
  cudaStreamSynchronize(one);
  ok(calls == 1 && first(a) == (lazy() ? 2 : 1) && first(b) == 1,
     "pinned memory is read late, other at once");
  cudaFreeHost(h);
}

static void test_default_stream () {
  cudaStream_t free_one;
  cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking);
  start();
  LAUNCH(fill, 1, 32, 0, one, a, 3.0f, 8);
  LAUNCH(add_to, 1, 32, 0, 0, b, (const float *)a, 8);
  cudaStreamSynchronize(0);
  ok(first(b) == 3, "the default stream waits for the others");
  start();
  LAUNCH(fill, 1, 32, 0, free_one, a, 3.0f, 8);
  LAUNCH(add_to, 1, 32, 0, 0, b, (const float *)a, 8);
  cudaStreamSynchronize(0);
  cudaStreamDestroy(free_one);
  ok(first(b) == (lazy() ? 0 : 3), "but not for non-blocking ones");
}

/* }====================================================== */

static void test_device () {
  cudaDeviceProp p;
  int v, n;
  cudaGetDeviceProperties(&p, 0);
  ok(p.major == 8 && p.warpSize == 32 && p.sharedMemPerBlockOptin == 99 << 10,
     "properties");
  ok(cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, 0) ==
             cudaSuccess &&
         v == p.multiProcessorCount &&
         cudaSetDevice(1) == cudaErrorInvalidDevice &&
         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, fill, 256, 0) ==
             cudaSuccess &&
         n == 6,
     "attributes");
  cudaGetLastError();
  ok(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          100 << 10) == cudaErrorInvalidValue,
     "more shared memory than there is");
  cudaGetLastError();
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       99 << 10);
  LAUNCH(fill, 1, 32, 99 << 10, 0, a, 1.0f, 8);
  if (quiet("opt in")) ok(true, "all shared memory");
}

/*
** {======================================================
** Failures that are asked for
** =======================================================
*/

static void test_refused () {
  start();
  setenv("EMU_REFUSE", "fill:2", 1);
  LAUNCH(fill, 1, 32, 0, one, a, 1.0f, 8);
  LAUNCH(add_to, 1, 32, 0, one, b, (const float *)a, 8);
  ok(cudaGetLastError() == cudaSuccess, "other launches are not refused");
  LAUNCH(fill, 1, 32, 0, one, a, 2.0f, 8);
  ok(cudaGetLastError() == cudaErrorLaunchOutOfResources &&
         cudaGetLastError() == cudaSuccess,
     "EMU_REFUSE refuses the launch that it counts to");
  cudaStreamSynchronize(one);
  ok(first(a) == 1, "which does nothing, and all goes on");
  unsetenv("EMU_REFUSE");
}

void test_lost () {
  void *p = NULL;
  float v = 0, *x = (float *)device(&v, sizeof v);
  setenv("EMU_FAIL", "fill", 1);
  LAUNCH(fill, 1, 32, 0, 0, x, 2.0f, 1);
  cudaError_t early = cudaGetLastError();
  ok(early == (lazy() ? cudaSuccess : cudaErrorLaunchFailure) &&
         cudaDeviceSynchronize() == cudaErrorLaunchFailure,
     "EMU_FAIL has a kernel fail, which the next to wait is told");
  ok(cudaGetLastError() == cudaErrorLaunchFailure &&
         cudaGetLastError() == cudaErrorLaunchFailure &&
         cudaMalloc(&p, 100) == cudaErrorLaunchFailure && p == NULL &&
         cudaMemcpy(&v, x, sizeof v, cudaMemcpyDeviceToHost) ==
             cudaErrorLaunchFailure &&
         cudaSetDevice(0) == cudaErrorLaunchFailure && v == 0,
     "and all after him: the card is lost");
}

/* }====================================================== */

void test_runtime () {
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaEventCreateWithFlags(&event, cudaEventDefault);
  cudaMalloc(&a, 32);
  cudaMalloc(&b, 32);
  test_limit();
  test_reuse();
  test_pointers();
  test_copies();
  test_waiting();
  test_queries();
  test_pinned();
  test_default_stream();
  test_device();
  test_refused();
  cudaEventDestroy(event);
  cudaStreamDestroy(one);
  cudaStreamDestroy(two);
}
