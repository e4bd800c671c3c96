/* index.cu - elements and rows moved by ids.
**
** What is added at one place is added by one thread, in the order of the ids:
** sums have the same bits every time.  The thread is that of the first of
** equal ids, which it finds by looking around where ids are few; else the ids
** are sorted first.  Ids out of range are passed over: check_ids tells. */

#include "flags.h"
#include "radix.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* a / b, mostly of numbers that fit 32 bits, which divide faster. */
static __device__ inline int64_t quotient (int64_t a, int64_t b) {
  if (((uint64_t)(a | b) >> 32) == 0) return (uint32_t)a / (uint32_t)b;
  return a / b;
}

static __device__ inline bool in_range (int64_t id, int64_t n) {
  return (uint64_t)id < (uint64_t)n;
}

static size_t size_of (const Tensor *x) {
  return fnn_dtype_size((fnn_Dtype)x->dtype);
}

/* The number of elements behind one of dim. */
static int64_t inner_of (const Tensor *x, int dim) {
  int64_t n = 1;
  for (int d = dim + 1; d < x->ndim; d++) n *= x->shape[d];
  return n;
}

/*
** {======================================================
** Check_ids
** =======================================================
*/

/* The last block to come tells the first wrong place of all.  Fences: what a
** block has found is there before it has come, and is looked for after that;
** the host sees `set` after what it stands for. */
static __global__ void find_wrong (const int64_t *ids, int64_t count,
                                   int64_t n, int64_t ignore, int64_t call,
                                   Search *s, Flag *flag) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; i < count; i += (int64_t)gridDim.x * THREADS)
    if (!in_range(ids[i], n) && ids[i] != ignore) {
      atomicMax(&s->first, (unsigned long long)(count - i));
      break;
    }
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicInc(&s->arrived, gridDim.x - 1) != gridDim.x - 1) return;
  __threadfence();
  int64_t first = (int64_t)atomicExch(&s->first, 0ull);
  if (first == 0 || *(volatile int64_t *)&flag->set != 0) return;
  flag->call = call;
  flag->place = count - first;
  flag->id = ids[count - first];
  flag->n = n;
  __threadfence_system();
  *(volatile int64_t *)&flag->set = 1;
}

extern "C" void cuda_check_ids (const Tensor *ids, int64_t n, int64_t ignore,
                                const char *op, const char *what,
                                int64_t *bad) {
  enum { BLOCKS = 256 };
  Flag *flag;
  Search *search;
  *bad = -1;
  if (ids->numel == 0) return;
  int64_t call = flags_call(cuda_of(ids), op, what, &flag, &search);
  int64_t blocks = min64(blocks_for(ids->numel, 4 * THREADS), BLOCKS);
  RUN(ids, find_wrong, (unsigned)blocks, THREADS, 0,
      (const int64_t *)data_of<int64_t>(ids), ids->numel, n, ignore, call,
      search, flag);
}

/* }====================================================== */

/*
** {======================================================
** Index_select and gather
** =======================================================
*/

/* Runs the statement with W the widest word that divides `bytes` and both
** addresses; up to one of most bytes. */
#define WITH_WORD(bytes, y, x, ...) \
  switch (word_of(bytes, y, x)) { \
    case 16: { \
      typedef uint4 W; \
      __VA_ARGS__; \
    } break; \
    case 8: { \
      typedef uint64_t W; \
      __VA_ARGS__; \
    } break; \
    case 4: { \
      typedef uint32_t W; \
      __VA_ARGS__; \
    } break; \
    case 2: { \
      typedef uint16_t W; \
      __VA_ARGS__; \
    } break; \
    default: { \
      typedef uint8_t W; \
      __VA_ARGS__; \
    } break; \
  }

static int word_of (size_t bytes, const void *y, const void *x) {
  uintptr_t all = bytes | (uintptr_t)y | (uintptr_t)x | 16;
  return (int)(all & (~all + 1));
}

