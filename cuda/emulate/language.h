/* language.h - CUDA's language for a C++ compiler of the host: keywords, the
** launch, barriers, the primitives of a warp, atomics.  Arithmetic is in
** intrinsics.h, the tensor cores in tile.h.
**
** A thread of a block is a fiber that runs until a barrier; see fiber.cc. */

#ifndef emulate_language_h
#define emulate_language_h

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* A bare __shared__ would be an array of each thread: SHARED is the word. */
#define __shared__ emu_use_SHARED_instead
#define __constant__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

/*
** {======================================================
** What the emulator does
** =======================================================
*/

enum { EMU_READ, EMU_WRITE, EMU_ATOMIC };

/* A kernel and its arguments. */
struct EmuBody {
  size_t size;
  virtual void run () = 0;
  virtual ~EmuBody() {}
};

__attribute__((const)) uint3 emu_thread_idx ();
__attribute__((const)) uint3 emu_block_idx ();
__attribute__((const)) dim3 emu_block_dim ();
__attribute__((const)) dim3 emu_grid_dim ();
unsigned emu_lane ();

void *emu_shared (const void *site, const char *name, size_t size);
void *emu_dynamic_shared ();

/* Waits for the block; gives how many of its threads came with vote true. */
int emu_block_sync (int line, bool vote = false);

/* Waits for the lanes of mask; the last one to come runs f over what each of
** them brought (all[lane], for the lanes of mask). */
typedef void EmuTogether (void **all, unsigned mask);
void emu_warp (unsigned mask, void *mine, EmuTogether *f, const char *op,
               int line);
void emu_fence ();

/* Tells of an access that the compiler does not: by atomics, by tiles. */
void emu_touch (const volatile void *p, size_t n, int kind, size_t align,
                void *pc);
void emu_cp_async (void *to, const void *from, size_t n, size_t there);
void emu_cp_commit ();
void emu_cp_wait (int keep);
[[noreturn]] void emu_trap (int line);

void emu_run (const char *name, dim3 grid, dim3 block, size_t shared,
              cudaStream_t s, const void *kernel, EmuBody *body);

extern char emu_report[1024]; /* the last fault, "" if none */
extern int emu_order;         /* 0 forward, 1 reverse, else a random seed */

/* The place of the call, of a barrier's or warp primitive's argument. */
#define EMU_LINE int line = __builtin_LINE()

/* }====================================================== */

/*
** {======================================================
** Threads, launches, shared memory
** =======================================================
*/

#define threadIdx (emu_thread_idx())
#define blockIdx (emu_block_idx())
#define blockDim (emu_block_dim())
#define gridDim (emu_grid_dim())
static const int warpSize = 32;

#define SHARED(T, name, dims) \
  typedef T name##_emu_type dims; \
  static const char name##_emu_site = 0; \
  name##_emu_type &name = *(name##_emu_type *)emu_shared( \
      &name##_emu_site, #name, sizeof(name##_emu_type))

#define DYNAMIC_SHARED(T, name) T *name = (T *)emu_dynamic_shared()

#define LAUNCH(kernel, grid, block, shared, stream, ...) \
  emu_launch(#kernel, (grid), (block), (shared), (stream), (kernel), \
             ##__VA_ARGS__)

/* The arguments are converted once, as <<<>>> does. */
template <class... P, class... A>
void emu_launch (const char *name, dim3 grid, dim3 block, size_t shared,
                 cudaStream_t s, void (*kernel)(P...), A... a) {
  struct Body : EmuBody {
    void (*kernel)(P...);
    std::tuple<P...> args;
    void run () override { std::apply(kernel, args); }
    Body(void (*k)(P...), A... v) : kernel(k), args(static_cast<P>(v)...) {
      size = sizeof *this;
    }
  };
  emu_run(name, grid, block, shared, s, (const void *)kernel,
          new Body(kernel, a...));
}

/* }====================================================== */

/*
** {======================================================
** Barriers and fences
** =======================================================
*/

static inline void __syncthreads (EMU_LINE) { emu_block_sync(line); }

static inline int __syncthreads_count (int p, EMU_LINE) {
  return emu_block_sync(line, p != 0);
}

static inline int __syncthreads_or (int p, EMU_LINE) {
  return emu_block_sync(line, p != 0) > 0;
}

static inline int __syncthreads_and (int p, EMU_LINE) {
  return emu_block_sync(line, p == 0) == 0;
}

static inline void __syncwarp (unsigned mask = ~0u, EMU_LINE) {
  emu_warp(mask, NULL, NULL, "__syncwarp", line);
}

static inline void __threadfence () { emu_fence(); }
static inline void __threadfence_system () { emu_fence(); }
static inline void __threadfence_block () {}
static inline void __trap (EMU_LINE) { emu_trap(line); }

/* Which lanes run together is for the card to choose. */
#define __activemask() emu_use_an_explicit_mask

/* }====================================================== */

/*
** {======================================================
** Primitives of a warp
** =======================================================
*/

template <class T> struct EmuShuffle {
  T value, result;
  int source;
};

template <class T> void emu_shuffle_all (void **all, unsigned mask) {
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) {
      EmuShuffle<T> *x = (EmuShuffle<T> *)all[i];
      if (mask >> x->source & 1)
        x->result = ((EmuShuffle<T> *)all[x->source])->value;
      else memset((void *)&x->result, 0xff, sizeof x->result); /* undefined */
    }
}

template <class T>
T emu_shuffle (unsigned mask, T v, int source, const char *op, int line) {
  EmuShuffle<T> x = { v, v, source };
  emu_warp(mask, &x, emu_shuffle_all<T>, op, line);
  return x.result;
}

