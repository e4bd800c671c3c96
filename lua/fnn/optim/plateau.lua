-- plateau.lua - the schedule with state: optim.ReduceOnPlateau.

local _, load, internals = ...
local module = load "nn/module"
local schedule = load "optim/schedule"

local next, type = next, type
local max = math.max
local math_type = math.type
local raise, described = module.raise, module.described
local define, check, one_of = schedule.define, schedule.check, schedule.one_of
local hidden = schedule.hidden  -- each schedule's values

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

-- Raises unless load_state_dict would take the state.
local function check_state (state)
  if type(state) ~= "table" then
    raise("ReduceOnPlateau: load_state_dict: expected what state_dict " ..
          "returns, got %s", described(state))
  end
  for key, kind in next, states do
    check("ReduceOnPlateau: load_state_dict", { key, kind }, state[key])
  end
end

function Plateau:check_state_dict (state) check_state(state) end

function Plateau:load_state_dict (state)
  check_state(state)
  local s = hidden[self]
  for key in next, states do s[key] = state[key] end
  return self
end

local ReduceOnPlateau = define("ReduceOnPlateau", {
  { "base", "rate" }, { "mode", one_of("min", "max"), "min" },
  { "factor", "factor", 0.1 },
  { "patience", "natural", 10 }, { "threshold", "rate", 1e-4 },
  { "threshold_mode", one_of("rel", "abs"), "rel" },
  { "cooldown", "natural", 0 }, { "floor", "rate", 0 }, { "eps", "rate", 1e-8 },
}, function (s) return s.rate end, Plateau)

return { ReduceOnPlateau = ReduceOnPlateau }