/* Rows of `width` words: y (rows) from x (outer, n), by ids (count). */
template <class W>
static __global__ void select_rows (W *y, const W *x, const int64_t *ids,
                                    int64_t rows, int64_t count, int64_t n,
                                    int64_t width) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  for (; row < rows; row += (int64_t)gridDim.x * blockDim.y) {
    int64_t outer = quotient(row, count), id = ids[row - outer * count];
    bool is = in_range(id, n);
    const W *from = x + (outer * n + id) * width;
    int64_t i = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    for (; i < width; i += (int64_t)gridDim.y * blockDim.x)
      y[row * width + i] = is ? from[i] : W{};
  }
}

extern "C" void cuda_index_select (Tensor *y, const Tensor *x,
                                   const Tensor *ids, int64_t outer, int64_t n,
                                   int64_t inner) {
  size_t bytes = (size_t)inner * size_of(x);
  int64_t rows = outer * ids->numel;
  if (rows == 0 || bytes == 0) return;
  WITH_WORD(
      bytes, data_of<char>(y), data_of<char>(x),
      int64_t width = (int64_t)(bytes / sizeof(W));
      unsigned across = 1;
      while (across < THREADS && across < width) across *= 2;
      dim3 block(across, THREADS / across);
      int64_t chunks = min64((width + 4 * across - 1) / (4 * across), 65535);
      dim3 grid(blocks_for(rows, block.y), (unsigned)chunks);
      RUN(y, (select_rows<W>), grid, block, 0, data_of<W>(y),
          (const W *)data_of<W>(x), (const int64_t *)data_of<int64_t>(ids),
          rows, ids->numel, n, width))
}

/* y (outer, count, inner) from x (outer, n, inner), ids of y's shape. */
template <class W>
static __global__ void gather_elements (W *y, const W *x, const int64_t *ids,
                                        int64_t numel, int64_t count,
                                        int64_t n, int64_t inner) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; i < numel; i += (int64_t)gridDim.x * THREADS) {
    int64_t row = quotient(i, inner), outer = quotient(row, count);
    int64_t at = i - row * inner, id = ids[i];
    y[i] = in_range(id, n) ? x[(outer * n + id) * inner + at] : (W)0;
  }
}

extern "C" void cuda_gather (Tensor *y, const Tensor *x, const Tensor *ids,
                             int dim) {
  if (y->numel == 0) return;
#define CALL(W) \
  RUN(y, (gather_elements<W>), blocks_for(y->numel, THREADS), THREADS, 0, \
      data_of<W>(y), (const W *)data_of<W>(x), \
      (const int64_t *)data_of<int64_t>(ids), y->numel, ids->shape[dim], \
      x->shape[dim], inner_of(ids, dim))
  switch (size_of(x)) {
    case 1: CALL(uint8_t); break;
    case 2: CALL(uint16_t); break;
    case 4: CALL(uint32_t); break;
    default: CALL(uint64_t);
  }
#undef CALL
}

/* }====================================================== */

/*
** {======================================================
** Index_add and scatter_add
** =======================================================
*/

/* y (outer, n, inner) += x (outer, count, inner) at ids, which is (count) or
** has x's shape. */
typedef struct Add {
  const int64_t *ids;
  int64_t outer, count, n, inner;
} Add;

/* What sums are kept in: bools as such, integers unsigned, so that they
** wrap. */
template <class T> struct SumOf { typedef T type; };
template <> struct SumOf<half> { typedef float type; };
template <> struct SumOf<nv_bfloat16> { typedef float type; };
template <class T> using Sum = typename SumOf<T>::type;

template <class T> static __device__ inline T plus (T a, T b) {
  return (T)(a + b);
}
template <> __device__ inline bool plus<bool>(bool a, bool b) {
  return a || b;
}

/* Columns lane, lane + 32 ... of one chunk of a row, as a warp sums it. */
enum { COLUMNS = 4, CHUNK = 32 * COLUMNS };

/* Where a warp's lanes read and write; width: columns from the first on. */
template <class T> struct Row {
  T *y;
  const T *x; /* of the first row that may be added */
  int64_t width, inner;
};

