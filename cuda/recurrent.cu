/* recurrent.cu - recurrent networks: one layer over all steps.
**
** A step is a product of the states with the weights, which cuBLAS makes, and
** a kernel over the states, a thread an element of h. Sums and an LSTM's c are
** in f32 where the rest is in 16 bits. All steps are put on the stream at once:
** nothing waits on the host, and a recorded step replays them. */

#include "cublas.h"
#include "words.h"

#include "../src/core/ops.h"

enum { THREADS = 256 };

/* What a thread needs of step s; rows of the batch lie n apart, those of gates
** `wide`. */
template <class T> struct Step {
  int64_t count, n, wide, time; /* count: batch * n */
  const int64_t *length;        /* (batch), or NULL */
  T *gate, *u, *h;              /* u: a GRU's, of n */
  Real<T> *c;
  const T *old, *bias; /* h before; NULL: zeros */
  const T *start;      /* what a sequence starts from, that has not yet */
  bool reverse;
  const Real<T> *oldc, *product; /* c before; h times the weights */
  /* backward */
  T *dgate, *du, *dall; /* dall: of all of a GRU's gates, by the product */
  Real<T> *dh, *dc;
  const T *dz;
};

template <class T>
static __device__ inline bool is_done (const Step<T> &k, int64_t b) {
  return k.length != NULL && k.time >= k.length[b];
}

template <class T, class V>
static __device__ inline Real<T> or_zero (const V *p, int64_t i) {
  return p != NULL ? (Real<T>)p[i] : (Real<T>)0;
}

/* The element i of h before the step, which z has only of steps that were. */
template <class T>
static __device__ inline Real<T> before (const Step<T> &k, int64_t i) {
  bool waits =
      k.reverse && k.length != NULL && k.time + 1 >= k.length[i / k.n];
  return or_zero<T>(waits ? k.start : k.old, i);
}

/*
** {======================================================
** Forward
** =======================================================
*/

/* Of the element i of h, whose gates stand from g on: what follows from their
** sums. */
template <class T, int CELL>
static __device__ inline void forward_cell (const Step<T> &k, int64_t i,
                                            int64_t g) {
  typedef Real<T> real;
  const int64_t n = k.n;
  real a[4], h;
  for (int j = 0; j < (CELL == FNN_LSTM ? 4 : CELL == FNN_GRU ? 3 : 1); j++)
    a[j] = (real)k.gate[g + j * n];
  if (k.product != NULL)
    for (int j = 0; j < (CELL == FNN_LSTM ? 4 : CELL == FNN_GRU ? 2 : 1); j++)
      a[j] += k.product[g + j * n];
  if (CELL == FNN_LSTM) {
    real in = sigmoid(a[0]), keep = sigmoid(a[1]);
    real v = tanh(a[2]), out = sigmoid(a[3]);
    real c = keep * or_zero<T>(k.oldc, i) + in * v;
    k.gate[g] = number<T>(in);
    k.gate[g + n] = number<T>(keep);
    k.gate[g + 2 * n] = number<T>(v);
    k.gate[g + 3 * n] = number<T>(out);
    k.c[i] = c;
    h = out * tanh(c);
  } else if (CELL == FNN_GRU) {
    real u = or_zero<T>(k.bias, i % n);
    if (k.product != NULL) u += k.product[g + 2 * n];
    real r = sigmoid(a[0]), z = sigmoid(a[1]), v = tanh(a[2] + r * u);
    k.gate[g] = number<T>(r);
    k.gate[g + n] = number<T>(z);
    k.gate[g + 2 * n] = number<T>(v);
    k.u[i] = number<T>(u);
    h = (1 - z) * v + z * before(k, i);
  } else {
    h = CELL == FNN_RNN_TANH ? (real)tanh(a[0]) : a[0] < 0 ? (real)0 : a[0];
    k.gate[g] = number<T>(h);
  }
  k.h[i] = number<T>(h);
}

template <class T, int CELL> static __global__ void forward (Step<T> k) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (; i < k.count; i += stride) {
    int64_t b = i / k.n;
    if (!is_done(k, b)) {
      forward_cell<T, CELL>(k, i, b * k.wide + i % k.n);
    } else { /* zeros come later: the next step needs these */
      k.h[i] = number<T>(before(k, i));
      if (CELL == FNN_LSTM) k.c[i] = or_zero<T>(k.oldc, i);
    }
  }
}

/* Zeros after the end of each sequence of z (steps, batch, n). */
template <class T>
static __global__ void clear (T *z, const int64_t *length, int64_t steps,
                              int64_t batch, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (; i < steps * batch * n; i += stride)
    if (i / (batch * n) >= length[i / n % batch]) z[i] = number<T>(0.0f);
}

/* }====================================================== */

/*
** {======================================================
** Backward: dh and dc as in src/cpu/recurrent.c
** =======================================================
*/

