/* attention_back.c - the gradients of attention, a row of scores at a time. */

#include "cpu.h"

/* One head of one image: rows of q, k, v by their strides. */
typedef struct Head {
  int64_t b, h, m, n, d, e;
  const real *q, *k, *v;
  int64_t sq, sk, sv;
} Head;

static int64_t at (const Tensor *x, int64_t b, int64_t h) {
  return b * x->stride[0] + h * x->stride[1];
}

static Head head_at (const Tensor *q, const Tensor *k, const Tensor *v,
                     int64_t b, int64_t h) {
  int64_t g = h / (q->shape[1] / k->shape[1]);
  return (Head){ b,
                 h,
                 q->shape[2],
                 k->shape[2],
                 q->shape[3],
                 v->shape[3],
                 (const real *)tensor_data(q) + at(q, b, h),
                 (const real *)tensor_data(k) + at(k, b, g),
                 (const real *)tensor_data(v) + at(v, b, g),
                 q->stride[2],
                 k->stride[2],
                 v->stride[2] };
}

static double score (const Head *w, const Attention *a, int64_t i, int64_t j) {
  double s = 0;
  int64_t far = i + w->n - w->m - j;
  if (a->causal && far < 0) return -INFINITY;
  for (int64_t c = 0; c < w->d; c++)
    s += (double)w->q[i * w->sq + c] * (double)w->k[j * w->sk + c];
  s *= a->scale;
  if (a->slopes != NULL)
    s -= (double)((const real *)tensor_data(a->slopes))[w->h] *
         (double)llabs(far);
  if (a->mask == NULL) return s;
  int64_t o = at(a->mask, w->b, w->h) + i * a->mask->stride[2] +
              j * a->mask->stride[3];
  if (a->mask->dtype == FNN_BOOL)
    return ((const bool *)tensor_data(a->mask))[o] ? s : -INFINITY;
  return s + (double)((const real *)tensor_data(a->mask))[o];
}

/* What dropout multiplies weight (i, j) by. */
static double kept (const Head *w, const Attention *a, int64_t heads,
                    int64_t i, int64_t j) {
  uint32_t word[4];
  if (a->dropout == 0) return 1;
  if (a->dropout >= 1) return 0;
  uint64_t e = (uint64_t)(((w->b * heads + w->h) * w->m + i) * w->n + j);
  philox(a->draw.seed, a->draw.counter + e / 4, word);
  double least = floor(a->dropout * 0x1p32);
  return word[e % 4] >= (uint32_t)least ? 1 / (1 - a->dropout) : 0;
}

/* x: dense in any order of its dims */
static void clear (Tensor *x) {
  memset(tensor_data(x), 0, (size_t)x->numel * sizeof(real));
}

void CPU (attention_back)(Tensor *gq, Tensor *gk, Tensor *gv, const Tensor *gy,
                          const Tensor *y, const Tensor *lse, const Tensor *q,
                          const Tensor *k, const Tensor *v,
                          const Attention *a) {
  int64_t heads = q->shape[1], each = heads / k->shape[1];
  clear(gq);
  clear(gk);
  clear(gv);
  for (int64_t p = 0; p < q->shape[0] * heads; p++) {
    Head w = head_at(q, k, v, p / heads, p % heads);
    real *tq = (real *)tensor_data(gq) + at(gq, w.b, w.h);
    real *tk = (real *)tensor_data(gk) + at(gk, w.b, w.h / each);
    real *tv = (real *)tensor_data(gv) + at(gv, w.b, w.h / each);
    const real *fy = (const real *)tensor_data(y) + at(y, w.b, w.h);
    const real *fg = (const real *)tensor_data(gy) + at(gy, w.b, w.h);
    for (int64_t i = 0; i < w.m; i++) {
      const real *g = fg + i * gy->stride[2], *r = fy + i * y->stride[2];
      double sum = (double)((const real *)tensor_data(lse))[p * w.m + i];
      double delta = 0;
      if (isinf(sum) && sum < 0) continue;
      for (int64_t c = 0; c < w.e; c++) delta += (double)g[c] * (double)r[c];
      for (int64_t j = 0; j < w.n; j++) {
        double x = exp(score(&w, a, i, j) - sum), slope = 0;
        double keep = kept(&w, a, heads, i, j);
        for (int64_t c = 0; c < w.e; c++) {
          tv[j * gv->stride[2] + c] += (real)(x * keep * (double)g[c]);
          slope += (double)g[c] * (double)w.v[j * w.sv + c];
        }
        slope = x * (slope * keep - delta) * a->scale;
        for (int64_t c = 0; c < w.d; c++) {
          tq[i * gq->stride[2] + c] +=
              (real)(slope * (double)w.k[j * w.sk + c]);
          tk[j * gk->stride[2] + c] +=
              (real)(slope * (double)w.q[i * w.sq + c]);
        }
      }
    }
  }
}
