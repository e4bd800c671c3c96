-- containers.lua - modules that hold those a script gives them.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local getmetatable, ipairs, pairs = getmetatable, ipairs, pairs
local rawget, select, tostring, type = rawget, select, tostring, type
local sort = table.sort

local core, raise, described = module.core, module.raise, module.described
local fields, kind_of = core.fields, core.kind

-- {======================================================
-- Lists
-- =======================================================

-- What the containers whose children have places share.
local List = nn.module "ModuleList"

-- The modules given, or those of one table.
local function fill (list, ...)
  local first = ...
  local n = select("#", ...)
  local given = { ... }
  if n == 1 and type(first) == "table" and not module.is_class(first) and
     getmetatable(first) == nil then
    given, n = first, #first
  end
  for i = 1, n do
    local v = given[i]
    if kind_of(v) ~= "module" then
      local class = module.is_class(v) and rawget(v, "__name")
      raise("%s: element %d: expected a module, got %s%s", list.__name, i,
            described(v), class and ": call it, " .. class .. "()" or "")
    end
    list[#list + 1] = v
  end
end

function List:init (...) fill(self, ...) end

function List:append (m)
  self[#self + 1] = m
  return self
end

function List:extend (others)
  for _, m in ipairs(others) do self:append(m) end
  return self
end

-- Puts m at a place and moves those behind it on.
function List:insert (place, m)
  local n = #self
  if place < 1 or place > n + 1 then
    raise("%s:insert: place %d is out of range (there are %d; places count " ..
          "from 1)", self.__name, place, n)
  end
  if kind_of(m) ~= "module" then
    raise("%s:insert: expected a module, got %s", self.__name, described(m))
  end
  for i = n, place, -1 do self[i + 1] = self[i] end
  self[place] = m
  return self
end

function List:remove (place)
  local n = #self
  local m = self[place or n]
  for i = place or n, n - 1 do self[i] = self[i + 1] end
  if n > 0 then self[n] = nil end
  return m
end

function List:forward ()
  raise("%s has no forward: call its modules, list[1](x)", self.__name)
end

nn.ModuleList = List

-- Its forward goes through the children in order.
local Sequential = nn.module("Sequential", List)

function Sequential:forward (x, ...)
  if select("#", ...) > 0 then
    raise("Sequential: expected one argument, got %d", 1 + select("#", ...))
  end
  local f = fields(self)
  for i = 1, #f do x = f[i](x) end
  return x
end

nn.Sequential = Sequential

-- }======================================================

-- Modules by name.
local Dict = nn.module "ModuleDict"

function Dict:init (t, ...)
  module.no_more("ModuleDict", 1, ...)
  if t ~= nil and (type(t) ~= "table" or getmetatable(t)) then
    raise("ModuleDict: expected a table of modules, got %s", described(t))
  end
  for name, m in pairs(t or {}) do
    if kind_of(m) ~= "module" then
      raise("ModuleDict: '%s': expected a module, got %s", tostring(name),
            described(m))
    end
  end
  local names = {}
  for name in pairs(t or {}) do names[#names + 1] = name end
  sort(names)
  for _, name in ipairs(names) do self[name] = t[name] end
end

function Dict:keys ()
  local names = {}
  for name in self:named_children() do names[#names + 1] = name end
  return names
end

function Dict:forward ()
  raise("ModuleDict has no forward: call its modules, dict.name(x)")
end

nn.ModuleDict = Dict

return true
