-- init.lua - laws of initial weights: nn.init.xavier_uniform_(p) and its like,
-- fnn.xavier and fnn.kaiming, which make tensors.
--
-- For a weight (out, in, ...) of fan inputs: He et al. 2015 (kaiming) draw
-- with standard deviation gain / sqrt(fan), Glorot and Bengio 2010 (xavier)
-- with the mean of inputs and outputs as fan.

local fnn, load, internals = ...
local nn = fnn.nn
local module = load "nn/module"

local pairs, tostring, type = pairs, tostring, type
local math_type, sqrt = math.type, math.sqrt
local ceil, huge, max, min = math.ceil, math.huge, math.max, math.min
local concat = table.concat
local core, raise, described = module.core, module.raise, module.described
local kind_of, init_std = core.kind, core.init_std

local init = internals.namespace({}, "fnn.nn.init")

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

-- {======================================================
-- Cut off
-- =======================================================

local function normal_cdf (v)
  return fnn.tensor({ v / sqrt(2) }, { dtype = "f64" }):erf():item() / 2 + 0.5
end

-- Normal numbers, those outside [lo, hi] drawn again.
local function redrawn (mean, std, lo, hi, shape, o)
  local x = fnn.normal(mean, std, shape, o)
  local out = x:lt(lo):logical_or(x:gt(hi))
  while out:any():item() do
    x = fnn.where(out, fnn.normal(mean, std, shape, o), x)
    out = x:lt(lo):logical_or(x:gt(hi))
  end
  return x
end

-- Uniform numbers, each taken with the probability that the bell is high
-- there: for a part of the bell that few normal numbers fall into.  Ten
-- deviations from its highest point there is nothing left of it.
local function tail (mean, std, lo, hi, shape, o)
  local mode = max(lo, min(mean, hi))
  lo, hi = max(lo, mode - 10 * std), min(hi, mode + 10 * std)
  local peak = -0.5 * ((mode - mean) / std) ^ 2
  local x, waits
  repeat
    local y = fnn.uniform(lo, hi, shape, o)
    local height = ((y - mean) / std):square() * -0.5 - peak
    local refused = fnn.uniform(0, 1, shape, o):log():gt(height)
    x = x and fnn.where(waits, y, x) or y
    waits = waits and waits:logical_and(refused) or refused
  until not waits:any():item()
  return x
end

-- Normal numbers from lo to hi, -2 to 2 by default.
function init.trunc_normal_ (x, mean, std, lo, hi, options)
  local name = "nn.init.trunc_normal_"
  check("trunc_normal_", x)
  mean, std = number(name, "mean", mean, 0), number(name, "std", std, 1)
  lo, hi = number(name, "lo", lo, -2), number(name, "hi", hi, 2)
  local o = like(x, module.options(name, options, { generator = false }))
  if not (std > 0 and lo < hi) then
    raise("%s: expected std above 0 and lo below hi, got std %g, lo %g, " ..
          "hi %g", name, std, lo, hi)
  end
  local share = normal_cdf((hi - mean) / std) - normal_cdf((lo - mean) / std)
  local law = share > 0.3 and redrawn or tail
  if x:numel() == 0 then return x end
  return write(x, law(mean, std, lo, hi, x:shape(), o))
end

-- }======================================================

