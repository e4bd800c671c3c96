-- multinomial.lua - draws of ids by weights.
--
-- On the host and in f64, so that every device draws the same ids.  With
-- replacement a uniform number falls into the running sum of the weights: the
-- numbers are sorted in among the sums, and the id is how many of these came
-- before.  Without, the largest of weight / exponential number are drawn, as
-- if one after the other (Efraimidis and Spirakis 2006).

local fnn, load = ...
local module = load "nn/module"

local concat, tostring = table.concat, tostring
local math_type = math.type
local raise, described = module.raise, module.described

-- {======================================================
-- Checks
-- =======================================================

-- " of row 2" where there are several.
local function of_row (one, row)
  return one and "" or " of row " .. row
end

-- The first place, from 1, where the mask of one dimension is true; nil if
-- nowhere.
local function first (mask)
  if mask:numel() == 0 or not mask:any():item() then return nil end
  return mask:nonzero():reshape(-1)[1] + 1
end

local function check_weights (w, one)
  local columns = w:size(2)
  local bad = w:ge(0):logical_and(w:lt(1 / 0)):logical_not():reshape(-1)
  local at = first(bad)
  if at then
    local row = (at - 1) // columns + 1
    raise("multinomial: expected finite weights of 0 or more, got %s%s",
          tostring(w:reshape(-1)[at]):gsub("^-nan$", "nan"),
          of_row(one, row) .. " at place " .. (at - 1) % columns + 1)
  end
  local row = w:size(1) > 0 and first(w:gt(0):any(2):logical_not())
  if row then
    raise("multinomial: all weights%s are 0: there is nothing to draw",
          of_row(one, row))
  end
end

-- Raises where fewer than n can be drawn.
local function check_enough (w, n, one)
  if w:size(1) == 0 then return end
  local some = w:gt(0):sum(2)
  local row = first(some:lt(n))
  if row then
    raise("multinomial: %d weights%s are above 0, and %d ids were to be " ..
          "drawn (option 'replacement' draws one more often)",
          some[row], of_row(one, row), n)
  end
end

-- The weights as rows on the host, in f64; whether they were but one row.
local function read (weights)
  if not fnn.is_tensor(weights) then
    raise("multinomial: expected a tensor of weights, got %s",
          described(weights))
  end
  local ndim = weights:ndim()
  if ndim < 1 or ndim > 2 or weights:size(-1) == 0 then
    raise("multinomial: expected weights of shape (classes) or (rows, " ..
          "classes), of a class or more, got (%s)",
          concat(weights:shape(), ", "))
  end
  local w = weights:detach():to("cpu"):to("f64")
  return ndim == 1 and w:unsqueeze(1) or w, ndim == 1
end

-- }======================================================

-- {======================================================
-- Draws
-- =======================================================

local function uniform (rows, n, generator)
  return fnn.rand({ rows, n }, { dtype = "f64", device = "cpu",
                                 generator = generator })
end

local function with_replacement (w, n, generator)
  local rows, columns = w:size(1), w:size(2)
  local sums = (w / w:max(2):unsqueeze(2)):cumsum(2)  -- finite, however large w
  local at = uniform(rows, n, generator) * sums:narrow(2, columns, 1)
  -- Equal ones keep their order: a sum that is met is before the number.
  local order = fnn.cat({ sums, at }, 2):argsort(2)
  local before = order:lt(columns):to("i64"):cumsum(2)
  local ids = fnn.zeros(before:shape(), { dtype = "i64", device = "cpu" })
  return ids:scatter_add(2, order, before):narrow(2, columns + 1, n)
end

local function without (w, n, generator)
  local wait = -(1 - uniform(w:size(1), w:size(2), generator)):log()
  local keys = fnn.where(w:gt(0), w:log() - wait:log(), -1 / 0)
  local _, ids = keys:topk(n, 2)
  return ids
end

-- }======================================================

-- fnn.multinomial(weights, n [, { replacement = false, generator = }])
local function multinomial (weights, n, options, ...)
  module.no_more("multinomial", 3, ...)
  local o = module.options("multinomial", options,
                           { replacement = false, generator = false })
  local w, one = read(weights)
  if math_type(n) ~= "integer" or n < 1 then
    raise("multinomial: expected how many to draw, an integer of 1 or " ..
          "more, got %s", math_type(n) and tostring(n) or described(n))
  end
  check_weights(w, one)
  if not o.replacement then check_enough(w, n, one) end
  local draw = o.replacement and with_replacement or without
  if w:size(1) == 0 then
    return fnn.zeros({ 0, n }, { dtype = "i64", device = weights:device() })
  end
  local ids = draw(w, n, o.generator or nil)
  return (one and ids:squeeze(1) or ids):contiguous():to(weights:device())
end

return {
  multinomial = function (...) return fnn.no_grad(multinomial, ...) end,
}
