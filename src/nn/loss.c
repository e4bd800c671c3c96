/* loss.c - losses of elements: the rows of loss.def, reduced in one pass; and
** what all losses check. */

#include <math.h>
#include <string.h>

#include "../ops/ops.h"
#include "nn.h"

/*
** {======================================================
** Checks
** =======================================================
*/

void loss_check_reduction (const char *op, fnn_Reduction r) {
  if (r != FNN_MEAN && r != FNN_SUM && r != FNN_NONE)
    fnn_throw(FNN_EARG, "%s: reduction: expected mean, sum or none", op);
}

void loss_check_number (const char *op, const char *name, double v,
                        double least, bool equal) {
  if (isfinite(v) && (v > least || (equal && v == least))) return;
  if (isinf(least))
    fnn_throw(FNN_EARG, "%s: %s must be a finite number (got %g)", op, name,
              v);
  fnn_throw(FNN_EARG, "%s: %s must be %s %g (got %g)", op, name,
            equal ? "at least" : "greater than", least, v);
}

void loss_check_shapes (const char *op, const char *what_x, const Tensor *x,
                        const char *what_y, const Tensor *y) {
  if (!tensor_same_shape(x, y))
    fnn_throw(FNN_ESHAPE,
              "%s: the %s has shape %s, the %s %s (expected the same: "
              "nothing is stretched)",
              op, what_x, shape_text(x), what_y, shape_text(y));
}

Tensor *loss_promote (const char *op, Tensor *x, const Tensor *y) {
  tensor_check_device(op, x, y);
  check_computes(op, y);
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype);
  return fnn_cast(x, dtype_is_float(t) ? t : FNN_F32);
}

Tensor *loss_reduce (Tensor *each, fnn_Reduction r) {
  if (r == FNN_NONE) return each;
  return r == FNN_SUM ? fnn_sum(each, 0, NULL, false)
                      : fnn_mean(each, 0, NULL, false);
}

/* Whether all elements are in lo .. hi; *at is one end of what they are.  A
** device that works later is not waited for: there the floors of the formulas
** hold, and the logarithms of what is no probability are NaN. */
static bool in_range (const Tensor *x, double lo, double hi, double *at) {
  if (x->numel == 0 || !x->storage->device->host) return true;
  size_t m = fnn_mark();
  Tensor *plain = tensor_alias(x);
  double least = fnn_item(fnn_reduce(REDUCE_min, plain, 0, NULL, false, 0));
  double most = fnn_item(fnn_reduce(REDUCE_max, plain, 0, NULL, false, 0));
  fnn_escape(m, NULL);
  *at = most <= hi ? least : most;
  return least >= lo && most <= hi;
}

/* }====================================================== */

/*
** {======================================================
** One row
** =======================================================
*/

/* What a row is called with: x and t, u and the weights or NULL. */
typedef struct Call {
  const char *op; /* in messages */
  int row;
  Tensor *in[4];
  double a, b;
  fnn_Reduction reduction;
} Call;

static void loss_back (Node *n, Tensor *gy);

#define LOSS(name, ...) { #name, loss_back },
static const Rule rules[LOSS_COUNT] = {
#include "../core/loss.def"
};
#undef LOSS

static void loss_back (Node *n, Tensor *gy) {
  const Tensor *in[4];
  for (int k = 0; k < 4; k++) in[k] = graph_saved(n, k);
  for (int k = 0; k < n->nin; k++) {
    if (!graph_wants(n, k)) continue;
    Tensor *gx = like_in_order(in[0], (fnn_Dtype)in[0]->dtype);
    kernel(gx, loss_back)((int)n->i[0], k, gx, gy, in, n->a[0], n->a[1],
                          n->a[2]);
    graph_give(n, k, gx);
  }
}

/* u or the weights in the shape of x. */
static Tensor *stretched (const char *op, const char *what, const Tensor *x,
                          const Tensor *u) {
  bool fits = u->ndim <= x->ndim;
  for (int i = 1; fits && i <= u->ndim; i++) {
    int64_t size = u->shape[u->ndim - i];
    fits = size == 1 || size == x->shape[x->ndim - i];
  }
  if (!fits)
    fnn_throw(FNN_ESHAPE, "%s: the %s of shape %s does not broadcast to %s",
              op, what, shape_text(u), shape_text(x));
  return view_broadcast(u, x->ndim, x->shape);
}

