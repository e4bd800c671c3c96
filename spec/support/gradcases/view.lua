-- view.lua - gradient checks of views, copies, and tensors put side by side.

local fnn = require "fnn"

local cases = {}

-- The op's name, its options in words, an input's shape, the function, and
-- what else there is to say.
local function add(op, options, shape, f, more)
  local case = { op = op, options = options, inputs = { shape }, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

-- A sum of parts with different weights, so that no two are mistaken.
local function weighed(parts)
  local flat = {}
  for i, p in ipairs(parts) do flat[i] = p:reshape(-1) * i end
  return fnn.cat(flat)
end

for _, name in ipairs { "reshape", "view" } do
  add(name, "sizes exchanged", { 3, 4 }, function(x)
    return x[name](x, x:size(2), x:size(1))
  end)
  add(name, "a size inferred", { 2, 3, 4 },
      function(x) return x[name](x, -1, 4) end)
end
add("flatten", "all", { 2, 3, 4 }, function(x) return x:flatten() end)
add("flatten", "dims 2 to 3", { 2, 3, 4 },
    function(x) return x:flatten(2, 3) end)
add("squeeze", "dim 2", { 3, 1, 4 }, function(x) return x:squeeze(2) end)
add("squeeze", "all", { 3, 1, 4 }, function(x) return x:squeeze() end)
add("unsqueeze", "dim 2", { 3, 4 }, function(x) return x:unsqueeze(2) end)
add("unsqueeze", "behind the last", { 3, 4 },
    function(x) return x:unsqueeze(-1) end)
add("transpose", "dims 1 and 3", { 2, 3, 4 },
    function(x) return x:transpose(1, 3) end)
add("t", "none", { 3, 4 }, function(x) return x:t() end)
add("permute", "3 1 2", { 2, 3, 4 },
    function(x) return x:permute(3, 1, 2) end)
add("expand", "a dim of 1", { 3, 1 }, function(x) return x:expand(-1, 4) end)
add("expand", "dims before", { 3, 1 },
    function(x) return x:expand(2, 5, -1, 4) end)
add("expand_as", "none", { 3, 1 }, function(x)
  return x:expand_as(fnn.zeros(2, x:size(1), 4))
end)
add("narrow", "dim 2", { 3, 4 }, function(x) return x:narrow(2, 2, 2) end)
add("slice", "step 2", { 3, 5 }, function(x) return x:slice(2, 1, 5, 2) end)
add("slice", "backwards", { 3, 5 },
    function(x) return x:slice(2, -1, 2, -2) end)
add("select", "dim 2", { 3, 4 }, function(x) return x:select(2, -2) end)
add("at", "a row by id", { 4, 3 }, function(x) return x:at(2) end,
    { empty = { { 4, 0 } } })
add("index", "x[place]", { 4, 3 }, function(x) return x[-1] end,
    { empty = { { 4, 0 } } })
add("index", "x[mask]", { 3, 4 },
    function(x) return x[x:detach():gt(0)] end)
add("index", "x[mask], rows", { 4, 3 }, function(x)
  return x[x:detach():select(2, 1):gt(0)]
end)
add("index", "x[mask], places", { 4, 3, 2 }, function(x)
  return x[x:detach():select(3, 1):gt(0)]
end)
add("index", "x[ids]", { 4, 3 }, function(x)
  return x[fnn.tensor({ 2, 0, 2 }, { dtype = "i64" })]
end, { empty = { { 4, 0 } } })
add("diagonal", "main", { 4, 3 }, function(x) return x:diagonal() end,
    { empty = { { 0, 3 } } })
add("diagonal", "offset 1 of dims 1 and 3", { 3, 2, 4 },
    function(x) return x:diagonal(1, 1, 3) end)
add("split", "sizes of 2", { 3, 5 },
    function(x) return weighed(x:split(2, 2)) end)
add("split", "sizes 1 and 4", { 3, 5 },
    function(x) return weighed(x:split({ 1, 4 }, 2)) end)
add("chunk", "3 of 5", { 3, 5 },
    function(x) return weighed(x:chunk(3, 2)) end)
add("unbind", "dim 2", { 3, 4 },
    function(x) return weighed(x:unbind(2)) end)
for _, name in ipairs { "tile", "repeat" } do
  add(name, "2 by 3", { 3, 2 }, function(x) return x[name](x, 2, 3) end)
  add(name, "a dim before", { 3, 2 },
      function(x) return x[name](x, 2, 1, 2) end)
end
add("flip", "dim 2", { 3, 4 }, function(x) return x:flip(2) end)
add("flip", "all", { 2, 3, 2 }, function(x) return x:flip() end)
add("roll", "1 along dim 2", { 3, 4 }, function(x) return x:roll(1, 2) end)
add("roll", "-2 along dim 1", { 3, 4 },
    function(x) return x:roll(-2, 1) end)
for _, name in ipairs { "tril", "triu" } do
  for diagonal = -1, 1 do
    add(name, "diagonal " .. diagonal, { 2, 3, 4 },
        function(x) return x[name](x, diagonal) end)
  end
end
for _, name in ipairs { "contiguous", "clone" } do
  add(name, "none", { 3, 4 }, function(x) return x[name](x) end)
  add(name, "of a view", { 3, 4 }, function(x) return x[name](x:t()) end)
end
add("to", "the dtype it has", { 3, 4 },
    function(x) return x:to(x:dtype(), x:device()) end)
-- A step that f32 can tell apart.
add("to", "f32 and back", { 3, 4 },
    function(x) return x:to("f32"):to("f64") end,
    { check = { eps = 1e-2, atol = 1e-3 } })

for dim = 1, 2 do
  local function cat(x, y) return fnn.cat({ x, y or x, x }, dim) end
  local function stack(x, y) return fnn.stack({ x, y or x, x }, dim) end
  add("cat", "dim " .. dim, { 3, 4 }, cat,
      { inputs = { { 3, 4 }, { 3, 4 } } })
  add("stack", "dim " .. dim, { 3, 4 }, stack,
      { inputs = { { 3, 4 }, { 3, 4 } } })
end
add("cat", "sizes that differ", { 3, 4 },
    function(x, y) return fnn.cat({ x, y }, 2) end,
    { inputs = { { 3, 4 }, { 3, 1 } }, expand = 1 })
for _, side in ipairs { "right", "left" } do
  add("pad_sequence", side, { 3, 4 }, function(x, y)
    return (fnn.pad_sequence({ x, y, x }, { side = side, value = 2 }))
  end, { inputs = { { 3, 4 }, { 1, 4 } }, expand = 1 })
end

return cases
