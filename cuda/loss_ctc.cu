/* loss_ctc.cu - connectionist temporal classification (Graves et al. 2006): a
** block has a sequence, its threads the states of a step (src/cpu/loss_ctc.c
** tells what these are).
**
** On the way back several states may be of one class, whose gradient is their
** sum: of the blanks the block's; of equal labels the first one's thread walks
** the chain of the others, so that no order is left to chance.  Labels that
** are no class, or the blank, are impossible. */

#include "rows.h"

enum { BLOCK = 256 };

typedef struct Job {
  const int64_t *labels, *spans;
  double *alpha, *loss;
  double *beta;  /* (n, 2, states) of two steps */
  double *share; /* (n, 2, states): what the states of a step give */
  int32_t *next; /* (n, states): the next equal label, or -1 */
  bool *owner;   /* (n, states): no equal label comes before */
  int64_t steps, n, classes, states, blank;
  bool zero_infinity;
} Job;

/* One sequence of the batch. */
typedef struct Sequence {
  const int64_t *label;
  int64_t steps, states;
} Sequence;

static __device__ inline Sequence sequence (const Job &k, int64_t i) {
  const int64_t *span = k.spans + 3 * i;
  return { k.labels + span[0], span[2], 2 * span[1] + 1 };
}

static __device__ inline bool is_label (const Job &k, int64_t c) {
  return c >= 0 && c < k.classes && c != k.blank;
}

/* The logarithm of the probability of state s at a step whose row is x. */
template <class T>
static __device__ inline double chance (const Job &k, const Sequence &q,
                                        const T *x, int64_t s) {
  int64_t c = s % 2 == 1 ? q.label[s / 2] : k.blank;
  if (s % 2 == 1 && !is_label(k, c)) return -INFINITY;
  return (double)(Real<T>)x[c];
}

/* Whether a way leads from state s - 2 to s. */
static __device__ inline bool skips (const Sequence &q, int64_t s) {
  return s % 2 == 1 && s > 1 && q.label[s / 2] != q.label[s / 2 - 1];
}

