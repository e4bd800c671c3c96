-- matrix.lua - plot.heatmap and plot.confusion: a matrix as colored cells.
local _, load = ...
local axes = load "plot/axes"
local colors = load "plot/colors"
local data = load "plot/data"
local options = load "data/options"
local points = load "plot/points"
local ticks = load "plot/ticks"
local xy = load "plot/xy"

local raise, check = options.raise, options.check
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local numbers = xy.numbers
local ipairs, tostring = ipairs, tostring

local matrix = {}
local cells_max = 1 << 26
local bar_width, bar_gap = 16, 16
local thinnest = 24  -- pixels across or down that a row of cells has

-- {======================================================
-- Reading
-- =======================================================

-- The scale of n cells, with names, or counted from first.
local function cells_of(what, list, n, first)
  local names = data.texts(what, list)
  if names and #names ~= n then
    raise("%s: %d names for %d cells", what, #names, n)
  end
  local scale = { names = names or {}, counted = not names }
  if not names then
    for i = 1, n do scale.names[i] = tostring(i - 1 + (first or 1)) end
  end
  return scale
end

-- The numbers that the ends of the colors stand for.
local function ends(o, op, m)
  local limits = data.limits(op .. ": option 'range'", o.range)
  if limits then return limits[1], limits[2] end
  local lo, hi = data.range { m }
  if not lo then return 0, 1 end
  if o.colors == "diverging" then
    local far = max(math.abs(lo), math.abs(hi))
    lo, hi = -far, far
  end
  if hi - lo < data.near then lo, hi = lo - 0.5, hi + 0.5 end
  return lo, hi
end

local defaults = { title = false, xlabel = false, ylabel = false,
                   xlabels = false, ylabels = false, extent = false,
                   colors = "viridis", range = false, values = false,
                   width = false, height = false }
local types = { title = "any", xlabel = "any", ylabel = "any",
                xlabels = "any", ylabels = "any", extent = "table",
                range = "table", width = "number", height = "number" }

local function new(op, m, o)
  local p = { kind = op, matrix = m, colors = colors.check_map(op, o.colors) }
  if m:numel() > cells_max then
    raise("%s: %d cells are more than %d", op, m:numel(), cells_max)
  end
  p.frame, p.width, p.height = xy.frame(op, o)
  p.lo, p.hi = ends(o, op, m)
  p.share = (m - p.lo) * (1 / (p.hi - p.lo))
  return p
end

function matrix.heatmap(given)
  local op = "heatmap"
  local list, named = data.split(op, given)
  local o = check(op, named, defaults, types)
  local p = new(op, data.matrix(op, data.only(op, list)), o)
  local h, w = p.matrix:size(1), p.matrix:size(2)
  if o.extent then
    if o.xlabels or o.ylabels then
      raise "heatmap: extent and names of cells exclude each other"
    end
    local e = points.extent_of(op, o.extent)
    p.frame.x, p.frame.y = { lo = e[1], hi = e[2] }, { lo = e[3], hi = e[4] }
    p.share = p.share:flip(1)  -- row 1 is the lowest
  else
    p.frame.x = cells_of(op .. ": xlabels", o.xlabels, w)
    p.frame.y = cells_of(op .. ": ylabels", o.ylabels, h)
  end
  p.bar = true
  if o.values then
    p.texts = {}
    for i, v in ipairs(p.matrix:reshape(-1):totable()) do
      p.texts[i] = ticks.short(v)
    end
  end
  return p
end

local confusion_defaults = { title = false, classes = false, colors = "blues",
                             xlabel = "predicted", ylabel = "true",
                             width = false, height = false, range = false }
local confusion_types = { title = "any", classes = "any", xlabel = "string",
                          width = "number", height = "number",
                          range = "table" }

-- Counts (true class, predicted class); colors are shares of the row.
function matrix.confusion(given)
  local op = "confusion"
  local list, named = data.split(op, given)
  local o = check(op, named, confusion_defaults, confusion_types)
  local m = data.matrix(op, data.only(op, list))
  if m:size(1) ~= m:size(2) then
    raise("confusion: expected as many rows as columns, got (%d, %d)",
          m:size(1), m:size(2))
  end
  if not m:isfinite():all():item() or m:lt(0):any():item() then
    raise "confusion: expected counts of 0 or more"
  end
  o.range = o.range or { 0, 1 }
  local p = new(op, m, o)
  p.share = m / m:sum(2, { keepdim = true }):clamp(1e-300, 1e300)
  if m:size(1) <= 40 then p.texts = {} end
  for i, v in ipairs(p.texts and m:reshape(-1):totable() or {}) do
    p.texts[i] = ticks.short(v)
  end
  p.frame.x = cells_of(op .. ": classes", o.classes, m:size(1), 0)
  p.frame.y = p.frame.x
  return p
end

-- }======================================================

-- {======================================================
-- Drawing
-- =======================================================

local cell_text = 12

-- The size of a cell, from what it must hold and how many there are.
local function cell_size(c, p)
  local h, w = p.matrix:size(1), p.matrix:size(2)
  local side = min(440 / max(h, w), 72)
  if p.texts then
    for _, text in ipairs(p.texts) do
      side = max(side, min(90, c:text_width(text, cell_text) + 10))
    end
    side = max(side, cell_text + 10)
  end
  return side >= 3 and floor(side) or side
end

local function bar_room(c, p)
  if not p.bar then return 0 end
  local w = 0
  for _, t in ipairs(ticks.linear(p.lo, p.hi, 5)) do
    w = max(w, c:text_width(t.label, axes.size.tick))
  end
  return bar_gap + bar_width + 8 + w
end

-- The size of a picture whose cells take so many pixels: what is around them
-- depends on how much they leave.
local function around(c, p, wide, tall)
  local w, h = wide + 100, tall + 100
  for _ = 1, 3 do
    local l = axes.layout(c, p.frame, 0, 0, w, h, bar_room(c, p))
    w, h = wide + w - (l.right - l.left), tall + h - (l.bottom - l.top)
  end
  return ceil(w), ceil(h)
end

function matrix.size(p, inside, c)
  local wide, tall = 480, 400
  if p.frame.x.names then
    local side = cell_size(c, p)
    wide = max(side * p.matrix:size(2), thinnest)
    tall = max(side * p.matrix:size(1), thinnest)
  end
  local w, h = around(c, p, wide, tall)
  local title = c:text_width(p.frame.title, axes.size.title, true)
  w = max(w, min(ceil(title) + 2 * axes.pad, inside and 520 or 720), 160)
  return p.width or min(w, data.side_max),
         p.height or min(max(h, 120), data.side_max)
end

local function draw_texts(c, p, box)
  local h, w = p.matrix:size(1), p.matrix:size(2)
  local dx, dy = (box[3] - box[1]) / w, (box[4] - box[2]) / h
  local size = cell_text
  local widest = 0
  for _, text in ipairs(p.texts) do
    widest = max(widest, c:text_width(text, size))
  end
  if widest > 0 then size = min(size, size * (dx - 4) / widest) end
  size = min(size, dy * 0.7)
  if size < 6 then return end
  local share = p.share:reshape(-1):totable()
  for i = 0, h * w - 1 do
    local row, column = i // w, i % w
    local color = colors.at(p.colors, share[i + 1])
    local ink = colors.is_dark(color) and colors.paper or colors.ink
    local faint = p.kind == "confusion" and p.texts[i + 1] == "0"
    c:text(box[1] + (column + 0.5) * dx, box[2] + (row + 0.5) * dy,
           p.texts[i + 1], { size = size, across = 0.5, up = 0.5,
                             color = faint and colors.grey or ink })
  end
end

local function draw_bar(c, p, x, top, bottom)
  local list = {}
  for i = 255, 0, -1 do list[256 - i] = { i / 255 } end
  c:image(x, top, x + bar_width, bottom,
          colors.image(p.colors, data.matrix("bar", list)))
  c:frame(x, top, x + bar_width, bottom, colors.axis, 1)
  local span = p.hi - p.lo
  for _, t in ipairs(ticks.linear(p.lo, p.hi, (bottom - top) / 45)) do
    local y = bottom - (t.at - p.lo) / span * (bottom - top)
    y = min(y, bottom - 1)
    c:across(x + bar_width, x + bar_width + 4, y, colors.axis)
    c:text(x + bar_width + 7, floor(y) + 0.5, t.label,
           { size = axes.size.tick, up = 0.5 })
  end
end

-- Cells are squares where names stand beside them, unless a long row of them
-- would then be a line.
local function square(p, l)
  if not p.frame.x.names then return end
  local h, w = p.matrix:size(1), p.matrix:size(2)
  local wide, tall = l.right - l.left, l.bottom - l.top
  local side = min(wide / w, tall / h)
  if side >= 3 then side = floor(side) end
  l.right = l.left + max(floor(side * w), min(wide, thinnest))
  l.bottom = l.top + max(floor(side * h), min(tall, thinnest))
end

function matrix.draw(p, c, x, y, w, h)
  local l = axes.layout(c, p.frame, x, y, w, h, bar_room(c, p))
  square(p, l)
  local box = axes.inner(l)
  if box[3] - box[1] < 4 or box[4] - box[2] < 4 then
    raise("%s: %d by %d pixels leave no room to draw in", p.kind, w, h)
  end
  c:image(box[1], box[2], box[3], box[4], colors.image(p.colors, p.share))
  c:frame(box[1] - 1, box[2] - 1, box[3] + 1, box[4] + 1, colors.axis, 1)
  if p.texts then draw_texts(c, p, box) end
  if p.bar then draw_bar(c, p, box[3] + bar_gap, box[2], box[4]) end
  p.frame.bare = true
  if p.frame.xlabel ~= "" then
    -- The label follows cells that are less high than their room.
    local below = l.upright and 0 or axes.line(axes.size.tick) + 6
    if not l.upright then
      l.label_bottom = min(l.label_bottom,
                           l.bottom + below + axes.line(axes.size.label))
    end
  end
  axes.draw(c, l, numbers)
end

-- }======================================================

return matrix
