-- Attention on a card: values and gradients as on the CPU, for what each of
-- its kernels meets.

local device = require "spec.support.device"
local fnn = require "fnn"

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- q, k and v of so many batches, heads and groups, and sizes.
local function operands(s)
  local b, h, g, m, n, d, e = table.unpack(s)
  return { numbers(1, b, h, m, d), numbers(2, b, g, n, d),
           numbers(3, b, g, n, e or d) }
end

-- Attention with options that f makes for a device.
local function attention(f)
  return function(q, k, v)
    return q:scaled_dot_product_attention(k, v, f and f(q:device()) or {})
  end
end

local function parity(s, options, o)
  device.all("attention of " .. table.concat(s, ", "), attention(options),
             operands(s), o)
end

-- Masks for (2, 4, m, n): of bools with rows that see nothing, of numbers
-- that are broadcast, of numbers some columns apart, of infinities.
local function masks(m, n)
  local seen = numbers(4, 2, 1, m, n):gt(-0.5)
  seen:narrow(3, 2, 1):fill_(0)
  seen:narrow(1, 2, 1):narrow(3, m, 1):fill_(0)
  local far = numbers(5, 4, 1, n)
  local apart = numbers(6, n, 2, m):narrow(2, 1, 1):permute(2, 3, 1)
  local none = fnn.zeros(m, n)
  none:narrow(1, 1, 2):fill_(-math.huge)
  return { seen = seen, far = far, apart = apart, none = none }
end

