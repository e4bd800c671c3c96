-- text_spec.lua - fnn.text where the model is on a card.

local device = require "spec.support.device"
local fnn = require "fnn"
local nn, text = fnn.nn, fnn.text

describe("fnn.text on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  it("draws the ids that it draws on the CPU", function()
    local x = fnn.randn(4, 300, { generator = fnn.Generator(1) })
    local o = { seed = 3, top_k = 50, top_p = 0.9, presence_penalty = 1,
                callback = function(logits) logits:add_(1) end }
    local past = fnn.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } },
                            { dtype = "i64" })
    for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
      local y = x:to(dtype)
      local expected = text.Sampler(o)(y, past)
      local found = text.Sampler(o)(y:to "cuda", past:to "cuda")
      assert.equal("cuda", found:device():match "%a+")
      assert.same(expected:totable(), found:totable())
      assert.equal(text.Sampler(o)(y[1], past[1]),
                   text.Sampler(o)(y[1]:to "cuda", past[1]:to "cuda"))
    end
  end)

  it("generates what is generated on the CPU", function()
    fnn.manual_seed(2)
    local model = nn.Sequential(nn.Embedding(40, 16), nn.Tanh(),
                                nn.Linear(16, 40))
    local o = { max_tokens = 10 }
    local expected = text.generate(model, { 1, 2 }, o)
    local both = text.generate(model, { { 1, 2 }, { 3, 4 } }, o)
    model:to "cuda"
    assert.same(expected, text.generate(model, { 1, 2 }, o))
    assert.same(both, text.generate(model, { { 1, 2 }, { 3, 4 } }, o))
    assert.equal(expected[1], text.Decoder(model):feed { 1, 2 }:next())
  end)

  it("searches where the logits are on the card", function()
    local w = fnn.randn(9, 9, { generator = fnn.Generator(4) })
    local search = text.BeamSearch { width = 3, max_tokens = 4, eos = 0 }
    local function along(rows)
      return search(function(ids) return rows[ids[#ids] + 1] end, { 1 })
    end
    assert.same(along(w), along(w:to "cuda"))
  end)
end)