/* The loss of c; third: what u is, in messages. */
static Tensor *loss (Call *c, const char *third) {
  Tensor *view[4] = { NULL };
  const Tensor **in = (const Tensor **)view;
  loss_check_reduction(c->op, c->reduction);
  for (int k = 0; k < 4; k++)
    if (c->in[k] != NULL) c->in[k] = autocast_wide(c->in[k]);
  tensor_check_float(c->op, c->in[0]);
  loss_check_shapes(c->op, "prediction", c->in[0], "target", c->in[1]);
  for (int k = 1; k < 4; k++)
    if (c->in[k] != NULL) c->in[0] = loss_promote(c->op, c->in[0], c->in[k]);
  Tensor *x = view[0] = c->in[0];
  for (int k = 1; k < 4; k++) {
    if (c->in[k] == NULL) continue;
    c->in[k] = fnn_cast(c->in[k], (fnn_Dtype)x->dtype);
    view[k] = stretched(c->op, k == 2 ? third : "weight", x, c->in[k]);
  }
  double scale = c->reduction == FNN_MEAN ? 1 / (double)x->numel : 1;
  Tensor *y =
      c->reduction == FNN_NONE
          ? like_in_order(x, (fnn_Dtype)x->dtype)
          : tensor_new(0, NULL, (fnn_Dtype)x->dtype, x->storage->device);
  kernel(x, loss)(c->row, y, in, c->a, c->b, scale);
  Node *n =
      graph_record(y, &rules[c->row], c->in[2] != NULL ? 3 : 2, c->in, 4);
  if (n == NULL) return y;
  n->i[0] = c->row;
  n->a[0] = c->a;
  n->a[1] = c->b;
  n->a[2] = scale;
  for (int k = 0; k < 4; k++) graph_save(n, k, view[k]);
  return y;
}

/* Rows without a third operand and weights. */
static Tensor *plain (int row, Tensor *x, Tensor *t, double a,
                      fnn_Reduction r) {
  Call c = { rules[row].name, row, { x, t }, a, 0, r };
  return loss(&c, "");
}

/* }====================================================== */

/*
** {======================================================
** Losses of distances
** =======================================================
*/

Tensor *fnn_mse (Tensor *x, Tensor *t, fnn_Reduction r) {
  return plain(LOSS_mse, x, t, 0, r);
}

Tensor *fnn_l1 (Tensor *x, Tensor *t, fnn_Reduction r) {
  return plain(LOSS_l1, x, t, 0, r);
}

Tensor *fnn_huber (Tensor *x, Tensor *t, double delta, fnn_Reduction r) {
  loss_check_number("huber", "delta", delta, 0, false);
  return plain(LOSS_huber, x, t, delta, r);
}

Tensor *fnn_smooth_l1 (Tensor *x, Tensor *t, double beta, fnn_Reduction r) {
  loss_check_number("smooth_l1", "beta", beta, 0, true);
  return plain(LOSS_smooth_l1, x, t, beta, r);
}

/* }====================================================== */

/*
** {======================================================
** Losses of probabilities
** =======================================================
*/

Tensor *fnn_bce (Tensor *x, Tensor *t, Tensor *weight, fnn_Reduction r) {
  double at;
  tensor_check_float("bce", x);
  if (!in_range(x, 0, 1, &at))
    fnn_throw(FNN_EARG,
              "bce: predictions must lie in 0 .. 1 (got %g; bce_with_logits "
              "takes logits)",
              at);
  Call c = { "bce", LOSS_bce, { x, t, NULL, weight }, 0, 0, r };
  return loss(&c, "");
}

Tensor *fnn_bce_with_logits (Tensor *x, Tensor *t, Tensor *weight,
                             Tensor *pos_weight, fnn_Reduction r) {
  Call c = { "bce_with_logits",
             LOSS_bce_with_logits,
             { x, t, pos_weight != NULL ? tensor_alias(pos_weight) : NULL,
               weight },
             0,
             0,
             r };
  return loss(&c, "pos_weight");
}

Tensor *fnn_focal (Tensor *x, Tensor *t, double alpha, double gamma,
                   fnn_Reduction r) {
  loss_check_number("focal", "gamma", gamma, 0, true);
  if (!(alpha <= 1))
    fnn_throw(FNN_EARG,
              "focal: alpha must be between 0 and 1, or negative for none "
              "(got %g)",
              alpha);
  Call c = { "focal", LOSS_focal, { x, t }, alpha, gamma, r };
  return loss(&c, "");
}

