/* optimizer.c - what all optimizers do: groups, steps, state.
**
** The state of a parameter lives in the Param, in a slot that this optimizer
** owns, so that it moves with the weight. */

#include "optim.h"

#include <string.h>

static void group_free (fnn_Optimizer *o, Group *g) {
  for (int i = 0; i < g->n; i++) {
    param_drop_slot(g->params[i], o);
    fnn_release(g->params[i]);
  }
  mem_free(g->params, (size_t)g->n * sizeof *g->params);
}

static void optimizer_destroy (void *p) {
  fnn_Optimizer *o = p;
  for (int i = 0; i < o->ngroups; i++) group_free(o, &o->groups[i]);
  mem_free(o->groups, (size_t)o->ngroups * sizeof *o->groups);
}

static const Type optimizer_type = { "optimizer", optimizer_destroy };

static fnn_Optimizer *optimizer_new (const OptimizerRule *rule) {
  fnn_Optimizer *o = object_new(&optimizer_type, sizeof *o);
  o->rule = rule;
  return o;
}

static bool has_param (const fnn_Optimizer *o, const Param *p) {
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++)
      if (o->groups[i].params[k] == p) return true;
  return false;
}

/* Adds a group of n params.  A Param may be in one group only, once. */
static void add_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                       const Update *u) {
  for (int i = 0; i < n; i++) {
    bool twice = has_param(o, p[i]);
    for (int k = 0; k < i; k++) twice = twice || p[k] == p[i];
    if (twice)
      fnn_throw(FNN_EARG, "%s: parameter %d of shape %s is in the list twice",
                o->rule->name, i + 1, shape_text(p[i]->value));
  }
  if (n == 0)
    fnn_throw(FNN_EARG, "%s: a group has no parameters", o->rule->name);
  Group *groups = mem_new((size_t)(o->ngroups + 1) * sizeof *groups);
  if (o->ngroups > 0)
    memcpy(groups, o->groups, (size_t)o->ngroups * sizeof *groups);
  mem_free(o->groups, (size_t)o->ngroups * sizeof *groups);
  o->groups = groups;
  Group *g = &groups[o->ngroups++];
  *g = (Group){ .options = *u };
  g->params = mem_new((size_t)n * sizeof *g->params);
  g->n = n;
  for (int i = 0; i < n; i++) g->params[i] = fnn_retain(p[i]);
}

static void check_options (const char *name, const Update *u) {
  if (!(u->lr >= 0))
    fnn_throw(FNN_EARG, "%s: lr must not be negative (got %g)", name, u->lr);
  if (!(u->weight_decay >= 0))
    fnn_throw(FNN_EARG, "%s: weight_decay must not be negative (got %g)", name,
              u->weight_decay);
}

static void check_fraction (const char *name, const char *what, double v) {
  if (!(v >= 0 && v < 1))
    fnn_throw(FNN_EARG, "%s: %s must be in [0, 1) (got %g)", name, what, v);
}

static Update sgd_update (const fnn_SgdOptions *s) {
  Update u = { .lr = s->lr,
               .weight_decay = s->weight_decay,
               .h = { s->momentum, s->dampening },
               .flag = { s->nesterov } };
  check_options("SGD", &u);
  if (!(s->momentum >= 0))
    fnn_throw(FNN_EARG, "SGD: momentum must not be negative (got %g)",
              s->momentum);
  if (s->nesterov && (s->momentum == 0 || s->dampening != 0))
    fnn_throw(FNN_EARG, "SGD: nesterov needs a momentum and no dampening");
  return u;
}

static Update adam_update (const fnn_AdamOptions *s) {
  const char *name = s->decoupled ? "AdamW" : "Adam";
  Update u = { .lr = s->lr,
               .weight_decay = s->weight_decay,
               .h = { s->beta1, s->beta2, s->eps },
               .flag = { s->decoupled, s->amsgrad } };
  check_options(name, &u);
  check_fraction(name, "beta1", s->beta1);
  check_fraction(name, "beta2", s->beta2);
  if (!(s->eps >= 0))
    fnn_throw(FNN_EARG, "%s: eps must not be negative (got %g)", name, s->eps);
  return u;
}

fnn_Optimizer *fnn_sgd (void) { return optimizer_new(&sgd_rule); }
fnn_Optimizer *fnn_adam (void) { return optimizer_new(&adam_rule); }

static void check_rule (const fnn_Optimizer *o, const OptimizerRule *rule) {
  if (o->rule != rule)
    fnn_throw(FNN_EARG, "%s: options of %s", o->rule->name, rule->name);
}

void fnn_sgd_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                    const fnn_SgdOptions *s) {
  check_rule(o, &sgd_rule);
  Update u = sgd_update(s);
  add_group(o, n, p, &u);
}

void fnn_adam_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                     const fnn_AdamOptions *s) {
  check_rule(o, &adam_rule);
  Update u = adam_update(s);
  add_group(o, n, p, &u);
}

