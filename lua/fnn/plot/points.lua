-- points.lua - plot.lines, plot.scatter and plot.histogram.
local fnn, load = ...
local colors = load "plot/colors"
local data = load "plot/data"
local options = load "data/options"
local ticks = load "plot/ticks"
local xy = load "plot/xy"

local raise, check = options.raise, options.check
local abs, ceil, floor = math.abs, math.ceil, math.floor
local max, min = math.max, math.min
local ipairs, type = ipairs, type

local points = {}
local cpu = { dtype = "f64", device = "cpu" }

function points.lines(given)
  local series, o = xy.read("lines", given, { kind = "line" })
  return xy.assemble("lines", series, o, { 0.02, 0.06 })
end

-- {======================================================
-- Scatter
-- =======================================================

local function extent_of(op, v)
  if type(v) ~= "table" or #v ~= 4 then
    raise("%s: extent: expected { x0, x1, y0, y1 }", op)
  end
  local x = data.limits(op .. ": extent", { v[1], v[2] })
  local y = data.limits(op .. ": extent", { v[3], v[4] })
  return { x[1], x[2], y[1], y[2] }
end
points.extent_of = extent_of

-- { matrix, extent =, colors = }: what lies behind the points, pale.
local function read_background(v)
  if not v then return nil end
  local op = "scatter: background"
  local list, named = data.split(op, v)
  local o = check(op, named, { extent = false, colors = false },
                  { extent = "table", colors = "string" })
  if not o.extent then raise("%s: it has no extent { x0, x1, y0, y1 }", op) end
  local m, whole = data.matrix(op, data.only(op, list))
  local b = { extent = extent_of(op, o.extent) }
  if whole and not o.colors then
    b.image = colors.classes(m, 0.7)
  else
    local lo, hi = data.range { m }
    local span = lo and hi > lo and hi - lo or 1
    b.image = colors.image(
      colors.check_map(op .. ": colors", o.colors or "diverging"),
      (m - (lo or 0)) * (0.8 / span) + 0.1, 0.5)
  end
  b.image = b.image:flip(1)  -- row 1 is the lowest
  return b
end

function points.scatter(given)
  local series, o = xy.read("scatter", given,
                            { kind = "marks", points = true },
                            { background = false },
                            { background = "table" })
  local background = read_background(o.background)
  if background then
    local e = background.extent
    if o.xscale == "log" or o.yscale == "log" then
      raise "scatter: a background lies behind linear axes only"
    end
    o.xlim, o.ylim = o.xlim or { e[1], e[2] }, o.ylim or { e[3], e[4] }
  end
  local p = xy.assemble("scatter", series, o, { 0.04, 0.05 })
  p.background = background
  for _, s in ipairs(series) do s.halo = background ~= nil end
  return p
end

-- }======================================================

-- {======================================================
-- Histogram
-- =======================================================

local bins_max = 10000

-- Edges of equal bins: so many, or about 2 n^(1/3) (Rice's rule; steps are
-- rounded up by 1.4 on the mean) that end at round numbers.
local function edges_of(bins, lo, hi, n)
  if hi - lo <= max(1e-12 * max(abs(lo), abs(hi)), 1e-304) then
    local d = lo == 0 and 0.5 or max(abs(lo) * 0.1, 1e-304)
    return lo - d, hi + d, bins or 1
  end
  if bins then return lo, hi, bins end
  local m, e = ticks.step(hi - lo, max(6, min(80, 2.8 * n ^ (1 / 3))))
  local step = m * 10.0 ^ e
  local first, last = floor(lo / step), ceil(hi / step)
  if last * step <= hi then last = last + 1 end
  if not (last - first <= 200 and step > 0) then return lo, hi, 50 end
  return first * step, last * step, last - first
end

-- How many finite numbers of x are in each bin; the last has its end.
local function count_bins(x, lo, hi, bins)
  x = data.finite(x)
  x = x:masked_select(x:ge(lo):logical_and(x:le(hi)))
  local counts = fnn.zeros({ bins }, cpu)
  if #x == 0 then return counts end
  local ids = ((x - lo) * (bins / (hi - lo))):floor():clamp(0, bins - 1)
  return counts:scatter_add(1, ids:to "i64", fnn.ones({ #x }, cpu))
end

function points.histogram(given)
  local op = "histogram"
  local list, named = data.split(op, given)
  local all, types = { bins = false, labels = false, density = false },
                     { bins = "number", labels = "any" }
  for k, v in pairs(xy.defaults) do all[k] = v end
  for k, v in pairs(xy.types) do types[k] = v end
  local o = check(op, named, all, types)
  local bins = data.size(op .. ": option 'bins'", o.bins, 1, bins_max)
  local values, n = {}, 0
  for i, v in ipairs(xy.wrap(list)) do
    if fnn.is_tensor(v) then v = v:reshape(-1) end
    values[i] = data.numbers(("%s: series %d"):format(op, i), v)
    n = max(n, #values[i])
  end
  if #values == 0 then raise("%s: there is no series", op) end
  if o.xscale ~= "linear" then
    raise("%s: bins are of equal width, on a linear x axis", op)
  end
  local lo, hi = data.range(values)
  local limits = data.limits(op .. ": option 'xlim'", o.xlim)
  if limits then lo, hi = limits[1], limits[2] end
  local labels = data.texts(op .. ": labels", o.labels, #values) or {}
  local from, to, count = edges_of(bins, lo or 0, hi or 1, n)
  local edges = fnn.linspace(from, to, count + 1, cpu)
  local series = {}
  for i, x in ipairs(values) do
    local y = count_bins(x, from, to, count)
    if o.density then
      y = y * (count / (to - from) / max(1, y:sum():item()))
    end
    series[i] = { kind = "bars", x = edges, y = y, text = labels[i] or "",
                  color = colors.series(i),
                  alpha = #values > 1 and 0.45 or 0.75 }
  end
  if not o.ylabel then o.ylabel = o.density and "density" or "count" end
  local p = xy.assemble(op, series, o, { 0.02, 0.06 })
  if not o.ylim and not p.frame.y.log then p.frame.y.lo = 0 end
  if p.frame.y.empty or p.frame.y.hi <= p.frame.y.lo then p.frame.y.hi = 1 end
  p.frame.y.empty = not lo
  return p
end

-- }======================================================

return points
