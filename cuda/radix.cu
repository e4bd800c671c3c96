/* radix.cu - radix sort of pairs, the least significant byte first.
**
** A pass counts the digits of each tile, sums the counts to the places where
** the digits of a tile start, and moves the pairs there.  Every step keeps
** the order of equal digits: a warp takes 32 neighbours at a time, and the
** rank of each among those of its digit is a ballot away (Ashkiani et al.
** 2016, "GPU multisplit"). */

#include "radix.h"

enum {
  DIGITS = 256,
  THREADS = SCAN_THREADS, /* a digit each, too */
  WARPS = THREADS / 32,
  ROUNDS = 8, /* of 32 pairs, a warp */
  TILE = THREADS * ROUNDS
};

template <class K> static __device__ inline unsigned digit (K key, int shift) {
  return (unsigned)(key >> shift) & (DIGITS - 1);
}

/* counts (lines, DIGITS, tiles) */
template <class K>
static __global__ void count_digits (const K *key, uint32_t *counts,
                                     int64_t lines, int64_t n, int64_t tiles,
                                     int shift) {
  SHARED(uint32_t, count, [DIGITS]);
  for (int64_t line = blockIdx.y; line < lines; line += gridDim.y) {
    int64_t from = (int64_t)blockIdx.x * TILE, end = least(from + TILE, n);
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = from + threadIdx.x; i < end; i += THREADS)
      atomicAdd(&count[digit(key[line * n + i], shift)], 1u);
    __syncthreads();
    counts[(line * DIGITS + threadIdx.x) * tiles + blockIdx.x] =
        count[threadIdx.x]; /* its own: it may be cleared at once */
  }
}

/* The lanes of the warp that have this lane's digit, of those that are in. */
static __device__ inline unsigned same_digit (unsigned d, bool in) {
  unsigned same = __ballot_sync(~0u, in);
  for (int bit = 0; bit < 8; bit++) {
    bool set = d >> bit & 1;
    unsigned ones = __ballot_sync(~0u, set);
    same &= set ? ones : ~ones;
  }
  return same;
}

/* at[warp][digit]: where the next pair of the warp and digit goes; starts from
** the counts of the warps. */
static __device__ inline void start_warps (uint32_t (*at)[DIGITS],
                                           const uint32_t *counts,
                                           const uint32_t *totals,
                                           int64_t tiles) {
  int d = threadIdx.x;
  uint32_t all, start = block_scan(totals[d], &all); /* a barrier, too */
  start += counts[d * tiles + blockIdx.x];
  for (int w = 0; w < WARPS; w++) {
    uint32_t count = at[w][d];
    at[w][d] = start;
    start += count;
  }
}

/* Moves the warp's part of the tile, from .. end-1. */
template <class K>
static __device__ inline void move_warp (const Pairs<K> p, uint32_t *at,
                                         int64_t line, int64_t from,
                                         int64_t end, int shift) {
  int lane = threadIdx.x % 32;
  for (int64_t i = from + lane; i - lane < end; i += 32) {
    bool in = i < end;
    K key = in ? p.key[line * p.n + i] : 0;
    unsigned d = digit(key, shift), same = same_digit(d, in);
    unsigned before = same & ((1u << lane) - 1);
    if (in) {
      int64_t to = line * p.n + at[d] + __popc(before);
      p.other_key[to] = key;
      p.other_place[to] = p.place[line * p.n + i];
    }
    __syncwarp();
    if (in && before == 0) at[d] += __popc(same);
    __syncwarp();
  }
}

/* A block moves a tile, a warp a part of it. */
template <class K>
static __global__ void move_pairs (Pairs<K> p, const uint32_t *counts,
                                   const uint32_t *totals, int64_t tiles,
                                   int shift) {
  SHARED(uint32_t, at, [WARPS][DIGITS]);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t line = blockIdx.y; line < p.lines; line += gridDim.y) {
    int64_t from = (int64_t)blockIdx.x * TILE + warp * (TILE / WARPS);
    int64_t end = least(from + TILE / WARPS, p.n);
    for (int w = 0; w < WARPS; w++) at[w][threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = from + lane; i < end; i += 32)
      atomicAdd(&at[warp][digit(p.key[line * p.n + i], shift)], 1u);
    start_warps(at, counts + line * DIGITS * tiles, totals + line * DIGITS,
                tiles);
    __syncthreads();
    move_warp(p, at[warp], line, from, end, shift);
    __syncthreads(); /* not needed by the first gridDim.y lines */
  }
}

template <class K> static void sort (const Tensor *on, Pairs<K> *p, int bits) {
  int64_t tiles = (p->n + TILE - 1) / TILE;
  dim3 grid((unsigned)tiles, (unsigned)min64(p->lines, 65535));
  if (p->n == 0 || p->lines == 0) return;
  uint32_t *counts = scratch<uint32_t>(on, p->lines * DIGITS * tiles);
  uint32_t *totals = scratch<uint32_t>(on, p->lines * DIGITS);
  for (int shift = 0; shift < bits; shift += 8) {
    RUN(on, (count_digits<K>), grid, THREADS, 0, (const K *)p->key, counts,
        p->lines, p->n, tiles, shift);
    RUN(on, (scan_rows<uint32_t>), (unsigned)(p->lines * DIGITS), SCAN_THREADS,
        0, counts, totals, tiles);
    RUN(on, (move_pairs<K>), grid, THREADS, 0, *p, (const uint32_t *)counts,
        (const uint32_t *)totals, tiles, shift);
    K *key = p->key;
    uint32_t *place = p->place;
    p->key = p->other_key;
    p->place = p->other_place;
    p->other_key = key;
    p->other_place = place;
  }
}

template <class K>
static void make (const Tensor *on, Pairs<K> *p, int64_t lines, int64_t n,
                  const char *op) {
  if (n > UINT32_MAX || lines > INT32_MAX / DIGITS)
    fnn_throw(FNN_ESHAPE, "%s: %lld lines of %lld elements are too many", op,
              (long long)lines, (long long)n);
  p->lines = lines;
  p->n = n;
  p->key = scratch<K>(on, lines * n);
  p->other_key = scratch<K>(on, lines * n);
  p->place = scratch<uint32_t>(on, lines * n);
  p->other_place = scratch<uint32_t>(on, lines * n);
}

void radix_pairs (const Tensor *on, Pairs<uint32_t> *p, int64_t lines,
                  int64_t n, const char *op) {
  make(on, p, lines, n, op);
}

void radix_pairs (const Tensor *on, Pairs<uint64_t> *p, int64_t lines,
                  int64_t n, const char *op) {
  make(on, p, lines, n, op);
}

void radix_sort (const Tensor *on, Pairs<uint32_t> *p, int bits) {
  sort(on, p, bits);
}

void radix_sort (const Tensor *on, Pairs<uint64_t> *p, int bits) {
  sort(on, p, bits);
}
