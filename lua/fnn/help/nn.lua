-- nn.lua - help on modules, layers and losses.
return [[
# Modules

A model is a tree of modules. A module is called like a function, model(x), and
holds Params, tensors that are no parameters (buffers) and other modules in its
fields. Whether a layer is made in C or in Lua makes no difference:

    local Residual = nn.module "Residual"
    function Residual:init (inner) self.inner = inner end
    function Residual:forward (x) return x + self.inner(x):relu() end

    local model = nn.Sequential(Residual(nn.Linear(8, 8)), nn.Linear(8, 2))

Fields are kept in the order in which they were first assigned, and that is the
order of parameters and of saved tensors. A part is met once, however many
fields lead to it: using one Param, or one module, in two places ties them. A
table of modules becomes a ModuleList or a ModuleDict. A tensor with a graph,
the result of a forward, is no buffer. Names of parts are paths, as in
PyTorch's files: the first module of a Sequential is seq[1], and "0" in them.

nn.module(name: string, parent?: table) -> table
  A new class. Calling it makes a module and runs its init(self, ...); calling
  the module runs its forward(self, ...). A class with a parent, its super, has
  the parent's methods; the parent may be a layer made in C, whose init and
  forward are called as nn.Linear.init(self, 3, 4). describe(self) may return
  what print shows between parentheses. state(self) may return values (numbers,
  strings, booleans, tables of them) that are saved with the model and given to
  load_state(self, values).

nn.transient(x: Tensor) -> table
  Assigned to a field, a buffer that moves with the model but is not saved.

Module:forward(...: any) -> any
  What calling the module runs.

Module:is_a(class: table) -> boolean
  Whether the module is of the class or of one that inherits from it.

Module:parameters() -> Param[]
  All Params below, each once.

Module:named_parameters() -> function
  An iterator: for name, param in model:named_parameters() do.

Module:trainable_parameters() -> Param[]
  Those that are not frozen.

Module:parameter_count() -> integer, integer
  How many numbers all Params hold, and those that are not frozen.

Module:buffers() -> Tensor[]
  All buffers below.

Module:named_buffers() -> function
  An iterator over name, tensor.

Module:children() -> Module[]
  The modules in the fields.

Module:named_children() -> function
  An iterator over name, module.

Module:modules() -> Module[]
  The module itself and all below it.

Module:named_modules() -> function
  An iterator over path, module; the module's own path is "".

Module:get(path: string) -> Module|Param|Tensor
  A part by its path, "0.inner.weight", or nil.

Module:apply(f: function) -> Module
  Calls f(m) for each module, children before their parents.

Module:train(on?: boolean) -> Module
  Puts the module and all below it into training (the beginning state), or with
  false into evaluation. The field training tells which.

Module:eval() -> Module
  The same as train(false).

Module:freeze() -> Module
  Freezes all Params: no gradient is computed for them.

Module:unfreeze() -> Module
  Undoes freeze.

Module:zero_grad() -> Module
  Drops all gradients.

Module:to(...: string|table) -> Module
  Moves Params and buffers to a device, a float dtype or both: "cuda", "f64".
  Params keep their identity, so optimizers go on with them.
  device: string    where to
  dtype: string     of float tensors

Module:summary(...: Tensor|table) -> table
  fnn.summary of the module.

fnn.summary(model: Module, ...: Tensor|table) -> table
  Runs the model on inputs, or on zeros of the shapes given, and tells for each
  module its path, type, output and parameters: rows of { name, type, output,
  parameters }, and text for print.

# States of models

Module:state_dict() -> table
  The names of all tensors in the order of the model, and each tensor by name.
  They share memory with the model.

Module:load_state_dict(state: table, options?: table) -> table
  Fills the model from tensors by name; everything is checked before the first
  is written. Tells what became of each: lists of names loaded, missing,
  unexpected, mismatched and ignored, with a text by name. A tensor of another
  shape is an error, and a missing or unexpected one unless strict is false.
  strict: boolean = true               all tensors must be there, and no others
  ignore_mismatched: boolean = false   leaves what has another shape
  rename: table|function               from names in state to names in the
                                       model; false leaves a tensor out

Module:save(path: string, options?: table) -> Module
  Writes a safetensors file.
  metadata: table    strings by name, kept in the file

Module:load(path: string, options?: table) -> table
  Fills the model from a safetensors file, as load_state_dict does.

# Containers

nn.Sequential(...: Module) -> Module
  Calls its modules one after the other. seq[1], seq[-1], #seq and ipairs(seq)
  work, and append, insert, remove and extend.

nn.ModuleList(...: Module|table) -> Module
  Modules by place, to be called by the script.

ModuleList:append(m: Module) -> Module
  Adds a module at the end.

ModuleList:extend(others: table) -> Module
  Adds all modules of a list.

ModuleList:insert(place: integer, m: Module) -> Module
  Puts a module at a place and moves those behind it on.

ModuleList:remove(place?: integer) -> Module
  Takes a module out, the last by default, and returns it.

nn.ModuleDict(modules?: table) -> Module
  Modules by name, as fields; those given are taken in sorted order.

ModuleDict:keys() -> string[]
  The names.

# Layers

Initial weights are drawn as PyTorch draws them. All take { dtype =, device = }
and { generator = } where they have weights.

nn.Linear(in: integer, out: integer, options?: table) -> Module
  x W' + b over the last dimension; weight (out, in), bias (out).
  bias: boolean = true

nn.LayerNorm(sizes: integer|table, options?: table) -> Module
  Normalizes over the last dimensions, which have these sizes.
  eps: number = 1e-5
  affine: boolean = true    with weight and bias

nn.Embedding(count: integer, dim: integer, options?: table) -> Module
  Rows of weight (count, dim) by ids, which count from 0.

nn.Dropout(p?: number, options?: table) -> Module
  In training, zeroes elements with probability p (0.5) and scales the rest.
  generator: Generator

nn.Flatten(first?: integer, last?: integer) -> Module
  Folds dimensions, the second to the last by default, into one.

nn.Identity() -> Module
  Gives back its input.

nn.Softmax(dim?: integer) -> Module
  Softmax along a dimension, the last by default.

nn.LogSoftmax(dim?: integer) -> Module
  Its logarithm.

nn.ReLU() -> Module
  x:relu() as a layer. In the same way ReLU6, SELU, SiLU, Mish, Sigmoid,
  LogSigmoid, Tanh, Softsign, Hardswish and Hardsigmoid.

nn.LeakyReLU(slope?: number) -> Module
  x:leaky_relu(slope). In the same way ELU(alpha) and Softplus(beta,
  threshold); the arguments may be options by these names.

nn.GELU(options?: table) -> Module
  x:gelu(), or gelu_tanh.
  approximate: string = "none"    or "tanh"

# Losses

nn.cross_entropy(x: Tensor, y: Tensor, options?: table) -> Tensor
  x:cross_entropy(y, options).

nn.mse_loss(x: Tensor, y: Tensor, options?: table) -> Tensor
  x:mse(y, options).

nn.CrossEntropyLoss(options?: table) -> Module
  A module of two arguments, loss(x, y), that keeps the options.

nn.MSELoss(options?: table) -> Module
  The same for the mean squared error.

# Initial weights

Functions of a Param or a tensor, which they fill and return.

nn.init.uniform_(x: Param|Tensor, lo?: number, hi?: number, options?: table) ->
  Param|Tensor
  Uniform numbers, from 0 to 1 by default.
  generator: Generator

nn.init.normal_(x: Param|Tensor, mean?: number, std?: number,
  options?: table) -> Param|Tensor
  Normal numbers.
  generator: Generator

nn.init.constant_(x: Param|Tensor, value: number) -> Param|Tensor
  One number.

nn.init.zeros_(x: Param|Tensor) -> Param|Tensor
  Zeros.

nn.init.ones_(x: Param|Tensor) -> Param|Tensor
  Ones.

nn.init.kaiming_uniform_(x: Param|Tensor, options?: table) -> Param|Tensor
  The law of He et al. 2015: a standard deviation of gain / sqrt(fan).
  activation: string = "leaky_relu"    whose gain; see nn.init.gain
  slope: number = 0                    of leaky_relu
  mode: string = "fan_in"              or "fan_out"
  generator: Generator

nn.init.kaiming_normal_(x: Param|Tensor, options?: table) -> Param|Tensor
  The same with normal numbers.

nn.init.xavier_uniform_(x: Param|Tensor, options?: table) -> Param|Tensor
  The law of Glorot and Bengio 2010: by the mean of inputs and outputs.
  gain: number = 1
  generator: Generator

nn.init.xavier_normal_(x: Param|Tensor, options?: table) -> Param|Tensor
  The same with normal numbers.

nn.init.gain(activation: string, slope?: number) -> number
  What keeps the variance through an activation: linear, sigmoid, tanh, relu,
  leaky_relu, selu.

fnn.kaiming(shape: table, options?: table) -> Tensor
  Normal numbers of standard deviation sqrt(2 / inputs), for a shape { out, in,
  ... }.

fnn.xavier(shape: table, options?: table) -> Tensor
  Uniform numbers in +-sqrt(6 / (inputs + outputs)).
]]
