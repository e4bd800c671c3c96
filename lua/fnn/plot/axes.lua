-- axes.lua - the frame of a plot: its title, legend, axes and their marks,
-- laid out so that every label has room.
--
-- A frame is { title =, xlabel =, ylabel =, x = scale, y = scale,
-- legend = { { text =, color =, line =, dash =, shape = } ... } }; a scale is
-- { lo =, hi =, log = } as in ticks.lua, or { names = { ... } } of cells with
-- names, or { hidden = true }.
local _, load = ...
local Canvas = load "plot/canvas"
local colors = load "plot/colors"
local ticks = load "plot/ticks"

local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local ipairs = ipairs

local axes = {}

local size = { title = 16, label = 13, tick = 12, legend = 12 }
local pad, gap = 14, 7
local tick_length = 4
axes.size, axes.pad = size, pad

-- The height of a line of text, and what it takes with the space around.
local function line(points) return ceil(points * 1.45) end
axes.line = line

-- A title at (x, y), made small or short until it fits; returns the y below
-- one of the usual size.
function axes.title(c, x, y, room, text, points)
  if text == "" then return y end
  points = points or size.title
  while points > 12 and c:text_width(text, points, true) > room do
    points = points - 1
  end
  text = c:shorten(text, points, true, room)
  if c.pixels then
    c:text(x, y, text, { size = points, bold = true, up = 1 })
  end
  return y + line(size.title)
end

