/* graphs.cu - recording and replaying, and what a recording refuses. */

#include "test.h"

static __global__ void add (float *y, float v) { y[threadIdx.x] += v; }

static __global__ void twice (float *y, const float *x) {
  y[threadIdx.x] = 2 * x[threadIdx.x];
}

static cudaStream_t one, two;
static cudaEvent_t fork_event, join_event;
static float *a, *b;

static float first (const float *p) {
  float v;
  fetch(&v, p, sizeof v);
  return v;
}

static void test_replay () {
  cudaGraph_t g;
  cudaGraphExec_t x;
  size_t nodes;
  float v = 1, *h;
  cudaMallocHost(&h, 4);
  cudaMemset(a, 0, 4);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  LAUNCH(add, 1, 1, 0, one, a, v);
  v = 100; /* recorded as it was */
  LAUNCH(twice, 1, 1, 0, one, b, (const float *)a);
  cudaMemcpyAsync(h, b, 4, cudaMemcpyDeviceToHost, one);
  ok(cudaStreamEndCapture(one, &g) == cudaSuccess && g != NULL &&
         cudaGraphGetNodes(g, NULL, &nodes) == cudaSuccess && nodes == 3,
     "a recording has what was asked for");
  ok(first(a) == 0, "which was not done");
  cudaGraphInstantiate(&x, g, 0);
  cudaGraphDestroy(g);
  for (int i = 1; i <= 3; i++) {
    cudaGraphLaunch(x, one);
    cudaStreamSynchronize(one);
    if (*h != 2.0f * (float)i) break;
    if (i == 3) ok(first(a) == 3, "a replay does it, each time");
  }
  cudaGraphExecDestroy(x);
  cudaFreeHost(h);
}

static void test_two_streams () {
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaMemset(a, 0, 4);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed);
  LAUNCH(add, 1, 1, 0, one, a, 4.0f);
  cudaEventRecord(fork_event, one);
  cudaStreamWaitEvent(two, fork_event);
  LAUNCH(twice, 1, 1, 0, two, b, (const float *)a);
  cudaEventRecord(join_event, two);
  cudaStreamWaitEvent(one, join_event);
  ok(cudaStreamEndCapture(one, &g) == cudaSuccess, "a second stream joins in");
  cudaGraphInstantiate(&x, g);
  cudaGraphLaunch(x, one);
  cudaStreamSynchronize(one);
  ok(first(b) == 8, "and is replayed too");
  cudaGraphExecDestroy(x);
  cudaGraphDestroy(g);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(fork_event, one);
  cudaStreamWaitEvent(two, fork_event);
  LAUNCH(twice, 1, 1, 0, two, b, (const float *)a);
  ok(cudaStreamEndCapture(one, &g) == cudaErrorStreamCaptureUnjoined &&
         g == NULL,
     "it must be joined again");
  cudaGetLastError();
}

static void ask_malloc () {
  void *p;
  cudaMalloc(&p, 16);
}
static void ask_free () { cudaFree(b); }
static void ask_synchronize () { cudaStreamSynchronize(one); }
static void ask_device () { cudaDeviceSynchronize(); }
static void ask_query () { cudaStreamQuery(one); }
static void ask_copy () {
  float v = 1;
  cudaMemcpy(a, &v, 4, cudaMemcpyHostToDevice);
}
static void ask_pageable () {
  float v = 1;
  cudaMemcpyAsync(a, &v, 4, cudaMemcpyHostToDevice, one);
}
static void ask_event () {
  cudaEventRecord(join_event, one);
  cudaEventSynchronize(join_event);
}

static void test_refusals () {
  static const struct {
    const char *name;
    void (*ask)();
    cudaError_t want;
  } all[] = {
    { "cudaMalloc", ask_malloc, cudaErrorStreamCaptureUnsupported },
    { "cudaFree", ask_free, cudaErrorStreamCaptureUnsupported },
    { "cudaStreamSynchronize", ask_synchronize,
      cudaErrorStreamCaptureUnsupported },
    { "cudaDeviceSynchronize", ask_device, cudaErrorStreamCaptureUnsupported },
    { "cudaStreamQuery", ask_query, cudaErrorStreamCaptureUnsupported },
    { "cudaMemcpy", ask_copy, cudaErrorStreamCaptureImplicit },
    { "a copy of pageable memory", ask_pageable,
      cudaErrorStreamCaptureUnsupported },
    { "cudaEventSynchronize", ask_event, cudaErrorCapturedEvent },
  };
  for (const auto &r : all) {
    cudaGraph_t g;
    cudaStreamCaptureStatus status;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    r.ask();
    cudaError_t e = cudaGetLastError();
    cudaStreamIsCapturing(one, &status);
    cudaError_t end = cudaStreamEndCapture(one, &g);
    cudaGetLastError();
    ok(e == r.want && status == cudaStreamCaptureStatusInvalidated &&
           end == cudaErrorStreamCaptureInvalidated && g == NULL,
       "no %s in a recording", r.name);
  }
}

static void test_modes () {
  cudaGraph_t g;
  void *p;
  cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed);
  ok(cudaMalloc(&p, 16) == cudaSuccess && cudaFree(p) == cudaSuccess,
     "memory in a relaxed one");
  ok(cudaStreamEndCapture(one, &g) == cudaSuccess && g != NULL,
     "which goes on");
  cudaGraphDestroy(g);
  ok(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal) ==
             cudaErrorStreamCaptureUnsupported &&
         cudaStreamEndCapture(one, &g) == cudaErrorIllegalState,
     "the default stream records nothing");
  cudaGetLastError();
}

/* What a graph uses must live as long as it. */
static void test_freed () {
  cudaGraph_t g;
  cudaGraphExec_t x;
  float *p = (float *)device(NULL, 4);
  cudaMemset(p, 0, 4);
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  LAUNCH(add, 1, 1, 0, one, p, 1.0f);
  cudaStreamEndCapture(one, &g);
  cudaGraphInstantiate(&x, g, 0);
  cudaFree(p);
  cudaGraphLaunch(x, one);
  cudaStreamSynchronize(one);
  ok(cudaGetLastError() != cudaSuccess &&
         strstr(emu_report, "(freed)") != NULL,
     "a replay that uses freed memory is seen");
  cudaGraphExecDestroy(x);
  cudaGraphDestroy(g);
}

void test_graphs () {
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaEventCreate(&fork_event);
  cudaEventCreate(&join_event);
  cudaMalloc(&a, 4);
  cudaMalloc(&b, 4);
  cudaMemset(b, 0, 4);
  test_replay();
  test_two_streams();
  test_refusals();
  test_modes();
  test_freed();
  cudaStreamDestroy(one);
  cudaStreamDestroy(two);
}
