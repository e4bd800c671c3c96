-- layouts.lua - inputs for gradient checks, in each of the layouts that an op
-- must not notice.
--
-- Values keep clear of kinks: they are all different, and none is near 0, a
-- whole number, or half of one.

local fnn = require "fnn"

local layouts = {
  names = { "contiguous", "transposed", "broadcast", "empty", "reused" },
}

-- Elements k = 0 .. n-1 in a fixed disorder: 0.137 (2k + 1) / 2 is no multiple
-- of 1/2, since 137 (2k + 1) is odd; nor is any of them of a divisor.
local domains = {
  any = function(k, n) return (k - n // 2) * 0.137 + 0.0685 end,
  positive = function(k) return k * 0.137 + 0.2685 end,
  divisor = function(k) return (k + 1) * 0.1 * math.sqrt(2) end,
  unit = function(k, n) return ((k - n // 2) * 0.137 + 0.0685) * 10 / n end,
}

local function numel(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

-- The k-th input, of this shape.
local function values(shape, domain, k)
  local n = numel(shape)
  if n == 0 then return fnn.zeros(shape, { dtype = "f64" }) end
  local order = fnn.randperm(n, { generator = fnn.Generator(k) }):totable()
  local list = {}
  for i = 1, n do list[i] = domains[domain](order[i], n) end
  if #shape == 0 then return fnn.tensor(list[1], { dtype = "f64" }) end
  return fnn.tensor(list, shape, { dtype = "f64" })
end

-- A leaf, and how the op sees it.
local function plain(x) return x, function(leaf) return leaf end end

local function transposed(x)
  if x:ndim() < 2 then return plain(x) end
  return x:transpose(1, -1), function(leaf) return leaf:transpose(1, -1) end
end

-- The first place of one dim, stretched.
local function broadcast(x, case)
  local dim = case.expand or 1
  if x:ndim() < 2 then return plain(x) end
  local shape = x:shape()
  return x:narrow(dim, 1, 1), function(leaf) return leaf:expand(shape) end
end

local makers = {
  contiguous = plain, transposed = transposed, broadcast = broadcast,
  empty = plain, reused = plain,
}

-- The sum over dim 1, whose derivative hands on a gradient that is stretched.
local function sum_of_rows(y)
  local shape = y:shape()
  return fnn.record(y:detach():sum(1), "sum_of_rows", { y }, function(gy)
    return gy:unsqueeze(1):expand(shape)
  end)
end

-- What comes behind the op, so that its upstream gradient has the layout too.
local behind = {
  transposed = function(y)
    return y:ndim() > 1 and y:transpose(1, -1) or y
  end,
  broadcast = function(y) return y:ndim() > 0 and sum_of_rows(y) or y end,
}

-- What the case computes; where inputs are used again, by the op itself if it
-- takes several of one shape, and by what follows.
local function computed(case, layout)
  if behind[layout] then
    return function(...) return behind[layout](case.f(...)) end
  end
  if layout ~= "reused" then return case.f end
  if case.twice then
    return function(x) return case.f(x, x) * x end
  end
  return function(x, ...) return case.f(x, ...) * x:square():sum() end
end

-- The shapes of a case's inputs in a layout; nil where it has no such.
function layouts.shapes(case, layout)
  if layout ~= "empty" then return case.inputs end
  if case.empty == false then return nil end
  if case.empty then return case.empty end
  local shapes = {}
  for i, shape in ipairs(case.inputs) do
    shapes[i] = { table.unpack(shape) }
    if #shape > 0 then shapes[i][1] = 0 end
  end
  return shapes
end

-- The inputs of a case in one layout, and what it computes of them.
function layouts.make(case, layout)
  local leaves, views = {}, {}
  for i, shape in ipairs(layouts.shapes(case, layout)) do
    local domain = case.domains and case.domains[i] or case.domain or "any"
    leaves[i], views[i] = makers[layout](values(shape, domain, i), case)
  end
  local f = computed(case, layout)
  return leaves, function(...)
    local x = { ... }
    for i, view in ipairs(views) do x[i] = view(x[i]) end
    return f(table.unpack(x))
  end
end

-- Checks the gradients of a case in one layout.
function layouts.check(case, layout)
  local leaves, f = layouts.make(case, layout)
  return fnn.gradcheck(f, leaves, case.check)
end

return layouts
