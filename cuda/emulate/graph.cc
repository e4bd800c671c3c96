/* graph.cc - recording what streams are asked to do, and replaying it.
**
** A graph is the list of what was asked for while a stream recorded, kernels
** with their arguments as they were then; a replay does it in that order. */

#include "machine.h"

struct CUgraphExec_st {
  std::vector<emu::Work> works;
};

namespace emu {

static std::set<CUgraph_st *> recording;

static cudaError_t spoil (CUgraph_st *g) {
  g->spoiled = true;
  return set_error(cudaErrorStreamCaptureUnsupported);
}

/* A recording in global mode forbids what may wait to all threads, one in
** thread-local mode to its own. */
cudaError_t capture_refuses () {
  if (lost != cudaSuccess) return lost;
  for (CUgraph_st *g : recording)
    if (g->mode == cudaStreamCaptureModeGlobal ||
        (g->mode == cudaStreamCaptureModeThreadLocal &&
         pthread_equal(g->thread, pthread_self())))
      return spoil(g);
  return cudaSuccess;
}

cudaError_t capture_refuses (cudaStream_t s) {
  if (lost != cudaSuccess) return lost;
  return capturing(s) ? spoil(s->graph) : capture_refuses();
}

static void stop (CUgraph_st *g) {
  for (cudaStream_t s : g->streams) s->graph = NULL;
  recording.erase(g);
}

static cudaError_t finished (const CUgraph_st *g) {
  if (g->spoiled) return cudaErrorStreamCaptureInvalidated;
  if (!g->loose.empty()) return cudaErrorStreamCaptureUnjoined;
  return cudaSuccess;
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaStreamBeginCapture (cudaStream_t s,
                                    cudaStreamCaptureMode mode) {
  Locked locked;
  if (s == NULL) return set_error(cudaErrorStreamCaptureUnsupported);
  if (s->graph != NULL) return set_error(cudaErrorIllegalState);
  CUgraph_st *g = new CUgraph_st;
  g->origin = s;
  g->streams.insert(s);
  g->mode = mode;
  g->thread = pthread_self();
  g->spoiled = false;
  s->graph = g;
  recording.insert(g);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture (cudaStream_t s, cudaGraph_t *graph) {
  Locked locked;
  *graph = NULL;
  if (!capturing(s)) return set_error(cudaErrorIllegalState);
  CUgraph_st *g = s->graph;
  if (g->origin != s) {
    g->spoiled = true;
    return set_error(cudaErrorStreamCaptureUnmatched);
  }
  if (g->mode != cudaStreamCaptureModeRelaxed &&
      !pthread_equal(g->thread, pthread_self()))
    return set_error(cudaErrorStreamCaptureWrongThread);
  stop(g);
  cudaError_t e = finished(g);
  if (e == cudaSuccess) *graph = g;
  else delete g;
  return set_error(e);
}

cudaError_t cudaStreamIsCapturing (cudaStream_t s,
                                   cudaStreamCaptureStatus *status) {
  Locked locked;
  *status = !capturing(s)       ? cudaStreamCaptureStatusNone
            : s->graph->spoiled ? cudaStreamCaptureStatusInvalidated
                                : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy (cudaGraph_t g) {
  Locked locked;
  delete g;
  return cudaSuccess;
}

/* The nodes have no addresses here: only their number is told. */
cudaError_t cudaGraphGetNodes (cudaGraph_t g, cudaGraphNode_t *nodes,
                               size_t *n) {
  Locked locked;
  if (nodes != NULL) return set_error(cudaErrorNotSupported);
  *n = g->works.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate (cudaGraphExec_t *x, cudaGraph_t g,
                                  unsigned long long flags) {
  Locked locked;
  (void)flags;
  *x = NULL;
  if (g == NULL) return set_error(cudaErrorInvalidValue);
  *x = new CUgraphExec_st{ g->works };
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags (cudaGraphExec_t *x, cudaGraph_t g,
                                           unsigned long long flags) {
  return cudaGraphInstantiate(x, g, flags);
}

/* As the card's: the same nodes with other arguments, or a refusal. */
cudaError_t cudaGraphExecUpdate (cudaGraphExec_t x, cudaGraph_t g,
                                 cudaGraphExecUpdateResultInfo *info) {
  Locked locked;
  memset(info, 0, sizeof *info);
  if (x->works.size() != g->works.size()) {
    info->result = cudaGraphExecUpdateErrorTopologyChanged;
    return set_error(cudaErrorGraphExecUpdateFailure);
  }
  x->works = g->works;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload (cudaGraphExec_t x, cudaStream_t s) {
  (void)x, (void)s;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch (cudaGraphExec_t x, cudaStream_t s) {
  Locked locked;
  if (x == NULL) return set_error(cudaErrorInvalidValue);
  for (const Work &w : x->works) {
    cudaError_t e = enqueue(s, w);
    if (e != cudaSuccess) return e;
  }
  return cudaSuccess;
}

/* What was launched runs to its end: it is in the streams already. */
cudaError_t cudaGraphExecDestroy (cudaGraphExec_t x) {
  Locked locked;
  delete x;
  return cudaSuccess;
}
}
