/* cuda.h - what the files of cuda/ share: the device, launching, errors, and
** choosing a kernel by dtype.
**
** A file NAME.cu holds the kernels of src/cpu/NAME.c: static __global__
** functions, and under them the lines of kernels.def, extern "C" and called
** cuda_NAME.  It is C++ for two compilers, nvcc and (emulated) g++: no
** exceptions, no destructors (an engine error jumps over them), no library. */

#ifndef cuda_h
#define cuda_h

#include "gpu.h"

#define CORE_INLINE static __host__ __device__ inline
#include "../src/core/core.h"

/* One card.  All kernels run on the stream compute, in the order of their
** calls; copies from pinned memory on the stream copy, beside them. */
typedef struct Cuda {
  fnn_Device device;    /* first: a fnn_Device * is a Cuda * */
  int id;               /* CUDA's number of the card */
  atomic_int open;      /* the streams are there */
  atomic_int lost;      /* the error of a kernel that ended it, or 0 */
  const char *launched; /* the kernel that was asked for last */
  cudaStream_t compute, copy;
  fnn_Context *recorder; /* whose step is being recorded, or NULL */
  int multiprocessors;
  int pages; /* it has the page tables of the host (queues.cu) */
} Cuda;

/* The card, made current and open; and that of x.  Throws when another
** context is recording a step on it, which would get what follows. */
Cuda *cuda_open (const fnn_Device *d);
Cuda *cuda_of (const Tensor *x);

/* Throws FNN_EDEVICE with what and CUDA's words, unless e is success.  The
** failure of a kernel is told of by any call that comes after it, and then by
** all: the error names the kernel that was launched last, and from then on
** cuda_open throws. */
void cuda_check (cudaError_t e, const char *what);

/* Throws if the launch of this kernel, just done, or one before it failed. */
void cuda_launched (Cuda *c, const char *kernel);

/* Throws if a step is being recorded on c: what cannot be replayed. */
void cuda_not_recorded (const Cuda *c, const char *what);

/* memory.cu, queues.cu, record.cu: what device.cu puts into the tables. */
void *cuda_alloc (const fnn_Device *d, size_t bytes);
void cuda_free (const fnn_Device *d, void *p, size_t bytes);
void cuda_upload (const fnn_Device *d, void *to, const void *from, size_t n);
void cuda_download (const fnn_Device *d, void *to, const void *from, size_t n);
void *cuda_pin (const fnn_Device *d, size_t bytes);
void cuda_unpin (const fnn_Device *d, void *p);
void cuda_synchronize (const fnn_Device *d);
Event *cuda_event (const fnn_Device *d);
void cuda_event_free (const fnn_Device *d, Event *e);
void cuda_copy_after (const fnn_Device *d, Event *e);
void cuda_copy_pinned (const fnn_Device *d, void *to, const void *from,
                       size_t n);
void cuda_copy_mark (const fnn_Device *d, Event *e);
void cuda_compute_after (const fnn_Device *d, Event *e);
bool cuda_passed (const fnn_Device *d, Event *e, bool wait);
void cuda_record (const fnn_Device *d);
Recording *cuda_recorded (const fnn_Device *d);
void cuda_record_stop (const fnn_Device *d);
void cuda_replay (const fnn_Device *d, Recording *r);
void cuda_recording_free (const fnn_Device *d, Recording *r);

/* Throws if a kernel has met an id out of range (flags.cu): for those who
** have just synchronized with the compute stream. */
void cuda_check_flags (Cuda *card);

/* Launches a kernel on x's card: RUN(x, (softmax<float>), grid, block, shared
** bytes, arguments).  An error names the kernel. */
#define RUN(x, kernel, grid, block, shared, ...) \
  do { \
    Cuda *card_ = cuda_of(x); \
    LAUNCH(kernel, grid, block, shared, card_->compute, __VA_ARGS__); \
    cuda_launched(card_, #kernel); \
  } while (0)

/* Blocks of `threads` that cover n; loops over a grid stride take more. */
static inline unsigned blocks_for (int64_t n, int64_t threads) {
  return (unsigned)min64(max64((n + threads - 1) / threads, 1), 1 << 20);
}

/* The type a kernel computes in. */
template <class T> struct RealOf { typedef float type; };
template <> struct RealOf<double> { typedef double type; };
template <class T> using Real = typename RealOf<T>::type;

/* Any number from any number: halves know floats only. */
template <class To, class From> static __device__ inline To number (From v) {
  return (To)v;
}
template <> __device__ inline half number<half, double>(double v) {
  return (half)(float)v;
}
template <>
__device__ inline nv_bfloat16 number<nv_bfloat16, double>(double v) {
  return (nv_bfloat16)(float)v;
}

template <class T> static inline T *data_of (const Tensor *x) {
  return x != NULL ? (T *)tensor_data(x) : NULL;
}

/* Runs the statement with T the element type of a float dtype. */
#define WITH_FLOAT(dtype, ...) \
  switch ((fnn_Dtype)(dtype)) { \
    case FNN_F64: { \
      typedef double T; \
      __VA_ARGS__; \
    } break; \
    case FNN_F16: { \
      typedef half T; \
      __VA_ARGS__; \
    } break; \
    case FNN_BF16: { \
      typedef nv_bfloat16 T; \
      __VA_ARGS__; \
    } break; \
    default: { \
      typedef float T; \
      __VA_ARGS__; \
    } break; \
  }

#endif
