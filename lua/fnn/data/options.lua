-- options.lua - checks of arguments that the files of data share.
local _, _, internals = ...

local getmetatable, pairs, tostring, type = getmetatable, pairs, tostring, type
local format, sort = string.format, table.sort
local core_raise = internals.nn.raise

local options = {}

local function raise(text, ...) core_raise(format(text, ...)) end
options.raise = raise

-- The options given, over the defaults, which name all there are; a default
-- of false is an option that may be left out.  types: Lua's type of those
-- whose default does not tell.
function options.check(what, given, defaults, types)
  if given ~= nil and (type(given) ~= "table" or getmetatable(given)) then
    raise("%s: expected a table of options, got %s", what, type(given))
  end
  local o, names = {}, {}
  for k, v in pairs(defaults) do
    o[k] = v
    names[#names + 1] = k
  end
  sort(names)
  for k, v in pairs(given or {}) do
    if defaults[k] == nil then
      local near = internals.nearest(tostring(k), names)
      raise("%s: unknown option '%s'%s", what, tostring(k),
            near and format(" (did you mean '%s'?)", near) or "")
    end
    local wanted = types and types[k] or type(defaults[k])
    if wanted ~= "any" and type(v) ~= wanted then
      raise("%s: option '%s': expected a %s, got a %s", what, k, wanted,
            type(v))
    end
    o[k] = v
  end
  return o
end

-- Raises for a path that is no text.
function options.check_path(what, path)
  if type(path) ~= "string" then
    raise("%s: expected a path, got %s", what, type(path))
  end
end

return options
