-- Rotary positions, attention, transformers and the cache on a card against
-- the CPU.

local device = require "spec.support.device"
local fnn = require "fnn"
local nn = fnn.nn

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- A module with drawn weights, on the CPU.
local function drawn(make)
  local m = make()
  local i = 0
  for _, p in m:named_parameters() do
    i = i + 1
    p:set(numbers(i, table.unpack(p:shape())) * 0.3)
  end
  return m
end

local function near(want, have, most, what)
  assert.same(want:shape(), have:shape())
  local gap = (want - have:detach():to("cpu"):to("f32")):abs():max():item()
  gap = gap / math.max(1, want:abs():max():item())
  assert.is_true(gap <= most, ("%s differs by %g"):format(what, gap))
end

-- The results of f(m, x ...) and the gradients of all weights and inputs.
local function run(make, f, inputs, where, dtype)
  local m, xs = drawn(make):to(dtype):to(where), {}
  for i, x in ipairs(inputs) do
    xs[i] = x:to(where)
    if x:dtype() == "f32" then xs[i] = fnn.Param(xs[i]:to(dtype)) end
  end
  local y = f(m, table.unpack(xs))
  y:backward(numbers(99, table.unpack(y:shape())):to(dtype):to(where))
  local found = { { "output", y } }
  for i, x in ipairs(xs) do
    if inputs[i]:dtype() == "f32" then
      found[#found + 1] = { "gradient " .. i, x:grad() }
    end
  end
  for name, p in m:named_parameters() do
    found[#found + 1] = { "gradient of " .. name, p:grad() }
  end
  return found
end

local function same(make, f, inputs)
  local want = run(make, f, inputs, "cpu", "f32")
  for dtype, most in pairs { f32 = 2e-5, f16 = 1e-2, bf16 = 6e-2 } do
    local have = run(make, f, inputs, device.name, dtype)
    for i, r in ipairs(want) do
      near(r[2]:detach(), have[i][2], most, r[1] .. " in " .. dtype)
    end
  end
end

describe("on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  for _, interleaved in ipairs { false, true } do
    it("rotary turns as the CPU" .. (interleaved and ", interleaved" or ""),
       function()
      for _, case in ipairs { { 2, 3, 5, 8, 4 }, { 1, 1, 1, 2, 1 },
                              { 2, 4, 33, 65, 20 }, { 3, 2, 7, 128, 64 } } do
        local b, h, s, d, pairs = table.unpack(case)
        local x = numbers(1, b, s, h, d)
        local angles = numbers(2, s + 3, pairs)
        device.all("rotary", function(y, a)
          return y:transpose(2, 3):rotary(a:detach():cos(), a:detach():sin(), {
            positions = 3, interleaved = interleaved })
        end, { x, angles }, { f16 = 6e-3 })
        local places = fnn.randint(0, s + 3, { b, s }, {
          generator = fnn.Generator(3), dtype = "i64" })
        device.all("rotary at places", function(y, a, p)
          return y:transpose(2, 3):rotary(a:detach():cos(), a:detach():sin(), {
            positions = p, interleaved = interleaved })
        end, { x, angles, places }, { f16 = 6e-3 })
      end
    end)
  end

  it("rotary tells of a place that is not there", function()
    local t = fnn.zeros(3, 2):to(device.name)
    local places = fnn.tensor({ 0, 9 }, { dtype = "i64" }):to(device.name)
    local ok, message = pcall(function()
      return fnn.zeros(1, 2, 4):to(device.name)
             :rotary(t, t, { positions = places }):sum():item()
    end)
    assert.is_false(ok)
    assert.truthy(message:find("out of range for 3 positions", 1, true),
                  message)
  end)

  it("modules make their tables where they are", function()
    local x = numbers(1, 2, 5, 16)
    for _, make in ipairs {
      function() return nn.SinusoidalPositions(16, { length = 3 }) end,
      function() return nn.LearnedPositions(9, 16) end,
    } do
      same(make, function(m, y) return m(y) * 1 end, { x })
      local places = fnn.randint(0, 9, { 2, 5 }, {
        generator = fnn.Generator(4), dtype = "i64" })
      same(make, function(m, y, p) return m(y, { positions = p }) end,
           { x, places })
    end
    local alibi = nn.Alibi(4):to(device.name)
    assert.equal(device.name,
                 (alibi(x:to(device.name)):device():match "^%a+"))
  end)

  local x, memory = numbers(1, 2, 5, 16), numbers(2, 2, 3, 16)
  local keep = fnn.tensor({ { 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 1 } }):to("bool")
  local read = fnn.tensor({ { 1, 0, 1 }, { 1, 1, 1 } }):to("bool")

  local masks = {
    none = {}, causal = { causal = true },
    keys = { key_mask = keep },
    ["keys, causal"] = { key_mask = keep, causal = true },
    bools = { mask = fnn.ones(5, 5):tril(1):to("bool") },
    floats = { mask = numbers(3, 2, 1, 5, 5) },
    ["floats, keys"] = { mask = numbers(3, 4, 5, 5), key_mask = keep },
  }
  local kinds = {
    plain = {}, grouped = { kv_heads = 2 }, rotary = { rotary = true },
    alibi = { alibi = true }, large = { head_dim = 40 },
  }

  for mask, options in pairs(masks) do
    for kind, made in pairs(kinds) do
      it(("attention of mask %s, %s"):format(mask, kind), function()
        same(function() return nn.MultiHeadAttention(16, 4, made) end,
             function(m, y)
          local o = {}
          for key, v in pairs(options) do
            o[key] = fnn.is_tensor(v) and v:to(y:device()) or v
          end
          return m(y, o)
        end, { x })
      end)
    end
  end

  for _, first in ipairs { true, false } do
    it("a decoder layer, norm_first = " .. tostring(first), function()
      same(function()
        return nn.TransformerDecoderLayer(16, 4, {
          ff = 24, dropout = 0, norm_first = first, activation = "gelu",
        })
      end, function(m, y, z, k, r)
        return m(y, z, { key_mask = k, memory_mask = r })
      end, { x, memory, keep, read })
    end)
  end

  it("the cache gives what the whole pass gives", function()
    for dtype, most in pairs { f32 = 2e-5, f16 = 1e-2 } do
      local m = drawn(function()
        return nn.TransformerEncoder(16, 4, 2, {
          ff = 24, causal = true, rotary = true, kv_heads = 2 })
      end):eval():to(device.name)
      local y, k = x:to(device.name), keep:to(device.name)
      fnn.no_grad(function()
        for _, mask in ipairs { false, k } do
          local want = m(y, { key_mask = mask })
          local cache, parts = nn.KvCache { length = 6, dtype = dtype }, {}
          for i, piece in ipairs { { 1, 3 }, { 4, 1 }, { 5, 1 } } do
            parts[i] = m(y:narrow(2, piece[1], piece[2]), {
              cache = cache,
              key_mask = mask and mask:narrow(2, piece[1], piece[2]) })
          end
          local have = fnn.cat(parts, 2)
          if mask then  -- what is padded is no one's concern
            local there = mask:unsqueeze(3):to("f32")
            want, have = want * there, have * there
          end
          near(want:to("cpu"), have, most, dtype)
        end
      end)
    end
  end)

  it("a recorded step learns what one by one do", function()
    local function losses(wrap)
      local m = drawn(function()
        return nn.TransformerEncoder(16, 4, 2, {
          ff = 24, causal = true, rotary = true, dropout = 0 })
      end):to(device.name)
      local opt = fnn.optim.SGD(m:parameters(), { lr = 0.05 })
      local step = wrap(function(y, k)
        opt:zero_grad()
        local loss = nn.mse(m(y, { key_mask = k }), y)
        loss:backward()
        opt:step()
        return loss
      end)
      local list = {}
      for i = 1, 6 do
        list[i] = step(x:to(device.name), keep:to(device.name)):item()
      end
      return list
    end
    local want = losses(function(f) return f end)
    assert.same(want, losses(fnn.graph_step))
    assert.is_true(want[6] < want[1])
  end)

  it("the vision transformer learns there", function()
    local m = nn.VisionTransformer {
      image_size = 4, patch = 2, channels = 1, classes = 2, dim = 8, depth = 1,
      heads = 2, ff = 8, generator = fnn.Generator(1) }:to(device.name)
    local images, ids = numbers(1, 8, 1, 4, 4), {}
    for i = 1, 8 do
      images[i]:fill_(i % 2)
      ids[i] = i % 2
    end
    local set = { images, fnn.tensor(ids, { dtype = "i64" }) }
    m:fit(set, { epochs = 8, lr = 0.02, device = device.name,
                 progress = false })
    assert.equal(1, m:accuracy(set))
  end)
end)
