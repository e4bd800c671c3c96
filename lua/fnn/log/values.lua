-- values.lua - what logs are given, checked, and made what they write.

local fnn, load = ...
local module = load "nn/module"

local tostring, type = tostring, type
local huge, math_type, tointeger = math.huge, math.type, math.tointeger
local byte, format, gsub, sub =
  string.byte, string.format, string.gsub, string.sub
local utf8_len = utf8.len
local raise, described = module.raise, module.described

local values = {}

local bins = 64  -- of a histogram

function values.name (what, name)
  if type(name) ~= "string" or name == "" then
    raise("%s: expected a name, got %s", what,
          name == "" and "''" or described(name))
  end
  if name == "step" or name == "time" then
    raise("%s: '%s' is no name for a value: each has its %s", what, name, name)
  end
  return values.text(what, name)
end

function values.text (what, text)
  if type(text) ~= "string" then
    raise("%s: expected a text, got %s", what, described(text))
  end
  local n, place = utf8_len(text)
  if not n then
    local shown = gsub(sub(text, 1, 40), "[^ -~]", function (c)
      return format("\\x%02x", byte(c))
    end)
    raise("%s: '%s' is not UTF-8 at its byte %d", what, shown, place)
  end
  return text
end

function values.step (what, step)
  local n = math_type(step) and tointeger(step)
  if not n then
    raise("%s: expected an integer as the step, got %s", what,
          type(step) == "number" and tostring(step) or described(step))
  end
  return n
end

local function shape_text (x)
  local text = ""
  for i = 1, x:ndim() do
    text = text .. (i > 1 and ", " or "") .. format("%d", x:size(i))
  end
  return "(" .. text .. ")"
end

function values.number (what, name, v)
  if type(v) == "number" then return v end
  if fnn.is_tensor(v) then
    if v:numel() ~= 1 then
      raise("%s: '%s': expected a number or a tensor of one element, got " ..
            "shape %s", what, name, shape_text(v))
    end
    local item = v:item()
    if type(item) == "number" then return item end
    return item and 1 or 0
  end
  raise("%s: '%s': expected a number or a tensor of one element, got %s",
        what, name, described(v))
end

-- {======================================================
-- Images
-- =======================================================

-- One image (channels, h, w) of bytes.
local function png_of (x)
  return { height = x:size(2), width = x:size(3), channels = x:size(1),
           png = fnn.io.encode_png(x:permute(2, 3, 1):contiguous()) }
end

function values.images (what, x)
  if not fnn.is_tensor(x) then
    raise("%s: expected a tensor, got %s", what, described(x))
  end
  local dims, shape = x:ndim(), x
  if dims == 2 then x = x:unsqueeze(1) end
  if dims <= 3 and dims >= 2 then x = x:unsqueeze(1) end
  if dims < 2 or dims > 4 or x:size(2) < 1 or x:size(2) > 4 or
     x:numel() == 0 then
    raise("%s: expected (h, w), (channels, h, w) or (n, channels, h, w) " ..
          "with 1 to 4 channels, got shape %s%s", what, shape_text(shape),
          dims == 3 and shape:size(3) <= 4 and
          " (x:permute(3, 1, 2) puts channels first)" or "")
  end
  x = x:detach():to "cpu"
  if x:dtype() ~= "u8" then
    x = x:to "f32"
    x = (x:masked_fill(x:isnan(), 0):clamp(0, 1) * 255):round():to "u8"
  end
  local list = {}
  for i = 1, #x do list[i] = png_of(x[i]) end
  return list
end

-- }======================================================

-- {======================================================
-- Histograms
-- =======================================================

-- How many of v, all from lo to hi, are in each of the bins; halves, so that
-- no difference overflows.
local function count (v, lo, hi)
  local scale = bins / (hi / 2 - lo / 2)
  if hi == lo or scale == huge then return { v:numel() }, { hi } end
  local ids = ((v / 2 - lo / 2) * scale):floor():clamp(0, bins - 1):to "i64"
  local on = { dtype = "f64", device = "cpu" }
  local counts = fnn.zeros(bins, on):scatter_add(
    1, ids, fnn.ones(v:numel(), on)):to "i64":totable()
  local edges = {}
  for i = 1, bins do
    edges[i] = 2 * (lo / 2 + (hi / 2 - lo / 2) * (i / bins))
  end
  edges[bins] = hi
  return counts, edges
end

-- min, max, count, sum, squares of the finite elements; counts, and edges, the
-- upper one of each bin; nonfinite: how many others there are.
function values.histogram (what, x)
  if not fnn.is_tensor(x) then
    raise("%s: expected a tensor, got %s", what, described(x))
  end
  if x:numel() == 0 then raise("%s: the tensor has no elements", what) end
  x = x:detach():to("cpu", "f64"):flatten()
  local v = x:masked_select(x:isfinite())
  local h = { count = v:numel(), nonfinite = x:numel() - v:numel() }
  if h.count == 0 then return h end
  h.min, h.max = v:min():item(), v:max():item()
  h.sum, h.squares = v:sum():item(), (v * v):sum():item()
  h.counts, h.edges = count(v, h.min, h.max)
  return h
end

-- }======================================================

return values
