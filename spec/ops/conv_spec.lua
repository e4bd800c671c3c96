local fnn = require "fnn"

local function whole (...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return fnn.arange(n):mul(7):remainder(11):sub(5):reshape(...)
end

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  assert.truthy(message:find("conv_spec.lua:", 1, true), message)
end

local function equal (x, y)
  assert.same(x:shape(), y:shape())
  assert.equal(0, (x - y):abs():max():item())
end

describe("conv1d", function ()
  it("has the sums of its definition", function ()
    local x = fnn.tensor({ 1, 2, 3, 4, 5 }):reshape(1, 1, 5)
    local y = x:conv1d(fnn.tensor({ 10, 1 }):reshape(1, 1, 2),
                       { dilation = 2 })
    assert.same({ { { 13, 24, 35 } } }, y:totable())
  end)

  it("in its causal form sees no later place", function ()
    local w = whole(2, 3, 3)
    local function f (x)
      return x:conv1d(w, nil, { padding = "causal", dilation = 2 })
    end
    local x = whole(1, 3, 9)
    local before, poked = f(x), x:clone()
    poked:narrow(3, 6, 1):add_(1)
    local after = f(poked)
    assert.same({ 1, 2, 9 }, before:shape())
    assert.same(before:narrow(3, 1, 5):totable(),
                after:narrow(3, 1, 5):totable())
    assert.is_true((after - before):narrow(3, 6, 1):abs():max():item() > 0)
  end)
end)

describe("conv2d", function ()
  it("of groups is the convolution of each part", function ()
    local x, w = whole(2, 4, 5, 6), whole(6, 2, 3, 2)
    local b = fnn.arange(6)
    local y = x:conv2d(w, b, { groups = 2, padding = 1, stride = 2 })
    local parts = {}
    for g = 1, 2 do
      parts[g] = x:narrow(2, 2 * g - 1, 2):conv2d(
        w:narrow(1, 3 * g - 2, 3), b:narrow(1, 3 * g - 2, 3),
        { padding = 1, stride = 2 })
    end
    equal(fnn.cat(parts, 2), y)
  end)

  it("of groups of one channel is depthwise", function ()
    for _, channels in ipairs { 3, 8, 33 } do
      local x, w = whole(2, channels, 7, 9), whole(channels, 1, 3, 3)
      local y = x:conv2d(w, nil, { groups = channels, padding = 1 })
      for c = 1, channels do
        equal(x:narrow(2, c, 1):conv2d(w:narrow(1, c, 1), nil,
                                       { padding = 1 }),
              y:narrow(2, c, 1))
      end
    end
  end)

  it("takes padding as numbers, pairs and words", function ()
    local x, w = whole(1, 2, 5, 4), whole(3, 2, 3, 2)
    local function size (padding)
      local s = x:conv2d(w, nil, { padding = padding }):shape()
      return s[3] .. "x" .. s[4]
    end
    assert.equal("3x3", size "valid")
    assert.equal("5x4", size "same")
    assert.equal("5x5", size(1))
    assert.equal("3x5", size { 0, 1 })
    assert.equal("4x5", size { { 1, 0 }, { 0, 2 } })
    -- what the pairs add is zeros on that side
    local padded = fnn.zeros(1, 2, 6, 6)
    padded:narrow(3, 2, 5):narrow(4, 1, 4):copy_(x)
    equal(padded:conv2d(w),
          x:conv2d(w, nil, { padding = { { 1, 0 }, { 0, 2 } } }))
  end)

  it("takes an input without a batch", function ()
    local x, w = whole(2, 4, 5), whole(3, 2, 2, 2)
    equal(x:unsqueeze(1):conv2d(w):squeeze(1), x:conv2d(w))
  end)

  it("of no images has none", function ()
    local x = fnn.Param(fnn.zeros(0, 2, 4, 4))
    local w = fnn.Param(whole(3, 2, 3, 3))
    local y = x:conv2d(w)
    assert.same({ 0, 3, 2, 2 }, y:shape())
    y:sum():backward()
    assert.equal(0, w:grad():abs():max():item())
  end)

  it("widens what only stores", function ()
    local x, w = whole(1, 3, 5, 5), whole(4, 3, 3, 3)
    local y = x:conv2d(w)
    for _, t in ipairs { "f16", "bf16" } do
      local half = x:to(t):conv2d(w:to(t))
      assert.equal("f32", half:dtype())
      equal(y, half)
    end
    assert.equal("f64", x:conv2d(w:to "f64"):dtype())
  end)

  it("does not let NaN out of the places that see it", function ()
    local x = whole(1, 1, 6, 6)
    x[1][1][1][1] = 0 / 0
    local y = x:conv2d(whole(1, 1, 2, 2)):isnan():to "i64"
    assert.equal(1, y:sum():item())
  end)

  it("says what is wrong", function ()
    local x, w = fnn.zeros(1, 3, 8, 8), fnn.zeros(4, 3, 3, 3)
    fails("conv2d: x (1, 3, 8, 8) and weight (4, 2, 3, 3), groups 1: " ..
          "expected x of 2 channels, got 3", fnn.conv2d, x,
          fnn.zeros(4, 2, 3, 3))
    fails("conv2d: x (3, 8) and weight (4, 3, 3, 3): expected x of 4 dims",
          fnn.conv2d, fnn.zeros(3, 8), w)
    fails("conv2d: expected a weight of 4 dims (out, in / groups, height, " ..
          "width), got shape (4, 3, 3)", fnn.conv2d, x, fnn.zeros(4, 3, 3))
    fails("conv2d: bias (3) for weight (4, 3, 3, 3) (expected (4))",
          fnn.conv2d, x, w, fnn.zeros(3))
    fails("conv2d: x (1, 3, 2, 8) and weight (4, 3, 3, 3): the kernel " ..
          "reaches over 3 places of dim 3, which has 2 with its padding",
          fnn.conv2d, fnn.zeros(1, 3, 2, 8), w)
    fails("conv2d: 4 channels out do not split into 3 groups", fnn.conv2d,
          fnn.zeros(1, 9, 8, 8), w, nil, { groups = 3 })
    fails("option 'stride': expected a whole number of at least 1, got 0",
          fnn.conv2d, x, w, nil, { stride = 0 })
    fails("option 'dilation': expected a number or a list of 2, got a list " ..
          "of 3", fnn.conv2d, x, w, nil, { dilation = { 1, 1, 1 } })
    fails("option 'padding': expected a number, a list, 'same', 'valid' or " ..
          "'causal', got 'full'", fnn.conv2d, x, w, nil, { padding = "full" })
    fails("option 'padding': 'causal' is for 1 dim, here are 2", fnn.conv2d,
          x, w, nil, { padding = "causal" })
    fails("option 'padding': 'same' needs a stride of 1, got 2", fnn.conv2d,
          x, w, nil, { padding = "same", stride = 2 })
    fails("unknown option 'strides' (did you mean 'stride'?)", fnn.conv2d, x,
          w, nil, { strides = 2 })
    fails("conv2d: expected a float tensor, got i64", fnn.conv2d,
          x:to "i64", w)
  end)
end)

describe("a frozen weight", function ()
  it("serves groups of every count, by and by", function ()
    for _, name in ipairs { "conv1d", "conv_transpose1d" } do
      local plain = whole(8, 4, 3)
      local w = fnn.Param(plain:clone()):freeze()
      for _, groups in ipairs { 1, 4, 2, 1 } do
        local x = whole(1, name == "conv1d" and 4 * groups or 8, 5)
        local o = { groups = groups }
        equal(fnn[name](x, plain, nil, o), fnn[name](x, w, nil, o))
      end
    end
  end)
end)

describe("sizes beyond all bounds", function ()
  local one = fnn.ones(1, 1, 1)

  it("are no matter where the taps meet padding", function ()
    local far = 1 << 30
    local x, w = whole(1, 64, 2, 8), whole(16, 64, 3, 3)
    local y = x:conv2d(w, { dilation = far, padding = far })
    equal(x:conv2d(w:narrow(3, 2, 1):narrow(4, 2, 1)), y)
  end)

  it("are refused", function ()
    fails("x 2147483647 is too large", function ()
      fnn.conv1d(fnn.ones(1, 3, 4), one:expand(1, 1 << 40, 1), nil,
                 { groups = (1 << 31) - 1 })
    end)
    fails("a kernel of 1099511627776 with dilation 2147483647 is too large",
          function ()
      fnn.conv1d(fnn.ones(1, 1, 4), one:expand(1, 1, 1 << 40),
                 { dilation = (1 << 31) - 1, padding = "same" })
    end)
    fails("are too many", function ()
      fnn.conv_transpose1d(one:expand(1, 1, 1 << 33), fnn.ones(1, 1, 2),
                           { stride = 1 << 30, dilation = (1 << 31) - 1 })
    end)
  end)
end)

describe("conv_transpose", function ()
  it("has the size that its options say", function ()
    local x, w = fnn.ones(1, 1, 4, 4), fnn.ones(1, 1, 3, 3)
    local o = { stride = 2, padding = 1 }
    assert.same({ 1, 1, 7, 7 }, x:conv_transpose2d(w, nil, o):shape())
    o.output_padding = 1
    assert.same({ 1, 1, 8, 8 }, x:conv_transpose2d(w, nil, o):shape())
    fails("conv_transpose2d: output_padding 2 (expected less than the " ..
          "stride, 2, or the dilation, 1)", fnn.conv_transpose2d, x, w, nil,
          { stride = 2, output_padding = 2 })
    fails("conv_transpose2d: x (1, 2, 4, 4) and weight (1, 1, 3, 3), " ..
          "groups 1: expected x of 1 channels, got 2", fnn.conv_transpose2d,
          fnn.zeros(1, 2, 4, 4), w)
  end)

  it("spreads one place by the kernel", function ()
    local x = fnn.zeros(1, 1, 2, 2)
    x[1][1][1][2] = 10
    local w = fnn.tensor({ 1, 2, 3, 4 }):reshape(1, 1, 2, 2)
    assert.same({ { { { 0, 0, 10, 20 }, { 0, 0, 30, 40 }, { 0, 0, 0, 0 },
                      { 0, 0, 0, 0 } } } },
                x:conv_transpose2d(w, nil, { stride = 2 }):totable())
  end)

  it("spreads places by strides far larger than the kernel", function ()
    local x, w = whole(1, 1, 2, 2), whole(1, 1, 2, 2)
    local y = x:conv_transpose2d(w, { stride = 40 })
    assert.same({ 1, 1, 42, 42 }, y:shape())
    for i = 1, 2 do
      for k = 1, 2 do
        local part = y:narrow(3, 40 * i - 39, 2):narrow(4, 40 * k - 39, 2)
        equal(w * x:narrow(3, i, 1):narrow(4, k, 1), part)
      end
    end
    assert.equal((x:sum() * w:sum()):item(), y:sum():item())
  end)

  it("is the adjoint of the convolution", function ()
    for _, o in ipairs {
      { stride = 1 }, { stride = 2, padding = 1 },
      { stride = { 3, 1 }, dilation = { 1, 2 }, padding = { 0, 2 } },
      { groups = 2, stride = 2 },
    } do
      local g = fnn.Generator(1)
      local x = fnn.randn(2, 4, 9, 7, { generator = g, dtype = "f64" })
      local w = fnn.randn(6, 4 // (o.groups or 1), 3, 3,
                          { generator = g, dtype = "f64" })
      local y = x:conv2d(w, nil, o)
      local z = fnn.randn(y:shape(), { generator = g, dtype = "f64" })
      local back = z:conv_transpose2d(w, nil, o)
      local h, v = back:size(3), back:size(4)
      local left = (y * z):sum():item()
      local right = (x:narrow(3, 1, h):narrow(4, 1, v) * back):sum():item()
      assert.near(left, right, 1e-10 * math.abs(left) + 1e-10)
    end
  end)
end)

describe("the order in memory", function ()
  local function conversions (f, ...)
    local before = fnn.memory().conversions
    f(...)
    return fnn.memory().conversions - before
  end

  it("is kept from the first convolution to the last", function ()
    local x, w = whole(2, 3, 6, 6), whole(5, 3, 3, 3)
    local v = whole(4, 5, 3, 3)
    local y
    assert.equal(2, conversions(function ()
      y = x:conv2d(w, { padding = 1 }):relu()
      y = ((y + y:mul(2)):conv2d(v) * 0.5):tanh()
      assert.equal("channels_last", y:order())
      y = y:contiguous()
    end))
    assert.equal("row_major", y:order())
  end)

  it("changes twice in a net: where it begins and where it ends", function ()
    local nn = fnn.nn
    local net = nn.Sequential(
      nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
      nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(),
      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 3 * 3, 10))
    local x = whole(2, 3, 16, 16)
    local y
    assert.equal(2, conversions(function () y = net(x) end))
    -- and back: the gradient of what Flatten made row-major
    local loss = y:cross_entropy { 3, 7 }
    assert.equal(1, conversions(function () loss:backward() end))
    net:eval()
    assert.equal(2, conversions(function ()
      fnn.no_grad(function () net(x) end)
    end))
  end)

  it("is kept on the way back", function ()
    local x, w = whole(2, 3, 6, 6), fnn.Param(whole(5, 3, 3, 3))
    local v = fnn.Param(whole(4, 5, 3, 3))
    local y = x:conv2d(w, { padding = 1 }):relu():conv2d(v):tanh()
    local up = fnn.ones(y:shape()):channels_last()
    assert.equal(0, conversions(function () y:backward(up) end))
    assert.is_true(w:grad():is_contiguous())
  end)

  it("does not show in values, shapes or files", function ()
    local x = whole(2, 3, 2, 2)
    local y = x:channels_last()
    assert.equal("channels_last", y:order())
    assert.is_false(y:is_contiguous())
    assert.same(x:totable(), y:totable())
    assert.equal(tostring(x), tostring(y))
    assert.same(x:shape(), y:shape())
    assert.same(x:flatten():totable(), y:flatten():totable())
    assert.same(x:sum(2):totable(), y:sum(2):totable())
    assert.same(x:argmax(2):totable(), y:argmax(2):totable())
    assert.same(x:permute(2, 1, 4, 3):totable(),
                y:permute(2, 1, 4, 3):totable())
    assert.equal("channels_last", y:to("f64"):order())
    fails("channels_last: expected a tensor (n, channels, ...) of at least " ..
          "3 dims, got shape (2, 3)", function ()
      fnn.zeros(2, 3):channels_last()
    end)
  end)

  it("costs nothing where both orders are one", function ()
    assert.equal(0, conversions(function ()
      fnn.zeros(2, 1, 4, 4):channels_last()
      fnn.zeros(2, 5, 1, 1):channels_last():contiguous()
    end))
  end)
end)
