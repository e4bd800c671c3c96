-- optim.lua - help on optimizers.
return [[
# Optimizers

An optimizer changes the weights of its Params by their gradients, in one pass
over memory. Params without a gradient, and frozen ones, are left alone. What it
remembers of a Param is kept in the Param, and moves with it.

The parameters are a model, for all it has, a list of Params, or a list of
groups with options of their own: { { params = a, lr = 1 }, { params = b } }.
Defaults are PyTorch's. These options are of all: lr, the learning rate;
weight_decay, which adds that share of the weight to its gradient, or, where it
is said to be of the weight itself, takes lr times that share off the weight;
maximize, which goes up instead of down.

optim.SGD(params: Module|Param[]|table[], options?: table) -> Optimizer
  Gradient descent, with momentum if asked.
  lr: number = 0.001           the learning rate
  momentum: number = 0         the share of the last step that goes on
  dampening: number = 0        how much less a gradient counts with momentum
  nesterov: boolean = false    looks ahead along the momentum
  weight_decay: number = 0     the share of the weight that decays
  maximize: boolean = false    goes up, not down

optim.Adam(params: Module|Param[]|table[], options?: table) -> Optimizer
  Steps scaled by running means of the gradient and its square (Kingma and Ba
  2015, arXiv:1412.6980).
  lr: number = 0.001               the learning rate
  betas: table = { 0.9, 0.999 }    how slowly the two means follow
  eps: number = 1e-8               added to the root of the second
  amsgrad: boolean = false         uses the largest second mean so far
  weight_decay: number = 0         the share of the weight that decays
  maximize: boolean = false        goes up, not down

optim.AdamW(params: Module|Param[]|table[], options?: table) -> Optimizer
  Adam with decay of the weight itself (Loshchilov and Hutter 2019,
  arXiv:1711.05101). The options of Adam, weight_decay 0.01 by default.

optim.RAdam(params: Module|Param[]|table[], options?: table) -> Optimizer
  Adam that takes plain steps until the variance can be relied on (Liu et al.
  2020, arXiv:1908.03265).
  lr: number = 0.001                         the learning rate
  betas: table = { 0.9, 0.999 }              how slowly the two means follow
  eps: number = 1e-8                         added to the root
  decoupled_weight_decay: boolean = false    decay of the weight itself
  weight_decay: number = 0                   the share of the weight that decays
  maximize: boolean = false                  goes up, not down

optim.NAdam(params: Module|Param[]|table[], options?: table) -> Optimizer
  Adam that looks ahead along its momentum (Dozat 2016).
  lr: number = 0.002                         the learning rate
  betas: table = { 0.9, 0.999 }              how slowly the two means follow
  eps: number = 1e-8                         added to the root
  momentum_decay: number = 0.004             how the momentum grows
  decoupled_weight_decay: boolean = false    decay of the weight itself
  weight_decay: number = 0                   the share of the weight that decays
  maximize: boolean = false                  goes up, not down

optim.Adamax(params: Module|Param[]|table[], options?: table) -> Optimizer
  Adam with the largest gradient of late in the place of the mean square
  (Kingma and Ba, section 7).
  lr: number = 0.002               the learning rate
  betas: table = { 0.9, 0.999 }    how slowly the two means follow
  eps: number = 1e-8               added to the root
  weight_decay: number = 0         the share of the weight that decays
  maximize: boolean = false        goes up, not down

optim.Lion(params: Module|Param[]|table[], options?: table) -> Optimizer
  The sign of a mean of gradients: each element moves by lr (Chen et al. 2023,
  arXiv:2302.06675). Decay is of the weight itself.
  lr: number = 0.0001             the learning rate
  betas: table = { 0.9, 0.99 }    of the mean that moves, and the one kept
  weight_decay: number = 0        the share of the weight that decays
  maximize: boolean = false       goes up, not down

optim.RMSprop(params: Module|Param[]|table[], options?: table) -> Optimizer
  Steps over the root of a running mean square.
  lr: number = 0.01            the learning rate
  alpha: number = 0.99         how slowly it follows
  eps: number = 1e-8           added to the root
  momentum: number = 0         the share of the last step that goes on
  centered: boolean = false    the variance in the place of the mean square
  weight_decay: number = 0     the share of the weight that decays
  maximize: boolean = false    goes up, not down

optim.Adagrad(params: Module|Param[]|table[], options?: table) -> Optimizer
  Steps over the root of the sum of all squares so far (Duchi et al. 2011).
  lr: number = 0.01                        the learning rate
  lr_decay: number = 0                     the rate falls by 1 / (1 + this n)
  initial_accumulator_value: number = 0    where the sum starts
  eps: number = 1e-10                      added to the root
  weight_decay: number = 0                 the share of the weight that decays
  maximize: boolean = false                goes up, not down

optim.Adadelta(params: Module|Param[]|table[], options?: table) -> Optimizer
  Steps in the units of the weight: over the root of a mean square of gradients,
  times that of the steps (Zeiler 2012, arXiv:1212.5701).
  lr: number = 1               the learning rate
  rho: number = 0.9            how slowly both follow
  eps: number = 1e-6           added under both roots
  weight_decay: number = 0     the share of the weight that decays
  maximize: boolean = false    goes up, not down

optim.Adafactor(params: Module|Param[]|table[], options?: table) -> Optimizer
  The mean squares of a matrix kept as those of its rows and columns: hardly
  any memory (Shazeer and Stern 2018, arXiv:1804.04235). Steps are relative to
  the size of the weight. Decay is of the weight itself.
  lr: number = 0.01             the most of a relative step
  beta2_decay: number = -0.8    the power of the step by which means slow down
  eps1: number                  keeps roots from 0; the dtype's if not given
  eps2: number = 0.001          the least size that a weight counts with
  d: number = 1                 the most that an update's size may be
  weight_decay: number = 0      the share of the weight that decays
  maximize: boolean = false     goes up, not down

optim.Muon(params: Module|Param[]|table[], options?: table) -> Optimizer
  Momentum made orthogonal, for the matrices of hidden layers (Jordan et al.
  2024); other parameters are AdamW's. PyTorch iterates in bf16, this in the
  dtype of the parameter. Decay is of the weight itself.
  lr: number = 0.001             the learning rate
  weight_decay: number = 0.1     the share of the weight that decays
  momentum: number = 0.95        the share of the last step that goes on
  nesterov: boolean = true       looks ahead along the momentum
  ns_coefficients: table         of the iteration: { 3.4445, -4.775, 2.0315 }
  ns_steps: integer = 5          how often it is done
  eps: number = 1e-7             the least norm that is divided by
  adjust_lr_fn: string           the rate for a shape: "original" if not given
  maximize: boolean = false      goes up, not down
  adjust_lr_fn may also be "match_rms_adamw", with which the rates of AdamW
  will do, or "spectral_unclamped".

optim.LBFGS(params: Module|Param[], options?: table) -> table
  Quasi-Newton steps for small smooth problems (Nocedal and Wright 2006).
  step(f) calls f, which drops the gradients, computes the loss, walks back from
  it and returns it; more than once a step. One group of parameters.
  lr: number = 1                     the learning rate
  max_iter: integer = 20             iterations a step
  max_eval: integer                  calls of f a step; 5/4 of max_iter
  tolerance_grad: number = 1e-7      ends at a gradient so small
  tolerance_change: number = 1e-9    ends at a change so small
  history_size: integer = 100        steps remembered
  line_search_fn: string             "strong_wolfe": finds the length of a step
  maximize: boolean = false          goes up, not down

optim.Lookahead(optimizer: Optimizer|table, options?: table) -> table
  An optimizer around another: every k steps, slow weights go a part of the way
  to where it went, and it goes on from there (Zhang et al. 2019,
  arXiv:1907.08610).
  k: integer = 5         how many steps
  alpha: number = 0.5    how much of the way

optim.optimizer(name: string, options?: table, parent?: table) -> table
  A new class of optimizers. Calling it with parameters and options makes one,
  which has all methods below. options names all there are and what they are
  when not given. Give the class update(self, p, g, state, group), which changes
  the Param p by its gradient g: state is what is kept of p, a table that update
  fills with tensors, numbers or lists of them; group has the options. Recording
  is off in it. A class may have check(self, options), which raises.

optim.decay_groups(model: Module, options?: table) -> table[]
  Two groups for an optimizer: weights that decay, and those that are spared
  (biases, what has one dimension, all of a normalization). options are of both.
  weight_decay: number = 0.01    of the first

Optimizer:step(options?: table) -> number|Tensor|nil
  Changes the weights by their gradients, which stay as they are. With options
  it returns the Euclidean length of all gradients, scaled, before clipping: on
  a card a tensor there, as clip_grad_norm.
  scale: number = 1    times the gradients: 1/k after k batches
  max_norm: number     the most that their length may be

Optimizer:zero_grad()
  Drops the gradients of all its Params.

Optimizer:learning_rate(group?: integer) -> number
  The learning rate of a group, the first without one.

Optimizer:set_learning_rate(lr: number, group?: integer)
  Changes the learning rate of a group, or of all, and nothing else.

Optimizer:lr(group?: integer) -> number
  learning_rate, shorter.

Optimizer:set_lr(lr: number, group?: integer)
  set_learning_rate, shorter.

Optimizer:groups() -> table[]
  The groups: their options, and their params as a list.

Optimizer:add_group(group: table) -> Optimizer
  Adds a group: params, and options over the defaults.

Optimizer:set_options(options: table, group?: integer) -> Optimizer
  Changes options of a group, or of all.

Optimizer:parameters() -> Param[]
  All Params, in the order of their groups.

Optimizer:name() -> string
  "AdamW".

Optimizer:state_dict() -> table
  What is needed to go on later: tensors by name ("0.exp_avg": the place of the
  parameter, from 0, and PyTorch's name), as a list of names and a table; steps
  and options in [".state"].

Optimizer:load_state_dict(state: table) -> Optimizer
  Takes back what state_dict returned, options too, for parameters of the same
  shapes in the same order. Raises, with nothing changed, when it does not fit.

Optimizer:check_state_dict(state: table)
  Raises what load_state_dict would, and changes nothing.

Optimizer:save(path: string) -> Optimizer
  Writes state_dict as a safetensors file, whole or not at all.

Optimizer:load(path: string) -> Optimizer
  load_state_dict from such a file.

# Averages of weights

An average follows the weights: call a:update() after each step of the
optimizer. a:averaged(f, ...) calls f with the averages in the place of the
weights; a:swap() exchanges them, and a second one back. state_dict,
load_state_dict, save and load are as an optimizer's. Buffers are not averaged:
optim.update_batch_norm makes the statistics of averaged weights.

optim.Ema(params: Module|Param[], options?: table) -> table
  The running mean: decay times the average, plus 1 - decay times the weight.
  decay: number = 0.999    what stays of the average

optim.SWA(params: Module|Param[]) -> table
  The mean of the weights at all updates (Izmailov et al. 2018,
  arXiv:1803.05407).

optim.update_batch_norm(model: Module, batches: function|table, ...: any)
  Makes the running statistics of each BatchNorm anew, as the mean over batches:
  a loader, or train:batches(64), or what else a for loop takes. For weights
  that no step of training has seen, as those of an average: after swa:swap().

# Gradients at large

These take an optimizer, a model or a list of Params, as functions of optim or
as methods of an optimizer.

optim.grad_norm(params: Optimizer|Module|Param[]) -> number
  The Euclidean length of all gradients together.

optim.clip_grad_norm(params: Optimizer|Module|Param[], most: number)
    -> number|Tensor
  Scales all gradients down so that their length is at most most; returns the
  length before. Of gradients on a card it is a tensor there, which nobody has
  waited for: norm:item() does.

optim.clip_grad_value(params: Optimizer|Module|Param[], most: number)
  Moves each element of the gradients into [-most, most].

optim.scale_grad(params: Optimizer|Module|Param[], factor: number)
  Multiplies all gradients with a number.

optim.gradients_are_finite(params: Optimizer|Module|Param[]) -> boolean
  Whether no gradient has an infinite element or NaN.

Optimizer:grad_norm() -> number
  As optim.grad_norm.

Optimizer:clip_grad_norm(most: number) -> number|Tensor
  As optim.clip_grad_norm.

Optimizer:clip_grad_value(most: number)
  As optim.clip_grad_value.

Optimizer:scale_grad(factor: number)
  As optim.scale_grad.

Optimizer:gradients_are_finite() -> boolean
  As optim.gradients_are_finite.

# Scaling the loss

Gradients in f16 vanish below 6e-8, so under fnn.autocast with dtype = "f16" the
loss is multiplied with a large number and the gradients are divided by it:

    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()

bf16 has the range of f32 and needs none of it.

optim.GradScaler(options?: table) -> table
  A scale that follows what it meets. scaler:scale(loss) multiplies a loss, or
  each of a list; scaler:step(opt, ...) divides opt's gradients by the scale,
  steps unless one of them is infinite or NaN, and returns whether it did;
  scaler:unscale(opt) divides before, so that they can be clipped;
  scaler:update(scale?) goes on, with less where a step was left out, with more
  after interval steps without. scaler:get_scale(), scaler:is_enabled(),
  scaler:state_dict() and scaler:load_state_dict(state). Of a card's gradients
  one word is read each step.
  init_scale: number = 65536  the first scale
  growth: number = 2          what it grows by
  backoff: number = 0.5       what it shrinks by
  interval: integer = 2000    good steps before it grows
  enabled: boolean = true     false: scale, step and update do nothing of it

# Schedules

A schedule is a function of the number of steps done, counted from 0, that gives
the learning rate: `opt:set_learning_rate(schedule(step))`. Any function or
callable is one. Those below change nothing when they are called, so that a
resumed run needs no state of theirs; their numbers are fields, checked when
they change: `schedule.every = 5`. What may be left out is an argument or an
option in a table at the end. ReduceOnPlateau alone has state: it follows what
it is told.

optim.scheduler(opt: Optimizer, schedule: function) -> function
  What is called with a step: it gives the optimizer the rate of that step, and
  returns it. Groups keep the ratios of their rates; the largest is the
  schedule's. s:state_dict() and s:load_state_dict(state) keep the ratios, which
  the rates no longer tell once all are 0, and what a schedule with state has.

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
