-- grad.lua - help on gradients and parameters.
return [[
# Gradients

An operation on a Param, or on a tensor made from one, remembers how to go
back. `loss:backward()` walks back from a tensor of one element and adds each
Param's gradient to its `grad`. There is no tape to start or stop.

fnn.Param(x: Tensor) -> Param
  A shared slot for one weight, with its gradient and the optimizer's state.
  Every operation takes a Param where it takes a tensor.

Param:zero_grad()
  Drops the gradient.
]]
