/* rules.c - the optimizers there are: a row each.
**
** SGD    with momentum as PyTorch's: buf = mu buf + (1 - dampening) g, the
**        first step buf = g; nesterov g + mu buf
** Adam   Kingma and Ba 2015, arXiv:1412.6980, eps outside the square root;
**        AdamW decays the weight itself (Loshchilov and Hutter 2019,
**        arXiv:1711.05101) */

#include "optim.h"

static int sgd_nstate (const Update *u) { return u->h[0] != 0; }

static void sgd_step (Tensor *p, const Tensor *g, Tensor *const *s,
                      const Update *u) {
  kernel(p, sgd)(p, g, s, u);
}

const OptimizerRule sgd_rule = {
  "SGD", { "momentum_buffer" }, sgd_nstate, sgd_step
};

static int adam_nstate (const Update *u) { return u->flag[1] ? 3 : 2; }

static void adam_step (Tensor *p, const Tensor *g, Tensor *const *s,
                       const Update *u) {
  kernel(p, adam)(p, g, s, u);
}

const OptimizerRule adam_rule = {
  "Adam", { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }, adam_nstate, adam_step
};
