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
]]
