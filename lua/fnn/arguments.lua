-- arguments.lua - the command line of a script: fnn.arguments.
local fnn, load, internals = ...
local options = load "data/options"

local pairs, tonumber, type = pairs, tonumber, type
local sort = table.sort
local raise = options.raise

-- The names of the options, each with its dashes.
local function dashed(known)
  local names = { "--device" }
  for name in pairs(known) do names[#names + 1] = "--" .. name end
  sort(names)
  return names
end

local function unknown(word, known)
  local near = internals.nearest(word, dashed(known))
  raise("unknown option '%s'%s", word,
        near and (" (did you mean '%s'?)"):format(near) or "")
end

-- What text is as a value of the type of default.
local function read(name, text, default)
  if type(default) ~= "number" then return text end
  return tonumber(text) or
         raise("option '--%s': expected a number, got '%s'", name, text)
end

-- fnn.arguments(list, defaults): see help/program.lua.
local function arguments(list, defaults)
  local found, i = {}, 1
  list = list or {}
  for name, value in pairs(defaults) do found[name] = value end
  while list[i] do
    local word = list[i]
    local name, given = word:match "^%-%-([%w_-]+)=?(.*)$"
    local default = defaults[name]
    if name == "device" then default = "" end
    if default == nil then unknown(word, defaults) end
    if default == false then
      if word:find "=" then raise("option '--%s' has no value", name) end
      found[name] = true
    else
      if not word:find "=" then
        i = i + 1
        given = list[i] or raise("option '--%s' needs a value", name)
      end
      found[name] = read(name, given, default)
    end
    i = i + 1
  end
  if found.device then
    fnn.set_default_device(found.device)
  end
  found.device = fnn.default_device()
  return found
end

return { arguments = arguments }
