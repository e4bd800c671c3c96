-- optimizer.lua - optimizers written in Lua: optim.optimizer.
--
--   local Sign = optim.optimizer("Sign", { lr = 0.01 })
--   function Sign:update (p, g, state, group)
--     p:set(p - g:sign() * group.lr)
--   end
--   local opt = Sign(model:parameters(), { lr = 0.1 })
--
-- A class is a table of methods, an optimizer a table of that class with all
-- methods that the userdata of one made in C has.

local fnn, load, internals = ...
local optim = fnn.optim
local module = load "nn/module"
local state = load "optim/state"

local ipairs, pairs, rawget = ipairs, pairs, rawget
local setmetatable, tostring, type = setmetatable, tostring, type
local concat, unpack = table.concat, table.unpack
local abs, huge, math_type = math.abs, math.huge, math.type
local format = string.format

local raise, described, kind_of = module.raise, module.described,
                                  module.core.kind
local check_options = module.options

local methods = {}
for name, f in pairs(state.methods) do methods[name] = f end

-- {======================================================
-- Groups
-- =======================================================

-- The Params in a list, or of a module.
local function params_of (name, v)
  if kind_of(v) == "module" then v = v:parameters() end
  if kind_of(v) == "param" then v = { v } end
  if type(v) ~= "table" then
    raise("%s: expected a model or a list of Params, got %s", name,
          described(v))
  end
  for i, p in ipairs(v) do
    if kind_of(p) ~= "param" then
      raise("%s: element %d of the parameters: expected a fnn.Param, got %s",
            name, i, described(p))
    end
  end
  if #v == 0 then raise("%s: a group has no parameters", name) end
  return v
end

-- A class's own say on the options of a group.
local function checked (self, options)
  if options.lr ~= nil and
     not (math_type(options.lr) and options.lr >= 0) then
    raise("%s: lr must not be negative (got %s)", self:name(),
          tostring(options.lr))
  end
  if self.check then self:check(options) end
  return options
end

function methods:add_group (group)
  local name = self:name()
  local given = {}
  for key, v in pairs(group) do
    if key ~= "params" then given[key] = v end
  end
  local options = checked(self, check_options(name, given, self._defaults))
  options.params = { unpack(params_of(name, group.params)) }
  for i, p in ipairs(options.params) do
    if self._slots[p] then
      raise("%s: parameter %d of shape (%s) is in the list twice", name, i,
            concat(p:shape(), ", "))
    end
    self._slots[p] = { step = 0 }
  end
  self._groups[#self._groups + 1] = options
  return self
end

function methods:init (params, options)
  self._defaults = check_options(self:name(), options, self.defaults)
  self._groups, self._slots = {}, {}
  if type(params) == "table" and type(params[1]) == "table" then
    for _, group in ipairs(params) do self:add_group(group) end
  else
    self:add_group { params = params }
  end
end

function methods:groups ()
  local list = {}
  for i, group in ipairs(self._groups) do
    list[i] = {}
    for key, v in pairs(group) do list[i][key] = v end
    list[i].params = { unpack(group.params) }
  end
  return list
end

function methods:parameters ()
  local list = {}
  for _, group in ipairs(self._groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

local function group_at (self, i)
  if self._groups[i] == nil then
    raise("%s: group %s is out of range (there are %d)", self:name(),
          tostring(i), #self._groups)
  end
  return self._groups[i]
end

function methods:set_options (options, place)
  local list = place and { group_at(self, place) } or self._groups
  local changed = {}
  for i, group in ipairs(list) do
    local all = {}
    for key in pairs(self._defaults) do all[key] = group[key] end
    for key, v in pairs(options) do all[key] = v end
    changed[i] = checked(self, check_options(self:name(), all,
                                             self._defaults))
  end
  for i, group in ipairs(list) do
    for key, v in pairs(changed[i]) do group[key] = v end
  end
  return self
end

function methods:learning_rate (place)
  return group_at(self, place or 1).lr
end

function methods:set_learning_rate (lr, place)
  self:set_options({ lr = lr }, place)
end

-- }======================================================

-- {======================================================
-- Steps
-- =======================================================

-- Moves the tensors of a slot to where its Param is.
local function follow (slot, p)
  local dtype, device = p:dtype(), p:device()
  local function fitting (x)
    if not fnn.is_tensor(x) then return x end
    return x:to(device):to(dtype)
  end
  for key, v in pairs(slot) do
    if type(v) == "table" then
      for i, x in ipairs(v) do v[i] = fitting(x) end
    else
      slot[key] = fitting(v)
    end
  end
end

-- What is kept of p: a table that the class fills with tensors, numbers, and
-- lists of either.  It is saved, and follows p to another dtype or device.
function methods:slot (p)
  local slot = self._slots[p]
  if slot == nil then
    raise("%s: a parameter that is not in this optimizer", self:name())
  end
  follow(slot, p)
  return slot
end

-- For each Param that takes part, its group.
local function each (self, f)
  for _, group in ipairs(self._groups) do
    for _, p in ipairs(group.params) do
      if p:grad() and not p:is_frozen() then f(p, group) end
    end
  end
end

-- How the gradients are to be scaled, and their norm before it is bounded.
local function scaling (self, options)
  local o = check_options("step", options, { scale = 1, max_norm = huge })
  local norm = abs(o.scale) * optim.grad_norm(self:parameters())
  local scale = o.scale
  if norm > o.max_norm then scale = scale * o.max_norm / (norm + 1e-6) end
  return scale, norm
end

function methods:step (options)
  internals.capture.refuse(self.__name .. ":step")
  local scale, norm = 1
  if options ~= nil then scale, norm = scaling(self, options) end
  fnn.no_grad(each, self, function (p, group)
    local slot, g = self:slot(p), p:grad()
    slot.step = slot.step + 1
    self:update(p, scale == 1 and g or g * scale, slot, group)
  end)
  return norm
end

function methods:zero_grad ()
  for _, p in ipairs(self:parameters()) do p:set_grad(nil) end
end

-- }======================================================

-- {======================================================
-- State
-- =======================================================

function methods:_states ()
  local list = {}
  for i, p in ipairs(self:parameters()) do list[i] = self:slot(p) end
  return list
end

-- Copies, so that the saved ones stay as they are.
local function copied (v)
  if fnn.is_tensor(v) then return v:clone() end
  if type(v) ~= "table" then return v end
  local list = {}
  for i, x in ipairs(v) do list[i] = copied(x) end
  return list
end

-- Raises unless x has the shape of p, the i-th parameter.
local function check_shape (name, what, i, x, p)
  local got = fnn.is_tensor(x) and "(" .. concat(x:shape(), ", ") .. ")" or
              described(x)
  local want = "(" .. concat(p:shape(), ", ") .. ")"
  if got ~= want then
    raise("%s: %s of parameter %d: expected shape %s, got %s", name, what, i,
          want, got)
  end
end

function methods:_load (states)
  local slots = {}
  for i, p in ipairs(self:parameters()) do
    local slot = {}
    for key, v in pairs(states[i]) do slot[key] = copied(v) end
    follow(slot, p)
    slots[p] = slot
  end
  for p, slot in pairs(slots) do self._slots[p] = slot end
end

-- }======================================================

-- {======================================================
-- Classes
-- =======================================================

function methods:name () return self.__name end

for _, name in ipairs { "grad_norm", "clip_grad_norm", "clip_grad_value",
                        "scale_grad", "gradients_are_finite" } do
  methods[name] = function (self, ...)
    return optim[name](self:parameters(), ...)
  end
end

methods.lr = function (self, ...) return self:learning_rate(...) end
methods.set_lr = function (self, ...) self:set_learning_rate(...) end

local function text (self)
  local lr = self:groups()[1].lr
  local n, groups = #self:parameters(), #self:groups()
  return format("%s%s, %d parameter%s in %d group%s", self:name(),
                lr and format(" lr %g", lr) or "", n, n == 1 and "" or "s",
                groups, groups == 1 and "" or "s")
end

local function construct (class, ...)
  local opt = setmetatable({}, class)
  opt:init(...)
  return opt
end

-- optim.optimizer(name, options [, parent]): a new class.  options names all
-- there are, with what they are when not given; false for one without.
function optim.optimizer (name, options, parent)
  if type(name) ~= "string" or name == "" then
    raise("optim.optimizer: expected the name of a class, got %s",
          described(name))
  end
  if options ~= nil and type(options) ~= "table" then
    raise("optim.optimizer: expected the options of %s with their defaults, "
          .. "got %s", name, described(options))
  end
  if parent ~= nil and not (type(parent) == "table" and parent.defaults) then
    raise("optim.optimizer: expected a class as the parent of %s, got %s",
          name, described(parent))
  end
  local class = { __name = name, __tostring = text, super = parent or methods,
                  defaults = options or parent and parent.defaults or {} }
  class.__index = class
  return setmetatable(class, {
    __index = parent or methods,
    __call = construct,
    __tostring = function (c) return "class " .. rawget(c, "__name") end,
  })
end

-- }======================================================

return { params_of = params_of, copied = copied, follow = follow,
         check_shape = check_shape }
