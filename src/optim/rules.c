/* rules.c - the optimizers there are: a row each.
**
** What a step comes to is worked out here, in double, as PyTorch's formulas
** have it; the rest is a row of optim.def.  Defaults are PyTorch's too.
**
** SGD       momentum as PyTorch's: buf = mu buf + (1 - dampening) g, the
**           first step buf = g; nesterov takes g + mu buf
** Adam      Kingma and Ba 2015, arXiv:1412.6980, eps outside the root
** AdamW     Loshchilov and Hutter 2019, arXiv:1711.05101
** NAdam     Dozat 2016; RAdam Liu et al. 2020, arXiv:1908.03265
** Adamax    Kingma and Ba, section 7.1
** RMSprop   Tieleman and Hinton 2012; centered as in Graves 2013,
**           arXiv:1308.0850
** Adagrad   Duchi et al. 2011; Adadelta Zeiler 2012, arXiv:1212.5701
** Lion      Chen et al. 2023, arXiv:2302.06675
** Adafactor Shazeer and Stern 2018, arXiv:1804.04235, as PyTorch has it: lr
**           bounds the relative step, eps1 keeps roots and means from 0 */

#include <float.h>
#include <math.h>

#include "optim.h"

#define OPT(name, ...) \
  { \
#name, { __VA_ARGS__ } \
  }
#define DECAY OPT(weight_decay, 0), OPT(maximize, 0)
#define END \
  { \
    NULL, { 0 } \
  }

static void decay_gradient (const Values *v, Update *u) {
  u->couple = value(v, weight_decay);
  u->shrink = 1;
}

static void decay_weight (const Values *v, Update *u) {
  u->couple = 0;
  u->shrink = 1 - value(v, lr) * value(v, weight_decay);
}

static unsigned needs_first (const Values *v, const Tensor *p) {
  (void)v;
  (void)p;
  return 1;
}

static unsigned needs_two (const Values *v, const Tensor *p) {
  (void)v;
  (void)p;
  return 3;
}

/*
** {======================================================
** SGD
** =======================================================
*/

static const fnn_Option sgd_options[] = { OPT(lr, 1e-3),
                                          OPT(momentum, 0),
                                          OPT(dampening, 0),
                                          OPT(nesterov, 0),
                                          DECAY,
                                          END };

static void sgd_check (const Values *v) {
  if (value(v, nesterov) != 0 &&
      (value(v, momentum) == 0 || value(v, dampening) != 0))
    fnn_throw(FNN_EARG, "SGD: nesterov needs a momentum and no dampening");
}

static unsigned sgd_needs (const Values *v, const Tensor *p) {
  (void)p;
  return value(v, momentum) != 0;
}

static void sgd_constants (const Values *v, Slot *s, Update *u) {
  bool first = s->step == 1, nesterov = value(v, nesterov) != 0;
  decay_gradient(v, u);
  u->step = value(v, lr);
  u->keep1 = first ? 0 : value(v, momentum);
  u->take1 = first ? 1 : 1 - value(v, dampening);
  u->ahead = nesterov ? 1 : 0;
  u->follow = nesterov ? value(v, momentum) : 1;
}

/* }====================================================== */

/*
** {======================================================
** Adam and what follows it
** =======================================================
*/

#define BETAS OPT(betas, 0.9, 0.999), OPT(eps, 1e-8)

static const fnn_Option adam_options[] = { OPT(lr, 1e-3), BETAS,
                                           OPT(amsgrad, 0), DECAY, END };
static const fnn_Option adamw_options[] = {
  OPT(lr, 1e-3),    BETAS, OPT(amsgrad, 0), OPT(weight_decay, 1e-2),
  OPT(maximize, 0), END
};
static const fnn_Option radam_options[] = { OPT(lr, 1e-3), BETAS,
                                            OPT(decoupled_weight_decay, 0),
                                            DECAY, END };
static const fnn_Option nadam_options[] = { OPT(lr, 2e-3),
                                            BETAS,
                                            OPT(momentum_decay, 4e-3),
                                            OPT(decoupled_weight_decay, 0),
                                            DECAY,
                                            END };
static const fnn_Option adamax_options[] = { OPT(lr, 2e-3), BETAS, DECAY,
                                             END };
static const fnn_Option lion_options[] = { OPT(lr, 1e-4),
                                           OPT(betas, 0.9, 0.99), DECAY, END };

