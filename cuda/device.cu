/* device.cu - the cards as devices: their names, memory, copies, streams. */

#include "cuda.h"

#include <stdio.h>

enum { CARDS = 8 };

static Cuda cards[CARDS];

extern "C" {
#define KERNEL(name, args) void cuda_##name args;
#define KERNEL_ANY(name, args) void cuda_##name args;
#include "../src/core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY
}

static const Kernels kernels = {
#define KERNEL(name, args) cuda_##name,
#define KERNEL_ANY(name, args) cuda_##name,
#include "../src/core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY
};

void cuda_check (cudaError_t e, const char *what) {
  if (e != cudaSuccess)
    fnn_throw(FNN_EDEVICE, "%s: %s", what, cudaGetErrorString(e));
}

static Cuda *card_open (const fnn_Device *d) {
  Cuda *c = (Cuda *)d;
  cuda_check(cudaSetDevice(c->id), d->name);
  if (!c->open) {
    cuda_check(cudaStreamCreate(&c->compute), d->name);
    cuda_check(cudaStreamCreate(&c->copy), d->name);
    c->open = true;
  }
  return c;
}

Cuda *cuda_of (const Tensor *x) { return card_open(x->storage->device); }

static void *card_alloc (const fnn_Device *d, size_t bytes) {
  void *p = NULL;
  card_open(d);
  if (cudaMalloc(&p, bytes) == cudaSuccess) return p;
  cudaGetLastError(); /* it was this one */
  return NULL;
}

static void card_free (const fnn_Device *d, void *p, size_t bytes) {
  (void)bytes;
  cudaSetDevice(((Cuda *)d)->id);
  cudaFree(p);
}

static void card_upload (const fnn_Device *d, void *to, const void *from,
                         size_t n) {
  if (n == 0) return;
  cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice,
                             card_open(d)->compute),
             "copy to the device");
}

static void card_download (const fnn_Device *d, void *to, const void *from,
                           size_t n) {
  if (n == 0) return;
  Cuda *c = card_open(d);
  cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, c->compute),
             "copy from the device");
  cuda_check(cudaStreamSynchronize(c->compute), "copy from the device");
}

__attribute__((constructor)) static void find_cards (void) {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
  for (int i = 0; i < n && i < CARDS; i++) {
    Cuda *c = &cards[i];
    snprintf(c->device.name, sizeof c->device.name, "cuda:%d", i);
    c->id = i;
    c->device.index = i + 1; /* the CPU is 0 */
    c->device.kernels[0] = c->device.kernels[1] = &kernels;
    c->device.alloc = card_alloc;
    c->device.free = card_free;
    c->device.upload = card_upload;
    c->device.download = card_download;
    device_register(&c->device);
  }
}
