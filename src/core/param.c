/* param.c - parameters: one weight, its gradient, the optimizers' state.
**
** A Param owns the tensor that it hands out.  That tensor's source is the
** Param, without a count, or the two would hold each other; nodes that have
** the Param as an input do count it.  So a tensor's source is released only
** when it is a node, and a Param that goes leaves its tensor plain.
**
** What is derived from the weight holds while the storage's version stays.
** Its address need not be looked at: the Param holds the storage, so that no
** other one can take its place, and drops what is derived when it lets go. */

#include "core.h"

static void slot_free (Slot *s) {
  for (int i = 0; i < countof(s->t); i++) fnn_release(s->t[i]);
  mem_free(s, sizeof *s);
}

/* Drops what d points to. */
static void derived_cut (Derived **at) {
  Derived *d = *at;
  *at = d->next;
  fnn_release(d->o);
  mem_free(d, sizeof *d);
}

static void derived_drop (Param *p) {
  while (p->derived != NULL) derived_cut(&p->derived);
}

static void param_destroy (void *o) {
  Param *p = o;
  if (p->value != NULL) p->value->source = NULL;
  fnn_release(p->value);
  fnn_release(p->grad);
  fnn_release(p->hooks);
  derived_drop(p);
  while (p->slots != NULL) {
    Slot *s = p->slots;
    p->slots = s->next;
    slot_free(s);
  }
}

const Type param_type = { "param", param_destroy };

static void check_float (const Tensor *x, fnn_Dtype t) {
  if (!dtype_is_float(t))
    fnn_throw(FNN_EDTYPE, "Param: expected a float tensor, got %s of shape %s",
              fnn_dtype_name(t), shape_text(x));
}

fnn_Param *fnn_param (Tensor *x) {
  check_float(x, (fnn_Dtype)x->dtype);
  Param *p = object_new(&param_type, sizeof *p);
  p->value = fnn_retain(tensor_alias(tensor_dense(x)));
  p->value->source = &p->o;
  return p;
}

fnn_Tensor *fnn_value (Param *p) { return p->value; }
fnn_Tensor *fnn_gradient (Param *p) { return p->grad; }
bool fnn_is_frozen (const Param *p) { return p->frozen; }

/* A frozen Param keeps no gradient. */
void fnn_freeze (Param *p, bool frozen) {
  p->frozen = frozen;
  if (frozen) {
    fnn_release(p->grad);
    p->grad = NULL;
  }
}

static void check_fits (const char *op, const Param *p, const Tensor *x) {
  if (!tensor_same_shape(p->value, x))
    fnn_throw(FNN_ESHAPE, "%s: expected shape %s, got %s", op,
              shape_text(p->value), shape_text(x));
}

void fnn_set_gradient (Param *p, Tensor *g) {
  if (g != NULL) {
    check_fits("set_gradient", p, g);
    tensor_check_device("set_gradient", p->value, g);
    g = tensor_convert(tensor_dense(g), (fnn_Dtype)p->value->dtype);
    g = tensor_alias(g);
  }
  fnn_retain(g);
  fnn_release(p->grad);
  p->grad = g;
}

/* x becomes the weight: the old tensor turns into plain data for whoever
** still holds it. */
static void replace (Param *p, Tensor *x) {
  Tensor *y = fnn_retain(tensor_alias(x));
  p->value->source = NULL;
  fnn_release(p->value);
  p->value = y;
  y->source = &p->o;
  derived_drop(p);
}

void fnn_set_value (Param *p, Tensor *x) {
  check_fits("set_value", p, x);
  tensor_check_device("set_value", p->value, x);
  if (p->value->storage->readonly)
    fnn_throw(FNN_EARG, "set_value: the weight of shape %s is read-only",
              shape_text(p->value));
  Tensor *y = tensor_convert(x, (fnn_Dtype)p->value->dtype);
  if (tensor_overlaps(p->value, y)) { /* as if through a buffer */
    x = y;
    y = tensor_like(x);
    kernel(y, copy)(y, x);
  }
  tensor_written(p->value);
  kernel(p->value, copy)(p->value, y);
}

static Tensor *moved (Tensor *x, const fnn_Device *d, fnn_Dtype t) {
  return tensor_alias(tensor_move(tensor_convert(x, t), d));
}

/* Makes all copies before it changes anything, so that a throw leaves p as
** it was. */
void fnn_param_to (Param *p, const fnn_Device *d, fnn_Dtype t) {
  check_float(p->value, t);
  Tensor *value = moved(p->value, d, t);
  Tensor *grad = p->grad != NULL ? moved(p->grad, d, t) : NULL;
  int n = 0;
  for (Slot *s = p->slots; s != NULL; s = s->next) n += countof(s->t);
  Tensor **state = mem_scratch((size_t)(n + 1) * sizeof *state);
  n = 0;
  for (Slot *s = p->slots; s != NULL; s = s->next)
    for (int i = 0; i < countof(s->t); i++)
      state[n++] =
          s->t[i] != NULL ? moved(s->t[i], d, dtype_of_state(t)) : NULL;
  replace(p, value);
  fnn_retain(grad);
  fnn_release(p->grad);
  p->grad = grad;
  n = 0;
  for (Slot *s = p->slots; s != NULL; s = s->next)
    for (int i = 0; i < countof(s->t); i++) {
      fnn_retain(state[n]);
      fnn_release(s->t[i]);
      s->t[i] = state[n++];
    }
}

Slot *param_slot (Param *p, const void *owner, bool make) {
  for (Slot *s = p->slots; s != NULL; s = s->next)
    if (s->owner == owner) return s;
  if (!make) return NULL;
  Slot *s = mem_new(sizeof *s);
  *s = (Slot){ .next = p->slots, .owner = owner };
  p->slots = s;
  return s;
}

void param_drop_slot (Param *p, const void *owner) {
  for (Slot **at = &p->slots; *at != NULL; at = &(*at)->next)
    if ((*at)->owner == owner) {
      Slot *s = *at;
      *at = s->next;
      slot_free(s);
      return;
    }
}

static uint64_t recording_of (const Param *p) {
  const fnn_Capture *c = capture_of(p->value);
  return c != NULL ? capture_number(c) : 0;
}

/* A step that is recorded derives what it reads, so that replays do too; and
** nobody else reads that, for the step may never be done. */
void *param_derived (Param *p, const void *key) {
  if (p->derived == NULL) return NULL;
  if (p->derived_version != p->value->storage->version) derived_drop(p);
  uint64_t recording = recording_of(p);
  for (Derived *d = p->derived; d != NULL; d = d->next)
    if (d->key == key) return d->recording == recording ? d->o : NULL;
  return NULL;
}

void param_derive (Param *p, const void *key, void *o) {
  const fnn_Storage *s = p->value->storage;
  if (s->wrapped && !s->readonly) return;
  unsigned version = s->version;
  Derived *d = mem_new(sizeof *d);
  if (p->derived_version != version) derived_drop(p);
  Derived **at = &p->derived;
  while (*at != NULL && (*at)->key != key) at = &(*at)->next;
  if (*at != NULL) derived_cut(at);
  *d = (Derived){ p->derived, key, recording_of(p), fnn_retain(o) };
  p->derived = d;
  p->derived_version = version;
}
