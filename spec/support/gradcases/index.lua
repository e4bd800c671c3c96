-- index.lua - gradient checks of elements named by ids or masks, of order, and
-- of what is random or written in Lua.

local fnn = require "fnn"

local cases = {}

local function add(op, options, inputs, f, more)
  local case = { op = op, options = options, inputs = inputs, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

local function ids(t) return fnn.tensor(t, { dtype = "i64" }) end

add("index_select", "dim 1, an id twice", { { 4, 3 } },
    function(x) return x:index_select(1, { 2, 0, 2 }) end,
    { expand = 2, empty = { { 4, 0 } } })
add("index_select", "dim 2, a matrix of ids", { { 2, 3, 2 } },
    function(x)
      return x:index_select(2, ids { { 0, 2 }, { 1, 1 } })
    end)
add("index_select", "no ids", { { 4, 3 } },
    function(x) return x:index_select(1, fnn.zeros(0, { dtype = "i64" })) end,
    { expand = 2, empty = { { 0, 3 } } })
add("gather", "dim 1", { { 3, 2 } },
    function(x) return x:gather(1, ids { { 0, 2 }, { 2, 2 } }) end,
    { expand = 2, empty = false })
add("gather", "dim 2", { { 2, 4 } },
    function(x)
      local t = ids { { 0, 3, 3 }, { 1, 1, 2 } }
      return x:gather(2, x:size(1) == 0 and t:narrow(1, 1, 0) or t)
    end)
add("scatter_add", "dim 1", { { 3, 2 }, { 4, 2 } },
    function(x, y)
      local t = ids { { 0, 2 }, { 2, 2 }, { 1, 0 }, { 0, 0 } }
      return x:scatter_add(1, t:narrow(1, 1, y:size(1)), y)
    end, { expand = 2, empty = { { 3, 2 }, { 0, 2 } } })
add("scatter_add", "dim 2", { { 2, 4 }, { 2, 3 } },
    function(x, y)
      local t = ids { { 0, 3, 3 }, { 1, 1, 2 } }
      return x:scatter_add(2, t:narrow(1, 1, y:size(1)), y)
    end)
add("masked_select", "of its shape", { { 3, 4 } },
    function(x) return x:masked_select(x:detach():gt(0)) end)
add("masked_select", "nothing", { { 3, 4 } },
    function(x) return x:masked_select(x:detach():gt(100)) end)
add("masked_select", "a mask that is stretched", { { 3, 4 } },
    function(x)
      return x:masked_select(fnn.tensor { true, false, true, true })
    end)

for dim = 1, 2 do
  local more = { expand = 3 - dim, empty = { dim == 1 and { 3, 0 } or
                                             { 0, 4 } } }
  add("sort", "dim " .. dim, { { 3, 4 } },
      function(x) return (x:sort(dim)) end, more)
  add("sort", "descending, dim " .. dim, { { 3, 4 } },
      function(x) return (x:sort(dim, { descending = true })) end, more)
  add("topk", "2 of dim " .. dim, { { 3, 4 } },
      function(x) return (x:topk(2, dim)) end, more)
  add("topk", "2 smallest of dim " .. dim, { { 3, 4 } },
      function(x) return (x:topk(2, dim, { largest = false })) end, more)
end

-- The same seed, so the same mask, at each call.
for _, p in ipairs { 0, 0.4 } do
  add("dropout", "p = " .. p, { { 4, 5 } }, function(x)
    return x:dropout(p, { generator = fnn.Generator(3) })
  end)
end

-- x^2 y with a derivative written in Lua.
add("record", "two inputs", { { 3, 4 }, { 3, 4 } }, function(x, y)
  local a, b = x:detach(), y:detach()
  return fnn.record(a * a * b, "product", { x, y }, function(gy)
    return gy * 2 * a * b, gy * a * a
  end)
end)

return cases
