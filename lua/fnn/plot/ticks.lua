-- ticks.lua - where an axis has marks, and what stands beside them.
--
-- A scale is { lo =, hi =, log = }: the ends in the numbers that are drawn,
-- which are logarithms to base 10 where log is set; whole: they are counted.
local abs, ceil, floor, log = math.abs, math.ceil, math.floor, math.log
local max, min = math.max, math.min
local format = string.format
local ipairs = ipairs

local function log10(v) return log(v, 10) end

local ticks = {}

-- 10^e times m without the error of a power below 1.
local function times(m, e)
  if e >= 0 then return m * 10.0 ^ e end
  return m / 10.0 ^ -e
end

local function exponent(v)
  local e = floor(log10(abs(v)))
  if times(1, e + 1) <= abs(v) then e = e + 1 end  -- log10(1000) may be less
  return e
end

-- The step, 1, 2 or 5 times a power of ten, that makes about count steps of a
-- span: its factor and its exponent.
function ticks.step(span, count)
  local raw = span / max(count, 1)
  local e = exponent(raw)
  local m = raw / times(1, e) - 1e-6  -- what rounding adds is no step more
  if m > 5 then return 1, e + 1 end
  return m > 2 and 5 or m > 1 and 2 or 1, e
end

-- A mantissa of at most so many digits after the point, and the exponent.
local function scientific(v, digits)
  local text = format("%." .. digits .. "e", v)
  local m, sign, e = text:match "^(.-)e([+-])0*(%d+)$"
  if digits > 0 then m = m:gsub("%.?0+$", "") end
  return m .. "e" .. (sign == "-" and "-" or "") .. e
end

-- v as text, where steps are of size 10^e and the largest number is big.
local function label(v, e, big)
  if v == 0 then return "0" end
  local b = exponent(big)
  if (b >= 6 or b < -4 or e < -6) and b - e <= 8 then
    return scientific(v, max(0, exponent(v) - e))
  end
  return format("%." .. max(0, min(-e, 17)) .. "f", v)
end

-- A number on its own, in 4 digits; a whole one below ten million in all.
function ticks.short(v)
  if v ~= v then return "nan" end
  if v == 1 / 0 or v == -1 / 0 then return v > 0 and "inf" or "-inf" end
  if v == floor(v) and abs(v) < 1e7 and (abs(v) < 1e6 or v % 1e5 ~= 0) then
    return format("%.0f", v)
  end
  local e = exponent(v)
  if e >= -4 and e < 4 then return format("%.4g", v) end
  return scientific(v, 3)
end

-- Marks from lo to hi, about count: a list of { at =, label = }; whole: at
-- whole numbers.
function ticks.linear(lo, hi, count, whole)
  local m, e = ticks.step(hi - lo, count)
  if whole and e < 0 then m, e = 1, 0 end
  local step = times(m, e)
  local first, last = ceil(lo / step - 1e-6), floor(hi / step + 1e-6)
  local big = max(abs(lo), abs(hi))
  local list = {}
  for i = first, min(last, first + 100) do
    local v = times(i * m, e)
    list[#list + 1] = { at = v, label = label(v, e, big) }
  end
  return list
end

-- The decades between two exponents.
local function decades(first, last, count)
  local list, minor = {}, {}
  local stride = ceil((last - first + 1) / max(count, 1))
  for e = first - 1, last do
    if e >= first and (e - first) % stride == 0 then
      list[#list + 1] = { at = e, label = ticks.short(times(1, e)) }
    end
    if stride == 1 then
      for k = 2, 9 do minor[#minor + 1] = e + log10(k) end
    elseif stride <= 10 and e >= first then
      minor[#minor + 1] = e
    end
  end
  return list, minor
end

-- 1, 2 and 5 in each decade.
local function parts(lo, hi)
  local list, minor = {}, {}
  for e = floor(lo), floor(hi) do
    for k = 1, 9 do
      local at = e + log10(k)
      if k == 1 or k == 2 or k == 5 then
        if at >= lo - 1e-9 and at <= hi + 1e-9 then
          list[#list + 1] = { at = at, label = ticks.short(times(k, e)) }
        end
      else
        minor[#minor + 1] = at
      end
    end
  end
  return list, minor
end

local function within(list, lo, hi)
  local kept = {}
  for _, v in ipairs(list) do
    if v >= lo and v <= hi then kept[#kept + 1] = v end
  end
  return kept
end

-- Marks of a logarithmic axis: at logarithms; and the places of small ones.
function ticks.log(lo, hi, count)
  local list, minor
  local first, last = ceil(lo - 1e-9), floor(hi + 1e-9)
  if last - first >= 2 or last - first == 1 and count < 4 then
    list, minor = decades(first, last, count)
  else
    list, minor = parts(lo, hi)
  end
  if #list < 2 then
    list, minor = {}, {}
    for _, t in ipairs(ticks.linear(10 ^ lo, 10 ^ hi, count)) do
      if t.at > 0 then
        list[#list + 1] = { at = log10(t.at), label = t.label }
      end
    end
  end
  return list, within(minor, lo, hi)
end

-- The marks of a scale, about count of them and two at least where there can
-- be: places from 0 to 1 with labels, and places of small ones.
function ticks.of(scale, count)
  local lo, span = scale.lo, scale.hi - scale.lo
  local list, minor
  for _ = 1, 3 do
    if scale.log then list, minor = ticks.log(lo, scale.hi, count)
    else list, minor = ticks.linear(lo, scale.hi, count, scale.whole), {} end
    if #list >= 2 then break end
    count = 2 * count
  end
  for _, t in ipairs(list) do t.place = (t.at - lo) / span end
  for i, at in ipairs(minor) do minor[i] = (at - lo) / span end
  return list, minor
end

return ticks