-- {======================================================
-- Legends
-- =======================================================

local sample, space = 24, 20

-- The entries' places: { { x, row, text } ... } in rows of a width, at most so
-- many.
local function legend_rows(c, legend, room, most)
  local x, row, places = 0, 0, {}
  for i, e in ipairs(legend) do
    local text = c:shorten(e.text, size.legend, false, room - sample - gap)
    local w = sample + gap + c:text_width(text, size.legend)
    if x > 0 and x + w > room then x, row = 0, row + 1 end
    places[i] = { x = x, row = row, text = text }
    x = x + w + space
  end
  local rows = #legend > 0 and row + 1 or 0
  if rows <= most then return places, rows end
  -- The last place that there is tells how many more there are.
  local n = #places
  while n > 0 and places[n].row >= most do n = n - 1 end
  if n > 0 then
    places[n].text, places[n].more = ("and %d more"):format(#legend - n + 1),
                                     true
  end
  for i = n + 1, #legend do places[i] = nil end
  return places, most
end

local function legend_sample(c, x, y, e, numbers)
  local box = { x - 4, y - 10, x + sample + 4, y + 10 }
  if e.fill then
    c:rect(x + 5, y - 6, x + sample - 5, y + 6, e.color, e.alpha)
    c:frame(x + 5, y - 6, x + sample - 5, y + 6, e.color, 1)
  elseif e.line then
    c:lines(numbers { x + 1, x + sample - 1 }, numbers { y, y },
            { color = e.color, width = e.line, dash = e.dash }, box)
  end
  if e.shape then
    c:marks(numbers { x + sample / 2 }, numbers { y },
            { color = e.color, radius = max(e.radius, 3.5),
              shape = e.shape }, box)
  end
end

local function draw_legend(c, x, y, legend, places, numbers)
  local tall = line(size.legend) + 2
  for i, p in ipairs(places) do
    local middle = floor(y + p.row * tall + tall / 2) + 0.5
    if not p.more then legend_sample(c, x + p.x, middle, legend[i], numbers) end
    c:text(x + p.x + (p.more and 0 or sample + gap), middle, p.text,
           { size = size.legend, up = 0.5 })
  end
end

-- }======================================================

-- 1, 2, 5, 10 ...: each how many of n there are marks, for count of them.
local function times_of(n, count)
  if n <= count then return 1 end
  local m, e = ticks.step(n, count)
  return floor(m * 10 ^ e + 0.5)
end

-- Marks of a scale along so many pixels: { place =, label = } from 0 to 1.
local function marks_of(scale, pixels, each)
  if scale.hidden then return {}, {} end
  if scale.names then
    local n, list = #scale.names, {}
    -- Cells without names of their own are counted: 10, 20, 30.
    local k = scale.counted and max(1, times_of(n, pixels / each)) or 1
    for i = k, n, k do
      list[#list + 1] = { place = (i - 0.5) / n, label = scale.names[i] }
    end
    return list, {}
  end
  return ticks.of(scale, max(1, pixels / each))
end

local function widest(c, list)
  local w = 0
  for _, t in ipairs(list) do
    w = max(w, c:text_width(t.label, size.tick))
  end
  return w
end

-- Every k-th mark, k being the least for which labels of a size have room.
local function thin(list, pixels, taken)
  if #list < 2 then return list end
  local each = pixels * (list[2].place - list[1].place)
  local k, kept = max(1, ceil(taken / max(each, 1e-9))), {}
  if k == 1 then return list end
  for i = 1, #list, k do kept[#kept + 1] = list[i] end
  return kept
end

-- Marks below: fewer until no label meets the next.
local function fit_below(c, scale, pixels)
  for each = scale.counted and 25 or 80, 400, 25 do
    local list, minor = marks_of(scale, pixels, each)
    local right, good = -1e9, true
    for _, t in ipairs(list) do
      local half = c:text_width(t.label, size.tick) / 2
      local at = t.place * pixels
      if at - half < right + 8 then good = false end
      right = at + half
    end
    if good or each > 370 then return list, minor, false end
    if scale.names and not scale.counted then break end
  end
  -- Names that do not fit side by side stand upright.
  local list = marks_of(scale, pixels, 1)
  for _, t in ipairs(list) do
    t.label = c:shorten(t.label, size.tick, false, 110)
  end
  return thin(list, pixels, size.tick + 3), {}, true
end

-- Lays out a frame in the rectangle (x, y, w, h) of canvas c, which may only
-- measure.  extra: pixels kept free on the right.
function axes.layout(c, f, x, y, w, h, extra)
  local l = { frame = f, x = x + pad, y = y + pad, w = w - 2 * pad }
  local top = axes.title(Canvas.measure(c.plain), 0, l.y, l.w, f.title)
  l.legend_y = top
  l.legend, l.rows = legend_rows(c, f.legend or {}, l.w,
                                 max(1, floor(h * 0.2 / line(size.legend))))
  top = top + l.rows * (line(size.legend) + 2)
  l.top = ceil(top + (f.y.names and 0 or gap))
  local bottom = y + h - pad
  if f.xlabel ~= "" then bottom = bottom - line(size.label) end
  local below = line(size.tick) + tick_length + 2
  if f.x.hidden then below = 0 end
  l.bottom = floor(bottom - below)
  local tall = max(1, l.bottom - l.top)
  l.ymarks, l.yminor = marks_of(f.y, tall, f.y.names and 20 or 45)
  for _, t in ipairs(l.ymarks) do
    if f.y.names then
      t.label = c:shorten(t.label, size.tick, false, min(140, w * 0.3))
    end
  end
  l.ymarks = thin(l.ymarks, tall, size.tick + 3)
  local left = x + pad
  if f.ylabel ~= "" then left = left + line(size.label) + 3 end
  l.left = ceil(left + widest(c, l.ymarks) +
                (f.y.hidden and 0 or tick_length + 4))
  l.right = floor(x + w - pad - (extra or 0))
  -- The last label may stand out to the right.
  for _ = 1, 2 do
    l.xmarks, l.xminor, l.upright =
      fit_below(c, f.x, max(1, l.right - l.left))
    local last = l.xmarks[#l.xmarks]
    if last and not l.upright and not (extra and extra > 0) then
      local half = c:text_width(last.label, size.tick) / 2
      local out = l.left + last.place * (l.right - l.left) + half -
                  (x + w - pad)
      if out > 0 then l.right = floor(l.right - out) end
    end
  end
  if l.upright then
    l.bottom = floor(bottom - widest(c, l.xmarks) - tick_length - 5)
  end
  l.label_bottom = y + h - pad
  return l
end

-- Where the plot itself goes: { x0, y0, x1, y1 }, whole pixels.
function axes.inner(l) return { l.left, l.top, l.right, l.bottom } end

-- Lines behind the plot, at the marks.
function axes.grid(c, l)
  if not l.frame.y.names then
    for _, t in ipairs(l.ymarks) do
      c:across(l.left, l.right, l.bottom - t.place * (l.bottom - l.top),
               colors.grid)
    end
  end
  if not l.frame.x.names then
    for _, t in ipairs(l.xmarks) do
      c:down(l.left + t.place * (l.right - l.left), l.top, l.bottom,
             colors.grid)
    end
  end
end

local function place_y(l, place)
  if l.frame.y.names then return l.top + place * (l.bottom - l.top) end
  return l.bottom - place * (l.bottom - l.top)
end

local function draw_y(c, l)
  local small = { size = size.tick, across = 1, up = 0.5 }
  for _, t in ipairs(l.ymarks) do
    local y = place_y(l, t.place)
    if not l.frame.y.names then
      c:across(l.left - tick_length, l.left, y, colors.axis)
    end
    c:text(l.left - tick_length - 4, floor(y) + 0.5, t.label, small)
  end
  for _, place in ipairs(l.yminor) do
    c:across(l.left - 2, l.left, place_y(l, place), colors.axis)
  end
end

local function draw_x(c, l)
  for _, t in ipairs(l.xmarks) do
    local x = l.left + t.place * (l.right - l.left)
    if not l.frame.x.names then
      c:down(x, l.bottom, l.bottom + tick_length, colors.axis)
    end
    local y = l.bottom + tick_length + 4
    if l.upright then
      c:text(x, y, t.label, { size = size.tick, across = 1, up = 0.5,
                              upward = true })
    else
      c:text(floor(x) + 0.5, y, t.label, { size = size.tick, across = 0.5,
                                           up = 1 })
    end
  end
  for _, place in ipairs(l.xminor) do
    c:down(l.left + place * (l.right - l.left), l.bottom, l.bottom + 2,
           colors.axis)
  end
end

-- Everything around the plot; numbers makes f64 tensors of lists.
function axes.draw(c, l, numbers)
  local f = l.frame
  axes.title(c, l.x, l.y, l.w, f.title)
  draw_legend(c, l.x, l.legend_y, f.legend or {}, l.legend, numbers)
  if not f.x.names and not f.bare then
    c:down(l.left, l.top, l.bottom, colors.axis)
    c:across(l.left, l.right, l.bottom, colors.axis)
  end
  draw_y(c, l)
  draw_x(c, l)
  local tall, wide = l.bottom - l.top, l.right - l.left
  if f.xlabel ~= "" then
    local text = c:shorten(f.xlabel, size.label, false, l.w)
    local half = c:text_width(text, size.label) / 2
    local x = max(l.x + half, min(l.x + l.w - half, l.left + wide / 2))
    c:text(x, l.label_bottom - c.descent * size.label, text,
           { size = size.label, across = 0.5 })
  end
  if f.ylabel ~= "" then
    local room = max(tall, l.label_bottom - l.top)
    local text = c:shorten(f.ylabel, size.label, false, room)
    local half = c:text_width(text, size.label) / 2
    local y = max(l.top + half, min(l.label_bottom - half,
                                    l.top + tall / 2))
    c:text(l.x, y, text, { size = size.label, across = 0.5, up = 1,
                           upward = true })
  end
end

return axes
