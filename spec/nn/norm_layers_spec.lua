-- Layers of normalization, pools, resizing and gates: what PyTorch's numbers
-- (spec/fixtures/parity/norm.lua) do not tell.

local fnn = require "fnn"
local nn = fnn.nn

local function near (want, x, tolerance)
  assert.is_true((x - want):abs():max():item() <= (tolerance or 1e-6))
end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  assert.truthy(message:find("norm_layers_spec.lua:", 1, true), message)
end

describe("the eps of a norm", function ()
  it("is a finite number of 0 or more", function ()
    for _, new in ipairs {
      function (o) return nn.LayerNorm(4, o) end,
      function (o) return nn.RMSNorm(4, o) end,
      function (o) return nn.GroupNorm(2, 4, o) end,
      function (o) return nn.BatchNorm2d(4, o) end,
      function (o) return nn.InstanceNorm1d(4, o) end,
    } do
      new { eps = 0 }
      for _, eps in ipairs { -1e-5, 0 / 0, math.huge } do
        fails("an eps of 0 or more", function () new { eps = eps } end)
      end
    end
  end)
end)

describe("BatchNorm", function ()
  local function trained ()
    local m = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    for seed = 1, 3 do
      m(fnn.randn({ 4, 3, 5, 5 }, { generator = fnn.Generator(seed) }) * 2 + 1)
    end
    return m
  end

  it("has PyTorch's names, and its buffers in every checkpoint", function ()
    local m, names = trained(), {}
    for i, name in ipairs(m:state_dict()) do names[i] = name end
    assert.same({ "0.weight", "0.bias", "0.running_mean", "0.running_var",
                  "0.num_batches_tracked" }, names)
    assert.equal(3, m:state_dict()["0.num_batches_tracked"]:item())
    local path = os.tmpname()
    m:save(path)
    local x = fnn.randn(2, 3, 4, 4)
    for _, load in ipairs { function (n) n:load(path) end,
                            function (n) n:load_state_dict(m:state_dict()) end
                          } do
      local n = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
      load(n)
      assert.equal(3, n[1].num_batches_tracked:item())
      assert.same(m:eval()(x):totable(), n:eval()(x):totable())
    end
    os.remove(path)
  end)

  it("goes by the batch in training, by the running statistics in evaluation",
     function ()
    local m = trained()
    local x = fnn.randn(2, 3, 4, 4) * 10
    near(m[1](x):mean { 1, 3, 4 }, fnn.zeros(3), 1e-5)
    local l = m:eval()[1]
    local mean = l.running_mean:clone()
    local want = (x - mean:reshape(1, 3, 1, 1)) /
                 (l.running_var + 1e-5):sqrt():reshape(1, 3, 1, 1)
    near(want, l(x), 1e-5)
    near(mean, l.running_mean, 0)
    assert.equal(4, l.num_batches_tracked:item())
  end)

  it("counts no batch that failed, whatever is written next", function ()
    local m = nn.BatchNorm1d(3, { momentum = false })
    local x = fnn.randn({ 8, 3 }, { generator = fnn.Generator(4) })
    m(x)
    assert.is_false(pcall(m, x:to "f64"))
    m.num_batches_tracked:fill_(99)
    m.running_mean:zero_()
    m(x)
    near(x:mean(1) / 100, m.running_mean, 1e-6)
  end)

  it("takes the mean of all batches without a momentum", function ()
    local l = nn.BatchNorm1d(1, { momentum = false })
    for _, v in ipairs { 1, 2, 6 } do
      l(fnn.tensor { { v - 1 }, { v + 1 } })
    end
    assert.near(3, l.running_mean:item(), 1e-6)
    assert.near(2, l.running_var:item(), 1e-6)
  end)

  it("counts nothing when it raises, and nothing without statistics",
     function ()
    local l = nn.BatchNorm1d(2)
    fails("one value a channel has no variance",
          function () l(fnn.ones(1, 2)) end)
    assert.equal(0, l.num_batches_tracked:item())
    assert.same({ 0, 0 }, l.running_mean:totable())
    local bare = nn.BatchNorm1d(2, { track_running_stats = false })
    assert.is_nil(bare.running_mean)
    near(bare:eval()(fnn.tensor { { 1, 5 }, { 3, 5 } }),
         fnn.tensor { { -1, 0 }, { 1, 0 } }, 1e-5)
  end)

  it("moves to another dtype, and stays itself", function ()
    local l = nn.BatchNorm2d(2):to("f64")
    l(fnn.randn({ 2, 2, 3, 3 }, { dtype = "f64" }))
    assert.equal("f64", l.running_var:dtype())
    assert.equal("i64", l.num_batches_tracked:dtype())
    assert.equal(1, l.num_batches_tracked:item())
  end)

  it("tells what it was made with", function ()
    assert.equal("8", nn.BatchNorm2d(8):describe())
    assert.equal("8, { momentum = false, affine = false }",
                 nn.BatchNorm2d(8, { momentum = false, affine = false })
                   :describe())
    assert.equal("8, { eps = 0.001, momentum = 0.2, track_running_stats = " ..
                 "false }", nn.BatchNorm1d(8, {
                   eps = 1e-3, momentum = 0.2, track_running_stats = false
                 }):describe())
  end)
end)

