// gpu.h: the one header a .cu file includes. Under nvcc it is CUDA; under a
// host C++ compiler it is the emulator. Everything a kernel uses that is not
// the same text in both worlds is named here.
#ifndef GPU_H
#define GPU_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef __CUDACC__
#include "emulate/emulate.h"
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, smem, stream, ...) \
  kernel<<<(grid), (block), (smem), (stream)>>>(__VA_ARGS__)
#define SHARED(T, name, dims) __shared__ T name dims
#define DYNAMIC_SHARED(T, name)                              \
  extern __shared__ __align__(16) unsigned char emu_dynamic[]; \
  T *name = reinterpret_cast<T *>(emu_dynamic)

// CUDA 12 has another cudaGraphInstantiate than CUDA 11.
static inline cudaError_t graph_instantiate(cudaGraphExec_t *x, cudaGraph_t g) {
#if CUDART_VERSION >= 12000
  return cudaGraphInstantiate(x, g, 0);
#else
  return cudaGraphInstantiate(x, g, NULL, NULL, 0);
#endif
}

// d = a b + c on a 16x8 tile, k = 16; fragments as PTX ISA "mma.m16n8k16".
__device__ inline void mma16816(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4], __half) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else  // sm_75: two k = 8 steps
  float t[4];
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};"
      : "=f"(t[0]), "=f"(t[1]), "=f"(t[2]), "=f"(t[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[2]), "r"(a[3]), "r"(b[1]), "f"(t[0]), "f"(t[1]), "f"(t[2]), "f"(t[3]));
#endif
}
__device__ inline void mma16816(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4], __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
  __trap();  // no bf16 tensor cores before sm_80
#endif
}
__device__ inline void mma16816(uint32_t d[2], const uint32_t a[4], const uint32_t b[2], const uint32_t c[2], __half) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%8,%9};"
      : "=r"(d[0]), "=r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]));
#else
  __trap();
#endif
}
// four 8x8 16-bit matrices; lane i gives the address of row i % 8 of matrix i / 8
__device__ inline void ldmatrix_x4(uint32_t r[4], const void *row) {
  uint32_t s = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s) : "memory");
}
__device__ inline void ldmatrix_x4_trans(uint32_t r[4], const void *row) {
  uint32_t s = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s) : "memory");
}
__device__ inline void cp_async16(void *shared, const void *global) {
#if __CUDA_ARCH__ >= 800
  uint32_t s = (uint32_t)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s), "l"(global) : "memory");
#else
  *(int4 *)shared = *(const int4 *)global;
#endif
}
__device__ inline void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> __device__ inline void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
#endif
#endif
