-- average.lua - averages of the weights along the way: Ema and SWA.
--
-- An average follows the weights by update(), after each step of an
-- optimizer, and takes their place, for a time, by swap() or averaged(f).

local fnn, load, internals = ...
local optim = fnn.optim
local module = load "nn/module"
local state = load "optim/state"
local tools = load "optim/optimizer"

local error, ipairs, pairs, pcall = error, ipairs, pairs, pcall
local setmetatable, tostring = setmetatable, tostring
local math_type, format = math.type, string.format
local pack, unpack = table.pack, table.unpack
local raise = module.raise

local Average = {}
Average.__index = Average
for name, f in pairs(state.methods) do Average[name] = f end

local function class (name, defaults)
  local c = { __name = name, defaults = defaults }
  c.__index = c
  c.__tostring = function (self)
    return format("%s of %d parameters, %d updates", name, #self._params,
                  self._updates)
  end
  return setmetatable(c, {
    __index = Average,
    __call = function (_, params, options)
      local a = setmetatable({}, c)
      a:init(params, options)
      return a
    end,
    __tostring = function () return "class " .. name end,
  })
end

function Average:init (params, options)
  self._options = module.options(self.__name, options, self.defaults)
  self:check(self._options)
  self._params, self._averages = tools.params_of(self.__name, params), {}
  for i, p in ipairs(self._params) do
    self._averages[i] = p:detach():clone()
  end
  self._updates, self._swapped = 0, false
end

function Average:check () end
function Average:name () return self.__name end
function Average:parameters () return { unpack(self._params) } end

-- How many updates there were.
function Average:updates () return self._updates end

function Average:groups ()
  local group = { params = self:parameters() }
  for key, v in pairs(self._options) do group[key] = v end
  return { group }
end

function Average:set_options (options)
  local all = module.options(self.__name, self._options, self.defaults)
  all = module.options(self.__name, options, all)
  self:check(all)
  self._options = all
  return self
end

-- Raises while the averages are in the place of the weights.
local function at_rest (self, what)
  if self._swapped then
    raise("%s: %s while the averages are swapped in: swap them back first",
          self.__name, what)
  end
  for i, p in ipairs(self._params) do
    local own = { self._averages[i] }
    tools.follow(own, p)
    self._averages[i] = own[1]
  end
end

function Average:update ()
  at_rest(self, "update")
  internals.capture.refuse(self.__name .. ":update")
  self._updates = self._updates + 1
  local share = self:share()
  for i, p in ipairs(self._params) do
    if share == 1 then
      self._averages[i]:copy_(p:detach())
    else
      self._averages[i]:lerp_(p:detach(), share)
    end
  end
  return self
end

-- Weights and averages change places; a second swap undoes it.
function Average:swap ()
  if not self._swapped then at_rest(self, "swap") end
  for i, p in ipairs(self._params) do
    local weights = p:detach():clone()
    p:set(self._averages[i])
    self._averages[i] = weights
  end
  self._swapped = not self._swapped
  return self
end

-- f(...) with the averages in the weights' place.
function Average:averaged (f, ...)
  self:swap()
  local results = pack(pcall(f, ...))
  self:swap()
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2, results.n)
end

function Average:_states ()
  at_rest(self, "state_dict")
  local list = {}
  for i, x in ipairs(self._averages) do
    list[i] = { average = x, updates = self._updates }
  end
  return list
end

function Average:_check (states)
  at_rest(self, "load_state_dict")
  for i, p in ipairs(self._params) do
    local s = states[i]
    if s.average == nil or math_type(s.updates) ~= "integer" then
      raise("%s: the state of parameter %d has no average", self.__name, i)
    end
    tools.check_shape(self.__name, "average", i, s.average, p)
  end
end

function Average:_load (states)
  self:_check(states)
  local averages = {}
  for i, p in ipairs(self._params) do
    local own = tools.copied { states[i].average }
    tools.follow(own, p)
    averages[i] = own[1]
  end
  self._averages, self._updates = averages, states[1].updates
end

-- {======================================================
-- Laws
-- =======================================================

-- average = decay average + (1 - decay) weight, from the weights as they are
local Ema = class("Ema", { decay = 0.999 })

function Ema:check (o)
  if not (math_type(o.decay) and o.decay >= 0 and o.decay <= 1) then
    raise("Ema: decay must be in [0, 1] (got %s)", tostring(o.decay))
  end
end

function Ema:share () return 1 - self._options.decay end

-- The mean of the weights at all updates (Izmailov et al. 2018,
-- arXiv:1803.05407).
local SWA = class("SWA", {})

function SWA:share () return 1 / self._updates end

-- }======================================================

optim.Ema, optim.SWA = Ema, SWA
return true
