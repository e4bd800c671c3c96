-- canvas.lua - what pictures are drawn on: the engine's canvas with places in
-- pixels from the top left corner, x to the right and y down.
local fnn, load, internals = ...
local colors = load "plot/colors"
local raw = internals.canvas

local floor, max = math.floor, math.max
local setmetatable = setmetatable
local bytes = { dtype = "u8", device = "cpu" }

local Canvas = {}
Canvas.__index = Canvas

-- The height of capitals and what hangs under the line, of a size of 1.
Canvas.capital, Canvas.descent = 0.73, 0.24

-- A canvas without pixels, which can only measure: for layouts.
function Canvas.measure(plain)
  return setmetatable({ plain = plain }, Canvas)
end

function Canvas.new(width, height, plain)
  local c = Canvas.measure(plain)
  c.width, c.height = width, height
  c.pixels = fnn.full({ height, width, 4 }, 255, bytes)
  c.mask = fnn.zeros({ height, width }, bytes)
  return c
end

-- The name of what draws.
function Canvas.body(plain) return raw.body(plain) end

function Canvas:text_width(text, size, bold)
  return raw.text_width(self.plain, size, bold, text)
end

-- The text, or its begin with two dots, no wider than room.
function Canvas:shorten(text, size, bold, room)
  if self:text_width(text, size, bold) <= room then return text end
  local n = utf8.len(text)
  while n > 1 do
    n = n - max(1, n // 8)
    local short = text:sub(1, utf8.offset(text, n + 1) - 1) .. ".."
    if self:text_width(short, size, bold) <= room then return short end
  end
  return ""
end

-- Text whose line is at (x, y) as far as align says: across 0 (begins there),
-- 0.5 or 1, and up 0 (the base line), 0.5 or 1 (the top of capitals); of
-- upward text along itself, and to its left.
function Canvas:text(x, y, text, o)
  if text == "" then return end
  local size = o.size
  local along = -(o.across or 0) * self:text_width(text, size, o.bold)
  local up = (o.up or 0) * self.capital * size
  if o.upward then x, y = x + up, y - along else x, y = x + along, y + up end
  raw.text(self.pixels, self.mask, self.plain, x, y, text,
           o.color or colors.ink, 1, size, o.upward, o.bold)
end

function Canvas:rect(x0, y0, x1, y1, color, alpha)
  raw.rect(self.pixels, self.plain, x0, y0, x1, y1, color, alpha or 1)
end

-- The outline of a rectangle, inside it.
function Canvas:frame(x0, y0, x1, y1, color, width)
  self:rect(x0, y0, x1, y0 + width, color)
  self:rect(x0, y1 - width, x1, y1, color)
  self:rect(x0, y0 + width, x0 + width, y1 - width, color)
  self:rect(x1 - width, y0 + width, x1, y1 - width, color)
end

-- Thin lines along whole pixels.
function Canvas:across(x0, x1, y, color)
  y = floor(y)
  self:rect(x0, y, x1, y + 1, color)
end

function Canvas:down(x, y0, y1, color)
  x = floor(x)
  self:rect(x, y0, x + 1, y1, color)
end

-- A line through points, x and y f64 (n); box { x0, y0, x1, y1 } cuts it off.
function Canvas:lines(x, y, o, box)
  raw.lines(self.pixels, self.mask, self.plain, x, y, o.color, o.alpha or 1,
            o.width, o.dash or 0, box[1], box[2], box[3], box[4])
end

function Canvas:marks(x, y, o, box)
  raw.marks(self.pixels, self.mask, self.plain, x, y, o.color, o.alpha or 1,
            o.radius, o.shape, box[1], box[2], box[3], box[4])
end

-- u8 (h, w, 3) over a rectangle, cut off by a box if there is one.
function Canvas:image(x0, y0, x1, y1, image, box)
  box = box or { 0, 0, self.width, self.height }
  raw.image(self.pixels, x0, y0, x1, y1, image:contiguous(), box[1], box[2],
            box[3], box[4])
end

-- What has been drawn, u8 (h, w, 3).
function Canvas:rgb()
  return self.pixels:narrow(3, 1, 3):flip(3):contiguous()
end

return Canvas