/* The item-th of (outer, count, chunks), counted from the last: its place
** among the ids, and its part of a row, at whose id y is to be moved. */
template <class T>
static __device__ inline int64_t row_of (Row<T> *r, T *y, const T *x,
                                         const Add &a, int64_t item) {
  int64_t chunks = (a.inner + CHUNK - 1) / CHUNK;
  int64_t rest = quotient(item, chunks), chunk = item - rest * chunks;
  int64_t outer = quotient(rest, a.count), j = rest - outer * a.count;
  int64_t from = chunk * CHUNK + threadIdx.x % 32;
  r->y = y + outer * a.n * a.inner + from;
  r->x = x + outer * a.count * a.inner + from;
  r->width = a.inner - from;
  r->inner = a.inner;
  return j;
}

template <class T>
static __device__ inline void row_load (const Row<T> &r, int64_t id,
                                        Sum<T> *sum) {
  for (int c = 0; c < COLUMNS; c++)
    if (32 * c < r.width) sum[c] = (Sum<T>)r.y[id * r.inner + 32 * c];
}

template <class T>
static __device__ inline void row_add (const Row<T> &r, int64_t j,
                                       Sum<T> *sum) {
  for (int c = 0; c < COLUMNS; c++)
    if (32 * c < r.width)
      sum[c] = plus(sum[c], (Sum<T>)r.x[j * r.inner + 32 * c]);
}

template <class T>
static __device__ inline void row_store (const Row<T> &r, int64_t id,
                                         const Sum<T> *sum) {
  for (int c = 0; c < COLUMNS; c++)
    if (32 * c < r.width) r.y[id * r.inner + 32 * c] = number<T>(sum[c]);
}

/* A warp an id and a chunk: where the id stands for the first time it adds
** the rows of all that are equal. */
template <class T>
static __global__ void add_rows_few (T *y, const T *x, Add a, int64_t items) {
  int lane = threadIdx.x % 32;
  int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  for (; item < items; item += (int64_t)gridDim.x * WARPS) {
    Row<T> r;
    Sum<T> sum[COLUMNS];
    int64_t j = row_of(&r, y, x, a, item), id = a.ids[j];
    bool mine = in_range(id, a.n);
    for (int64_t k = 0; mine && k < j; k += 32)
      mine = !__any_sync(~0u, k + lane < j && a.ids[k + lane] == id);
    if (!mine) continue;
    row_load(r, id, sum);
    for (int64_t k = j; k < a.count; k += 32) {
      bool is = k + lane < a.count && a.ids[k + lane] == id;
      unsigned same = __ballot_sync(~0u, is);
      for (; same != 0; same &= same - 1)
        row_add(r, k + __ffs((int)same) - 1, sum);
    }
    row_store(r, id, sum);
  }
}

/* The same from sorted ids. */
template <class T, class K>
static __global__ void add_rows_sorted (T *y, const T *x, Add a, int64_t items,
                                        const K *key, const uint32_t *place) {
  int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  for (; item < items; item += (int64_t)gridDim.x * WARPS) {
    Row<T> r;
    Sum<T> sum[COLUMNS];
    int64_t j = row_of(&r, y, x, a, item);
    K id = key[j];
    if ((int64_t)id >= a.n || (j > 0 && key[j - 1] == id)) continue;
    row_load(r, (int64_t)id, sum);
    for (; j < a.count && key[j] == id; j++) row_add(r, place[j], sum);
    row_store(r, (int64_t)id, sum);
  }
}

/* A thread an element of ids, of x's shape: it adds those in its line that
** are equal, if it is the first of them. */
template <class T>
static __global__ void add_elements_few (T *y, const T *x, Add a,
                                         int64_t numel) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; i < numel; i += (int64_t)gridDim.x * THREADS) {
    int64_t row = quotient(i, a.inner), outer = quotient(row, a.count);
    int64_t at = i - row * a.inner, id = a.ids[i];
    int64_t from = outer * a.count * a.inner + at;
    int64_t end = from + a.count * a.inner;
    bool mine = in_range(id, a.n);
    for (int64_t k = from; mine && k < i; k += a.inner) mine = a.ids[k] != id;
    if (!mine) continue;
    T *to = y + (outer * a.n + id) * a.inner + at;
    Sum<T> sum = (Sum<T>)*to;
    for (int64_t k = i; k < end; k += a.inner)
      if (a.ids[k] == id) sum = plus(sum, (Sum<T>)x[k]);
    *to = number<T>(sum);
  }
}

