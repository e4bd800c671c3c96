/* optim.cu - a step of an optimizer over all its parameters in one launch, the
** sum of the squares of all gradients, and their scaling.
**
** What a launch works on is a table in the card's memory: an entry a tensor,
** with its arrays, its size and the constants of its step.  A block takes a
** chunk of one tensor and finds which by bisection.  Each row of optim.def is
** a functor; what states a tensor has is known at run time, which costs
** nothing beside the memory that is moved.
**
** A step that is recorded (core/capture.c) reads its tables at each replay:
** they then are not temporaries of the call, but kept with the recording.  One
** of an optimizer is filled anew before each replay from the list of passes,
** whose constants optim/replay.c has worked out anew before.  Constants that
** come from the card (Pass.factor) are read there anyway. */

#include <pthread.h>

#include "rows.h"
#include "words.h"

enum {
  THREADS = 256,
  CHUNK = 4 * 4 * THREADS, /* elements of a block: four loads of four */
  PARTS = 1024             /* sums of squares that one block adds up */
};

/*
** {======================================================
** Tables
** =======================================================
*/

/* A tensor of a table, and where its chunks begin among all. */
typedef struct Chunks {
  int64_t n;
  unsigned first;
  bool wide; /* its arrays begin at boundaries of four elements */
} Chunks;

/* The entry whose chunk this block has. */
template <class E>
static __device__ inline const E &entry_of (const E *table, int n) {
  int low = 0, high = n - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (table[middle].chunks.first <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  return table[low];
}

/* Appends a tensor's chunks to the `total` that there are before it. */
static Chunks chunks_of (const Tensor *x, bool wide, unsigned *total) {
  Chunks c = { x->numel, *total, wide };
  *total += (unsigned)((x->numel + CHUNK - 1) / CHUNK);
  return c;
}

/* Tables are written in pinned memory, which a copy reads after the call has
** returned: a ring of it for each card, each part used again when the copy
** from it has passed.  States on several threads may share a card. */
enum { CARDS = 16, RING = 4 };

typedef struct Pinned {
  void *memory;
  size_t bytes;
  cudaEvent_t copied;
  bool used;
} Pinned;

static struct Ring {
  pthread_mutex_t lock;
  int next;
  Pinned part[RING];
} rings[CARDS];

static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

/* p with room for the bytes, none of which a copy still reads. */
static cudaError_t pinned_ready (Pinned *p, size_t bytes) {
  cudaError_t e = cudaSuccess;
  if (p->copied == NULL)
    e = cudaEventCreateWithFlags(&p->copied, cudaEventDisableTiming);
  if (e == cudaSuccess && p->used) e = cudaEventSynchronize(p->copied);
  if (e != cudaSuccess || p->bytes >= bytes) return e;
  if (p->memory != NULL) cudaFreeHost(p->memory);
  p->memory = NULL;
  p->bytes = 0;
  size_t size = 4096;
  while (size < bytes) size *= 2;
  e = cudaHostAlloc(&p->memory, size, cudaHostAllocDefault);
  if (e == cudaSuccess) p->bytes = size;
  return e;
}

/* Copies the table to the card on the compute stream, without waiting. */
static void table_upload (Cuda *card, void *to, const void *table,
                          size_t bytes) {
  pthread_mutex_lock(&rings_lock);
  Ring *r = &rings[card->id % CARDS];
  Pinned *p = &r->part[r->next++ % RING];
  cudaError_t e = pinned_ready(p, bytes);
  if (e == cudaSuccess) {
    memcpy(p->memory, table, bytes);
    e = cudaMemcpyAsync(to, p->memory, bytes, cudaMemcpyHostToDevice,
                        card->compute);
  }
  if (e == cudaSuccess) {
    e = cudaEventRecord(p->copied, card->compute);
    p->used = e == cudaSuccess;
  }
  pthread_mutex_unlock(&rings_lock);
  cuda_check(e, "copy of a table to the device");
}

/* A table of a step that is being recorded. */
typedef struct Kept {
  Cuda *card;
  fnn_Storage *to; /* on the card, for as long as the recording */
  void *table;
  size_t bytes;
  void (*fill)(void *table, const Pass *list, int n); /* or NULL */
  const Pass *list;
  int n;
} Kept;

/* One that nothing fills anew is sent once. */
static void kept_update (void *ud, bool first) {
  Kept *k = (Kept *)ud;
  if (!first && k->fill == NULL) return;
  if (k->fill != NULL) k->fill(k->table, k->list, k->n);
  table_upload(k->card, k->to->data, k->table, k->bytes);
}

static void kept_done (void *ud, bool recorded) {
  Kept *k = (Kept *)ud;
  (void)recorded;
  storage_release(k->to);
  mem_free(k->table, k->bytes);
  mem_free(k, sizeof *k);
}

/* Where a recorded step reads the table. */
static void *table_keep (fnn_Capture *c, const Tensor *on, const void *table,
                         size_t bytes, const Kept *how) {
  fnn_Storage *to = storage_new_apart(on->storage->device, bytes);
  Kept *k = (Kept *)mem_try(sizeof *k);
  void *copy = mem_try(bytes);
  if (k == NULL || copy == NULL) {
    storage_release(to);
    mem_free(k, sizeof *k);
    mem_free(copy, bytes);
    fnn_throw(FNN_EMEMORY, "recording a step: no memory");
  }
  memcpy(copy, table, bytes);
  *k = *how;
  k->card = cuda_of(on);
  k->to = to;
  k->table = copy;
  k->bytes = bytes;
  Refresh r = { NULL, kept_update, kept_done, k };
  capture_before(c, &r);
  return to->data;
}

/* The table on the card: the call's own, or the recording's. */
static void *table_on_card (const Tensor *on, const void *table, size_t bytes,
                            const Kept *how) {
  fnn_Capture *c = capture_of(on);
  if (c != NULL) return table_keep(c, on, table, bytes, how);
  void *device = scratch_for(on, (int64_t)bytes);
  table_upload(cuda_of(on), device, table, bytes);
  return device;
}

/* }====================================================== */

/*
** {======================================================
** Updates
** =======================================================
*/

template <class R> struct Constants { UPDATE(R); };

template <class R> struct Entry {
  void *p;
  const void *g;
  R *s[3];
  const double *factor;
  Chunks chunks;
  Constants<R> k;
};

/* The weight and its state at one place. */
template <class R> struct Place { R p, s[3]; };

#define FORMULA(name, needs, s0, s1, s2, ...) \
  struct name##_row { \
    template <class real> \
    static __device__ inline void update (Place<real> *at, real g, \
                                          const Constants<real> &k, bool A, \
                                          bool B, bool C) { \
      real p = at->p, a = at->s[0], b = at->s[1], c = at->s[2]; \
      (void)A, (void)B, (void)C; \
      __VA_ARGS__; \
      at->p = p; \
      at->s[0] = a; \
      at->s[1] = b; \
      at->s[2] = c; \
    } \
  };
