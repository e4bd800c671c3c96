/* sort.cu - the first k of each line in order, by value and then by place.
**
** An element becomes a pair: a key whose order as an unsigned integer is the
** order wanted, and its place, which ties are broken by.  A block sorts up to
** a chunk of pairs in shared memory (Batcher's bitonic sort).  Of a longer
** line each chunk's k first go on to the next round, if k is a small part of
** a chunk; else the line is sorted by radix. */

#include "radix.h"

enum {
  CHUNK_BYTES = 32768, /* of shared memory */
  THREADS = 512,       /* of a block that sorts a whole chunk */
  LEAST = 128          /* of one that sorts several short lines */
};

/*
** {======================================================
** Keys
** =======================================================
*/

/* IEEE numbers in order: all NaN as the largest, both zeros the same.  sign
** is the top bit, and inf the bits of infinity. */
template <class K> static __device__ inline K float_key (K u, K sign, K inf) {
  K size = u & (sign - 1);
  if (size > inf) return sign | (sign - 1);
  if (size == 0) return sign;
  return u & sign ? sign - size : sign + size;
}

/* A dtype's bits, its keys, and how many bits of these it uses. */
template <int dtype> struct Code;

#define CODE(dtype, bits_type, key_type, used, formula) \
  template <> struct Code<dtype> { \
    typedef bits_type Bits; \
    typedef key_type Key; \
    enum { BITS = used }; \
    static __device__ Key key (Bits u) { return formula; } \
  };

CODE(FNN_BOOL, uint8_t, uint32_t, 8, u != 0)
CODE(FNN_U8, uint8_t, uint32_t, 8, u)
CODE(FNN_I32, uint32_t, uint32_t, 32, u ^ 0x80000000u)
CODE(FNN_I64, uint64_t, uint64_t, 64, u ^ (uint64_t)1 << 63)
CODE(FNN_F16, uint16_t, uint32_t, 16, float_key<uint32_t>(u, 0x8000, 0x7c00))
CODE(FNN_BF16, uint16_t, uint32_t, 16, float_key<uint32_t>(u, 0x8000, 0x7f80))
CODE(FNN_F32, uint32_t, uint32_t, 32,
     float_key<uint32_t>(u, 0x80000000u, 0x7f800000u))
CODE(FNN_F64, uint64_t, uint64_t, 64,
     float_key<uint64_t>(u, (uint64_t)1 << 63, (uint64_t)0x7ff << 52))

/* Both of one size, so that no byte of it is undefined. */
template <class K> struct Pair { K key, place; };

template <class K>
static __device__ inline bool before (const Pair<K> &a, const Pair<K> &b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

/* Comes after every pair of a line: no place is so large. */
template <class K> static __device__ inline Pair<K> last_pair () {
  return { (K) ~(K)0, (K) ~(K)0 };
}

/* }====================================================== */

/*
** {======================================================
** Lines
** =======================================================
*/

/* x (outer, n, inner), y and ids (outer, k, inner).  The lines are those from
** the first on; line l is outer l / inner, column l % inner. */
typedef struct Lines {
  const void *x;
  void *y;
  int64_t *ids;
  int64_t n, inner, k, first, lines;
  bool largest;
} Lines;

template <int dtype>
static __device__ inline Pair<typename Code<dtype>::Key>
load_pair (const Lines &s, int64_t line, int64_t i) {
  typedef typename Code<dtype>::Key K;
  const typename Code<dtype>::Bits *x =
      (const typename Code<dtype>::Bits *)s.x;
  int64_t outer = (s.first + line) / s.inner;
  int64_t at = s.first + line - outer * s.inner;
  K key = Code<dtype>::key(x[(outer * s.n + i) * s.inner + at]);
  K ones = (K) ~(K)0 >> (8 * sizeof(K) - Code<dtype>::BITS);
  return { s.largest ? (K)(key ^ ones) : key, (K)i };
}

/* The line's j-th of the result, which stood at place. */
template <int dtype>
static __device__ inline void store_place (const Lines &s, int64_t line,
                                           int64_t j, int64_t place) {
  typedef typename Code<dtype>::Bits Bits;
  int64_t outer = (s.first + line) / s.inner;
  int64_t at = s.first + line - outer * s.inner;
  int64_t to = (outer * s.k + j) * s.inner + at;
  s.ids[to] = place;
  ((Bits *)s.y)[to] =
      ((const Bits *)s.x)[(outer * s.n + place) * s.inner + at];
}

/* }====================================================== */

/*
** {======================================================
** Chunks
** =======================================================
*/

/* Sorts size pairs, a power of 2, in shared memory by blockDim.x threads;
** the lines of a block side by side, all at the same step. */
template <class K>
static __device__ inline void sort_chunk (Pair<K> *p, int size) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
        int lo = 2 * i - (i & (step - 1)), hi = lo + step;
        Pair<K> a = p[lo], b = p[hi];
        bool up = (lo & run) == 0;
        if (before(b, a) == up) {
          p[lo] = b;
          p[hi] = a;
        }
      }
    }
  __syncthreads();
}

