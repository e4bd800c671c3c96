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
  integers their dtype. Where there is no room for all of it nothing is moved.

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

nn.Dropout(p?: number, options?: table) -> Module
  In training zeroes each element with probability p (0.5) and scales the rest.
  p: number = 0.5    where it is not the first argument

nn.Dropout1d(p?: number, options?: table) -> Module
  The same for whole channels of (n, channels, l).

nn.Dropout2d(p?: number, options?: table) -> Module
  The same for whole channels of (n, channels, h, w).

nn.Flatten(first?: integer, last?: integer) -> Module
  Dimensions first (2) to last (-1) as one.

nn.Unflatten(dim: integer, sizes: integer[]) -> Module
  A dimension as several, of these sizes.

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
  approximate: string = "none"    or "tanh", "quick"

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

The functions of nn.init fill a Param or a tensor and return it; those that draw
have the option generator. Of a weight (out, in, ...) the inputs, fan_in, are in
times the elements behind it, and the outputs, fan_out, out times them.

fnn.kaiming(shape: integer[], options?: table) -> Tensor
  Normal numbers of deviation sqrt(2 / inputs), for relu (He et al. 2015).

fnn.xavier(shape: integer[], options?: table) -> Tensor
  Uniform numbers in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).

nn.init.uniform_(x: Tensor, lo?: number, hi?: number, options?: table) -> Tensor
  Uniform numbers from lo (0) to hi (1).

nn.init.normal_(x: Tensor, mean?: number, std?: number, options?: table)
    -> Tensor
  Normal numbers of mean (0) and deviation std (1).

nn.init.trunc_normal_(x: Tensor, mean?: number, std?: number, lo?: number,
                      hi?: number, options?: table) -> Tensor
  Normal numbers of mean (0) and deviation std (1) from lo (-2) to hi (2); what
  is outside is drawn again.

nn.init.constant_(x: Tensor, value: number) -> Tensor
  One number throughout.

nn.init.zeros_(x: Tensor) -> Tensor
  Zeros.

nn.init.ones_(x: Tensor) -> Tensor
  Ones.

nn.init.eye_(x: Tensor) -> Tensor
  A matrix with ones on its diagonal.

nn.init.dirac_(x: Tensor, options?: table) -> Tensor
  Kernels of a convolution that lets its inputs pass.
  groups: integer = 1    in each group of its channels

nn.init.orthogonal_(x: Tensor, options?: table) -> Tensor
  A random matrix with orthonormal rows, or columns if there are no more of
  them, times gain (Saxe et al. 2014, arXiv:1312.6120).
  gain: number = 1

nn.init.sparse_(x: Tensor, sparsity: number, std?: number, options?: table)
    -> Tensor
  A matrix of normal numbers of deviation std (0.01), this share of each column
  being 0.

nn.init.xavier_uniform_(x: Tensor, options?: table) -> Tensor
  Uniform numbers of deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and
  Bengio 2010).
  gain: number = 1

nn.init.xavier_normal_(x: Tensor, options?: table) -> Tensor
  The same, normal.

nn.init.kaiming_uniform_(x: Tensor, options?: table) -> Tensor
  Uniform numbers of deviation gain / sqrt(fan) (He et al. 2015).
  mode: string = "fan_in"                or "fan_out"
  activation: string = "leaky_relu"      whose gain it is
  slope: number = 0                      of leaky_relu

nn.init.kaiming_normal_(x: Tensor, options?: table) -> Tensor
  The same, normal.

nn.init.gain(activation: string, slope?: number) -> number
  The factor that keeps the variance through an activation: "linear", "sigmoid",
  "tanh", "relu", "leaky_relu" (of slope 0.01), "selu".
]]