/* The same from sorted places in y. */
template <class T, class K>
static __global__ void add_elements_sorted (T *y, const T *x, int64_t numel,
                                            int64_t limit, const K *key,
                                            const uint32_t *place) {
  int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; j < numel; j += (int64_t)gridDim.x * THREADS) {
    K at = key[j];
    if ((int64_t)at >= limit || (j > 0 && key[j - 1] == at)) continue;
    Sum<T> sum = (Sum<T>)y[at];
    for (int64_t k = j; k < numel && key[k] == at; k++)
      sum = plus(sum, (Sum<T>)x[place[k]]);
    y[at] = number<T>(sum);
  }
}

/* Keys that sort by id, or by place in y; limit where an id is wrong. */
template <class K>
static __global__ void make_keys (K *key, uint32_t *place, Add a,
                                  int64_t numel, int64_t limit, bool rows) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; i < numel; i += (int64_t)gridDim.x * THREADS) {
    int64_t id = a.ids[i], to = id;
    if (!rows) {
      int64_t row = quotient(i, a.inner), outer = quotient(row, a.count);
      to = (outer * a.n + id) * a.inner + i - row * a.inner;
    }
    key[i] = (K)(in_range(id, a.n) ? to : limit);
    place[i] = (uint32_t)i;
  }
}

/* Bits that numbers up to n take. */
static int bits_of (int64_t n) {
  int bits = 1;
  while (n >> bits != 0) bits++;
  return bits;
}

template <class T, class K>
static void add_sorted (Tensor *y, const Tensor *x, const Add &a, bool rows) {
  int64_t items = a.outer * a.count * ((a.inner + CHUNK - 1) / CHUNK);
  int64_t numel = rows ? a.count : x->numel, limit = rows ? a.n : y->numel;
  size_t mark = fnn_mark();
  Pairs<K> p;
  radix_pairs(y, &p, 1, numel, rows ? "index_add" : "scatter_add");
  RUN(y, (make_keys<K>), blocks_for(numel, THREADS), THREADS, 0, p.key,
      p.place, a, numel, limit, rows);
  radix_sort(y, &p, bits_of(limit));
  if (rows)
    RUN(y, (add_rows_sorted<T, K>), blocks_for(items, WARPS), THREADS, 0,
        data_of<T>(y), (const T *)data_of<T>(x), a, items, (const K *)p.key,
        (const uint32_t *)p.place);
  else
    RUN(y, (add_elements_sorted<T, K>), blocks_for(numel, THREADS), THREADS, 0,
        data_of<T>(y), (const T *)data_of<T>(x), numel, limit,
        (const K *)p.key, (const uint32_t *)p.place);
  fnn_escape(mark, NULL);
}

/* Looking around costs a read for each pair of ids of a line, a warp's at
** once in rows: up to FEW it is less than sorting. */
template <class T>
static void add (Tensor *y, const Tensor *x, const Add &a, bool rows) {
  enum { FEW_ROWS = 1024, FEW = 64 };
  int64_t items = a.outer * a.count * ((a.inner + CHUNK - 1) / CHUNK);
  if (a.count > (rows ? FEW_ROWS : FEW)) {
    if ((rows ? a.n : y->numel) < UINT32_MAX)
      add_sorted<T, uint32_t>(y, x, a, rows);
    else add_sorted<T, uint64_t>(y, x, a, rows);
  } else if (rows) {
    RUN(y, (add_rows_few<T>), blocks_for(items, WARPS), THREADS, 0,
        data_of<T>(y), (const T *)data_of<T>(x), a, items);
  } else {
    RUN(y, (add_elements_few<T>), blocks_for(x->numel, THREADS), THREADS, 0,
        data_of<T>(y), (const T *)data_of<T>(x), a, x->numel);
  }
}

