/* queues.cu - copies, and what comes after what.
**
** Kernels, and copies from and to pageable memory, go through the stream
** compute in the order of their calls.  A batch of the loader goes through the
** stream copy instead, to be copied while the last one trains.  Two orders
** must then be kept, and both are kept by events:
**
** 1. The copy writes a block that the cache handed out, and kernels queued
**    before may still use what the block held.  copy_after records an event on
**    compute when the block has been taken, and the copies to come wait for
**    it.  That is enough: whoever released the block had queued his last use
**    of it before, so the event comes after that use.  And it does not put the
**    copy after the training step that it shall run beside: the loader calls
**    it in next, before the kernels of the step on the batch that next hands
**    out are queued, so it waits for the steps before that one alone.
** 2. Kernels that read the batch come after the copy: copy_mark records an
**    event behind it, and compute_after makes compute wait for that, on the
**    card, when the batch is handed out.
**
** A block that a copy has written is released only by who was handed the
** batch, so after 2, or by the loader, which does 2 before it releases. */

#include "cuda.h"

static cudaEvent_t event_of (Event *e) { return (cudaEvent_t)e; }

/* The call returns when `from` has been read: into memory of the driver's, from
** which the copy goes on.  Cards that share the host's page tables (Grace) need
** no such memory, so they may still read when it returns. */
void cuda_upload (const fnn_Device *d, void *to, const void *from, size_t n) {
  if (n == 0) return;
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "copy to the device");
  cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, c->compute),
             "copy to the device");
  if (c->pages)
    cuda_check(cudaStreamSynchronize(c->compute), "copy to the device");
}

void cuda_download (const fnn_Device *d, void *to, const void *from,
                    size_t n) {
  if (n == 0) return;
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "reading a value");
  cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, c->compute),
             "copy from the device");
  cuda_check(cudaStreamSynchronize(c->compute), "copy from the device");
  cuda_check_flags(c);
}

void cuda_synchronize (const fnn_Device *d) {
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "synchronize");
  cuda_check(cudaStreamSynchronize(c->compute), "synchronize");
  cuda_check(cudaStreamSynchronize(c->copy), "synchronize");
  cuda_check_flags(c);
}

Event *cuda_event (const fnn_Device *d) {
  cudaEvent_t e;
  cuda_open(d);
  cuda_check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), d->name);
  return (Event *)e;
}

/* As all that a collector may run, it must not throw. */
void cuda_event_free (const fnn_Device *d, Event *e) {
  cudaSetDevice(((const Cuda *)d)->id);
  cudaEventDestroy(event_of(e));
  cudaGetLastError();
}

void cuda_copy_after (const fnn_Device *d, Event *e) {
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "copy to the device");
  cuda_check(cudaEventRecord(event_of(e), c->compute), d->name);
  cuda_check(cudaStreamWaitEvent(c->copy, event_of(e), 0), d->name);
}

void cuda_copy_pinned (const fnn_Device *d, void *to, const void *from,
                       size_t n) {
  if (n == 0) return;
  cuda_check(
      cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, cuda_open(d)->copy),
      "copy to the device");
}

void cuda_copy_mark (const fnn_Device *d, Event *e) {
  cuda_check(cudaEventRecord(event_of(e), cuda_open(d)->copy), d->name);
}

void cuda_compute_after (const fnn_Device *d, Event *e) {
  Cuda *c = cuda_open(d);
  cuda_not_recorded(c, "waiting for a batch");
  cuda_check(cudaStreamWaitEvent(c->compute, event_of(e), 0), d->name);
}

bool cuda_passed (const fnn_Device *d, Event *e, bool wait) {
  cuda_open(d);
  cudaError_t s =
      wait ? cudaEventSynchronize(event_of(e)) : cudaEventQuery(event_of(e));
  if (s == cudaErrorNotReady) {
    cudaGetLastError(); /* it is none */
    return false;
  }
  cuda_check(s, d->name);
  return true;
}
