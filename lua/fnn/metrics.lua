-- metrics.lua - how good a model's outputs are: functions of outputs and
-- targets, and metrics.stream, which counts over the batches of a set.
--
-- A kind of metric has add(s, o, outputs, targets), which counts into the
-- table s, and value(s, o), which makes the number of it: so what is counted
-- batch by batch is what is counted at once.  What s holds is numbers, tensors
-- of counts, and lists of tensors that are joined: all can be saved.  Sums of
-- floats go row by row in f64, so that on the CPU not even their bits depend
-- on where a batch ends.

local fnn, load, internals = ...
local module = load "nn/module"
local rows = load "metrics/rows"

local getmetatable, ipairs, pairs = getmetatable, ipairs, pairs
local setmetatable, type = setmetatable, type
local format = string.format
local raise, described = module.raise, module.described

local kinds = {}
for _, part in ipairs { "counts", "ranks", "numbers" } do
  for name, kind in pairs(load("metrics/" .. part)) do kinds[name] = kind end
end

local metrics, by_function = {}, {}

-- {======================================================
-- Functions
-- =======================================================

local function read_options (kind, what, options)
  local o = module.options(what, options, kind.defaults)
  rows.check_options(what, o)
  if kind.check then kind.check(what, o) end
  return o
end

local function define (name, kind)
  local what = "metrics." .. name
  metrics[name] = function (outputs, targets, options)
    local o = read_options(kind, what, options)
    local s = {}
    fnn.no_grad(kind.add, s, o, outputs, targets, what)
    return fnn.no_grad(kind.value, s, o, what)
  end
  by_function[metrics[name]] = name
end

for name, kind in pairs(kinds) do define(name, kind) end

-- metrics.classes(outputs [, { threshold = 0.5, dim = 2 }]): the id of each
-- row.
function metrics.classes (outputs, options)
  local o = module.options("metrics.classes", options,
                           { threshold = 0.5, dim = 2 })
  rows.check_options("metrics.classes", o)
  return rows.classes("metrics.classes", outputs, o)
end

-- }======================================================

-- {======================================================
-- Streams
-- =======================================================

-- A function of a script: its mean, a row counting once.
local mean = { defaults = {} }

function mean.add (s, o, outputs, targets, _, ...)
  local v, n = o.f(outputs, targets, ...), #targets
  if fnn.is_tensor(v) then v = v:item() end
  if type(v) ~= "number" then
    raise("metrics.stream: the metric gave %s, expected a number",
          described(v))
  end
  s.sum, s.count = (s.sum or 0.0) + v * n, (s.count or 0) + n
end

function mean.value (s) return s.count and s.sum / s.count or 0 / 0 end

local Stream = internals.namespace({}, "fnn.MetricStream")
local meta = { __name = "fnn.MetricStream", __index = Stream }
local hidden = setmetatable({}, { __mode = "k" })

function meta:__tostring ()
  return format("MetricStream of %s", hidden[self].name)
end

-- The metric's name.
function Stream:name () return hidden[self].name end

-- Counts the rows of a batch.  A function of a script is given all targets.
function Stream:add (outputs, targets, ...)
  local h = hidden[self]
  fnn.no_grad(h.kind.add, h.s, h.o, outputs, targets, h.what, ...)
  return self
end

-- The metric of all rows since the last reset.
function Stream:value ()
  local h = hidden[self]
  return fnn.no_grad(h.kind.value, h.s, h.o, h.what)
end

function Stream:reset ()
  hidden[self].s = {}
  return self
end

-- One that counts the same, from nothing.
function Stream:fresh ()
  local h, other = hidden[self], setmetatable({}, meta)
  hidden[other] = { name = h.name, kind = h.kind, o = h.o, what = h.what,
                    s = {} }
  return other
end

-- What has been counted: tensors and numbers by name.
function Stream:state_dict ()
  local state = {}
  for key, v in pairs(hidden[self].s) do
    if type(v) == "table" then v = fnn.cat(v, 1) end
    state[key] = fnn.is_tensor(v) and v:clone() or v
  end
  return state
end

function Stream:load_state_dict (state)
  if type(state) ~= "table" then
    raise("MetricStream: load_state_dict: expected what state_dict returns, "
          .. "got %s", described(state))
  end
  local h, s = hidden[self], {}
  local joined = h.kind.lists or {}
  for key, v in pairs(state) do
    if fnn.is_tensor(v) then v = v:clone() end
    s[key] = joined[key] and { v } or v
  end
  h.s = s
  return self
end

-- What metrics are called elsewhere.
local elsewhere = { acc = "accuracy", auroc = "auc", roc_auc = "auc",
                    f1_score = "f1", top_k_accuracy = "top_k",
                    confusion_matrix = "confusion" }

local function kind_of (metric)
  if type(metric) == "string" then
    if not kinds[metric] then
      local here = elsewhere[metric]
      raise("metrics.stream: no metric '%s'%s", metric,
            here and " (here it is " .. here .. ")" or
            module.suggestion(metric, kinds, true))
    end
    return metric
  end
  local stub = internals.stubs[metric]
  return by_function[stub and stub() or metric]
end

local function is_callable (v)
  local m = getmetatable(v)
  return type(v) == "function" or type(m) == "table" and m.__call ~= nil
end

-- metrics.stream(metric [, options]): metric is a name, a function of this
-- library with its options, or one of a script.
function metrics.stream (metric, options)
  local name = metric ~= nil and kind_of(metric)
  local self, h = setmetatable({}, meta), nil
  if name then
    local kind, what = kinds[name], "metrics." .. name
    local o = read_options(kind, what, options)
    h = { name = name, kind = kind, o = o, what = what, s = {} }
  elseif not is_callable(metric) then
    raise("metrics.stream: expected a metric or its name, got %s",
          described(metric))
  else
    module.options("metrics.stream of a function", options, {})
    h = { name = "a function", kind = mean, o = { f = metric }, s = {},
          what = "metrics.stream" }
  end
  hidden[self] = h
  return self
end

-- }======================================================

return metrics
