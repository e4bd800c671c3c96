/* matmul.cu - the matrix product of tensors: leading dims, strides, dtypes,
** and what follows a product; and products of integers.
**
** cuBLAS makes the products of floats, in place wherever the operands are
** rows or columns some stride apart.  A leading dim becomes rows of a where
** it can, then the longest that is left a batch; over others there is a loop.
** 16-bit operands add up in f32. */

#include "cublas.h"
#include "words.h"

#include "../src/core/ops.h"

#include <limits.h>

/*
** {======================================================
** Operands
** =======================================================
*/

/* Whether x's matrices can be read where they are: one of the strides is 1,
** and the other steps over what the first covers. */
static bool operand_of (const Tensor *x, Operand *o) {
  int64_t rows = x->shape[x->ndim - 2], cols = x->shape[x->ndim - 1];
  int64_t row = x->stride[x->ndim - 2], col = x->stride[x->ndim - 1];
  o->data = tensor_data(x);
  o->step = 0;
  if ((col == 1 || cols == 1) && (row >= cols || rows == 1)) {
    o->ld = rows == 1 ? cols : row;
    o->transposed = false;
  } else if ((row == 1 || rows == 1) && (col >= rows || cols == 1)) {
    o->ld = cols == 1 ? rows : col;
    o->transposed = true;
  } else return false;
  return o->ld <= INT_MAX;
}

/* x dense and in dtype t; leading dims that only repeat it still do. */
static Tensor *packed (const Tensor *x, fnn_Dtype t) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  for (int d = 0; d < x->ndim; d++) {
    bool repeats = d < x->ndim - 2 && x->stride[d] == 0;
    shape[d] = repeats ? 1 : x->shape[d];
  }
  Tensor *once = tensor_view(x, x->ndim, shape, x->stride, x->offset);
  Tensor *y = tensor_dense(tensor_convert(once, t));
  for (int d = 0; d < x->ndim; d++)
    stride[d] = shape[d] == x->shape[d] ? y->stride[d] : 0;
  return tensor_view(y, x->ndim, x->shape, stride, y->offset);
}

/* The dtype that a and b are multiplied in: their own, or f32. */
static fnn_Dtype common_dtype (const Tensor *a, const Tensor *b) {
  if (a->dtype == b->dtype) return (fnn_Dtype)a->dtype;
  bool wide = a->dtype == FNN_F64 || b->dtype == FNN_F64;
  return wide ? FNN_F64 : FNN_F32;
}

/* x as cuBLAS can read it, in dtype t. */
static const Tensor *readable (const Tensor *x, fnn_Dtype t, Operand *o) {
  if (x->dtype == t && operand_of(x, o)) return x;
  x = packed(x, t);
  operand_of(x, o);
  return x;
}

/* }====================================================== */

/*
** {======================================================
** Leading dims
** =======================================================
*/

/* Those that are left, the last first, with the strides along each. */
typedef struct Batch {
  Product p;
  int ndim, longest;
  int64_t calls; /* products of one longest dim each */
  int64_t shape[FNN_MAXDIM];
  int64_t a[FNN_MAXDIM], b[FNN_MAXDIM], c[FNN_MAXDIM];
} Batch;

/* Takes a dim along which b stays as more rows of a, where these go on. */
static bool takes_rows (Product *p, int64_t size, int64_t a, int64_t b) {
  int64_t row = p->a.transposed ? 1 : p->a.ld;
  if (b != 0) return false;
  if (p->m == 1 && !p->a.transposed && a >= p->k) p->a.ld = a;
  else if (a != p->m * row) return false;
  else if (p->a.transposed && p->a.ld < p->m * size) return false;
  p->m *= size;
  return true;
}

/* Adds a dim, joined with the one before where they are one long dim. */
static void add_dim (Batch *w, int64_t size, int64_t a, int64_t b, int64_t c) {
  int d = w->ndim;
  if (d > 0 && a == w->a[d - 1] * w->shape[d - 1] &&
      b == w->b[d - 1] * w->shape[d - 1]) {
    w->shape[d - 1] *= size;
  } else {
    w->shape[d] = size;
    w->a[d] = a;
    w->b[d] = b;
    w->c[d] = c;
    w->ndim++;
  }
}

