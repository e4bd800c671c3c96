-- ranks.lua - the area under the ROC curve: how often a positive row has a
-- higher score than a negative one.

local fnn, load = ...
local module = load "nn/module"
local rows = load "metrics/rows"

local ipairs, tostring = ipairs, tostring
local raise = module.raise

local nan = 0 / 0

-- The share of pairs of a positive and a negative row whose scores (n) are in
-- the right order, a tie counting half; positive (n) is 0 or 1, f64.  nan
-- where there are no such pairs, or scores that are no numbers.
local function area (scores, positive)
  local n = #scores
  if n == 0 or scores:isnan():any():item() then return nan end
  local order = scores:argsort(1)
  scores, positive = scores:gather(1, order), positive:gather(1, order)
  local rises = scores:narrow(1, 2, n - 1):gt(scores:narrow(1, 1, n - 1))
  local first = fnn.zeros(1, { dtype = "i64", device = scores:device() })
  local group = fnn.cat({ first, rises:to("i64") }, 1):cumsum(1)
  local none = scores * 0
  none = none:masked_fill(none:isnan(), 0)  -- of infinite scores
  local yes = none:scatter_add(1, group, positive)
  local no = none:scatter_add(1, group, 1 - positive)
  local below = no:cumsum(1) - no
  local pairs_in_order = (yes * (below + no * 0.5)):sum():item()
  local p = positive:sum():item()
  return pairs_in_order / (p * (n - p))  -- 0 / 0 is nan
end

local auc = {
  defaults = { softmax = true, average = "macro", dim = 2 },
  lists = { scores = true, ids = true },
}

local averages = { macro = true, weighted = true, none = true }

function auc.check (what, o)
  if not averages[o.average] then
    raise("%s: option 'average': expected 'macro', 'weighted' or 'none', " ..
          "got '%s'%s", what, tostring(o.average),
          module.suggestion(o.average, averages))
  end
end

-- Scores are kept: (n) for two classes, else a column a class.
function auc.add (s, o, outputs, targets, what)
  local x = rows.tensor(what, "outputs", outputs)
  if x:ndim() > 2 then
    raise("%s: expected outputs (n) or (n, classes), got %s", what,
          rows.shape(x))
  end
  local ids, n = rows.ids(what, x, targets, o), rows.count(what, x, o)
  rows.check(what, ids, n)
  x = x:to("f64")
  if x:ndim() == 2 and n == 2 and x:size(2) == 2 then
    x = x:narrow(2, 2, 1) - x:narrow(2, 1, 1)
  elseif n > 2 and o.softmax then
    x = x:softmax(2)
  end
  s.scores, s.ids = s.scores or {}, s.ids or {}
  s.scores[#s.scores + 1] = n == 2 and x:reshape(-1) or x
  s.ids[#s.ids + 1] = ids
end

-- The area of each class against all others, and how many rows it has.
local function each (scores, ids)
  local areas, sizes = {}, {}
  for c = 1, scores:size(2) do
    local positive = ids:eq(c - 1):to("f64")
    areas[c] = area(scores:select(2, c):contiguous(), positive)
    sizes[c] = positive:sum():item()
  end
  return areas, sizes
end

function auc.value (s, o)
  if not s.scores then return nan end
  local scores, ids = fnn.cat(s.scores, 1), fnn.cat(s.ids, 1)
  if scores:ndim() == 1 then return area(scores, ids:to("f64")) end
  local areas, sizes = each(scores, ids)
  if o.average == "none" then return areas end
  local sum, weights = 0, 0
  for c, v in ipairs(areas) do
    local weight = o.average == "weighted" and sizes[c] or 1
    if v == v then sum, weights = sum + v * weight, weights + weight end
  end
  return sum / weights
end

return { auc = auc }