describe("Dropout2d", function ()
  it("drops whole channels in training and scales the rest", function ()
    local d = nn.Dropout2d(0.3, { generator = fnn.Generator(2) })
    local y = d(fnn.ones(100, 100, 2, 2))
    near(y:max { 3, 4 }, y:min { 3, 4 }, 0)
    local kept = y:narrow(3, 1, 1):narrow(4, 1, 1):gt(0):sum():item() / 1e4
    assert.near(0.7, kept, 0.02)
    assert.near(1 / 0.7, y:max():item(), 1e-6)
    local x = fnn.randn(2, 3, 2, 2)
    assert.same(x:totable(), d:eval()(x):totable())
    assert.equal(0, nn.Dropout1d(1)(fnn.ones(2, 3, 4)):sum():item())
  end)
end)

describe("a chain of these layers", function ()
  it("carries the order in memory from input to output", function ()
    local m = nn.Sequential(nn.BatchNorm2d(8), nn.PReLU(8), nn.MaxPool2d(2),
                            nn.GroupNorm(2, 8), nn.AvgPool2d(2),
                            nn.Upsample { scale_factor = 2 },
                            nn.InstanceNorm2d(8), nn.Dropout2d(0.1),
                            nn.AdaptiveAvgPool2d(2))
    local x = fnn.randn(2, 8, 8, 8):channels_last()
    local gy = fnn.randn(2, 8, 2, 2):channels_last()
    local before = fnn.memory().conversions
    local y = m(x)
    assert.equal("channels_last", y:order())
    y:backward(gy)
    assert.equal(before, fnn.memory().conversions)
  end)
end)