static void batch_dims (Batch *w, const Tensor *c, const Tensor *a,
                        const Tensor *b) {
  Product *p = &w->p;
  int64_t step = p->m * p->n;
  w->ndim = w->longest = 0;
  w->calls = 1;
  for (int d = c->ndim - 3; d >= 0; d--) {
    int64_t size = c->shape[d];
    if (size == 1) continue;
    if (w->ndim > 0 || !takes_rows(p, size, a->stride[d], b->stride[d]))
      add_dim(w, size, a->stride[d], b->stride[d], step);
    step *= size;
  }
  for (int d = 0; d < w->ndim; d++)
    if (w->shape[d] > w->shape[w->longest]) w->longest = d;
  for (int d = 0; d < w->ndim; d++)
    if (d != w->longest) w->calls *= w->shape[d];
}

/* Fills w for the product as the operands stand. */
static void batch_of (Batch *w, const Tensor *c, const Tensor *a,
                      const Tensor *b, fnn_Dtype t) {
  w->p.m = c->shape[c->ndim - 2];
  w->p.n = w->p.ldc = c->shape[c->ndim - 1];
  w->p.k = a->shape[a->ndim - 1];
  a = readable(a, t, &w->p.a);
  b = readable(b, t, &w->p.b);
  batch_dims(w, c, a, b);
}

/* The product of the i-th of the loop. */
static void batch_call (const Batch *w, int64_t i, Cuda *card,
                        const Tensor *c) {
  Product p = w->p;
  int64_t a = 0, b = 0, to = 0;
  for (int d = 0; d < w->ndim; d++) {
    if (d == w->longest) continue;
    int64_t at = i % w->shape[d];
    i /= w->shape[d];
    a += at * w->a[d];
    b += at * w->b[d];
    to += at * w->c[d];
  }
  int64_t size = (int64_t)fnn_dtype_size(p.ab);
  p.a.data = (const char *)p.a.data + a * size;
  p.b.data = (const char *)p.b.data + b * size;
  p.c = data_of<char>(c) + to * (int64_t)fnn_dtype_size(p.dtype);
  cublas_product(card, &p, "matmul");
}

/* c = alpha a b + beta c.  A loop that would be long is worth dense copies,
** whose leading dims are one. */
static void products (Tensor *c, const Tensor *a, const Tensor *b, fnn_Dtype t,
                      const Epilogue *e) {
  enum { CALLS = 8 };
  Batch w;
  batch_of(&w, c, a, b, t);
  if (w.calls > CALLS) batch_of(&w, c, packed(a, t), packed(b, t), t);
  w.p.ab = t;
  w.p.dtype = (fnn_Dtype)c->dtype;
  w.p.alpha = e->alpha;
  w.p.beta = e->accumulate ? 1 : 0;
  w.p.batch = w.ndim > 0 ? w.shape[w.longest] : 1;
  w.p.a.step = w.ndim > 0 ? w.a[w.longest] : 0;
  w.p.b.step = w.ndim > 0 ? w.b[w.longest] : 0;
  w.p.cstep = w.ndim > 0 ? w.c[w.longest] : 0;
  for (int64_t i = 0; i < w.calls; i++) batch_call(&w, i, cuda_of(c), c);
}

/* }====================================================== */

/*
** {======================================================
** What follows a product
** =======================================================
*/

/* Columns side by side that a thread reads and writes at once. */
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T v[4];
};
template <class T> struct One { T v[1]; };

