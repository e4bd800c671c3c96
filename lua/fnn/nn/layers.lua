-- layers.lua - the layers: those made in C, and small ones over the methods of
-- tensors.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local ipairs, pairs, table = ipairs, pairs, table
local tostring, type, math_type = tostring, type, math.type
local core, raise, no_more = module.core, module.raise, module.no_more

-- {======================================================
-- Made in C
-- =======================================================

for name, init in pairs {
  Linear = core.linear,        -- (in, out [, { bias = true }])
  Dropout = core.dropout,      -- ([p = 0.5])
  LayerNorm = core.layer_norm, -- (size | { sizes } [, { eps =, affine = }])
  Embedding = core.embedding,  -- (count, dim)
  RMSNorm = core.rms_norm,     -- as LayerNorm
  GroupNorm = core.group_norm, -- (groups, channels [, { eps =, affine = }])
  BatchNorm1d = core.batch_norm1d,       -- (channels [, options])
  BatchNorm2d = core.batch_norm2d,
  BatchNorm3d = core.batch_norm3d,
  InstanceNorm1d = core.instance_norm1d, -- (channels [, options])
  InstanceNorm2d = core.instance_norm2d,
  InstanceNorm3d = core.instance_norm3d,
  PReLU = core.prelu,          -- ([count = 1 [, { init = 0.25 }]])
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

-- Of GELU there are three: by the normal distribution, PyTorch's "tanh", and
-- x sigmoid(1.702 x).
local GELU = nn.module "GELU"
nn.GELU = GELU

local gelus = { none = "gelu", tanh = "gelu_tanh", quick = "gelu_quick" }

function GELU:init (options, ...)
  no_more("GELU", 1, ...)
  local o = module.options("GELU", options, { approximate = "none" })
  local row = gelus[o.approximate]
  if not row then
    raise("GELU: option 'approximate': expected 'none', 'tanh' or 'quick', " ..
          "got '%s'", tostring(o.approximate))
  end
  core.activation(self, row)
  self.approximate = o.approximate
end

GELU.forward = core.forward

function GELU:describe ()
  if self.approximate == "none" then return "" end
  return "{ approximate = '" .. self.approximate .. "' }"
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
function Flatten:init (first, last, ...)
  no_more("Flatten", 2, ...)
  self.first = check_dim("Flatten", "first", first, 2)
  self.last = check_dim("Flatten", "last", last, -1)
end

function Flatten:forward (x) return x:flatten(self.first, self.last) end

function Flatten:describe ()
  if self.first == 2 and self.last == -1 then return "" end
  return self.first .. ", " .. self.last
end

nn.Flatten = Flatten

-- A dimension as several, of these sizes.
local Unflatten = nn.module "Unflatten"

function Unflatten:init (dim, sizes, ...)
  no_more("Unflatten", 2, ...)
  self.dim = check_dim("Unflatten", "dim", dim)
  if type(sizes) ~= "table" or #sizes == 0 then
    raise("Unflatten: sizes: expected a table of sizes, got %s",
          module.described(sizes))
  end
  for _, n in ipairs(sizes) do
    if math_type(n) ~= "integer" or n < -1 then
      raise("Unflatten: sizes: expected whole numbers, one of which may be " ..
            "-1, got %s", tostring(n))
    end
  end
  self.sizes = { table.unpack(sizes) }
end

function Unflatten:forward (x) return x:unflatten(self.dim, self.sizes) end

function Unflatten:describe ()
  return self.dim .. ", { " .. table.concat(self.sizes, ", ") .. " }"
end

nn.Unflatten = Unflatten

for name, method in pairs {
  Softmax = "softmax", LogSoftmax = "log_softmax",
  GLU = "glu", SwiGLU = "swiglu", GEGLU = "geglu",
} do
  local class = nn.module(name)
  function class:init (dim, ...)
    no_more(name, 1, ...)
    self.dim = check_dim(name, "dim", dim, -1)
  end

  function class:forward (x) return x[method](x, self.dim) end
  function class:describe () return tostring(self.dim) end
  nn[name] = class
end

-- }======================================================

return true
