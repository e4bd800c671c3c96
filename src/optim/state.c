/* state.c - what an optimizer keeps of each Param, out and back in. */

#include "optim.h"

#include <string.h>

/* Adafactor's means over rows (..., r, 1) and columns (..., 1, c), where the
** rule has such; else p's own. */
int optimizer_state_shape (const OptimizerRule *r, const Tensor *p, int k,
                           int64_t *shape) {
  memcpy(shape, p->shape, (size_t)p->ndim * sizeof *shape);
  if (p->ndim >= 2 && strcmp(r->state[k], "row_var") == 0)
    shape[p->ndim - 1] = 1;
  if (p->ndim >= 2 && strcmp(r->state[k], "col_var") == 0)
    shape[p->ndim - 2] = 1;
  return p->ndim;
}

const char *fnn_optimizer_state_name (const fnn_Optimizer *o, int k) {
  return k < countof(((Slot *)NULL)->t) ? o->rule->state[k] : NULL;
}

fnn_OptimizerState fnn_optimizer_state (fnn_Optimizer *o, fnn_Param *p) {
  const Slot *s = param_slot(p, o, false);
  fnn_OptimizerState state = { 0 };
  if (s == NULL) return state;
  state.step = s->step;
  state.product = s->product;
  for (int k = 0; k < countof(s->t); k++) state.tensor[k] = s->t[k];
  return state;
}

/* Throws unless state k of parameter i fits p. */
static void check_tensor (const fnn_Optimizer *o, int i, const Param *p, int k,
                          const Tensor *x, bool needed) {
  const char *name = o->rule->state[k];
  if (x == NULL && needed)
    fnn_throw(FNN_EARG, "%s: the state of parameter %d of shape %s has no %s",
              o->rule->name, i + 1, shape_text(p->value), name);
  if (x == NULL) return;
  int64_t shape[FNN_MAXDIM];
  int ndim = optimizer_state_shape(o->rule, p->value, k, shape);
  if (x->ndim != ndim ||
      memcmp(x->shape, shape, (size_t)ndim * sizeof *shape) != 0)
    fnn_throw(FNN_ESHAPE, "%s: %s of parameter %d: expected shape %s, got %s",
              o->rule->name, name, i + 1,
              shape_print(&(ShapeText){ "" }, ndim, shape), shape_text(x));
}

static int param_count (const fnn_Optimizer *o) {
  int n = 0;
  for (int i = 0; i < o->ngroups; i++) n += o->groups[i].n;
  return n;
}

/* A copy, which updates may write, in p's place and the dtype of its state. */
static Tensor *copy_for (const Param *p, const Tensor *x) {
  fnn_Dtype t = dtype_of_state((fnn_Dtype)p->value->dtype);
  x = tensor_move(tensor_convert(x, t), p->value->storage->device);
  Tensor *y = tensor_like(x);
  kernel(y, copy)(y, x);
  return y;
}

static Param **all_params (const fnn_Optimizer *o, int n) {
  Param **p = mem_scratch((size_t)(n + 1) * sizeof *p);
  for (int g = 0, i = 0; g < o->ngroups; g++)
    for (int k = 0; k < o->groups[g].n; k++) p[i++] = o->groups[g].params[k];
  return p;
}

void fnn_optimizer_check (const fnn_Optimizer *o, int n,
                          const fnn_OptimizerState *s) {
  if (n != param_count(o))
    fnn_throw(FNN_EARG, "%s: the state of %d parameters does not fit %d",
              o->rule->name, n, param_count(o));
  const int64_t most = (int64_t)1 << 53; /* the rules compute in double */
  for (int g = 0, i = 0; g < o->ngroups; g++)
    for (int j = 0; j < o->groups[g].n; j++, i++) {
      const Param *p = o->groups[g].params[j];
      unsigned needs = o->rule->needs(&o->groups[g].values, p->value);
      if (s[i].step < 0 || s[i].step > most)
        fnn_throw(FNN_EARG,
                  "%s: parameter %d has taken %lld steps (expected 0 .. 2^53)",
                  o->rule->name, i + 1, (long long)s[i].step);
      for (int k = 0; k < countof(s->tensor); k++)
        if (o->rule->state[k] != NULL)
          check_tensor(o, i, p, k, s[i].tensor[k],
                       s[i].step > 0 && needs >> k & 1);
    }
}

/* Makes all copies before it changes anything. */
void fnn_optimizer_load (fnn_Optimizer *o, int n,
                         const fnn_OptimizerState *s) {
  enum { TENSORS = countof(s->tensor) };
  fnn_optimizer_check(o, n, s);
  size_t m = fnn_mark();
  Param **p = all_params(o, n);
  Tensor **own = mem_scratch((size_t)(n + 1) * TENSORS * sizeof *own);
  for (int i = 0; i < n; i++) {
    param_slot(p[i], o, true);
    for (int k = 0; k < TENSORS; k++)
      own[i * TENSORS + k] =
          o->rule->state[k] != NULL && s[i].tensor[k] != NULL
              ? copy_for(p[i], s[i].tensor[k])
              : NULL;
  }
  for (int i = 0; i < n; i++) {
    Slot *slot = param_slot(p[i], o, false);
    slot->step = s[i].step;
    slot->product = s[i].product;
    for (int k = 0; k < TENSORS; k++) {
      fnn_release(slot->t[k]);
      slot->t[k] = fnn_retain(own[i * TENSORS + k]);
    }
  }
  fnn_escape(m, NULL);
}