/* The row OP of map.def, of those that need no more than x; -1: x. */
template <int OP, class real> static __device__ inline real act_of (real x) {
  const real a = 1, b = 1; /* of rows that no OP here is */
  (void)a;
  (void)b;
#define MAP(name, parameters, kind, y, ...) \
  if (OP == MAP_##name) return (real)(y);
#include "../src/core/map.def"
#undef MAP
  return x;
}

/* c = act(c + bias), c (rows, n); n counts packs, and so does a thread's
** column, which stays as it goes down the rows. */
template <class T, class Pack, int OP>
static __global__ void finish (T *c, const T *bias, int64_t rows, int64_t n) {
  const int width = (int)(sizeof(Pack) / sizeof(T));
  int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  Real<T> add[sizeof(Pack) / sizeof(T)];
  for (int i = 0; i < width; i++)
    add[i] = bias != NULL ? (Real<T>)bias[column * width + i] : 0;
  Pack *p = (Pack *)c;
  int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  for (; row < rows; row += (int64_t)gridDim.y * blockDim.y) {
    Pack x = p[row * n + column];
    for (int i = 0; i < width; i++)
      x.v[i] = number<T>(act_of<OP>((Real<T>)x.v[i] + add[i]));
    p[row * n + column] = x;
  }
}

template <class T, class Pack, int OP>
static void finish_packs (Tensor *c, const Tensor *bias, int64_t n) {
  enum { THREADS = 256, ROWS = 8 }; /* rows a thread, at least */
  int64_t packs = n / (int64_t)(sizeof(Pack) / sizeof(T));
  int64_t rows = c->numel / n;
  unsigned x = 1;
  while (x < THREADS && x < packs) x *= 2;
  dim3 block(x, THREADS / x);
  int64_t down = max64(1, rows / (block.y * ROWS));
  dim3 grid((unsigned)((packs + x - 1) / x), (unsigned)min64(down, 65535));
  RUN(c, (finish<T, Pack, OP>), grid, block, 0, data_of<T>(c),
      (const T *)data_of<T>(bias), rows, packs);
}

template <class T, int OP>
static void finish_rows (Tensor *c, const Tensor *bias) {
  int64_t n = c->shape[c->ndim - 1];
  bool four = n % 4 == 0 && (uintptr_t)data_of<T>(c) % alignof(Four<T>) == 0;
  if (four) finish_packs<T, Four<T>, OP>(c, bias, n);
  else finish_packs<T, One<T>, OP>(c, bias, n);
}

/* Bias and activation in one pass; an activation that is rare in a pass of
** its own. */
void product_finish (Tensor *c, const Epilogue *e) {
  WITH_FLOAT(
      c->dtype, switch (e->act) {
        case MAP_relu: finish_rows<T, MAP_relu>(c, e->bias); return;
        case MAP_sigmoid: finish_rows<T, MAP_sigmoid>(c, e->bias); return;
        case MAP_tanh: finish_rows<T, MAP_tanh>(c, e->bias); return;
        default:
          if (e->bias != NULL) finish_rows<T, -1>(c, e->bias);
      })
  if (e->act >= 0) kernel(c, map)(e->act, c, c, 0, 0);
}

/* }====================================================== */

/* The vector x as rows of c's shape. */
static Tensor *as_rows (const Tensor *x, const Tensor *c) {
  int64_t stride[FNN_MAXDIM] = { 0 };
  stride[c->ndim - 1] = x->stride[0];
  return tensor_view(x, c->ndim, c->shape, stride, x->offset);
}

/* Of dtypes that cuBLAS takes.  A 16-bit bias is there before the product,
** which adds to it: one rounding and not two, that may leave a wrong sign. */
static void product_into (Tensor *c, const Tensor *a, const Tensor *b,
                          fnn_Dtype t, const Epilogue *e) {
  Epilogue rest = *e;
  if (e->bias != NULL && !e->accumulate &&
      fnn_dtype_size((fnn_Dtype)c->dtype) == 2) {
    kernel(c, copy)(c, as_rows(e->bias, c));
    rest.bias = NULL;
    rest.accumulate = true;
  }
  products(c, a, b, t, &rest);
  product_finish(c, &rest);
}

/* Where cuBLAS has no product of such dtypes (two f32 into f16), it is made in
** f32 and rounded once. */
extern "C" void cuda_matmul (Tensor *c, const Tensor *a, const Tensor *b,
                             const Epilogue *e) {
  bool none = a->shape[a->ndim - 1] == 0;
  fnn_Dtype t = common_dtype(a, b);
  size_t mark = fnn_mark();
  if (c->numel == 0 || (none && e->accumulate)) return;
  if (none) {
    kernel(c, fill)(c, 0);
    product_finish(c, e);
  } else if (cublas_takes(t, (fnn_Dtype)c->dtype)) {
    product_into(c, a, b, t, e);
  } else {
    Epilogue wide = *e;
    Tensor *w = tensor_like_as(c, t == FNN_F64 ? FNN_F64 : FNN_F32);
    if (e->accumulate) kernel(c, copy)(w, c);
    if (e->bias != NULL)
      wide.bias = tensor_convert(e->bias, (fnn_Dtype)w->dtype);
    product_into(w, a, b, t, &wide);
    kernel(c, copy)(c, w);
  }
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** Integers
** =======================================================
*/

/* Matrices a (m, k), b (k, n), dense; a batch of them, whose leading dims are
** of any strides. */
typedef struct Integers {
  int64_t m, n, k, batch;
  int ndim;
  int64_t shape[FNN_MAXDIM], a[FNN_MAXDIM], b[FNN_MAXDIM];
} Integers;

enum { TILE = 16 }; /* a block's part of c, a thread an element */

/* T is unsigned, so that it wraps. */
template <class T>
static __global__ void product (T *c, const T *a, const T *b, Integers w) {
  SHARED(T, left, [TILE][TILE + 1]);
  SHARED(T, right, [TILE][TILE + 1]);
  int x = threadIdx.x, y = threadIdx.y;
  int64_t j = (int64_t)blockIdx.x * TILE + x;
  for (int64_t z = blockIdx.z; z < w.batch; z += gridDim.z) {
    int64_t rest = z, pa = 0, pb = 0;
    for (int d = w.ndim - 1; d >= 0; d--) {
      pa += rest % w.shape[d] * w.a[d];
      pb += rest % w.shape[d] * w.b[d];
      rest /= w.shape[d];
    }
    for (int64_t top = (int64_t)blockIdx.y * TILE; top < w.m;
         top += (int64_t)gridDim.y * TILE) {
      int64_t i = top + y;
      T sum = 0;
      for (int64_t p = 0; p < w.k; p += TILE) {
        bool a_in = i < w.m && p + x < w.k, b_in = p + y < w.k && j < w.n;
        left[y][x] = a_in ? a[pa + i * w.k + p + x] : 0;
        right[y][x] = b_in ? b[pb + (p + y) * w.n + j] : 0;
        __syncthreads();
        for (int q = 0; q < TILE; q++)
          sum = (T)(sum + (T)(left[y][q] * right[q][x]));
        __syncthreads();
      }
      if (i < w.m && j < w.n) c[(z * w.m + i) * w.n + j] = sum;
    }
  }
}

extern "C" void cuda_matmul_int (Tensor *c, const Tensor *a, const Tensor *b) {
  Integers w = {};
  if (c->numel == 0) return;
  w.ndim = c->ndim - 2;
  w.m = c->shape[w.ndim];
  w.n = c->shape[w.ndim + 1];
  w.k = a->shape[w.ndim + 1];
  w.batch = c->numel / (w.m * w.n);
  for (int d = 0; d < w.ndim; d++) {
    w.shape[d] = c->shape[d];
    w.a[d] = a->stride[d];
    w.b[d] = b->stride[d];
  }
  dim3 block(TILE, TILE);
  dim3 grid((unsigned)((w.n + TILE - 1) / TILE),
            (unsigned)min64((w.m + TILE - 1) / TILE, 65535),
            (unsigned)min64(w.batch, 65535));
#define CALL(T) \
  RUN(c, (product<T>), grid, block, 0, data_of<T>(c), \
      (const T *)data_of<T>(a), (const T *)data_of<T>(b), w)
  switch (c->dtype) {
    case FNN_I64: CALL(uint64_t); break;
    case FNN_I32: CALL(uint32_t); break;
    default: CALL(uint8_t);
  }
#undef CALL
}

/* }====================================================== */
