-- Transformers: what PyTorch's numbers (spec/fixtures/parity/transformer.lua)
-- do not tell.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local function near (want, x, tolerance)
  assert.is_true((x - want):abs():max():item() <= (tolerance or 1e-6))
end

local function differs (a, b)
  assert.is_true((a - b):abs():max():item() > 1e-4)
end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function numbers (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

local function seeded (class, ...)
  fnn.manual_seed(7)
  return nn[class](...):eval()
end

local function poked (x, place)
  local y = x:clone()
  y:narrow(2, place, 1):fill_(3)
  return y
end

-- The mean squared error after so many steps of Adam.
local function overfit (m, y, steps, ...)
  m:train()
  local opt, loss = optim.Adam(m:parameters(), { lr = 0.01 })
  for _ = 1, steps do
    opt:zero_grad()
    loss = nn.mse(m(...), y)
    loss:backward()
    opt:step()
  end
  return loss:item()
end

describe("an encoder", function ()
  it("reads both ways, or only back where it is causal", function ()
    local x = numbers(1, 2, 5, 8)
    local both = seeded("TransformerEncoder", 8, 2, 2, { ff = 12 })
    differs(both(x):narrow(2, 1, 1), both(poked(x, 5)):narrow(2, 1, 1))
    near(both(x, { causal = true }):narrow(2, 1, 4),
         both(poked(x, 5), { causal = true }):narrow(2, 1, 4), 0)
    local back = seeded("TransformerEncoder", 8, 2, 2,
                        { ff = 12, causal = true })
    near(back(x):narrow(2, 1, 4), back(poked(x, 5)):narrow(2, 1, 4), 0)
    differs(back(x):narrow(2, 5, 1), back(poked(x, 5)):narrow(2, 5, 1))
    differs(back(x, { causal = false }):narrow(2, 1, 1),
            back(poked(x, 5), { causal = false }):narrow(2, 1, 1))
  end)

  it("does not see masked places", function ()
    local m, x = seeded("TransformerEncoder", 8, 2, 2), numbers(2, 2, 5, 8)
    local mask = { key_mask = fnn.tensor({ { 1, 1, 1, 1, 0 },
                                           { 1, 1, 1, 1, 0 } }):to("bool") }
    near(m(x, mask):narrow(2, 1, 4), m(poked(x, 5), mask):narrow(2, 1, 4), 0)
  end)

  it("ends with a norm where norms come first, or as told", function ()
    assert.truthy(seeded("TransformerEncoder", 8, 2, 1).norm)
    assert.is_nil(seeded("TransformerEncoder", 8, 2, 1,
                         { norm_first = false }).norm)
    assert.is_nil(seeded("TransformerEncoder", 8, 2, 1,
                         { final_norm = false }).norm)
    assert.truthy(seeded("TransformerEncoder", 8, 2, 1,
                         { norm_first = false, final_norm = true }).norm)
  end)

  it("shares its rotary positions among its layers", function ()
    local m = seeded("TransformerEncoder", 8, 2, 3, { rotary = true })
    assert.is_true(rawequal(m.layers[1].self_attn.rotary,
                            m.layers[3].self_attn.rotary))
    local own = seeded("TransformerEncoder", 8, 2, 1,
                       { rotary = { base = 500 } })
    assert.equal(500, own.layers[1].self_attn.rotary.base)
  end)

  it("knows gates, RMS norms and grouped heads", function ()
    local m = seeded("TransformerEncoderLayer", 8, 4, {
      ff = 6, activation = "swiglu", norm = "rms", kv_heads = 2, bias = false,
    })
    -- attention 8 8 2 + 8 4 2, gates 8 12, back 6 8, norms 2 8
    assert.equal(128 + 64 + 96 + 48 + 16, (m:parameter_count()))
    local x = numbers(3, 1, 3, 8)
    local h = x + m.self_attn(m.norm1(x))
    near(h + m.linear2(m.linear1(m.norm2(h)):swiglu()), m(x), 0)
  end)

  it("drops nothing out in evaluation", function ()
    local m, x = seeded("TransformerEncoder", 8, 2, 1, { dropout = 0.5 }),
                 numbers(4, 2, 3, 8)
    near(m(x), m(x), 0)
    m:train()
    differs(m(x), m(x))
  end)

  it("overfits", function ()
    local m = seeded("TransformerEncoder", 8, 2, 2, { ff = 16, dropout = 0 })
    assert.is_true(overfit(m, numbers(6, 2, 4, 8), 150, numbers(5, 2, 4, 8)) <
                   0.05)
  end)
end)

describe("a decoder", function ()
  local x, memory = numbers(1, 2, 4, 8), numbers(2, 2, 3, 8)

  it("sees no later place, and all of the memory", function ()
    local m = seeded("TransformerDecoder", 8, 2, 2, { ff = 12 })
    near(m(x, memory):narrow(2, 1, 3), m(poked(x, 4), memory):narrow(2, 1, 3),
         0)
    differs(m(x, memory):narrow(2, 1, 1),
            m(x, poked(memory, 3)):narrow(2, 1, 1))
  end)

  it("does not see memory that is masked", function ()
    local m = seeded("TransformerDecoder", 8, 2, 2, { ff = 12 })
    local mask = fnn.tensor({ { 1, 1, 0 }, { 1, 1, 0 } }):to("bool")
    near(m(x, memory, { memory_mask = mask }),
         m(x, poked(memory, 3), { memory_mask = mask }), 0)
    fails("option 'key_mask': expected (2, 3) (batch, keys), got (2, 4)",
          function () m(x, memory, { memory_mask = fnn.ones(2, 4) }) end)
  end)

  it("that is not causal sees all", function ()
    local m = seeded("TransformerDecoder", 8, 2, 1, { causal = false })
    differs(m(x, memory):narrow(2, 1, 1),
            m(poked(x, 4), memory):narrow(2, 1, 1))
    fails("a cache is for causal attention", function ()
      fnn.no_grad(m, x, memory, { cache = nn.KvCache { length = 4 } })
    end)
  end)

  it("overfits", function ()
    local m = seeded("TransformerDecoder", 8, 2, 2, { ff = 16, dropout = 0 })
    assert.is_true(overfit(m, numbers(6, 2, 4, 8), 150, x, memory) < 0.05)
  end)
end)

describe("Transformer", function ()
  local options = { encoder_layers = 1, decoder_layers = 1, ff = 16,
                    dropout = 0 }

  it("is its encoder and its decoder", function ()
    local m = seeded("Transformer", 8, 2, options)
    local source, target = numbers(1, 2, 5, 8), numbers(2, 2, 3, 8)
    local y = m(source, target)
    assert.same({ 2, 3, 8 }, y:shape())
    near(m.decoder(target, m.encoder(source)), y, 0)
    local mask = fnn.tensor({ { 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 0 } })
                 :to("bool")
    near(m(source, target, { source_mask = mask }),
         m(poked(source, 5), target, { source_mask = mask }), 0)
    assert.truthy(m.encoder.norm)
    assert.truthy(seeded("Transformer", 8, 2, { norm_first = false })
                  .decoder.norm)
  end)

  it("overfits", function ()
    local m = seeded("Transformer", 8, 2, options)
    assert.is_true(overfit(m, numbers(3, 2, 3, 8), 200, numbers(1, 2, 4, 8),
                           numbers(2, 2, 3, 8)) < 0.05)
  end)

  it("names what it does not know", function ()
    fails("TransformerDecoderLayer: expected a memory (batch, n, 8), got nil",
          function () nn.TransformerDecoder(8, 2, 1)(numbers(1, 2, 3, 8)) end)
    fails("activation': expected 'elu', 'geglu'", function ()
      nn.TransformerEncoderLayer(8, 2, { activation = "rel" })
    end)
    fails("(did you mean 'relu'?)", function ()
      nn.TransformerEncoderLayer(8, 2, { activation = "rel" })
    end)
    fails("TransformerEncoder: embed 8 is not a multiple of 3 heads",
          function () nn.TransformerEncoder(8, 3, 1) end)
    fails("TransformerEncoder: layers: expected a whole number of at least 1",
          function () nn.TransformerEncoder(8, 2, 0) end)
    fails("unknown option 'norm_frist' (did you mean 'norm_first'?)",
          function () nn.Transformer(8, 2, { norm_frist = true }) end)
    fails("unknown option 'memory_mask'", function ()
      seeded("Transformer", 8, 2, options)(
        fnn.zeros(1, 1, 8), fnn.zeros(1, 1, 8), { memory_mask = 1 })
    end)
  end)
end)