/* log(e^a + e^b + e^c); NaN where one of them is, which fmax passes over. */
static __device__ inline double log_sum (double a, double b, double c) {
  double m = fmax(a, fmax(b, c));
  if (m == -INFINITY) return a + b + c;
  return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

/*
** {======================================================
** Forward
** =======================================================
*/

template <class T>
static __global__ void ctc_forward (T *y, const T *x, Job k) {
  int64_t i = blockIdx.x;
  Sequence q = sequence(k, i);
  double *a = k.alpha + i * k.steps * k.states;
  for (int64_t t = 0; t < q.steps; t++) {
    const T *row = x + (t * k.n + i) * k.classes;
    const double *p = a + (t - 1) * k.states;
    for (int64_t s = threadIdx.x; s < q.states; s += BLOCK) {
      double ways = s < 2 ? 0 : -INFINITY;
      if (t > 0)
        ways = log_sum(p[s], s > 0 ? p[s - 1] : -INFINITY,
                       skips(q, s) ? p[s - 2] : -INFINITY);
      a[t * k.states + s] = ways + chance(k, q, row, s);
    }
    __syncthreads(); /* the next step reads what neighbours wrote */
  }
  if (threadIdx.x != 0) return;
  double loss = q.states == 1 ? 0 : INFINITY;
  if (q.steps > 0) {
    const double *end = a + (q.steps - 1) * k.states + q.states - 1;
    loss = -log_sum(end[0], q.states > 1 ? end[-1] : -INFINITY, -INFINITY);
  }
  k.loss[i] = loss;
  y[i] = number<T>(k.zero_infinity && loss == INFINITY ? 0.0 : loss);
}

/* }====================================================== */

/*
** {======================================================
** Backward
** =======================================================
*/

static __device__ void link_labels (const Job &k, const Sequence &q,
                                    int32_t *next, bool *owner) {
  int64_t count = q.states / 2;
  for (int64_t l = threadIdx.x; l < count; l += BLOCK) {
    int64_t c = q.label[l], after = l + 1, before = l - 1;
    while (after < count && q.label[after] != c) after++;
    while (before >= 0 && q.label[before] != c) before--;
    next[l] = after < count ? (int32_t)after : -1;
    owner[l] = before < 0 && is_label(k, c);
  }
}

/* The logarithm of the probability of all ways on from state s at step t. */
template <class T>
static __device__ inline double beta_of (const Job &k, const Sequence &q,
                                         const T *x, const double *from,
                                         int64_t t, int64_t s) {
  if (t == q.steps - 1) return s >= q.states - 2 ? 0 : -INFINITY;
  double next = -INFINITY, over = -INFINITY;
  if (s + 1 < q.states) next = from[s + 1] + chance(k, q, x, s + 1);
  if (s + 2 < q.states && skips(q, s + 2))
    over = from[s + 2] + chance(k, q, x, s + 2);
  return log_sum(from[s] + chance(k, q, x, s), next, over);
}

/* gx is all 0. */
template <class T>
static __global__ void ctc_backward (T *gx, const T *gy, const T *x, Job k) {
  int64_t i = blockIdx.x;
  Sequence q = sequence(k, i);
  double loss = k.loss[i], g = (double)(Real<T>)gy[i];
  int32_t *next = k.next + i * k.states;
  bool *owner = k.owner + i * k.states;
  if (k.zero_infinity && loss == INFINITY) return;
  link_labels(k, q, next, owner);
  for (int64_t t = q.steps - 1; t >= 0; t--) {
    const double *a = k.alpha + (i * k.steps + t) * k.states;
    double *to = k.beta + (2 * i + t % 2) * k.states, blanks = 0;
    double *share = k.share + (2 * i + t % 2) * k.states;
    const double *from = k.beta + (2 * i + (t + 1) % 2) * k.states;
    const T *row = x + ((t + 1) * k.n + i) * k.classes;
    T *z = gx + (t * k.n + i) * k.classes;
    for (int64_t s = threadIdx.x; s < q.states; s += BLOCK) {
      to[s] = beta_of(k, q, row, from, t, s);
      share[s] = g * exp(a[s] + to[s] + loss);
      if (s % 2 == 0) blanks += share[s];
    }
    blanks = team_fold<Sum>(blanks, BLOCK); /* all have their shares now */
    if (threadIdx.x == 0) z[k.blank] = number<T>(-blanks);
    for (int64_t l = threadIdx.x; l < q.states / 2; l += BLOCK) {
      if (!owner[l]) continue;
      double sum = 0;
      for (int64_t m = l; m >= 0; m = next[m]) sum += share[2 * m + 1];
      z[q.label[l]] = number<T>(-sum);
    }
  }
}

/* }====================================================== */

static Job job (const Tensor *x, const Tensor *alpha, const Tensor *loss,
                const Tensor *labels, const Tensor *spans, int64_t blank,
                bool zero_infinity) {
  Job k = {};
  k.labels = data_of<int64_t>(labels);
  k.spans = data_of<int64_t>(spans);
  k.alpha = data_of<double>(alpha);
  k.loss = data_of<double>(loss);
  k.steps = x->shape[0];
  k.n = x->shape[1];
  k.classes = x->shape[2];
  k.states = alpha->shape[2];
  k.blank = blank;
  k.zero_infinity = zero_infinity;
  return k;
}

extern "C" void cuda_ctc (Tensor *y, Tensor *alpha, Tensor *loss,
                          const Tensor *x, const Tensor *labels,
                          const Tensor *spans, int64_t blank,
                          bool zero_infinity) {
  Job k = job(x, alpha, loss, labels, spans, blank, zero_infinity);
  if (k.n == 0) return;
  WITH_FLOAT(x->dtype, RUN(x, (ctc_forward<T>), (unsigned)k.n, BLOCK, 0,
                           data_of<T>(y), data_of<T>(x), k));
}

extern "C" void cuda_ctc_back (Tensor *gx, const Tensor *gy,
                               const Tensor *alpha, const Tensor *loss,
                               const Tensor *x, const Tensor *labels,
                               const Tensor *spans, int64_t blank,
                               bool zero_infinity) {
  Job k = job(x, alpha, loss, labels, spans, blank, zero_infinity);
  if (gx->numel == 0) return;
  size_t mark = fnn_mark();
  int64_t states = k.n * k.states;
  k.beta = (double *)scratch_for(x, states * 2 * (int64_t)sizeof *k.beta);
  k.share = (double *)scratch_for(x, states * 2 * (int64_t)sizeof *k.share);
  k.next = (int32_t *)scratch_for(x, states * (int64_t)sizeof *k.next);
  k.owner = (bool *)scratch_for(x, states * (int64_t)sizeof *k.owner);
  size_t bytes = (size_t)gx->numel * fnn_dtype_size((fnn_Dtype)gx->dtype);
  cuda_check(cudaMemsetAsync(tensor_data(gx), 0, bytes, cuda_of(gx)->compute),
             "ctc_back");
  WITH_FLOAT(x->dtype, RUN(x, (ctc_backward<T>), (unsigned)k.n, BLOCK, 0,
                           data_of<T>(gx), data_of<T>(gy), data_of<T>(x), k));
  fnn_escape(mark, NULL);
}
