/* matmul.c - the matrix product of tensors: leading dims and strides. */

#include "../core/ops.h"
#include "gemm.h"

/* The leading dims that are left once those that can have become rows of a:
** with the strides of a, b and c along each. */
typedef struct Batch {
  Gemm g;
  int ndim;
  int64_t count;
  int64_t shape[FNN_MAXDIM];
  int64_t a[FNN_MAXDIM], b[FNN_MAXDIM], c[FNN_MAXDIM];
  int64_t each; /* products of a task */
  real *scratch;
  int64_t scratch_each;
} Batch;

static Operand operand_of (const Tensor *x) {
  return (Operand){ .data = tensor_data(x),
                    .row = x->stride[x->ndim - 2],
                    .col = x->stride[x->ndim - 1],
                    .source = source_of(x) };
}

/* The stride of a dim of size 1 means nothing: it becomes a harmless one. */
static void operand_tidy (Operand *x, int64_t rows, int64_t cols) {
  if (cols == 1) x->col = x->row == 1 ? rows : 1;
  if (rows == 1) x->row = x->col == 1 ? cols : 1;
}

/* Whether a's rows go on through a leading dim along which b stays. */
static bool is_rows (const Gemm *g, int64_t a_stride, int64_t b_stride) {
  return b_stride == 0 && (g->m == 1 || a_stride == g->m * g->a.row);
}

/* Adds the leading dims, last first. */
static void batch_dims (Batch *p, const Tensor *c, const Tensor *a,
                        const Tensor *b) {
  Gemm *g = &p->g;
  int64_t c_stride = g->m * g->n;
  for (int d = c->ndim - 3; d >= 0; d--) {
    int64_t size = c->shape[d];
    if (size == 1) continue;
    if (p->ndim == 0 && is_rows(g, a->stride[d], b->stride[d])) {
      if (g->m == 1) g->a.row = a->stride[d];
      g->m *= size;
    } else {
      p->shape[p->ndim] = size;
      p->a[p->ndim] = a->stride[d];
      p->b[p->ndim] = b->stride[d];
      p->c[p->ndim] = c_stride;
      p->ndim++;
      p->count *= size;
    }
    c_stride *= size;
  }
}

static Gemm product_at (const Batch *p, int64_t at) {
  Gemm g = p->g;
  int64_t a = 0, b = 0;
  for (int d = 0; d < p->ndim; d++) {
    int64_t i = at % p->shape[d];
    at /= p->shape[d];
    a += i * p->a[d];
    b += i * p->b[d];
    g.c += i * p->c[d];
  }
  g.a.data = source_at(g.a.source, g.a.data, a);
  g.b.data = source_at(g.b.source, g.b.data, b);
  return g;
}

static void batch_task (void *ud, int64_t task, int worker) {
  const Batch *p = ud;
  int64_t end = min64(p->count, (task + 1) * p->each);
  for (int64_t i = task * p->each; i < end; i++) {
    Gemm g = product_at(p, i);
    CPU(gemm_serial)(&g, p->scratch + worker * p->scratch_each);
  }
}

/* Many small products go each to one thread; few or large ones one by one to
** all threads. */
static void batch_run (Batch *p) {
  enum { SMALL = 400000, MIDDLING = 8000000, SHARE = 300000, CALL = 2000 };
  int width = threads_width();
  double work = (double)p->g.m * (double)p->g.n * (double)p->g.k;
  if (work <= SMALL || (work <= MIDDLING && p->count >= 2 * width)) {
    p->each = max64(1, (int64_t)(SHARE / (work + CALL)));
    p->scratch_each = (CPU(gemm_scratch)(&p->g) + 15) / 16 * 16;
    p->scratch = mem_scratch((size_t)(p->scratch_each * width) * sizeof(real));
    threads_run((p->count + p->each - 1) / p->each, batch_task, p);
  } else {
    for (int64_t i = 0; i < p->count; i++) {
      Gemm g = product_at(p, i);
      CPU(gemm)(&g);
    }
  }
}

void CPU (matmul)(Tensor *c, const Tensor *a, const Tensor *b,
                  const Epilogue *e) {
  int last = c->ndim - 1;
  if (c->numel == 0) return;
  Batch p = { .count = 1 };
  Gemm *g = &p.g;
  g->m = c->shape[last - 1];
  g->n = g->ldc = c->shape[last];
  g->k = a->shape[last];
  if (g->k == 0 && e->accumulate) return;
  g->a = operand_of(a);
  g->b = operand_of(b);
  g->c = tensor_data(c);
  g->bias = e->bias == NULL ? NULL : tensor_data(e->bias);
  g->alpha = (real)e->alpha;
  g->accumulate = e->accumulate;
  g->relu = e->act == MAP_relu;
  batch_dims(&p, c, a, b);
  operand_tidy(&g->a, g->m, g->k);
  operand_tidy(&g->b, g->k, g->n);
  if (p.count == 1) {
    CPU(gemm)(g);
  } else {
    size_t mark = fnn_mark();
    batch_run(&p);
    fnn_escape(mark, NULL);
  }
  if (e->act >= 0 && !g->relu) kernel(c, map)(e->act, c, c, 0, 0);
}
