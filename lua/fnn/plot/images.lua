-- images.lua - plot.images: pictures side by side, with texts under them.
local fnn, load = ...
local axes = load "plot/axes"
local colors = load "plot/colors"
local data = load "plot/data"
local options = load "data/options"

local raise, check = options.raise, options.check
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local sqrt = math.sqrt
local ipairs = ipairs

local images = {}

local text_size, gap, frame = 13, 12, 4
local shown_max = 10000

-- Images as bytes (n, h, w, 3): of (n, h, w) or (n, 1 or 3, h, w), floats
-- from 0 to 1 or bytes.
local function as_bytes(x)
  if not fnn.is_tensor(x) or x:ndim() < 3 or x:ndim() > 4 or
     x:numel() == 0 then
    raise("images: expected images (n, h, w) or (n, channels, h, w), got %s",
          data.described(x))
  end
  if x:ndim() == 3 then x = x:unsqueeze(2) end
  local channels = x:size(2)
  if channels ~= 1 and channels ~= 3 then
    raise("images: expected 1 or 3 channels, got %d", channels)
  end
  if #x > shown_max then
    raise("images: %d images are more than %d", #x, shown_max)
  end
  x = x:detach():to "cpu"
  if x:dtype() ~= "u8" then
    x = x:to "f32"
    x = fnn.where(x:isnan(), fnn.zeros({ 1 }, { device = "cpu" }), x)
    x = (x:clamp(0, 1) * 255):round():to "u8"
  end
  return x:permute(1, 3, 4, 2):expand(#x, x:size(3), x:size(4), 3)
end

-- The i-th of a list or a tensor as text, or nil.
local function text_of(list, i)
  if not list then return nil end
  local v = list[i]
  if v == nil or v == false then return nil end
  return v == true and "" or data.text("images: labels", v)
end

-- The texts of each image: the one under it, the true one where it is wrong.
local function captions(n, o)
  local list = {}
  for i = 1, n do
    local label, truth = text_of(o.labels, i), text_of(o.wrong, i)
    list[i] = { label = label or "", wrong = truth ~= nil,
                second = truth and truth ~= "" and "is " .. truth or "" }
  end
  return list
end

local defaults = { labels = false, wrong = false, columns = false,
                   scale = false, title = false, width = false,
                   height = false }
local types = { labels = "any", wrong = "any", columns = "number",
                scale = "number", title = "any", width = "number",
                height = "number" }

function images.images(given)
  local list, named = data.split("images", given)
  local o = check("images", named, defaults, types)
  local x = as_bytes(data.only("images", list))
  local n, side = #x, max(x:size(2), x:size(3))
  local scale = data.size("images: option 'scale'", o.scale, 1, 64)
  local columns = data.size("images: option 'columns'", o.columns, 1, 1024)
  return {
    kind = "images", images = x, captions = captions(n, o),
    scale = scale or max(1, ceil(72 / side)),
    columns = min(n, columns or ceil(sqrt(n * 1.5))),
    title = data.text("images: option 'title'", o.title),
    width = data.size("images: option 'width'", o.width, 64, data.side_max),
    height = data.size("images: option 'height'", o.height, 48,
                       data.side_max),
  }
end

-- How many lines of text are under the images of each row, and how wide the
-- widest is.
local function text_room(c, p)
  local widest, lines = 0, {}
  for i, t in ipairs(p.captions) do
    widest = max(widest, c:text_width(t.label, text_size, t.wrong),
                 c:text_width(t.second, text_size))
    local row = (i - 1) // p.columns + 1
    lines[row] = max(lines[row] or 0, t.second ~= "" and 2 or
                                      t.label ~= "" and 1 or 0)
  end
  return min(widest, 160), lines
end

-- Where the rows are, and how many pixels all take, of images k times their
-- size.
local function layout(c, p, k)
  local widest, lines = text_room(c, p)
  local l = { w = floor(p.images:size(3) * k), h = floor(p.images:size(2) * k),
              tops = {} }
  l.cell_w = ceil(max(l.w + 2 * frame, widest))
  local y = gap + (p.title ~= "" and axes.line(axes.size.title) or 0)
  for row, n in ipairs(lines) do
    l.tops[row] = y
    y = y + l.h + 2 * frame + (n > 0 and n * axes.line(text_size) + 2 or 0) +
        gap
  end
  l.width, l.height = gap + p.columns * (l.cell_w + gap), y
  return l
end

function images.size(p, _, c)
  local l = layout(c, p, p.scale)
  local title = c:text_width(p.title, axes.size.title, true)
  local w = max(l.width, min(ceil(title) + 2 * gap, 720))
  if max(w, l.height) > data.side_max and not (p.width and p.height) then
    raise("images: %d by %d pixels are too many (at most %d a side)", w,
          l.height, data.side_max)
  end
  return p.width or w, p.height or l.height
end

local function draw_cell(c, l, x, y, image, t)
  local left = x + floor((l.cell_w - l.w) / 2)
  local thick = t.wrong and frame - 1 or 1
  y = y + frame
  c:frame(left - thick, y - thick, left + l.w + thick, y + l.h + thick,
          t.wrong and colors.wrong or colors.grey, thick)
  c:image(left, y, left + l.w, y + l.h, image)
  local middle, below = x + l.cell_w / 2, y + l.h + frame + 5
  local function write(text, row, color, bold)
    text = c:shorten(text, text_size, bold, l.cell_w + gap - 4)
    c:text(middle, below + row * axes.line(text_size), text,
           { size = text_size, across = 0.5, up = 1, color = color,
             bold = bold })
  end
  write(t.label, 0, t.wrong and colors.wrong or colors.ink, t.wrong)
  write(t.second, 1, colors.ink)
end

function images.draw(p, c, x, y, w, h)
  local k = p.scale
  local l = layout(c, p, k)
  -- In less room than they want images are made smaller.
  for _ = 1, 40 do
    if l.width <= w and l.height <= h then break end
    k = k * 0.9
    l = layout(c, p, k)
  end
  if l.w < 1 or l.h < 1 then
    raise("images: %d by %d pixels leave no room to draw in", w, h)
  end
  axes.title(c, x + gap, y + gap, w - 2 * gap, p.title)
  for i = 0, #p.images - 1 do
    draw_cell(c, l, x + gap + i % p.columns * (l.cell_w + gap),
              y + l.tops[i // p.columns + 1],
              p.images[i + 1], p.captions[i + 1])
  end
end

return images
