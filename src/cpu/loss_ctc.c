/* loss_ctc.c - connectionist temporal classification (Graves et al. 2006).
**
** The labels of a sequence with a blank before, between and behind them are
** its 2 l + 1 states.  A step stays in a state, goes to the next, or over a
** blank between two labels that differ.  alpha is the logarithm of the
** probability of all ways to a state, its step's included; beta of all ways on
** from there, without it.  In double: over thousands of steps the logarithms
** are large, and what counts is their difference. */

#include "cpu.h"

typedef struct Job {
  real *y; /* or gx */
  const real *x, *gy;
  const int64_t *labels, *spans;
  double *alpha, *loss, *beta; /* beta (n, 2, states): of two steps */
  int64_t steps, n, classes, states, blank;
  bool zero_infinity;
} Job;

/* One sequence of the batch. */
typedef struct Sequence {
  const int64_t *label;
  int64_t steps, states;
} Sequence;

static Sequence sequence (const Job *k, int64_t i) {
  const int64_t *span = k->spans + 3 * i;
  return (Sequence){ k->labels + span[0], span[2], 2 * span[1] + 1 };
}

static int64_t class_of (const Job *k, const Sequence *q, int64_t s) {
  return s % 2 == 1 ? q->label[s / 2] : k->blank;
}

/* Whether a way leads from state s - 2 to s. */
static bool skips (const Sequence *q, int64_t s) {
  return s % 2 == 1 && s > 1 && q->label[s / 2] != q->label[s / 2 - 1];
}

/* log(e^a + e^b + e^c); NaN where one of them is, which fmax passes over. */
static double log_sum (double a, double b, double c) {
  double m = fmax(a, fmax(b, c));
  if (m == -INFINITY) return a + b + c;
  return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

static const real *row (const Job *k, int64_t step, int64_t i) {
  return k->x + (step * k->n + i) * k->classes;
}

/*
** {======================================================
** Forward
** =======================================================
*/

static double forward (const Job *k, int64_t i) {
  Sequence q = sequence(k, i);
  double *a = k->alpha + i * k->steps * k->states;
  if (q.steps == 0) return q.states == 1 ? 0 : INFINITY;
  for (int64_t t = 0; t < q.steps; t++) {
    const real *x = row(k, t, i);
    const double *p = a + (t - 1) * k->states;
    for (int64_t s = 0; s < q.states; s++) {
      double ways = s < 2 ? 0 : -INFINITY;
      if (t > 0)
        ways = log_sum(p[s], s > 0 ? p[s - 1] : -INFINITY,
                       skips(&q, s) ? p[s - 2] : -INFINITY);
      a[t * k->states + s] = ways + (double)x[class_of(k, &q, s)];
    }
  }
  const double *end = a + (q.steps - 1) * k->states + q.states - 1;
  return -log_sum(end[0], q.states > 1 ? end[-1] : -INFINITY, -INFINITY);
}

static void forward_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t i = lo; i < hi; i++) {
    double loss = k->loss[i] = forward(k, i);
    k->y[i] = (real)(k->zero_infinity && loss == INFINITY ? 0 : loss);
  }
}

void CPU (ctc)(Tensor *y, Tensor *alpha, Tensor *loss, const Tensor *x,
               const Tensor *labels, const Tensor *spans, int64_t blank,
               bool zero_infinity) {
  Job k = { .y = tensor_data(y),
            .x = tensor_data(x),
            .labels = tensor_data(labels),
            .spans = tensor_data(spans),
            .alpha = tensor_data(alpha),
            .loss = tensor_data(loss),
            .steps = x->shape[0],
            .n = x->shape[1],
            .classes = x->shape[2],
            .states = alpha->shape[2],
            .blank = blank,
            .zero_infinity = zero_infinity };
  threads_range(k.n, 1, forward_range, &k);
}

/* }====================================================== */

/*
** {======================================================
** Backward: the slope by the log-probability of a class at a step is minus
** the share of the ways that take it there
** =======================================================
*/

static void beta_step (const Job *k, const Sequence *q, int64_t t, int64_t i,
                       double *to, const double *from) {
  if (t == q->steps - 1) {
    for (int64_t s = 0; s < q->states; s++)
      to[s] = s >= q->states - 2 ? 0 : -INFINITY;
    return;
  }
  const real *x = row(k, t + 1, i);
  for (int64_t s = 0; s < q->states; s++) {
    double next = -INFINITY, over = -INFINITY;
    if (s + 1 < q->states)
      next = from[s + 1] + (double)x[class_of(k, q, s + 1)];
    if (s + 2 < q->states && skips(q, s + 2))
      over = from[s + 2] + (double)x[class_of(k, q, s + 2)];
    to[s] = log_sum(from[s] + (double)x[class_of(k, q, s)], next, over);
  }
}

static void backward (const Job *k, int64_t i) {
  Sequence q = sequence(k, i);
  double loss = k->loss[i], g = (double)k->gy[i];
  bool none = k->zero_infinity && loss == INFINITY;
  double *beta = k->beta + i * 2 * k->states;
  for (int64_t t = k->steps - 1; t >= 0; t--) {
    real *gx = k->y + (t * k->n + i) * k->classes;
    memset(gx, 0, (size_t)k->classes * sizeof *gx);
    if (t >= q.steps || none) continue;
    const double *a = k->alpha + (i * k->steps + t) * k->states;
    double *to = beta + t % 2 * k->states;
    beta_step(k, &q, t, i, to, beta + (t + 1) % 2 * k->states);
    for (int64_t s = 0; s < q.states; s++)
      gx[class_of(k, &q, s)] -= (real)(g * exp(a[s] + to[s] + loss));
  }
}

static void backward_range (void *ud, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++) backward(ud, i);
}

void CPU (ctc_back)(Tensor *gx, const Tensor *gy, const Tensor *alpha,
                    const Tensor *loss, const Tensor *x, const Tensor *labels,
                    const Tensor *spans, int64_t blank, bool zero_infinity) {
  size_t mark = fnn_mark();
  Job k = { .y = tensor_data(gx),
            .x = tensor_data(x),
            .gy = tensor_data(gy),
            .labels = tensor_data(labels),
            .spans = tensor_data(spans),
            .alpha = tensor_data(alpha),
            .loss = tensor_data(loss),
            .steps = x->shape[0],
            .n = x->shape[1],
            .classes = x->shape[2],
            .states = alpha->shape[2],
            .blank = blank,
            .zero_infinity = zero_infinity };
  size_t room = (size_t)(k.n * 2 * k.states + 1);
  k.beta = mem_scratch(room * sizeof *k.beta);
  threads_range(k.n, 1, backward_range, &k);
  fnn_escape(mark, NULL);
}

/* }====================================================== */
