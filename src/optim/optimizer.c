/* optimizer.c - what all optimizers do: groups and steps.
**
** The state of a parameter lives in the Param, in a slot that this optimizer
** owns, so that it moves with the weight. */

#include "optim.h"

#include <math.h>
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

const char *fnn_optimizer_rule (int i) {
  for (int k = 0; k < i; k++)
    if (optimizer_rules[k].name == NULL) return NULL;
  return optimizer_rules[i].name;
}

fnn_Optimizer *fnn_optimizer (const char *name) {
  const OptimizerRule *r = optimizer_rules;
  while (r->name != NULL && strcmp(r->name, name) != 0) r++;
  if (r->name == NULL)
    fnn_throw(FNN_EARG, "optimizer: there is none called '%s'", name);
  fnn_Optimizer *o = object_new(&optimizer_type, sizeof *o);
  o->rule = r;
  return o;
}

static bool has_param (const fnn_Optimizer *o, const Param *p) {
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++)
      if (o->groups[i].params[k] == p) return true;
  return false;
}

/* A Param may be in one group only, once. */
static void check_params (const fnn_Optimizer *o, int n, fnn_Param *const *p,
                          const Values *v) {
  const char *name = o->rule->name;
  if (n == 0) fnn_throw(FNN_EARG, "%s: a group has no parameters", name);
  for (int i = 0; i < n; i++) {
    bool twice = has_param(o, p[i]);
    for (int k = 0; k < i; k++) twice = twice || p[k] == p[i];
    if (twice)
      fnn_throw(FNN_EARG, "%s: parameter %d of shape %s is in the list twice",
                name, i + 1, shape_text(p[i]->value));
    o->rule->needs(v, p[i]->value);
  }
}

int fnn_optimizer_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                         int noptions, const fnn_Option *options) {
  Values v =
      options_apply(o->rule, options_initial(o->rule), noptions, options);
  check_params(o, n, p, &v);
  Param **params = mem_new((size_t)n * sizeof *params);
  Group *groups = mem_try((size_t)(o->ngroups + 1) * sizeof *groups);
  if (groups == NULL) {
    mem_free(params, (size_t)n * sizeof *params);
    fnn_throw(FNN_EMEMORY, "%s: out of memory for a group", o->rule->name);
  }
  if (o->ngroups > 0)
    memcpy(groups, o->groups, (size_t)o->ngroups * sizeof *groups);
  mem_free(o->groups, (size_t)o->ngroups * sizeof *groups);
  o->groups = groups;
  groups[o->ngroups] = (Group){ .values = v, .n = n, .params = params };
  for (int i = 0; i < n; i++) params[i] = fnn_retain(p[i]);
  return o->ngroups++;
}

Group *optimizer_group_at (fnn_Optimizer *o, int group) {
  if (group < 0 || group >= o->ngroups)
    fnn_throw(FNN_EARG, "%s: there are %d groups", o->rule->name, o->ngroups);
  return &o->groups[group];
}

int fnn_optimizer_groups (const fnn_Optimizer *o) { return o->ngroups; }
const char *fnn_optimizer_name (const fnn_Optimizer *o) {
  return o->rule->name;
}

int fnn_optimizer_params (fnn_Optimizer *o, int group) {
  return optimizer_group_at(o, group)->n;
}

fnn_Param *fnn_optimizer_param (fnn_Optimizer *o, int group, int i) {
  return optimizer_group_at(o, group)->params[i];
}

/*
** {======================================================
** Steps
** =======================================================
*/

/* The slot of p with its state tensors, filled when new. */
static Slot *ready_slot (fnn_Optimizer *o, const Values *v, Param *p,
                         unsigned needs) {
  Slot *s = param_slot(p, o, true);
  for (int k = 0; k < countof(s->t); k++) {
    if (!(needs >> k & 1) || s->t[k] != NULL) continue;
    if (capture_of(p->value) != NULL)
      fnn_throw(FNN_EGRAPH,
                "%s: the first step of a parameter makes its state, which "
                "replays would make anew: not in a step that is recorded "
                "(fnn.graph_step)",
                o->rule->name);
    int64_t shape[FNN_MAXDIM];
    int ndim = optimizer_state_shape(o->rule, p->value, k, shape);
    Tensor *t =
        tensor_new(ndim, shape, dtype_of_state((fnn_Dtype)p->value->dtype),
                   p->value->storage->device);
    kernel(t, fill)(t, value(v, initial_accumulator_value));
    s->t[k] = fnn_retain(t);
  }
  return s;
}

static bool takes_part (const Param *p) {
  return p->grad != NULL && !p->frozen;
}

static void check_param (const fnn_Optimizer *o, const Param *p) {
  tensor_check_float(o->rule->name, p->value);
  tensor_check_device(o->rule->name, p->value, p->grad);
  tensor_check_memory(o->rule->name, p->value);
}

/* What the kernel will need to know of p but for its numbers. */
static Pass ready_pass (fnn_Optimizer *o, const Values *v, Param *p,
                        const Tensor *factor) {
  check_param(o, p);
  unsigned needs = o->rule->needs(v, p->value);
  const Slot *s = ready_slot(o, v, p, needs);
  Pass x = { .p = p->value, .g = tensor_dense(p->grad) };
  if (factor != NULL) x.factor = tensor_move(factor, x.p->storage->device);
  for (int k = 0; k < countof(x.s); k++)
    x.s[k] = needs >> k & 1 ? s->t[k] : NULL;
  return x;
}

