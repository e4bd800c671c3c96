/* radix.h - pairs of a key and a place, sorted by key; and sums of what stands
** before. */

#ifndef cuda_radix_h
#define cuda_radix_h

#include "cuda.h"

enum { SCAN_THREADS = 256 };

/* min64 of the card. */
static __device__ inline int64_t least (int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The sum of v over the threads before this one, of a block of SCAN_THREADS
** in one dim; *total: that of all.  All threads call it; between two calls
** there must be a barrier. */
template <class N> static __device__ inline N block_scan (N v, N *total) {
  SHARED(N, part, [SCAN_THREADS / 32]);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  N sum = v, before = 0, all = 0;
  for (int d = 1; d < 32; d *= 2) {
    N other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) part[warp] = sum;
  __syncthreads();
  for (int w = 0; w < SCAN_THREADS / 32; w++) {
    if (w < warp) before += part[w];
    all += part[w];
  }
  *total = all;
  return before + sum - v;
}

/* Each element of x (rows, n) becomes the sum of those before it in its row;
** totals (rows): those of the rows.  A block a row. */
template <class N>
static __global__ void scan_rows (N *x, N *totals, int64_t n) {
  N carry = 0;
  x += blockIdx.x * n;
  for (int64_t from = 0; from < n; from += SCAN_THREADS) {
    int64_t i = from + threadIdx.x;
    N total, before = block_scan(i < n ? x[i] : (N)0, &total);
    if (i < n) x[i] = carry + before;
    carry += total;
    __syncthreads(); /* not needed by the last piece of a row */
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

/* Lines of n pairs each, on the card; radix_pairs makes uninitialised ones
** that live as long as the frame's mark is not passed. */
template <class K> struct Pairs {
  int64_t lines, n;
  K *key, *other_key;
  uint32_t *place, *other_place;
};

/* radix_sort sorts each line by the lowest bits of its keys; equal ones keep
** their order.  on: a tensor of the card. */
void radix_pairs (const Tensor *on, Pairs<uint32_t> *p, int64_t lines,
                  int64_t n, const char *op);
void radix_pairs (const Tensor *on, Pairs<uint64_t> *p, int64_t lines,
                  int64_t n, const char *op);
void radix_sort (const Tensor *on, Pairs<uint32_t> *p, int bits);
void radix_sort (const Tensor *on, Pairs<uint64_t> *p, int bits);

/* Uninitialised memory on the card of `on`, as long as the frame. */
template <class T> static T *scratch (const Tensor *on, int64_t count) {
  int64_t bytes = count * (int64_t)sizeof(T);
  return (T *)tensor_data(tensor_new(1, &bytes, FNN_U8, on->storage->device));
}

#endif
