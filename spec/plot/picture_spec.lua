-- picture_spec.lua - plots as pictures, looked at pixel by pixel, as both
-- bodies of the canvas draw them.

local fnn = require "fnn"
local plot = fnn.plot

local white = 0xffffff

-- A picture's colors: at(x, y) from 0.
local function look(p, plain)
  local x = p:image { plain = plain }
  assert.equal("u8", x:dtype())
  assert.equal(3, x:size(3))
  local codes = (x:to "i64" * fnn.tensor({ 65536, 256, 1 },
                                         { dtype = "i64" })):sum(3)
  local rows
  return {
    w = x:size(2), h = x:size(1), codes = codes,
    at = function(u, v)
      rows = rows or codes:totable()
      return rows[v + 1][u + 1]
    end,
  }
end

-- The box around all pixels of a color, in the left columns of a picture if
-- their number is given, and how many there are.
local function box_of(s, color, columns)
  local codes = columns and s.codes:narrow(2, 1, columns) or s.codes
  local ids = codes:eq(color):nonzero()
  if #ids == 0 then return s.w, s.h, -1, -1, 0 end
  local y, x = ids:select(2, 1), ids:select(2, 2)
  return x:min():item(), y:min():item(), x:max():item(), y:max():item(), #ids
end

-- The corners of the axes: their lines have this color.
local axis = 0x555555
local function axes_of(s)
  local x0, _, x1, y1 = box_of(s, axis)
  -- Marks stand out 4 pixels below and on the left.
  return x0 + 4, x1, y1 - 4
end

local function near(expected, got, by)
  assert.is_true(math.abs(expected - got) <= by,
                 ("expected %g, got %g"):format(expected, got))
end

local red = 0xff0000
local square = { xlim = { 0, 1 }, ylim = { 0, 1 }, width = 240, height = 200 }

local function with(options, ...)
  local all = { ... }
  for k, v in pairs(options) do all[k] = v end
  return all
end

-- Pixels at the edges, where nothing may be drawn.
local function has_margins(s, by, what)
  for dim = 1, 2 do
    local n = s.codes:size(dim)
    for _, from in ipairs { 1, n - by + 1 } do
      assert.is_true(s.codes:narrow(dim, from, by):eq(white):all():item(),
                     what)
    end
  end
end