template <class T, int CELL>
static __device__ inline void backward_cell (const Step<T> &k, int64_t i,
                                             int64_t g) {
  typedef Real<T> real;
  const int64_t n = k.n;
  real e = k.dh[i] + (real)k.dz[i];
  if (CELL == FNN_LSTM) {
    real in = (real)k.gate[g], keep = (real)k.gate[g + n];
    real v = (real)k.gate[g + 2 * n], out = (real)k.gate[g + 3 * n];
    real t = tanh(k.c[i]), s = k.dc[i] + e * out * (1 - t * t);
    real old = or_zero<T>(k.oldc, i);
    k.dgate[g] = number<T>(s * v * (in * (1 - in)));
    k.dgate[g + n] = number<T>(s * old * (keep * (1 - keep)));
    k.dgate[g + 2 * n] = number<T>(s * in * (1 - v * v));
    k.dgate[g + 3 * n] = number<T>(e * t * (out * (1 - out)));
    k.dc[i] = s * keep;
    k.dh[i] = 0;
  } else if (CELL == FNN_GRU) {
    real r = (real)k.gate[g], z = (real)k.gate[g + n];
    real v = (real)k.gate[g + 2 * n], dv = e * (1 - z) * (1 - v * v);
    T dr = number<T>(dv * (real)k.u[i] * (r * (1 - r)));
    T dz = number<T>(e * (before(k, i) - v) * (z * (1 - z)));
    T du = number<T>(dv * r);
    k.dgate[g] = k.dall[g] = dr;
    k.dgate[g + n] = k.dall[g + n] = dz;
    k.dgate[g + 2 * n] = number<T>(dv);
    k.du[i] = k.dall[g + 2 * n] = du;
    k.dh[i] = e * z;
  } else {
    real h = (real)k.gate[g];
    real slope = CELL == FNN_RNN_TANH ? 1 - h * h : h > 0 ? (real)1 : (real)0;
    k.dgate[g] = number<T>(e * slope);
    k.dh[i] = 0;
  }
}

template <class T, int CELL> static __global__ void backward (Step<T> k) {
  const int gates = CELL == FNN_LSTM ? 4 : CELL == FNN_GRU ? 3 : 1;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (; i < k.count; i += stride) {
    int64_t b = i / k.n, g = b * k.wide + i % k.n;
    if (!is_done(k, b)) {
      backward_cell<T, CELL>(k, i, g);
      continue;
    }
    for (int j = 0; j < gates; j++) k.dgate[g + j * k.n] = number<T>(0.0f);
    if (CELL == FNN_GRU) {
      for (int j = 0; j < gates; j++) k.dall[g + j * k.n] = number<T>(0.0f);
      k.du[i] = number<T>(0.0f);
    }
  }
}

/* }====================================================== */

/*
** {======================================================
** All steps
** =======================================================
*/

/* The places of step s in what r holds; counted as it goes. */
template <class T> static Step<T> step_of (const Recurrence *r, int64_t s) {
  Step<T> k = {};
  int64_t size = r->batch * r->hidden;
  int64_t now = r->reverse ? r->steps - 1 - s : s;
  int64_t past = r->reverse ? now + 1 : now - 1;
  k.count = size;
  k.n = r->hidden;
  k.wide = cell_gates(r->cell) * k.n;
  k.time = now;
  k.length = data_of<int64_t>(r->lengths);
  k.gate = data_of<T>(r->gates) + now * r->batch * k.wide;
  k.h = data_of<T>(r->z) + now * size;
  k.old = s > 0 ? data_of<T>(r->z) + past * size : data_of<T>(r->h);
  k.start = data_of<T>(r->h);
  k.reverse = r->reverse;
  k.bias = data_of<T>(r->bias);
  if (r->cell == FNN_GRU) k.u = data_of<T>(r->inner) + now * size;
  if (r->cell == FNN_LSTM) {
    Real<T> *c = data_of<Real<T>>(r->inner);
    k.c = c + now * size;
    k.oldc = s > 0 ? c + past * size : data_of<Real<T>>(r->c);
  }
  return k;
}

/* What both products of a step have in common. */
static Product product_of (const Recurrence *r) {
  Product p = {};
  p.m = r->batch;
  p.batch = 1;
  p.b.data = tensor_data(r->w);
  p.b.ld = r->hidden;
  p.ab = (fnn_Dtype)r->w->dtype;
  p.dtype = p.ab == FNN_F64 ? FNN_F64 : FNN_F32;
  p.alpha = 1;
  return p;
}

#define CELLS(r, kernel, k) \
  do { \
    unsigned grid_ = blocks_for((k).count, THREADS); \
    switch ((r)->cell) { \
      case FNN_LSTM: \
        RUN((r)->z, (kernel<T, FNN_LSTM>), grid_, THREADS, 0, k); \
        break; \
      case FNN_GRU: \
        RUN((r)->z, (kernel<T, FNN_GRU>), grid_, THREADS, 0, k); \
        break; \
      case FNN_RNN_RELU: \
        RUN((r)->z, (kernel<T, FNN_RNN_RELU>), grid_, THREADS, 0, k); \
        break; \
      default: RUN((r)->z, (kernel<T, FNN_RNN_TANH>), grid_, THREADS, 0, k); \
    } \
  } while (0)