/* Lines of at most `size` elements: threadIdx.y is the line in its block. */
template <int dtype> static __global__ void sort_short (Lines s, int size) {
  typedef typename Code<dtype>::Key K;
  DYNAMIC_SHARED(Pair<K>, all);
  Pair<K> *p = all + threadIdx.y * size;
  int64_t line = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    p[i] = line < s.lines && i < s.n ? load_pair<dtype>(s, line, i)
                                     : last_pair<K>();
  sort_chunk(p, size);
  if (line >= s.lines) return;
  for (int64_t j = threadIdx.x; j < s.k; j += blockDim.x)
    store_place<dtype>(s, line, j, (int64_t)p[j].place);
}

/* The k first of each chunk of size elements of a line, k apart, to `to`;
** from: pairs (lines, n), or NULL for the lines themselves. */
template <int dtype>
static __global__ void
first_of_chunks (Lines s, const Pair<typename Code<dtype>::Key> *from,
                 Pair<typename Code<dtype>::Key> *to, int64_t n, int size) {
  typedef typename Code<dtype>::Key K;
  DYNAMIC_SHARED(Pair<K>, p);
  int64_t line = blockIdx.y, at = (int64_t)blockIdx.x * size;
  int64_t have = least(size, n - at);
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    if (i >= have) p[i] = last_pair<K>();
    else if (from != NULL) p[i] = from[line * n + at + i];
    else p[i] = load_pair<dtype>(s, line, at + i);
  sort_chunk(p, size);
  int64_t chunks = gridDim.x;
  to += (line * chunks + blockIdx.x) * s.k;
  for (int64_t j = threadIdx.x; j < s.k; j += blockDim.x) to[j] = p[j];
}

/* The k first of n pairs a line, as the result. */
template <int dtype>
static __global__ void
first_of_pairs (Lines s, const Pair<typename Code<dtype>::Key> *from,
                int64_t n, int size) {
  typedef typename Code<dtype>::Key K;
  DYNAMIC_SHARED(Pair<K>, p);
  int64_t line = blockIdx.x;
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    p[i] = i < n ? from[line * n + i] : last_pair<K>();
  sort_chunk(p, size);
  for (int64_t j = threadIdx.x; j < s.k; j += blockDim.x)
    store_place<dtype>(s, line, j, (int64_t)p[j].place);
}

/* The least power of 2 that holds n, at least 2. */
static int power_of (int64_t n) {
  int p = 2;
  while (p < n) p *= 2;
  return p;
}

template <int dtype>
static void short_lines (const Tensor *on, const Lines &s) {
  int size = power_of(s.n), across = size / 2 < THREADS ? size / 2 : THREADS;
  dim3 block(across, across < LEAST ? LEAST / across : 1);
  int64_t blocks = (s.lines + block.y - 1) / block.y;
  size_t bytes = block.y * size * sizeof(Pair<typename Code<dtype>::Key>);
  RUN(on, (sort_short<dtype>), (unsigned)blocks, block, bytes, s, size);
}

