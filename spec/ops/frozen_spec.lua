-- frozen_spec.lua - inputs that want no gradient: the others get the same bits,
-- and nothing is made for them.

local fnn = require "fnn"

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- Gradients of f(inputs), of those that wanted tells; nil for others.
local function gradients(f, inputs, wanted)
  local xs, got = {}, {}
  for i, x in ipairs(inputs) do xs[i] = wanted[i] and fnn.Param(x) or x end
  local y = f(table.unpack(xs))
  y:mul(numbers(99, table.unpack(y:shape()))):sum():backward()
  for i, x in ipairs(xs) do got[i] = wanted[i] and x:grad() or nil end
  return got
end

local function check(name, f, ...)
  local inputs = { ... }
  it(name, function()
    local all = {}
    for i = 1, #inputs do all[i] = true end
    local want = gradients(f, inputs, all)
    for mask = 1, (1 << #inputs) - 2 do
      local wanted = {}
      for i = 1, #inputs do wanted[i] = mask >> (i - 1) & 1 == 1 end
      local got = gradients(f, inputs, wanted)
      for i = 1, #inputs do
        if wanted[i] then
          assert.is_true(want[i]:eq(got[i]):all():item(), name .. " " .. i)
        end
      end
    end
  end)
end

describe("with frozen inputs", function()
  local x, image = numbers(1, 40, 24), numbers(2, 3, 4, 5, 6)
  local w, b = numbers(3, 24), numbers(4, 24)
  local channels, shift = numbers(5, 4), numbers(6, 4)
  check("layer_norm", function(a, c, d) return a:layer_norm(1, c, d) end,
        x, w, b)
  check("rms_norm", function(a, c) return a:rms_norm(1, c) end, x, w)
  local function batch_norm(a, c, d)
    return a:batch_norm(nil, nil, c, d, { training = true })
  end
  local function group_norm(a, c, d)
    return a:group_norm(2, c, d)
  end
  local function instance_norm(a, c, d)
    return a:instance_norm(c, d)
  end
  for name, f in pairs { batch_norm = batch_norm, group_norm = group_norm,
                         instance_norm = instance_norm } do
    check(name, f, image, channels, shift)
    check(name .. " in channels-last order", function(a, c, d)
      return f(a:channels_last(), c, d)
    end, image, channels, shift)
  end

  local function attention(q, k, v)
    return q:scaled_dot_product_attention(k, v, {
      causal = true, dropout = 0.3, generator = fnn.Generator(5) })
  end
  check("attention", attention, numbers(7, 2, 4, 37, 8),
        numbers(8, 2, 2, 41, 8), numbers(9, 2, 2, 41, 5))
  -- Keys enough for several parts, whose gq are added.
  check("attention of many keys", attention, numbers(10, 1, 2, 150, 8),
        numbers(11, 1, 2, 700, 8), numbers(12, 1, 2, 700, 8))
  check("attention of no keys", function(q, k, v)
    return q:scaled_dot_product_attention(k, v)
  end, numbers(13, 1, 2, 3, 4), fnn.zeros(1, 2, 0, 4), fnn.zeros(1, 2, 0, 4))

  it("makes no gradient that is not wanted", function()
    local function peak(f, inputs, wanted)
      collectgarbage()
      collectgarbage()
      fnn.reset_peak_memory()
      local before = fnn.memory().live
      gradients(f, inputs, wanted)
      return fnn.memory().peak - before
    end
    local big = numbers(1, 512, 1024)
    local weight = numbers(2, 1024)
    local bytes = 512 * 1024 * 4
    local function norm(a, c) return a:layer_norm(1, c) end
    local all = peak(norm, { big, weight }, { true, true })
    local one = peak(norm, { big, weight }, { false, true })
    assert.is_true(all - one >= bytes, all - one)
  end)
end)
