/* loss_ids.c - cross entropy of rows of logits against ids.
**
** With K classes, smoothing s and weights w the loss of a row whose id is t is
**   (1 - s) w[t] (lse - x[t]) + s / K sum_c w[c] (lse - x[c]),
** lse the logarithm of the sum of e^x.  It is kept for the way back as the
** maximum and the rest, which makes the probabilities one exponential away. */

#include "reduce.h"

#include "../core/vmath.h"

typedef struct Job {
  real *y, *lse; /* y: or gx */
  const real *x, *w, *gy;
  const int64_t *ids;
  int64_t n, ignore;
  bool one_gy;
  double smooth, scale, total; /* of the weights */
} Job;

/* The sum of w[c] x[c] over a row. */
static double weighed (const Job *k, const real *x) {
  double s = 0;
  for (int64_t c = 0; c < k->n; c++)
    s += (double)(k->w != NULL ? k->w[c] * x[c] : x[c]);
  return s;
}

static void forward_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t o = lo; o < hi; o++) {
    const real *x = k->x + o * k->n;
    int64_t t = k->ids[o];
    k->y[o] = k->lse[2 * o] = k->lse[2 * o + 1] = 0;
    if (t == k->ignore) continue;
    real m = CPU(row_max)(x, k->n);
    double s = CPU(row_exp_sum)(NULL, x, k->n, m);
    double over = (double)log((real)s);
    double w = k->w != NULL ? (double)k->w[t] : 1;
    double loss = (1 - k->smooth) * w * (over - ((double)x[t] - (double)m));
    if (k->smooth != 0)
      loss += k->smooth / (double)k->n *
              (k->total * (over + (double)m) - weighed(k, x));
    k->lse[2 * o] = m;
    k->lse[2 * o + 1] = (real)over;
    k->y[o] = (real)loss;
  }
}

static double total (const real *w, int64_t n) {
  double s = 0;
  if (w == NULL) return (double)n;
  for (int64_t c = 0; c < n; c++) s += (double)w[c];
  return s;
}

void CPU (cross_entropy)(Tensor *y, Tensor *lse, const Tensor *x,
                         const Tensor *ids, const Tensor *w, int64_t rows,
                         int64_t n, int64_t ignore, double smooth) {
  Job k = { .y = tensor_data(y),
            .lse = tensor_data(lse),
            .x = tensor_data(x),
            .ids = tensor_data(ids),
            .n = n,
            .w = w != NULL ? tensor_data(w) : NULL,
            .ignore = ignore,
            .smooth = smooth };
  k.total = total(k.w, n);
  threads_range(rows, grain_rows(2 * n), forward_rows, &k);
}

/* gx[c] = g (p[c] ((1-s) w[t] + s/K sum w) - s/K w[c] - (1-s) w[t] (c = t)) */
static void back_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  const real *w = k->w;
  for (int64_t o = lo; o < hi; o++) {
    const real *x = k->x + o * k->n;
    real *gx = k->y + o * k->n;
    int64_t t = k->ids[o];
    if (t == k->ignore) {
      memset(gx, 0, (size_t)k->n * sizeof *gx);
      continue;
    }
    double g = (double)k->gy[k->one_gy ? 0 : o] * k->scale;
    double hit = (1 - k->smooth) * (w != NULL ? (double)w[t] : 1);
    double each = k->smooth / (double)k->n;
    const real p = (real)(g * (hit + each * k->total)), q = (real)(g * each);
    const real m = k->lse[2 * o], over = k->lse[2 * o + 1];
    if (w != NULL && k->smooth != 0) {
      LANES for (int64_t c = 0; c < k->n; c++) gx[c] =
          p * exp((x[c] - m) - over) - q * w[c];
    } else {
      LANES for (int64_t c = 0; c < k->n; c++) gx[c] =
          p * exp((x[c] - m) - over) - q;
    }
    gx[t] -= (real)(g * hit);
  }
}

void CPU (cross_entropy_back)(Tensor *gx, const Tensor *gy, const Tensor *lse,
                              const Tensor *x, const Tensor *ids,
                              const Tensor *w, int64_t rows, int64_t n,
                              int64_t ignore, double smooth, double scale) {
  Job k = { .y = tensor_data(gx),
            .lse = tensor_data(lse),
            .x = tensor_data(x),
            .gy = tensor_data(gy),
            .ids = tensor_data(ids),
            .n = n,
            .w = w != NULL ? tensor_data(w) : NULL,
            .ignore = ignore,
            .one_gy = gy->numel == 1,
            .smooth = smooth,
            .scale = scale };
  k.total = total(k.w, n);
  threads_range(rows, grain_rows(2 * n), back_rows, &k);
}
