/* cumsum.cu - running sums along the middle of (outer, n, inner), forwards or
** from the end; floats are summed in double.
**
** A row is scanned by a few lanes, a warp or a block, chunk after chunk; of
** columns a thread takes one.  Where these are few they go in pieces: the sums
** of the pieces come first, then what lies before each, then the pieces
** themselves. */

#include "rows.h"

enum { BLOCK = 256, SLOTS = 4, CHUNK = BLOCK * SLOTS, PIECES = 256 };
enum { SHORT = 1024 }; /* rows that go to lanes of a warp */

/* place i of a row is i, or counted from the end. */
typedef struct Scan {
  int64_t outer, n, inner;
  int64_t splits, len; /* pieces, and numbers in one */
  bool reverse;
} Scan;

static __device__ inline int64_t place (const Scan &k, int64_t i) {
  return k.reverse ? k.n - 1 - i : i;
}

static __device__ inline double plus (double a, double b) { return a + b; }
static __device__ inline int64_t plus (int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

struct Plus {
  template <class S> static __device__ inline S of (S a, S b) {
    return plus(a, b);
  }
};

template <class S, class T> static __device__ inline S widened (T v) {
  return (S)v;
}
template <> __device__ inline double widened<double, half>(half v) {
  return (double)(float)v;
}
template <>
__device__ inline double widened<double, nv_bfloat16>(nv_bfloat16 v) {
  return (double)(float)v;
}

/*
** {======================================================
** Rows
** =======================================================
*/

/* v summed over the lanes up to this one, `wide` of them side by side. */
template <class S> static __device__ inline S lanes_up_to (S v, int wide) {
  int lane = threadIdx.x & (wide - 1);
  for (int d = 1; d < wide; d *= 2) {
    S o = __shfl_up_sync(LANES_ALL, v, d, wide);
    if (lane >= d) v = plus(o, v);
  }
  return v;
}

/* The sum of what the threads before this one have; *all: of the block's. */
template <class S> static __device__ inline S sum_before (S v, S *all) {
  SHARED(S, part, [BLOCK / WARP]);
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  S sum = lanes_up_to(v, WARP);
  if (lane == WARP - 1) part[warp] = sum;
  __syncthreads();
  S before = 0, total = 0;
  for (int w = 0; w < BLOCK / WARP; w++) {
    if (w == warp) before = total;
    total = plus(total, part[w]);
  }
  __syncthreads(); /* before the next call writes */
  *all = total;
  S up = __shfl_up_sync(LANES_ALL, sum, 1);
  return lane > 0 ? plus(before, up) : before;
}

/* SLOTS numbers from place i on, their sum; and back, s lying ahead of them. */
template <class T, class S>
static __device__ inline S take_slots (S *v, const T *p, const Scan &k,
                                       int64_t i, int64_t end) {
  S sum = 0;
  for (int e = 0; e < SLOTS; e++) {
    v[e] = i + e < end ? widened<S>(p[place(k, i + e)]) : 0;
    sum = plus(sum, v[e]);
  }
  return sum;
}

template <class Y, class S>
static __device__ inline void put_slots (Y *q, const S *v, const Scan &k,
                                         int64_t i, int64_t end, S s) {
  for (int e = 0; e < SLOTS; e++) {
    s = plus(s, v[e]);
    if (i + e < end) q[place(k, i + e)] = number<Y>(s);
  }
}

/* Short rows, a team of lanes each. */
template <class T, class Y, class S>
static __global__ void scan_short (Y *y, const T *x, Scan k, int team) {
  int t = threadIdx.x & (team - 1);
  EACH_ROW(row, k.outer, team) {
    int64_t end = row < k.outer ? k.n : 0;
    S carry = 0;
    for (int64_t c = 0; c < k.n; c += team * SLOTS) {
      S v[SLOTS], sum = take_slots(v, x + row * k.n, k, c + t * SLOTS, end);
      S upto = lanes_up_to(sum, team);
      S all = __shfl_sync(LANES_ALL, upto, team - 1, team);
      S up = __shfl_up_sync(LANES_ALL, upto, 1, team);
      put_slots(y + row * k.n, v, k, c + t * SLOTS, end,
                t > 0 ? plus(carry, up) : carry);
      carry = plus(carry, all);
    }
  }
}

/* A piece of a row; before (outer, splits): what lies ahead of it, or NULL. */
template <class T, class Y, class S>
static __global__ void scan_rows (Y *y, const T *x, const S *before, Scan k) {
  for (int64_t b = blockIdx.x; b < k.outer * k.splits; b += gridDim.x) {
    int64_t row = b / k.splits, i0 = (b - row * k.splits) * k.len;
    int64_t end = lesser(i0 + k.len, k.n);
    const T *p = x + row * k.n;
    Y *q = y + row * k.n;
    S carry = before != NULL ? before[b] : 0;
    for (int64_t c = i0; c < end; c += CHUNK) {
      int64_t i = c + threadIdx.x * SLOTS;
      S v[SLOTS], all, sum = take_slots(v, p, k, i, end);
      put_slots(q, v, k, i, end, plus(carry, sum_before(sum, &all)));
      carry = plus(carry, all);
    }
  }
}

/* The sums of pieces of rows. */
template <class T, class S>
static __global__ void sum_rows (S *sums, const T *x, Scan k) {
  for (int64_t b = blockIdx.x; b < k.outer * k.splits; b += gridDim.x) {
    int64_t row = b / k.splits, i0 = (b - row * k.splits) * k.len;
    int64_t end = lesser(i0 + k.len, k.n);
    S s = 0;
    for (int64_t i = i0 + threadIdx.x; i < end; i += BLOCK)
      s = plus(s, widened<S>(x[row * k.n + place(k, i)]));
    s = team_fold<Plus>(s, BLOCK);
    if (threadIdx.x == 0) sums[b] = s;
  }
}

/* }====================================================== */

/*
** {======================================================
** Columns
** =======================================================
*/

/* A piece of a column, a thread each; y NULL: only its sum, to sums (outer,
** inner, splits), which is else what lies ahead of it, or NULL. */
template <class T, class Y, class S>
static __global__ void scan_columns (Y *y, const T *x, S *sums, Scan k) {
  int64_t columns = k.outer * k.inner;
  int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; t < columns * k.splits; t += (int64_t)gridDim.x * blockDim.x) {
    int64_t piece = t / columns, column = t - piece * columns;
    int64_t o = column / k.inner, j = column - o * k.inner;
    int64_t base = o * k.n * k.inner + j, at = column * k.splits + piece;
    int64_t i = piece * k.len, end = lesser(i + k.len, k.n);
    S s = y != NULL && sums != NULL ? sums[at] : 0;
    for (; i < end; i++) {
      int64_t p = base + place(k, i) * k.inner;
      s = plus(s, widened<S>(x[p]));
      if (y != NULL) y[p] = number<Y>(s);
    }
    if (y == NULL) sums[at] = s;
  }
}

