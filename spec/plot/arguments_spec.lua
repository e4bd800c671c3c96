-- arguments_spec.lua - what plots refuse, in which words, and what they bear.

local fnn = require "fnn"
local plot = fnn.plot

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; expected: " .. text)
  assert.is_truthy(tostring(message):find(text, 1, true), message)
end

describe("plots refuse", function()
  it("what is no table of data", function()
    raises("lines: expected a table { data, name = value }, got number 3",
           plot.lines, 3)
    raises("lines: there is no series", plot.lines, {})
    raises("lines: entry 1 is nil", plot.lines, { nil, { 1 } })
    raises("lines: series 1: expected a list of numbers or a tensor, got " ..
           "string x", plot.lines, { "x" })
    raises("lines: series 2: element 3: expected a number, got string b",
           plot.lines, { { 1 }, { 1, 2, "b" } })
    raises("lines: series 1: expected one dimension, got a tensor (2, 3)",
           plot.lines, { fnn.zeros(2, 3) })
    raises("scatter: series 1: 2 numbers x and 3 numbers y", plot.scatter,
           { { x = { 1, 2 }, y = { 1, 2, 3 } } })
    raises("lines: series 1: it has no y", plot.lines, { { x = { 1 } } })
    raises("heatmap: row 2 has 1 numbers, row 1 has 2", plot.heatmap,
           { { { 1, 2 }, { 3 } } })
    raises("heatmap: it is empty", plot.heatmap, { {} })
    raises("confusion: expected as many rows as columns, got (2, 3)",
           plot.confusion, { fnn.zeros(2, 3) })
    raises("confusion: expected counts of 0 or more", plot.confusion,
           { { { 1, -1 }, { 0, 1 } } })
    raises("images: expected images (n, h, w) or (n, channels, h, w), got " ..
           "a tensor (3, 3)", plot.images, { fnn.zeros(3, 3) })
    raises("images: expected 1 or 3 channels, got 2", plot.images,
           { fnn.zeros(1, 2, 3, 3) })
    raises("grid: entry 1: expected a plot, got a table", plot.grid, { {} })
  end)

  it("what they would not draw", function()
    local m = fnn.zeros(2, 2)
    raises("heatmap: expected one entry, got 2", plot.heatmap, { m, m })
    raises("heatmap: expected one entry, got 2", plot.heatmap,
           { { 1, 2 }, { 3, 4 } })
    raises("confusion: expected one entry, got 2", plot.confusion, { m, m })
    raises("images: expected one entry, got 2", plot.images,
           { fnn.zeros(1, 2, 2), fnn.zeros(1, 2, 2) })
    raises("lines: series 1: its numbers have no name: write { y = { ... }, " ..
           "label = ... }", plot.lines, { { 1, 2, label = "a" } })
    raises("lines: series 1: its numbers have no name: write { y = { ... }, " ..
           "label = ... }", plot.lines, { { { 1, 2 }, label = "a" } })
    raises("histogram: series 1: expected numbers alone, got 'label' beside " ..
           "them", plot.histogram, { { 1, 2, label = "a" } })
  end)

  it("unknown options, with the nearest", function()
    raises("lines: unknown option 'titel' (did you mean 'title'?)",
           plot.lines, { { 1 }, titel = "x" })
    raises("lines: series 1: unknown option 'labl' (did you mean 'label'?)",
           plot.lines, { { y = { 1 }, labl = "x" } })
    raises("lines: series 1: unknown color 'gren' (did you mean 'green'?)",
           plot.lines, { { y = { 1 }, color = "gren" } })
    raises("heatmap: unknown colors 'virids' (did you mean 'viridis'?)",
           plot.heatmap, { { { 1 } }, colors = "virids" })
    raises("Plot:save: unknown option 'plan' (did you mean 'plain'?)",
           function() plot.lines { { 1 } }:save("x.png", { plan = true }) end)
  end)

  it("options of other kinds and sizes", function()
    raises("lines: option 'xscale': expected 'linear' or 'log', got 'cube'",
           plot.lines, { { 1 }, xscale = "cube" })
    raises("lines: option 'xlim': expected { low, high }, got { 2, 1 }",
           plot.lines, { { 1 }, xlim = { 2, 1 } })
    raises("lines: option 'xlim': expected { low, high }, got { 0, 1e-310 }",
           plot.lines, { { 1 }, xlim = { 0, 1e-310 } })
    raises("lines: option 'ylim': a logarithmic axis begins above 0",
           plot.lines, { { 1 }, yscale = "log", ylim = { 0, 1 } })
    raises("lines: option 'width': expected 64 to 16384, got 1000000",
           plot.lines, { { 1 }, width = 1000000 })
    raises("histogram: option 'bins': expected 1 to 10000, got 0",
           plot.histogram, { { 1 }, bins = 0 })
    raises("heatmap: xlabels: 1 names for 2 cells", plot.heatmap,
           { { { 1, 2 } }, xlabels = { "a" } })
    raises("a text, got a table", plot.lines, { { 1 }, title = {} })
    raises("Plot:print: option 'width': expected 20 to 1000, got 5",
           function() plot.lines { { 1 } }:print(nil, { width = 5 }) end)
    raises("Plot:save: pictures are PNG files, got 'x.SVG'",
           function() plot.lines { { 1 } }:save "x.SVG" end)
    raises("Plot:save: expected a path, got nil",
           function() plot.lines { { 1 } }:save() end)
    raises("leave no room to draw in", function()
      plot.lines { { 1 }, title = "x", xlabel = "x", width = 64,
                   height = 48 }:image()
    end)
  end)

  it("too much", function()
    raises("images: 10001 images are more than 10000", plot.images,
           { fnn.zeros(10001, 1, 1) })
    raises("lines: a picture of 16384 by 16384 is more than 100 million",
           function()
      plot.lines { { 1 }, width = 16384, height = 16384 }:image()
    end)
    raises("pixels are too many", function()
      plot.images { fnn.zeros(10000, 4, 4), columns = 1 }:image()
    end)
  end)
end)

