-- metrics.lua - how good a model's outputs are: functions of outputs and
-- targets, both of n rows, that give a number.

local fnn, load = ...
local module = load "nn/module"

local floor = math.floor
local concat = table.concat
local raise, described = module.raise, module.described

local metrics = {}

local function shape_text (x)
  return "(" .. concat(x:shape(), ", ") .. ")"
end

-- The class of each row: of several columns the one of the largest number, of
-- one column 1 from the threshold on, else 0.
local function classes_of (x, threshold)
  if x:ndim() == 2 and x:size(2) > 1 then return x:argmax(2) end
  return x:reshape(-1):ge(threshold):to("i64")
end

-- metrics.classes(outputs [, { threshold = 0.5 }]): the id of each row.
function metrics.classes (outputs, options)
  if not fnn.is_tensor(outputs) then
    raise("metrics.classes: expected a tensor of outputs, got %s",
          described(outputs))
  end
  local o = module.options("metrics.classes", options, { threshold = 0.5 })
  if outputs:ndim() < 1 or outputs:ndim() > 2 then
    raise("metrics.classes: expected outputs (n) or (n, classes), got %s",
          shape_text(outputs))
  end
  return classes_of(outputs, o.threshold)
end

local is_integer = { i64 = true, i32 = true, u8 = true, bool = true }

-- Targets as ids: they are ids, or rows as outputs have them, of 0 and 1 if
-- of one column.
local function ids_of (name, outputs, targets)
  if not fnn.is_tensor(targets) then
    raise("metrics.%s: expected a tensor of targets, got %s", name,
          described(targets))
  end
  if targets:size(1) ~= outputs:size(1) then
    raise("metrics.%s: outputs of shape %s and targets of shape %s have not " ..
          "as many rows", name, shape_text(outputs), shape_text(targets))
  end
  if is_integer[targets:dtype()] and
     not (targets:ndim() == 2 and targets:size(2) > 1) then
    return targets:reshape(-1):to("i64")
  end
  return classes_of(targets, 0.5)
end

-- metrics.accuracy(outputs, targets [, { threshold = 0.5 }]): the share of
-- rows whose class is the target's.
function metrics.accuracy (outputs, targets, options)
  local o = module.options("metrics.accuracy", options, { threshold = 0.5 })
  local found = metrics.classes(outputs, o)
  if #found == 0 then return 0 / 0 end
  local wanted = ids_of("accuracy", outputs, targets)
  return found:eq(wanted):sum():item() / #found
end

-- metrics.confusion(outputs, targets [, { classes =, threshold = 0.5 }]):
-- counts[actual][predicted], i64.
function metrics.confusion (outputs, targets, options)
  local o = module.options("metrics.confusion", options,
                           { threshold = 0.5, classes = false })
  local found = metrics.classes(outputs, { threshold = o.threshold })
  local wanted = ids_of("confusion", outputs, targets)
  local n = o.classes or
            outputs:ndim() == 2 and outputs:size(2) > 1 and outputs:size(2) or 2
  local as = { dtype = "i64", device = found:device() }
  local counts = fnn.zeros({ n * n }, as)
  if #found > 0 then
    if wanted:min():item() < 0 or wanted:max():item() >= n then
      raise("metrics.confusion: targets from %d to %d are no classes (there " ..
            "are %d; ids count from 0)", floor(wanted:min():item()),
            floor(wanted:max():item()), floor(n))
    end
    counts = counts:scatter_add(1, wanted * n + found,
                                fnn.ones(#found, as))
  end
  return counts:reshape(n, n)
end

return metrics
