/* options.c - the options of optimizers, by name. */

#include "optim.h"

#include <math.h>
#include <string.h>

typedef struct Row {
  const char *name;
  int numbers;
  Domain domain;
} Row;

static const Row rows[OPTION_COUNT] = {
#define OPTION(name, numbers, domain) { #name, numbers, domain },
#include "options.def"
#undef OPTION
};

/* How Muon makes one learning rate do for matrices of all shapes: ORDER of
** muon.c. */
const char *const optimizer_adjustments[] = { "original", "match_rms_adamw",
                                              "spectral_unclamped", NULL };

static int row_of (const char *name) {
  for (int i = 0; i < OPTION_COUNT; i++)
    if (strcmp(rows[i].name, name) == 0) return i;
  return -1;
}

/* Says what v had to be, or returns NULL where it is. */
static const char *wrong (Domain d, double v) {
  switch (d) {
    case ANY: return isfinite(v) ? NULL : "be a finite number";
    case NOT_NEGATIVE_OR_UNSET:
      if (isnan(v)) return NULL; /* fall through */
    case NOT_NEGATIVE: return v >= 0 ? NULL : "not be negative";
    case NOT_POSITIVE: return v <= 0 ? NULL : "not be positive";
    case FRACTION: return v >= 0 && v < 1 ? NULL : "be in [0, 1)";
    case FROM_ONE: return v >= 1 ? NULL : "be at least 1";
    case COUNT:
      return v >= 0 && v < 100 && v == floor(v)
                 ? NULL
                 : "be a whole number from 0 to 99";
    case FLAG: return v == 0 || v == 1 ? NULL : "be 0 or 1";
    default: return v == 0 || v == 1 || v == 2 ? NULL : "be 0, 1 or 2";
  }
}

static void check_number (const OptimizerRule *r, int row, int i, double v) {
  const char *must = wrong(rows[row].domain, v);
  if (must == NULL) return;
  if (rows[row].numbers == 1)
    fnn_throw(FNN_EARG, "%s: %s must %s (got %g)", r->name, rows[row].name,
              must, v);
  fnn_throw(FNN_EARG, "%s: number %d of %s must %s (got %g)", r->name, i + 1,
            rows[row].name, must, v);
}

static bool has_option (const OptimizerRule *r, const char *name) {
  for (const fnn_Option *o = r->options; o->name != NULL; o++)
    if (strcmp(o->name, name) == 0) return true;
  return false;
}

FNN_NORETURN static void unknown (const OptimizerRule *r, const char *name) {
  int n = 0;
  while (r->options[n].name != NULL) n++;
  const char *near = nearest_name(name, r->options, n, sizeof *r->options);
  if (near != NULL)
    fnn_throw(FNN_EARG, "%s: unknown option '%s' (did you mean '%s'?)",
              r->name, name, near);
  fnn_throw(FNN_EARG, "%s: unknown option '%s'", r->name, name);
}

Values options_apply (const OptimizerRule *r, Values v, int n,
                      const fnn_Option *options) {
  for (int i = 0; i < n; i++) {
    const fnn_Option *o = &options[i];
    if (!has_option(r, o->name)) unknown(r, o->name);
    int row = row_of(o->name);
    for (int k = 0; k < rows[row].numbers; k++) {
      check_number(r, row, k, o->value[k]);
      v.v[row][k] = o->value[k];
    }
  }
  if (r->check != NULL) r->check(&v);
  return v;
}

Values options_initial (const OptimizerRule *r) {
  Values v = { 0 };
  for (const fnn_Option *o = r->options; o->name != NULL; o++)
    memcpy(v.v[row_of(o->name)], o->value, sizeof o->value);
  return v;
}

bool fnn_optimizer_option (fnn_Optimizer *o, int group, int i,
                           fnn_OptionInfo *to) {
  for (int k = 0; k <= i; k++)
    if (o->rule->options[k].name == NULL) return false;
  const char *name = o->rule->options[i].name;
  int row = row_of(name);
  const double *v = group < 0 ? o->rule->options[i].value
                              : optimizer_group_at(o, group)->values.v[row];
  Domain d = rows[row].domain;
  *to = (fnn_OptionInfo){ name,
                          rows[row].numbers,
                          d == FLAG,
                          d == ADJUSTMENT ? optimizer_adjustments : NULL,
                          { v[0], v[1], v[2] } };
  return true;
}

void fnn_optimizer_set (fnn_Optimizer *o, int group, int n,
                        const fnn_Option *options) {
  if (group >= 0) {
    Group *g = optimizer_group_at(o, group);
    g->values = options_apply(o->rule, g->values, n, options);
    return;
  }
  for (int i = 0; i < o->ngroups; i++)
    options_apply(o->rule, o->groups[i].values, n, options);
  for (int i = 0; i < o->ngroups; i++)
    o->groups[i].values =
        options_apply(o->rule, o->groups[i].values, n, options);
}

double fnn_optimizer_lr (fnn_Optimizer *o, int group) {
  return value(&optimizer_group_at(o, group)->values, lr);
}

void fnn_optimizer_set_lr (fnn_Optimizer *o, int group, double lr) {
  fnn_optimizer_set(o, group, 1, &(fnn_Option){ "lr", { lr } });
}
