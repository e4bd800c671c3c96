-- nn.lua - help on modules, layers and initial weights.
return [[
# Modules

A model is a tree of modules. A module is made by calling its class, and run by
calling it: layer = nn.Linear(3, 2); y = layer(x). What is assigned to a field
belongs to the module: a Param is a weight, a tensor a buffer (moved and saved
with it), a module a part, a table of modules a ModuleList. Walks meet each part
once, in the order of first assignment. Names in files count places from 0, as
PyTorch's do: "0.weight".

nn.module(name: string, parent?: table) -> table
  A new class. Give it init(self, ...), which makes the parts, and
  forward(self, x, ...).

nn.transient(x: Tensor) -> Tensor
  Assigned to a field, a buffer that moves with the model but is not saved.

fnn.summary(model: Module, ...: Tensor|table) -> table
  Runs the model on inputs (or zeros of the shapes given) and tells, for print,
  the shape of each module's output and how many parameters are its own.

Module:parameters() -> Param[]
  All its Params, each once.

Module:named_parameters() -> function
  An iterator over names and Params.

Module:trainable_parameters() -> Param[]
  The Params that are not frozen.

Module:buffers() -> Tensor[]
  Its tensors that are no Params.

Module:named_buffers() -> function
  An iterator over names and buffers.

Module:modules() -> Module[]
  It and all modules below it.

Module:named_modules() -> function
  An iterator over names and modules; its own name is "".

Module:children() -> Module[]
  The modules in its own fields.

Module:named_children() -> function
  An iterator over names and children.

Module:parameter_count() -> integer, integer
  The number of elements of all parameters, and of those that are not frozen.

Module:get(path: string) -> any
  A part by its path, "layers.0.weight", or nil.

Module:is_a(class: table) -> boolean
  Whether it is of that class, or of one that inherits from it.

Module:train(on?: boolean) -> Module
  Goes into training: Dropout drops. train(false) is eval.

Module:eval() -> Module
  Goes into evaluation: Dropout passes all.

Module:freeze() -> Module
  Freezes all its parameters.

Module:unfreeze() -> Module
  Undoes freeze.

Module:zero_grad() -> Module
  Drops the gradients of all its parameters.

Module:apply(f: function) -> Module
  Calls f(module) for each module, parts before the module that holds them.

Module:to(...: string|table) -> Module
  Moves parameters and buffers to a device or dtype. Params keep their identity,
  integers their dtype.

Module:describe() -> string
  What print shows in parentheses behind the class; a class may have its own.

Module:summary(...: Tensor|table) -> table
  As fnn.summary.

# Saving models

Module:state_dict() -> table
  Its tensors by name, in order.

Module:load_state_dict(state: table, options?: table) -> table
  Fills the model from tensors by name. All is checked before the first write.
  Returns lists of names: loaded, missing, unexpected, mismatched, ignored.
  strict: boolean = true               missing or unexpected tensors raise
  ignore_mismatched: boolean = false   leaves those of another shape alone
  rename: function|table               the model's name for one in the file

Module:save(path: string, options?: table) -> Module
  Writes a safetensors file, whole or not at all.
  metadata: table    strings by name to keep in it

Module:load(path: string, options?: table) -> table
  load_state_dict from a safetensors file.

# Layers

Weights start as PyTorch's do; dtype, device and generator are options of all
that have weights.

nn.Linear(inputs: integer, outputs: integer, options?: table) -> Module
  x times weight transposed, plus bias: (..., inputs) to (..., outputs).
  bias: boolean = true    whether it has one

nn.Embedding(count: integer, dim: integer, options?: table) -> Module
  A vector of size dim for each id 0 .. count-1.

nn.Conv1d(inputs: integer, outputs: integer, kernel: integer|integer[],
    options?: table) -> Module
  Tensor:conv1d with a weight (outputs, inputs / groups, kernel ...) and a bias
  of its own.
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  bias: boolean = true    whether it has one
  padding_mode: string = "zeros"    no other is there

nn.Conv2d(inputs: integer, outputs: integer, kernel: integer|integer[],
    options?: table) -> Module
  Tensor:conv2d with a weight (outputs, inputs / groups, kernel ...) and a bias
  of its own.
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  bias: boolean = true    whether it has one
  padding_mode: string = "zeros"    no other is there

nn.Conv3d(inputs: integer, outputs: integer, kernel: integer|integer[],
    options?: table) -> Module
  Tensor:conv3d with a weight (outputs, inputs / groups, kernel ...) and a bias
  of its own.
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  bias: boolean = true    whether it has one
  padding_mode: string = "zeros"    no other is there

nn.ConvTranspose1d(inputs: integer, outputs: integer,
    kernel: integer|integer[], options?: table) -> Module
  Tensor:conv_transpose1d with a weight (inputs, outputs / groups, kernel ...)
  and a bias of its own.
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros taken off the result
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  output_padding: integer|integer[] = 0    places more at the end
  bias: boolean = true    whether it has one
  padding_mode: string = "zeros"    no other is there

nn.ConvTranspose2d(inputs: integer, outputs: integer,
    kernel: integer|integer[], options?: table) -> Module
  Tensor:conv_transpose2d with a weight (inputs, outputs / groups, kernel ...)
  and a bias of its own.
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros taken off the result
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  output_padding: integer|integer[] = 0    places more at the end
  bias: boolean = true    whether it has one
  padding_mode: string = "zeros"    no other is there

nn.LayerNorm(size: integer|integer[], options?: table) -> Module
  The last dimensions scaled to mean 0 and variance 1, then by a weight and a
  bias.
  eps: number = 1e-5        keeps the division finite
  affine: boolean = true    whether it has weight and bias

nn.Dropout(p?: number, options?: table) -> Module
  In training zeroes each element with probability p (0.5) and scales the rest.

nn.Flatten(first?: integer, last?: integer) -> Module
  Dimensions first (2) to last (-1) as one.

nn.Identity() -> Module
  x as it is.

nn.Softmax(dim?: integer) -> Module
  softmax along dim (-1).

nn.LogSoftmax(dim?: integer) -> Module
  log_softmax along dim (-1).

# Containers

nn.Sequential(...: Module|table) -> Module
  Calls its modules one after the other.

nn.ModuleList(...: Module|table) -> Module
  Modules by place: list[1], #list, append, insert, remove, extend.

nn.ModuleDict(modules?: table) -> Module
  Modules by name: dict.name, keys().

# Activation layers

The functions of the same names as layers. Parameters are numbers or options:
nn.LeakyReLU(0.1), nn.LeakyReLU{ slope = 0.1 }.

nn.ReLU() -> Module
  relu.

nn.ReLU6() -> Module
  relu6.

nn.LeakyReLU(slope?: number|table) -> Module
  leaky_relu.

nn.ELU(alpha?: number|table) -> Module
  elu.

nn.SELU() -> Module
  selu.

nn.GELU(options?: table) -> Module
  gelu.
  approximate: string = "none"    or "tanh"

nn.SiLU() -> Module
  silu.

nn.Mish() -> Module
  mish.

nn.Sigmoid() -> Module
  sigmoid.

nn.LogSigmoid() -> Module
  log_sigmoid.

nn.Hardsigmoid() -> Module
  hardsigmoid.

nn.Hardswish() -> Module
  hardswish.

nn.Tanh() -> Module
  tanh.

nn.Softplus(beta?: number|table, threshold?: number) -> Module
  softplus.

nn.Softsign() -> Module
  softsign.

# Initial weights

fnn.kaiming(shape: integer[], options?: table) -> Tensor
  Normal numbers of deviation sqrt(2 / inputs), for relu (He et al. 2015).

fnn.xavier(shape: integer[], options?: table) -> Tensor
  Uniform numbers in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
]]
