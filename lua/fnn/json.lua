-- json.lua - values of Lua as JSON text, and back (RFC 8259).  Integers stay
-- integers and floats floats.

local error, ipairs, pairs = error, ipairs, pairs
local tonumber, tostring, type = tonumber, tostring, type
local math_type, tointeger, huge = math.type, math.tointeger, math.huge
local byte, find, format = string.byte, string.find, string.format
local gsub, match, sub = string.gsub, string.match, string.sub
local concat, sort = table.concat, table.sort
local utf8_char, utf8_len = utf8.char, utf8.len

local json = {}

local deepest = 100  -- tables in tables

-- {======================================================
-- Encoding
-- =======================================================

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
                  ["\r"] = "\\r", ["\t"] = "\\t" }

local function quote (s)
  local length, at = utf8_len(s)
  if not length then
    error(format("json: a string is not UTF-8 at its byte %d: '%s'", at,
                 gsub(sub(s, 1, 20), "[^ -~]", function (c)
      return format("\\x%02x", byte(c))
    end)), 0)
  end
  return '"' .. gsub(s, '[%c"\\\127]', function (c)
    return escapes[c] or format("\\u%04x", byte(c))
  end) .. '"'
end

local function number (v)
  if math_type(v) == "integer" then return format("%d", v) end
  if v ~= v or v == huge or v == -huge then
    error("json: no number for " .. tostring(v), 0)
  end
  local s = gsub(format("%.17g", v), ",", ".")  -- of some locales
  return find(s, "[.e]") and s or s .. ".0"
end

local encode

local function encode_list (t, depth)
  local out = {}
  for i, v in ipairs(t) do out[i] = encode(v, depth + 1) end
  for key in pairs(t) do
    if math_type(key) ~= "integer" or key < 1 or key > #out then
      error("json: a table is a list or has string keys: got both", 0)
    end
  end
  return "[" .. concat(out, ",") .. "]"
end

local function encode_names (t, depth)
  local names = {}
  for key in pairs(t) do
    if type(key) ~= "string" then
      error("json: a key that is a " .. type(key), 0)
    end
    names[#names + 1] = key
  end
  sort(names)
  for i, key in ipairs(names) do
    names[i] = quote(key) .. ":" .. encode(t[key], depth + 1)
  end
  return "{" .. concat(names, ",") .. "}"
end

function encode (v, depth)
  local kind = type(v)
  if kind == "string" then return quote(v) end
  if kind == "number" then return number(v) end
  if kind == "boolean" then return tostring(v) end
  if kind ~= "table" then error("json: a value that is a " .. kind, 0) end
  if depth > deepest then error("json: tables nested too deep", 0) end
  if #v > 0 then return encode_list(v, depth) end
  return encode_names(v, depth)
end

-- Strings are UTF-8.
function json.encode (v) return encode(v, 0) end

-- }======================================================

-- {======================================================
-- Decoding
-- =======================================================

local function fail (s, at, what)
  error(format("json: byte %d: expected %s, got %s", at, what,
               at > #s and "the end" or "'" .. sub(s, at, at) .. "'"), 0)
end

local function skip (s, at) return match(s, "^[ \n\r\t]*()", at) end

local plain = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
                ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

-- The character of \uXXXX at `at`, which is behind the u; pairs of
-- surrogates are one.
local function unicode (s, at)
  local hex = match(s, "^%x%x%x%x", at)
  if not hex then fail(s, at, "four hexadecimal digits") end
  local code = tonumber(hex, 16)
  local low = code >= 0xd800 and code < 0xdc00 and
              match(s, "^\\u([dD][c-fC-F]%x%x)", at + 4)
  if low then
    code = 0x10000 + ((code - 0xd800) << 10) + (tonumber(low, 16) - 0xdc00)
    return utf8_char(code), at + 10
  end
  return utf8_char(code), at + 4
end

local function decode_string (s, at)
  local out = {}
  at = at + 1
  while true do
    local stop = find(s, '["\\%c]', at)
    if not stop then fail(s, #s + 1, "'\"'") end
    out[#out + 1] = sub(s, at, stop - 1)
    local c = sub(s, stop, stop)
    if c == '"' then return concat(out), stop + 1 end
    if c ~= "\\" then fail(s, stop, "no control character") end
    local escape = sub(s, stop + 1, stop + 1)
    if escape == "u" then
      out[#out + 1], at = unicode(s, stop + 2)
    elseif plain[escape] then
      out[#out + 1], at = plain[escape], stop + 2
    else
      fail(s, stop + 1, "an escape")
    end
  end
end

local function decode_number (s, at)
  local text, behind = match(s, "^(-?%d+%.?%d*[eE]?[+-]?%d*)()", at)
  local v = text and not find(text, "^-?0%d") and tonumber(text)
  if not v then fail(s, at, "a value") end
  return find(text, "[.eE]") and v or tointeger(v) or v, behind
end

local decode

-- The values up to the closing letter; item reads one.
local function decode_items (s, at, close, item)
  at = skip(s, at + 1)
  if sub(s, at, at) == close then return at + 1 end
  while true do
    at = skip(s, item(at))
    local c = sub(s, at, at)
    if c == close then return at + 1 end
    if c ~= "," then fail(s, at, "',' or '" .. close .. "'") end
    at = skip(s, at + 1)
  end
end

local function decode_list (s, at, depth)
  local list = {}
  return list, decode_items(s, at, "]", function (i)
    local v, behind = decode(s, i, depth)
    list[#list + 1] = v
    return behind
  end)
end

local function decode_names (s, at, depth)
  local t = {}
  return t, decode_items(s, at, "}", function (i)
    if sub(s, i, i) ~= '"' then fail(s, i, "a name in quotes") end
    local key, behind = decode_string(s, i)
    behind = skip(s, behind)
    if sub(s, behind, behind) ~= ":" then fail(s, behind, "':'") end
    t[key], behind = decode(s, skip(s, behind + 1), depth)
    return behind
  end)
end

local words = { ["true"] = true, ["false"] = false }

function decode (s, at, depth)
  if depth > deepest then error("json: nested too deep", 0) end
  local c = sub(s, at, at)
  if c == "{" then return decode_names(s, at, depth + 1) end
  if c == "[" then return decode_list(s, at, depth + 1) end
  if c == '"' then return decode_string(s, at) end
  local word = match(s, "^%l+", at)
  if word == "null" then return nil, at + 4 end
  if words[word] ~= nil then return words[word], at + #word end
  return decode_number(s, at)
end

-- null is nil: absent in an object, left out of a list.
function json.decode (s)
  local v, at = decode(s, skip(s, 1), 0)
  at = skip(s, at)
  if at <= #s then fail(s, at, "the end") end
  return v
end

-- }======================================================

return json
