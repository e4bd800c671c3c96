-- Positions: what PyTorch's numbers (spec/fixtures/parity/positions.lua) do
-- not tell.

local fnn = require "fnn"
local nn = fnn.nn

local function near (want, x, tolerance)
  assert.is_true((x - want):abs():max():item() <= (tolerance or 1e-6))
end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function numbers (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

describe("x:rotary", function ()
  local quarter = fnn.tensor { { 1 }, { 0 }, { -1 } }  -- 0, 90, 180 degrees
  local sines = fnn.tensor { { 0 }, { 1 }, { 0 } }

  it("turns pairs by their place, and lets the rest pass", function ()
    local x = fnn.tensor { { 1, 2, 3 }, { 1, 2, 3 }, { 1, 2, 3 } }
    assert.same({ { 1, 2, 3 }, { -2, 1, 3 }, { -1, -2, 3 } },
                x:rotary(quarter, sines):totable())
    assert.same({ { -2, 1, 3 } },
                x:narrow(1, 1, 1):rotary(quarter, sines,
                                         { positions = 1 }):totable())
  end)

  it("knows both ways to pair numbers", function ()
    local x = fnn.tensor { { 1, 2, 3, 4 } }
    local cos, sin = fnn.tensor { { 0, 1 } }, fnn.tensor { { 1, 0 } }
    assert.same({ { -3, 2, 1, 4 } }, x:rotary(cos, sin):totable())
    assert.same({ { -2, 1, 3, 4 } },
                x:rotary(cos, sin, { interleaved = true }):totable())
  end)

  it("takes any strides and lays its result out by length", function ()
    local x = numbers(1, 2, 5, 3, 4):transpose(2, 3)
    local angles = numbers(2, 5, 2)
    local cos, sin = angles:cos(), angles:sin()
    local y = x:rotary(cos, sin)
    assert.same({ 60, 4, 12, 1 }, y:stride())
    near(x:contiguous():rotary(cos, sin), y, 0)
    local flipped = x:contiguous():transpose(3, 4):contiguous()
    near(y, flipped:transpose(3, 4):rotary(cos, sin), 0)
  end)

  it("keeps lengths and turns back", function ()
    local x, angles = numbers(3, 2, 3, 40, 16), numbers(4, 40, 8)
    local y = x:rotary(angles:cos(), angles:sin())
    near(x:pow(2):sum(4), y:pow(2):sum(4), 1e-4)
    near(x, y:rotary(angles:cos(), -angles:sin()), 1e-5)
  end)

  it("does not depend on the number of threads", function ()
    local x, angles = numbers(5, 4, 8, 300, 16), numbers(6, 300, 8)
    local was = fnn.threads()
    local one, many
    fnn.threads(1)
    one = x:rotary(angles:cos(), angles:sin())
    fnn.threads(4)
    many = x:rotary(angles:cos(), angles:sin())
    fnn.threads(was)
    near(one, many, 0)
  end)

  it("is of nothing", function ()
    assert.same({ 0, 4 }, fnn.zeros(0, 4):rotary(fnn.zeros(0, 2),
                                                 fnn.zeros(0, 2)):shape())
  end)

  it("names what does not fit", function ()
    local x = fnn.zeros(2, 3, 4)
    local cos = fnn.zeros(5, 2)
    fails("rotary: expected tables (places, r / 2), r at most the last size " ..
          "of (2, 3, 4), got (5, 3) and (5, 3)",
          function () x:rotary(fnn.zeros(5, 3), fnn.zeros(5, 3)) end)
    fails("rotary: 3 positions from 3 are out of range for 5 (they count " ..
          "from 0)", function () x:rotary(cos, cos, { positions = 3 }) end)
    fails("rotary: 3 positions from -1 are out of range",
          function () x:rotary(cos, cos, { positions = -1 }) end)
    fails("rotary: 3 positions from 9223372036854775807 are out of range",
          function () x:rotary(cos, cos, { positions = math.maxinteger }) end)
    fails("rotary: expected positions (3) or (1, 3), got (4)", function ()
      x:rotary(cos, cos, { positions = fnn.zeros({ 4 }, { dtype = "i64" }) })
    end)
    fails("rotary: id 5 at position 2 is out of range for 5 positions",
          function ()
      x:rotary(cos, cos, { positions = fnn.tensor({ 0, 5, 1 },
                                                  { dtype = "i64" }) })
    end)
    fails("rotary: expected (batch, heads, length, size)",
          function () fnn.zeros(4):rotary(cos, cos) end)
    fails("unknown option 'position' (did you mean 'positions'?)",
          function () x:rotary(cos, cos, { position = 1 }) end)
    fails("rotary", function () x:to("f16"):rotary(cos, cos) end)
  end)
end)

describe("Rotary", function ()
  it("makes products depend on the distance alone", function ()
    local r = nn.Rotary(16)
    local q, k = numbers(1, 1, 1, 1, 16), numbers(2, 1, 1, 1, 16)
    local function product (i, j)
      return (r(q, { positions = i }) * r(k, { positions = j })):sum():item()
    end
    assert.near(product(0, 3), product(7, 10), 1e-5)
    assert.near(product(5, 1), product(104, 100), 1e-5)
    assert.is_true(math.abs(product(0, 3) - product(0, 4)) > 1e-3)
  end)

  it("counts what a mask keeps", function ()
    local r, x = nn.Rotary(4), numbers(3, 2, 1, 4, 4)
    local mask = fnn.tensor { { 0, 0, 1, 1 }, { 1, 1, 1, 0 } }:to("bool")
    local y = r(x, { key_mask = mask })
    near(r(x[1]:narrow(2, 3, 2):unsqueeze(1)),
         y[1]:narrow(2, 3, 2):unsqueeze(1), 0)
    near(r(x[2]:narrow(2, 1, 3):unsqueeze(1)),
         y[2]:narrow(2, 1, 3):unsqueeze(1), 0)
  end)

  it("grows, saves nothing, and is exact again after a move", function ()
    local r = nn.Rotary(8, { length = 4 })
    assert.same({ 4, 4 }, r.cos:shape())
    r(fnn.zeros(1, 1, 5, 8))
    assert.equal(8, #r.cos)
    r(fnn.zeros(1, 1, 3, 8))
    assert.equal(8, #r.cos)
    assert.same({}, r:state_dict())
    local x = numbers(4, 1, 1, 6, 8)
    local want = r(x)
    r:to("f16"):to("f32")
    near(want, r(x), 0)
    local angle = 5 * 10000 ^ (-2 / 8)
    r(x:to("f64"))
    assert.near(math.cos(angle), r.cos[6][2], 1e-15)
  end)

  it("names what does not fit", function ()
    fails("Rotary: expected an even number of dims up to 6 to turn, got 5",
          function () nn.Rotary(6, { dims = 5 }) end)
    fails("even number of dims up to 6", function ()
      nn.Rotary(6, { dims = 8 }) end)
    fails("Rotary: expected (batch, heads, length, 8), got (1, 2, 6)",
          function () nn.Rotary(8)(fnn.zeros(1, 2, 6)) end)
    fails("option 'scaling': expected a table with type = 'linear' or " ..
          "'llama3', got type yarn",
          function () nn.Rotary(8, { scaling = { type = "yarn" } }) end)
    fails("Rotary: scaling.low_freq_factor: expected a number, got nil",
          function ()
      nn.Rotary(8, { scaling = { type = "llama3", factor = 8 } })
    end)
    fails("unknown option 'bass' (did you mean 'base'?)",
          function () nn.Rotary(8, { bass = 1 }) end)
  end)
end)

describe("positions that are added", function ()
  it("learned: only rows that were used get a gradient", function ()
    local m = nn.LearnedPositions(5, 2)
    m(fnn.zeros(3, 2, 2), { positions = 1 }):sum():backward()
    assert.same({ { 0, 0 }, { 3, 3 }, { 3, 3 }, { 0, 0 }, { 0, 0 } },
                m.weight:grad():totable())
  end)

  it("name what does not fit", function ()
    fails("LearnedPositions: positions 4 to 5 are out of range for 5",
          function () nn.LearnedPositions(5, 2)(fnn.zeros(1, 2, 2),
                                                { positions = 4 }) end)
    fails("LearnedPositions: expected (batch, length, 2), got (2, 3)",
          function () nn.LearnedPositions(5, 2)(fnn.zeros(2, 3)) end)
    fails("SinusoidalPositions: dim: expected an even number, got 5",
          function () nn.SinusoidalPositions(5) end)
    fails("option 'positions': expected an integer or a tensor of them, " ..
          "got a string",
          function () nn.SinusoidalPositions(4)(fnn.zeros(1, 2, 4),
                                                { positions = "2" }) end)
  end)
end)

describe("Alibi", function ()
  it("has the slopes of the paper", function ()
    local slopes = nn.Alibi(8)(fnn.zeros(1)):totable()
    for i = 1, 8 do assert.near(2 ^ -i, slopes[i], 1e-8) end
    local three = nn.Alibi(3)(fnn.zeros({ 1 }, { dtype = "f64" })):totable()
    assert.near(2 ^ -4, three[1], 1e-15)
    assert.near(2 ^ -8, three[2], 1e-15)
    assert.near(2 ^ -2, three[3], 1e-15)
  end)
end)