static unsigned adam_needs (const Values *v, const Tensor *p) {
  (void)p;
  return value(v, amsgrad) != 0 ? 7 : 3;
}

/* 1 - b^t */
static double correction (const Values *v, int which, const Slot *s) {
  return 1 - pow(v->v[OPTION_betas][which], (double)s->step);
}

/* The running means and, as Adam has it, the root of the second. */
static void means (const Values *v, const Slot *s, Update *u) {
  const double *beta = v->v[OPTION_betas];
  u->keep1 = beta[0];
  u->take1 = 1 - beta[0];
  u->keep2 = beta[1];
  u->take2 = 1 - beta[1];
  u->root = 1 / sqrt(correction(v, 1, s));
  u->eps = value(v, eps);
}

static void adam_constants (const Values *v, Slot *s, Update *u) {
  means(v, s, u);
  decay_gradient(v, u);
  u->step = value(v, lr) / correction(v, 0, s);
}

static void adamw_constants (const Values *v, Slot *s, Update *u) {
  adam_constants(v, s, u);
  decay_weight(v, u);
}

static void decay_either (const Values *v, Update *u) {
  if (value(v, decoupled_weight_decay) != 0) decay_weight(v, u);
  else decay_gradient(v, u);
}

/* rho: the length of the simple average that the running one is worth.  Up
** to 5 the variance is not to be relied on: a step with momentum alone. */
static void radam_constants (const Values *v, Slot *s, Update *u) {
  means(v, s, u);
  decay_either(v, u);
  double second = correction(v, 1, s), last = 2 / u->take2 - 1;
  double rho = last - 2 * (double)s->step * (1 - second) / second;
  u->step = value(v, lr) / correction(v, 0, s);
  if (rho > 5) {
    u->step *= sqrt(second * (rho - 4) * (rho - 2) * last /
                    ((last - 4) * (last - 2) * rho));
    u->root = 1;
  } else {
    u->root = 0;
    u->eps = 1;
  }
}

static double nadam_momentum (const Values *v, int64_t step) {
  return v->v[OPTION_betas][0] *
         (1 - 0.5 * pow(0.96, (double)step * value(v, momentum_decay)));
}

static void nadam_constants (const Values *v, Slot *s, Update *u) {
  means(v, s, u);
  decay_either(v, u);
  double mu = nadam_momentum(v, s->step);
  double next = nadam_momentum(v, s->step + 1);
  s->product = (s->step == 1 ? 1 : s->product) * mu;
  u->ahead = value(v, lr) * (1 - mu) / (1 - s->product);
  u->step = value(v, lr) * next / (1 - s->product * next);
}

static void lion_constants (const Values *v, Slot *s, Update *u) {
  means(v, s, u);
  decay_weight(v, u);
  u->step = value(v, lr);
}

/* }====================================================== */

/*
** {======================================================
** The others
** =======================================================
*/

static const fnn_Option rmsprop_options[] = { OPT(lr, 1e-2),
                                              OPT(alpha, 0.99),
                                              OPT(eps, 1e-8),
                                              OPT(momentum, 0),
                                              OPT(centered, 0),
                                              DECAY,
                                              END };

static unsigned rmsprop_needs (const Values *v, const Tensor *p) {
  (void)p;
  return 1u | (value(v, centered) != 0 ? 2u : 0) |
         (value(v, momentum) != 0 ? 4u : 0);
}

static void rmsprop_constants (const Values *v, Slot *s, Update *u) {
  (void)s;
  decay_gradient(v, u);
  u->step = value(v, lr);
  u->keep2 = value(v, alpha);
  u->take2 = 1 - u->keep2;
  u->follow = value(v, momentum);
  u->eps = value(v, eps);
}

static const fnn_Option adagrad_options[] = { OPT(lr, 1e-2),
                                              OPT(lr_decay, 0),
                                              OPT(initial_accumulator_value,
                                                  0),
                                              OPT(eps, 1e-10),
                                              DECAY,
                                              END };

static void adagrad_constants (const Values *v, Slot *s, Update *u) {
  decay_gradient(v, u);
  u->step = value(v, lr) / (1 + (double)(s->step - 1) * value(v, lr_decay));
  u->eps = value(v, eps);
}

static const fnn_Option adadelta_options[] = { OPT(lr, 1), OPT(rho, 0.9),
                                               OPT(eps, 1e-6), DECAY, END };

