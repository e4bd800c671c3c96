-- layers.lua - the layers: those made in C, and small ones over the methods of
-- tensors.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local pairs, tostring, math_type = pairs, tostring, math.type
local core, raise = module.core, module.raise

-- {======================================================
-- Made in C
-- =======================================================

for name, init in pairs {
  Linear = core.linear,        -- (in, out [, { bias = true }])
  Dropout = core.dropout,      -- ([p = 0.5])
  LayerNorm = core.layer_norm, -- (size | { sizes } [, { eps =, affine = }])
  Embedding = core.embedding,  -- (count, dim)
  Conv1d = core.conv1d,        -- (in, out, kernel [, options])
  Conv2d = core.conv2d,
  Conv3d = core.conv3d,
  ConvTranspose1d = core.conv_transpose1d,
  ConvTranspose2d = core.conv_transpose2d,
} do
  local class = nn.module(name)
  class.init, class.forward = init, core.forward
  nn[name] = class
end

-- Rows of map.def as layers; a row's parameters are numbers, or options by
-- their names: nn.LeakyReLU(0.1), nn.LeakyReLU{ slope = 0.1 }.
for name, row in pairs {
  ReLU = "relu", ReLU6 = "relu6", LeakyReLU = "leaky_relu", ELU = "elu",
  SELU = "selu", SiLU = "silu", Mish = "mish", Sigmoid = "sigmoid",
  LogSigmoid = "log_sigmoid", Tanh = "tanh", Softplus = "softplus",
  Softsign = "softsign", Hardswish = "hardswish",
  Hardsigmoid = "hardsigmoid",
} do
  local class = nn.module(name)
  local activation = core.activation
  function class:init (...) activation(self, row, ...) end
  class.forward = core.forward
  nn[name] = class
end

-- Of GELU there are two: by the normal distribution, and PyTorch's "tanh".
local GELU = nn.module "GELU"
nn.GELU = GELU

function GELU:init (options)
  local o = module.options("GELU", options, { approximate = "none" })
  local approximate = o.approximate
  if approximate ~= "none" and approximate ~= "tanh" then
    raise("GELU: option 'approximate': expected 'none' or 'tanh', got '%s'",
          tostring(approximate))
  end
  core.activation(self, approximate == "tanh" and "gelu_tanh" or "gelu")
  self.approximate = approximate
end

GELU.forward = core.forward

function GELU:describe ()
  return self.approximate == "tanh" and "{ approximate = 'tanh' }" or ""
end

-- }======================================================

-- {======================================================
-- Over the methods of tensors
-- =======================================================

local Identity = nn.module "Identity"
function Identity:forward (x) return x end
nn.Identity = Identity

-- A place of a dimension, or its default.
local function check_dim (class, name, v, default)
  if v == nil then v = default end
  if math_type(v) ~= "integer" or v == 0 then
    raise("%s: %s: expected a dimension (they count from 1, or from -1 at " ..
          "the end), got %s", class, name, tostring(v))
  end
  return v
end

local Flatten = nn.module "Flatten"

-- Folds dimensions first to last into one; the first is the batch's.
function Flatten:init (first, last)
  self.first = check_dim("Flatten", "first", first, 2)
  self.last = check_dim("Flatten", "last", last, -1)
end

function Flatten:forward (x) return x:flatten(self.first, self.last) end

function Flatten:describe ()
  if self.first == 2 and self.last == -1 then return "" end
  return self.first .. ", " .. self.last
end

nn.Flatten = Flatten

for name, method in pairs { Softmax = "softmax", LogSoftmax = "log_softmax" } do
  local class = nn.module(name)
  function class:init (dim) self.dim = check_dim(name, "dim", dim, -1) end
  function class:forward (x) return x[method](x, self.dim) end
  function class:describe () return tostring(self.dim) end
  nn[name] = class
end

-- }======================================================

return true
