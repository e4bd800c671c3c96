-- json_file.lua - models as JSON files: a format with its version, and numbers
-- that are checked.

local fnn, load = ...
local module = load "nn/module"
local json = load "json"

local pcall, tostring, type = pcall, tostring, type
local math_type, format = math.type, string.format
local io, raise, described = fnn.io, module.raise, module.described

local json_file = {}

-- fail(text, ...) raises, led by the file.
function json_file.failing (path)
  return function (text, ...) raise("%s: " .. text, path, ...) end
end

function json_file.write (path, t)
  local ok, text = pcall(json.encode, t)
  if not ok then raise("%s: %s", path, text) end
  io.write_text(path, text .. "\n")
end

-- The table in a file of this format and version; what: "a network".
function json_file.read (path, name, version, what)
  local fail = json_file.failing(path)
  local ok, t = pcall(json.decode, io.read_text(path))
  if not ok then fail("%s", t) end
  if type(t) ~= "table" or t.format ~= name then
    fail("not %s of fnn (expected format '%s', got %s)", what, name,
         type(t) == "table" and "'" .. tostring(t.format) .. "'" or
         described(t))
  end
  if t.version ~= version then
    fail("version %s of the format (expected %d)", tostring(t.version),
         version)
  end
  return t
end

-- A list of n finite numbers, checked.
function json_file.numbers (fail, what, list, n)
  if type(list) ~= "table" or #list ~= n then
    fail("%s: expected %d numbers, got %s", what, n,
         type(list) == "table" and #list or described(list))
  end
  for i = 1, n do
    local v = list[i]
    if math_type(v) == nil or v - v ~= 0 then
      fail("%s: element %d: expected a finite number, got %s", what, i,
           math_type(v) and tostring(v) or described(v))
    end
  end
  return list
end

-- Lists in lists of numbers of this shape, checked, as a tensor.
function json_file.tensor (fail, what, list, shape)
  local function check (at, v, d)
    if d == #shape then return json_file.numbers(fail, at, v, shape[d]) end
    if type(v) ~= "table" or #v ~= shape[d] then
      fail("%s: expected %d rows, got %s", at, shape[d],
           type(v) == "table" and #v or described(v))
    end
    for i = 1, shape[d] do
      check(format("%s: row %d", at, i), v[i], d + 1)
    end
  end
  check(what, list, 1)
  return fnn.tensor(list)
end

return json_file
