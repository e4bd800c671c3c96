-- optim.lua - help on optimizers.
return [[
# Optimizers

An optimizer changes the weights of its Params by their gradients, in one pass
over memory. Params without a gradient, and frozen ones, are left alone. What it
remembers of a Param is kept in the Param, and moves with it.

The parameters are a list, as model:parameters() gives it, or a list of groups
with options of their own: { { params = a, lr = 1 }, { params = b } }.

optim.SGD(params: Param[]|table[], options?: table) -> Optimizer
  Gradient descent, with momentum if asked.
  lr: number = 0.01           the learning rate
  momentum: number = 0        the share of the last step that goes on
  dampening: number = 0       how much less a gradient counts with momentum
  weight_decay: number = 0    times the weight, added to its gradient
  nesterov: boolean = false   looks ahead along the momentum

optim.Adam(params: Param[]|table[], options?: table) -> Optimizer
  Steps scaled by running means of the gradient and its square (Kingma and Ba
  2015, arXiv:1412.6980).
  lr: number = 0.001                the learning rate
  betas: table = { 0.9, 0.999 }     how slowly the two means follow
  eps: number = 1e-8                added to the root of the second
  weight_decay: number = 0          times the weight, added to its gradient
  amsgrad: boolean = false          uses the largest second mean so far

optim.AdamW(params: Param[]|table[], options?: table) -> Optimizer
  Adam with weight decay applied to the weight itself (Loshchilov and Hutter
  2019, arXiv:1711.05101). The options of Adam, weight_decay 0.01 by default.

Optimizer:step()
  Changes the weights by their gradients.

Optimizer:zero_grad()
  Drops the gradients of all its Params.

Optimizer:lr(group?: integer) -> number
  The learning rate of a group, the first without one.

Optimizer:set_lr(lr: number, group?: integer)
  Changes the learning rate of a group, or of all.

Optimizer:parameters() -> Param[]
  All Params, in the order of their groups.

Optimizer:state() -> table
  What is needed to go on later: the step and state tensors of each Param.

Optimizer:load_state(state: table)
  Takes back what state returned, for the same parameters in the same order.

# Gradients at large

These take an optimizer or a list of Params, as functions of optim or as
methods of an optimizer.

optim.grad_norm(params: Optimizer|Param[]) -> number
  The Euclidean length of all gradients together.

optim.clip_grad_norm(params: Optimizer|Param[], most: number) -> number
  Scales all gradients down so that their length is at most most; returns the
  length before.

optim.clip_grad_value(params: Optimizer|Param[], most: number)
  Moves each element of the gradients into [-most, most].

optim.gradients_are_finite(params: Optimizer|Param[]) -> boolean
  Whether no gradient has an infinite element or NaN.

Optimizer:grad_norm() -> number
  As optim.grad_norm.

Optimizer:clip_grad_norm(most: number) -> number
  As optim.clip_grad_norm.

Optimizer:clip_grad_value(most: number)
  As optim.clip_grad_value.

Optimizer:gradients_are_finite() -> boolean
  As optim.gradients_are_finite.
# Schedules

A schedule is a function of the number of steps done, counted from 0, that gives
the learning rate: `opt:set_lr(schedule(step))`. Any function or callable is
one. Those below change nothing when they are called, so that a resumed run
needs no state of theirs; their numbers are fields, checked when they change:
`schedule.every = 5`. What may be left out is an argument or an option in a
table at the end. ReduceOnPlateau alone has state: it follows what it is told.

optim.scheduler(opt: Optimizer, schedule: function) -> function
  A function that gives the optimizer the rate of a step, and returns it. Groups
  keep the ratios of their rates; the largest is the schedule's.

optim.Constant(base: number) -> function
  The same rate always.

optim.StepDecay(base: number, every: number, gamma?: number) -> function
  Times gamma (0.1) after each so many steps.

optim.MultiStep(base: number, milestones: integer[], gamma?: number)
    -> function
  Times gamma (0.1) at each of these steps.

optim.Exponential(base: number, gamma: number) -> function
  Times gamma at each step.

optim.Polynomial(base: number, total: number, options?: table) -> function
  Down to floor at step total, as a power of what is left, and flat after.
  power: number = 1
  floor: number = 0

optim.CosineAnnealing(base: number, total: number, options?: table) -> function
  Half a cosine from base to floor at step total, and flat after.
  floor: number = 0

optim.CosineRestarts(base: number, period: number, options?: table) -> function
  Half a cosine from base to floor in each period (Loshchilov and Hutter 2017,
  arXiv:1608.03983).
  mult: integer = 1    how many times longer each period is than the one before
  floor: number = 0

optim.Warmup(inner: function, steps: number) -> function
  Another schedule, times (step + 1) / steps in its first steps.

optim.OneCycle(peak: number, total: number, options?: table) -> function
  Up to peak along a line, then down along a cosine until step total (Smith and
  Topin 2018, arXiv:1708.07120).
  warmup_fraction: number = 0.3    the part of the steps that goes up
  start_div: number = 25           begins at peak / start_div
  end_div: number = 1e4            ends at peak / end_div

optim.WarmupCosine(peak: number, warmup: number, total: number, options?: table)
    -> function
  Up to peak along a line in warmup steps, then along a cosine to floor at step
  total, and flat after.
  floor: number    peak / 10 without

optim.WSD(peak: number, warmup: number, stable: number, decay: number,
          options?: table) -> function
  Up to peak in warmup steps, there for stable steps, down to floor in decay
  steps (Hu et al. 2024, arXiv:2404.06395).
  floor: number = 0
  shape: string = "linear"    of the way down; or "cosine", "sqrt"

optim.Chained(...: function) -> function
  The product of schedules: the first gives the rate, the others factors.

optim.Sequential(schedules: function[], milestones: integer[]) -> function
  One after the other; each milestone is the step at which the next begins, with
  a step 0 of its own.

optim.ReduceOnPlateau(base: number, options?: table) -> table
  Times factor when the value that it is told, s:update(value), has not become
  better for more than patience times. s(step) is the rate now. s:state_dict()
  and s:load_state_dict(state) keep it, s:reset() starts again. fnn.fit tells it
  the loss of each epoch: of the validation, if there is one.
  mode: string = "min"              or "max"
  factor: number = 0.1
  patience: integer = 10
  threshold: number = 1e-4          how much better counts
  threshold_mode: string = "rel"    as a share of the best, or "abs"
  cooldown: integer = 0             values to ignore after a change
  floor: number = 0                 the lowest rate
  eps: number = 1e-8                a change smaller than this is not made
]]
