-- grid.lua - plot.grid: several plots in one picture.
local _, load = ...
local axes = load "plot/axes"
local data = load "plot/data"
local options = load "data/options"

local raise, check = options.raise, options.check
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local sqrt = math.sqrt
local ipairs = ipairs

local grid = {}
local plots_max, title_size = 1000, 20

local defaults = { columns = false, title = false, width = false,
                   height = false }
local types = { columns = "number", title = "any", width = "number",
                height = "number" }

-- unwrap(v): what a maker made of a plot, or nil.
function grid.grid(given, unwrap)
  local list, named = data.split("grid", given)
  local o = check("grid", named, defaults, types)
  if #list == 0 or #list > plots_max then
    raise("grid: expected 1 to %d plots, got %d", plots_max, #list)
  end
  local parts = {}
  for i, v in ipairs(list) do
    parts[i] = unwrap(v)
    if not parts[i] then
      raise("grid: entry %d: expected a plot, got %s", i, data.described(v))
    end
  end
  local columns = data.size("grid: option 'columns'", o.columns, 1, plots_max)
  return {
    kind = "grid", parts = parts,
    columns = min(#parts, columns or ceil(sqrt(#parts))),
    title = data.text("grid: option 'title'", o.title),
    width = data.size("grid: option 'width'", o.width, 64, data.side_max),
    height = data.size("grid: option 'height'", o.height, 48, data.side_max),
  }
end

-- The widths of the columns and heights of the rows that the parts want.
local function wants(p, c)
  local wide, tall = {}, {}
  for i, part in ipairs(p.parts) do
    local w, h = part.drawer.size(part, true, c)
    local column, row = (i - 1) % p.columns + 1, (i - 1) // p.columns + 1
    wide[column] = max(wide[column] or 0, w)
    tall[row] = max(tall[row] or 0, h)
  end
  return wide, tall
end

local function sum(list)
  local n = 0
  for _, v in ipairs(list) do n = n + v end
  return n
end

local function title_height(p)
  return p.title ~= "" and axes.pad + axes.line(title_size) or 0
end

function grid.size(p, _, c)
  local wide, tall = wants(p, c)
  local w, h = sum(wide), sum(tall) + title_height(p)
  if max(w, h) > data.side_max and not (p.width and p.height) then
    raise("grid: %d by %d pixels are too many (at most %d a side)", w, h,
          data.side_max)
  end
  return p.width or w, p.height or h
end

-- Whole pixels in the shares of list.
local function spread(list, room)
  local total, at, places = sum(list), 0, { 0 }
  for i, v in ipairs(list) do
    at = at + v
    places[i + 1] = floor(at * room / total)
  end
  return places
end

function grid.draw(p, c, x, y, w, h)
  local wide, tall = wants(p, c)
  local top = title_height(p)
  axes.title(c, x + axes.pad, y + axes.pad, w - 2 * axes.pad, p.title,
             title_size)
  local columns, rows = spread(wide, w), spread(tall, h - top)
  for i, part in ipairs(p.parts) do
    local a, b = (i - 1) % p.columns + 1, (i - 1) // p.columns + 1
    part.drawer.draw(part, c, x + columns[a], y + top + rows[b],
                     columns[a + 1] - columns[a], rows[b + 1] - rows[b])
  end
end

return grid
