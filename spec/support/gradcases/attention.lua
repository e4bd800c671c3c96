-- attention.lua - gradient checks of attention, with every kind of mask.

local fnn = require "fnn"

local cases = {}

-- Options with tensors where x is.
local function there(o, x)
  local copy = {}
  for name, value in pairs(o or {}) do
    copy[name] = fnn.is_tensor(value) and value:to(x:device()) or value
  end
  return copy
end

-- Query, key and value (batch, heads or groups, length, size).
local function add(options, q, k, v, o, more)
  local case = {
    op = "scaled_dot_product_attention", options = options,
    inputs = { q, k, v },
    empty = { { 0, table.unpack(q, 2) }, { 0, table.unpack(k, 2) },
              { 0, table.unpack(v, 2) } },
    f = function(x, y, z)
      local made = type(o) == "function" and o() or o
      return x:scaled_dot_product_attention(y, z, there(made, x))
    end,
  }
  for name, value in pairs(more or {}) do case[name] = value end
  cases[#cases + 1] = case
end

local f64 = { dtype = "f64" }
local q, k, v = { 2, 2, 3, 4 }, { 2, 2, 5, 4 }, { 2, 2, 5, 3 }
local slopes = fnn.tensor({ 0.5, 0.25 }, f64)

add("no mask", q, k, v)
add("2 dims", { 4, 3 }, { 5, 3 }, { 5, 2 }, nil,
    { empty = { { 0, 3 }, { 5, 3 }, { 5, 2 } }, expand = 2 })
add("scale", q, k, v, { scale = -0.7 })
add("causal", q, k, v, { causal = true })
add("causal, fewer keys", { 1, 2, 5, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4 },
    { causal = true }, { empty = false, expand = 2 })
add("groups", { 1, 4, 3, 2 }, { 1, 2, 4, 2 }, { 1, 2, 4, 3 }, nil,
    { expand = 3 })
add("one group, causal", { 1, 3, 3, 2 }, { 1, 1, 4, 2 }, { 1, 1, 4, 2 },
    { causal = true }, { expand = 3 })
add("bool mask", q, k, v, {
  mask = fnn.tensor({ { true, false, true, true, false },
                      { false, false, false, false, false },
                      { true, true, false, true, true } }),
})
add("padding", q, k, v, {
  mask = fnn.tensor({ true, true, true, false, false }),
})
add("mask to add", q, k, v, {
  mask = fnn.tensor({ { 0.5, -1, 2, 0, -math.huge }, { 1, 2, 3, 4, 5 },
                      { -1, 0, 1, 0, -1 } }, f64),
})
add("alibi", q, k, v, { alibi = slopes })
add("alibi, causal", q, k, v, { alibi = slopes, causal = true })
-- The generator starts anew at each call, so that all see the same weights.
add("dropout", q, k, v, function()
  return { dropout = 0.4, causal = true, generator = fnn.Generator(3) }
end)
-- More than one tile of queries and block of keys.
add("tiles", { 1, 1, 67, 1 }, { 1, 1, 66, 1 }, { 1, 1, 66, 1 },
    { causal = true }, { empty = false, expand = 2 })

-- A mask that wants a gradient is an input as the others.
local function masked(options, shape, o)
  cases[#cases + 1] = {
    op = "scaled_dot_product_attention", options = options,
    inputs = { { 1, 4, 3, 2 }, { 1, 2, 4, 2 }, { 1, 2, 4, 3 }, shape },
    empty = false, expand = 3,
    f = function(x, y, z, mask)
      local all = { mask = mask }
      for name, value in pairs(o or {}) do all[name] = value end
      return x:scaled_dot_product_attention(y, z, all)
    end,
  }
end

masked("a mask with a gradient", { 1, 4, 3, 4 })
masked("a broadcast mask with a gradient, causal", { 1, 1, 3, 4 },
       { causal = true })

return cases