for _, plain in ipairs { false, true } do
  describe(plain and "a plain picture" or "a picture", function()
    it("has a line where its numbers are", function()
      local s = look(plot.lines(with(square, {
        x = { 0, 1 }, y = { 0.5, 0.5 }, color = red, width = 4,
      })), plain)
      assert.equal(240, s.w)
      assert.equal(200, s.h)
      local left, right, bottom = axes_of(s)
      local x0, y0, x1, y1, n = box_of(s, red)
      near(left, x0, 1)
      near(right, x1, 1)
      near(4, y1 - y0 + 1, 1)
      -- y 0.5 is in the middle between the axis and the top, where the
      -- marks of 0 and 1 are.
      local top = 200
      for y = bottom, 0, -1 do
        if s.at(left - 3, y) == axis then top = y end
      end
      near((top + bottom) / 2, (y0 + y1) / 2, 1)
      assert.is_true(n > 2.9 * (x1 - x0))
    end)

    it("goes from corner to corner, and no further than its axes", function()
      local s = look(plot.lines(with(square, {
        x = { -10, 10 }, y = { -10, 10 }, color = red, width = 3,
      })), plain)
      local left, right, bottom = axes_of(s)
      local x0, y0, x1, y1 = box_of(s, red)
      near(left, x0, 3)
      near(right, x1, 3)
      near(bottom, y1, 4)
      for i = 1, 9 do  -- all along, on the way
        local x = x0 + (x1 - x0) * i // 10
        local y = y1 + (y0 - y1) * i // 10
        local seen = false
        for d = -2, 2 do seen = seen or s.at(x, y + d) == red end
        assert.is_true(seen, "nothing red near " .. x .. ", " .. y)
      end
    end)

    it("leaves gaps where there is no number", function()
      local s = look(plot.lines(with(square, {
        x = { 0, 0.4, 0.5, 0.6, 1 }, y = { 0.5, 0.5, 0 / 0, 0.5, 0.5 },
        color = red, width = 4,
      })), plain)
      local left, right = axes_of(s)
      local _, y0, _, y1 = box_of(s, red)
      local y, gap = (y0 + y1) // 2, 0
      for x = left + 5, right - 5 do
        if s.at(x, y) ~= red then gap = gap + 1 end
      end
      near(0.2 * (right - left), gap, 6)
    end)

    it("has a dot where one point stands alone", function()
      local s = look(plot.lines(with(square, { x = { 0.5 }, y = { 0.5 },
                                               color = red, width = 4 })),
                     plain)
      local left, right = axes_of(s)
      local x0, y0, x1, y1, n = box_of(s, red)
      near((left + right) / 2, (x0 + x1) / 2, 1)
      near(y1 - y0, x1 - x0, 1)
      assert.is_true(n > 20 and n < 200)
    end)

    it("puts logarithms at equal steps", function()
      local s = look(plot.scatter {
        { x = { 1, 10, 100 }, y = { 1, 1, 1 }, color = red, size = 4 },
        xscale = "log", xlim = { 0.1, 1000 }, width = 400, height = 200,
      }, plain)
      local left, right = axes_of(s)
      local x0, _, x1 = box_of(s, red)
      near(left + (right - left) / 4, x0 + 4, 2)
      near(left + (right - left) * 3 / 4, x1 - 4, 2)
    end)

    it("gives series the palette of Okabe and Ito", function()
      local s = look(plot.lines { { 1, 1 }, { 2, 2 }, { 3, 3 } }, plain)
      local last = s.h
      for _, color in ipairs { 0x0072b2, 0xd55e00, 0x009e73 } do
        local _, y0, _, _, n = box_of(s, color)
        assert.is_true(n > 300, "a line of the color is missing")
        assert.is_true(y0 < last)  -- each above the one before
        last = y0
      end
    end)

    it("draws each mark around its place", function()
      for _, shape in ipairs { "circle", "square", "triangle", "diamond",
                               "cross", "plus" } do
        local s = look(plot.scatter(with(square, {
          x = { 0.5 }, y = { 0.5 }, color = red, size = 9, shape = shape,
        })), plain)
        local left, right = axes_of(s)
        local x0, y0, x1, y1, n = box_of(s, red)
        near((left + right) / 2, (x0 + x1) / 2, 1)
        assert.is_true(x1 - x0 >= 12 and x1 - x0 <= 25, shape)
        assert.is_true(y1 - y0 >= 12 and y1 - y0 <= 25, shape)
        assert.is_true(n > 80 and n < 400, shape .. " " .. n)
      end
    end)

    it("draws bars as high as what they count", function()
      local s = look(plot.histogram { { 0, 1, 1, 1, 2, 2 }, bins = 3,
                                      width = 300, height = 300 }, plain)
      -- Bins (0 to 2/3, 4/3, 2) count 1, 3 and 2: walk up inside each.
      local left, right, bottom = axes_of(s)
      local high = {}
      local inner = right - left
      for i = 1, 3 do
        local x = math.floor(left + inner * (0.02 + 0.96 * (i - 0.5) / 3))
        local y = bottom - 3
        while s.at(x, y) ~= white and s.at(x, y) ~= 0xe4e4e4 do y = y - 1 end
        high[i] = bottom - y
      end
      near(3 * high[1], high[2], 6)
      near(2 * high[1], high[3], 6)
    end)

    it("colors a heatmap by viridis' ends, missing numbers grey", function()
      local s = look(plot.heatmap { { { 0, 1 }, { 0 / 0, 1 } }, width = 300,
                                    height = 300 }, plain)
      local cells = 150  -- the bar is further to the right
      local x0, y0, x1, y1 = box_of(s, 0x440154, cells)
      assert.is_true(x1 - x0 > 50 and y1 - y0 > 50)
      local u0, _, _, v1 = box_of(s, 0xfde725, cells)
      assert.is_true(u0 > x1 and v1 > y1)
      assert.equal(0xd9d9d9, s.at(x0 + 10, y1 + 10))
    end)

    it("has squares as cells, in a grid too, or rows that can be seen",
       function()
      local m, long = fnn.eye(3), fnn.zeros(1, 1000)
      local s = look(plot.grid {
        plot.heatmap { m }, plot.heatmap { fnn.full({ 2, 9 }, 2) },
        columns = 2, width = 500, height = 150,
      }, plain)
      local x0, y0, x1, y1 = box_of(s, 0x440154, 150)
      near(x1 - x0, y1 - y0, 1)
      for _, x in ipairs { long, long:t() } do
        s = look(plot.heatmap { x, range = { 0, 1 } }, plain)
        x0, y0, x1, y1 = box_of(s, 0x440154)
        local short = math.min(x1 - x0, y1 - y0)
        assert.is_true(short >= 15 and short < 80)
        assert.is_true(math.max(x1 - x0, y1 - y0) > 300)
      end
    end)

    it("puts row 1 of a heatmap with an extent at the bottom", function()
      local m = { { 0, 0 }, { 1, 1 } }
      local top = look(plot.heatmap { m }, plain)
      local bottom = look(plot.heatmap { m, extent = { 0, 1, 0, 1 } }, plain)
      local function is_above(s)
        local _, a = box_of(s, 0x440154)
        local _, b = box_of(s, 0xfde725)
        return a < b
      end
      -- The bar's yellow end is above all in the second.
      assert.is_true(is_above(top))
      assert.is_false(is_above(bottom))
    end)

    it("darkens what is right in a confusion matrix", function()
      local s = look(plot.confusion { { { 9, 0 }, { 0, 9 } } }, plain)
      local x0, y0, x1, y1 = box_of(s, 0x08306b)
      near(x1 - x0, y1 - y0, 2)
      local middle = s.at((x0 + x1) // 2 + 8, y0 + 8)
      assert.equal(0xf7fbff, middle)
    end)

    it("shows images as they are, larger", function()
      local x = fnn.tensor({ { { 0, 64, 128, 255 }, { 255, 128, 64, 0 } } },
                           { dtype = "u8" })
      local s = look(plot.images { x, scale = 10 }, plain)
      for _, grey in ipairs { 0, 64, 128 } do
        local x0, y0, x1, y1, n = box_of(s, grey * 0x010101)
        assert.is_true(n >= 200, grey)
        near(19, y1 - y0, 0)
        assert.is_true(x1 - x0 >= 9)
      end
      near(10 * 4 - 1, select(3, box_of(s, 0)) - box_of(s, 0), 0)
    end)

    it("frames in red what is wrong", function()
      local wrong = 0xd0021b
      local x = fnn.zeros(2, 8, 8)
      local s = look(plot.images { x, labels = { "a", "b" } }, plain)
      assert.equal(0, select(5, box_of(s, wrong)))
      s = look(plot.images { x, labels = { "a", "b" },
                             wrong = { [2] = "c" } }, plain)
      local x0, _, _, _, n = box_of(s, wrong)
      assert.is_true(n > 200 and x0 > s.w // 2 - 5)
    end)

    it("paints what lies behind points", function()
      local s = look(plot.scatter {
        { x = { 0.5 }, y = { 0.5 }, color = red },
        background = { fnn.tensor({ { 0, 0 }, { 1, 1 } }, { dtype = "i64" }),
                       extent = { 0, 1, 0, 1 } },
      }, plain)
      -- Series 1 and 2 mixed with 0.7 of white, row 1 below.
      local _, a0, _, a1, a = box_of(s, 0xb3d5e8)
      local _, b0, _, b1, b = box_of(s, 0xf2cfb3)
      assert.is_true(a > 10000 and b > 10000)
      assert.is_true(b1 < a0 + 2 and a1 > b0)
    end)

    it("keeps a margin around the longest labels", function()
      local long = ("a long label, W%g, "):rep(20)
      local names = {}
      for i = 1, 6 do names[i] = long end
      local o = { title = long, xlabel = long, ylabel = long }
      local series = {}
      for i = 1, 12 do series[i] = { y = { i, 2e9 * i }, label = long } end
      local m = fnn.rand { 6, 6 }
      local x = fnn.zeros { 6, 8, 8 }
      local all = {
        lines = plot.lines(with(o, table.unpack(series))),
        small = plot.lines(with({ title = long, xlabel = long, ylabel = long,
                                  width = 200, height = 160 },
                                { y = { 1, 2 }, label = long })),
        scatter = plot.scatter(with(o, { x = { -1e12, 3e15 },
                                         y = { 1, 2 } })),
        histogram = plot.histogram(with(o, { 1e-9, 2e-9 })),
        heatmap = plot.heatmap(with(o, m)),
        names = plot.heatmap(with({ xlabels = names, ylabels = names,
                                    title = long }, m)),
        confusion = plot.confusion { m:mul(1e6):round(), classes = names },
        images = plot.images { x, labels = names, wrong = names,
                               title = long },
      }
      for kind, p in pairs(all) do has_margins(look(p, plain), 2, kind) end
    end)

    it("puts several plots side by side", function()
      local a = plot.lines { { y = { 1, 2 }, color = 0x00ff00, width = 5 } }
      local b = plot.lines { { y = { 2, 1 }, color = red, width = 5 } }
      local s = look(plot.grid { a, b, columns = 2, title = "both",
                                 width = 600, height = 250 }, plain)
      assert.equal(600, s.w)
      local _, _, x1, _, n = box_of(s, 0x00ff00)
      local u0, _, _, _, m = box_of(s, red)
      assert.is_true(n > 300 and m > 300)
      assert.is_true(x1 < 300 and u0 > 300)
      s = look(plot.grid { a, b, columns = 1, width = 300, height = 500 },
               plain)
      assert.is_true(select(4, box_of(s, 0x00ff00)) <
                     select(2, box_of(s, red)))
    end)

    it("is quick for a million points", function()
      local n = 1000000
      local x = fnn.arange(1, n + 1, { dtype = "f64" })
      local begin = os.clock()
      local s = look(plot.lines { { x = x, y = (x * 0.01):sin() },
                                  width = 300, height = 200 }, plain)
      assert.is_true(os.clock() - begin < 2)
      assert.is_true(select(5, box_of(s, 0x0072b2)) > 10000)
    end)
  end)
end

describe("Plot:save", function()
  it("writes the picture as a PNG", function()
    local path = os.tmpname()
    local p = plot.lines { { 1, 3, 2 }, width = 200, height = 100 }
    p:save(path, { plain = true })
    local x = fnn.io.read_png(path)
    os.remove(path)
    assert.same({ 100, 200, 3 }, x:shape())
    assert.is_true(x:eq(p:image { plain = true }):all():item())
    assert.has_error(function() p:save(path .. "/no/folder.png") end)
  end)

  it("draws the same each time", function()
    local p = plot.histogram { { 1, 2, 2, 5 }, title = "again" }
    assert.is_true(p:image():eq(p:image()):all():item())
  end)
end)
