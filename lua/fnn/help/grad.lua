-- grad.lua - help on gradients and parameters.
return [[
# Gradients

An operation on a Param, or on a tensor made from one, remembers how to go
back. `loss:backward()` walks back from a tensor of one element and adds to
each Param's gradient. There is no tape to start or stop; a tensor that no
Param went into is plain data. Integer and bool results are always plain data.

fnn.Param(x: Tensor) -> Param
  A shared slot for one weight: its value, its gradient, and the optimizer's
  state for it. Every operation takes a Param where it takes a tensor. Tying two
  layers is using one Param twice. Also the way to the gradient of an input.

Tensor:backward(gradient?: Tensor, options?: table)
  Adds the gradient of x to each Param that x was made from. Without gradient x
  has one element, and the gradient starts as 1. A graph can be walked once.
  retain_graph: boolean = false    keeps it for another walk

fnn.grad(x: Tensor, params: Param|Param[], options?: table)
    -> Tensor|table
  The gradients of x for a list of Params, in its order, or for one; false
  where x does not depend on it. The Params' own gradients stay as they are.
  retain_graph: boolean = false    keeps the graph for another walk
  gradient: Tensor                 the gradient of x, if it has many elements

fnn.no_grad(f: function, ...: any) -> any
  Calls f with the arguments and returns its results; nothing is recorded
  inside. The mode is restored when f raises. Yielding out of f raises.

fnn.enable_grad(f: function, ...: any) -> any
  The same, but recording; for use inside no_grad.

fnn.detect_anomaly(f: function, ...: any) -> any
  Calls f with the arguments and returns its results. Inside, each operation
  looks at its result, also in no_grad and where it writes in place, and each
  backward at the gradients that it gives; the first that is not finite raises.
  The error names the operation, the line of the script that called it and the
  module it is in, shapes, how many elements are nan or inf and where the first
  is, and whether they were made there or came in with an input. -inf may be
  filled in and may come in, as it does in masks. What happens in a step that
  is being recorded (fnn.graph_step) is not looked at. Slow: for finding a
  fault.

fnn.autocast(f: function, options?: table, ...: any) -> any
  Calls f with the arguments behind the options and returns its results. Inside,
  matmul, linear layers, einsum and convolutions round their f32 operands to 16
  bits, add up in f32 and give 16 bits; sums, norms, losses, softmax, exp, log
  and powers take 16-bit operands as f32 (PyTorch's lists). Weights stay f32,
  and so are their gradients. Call backward and the optimizer outside of f, or
  inside: they are not changed by it. On the CPU products read rounded numbers
  and give f32. The mode is restored when f raises. Yielding out of f raises.
  dtype: string = "bf16"      or "f16", which wants optim.GradScaler, or "f32"
  enabled: boolean = true     false: as if f were called alone

fnn.autocast_dtype() -> string|nil
  "bf16" or "f16" inside of fnn.autocast, else nil.

fnn.is_grad_enabled() -> boolean
  Whether operations are recorded now.

fnn.record(y: Tensor, name: string, inputs: Tensor[], back: function)
    -> Tensor
  Gives a result that the script computed a derivative of its own. back(gy) is
  given the gradient of y and returns one gradient for each input, in order, nil
  for one that has none. name is used in error messages.

fnn.Function(name: string) -> table
  An operation to be given forward(ctx, ...) and backward(ctx, gy, ...), and
  then called as a function. forward runs without a graph; backward is given the
  gradients of its results and returns one for each argument, nil for what is
  no tensor. In forward ctx:save(x, ...) keeps tensors, which ctx:saved()
  returns in backward; other values are fields, ctx.k = k.
  ctx.needs_input_grad[i] tells whether argument i needs one. All float results
  have one dtype. backward = false means that there is no derivative. name is
  used in error messages.

Tensor:detach() -> Tensor
  The same values without their history; memory is shared.

Tensor:has_graph() -> boolean
  Whether a gradient would flow back from x.

Tensor:register_hook(f: function)
  f(g) is called with the gradient of x, once it is complete. What it returns,
  if not nil, takes its place. It goes with the graph, or with the Param. Its
  function must not hold x itself, if no backward will ever pass: such a circle
  is not collected.

fnn.gradcheck(f: function, inputs: Tensor[], options?: table)
    -> boolean, number
  Compares the derivatives of f(x, ...) with finite differences, in f64, and
  raises where they differ. Returns true and the largest error.
  eps: number     the step
  atol: number    how far off an element may be
  rtol: number    and as a share of it

# Parameters

A Param has all methods of tensors, on its value, and these.

Param:value() -> Tensor
  The weight as a tensor. It shares memory with the Param.

Param:grad() -> Tensor|nil
  The gradient collected so far, or nil.

Param:set_grad(gradient?: Tensor)
  Replaces the gradient, or drops it.

Param:set(value: Tensor)
  Replaces the weight by one of the same shape.

Param:freeze() -> Param
  No gradient flows to it any more.

Param:unfreeze() -> Param
  Undoes freeze.

Param:is_frozen() -> boolean
  Whether it is frozen.

Param:to(what: string, more?: string) -> Param
  Moves weight, gradient and optimizer state to a device or dtype, in place.
]]
