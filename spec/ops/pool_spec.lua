local fnn = require "fnn"

local nan, inf = 0 / 0, math.huge

local function image (rows) return fnn.tensor(rows):unsqueeze(1) end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

describe("a window far larger than the plane", function ()
  local most = (1 << 31) - 1

  it("sees what is there, at once", function ()
    local x = fnn.Param(image { { 3, 7, 7, 2 } })
    for _, f in ipairs { "max_pool1d", "avg_pool1d" } do
      local y = x:value():squeeze(1)
      y = y[f](y, most, { padding = most // 2, stride = 1 })
      assert.same({ 1, 4 }, y:shape())
    end
    local y = x:max_pool1d(most, { padding = most // 2, stride = 1 })
    assert.same({ { { 7, 7, 7, 7 } } }, y:totable())
    y:sum():backward()
    assert.same({ { { 0, 4, 0, 0 } } }, x:grad():totable())
  end)

  it("is the maximum of each part that it covers", function ()
    local x = fnn.tensor { { { 1, 5, 2, 4, 3 } } }
    assert.same({ { { 5, 5, 5, 5, 4, 4 } } },
                x:max_pool1d(4, { padding = 2, stride = 1 }):totable())
    assert.same({ { { 5, 2, 5, 3, 4 } } },
                x:max_pool1d(2, { padding = 1, stride = 1, dilation = 2 })
                  :totable())
  end)
end)

describe("max_pool", function ()
  it("takes the first of equal ones, and says which", function ()
    local x = fnn.Param(image { { 5, 5, 1, 2 }, { 5, 5, 2, 2 } })
    for _, last in ipairs { false, true } do
      local v = x:value():unsqueeze(1)
      if last then v = v:channels_last() end
      local y, ids = v:max_pool2d(2, { return_indices = true })
      assert.same({ { { { 5, 2 } } } }, y:totable())
      assert.same({ { { { 0, 3 } } } }, ids:totable())
      x:set_grad(nil)
      y:sum():backward()
      assert.same({ { { 1, 0, 0, 1 }, { 0, 0, 0, 0 } } }, x:grad():totable())
    end
  end)

  it("lets NaN win, and infinity be", function ()
    for _, last in ipairs { false, true } do
      local x = fnn.tensor({ 1, nan, 3, 4, -inf, -inf, inf, 2 }, { 1, 1, 8 })
      x = fnn.cat({ x, x }, 2)
      if last then x = x:channels_last() end
      local y, ids = x:max_pool1d(2, { return_indices = true })
      y, ids = y:totable()[1], ids:totable()[1]
      for c = 1, 2 do
        assert.is_true(y[c][1] ~= y[c][1])
        assert.same({ 4, -inf, inf }, { y[c][2], y[c][3], y[c][4] })
        assert.same({ 1, 3, 4, 6 }, ids[c])
      end
    end
  end)

  it("adds up gradients where windows overlap", function ()
    local x = fnn.Param(fnn.tensor({ 1, 9, 2, 3 }, { 1, 4 }))
    x:max_pool1d(2, { stride = 1 }):sum():backward()
    assert.same({ { 0, 2, 0, 1 } }, x:grad():totable())
  end)
end)

describe("avg_pool", function ()
  it("counts padding, or not", function ()
    local x = fnn.tensor({ 2, 4, 6 }, { 1, 3 })
    assert.same({ { 1, 5 } }, x:avg_pool1d(2, { padding = 1 }):totable())
    assert.same({ { 2, 5 } }, x:avg_pool1d(2, {
      padding = 1, count_include_pad = false }):totable())
    assert.same({ { 3, 6 } }, x:avg_pool1d(2, { ceil_mode = true }):totable())
    assert.same({ { 3 } }, x:avg_pool1d(2):totable())
  end)

  it("keeps its digits in a large window", function ()
    local x = fnn.full({ 1, 3, 1000, 1000 }, 0.1)
    for _, y in ipairs { x, x:channels_last() } do
      for _, v in ipairs { y:adaptive_avg_pool2d(1), y:avg_pool2d(1000) } do
        assert.near(fnn.tensor(0.1):item(), v:totable()[1][3][1][1], 3e-7)
      end
    end
  end)
end)

describe("a pool", function ()
  local calls = {
    { "max_pool2d", { 3, 2 }, { stride = 2, padding = 1 } },
    { "max_pool2d", 2, { dilation = 2, stride = 1 } },
    { "max_pool2d", 3, { stride = 3, ceil_mode = true } },
    { "avg_pool2d", 3, { stride = 2, padding = 1 } },
    { "avg_pool2d", 11, { stride = 4, count_include_pad = false,
                          padding = 5 } },
    { "adaptive_max_pool2d", { 5, 3 } }, { "adaptive_avg_pool2d", { 3, 7 } },
    { "adaptive_avg_pool2d", 1 },
  }

  it("gives the same in both orders, and keeps them", function ()
    local x = fnn.randn({ 3, 70, 23, 19 }, { generator = fnn.Generator(4) })
    for _, c in ipairs(calls) do
      local p = fnn.Param(x)
      local y = p[c[1]](p, c[2], c[3])
      local gy = fnn.randn(y:shape(), { generator = fnn.Generator(5) })
      y:backward(gy)
      local q = fnn.Param(x)
      local z, last = q:channels_last(), gy:channels_last()
      local before = fnn.memory().conversions
      z = z[c[1]](z, c[2], c[3])
      assert.equal("channels_last", z:order())
      z:backward(last)
      assert.equal(before, fnn.memory().conversions)
      assert.is_true((y:detach() - z:detach()):abs():max():item() < 1e-6)
      assert.is_true((p:grad() - q:grad()):abs():max():item() < 1e-6)
    end
  end)

  it("needs no graph for its maxima", function ()
    local x = fnn.randn(2, 20, 9, 9)
    local want = fnn.Param(x):max_pool2d(3)
    assert.same(want:totable(), x:max_pool2d(3):totable())
    assert.same(want:totable(), x:channels_last():max_pool2d(3):totable())
  end)

  it("takes a batch of nothing", function ()
    local x = fnn.Param(fnn.zeros(0, 3, 4, 4))
    for _, c in ipairs(calls) do
      local y = x:value()
      y = y[c[1]](y, 2)
      assert.equal(0, y:size(1))
      y:sum():backward()
    end
    assert.same({ 0, 3, 4, 4 }, x:grad():shape())
  end)

  it("says what is wrong", function ()
    local x = fnn.ones(1, 2, 4, 4)
    fails("max_pool2d: kernel: expected a whole number of at least 1 or a " ..
          "table of 2, got nil", function () x:max_pool2d() end)
    fails("max_pool2d: stride: expected a whole number of at least 1 or a " ..
          "table of 2, got 0", function () x:max_pool2d(2, { stride = 0 }) end)
    fails("avg_pool2d: padding: expected a whole number of at least 0",
          function () x:avg_pool2d(2, { padding = -1 }) end)
    fails("avg_pool2d: padding 2 is more than half of the kernel, 2",
          function () x:avg_pool2d(2, { padding = 2 }) end)
    fails("avg_pool2d: a window of 5 does not fit into a dim of 4",
          function () x:avg_pool2d(5) end)
    fails("max_pool1d: expected shape (n, channels, l) or (channels, l), " ..
          "got (1, 2, 4, 4)", function () x:max_pool1d(2) end)
    fails("adaptive_avg_pool2d: size: expected a whole number",
          function () x:adaptive_avg_pool2d("a") end)
    fails("max_pool2d: nothing to pool in shape (1, 2, 0, 4)",
          function () fnn.ones(1, 2, 0, 4):max_pool2d(2) end)
    fails("unknown option 'strid' (did you mean 'stride'?)",
          function () x:max_pool2d(2, { strid = 1 }) end)
    fails("max_pool2d: kernel, stride or dilation above 2^31 - 1",
          function () x:max_pool2d(math.maxinteger) end)
  end)
end)

describe("interpolate", function ()
  it("repeats, or draws lines", function ()
    local x = fnn.tensor({ 1, 3, 7 }, { 1, 1, 3 })
    assert.same({ 1, 1, 3, 3, 7, 7 },
                x:interpolate { scale_factor = 2 }:totable()[1][1])
    assert.same({ 1, 1.5, 2.5, 4, 6, 7 }, x:interpolate {
      scale_factor = 2, mode = "linear" }:totable()[1][1])
    assert.same({ 1, 2, 3, 5, 7 }, x:interpolate {
      size = 5, mode = "linear", align_corners = true }:totable()[1][1])
  end)

  it("gives the same in both orders, and keeps them", function ()
    local x = fnn.randn({ 2, 40, 9, 7 }, { generator = fnn.Generator(4) })
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
      for _, size in ipairs { 31, 4 } do
        local p, q = fnn.Param(x), fnn.Param(x)
        local o = { size = size, mode = mode }
        local y, z = p:interpolate(o), q:channels_last():interpolate(o)
        assert.equal("channels_last", z:order())
        local gy = fnn.randn(y:shape())
        y:backward(gy)
        z:backward(gy:channels_last())
        assert.is_true((y:detach() - z:detach()):abs():max():item() < 1e-6)
        assert.is_true((p:grad() - q:grad()):abs():max():item() < 1e-5)
      end
    end
  end)

  it("makes a smaller image of all pixels with antialias", function ()
    -- By hand: a triangle of reach 2 around 2 and 6, cut at the edges.
    local x = fnn.tensor({ 8, 0, 0, 0, 0, 0, 0, 0 }, { 1, 1, 1, 8 })
    local y = x:interpolate { size = { 1, 2 }, mode = "bilinear",
                              antialias = true }:totable()[1][1][1]
    -- Weights of 4 wide: .625, .875, .875, .625, .375, .125: 3.5 in all.
    assert.near(8 * 0.625 / 3.5, y[1], 1e-6)
    assert.equal(0, y[2])
    local flat = fnn.ones(1, 40, 9, 7):interpolate {
      size = { 4, 3 }, mode = "bicubic", antialias = true }
    assert.is_true((flat - 1):abs():max():item() < 1e-6)
    local z = fnn.randn({ 2, 40, 9, 7 }, { generator = fnn.Generator(4) })
    local o = { size = { 4, 9 }, mode = "bilinear", antialias = true }
    assert.is_true((z:interpolate(o) - z:channels_last():interpolate(o))
                   :abs():max():item() < 1e-6)
    fails("antialias is for bilinear and bicubic", function ()
      x:interpolate { size = 2, antialias = true }
    end)
  end)

  it("moves pixels by factors from 1 to 2^15 alone", function ()
    local x = fnn.ones(1, 4, 2, 2)
    for _, f in ipairs { "pixel_shuffle", "pixel_unshuffle" } do
      for _, r in ipairs { 0, -1, -(1 << 40), 1 << 40 } do
        fails(("%s: shape (1, 4, 2, 2) does not fit a factor of %d"):format(
          f, r), function () x[f](x, r) end)
      end
      fails(f .. ": shape (4) does not fit a factor of 2",
            function () fnn.ones(4)[f](fnn.ones(4), 2) end)
    end
  end)

  it("says what is wrong", function ()
    local x = fnn.ones(1, 2, 4, 4)
    fails("interpolate: expected a size or a scale factor",
          function () x:interpolate {} end)
    fails("interpolate: mode 'linear' is for shapes of 3 dims, got (1, 2, 4, "
          .. "4)",
          function () x:interpolate { size = 2, mode = "linear" } end)
    fails("interpolate: nearest has no corners to align",
          function () x:interpolate { size = 2, align_corners = true } end)
    fails("interpolate: scale_factor: expected a number above 0, or 2 in a " ..
          "table, got -1", function () x:interpolate { scale_factor = -1 } end)
    fails("interpolate: a dim of 4 cannot become 0 (shape (1, 2, 4, 4))",
          function () x:interpolate { scale_factor = 0.1 } end)
  end)
end)