describe("attention on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  it("has the CPU's values and gradients at the edges of tiles", function()
    for _, m in ipairs { 1, 15, 16, 17, 31, 33, 64, 65, 97 } do
      local n = 98 - m
      parity({ 1, 1, 1, m, n, 16 }, nil,
             { dtypes = { m % 2 == 0 and "f64" or "f32", "bf16" } })
    end
    parity { 1, 1, 1, 32, 63, 8 }
    parity { 2, 2, 1, 63, 32, 8 }
    parity { 1, 1, 1, 64, 64, 32 }
  end)

  it("takes heads of all widths", function()
    for _, d in ipairs { 1, 8, 33, 40, 64, 80, 128, 256, 260 } do
      parity({ 1, 2, 1, 17, 33, d }, nil,
             { dtypes = { "f32", d % 3 == 2 and "bf16" or "f16" } })
      parity({ 1, 1, 1, 5, 33, d }, nil, { dtypes = { "f64", "bf16" } })
    end
    parity({ 1, 2, 2, 5, 70, 24, 7 }, nil, {})
    parity({ 1, 2, 2, 70, 5, 7, 130 }, nil, {})
    parity({ 1, 1, 1, 3, 9, 300, 8 }, nil, {})
    parity({ 1, 1, 1, 3, 9, 8, 300 }, nil, {})
  end)

  for name, mask in pairs(masks(18, 35)) do
    it("combines the mask '" .. name .. "' with the rest", function()
      local dtypes = { "f32", "f16", "f64", "bf16" }
      for i = 0, 7 do
        local causal, alibi, dropped = i % 2 > 0, i // 2 % 2 > 0, i // 4 > 0
        parity({ 2, 4, 2, 18, 35, 8 }, function(d)
          return {
            mask = mask:to(d), causal = causal,
            alibi = alibi and fnn.tensor({ .5, .25, .125, .1 },
                                         { device = d }) or nil,
            dropout = dropped and 0.3 or 0, generator = fnn.Generator(7),
          }
        end, { dtypes = { dtypes[i % 4 + 1], dtypes[(i + 2) % 4 + 1] } })
      end
    end)
  end

  it("sees no later keys, of more queries than keys or fewer", function()
    for _, s in ipairs { { 65, 65 }, { 20, 90 }, { 90, 20 }, { 70, 130 },
                         { 130, 70 } } do
      for _, dropout in ipairs { 0, 0.5 } do
        parity({ 1, 2, 1, s[1], s[2], 8 }, function()
          return { causal = true, scale = 0.7, dropout = dropout,
                   generator = fnn.Generator(3) }
        end, { dtypes = { "f32", "f16" } })
      end
    end
    parity({ 1, 2, 2, 40, 71, 8 }, function(d)
      return { causal = true,
               alibi = fnn.tensor({ 0.3, 0.01 }, { device = d }) }
    end)
  end)

  it("shares many keys out among blocks for few queries", function()
    for _, m in ipairs { 1, 3 } do
      local seen = numbers(8, 1, 4, m, 520):gt(0)
      seen:narrow(2, 2, 1):fill_(0)
      seen:narrow(4, 1, 300):narrow(2, 3, 1):fill_(0)
      parity({ 1, 4, 2, m, 520, 8 }, function(d)
        return { mask = seen:to(d), causal = true }
      end, { dtypes = m == 1 and { "f32", "bf16" } or { "f64", "f16" } })
      parity({ 1, 4, 2, m, 520, 8 }, function()
        return { dropout = 0.2, generator = fnn.Generator(9) }
      end, { dtypes = { m == 1 and "f16" or "f32" } })
    end
    parity({ 1, 1, 1, 70, 260, 8, 70 }, nil, { dtypes = { "f64", "f16" } })
  end)

  it("gives nothing for nothing", function()
    parity { 1, 2, 1, 3, 0, 4 }
    parity { 1, 2, 1, 0, 3, 4 }
    parity { 0, 2, 1, 3, 3, 4 }
    parity({ 1, 2, 1, 5, 20, 4 }, function()
      return { dropout = 1, generator = fnn.Generator(1) }
    end)
  end)

  it("keeps the same weights as the CPU", function()
    local zeros, eye = fnn.zeros(2, 50, 8), fnn.eye(50)
    local kept = {}
    for _, d in ipairs { "cpu", device.name } do
      local y = zeros:to(d):scaled_dot_product_attention(
        zeros:to(d), eye:expand(2, 50, 50):to(d),
        { dropout = 0.4, generator = fnn.Generator(12) })
      kept[d] = y:to "cpu":gt(0)
    end
    assert.is_true(kept.cpu:eq(kept[device.name]):all():item())
    local share = kept.cpu:to "f32":mean():item()
    assert.is_true(share > 0.5 and share < 0.7)
  end)

  it("reads operands wherever they lie", function()
    local function strided(q, k, v)
      return q:permute(1, 3, 2, 4):scaled_dot_product_attention(
        k:narrow(4, 2, 12), v:narrow(4, 3, 11):transpose(2, 3))
    end
    device.all("strided attention", strided,
               { numbers(1, 2, 19, 4, 12), numbers(2, 2, 2, 23, 14),
                 numbers(3, 2, 23, 2, 13) })
    -- one projection for all three, as layers have it
    device.all("attention of one product", function(x)
      local y = x:reshape(2, 19, 3, 2, 8):permute(3, 1, 4, 2, 5)
      return y[1]:scaled_dot_product_attention(y[2], y[3], { causal = true })
    end, { numbers(4, 2, 19, 48) })
    device.all("attention of transposed operands", function(q, k, v)
      return q:transpose(-1, -2):scaled_dot_product_attention(
        k:transpose(-1, -2), v:transpose(-1, -2))
    end, { numbers(5, 2, 8, 9), numbers(6, 2, 8, 17), numbers(7, 2, 8, 17) })
  end)

  it("takes products that f16 has no numbers for, once scaled", function()
    local x = fnn.full({ 1, 1, 3, 64 }, 40, { dtype = "f16" }):to(device.name)
    local v = fnn.ones(1, 1, 3, 64):to("f16", device.name)
    for _, mask in ipairs { fnn.zeros(3, 3):to(device.name),
                            fnn.Param(fnn.zeros(3, 3):to(device.name)) } do
      local y = x:scaled_dot_product_attention(x, v, { mask = mask })
      assert.near(1, y:to "f32":min():item(), 1e-3)
    end
  end)

  it("rounds as autocast says", function()
    local x = operands { 2, 4, 2, 20, 33, 16 }
    for i = 1, 3 do x[i] = x[i]:to(device.name) end
    for _, t in ipairs { "bf16", "f16" } do
      local function both(f, options, to)
        local leaves = {}
        for i = 1, 3 do leaves[i] = fnn.Param(to and x[i]:to(to) or x[i]) end
        local y = f(attention(), options, table.unpack(leaves))
        y:to "f32":sum():backward()
        return y, leaves
      end
      local got, a = both(fnn.autocast, { dtype = t })
      local want, b = both(function(f, _, ...) return f(...) end, nil, t)
      assert.equal(t, got:dtype())
      assert.same(want:totable(), got:totable())
      for i = 1, 3 do
        assert.equal("f32", a[i]:grad():dtype())
        assert.same(b[i]:grad():totable(), a[i]:grad():totable())
      end
    end
  end)

  it("draws anew in a step that is replayed", function()
    local function steps(run)
      fnn.manual_seed(21)
      local q = fnn.Param(numbers(1, 2, 2, 20, 8):to(device.name))
      local opt = fnn.optim.SGD({ q }, { lr = 0.1 })
      local step = run(function(x)
        opt:zero_grad()
        local y = q:value():scaled_dot_product_attention(
          x, x, { dropout = 0.5, causal = true })
        local loss = (y * y):sum()
        loss:backward()
        opt:step()
        return loss
      end)
      local losses = {}
      for i = 1, 5 do
        losses[i] = step(numbers(i, 2, 1, 20, 8):to(device.name)):item()
      end
      return losses
    end
    local want = steps(function(f) return f end)
    local got = steps(function(f)
      return fnn.graph_step(f, { device = device.name })
    end)
    assert.same(want, got)
  end)
end)
