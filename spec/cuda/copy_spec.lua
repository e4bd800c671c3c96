-- copy_spec.lua - copies, conversions, fills and progressions on the second
-- device are the CPU's, bit for bit but for the payloads of NaN.

local fnn = require "fnn"
local device = require "spec.support.device"

local dtypes = { "bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64" }
local sizes = { 1, 2, 7, 31, 32, 33, 255, 256, 257, 1000, 2049 }

local function is_float(x) return x:dtype():match "^b?f%d" ~= nil end

-- Whether both hold the same elements, f16 and bf16 as what they stand for.
local function same(got, want, what)
  assert.same(want:shape(), got:shape(), what)
  assert.equal(want:dtype(), got:dtype(), what)
  got = got:to "cpu"
  if want:numel() == 0 then return end
  if is_float(want) then
    got, want = got:to "f64", want:to "f64"
    local nan = got:isnan():logical_and(want:isnan())
    assert.is_true(got:eq(want):logical_or(nan):all():item(), what)
  else
    assert.is_true(got:to("i64"):eq(want:to "i64"):all():item(), what)
  end
end

-- Numbers that every dtype rounds or cuts in its own way.
local function numbers(n)
  local g = fnn.Generator(n)
  return fnn.randn(n, { generator = g, dtype = "f64" }) * 100
end

-- The same view of a tensor on both devices, copied there.
local function viewed(what, x, view)
  local want = view(x):contiguous():clone()
  same(view(x:to(device.name)):contiguous():clone(), want, what)
end

local function describe_there(name, f)
  describe(name, function()
    if device.there() then f()
    else pending "no second device" end
  end)
end

