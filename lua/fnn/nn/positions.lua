-- positions.lua - where a vector stands in its sequence: rotary, sinusoidal,
-- learned and ALiBi.
--
-- Places count from 0.  A call's options tell them: `positions`, an integer
-- (how many are before the first) or integers (length) or (batch, length); or
-- `cache`, which counts what it holds; or `key_mask` (batch, length), true
-- where there is something: then only such count.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local pairs, rawequal, select = pairs, rawequal, select
local setmetatable = setmetatable
local tostring, type, math_type = tostring, type, math.type
local concat, tointeger = table.concat, math.tointeger
local log, max, pi = math.log, math.max, math.pi
local core, raise, described = module.core, module.raise, module.described
local fields, kind_of = core.fields, core.kind

local positions = {}

local call_options = { positions = false, cache = false, key_mask = false }

local function shape_text (x) return "(" .. concat(x:shape(), ", ") .. ")" end
positions.shape_text = shape_text

-- {======================================================
-- Arguments
-- =======================================================

function positions.count (class, name, v)
  if math_type(v) ~= "integer" or v < 1 then
    raise("%s: %s: expected a whole number of at least 1, got %s", class, name,
          math_type(v) and tostring(v) or described(v))
  end
  return v
end

local count = positions.count

function positions.is_tensor (x)
  local kind = kind_of(x)
  return kind == "tensor" or kind == "param"
end

function positions.number (class, name, v)
  if math_type(v) == nil then
    raise("%s: %s: expected a number, got %s", class, name, described(v))
  end
  return v
end

local number = positions.number

-- The named ones of options, for a constructor; false is none.
function positions.only (options, ...)
  local t = {}
  for i = 1, select("#", ...) do
    local name = select(i, ...)
    t[name] = options[name] or nil
  end
  return t
end

-- A mask of keys as bools, checked to be (batch, n).
function positions.keep_mask (what, name, mask, batch, n)
  if kind_of(mask) ~= "tensor" then
    raise("%s: option '%s': expected a tensor, got %s", what, name,
          described(mask))
  end
  local shape, dtype = mask:shape(), mask:dtype()
  if #shape ~= 2 or shape[1] ~= batch or shape[2] ~= n then
    raise("%s: option '%s': expected (%d, %d) (batch, keys), got %s", what,
          name, batch, n, shape_text(mask))
  end
  if dtype == "bool" then return mask end
  if dtype:find "f" then
    raise("%s: option '%s': expected bool, true where something may be " ..
          "attended, got %s", what, name, dtype)
  end
  return mask:ne(0)
end

-- }======================================================

-- {======================================================
-- Places
-- =======================================================

-- The places of what a mask (batch, length) keeps, after as many as before
-- tells: (batch, 1), or nothing.
function positions.counted (mask, before)
  local places = mask:to("bool"):to("i64"):cumsum(2) - 1
  if before then places = places + before end
  return places:maximum(fnn.zeros({ 1 }, {
    dtype = "i64", device = places:device() }))
end

-- The places of length vectors by the options o of a call, in a layer of the
-- cache or before all of them; and how many rows a table needs for them.
function positions.of (o, length, layer)
  local given = o.positions
  if given then
    if math_type(given) == "integer" then return given, given + length end
    if kind_of(given) ~= "tensor" then
      raise("option 'positions': expected an integer or a tensor of them, " ..
            "got %s", described(given))
    end
    if given:numel() == 0 then return given, 1 end
    return given, given:max():item() + 1
  end
  if o.cache then return o.cache:positions(length, o.key_mask, layer) end
  if o.key_mask then return positions.counted(o.key_mask), length end
  return 0, length
end

-- }======================================================