describe("plots bear", function()
  local nan, inf = 0 / 0, 1 / 0
  local small = { width = 160, height = 120 }

  local function lines(...)
    local o = { ... }
    for k, v in pairs(small) do o[k] = v end
    return plot.lines(o)
  end

  local function text_of(p)
    local parts = {}
    p:image { plain = true }
    p:image()
    p:print({ write = function(_, s) parts[#parts + 1] = s end },
            { width = 40, height = 10 })
    return table.concat(parts)
  end

  it("nothing to show", function()
    for _, p in ipairs { lines({}), lines({ nan, inf, -inf }),
                         lines({ 1e301, -1e308 }) } do
      assert.matches("nothing to show", text_of(p))
    end
    local o = { { -1, 0 }, yscale = "log", width = 160, height = 120 }
    assert.matches("nothing to show", text_of(plot.lines(o)))
    assert.matches("nothing to show",
                   text_of(plot.histogram { {}, width = 160, height = 120 }))
    text_of(plot.heatmap { { { nan, nan } } })
    text_of(plot.confusion { { { 0, 0 }, { 0, 0 } } })
  end)

  it("one point, one number over and over, and tiny spans", function()
    local lists = {
      { 5 }, { 3, 3, 3 }, { 0, 0 }, { 1e-300, 3e-300 }, { 5e-324, 0 },
      { 1, 1 + 2.0 ^ -52 }, { 1e300, -1e300 }, { 1e16, 1e16 + 2 },
      { -1e-320, 1e-320 }, { nan, 1, nan, 2, nan },
    }
    for _, list in ipairs(lists) do
      text_of(lines(list))
      text_of(lines({ x = list, y = list }))
      text_of(plot.histogram { list, width = 160, height = 120 })
      text_of(plot.scatter { { x = list, y = list }, width = 160,
                             height = 120 })
      text_of(plot.heatmap { { list } })
    end
  end)

  it("images that are long and thin", function()
    text_of(plot.images { fnn.rand { 1, 5000, 1 } })
  end)

  it("logarithms of all that there is", function()
    for _, list in ipairs { { 1e-300, 1e300 }, { 1, 1 }, { 5e-324, 1 },
                            { -1, 0, 1e-5, nan } } do
      text_of(plot.lines { { x = list, y = list }, xscale = "log",
                           yscale = "log", width = 160, height = 120 })
    end
  end)

  it("tensors of any dtype, with a history, and lists of them", function()
    local w = fnn.Param(fnn.tensor { 1, 2, 3 })
    text_of(lines(w * 2))
    text_of(lines(fnn.tensor({ 1, 2 }, { dtype = "i64" })))
    text_of(lines(fnn.tensor({ 1, 2 }):to "f16"))
    text_of(lines({ (w * 2):sum(), 3, fnn.tensor { 4 }:sum() }))
    text_of(lines(fnn.arange(10):narrow(1, 2, 5)))
    text_of(lines(fnn.rand { 6, 2 }:select(2, 1)))
    text_of(plot.histogram { fnn.rand { 3, 4 }, width = 160, height = 120 })
    text_of(plot.heatmap { fnn.rand { 3, 4 }:t() })
  end)

  it("texts of any bytes", function()
    local odd = "a\0b\xff\xfe\27[1m\u{1f600}\u{e9}\n\t" .. ("x"):rep(3000)
    local text = text_of(plot.lines {
      { y = { 1, 2 }, label = odd }, title = odd, xlabel = odd, ylabel = odd,
      width = 300, height = 200 })
    assert.is_nil(text:find "[%z\27\xff\xfe]")
    assert.is_truthy(utf8.len(text))
  end)

  it("a random line that crosses itself all over", function()
    local x, y = fnn.rand { 20000 }, fnn.rand { 20000 }
    local begin = os.clock()
    plot.lines { { x = x, y = y }, width = 100, height = 80 }:image()
    assert.is_true(os.clock() - begin < 2)
  end)

  it("series in one list, as one series", function()
    assert.equal(text_of(plot.lines { { 1, 2, 3 } }),
                 text_of(plot.lines { 1, 2, 3 }))
  end)
end)

describe("a plot", function()
  it("says what it is", function()
    assert.equal("plot.lines 'Loss'",
                 tostring(plot.lines { { 1 }, title = "Loss" }))
    assert.equal("plot.images", tostring(plot.images { fnn.zeros(1, 2, 2) }))
  end)

  it("has try_ forms", function()
    local p, message = plot.try_lines { { 1 }, titel = "x" }
    assert.is_nil(p)
    assert.matches("unknown option 'titel'", message)
    local ok, why = plot.lines { { 1 } }:try_save "/nowhere/at/all.png"
    assert.is_nil(ok)
    assert.matches("/nowhere/at/all.png", why)
  end)

  it("errors at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() plot.lines { { 1 }, wide = 1 } end)
    assert.matches("arguments_spec.lua:" .. line .. ":", message)
  end)
end)