/* }====================================================== */

/* Each sum becomes that of the ones ahead of it. */
template <class S>
static __global__ void sums_before (S *sums, int64_t rows, int64_t splits) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < rows; i += (int64_t)gridDim.x * blockDim.x) {
    S s = 0;
    for (int64_t p = 0; p < splits; p++) {
      S v = sums[i * splits + p];
      sums[i * splits + p] = s;
      s = plus(s, v);
    }
  }
}

/* Pieces, of `least` numbers or more, that make `enough` of them in all. */
static void split (Scan *k, int64_t enough, int64_t least) {
  int64_t columns = k->outer * k->inner;
  k->splits = min64(PIECES, min64(enough / columns, k->n / least));
  k->splits = max64(k->splits, 1);
  k->len = (k->n + k->splits - 1) / k->splits;
  k->splits = (k->n + k->len - 1) / k->len;
}

template <class T, class Y, class S>
static void run (Tensor *y, const Tensor *x, Scan *k) {
  Y *to = (Y *)tensor_data(y);
  const T *from = (const T *)tensor_data(x);
  S *sums = NULL;
  int64_t columns = k->outer * k->inner;
  bool rows = k->inner == 1;
  if (rows && k->n <= SHORT) {
    int team = (int)min64(power_from((k->n + SLOTS - 1) / SLOTS), WARP);
    RUN(x, (scan_short<T, Y, S>), blocks_for(columns, BLOCK / team), BLOCK, 0,
        to, from, *k, team);
    return;
  }
  if (rows) split(k, 1024, 4 * CHUNK);
  else split(k, 32768, 64);
  unsigned pieces = blocks_for(columns * k->splits, rows ? 1 : BLOCK);
  if (k->splits > 1) {
    sums = (S *)scratch_for(x, columns * k->splits * (int64_t)sizeof *sums);
    if (rows) RUN(x, (sum_rows<T, S>), pieces, BLOCK, 0, sums, from, *k);
    else
      RUN(x, (scan_columns<T, Y, S>), pieces, BLOCK, 0, (Y *)NULL, from, sums,
          *k);
    RUN(x, (sums_before<S>), blocks_for(columns, BLOCK), BLOCK, 0, sums,
        columns, k->splits);
  }
  if (rows) RUN(x, (scan_rows<T, Y, S>), pieces, BLOCK, 0, to, from, sums, *k);
  else RUN(x, (scan_columns<T, Y, S>), pieces, BLOCK, 0, to, from, sums, *k);
}

extern "C" void cuda_cumsum (Tensor *y, const Tensor *x, int64_t outer,
                             int64_t n, int64_t inner, bool reverse) {
  Scan k = { outer, n, inner, 1, n, reverse };
  if (x->numel == 0) return;
  size_t mark = fnn_mark();
  switch ((fnn_Dtype)x->dtype) {
    case FNN_BOOL:
    case FNN_U8: run<uint8_t, int64_t, int64_t>(y, x, &k); break;
    case FNN_I32: run<int32_t, int64_t, int64_t>(y, x, &k); break;
    case FNN_I64: run<int64_t, int64_t, int64_t>(y, x, &k); break;
    default: WITH_FLOAT(x->dtype, run<T, T, double>(y, x, &k));
  }
  fnn_escape(mark, NULL);
}