/*
** {======================================================
** Steps
** =======================================================
*/

/* The slot of p with its state tensors, zeroed when new. */
static Slot *ready_slot (fnn_Optimizer *o, const Group *g, Param *p) {
  Slot *s = param_slot(p, o, true);
  int n = o->rule->nstate(&g->options);
  for (int i = 0; i < n; i++)
    if (s->t[i] == NULL) {
      Tensor *t = tensor_like(p->value);
      kernel(t, fill)(t, 0);
      s->t[i] = fnn_retain(t);
    }
  return s;
}

static bool takes_part (const Param *p) {
  return p->grad != NULL && !p->frozen;
}

/* First what can throw, for all parameters; then the updates. */
void fnn_optimizer_step (fnn_Optimizer *o) {
  size_t m = fnn_mark();
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++) {
      Param *p = o->groups[i].params[k];
      if (!takes_part(p)) continue;
      tensor_check_float(o->rule->name, p->value);
      tensor_check_device(o->rule->name, p->value, p->grad);
      tensor_check_memory(o->rule->name, p->value);
      ready_slot(o, &o->groups[i], p);
    }
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++) {
      Param *p = o->groups[i].params[k];
      if (!takes_part(p)) continue;
      Slot *s = param_slot(p, o, false);
      Update u = o->groups[i].options;
      u.step = ++s->step;
      tensor_written(p->value);
      o->rule->update(p->value, p->grad, s->t, &u);
    }
  fnn_escape(m, NULL);
}

void fnn_optimizer_zero_grad (fnn_Optimizer *o) {
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++)
      fnn_set_gradient(o->groups[i].params[k], NULL);
}

static Group *group_of (fnn_Optimizer *o, int group) {
  if (group < 0 || group >= o->ngroups)
    fnn_throw(FNN_EARG, "%s: there are %d groups", o->rule->name, o->ngroups);
  return &o->groups[group];
}

double fnn_optimizer_lr (fnn_Optimizer *o, int group) {
  return group_of(o, group)->options.lr;
}

void fnn_optimizer_set_lr (fnn_Optimizer *o, int group, double lr) {
  if (!(lr >= 0))
    fnn_throw(FNN_EARG, "%s: lr must not be negative (got %g)", o->rule->name,
              lr);
  if (group >= 0) {
    group_of(o, group)->options.lr = lr;
    return;
  }
  for (int i = 0; i < o->ngroups; i++) o->groups[i].options.lr = lr;
}

int fnn_optimizer_groups (const fnn_Optimizer *o) { return o->ngroups; }
const char *fnn_optimizer_name (const fnn_Optimizer *o) {
  return o->rule->name;
}

int fnn_optimizer_params (const fnn_Optimizer *o, int group) {
  return group_of((fnn_Optimizer *)o, group)->n;
}

fnn_Param *fnn_optimizer_param (const fnn_Optimizer *o, int group, int i) {
  return group_of((fnn_Optimizer *)o, group)->params[i];
}

/* }====================================================== */

/*
** {======================================================
** State
** =======================================================
*/

const char *fnn_optimizer_state_name (const fnn_Optimizer *o, int k) {
  return k < countof(o->rule->state) ? o->rule->state[k] : NULL;
}

fnn_Tensor *fnn_optimizer_state (fnn_Optimizer *o, fnn_Param *p, int k,
                                 int64_t *step) {
  Slot *s = param_slot(p, o, false);
  *step = s != NULL ? s->step : 0;
  return s != NULL && k < countof(s->t) ? s->t[k] : NULL;
}

void fnn_optimizer_set_state (fnn_Optimizer *o, fnn_Param *p, int k,
                              fnn_Tensor *x, int64_t step) {
  if (!has_param(o, p))
    fnn_throw(FNN_EARG, "%s: a parameter that is not in this optimizer",
              o->rule->name);
  if (fnn_optimizer_state_name(o, k) == NULL)
    fnn_throw(FNN_EARG, "%s: there is no state %d", o->rule->name, k);
  if (step < 0)
    fnn_throw(FNN_EARG, "%s: %lld steps", o->rule->name, (long long)step);
  if (x != NULL && !tensor_same_shape(x, p->value))
    fnn_throw(FNN_ESHAPE, "%s: the state has shape %s, the parameter %s",
              o->rule->name, shape_text(x), shape_text(p->value));
  if (x != NULL) { /* a copy of its own: updates write it */
    x = tensor_move(tensor_convert(x, (fnn_Dtype)p->value->dtype),
                    p->value->storage->device);
    Tensor *y = tensor_like(x);
    kernel(y, copy)(y, x);
    x = y;
  }
  Slot *s = param_slot(p, o, true);
  fnn_retain(x);
  fnn_release(s->t[k]);
  s->t[k] = x;
  s->step = step;
}

/* }====================================================== */
