-- screen.lua - a rectangle of letters, each with a color and one behind it,
-- that becomes lines for a terminal.
local _, load = ...
local Canvas = load "plot/canvas"

local char, concat = utf8.char, table.concat
local floor, max, min = math.floor, math.max, math.min
local setmetatable = setmetatable

local Screen = {}
Screen.__index = Screen

function Screen.new(width, height)
  return setmetatable({ width = width, height = height, letters = {},
                        front = {}, back = {} }, Screen)
end

-- One letter at (x, y), from 1; what is outside is cut off.
function Screen:put(x, y, letter, front, back)
  if x < 1 or y < 1 or x > self.width or y > self.height then return end
  local i = (y - 1) * self.width + x
  self.letters[i] = letter
  if front then self.front[i] = front end
  if back then self.back[i] = back end
end

-- Text from x on, or that ends there (across 1), or stands around it (0.5).
function Screen:write(x, y, text, front, across, back)
  x = x - floor((utf8.len(text) - 1) * (across or 0) + 0.5)
  for _, code in utf8.codes(text) do
    self:put(x, y, char(code), front, back)
    x = x + 1
  end
end

function Screen:copy(other, x, y)
  for v = 1, other.height do
    for u = 1, other.width do
      local i = (v - 1) * other.width + u
      if other.letters[i] then
        self:put(x + u - 1, y + v - 1, other.letters[i], other.front[i],
                 other.back[i])
      end
    end
  end
end

-- {======================================================
-- Images
-- =======================================================

-- u8 (h, w, 3) as (rows, columns, 3).
local function resized(image, columns, rows)
  local c = Canvas.new(columns, rows, true)
  c:image(0, 0, columns, rows, image)
  return c:rgb()
end
Screen.resized = resized

local shades = { [0] = " ", ".", ":", "-", "=", "+", "*", "#", "%", "@" }

-- A letter for how light a color is, from 0 to 255.
function Screen.shade(light) return shades[min(9, floor(light / 25.6))] end

-- An image in columns and half lines (points): blocks whose upper half has
-- one color and whose lower half another; in shades where there is no color.
function Screen:image(x, y, columns, points, image, color)
  local lines = (points + 1) // 2
  if not color then
    local rgb = resized(image, columns, lines):to "f32":mean(3):totable()
    for v = 1, lines do
      for u = 1, columns do
        self:put(x + u - 1, y + v - 1, Screen.shade(rgb[v][u]))
      end
    end
    return
  end
  local rgb = resized(image, columns, points):totable()
  local function at(u, v)
    local p = rgb[v] and rgb[v][u]
    return p and (p[1] << 16 | p[2] << 8 | p[3])
  end
  for v = 1, lines do
    for u = 1, columns do
      self:put(x + u - 1, y + v - 1, "▀", at(u, 2 * v - 1), at(u, 2 * v))
    end
  end
end

-- }======================================================

-- {======================================================
-- Lines
-- =======================================================

-- The nearest of the 216 colors of a terminal of 256.
local function index(c)
  local function part(v) return floor((v & 255) * 5 / 255 + 0.5) end
  return 16 + 36 * part(c >> 16) + 6 * part(c >> 8) + part(c)
end

local function sgr(kind, c, mode)
  if not c then return kind == 38 and "39" or "49" end
  if mode == "256" then return ("%d;5;%d"):format(kind, index(c)) end
  return ("%d;2;%d;%d;%d"):format(kind, c >> 16, c >> 8 & 255, c & 255)
end

-- How many columns of line y are used.
local function used(s, y)
  local x = s.width
  while x > 0 do
    local i = (y - 1) * s.width + x
    if s.back[i] or s.letters[i] and s.letters[i] ~= " " then return x end
    x = x - 1
  end
  return 0
end

-- Its text; mode: nil without colors, "256" or "true" (of 24 bits).
function Screen:text(mode)
  local out = {}
  for y = 1, self.height do
    local line, front, back = {}, nil, nil
    for x = 1, used(self, y) do
      local i = (y - 1) * self.width + x
      local f, b = self.front[i], self.back[i]
      if mode and (f ~= front or b ~= back) then
        line[#line + 1] = "\27[" .. sgr(38, f, mode) .. ";" ..
                          sgr(48, b, mode) .. "m"
        front, back = f, b
      end
      line[#line + 1] = self.letters[i] or " "
    end
    if front or back then line[#line + 1] = "\27[0m" end
    out[y] = concat(line)
  end
  return concat(out, "\n") .. "\n"
end

-- }======================================================

-- Cuts a text to n letters.
function Screen.cut(text, n)
  if utf8.len(text) <= n then return text end
  if n < 3 then return text:sub(1, utf8.offset(text, max(n, 0) + 1) - 1) end
  return text:sub(1, utf8.offset(text, n - 1) - 1) .. ".."
end

return Screen
