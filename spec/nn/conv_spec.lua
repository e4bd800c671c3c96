local fnn = require "fnn"
local nn = fnn.nn

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

describe("a convolution layer", function ()
  it("has PyTorch's names and shapes", function ()
    for _, case in ipairs {
      { nn.Conv1d(4, 6, 3), { 6, 4, 3 } },
      { nn.Conv2d(4, 6, { 3, 2 }, { groups = 2 }), { 6, 2, 3, 2 } },
      { nn.Conv3d(1, 2, 3), { 2, 1, 3, 3, 3 } },
      { nn.ConvTranspose1d(4, 6, 3), { 4, 6, 3 } },
      { nn.ConvTranspose2d(4, 6, 3, { groups = 2 }), { 4, 3, 3, 3 } },
    } do
      local layer, shape = case[1], case[2]
      assert.same(shape, layer.weight:shape())
      local transposed = tostring(layer):find "Transpose"
      assert.same({ transposed and 6 or shape[1] }, layer.bias:shape())
      local names = {}
      for name in layer:named_parameters() do names[#names + 1] = name end
      assert.same({ "weight", "bias" }, names)
    end
    assert.is_nil(nn.Conv2d(1, 2, 3, { bias = false }).bias)
    assert.equal("f64", nn.Conv2d(1, 2, 3, { dtype = "f64" }).weight:dtype())
  end)

  it("draws uniform numbers of deviation 1 / sqrt(3 fan)", function ()
    local l = nn.Conv2d(32, 64, 3, { generator = fnn.Generator(3) })
    local bound = 1 / math.sqrt(32 * 9)
    assert.is_true(l.weight:abs():max():item() <= bound)
    assert.near(bound / math.sqrt(3), l.weight:std():item(), 0.02 * bound)
    assert.near(0, l.weight:mean():item(), 0.02 * bound)
    assert.is_true(l.bias:abs():max():item() <= bound)
  end)

  it("shows what it was made with", function ()
    for text, layer in pairs {
      ["Conv2d(3, 16, 3)"] = nn.Conv2d(3, 16, 3),
      ["Conv2d(4, 8, { 3, 1 }, { stride = 2, padding = { 1, 0 }, " ..
       "groups = 2, bias = false })"] =
        nn.Conv2d(4, 8, { 3, 1 }, { stride = 2, padding = { 1, 0 },
                                    groups = 2, bias = false }),
      ["Conv1d(1, 2, 3, { padding = { { 4, 0 } }, dilation = 2 })"] =
        nn.Conv1d(1, 2, 3, { padding = "causal", dilation = 2 }),
      ["ConvTranspose2d(1, 2, 3, { stride = 2, output_padding = 1 })"] =
        nn.ConvTranspose2d(1, 2, 3, { stride = 2, output_padding = 1 }),
    } do
      assert.equal(1, tostring(layer):find(text, 1, true), tostring(layer))
    end
  end)

  it("learns a kernel", function ()
    local g = fnn.Generator(5)
    local want = nn.Conv2d(2, 3, 3, { padding = 1, generator = g })
    local model = nn.Conv2d(2, 3, 3, { padding = 1, generator = g })
    local opt = fnn.optim.Adam(model:parameters(), { lr = 0.05 })
    local x = fnn.randn(4, 2, 8, 8, { generator = g })
    local y = fnn.no_grad(function () return want(x) end)
    local loss
    for _ = 1, 150 do
      loss = model(x):mse(y)
      model:zero_grad()
      loss:backward()
      opt:step()
    end
    assert.is_true(loss:item() < 1e-5, tostring(loss))
  end)

  it("says what is wrong with its arguments", function ()
    fails("Conv2d: channels out (argument 2): expected a whole number of at " ..
          "least 1, got nothing", nn.Conv2d, 3)
    fails("Conv2d: channels in (argument 1): expected a whole number of at " ..
          "least 1, got 0", nn.Conv2d, 0, 4, 3)
    fails("Conv2d: kernel size (argument 3): expected a whole number of at " ..
          "least 1, got nothing", nn.Conv2d, 3, 4)
    fails("Conv2d: kernel size (argument 3): expected a number or a list of " ..
          "2, got a list of 3", nn.Conv2d, 3, 4, { 3, 3, 3 })
    fails("Conv2d: expected groups to divide both channels in (3) and out " ..
          "(4), got 2", nn.Conv2d, 3, 4, 3, { groups = 2 })
    fails("Conv2d: option 'padding_mode': expected 'zeros', got 'reflect'",
          nn.Conv2d, 3, 4, 3, { padding_mode = "reflect" })
    fails("Conv2d: unknown option 'output_padding'", nn.Conv2d, 3, 4, 3,
          { output_padding = 1 })
    fails("Conv1d: argument 4: expected a table of options, got number",
          nn.Conv1d, 3, 4, 3, 2)
  end)

  it("says what is wrong with its input", function ()
    fails("conv2d: x (1, 4, 8, 8) and weight (5, 3, 3, 3), groups 1: " ..
          "expected x of 3 channels, got 4", function ()
      nn.Conv2d(3, 5, 3)(fnn.zeros(1, 4, 8, 8))
    end)
  end)
end)
