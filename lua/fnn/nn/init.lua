-- init.lua - laws of initial weights: nn.init.xavier_uniform_(p) and its like,
-- fnn.xavier and fnn.kaiming, which make tensors.
--
-- For a weight (out, in, ...) of fan inputs: He et al. 2015 (kaiming) draw
-- with standard deviation gain / sqrt(fan), Glorot and Bengio 2010 (xavier)
-- with the mean of inputs and outputs as fan.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local pairs, tostring, type = pairs, tostring, type
local math_type, sqrt = math.type, math.sqrt
local core, raise, described = module.core, module.raise, module.described
local kind_of, init_std = core.kind, core.init_std

local init = {}

local function number (name, what, v, default)
  if v == nil then v = default end
  if math_type(v) == nil then
    raise("%s: %s: expected a number, got %s", name, what, described(v))
  end
  return v
end

-- Writes y into a Param or a tensor.
local function write (x, y)
  if kind_of(x) == "param" then x:set(y) else x:copy_(y) end
  return x
end

local function check (name, x)
  local kind = kind_of(x)
  if kind ~= "param" and kind ~= "tensor" then
    raise("nn.init.%s: expected a Param or a tensor, got %s", name,
          described(x))
  end
end

local function draw (law, a, b, shape, options)
  return fnn[law](a, b, shape, options)
end

local function like (x, options)
  return { dtype = x:dtype(), device = x:device(),
           generator = options.generator or nil }
end

-- {======================================================
-- Plain laws
-- =======================================================

for name, law in pairs {
  uniform_ = { "uniform", "lo", 0, "hi", 1 },
  normal_ = { "normal", "mean", 0, "std", 1 },
} do
  init[name] = function (x, a, b, options)
    check(name, x)
    options = module.options("nn.init." .. name, options, { generator = false })
    a = number("nn.init." .. name, law[2], a, law[3])
    b = number("nn.init." .. name, law[4], b, law[5])
    return write(x, draw(law[1], a, b, x:shape(), like(x, options)))
  end
end

function init.constant_ (x, value)
  check("constant_", x)
  number("nn.init.constant_", "value", value)
  return write(x, fnn.full(x:shape(), value,
                           { dtype = x:dtype(), device = x:device() }))
end

function init.zeros_ (x) return init.constant_(x, 0) end
function init.ones_ (x) return init.constant_(x, 1) end

-- }======================================================

-- {======================================================
-- By the fan
-- =======================================================

-- What keeps the variance through an activation; slope is leaky_relu's.
local gains = {
  linear = function () return 1 end,
  sigmoid = function () return 1 end,
  tanh = function () return 5 / 3 end,
  relu = function () return sqrt(2) end,
  leaky_relu = function (slope) return sqrt(2 / (1 + slope * slope)) end,
  selu = function () return 3 / 4 end,
}

function init.gain (name, slope)
  if not gains[name] then
    raise("nn.init.gain: no gain for '%s'%s", tostring(name),
          module.suggestion(name, gains))
  end
  return gains[name](number("nn.init.gain", "slope", slope, 0.01))
end

local kaiming_options = { slope = 0, mode = "fan_in",
                          activation = "leaky_relu", generator = false }
local xavier_options = { gain = 1, generator = false }

local function kaiming_std (name, shape, o)
  if o.mode ~= "fan_in" and o.mode ~= "fan_out" then
    raise("%s: option 'mode': expected 'fan_in' or 'fan_out', got '%s'", name,
          tostring(o.mode))
  end
  return init_std(shape, o.mode, init.gain(o.activation, o.slope))
end

local function xavier_std (_, shape, o)
  return init_std(shape, "both", o.gain)
end

-- Draws of a standard deviation: both laws, normal or uniform.
local function spread (law, std)
  if law == "normal" then return 0, std end
  return -sqrt(3) * std, sqrt(3) * std
end

for name, rule in pairs {
  kaiming_uniform_ = { "uniform", kaiming_std, kaiming_options },
  kaiming_normal_ = { "normal", kaiming_std, kaiming_options },
  xavier_uniform_ = { "uniform", xavier_std, xavier_options },
  xavier_normal_ = { "normal", xavier_std, xavier_options },
} do
  local law, std_of, known = rule[1], rule[2], rule[3]
  init[name] = function (x, options)
    check(name, x)
    local o = module.options("nn.init." .. name, options, known)
    local a, b = spread(law, std_of("nn.init." .. name, x:shape(), o))
    return write(x, draw(law, a, b, x:shape(), like(x, o)))
  end
end

-- fnn.kaiming(shape [, options]): normal with std sqrt(2 / in);
-- fnn.xavier(shape [, options]): uniform in +-sqrt(6 / (in + out)).
local function create (name, law, std_of)
  return function (shape, options)
    if type(shape) ~= "table" then
      raise("fnn.%s: expected a shape, { out, in }, got %s", name,
            described(shape))
    end
    local a, b = spread(law, std_of(name, shape, { mode = "fan_in", gain = 1,
                                                   activation = "relu" }))
    return draw(law, a, b, shape, options)
  end
end

fnn.kaiming = create("kaiming", "normal", kaiming_std)
fnn.xavier = create("xavier", "uniform", xavier_std)

-- }======================================================

nn.init = init
return true
