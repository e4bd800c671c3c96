-- grid.lua - io.write_grid: images in a PNG, side by side, with their labels.
local fnn, load = ...
local io = fnn.io
local options = load "data/options"

local tostring, type = tostring, type
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local math_type, sqrt = math.type, math.sqrt
local raise, check = options.raise, options.check

local ink, grey, red = 0x202020, 0xb8b8b8, 0xd0021b
local letter, line = 6, 10  -- pixels that a letter takes at scale 1
local text_scale, gap, frame = 2, 14, 4

-- Images as bytes (n, h, w, 3): of (n, h, w) or (n, 1 or 3, h, w), floats
-- from 0 to 1 or bytes.
local function as_bytes(x)
  if not fnn.is_tensor(x) or x:ndim() < 3 or x:ndim() > 4 or #x == 0 then
    raise "write_grid: expected images (n, h, w) or (n, channels, h, w)"
  end
  if x:ndim() == 3 then x = x:unsqueeze(2) end
  local channels = x:size(2)
  if channels ~= 1 and channels ~= 3 then
    raise("write_grid: expected 1 or 3 channels, got %d", channels)
  end
  x = x:detach():to "cpu"
  if x:dtype() ~= "u8" then
    x = (x:to "f32":clamp(0, 1) * 255):round():to "u8"
  end
  return x:permute(1, 3, 4, 2):expand(#x, x:size(3), x:size(4), 3)
end

-- x (n, h, w, 3) with every pixel k by k.
local function enlarge(x, k)
  local n, h, w = x:size(1), x:size(2), x:size(3)
  return x:unsqueeze(3):unsqueeze(5):expand(n, h, k, w, k, 3)
          :reshape(n, h * k, w * k, 3)
end

-- The i-th of a list or a tensor as text, or nil.
local function text_of(list, i)
  if not list then return nil end
  local v = list[i]
  if v == nil or v == false then return nil end
  return v == true and "" or tostring(v)
end

-- The texts of each image: the one under it, the true one where it is wrong.
local function captions(n, o)
  local list, widest, lines = {}, 0, 0
  for i = 1, n do
    local label, truth = text_of(o.labels, i), text_of(o.wrong, i)
    local second = truth and truth ~= "" and "is " .. truth or nil
    list[i] = { label = label or "", second = second, wrong = truth ~= nil }
    widest = max(widest, #list[i].label, second and #second or 0)
    lines = max(lines, second and 2 or label and 1 or 0)
  end
  return list, widest, lines
end

local function draw_centred(canvas, x, width, y, text, color)
  local at = x + floor((width - #text * letter * text_scale + text_scale) / 2)
  io.draw_text(canvas, at, y, text, color, text_scale)
end

-- Draws one image, its frame and its texts into the cell at (x, y).
local function draw_cell(canvas, x, y, width, image, caption)
  local h, w = image:size(1), image:size(2)
  local left = x + floor((width - w) / 2)
  local color = caption.wrong and red or grey
  local thick = caption.wrong and frame or 1
  io.draw_rect(canvas, left - thick, y - thick, w + 2 * thick, h + 2 * thick,
               color, thick)
  canvas:narrow(1, y, h):narrow(2, left, w):copy_(image)
  local below = y + h + frame + 2
  draw_centred(canvas, x, width, below, caption.label,
               caption.wrong and red or ink)
  if caption.second then
    draw_centred(canvas, x, width, below + line * text_scale, caption.second,
                 ink)
  end
end

local defaults = { labels = false, wrong = false, columns = 0, scale = 0,
                   title = "" }
local types = { labels = "any", wrong = "any" }

local function count(name, v, n, default)
  if v == 0 then return default end
  if math_type(v) ~= "integer" or v < 1 or v > n then
    raise("write_grid: option '%s': expected 1 to %d, got %s", name, n,
          tostring(v))
  end
  return v
end

-- How many pixels the title and the cells take.
local function layout(n, images, o)
  local texts, widest, lines = captions(n, o)
  local columns = count("columns", o.columns, 1024, ceil(sqrt(n * 1.5)))
  local h, w = images:size(2), images:size(3)
  local width = max(w + 2 * frame, widest * letter * text_scale)
  local height = h + frame + 2 + lines * line * text_scale
  local top = gap + (o.title ~= "" and line * text_scale + gap or 0)
  columns = min(columns, n)
  return {
    texts = texts, columns = columns, width = width, height = height,
    top = top,
    canvas_width = max(gap + columns * (width + gap),
                       2 * gap + #o.title * letter * text_scale),
    canvas_height = top + ceil(n / columns) * (height + gap),
  }
end

-- io.write_grid(path, images, { labels =, wrong =, columns =, scale =,
-- title = }): see help/io.lua.
function io.write_grid(path, images, opts)
  local o = check("write_grid", opts, defaults, types)
  local x = as_bytes(images)
  local n, side = #x, max(x:size(2), x:size(3))
  x = enlarge(x, count("scale", o.scale, 64, max(1, ceil(72 / side))))
  if type(path) ~= "string" then raise "write_grid: expected a path" end
  local at = layout(n, x, o)
  local canvas = fnn.full({ at.canvas_height, at.canvas_width, 3 }, 255,
                          { dtype = "u8", device = "cpu" })
  io.draw_text(canvas, gap + 1, gap, o.title, ink, text_scale)
  for i = 0, n - 1 do
    draw_cell(canvas,
              gap + i % at.columns * (at.width + gap) + 1,
              at.top + i // at.columns * (at.height + gap) + 1,
              at.width, x[i + 1], at.texts[i + 1])
  end
  io.write_png(path, canvas)
end
