/* sweep.c - takes elementwise loops over tensors of any strides. */

#include <stdlib.h>

#include "sweep.h"

#ifdef CPU_ANY

/* Elements that pass through a buffer at a time. */
enum { BLOCK = 512 };

/* Dims go from large strides of the result to small ones, so that memory is
** walked in order even where the result is a transposed view. */
static void sort_dims (Sweep *s) {
  for (int i = 1; i < s->ndim; i++)
    for (int k = i; k > 0; k--) {
      int64_t *r = s->at[0].stride;
      if (llabs(r[k - 1]) >= llabs(r[k])) break;
      int64_t n = s->shape[k];
      s->shape[k] = s->shape[k - 1];
      s->shape[k - 1] = n;
      for (int j = 0; j < s->count; j++) {
        int64_t *t = s->at[j].stride, v = t[k];
        t[k] = t[k - 1];
        t[k - 1] = v;
      }
    }
}

/* Merges dims that one stride walks in every operand. */
static void merge_dims (Sweep *s) {
  int last = 0;
  for (int i = 1; i < s->ndim; i++) {
    bool one = true;
    for (int j = 0; j < s->count; j++) {
      const int64_t *t = s->at[j].stride;
      one = one && t[last] == t[i] * s->shape[i];
    }
    if (!one) last++;
    s->shape[last] = one ? s->shape[last] * s->shape[i] : s->shape[i];
    for (int j = 0; j < s->count; j++)
      s->at[j].stride[last] = s->at[j].stride[i];
  }
  s->ndim = last + 1;
}

void ONCE (sweep_open)(Sweep *s, int count, const Tensor *const *t) {
  bool dense = true;
  s->count = count;
  s->numel = t[0]->numel;
  s->ndim = 0;
  s->a = s->b = 0;
  s->sums = NULL;
  for (int j = 0; j < count; j++) {
    s->at[j].data = tensor_data(t[j]);
    s->at[j].dtype = t[j]->dtype;
    s->at[j].lane = (uint8_t)lane_of((fnn_Dtype)t[j]->dtype);
    dense = dense && tensor_is_dense(t[j]);
  }
  s->stream =
      s->numel * (int64_t)fnn_dtype_size((fnn_Dtype)t[0]->dtype) > STREAM;
  /* In place, the lines that are written have been fetched anyhow. */
  for (int j = 1; j < count; j++)
    if (s->at[j].data == s->at[0].data) s->stream = false;
  if (!dense)
    for (int i = 0; i < t[0]->ndim; i++) {
      if (t[0]->shape[i] == 1) continue;
      s->shape[s->ndim] = t[0]->shape[i];
      for (int j = 0; j < count; j++)
        s->at[j].stride[s->ndim] = t[j]->stride[i];
      s->ndim++;
    }
  if (s->ndim == 0) {
    s->ndim = 1;
    s->shape[0] = s->numel;
    for (int j = 0; j < count; j++) s->at[j].stride[0] = 1;
  } else {
    sort_dims(s);
    merge_dims(s);
  }
}

void ONCE (sweep_number)(Sweep *s, int k, Number *n, double v) {
  Operand *x = &s->at[k];
  if (x->lane == FNN_F64) n->d = v;
  else n->f = (float)v;
  x->data = (char *)n;
  x->dtype = x->lane;
  memset(x->stride, 0, sizeof x->stride);
}

/* The sum of a buffer of reals. */
static double block_sum (const void *p, fnn_Dtype t, int64_t n) {
  double s = 0;
  if (t == FNN_F64) {
    const double *x = p;
    _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s +=
        x[i];
  } else {
    const float *x = p;
    _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s +=
        (double)x[i];
  }
  return s;
}