template <class T>
static void forward_steps (const Recurrence *r, Tensor *sums) {
  Cuda *card = cuda_of(r->z);
  Product p = product_of(r);
  p.n = p.ldc = sums->shape[1];
  p.k = p.a.ld = r->hidden;
  p.b.transposed = true;
  p.c = tensor_data(sums);
  for (int64_t s = 0; s < r->steps; s++) {
    fnn_poll();
    Step<T> k = step_of<T>(r, s);
    if (k.old != NULL) {
      p.a.data = k.old;
      cublas_product(card, &p, "recurrent");
      k.product = data_of<Real<T>>(sums);
    }
    CELLS(r, forward, k);
  }
}

/* Row i of z or of inner, as (batch, hidden). */
static Tensor *state (const Tensor *x, int64_t i) {
  return tensor_view(x, 2, x->shape + 1, x->stride + 1,
                     x->offset + i * x->stride[0]);
}

extern "C" void cuda_recurrent (const Recurrence *r) {
  size_t mark = fnn_mark();
  fnn_Dtype wide = r->z->dtype == FNN_F64 ? FNN_F64 : FNN_F32;
  int64_t last = r->reverse ? 0 : r->steps - 1;
  int64_t shape[2] = { r->batch, r->w->shape[0] };
  Tensor *sums = tensor_new(2, shape, wide, r->z->storage->device);
  WITH_FLOAT(r->z->dtype, forward_steps<T>(r, sums))
  kernel(r->z, copy)(state(r->z, r->steps), state(r->z, last));
  if (r->cell == FNN_LSTM)
    kernel(r->z, copy)(state(r->z, r->steps + 1), state(r->inner, last));
  if (r->lengths != NULL) {
    int64_t count = r->steps * r->batch * r->hidden;
    WITH_FLOAT(r->z->dtype,
               RUN(r->z, (clear<T>), blocks_for(count, THREADS), THREADS, 0,
                   data_of<T>(r->z), (const int64_t *)tensor_data(r->lengths),
                   r->steps, r->batch, r->hidden))
  }
  fnn_escape(mark, NULL);
}

/* The tensors of the backward pass: see kernels.def.  all: what the product
** reads of a GRU, (batch, 3 hidden). */
typedef struct Back {
  Tensor *gates, *inner, *h, *c, *all;
  const Tensor *z;
} Back;

template <class T>
static void backward_steps (const Recurrence *r, const Back *g,
                            bool to_start) {
  Cuda *card = cuda_of(r->z);
  Product p = product_of(r);
  p.n = p.ldc = r->hidden;
  p.k = p.a.ld = r->w->shape[0];
  p.c = tensor_data(g->h);
  p.beta = 1;
  for (int64_t s = r->steps - 1; s >= 0; s--) {
    fnn_poll();
    Step<T> k = step_of<T>(r, s);
    k.dgate = data_of<T>(g->gates) + k.time * r->batch * k.wide;
    k.dall = data_of<T>(g->all);
    if (g->inner != NULL) k.du = data_of<T>(g->inner) + k.time * k.count;
    k.dz = data_of<T>(g->z) + k.time * k.count;
    k.dh = data_of<Real<T>>(g->h);
    k.dc = data_of<Real<T>>(g->c);
    CELLS(r, backward, k);
    p.a.data = k.dall != NULL ? k.dall : k.dgate;
    if (s > 0 || to_start) cublas_product(card, &p, "recurrent");
  }
}

extern "C" void cuda_recurrent_back (Tensor *ggates, Tensor *ginner,
                                     Tensor *gh, Tensor *gc, const Tensor *gz,
                                     const Recurrence *r) {
  size_t mark = fnn_mark();
  const fnn_Device *d = gz->storage->device;
  fnn_Dtype wide = gz->dtype == FNN_F64 ? FNN_F64 : FNN_F32;
  int64_t shape[2] = { r->batch, r->hidden };
  Back g = { ggates, ginner, gh, gc, NULL, gz };
  if (g.h == NULL) g.h = tensor_new(2, shape, wide, d);
  kernel(gz, copy)(g.h, state(gz, r->steps));
  if (r->cell == FNN_LSTM) {
    if (g.c == NULL) g.c = tensor_new(2, shape, wide, d);
    kernel(gz, copy)(g.c, state(gz, r->steps + 1));
  }
  shape[1] *= 3;
  if (r->cell == FNN_GRU)
    g.all = tensor_new(2, shape, (fnn_Dtype)gz->dtype, d);
  WITH_FLOAT(gz->dtype, backward_steps<T>(r, &g, gh != NULL))
  fnn_escape(mark, NULL);
}

/* }====================================================== */
