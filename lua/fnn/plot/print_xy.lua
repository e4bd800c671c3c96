-- print_xy.lua - lines, points and bars in a terminal: on the dots of braille
-- letters, 2 by 4 a letter; the bars of one series in eighths of a letter.
--
-- Without colors lines end in a letter that the legend explains, and points
-- of several series are letters.
local fnn, load, internals = ...
local Screen = load "plot/screen"
local data = load "plot/data"
local ticks = load "plot/ticks"
local xy = load "plot/xy"
local raw = internals.canvas

local ceil, char, floor = math.ceil, utf8.char, math.floor
local max, min = math.max, math.min
local ipairs = ipairs

local letters = "abcdefghijklmnopqrstuvwxyz"
local point_letters = "ox+*#%@&"
-- Black is the one color that a dark terminal cannot show.
local function front_of(s, color)
  return color and s.color ~= 0 and s.color or nil
end

local blocks = { [0] = " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

-- The letter of the i-th series where there is no color; nil for the only one.
local function letter_of(p, i)
  if #p.series < 2 then return nil end
  local all = p.series[i].kind == "marks" and point_letters or letters
  i = (i - 1) % #all + 1
  return all:sub(i, i)
end

-- {======================================================
-- Around the plot
-- =======================================================

-- Legend entries in lines of a width: { { x =, line =, i = } ... }.
local function legend_of(p, width)
  local list, x, line = {}, 1, 1
  for i, s in ipairs(p.series) do
    if s.text ~= "" then
      local text = Screen.cut(s.text, max(width - 4, 1))
      local taken = utf8.len(text) + 3
      if x > 1 and x + taken > width then x, line = 1, line + 1 end
      list[#list + 1] = { x = x, line = line, i = i, text = text }
      x = x + taken + 2
    end
  end
  return list, #list > 0 and line or 0
end

local function write_legend(screen, p, list, y, color)
  for _, e in ipairs(list) do
    local s = p.series[e.i]
    local sign = not color and letter_of(p, e.i) or
                 s.kind == "marks" and "•" or s.kind == "bars" and "█" or "━"
    screen:put(e.x, y + e.line - 1, sign, front_of(s, color))
    if color and s.kind == "line" then
      screen:put(e.x + 1, y + e.line - 1, sign, front_of(s, color))
    end
    screen:write(e.x + 3, y + e.line - 1, e.text)
  end
end

local function has_lines(p)
  for _, s in ipairs(p.series) do
    if s.kind == "line" then return true end
  end
end

-- Where things are: lines above, the plot's first line and column, its size.
local function layout(p, width, height, color)
  local f, l = p.frame, {}
  l.legend, l.legend_lines = legend_of(p, width)
  l.legend_lines = min(l.legend_lines, max(1, height // 4))
  while #l.legend > 0 and l.legend[#l.legend].line > l.legend_lines do
    l.legend[#l.legend] = nil
  end
  l.legend_y = f.title ~= "" and 2 or 1
  l.label_y = l.legend_y + l.legend_lines
  l.top = l.label_y + (f.ylabel ~= "" and 1 or 0)
  l.lines = max(2, height - l.top - 1 - (f.xlabel ~= "" and 1 or 0))
  l.ymarks = ticks.of(f.y, max(1, l.lines / 3))
  local widest = 0
  for _, t in ipairs(l.ymarks) do widest = max(widest, #t.label) end
  l.left = widest + 3  -- the column after the axis
  l.margin = not color and has_lines(p) and #p.series > 1 and
             min(#p.series, 4) + 1 or 0
  l.columns = max(4, width - l.left + 1 - l.margin)
  l.xmarks = ticks.of(f.x, max(1, l.columns / 9))
  l.height = l.top + l.lines + 1 + (f.xlabel ~= "" and 1 or 0)
  return l
end

local function write_frame(screen, p, l)
  local f, axis, bottom = p.frame, l.left - 1, l.top + l.lines
  screen:write(1, 1, Screen.cut(f.title, screen.width))
  if f.ylabel ~= "" then
    screen:write(1, l.label_y, Screen.cut(f.ylabel, screen.width))
  end
  for y = l.top, bottom - 1 do screen:put(axis, y, "│") end
  screen:put(axis, bottom, "└")
  for x = l.left, l.left + l.columns - 1 do screen:put(x, bottom, "─") end
  for _, t in ipairs(l.ymarks) do
    local y = l.top + floor(((1 - t.place) * (4 * l.lines - 1) + 0.5) / 4)
    screen:put(axis, y, "┤")
    screen:write(axis - 1, y, t.label, nil, 1)
  end
  local free = 1
  for _, t in ipairs(l.xmarks) do
    local x = l.left + floor((t.place * (2 * l.columns - 1) + 0.5) / 2)
    local first = x - floor((#t.label - 1) / 2 + 0.5)
    first = max(1, min(first, screen.width - #t.label + 1))
    if first >= free then
      screen:put(x, bottom, "┬")
      screen:write(first, bottom + 1, t.label)
      free = first + #t.label + 1
    end
  end
  if f.xlabel ~= "" then
    local text = Screen.cut(f.xlabel, screen.width)
    local first = l.left + (l.columns - utf8.len(text)) // 2
    screen:write(max(1, min(first, screen.width - utf8.len(text) + 1)),
                 l.height, text)
  end
end

-- }======================================================

-- {======================================================
-- The plot
-- =======================================================

local function cells(l)
  return fnn.zeros({ l.lines, l.columns }, { dtype = "u8", device = "cpu" })
end

local function dots_of(p, l, x, y)
  return xy.places(x, p.frame.x, 0.5, 2 * l.columns - 0.5),
         xy.places(y, p.frame.y, 4 * l.lines - 0.5, 0.5)
end

-- Adds dots to those that are there; a letter in their place, if given.
local function put_cells(screen, l, set, masks, front, letter)
  for y, row in ipairs(set:totable()) do
    for x, bits in ipairs(row) do
      if bits ~= 0 then
        local i = (y - 1) * l.columns + x
        masks[i] = (masks[i] or 0) | bits
        screen:put(l.left + x - 1, l.top + y - 1,
                   letter or char(0x2800 + masks[i]), front)
      end
    end
  end
end

-- The line of the last point in sight, from 1; nil if there is none.
local function last_line(l, x, y)
  local seen = x:ge(0):logical_and(x:lt(2 * l.columns))
               :logical_and(y:ge(0)):logical_and(y:lt(4 * l.lines))
  local ys = y:masked_select(seen)
  return #ys > 0 and floor(ys[#ys] / 4) + 1 or nil
end

local function mark_end(screen, l, line, letter)
  if not line then return end
  for x = l.left + l.columns + 1, l.left + l.columns + l.margin - 1 do
    local i = (l.top + line - 2) * screen.width + x
    if not screen.letters[i] then
      screen:put(x, l.top + line - 1, letter)
      return
    end
  end
end

local function put_blocks(screen, p, l, s, color)
  local edges, y = s.x:totable(), s.y:totable()
  local first, bin = edges[1], (edges[#edges] - edges[1]) / #y
  local f = p.frame
  for x = 1, l.columns do
    local at = f.x.lo + (x - 0.5) / l.columns * (f.x.hi - f.x.lo)
    local v = y[floor((at - first) / bin) + 1]
    local share = v and v == v and (v - f.y.lo) / (f.y.hi - f.y.lo) or 0
    local eighths = floor(max(0, min(1, share)) * l.lines * 8 + 0.5)
    if share > 0 and v > 0 then eighths = max(eighths, 1) end
    for line = l.lines, 1, -1 do
      if eighths <= 0 then break end
      screen:put(l.left + x - 1, l.top + line - 1, blocks[min(8, eighths)],
                 front_of(s, color))
      eighths = eighths - 8
    end
  end
end

local function put_series(screen, p, l, i, masks, color)
  local s, set = p.series[i], cells(l)
  local letter = not color and letter_of(p, i)
  local x, y
  if s.kind == "bars" then
    if #p.series == 1 then return put_blocks(screen, p, l, s, color) end
    local line = xy.steps(s.x, s.y, p.frame.y.lo)
    x, y = dots_of(p, l, line.x, line.y)
  else
    x, y = dots_of(p, l, s.x, s.y)
  end
  raw.dots(set, s.kind ~= "marks", x, y)
  put_cells(screen, l, set, masks, front_of(s, color),
            s.kind == "marks" and letter or nil)
  if letter and s.kind ~= "marks" and l.margin > 0 then
    mark_end(screen, l, last_line(l, x, y), letter)
  end
end

-- What lies behind points: colors behind the letters.
local function put_background(screen, p, l)
  local b, f = p.background, p.frame
  local image = b.image
  local h, w = image:size(1), image:size(2)
  for y = 1, l.lines do
    for x = 1, l.columns do
      local u = f.x.lo + (x - 0.5) / l.columns * (f.x.hi - f.x.lo)
      local v = f.y.hi - (y - 0.5) / l.lines * (f.y.hi - f.y.lo)
      local column = ceil((u - b.extent[1]) / (b.extent[2] - b.extent[1]) * w)
      local row = ceil((b.extent[4] - v) / (b.extent[4] - b.extent[3]) * h)
      if column >= 1 and column <= w and row >= 1 and row <= h then
        b.rows = b.rows or image:totable()
        local c = b.rows[row][column]
        screen:put(l.left + x - 1, l.top + y - 1, " ", nil,
                   c[1] << 16 | c[2] << 8 | c[3])
      end
    end
  end
end

-- }======================================================

return function(p, width, height, color)
  height = data.size(p.kind .. ": height", height or 20, 6, 1000)
  local l = layout(p, width, height, color)
  local screen = Screen.new(width, l.height)
  write_frame(screen, p, l)
  write_legend(screen, p, l.legend, l.legend_y, color)
  if p.background and color then put_background(screen, p, l) end
  local masks = {}
  for i = 1, #p.series do put_series(screen, p, l, i, masks, color) end
  if p.frame.x.empty or p.frame.y.empty then
    screen:write(l.left + l.columns // 2, l.top + l.lines // 2,
                 "nothing to show", nil, 0.5)
  end
  return screen
end
