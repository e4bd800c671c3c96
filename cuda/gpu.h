/* gpu.h - the one header that a .cu file needs: CUDA under nvcc, the emulator
** under a C++ compiler of the host.  What is not the same text in both worlds
** has a name here, and all PTX is here.
**
**   SHARED(T, name, [n][m])   an array in shared memory
**   DYNAMIC_SHARED(T, name)   the bytes that the launch asked for
**   LAUNCH(kernel, grid, block, shared, stream, arguments)
**   mma16816, ldmatrix_x4     tensor cores, by whole warps
**   KERNEL_PART               of a function that many kernels inline; emulated
**                             it is called, to spare the compiler
**   UNROLL                    of the loop that follows, however large: what it
**                             indexes stays in registers
**   cp_async16                global to shared memory, waited for later
**   ARCHITECTURES             that this is compiled for, in order: 750, 800 ...
*/

#ifndef cuda_gpu_h
#define cuda_gpu_h

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __CUDACC__
#include "emulate/language.h"

#define KERNEL_PART __attribute__((noinline))
#define UNROLL
#define ARCHITECTURES 750, 800, 860, 890, 900
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define KERNEL_PART inline
#define UNROLL _Pragma("unroll")
#define ARCHITECTURES __CUDA_ARCH_LIST__

#define LAUNCH(kernel, grid, block, shared, stream, ...) \
  kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)

#define SHARED(T, name, dims) __shared__ T name dims

#define DYNAMIC_SHARED(T, name) \
  extern __shared__ __align__(16) unsigned char dynamic_shared_[]; \
  T *name = reinterpret_cast<T *>(dynamic_shared_)

#define PTX_INLINE static __device__ __forceinline__

/*
** {======================================================
** d = a b + c of a warp: a (16, 16), b (16, 8), d and c (16, 8).  What each
** lane holds of them is in PTX ISA, "Matrix Fragments for mma.m16n8k16".
** Before sm_80 half goes in two steps of k = 8; the others do not exist.
** =======================================================
*/

#define MMA_F32(ptx) \
  asm volatile(ptx " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, " \
                   "{%10,%11,%12,%13};" \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), \
                 "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]))

#define MMA_F32_K8(ptx, d, a0, a1, b, c) \
  asm volatile(ptx " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) \
               : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), \
                 "f"(c[3]))

PTX_INLINE void mma16816 (float d[4], const uint32_t a[4], const uint32_t b[2],
                          const float c[4], __half) {
#if __CUDA_ARCH__ >= 800
  MMA_F32("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
#else
  float t[4];
  MMA_F32_K8("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", t, a[0], a[1],
             b[0], c);
  MMA_F32_K8("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", d, a[2], a[3],
             b[1], t);
#endif
}

PTX_INLINE void mma16816 (float d[4], const uint32_t a[4], const uint32_t b[2],
                          const float c[4], __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
  MMA_F32("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
#else
  __trap();
#endif
}

/* Sums in half. */
PTX_INLINE void mma16816 (uint32_t d[2], const uint32_t a[4],
                          const uint32_t b[2], const uint32_t c[2], __half) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
               "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                 "r"(b[1]), "r"(c[0]), "r"(c[1]));
#else
  __trap();
#endif
}

#undef MMA_F32
#undef MMA_F32_K8

/* }====================================================== */

/*
** {======================================================
** Shared memory
** =======================================================
*/

PTX_INLINE uint32_t shared_address (const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four matrices of 8 x 8 16-bit numbers: lane i gives the address of row
** i % 8 of matrix i / 8, and gets of each the columns 2 (i % 4) and the next
** of row i / 4; transposed, of the matrices' transposes. */
PTX_INLINE void ldmatrix_x4 (uint32_t r[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
               "{%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

PTX_INLINE void ldmatrix_x4_trans (uint32_t r[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
               "{%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/* 16 bytes, aligned to 16.  Before sm_80 they are copied at once. */
PTX_INLINE void cp_async16 (void *shared, const void *global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   shared_address(shared)),
               "l"(global)
               : "memory");
#else
  *(int4 *)shared = *(const int4 *)global;
#endif
}

/* Sixteen zeros where there is nothing to copy: global is not read then. */
PTX_INLINE void cp_async16_or_zero (void *shared, const void *global,
                                    bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(there ? 16 : 0)
               : "memory");
#else
  *(int4 *)shared = there ? *(const int4 *)global : make_int4(0, 0, 0, 0);
#endif
}

/* Ends a group of copies; waits until at most N groups are not done.  What a
** thread waited for the others see after a barrier. */
PTX_INLINE void cp_async_commit () {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int N> PTX_INLINE void cp_async_wait () {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* }====================================================== */

#undef PTX_INLINE

#endif

/* CUDA 12 has another cudaGraphInstantiate than CUDA 11. */
static inline cudaError_t graph_instantiate (cudaGraphExec_t *x,
                                             cudaGraph_t g) {
#if CUDART_VERSION >= 12000
  return cudaGraphInstantiate(x, g, 0);
#else
  return cudaGraphInstantiate(x, g, NULL, NULL, 0);
#endif
}

#endif
