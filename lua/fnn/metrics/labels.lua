-- labels.lua - precision, recall and f1 of rows that have any number of labels:
-- a column of outputs and of targets for each, 1 where a row has it.

local fnn, load = ...
local module = load "nn/module"
local rows = load "metrics/rows"

local ipairs, tostring = ipairs, tostring
local concat = table.concat
local raise = module.raise

local nan = 0 / 0

local labels = {}

local averages = { macro = true, micro = true, weighted = true, samples = true,
                   none = true }

function labels.check (what, o)
  if o.average and not averages[o.average] then
    raise("%s: option 'average': expected 'macro', 'micro', 'weighted', " ..
          "'samples' or 'none' with 'multilabel', got '%s'%s", what,
          tostring(o.average), module.suggestion(o.average, averages))
  end
  if o.ignore_index then
    raise("%s: option 'ignore_index' is for ids, and with 'multilabel' " ..
          "targets are 0 or 1", what)
  end
end

-- Outputs and targets as zeros and ones in i64, (n, labels).
local function read (what, outputs, targets, o)
  local x = rows.tensor(what, "outputs", outputs)
  local y = rows.tensor(what, "targets", targets)
  if x:ndim() ~= 2 or concat(x:shape(), " ") ~= concat(y:shape(), " ") then
    raise("%s: with 'multilabel' outputs and targets are (n, labels), got " ..
          "%s and %s", what, rows.shape(x), rows.shape(y))
  end
  if y:dtype() == "bool" then y = y:to("i64") end
  if y:numel() > 0 and y:ne(0):logical_and(y:ne(1)):any():item() then
    raise("%s: with 'multilabel' targets are 0 or 1, got others", what)
  end
  if x:dtype() == "bool" then return x:to("i64"), y:to("i64") end
  return x:ge(o.threshold):to("i64"), y:to("i64")
end

-- Counts of each label, and the sum of what the rows have; of(right,
-- predicted, actual) gives a metric as numerator and denominator.
function labels.add (s, o, outputs, targets, what, of)
  local found, wanted = read(what, outputs, targets, o)
  local both, columns = found * wanted, found:size(2)
  local counts = { right = both, predicted = found, actual = wanted }
  for _, key in ipairs { "right", "predicted", "actual" } do
    local v = counts[key]:sum(1)
    if s[key] and #s[key] ~= #v then
      raise("%s: outputs of %d labels, and before of %d", what, columns,
            #s[key])
    end
    s[key] = s[key] and s[key] + v or v
  end
  s.rows = (s.rows or 0) + found:size(1)
  if o.average == "samples" then
    local a, b = of(both:sum(2):to("f64"), found:sum(2):to("f64"),
                    wanted:sum(2):to("f64"))
    s.sum = rows.sum(s.sum, fnn.where(b:gt(0), a / b, 0.0))
  end
end

local function total (list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] end
  return sum
end

-- Unlike classes, labels that are nowhere count in the mean, as 0.
function labels.value (s, o, of)
  if not s.rows or s.rows == 0 then return nan end
  if o.average == "samples" then return s.sum[1] / s.rows end
  local right, predicted = s.right:totable(), s.predicted:totable()
  local actual = s.actual:totable()
  local function ratio (...)
    local a, b = of(...)
    return b == 0 and 0.0 or a / b
  end
  if o.average == "micro" then
    return ratio(total(right), total(predicted), total(actual))
  end
  local values, sum, weights = {}, 0.0, 0
  for i = 1, #right do
    values[i] = ratio(right[i], predicted[i], actual[i])
    local weight = o.average == "weighted" and actual[i] or 1
    sum, weights = sum + values[i] * weight, weights + weight
  end
  if o.average == "none" then return values end
  return weights == 0 and 0.0 or sum / weights
end

return labels