/* One run of n elements along the last dim; p: where the operands are.  A
** buffer that holds a repeated element is filled once.  *sum: of the
** results, where they are summed. */
static void run_row (const Sweep *s, char *const *p, int64_t n, double *sum) {
  /* Off the place in a page where large operands begin: a load that has the
  ** low bits of a store just done is held back. */
  enum { PAGE = 4096, OFF = 1024, RUN = BLOCK * sizeof(int64_t) };
  _Alignas(PAGE) char room[OFF + SWEEP_MAX * RUN];
  char(*buf)[RUN] = (char(*)[RUN])(room + OFF);
  const Operand *z = &s->at[0];
  int last = s->ndim - 1;
  bool direct = !s->stream && z->dtype == z->lane && z->stride[last] == 1 &&
                s->sums == NULL;
  bool buffered = !direct;
  for (int j = 1; j < s->count; j++)
    buffered = buffered || s->at[j].dtype != s->at[j].lane ||
               s->at[j].stride[last] != 1;
  int64_t most = buffered ? BLOCK : n;
  const void *in[SWEEP_MAX];
  for (int64_t i = 0; i < n; i += most) {
    int64_t m = min64(most, n - i);
    for (int j = 1; j < s->count; j++) {
      const Operand *x = &s->at[j];
      int64_t stride = x->stride[last];
      if (stride == 0 && i > 0) continue;
      fnn_Dtype t = (fnn_Dtype)x->dtype;
      const char *from = p[j] + i * stride * (int64_t)fnn_dtype_size(t);
      size_t run = (size_t)m * fnn_dtype_size(t);
      if (s->stream && stride == 1) run_prefetch(from + run, run);
      in[j - 1] =
          ONCE(run_load)(buf[j], from, t, (fnn_Dtype)x->lane, stride, m);
    }
    size_t size = fnn_dtype_size((fnn_Dtype)z->dtype);
    char *to = p[0] + i * z->stride[last] * (int64_t)size;
    s->loop(direct ? (void *)to : buf[0], in, m, s->a, s->b);
    if (direct) continue;
    if (s->sums != NULL) {
      *sum += block_sum(buf[0], (fnn_Dtype)z->lane, m);
      continue;
    }
    if (s->stream && z->dtype == z->lane && z->stride[last] == 1) {
      ONCE(run_stream)(to, buf[0], (size_t)m * size);
      continue;
    }
    ONCE(run_store)
    (to, (fnn_Dtype)z->dtype, z->stride[last], buf[0], (fnn_Dtype)z->lane, m);
  }
}

/* Elements lo .. hi - 1 in the order of the merged dims. */
static void sweep_range (void *ud, int64_t lo, int64_t hi) {
  const Sweep *s = ud;
  int last = s->ndim - 1;
  int64_t at[FNN_MAXDIM], rest = lo, part = lo / GRAIN;
  double sum = 0;
  for (int i = last; i >= 0; i--) {
    at[i] = rest % s->shape[i];
    rest /= s->shape[i];
  }
  while (lo < hi) {
    char *p[SWEEP_MAX];
    for (int j = 0; j < s->count; j++) {
      int64_t k = 0;
      for (int i = 0; i <= last; i++) k += at[i] * s->at[j].stride[i];
      p[j] = s->at[j].data +
             k * (int64_t)fnn_dtype_size((fnn_Dtype)s->at[j].dtype);
    }
    int64_t n = min64(hi - lo, s->shape[last] - at[last]);
    run_row(s, p, n, &sum);
    lo += n;
    at[last] = 0;
    for (int i = last - 1; i >= 0 && ++at[i] == s->shape[i]; i--) at[i] = 0;
  }
  if (s->sums != NULL) s->sums[part] = sum;
  else if (s->stream) ONCE(run_fence)();
}

/* Whether the loop can have all of it as it lies, at once. */
static bool is_small (const Sweep *s) {
  if (s->ndim != 1 || s->numel > GRAIN || s->numel == 0) return false;
  if (s->sums != NULL) return false;
  for (int j = 0; j < s->count; j++) {
    const Operand *x = &s->at[j];
    bool lies = x->stride[0] == 1 || (s->numel == 1 && j > 0);
    if (!lies || x->dtype != x->lane) return false;
  }
  return true;
}

void ONCE (sweep_run)(Sweep *s) {
  if (is_small(s)) {
    const void *in[SWEEP_MAX] = { NULL };
    for (int j = 1; j < s->count; j++) in[j - 1] = s->at[j].data;
    fnn_poll();
    s->loop(s->at[0].data, in, s->numel, s->a, s->b);
  } else if (s->numel > 0) threads_range(s->numel, GRAIN, sweep_range, s);
}

#endif
