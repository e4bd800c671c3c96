-- module.lua - classes of modules, and what assigning a field does.
--
-- A class is a table of methods; `class(...)` makes a module and calls its
-- init.  A field that holds a Param, a tensor or a module is part of the
-- model; names are kept in the order of first assignment.

local fnn, _, internals = ...
local nn, core = fnn.nn, internals.nn

local getmetatable, ipairs, next, pairs = getmetatable, ipairs, next, pairs
local rawget, select, setmetatable = rawget, select, setmetatable
local concat, sort = table.concat, table.sort
local tostring, type = tostring, type
local math_type = math.type
local format, find, match = string.format, string.find, string.match

local fields, kind_of, order = core.fields, core.kind, core.order
local methods = internals.Module

-- What the files of this folder share; core is what lua/lnn.c lends to them.
local module = { core = core, methods = methods }

local function raise (text, ...)
  core.raise(format(text, ...))
end
module.raise = raise

-- What v is, for messages: "a Linear", "the class Linear", "a table".
local function described (v)
  local kind = kind_of(v)
  if kind == "module" then return "a " .. v.__name end
  if kind == "param" then return "a Param" end
  if module.is_class(v) then return "the class " .. rawget(v, "__name") end
  return v == nil and "nil" or "a " .. (kind or type(v))
end
module.described = described

-- " (did you mean 'x'?)" of the names that t has as keys, or where none is
-- near "", or all of them: " (expected x, y)".
function module.suggestion (s, t, all)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  sort(names)
  local near = internals.nearest(tostring(s), names)
  if near then return " (did you mean '" .. near .. "'?)" end
  if not all or #names == 0 then return "" end
  return " (expected " .. concat(names, ", ") .. ")"
end

-- The options given, over the defaults, which name all there are.
function module.options (what, given, defaults)
  if given ~= nil and (type(given) ~= "table" or getmetatable(given)) then
    raise("%s: expected a table of options, got %s", what, described(given))
  end
  local options = {}
  for key, v in pairs(defaults) do options[key] = v end
  for key, v in pairs(given or {}) do
    if defaults[key] == nil then
      raise("%s: unknown option '%s'%s", what, tostring(key),
            module.suggestion(key, defaults, true))
    end
    options[key] = v
  end
  return options
end

-- Raises for arguments after the most that a class takes.
function module.no_more (class, most, ...)
  if select("#", ...) > 0 then
    raise("%s: expected at most %d argument%s, got %d", class, most,
          most == 1 and "" or "s", most + select("#", ...))
  end
end

-- {======================================================
-- Classes
-- =======================================================

local classes = setmetatable({}, { __mode = "k" })

function module.is_class (v)
  return classes[v] ~= nil
end

local function construct (class, ...)
  local m = core.new(class)
  local init = class.init
  if init then
    init(m, ...)
  elseif select("#", ...) > 0 then
    raise("%s takes no arguments, got %s", class.__name, described((...)))
  end
  return m
end

local function class_tostring (class)
  return "class " .. rawget(class, "__name")
end

-- nn.module(name [, parent]): a new class.  Its methods are init, forward and
-- whatever the script adds.
function nn.module (name, parent)
  if type(name) ~= "string" or name == "" then
    raise("nn.module: expected the name of a class, got %s", described(name))
  end
  if parent ~= nil and not classes[parent] then
    raise("nn.module: expected a class as the parent of %s, got %s", name,
          described(parent))
  end
  local class = { __name = name, super = parent }
  class.__index = class
  classes[class] = true
  return setmetatable(class, {
    __index = parent or methods,
    __call = construct,
    __tostring = class_tostring,
  })
end

-- Whether m is of the class, or of one that inherits from it.
function methods:is_a (class)
  if not classes[class] then
    raise("is_a: expected a class, got %s", described(class))
  end
  local c = getmetatable(fields(self))
  while c and c ~= class do c = rawget(c, "super") end
  return c == class
end

-- }======================================================

