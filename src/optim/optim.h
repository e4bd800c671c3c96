/* optim.h - what the files of optim share. */

#ifndef optim_h
#define optim_h

#include "../fnn_nn.h"
#include "../core/core.h"
#include "../core/ops.h"

/* One optimizer's formula: what it keeps for each element, and its pass. */
typedef struct OptimizerRule {
  const char *name;
  const char *state[4]; /* names of its tensors, as PyTorch's; NULL-ended */
  /* How many of them these options need. */
  int (*nstate)(const Update *u);
  void (*update)(Tensor *p, const Tensor *g, Tensor *const *s,
                 const Update *u);
} OptimizerRule;

/* Params that are updated with the same options. */
typedef struct Group {
  Update options;
  int n;
  Param **params; /* retained */
} Group;

struct fnn_Optimizer {
  Object o;
  const OptimizerRule *rule;
  int ngroups;
  Group *groups;
};

extern const OptimizerRule sgd_rule, adam_rule;

#endif
