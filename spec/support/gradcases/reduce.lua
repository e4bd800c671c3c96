-- reduce.lua - gradient checks of reductions, sums along a dim, and softmax.

local cases = {}

local function add(case) cases[#cases + 1] = case end

-- Over dim 2, dim 1, all, and two of three dims.  An empty tensor has no
-- largest element: there some dims stay out of it.
local function each(name, options, text, domain)
  local function over(dims)
    return function(x)
      if dims then return x[name](x, dims, options) end
      return options and x[name](x, options) or x[name](x)
    end
  end
  local function case(dims, shown, inputs, more)
    local c = { op = name, options = shown .. text, inputs = { inputs },
                domain = domain, f = over(dims) }
    for k, v in pairs(more) do c[k] = v end
    add(c)
  end
  case(2, "dim 2", { 3, 4 }, {})
  case(1, "dim 1", { 3, 4 }, { expand = 2, empty = { { 3, 0 } } })
  case(nil, "all", { 3, 4 }, { empty = false })
  case({ 1, 3 }, "dims 1 and 3", { 2, 3, 2 },
       { expand = 2, empty = { { 2, 0, 2 } } })
  case(-1, "the last dim", { 5 }, { empty = false })
end

for name in ("sum mean prod max min var std norm logsumexp"):gmatch "%S+" do
  each(name, nil, "")
  each(name, { keepdim = true }, ", keepdim")
end
for _, correction in ipairs { 0, 1 } do
  each("var", { correction = correction }, ", correction " .. correction)
  each("std", { correction = correction }, ", correction " .. correction)
end
for _, p in ipairs { 1, 3, 0.5, math.huge, -math.huge } do
  each("norm", { p = p }, ", p = " .. p, "positive")
end
each("norm", { p = 1 }, ", p = 1, any sign")
each("norm", { p = 3 }, ", p = 3, any sign")
-- What is reduced may be empty where the result has a value.
for name in ("sum mean prod"):gmatch "%S+" do
  add { op = name, options = "all, of nothing", inputs = { { 3, 4 } },
        f = function(x) return x[name](x) end }
end

for name in ("cumsum softmax log_softmax"):gmatch "%S+" do
  for dim = 1, 3 do
    add { op = name, options = "dim " .. dim, inputs = { { 2, 3, 4 } },
          expand = dim % 3 + 1, f = function(x) return x[name](x, dim) end }
  end
  add { op = name, options = "the last dim", inputs = { { 5 } },
        f = function(x) return x[name](x, -1) end }
end

return cases
