/* attention.cu - softmax(scale q k') v, without ever storing the scores
** (Milakov and Gimelshein 2018, Dao et al. 2022, arXiv:2205.14135).
**
** A block takes a tile of queries over all keys.  Where there are too few
** blocks, as when a text is written a token at a time, several share the keys
** of a tile, and a second kernel joins their parts. */

#include "attention_run.h"

/* Parts are made where there are fewer blocks, until there are so many, of so
** many keys at least: all fixed, so that bits do not depend on the card. */
enum { FEW_BLOCKS = 64, MANY_BLOCKS = 256, KEYS_LEAST = 128, JOIN = 256 };

/*
** {======================================================
** Operands
** =======================================================
*/

Heads attention_heads (const Tensor *x) {
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype);
  int64_t all = (int64_t)(uintptr_t)tensor_data(x);
  for (int d = 0; d < 3; d++) all |= x->stride[d] * size;
  if (x->shape[3] > INT_MAX)
    fnn_throw(FNN_ESHAPE, "scaled_dot_product_attention: heads too wide");
  int width = (int)x->shape[3];
  return { tensor_data(x), x->stride[0],
           x->stride[1],   x->stride[2],
           width,          (all | width * size) % 16 == 0 && width % 4 == 0 };
}

Work attention_task (const Tensor *q, const Tensor *k, const Tensor *v,
                     const Attention *a) {
  Work t = {};
  if (q->shape[2] > INT_MAX / 2 || k->shape[2] > INT_MAX / 2 ||
      q->shape[1] > INT_MAX)
    fnn_throw(FNN_ESHAPE, "scaled_dot_product_attention: too long");
  t.m = (int)q->shape[2];
  t.n = (int)k->shape[2];
  t.heads = (int)q->shape[1];
  t.each = (int)(q->shape[1] / k->shape[1]);
  t.together = t.splits = 1;
  t.rows = t.m;
  t.keys = (t.n + TENSOR_ROWS - 1) / TENSOR_ROWS * TENSOR_ROWS;
  t.x[0] = attention_heads(q);
  t.y[0] = attention_heads(k);
  t.y[1] = attention_heads(v);
  if (a->mask != NULL) {
    t.mask = tensor_data(a->mask);
    t.mask_is_bool = a->mask->dtype == FNN_BOOL;
    for (int d = 0; d < 4; d++) t.mask_stride[d] = a->mask->stride[d];
  }
  t.slopes = data_of<void>(a->slopes);
  t.causal = a->causal;
  t.scale = a->scale;
  t.draw = a->draw;
  t.least = (uint64_t)floor(a->dropout * 0x1p32);
  t.keep = a->dropout < 1 ? 1 / (1 - a->dropout) : 0;
  return t;
}

/* }====================================================== */

/*
** {======================================================
** Parts
** =======================================================
*/

/* y from its parts, an element a thread. */
template <class T>
static __global__ void join (Work t, int64_t rows, int64_t n) {
  typedef Real<T> real;
  int64_t k = (int64_t)blockIdx.x * JOIN + threadIdx.x;
  for (; k < n; k += (int64_t)gridDim.x * JOIN) {
    int64_t row = k / t.to.width, c = k % t.to.width;
    const Soft<real> *stats = (const Soft<real> *)t.stats + row;
    const real *part = (const real *)t.part + k;
    Soft<real> all = soft_none<real>();
    real sum = 0;
    for (int i = 0; i < t.splits; i++)
      all = SoftFold::of(all, stats[i * rows]);
    for (int i = 0; i < t.splits; i++) {
      real m = stats[i * rows].m;
      if (m != -(real)INFINITY) sum += exp(m - all.m) * part[i * n];
    }
    int64_t head = row / t.m;
    T *to = row_at<T>(t.to, (int)(head / t.heads), (int)(head % t.heads),
                      (int)(row % t.m));
    to[c] = number<T>(all.s == 0 ? 0 : sum * (real)t.keep / all.s);
    if (c == 0 && t.lse != NULL) ((real *)t.lse)[row] = all.m + log(all.s);
  }
}

/* How the keys are shared out, and room for the parts. */
static void split (const Tensor *y, Work *t) {
  int64_t tiles = (t->rows + TENSOR_ROWS - 1) / TENSOR_ROWS;
  int64_t blocks = y->shape[0] * (t->heads / t->together) * tiles;
  int64_t splits = min64(MANY_BLOCKS / blocks, t->n / KEYS_LEAST);
  if (blocks > FEW_BLOCKS || splits < 2) return;
  int64_t tall = (t->keys / TENSOR_ROWS + splits - 1) / splits;
  int64_t rows = y->shape[0] * t->heads * t->m;
  int64_t size = y->dtype == FNN_F64 ? 8 : 4;
  t->keys = (int)(tall * TENSOR_ROWS);
  t->splits = (t->n + t->keys - 1) / t->keys;
  t->part = scratch_for(y, t->splits * rows * t->to.width * size);
  t->stats = scratch_for(y, t->splits * rows * 2 * size);
}

/* }====================================================== */

extern "C" void cuda_attention (Tensor *y, Tensor *lse, const Tensor *q,
                                const Tensor *k, const Tensor *v,
                                const Attention *a) {
  Work t = attention_task(q, k, v, a);
  size_t mark = fnn_mark();
  t.to = attention_heads(y);
  t.lse = data_of<void>(lse);
  /* few queries of all heads that share keys: together */
  if (t.m * (int64_t)t.each <= TENSOR_ROWS) {
    t.together = t.each;
    t.rows = t.m * t.each;
  }
  split(y, &t);
  WITH_FLOAT(y->dtype, attention_make<T, FORWARD>(q, t); if (t.splits > 1)
                 RUN(y, (join<T>), blocks_for(y->numel, JOIN), JOIN, 0, t,
                     y->numel / t.to.width, y->numel))
  fnn_escape(mark, NULL);
}
