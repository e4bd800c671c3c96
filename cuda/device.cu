/* device.cu - the cards as devices: which there are, and their tables. */

#include "cuda.h"

#include <pthread.h>
#include <stdio.h>

enum { CARDS = 8 };

static Cuda cards[CARDS];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

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

/* A fault of a kernel is told by whatever call comes next, and stays: the
** card's context is lost with it. */
void cuda_check (cudaError_t e, const char *what) {
  if (e == cudaSuccess) return;
  cudaGetLastError(); /* it was this one */
  fnn_throw(FNN_EDEVICE, "%s: %s (%s)", what, cudaGetErrorString(e),
            cudaGetErrorName(e));
}

/* Streams that do not wait for the one that other libraries use. */
static cudaError_t open_streams (Cuda *c) {
  cudaError_t e =
      cudaStreamCreateWithFlags(&c->compute, cudaStreamNonBlocking);
  if (e != cudaSuccess) return e;
  e = cudaStreamCreateWithFlags(&c->copy, cudaStreamNonBlocking);
  if (e != cudaSuccess) return e;
  e = cudaDeviceGetAttribute(
      &c->pages, cudaDevAttrPageableMemoryAccessUsesHostPageTables, c->id);
  if (e != cudaSuccess) return e;
  return cudaDeviceGetAttribute(&c->multiprocessors,
                                cudaDevAttrMultiProcessorCount, c->id);
}

Cuda *cuda_open (const fnn_Device *d) {
  Cuda *c = (Cuda *)d;
  cuda_check(cudaSetDevice(c->id), d->name);
  if (!c->open) {
    pthread_mutex_lock(&opening);
    cudaError_t e = c->open ? cudaSuccess : open_streams(c);
    c->open = e == cudaSuccess;
    pthread_mutex_unlock(&opening);
    cuda_check(e, d->name);
  }
  if (c->recorder != NULL && c->recorder != context_now)
    fnn_throw(FNN_EDEVICE, "%s: another context is recording a step", d->name);
  return c;
}

Cuda *cuda_of (const Tensor *x) { return cuda_open(x->storage->device); }

void cuda_not_recorded (const Cuda *c, const char *what) {
  if (c->recorder != NULL)
    fnn_throw(FNN_EGRAPH,
              "%s: not in a step that is recorded (fnn.graph_step): its "
              "replays run on %s alone",
              what, c->device.name);
}

static void describe (const fnn_Device *d, fnn_DeviceInfo *info) {
  Cuda *c = cuda_open(d);
  cudaDeviceProp p;
  size_t available, total;
  cuda_check(cudaGetDeviceProperties(&p, c->id), d->name);
  cuda_check(cudaMemGetInfo(&available, &total), d->name);
  cuda_check(cudaDriverGetVersion(&info->driver), d->name);
  snprintf(info->model, sizeof info->model, "%s", p.name);
  info->total = total;
  info->free = available;
  info->major = p.major;
  info->minor = p.minor;
}

static const Queues queues = {
  describe,       cuda_synchronize,   cuda_pin,        cuda_unpin,
  cuda_event,     cuda_event_free,    cuda_copy_after, cuda_copy_pinned,
  cuda_copy_mark, cuda_compute_after, cuda_passed,     cuda_record,
  cuda_recorded,  cuda_record_stop,   cuda_replay,     cuda_recording_free
};

static void add_card (int i) {
  Cuda *c = &cards[i];
  snprintf(c->device.name, sizeof c->device.name, "cuda:%d", i);
  c->id = i;
  c->device.kernels[0] = c->device.kernels[1] = &kernels;
  c->device.alloc = cuda_alloc;
  c->device.free = cuda_free;
  c->device.upload = cuda_upload;
  c->device.download = cuda_download;
  c->device.queues = &queues;
  device_register(&c->device);
}

/* Why there is no card, in more words than CUDA's. */
static void say_why (cudaError_t e) {
  char why[256];
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  if (driver == 0)
    snprintf(why, sizeof why, "this machine has no NVIDIA driver (%s)",
             cudaGetErrorString(e));
  else if (e == cudaErrorInsufficientDriver)
    snprintf(why, sizeof why,
             "the NVIDIA driver is too old: it knows CUDA %d.%d, and this "
             "build of fnn needs %d.%d (%s)",
             driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10, cudaGetErrorString(e));
  else if (e == cudaSuccess || e == cudaErrorNoDevice)
    snprintf(why, sizeof why,
             "this machine has no NVIDIA card, or "
             "CUDA_VISIBLE_DEVICES hides it (%s)",
             cudaGetErrorString(cudaErrorNoDevice));
  else
    snprintf(why, sizeof why, "CUDA does not start: %s",
             cudaGetErrorString(e));
  device_missing(why);
}

static void find_cards (void) {
  int n = 0;
  cudaError_t e = cudaGetDeviceCount(&n);
  if (e != cudaSuccess || n == 0) {
    cudaGetLastError(); /* it was this one */
    say_why(e);
    return;
  }
  for (int i = 0; i < n && i < CARDS; i++) add_card(i);
}

__attribute__((constructor)) static void tell_how (void) {
  device_finder(find_cards);
}
