-- numbers.lua - metrics of numbers: perplexity, mae, mse, rmse, r2.

local fnn, load = ...
local module = load "nn/module"
local rows = load "metrics/rows"

local exp, max = math.exp, math.max
local unpack = table.unpack
local raise = module.raise

local nan = 0 / 0

-- {======================================================
-- Language
-- =======================================================

local perplexity = { defaults = { dim = 2, ignore_index = -100 } }

-- The cross entropy of the ids alone: what else a loss adds is not in it.
function perplexity.add (s, o, outputs, targets, what)
  local x = rows.tensor(what, "outputs", outputs)
  if x:ndim() < 2 then
    raise("%s: expected logits (n, classes) or (n, classes, ...), got %s",
          what, rows.shape(x))
  end
  local y = rows.tensor(what, "targets", targets)
  local dim = o.dim < 0 and x:ndim() + 1 + o.dim or o.dim
  local places = { 1, dim }  -- classes are in the second for the loss
  for i = 2, x:ndim() do
    if i ~= dim then places[#places + 1] = i end
  end
  x = x:permute(unpack(places))
  local losses = fnn.nn.cross_entropy(x, y, {
    reduction = "none", ignore_index = o.ignore_index,
  })
  s.sum = rows.sum(s.sum, losses:reshape(-1):to("f64"))
  s.count = (s.count or 0) + y:ne(o.ignore_index):sum():item()
end

function perplexity.value (s)
  if not s.count or s.count == 0 then return nan end
  return exp(s.sum:item() / s.count)
end

-- }======================================================

-- {======================================================
-- Differences
-- =======================================================

-- The mean of f of the differences; last is applied to it.
local function differences (f, last)
  local kind = { defaults = {} }
  function kind.add (s, _, outputs, targets, what)
    local x, y = rows.numbers(what, outputs, targets)
    s.sum = rows.sum(s.sum, f(x - y):reshape(-1))
    s.count = (s.count or 0) + x:numel()
  end
  function kind.value (s)
    if not s.count or s.count == 0 then return nan end
    local mean = s.sum:item() / s.count
    return last and last(mean) or mean
  end
  return kind
end

local function square (d) return d * d end

-- The share of the targets' variance that outputs explain, a column at a
-- time, and its mean.  Sums are of targets less the first: their squares stay
-- small.
local r2 = { defaults = {} }

function r2.add (s, _, outputs, targets, what)
  local x, y = rows.numbers(what, outputs, targets)
  local n = #y
  s.count = (s.count or 0) + n
  if n == 0 then return end
  x, y = x:reshape(n, -1), y:reshape(n, -1)
  s.first = s.first or y:narrow(1, 1, 1):clone()
  local d = y - s.first
  s.sum = rows.sum(s.sum, d)
  s.squares = rows.sum(s.squares, d * d)
  s.rest = rows.sum(s.rest, square(y - x))
end

-- Of targets that are all the same nothing can be explained: 1 for outputs
-- that are they, else 0.
function r2.value (s)
  if not s.count or s.count < 2 then return nan end
  local sums, squares = s.sum:totable()[1], s.squares:totable()[1]
  local rest, mean = s.rest:totable()[1], 0
  for i = 1, #sums do
    local variance = max(0, squares[i] - sums[i] * sums[i] / s.count)
    local v = variance > 0 and 1 - rest[i] / variance or
              rest[i] == 0 and 1.0 or rest[i] ~= rest[i] and nan or 0.0
    mean = mean + v
  end
  return mean / #sums
end

-- }======================================================

return {
  perplexity = perplexity, r2 = r2,
  mae = differences(function (d) return d:abs() end),
  mse = differences(square),
  rmse = differences(square, function (v) return v ^ 0.5 end),
}
