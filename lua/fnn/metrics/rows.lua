-- rows.lua - what metrics are told: outputs and targets as rows of classes or
-- of numbers, and sums of them.

local fnn, load = ...
local module = load "nn/module"

local floor, math_type = math.floor, math.type
local concat, unpack = table.concat, table.unpack
local pairs, tostring = pairs, tostring
local raise, described = module.raise, module.described

local rows = {}

local kinds = {
  threshold = { "a number", function (v) return math_type(v) end },
  dim = { "an integer", function (v) return math_type(v) == "integer" end },
  ignore_index = { "an integer", function (v)
    return math_type(v) == "integer"
  end },
  positive = { "an id of 0 or more", function (v)
    return math_type(v) == "integer" and v >= 0
  end },
  classes = { "an integer of 1 or more", function (v)
    return math_type(v) == "integer" and v >= 1
  end },
}

-- Raises for options that metrics share and that are not of their kind.
function rows.check_options (what, o)
  for key, kind in pairs(kinds) do
    if o[key] and not kind[2](o[key]) then
      raise("%s: option '%s': expected %s, got %s", what, key, kind[1],
            math_type(o[key]) and tostring(o[key]) or described(o[key]))
    end
  end
end

function rows.shape (x) return "(" .. concat(x:shape(), ", ") .. ")" end

local function tensor (what, kind, x)
  if not fnn.is_tensor(x) then
    raise("%s: expected a tensor of %s, got %s", what, kind, described(x))
  end
  return x:detach()
end
rows.tensor = tensor

-- The dimension of classes; nil when outputs have one number a row.
local function class_dim (what, x, o)
  local n = x:ndim()
  if n == 0 then
    raise("%s: expected outputs (n), (n, classes) or (n, classes, ...), got "
          .. "()", what)
  end
  if n == 1 then return nil end
  local dim = o.dim < 0 and n + 1 + o.dim or o.dim
  if dim < 2 or dim > n then
    raise("%s: option 'dim': outputs of shape %s have no classes in " ..
          "dimension %d", what, rows.shape(x), o.dim)
  end
  return x:size(dim) > 1 and dim or nil
end

-- How many classes outputs tell of.
function rows.count (what, x, o)
  local dim = class_dim(what, x, o)
  return dim and x:size(dim) or 2
end

-- The class of each row: of several numbers the place of the largest, of one
-- 1 from the threshold on, else 0.
local function classes (what, x, o)
  x = tensor(what, "outputs", x)
  local dim = class_dim(what, x, o)
  if dim then return x:argmax(dim):reshape(-1) end
  return x:reshape(-1):ge(o.threshold):to("i64")
end
rows.classes = classes

local is_integer = { i64 = true, i32 = true, u8 = true, bool = true }

-- The shape of one id a row.
local function without (x, dim)
  local shape = x:shape()
  if dim then table.remove(shape, dim) end
  return shape
end

local function same (a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return #a == #b
end

-- Targets as ids, one a row: they are ids, or have the outputs' shape, and
-- then one number a row is 0 or 1 as in outputs.
function rows.ids (what, outputs, targets, o)
  targets = tensor(what, "targets", targets)
  local dim = class_dim(what, outputs, o)
  local shape, given = without(outputs, dim), targets:shape()
  if dim and same(given, outputs:shape()) and
     not (is_integer[targets:dtype()] and targets:size(dim) == 1) then
    return targets:argmax(dim):reshape(-1)
  end
  if targets:numel() ~= outputs:numel() // (dim and outputs:size(dim) or 1) or
     targets:size(1) ~= outputs:size(1) or
     targets:ndim() > 2 and not same(given, shape) then
    raise("%s: outputs of shape %s and targets of shape %s have not as many "
          .. "rows%s", what, rows.shape(outputs), rows.shape(targets),
          outputs:ndim() < 3 and "" or " (classes are in dimension " ..
          (dim or 2) .. ": option 'dim')")
  end
  targets = targets:reshape(-1)
  if is_integer[targets:dtype()] then return targets:to("i64") end
  if not dim then return targets:ge(0.5):to("i64") end
  targets = targets:to("f64")
  local whole = targets:eq(targets:floor())  -- others are no ids
  return targets:masked_fill(whole:logical_not(), -1):to("i64")
end

-- Raises for ids that are no classes.  keep: which rows count.
function rows.check (what, ids, n)
  if #ids == 0 then return end
  local least, most = ids:min():item(), ids:max():item()
  if least < 0 or most >= n then
    raise("%s: targets from %d to %d are no classes (there are %d; ids " ..
          "count from 0)", what, floor(least), floor(most), floor(n))
  end
end

-- Predicted and actual ids of the rows that count, and how many classes
-- there are.
function rows.pairs (what, outputs, targets, o)
  local found = classes(what, outputs, o)
  local wanted = rows.ids(what, outputs, targets, o)
  if o.ignore_index then
    local keep = wanted:ne(o.ignore_index)
    found, wanted = found:masked_select(keep), wanted:masked_select(keep)
  end
  return found, wanted, rows.count(what, outputs, o)
end

-- Outputs and targets of one shape as f64.
function rows.numbers (what, outputs, targets)
  local x = tensor(what, "outputs", outputs)
  local y = tensor(what, "targets", targets)
  if not same(x:shape(), y:shape()) then
    raise("%s: outputs of shape %s and targets of shape %s differ", what,
          rows.shape(x), rows.shape(y))
  end
  return x:to("f64"), y:to("f64")
end

-- sum and the rows of x added up, one after the other: (k) of (n, k), (1) of
-- (n).  sum may be nil.
function rows.sum (sum, x)
  local n = #x
  if n == 0 and sum then return sum end
  local width = x:ndim() > 1 and { x:size(2) } or {}
  sum = sum or fnn.zeros({ 1, unpack(width) },
                         { dtype = "f64", device = x:device() })
  if n == 0 then return sum end
  return fnn.cat({ sum, x }, 1):cumsum(1):narrow(1, n + 1, 1):clone()
end

return rows