-- {======================================================
-- Tables by place
-- =======================================================

-- Sees to it that the buffers of these names have n rows at least, on x's
-- device, as exact as x is.  make(n) gives them in f64.  They are made anew
-- when the model has gone to another dtype: that has rounded them.
local function ensure (m, names, n, x, make)
  local f = fields(m)
  local have = f[names[1]]
  local dtype = x:dtype() == "f64" and "f64" or "f32"
  if have and rawequal(have, m.made[1]) and #have >= n and
     have:dtype() == dtype and have:device() == x:device() then
    return
  end
  local rows = have and #have < n and max(n, 2 * #have) or
               max(n, have and #have or 0)
  local made = { make(rows) }
  for i, name in pairs(names) do
    made[i] = made[i]:to { dtype = dtype, device = x:device() }
    m[name] = nn.transient(made[i])
  end
  m.made = setmetatable(made, { __mode = "v" })
end

-- 0 .. n-1 times each of the frequencies: (n, #frequencies), on the CPU.
local function angles (n, frequencies)
  local places = fnn.arange(0, n, 1, { dtype = "f64", device = "cpu" })
  return places:unsqueeze(2) * frequencies
end

-- base^(-2i / dims), dims / 2 of them.
local function frequencies_of (base, dims)
  local i = fnn.arange(0, dims // 2, 1, { dtype = "f64", device = "cpu" })
  return (i * (-2 * log(base) / dims)):exp()
end

-- }======================================================

-- {======================================================
-- Rotary
-- =======================================================

local Rotary = nn.module "Rotary"

local scalings = {
  linear = { "factor" },
  llama3 = { "factor", "low_freq_factor", "high_freq_factor",
             "original_length" },
}

local function check_scaling (given)
  if type(given) ~= "table" or not scalings[given.type] then
    raise("Rotary: option 'scaling': expected a table with type = 'linear' " ..
          "or 'llama3', got %s", type(given) == "table" and "type " ..
          tostring(given.type) or described(given))
  end
  local known = { type = given.type }
  for _, name in pairs(scalings[given.type]) do
    known[name] = number("Rotary", "scaling." .. name, given[name])
  end
  return module.options("Rotary: option 'scaling'", given, known)
end

-- "llama3": waves longer than original_length / low_freq_factor are stretched
-- by the factor, those shorter than original_length / high_freq_factor are
-- not, and those between in part.
local function scaled (frequencies, s)
  if not s then return frequencies end
  if s.type == "linear" then return frequencies / s.factor end
  local low, high = s.low_freq_factor, s.high_freq_factor
  local waves = frequencies * (s.original_length / (2 * pi))
  local share = ((waves - low) / (high - low)):clamp(0, 1)
  return frequencies * (share + (1 - share) / s.factor)
end

function Rotary:init (head_dim, options, ...)
  module.no_more("Rotary", 2, ...)
  local o = module.options("Rotary", options, {
    base = 10000, length = false, interleaved = false, dims = false,
    fraction = false, scaling = false,
  })
  count("Rotary", "head_dim", head_dim)
  local dims = o.dims or head_dim
  if o.fraction then
    if o.dims then raise "Rotary: options 'dims' and 'fraction': either" end
    number("Rotary", "fraction", o.fraction)
    dims = tointeger(o.fraction * head_dim // 1)
  end
  if math_type(dims) ~= "integer" or dims < 2 or dims > head_dim or
     dims % 2 ~= 0 then
    raise("Rotary: expected an even number of dims up to %d to turn, got %s",
          head_dim, tostring(dims))
  end
  self.head_dim, self.dims = head_dim, dims
  self.base = number("Rotary", "base", o.base)
  self.interleaved = o.interleaved and true or false
  self.scaling = o.scaling and check_scaling(o.scaling) or nil
  if o.length then
    self:reserve(count("Rotary", "length", o.length),
                 fnn.zeros({ 0 }, { dtype = "f32" }))
  end
end

-- Tables of n places at least, for tensors like x.
function Rotary:reserve (n, x)
  ensure(self, { "cos", "sin" }, n, x, function (rows)
    local a = angles(rows, scaled(frequencies_of(self.base, self.dims),
                                  self.scaling))
    return a:cos(), a:sin()
  end)
end

-- x (batch, heads, length, head_dim) turned by its places; layer: which of a
-- cache's it is part of.
function Rotary:forward (x, options, layer)
  local o = module.options("Rotary", options, call_options)
  if x:size(-1) ~= self.head_dim then
    raise("Rotary: expected (batch, heads, length, %d), got %s", self.head_dim,
          shape_text(x))
  end
  local places, rows = positions.of(o, x:size(-2), layer)
  self:reserve(rows, x)
  return x:rotary(self.cos, self.sin, {
    positions = places, interleaved = self.interleaved })
end

function Rotary:describe ()
  local text = tostring(self.head_dim)
  if self.dims < self.head_dim then
    text = text .. ", dims = " .. self.dims
  end
  return text .. ", base = " .. self.base ..
         (self.interleaved and ", interleaved" or "") ..
         (self.scaling and ", " .. self.scaling.type or "")
end

nn.Rotary = Rotary

-- }======================================================

-- {======================================================
-- Added to the vectors
-- =======================================================

-- x (batch, length, dim) with rows of a table added.
local function added (x, t, places)
  local length = x:size(2)
  if math_type(places) == "integer" then
    t = t:narrow(1, places + 1, length)
  else
    t = t:index_select(1, places)
  end
  if t:dtype() ~= x:dtype() then t = t:to(x:dtype()) end
  return x + t
end

local function check_input (class, x, dim)
  local is_tensor = positions.is_tensor(x)
  if not is_tensor or x:ndim() ~= 3 or x:size(3) ~= dim then
    raise("%s: expected (batch, length, %d), got %s", class, dim,
          is_tensor and shape_text(x) or described(x))
  end
end

-- Vaswani et al. 2017: sines at the even numbers, cosines at the odd ones.
local Sinusoidal = nn.module "SinusoidalPositions"

function Sinusoidal:init (dim, options, ...)
  module.no_more("SinusoidalPositions", 2, ...)
  local o = module.options("SinusoidalPositions", options,
                           { base = 10000, length = false })
  if count("SinusoidalPositions", "dim", dim) % 2 ~= 0 then
    raise("SinusoidalPositions: dim: expected an even number, got %d", dim)
  end
  self.dim, self.base = dim, number("SinusoidalPositions", "base", o.base)
  if o.length then
    self:reserve(count("SinusoidalPositions", "length", o.length),
                 fnn.zeros({ 0 }, { dtype = "f32" }))
  end
end

function Sinusoidal:reserve (n, x)
  ensure(self, { "table" }, n, x, function (rows)
    local a = angles(rows, frequencies_of(self.base, self.dim))
    return fnn.stack({ a:sin(), a:cos() }, 3):flatten(2, 3)
  end)
end

function Sinusoidal:forward (x, options)
  local o = module.options("SinusoidalPositions", options, call_options)
  check_input("SinusoidalPositions", x, self.dim)
  local places, rows = positions.of(o, x:size(2))
  self:reserve(rows, x)
  return added(x, self.table, places)
end

function Sinusoidal:describe () return tostring(self.dim) end

nn.SinusoidalPositions = Sinusoidal

local Learned = nn.module "LearnedPositions"

function Learned:init (length, dim, options, ...)
  module.no_more("LearnedPositions", 3, ...)
  local o = module.options("LearnedPositions", options, {
    std = 0.02, dtype = false, device = false, generator = false })
  count("LearnedPositions", "length", length)
  count("LearnedPositions", "dim", dim)
  self.length, self.dim = length, dim
  self.weight = fnn.Param(fnn.normal(
    0, o.std, { length, dim },
    positions.only(o, "dtype", "device", "generator")))
end

function Learned:forward (x, options)
  local o = module.options("LearnedPositions", options, call_options)
  check_input("LearnedPositions", x, self.dim)
  local places, rows = positions.of(o, x:size(2))
  if math_type(places) == "integer" and
     (places < 0 or rows > self.length) then
    raise("LearnedPositions: positions %d to %d are out of range for %d " ..
          "(they count from 0)", places, rows - 1, self.length)
  end
  return added(x, self.weight, places)
end

function Learned:describe () return self.length .. ", " .. self.dim end

nn.LearnedPositions = Learned

-- }======================================================

-- {======================================================
-- ALiBi
-- =======================================================

-- Slopes of heads that are a power of 2: powers of 2^(-8 / heads).
local function slopes_of (heads)
  local i = fnn.arange(1, heads + 1, 1, { dtype = "f64", device = "cpu" })
  return (i * (-8 * log(2) / heads)):exp()
end

-- Press et al. 2022.  Between two powers of 2 the heads that are left over
-- get every other slope of twice as many.
local function all_slopes (heads)
  local power = 1
  while 2 * power <= heads do power = 2 * power end
  local slopes = slopes_of(power)
  if power == heads then return slopes end
  local more = slopes_of(2 * power):slice(1, 1, -1, 2)
  return fnn.cat({ slopes, more:narrow(1, 1, heads - power) }, 1)
end

local Alibi = nn.module "Alibi"

function Alibi:init (heads, ...)
  module.no_more("Alibi", 1, ...)
  self.heads = count("Alibi", "heads", heads)
  self:reserve(fnn.zeros({ 0 }, { dtype = "f32" }))
end

function Alibi:reserve (x)
  ensure(self, { "slopes" }, self.heads, x, function ()
    return all_slopes(self.heads)
  end)
end

-- The slopes (heads), for queries like x.
function Alibi:forward (x)
  self:reserve(x)
  return self.slopes
end

function Alibi:describe () return tostring(self.heads) end

nn.Alibi = Alibi

-- }======================================================

return positions
