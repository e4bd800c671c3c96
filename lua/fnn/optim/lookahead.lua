-- lookahead.lua - Lookahead (Zhang et al. 2019, arXiv:1907.08610): every k
-- steps of another optimizer, slow weights go a part of the way to where it
-- went, and it goes on from there.

local fnn, load, internals = ...
local optim = fnn.optim
local module = load "nn/module"
local tools = load "optim/optimizer"

local ipairs, pairs, type = ipairs, pairs, type
local math_type, tostring = math.type, tostring
local raise = module.raise

local Lookahead = optim.optimizer("Lookahead", { k = 5, alpha = 0.5 })

function Lookahead:check (o)
  if not (math_type(o.k) == "integer" and o.k >= 1) then
    raise("Lookahead: k must be an integer of 1 or more (got %s)",
          tostring(o.k))
  end
  if not (math_type(o.alpha) and o.alpha >= 0 and o.alpha <= 1) then
    raise("Lookahead: alpha must be in [0, 1] (got %s)", tostring(o.alpha))
  end
end

-- optim.Lookahead(optimizer, { k =, alpha = })
function Lookahead:init (inner, options)
  local kind = type(inner)
  if kind ~= "table" and kind ~= "userdata" or not inner.zero_grad or
     not inner.set_options then
    raise("Lookahead: expected an optimizer, got %s", module.described(inner))
  end
  self.inner = inner
  self._options = module.options("Lookahead", options, self.defaults)
  self:check(self._options)
  self._slow, self._steps = {}, 0
end

function Lookahead:name () return "Lookahead(" .. self.inner:name() .. ")" end

for _, name in ipairs { "parameters", "zero_grad", "learning_rate",
                        "set_learning_rate" } do
  Lookahead[name] = function (self, ...)
    return self.inner[name](self.inner, ...)
  end
end

function Lookahead:add_group (group)
  self.inner:add_group(group)
  return self
end

-- The options of the groups are those of the other, k and alpha.
function Lookahead:groups ()
  local groups = self.inner:groups()
  for _, group in ipairs(groups) do
    group.k, group.alpha = self._options.k, self._options.alpha
  end
  return groups
end

function Lookahead:set_options (options, place)
  local own, others = {}, {}
  for key, v in pairs(self._options) do own[key] = v end
  for key, v in pairs(options) do
    if own[key] ~= nil then own[key] = v else others[key] = v end
  end
  self:check(own)
  self.inner:set_options(others, place)
  self._options = own
  return self
end

-- The slow weights of p, where it is now.
local function slow_of (self, p)
  local slot = { self._slow[p] or p:detach():clone() }
  tools.follow(slot, p)
  self._slow[p] = slot[1]
  return slot[1]
end

function Lookahead:step (...)
  internals.capture.refuse "Lookahead:step"
  local params = {}
  for _, p in ipairs(self:parameters()) do
    if not p:is_frozen() then params[#params + 1] = p end
  end
  for _, p in ipairs(params) do slow_of(self, p) end
  local result = self.inner:step(...)
  self._steps = self._steps + 1
  if self._steps % self._options.k == 0 then
    for _, p in ipairs(params) do
      p:set(slow_of(self, p):lerp_(p:detach(), self._options.alpha))
    end
  end
  return result
end

-- What the other keeps, and beside it the slow weights and the steps done.
function Lookahead:_states ()
  local list, params = {}, self:parameters()
  for i, t in ipairs(self.inner:_states()) do
    list[i] = { slow = self._slow[params[i]], lookahead_step = self._steps }
    for key, v in pairs(t) do list[i][key] = v end
  end
  return list
end

-- The states of the other.
local function inner_of (states)
  local inner = {}
  for i, t in ipairs(states) do
    inner[i] = {}
    for key, v in pairs(t) do inner[i][key] = v end
    inner[i].slow, inner[i].lookahead_step = nil, nil
  end
  return inner
end

function Lookahead:_check (states)
  for i, p in ipairs(self:parameters()) do
    local steps, slow = states[i].lookahead_step, states[i].slow
    if math_type(steps) ~= "integer" then
      raise("Lookahead: the state of parameter %d has no steps", i)
    end
    if slow then tools.check_shape("Lookahead", "slow", i, slow, p) end
  end
  if self.inner._check then self.inner:_check(inner_of(states)) end
end

function Lookahead:_load (states)
  self:_check(states)
  local inner, slow, steps = inner_of(states), {}, 0
  for i, p in ipairs(self:parameters()) do
    steps = states[i].lookahead_step or 0
    local own = tools.copied { states[i].slow }
    tools.follow(own, p)
    slow[p] = own[1]
  end
  self.inner:_load(inner)
  self._slow, self._steps = slow, steps
end

optim.Lookahead = Lookahead
return true
