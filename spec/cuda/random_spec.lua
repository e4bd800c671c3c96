-- The numbers that a card draws are those of the CPU: integers and uniforms
-- bit for bit, normals to rounding.

local fnn = require "fnn"
local device = require "spec.support.device"

local there = device.there()
local function test(name, f)
  if there then it(name, f) else pending(name) end
end

local dtypes = { "f32", "f64", "f16", "bf16" }
local sizes = { 0, 1, 2, 3, 4, 5, 31, 127, 255, 256, 257, 1023, 1025, 5003 }

-- What draw(n, options) gives on both, from generators of one seed, as f64.
local function both(draw, n, kind, dtype, seed)
  local function on(d)
    local g = fnn.Generator(seed or 5, { kind = kind })
    fnn.rand(3, { generator = g }) -- not from the beginning
    local x = draw(n, { generator = g, dtype = dtype, device = d })
    assert.matches("^" .. d, x:device())
    -- and the generator goes on from the same place
    return x:to "cpu", fnn.rand(4, { generator = g }):totable()
  end
  local a, next_a = on "cpu"
  local b, next_b = on(device.name)
  assert.same(next_a, next_b)
  assert.equal(a:dtype(), b:dtype())
  return a:to "f64", b:to "f64"
end

local function same(draw, kind, dtype, seed)
  for _, n in ipairs(sizes) do
    local a, b = both(draw, n, kind, dtype, seed)
    assert.same(a:totable(), b:totable())
  end
end

local function close(draw, kind, dtype, tolerance)
  for _, n in ipairs(sizes) do
    local a, b = both(draw, n, kind, dtype)
    if n > 0 then
      assert.is_true((a - b):abs():max():item() <= tolerance,
                     dtype .. " of " .. n)
    end
  end
end

describe("random numbers on cuda", function ()
  test("uniforms are the CPU's", function ()
    for _, t in ipairs(dtypes) do
      same(fnn.rand, "philox", t)
      same(function (n, o) return fnn.uniform(-0.7, 1.9, n, o) end, "philox",
           t)
    end
  end)

  test("rounding to 16 bits does not reach the bound", function ()
    for _, t in ipairs { "f16", "bf16" } do
      same(function (n, o) return fnn.uniform(2, 2.03125, n, o) end, "philox",
           t)
      same(function (n, o) return fnn.uniform(-1, 0, n, o) end, "philox", t)
    end
  end)

  test("normals are the CPU's but for rounding", function ()
    local tolerance = { f32 = 2e-6, f64 = 1e-13, f16 = 4e-3, bf16 = 3e-2 }
    for _, t in ipairs(dtypes) do
      close(function (n, o) return fnn.normal(0.5, 1.5, n, o) end, "philox", t,
            tolerance[t])
    end
  end)

  test("integers are the CPU's, of every dtype", function ()
    for _, t in ipairs { "u8", "i32", "i64", "f32", "f64", "f16", "bf16" } do
      same(function (n, o) return fnn.randint(3, 200, n, o) end, "philox", t)
    end
    same(function (n, o) return fnn.randint(0, 2, n, o) end, "philox", "bool")
    same(function (n, o)
      return fnn.randint(math.mininteger, math.maxinteger, n, o)
    end, "philox", "i64")
    same(function (n, o) return fnn.randint(-2^31 // 1 | 0, 2^31 // 1 | 0, n, o)
         end, "philox", "i32")
  end)

  test("a seed of all 64 bits", function ()
    same(fnn.rand, "philox", "f32", -2)
    same(fnn.rand, "philox", "f64", "18446744073709551557")
  end)

  test("a torch generator's are made on the host", function ()
    for _, t in ipairs(dtypes) do
      same(fnn.rand, "torch", t)
      same(fnn.randn, "torch", t)
    end
    same(function (n, o) return fnn.randint(3, 200, n, o) end, "torch", "i64")
    same(function (n, o) o.dtype = nil return fnn.randperm(n, o) end, "torch",
         "i64")
    same(function (n, o) o.dtype = nil return fnn.randperm(n, o) end,
         "philox", "i64")
  end)

  test("dropout keeps what it keeps on the CPU", function ()
    for _, kind in ipairs { "philox", "torch" } do
      for _, n in ipairs(sizes) do
        local x = fnn.randn(n, { generator = fnn.Generator(n) })
        for _, p in ipairs { 0, 0.1, 0.5, 1 } do
          device.all("dropout", function (y)
            local g = fnn.Generator(7, { kind = kind })
            return y:dropout(p, { generator = g })
          end, { x })
        end
      end
    end
  end)

  test("dropout of NaN and infinity that it drops is 0", function ()
    local x = fnn.full({ 64 }, 0 / 0)
    device.all("dropout", function (y)
      return y:dropout(0.5, { generator = fnn.Generator(7) })
    end, { x })
    device.all("dropout", function (y) return y:dropout(1) end, { x })
  end)

  test("views that begin between boundaries are filled too", function ()
    local function filled(d)
      local x = fnn.zeros(40, { device = d })
      x:narrow(1, 2, 37):uniform_(0, 1, { generator = fnn.Generator(3) })
      return x:to("cpu"):totable()
    end
    assert.same(filled "cpu", filled(device.name))
  end)
end)