/* Counts p's step, which gives the numbers. */
void optimizer_begin (fnn_Optimizer *o, int group, Param *p, Pass *x) {
  const Values *v = &o->groups[group].values;
  Slot *s = param_slot(p, o, false);
  x->u.scale = value(v, maximize) != 0 ? -1 : 1;
  s->step++;
  o->rule->constants(v, s, &x->u);
}

/* g times the factor, if any, for rules with an update of their own. */
static const Tensor *scaled (const Tensor *g, const Tensor *factor) {
  if (factor == NULL) return g;
  Tensor *y = tensor_like(g);
  kernel(y, copy)(y, g);
  kernel(y, scale_all)(&y, 1, factor);
  return y;
}

/* The passes of one step, n in all: those from `first` to before
** `next` have begun and wait for the kernel. */
typedef struct Steps {
  Pass *list;
  Member *of;
  int n, first, next;
} Steps;

static void flush (fnn_Optimizer *o, Steps *s) {
  int n = s->next - s->first;
  const Pass *list = s->list + s->first;
  const Member *of = s->of + s->first;
  s->first = s->next;
  if (n == 0) return;
  fnn_Capture *c = capture_of(list->p);
  if (c != NULL) list = optimizer_recorded(c, o, list, of, n);
  kernel(list->p, optimize)((Formula)o->rule->formula, list, n);
}

/* What replays would not do: an update whose numbers go to kernels one by one,
** or on another device. */
static void check_recorded (const fnn_Optimizer *o, const Pass *x) {
  if (context()->capture == NULL) return;
  if (capture_of(x->p) == NULL || o->rule->update != NULL)
    fnn_throw(FNN_EGRAPH,
              "%s: its step on %s cannot be part of a step that is recorded "
              "(fnn.graph_step): call it outside",
              o->rule->name, x->p->storage->device->name);
}

/* A device gets all of its parameters in one call.  On the host each is done
** before the next begins: a cancelled step has not counted what follows. */
static void update (fnn_Optimizer *o, Steps *s) {
  const OptimizerRule *r = o->rule;
  Pass *x = &s->list[s->next];
  Member *of = &s->of[s->next];
  Param *p = of->p;
  const Slot *slot = param_slot(p, o, false);
  const fnn_Device *d = x->p->storage->device;
  check_recorded(o, x);
  if (s->list[s->first].p->storage->device != d) flush(o, s);
  of->step = slot->step;
  of->product = slot->product;
  optimizer_begin(o, of->group, p, x);
  tensor_written(p->value);
  s->next++;
  if (r->update != NULL) {
    size_t m = fnn_mark();
    s->first = s->next;
    r->update(x->p, scaled(x->g, x->factor), x->s, &x->u,
              &o->groups[of->group].values);
    fnn_escape(m, NULL);
  } else if (d->host) flush(o, s);
}

/* factor: of all gradients, or NULL.  First what can throw, for all
** parameters; then the updates. */
static void step (fnn_Optimizer *o, const Tensor *factor) {
  size_t m = fnn_mark();
  fnn_Dtype products = fnn_autocast(FNN_F32);
  Steps s = { NULL, NULL, 0, 0, 0 };
  for (int i = 0; i < o->ngroups; i++) s.n += o->groups[i].n;
  s.list = mem_scratch((size_t)(s.n + 1) * sizeof *s.list);
  s.of = mem_scratch((size_t)(s.n + 1) * sizeof *s.of);
  s.n = 0;
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++) {
      Param *p = o->groups[i].params[k];
      if (!takes_part(p)) continue;
      s.of[s.n] = (Member){ .p = p, .group = i };
      s.list[s.n++] = ready_pass(o, &o->groups[i].values, p, factor);
    }
  while (s.next < s.n) update(o, &s);
  flush(o, &s);
  context_now->steps++;
  fnn_autocast(products);
  fnn_escape(m, NULL);
}

void fnn_optimizer_step (fnn_Optimizer *o) { step(o, NULL); }

fnn_Tensor *fnn_optimizer_step_clipped_later (fnn_Optimizer *o, double scale,
                                              double most) {
  if (!isfinite(scale))
    fnn_throw(FNN_EARG, "%s: scale must be a finite number (got %g)",
              o->rule->name, scale);
  if (!(most >= 0))
    fnn_throw(FNN_EARG, "%s: max_norm must not be negative (got %g)",
              o->rule->name, most);
  size_t m = fnn_mark();
  Tensor *squares = NULL;
  for (int i = 0; i < o->ngroups; i++)
    squares = gradient_squares(o->groups[i].n, o->groups[i].params, squares);
  if (squares == NULL) squares = gradient_squares(0, NULL, NULL);
  Tensor *norm = tensor_like(squares), *factor = tensor_like(squares);
  kernel(norm, norm_factor)(factor, norm, squares, scale, most);
  step(o, factor);
  return fnn_escape(m, norm);
}

double fnn_optimizer_step_clipped (fnn_Optimizer *o, double scale,
                                   double most) {
  size_t m = fnn_mark();
  double norm = fnn_item(fnn_optimizer_step_clipped_later(o, scale, most));
  fnn_escape(m, NULL);
  return norm;
}

void fnn_optimizer_zero_grad (fnn_Optimizer *o) {
  for (int i = 0; i < o->ngroups; i++)
    for (int k = 0; k < o->groups[i].n; k++)
      fnn_set_gradient(o->groups[i].params[k], NULL);
}

/* }====================================================== */
