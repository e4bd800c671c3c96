-- schedule.lua - learning rates by the step: what schedules have in common, and
-- optim.scheduler, which applies one.
--
-- A schedule is a function of the number of steps done, counted from 0; any
-- function will do.  Those made here are tables that can be called: their
-- numbers are fields, checked when they are given and when they are changed,
-- and nothing changes by a call, so that a resumed run needs no state.
-- optim.ReduceOnPlateau alone has one: it follows what it is told.
--
-- The laws are in laws.lua.

local _, load, internals = ...
local module = load "nn/module"

local getmetatable, ipairs, next = getmetatable, ipairs, next
local select, setmetatable, tostring, type = select, setmetatable, tostring,
                                             type
local huge, max = math.huge, math.max
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
    local hint = getmetatable(v) == "fnn.Optimizer" and
      " (a schedule gives rates: optim.scheduler(optimizer, schedule))" or ""
    raise("%s: %s: expected %s, got %s%s", name, field[1], kind[1], show(v),
          hint)
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

-- What makes schedules of a class: fields are { name, kind, default } in the
-- order of arguments; law(values, step) is the rate.
local function define (name, fields, law, methods)
  local class = { name = name, fields = fields, law = law, by_name = {},
                  methods = methods or {}, required = 0 }
  for i, field in ipairs(fields) do
    class.by_name[field[1]] = field
    if field[3] == nil then class.required = i end
  end
  local meta = metatable_of(class)
  return function (...)
    local self = setmetatable({}, meta)
    local values = read(class, select("#", ...), { ... })
    hidden[self] = values
    if class.methods.reset then self:reset() end
    return self
  end
end

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

-- }======================================================

-- The rates of an optimizer's groups, in order.
local function rates_of (opt)
  local rates = {}
  for i = 1, #opt:groups() do rates[i] = opt:learning_rate(i) end
  return rates
end

-- What optim.scheduler makes: called with a step it sets the rates.  Its state
-- are the ratios, which rates of a later step may not tell (all are 0, say),
-- and the state of the schedule, if it has one.
local Scheduler = internals.namespace({ __name = "fnn.scheduler" },
                                      "fnn.scheduler")
Scheduler.__index = Scheduler

function Scheduler:__call (step)
  internals.capture.refuse "a scheduler"
  local rate = self.schedule(step)
  if not math_type(rate) then
    raise("scheduler: the schedule gave %s for step %s, expected a number",
          described(rate), tostring(step))
  end
  for i, ratio in ipairs(self.ratios) do
    self.optimizer:set_learning_rate(rate * ratio, i)
  end
  return rate
end

function Scheduler:__tostring ()
  return "scheduler of " .. tostring(self.schedule)
end

local function has_state (schedule)
  return type(schedule) == "table" and schedule.load_state_dict ~= nil
end

function Scheduler:state_dict ()
  local state = { ratios = {} }
  for i, ratio in ipairs(self.ratios) do state.ratios[i] = ratio end
  if has_state(self.schedule) then
    state.schedule = self.schedule:state_dict()
  end
  return state
end

-- Raises unless load_state_dict would take the state.
function Scheduler:check_state_dict (state)
  if type(state) ~= "table" or type(state.ratios) ~= "table" then
    raise("scheduler: load_state_dict: expected what state_dict returns")
  end
  if #state.ratios ~= #self.ratios then
    raise("scheduler: load_state_dict: the rates of %d groups do not fit %d",
          #state.ratios, #self.ratios)
  end
  for _, v in ipairs(state.ratios) do
    check("scheduler: load_state_dict", { "ratios", "rate" }, v)
  end
  if has_state(self.schedule) and self.schedule.check_state_dict then
    self.schedule:check_state_dict(state.schedule)
  end
end

function Scheduler:load_state_dict (state)
  self:check_state_dict(state)
  for i, ratio in ipairs(state.ratios) do self.ratios[i] = ratio end
  if has_state(self.schedule) then
    self.schedule:load_state_dict(state.schedule)
  end
  return self
end

-- optim.scheduler(opt, schedule): gives the optimizer the rate of a step, and
-- returns it.  Groups keep the ratios that their rates have now: the largest
-- is the schedule's.
local function scheduler (opt, schedule)
  check("optim.scheduler", { "schedule", "schedule" }, schedule)
  local ratios = rates_of(opt)
  local largest = max(0, unpack(ratios))
  for i, rate in ipairs(ratios) do
    ratios[i] = largest > 0 and rate / largest or 1
  end
  return setmetatable({ optimizer = opt, schedule = schedule,
                        ratios = ratios }, Scheduler)
end

return { define = define, combined = combined, check = check,
         one_of = one_of, hidden = hidden, scheduler = scheduler }