-- {======================================================
-- Fields
-- =======================================================

-- nn.transient(x): assigned to a field, a tensor that moves with the model
-- but is not saved with it.
local Transient = { __name = "nn.transient" }
local transient_key = Transient  -- in fields: the set of such names

function nn.transient (x)
  if kind_of(x) ~= "tensor" then
    raise("nn.transient: expected a tensor, got %s", described(x))
  end
  return setmetatable({ value = x }, Transient)
end

function module.is_transient (m, key)
  local names = fields(m)[transient_key]
  return names ~= nil and names[key] == true
end

local function is_plain (v)
  return type(v) == "table" and getmetatable(v) == nil
end

-- Whether the values of a table are modules (or tables of modules): "all",
-- "some" or "none" of them.
local function holds_modules (t, seen)
  seen = seen or {}
  if seen[t] then return "none" end
  seen[t] = true
  local yes, no = false, false
  for _, v in next, t do
    local inside = kind_of(v) == "module" and "all" or
                   is_plain(v) and holds_modules(v, seen) or "none"
    yes = yes or inside ~= "none"
    no = no or inside ~= "all"
  end
  return yes and (no and "some" or "all") or "none"
end

-- A table of modules as a ModuleList, or a ModuleDict in the order of its
-- sorted names; any other table as it is.
local function adopt (m, key, t)
  if classes[t] then
    raise("%s.%s: the class %s is no module yet: call it, %s()", m.__name,
          key, t.__name, t.__name)
  end
  if not is_plain(t) then return t end
  local inside = holds_modules(t)
  if inside == "none" then return t end
  if inside == "some" then
    raise("%s.%s: a table with modules and other values: a list has only " ..
          "modules, so that none is overlooked", m.__name, key)
  end
  if #t > 0 then
    local list = nn.ModuleList()
    for _, v in ipairs(t) do list[#list + 1] = v end
    return list
  end
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  sort(names, function (a, b) return tostring(a) < tostring(b) end)
  local dict = nn.ModuleDict()
  for _, name in ipairs(names) do dict[name] = t[name] end
  return dict
end

-- Names of parts make paths, "layers.0.weight", and hide no method.
local function check_name (m, key, value)
  if key == "" or find(key, ".", 1, true) or match(key, "^%d+$") then
    raise("%s: '%s' is no name for %s: expected no dot, and a letter",
          m.__name, key, described(value))
  end
  if type(getmetatable(fields(m))[key]) == "function" then
    raise("%s.%s: %s is a method: choose another name for %s", m.__name, key,
          key, described(value))
  end
end

local function assign (m, key, value)
  local f = fields(m)
  local names = f[order]
  if rawget(f, key) == nil then
    local known = false
    for _, name in ipairs(names) do known = known or name == key end
    if not known then names[#names + 1] = key end
  end
  f[key] = value
end

-- m[place] = v: a child of a container, or nil for the last.
local function set_place (m, place, value)
  local f = fields(m)
  local n = #f
  local at = place < 0 and n + 1 + place or place
  if at < 1 or at > n + 1 then
    raise("%s: place %d is out of range (there are %d; places count from 1)",
          m.__name, place, n)
  end
  if is_plain(value) or module.is_class(value) then
    value = adopt(m, place, value)
  end
  if value == nil and at < n then
    raise("%s: only the last child can be removed (place %d of %d)",
          m.__name, place, n)
  elseif value ~= nil and not kind_of(value) then
    raise("%s[%d]: expected a module, got %s", m.__name, place,
          described(value))
  end
  assign(m, at, value)
end

local function set_field (m, key, value)
  local transient = getmetatable(value) == Transient
  if transient then
    value = value.value
  elseif type(value) == "table" then
    value = adopt(m, key, value)
  end
  local f = fields(m)
  local kind = kind_of(value)
  if key == "training" then
    core.train(m, value)
    f.training = value and true or false
    return
  end
  if kind then check_name(m, key, value) end
  if kind or kind_of(rawget(f, key)) then core.link(m, key, value) end
  if transient then
    f[transient_key] = f[transient_key] or {}
    f[transient_key][key] = true
  end
  assign(m, key, value)
end

core.metamethods {
  __newindex = function (m, key, value)
    if type(key) == "string" then
      set_field(m, key, value)
    elseif math_type(key) == "integer" then
      set_place(m, key, value)
    else
      raise("%s: a field has a name, got a key that is %s", m.__name,
            described(key))
    end
  end,
  __len = function (m) return #fields(m) end,
}

-- Makes the methods that were added in Lua say so when they are called with a
-- dot for the colon, as m.parameters().
function module.check_methods ()
  for name, f in pairs(methods) do
    if name ~= "release" then  -- which takes what was released
      methods[name] = function (self, ...)
        if kind_of(self) ~= "module" then
          raise("%s: expected a module, got %s: is it called with a colon, " ..
                "model:%s?", name, described(self), name)
        end
        return f(self, ...)
      end
    end
  end
end

-- The parts of m in the order of first assignment: key, value, kind.  The key
-- is a name or a place.  A tensor with a graph is a result that a forward
-- left behind, not a part.
function module.parts (m)
  local f = fields(m)
  local names, i = f[order], 0
  return function ()
    while i < #names do
      i = i + 1
      local key = names[i]
      local v = rawget(f, key)
      if is_plain(v) then  -- filled after it was assigned?
        local _, first = next(v)
        if kind_of(first) == "module" then
          v = adopt(m, key, v)
          f[key] = v
        end
      end
      local kind = kind_of(v)
      if kind and not (kind == "tensor" and v:has_graph()) then
        return key, v, kind
      end
    end
  end
end

-- The path of a part of the module at path: places count from 0 in it, as in
-- PyTorch's files.
function module.join (path, key)
  if type(key) == "number" then key = format("%d", key - 1) end
  return path == "" and key or path .. "." .. key
end

core.metamethods {
  -- for key, part in pairs(m): Params, buffers and children
  __pairs = function (m)
    local step = module.parts(m)
    return function ()
      local key, v = step()
      return key, v
    end
  end,
}

-- }======================================================

return module
