-- schedule.lua - learning rates by the step: optim.Warmup and its like.
--
-- A schedule is a function of the number of steps done, counted from 0; any
-- function will do.  Those made here are tables that can be called: their
-- numbers are fields, checked when they are given and when they are changed,
-- and nothing changes by a call, so that a resumed run needs no state.
-- optim.ReduceOnPlateau alone has one: it follows what it is told.

local fnn, load, internals = ...
local optim = fnn.optim
local module = load "nn/module"

local getmetatable, ipairs, next, pcall = getmetatable, ipairs, next, pcall
local select, setmetatable, tostring, type = select, setmetatable, tostring,
                                             type
local cos, floor, huge, pi = math.cos, math.floor, math.huge, math.pi
local max, min, sqrt = math.max, math.min, math.sqrt
local unpack = table.unpack
local math_type, tointeger = math.type, math.tointeger
local concat = table.concat
local raise, described = module.raise, module.described

-- {======================================================
-- What fields hold
-- =======================================================

local function is_number (v)
  return math_type(v) ~= nil and v == v and v ~= huge and v ~= -huge
end

local function callable (v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local function rises (list)
  if type(list) ~= "table" then return false end
  local last = -1
  for _, v in ipairs(list) do
    if not (is_number(v) and v > last) then return false end
    last = v
  end
  return true
end

-- Whether v may be in a field of that kind, and what is expected there.
local kinds = {
  rate = { "a finite number of 0 or more",
           function (v) return is_number(v) and v >= 0 end },
  positive = { "a finite number above 0",
               function (v) return is_number(v) and v > 0 end },
  share = { "a number from 0 to 1",
            function (v) return is_number(v) and v >= 0 and v <= 1 end },
  factor = { "a number of 0 or more, and below 1",
             function (v) return is_number(v) and v >= 0 and v < 1 end },
  count = { "an integer of 1 or more",
            function (v)
              return math_type(v) ~= nil and tointeger(v) ~= nil and v >= 1
            end },
  natural = { "an integer of 0 or more",
              function (v)
                return math_type(v) ~= nil and tointeger(v) ~= nil and v >= 0
              end },
  steps = { "a list of steps that rise", rises },
  schedule = { "a schedule (a function of the step)", callable },
}

local function one_of (...)
  local names = { ... }
  return { "'" .. concat(names, "' or '") .. "'", function (v)
    for _, name in ipairs(names) do
      if v == name then return true end
    end
    return false
  end }
end

local function show (v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if v ~= v then return "nan" end  -- some print it with a sign
  return math_type(v) and tostring(v) or described(v)
end

local function check (name, field, v)
  local kind = kinds[field[2]] or field[2]
  if not kind[2](v) then
    raise("%s: %s: expected %s, got %s", name, field[1], kind[1], show(v))
  end
  return v
end

-- }======================================================

-- {======================================================
-- Classes of schedules
-- =======================================================

local hidden = setmetatable({}, { __mode = "k" })  -- each one's values

local function text_of (class, values)
  local parts = {}
  for i, field in ipairs(class.fields) do
    local v = values[field[1]]
    local text = callable(v) and tostring(v) or show(v)
    if v == nil then
      text = "nil"
    elseif type(v) == "table" and not getmetatable(v) then
      text = "{ " .. concat(v, ", ") .. " }"
    end
    parts[i] = field[1] .. " = " .. text
  end
  return class.name .. " { " .. concat(parts, ", ") .. " }"
end

local function is_step (v) return is_number(v) and v >= 0 end

local function metatable_of (class)
  return {
    __name = "fnn." .. class.name,
    __call = function (self, step)
      if not is_step(step) then
        raise("%s: expected a step (they count from 0), got %s", class.name,
              show(step))
      end
      return class.law(hidden[self], step)
    end,
    __index = function (self, key)
      local v = hidden[self][key]
      if v == nil then return class.methods[key] end
      return v
    end,
    __newindex = function (self, key, v)
      local field = class.by_name[key]
      if not field then
        raise("%s has no field '%s'%s", class.name, tostring(key),
              module.suggestion(key, class.by_name))
      end
      hidden[self][key] = check(class.name, field, v)
    end,
    __tostring = function (self) return text_of(class, hidden[self]) end,
  }
end

-- The values of a call's n arguments: in order, and by name in a table at
-- the end.
local function read (class, n, args)
  local fields, values = class.fields, {}
  local last = args[n]
  local given = {}
  if n > class.required and type(last) == "table" and
     not getmetatable(last) then
    given, n = last, n - 1
  end
  if n > #fields then
    raise("%s: expected at most %d arguments, got %d", class.name, #fields, n)
  end
  for key in next, given do
    if not class.by_name[key] then
      raise("%s: unknown option '%s'%s", class.name, tostring(key),
            module.suggestion(key, class.by_name))
    end
  end
  for i, field in ipairs(fields) do
    local v = given[field[1]]
    if i <= n and args[i] ~= nil then v = args[i] end
    if v == nil then v = field.derived and field[3](values) or field[3] end
    values[field[1]] = check(class.name, field, v)
  end
  return values
end

-- optim[name]: fields are { name, kind, default } in the order of arguments;
-- law(values, step) is the rate.
local function define (name, fields, law, methods)
  local class = { name = name, fields = fields, law = law, by_name = {},
                  methods = methods or {}, required = 0 }
  for i, field in ipairs(fields) do
    class.by_name[field[1]] = field
    if field[3] == nil then class.required = i end
  end
  local meta = metatable_of(class)
  optim[name] = function (...)
    local self = setmetatable({}, meta)
    local values = read(class, select("#", ...), { ... })
    hidden[self] = values
    if class.methods.reset then self:reset() end
    return self
  end
end

-- }======================================================

-- {======================================================
-- Laws
-- =======================================================

-- From a at 0 to b at 1 along half a cosine.
local function cosine (a, b, at)
  return b + (a - b) * (1 + cos(pi * at)) / 2
end

-- The part of a warm-up of n steps that is done in this one: the first moves
-- too, and the last has all.
local function warm (step, n) return min((step + 1) / n, 1) end

local base = { "base", "rate" }
local bottom = { "floor", "rate", 0 }

define("Constant", { base }, function (s) return s.base end)

define("StepDecay", { base, { "every", "positive" }, { "gamma", "rate", 0.1 } },
       function (s, step) return s.base * s.gamma ^ (step // s.every) end)

define("MultiStep", { base, { "milestones", "steps" },
                      { "gamma", "rate", 0.1 } }, function (s, step)
  local passed = 0
  for _, at in ipairs(s.milestones) do
    if step >= at then passed = passed + 1 end
  end
  return s.base * s.gamma ^ passed
end)

define("Exponential", { base, { "gamma", "rate" } },
       function (s, step) return s.base * s.gamma ^ step end)

define("Polynomial", { base, { "total", "rate" }, { "power", "positive", 1 },
                       bottom }, function (s, step)
  if step >= s.total then return s.floor end
  return s.floor + (s.base - s.floor) * (1 - step / s.total) ^ s.power
end)

define("CosineAnnealing", { base, { "total", "rate" }, bottom },
       function (s, step)
  if step >= s.total then return s.floor end
  return cosine(s.base, s.floor, step / s.total)
end)

-- Loshchilov and Hutter 2017, arXiv:1608.03983: each period is mult times as
-- long as the one before.
define("CosineRestarts", { base, { "period", "positive" },
                           { "mult", "count", 1 }, bottom },
       function (s, step)
  local period = s.period
  if s.mult == 1 then
    step = step % period
  else
    while step >= period do
      step, period = step - period, period * s.mult
    end
  end
  return cosine(s.base, s.floor, step / period)
end)

-- The inner schedule's step is not counted anew after the warm-up.
define("Warmup", { { "inner", "schedule" }, { "steps", "rate" } },
       function (s, step)
  local rate = s.inner(step)
  return step < s.steps and rate * warm(step, s.steps) or rate
end)

-- Smith and Topin 2018, arXiv:1708.07120: straight up, down along a cosine.
define("OneCycle", { { "peak", "rate" }, { "total", "rate" },
                     { "warmup_fraction", "share", 0.3 },
                     { "start_div", "positive", 25 },
                     { "end_div", "positive", 1e4 } }, function (s, step)
  local peak, up = s.peak, floor(s.warmup_fraction * s.total)
  if step >= s.total then return peak / s.end_div end
  if step < up then
    local start = peak / s.start_div
    return start + (peak - start) * step / up
  end
  return cosine(peak, peak / s.end_div, (step - up) / (s.total - up))
end)

-- By default a tenth of the peak is left at the end.
define("WarmupCosine", { { "peak", "rate" }, { "warmup", "rate" },
                         { "total", "rate" },
                         { "floor", "rate", function (s) return s.peak / 10 end,
                           derived = true } }, function (s, step)
  if step < s.warmup then return s.peak * warm(step, s.warmup) end
  if step >= s.total then return s.floor end
  return cosine(s.peak, s.floor, (step - s.warmup) / (s.total - s.warmup))
end)

local shapes = {
  linear = function (at) return 1 - at end,
  cosine = function (at) return cosine(1, 0, at) end,
  sqrt = function (at) return 1 - sqrt(at) end,
}

-- Warm-up, stable, decay: Hu et al. 2024, arXiv:2404.06395; the shape "sqrt"
-- is of Haegele et al. 2024, arXiv:2405.18392.
define("WSD", { { "peak", "rate" }, { "warmup", "rate" }, { "stable", "rate" },
                { "decay", "rate" }, bottom,
                { "shape", one_of("linear", "cosine", "sqrt"), "linear" } },
       function (s, step)
  if step < s.warmup then return s.peak * warm(step, s.warmup) end
  step = step - s.warmup - s.stable
  if step < 0 then return s.peak end
  if step >= s.decay then return s.floor end
  return s.floor + (s.peak - s.floor) * shapes[s.shape](step / s.decay)
end)

-- }======================================================

-- {======================================================
-- Of several
-- =======================================================

-- Schedules as one: law(list, step).
local function combined (name, list, law)
  for i, inner in ipairs(list) do
    check(name, { "schedule " .. i, "schedule" }, inner)
  end
  if #list == 0 then raise("%s: expected a schedule, got none", name) end
  return setmetatable({}, {
    __name = "fnn." .. name,
    __call = function (_, step)
      if not is_step(step) then
        raise("%s: expected a step (they count from 0), got %s", name,
              show(step))
      end
      return law(list, step)
    end,
    __tostring = function ()
      local texts = {}
      for i, inner in ipairs(list) do texts[i] = tostring(inner) end
      return name .. " { " .. concat(texts, ", ") .. " }"
    end,
  })
end

-- The product: the first gives the rate, the others factors of it.
function optim.Chained (...)
  return combined("Chained", { ... }, function (list, step)
    local rate = list[1](step)
    for i = 2, #list do rate = rate * list[i](step) end
    return rate
  end)
end

-- One after the other: the k-th milestone is the step at which schedule k + 1
-- begins, with its own step 0.
function optim.Sequential (list, milestones)
  if type(list) ~= "table" or getmetatable(list) then
    raise("Sequential: expected a list of schedules, got %s", described(list))
  end
  check("Sequential", { "milestones", "steps" }, milestones)
  if #milestones ~= #list - 1 then
    raise("Sequential: %d schedules need %d milestones, got %d", #list,
          max(#list - 1, 0), #milestones)
  end
  return combined("Sequential", list, function (schedules, step)
    local k = 1
    while milestones[k] and step >= milestones[k] do k = k + 1 end
    return schedules[k](step - (milestones[k - 1] or 0))
  end)
end

-- }======================================================

-- {======================================================
-- With state
-- =======================================================

local Plateau = internals.namespace({}, "fnn.ReduceOnPlateau")

-- Starts again: the first rate, nothing seen.
function Plateau:reset ()
  local s = hidden[self]
  s.rate, s.best, s.bad, s.waits = s.base, nil, 0, 0
  return self
end

local function is_better (s, v)
  if not s.best then return v == v end
  local relative = s.threshold_mode == "rel"
  if s.mode == "min" then
    return v < (relative and s.best * (1 - s.threshold)
                or s.best - s.threshold)
  end
  return v > (relative and s.best * (1 + s.threshold) or s.best + s.threshold)
end

-- Tells it a value that should go down (or up); returns the rate.
function Plateau:update (value)
  if math_type(value) == nil then
    raise("ReduceOnPlateau: update: expected a number, got %s",
          described(value))
  end
  local s = hidden[self]
  if is_better(s, value) then
    s.best, s.bad = value, 0
  else
    s.bad = s.bad + 1
  end
  if s.waits > 0 then s.waits, s.bad = s.waits - 1, 0 end
  if s.bad > s.patience then
    local rate = max(s.rate * s.factor, s.floor)
    if s.rate - rate > s.eps then s.rate = rate end
    s.waits, s.bad = s.cooldown, 0
  end
  return s.rate
end

local states = { rate = "rate", bad = "natural", waits = "natural",
                 best = { "a number, or nil", function (v)
                   return v == nil or math_type(v) ~= nil
                 end } }

function Plateau:state_dict ()
  local s, state = hidden[self], {}
  for key in next, states do state[key] = s[key] end
  return state
end

function Plateau:load_state_dict (state)
  if type(state) ~= "table" then
    raise("ReduceOnPlateau: load_state_dict: expected what state_dict " ..
          "returns, got %s", described(state))
  end
  for key, kind in next, states do
    check("ReduceOnPlateau: load_state_dict", { key, kind }, state[key])
  end
  local s = hidden[self]
  for key in next, states do s[key] = state[key] end
  return self
end

define("ReduceOnPlateau", {
  base, { "mode", one_of("min", "max"), "min" }, { "factor", "factor", 0.1 },
  { "patience", "natural", 10 }, { "threshold", "rate", 1e-4 },
  { "threshold_mode", one_of("rel", "abs"), "rel" },
  { "cooldown", "natural", 0 }, bottom, { "eps", "rate", 1e-8 },
}, function (s) return s.rate end, Plateau)

-- }======================================================

-- The rates of an optimizer's groups, in order.
local function rates_of (opt)
  local rates = {}
  repeat
    local found, rate = pcall(opt.lr, opt, #rates + 1)
    if found then rates[#rates + 1] = rate end
  until not found
  return rates
end

-- optim.scheduler(opt, schedule): a function that gives the optimizer the
-- rate of a step, and returns it.  Groups keep the ratios that their rates
-- have now: the largest is the schedule's.
function optim.scheduler (opt, schedule)
  check("optim.scheduler", { "schedule", "schedule" }, schedule)
  local ratios = rates_of(opt)
  local largest = max(0, unpack(ratios))
  for i, rate in ipairs(ratios) do
    ratios[i] = largest > 0 and rate / largest or 1
  end
  return function (step)
    local rate = schedule(step)
    for i, ratio in ipairs(ratios) do opt:set_lr(rate * ratio, i) end
    return rate
  end
end

return true
