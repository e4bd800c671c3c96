-- laws.lua - the schedules that are functions of the step alone.

local _, load = ...
local module = load "nn/module"
local schedule = load "optim/schedule"

local getmetatable, ipairs, type = getmetatable, ipairs, type
local cos, floor, pi = math.cos, math.floor, math.pi
local max, min, sqrt = math.max, math.min, math.sqrt
local raise, described = module.raise, module.described
local check, one_of = schedule.check, schedule.one_of
local combined = schedule.combined

local laws = {}

local function define (name, fields, law)
  laws[name] = schedule.define(name, fields, law)
end

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

-- The product: the first gives the rate, the others factors of it.
function laws.Chained (...)
  return combined("Chained", { ... }, function (list, step)
    local rate = list[1](step)
    for i = 2, #list do rate = rate * list[i](step) end
    return rate
  end)
end

-- One after the other: the k-th milestone is the step at which schedule k + 1
-- begins, with its own step 0.
function laws.Sequential (list, milestones)
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

return laws