static void add_any (Tensor *y, const Tensor *x, const Add &a, bool rows) {
  if (x->numel == 0 || y->numel == 0) return;
  switch ((fnn_Dtype)y->dtype) {
    case FNN_BOOL: add<bool>(y, x, a, rows); break;
    case FNN_U8: add<uint8_t>(y, x, a, rows); break;
    case FNN_I32: add<uint32_t>(y, x, a, rows); break;
    case FNN_I64: add<uint64_t>(y, x, a, rows); break;
    case FNN_F16: add<half>(y, x, a, rows); break;
    case FNN_BF16: add<nv_bfloat16>(y, x, a, rows); break;
    case FNN_F32: add<float>(y, x, a, rows); break;
    case FNN_F64: add<double>(y, x, a, rows); break;
  }
}

extern "C" void cuda_index_add (Tensor *y, const Tensor *x, const Tensor *ids,
                                int64_t outer, int64_t n, int64_t inner) {
  add_any(y, x, { data_of<int64_t>(ids), outer, ids->numel, n, inner }, true);
}

extern "C" void cuda_scatter_add (Tensor *y, const Tensor *ids,
                                  const Tensor *x, int dim) {
  int64_t count = ids->shape[dim], inner = inner_of(ids, dim);
  if (ids->numel == 0) return;
  add_any(y, x,
          { data_of<int64_t>(ids), ids->numel / (count * inner), count,
            y->shape[dim], inner },
          false);
}

/* }====================================================== */

/*
** {======================================================
** Nonzero
** =======================================================
*/

enum { EACH = 16, TILE = EACH * THREADS }; /* elements of a thread, a block */

/* Of the thread's EACH elements from i on. */
static __device__ inline int64_t count_true (const uint8_t *x, int64_t i,
                                             int64_t numel) {
  int64_t n = 0, end = least(i + EACH, numel);
  for (; i < end; i++) n += x[i] != 0;
  return n;
}

static __global__ void count_tiles (const uint8_t *x, int64_t numel,
                                    int64_t *counts) {
  int64_t total, i = (int64_t)blockIdx.x * TILE + threadIdx.x * EACH;
  block_scan(count_true(x, i, numel), &total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

typedef struct Shape {
  int ndim;
  int64_t size[FNN_MAXDIM];
} Shape;

static __global__ void list_tiles (int64_t *y, const uint8_t *x, int64_t numel,
                                   const int64_t *start, Shape s) {
  int64_t total, i = (int64_t)blockIdx.x * TILE + threadIdx.x * EACH;
  int64_t at = block_scan(count_true(x, i, numel), &total);
  int64_t *to = y + (start[blockIdx.x] + at) * s.ndim;
  for (int64_t end = least(i + EACH, numel); i < end; i++) {
    int64_t rest = i;
    if (x[i] == 0) continue;
    for (int d = s.ndim - 1; d >= 0; d--) {
      int64_t up = quotient(rest, s.size[d]);
      to[d] = rest - up * s.size[d];
      rest = up;
    }
    to += s.ndim;
  }
}

/* How many there are is a value that the host must read. */
extern "C" void cuda_nonzero (Tensor *y, const Tensor *x, int64_t *count) {
  int64_t tiles = (x->numel + TILE - 1) / TILE;
  const uint8_t *from = data_of<uint8_t>(x);
  size_t mark = fnn_mark();
  if (y == NULL) *count = 0;
  if (x->numel == 0) return;
  int64_t *counts = scratch<int64_t>(x, tiles + 1);
  RUN(x, count_tiles, (unsigned)tiles, THREADS, 0, from, x->numel, counts);
  RUN(x, (scan_rows<int64_t>), 1, SCAN_THREADS, 0, counts, counts + tiles,
      tiles);
  if (y == NULL) {
    const fnn_Device *d = x->storage->device;
    d->download(d, count, counts + tiles, sizeof *count);
  } else {
    Shape s = {};
    s.ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) s.size[d] = x->shape[d];
    RUN(x, list_tiles, (unsigned)tiles, THREADS, 0, data_of<int64_t>(y), from,
        x->numel, (const int64_t *)counts, s);
  }
  fnn_escape(mark, NULL);
}

/* }====================================================== */