static void adadelta_constants (const Values *v, Slot *s, Update *u) {
  (void)s;
  decay_gradient(v, u);
  u->step = value(v, lr);
  u->keep1 = value(v, rho);
  u->take1 = 1 - u->keep1;
  u->eps = value(v, eps);
}

static const fnn_Option adafactor_options[] = { OPT(lr, 1e-2),
                                                OPT(beta2_decay, -0.8),
                                                OPT(eps1, NAN),
                                                OPT(eps2, 1e-3),
                                                OPT(d, 1),
                                                DECAY,
                                                END };
static const char *const adafactor_state[] = { "row_var", "col_var",
                                               "variance" };

static unsigned adafactor_needs (const Values *v, const Tensor *p) {
  (void)v;
  return p->ndim < 2 ? 4 : 3;
}

static void adafactor_constants (const Values *v, Slot *s, Update *u) {
  double t = (double)s->step, early = 1 / sqrt(t);
  decay_weight(v, u);
  u->step = value(v, lr) < early ? value(v, lr) : early;
  u->take2 = pow(t, value(v, beta2_decay));
  u->eps = value(v, eps1);
}

static void adafactor_update (Tensor *p, const Tensor *g, Tensor *const *s,
                              const Update *u, const Values *v) {
  Update w = *u;
  if (isnan(w.eps)) w.eps = p->dtype == FNN_F64 ? DBL_EPSILON : FLT_EPSILON;
  kernel(p, adafactor)(p, g, s, &w, value(v, eps2), value(v, d));
}

static const fnn_Option muon_options[] = { OPT(lr, 1e-3),
                                           OPT(weight_decay, 0.1),
                                           OPT(momentum, 0.95),
                                           OPT(nesterov, 1),
                                           OPT(ns_coefficients, 3.4445,
                                               -4.7750, 2.0315),
                                           OPT(eps, 1e-7),
                                           OPT(ns_steps, 5),
                                           OPT(adjust_lr_fn, 0),
                                           OPT(maximize, 0),
                                           END };

static unsigned muon_needs (const Values *v, const Tensor *p) {
  if (p->ndim != 2)
    fnn_throw(FNN_ESHAPE,
              "Muon: expected matrices (2 dims), got a parameter of shape %s: "
              "leave vectors, biases and embeddings to AdamW",
              shape_text(p));
  return needs_first(v, p);
}

static void muon_constants (const Values *v, Slot *s, Update *u) {
  (void)s;
  decay_weight(v, u);
}

/* }====================================================== */

static const char *const states[FORMULA_COUNT][3] = {
#define FORMULA(name, needs, s0, s1, s2, ...) { s0, s1, s2 },
#include "../core/optim.def"
#undef FORMULA
};

/* A rule by formula; and one with an update of its own. */
#define RULE(name, options, formula, check, needs, constants) \
  { \
    name, options, states[FORMULA_##formula], FORMULA_##formula, check, \
        needs, constants, NULL \
  }
#define OWN(name, options, state, needs, constants, update) \
  { name, options, state, -1, NULL, needs, constants, update }

const OptimizerRule optimizer_rules[] = {
  RULE("SGD", sgd_options, sgd, sgd_check, sgd_needs, sgd_constants),
  RULE("Adam", adam_options, adam, NULL, adam_needs, adam_constants),
  RULE("AdamW", adamw_options, adam, NULL, adam_needs, adamw_constants),
  RULE("RAdam", radam_options, adam, NULL, needs_two, radam_constants),
  RULE("NAdam", nadam_options, adam, NULL, needs_two, nadam_constants),
  RULE("Adamax", adamax_options, adamax, NULL, needs_two, adam_constants),
  RULE("Lion", lion_options, lion, NULL, needs_first, lion_constants),
  RULE("RMSprop", rmsprop_options, rmsprop, NULL, rmsprop_needs,
       rmsprop_constants),
  RULE("Adagrad", adagrad_options, adagrad, NULL, needs_first,
       adagrad_constants),
  RULE("Adadelta", adadelta_options, adadelta, NULL, needs_two,
       adadelta_constants),
  OWN("Adafactor", adafactor_options, adafactor_state, adafactor_needs,
      adafactor_constants, adafactor_update),
  OWN("Muon", muon_options, states[FORMULA_sgd], muon_needs, muon_constants,
      muon_update),
  { NULL, NULL, NULL, -1, NULL, NULL, NULL, NULL }
};
