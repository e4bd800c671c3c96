/* stream.cc - streams and events.
**
** Work is done when it is asked for; EMU_LAZY=1 holds it back until something
** waits for it, which shows what was not waited for.  A query then does one
** piece of what is held, so that who polls gets on.  With EMU_LAZY=2 streams
** on which no kernel was launched do not hold back: copies overtake kernels.
** CUDA_LAUNCH_BLOCKING=1 undoes both. */

#include "machine.h"

#include <memory>
#include <stdlib.h>
#include <time.h>

/* One cudaEventRecord: who waits, waits for the last one before. */
struct Mark {
  CUstream_st *stream;
  bool done;
  struct timespec time;
};

struct CUevent_st {
  std::shared_ptr<Mark> mark;
  CUgraph_st *graph = NULL; /* that the mark was recorded into */
  cudaStream_t stream = NULL;
  bool timing = true;
};

namespace emu {

CUstream_st stream0;
static std::set<CUstream_st *> streams;

static int lazy () {
  static const char *s = getenv("EMU_LAZY");
  static const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
  static const bool waits = blocking != NULL && strcmp(blocking, "1") == 0;
  static const int is = s == NULL || waits ? 0 : s[0] == '2' ? 2 : 1;
  return is;
}

void run_next (CUstream_st *s) {
  Work w = std::move(s->queue.front());
  s->queue.pop_front();
  if (lost == cudaSuccess) w();
}

static void drain (CUstream_st *s) {
  while (!s->queue.empty()) run_next(s);
}

void drain_all () {
  for (CUstream_st *s : streams) drain(s);
  drain(&stream0);
}

/* The default stream and the others, unless they are non-blocking, wait for
** each other. */
static cudaError_t enqueue_default (Work w) {
  for (CUstream_st *s : streams)
    if (s->graph != NULL && s->blocking) {
      s->graph->spoiled = true;
      return set_error(cudaErrorStreamCaptureImplicit);
    }
  if (!lazy()) {
    w();
    return cudaSuccess;
  }
  for (CUstream_st *s : streams)
    if (s->blocking) drain(s);
  stream0.queue.push_back(std::move(w));
  return cudaSuccess;
}

cudaError_t enqueue (cudaStream_t s, Work w) {
  if (lost != cudaSuccess) return lost;
  if (s == NULL) return enqueue_default(std::move(w));
  if (s->graph != NULL) {
    s->graph->works.push_back(std::move(w));
    if (s != s->graph->origin) s->graph->loose.insert(s);
    return cudaSuccess;
  }
  if (!lazy()) {
    w();
    return cudaSuccess;
  }
  if (s->blocking) drain(&stream0);
  s->queue.push_back(std::move(w));
  if (lazy() == 2 && !s->computes) drain(s);
  return cudaSuccess;
}

static void wait_for (Mark *m) {
  while (!m->done && !m->stream->queue.empty()) run_next(m->stream);
}

/* Has a graph record that s goes on from e, or refuses. */
static cudaError_t wait_recorded (cudaStream_t s, cudaEvent_t e) {
  CUgraph_st *g = e->graph;
  if (s == NULL) return cudaErrorStreamCaptureImplicit;
  if (g == NULL) return cudaErrorStreamCaptureIsolation;
  if (s->graph != NULL && s->graph != g) return cudaErrorStreamCaptureMerge;
  g->loose.erase(e->stream);
  if (s->graph == NULL) {
    s->graph = g;
    g->streams.insert(s);
  }
  if (s != g->origin) g->loose.insert(s);
  return cudaSuccess;
}

} // namespace emu

using namespace emu;

