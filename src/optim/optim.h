/* optim.h - what the files of optim share.
**
** options.c    options by name: reading and checking
** rules.c      the optimizers there are; muon.c the one that needs products
** optimizer.c  groups and steps; state.c what is saved
** replay.c     steps that are recorded once and replayed
** clip.c       the gradients of a list of parameters */

#ifndef optim_h
#define optim_h

#include "../fnn_nn.h"
#include "../core/core.h"
#include "../core/ops.h"

/* What a number of an option may be. */
typedef enum Domain {
  ANY,
  NOT_NEGATIVE,
  NOT_NEGATIVE_OR_UNSET, /* NaN: unset */
  NOT_POSITIVE,
  FRACTION, /* in [0, 1) */
  FROM_ONE,
  COUNT, /* a whole number from 0 to 99 */
  FLAG,
  ADJUSTMENT /* a place among the words of fnn_OptionInfo */
} Domain;

enum {
#define OPTION(name, numbers, domain) OPTION_##name,
#include "options.def"
#undef OPTION
  OPTION_COUNT
};

/* The numbers of all options; an optimizer reads those it has. */
typedef struct Values {
  double v[OPTION_COUNT][3];
} Values;

#define value(values, name) ((values)->v[OPTION_##name][0])

/* One optimizer: what it may be told and keeps, and its update. */
typedef struct OptimizerRule {
  const char *name;
  /* Its options and what they are when not given, to one without a name. */
  const fnn_Option *options;
  const char *const *state; /* three names, as PyTorch's, or NULL */
  int formula;              /* the row of optim.def, if it has no update */
  /* Throws unless the options go together.  May be NULL, as update. */
  void (*check)(const Values *v);
  /* Which of the three states of p these options need: a bit each. */
  unsigned (*needs)(const Values *v, const Tensor *p);
  /* Fills in u, but for its scale, for the step of s that is being made. */
  void (*constants)(const Values *v, Slot *s, Update *u);
  void (*update)(Tensor *p, const Tensor *g, Tensor *const *s, const Update *u,
                 const Values *v);
} OptimizerRule;

extern const OptimizerRule optimizer_rules[];
extern const char *const optimizer_adjustments[];

/* Params that are updated with the same options. */
typedef struct Group {
  Values values;
  int n;
  Param **params; /* retained */
} Group;

struct fnn_Optimizer {
  Object o;
  const OptimizerRule *rule;
  int ngroups;
  Group *groups;
};

Group *optimizer_group_at (fnn_Optimizer *o, int group); /* throws */
/* The shape of the k-th state of p; returns its number of dims. */
int optimizer_state_shape (const OptimizerRule *r, const Tensor *p, int k,
                           int64_t *shape);
/* The values that options make of v; all are checked. */
Values options_apply (const OptimizerRule *r, Values v, int n,
                      const fnn_Option *options);
Values options_initial (const OptimizerRule *r);

/* The squares of the gradients of n parameters, and those in sum (which may be
** NULL), summed: one f64 element on the device of the last of them. */
Tensor *gradient_squares (int n, fnn_Param *const *p, Tensor *sum);

/* x's constants for the step of p that it begins now. */
void optimizer_begin (fnn_Optimizer *o, int group, Param *p, Pass *x);

/* A parameter of a step, and its count as it was before. */
typedef struct Member {
  Param *p;
  int group;
  int64_t step;
  double product;
} Member;

/* replay.c: in a step that is being recorded, the list to give to the kernel
** for this one. */
const Pass *optimizer_recorded (fnn_Capture *c, fnn_Optimizer *o,
                                const Pass *list, const Member *of, int n);

/* muon.c */
void muon_update (Tensor *p, const Tensor *g, Tensor *const *s,
                  const Update *u, const Values *v);

#endif