describe("a constructor", function ()
  it("says what was expected and what came", function ()
    local x = fnn.ones(2, 4, 3, 3)
    fails("MaxPool2d: kernel: expected a whole number of at least 1 or a " ..
          "table of 2, got nil", function () nn.MaxPool2d() end)
    fails("MaxPool2d: kernel: expected a whole number of at least 1 or a " ..
          "table of 2, got a table", function () nn.MaxPool2d { 2, 3, 4 } end)
    fails("MaxPool1d: kernel: expected a whole number of at least 1, got 1.5",
          function () nn.MaxPool1d(1.5) end)
    fails("MaxPool2d: unknown option 'strid' (did you mean 'stride'?)",
          function () nn.MaxPool2d(2, { strid = 1 }) end)
    fails("AvgPool2d: padding: expected a whole number of at least 0 or a " ..
          "table of 2, got -1", function () nn.AvgPool2d(2, { padding = -1 })
    end)
    fails("AvgPool2d: option 'ceil_mode': expected true or false, got a " ..
          "number", function () nn.AvgPool2d(2, { ceil_mode = 1 }) end)
    fails("AdaptiveAvgPool2d: size: expected a whole number of at least 1 " ..
          "or a table of 2, got 0", function () nn.AdaptiveAvgPool2d(0) end)
    fails("MaxPool2d: expected at most 2 arguments, got 3",
          function () nn.MaxPool2d(2, {}, 1) end)
    fails("BatchNorm2d: channels (argument 1): expected a whole number of at" ..
          " least 1, got 0", function () nn.BatchNorm2d(0) end)
    fails("BatchNorm2d: expected 3 channels, got 4 (shape (2, 4, 3, 3))",
          function () nn.BatchNorm2d(3)(x) end)
    fails("BatchNorm1d: expected shape (n, channels) or (n, channels, l), " ..
          "got (2, 4, 3, 3)", function () nn.BatchNorm1d(4)(x) end)
    fails("BatchNorm1d: option 'momentum': expected a number from 0 to 1, " ..
          "or false, got 2", function () nn.BatchNorm1d(4, { momentum = 2 })
    end)
    fails("GroupNorm: 4 channels do not divide into 3 groups",
          function () nn.GroupNorm(3, 4) end)
    fails("InstanceNorm1d: expected shape (n, channels, l) or (channels, l)" ..
          ", got (2, 4, 3, 3)", function () nn.InstanceNorm1d(4)(x) end)
    fails("RMSNorm: expected a shape that ends in (5), got (2, 4, 3, 3)",
          function () nn.RMSNorm(5)(x) end)
    fails("Upsample: expected an option 'size' or 'scale_factor'",
          function () nn.Upsample {} end)
    fails("Upsample: option 'mode': expected 'nearest', 'linear', " ..
          "'bilinear' or 'bicubic', got 'cubic'",
          function () nn.Upsample { size = 3, mode = "cubic" } end)
    fails("Upsample: option 'scale_factor': expected a number above 0 or a " ..
          "table of 2, got -2", function () nn.Upsample { scale_factor = -2 }
    end)
    fails("PixelShuffle: factor: expected a whole number of at least 1, " ..
          "got nil", function () nn.PixelShuffle() end)
    fails("pixel_shuffle: shape (2, 4, 3, 3) does not fit a factor of 3",
          function () nn.PixelShuffle(3)(x) end)
    fails("Dropout2d: expected a probability from 0 to 1, got 2",
          function () nn.Dropout2d(2) end)
    fails("dropout1d: expected shape (n, channels, l), got (2, 4, 3, 3)",
          function () nn.Dropout1d()(x) end)
    fails("Unflatten: sizes: expected a table of sizes, got a number",
          function () nn.Unflatten(2, 2) end)
    fails("unflatten: the 4 of dim 2 of (2, 4, 3, 3) are not (3, 2)",
          function () nn.Unflatten(2, { 3, 2 })(x) end)
    fails("Bilinear: outputs: expected a whole number of at least 1, got nil",
          function () nn.Bilinear(2, 3) end)
    fails("Bilinear: expected two tensors",
          function () nn.Bilinear(2, 3, 4)(x) end)
    fails("PReLU: count (argument 1): expected a whole number of at least 1",
          function () nn.PReLU(0) end)
    fails("prelu: the weight has shape (3), the input (2, 4, 3, 3) " ..
          "(expected (1) or (4))", function () nn.PReLU(3)(x) end)
    fails("glu: dim 4 of shape (2, 4, 3, 3) has no halves",
          function () nn.GLU()(x) end)
    fails("GELU: option 'approximate': expected 'none', 'tanh' or 'quick'",
          function () nn.GELU { approximate = "fast" } end)
  end)
end)
