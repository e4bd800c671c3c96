/* device.cu - the cards as devices: which there are, and their tables. */

#include "cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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

/* The card that this thread asked for last. */
static _Thread_local Cuda *asked;

/* Errors after which no call works any more, in this process (CUDA Runtime
** API, "Data types used by CUDA Runtime"). */
static bool is_fatal (cudaError_t e) {
  switch (e) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

/* With this set launches wait for their kernels: see CUDA's documentation. */
static bool is_blocking (void) {
  const char *s = getenv("CUDA_LAUNCH_BLOCKING");
  return s != NULL && s[0] != '\0' && s[0] != '0';
}

/* A kernel that failed is told of by whatever call comes next: the one that
** was launched last is the latest that it can have been. */
FNN_NORETURN static void lose (Cuda *c, cudaError_t e) {
  const char *last = __atomic_load_n(&c->launched, __ATOMIC_RELAXED);
  bool exact = is_blocking();
  c->lost = e;
  fnn_throw(FNN_EDEVICE,
            "%s: kernel %s%s: %s (%s); the card is lost to this process%s",
            c->device.name, last != NULL ? last : "of another program",
            exact ? "" : ", or one before it", cudaGetErrorString(e),
            cudaGetErrorName(e),
            exact
                ? ""
                : ".  With CUDA_LAUNCH_BLOCKING=1 in the environment this is "
                  "raised where the kernel is called");
}

void cuda_check (cudaError_t e, const char *what) {
  if (e == cudaSuccess) return;
  cudaGetLastError(); /* it was this one */
  if (is_fatal(e) && asked != NULL) lose(asked, e);
  fnn_throw(FNN_EDEVICE, "%s: %s (%s)", what, cudaGetErrorString(e),
            cudaGetErrorName(e));
}

void cuda_launched (Cuda *c, const char *kernel) {
  __atomic_store_n(&c->launched, kernel, __ATOMIC_RELAXED);
  cuda_check(cudaGetLastError(), kernel);
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
  asked = c;
  if (c->lost != 0) {
    cudaError_t e = (cudaError_t)(int)c->lost;
    fnn_throw(FNN_EDEVICE,
              "%s: lost to this process, since a kernel failed (%s): what it "
              "held is gone; start the program anew",
              d->name, cudaGetErrorName(e));
  }
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

/* What there are kernels for, as 750 for compute capability 7.5. */
static const int built[] = { ARCHITECTURES };

static int built_for (int i) { return built[i] / 10; }

/* Code for one runs on later ones of the same major number; of the newest
** there is PTX too, for all that come after it. */
static bool runs_on (int capability) {
  for (int i = 0; i < countof(built); i++)
    if (built_for(i) / 10 == capability / 10 && built_for(i) <= capability)
      return true;
  return built_for(countof(built) - 1) <= capability;
}

/* Says which card it is, what it has and what it lacks. */
static void refuse (const char *name, int i, int capability) {
  char why[256];
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, i) != cudaSuccess)
    snprintf(p.name, sizeof p.name, "%s", name);
  int n = snprintf(why, sizeof why,
                   "%.60s has compute capability %d.%d, and this build needs ",
                   p.name, capability / 10, capability % 10);
  for (int k = 0; k < countof(built) && n < (int)sizeof why; k++)
    n += snprintf(why + n, sizeof why - (size_t)n, "%d.%d, ",
                  built_for(k) / 10, built_for(k) % 10);
  if (n < (int)sizeof why)
    snprintf(why + n - 2, sizeof why - (size_t)n + 2, " or later");
  device_refuse(name, why);
}

/* 0 if the driver does not say. */
static int capability_of (int i) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i);
  return 10 * major + minor;
}

static void add_card (int i) {
  Cuda *c = &cards[i];
  int capability = capability_of(i);
  snprintf(c->device.name, sizeof c->device.name, "cuda:%d", i);
  c->id = i;
  if (capability != 0 && !runs_on(capability)) {
    refuse(c->device.name, i, capability);
    return;
  }
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
  cudaGetLastError(); /* of a card that tells nothing of itself */
}

__attribute__((constructor)) static void tell_how (void) {
  device_finder(find_cards);
}
