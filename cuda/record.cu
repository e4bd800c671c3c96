/* record.cu - work that is recorded once and replayed as a whole: CUDA graphs
** (Programming Guide, 3.2.8.7).  core/capture.c tells what replays need
** besides. */

#include "cuda.h"

/* Relaxed: the cache may ask the driver for memory meanwhile.  What would
** wait for the work is refused by this engine (cuda_not_recorded). */
void cuda_record (const fnn_Device *d) {
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "recording");
  cuda_check(cudaStreamBeginCapture(c->compute, cudaStreamCaptureModeRelaxed),
             d->name);
  c->recorder = context_now;
}

void cuda_record_stop (const fnn_Device *d) {
  Cuda *c = (Cuda *)d;
  if (c->recorder == NULL) return;
  c->recorder = NULL;
  cudaGraph_t g = NULL;
  cudaSetDevice(c->id);
  cudaStreamEndCapture(c->compute, &g);
  if (g != NULL) cudaGraphDestroy(g);
  cudaGetLastError(); /* what broke it has been told */
}

Recording *cuda_recorded (const fnn_Device *d) {
  Cuda *c = cuda_open(d);
  cudaGraph_t g = NULL;
  cudaGraphExec_t x = NULL;
  c->recorder = NULL;
  cuda_check(cudaStreamEndCapture(c->compute, &g), "recording a step");
  cudaError_t e = graph_instantiate(&x, g);
  cudaGraphDestroy(g);
  cuda_check(e, "recording a step");
  return (Recording *)x;
}

void cuda_replay (const fnn_Device *d, Recording *r) {
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "replaying another step");
  cuda_check(cudaGraphLaunch((cudaGraphExec_t)r, c->compute),
             "replaying a step");
  cuda_launched(c, "of a recorded step");
}

/* It may run still: the driver keeps what it needs until it has. */
void cuda_recording_free (const fnn_Device *d, Recording *r) {
  cudaSetDevice(((const Cuda *)d)->id);
  cudaGraphExecDestroy((cudaGraphExec_t)r);
  cudaGetLastError();
}
