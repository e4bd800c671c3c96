-- xy.lua - plots of numbers against numbers: lines, points, bars.
--
-- A plot here is { frame =, series = { { kind =, x =, y =, ... } ... } } with
-- x and y as they are drawn (logarithms on such an axis).  kind is "line",
-- "marks" or "bars"; bars lie between x and the next x, from 0 to y.
local fnn, load = ...
local axes = load "plot/axes"
local colors = load "plot/colors"
local data = load "plot/data"
local options = load "data/options"

local raise, check = options.raise, options.check
local abs, floor, max, min = math.abs, math.floor, math.max, math.min
local ipairs, pairs, type = ipairs, pairs, type
local log = math.log

local xy = {}

local default_width, default_height = 800, 500
local shapes = { "circle", "square", "triangle", "diamond", "cross", "plus" }

local cpu = { dtype = "f64", device = "cpu" }
local function numbers(list) return fnn.tensor(list, cpu) end
xy.numbers = numbers

-- {======================================================
-- Reading
-- =======================================================

local series_defaults = { x = false, y = false, label = false, color = false,
                          line = false, width = 0, dash = false,
                          shape = false, size = 0, alpha = 1.0 }
local series_types = { x = "any", y = "any", label = "any", color = "any",
                       line = "boolean", dash = "boolean", shape = "string" }

local function positive(what, v, most)
  if not (v >= 0 and v <= most) then
    raise("%s: expected 0 to %g, got %s", what, most, tostring(v))
  end
  return v
end

local function counted(n) return fnn.arange(1, n + 1, cpu) end

local function option_of(v)
  for k in pairs(v) do
    if type(k) == "string" and series_defaults[k] ~= nil then return k end
  end
end

-- One series: numbers, a tensor, { x =, y = }; of points also (n, 2).
local function read_series(op, i, v, defaults)
  local what = ("%s: series %d"):format(op, i)
  local s, line = {}, defaults.kind == "line"
  if type(v) == "table" and #v == 0 and next(v) ~= nil then
    s = check(what, v, series_defaults, series_types)
    if v.line ~= nil then line = v.line end
    if not s.y then raise("%s: it has no y", what) end
    s.y = data.numbers(what .. ": y", s.y)
    s.x = s.x and data.numbers(what .. ": x", s.x) or counted(#s.y)
    if #s.x ~= #s.y then
      raise("%s: %d numbers x and %d numbers y", what, #s.x, #s.y)
    end
  elseif defaults.points and fnn.is_tensor(v) and v:ndim() == 2 and
         v:size(2) == 2 then
    local p = data.plain(v)
    s.x, s.y = p:select(2, 1):contiguous(), p:select(2, 2):contiguous()
  else
    local name = type(v) == "table" and option_of(v)
    if name then
      raise("%s: its numbers have no name: write { y = { ... }, %s = ... }",
            what, name)
    end
    s.y = data.numbers(what, v)
    s.x = counted(#s.y)
  end
  s.text = data.text(what .. ": label", s.label)
  s.color = s.color and colors.parse(what, s.color) or colors.series(i)
  s.kind = line and "line" or "marks"
  s.line = s.width and s.width ~= 0 and positive(what .. ": width", s.width,
                                                 100) or 2
  s.dash = (s.dash or i > colors.count) and 7 or nil
  s.alpha = positive(what .. ": alpha", s.alpha or 1, 1)
  s.radius = s.size and s.size ~= 0 and positive(what .. ": size", s.size,
                                                 100) or 3
  if s.shape then
    local known = {}
    for _, name in ipairs(shapes) do known[name] = true end
    if not known[s.shape] then
      raise("%s: unknown shape '%s' (there are %s)", what, s.shape,
            table.concat(shapes, ", "))
    end
  elseif not line then
    s.shape = shapes[(i - 1) % #shapes + 1]
  end
  return s
end

-- The logarithm where an axis has it; gaps where there is none, and for what
-- is too far.
local function drawn(x, logarithmic)
  local good = x:abs():le(data.far)
  if logarithmic then good = good:logical_and(x:gt(0)) end
  if not good:all():item() then
    x = fnn.where(good, x, fnn.full({ 1 }, 0 / 0, cpu))
  end
  return logarithmic and x:log10() or x
end

-- The ends of an axis around lo and hi, with some room.
local function around(lo, hi, logarithmic, room)
  if not lo then return 0, 1 end
  local least = logarithmic and 0.2 or max(1e-12 * max(abs(lo), abs(hi)),
                                           1e-304)
  if hi - lo <= least then
    local d = logarithmic and 0.5 or lo == 0 and 1 or
              max(abs(lo) * 0.1, 1e-304)
    return lo - d, hi + d
  end
  local d = (hi - lo) * room
  return lo - d, hi + d
end

local function all_whole(list)
  for _, x in ipairs(list) do
    x = data.finite(x)
    if not x:eq(x:floor()):all():item() then return false end
  end
  return true
end

local function scale_of(op, name, o, list, room)
  local kind = o[name .. "scale"]
  if kind ~= "linear" and kind ~= "log" then
    raise("%s: option '%sscale': expected 'linear' or 'log', got '%s'", op,
          name, tostring(kind))
  end
  local logarithmic = kind == "log"
  local limits = data.limits(("%s: option '%slim'"):format(op, name),
                             o[name .. "lim"])
  for _, s in ipairs(list) do s[name] = drawn(s[name], logarithmic) end
  local scale = { log = logarithmic }
  if limits then
    if logarithmic and limits[1] <= 0 then
      raise("%s: option '%slim': a logarithmic axis begins above 0", op, name)
    end
    scale.lo = logarithmic and log(limits[1], 10) or limits[1]
    scale.hi = logarithmic and log(limits[2], 10) or limits[2]
  else
    local all = {}
    for i, s in ipairs(list) do all[i] = s[name] end
    scale.lo, scale.hi = data.range(all)
    scale.empty = not scale.lo
    scale.lo, scale.hi = around(scale.lo, scale.hi, logarithmic, room)
    scale.whole = name == "x" and all_whole(all)
  end
  return scale
end

local defaults = { title = false, xlabel = false, ylabel = false,
                   xscale = "linear", yscale = "linear", xlim = false,
                   ylim = false, width = false, height = false }
local types = { title = "any", xlabel = "any", ylabel = "any", xlim = "table",
                ylim = "table", width = "number", height = "number" }
xy.defaults, xy.types = defaults, types

-- The frame and the sizes that options give.
function xy.frame(op, o)
  return {
    title = data.text(op .. ": option 'title'", o.title),
    xlabel = data.text(op .. ": option 'xlabel'", o.xlabel),
    ylabel = data.text(op .. ": option 'ylabel'", o.ylabel),
  }, data.size(op .. ": option 'width'", o.width, 64, data.side_max),
     data.size(op .. ": option 'height'", o.height, 48, data.side_max)
end

local function legend_of(list)
  local legend = {}
  for _, s in ipairs(list) do
    if s.text ~= "" then
      legend[#legend + 1] = {
        text = s.text, color = s.color, line = s.kind == "line" and s.line,
        dash = s.dash, shape = s.shape, radius = s.radius,
        fill = s.kind == "bars", alpha = s.alpha,
      }
    end
  end
  return legend
end

-- A plot of series that have been read.
function xy.assemble(op, list, o, room)
  local p = { kind = op, series = list }
  p.frame, p.width, p.height = xy.frame(op, o)
  p.frame.x = scale_of(op, "x", o, list, room[1])
  p.frame.y = scale_of(op, "y", o, list, room[2])
  p.frame.legend = legend_of(list)
  return p
end

-- One list of numbers is one series.
function xy.wrap(list)
  if type(list[1]) ~= "number" then return list end
  return { list }
end

function xy.read(op, given, kind, extra, extra_types)
  local list, named = data.split(op, given)
  local all, all_types = {}, {}
  for k, v in pairs(defaults) do all[k] = v end
  for k, v in pairs(types) do all_types[k] = v end
  for k, v in pairs(extra or {}) do all[k] = v end
  for k, v in pairs(extra_types or {}) do all_types[k] = v end
  local o = check(op, named, all, all_types)
  local series = {}
  for i, v in ipairs(xy.wrap(list)) do
    series[i] = read_series(op, i, v, kind)
  end
  if #series == 0 then raise("%s: there is no series", op) end
  return series, o
end

-- }======================================================

-- {======================================================
-- Drawing
-- =======================================================

function xy.size(p, inside)
  return p.width or (inside and 520 or default_width),
         p.height or (inside and 360 or default_height)
end

-- The pixels, or dots, of numbers on a scale between two places.
local function places(x, scale, from, to)
  return (x - scale.lo) * ((to - from) / (scale.hi - scale.lo)) + from
end
xy.places = places

local function draw_bars(c, s, px, py, zero, box)
  local x, y = px:totable(), py:totable()
  for i = 1, #y do
    if y[i] == y[i] then
      local x0 = floor(max(x[i], box[1]) + 0.5)
      local x1 = floor(min(x[i + 1], box[3]) + 0.5)
      local top = max(box[2], min(y[i], zero))
      if x1 > x0 and top < zero then
        c:rect(x0, top, x1, zero, s.color, s.alpha)
      end
    end
  end
  if #y <= 200 then
    local line = xy.steps(px, py, zero)
    c:lines(line.x, line.y, { color = s.color, width = 1.2 }, box)
  end
end

-- The outline of bars, between x and y, as points; from the base on.
function xy.steps(x, y, base)
  local n = #y
  local left, right = x:narrow(1, 1, n), x:narrow(1, 2, n)
  local xs = fnn.stack({ left, right }, 2):reshape(-1)
  local ys = fnn.stack({ y, y }, 2):reshape(-1)
  local foot = numbers { base }
  return { x = fnn.cat({ left:narrow(1, 1, 1), xs, right:narrow(1, n, 1) }, 1),
           y = fnn.cat({ foot, ys, foot }, 1) }
end

local function draw_series(c, s, f, box)
  local px = places(s.x, f.x, box[1], box[3])
  local py = places(s.y, f.y, box[4], box[2])
  if s.kind == "bars" then
    local zero = f.y.log and box[4] or
                 min(box[4], places(numbers { 0 }, f.y, box[4], box[2])[1])
    draw_bars(c, s, px, py, zero, box)
    return
  end
  if s.kind == "line" then
    c:lines(px, py, { color = s.color, width = s.line, alpha = s.alpha,
                      dash = s.dash }, box)
  end
  if s.shape then
    if s.halo then
      c:marks(px, py, { color = colors.paper, radius = s.radius + 1.3,
                        shape = s.shape, alpha = s.alpha }, box)
    end
    c:marks(px, py, { color = s.color, radius = s.radius, shape = s.shape,
                      alpha = s.alpha }, box)
  end
end

local function draw_background(c, b, f, box)
  local x = places(numbers { b.extent[1], b.extent[2] }, f.x, box[1], box[3])
  local y = places(numbers { b.extent[3], b.extent[4] }, f.y, box[4], box[2])
  c:image(x[1], y[2], x[2], y[1], b.image, box)
end

function xy.draw(p, c, x, y, w, h)
  local f = p.frame
  local l = axes.layout(c, f, x, y, w, h)
  local box = axes.inner(l)
  if box[3] - box[1] < 4 or box[4] - box[2] < 4 then
    raise("%s: %d by %d pixels leave no room to draw in", p.kind, w, h)
  end
  if p.background then draw_background(c, p.background, f, box)
  else axes.grid(c, l) end
  for _, s in ipairs(p.series) do draw_series(c, s, f, box) end
  if f.x.empty or f.y.empty then
    c:text((box[1] + box[3]) / 2, (box[2] + box[4]) / 2, "nothing to show",
           { size = axes.size.label, across = 0.5, up = 0.5,
             color = colors.axis })
  end
  axes.draw(c, l, numbers)
end

-- }======================================================

return xy
