-- scaler.lua - scaling the loss, for gradients in f16: optim.GradScaler.
--
-- f16 holds nothing below 6e-8, and gradients often are.  So the loss is
-- multiplied with a large number, the gradients divided by it before the step,
-- and a step whose gradients overflowed is left out.  The number follows what
-- it meets: less after an overflow, more when there was none for long
-- (Micikevicius et al. 2018, arXiv:1710.03740; the arithmetic is that of
-- torch.amp.GradScaler, whose scale is an f32).

local fnn, load, internals = ...
local optim = fnn.optim
local module = load "nn/module"

local ipairs, next, rawequal = ipairs, next, rawequal
local setmetatable, tostring, type = setmetatable, tostring, type
local huge, math_type = math.huge, math.type
local pack, unpack = string.pack, string.unpack
local format = string.format
local raise, described = module.raise, module.described

local Scaler = internals.namespace({}, "fnn.GradScaler")
local hidden = setmetatable({}, { __mode = "k" })

local function f32 (v) return (unpack("<f", pack("<f", v))) end

local function positive (v)
  return math_type(v) ~= nil and v > 0 and v < huge
end

local checks = {
  init_scale = { "a positive number", positive },
  scale = { "a positive number", positive },
  growth = { "a number above 1", function (v)
    return positive(v) and v > 1
  end },
  backoff = { "a number between 0 and 1", function (v)
    return positive(v) and v < 1
  end },
  interval = { "a count of 1 or more", function (v)
    return math_type(v) == "integer" and v >= 1
  end },
  streak = { "a count of 0 or more", function (v)
    return math_type(v) == "integer" and v >= 0
  end },
  enabled = { "a boolean", function (v) return type(v) == "boolean" end },
}

local function check (where, key, v)
  local kind = checks[key]
  if not kind[2](v) then
    raise("%s: %s: expected %s, got %s", where, key, kind[1],
          math_type(v) and tostring(v) or described(v))
  end
  return v
end

-- {======================================================
-- A step
-- =======================================================

-- What it is that loss is multiplied with.
function Scaler:get_scale () return hidden[self].scale end
function Scaler:is_enabled () return hidden[self].enabled end

-- loss times the scale: a tensor, or a list of them.
function Scaler:scale (loss)
  local s = hidden[self]
  if not s.enabled then return loss end
  if type(loss) ~= "table" then return loss * s.scale end
  local list = {}
  for i, x in ipairs(loss) do list[i] = x * s.scale end
  return list
end

local function check_optimizer (where, opt)
  local kind = type(opt)
  if kind ~= "table" and kind ~= "userdata" or not opt.step or
     not opt.gradients_are_finite then
    raise("GradScaler: %s: expected an optimizer, got %s", where,
          described(opt))
  end
end

-- What was done with opt's gradients since the last update.
local function record_of (s, opt)
  for _, r in ipairs(s.records) do
    if rawequal(r.opt, opt) then return r end
  end
  local r = { opt = opt }
  s.records[#s.records + 1] = r
  return r
end

local function unscale (s, r)
  r.finite = r.opt:gradients_are_finite()
  optim.scale_grad(r.opt, 1 / s.scale)
end

-- Divides opt's gradients by the scale, once before each step: to clip them,
-- say.
function Scaler:unscale (opt)
  local s = hidden[self]
  check_optimizer("unscale", opt)
  if not s.enabled then return end
  local r = record_of(s, opt)
  if r.stepped then raise("GradScaler: unscale: after the step") end
  if r.finite ~= nil then
    raise "GradScaler: unscale: the gradients are unscaled already"
  end
  unscale(s, r)
end

-- A step of opt, unless gradients are infinite or no numbers; whether there
-- was one.
function Scaler:step (opt, ...)
  local s = hidden[self]
  check_optimizer("step", opt)
  if not s.enabled then
    opt:step(...)
    return true
  end
  local r = record_of(s, opt)
  if r.stepped then
    raise "GradScaler: step: there was one already since the last update"
  end
  if r.finite == nil then unscale(s, r) end
  r.stepped = true
  if r.finite then opt:step(...) end
  return r.finite
end

-- The scale for the next step, from what the gradients were; or the one given.
function Scaler:update (scale)
  local s = hidden[self]
  if not s.enabled then return end
  local finite = true
  for _, r in ipairs(s.records) do finite = finite and r.finite ~= false end
  if scale ~= nil then
    s.scale = f32(check("GradScaler: update", "scale", scale))
  elseif #s.records == 0 then
    raise "GradScaler: update: there was no step since the last one"
  elseif not finite then
    s.scale, s.streak = f32(s.scale * s.backoff), 0
  else
    s.streak = s.streak + 1
    if s.streak == s.interval then
      local more = f32(s.scale * s.growth)
      if more < huge then s.scale = more end
      s.streak = 0
    end
  end
  s.records = {}
end

-- }======================================================

-- {======================================================
-- State
-- =======================================================

local states = { "scale", "growth", "backoff", "interval", "streak" }

function Scaler:state_dict ()
  local s, state = hidden[self], {}
  for _, key in ipairs(states) do state[key] = s[key] end
  return state
end

-- Raises unless load_state_dict would take the state.
function Scaler:check_state_dict (state)
  local where = "GradScaler: load_state_dict"
  if type(state) ~= "table" then
    raise("%s: expected what state_dict returns, got %s", where,
          described(state))
  end
  for _, key in ipairs(states) do check(where, key, state[key]) end
end

function Scaler:load_state_dict (state)
  self:check_state_dict(state)
  local s = hidden[self]
  for _, key in ipairs(states) do s[key] = state[key] end
  return self
end

-- }======================================================

Scaler.__index = Scaler

function Scaler:__tostring ()
  local s = hidden[self]
  return format("GradScaler of %g%s", s.scale,
                s.enabled and "" or ", not enabled")
end

function optim.GradScaler (options)
  local o = module.options("GradScaler", options,
                           { init_scale = 65536, growth = 2, backoff = 0.5,
                             interval = 2000, enabled = true })
  for key, v in next, o do check("GradScaler", key, v) end
  local self = setmetatable({}, Scaler)
  hidden[self] = { scale = f32(o.init_scale), growth = o.growth,
                   backoff = o.backoff, interval = o.interval, streak = 0,
                   enabled = o.enabled, records = {} }
  return self
end