-- {======================================================
-- Matrices
-- =======================================================

-- The sizes of x, which has to have from least to most dims.
local function dims (name, x, least, most)
  check(name, x)
  local shape = x:shape()
  if #shape < least or #shape > most then
    raise("nn.init.%s: expected %s, got shape (%s)", name,
          least == most and least .. " dims" or
          most == huge and "at least " .. least .. " dims" or
          least .. " to " .. most .. " dims", concat(shape, ", "))
  end
  return shape
end

local function plain (x) return { dtype = x:dtype(), device = x:device() } end

-- Ones on the diagonal.
function init.eye_ (x)
  local shape = dims("eye_", x, 2, 2)
  return write(x, fnn.eye(shape[1], shape[2], plain(x)))
end

-- A convolution that lets its inputs pass: ones in the middle of the kernels
-- from channel i to channel i, in each group.
function init.dirac_ (x, options)
  local shape = dims("dirac_", x, 3, 5)
  local o = module.options("nn.init.dirac_", options, { groups = 1 })
  local groups = o.groups
  if math_type(groups) ~= "integer" or groups < 1 or shape[1] % groups ~= 0 then
    raise("nn.init.dirac_: option 'groups': expected a divisor of the %d " ..
          "channels, got %s", shape[1], tostring(groups))
  end
  if x:numel() == 0 then return x end
  local field, middle = 1, 0
  for i = 3, #shape do
    field, middle = field * shape[i], middle * shape[i] + shape[i] // 2
  end
  local y = fnn.zeros({ shape[1], shape[2], field }, plain(x))
  local ones = fnn.eye(shape[1] // groups, shape[2], plain(x))
  y:select(3, middle + 1):copy_(ones:tile(groups, 1))
  return write(x, y:reshape(shape))
end

-- Normal numbers of deviation std; this share of each column, rounded up, is
-- 0 (Martens 2010).
function init.sparse_ (x, sparsity, std, options)
  local name = "nn.init.sparse_"
  local shape = dims("sparse_", x, 2, 2)
  sparsity = number(name, "sparsity", sparsity)
  std = number(name, "std", std, 0.01)
  if not (sparsity >= 0 and sparsity <= 1) then
    raise("%s: sparsity: expected a number from 0 to 1, got %g", name, sparsity)
  end
  local o = like(x, module.options(name, options, { generator = false }))
  local y = fnn.normal(0, std, shape, o)
  local zeros = ceil(sparsity * shape[1])
  if zeros == 0 or y:numel() == 0 then return write(x, y) end
  local ids = fnn.rand(shape, o):argsort(1):narrow(1, 1, zeros)
  local taken = fnn.zeros(shape, plain(x)):scatter_add(
    1, ids, fnn.ones({ zeros, shape[2] }, plain(x)))
  return write(x, y:masked_fill(taken:gt(0), 0))
end

-- Subtracts from the rows of a what they share with those of q, orthonormal;
-- twice is enough (Giraud et al. 2005).
local function sweep (a, q)
  for _ = 1, 2 do a:sub_(a:matmul(q:t()):matmul(q)) end
end

-- Makes the rows of g, no more than columns, orthonormal: a block of them at
-- a time against those before, so that products do most of the work, and
-- then one by one.
local function orthonormalize (g)
  local block = 64
  for first = 1, #g, block do
    local n = min(block, #g - first + 1)
    local b = g:narrow(1, first, n)
    if first > 1 then sweep(b, g:narrow(1, 1, first - 1)) end
    for i = 1, n do
      local row = b:narrow(1, i, 1)
      if i > 1 then sweep(row, b:narrow(1, 1, i - 1)) end
      row:div_((row * row):sum():sqrt())
    end
  end
  return g
end

-- A random orthogonal matrix times gain: the rows of a weight (out, in, ...)
-- are orthonormal, or its columns if there are no more of them (Saxe et al.
-- 2014).  Gram and Schmidt's method gives the factor R a positive diagonal, so
-- that all such matrices are as likely (Mezzadri 2007, arXiv:math-ph/0609050).
function init.orthogonal_ (x, options)
  local shape = dims("orthogonal_", x, 2, huge)
  local o = module.options("nn.init.orthogonal_", options, xavier_options)
  if x:numel() == 0 then return x end
  local rows, columns = shape[1], x:numel() // shape[1]
  local g = fnn.normal(0, 1, { rows, columns }, like(x, o)):to("f64")
  if rows >= columns then g = g:t():contiguous() end
  local q = orthonormalize(g) * number("nn.init.orthogonal_", "gain", o.gain)
  if rows >= columns then q = q:t() end
  return write(x, q:reshape(shape):to(x:dtype()))
end

-- }======================================================

nn.init = init
return true
