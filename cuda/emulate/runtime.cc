/* runtime.cc - errors and devices: there is one, a small card of compute
** capability 8.6, or another that EMU_CAPABILITY says (61 is 6.1).  With
** EMU_PAGES=1 it has the page tables of the host, as Grace has. */

#include "machine.h"

#include <stdlib.h>

namespace emu {

static cudaError_t error, reported_error;
cudaError_t lost;

cudaError_t set_error (cudaError_t e, bool reported) {
  if (e == cudaSuccess) return e;
  error = e;
  if (reported) reported_error = e;
  return e;
}

cudaError_t last_error () { return lost != cudaSuccess ? lost : error; }

static const struct {
  cudaError_t code;
  const char *name, *text;
} names[] = {
#define NAME(e) e, #e
  { NAME(cudaSuccess), "no error" },
  { NAME(cudaErrorInvalidValue), "invalid argument" },
  { NAME(cudaErrorMemoryAllocation), "out of memory" },
  { NAME(cudaErrorInvalidConfiguration), "invalid configuration argument" },
  { NAME(cudaErrorInsufficientDriver),
    "CUDA driver version is insufficient for CUDA runtime version" },
  { NAME(cudaErrorNoDevice), "no CUDA-capable device is detected" },
  { NAME(cudaErrorInvalidDevice), "invalid device ordinal" },
  { NAME(cudaErrorInvalidResourceHandle), "invalid resource handle" },
  { NAME(cudaErrorIllegalState),
    "the operation cannot be performed in the present state" },
  { NAME(cudaErrorNotReady), "device not ready" },
  { NAME(cudaErrorIllegalAddress),
    "an illegal memory access was encountered" },
  { NAME(cudaErrorLaunchTimeout), "the launch timed out and was terminated" },
  { NAME(cudaErrorMisalignedAddress), "misaligned address" },
  { NAME(cudaErrorLaunchFailure), "unspecified launch failure" },
  { NAME(cudaErrorLaunchOutOfResources),
    "too many resources requested for launch" },
  { NAME(cudaErrorNotSupported), "operation not supported" },
  { NAME(cudaErrorStreamCaptureUnsupported),
    "operation not permitted when stream is capturing" },
  { NAME(cudaErrorStreamCaptureInvalidated),
    "operation failed due to a previous error during capture" },
  { NAME(cudaErrorStreamCaptureMerge),
    "operation would result in a merge of separate capture sequences" },
  { NAME(cudaErrorStreamCaptureUnmatched),
    "capture was not ended in the same stream as it began" },
  { NAME(cudaErrorStreamCaptureUnjoined),
    "capturing stream has unjoined work" },
  { NAME(cudaErrorStreamCaptureIsolation),
    "dependency created on uncaptured work in another stream" },
  { NAME(cudaErrorStreamCaptureImplicit),
    "operation would make the legacy stream depend on a capturing blocking "
    "stream" },
  { NAME(cudaErrorCapturedEvent), "operation not permitted on an event last "
                                  "recorded in a capturing stream" },
  { NAME(cudaErrorStreamCaptureWrongThread),
    "attempt to terminate a thread-local capture sequence from another "
    "thread" },
  { NAME(cudaErrorGraphExecUpdateFailure),
    "the graph update was not performed because it included changes which "
    "violated constraints specific to instantiated graph update" },
#undef NAME
};

enum { COUNT = sizeof names / sizeof names[0] };

static int capability () {
  const char *s = getenv("EMU_CAPABILITY");
  return s != NULL ? atoi(s) : 86;
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaGetLastError (void) {
  Locked locked;
  cudaError_t e = last_error();
  error = cudaSuccess;
  return e;
}

cudaError_t cudaPeekAtLastError (void) { return last_error(); }

const char *cudaGetErrorName (cudaError_t e) {
  for (int i = 0; i < COUNT; i++)
    if (names[i].code == e) return names[i].name;
  return "unrecognized error code";
}

/* Of an error that came with a report, the report. */
const char *cudaGetErrorString (cudaError_t e) {
  if (e != cudaSuccess && e == reported_error) return emu_report;
  for (int i = 0; i < COUNT; i++)
    if (names[i].code == e) return names[i].text;
  return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion (int *v) {
  *v = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion (int *v) { return cudaDriverGetVersion(v); }

cudaError_t cudaGetDeviceCount (int *n) {
  *n = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice (int d) {
  if (lost != cudaSuccess) return lost;
  return d == 0 ? cudaSuccess : set_error(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice (int *d) {
  *d = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer (int *can, int d, int peer) {
  (void)d, (void)peer;
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties (cudaDeviceProp *p, int d) {
  size_t available;
  if (d != 0) return set_error(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  strcpy(p->name, "emulated card");
  p->major = capability() / 10;
  p->minor = capability() % 10;
  p->warpSize = LANES;
  p->maxThreadsPerBlock = MOST_THREADS;
  p->maxThreadsPerMultiProcessor = 1536;
  p->multiProcessorCount = 4;
  p->regsPerBlock = 64 << 10;
  p->l2CacheSize = 2 << 20;
  p->sharedMemPerBlock = SHARED_DEFAULT;
  p->sharedMemPerBlockOptin = SHARED_OPTIN;
  p->sharedMemPerMultiprocessor = 100 << 10;
  return cudaMemGetInfo(&available, &p->totalGlobalMem);
}

cudaError_t cudaDeviceGetAttribute (int *v, enum cudaDeviceAttr a, int d) {
  cudaDeviceProp p;
  cudaError_t e = cudaGetDeviceProperties(&p, d);
  if (e != cudaSuccess) return e;
  switch (a) {
    case cudaDevAttrMaxThreadsPerBlock: *v = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = SHARED_DEFAULT; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = SHARED_OPTIN; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *v = (int)p.sharedMemPerMultiprocessor;
      break;
    case cudaDevAttrWarpSize: *v = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *v = p.regsPerBlock; break;
    case cudaDevAttrClockRate: *v = 1000000; break;        /* kHz */
    case cudaDevAttrMemoryClockRate: *v = 1000000; break;  /* kHz */
    case cudaDevAttrGlobalMemoryBusWidth: *v = 128; break; /* bits */
    case cudaDevAttrMultiProcessorCount: *v = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *v = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *v = p.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *v = 16; break;
    case cudaDevAttrComputeCapabilityMajor: *v = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *v = p.minor; break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing: *v = 1; break;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
      *v = host_pages();
      break;
    default: *v = 0; break; /* what it cannot do */
  }
  return cudaSuccess;
}
}