describe_there("copy on cuda", function()
  for _, from in ipairs(dtypes) do
    it("converts " .. from .. " as the cpu does", function()
      for _, n in ipairs { 1, 7, 8, 33, 257 } do
        local x = numbers(n):to(from)
        for _, to in ipairs(dtypes) do
          same(x:to(device.name):to(to), x:to(to), from .. " to " .. to)
        end
      end
    end)
  end

  it("converts what does not fit as the cpu does", function()
    local inf, nan = math.huge, 0 / 0
    local x = fnn.tensor({ inf, -inf, nan, 1e300, -1e300, 2^63, -2^63, 2^31,
                           -2^31 - 1, 255.9, 256, -1, 0.5, -0.0, 65504, 65520,
                           2049, 2051, 6e-8, 3e-8, 2.0^-25, 1e-40, 3.4e38 },
                         { dtype = "f64" })
    for _, from in ipairs { "f64", "f32", "f16", "bf16" } do
      for _, to in ipairs(dtypes) do
        local y = x:to(from)
        same(y:to(device.name):to(to), y:to(to), from .. " to " .. to)
      end
    end
    local i = fnn.tensor({ math.mininteger, math.maxinteger, 2^53 + 1 | 0,
                           -1, 256, 1 << 31, 16777217 }, { dtype = "i64" })
    for _, to in ipairs(dtypes) do
      same(i:to(device.name):to(to), i:to(to), "i64 to " .. to)
    end
  end)

  it("copies every size of element, dense", function()
    for _, t in ipairs(dtypes) do
      for _, n in ipairs(sizes) do
        viewed(t .. " " .. n, numbers(n):to(t),
               function(x) return x end)
        viewed(t .. " from 2 of " .. n, numbers(n + 1):to(t),
               function(x) return x:narrow(1, 2, n) end)
      end
    end
  end)

  local function layouts_of(t, n, m)
    local x = numbers(2 * n * m * 3):to(t):view { 2, n, m, 3 }
    local name = ("%s (2, %d, %d, 3) "):format(t, n, m)
    viewed(name .. "permuted", x, function(a)
      return a:permute(4, 1, 3, 2)
    end)
    viewed(name .. "transposed", x, function(a) return a:transpose(2, 3) end)
    viewed(name .. "matrices", x, function(a)
      return a:select(4, 2):transpose(2, 3)
    end)
    viewed(name .. "flipped", x, function(a) return a:flip(1, 3) end)
    viewed(name .. "narrowed", x, function(a)
      return a:narrow(3, 1, m - 1):transpose(1, 2)
    end)
    viewed(name .. "stretched", x:narrow(1, 1, 1), function(a)
      return a:expand { 5, n, m, 3 }
    end)
    viewed(name .. "stretched inside", x:narrow(4, 1, 1), function(a)
      return a:expand { 2, n, m, 4 }
    end)
    viewed(name .. "swapped", x:view { 2 * n, m * 3 }, function(a)
      return a:transpose(1, 2)
    end)
    viewed(name .. "converted", x, function(a)
      return a:transpose(2, 3):to(t == "f32" and "f16" or "f32")
    end)
  end

  for _, t in ipairs { "bool", "f16", "i32", "f64" } do
    it("copies " .. t .. " of any strides", function()
      for _, s in ipairs { { 2, 2 }, { 8, 31 }, { 32, 8 }, { 33, 65 } } do
        layouts_of(t, s[1], s[2])
      end
    end)
  end

  it("copies into any strides, and channels-last", function()
    for _, t in ipairs { "u8", "bf16", "f32", "i64" } do
      local x, y = numbers(3 * 34 * 9):to(t), numbers(3 * 34 * 9):to(t)
      local function into(d)
        local a = x:to(d):view { 3, 34, 9 }:clone()
        local b = y:to(d):view { 9, 34, 3 }
        a:transpose(1, 3):copy_(b)
        a:narrow(2, 3, 5):copy_(b:narrow(2, 1, 5):transpose(1, 3))
        return a
      end
      same(into(device.name), into "cpu", t)
      viewed(t .. " channels last", x:view { 3, 9, 17, 2 }, function(a)
        return a:channels_last()
      end)
      viewed(t .. " channels last and back", x:view { 3, 9, 17, 2 },
             function(a) return a:channels_last():contiguous() end)
    end
  end)

  it("copies nothing", function()
    for _, t in ipairs(dtypes) do
      viewed(t, fnn.zeros(0, 3, { dtype = t }), function(x)
        return x:transpose(1, 2):to "f64"
      end)
    end
  end)
end)

describe_there("fill on cuda", function()
  it("writes the cpu's value in every dtype", function()
    for _, t in ipairs(dtypes) do
      for _, v in ipairs { 0, 1, 2.5, -1, 300, 1e-3 } do
        for _, n in ipairs { 0, 1, 15, 16, 17, 257 } do
          same(fnn.full({ n }, v, { dtype = t, device = device.name }),
               fnn.full({ n }, v, { dtype = t }), t .. " " .. v)
        end
      end
    end
  end)

  it("fills any strides", function()
    for _, t in ipairs(dtypes) do
      local function filled(d)
        local x = numbers(5 * 6 * 33):to(t):to(d):view { 5, 6, 33 }
        x:select(2, 3):fill_(1)
        x:narrow(3, 4, 20):transpose(1, 3):fill_(0)
        return x
      end
      same(filled(device.name), filled "cpu", t)
    end
  end)
end)

describe_there("arange on cuda", function()
  it("is the cpu's", function()
    for _, t in ipairs { "u8", "i32", "i64", "f32", "f64", "f16" } do
      for _, n in ipairs { 1, 255, 256, 1000 } do
        same(fnn.arange(3, 3 + 2 * n, 2, { dtype = t, device = device.name }),
             fnn.arange(3, 3 + 2 * n, 2, { dtype = t }), t .. " " .. n)
      end
    end
    same(fnn.linspace(-1, 1, 33, { dtype = "f64", device = device.name }),
         fnn.linspace(-1, 1, 33, { dtype = "f64" }))
    same(fnn.eye(7, 5, { device = device.name }), fnn.eye(7, 5))
  end)
end)