/* Lanes are cut into groups of width w; who is out of range keeps its own. */
template <class T>
T __shfl_sync (unsigned mask, T v, int source, int w = 32, EMU_LINE) {
  int lane = emu_lane();
  return emu_shuffle(mask, v, (lane & -w) | (source & (w - 1)), "__shfl_sync",
                     line);
}

template <class T>
T __shfl_up_sync (unsigned mask, T v, unsigned d, int w = 32, EMU_LINE) {
  int lane = emu_lane(), from = lane - (int)d;
  return emu_shuffle(mask, v, from < (lane & -w) ? lane : from,
                     "__shfl_up_sync", line);
}

template <class T>
T __shfl_down_sync (unsigned mask, T v, unsigned d, int w = 32, EMU_LINE) {
  int lane = emu_lane(), from = lane + (int)d;
  return emu_shuffle(mask, v, from >= (lane & -w) + w ? lane : from,
                     "__shfl_down_sync", line);
}

template <class T>
T __shfl_xor_sync (unsigned mask, T v, int x, int w = 32, EMU_LINE) {
  int lane = emu_lane(), from = lane ^ x;
  return emu_shuffle(mask, v, from >= (lane & -w) + w ? lane : from,
                     "__shfl_xor_sync", line);
}

template <class T, class F> void emu_reduce_all (void **all, unsigned mask) {
  int first = __builtin_ctz(mask);
  T r = *(T *)all[first];
  for (int i = first + 1; i < 32; i++)
    if (mask >> i & 1) r = F::of(r, *(T *)all[i]);
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) *(T *)all[i] = r;
}

#define EMU_REDUCE(name, type, e) \
  struct EmuOf_##name { \
    template <class T> static T of (T a, T b) { return e; } \
  }; \
  template <class T> T name(unsigned mask, T v, EMU_LINE) { \
    emu_warp(mask, &v, emu_reduce_all<T, EmuOf_##name>, #name, line); \
    return v; \
  }

EMU_REDUCE(__reduce_add_sync, T, a + b)
EMU_REDUCE(__reduce_min_sync, T, a < b ? a : b)
EMU_REDUCE(__reduce_max_sync, T, a > b ? a : b)
EMU_REDUCE(__reduce_or_sync, T, a | b)
EMU_REDUCE(__reduce_and_sync, T, a &b)
EMU_REDUCE(__reduce_xor_sync, T, a ^ b)

static inline unsigned __ballot_sync (unsigned mask, int p, EMU_LINE) {
  unsigned bit = p ? 1u << emu_lane() : 0;
  emu_warp(mask, &bit, emu_reduce_all<unsigned, EmuOf___reduce_or_sync>,
           "__ballot_sync", line);
  return bit;
}

static inline int __any_sync (unsigned mask, int p, EMU_LINE) {
  return __ballot_sync(mask, p, line) != 0;
}

static inline int __all_sync (unsigned mask, int p, EMU_LINE) {
  return __ballot_sync(mask, !p, line) == 0;
}

template <class T> void emu_match_all (void **all, unsigned mask) {
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) {
      EmuShuffle<T> *x = (EmuShuffle<T> *)all[i];
      for (int j = 0; j < 32; j++)
        if (mask >> j & 1 && ((EmuShuffle<T> *)all[j])->value == x->value)
          x->source |= (int)(1u << j);
    }
}

/* The lanes of mask that brought the same. */
template <class T> unsigned __match_any_sync (unsigned mask, T v, EMU_LINE) {
  EmuShuffle<T> x = { v, v, 0 };
  emu_warp(mask, &x, emu_match_all<T>, "__match_any_sync", line);
  return (unsigned)x.source;
}

/* }====================================================== */

/*
** {======================================================
** Atomics.  Fibers are not preempted, so a plain update is one.
** =======================================================
*/

template <class T> struct EmuSame { typedef T type; };

#define EMU_ATOMIC_FUNCTION __attribute__((noinline, no_sanitize("thread"))) T

#define EMU_ATOMIC_OP(name, e) \
  template <class T> \
  EMU_ATOMIC_FUNCTION name(T *p, typename EmuSame<T>::type v) { \
    emu_touch(p, sizeof *p, EMU_ATOMIC, sizeof *p, \
              __builtin_return_address(0)); \
    T old = *p; \
    *p = (T)(e); \
    return old; \
  }

EMU_ATOMIC_OP(atomicAdd, old + v)
EMU_ATOMIC_OP(atomicSub, old - v)
EMU_ATOMIC_OP(atomicExch, v)
EMU_ATOMIC_OP(atomicOr, old | v)
EMU_ATOMIC_OP(atomicAnd, old &v)
EMU_ATOMIC_OP(atomicXor, old ^ v)
EMU_ATOMIC_OP(atomicMax, old > v ? old : v)
EMU_ATOMIC_OP(atomicMin, old < v ? old : v)
EMU_ATOMIC_OP(atomicInc, old >= v ? 0 : old + 1)
EMU_ATOMIC_OP(atomicDec, old == 0 || old > v ? v : old - 1)

template <class T>
EMU_ATOMIC_FUNCTION atomicCAS (T *p, typename EmuSame<T>::type expected,
                               typename EmuSame<T>::type v) {
  emu_touch(p, sizeof *p, EMU_ATOMIC, sizeof *p, __builtin_return_address(0));
  T old = *p;
  if (old == expected) *p = v;
  return old;
}

/* }====================================================== */

#include "intrinsics.h"
#include "tile.h"

#endif
