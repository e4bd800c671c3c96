-- norm.lua - gradient checks of normalizations, pools, resizing and gates, in
-- both orders in memory.

local fnn = require "fnn"

local cases = {}

local function add(op, options, inputs, f, more)
  local case = { op = op, options = options, inputs = inputs, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

-- The same twice, the second time in channels-last order.
local function both(op, options, inputs, f, more)
  add(op, options, inputs, f, more)
  add(op, options .. ", channels-last", inputs, function(x, ...)
    return f(x:channels_last(), ...)
  end, more)
end

-- {======================================================
-- Normalization
-- =======================================================

add("layer_norm", "1 dim, weight and bias", { { 3, 4 }, { 4 }, { 4 } },
    function(x, w, b) return x:layer_norm(1, w, b) end,
    { empty = { { 0, 4 }, { 4 }, { 4 } } })
add("layer_norm", "2 dims, weight", { { 3, 2, 3 }, { 2, 3 } },
    function(x, w) return x:layer_norm(2, w) end,
    { empty = { { 0, 2, 3 }, { 2, 3 } } })
add("layer_norm", "1 dim, eps 0.1", { { 3, 4 } },
    function(x) return x:layer_norm(1, nil, nil, 0.1) end)
add("rms_norm", "1 dim, weight", { { 3, 4 }, { 4 } },
    function(x, w) return x:rms_norm(1, w) end,
    { empty = { { 0, 4 }, { 4 } } })
add("rms_norm", "2 dims, eps 0.1", { { 3, 2, 3 } },
    function(x) return x:rms_norm(2, nil, 0.1) end)

local wide = { { 2, 4, 3, 2 }, { 4 }, { 4 } }
local none = { empty = { { 0, 4, 3, 2 }, { 4 }, { 4 } }, expand = 2 }

add("batch_norm", "2 dims", { { 5, 3 }, { 3 }, { 3 } },
    function(x, w, b) return x:batch_norm(nil, nil, w, b) end,
    { empty = { { 0, 3 }, { 3 }, { 3 } }, expand = 2 })
add("batch_norm", "2 dims, no weight", { { 5, 3 } },
    function(x) return x:batch_norm() end, { expand = 2 })
both("batch_norm", "weight and bias", wide,
     function(x, w, b) return x:batch_norm(nil, nil, w, b) end, none)
both("batch_norm", "eps 0.1", { { 2, 3, 4 } },
     function(x) return x:batch_norm(nil, nil, nil, nil, { eps = 0.1 }) end,
     { expand = 2 })
both("batch_norm", "running statistics", wide, function(x, w, b)
  local mean = fnn.tensor({ 0.5, -1, 2, 0 }, { dtype = x:dtype() })
  local var = fnn.tensor({ 0.5, 1, 2, 0.1 }, { dtype = x:dtype() })
  return x:batch_norm(mean, var, w, b)
end, none)
for groups = 1, 4 do
  if 4 % groups == 0 then
    both("group_norm", groups .. " groups", wide,
         function(x, w, b) return x:group_norm(groups, w, b) end,
         { empty = none.empty, expand = 3 })
  end
end
add("group_norm", "2 dims, no weight", { { 3, 6 } },
    function(x) return x:group_norm(2) end)
both("instance_norm", "weight and bias", wide,
     function(x, w, b) return x:instance_norm(w, b) end,
     { empty = none.empty, expand = 2 })
both("instance_norm", "3 dims", { { 2, 3, 4 } },
     function(x) return x:instance_norm() end, { expand = 2 })

-- }======================================================

-- {======================================================
-- Pools and resizing
-- =======================================================

-- Averages of what maxima are taken of would be ties in some layouts.  No value
-- is near another, so the step may be long, and the rounding of large sums is
-- not divided by a short one.
local function pool(op, inputs, arg, options, shown, more)
  more.check = { eps = 1e-5 }
  both(op, shown, inputs, function(x) return x[op](x, arg, options) end, more)
end

local image, signal = { { 2, 3, 5, 4 } }, { { 2, 3, 7 } }
-- Stretched inputs have ties, where a maximum has no derivative, unless they
-- are stretched across the windows.
local across = { expand = 2 }
for _, op in ipairs { "max_pool2d", "avg_pool2d" } do
  pool(op, image, 2, nil, "2", across)
  pool(op, image, { 3, 2 }, { stride = { 1, 2 }, padding = 1 },
       "{ 3, 2 }, stride, padding", across)
  pool(op, image, 3, { stride = 2, padding = 1, ceil_mode = true },
       "3, ceil_mode", across)
  add(op, "without a batch", { { 3, 4, 4 } },
      function(x) return x[op](x, 2) end)
end
pool("max_pool2d", image, 2, { dilation = 2, stride = 1, padding = 1 },
     "2, dilation", across)
pool("avg_pool2d", image, 3, { padding = 1, count_include_pad = false },
     "3, count_include_pad", across)
pool("avg_pool2d", { { 1, 2, 10, 9 } }, 9, nil, "a large window", across)
for _, op in ipairs { "max_pool1d", "avg_pool1d" } do
  pool(op, signal, 2, nil, "2", across)
  pool(op, signal, 3, { stride = 2, padding = 1 }, "3, stride, padding",
       across)
  add(op, "without a batch", { { 3, 5 } },
      function(x) return x[op](x, 2) end)
end
for _, name in ipairs { "adaptive_max_pool", "adaptive_avg_pool" } do
  pool(name .. "2d", image, { 2, 3 }, nil, "{ 2, 3 }", across)
  pool(name .. "2d", image, 1, nil, "1", across)
  pool(name .. "1d", signal, 3, nil, "3", across)
end

for _, o in ipairs {
  { mode = "nearest", scale_factor = 2 },
  { mode = "nearest", size = { 3, 7 } },
  { mode = "bilinear", scale_factor = { 2, 1.5 } },
  { mode = "bilinear", size = 3 },
  { mode = "bilinear", size = { 7, 9 }, align_corners = true },
  { mode = "bicubic", scale_factor = 2 },
  { mode = "bicubic", size = { 3, 7 }, align_corners = true },
  { mode = "bilinear", size = { 2, 3 }, antialias = true },
  { mode = "bicubic", size = { 3, 2 }, antialias = true },
} do
  both("interpolate", o.mode .. (o.scale_factor and ", scale_factor" or "") ..
       (o.align_corners and ", align_corners" or "") ..
       (o.antialias and ", antialias" or ""), { { 2, 2, 4, 4 } },
       function(x) return x:interpolate(o) end, across)
end
both("interpolate", "linear", { { 2, 3, 4 } },
     function(x) return x:interpolate { size = 7, mode = "linear" } end,
     across)

add("pixel_shuffle", "2", { { 2, 8, 2, 3 } },
    function(x) return x:pixel_shuffle(2) end)
add("pixel_shuffle", "3, without a batch", { { 9, 2, 1 } },
    function(x) return x:pixel_shuffle(3) end)
add("pixel_unshuffle", "2", { { 2, 2, 4, 2 } },
    function(x) return x:pixel_unshuffle(2) end)
add("unflatten", "dim 2", { { 2, 6, 2 } },
    function(x) return x:unflatten(2, { 2, -1 }) end)

-- }======================================================

-- {======================================================
-- Gates
-- =======================================================

for _, op in ipairs { "glu", "swiglu", "geglu" } do
  add(op, "the last dim", { { 3, 4 } }, function(x) return x[op](x) end)
  add(op, "dim 2", { { 2, 4, 3 } }, function(x) return x[op](x, 2) end,
      { expand = 2 })
end
add("prelu", "one weight", { { 2, 3, 2 }, { 1 } },
    function(x, w) return x:prelu(w) end, { empty = { { 0, 3, 2 }, { 1 } } })
both("prelu", "a weight a channel", { { 2, 3, 2 }, { 3 } },
     function(x, w) return x:prelu(w) end, { empty = { { 0, 3, 2 }, { 3 } } })
add("prelu", "a vector", { { 5 }, { 1 } },
    function(x, w) return x:prelu(w) end, { empty = { { 0 }, { 1 } } })
add("bilinear", "weight and bias", { { 3, 2 }, { 3, 4 }, { 2, 2, 4 }, { 2 } },
    function(x, y, w, b) return x:bilinear(y, w, b) end,
    { empty = { { 0, 2 }, { 0, 4 }, { 2, 2, 4 }, { 2 } } })
add("bilinear", "weight", { { 2, 2, 3 }, { 2, 2, 2 }, { 4, 3, 2 } },
    function(x, y, w) return x:bilinear(y, w) end,
    { empty = { { 2, 0, 3 }, { 2, 0, 2 }, { 4, 3, 2 } } })

-- The generator starts anew at each call, so that all see the same channels.
for dims, shape in ipairs { { 2, 3, 2 }, { 2, 3, 2, 2 } } do
  local op = "dropout" .. dims .. "d"
  both(op, "0.4", { shape }, function(x)
    return x[op](x, 0.4, { generator = fnn.Generator(3) })
  end, { expand = 2 })
end

-- }======================================================

return cases
