local device = require "spec.support.device"
local fnn = require "fnn"

local widths = { 1, 2, 7, 10, 31, 32, 33, 255, 256, 257, 1000, 5000, 50257 }
local rows = { "sum", "mean", "prod", "max", "min", "var", "std", "norm",
               "logsumexp" }
local floats = { "f32", "f64", "f16", "bf16" }

-- Numbers whose product neither overflows nor vanishes, no two alike in 16
-- bits where n is small.
local function numbers(...)
  local n = 1
  for _, s in ipairs { ... } do n = n * s end
  local x = fnn.randn(n, { generator = fnn.Generator(n) })
  return (x * 0.25 + 1):reshape(...)
end

describe("reduce on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  for _, name in ipairs(rows) do
    it(name .. " has the CPU's values and gradients along rows", function()
      for _, n in ipairs(widths) do
        local x = numbers(n > 1000 and 2 or 3, n)
        if name == "prod" and n > 300 then x = x * 0.125 + 0.875 end
        device.all("reduce " .. name, function(v) return v[name](v, 2) end,
                   { x }, { dtypes = n > 300 and { "f32" } or floats })
      end
    end)

    it(name .. " has them along columns", function()
      for _, s in ipairs { { 2, 1, 3 }, { 3, 7, 2 }, { 2, 33, 5 },
                           { 1, 5, 300 }, { 1, 3000, 2 }, { 1, 1100, 33 } } do
        local x = numbers(table.unpack(s))
        if name == "prod" and s[2] > 300 then x = x * 0.125 + 0.875 end
        device.all("reduce " .. name, function(v) return v[name](v, 2) end,
                   { x }, { dtypes = s[2] > 300 and { "f32", "bf16" }
                                     or floats })
      end
    end)
  end

  it("reduces all, some and no dims", function()
    local x = numbers(3, 4, 5, 6)
    for _, name in ipairs(rows) do
      device.all("reduce " .. name, function(v)
        return { v[name](v), v[name](v, { 2, 4 }), v[name](v, { 1, 3 }),
                 v[name](v:transpose(1, 3), { 1, 2 }, { keepdim = true }) }
      end, { x }, { dtypes = { "f32" } })
    end
  end)

  it("knows places, tests and integers", function()
    local g = fnn.Generator(4)
    for _, s in ipairs { { 3, 1 }, { 2, 33 }, { 4, 257 }, { 1, 20000 },
                         { 1, 17000, 3 }, { 3, 5, 2 } } do
      local x = fnn.randint(-4, 5, s, { generator = g })
      for _, t in ipairs { "i64", "i32", "u8", "bool", "f32", "f64" } do
        local v = t == "u8" and x:abs():to(t) or x:to(t)
        device.parity("reduce integers", function(a)
          local y = { a:sum(2), a:prod(2), a:any(2), a:all(2), a:argmax(2),
                      a:argmin(2) }
          if t ~= "bool" then
            y[7], y[8] = a:max(2), a:min(2)
          end
          return y
        end, { v }, { dtype = t == "f64" and t or "f32", back = false })
      end
    end
  end)

  it("finds places in 16 bits, the first of equals", function()
    local x = fnn.randint(0, 3, { 5, 700 }, { generator = fnn.Generator(5) })
    device.all("reduce argmax", function(v)
      return { v:argmax(1), v:argmax(2), v:argmin(1), v:argmin(2),
               v:argmax() }
    end, { x:to "f32" }, { back = false })
  end)

  it("treats NaN, infinities and nothing as the CPU does", function()
    local inf, nan = math.huge, 0 / 0
    local x = fnn.tensor { { 1, nan, 3 }, { -inf, -inf, -inf }, { inf, 2, 1 },
                           { nan, nan, 0 }, { -inf, 1, 2 }, { 0, 0, 0 } }
    device.all("reduce nan", function(v)
      return { v:sum(2), v:max(2), v:min(2), v:argmax(2), v:argmin(2),
               v:logsumexp(2), v:logsumexp(1), v:any(2), v:all(2), v:var(2),
               v:max(1), v:argmax(1), v:prod(2) }
    end, { x }, { back = false })
    local long = fnn.zeros(2, 20000)
    long:narrow(1, 1, 1):narrow(2, 15000, 1):fill_(nan)
    long:narrow(1, 2, 1):fill_(-inf)
    device.all("reduce nan", function(v)
      return { v:max(2), v:argmax(2), v:argmin(2), v:logsumexp(2) }
    end, { long }, { back = false, dtypes = { "f32", "bf16" } })
    device.all("reduce empty", function(v)
      return { v:sum(2), v:mean(2), v:prod(2), v:any(2), v:all(2),
               v:logsumexp(2), v:sum(1), v:max(1), v:sum() }
    end, { fnn.zeros(3, 0) }, { back = false })
  end)

  it("gives each of several equal extremes its share", function()
    local x = fnn.randint(0, 3, { 6, 40 }, { generator = fnn.Generator(6) })
    device.all("reduce extremes", function(v)
      return { v:max(), v:min { 1, 2 }, v:max(1), v:min(2) }
    end, { x:to "f32" })
  end)

  it("has the gradient of products with zeros", function()
    local x = numbers(4, 300)
    x:narrow(1, 2, 1):narrow(2, 7, 1):fill_(0)
    x:narrow(1, 3, 1):narrow(2, 9, 2):fill_(0)
    device.all("reduce prod", function(v) return v:prod(2) end, { x })
    device.all("reduce prod", function(v) return v:prod(1) end, { x })
  end)

  it("takes other orders of norms and corrections of variances", function()
    local x = numbers(3, 70) - 1
    device.all("reduce norm", function(v)
      return { v:norm(2, { p = 3 }), v:norm(2, { p = 1 }), v:norm(1, { p = 0 }),
               v:norm(1, { p = math.huge }), v:norm(2, { p = 0.5 }) }
    end, { x }, { dtypes = { "f32", "f64" } })
    device.all("reduce var", function(v)
      return { v:var(2, { correction = 0 }), v:std(1, { correction = 2 }) }
    end, { x })
  end)

  it("loses nothing far from zero or over many numbers", function()
    local x = numbers(2, 100000) * 1e-2 + 1e4
    device.parity("reduce far", function(v)
      return { v:var(2), v:std(2), v:mean(2), v:sum(2) }
    end, { x }, { back = false })
    device.parity("reduce far", function(v) return v:var(1) end, { x:t() },
                  { back = false })
    local ones = fnn.ones(3000000):to(device.name)
    assert.equal(3000000, ones:sum():item())
    local y = numbers(100, 1000):to "f64"
    local sum = y:to("f32"):to(device.name):sum():item()
    assert.near(1, sum / y:sum():item(), 1e-7)
  end)

  it("gives the same bits twice", function()
    for _, s in ipairs { { 1, 70000 }, { 30000, 3 }, { 7, 5000 } } do
      local x = numbers(table.unpack(s)):to(device.name)
      for _, dim in ipairs { 1, 2 } do
        local a, b = x:sum(dim):to "cpu", x:sum(dim):to "cpu"
        assert.is_true(a:eq(b):all():item())
      end
    end
  end)
end)
