/* memory.cu - blocks of a card's memory, as the driver gives them.
**
** The account's cache (core/memory.c) asks for them by size class and keeps
** them, so a steady training step asks for none.  cudaMalloc is slow, and
** cudaFree waits until the card has done all its work: then nothing uses the
** block any more. */

#include "cuda.h"

/* The memory of a recorded step is asked for while it is recorded: such calls
** are allowed there, since the recording is relaxed (record.cu). */
void *cuda_alloc (const fnn_Device *d, size_t bytes) {
  void *p = NULL;
  cuda_open(d);
  cudaError_t e = cudaMalloc(&p, bytes);
  if (e != cudaErrorMemoryAllocation) cuda_check(e, d->name);
  else cudaGetLastError(); /* it was this one */
  return e == cudaSuccess ? p : NULL;
}

/* A collector may run it, so it must not throw. */
void cuda_free (const fnn_Device *d, void *p, size_t bytes) {
  (void)bytes;
  cudaSetDevice(((const Cuda *)d)->id);
  cudaFree(p);
  cudaGetLastError(); /* the next call that may throw tells what is wrong */
}

void *cuda_pin (const fnn_Device *d, size_t bytes) {
  void *p = NULL;
  cuda_open(d);
  cudaError_t e = cudaMallocHost(&p, bytes);
  if (e != cudaErrorMemoryAllocation) cuda_check(e, d->name);
  else cudaGetLastError();
  return e == cudaSuccess ? p : NULL;
}

void cuda_unpin (const fnn_Device *d, void *p) {
  cudaSetDevice(((const Cuda *)d)->id);
  cudaFreeHost(p);
  cudaGetLastError();
}
