local device = require "spec.support.device"
local fnn = require "fnn"

local widths = { 1, 2, 7, 10, 31, 32, 33, 128, 129, 255, 256, 257, 1000, 1024,
                 1028, 4096, 4097, 5000, 8192, 8193, 50257 }

local function numbers(...)
  local n = 1
  for _, s in ipairs { ... } do n = n * s end
  local x = fnn.randn(n, { generator = fnn.Generator(n) }) * 3
  return x:reshape(...)
end

describe("softmax on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  for _, f in ipairs { "softmax", "log_softmax" } do
    it(f .. " has the CPU's values and gradients along rows", function()
      for _, n in ipairs(widths) do
        local rows = n > 1000 and 2 or n < 8 and 261 or 5
        device.all(f, function(x) return x[f](x, 2) end, { numbers(rows, n) },
                   { dtypes = n > 300 and { "f32", "bf16" } or nil })
      end
    end)

    it(f .. " has them along columns", function()
      for _, s in ipairs { { 2, 1, 3 }, { 3, 7, 2 }, { 2, 33, 5 },
                           { 1, 5, 300 }, { 1, 3000, 2 }, { 40, 3, 7 } } do
        device.all(f, function(x) return x[f](x, 2) end,
                   { numbers(table.unpack(s)) },
                   { dtypes = s[2] > 300 and { "f32", "f16" } or nil })
      end
    end)

    it(f .. " meets infinities, NaN and nothing as the CPU does", function()
      local inf, nan = math.huge, 0 / 0
      for _, n in ipairs { 6, 400, 9000 } do
        local x = numbers(6, n)
        x:narrow(1, 1, 1):fill_(-inf)
        x:narrow(1, 2, 1):narrow(2, 1, n // 2):fill_(-inf)
        x:narrow(1, 3, 1):narrow(2, 3, 1):fill_(inf)
        x:narrow(1, 4, 1):narrow(2, 5, 1):fill_(nan)
        x:narrow(1, 5, 1):narrow(2, 2, n - 2):fill_(-inf)
        for _, t in ipairs { "f32", "f64", "bf16" } do
          device.parity(f, function(v) return v[f](v, 2) end, { x },
                        { dtype = t, back = false })
          device.parity(f, function(v) return v[f](v, 1) end, { x:t() },
                        { dtype = t, back = false })
        end
      end
      device.all(f, function(x) return x[f](x, 2) end, { fnn.zeros(0, 3) })
      device.all(f, function(x) return x[f](x, 2) end, { fnn.zeros(3, 0) })
    end)
  end

  it("takes large logits and rows that begin anywhere", function()
    local x = numbers(4, 37) + 1e4
    device.parity("softmax", function(v) return v:softmax(2) end, { x },
                  { back = false })
    device.all("softmax", function(v)
      return v:narrow(1, 2, 3):narrow(2, 2, 33):softmax(2)
    end, { numbers(4, 37) })
    local y = numbers(3, 9001)
    device.parity("softmax", function(v)
      return v:reshape(-1):narrow(1, 2, 27000):reshape(3, 9000):softmax(2)
    end, { y })
  end)
end)
