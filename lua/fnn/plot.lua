-- plot.lua - fnn.plot: what a run did, as a picture or in the terminal.
--
-- A maker takes one table: data by position, options by name.  It reads them
-- into a plain table, the part, whose drawer (a file of plot/) measures and
-- draws it; what a script holds is a box around the part.
local fnn, load, internals = ...
local Canvas = load "plot/canvas"
local data = load "plot/data"
local grid = load "plot/grid"
local images = load "plot/images"
local matrix = load "plot/matrix"
local options = load "data/options"
local points = load "plot/points"
local print_part = load "plot/print"
local xy = load "plot/xy"

local raise, check = options.raise, options.check
local getmetatable, setmetatable, type = getmetatable, setmetatable, type
local io = fnn.io

local plot = {}
local Plot = internals.namespace({}, "fnn.Plot")
local meta = { __name = "fnn.Plot", __index = Plot }
local part_of = setmetatable({}, { __mode = "k" })

function meta.__tostring(p)
  local part = part_of[p]
  local title = part.title or part.frame.title
  return "plot." .. part.kind .. (title ~= "" and " '" .. title .. "'" or "")
end

local function box(part, drawer)
  part.drawer = drawer
  local p = setmetatable({}, meta)
  part_of[p] = part
  return p
end

local function unwrap(p)
  if type(p) == "table" and getmetatable(p) == meta then return part_of[p] end
end

function plot.lines(given) return box(points.lines(given), xy) end
function plot.scatter(given) return box(points.scatter(given), xy) end
function plot.histogram(given) return box(points.histogram(given), xy) end
function plot.heatmap(given) return box(matrix.heatmap(given), matrix) end
function plot.confusion(given) return box(matrix.confusion(given), matrix) end
function plot.images(given) return box(images.images(given), images) end
function plot.grid(given) return box(grid.grid(given, unwrap), grid) end

local function checked(p, method)
  local part = unwrap(p)
  if not part then
    raise("Plot:%s: expected a plot, got %s", method, data.described(p))
  end
  return part
end

local function draw(part, plain)
  local c = Canvas.measure(plain)
  local w, h = part.drawer.size(part, false, c)
  if w * h > data.pixels_max then
    raise("%s: a picture of %d by %d is more than %d million pixels",
          part.kind, w, h, data.pixels_max // 1000000)
  end
  c = Canvas.new(w, h, plain)
  part.drawer.draw(part, c, 0, 0, w, h)
  return c:rgb()
end

-- p:image([{ plain = false }]): u8 (height, width, 3); plain: without cairo.
function Plot:image(opts)
  local part = checked(self, "image")
  return draw(part, check("Plot:image", opts, { plain = false }).plain)
end

local other_kinds = { jpg = true, jpeg = true, svg = true, pdf = true,
                      gif = true, webp = true, eps = true }

-- p:save(path [, { plain = false }]): a PNG.
function Plot:save(path, opts)
  local part = checked(self, "save")
  local o = check("Plot:save", opts, { plain = false })
  if type(path) ~= "string" then
    raise("Plot:save: expected a path, got %s", data.described(path))
  end
  local kind = path:match "%.(%a+)$"
  if kind and other_kinds[kind:lower()] then
    raise("Plot:save: pictures are PNG files, got '%s'", path)
  end
  io.write_png(path, draw(part, o.plain))
end

-- p:print([file] [, { width =, height =, color =, picture = }]): to stdout, or
-- to what has a method write.
function Plot:print(file, opts)
  local part = checked(self, "print")
  if file ~= nil and type(file) ~= "table" and type(file) ~= "userdata" then
    raise("Plot:print: expected a file, got %s", data.described(file))
  end
  print_part(part, file, opts, function() return draw(part, false) end)
end

return plot