Tensor *fnn_kl_div (Tensor *x, Tensor *t, bool log_target, fnn_Reduction r) {
  int row = log_target ? LOSS_kl_div_log : LOSS_kl_div;
  bool batch = r == FNN_BATCHMEAN;
  Call c = { "kl_div", row, { x, t }, 0, 0, batch ? FNN_SUM : r };
  Tensor *y = loss(&c, "");
  return batch && x->ndim > 0 ? fnn_scale(y, 1 / (double)x->shape[0]) : y;
}

Tensor *fnn_kl_divergence (Tensor *x, Tensor *t, fnn_Reduction r) {
  loss_check_reduction("kl_divergence", r);
  if (x->ndim == 0)
    fnn_throw(FNN_ESHAPE, "kl_divergence: the prediction needs a dim of "
                          "probabilities (got shape ())");
  if (r == FNN_SUM) return plain(LOSS_kl_divergence, x, t, 0, r);
  int last = x->ndim - 1;
  Tensor *each = plain(LOSS_kl_divergence, x, t, 0, FNN_NONE);
  return loss_reduce(fnn_sum(each, 1, &last, false), r);
}

/* }====================================================== */

/*
** {======================================================
** Losses of laws
** =======================================================
*/

/* u with a last dim of 1 where it lacks x's. */
static Tensor *with_last (const Tensor *x, Tensor *u) {
  bool lacks = u->ndim + 1 == x->ndim;
  for (int i = 0; lacks && i < u->ndim; i++)
    lacks = u->shape[i] == x->shape[i];
  return lacks ? fnn_unsqueeze(u, -1) : u;
}

Tensor *fnn_gaussian_nll (Tensor *x, Tensor *t, Tensor *var, bool full,
                          double eps, fnn_Reduction r) {
  double least;
  loss_check_number("gaussian_nll", "eps", eps, 0, false);
  if (!in_range(var, 0, INFINITY, &least) && least < 0)
    fnn_throw(FNN_EARG,
              "gaussian_nll: variances must not be negative (got %g; "
              "gaussian_nll_log_var takes their logarithms)",
              least);
  Call c = { "gaussian_nll",
             LOSS_gaussian_nll,
             { x, t, with_last(x, var) },
             eps,
             full ? 0.5 * log(2 * M_PI) : 0,
             r };
  return loss(&c, "variance");
}

Tensor *fnn_gaussian_nll_log_var (Tensor *x, Tensor *t, Tensor *log_var,
                                  fnn_Reduction r) {
  Call c = { "gaussian_nll_log_var",
             LOSS_gaussian_nll_log_var,
             { x, t, with_last(x, log_var) },
             0,
             0,
             r };
  return loss(&c, "logarithm of the variance");
}

Tensor *fnn_poisson_nll (Tensor *x, Tensor *t, bool log_input, bool full,
                         double eps, fnn_Reduction r) {
  loss_check_number("poisson_nll", "eps", eps, 0, true);
  Call c = {
    "poisson_nll", log_input ? LOSS_poisson_nll : LOSS_poisson_nll_rate,
    { x, t },      eps,
    full ? 1 : 0,  r
  };
  return loss(&c, "");
}

/* }====================================================== */

/*
** {======================================================
** Losses of margins
** =======================================================
*/

Tensor *fnn_hinge (Tensor *x, Tensor *t, double margin, fnn_Reduction r) {
  loss_check_number("hinge", "margin", margin, -INFINITY, false);
  return plain(LOSS_hinge, x, t, margin, r);
}

Tensor *fnn_hinge_embedding (Tensor *x, Tensor *t, double margin,
                             fnn_Reduction r) {
  loss_check_number("hinge_embedding", "margin", margin, -INFINITY, false);
  return plain(LOSS_hinge_embedding, x, tensor_alias(t), margin, r);
}

Tensor *fnn_margin_ranking (Tensor *x, Tensor *t, Tensor *y, double margin,
                            fnn_Reduction r) {
  loss_check_number("margin_ranking", "margin", margin, -INFINITY, false);
  Call c = {
    "margin_ranking", LOSS_margin_ranking, { x, t, y }, margin, 0, r
  };
  return loss(&c, "order");
}

/* }====================================================== */
