-- map_spec.lua - every row of map.def on the second device, with its gradient,
-- is the CPU's.

local fnn = require "fnn"
local device = require "spec.support.device"

-- { name =, kind = } in the order of the table.
local rows = {}
for line in io.lines "src/core/map.def" do
  local name, rest = line:match "^MAP%(([%w_]+), (.*)"
  if name then
    rows[#rows + 1] = { name = name, kind = assert(rest:match "%f[%u](%u+),$" or
      rest:match "NOARGS, (%u+)," or rest:match "%), (%u+),") }
  end
end

local sizes = { 0, 1, 3, 4, 5, 31, 33, 256, 1027 }
local options = {
  clamp = { { lo = -0.3, hi = 0.4 }, { lo = 0.1 } },
  softplus = { { beta = 2, threshold = 1 } },
  leaky_relu = { { slope = 0.2 } }, elu = { { alpha = 0.7 } },
}
-- Rows that are no numbers beyond (-1, 1) or below 0, where rounding to the
-- 16-bit dtypes decides.
local scale = { asin = 0.3, acos = 0.3, tan = 0.4, sinh = 1, cosh = 1 }

-- Clear of 0, where slopes leave the range of f16.
local function random(n, factor)
  local x = fnn.randn(n, { generator = fnn.Generator(n + 1), dtype = "f64" })
  return (x + 0.1 * x:sign()) * (factor or 2)
end

local function call(name, o) return function(x) return x[name](x, o) end end

local function same(got, want, what)
  assert.equal(want:dtype(), got:dtype(), what)
  assert.same(want:shape(), got:shape(), what)
  got = got:to "cpu"
  if want:dtype():match "^b?f%d" then
    local equal = got:eq(want):logical_or(got:isnan():logical_and(want:isnan()))
    if equal:all():item() then return end
    local off = (got - want):abs() / (want:abs() + 1)
    off = fnn.where(equal, fnn.zeros_like(off), off)
    assert.is_true(off:max():item() < 1e-5, what)
  elseif want:numel() > 0 then
    assert.is_true(got:to("i64"):eq(want:to "i64"):all():item(), what)
  end
end

describe("map on cuda", function()
  if not device.there() then
    pending "no second device"
    return
  end

  it("knows the table", function()
    assert.is_true(#rows >= 50)
    assert.same({ name = "neg", kind = "SAME" }, rows[1])
    assert.same({ name = "bitnot", kind = "INT" }, rows[#rows])
  end)

  for _, row in ipairs(rows) do
    if row.kind ~= "INT" then
      it("has " .. row.name, function()
        local some = options[row.name] or {}
        for k = 0, #some do
          for _, n in ipairs(sizes) do
            device.all(row.name, call(row.name, some[k]),
                       { random(n, scale[row.name]) },
                       { back = row.kind ~= "TEST" })
          end
        end
      end)
    end
  end

  it("takes any strides", function()
    local x = random(4 * 6 * 33):view { 4, 6, 33 }
    local views = {
      function(a) return a:transpose(1, 3) end,
      function(a) return a:narrow(3, 2, 20) end,
      function(a) return a:narrow(3, 5, 20) end,
      function(a) return a:select(2, 3) end,
      function(a) return a:narrow(2, 1, 1):expand { 4, 7, 33 } end,
      function(a) return a:flip(3):transpose(1, 2) end,
      function(a) return a:channels_last() end,
    }
    for i, view in ipairs(views) do
      for _, row in ipairs(rows) do
        if row.kind ~= "INT" then
          device.all(row.name .. " of view " .. i, function(a)
            local y = view(a)
            return y[row.name](y)
          end, { x * (scale[row.name] or 2) / 2 },
          { back = row.kind ~= "TEST" and i ~= 5, -- an expand's is a sum
            dtypes = { "f32", i % 2 == 0 and "f64" or "f16" } })
        end
      end
    end
  end)

  it("turns large operands that run across the result", function()
    local x = random(3 * 65 * 30):view { 3, 65, 30 }
    for i, view in ipairs {
      function(a) return a:transpose(2, 3) end,
      function(a) return a:permute(3, 1, 2) end,
      function(a) return a:channels_last():transpose(1, 3) end,
    } do
      for _, name in ipairs { "relu", "tanh", "isnan", "leaky_relu" } do
        device.all(name .. " of turned view " .. i, function(a)
          local y = view(a)
          y = y[name](y)
          return i == 1 and y:transpose(2, 3) or y
        end, { x }, { back = name ~= "isnan", dtypes = { "f32", "bf16" } })
      end
      local n = (x * 50):to "i32"
      same(view(n:to(device.name)):abs(), view(n):abs())
    end
  end)

  it("takes integers and bools", function()
    local x = random(300, 100)
    for _, row in ipairs(rows) do
      for _, t in ipairs { "i64", "i32", "u8", "bool" } do
        for _, n in ipairs { 0, 1, 4, 7, 257 } do
          local a = x:narrow(1, 1, n):to(t)
          local what = ("%s of %d %s"):format(row.name, n, t)
          local ok, want = pcall(call(row.name), a)
          local there, got = pcall(call(row.name), a:to(device.name))
          assert.equal(ok, there, what)
          if ok then same(got, want, what)
          else assert.equal(want, got, what) end
        end
        local m = x:view { 20, 15 }:to(t)
        local ok, want = pcall(call(row.name), m:transpose(1, 2))
        if ok then
          same(call(row.name)(m:to(device.name):transpose(1, 2)), want,
               row.name)
        end
      end
    end
    local i = fnn.arange(-5, 6, 1, { dtype = "i32" })
    same(i:to(device.name):clamp { lo = -2, hi = 3 },
         i:clamp { lo = -2, hi = 3 })
  end)

  it("knows infinities and what is no number", function()
    local inf, nan = math.huge, 0 / 0
    local x = fnn.tensor { inf, -inf, nan, 0, -0.0, 1e38, -1e38, 1e-40, 88,
                           -88, 104, 1e6, -3, 3, 6 }
    for _, row in ipairs(rows) do
      local far = row.name == "sin" or row.name == "cos" or row.name == "tan"
      if row.kind ~= "INT" and not far then
        device.all(row.name, call(row.name), { x },
                   { dtypes = { "f32", "f64" }, back = false })
      end
    end
    for _, row in ipairs { "isnan", "isinf", "isfinite", "logical_not" } do
      for _, t in ipairs { "f16", "bf16", "f32", "f64" } do
        same(call(row)(x:to(t):to(device.name)), call(row)(x:to(t):to "f32"),
             row)
      end
    end
  end)

  it("works in place", function()
    for _, t in ipairs { "f32", "f64", "i32" } do
      local function worked(d)
        local x = random(6 * 33):to(t):to(d):view { 6, 33 }
        x:abs_()
        x:narrow(2, 2, 9):neg_()
        x:transpose(1, 2):square_()
        if t ~= "i32" then x:select(2, 4):exp_() end
        return x
      end
      same(worked(device.name), worked "cpu", t)
    end
  end)

  it("refuses what the cpu refuses but for the 16-bit floats", function()
    local x = fnn.zeros(3)
    assert.error_matches(function()
      x:to(device.name):bitnot()
    end, "bitnot: expected integers or bools, got f32")
    assert.error_matches(function() x:to("f16"):exp() end, "f16 only stores")
  end)
end)
