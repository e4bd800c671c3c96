local device = require "spec.support.device"
local fnn = require "fnn"
local nn = fnn.nn

local widths = { 1, 2, 7, 10, 31, 32, 33, 255, 256, 257, 1000, 1028, 4096,
                 4097, 5000, 9001, 50257 }

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

describe("normalization on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  local forms = {
    layer_norm = function(x, w, b) return x:layer_norm(1, w, b) end,
    rms_norm = function(x, w) return x:rms_norm(1, w) end,
  }

  for name, f in pairs(forms) do
    it(name .. " has the CPU's values and gradients", function()
      for _, n in ipairs(widths) do
        local rows = n > 1000 and 2 or n < 8 and 150 or 5
        -- A row of one or two numbers is all rounding.
        local most = n < 3 and { f32 = 1e-3, f16 = 0.1, bf16 = 0.5 } or {}
        most.dtypes = n > 300 and { "f32", "bf16" } or nil
        device.all(name, f, { numbers(n, rows, n) * 2 + 1,
                              numbers(n + 1, n), numbers(n + 2, n) }, most)
      end
    end)

    it(name .. " does without weights and over several dims", function()
      device.all(name, function(x) return x[name](x, 2) end,
                 { numbers(1, 4, 3, 20) })
      device.all(name, function(x, w) return x[name](x, 2, w) end,
                 { numbers(2, 5, 3, 7), numbers(3, 3, 7) })
      device.all(name, function(x)
        return x:transpose(1, 2)[name](x:transpose(1, 2), 1)
      end, { numbers(4, 40, 6) })
    end)

    it(name .. " sums gradients of weights over many rows", function()
      for _, s in ipairs { { 3000, 5 }, { 700, 64 }, { 33, 1500 } } do
        device.parity(name, f, { numbers(5, s[1], s[2]), numbers(6, s[2]),
                                 numbers(7, s[2]) })
      end
    end)

    it(name .. " takes empty tensors and odd addresses", function()
      device.all(name, f, { fnn.zeros(0, 5), numbers(8, 5), numbers(9, 5) })
      device.all(name, function(x, w, b)
        return f(x:narrow(1, 2, 3), w:narrow(1, 2, 32), b:narrow(1, 3, 32))
      end, { numbers(10, 4, 32), numbers(11, 35), numbers(12, 35) })
      local long = numbers(13, 2, 9004)
      device.parity(name, function(x, w, b)
        return f(x, w:narrow(1, 2, 9004), b:narrow(1, 3, 9004))
      end, { long, numbers(14, 9008), numbers(15, 9008) })
    end)
  end

  it("keeps small differences of large numbers", function()
    for _, n in ipairs { 33, 1000, 9001 } do
      local x = numbers(n, 3, n) * 0.01 + 1e4
      device.parity("layer_norm far", function(v) return v:layer_norm() end,
                    { x }, { back = false, tolerance = 1e-4 })
      local same = fnn.full({ 2, n }, 12345.678):to(device.name)
      assert.equal(0, same:layer_norm():abs():max():item())
    end
  end)

  it("takes f32 weights beside 16-bit numbers", function()
    local x, w, b = numbers(1, 9, 40), numbers(2, 40), numbers(3, 40)
    for _, t in ipairs { "f16", "bf16" } do
      local function grads(d, small)
        local px = fnn.Param((small and x:to(t) or x:to(t):to "f32"):to(d))
        local pw, pb = fnn.Param(w:to(d)), fnn.Param(b:to(d))
        local y = px:layer_norm(1, pw, pb)
        y:backward(fnn.ones(9, 40):to(y:dtype()):to(d))
        assert.equal("f32", pw:grad():dtype())
        return { y:detach(), px:grad(), pw:grad(), pb:grad() }
      end
      local want, got = grads("cpu", false), grads(device.name, true)
      for i, y in ipairs(want) do
        local gap = (got[i]:to "cpu":to "f32" - y):abs():max():item()
        assert.is_true(gap < (t == "f16" and 4e-3 or 3e-2) *
                             math.max(1, y:abs():max():item()))
      end
    end
  end)

  it("works as modules", function()
    for _, make in ipairs {
      function() return nn.LayerNorm(24) end,
      function() return nn.RMSNorm { 3, 8 } end,
      function() return nn.LayerNorm({ 24 }, { affine = false }) end,
    } do
      device.all("norm modules", function(x)
        local m = make()
        m:to(x:dtype()):to(x:device())
        return m:forward(x:reshape(table.unpack(
          tostring(m):find "3, 8" and { 5, 3, 8 } or { 5, 24 })))
      end, { numbers(4, 5, 24) })
    end
  end)
end)