#include "../src/core/optim.def"
#undef FORMULA

/* N elements at i: those of the states that there are, the others being 0. */
template <class Row, class T, int N>
static __device__ inline void
update_some (const Entry<Real<T>> &e, const Constants<Real<T>> &k, int64_t i) {
  typedef Real<T> R;
  R p[N], g[N], s[3][N];
  load<N>(p, (const T *)e.p + i);
  load<N>(g, (const T *)e.g + i);
  for (int j = 0; j < 3; j++) {
    for (int m = 0; m < N; m++) s[j][m] = 0;
    if (e.s[j] != NULL) load<N>(s[j], (const R *)e.s[j] + i);
  }
  for (int m = 0; m < N; m++) {
    Place<R> at = { p[m], { s[0][m], s[1][m], s[2][m] } };
    Row::update(&at, k.scale * g[m] + k.couple * p[m], k, e.s[0] != NULL,
                e.s[1] != NULL, e.s[2] != NULL);
    p[m] = at.p;
    for (int j = 0; j < 3; j++) s[j][m] = at.s[j];
  }
  store<N>((T *)e.p + i, p);
  for (int j = 0; j < 3; j++)
    if (e.s[j] != NULL) store<N>(e.s[j] + i, s[j]);
}

template <class Row, class T>
static __global__ void __launch_bounds__ (THREADS)
    update_all(const Entry<Real<T>> *table, int n) {
  typedef Real<T> R;
  const Entry<R> &e = entry_of(table, n);
  Constants<R> k = e.k;
  if (e.factor != NULL) k.scale = (R)((double)k.scale * *e.factor);
  int64_t from = (int64_t)(blockIdx.x - e.chunks.first) * CHUNK;
  int64_t to = lesser(from + CHUNK, e.chunks.n), i;
  if (!e.chunks.wide) {
    for (i = from + threadIdx.x; i < to; i += THREADS)
      update_some<Row, T, 1>(e, k, i);
    return;
  }
  for (i = from + 4 * threadIdx.x; i + 4 <= to; i += 4 * THREADS)
    update_some<Row, T, 4>(e, k, i);
  for (; i < to; i++) update_some<Row, T, 1>(e, k, i);
}

template <class R> static Constants<R> constants_of (const Update *u) {
  Constants<R> k;
  const double *from = (const double *)u;
  R *to = (R *)&k;
  for (size_t i = 0; i < sizeof k / sizeof *to; i++) to[i] = (R)from[i];
  return k;
}