/* Rounds, in each of which a chunk leaves its k first: those of a line whose
** chunks are in order stand in order, where they are equal. */
template <int dtype>
static void narrow_down (const Tensor *on, const Lines &s, int chunk) {
  typedef Pair<typename Code<dtype>::Key> P;
  const size_t bytes = (size_t)chunk * sizeof(P);
  const P *from = NULL;
  int64_t n = s.n;
  while (from == NULL || n > chunk) {
    int64_t chunks = (n + chunk - 1) / chunk;
    P *to = scratch<P>(on, s.lines * chunks * s.k);
    dim3 grid((unsigned)chunks, (unsigned)s.lines);
    RUN(on, (first_of_chunks<dtype>), grid, THREADS, bytes, s, from, to, n,
        chunk);
    from = to;
    n = chunks * s.k;
  }
  int size = power_of(n);
  RUN(on, (first_of_pairs<dtype>), (unsigned)s.lines,
      size / 2 < THREADS ? size / 2 : THREADS, size * sizeof(P), s, from, n,
      size);
}

/* }====================================================== */

/*
** {======================================================
** Long lines
** =======================================================
*/

template <int dtype>
static __global__ void load_lines (Lines s,
                                   Pairs<typename Code<dtype>::Key> p) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < p.lines * p.n; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t line = i / p.n, at = i - line * p.n;
    p.key[i] = load_pair<dtype>(s, line, at).key;
    p.place[i] = (uint32_t)at;
  }
}

template <int dtype>
static __global__ void store_lines (Lines s, const uint32_t *place) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < s.lines * s.k; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t line = i / s.k, j = i - line * s.k;
    store_place<dtype>(s, line, j, place[line * s.n + j]);
  }
}

template <int dtype>
static void long_lines (const Tensor *on, const Lines &s) {
  enum { EACH = 256 };
  Pairs<typename Code<dtype>::Key> p;
  radix_pairs(on, &p, s.lines, s.n, "topk");
  RUN(on, (load_lines<dtype>), blocks_for(s.lines * s.n, EACH), EACH, 0, s, p);
  radix_sort(on, &p, Code<dtype>::BITS);
  RUN(on, (store_lines<dtype>), blocks_for(s.lines * s.k, EACH), EACH, 0, s,
      (const uint32_t *)p.place);
}

/* }====================================================== */

/* Long lines by as many at a time as have PAIRS pairs. */
template <int dtype> static void sort_lines (const Tensor *on, Lines s) {
  enum { PAIRS = 1 << 25, LINES = 32768 };
  const int chunk = CHUNK_BYTES / (int)sizeof(Pair<typename Code<dtype>::Key>);
  int64_t all = s.lines;
  if (s.n <= chunk) {
    short_lines<dtype>(on, s);
    return;
  }
  for (; s.first < all; s.first += s.lines) {
    size_t mark = fnn_mark();
    s.lines = min64(min64(all - s.first, LINES), max64(PAIRS / s.n, 1));
    if (4 * s.k <= chunk) narrow_down<dtype>(on, s, chunk);
    else long_lines<dtype>(on, s);
    fnn_escape(mark, NULL);
  }
}

extern "C" void cuda_topk (Tensor *y, Tensor *ids, const Tensor *x,
                           int64_t outer, int64_t n, int64_t inner, int64_t k,
                           bool largest) {
  Lines s = {
    tensor_data(x), tensor_data(y), data_of<int64_t>(ids), n, inner, k, 0,
    outer * inner,  largest
  };
  if (y->numel == 0) return;
#define CASE(dtype) \
  case dtype: sort_lines<dtype>(x, s); break
  switch ((fnn_Dtype)x->dtype) {
    CASE(FNN_BOOL);
    CASE(FNN_U8);
    CASE(FNN_I32);
    CASE(FNN_I64);
    CASE(FNN_F16);
    CASE(FNN_BF16);
    CASE(FNN_F32);
    CASE(FNN_F64);
  }
#undef CASE
}
