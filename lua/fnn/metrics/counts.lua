-- counts.lua - metrics that count classes: accuracy, top_k, confusion,
-- precision, recall, f1.

local fnn, load = ...
local module = load "nn/module"
local rows = load "metrics/rows"
local labels = load "metrics/labels"

local ipairs, tostring = ipairs, tostring
local math_type = math.type
local raise = module.raise

local nan = 0 / 0

-- {======================================================
-- Shares of rows
-- =======================================================

local function count (s, right, n)
  right = right:sum()
  s.right = s.right and s.right + right or right
  s.rows = (s.rows or 0) + n
end

local function share (s)
  if not s.rows or s.rows == 0 then return nan end
  return s.right:item() / s.rows
end

local accuracy = {
  defaults = { threshold = 0.5, dim = 2, ignore_index = false },
}

-- Ids that are no classes are counted where they are, so that a batch does not
-- wait for the device.
function accuracy.add (s, o, outputs, targets, what)
  local found, wanted, n = rows.pairs(what, outputs, targets, o)
  count(s, found:eq(wanted), #found)
  local strange = wanted:lt(0):logical_or(wanted:ge(n)):sum()
  s.strange = s.strange and s.strange + strange or strange
end

function accuracy.value (s, _, what)
  local strange = s.strange and s.strange:item() or 0
  if strange > 0 then
    raise("%s: %d targets are no classes (option 'ignore_index' leaves out " ..
          "those of an id)", what, strange)
  end
  return share(s)
end

local top_k = { defaults = { k = 5, ignore_index = false }, value = share }

function top_k.check (what, o)
  if math_type(o.k) ~= "integer" or o.k < 1 then
    raise("%s: option 'k': expected an integer of 1 or more, got %s", what,
          tostring(o.k))
  end
end

-- Of equal scores the lower id comes first, as in argmax.  What is not behind
-- the target is before it: so is all where its score is nan.
function top_k.add (s, o, outputs, targets, what)
  local x = rows.tensor(what, "outputs", outputs)
  if x:ndim() ~= 2 then
    raise("%s: expected outputs (n, classes), got %s", what, rows.shape(x))
  end
  local wanted = rows.ids(what, x, targets, { dim = 2 })
  if o.ignore_index then
    local keep = wanted:ne(o.ignore_index):nonzero():reshape(-1)
    x, wanted = x:index_select(1, keep), wanted:index_select(1, keep)
  end
  rows.check(what, wanted, x:size(2))
  local at = wanted:reshape(-1, 1)
  local score = x:gather(2, at)
  local ids = fnn.arange(x:size(2), { dtype = "i64", device = x:device() })
  local not_before = x:lt(score):logical_or(
    x:eq(score):logical_and(ids:ge(at)))
  count(s, not_before:sum(2):gt(x:size(2) - o.k), #wanted)
end

-- }======================================================

-- {======================================================
-- A table of counts
-- =======================================================

-- Raises unless counts of n classes go into the table t of as many.
local function check_size (what, t, size, n)
  if #t ~= size then
    raise("%s: outputs of %d classes, and before of others", what, n)
  end
end

local confusion = { defaults = { threshold = 0.5, classes = false, dim = 2,
                                 ignore_index = false } }

function confusion.add (s, o, outputs, targets, what)
  local found, wanted, n = rows.pairs(what, outputs, targets, o)
  if o.classes and o.classes < n then
    raise("%s: option 'classes': %d, but outputs have %d", what, o.classes, n)
  end
  n = o.classes or n
  local as = { dtype = "i64", device = found:device() }
  s.counts = s.counts or fnn.zeros({ n * n }, as)
  check_size(what, s.counts, n * n, n)
  if #found == 0 then return end
  rows.check(what, wanted, n)
  s.counts = s.counts:scatter_add(1, wanted * n + found,
                                  fnn.ones(#found, as))
end

function confusion.value (s, o, what)
  if not s.counts then raise("%s: nothing was added", what) end
  local n = #s.counts
  local side = o.classes or (n ^ 0.5 + 0.5) // 1 | 0
  return s.counts:reshape(side, side)
end

-- }======================================================

-- {======================================================
-- Precision, recall and what is made of them
-- =======================================================

local averages = { macro = true, micro = true, weighted = true, none = true,
                   binary = true }

local function check_average (what, o)
  if o.multilabel then return labels.check(what, o) end
  if o.average == "samples" then
    raise("%s: option 'average': 'samples' is for rows of several labels " ..
          "(option 'multilabel')", what)
  end
  if o.average and not averages[o.average] then
    raise("%s: option 'average': expected 'binary', 'macro', 'micro', " ..
          "'weighted' or 'none', got '%s'%s", what, tostring(o.average),
          module.suggestion(o.average, averages))
  end
end

-- For each class: how often it was right, predicted, and the actual one.
local function add (s, o, outputs, targets, what)
  local found, wanted, n = rows.pairs(what, outputs, targets, o)
  local as = { dtype = "i64", device = found:device() }
  for _, key in ipairs { "right", "predicted", "actual" } do
    s[key] = s[key] or fnn.zeros({ n }, as)
    check_size(what, s[key], n, n)
  end
  rows.check(what, wanted, n)
  if #found == 0 then return end
  local ones = fnn.ones(#found, as)
  s.right = s.right:scatter_add(1, wanted, found:eq(wanted):to("i64"))
  s.predicted = s.predicted:scatter_add(1, found, ones)
  s.actual = s.actual:scatter_add(1, wanted, ones)
end

local function ratio (a, b) return b == 0 and 0.0 or a / b end

local function total (list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] end
  return sum
end

-- Means over the classes that there are in outputs or targets.
local function macro (values, predicted, actual)
  local sum, n = 0, 0
  for i = 1, #values do
    if predicted[i] + actual[i] > 0 then sum, n = sum + values[i], n + 1 end
  end
  return sum / n
end

local function weighted (values, actual)
  local sum = 0
  for i = 1, #values do sum = sum + values[i] * actual[i] end
  return sum / total(actual)
end

-- parts(right, predicted, actual) is the metric of a class, as numerator and
-- denominator.
local function averaged (parts)
  local kind = { check = check_average,
                 defaults = { average = false, positive = 1, threshold = 0.5,
                              dim = 2, ignore_index = false,
                              multilabel = false } }
  local function of (...) return ratio(parts(...)) end
  function kind.add (s, o, outputs, targets, what)
    if o.multilabel then
      return labels.add(s, o, outputs, targets, what, parts)
    end
    add(s, o, outputs, targets, what)
  end
  function kind.value (s, o, what)
    if o.multilabel then return labels.value(s, o, parts) end
    if not s.right then return nan end
    local right, predicted = s.right:totable(), s.predicted:totable()
    local actual, values = s.actual:totable(), {}
    for i = 1, #right do values[i] = of(right[i], predicted[i], actual[i]) end
    local average = o.average or (#right == 2 and "binary" or "macro")
    if average == "none" then return values end
    if total(actual) == 0 then return nan end
    if average == "macro" then return macro(values, predicted, actual) end
    if average == "weighted" then return weighted(values, actual) end
    if average == "micro" then
      return of(total(right), total(predicted), total(actual))
    end
    if not values[o.positive + 1] then
      raise("%s: option 'positive': no class %s (there are %d; ids count " ..
            "from 0)", what, tostring(o.positive), #values)
    end
    return values[o.positive + 1]
  end
  return kind
end

-- }======================================================

return {
  accuracy = accuracy, top_k = top_k, confusion = confusion,
  precision = averaged(function (right, predicted)
    return right, predicted
  end),
  recall = averaged(function (right, _, actual) return right, actual end),
  f1 = averaged(function (right, predicted, actual)
    return right * 2, predicted + actual
  end),
}