/* Writes the entries of the passes of dtype t; gives how many, and in *total
** how many chunks they have. */
template <class T>
static int table_fill (Entry<Real<T>> *table, fnn_Dtype t, const Pass *list,
                       int n, unsigned *total) {
  typedef Real<T> R;
  int count = 0;
  *total = 0;
  for (int i = 0; i < n; i++) {
    const Pass *x = &list[i];
    if (x->p->dtype != t || x->p->numel == 0) continue;
    Entry<R> *e = &table[count++];
    memset(e, 0, sizeof *e); /* padding too: all of it is copied */
    e->p = data_of<T>(x->p);
    e->g = data_of<T>(x->g);
    bool wide = is_packed((T *)e->p) && is_packed((const T *)e->g);
    for (int j = 0; j < 3; j++) {
      e->s[j] = data_of<R>(x->s[j]);
      wide = wide && is_packed(e->s[j]);
    }
    e->factor = data_of<double>(x->factor);
    e->k = constants_of<R>(&x->u);
    e->chunks = chunks_of(x->p, wide, total);
  }
  return count;
}

template <class T>
static void table_launch (const Tensor *on, Formula row,
                          const Entry<Real<T>> *table, int n,
                          unsigned chunks) {
  switch (row) {
#define FORMULA(name, ...) \
  case FORMULA_##name: \
    RUN(on, (update_all<name##_row, T>), chunks, THREADS, 0, table, n); \
    break;
#include "../src/core/optim.def"
#undef FORMULA
    default: break;
  }
}

template <class T, fnn_Dtype t>
static void refill (void *table, const Pass *list, int n) {
  unsigned chunks;
  table_fill<T>((Entry<Real<T>> *)table, t, list, n, &chunks);
}

/* One launch for the passes of dtype t, if there are some. */
template <class T, fnn_Dtype t>
static void update_dtype (Formula row, const Pass *list, int n) {
  typedef Entry<Real<T>> E;
  size_t mark = fnn_mark();
  const Tensor *on = list[0].p;
  unsigned chunks;
  E *table = (E *)mem_scratch((size_t)n * sizeof *table);
  int count = table_fill<T>(table, t, list, n, &chunks);
  if (count > 0) {
    size_t bytes = (size_t)count * sizeof *table;
    Kept how = {};
    how.fill = list->refreshed ? refill<T, t> : NULL;
    how.list = list;
    how.n = n;
    E *device = (E *)table_on_card(on, table, bytes, &how);
    table_launch<T>(on, row, device, count, chunks);
  }
  fnn_escape(mark, NULL);
}

extern "C" void cuda_optimize (Formula row, const Pass *list, int n) {
  update_dtype<float, FNN_F32>(row, list, n);
  update_dtype<double, FNN_F64>(row, list, n);
  update_dtype<half, FNN_F16>(row, list, n);
  update_dtype<nv_bfloat16, FNN_BF16>(row, list, n);
}

/* }====================================================== */

/*
** {======================================================
** All tensors of a list
** =======================================================
*/

typedef struct Array {
  void *x;
  Chunks chunks;
} Array;

/* The table, on the card, of the tensors of dtype t; NULL where there are
** none. */
template <class T>
static const Array *arrays_of (const Tensor *const *x, int n, fnn_Dtype t,
                               int *count, unsigned *chunks) {
  Array *table = (Array *)mem_scratch((size_t)n * sizeof *table);
  *count = 0;
  *chunks = 0;
  for (int i = 0; i < n; i++) {
    if (x[i]->dtype != t || x[i]->numel == 0) continue;
    Array *a = &table[(*count)++];
    memset(a, 0, sizeof *a);
    a->x = data_of<T>(x[i]);
    a->chunks = chunks_of(x[i], is_packed((T *)a->x), chunks);
  }
  if (*count == 0) return NULL;
  size_t bytes = (size_t)*count * sizeof *table;
  Kept once = {};
  return (const Array *)table_on_card(x[0], table, bytes, &once);
}

/* The sum of v over the block, for its first thread. */
static __device__ inline double block_sum (double v) {
  SHARED(double, part, [THREADS / WARP]);
  int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
  for (int d = WARP / 2; d > 0; d /= 2)
    v += __shfl_down_sync(0xffffffffu, v, (unsigned)d);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS / WARP; i++) sum += part[i];
  return sum;
}

/* part[chunk] = the squares of a chunk.  In double, as on the CPU: a square
** of f32 may be beyond f32. */
template <class T>
static __global__ void squares (double *part, const Array *table, int n) {
  const Array &e = entry_of(table, n);
  const T *x = (const T *)e.x;
  int64_t from = (int64_t)(blockIdx.x - e.chunks.first) * CHUNK;
  int64_t to = lesser(from + CHUNK, e.chunks.n), i;
  double sum = 0;
  if (e.chunks.wide) {
    for (i = from + 4 * threadIdx.x; i + 4 <= to; i += 4 * THREADS) {
      Real<T> v[4];
      load<4>(v, x + i);
      for (int k = 0; k < 4; k++) sum += (double)v[k] * (double)v[k];
    }
    for (; i < to; i++) {
      double v = (double)(Real<T>)x[i];
      sum += v * v;
    }
  } else
    for (i = from + threadIdx.x; i < to; i += THREADS) {
      double v = (double)(Real<T>)x[i];
      sum += v * v;
    }
  sum = block_sum(sum);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

/* to[block] = the block's share of part, added to what is there if `add`. */
static __global__ void fold (double *to, const double *part, int64_t n,
                             bool add) {
  double sum = 0;
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
       i += step)
    sum += part[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) to[blockIdx.x] = add ? to[blockIdx.x] + sum : sum;
}

template <class T>
static void add_squares (Tensor *sum, const Tensor *const *x, int n,
                         fnn_Dtype t) {
  size_t mark = fnn_mark();
  int count;
  unsigned chunks;
  const Array *table = arrays_of<T>(x, n, t, &count, &chunks);
  if (table != NULL) {
    double *part = (double *)scratch_for(sum, (int64_t)chunks * 8);
    RUN(sum, (squares<T>), chunks, THREADS, 0, part, table, count);
    if (chunks > PARTS) { /* many: in two steps */
      unsigned few = (unsigned)min64(chunks / PARTS + 1, PARTS);
      double *less = (double *)scratch_for(sum, (int64_t)few * 8);
      RUN(sum, fold, few, THREADS, 0, less, part, (int64_t)chunks, false);
      part = less;
      chunks = few;
    }
    RUN(sum, fold, 1, THREADS, 0, data_of<double>(sum), part, (int64_t)chunks,
        true);
  }
  fnn_escape(mark, NULL);
}

extern "C" void cuda_square_sum (Tensor *sum, const Tensor *const *x, int n) {
  add_squares<float>(sum, x, n, FNN_F32);
  add_squares<double>(sum, x, n, FNN_F64);
  add_squares<half>(sum, x, n, FNN_F16);
  add_squares<nv_bfloat16>(sum, x, n, FNN_BF16);
}

static __global__ void factor_of (double *factor, double *norm,
                                  const double *squares, double scale,
                                  double most) {
  double length = fabs(scale) * sqrt(*squares);
  if (norm != NULL) *norm = length;
  *factor = length > most ? scale * most / (length + 1e-6) : scale;
}

extern "C" void cuda_norm_factor (Tensor *factor, Tensor *norm,
                                  const Tensor *squares, double scale,
                                  double most) {
  RUN(factor, factor_of, 1, 1, 0, data_of<double>(factor),
      data_of<double>(norm), data_of<double>(squares), scale, most);
}

/* x times by, which reads and writes nothing where it is 1. */
template <class T>
static __global__ void scale_chunks (const Array *table, int n,
                                     const double *by) {
  const Array &e = entry_of(table, n);
  T *x = (T *)e.x;
  const Real<T> factor = (Real<T>)*by;
  int64_t from = (int64_t)(blockIdx.x - e.chunks.first) * CHUNK;
  int64_t to = lesser(from + CHUNK, e.chunks.n), i = from + threadIdx.x;
  if (*by == 1) return;
  if (e.chunks.wide) {
    for (i = from + 4 * threadIdx.x; i + 4 <= to; i += 4 * THREADS) {
      Real<T> v[4];
      load<4>(v, x + i);
      for (int k = 0; k < 4; k++) v[k] *= factor;
      store<4>(x + i, v);
    }
    for (; i < to; i++) x[i] = number<T>((Real<T>)x[i] * factor);
  } else
    for (; i < to; i += THREADS) x[i] = number<T>((Real<T>)x[i] * factor);
}

template <class T>
static void scale_dtype (Tensor *const *x, int n, const Tensor *factor,
                         fnn_Dtype t) {
  size_t mark = fnn_mark();
  int count;
  unsigned chunks;
  const Array *table =
      arrays_of<T>((const Tensor *const *)x, n, t, &count, &chunks);
  if (table != NULL)
    RUN(x[0], (scale_chunks<T>), chunks, THREADS, 0, table, count,
        data_of<double>(factor));
  fnn_escape(mark, NULL);
}

extern "C" void cuda_scale_all (Tensor *const *x, int n,
                                const Tensor *factor) {
  scale_dtype<float>(x, n, factor, FNN_F32);
  scale_dtype<double>(x, n, factor, FNN_F64);
  scale_dtype<half>(x, n, factor, FNN_F16);
  scale_dtype<nv_bfloat16>(x, n, factor, FNN_BF16);
}

/* }====================================================== */
