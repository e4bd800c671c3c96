-- VisionTransformer: its patches, training, files and errors.

local fnn = require "fnn"
local nn = fnn.nn

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function numbers (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

local function small (more)
  local o = { image_size = 4, patch = 2, channels = 1, classes = 2, dim = 8,
              depth = 1, heads = 2, ff = 16, generator = fnn.Generator(1) }
  for key, v in pairs(more or {}) do o[key] = v end
  return nn.VisionTransformer(o)
end

-- Images that are bright above, or below: classes 0 and 1.
local function toy (n)
  local x = numbers(5, n, 1, 4, 4) * 0.3
  for i = 1, n do x[i][1]:narrow(1, i % 2 == 1 and 1 or 3, 2):fill_(1) end
  local y = {}
  for i = 1, n do y[i] = (i + 1) % 2 end
  return x, fnn.tensor(y, { dtype = "i64" })
end

describe("VisionTransformer", function ()
  it("cuts patches in reading order, numbers by channel, row, column",
     function ()
    local m = small { image_size = { 2, 4 }, channels = 2, patch = { 2, 2 } }
    local x = fnn.arange(0, 16):reshape(1, 2, 2, 4)
    assert.same({ { { 0, 1, 4, 5, 8, 9, 12, 13 },
                    { 2, 3, 6, 7, 10, 11, 14, 15 } } },
                m:patches(x):totable())
  end)

  it("has the parameters of its parts", function ()
    local m = nn.VisionTransformer { image_size = 28, patch = 7, channels = 1,
                                     classes = 10, dim = 32, depth = 2,
                                     heads = 4 }
    local block = 4 * (32 * 32 + 32) + 32 * 128 + 128 + 128 * 32 + 32 + 4 * 32
    assert.equal(49 * 32 + 32 + 2 * block + 2 * 32 + 32 * 10 + 10,
                 (m:parameter_count()))
  end)

  it("has the gradient of its patches", function ()
    local m = small():to("f64")
    local x = numbers(2, 2, 1, 4, 4):to("f64")
    assert.is_true(fnn.gradcheck(function (w)
      return m.head(m.encoder(m:patches(x):linear(w)):mean(2))
    end, { m.embed.weight:value():detach():clone() }))
  end)

  it("knows where a patch is", function ()
    local m, x = small(), numbers(3, 1, 1, 4, 4)
    local swapped = fnn.cat({ x:narrow(3, 3, 2), x:narrow(3, 1, 2) }, 3)
    assert.is_true((m(x) - m(swapped)):abs():max():item() > 1e-4)
  end)

  it("learns a toy from a dataset, to the last image", function ()
    local m = small()
    local x, y = toy(32)
    local set = fnn.data.TensorDataset(x, y)
    local history = m:fit(set, { epochs = 15, batch_size = 8, lr = 0.01,
                                 progress = false })
    assert.is_true(history[15].loss < history[1].loss)
    assert.equal(1, m:accuracy(set))
    assert.equal(1, m:accuracy { x, y })
    assert.same(y:totable(), m:predict(x):totable())
    assert.equal(y[2], m:predict(x[2]))
  end)

  it("predicts in evaluation, and is in training again after", function ()
    local m, x = small { dropout = 0.9 }:train(), numbers(4, 6, 1, 4, 4)
    assert.same(m:predict(x):totable(), m:predict(x):totable())
    assert.is_true(m.training)
    fails("expected images", function () m:predict(fnn.zeros(2, 2)) end)
    assert.is_true(m.training)
  end)

  it("goes through a JSON file", function ()
    local m, x = small { image_size = { 4, 6 }, patch = { 2, 3 } }:eval(),
                 numbers(6, 3, 1, 4, 6)
    local path = os.tmpname()
    m:save_json(path)
    local same = nn.load_vision_transformer(path):eval()
    assert.equal(0, (m(x) - same(x)):abs():max():item())
    local other = small { image_size = { 4, 6 }, patch = { 2, 3 },
                          generator = fnn.Generator(9) }:eval()
    assert.is_true((m(x) - other(x)):abs():max():item() > 0)
    other:load_json(path)
    assert.equal(0, (m(x) - other(x)):abs():max():item())
    fails("option 'image_size' is not that of this model",
          function () small():load_json(path) end)
    local text = fnn.io.read_text(path)
    fnn.io.write_text(path, (text:gsub('"head.bias":%[', '"head.bias":[1,')))
    fails("head.bias: expected 2 of them, got 3",
          function () nn.load_vision_transformer(path) end)
    fails("head.bias: expected 2 numbers, got 3",
          function () other:load_json(path) end)
    for name, why in pairs {
      dim = "embed.weight: expected 1000000000 of them, got 8",
      depth = "encoder.layers.1.norm1.weight: expected 8 of them, got nil",
    } do
      fnn.io.write_text(path, (text:gsub('"' .. name .. '":%d+',
                                         '"' .. name .. '":1000000000')))
      fails(why, function () nn.load_vision_transformer(path) end)
    end
    fnn.io.write_text(path, '{"format":"fnn.network","version":1}')
    fails("not a vision transformer of fnn (expected format " ..
          "'fnn.vision_transformer', got 'fnn.network')",
          function () nn.load_vision_transformer(path) end)
    os.remove(path)
  end)

  it("names what does not fit", function ()
    fails("an image of 28 x 28 is not made of patches of 5 x 5",
          function () small { image_size = 28, patch = 5 } end)
    fails("expected images (n, 1, 4, 4), got (2, 1, 4, 5)",
          function () small()(fnn.zeros(2, 1, 4, 5)) end)
    fails("option 'classes': expected a whole number of at least 1, got nil",
          function () small { classes = false } end)
    fails("TransformerEncoder: embed 8 is not a multiple of 3 heads",
          function () small { heads = 3 } end)
    fails("unknown option 'pach' (did you mean 'patch'?)",
          function () nn.VisionTransformer { pach = 1 } end)
  end)
end)
