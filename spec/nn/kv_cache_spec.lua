-- KvCache: prefill and steps against the pass without a cache, at every
-- position, and all that it refuses.

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

-- A model of a script: it passes its options on.
local Lm = nn.module "Lm"

function Lm:init (options, place)
  self.embedding = nn.Embedding(11, 16)
  self.places = place
  self.blocks = nn.TransformerEncoder(16, 4, 2, options)
  self.head = nn.Linear(16, 11)
end

function Lm:forward (ids, options)
  local x = self.embedding(ids)
  if self.places then x = self.places(x, options) end
  return self.head(self.blocks(x, options))
end

local function lm (options, place)
  fnn.manual_seed(3)
  options.causal, options.ff = true, 24
  return Lm(options, place):eval()
end

local function ids (seed, n, length)
  return fnn.randint(0, 11, { n, length }, {
    generator = fnn.Generator(seed), dtype = "i64" })
end

-- The largest difference at any position between the model's logits for all
-- of x and those in pieces of these lengths, with a cache.
local function difference (m, x, pieces, cache, masks)
  return fnn.no_grad(function ()
    local want = m(x, { key_mask = masks })
    local parts, from = {}, 1
    for i, n in ipairs(pieces) do
      assert.equal(from - 1, #cache)
      parts[i] = m(x:narrow(2, from, n), {
        cache = cache, key_mask = masks and masks:narrow(2, from, n) })
      from = from + n
    end
    assert.equal(x:size(2), #cache)
    local off = (fnn.cat(parts, 2) - want):abs():max(3)
    if masks then off = off:masked_fill(masks:logical_not(), 0) end
    return off:max():item()
  end)
end

local function cached (length, dtype)
  return nn.KvCache { layers = 2, length = length, dtype = dtype }
end

describe("KvCache", function ()
  local kinds = {
    ["no positions"] = function () return lm {} end,
    rotary = function () return lm { rotary = true } end,
    ["grouped heads, rotary"] = function ()
      return lm { rotary = true, kv_heads = 2 }
    end,
    ["one group, interleaved, llama3"] = function ()
      return lm { kv_heads = 1, rotary = { interleaved = true, scaling = {
        type = "llama3", factor = 4, low_freq_factor = 1, high_freq_factor = 2,
        original_length = 16 } } }
    end,
    alibi = function () return lm { alibi = true, kv_heads = 2 } end,
    sinusoidal = function () return lm({}, nn.SinusoidalPositions(16)) end,
    learned = function ()
      return lm({}, nn.LearnedPositions(12, 16, { std = 1 }))
    end,
    ["post-norm, gated"] = function ()
      return lm { rotary = true, norm_first = false, activation = "swiglu",
                  norm = "rms" }
    end,
  }

  for name, make in pairs(kinds) do
    it("gives what the whole pass gives: " .. name, function ()
      local m, x = make(), ids(1, 2, 9)
      for _, pieces in ipairs { { 4, 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 5 },
                                { 3, 3, 3 }, { 9 } } do
        assert.is_true(difference(m, x, pieces, cached(12)) <= 1e-5)
      end
    end)

    it("in half precision: " .. name, function ()
      local off = difference(make(), ids(2, 2, 9), { 4, 1, 1, 3 },
                             cached(9, "f16"))
      assert.is_true(off > 0 and off <= 5e-3)
    end)

    it("with rows of unequal lengths: " .. name, function ()
      local left = fnn.tensor { { 0, 0, 1, 1, 1, 1, 1 },
                                { 1, 1, 1, 1, 1, 1, 1 } }:to("bool")
      local right = fnn.tensor { { 1, 1, 0, 0, 1, 1, 1 },
                                 { 1, 1, 1, 1, 1, 1, 1 } }:to("bool")
      for _, mask in ipairs { left, right } do
        assert.is_true(difference(make(), ids(3, 2, 7), { 4, 1, 1, 1 },
                                  cached(7), mask) <= 1e-5)
      end
    end)
  end

  it("a padded row is what it is alone, on either side", function ()
    for _, make in ipairs { kinds["grouped heads, rotary"], kinds.learned,
                            kinds.sinusoidal } do
      local m, x = make(), ids(4, 1, 5)
      local pad = fnn.zeros({ 1, 2 }, { dtype = "i64" })
      fnn.no_grad(function ()
        local want = m(x)
        for _, left in ipairs { true, false } do
          local first, rest = x:narrow(2, 1, 3), x:narrow(2, 4, 2)
          local ones, none = fnn.ones(1, 3), fnn.zeros(1, 2)
          local prompt = fnn.cat(left and { pad, first } or { first, pad }, 2)
          local mask = fnn.cat(left and { none, ones } or { ones, none }, 2)
          local cache = cached(8)
          m(prompt, { cache = cache, key_mask = mask:to("bool") })
          for i = 1, 2 do  -- without a mask: all new tokens are kept
            local y = m(rest:narrow(2, i, 1), { cache = cache })
            local off = (y - want:narrow(2, 3 + i, 1)):abs():max():item()
            assert.is_true(off <= 1e-5)
          end
        end
      end)
    end
  end)

  it("gives a decoder its past, and the memory's keys once", function ()
    fnn.manual_seed(5)
    local m = nn.Transformer(8, 2, { encoder_layers = 1, decoder_layers = 2,
                                     ff = 12 }):eval()
    local source, target = numbers(1, 2, 4, 8), numbers(2, 2, 5, 8)
    local mask = fnn.tensor { { 1, 1, 1, 0 }, { 1, 1, 1, 1 } }:to("bool")
    fnn.no_grad(function ()
      local want = m(source, target, { source_mask = mask })
      local memory = m:encode(source, { source_mask = mask })
      local cache, calls = nn.KvCache { length = 5 }, 0
      local key = m.decoder.layers[1].multihead_attn.key
      key.forward = function (self, x)
        calls = calls + 1
        return x:linear(self.weight, self.bias)
      end
      for i = 1, 5 do
        local y = m:decode(target:narrow(2, i, 1), memory,
                           { source_mask = mask, cache = cache })
        local off = (y - want:narrow(2, i, 1)):abs():max():item()
        assert.is_true(off <= 1e-5)
      end
      assert.equal(1, calls)
      cache:clear()
      m:decode(target, memory, { source_mask = mask, cache = cache })
      assert.equal(2, calls)
    end)
  end)

  it("forgets on clear and from truncate on", function ()
    local m, x = kinds.rotary(), ids(6, 2, 8)
    local cache = cached(8)
    assert.is_true(cache:is_empty())
    fnn.no_grad(function ()
      local want = m(x)
      m(x, { cache = cache })
      assert.is_false(cache:is_empty())
      local buffer = cache.slots[1].k
      cache:truncate(5)
      assert.equal(5, #cache)
      local y = m(x:narrow(2, 6, 3), { cache = cache })
      assert.is_true((y - want:narrow(2, 6, 3)):abs():max():item() <= 1e-5)
      cache:clear()
      assert.equal(0, #cache)
      assert.is_true(difference(m, x, { 8 }, cache) <= 1e-5)
      assert.is_true(rawequal(buffer, cache.slots[1].k))
      cache:clear()
      m(x:narrow(1, 1, 1), { cache = cache })  -- another batch
      assert.equal(1, cache.slots[1].k:size(1))
    end)
    fails("KvCache:truncate: expected 0 to 8, the tokens that it holds, got 9",
          function () cache:truncate(9) end)
  end)

  it("copies nothing of the past", function ()
    local m, x = kinds.rotary(), ids(7, 2, 3)
    local cache = cached(6)
    fnn.no_grad(function ()
      m(x, { cache = cache })
      local slot = cache.slots[2]
      local layer
      for l, s in pairs(cache.of) do if s == slot then layer = l end end
      cache:truncate(2)
      local one = numbers(1, 2, 4, 1, 4)
      cache:append(m.blocks.layers[1].self_attn, one, one)
      local k = cache:append(layer, one, one)
      assert.same({ 2, 4, 3, 4 }, k:shape())
      slot.k:fill_(5)
      assert.equal(5, k[1][1][1][1])
      assert.same({ 96, 24, 4, 1 }, k:stride())
    end)
  end)

  it("says what is over its length", function ()
    local m = kinds.rotary()
    local cache = cached(6)
    fnn.no_grad(function ()
      m(ids(8, 2, 5), { cache = cache })
      fails("KvCache: length 6, holds 5, asked for 2 more",
            function () m(ids(9, 2, 2), { cache = cache }) end)
      assert.equal(5, #cache)
      m(ids(9, 2, 1), { cache = cache })
      fails("KvCache: length 6, holds 6, asked for 1 more",
            function () m(ids(9, 2, 1), { cache = cache }) end)
    end)
  end)

  it("is for inference, causal attention, one batch and its layers",
     function ()
    local m = kinds.rotary()
    fails("KvCache: for inference only: call the model in fnn.no_grad",
          function () m(ids(1, 2, 3), { cache = cached(6) }) end)
    fnn.no_grad(function ()
      local both = nn.TransformerEncoder(16, 4, 2)
      fails("a cache is for causal attention",
            function () both(numbers(1, 2, 3, 16), { cache = cached(6) }) end)
      local cache = cached(6)
      m(ids(1, 2, 3), { cache = cache })
      fails("KvCache: holds keys (2, 4, 6, 4) on cpu, got (1, 4, 1, 4)",
            function () m(ids(1, 1, 1), { cache = cache }) end)
      fails("KvCache: it is for 2 layers, and this is one more",
            function () kinds.rotary()(ids(1, 2, 3), { cache = cache }) end)
      local small = nn.KvCache { length = 6 }
      m(ids(1, 2, 3), { cache = small })
      fails("a layer that has not seen the 2 tokens before",
            function () kinds.rotary()(ids(1, 2, 1), { cache = small }) end)
    end)
    fails("option 'length': expected a whole number of at least 1, got nil",
          function () nn.KvCache { layers = 2 } end)
    fails("option 'dtype': expected f64, f32, f16 or bf16, got i64",
          function () nn.KvCache { length = 2, dtype = "i64" } end)
    fails("unknown option 'size'", function () nn.KvCache { size = 2 } end)
  end)

  it("takes keys and values that fit each other and those before", function ()
    local cache, layer = nn.KvCache { length = 4 }, {}
    local function refuses (text, k, v)
      local ok, why = pcall(cache.append, cache, layer, k, v)
      assert.is_false(ok)
      assert.truthy(why:find(text, 1, true), why)
      assert.equal(1, #cache)
    end
    cache:append(layer, fnn.ones(2, 3, 1, 4), fnn.ones(2, 3, 1, 5))
    refuses("expected keys (batch, heads, new, size), got a number", 1,
            fnn.ones(2, 3, 1, 5))
    refuses("expected values (batch, heads, new, size), got nil",
            fnn.ones(2, 3, 1, 4))
    refuses("expected values (batch, heads, new, size), got (3, 1, 5)",
            fnn.ones(2, 3, 1, 4), fnn.ones(3, 1, 5))
    refuses("keys (2, 3, 2, 4) and values (2, 3, 1, 5) differ",
            fnn.ones(2, 3, 2, 4), fnn.ones(2, 3, 1, 5))
    refuses("holds keys (2, 3, 4, 5)", fnn.ones(2, 3, 1, 4),
            fnn.ones(2, 3, 1, 1))
  end)

  it("refuses a layer that comes twice in a pass", function ()
    local cache, first, second = nn.KvCache { length = 9 }, {}, {}
    local k = fnn.ones(1, 1, 2, 4)
    for _ = 1, 2 do
      cache:append(first, k, k)
      cache:append(second, k, k)
    end
    cache:append(first, k, k)
    fails("a layer comes twice in this pass",
          function () cache:append(first, k, k) end)
    assert.equal(4, #cache)
  end)

  it("says when a pass was broken off", function ()
    local m, cache = kinds.rotary(), cached(6)
    fnn.no_grad(function ()
      m(ids(1, 2, 3), { cache = cache })
      local second = m.blocks.layers[2].self_attn
      second.forward = function () error "stop" end
      pcall(m, ids(1, 2, 1), { cache = cache })
      second.forward = nil
      assert.equal(3, #cache)
      fails("the last pass did not reach all layers: truncate(3)",
            function () m(ids(1, 2, 1), { cache = cache }) end)
      cache:truncate(3)
      m(ids(1, 2, 1), { cache = cache })
      assert.equal(4, #cache)
    end)
  end)

  it("drops nothing out, also in training", function ()
    local m = lm { rotary = true, dropout = 0.5 }
    local layer = m.blocks.layers[1]:train()
    local x = numbers(2, 1, 4, 16)
    fnn.no_grad(function ()
      local a = layer(x, { cache = nn.KvCache { length = 4 } })
      local b = layer(x, { cache = nn.KvCache { length = 4 } })
      assert.equal(0, (a - b):abs():max():item())
    end)
  end)
end)
