-- MultiHeadAttention: what PyTorch's numbers (spec/fixtures/parity/
-- attention_layers.lua) do not tell.

local fnn = require "fnn"
local nn = fnn.nn

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

local function seeded (...)
  fnn.manual_seed(7)
  return nn.MultiHeadAttention(...)
end

-- x with its rows (dim 2) from a place on, or one, made into others.
local function poked (x, place)
  local y = x:clone()
  y:narrow(2, place, 1):fill_(3)
  return y
end

describe("MultiHeadAttention", function ()
  it("has four layers by these names", function ()
    local names = {}
    for i, name in ipairs(seeded(8, 2):state_dict()) do names[i] = name end
    assert.same({ "query.weight", "query.bias", "key.weight", "key.bias",
                  "value.weight", "value.bias", "output.weight",
                  "output.bias" }, names)
    assert.equal(288, (seeded(8, 2):parameter_count()))
    assert.equal(8 * 8 * 2 + 2 * 8 * 4,
                 (seeded(8, 2, { kv_heads = 1, bias = false })
                  :parameter_count()))
  end)

  it("starts as PyTorch's does", function ()
    local m = seeded(64, 4)
    local bound = math.sqrt(6 / (4 * 64))
    for _, name in ipairs { "query", "key", "value" } do
      local w = m[name].weight:abs():max():item()
      assert.is_true(w <= bound and w > 0.99 * bound)
      assert.equal(0, m[name].bias:abs():max():item())
    end
  end)

  it("causal: a place sees no later one", function ()
    local m, x = seeded(8, 2, { causal = true }), numbers(1, 2, 5, 8)
    local want = m(x)
    for place = 2, 5 do
      local y = m(poked(x, place))
      near(want:narrow(2, 1, place - 1), y:narrow(2, 1, place - 1), 0)
      differs(want:narrow(2, place, 1), y:narrow(2, place, 1))
    end
  end)

  it("not causal: a place sees all", function ()
    local m, x = seeded(8, 2), numbers(1, 2, 5, 8)
    differs(m(x):narrow(2, 1, 1), m(poked(x, 5)):narrow(2, 1, 1))
    local causal = seeded(8, 2, { causal = true })
    differs(causal(x, { causal = false }):narrow(2, 1, 1),
            causal(poked(x, 5), { causal = false }):narrow(2, 1, 1))
  end)

  it("key_mask: what is masked has no effect at all", function ()
    local m, x = seeded(8, 2), numbers(2, 2, 5, 8)
    local mask = fnn.tensor { { 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 0 } }:to("bool")
    near(m(x, { key_mask = mask }):narrow(2, 1, 4),
         m(poked(x, 5), { key_mask = mask }):narrow(2, 1, 4), 0)
    near(m(x:narrow(2, 1, 4)), m(x, { key_mask = mask }):narrow(2, 1, 4))
  end)

  it("a row masked whole is the bias of the output, and gives no gradient",
     function ()
    local m = seeded(8, 2)
    m.output.bias:set(numbers(3, 8))
    local x = fnn.Param(numbers(4, 2, 3, 8))
    local mask = fnn.tensor { { 0, 0, 0 }, { 1, 1, 1 } }:to("bool")
    local y = m(x, { key_mask = mask })
    for i = 1, 3 do near(m.output.bias, y[1][i], 0) end
    y:sum():backward()
    local g = x:grad()
    assert.equal(0, g[1]:abs():max():item())
    assert.is_true(g[2]:abs():max():item() > 0)
    assert.is_true(g:isfinite():all():item())
  end)

  it("masks of bools, floats and keys add up", function ()
    local m, x = seeded(8, 2), numbers(5, 2, 4, 8)
    local seen = fnn.ones(4, 4):tril():to("bool")
    local keep = fnn.tensor { { 1, 1, 0, 1 }, { 1, 1, 1, 1 } }:to("bool")
    local want = m(x, { causal = true, key_mask = keep })
    near(want, m(x, { mask = seen, key_mask = keep }))
    local scores = fnn.where(seen, fnn.zeros(4, 4), -1 / 0)
    near(want, m(x, { mask = scores, key_mask = keep }))
    near(want, m(x, { mask = scores, key_mask = keep:to("i64") }))
    near(want, m(x, { mask = seen:logical_and(keep:unsqueeze(2)):unsqueeze(2)
                    }))
  end)

  it("drops out in training only", function ()
    local m, x = seeded(8, 2, { dropout = 0.5 }), numbers(6, 2, 4, 8)
    differs(m(x), m(x))
    m:eval()
    near(m(x), m(x), 0)
  end)

  it("is nothing but the op between its layers", function ()
    local m, x = seeded(8, 4, { kv_heads = 2, causal = true }),
                 numbers(7, 2, 3, 8)
    local function heads (y, n)
      return y:reshape(2, 3, n, 2):transpose(2, 3)
    end
    local y = heads(m.query(x), 4):scaled_dot_product_attention(
      heads(m.key(x), 2), heads(m.value(x), 2), { causal = true })
    near(m.output(y:transpose(2, 3):reshape(2, 3, 8)), m(x), 0)
  end)

  it("gives its weights, and changes nothing by it", function ()
    local m, x = seeded(8, 4, { kv_heads = 2, alibi = true, causal = true,
                                dropout = 0.5 }), numbers(8, 2, 5, 8)
    m:eval()
    local keep = fnn.tensor { { 0, 1, 1, 1, 1 }, { 1, 1, 0, 1, 1 } }:to("bool")
    local y, p = m(x, { key_mask = keep, need_weights = true })
    local _, each = m(x, { key_mask = keep, need_weights = true,
                           average_attn_weights = false })
    near(m(x, { key_mask = keep }), y, 0)
    assert.same({ 2, 5, 5 }, p:shape())
    assert.same({ 2, 4, 5, 5 }, each:shape())
    near(each:mean(2), p)
    -- The first place of the first row sees nothing; others sum to 1.
    local sums = each:sum(-1)
    near(fnn.zeros(4), sums[1]:select(2, 1))
    near(fnn.ones(4, 4), sums[1]:narrow(2, 2, 4))
    near(fnn.ones(4, 5), sums[2])
    near(fnn.zeros(4, 5), each[2]:select(3, 3))
    -- They are what values were multiplied by.
    local v = m.value(x):reshape(2, 5, 2, 1, 2):expand(2, 5, 2, 2, 2)
    v = v:reshape(2, 5, 4, 2):transpose(2, 3)
    near(m.output(each:matmul(v):transpose(2, 3):reshape(2, 5, 8)), y)
    -- In training, what is dropped out of y is not of them.
    m:train()
    local _, q = m(x, { key_mask = keep, need_weights = true })
    near(p, q, 0)
    assert.equal(1, select("#", m(x)))
    fails("TransformerEncoderLayer: option 'need_weights' is for a call of " ..
          "attention itself", function ()
      nn.TransformerEncoderLayer(8, 2)(x, { need_weights = true })
    end)
  end)

  it("takes PyTorch's weights", function ()
    local state = {
      ["a.in_proj_weight"] = numbers(1, 24, 8), ["b"] = numbers(2, 3),
      ["a.in_proj_bias"] = numbers(3, 24),
      ["a.out_proj.weight"] = numbers(4, 8, 8),
      ["a.out_proj.bias"] = numbers(5, 8),
    }
    local m = nn.Sequential(seeded(8, 2))
    local split = nn.split_attention(state)
    assert.equal(9, #split)
    assert.same(state.b:totable(), split.b:totable())
    m:load_state_dict(split, { strict = false, rename = function (name)
      return (name:gsub("^a%.", "0."))
    end })
    near(state["a.in_proj_weight"]:narrow(1, 9, 8), m[1].key.weight, 0)
    near(state["a.in_proj_bias"]:narrow(1, 17, 8), m[1].value.bias, 0)
    near(state["a.out_proj.weight"], m[1].output.weight, 0)
    local apart = nn.split_attention { q_proj_weight = numbers(1, 8, 8),
                                       k_proj_weight = numbers(2, 8, 6),
                                       v_proj_weight = numbers(3, 8, 4) }
    assert.same({ 8, 6 }, apart["key.weight"]:shape())
  end)

  it("names what does not fit", function ()
    local m, x = seeded(8, 2), fnn.zeros(2, 3, 8)
    fails("MultiHeadAttention: embed 8 is not a multiple of 3 heads",
          function () nn.MultiHeadAttention(8, 3) end)
    fails("kv_heads 3 do not divide 4 heads",
          function () nn.MultiHeadAttention(8, 4, { kv_heads = 3 }) end)
    fails("input: expected (batch, length, 8), got (3, 8)",
          function () m(fnn.zeros(3, 8)) end)
    fails("memory: expected (batch, length, 8), got (2, 3, 6)",
          function () m(x, fnn.zeros(2, 3, 6)) end)
    fails("option 'key_mask': expected (2, 3) (batch, keys), got (2, 4)",
          function () m(x, { key_mask = fnn.ones(2, 4):to("bool") }) end)
    fails("option 'key_mask': expected bool, true where something may be " ..
          "attended, got f32",
          function () m(x, { key_mask = fnn.ones(2, 3) }) end)
    fails("broadcasts to (2, 2, 3, 3) (batch, heads, queries, keys), got " ..
          "(3, 4)",
          function () m(x, { mask = fnn.ones(3, 4):to("bool") }) end)
    fails("unknown option 'keymask' (did you mean 'key_mask'?)",
          function () m(x, { keymask = 1 }) end)
    fails("option 'cache': expected an nn.KvCache, got a boolean",
          function () m(x, { causal = true, cache = true }) end)
    fails("option 'cache': expected an nn.KvCache, got a table",
          function () m(x, { causal = true, cache = {} }) end)
    fails("MultiHeadAttention: option 'rotary': expected true, its options " ..
          "or an nn.Rotary, got a number",
          function () nn.MultiHeadAttention(8, 2, { rotary = 3 }) end)
    fails("TransformerEncoder: option 'alibi': expected true or an " ..
          "nn.Alibi, got a number",
          function () nn.TransformerEncoder(8, 2, 1, { alibi = 3 }) end)
    fails("option 'dropout': expected 0 to 1, got 2",
          function () nn.MultiHeadAttention(8, 2, { dropout = 2 }) end)
  end)
end)