extern "C" {

/*
** {======================================================
** Streams
** =======================================================
*/

cudaError_t cudaStreamCreateWithFlags (cudaStream_t *s, unsigned flags) {
  Locked locked;
  *s = new CUstream_st;
  (*s)->blocking = (flags & cudaStreamNonBlocking) == 0;
  streams.insert(*s);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate (cudaStream_t *s) {
  return cudaStreamCreateWithFlags(s, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority (cudaStream_t *s, unsigned flags,
                                          int priority) {
  (void)priority;
  return cudaStreamCreateWithFlags(s, flags);
}

cudaError_t cudaStreamDestroy (cudaStream_t s) {
  Locked locked;
  if (streams.erase(s) == 0) return set_error(cudaErrorInvalidResourceHandle);
  drain(s);
  delete s;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize (cudaStream_t s) {
  Locked locked;
  cudaError_t e = capture_refuses(s);
  if (e != cudaSuccess) return e;
  drain(s != NULL ? s : &stream0);
  return last_error();
}

cudaError_t cudaStreamQuery (cudaStream_t s) {
  Locked locked;
  cudaError_t e = capture_refuses(s);
  if (e != cudaSuccess) return e;
  CUstream_st *x = s != NULL ? s : &stream0;
  if (x->queue.empty()) return last_error();
  run_next(x);
  return set_error(cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize (void) {
  Locked locked;
  for (CUstream_st *s : streams)
    if (s->graph != NULL) return capture_refuses(s);
  drain_all();
  return last_error();
}

cudaError_t cudaStreamWaitEvent (cudaStream_t s, cudaEvent_t e,
                                 unsigned flags) {
  Locked locked;
  (void)flags;
  if (capturing(s) || e->graph != NULL) {
    cudaError_t r = wait_recorded(s, e);
    if (r == cudaSuccess) return r;
    if (capturing(s)) s->graph->spoiled = true;
    if (e->graph != NULL) e->graph->spoiled = true;
    return set_error(r);
  }
  std::shared_ptr<Mark> m = e->mark;
  if (m == NULL || m->done) return cudaSuccess; /* nothing to wait for */
  return enqueue(s, [=] { wait_for(m.get()); });
}

cudaError_t cudaLaunchHostFunc (cudaStream_t s, cudaHostFn_t f, void *data) {
  Locked locked;
  return enqueue(s, [=] { f(data); });
}

/* }====================================================== */

/*
** {======================================================
** Events
** =======================================================
*/

cudaError_t cudaEventCreateWithFlags (cudaEvent_t *e, unsigned flags) {
  *e = new CUevent_st;
  (*e)->timing = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate (cudaEvent_t *e) {
  return cudaEventCreateWithFlags(e, cudaEventDefault);
}

cudaError_t cudaEventDestroy (cudaEvent_t e) {
  Locked locked;
  delete e;
  return cudaSuccess;
}

cudaError_t cudaEventRecord (cudaEvent_t e, cudaStream_t s) {
  Locked locked;
  e->stream = s;
  e->graph = capturing(s) ? s->graph : NULL;
  if (e->graph != NULL) return cudaSuccess;
  auto m = std::make_shared<Mark>();
  m->stream = s != NULL ? s : &stream0;
  m->done = false;
  e->mark = m;
  return enqueue(s, [=] {
    m->done = true;
    clock_gettime(CLOCK_MONOTONIC, &m->time);
  });
}

static cudaError_t refuse_recorded (cudaEvent_t e) {
  if (e->graph == NULL) return capture_refuses();
  e->graph->spoiled = true;
  return set_error(cudaErrorCapturedEvent);
}

cudaError_t cudaEventQuery (cudaEvent_t e) {
  Locked locked;
  cudaError_t r = refuse_recorded(e);
  if (r != cudaSuccess) return r;
  if (e->mark == NULL || e->mark->done) return last_error();
  if (!e->mark->stream->queue.empty()) run_next(e->mark->stream);
  return set_error(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize (cudaEvent_t e) {
  Locked locked;
  cudaError_t r = refuse_recorded(e);
  if (r != cudaSuccess) return r;
  if (e->mark != NULL) wait_for(e->mark.get());
  return last_error();
}

cudaError_t cudaEventElapsedTime (float *ms, cudaEvent_t a, cudaEvent_t b) {
  Locked locked;
  if (!a->timing || !b->timing || a->mark == NULL || b->mark == NULL)
    return set_error(cudaErrorInvalidResourceHandle);
  if (!a->mark->done || !b->mark->done) return set_error(cudaErrorNotReady);
  struct timespec s = a->mark->time, t = b->mark->time;
  *ms = (float)((double)(t.tv_sec - s.tv_sec) * 1e3 +
                (double)(t.tv_nsec - s.tv_nsec) * 1e-6);
  return cudaSuccess;
}

/* }====================================================== */
}
