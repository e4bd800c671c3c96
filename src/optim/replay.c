/* replay.c - an optimizer's part of a step that is recorded and replayed.
**
** The kernel reads the constants of each parameter from a table on the card,
** which is filled from the list of passes before each replay.  Here is what
** keeps that list: it counts a step of each parameter, and works out the
** constants with the options of now, as a plain step does.  A recording does
** not hold any more when the optimizer would use other tensors. */

#include <string.h>

#include "optim.h"

typedef struct Recorded {
  fnn_Optimizer *o; /* as all below, retained */
  int n, all;       /* passes; parameters of the optimizer */
  Member *of;
  Pass *list;
} Recorded;

static int param_count (const fnn_Optimizer *o) {
  int n = 0;
  for (int i = 0; i < o->ngroups; i++) n += o->groups[i].n;
  return n;
}

static bool same_place (const Tensor *x, const Tensor *y) {
  if (x == NULL || y == NULL) return x == y;
  return x->storage == y->storage && x->offset == y->offset &&
         x->dtype == y->dtype;
}

/* Whether a plain step of p would use the tensors of the pass. */
static bool pass_holds (const fnn_Optimizer *o, const Member *m,
                        const Pass *x) {
  const Slot *s = param_slot(m->p, o, false);
  if (s == NULL || m->p->frozen || !same_place(m->p->value, x->p))
    return false;
  unsigned needs = o->rule->needs(&o->groups[m->group].values, m->p->value);
  for (int k = 0; k < countof(x->s); k++)
    if (!same_place(needs >> k & 1 ? s->t[k] : NULL, x->s[k])) return false;
  return true;
}

static bool holds (void *ud) {
  const Recorded *r = ud;
  if (param_count(r->o) != r->all) return false;
  for (int i = 0; i < r->n; i++)
    if (!pass_holds(r->o, &r->of[i], &r->list[i])) return false;
  return true;
}

/* The first time the recording itself has counted the step. */
static void refresh (void *ud, bool first) {
  Recorded *r = ud;
  if (first) return;
  for (int i = 0; i < r->n; i++)
    optimizer_begin(r->o, r->of[i].group, r->of[i].p, &r->list[i]);
}

static void pass_release (Pass *x) {
  fnn_release(x->p);
  fnn_release((Tensor *)x->g);
  fnn_release((Tensor *)x->factor);
  for (int k = 0; k < countof(x->s); k++) fnn_release(x->s[k]);
}

/* A step that was never done is not counted. */
static void done (void *ud, bool recorded) {
  Recorded *r = ud;
  for (int i = 0; i < r->n; i++) {
    Slot *s = param_slot(r->of[i].p, r->o, false);
    if (!recorded && s != NULL) {
      s->step = r->of[i].step;
      s->product = r->of[i].product;
    }
    pass_release(&r->list[i]);
    fnn_release(r->of[i].p);
  }
  fnn_release(r->o);
  mem_free(r->list, (size_t)r->n * sizeof *r->list);
  mem_free(r->of, (size_t)r->n * sizeof *r->of);
  mem_free(r, sizeof *r);
}

static void keep (Recorded *r, int i, const Pass *x, const Member *m) {
  r->list[i] = *x;
  r->list[i].refreshed = true;
  r->of[i] = *m;
  fnn_retain(m->p);
  fnn_retain(x->p);
  fnn_retain((Tensor *)x->g);
  fnn_retain((Tensor *)x->factor);
  for (int k = 0; k < countof(x->s); k++) fnn_retain(x->s[k]);
}

const Pass *optimizer_recorded (fnn_Capture *c, fnn_Optimizer *o,
                                const Pass *list, const Member *of, int n) {
  Recorded *r = mem_try(sizeof *r);
  Pass *passes = mem_try((size_t)n * sizeof *passes);
  Member *members = mem_try((size_t)n * sizeof *members);
  if (r == NULL || passes == NULL || members == NULL) {
    mem_free(r, sizeof *r);
    mem_free(passes, (size_t)n * sizeof *passes);
    mem_free(members, (size_t)n * sizeof *members);
    fnn_throw(FNN_EMEMORY, "%s: no memory to record a step", o->rule->name);
  }
  *r = (Recorded){ fnn_retain(o), n, param_count(o), members, passes };
  for (int i = 0; i < n; i++) keep(r, i, &list[i], &of[i]);
  capture_before(c, &(Refresh){ holds, refresh, done, r });
  return r->list;
}
