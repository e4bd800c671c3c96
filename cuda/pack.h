/* pack.h - elements side by side that a thread reads and writes at once. */

#ifndef cuda_pack_h
#define cuda_pack_h

#include "cuda.h"

template <class T, int N> struct alignas(N * sizeof(T)) Pack { T v[N]; };

/* Whether runs of n elements at these addresses (NULL: none) come in packs of
** 4 of dtype t. */
static inline bool pack_fits (fnn_Dtype t, int64_t n, const void *x,
                              const void *y, const void *z) {
  uintptr_t all = (uintptr_t)x | (uintptr_t)y | (uintptr_t)z;
  return n % 4 == 0 && all % (4 * fnn_dtype_size(t)) == 0;
}

/* The least power of two that reaches n, of those up to most. */
static inline unsigned pack_power (int64_t n, unsigned most) {
  unsigned p = 1;
  while (p < most && p < n) p *= 2;
  return p;
}

#endif
