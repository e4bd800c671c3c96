/* attention_back.cu - the gradients of attention's queries, keys and values,
** by making the weights again (Dao 2023, arXiv:2307.08691).
**
** The four products of a tile are not made in one kernel, which would add to
** gq from many blocks: one goes over the keys for gq, two over the queries for
** gk and gv.  The scores are made three times for it, the slopes twice. */

#include "attention_run.h"

enum { THREADS = 128 };

/* delta = sum of gy y of each row, by a warp. */
template <class T>
static __global__ void row_products (Real<T> *delta, Heads gy, Heads y,
                                     int heads, int m, int64_t rows) {
  typedef Real<T> real;
  int64_t row = (int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
  for (; row < rows; row += (int64_t)gridDim.x * (THREADS / WARP)) {
    int64_t head = row / m;
    int b = (int)(head / heads), h = (int)(head % heads), i = (int)(row % m);
    const T *g = row_at<T>(gy, b, h, i), *p = row_at<T>(y, b, h, i);
    real sum = 0;
    for (int c = threadIdx.x % WARP; c < y.width; c += WARP)
      sum += (real)g[c] * (real)p[c];
    sum = team_fold<Sum>(sum, WARP);
    if (threadIdx.x % WARP == 0) delta[row] = sum;
  }
}

template <class T>
static void back (Tensor *gq, Tensor *gk, Tensor *gv, Work t) {
  Heads q = t.x[0], k = t.y[0], v = t.y[1], gy = t.x[1];
  t.to = attention_heads(gq);
  attention_make<T, GRAD_Q>(gq, t);
  if (t.n == 0) return;
  t.rows = t.n;
  t.x[0] = k;
  t.x[1] = v;
  t.y[0] = q;
  t.y[1] = gy;
  t.to = attention_heads(gk);
  attention_make<T, GRAD_K>(gq, t);
  t.to = attention_heads(gv);
  attention_make<T, GRAD_V>(gq, t);
}

extern "C" void cuda_attention_back (Tensor *gq, Tensor *gk, Tensor *gv,
                                     const Tensor *gy, const Tensor *y,
                                     const Tensor *lse, const Tensor *q,
                                     const Tensor *k, const Tensor *v,
                                     const Attention *a) {
  Work t = attention_task(q, k, v, a);
  size_t mark = fnn_mark();
  t.x[1] = attention_heads(gy);
  t.lse = tensor_data(lse);
  t.delta = scratch_for(lse, lse->numel * (lse->dtype == FNN_F64 ? 8 : 4));
  WITH_FLOAT(q->dtype,
             RUN(q, (row_products<T>), blocks_for(lse->numel, THREADS / WARP),
                 THREADS, 0, (Real<T> *)t.delta, t.x[1], attention_heads(y),
                 t.heads, t.m, lse->numel);
             back<T>(gq, gk, gv, t))
  fnn_escape(mark, NULL);
}
