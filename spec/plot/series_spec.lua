local fnn = require "fnn"
local plot = fnn.plot

-- How many pixels of a picture are of a color (red, green, blue).
local function count (p, r, g, b)
  local path = os.tmpname()
  p:save(path)
  local image = fnn.io.read_png(path, { channels = 3 })
  os.remove(path)
  local function is (k, v) return image:select(3, k):eq(v) end
  return is(1, r):logical_and(is(2, g)):logical_and(is(3, b)):sum():item()
end

describe("plot: a series", function ()
  local function series (line)
    return { x = { 0, 1 }, y = { 0.5, 0.5 }, color = 0x102030, line = line,
             size = 6 }
  end
  local function pixels (make, line)
    return count(plot[make] { series(line) }, 0x10, 0x20, 0x30)
  end

  -- The line crosses some 700 pixels, a point of radius 6 covers about 100.
  it("is drawn as points, or as a line, whatever the others are", function ()
    for _, points in ipairs{ pixels("scatter"), pixels("scatter", false),
                             pixels("lines", false) } do
      assert.near(200, points, 60)
    end
    for _, line in ipairs{ pixels("lines"), pixels("lines", true),
                           pixels("scatter", true) } do
      assert.is_true(line > 600, line)
    end
  end)

  it("says what line must be", function ()
    assert.error_matches(function ()
      plot.lines { { y = { 1, 2 }, line = "thick" } }
    end, "line.*boolean")
  end)
end)
