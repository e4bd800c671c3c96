-- sort_spec.lua - order on the second device: short lines by block, long ones
-- by rounds or by radix, ties, NaN and every dtype.

local fnn = require "fnn"
local device = require "spec.support.device"

local dtypes = { "bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64" }

-- Few different values, so that most have a tie.
local function ties(t, ...)
  local g = fnn.Generator(11)
  local x = fnn.randint(t == "u8" and 0 or -9, 9, { ... }, { generator = g })
  return t == "bool" and x:gt(0) or x:to(t)
end

local function same(want, got, what)
  got = got:to "cpu"
  assert.equal(want:dtype(), got:dtype(), what)
  if want:dtype():match "f%d" then want, got = want:to "f64", got:to "f64" end
  local equal = want:eq(got)
  if want:dtype() == "f64" then
    equal = equal:logical_or(want:isnan():logical_and(got:isnan()))
  end
  assert.is_true(equal:all():item(), what)
end

-- The k first of x along dim on both devices are the same, and so their ids.
local function check(x, k, dim, largest)
  local o = { largest = largest }
  local what = ("topk %d of %d, %s"):format(k, x:shape()[dim], x:dtype())
  local v, i = x:topk(k, dim, o)
  local dv, di = x:to(device.name):topk(k, dim, o)
  same(v, dv, what)
  same(i, di, what .. ": ids")
end

describe("order on cuda", function()
  if not device.there() then
    pending "no second device"
    return
  end

  it("is the cpu's in every dtype, ties by place", function()
    for _, t in ipairs(dtypes) do
      for _, n in ipairs { 1, 2, 7, 31, 32, 33, 64, 255, 257 } do
        local x = ties(t, 3, n)
        check(x, n, 2, true)
        check(x, n, 2, false)
        check(x, (n + 1) // 2, 2, true)
      end
    end
  end)

  it("goes along any dim", function()
    local x = ties("f32", 5, 9, 7)
    for dim = 1, 3 do check(x, 4, dim, true) end
    device.parity("topk of a scalar", function(y) return { y:topk(1) } end,
                  { fnn.tensor(3.5) })
  end)

  it("puts NaN above infinity, and both zeros together", function()
    local nan, inf = 0 / 0, math.huge
    local x = fnn.tensor { 1, nan, -0.0, inf, 0.0, -nan, -inf, -1, nan, -0.0 }
    for _, t in ipairs { "f32", "f64", "f16", "bf16" } do
      check(x:to(t), 10, 1, true)
      check(x:to(t), 10, 1, false)
    end
  end)

  it("takes the whole range of integers", function()
    local x = fnn.tensor({ math.maxinteger, 0, math.mininteger, -1, 1 },
                         { dtype = "i64" })
    check(x, 5, 1, true)
    check(x, 5, 1, false)
    local y = fnn.tensor({ 2147483647, 0, -2147483648, -1 }, { dtype = "i32" })
    check(y, 4, 1, true)
    check(y, 4, 1, false)
  end)

  it("narrows long lines down to a few", function()
    for _, t in ipairs { "f32", "f64", "u8" } do
      local x = ties(t, 2, 9001)
      check(x, 1, 2, true)
      check(x, 50, 2, false)
      check(x, 500, 2, true)
    end
    check(fnn.randn({ 5000, 2 }, { generator = fnn.Generator(1) }), 7, 1, true)
  end)

  it("sorts long lines by radix", function()
    for _, t in ipairs { "f32", "f64", "u8", "f16" } do
      check(ties(t, 2, 5000), 5000, 2, true)
    end
    local x = fnn.randn({ 4999, 2 }, { generator = fnn.Generator(2) })
    check(x, 4999, 1, false)
    check(x:to "i32", 3000, 1, true)
  end)

  it("gives sort, argsort and their gradients", function()
    local x = fnn.randn({ 5, 33 }, { generator = fnn.Generator(3) })
    for _, down in ipairs { true, false } do
      device.all("sort", function(y)
        return (y:sort(2, { descending = down }))
      end, { x })
      device.parity("argsort", function(y)
        return y:argsort(2, { descending = down })
      end, { x })
    end
    device.all("topk", function(y) return (y:topk(9, 2)) end, { x })
    device.parity("empty", function(y) return { y:sort(1) } end,
                  { fnn.zeros { 0, 3 } })
    device.parity("none", function(y) return { y:topk(0, 2) } end, { x })
  end)
end)
