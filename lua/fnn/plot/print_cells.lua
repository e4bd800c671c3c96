-- print_cells.lua - matrices and images in a terminal: blocks of two colors a
-- letter, or shades; a confusion matrix as a table of its counts.
local _, load = ...
local Screen = load "plot/screen"
local colors = load "plot/colors"
local ticks = load "plot/ticks"

local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local ipairs = ipairs

local cells = {}

local function widest(list, most)
  local n = 0
  for _, text in ipairs(list) do n = max(n, min(utf8.len(text), most)) end
  return n
end

-- {======================================================
-- Heatmaps
-- =======================================================

-- The columns of a matrix: k for each of its own, or what there is; and half
-- lines.
local function cell_room(p, columns, lines)
  local h, w = p.share:size(1), p.share:size(2)
  for _, k in ipairs { 4, 2, 1 } do
    if w * k <= columns and h * k <= 2 * lines then return w * k, h * k, k end
  end
  local k = min(columns / w, 2 * lines / h)
  return max(1, floor(w * k)), max(1, floor(h * k)), k
end

-- The labels on the left, cut; of numbers the ends.
local function side_labels(p)
  local f = p.frame
  if f.y.names then return f.y.names, min(16, widest(f.y.names, 16)) end
  local list = { ticks.short(f.y.hi), ticks.short(f.y.lo) }
  return list, widest(list, 16)
end

-- Of cells that are counted each how many have a label: 1, 2, 5, 10 ...
local function step_of(scale, n, room)
  if not scale.counted or room >= 1 then return 1 end
  local m, e = ticks.step(n, n * room)
  return max(1, floor(m * 10 ^ e + 0.5))
end

local function write_side(screen, p, left, top, points, k)
  local names, ends = side_labels(p), not p.frame.y.names
  local lines = (points + 1) // 2
  if ends then
    screen:write(left - 2, top, names[1], nil, 1)
    if lines > 1 then
      screen:write(left - 2, top + lines - 1, names[2], nil, 1)
    end
    return
  end
  local free, each = 0, step_of(p.frame.y, #names, k / 2)
  for i, name in ipairs(names) do
    local y = top + floor((i - 0.5) * k / 2 - 0.01)
    if i % each == 0 and y > free and y < top + lines then
      screen:write(left - 2, y, Screen.cut(name, 16), nil, 1)
      free = y
    end
  end
end

-- Upright where names are wider than cells; returns how many lines it takes.
local function below_lines(p, k)
  local f = p.frame
  if not f.x.names or f.x.counted then return 1 end
  local n = widest(f.x.names, 10)
  return (n < k or k < 1) and 1 or n
end

local function write_below(screen, p, left, y, columns, k)
  local f = p.frame
  if not f.x.names then
    local lo, hi = ticks.short(f.x.lo), ticks.short(f.x.hi)
    screen:write(left, y, lo)
    if columns > #lo + #hi then
      screen:write(left + columns - 1, y, hi, nil, 1)
    end
    return
  end
  local tall, free = below_lines(p, k), 0
  local each = step_of(f.x, #f.x.names, k / (#f.x.names[#f.x.names] + 1))
  for i, name in ipairs(f.x.names) do
    local x = left + floor((i - 0.5) * k)
    if tall > 1 then
      local v = y
      for _, code in utf8.codes(Screen.cut(name, 10)) do
        screen:put(x, v, utf8.char(code))
        v = v + 1
      end
    else
      local n = utf8.len(name)
      local first = x - floor((n - 1) / 2 + 0.5)
      if i % each == 0 and first > free and first + n - 1 <= screen.width then
        screen:write(first, y, name)
        free = first + n
      end
    end
  end
end

local function write_bar(screen, p, y, left, color)
  local lo, hi = ticks.short(p.lo), ticks.short(p.hi)
  screen:write(left, y, lo)
  local x = left + #lo + 1
  for i = 0, 15 do
    local c = colors.at(p.colors, i / 15)
    if color then screen:put(x + i, y, " ", nil, c)
    else screen:put(x + i, y, Screen.shade(i * 17)) end
  end
  screen:write(x + 17, y, hi)
end

function cells.heatmap(p, width, height, color)
  local f = p.frame
  local _, label = side_labels(p)
  local left = label + 2
  local above = (f.title ~= "" and 1 or 0) + (f.ylabel ~= "" and 1 or 0)
  local columns, points, k = cell_room(p, max(1, width - left + 1),
                                       (height or 44) - above - 3)
  local lines = (points + 1) // 2
  local below = below_lines(p, k)
  local total = above + lines + below + (f.xlabel ~= "" and 1 or 0) +
                (p.bar and 1 or 0)
  local screen = Screen.new(width, total)
  screen:write(1, 1, Screen.cut(f.title, width))
  if f.ylabel ~= "" then
    screen:write(1, above, Screen.cut(f.ylabel, width))
  end
  -- Shades are of the number, not of its color.
  local image = colors.image(color and p.colors or "grey", p.share)
  screen:image(left, above + 1, columns, points, image, color)
  write_side(screen, p, left, above + 1, points, k)
  write_below(screen, p, left, above + lines + 1, columns, k)
  if f.xlabel ~= "" then
    screen:write(left, above + lines + below + 1,
                 Screen.cut(f.xlabel, max(1, width - left)))
  end
  if p.bar then write_bar(screen, p, total, left, color) end
  return screen
end

-- }======================================================

-- {======================================================
-- Confusion
-- =======================================================

function cells.confusion(p, width, height, color)
  local n, names = p.matrix:size(1), p.frame.x.names
  local label = max(widest(names, 16), utf8.len(p.frame.ylabel))
  local column
  for _, most in ipairs { 16, 12, 8 } do
    column = max(widest(p.texts or {}, 12), widest(names, most)) + 2
    if label + 1 + n * column <= width then break end
  end
  if not p.texts or label + 1 + n * column > width then
    return cells.heatmap(p, width, height, color)
  end
  local top = p.frame.title ~= "" and 1 or 0
  local screen = Screen.new(width, top + 2 + n)
  screen:write(1, 1, Screen.cut(p.frame.title, width))
  screen:write(label + 2, top + 1,
               Screen.cut(p.frame.xlabel, width - label - 1))
  screen:write(1, top + 2, Screen.cut(p.frame.ylabel, label))
  local share = p.share:totable()
  for i = 1, n do
    local right = label + 1 + i * column
    screen:write(right - 1, top + 2, Screen.cut(names[i], column - 1), nil, 1)
    screen:write(label, top + 2 + i, Screen.cut(names[i], 16), nil, 1)
    for j = 1, n do
      local x, y = label + 1 + j * column, top + 2 + i
      local back = color and colors.at(p.colors, share[i][j])
      local ink = back and (colors.is_dark(back) and colors.paper or
                            colors.ink)
      for u = x - column + 1, x do screen:put(u, y, " ", ink, back) end
      local text = p.texts[(i - 1) * n + j]
      if text == "0" and not color then text = "." end
      screen:write(x - 1, y, text, ink, 1, back)
    end
  end
  return screen
end

-- }======================================================

-- {======================================================
-- Images
-- =======================================================

local images_width, rows_shown = 32, 8

function cells.images(p, width, height, color)
  local n, h, w = #p.images, p.images:size(2), p.images:size(3)
  local columns = w >= 20 and min(w, images_width) or w * max(1, 20 // w)
  columns = min(columns, width)
  local points = min(max(1, floor(h * columns / w + 0.5)), 1000)
  local lines = (points + 1) // 2
  local texts = 0
  for _, t in ipairs(p.captions) do
    texts = max(texts, t.second ~= "" and 2 or t.label ~= "" and 1 or 0)
  end
  local across = max(1, min(p.columns, (width + 2) // (columns + 2)))
  local each = lines + texts + 1
  local top = p.title ~= "" and 1 or 0
  local most = height and max(1, (height - top) // each) or rows_shown
  local rows = min(ceil(n / across), most)
  local left_out = n - rows * across
  local screen = Screen.new(width, top + rows * each - 1 +
                                   (left_out > 0 and 1 or 0))
  screen:write(1, 1, Screen.cut(p.title, width))
  for i = 0, min(n, rows * across) - 1 do
    local x, y = i % across * (columns + 2) + 1, top + i // across * each + 1
    local t = p.captions[i + 1]
    local red = color and t.wrong and colors.wrong or nil
    local label = t.label
    if t.wrong and not color then label = label .. " (wrong)" end
    screen:image(x, y, columns, points, p.images[i + 1], color)
    screen:write(x + columns // 2, y + lines,
                 Screen.cut(label, columns + 1), red, 0.5)
    screen:write(x + columns // 2, y + lines + 1,
                 Screen.cut(t.second, columns + 1), nil, 0.5)
  end
  if left_out > 0 then
    screen:write(1, screen.height, ("and %d more"):format(left_out))
  end
  return screen
end

-- }======================================================

return cells
