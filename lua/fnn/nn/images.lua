-- images.lua - layers for images and signals without weights, over the methods
-- of tensors: pools, resizing, pixels and channels, whole channels dropped;
-- and Bilinear, which takes two inputs.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local ipairs, pairs, select = ipairs, pairs, select
local tostring, type, math_type = tostring, type, math.type
local concat, sqrt = table.concat, math.sqrt
local core, raise, described = module.core, module.raise, module.described
local no_more = module.no_more

-- {======================================================
-- Arguments
-- =======================================================

local function is_size (v, least)
  return math_type(v) == "integer" and v >= least
end

-- A whole number, or a table of one for each of dims; keep: false, too.
local function check_sizes (class, name, v, dims, least, keep)
  local ok = is_size(v, least) or keep and v == false
  if type(v) == "table" and #v == dims then
    ok = true
    for _, n in ipairs(v) do
      ok = ok and (is_size(n, least) or keep and n == false)
    end
  end
  if ok then return v end
  raise("%s: %s: expected a whole number of at least %d%s, got %s", class,
        name, least, dims > 1 and " or a table of " .. dims or "",
        math_type(v) and tostring(v) or described(v))
end

local function check_boolean (class, name, v)
  if type(v) ~= "boolean" then
    raise("%s: option '%s': expected true or false, got %s", class, name,
          described(v))
  end
  return v
end

local function size_text (v)
  if type(v) ~= "table" then return tostring(v) end
  local list = {}
  for i, n in ipairs(v) do list[i] = tostring(n) end
  return "{ " .. concat(list, ", ") .. " }"
end

-- "2, { stride = 1 }": an argument, and what options differ from defaults.
local function describe (first, options, defaults, order)
  local list = {}
  for _, name in ipairs(order) do
    local v = options[name]
    if v ~= nil and v ~= defaults[name] then
      v = type(v) == "string" and "'" .. v .. "'" or size_text(v)
      list[#list + 1] = name .. " = " .. v
    end
  end
  local text = #list > 0 and "{ " .. concat(list, ", ") .. " }" or ""
  if first == nil then return text end
  return size_text(first) .. (text ~= "" and ", " .. text or "")
end

-- }======================================================

-- {======================================================
-- Pools
-- =======================================================

local order = { "stride", "padding", "dilation", "ceil_mode",
                "count_include_pad", "return_indices" }
local least = { stride = 1, padding = 0, dilation = 1 }
local max_options = { stride = false, padding = 0, dilation = 1,
                      ceil_mode = false, return_indices = false }
local avg_options = { stride = false, padding = 0, ceil_mode = false,
                      count_include_pad = true }

-- The options of a pool as its method takes them; stride false: the kernel.
local function pool_options (name, given, defaults, dims)
  local o = module.options(name, given, defaults)
  for key, v in pairs(o) do
    if not least[key] then check_boolean(name, key, v)
    elseif v ~= false or key ~= "stride" then
      check_sizes(name, key, v, dims, least[key])
    end
  end
  if o.stride == false then o.stride = nil end
  return o
end

local function new_pool (name, method, defaults, dims)
  local class = nn.module(name)

  function class:init (kernel, options, ...)
    no_more(name, 2, ...)
    self.kernel = check_sizes(name, "kernel", kernel, dims, 1)
    self.options = pool_options(name, options, defaults, dims)
  end

  function class:forward (x) return x[method](x, self.kernel, self.options) end

  function class:describe ()
    return describe(self.kernel, self.options, defaults, order)
  end

  nn[name] = class
end

local function new_adaptive (name, method, defaults, dims)
  local class = nn.module(name)

  function class:init (size, options, ...)
    no_more(name, 2, ...)
    self.size = check_sizes(name, "size", size, dims, 1, true)
    self.options = module.options(name, options, defaults)
    for key, v in pairs(self.options) do check_boolean(name, key, v) end
  end

  function class:forward (x)
    if defaults.return_indices == nil then return x[method](x, self.size) end
    return x[method](x, self.size, self.options)
  end

  function class:describe ()
    return describe(self.size, self.options, defaults, order)
  end

  nn[name] = class
end

for dims = 1, 2 do
  local d = dims .. "d"
  new_pool("MaxPool" .. d, "max_pool" .. d, max_options, dims)
  new_pool("AvgPool" .. d, "avg_pool" .. d, avg_options, dims)
  new_adaptive("AdaptiveMaxPool" .. d, "adaptive_max_pool" .. d,
               { return_indices = false }, dims)
  new_adaptive("AdaptiveAvgPool" .. d, "adaptive_avg_pool" .. d, {}, dims)
end

-- }======================================================

-- {======================================================
-- Resizing
-- =======================================================

local Upsample = nn.module "Upsample"
local modes = { nearest = true, linear = true, bilinear = true,
                bicubic = true }
local upsample_options = { size = false, scale_factor = false,
                           mode = "nearest", align_corners = false,
                           antialias = false }
local upsample_order = { "size", "scale_factor", "mode", "align_corners",
                         "antialias" }

local function check_scale (v)
  local ok = type(v) == "number" and v > 0
  if type(v) == "table" and (#v == 1 or #v == 2) then
    ok = true
    for _, s in ipairs(v) do ok = ok and type(s) == "number" and s > 0 end
  end
  if not ok then
    raise("Upsample: option 'scale_factor': expected a number above 0 or a " ..
          "table of 2, got %s",
          type(v) == "number" and tostring(v) or described(v))
  end
end

function Upsample:init (options, ...)
  no_more("Upsample", 1, ...)
  local o = module.options("Upsample", options, upsample_options)
  if (o.size == false) == (o.scale_factor == false) then
    raise("Upsample: expected an option 'size' or 'scale_factor'")
  end
  if not modes[o.mode] then
    raise("Upsample: option 'mode': expected 'nearest', 'linear', " ..
          "'bilinear' or 'bicubic', got '%s'", tostring(o.mode))
  end
  if o.size then
    check_sizes("Upsample", "option 'size'", o.size,
                type(o.size) == "table" and #o.size == 1 and 1 or 2, 1)
  else check_scale(o.scale_factor) end
  check_boolean("Upsample", "align_corners", o.align_corners)
  check_boolean("Upsample", "antialias", o.antialias)
  if o.align_corners and o.mode == "nearest" then
    raise("Upsample: mode 'nearest' has no corners to align")
  end
  o.size, o.scale_factor = o.size or nil, o.scale_factor or nil
  self.options = o
end

function Upsample:forward (x) return x:interpolate(self.options) end

function Upsample:describe ()
  return describe(nil, self.options, upsample_options, upsample_order)
end

nn.Upsample = Upsample

for name, method in pairs {
  PixelShuffle = "pixel_shuffle", PixelUnshuffle = "pixel_unshuffle",
} do
  local class = nn.module(name)
  function class:init (factor, ...)
    no_more(name, 1, ...)
    self.factor = check_sizes(name, "factor", factor, 1, 1)
  end
  function class:forward (x) return x[method](x, self.factor) end
  function class:describe () return tostring(self.factor) end
  nn[name] = class
end

-- }======================================================

-- {======================================================
-- Whole channels dropped; two inputs
-- =======================================================

for dims = 1, 2 do
  local name, method = "Dropout" .. dims .. "d", "dropout" .. dims .. "d"
  local class = nn.module(name)

  function class:init (p, options, ...)
    no_more(name, 2, ...)
    if type(p) == "table" then p, options = nil, p end
    local o = module.options(name, options, { p = false, generator = false })
    p = o.p or p or 0.5
    if type(p) ~= "number" or not (p >= 0 and p <= 1) then
      raise("%s: expected a probability from 0 to 1, got %s", name,
            type(p) == "number" and tostring(p) or described(p))
    end
    self.p, self.generator = p, o.generator or nil
  end

  function class:forward (x)
    if not self.training then return x end
    return x[method](x, self.p, { generator = self.generator })
  end

  function class:describe () return tostring(self.p) end
  nn[name] = class
end

local Bilinear = nn.module "Bilinear"
local bilinear_options = { bias = true, dtype = false, device = false,
                           generator = false }

-- The bound is PyTorch's: 1 / sqrt of the first input's size.
function Bilinear:init (first, second, outputs, options, ...)
  no_more("Bilinear", 4, ...)
  check_sizes("Bilinear", "first", first, 1, 1)
  check_sizes("Bilinear", "second", second, 1, 1)
  check_sizes("Bilinear", "outputs", outputs, 1, 1)
  local o = module.options("Bilinear", options, bilinear_options)
  check_boolean("Bilinear", "bias", o.bias)
  local law = { dtype = o.dtype or nil, device = o.device or nil,
                generator = o.generator or nil }
  local bound = 1 / sqrt(first)
  self.weight = fnn.Param(fnn.uniform(-bound, bound,
                                      { outputs, first, second }, law))
  if o.bias then
    self.bias = fnn.Param(fnn.uniform(-bound, bound, { outputs }, law))
  end
end

local tensors = { tensor = true, param = true }

function Bilinear:forward (x, y, ...)
  if not tensors[core.kind(x)] or not tensors[core.kind(y)] or
     select("#", ...) > 0 then
    raise("Bilinear: expected two tensors")
  end
  return x:bilinear(y, self.weight, self.bias)
end

function Bilinear:describe ()
  local shape = self.weight:shape()
  local text = concat({ shape[2], shape[3], shape[1] }, ", ")
  return self.bias and text or text .. ", { bias = false }"
end

nn.Bilinear = Bilinear

-- }======================================================

return true
