-- data.lua - what plots are given, checked: numbers, texts, sizes.
local fnn, load = ...
local options = load "data/options"

local raise = options.raise
local concat, math_type, type = table.concat, math.type, type
local pairs, tostring, getmetatable = pairs, tostring, getmetatable
local max, min = math.max, math.min

local data = {}

-- Numbers beyond this are gaps, as what is not finite: spans stay finite.
data.far = 1e300
data.near = 1e-300  -- the least span of an axis, or of colors
data.side_max, data.pixels_max = 16384, 100 * 1000000
data.points_max = 1 << 26

local function described(v)
  if fnn.is_tensor(v) then
    return "a tensor (" .. concat(v:shape(), ", ") .. ")"
  end
  if v == nil then return "nil" end
  return type(v) == "table" and "a table" or type(v) .. " " .. tostring(v)
end
data.described = described

-- A tensor as plain f64 on the CPU.
function data.plain(x)
  return x:detach():to "cpu":to "f64":contiguous()
end

-- A list of numbers, or of tensors that hold one each.
local function from_list(what, list)
  local copy, n = {}, #list
  for k in pairs(list) do
    if type(k) == "string" then
      raise("%s: expected numbers alone, got '%s' beside them", what, k)
    end
  end
  for i = 1, n do
    local v = list[i]
    if fnn.is_tensor(v) and v:numel() == 1 then v = v:item() end
    if type(v) ~= "number" then
      raise("%s: element %d: expected a number, got %s", what, i,
            described(list[i]))
    end
    copy[i] = v + 0.0
  end
  if n == 0 then return fnn.zeros({ 0 }, { dtype = "f64", device = "cpu" }) end
  return fnn.tensor(copy, { dtype = "f64", device = "cpu" })
end

-- A list or a tensor of one dim as f64 (n).
function data.numbers(what, v)
  local x
  if fnn.is_tensor(v) then
    if v:ndim() ~= 1 then
      raise("%s: expected one dimension, got %s", what, described(v))
    end
    x = data.plain(v)
  elseif type(v) == "table" and not getmetatable(v) then
    x = from_list(what, v)
  else
    raise("%s: expected a list of numbers or a tensor, got %s", what,
          described(v))
  end
  if #x > data.points_max then
    raise("%s: %d points are more than %d", what, #x, data.points_max)
  end
  return x
end

-- A list of lists or a tensor of two dims as f64 (h, w); ints: whether it
-- holds whole numbers by its dtype.
function data.matrix(what, v)
  if type(v) == "table" and not getmetatable(v) then
    local rows = {}
    for i = 1, #v do
      rows[i] = data.numbers(("%s: row %d"):format(what, i), v[i])
      if #rows[i] ~= #rows[1] then
        raise("%s: row %d has %d numbers, row 1 has %d", what, i, #rows[i],
              #rows[1])
      end
    end
    if #rows == 0 or #rows[1] == 0 then raise("%s: it is empty", what) end
    return fnn.stack(rows, 1), false
  end
  if not fnn.is_tensor(v) or v:ndim() ~= 2 or v:numel() == 0 then
    raise("%s: expected a matrix of numbers, got %s", what, described(v))
  end
  local t = v:dtype()
  return data.plain(v), t == "i64" or t == "i32" or t == "u8" or t == "bool"
end

-- x without what is not finite, or lies too far.
function data.finite(x)
  return x:masked_select(x:abs():le(data.far))  -- NaN is not less
end

-- The least and the largest finite number of tensors; nil if there is none.
function data.range(list)
  local lo, hi
  for _, x in ipairs(list) do
    local y = data.finite(x)
    if y:numel() > 0 then
      local a, b = y:min():item(), y:max():item()
      lo, hi = lo and min(lo, a) or a, hi and max(hi, b) or b
    end
  end
  return lo, hi
end

-- Text for a picture or a terminal: UTF-8, one line, no control characters.
function data.text(what, v)
  if v == nil or v == false then return "" end
  if type(v) ~= "string" and type(v) ~= "number" and type(v) ~= "boolean" then
    raise("%s: expected a text, got %s", what, described(v))
  end
  v = tostring(v):gsub("[%c\127]", " ")
  if not utf8.len(v) then v = v:gsub("[\128-\255]", "?") end
  v = v:gsub("\xc2[\x80-\x9f]", " ")
  if #v > 1000 then v = v:sub(1, utf8.offset(v, 0, 1000) - 1) .. ".." end
  return v
end

-- A list of texts, from a list or a tensor; nil if there is none.
function data.texts(what, v, n)
  if v == nil or v == false then return nil end
  if type(v) ~= "table" and not fnn.is_tensor(v) then
    raise("%s: expected a list, got %s", what, described(v))
  end
  local list = {}
  for i = 1, n or #v do list[i] = data.text(what, v[i]) end
  return list
end

-- { lo, hi }, in order; or nil.
function data.limits(what, v)
  if not v then return nil end
  local lo, hi = v[1], v[2]
  if type(lo) ~= "number" or type(hi) ~= "number" or
     not (hi - lo >= data.near) or lo < -data.far or hi > data.far then
    raise("%s: expected { low, high }, got { %s, %s }", what, tostring(lo),
          tostring(hi))
  end
  return { lo, hi }
end

-- A whole number of pixels, columns ...; nil if it is not given.
function data.size(what, v, least, most)
  if not v then return nil end
  if math_type(v) == "float" and v == v // 1 then v = v // 1 | 0 end
  if math_type(v) ~= "integer" or v < least or v > most then
    raise("%s: expected %d to %d, got %s", what, least, most, tostring(v))
  end
  return v
end

-- The positional entries of what a maker is given, and its named ones.
function data.split(what, given)
  if type(given) ~= "table" or getmetatable(given) then
    raise("%s: expected a table { data, name = value }, got %s", what,
          described(given))
  end
  local list, named, last = {}, {}, 0
  for k, v in pairs(given) do
    if math_type(k) == "integer" and k > 0 then
      list[k], last = v, max(last, k)
    else
      named[k] = v
    end
  end
  for i = 1, last do
    if list[i] == nil then raise("%s: entry %d is nil", what, i) end
  end
  return list, named
end

-- The one entry of what takes no more.
function data.only(what, list)
  if #list > 1 then raise("%s: expected one entry, got %d", what, #list) end
  return list[1]
end

return data
