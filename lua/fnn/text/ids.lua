-- ids.lua - checks of arguments that the files of text share.

local fnn, load = ...
local module = load "nn/module"

local getmetatable, ipairs, tostring, type = getmetatable, ipairs, tostring,
                                             type
local math_type = math.type
local raise, described = module.raise, module.described

local ids = {}

-- A wrong value for a message: a number itself, and what else it is.
function ids.shown (v)
  if type(v) ~= "number" then return described(v) end
  return v ~= v and "nan" or tostring(v)  -- without a sign
end
local shown = ids.shown

-- Whether v can be called.
function ids.callable (v)
  if type(v) == "function" then return true end
  local meta = getmetatable(v)
  if type(meta) == "table" then return meta.__call ~= nil end
  return type(v) == "userdata"  -- of the library, which hide their metatable
end

-- The ids of a list or a tensor (length), as a list of their own.
function ids.list (what, v)
  if fnn.is_tensor(v) then
    local dtype = v:dtype()
    if #v:shape() ~= 1 or dtype ~= "i64" and dtype ~= "i32" then
      raise("%s: expected ids of dtype i64 and shape (length), got %s of " ..
            "shape (%s)", what, dtype, table.concat(v:shape(), ", "))
    end
    return v:totable()
  end
  if type(v) ~= "table" then
    raise("%s: expected a list or a tensor of ids, got %s", what, described(v))
  end
  local list = {}
  for i, id in ipairs(v) do
    if math_type(id) ~= "integer" or id < 0 then
      raise("%s: element %d of the ids: expected an integer from 0 on, got %s",
            what, i, shown(id))
    end
    list[i] = id
  end
  return list
end

-- Raises unless option name of o is an integer from least on.
function ids.check_count (what, o, name, least)
  local v = o[name]
  if math_type(v) ~= "integer" or v < least then
    raise("%s: option '%s': expected an integer of %d or more, got %s", what,
          name, least, shown(v))
  end
end

-- Raises unless option name of o is absent (false) or can be called.
function ids.check_callable (what, o, name)
  if o[name] and not ids.callable(o[name]) then
    raise("%s: option '%s': expected a function, got %s", what, name,
          described(o[name]))
  end
end

return ids
