-- zip_spec.lua - every row of zip.def on the second device, with its gradients,
-- and the choices of where, is the CPU's.

local fnn = require "fnn"
local device = require "spec.support.device"

-- { name =, kind = } in the order of the table.
local rows = {}
for line in io.lines "src/core/zip.def" do
  local name, kind = line:match "^ZIP%(([%w_]+), (%u+),"
  if name then rows[#rows + 1] = { name = name, kind = kind } end
end

-- Gates, whose rows are no methods.
local halves = { mul_sigmoid = "glu", mul_silu = "swiglu",
                 mul_gelu = "geglu" }

local function row_of(row)
  local gate = halves[row.name]
  if gate then
    return function(x, y)
      local both = fnn.cat({ x + 0 * y, y + 0 * x }, -1)
      return both[gate](both, -1)
    end
  end
  if row.name == "leaky" then return nil end  -- prelu's, below
  return function(x, y) return x[row.name](x, y) end
end

local function random(shape, seed)
  local x = fnn.randn(shape, { generator = fnn.Generator(seed),
                               dtype = "f64" })
  return x + 0.2 * x:sign()
end

-- Positive where the row has a power or a divisor, whose slopes are steep.
local function operands(row, a, b)
  local x, y = random(a, 1), random(b, 2)
  if row.name == "pow" then x = x:abs() end
  if row.name == "fmod" or row.name == "remainder" or
     row.name == "floordiv" then
    y = y:abs() + 0.7  -- whose quotients no rounding of f16 moves
    x = x:round() * 0.5 + 0.25
    y = y:round()
  end
  return { x, y }
end

local function same(got, want, what)
  assert.equal(want:dtype(), got:dtype(), what)
  assert.same(want:shape(), got:shape(), what)
  if want:numel() == 0 then return end
  got, want = got:to("cpu", "f64"), want:to "f64"
  local equal = got:eq(want):logical_or(got:isnan():logical_and(want:isnan()))
  local off = (got - want):abs() / (want:abs() + 1)
  off = fnn.where(equal, fnn.zeros_like(off), off)
  assert.is_true(off:max():item() < 1e-5, what)
end

-- Both devices do the same, or refuse it in the same words.
local function alike(what, f, ...)
  local there = {}
  for i, x in ipairs { ... } do there[i] = x:to(device.name) end
  local ok, want = pcall(f, ...)
  local ok2, got = pcall(f, table.unpack(there))
  if tostring(got):find "not on cuda yet" then return end
  assert.equal(ok, ok2, what .. ": " .. tostring(ok and got or want))
  if ok then same(got, want, what) else assert.equal(want, got, what) end
end

local shapes = {
  { { 0 }, { 0 } }, { { 1 }, { 1 } }, { { 7 }, { 7 } }, { { 257 }, { 257 } },
  { { 1030 }, { 1030 } }, { {}, {} },
}

-- Of which one is stretched: their gradients are sums.
local stretched = {
  { { 5, 32 }, { 32 } }, { { 5, 33 }, { 33 } }, { { 5, 32 }, { 5, 1 } },
  { { 32 }, { 7, 32 } }, { { 6, 40 }, {} }, { { 4, 1, 8 }, { 5, 1 } },
  { { 2, 3, 16 }, { 3, 1 } }, { { 2, 3, 5 }, { 2, 1, 5 } },
  { { 1, 7 }, { 9, 1 } },
}

describe("zip on cuda", function()
  if not device.there() then
    pending "no second device"
    return
  end

  it("knows the table", function()
    assert.is_true(#rows >= 30)
    assert.same({ name = "add", kind = "SAME" }, rows[1])
    assert.same({ name = "shr", kind = "INT" }, rows[#rows])
  end)

  for _, row in ipairs(rows) do
    local f = row_of(row)
    if row.kind ~= "INT" and f then
      it("has " .. row.name, function()
        local o = { back = row.kind ~= "TEST" }
        for _, s in ipairs(shapes) do
          if not (halves[row.name] and #s[1] == 0) then
            device.all(row.name, f, operands(row, s[1], s[2]), o)
          end
        end
        for _, s in ipairs(stretched) do
          device.all(row.name, f, operands(row, s[1], s[2]), { back = false })
        end
      end)

      it("has " .. row.name .. " of any strides", function()
        if halves[row.name] then return end
        local o = { back = row.kind ~= "TEST", dtypes = { "f32", "f64" },
                    f32 = 1e-4 }
        local xs = operands(row, { 6, 5, 33 }, { 33, 5, 6 })
        device.all(row.name .. ", transposed", function(x, y)
          return f(x, y:transpose(1, 3))
        end, xs, o)
        device.all(row.name .. ", narrowed", function(x, y)
          return f(x:narrow(3, 2, 20), y:transpose(1, 3):narrow(3, 1, 20))
        end, xs, o)
        device.all(row.name .. ", channels-last", function(x, y)
          return f(x:channels_last(), y:transpose(1, 3))
        end, xs, o)
      end)
    end
  end

  it("turns large operands that run across the result", function()
    local x, y = random({ 3, 50, 30 }, 27), random({ 30, 50, 3 }, 28)
    for _, f in ipairs {
      function(a, b) return a:transpose(2, 3) * b:permute(3, 1, 2) end,
      function(a, b) return a / b:transpose(1, 3) end,
      function(a, b) return (2 - a:transpose(1, 3)) * b end,
      function(a, b)
        return (a:channels_last() - b:transpose(1, 3)):transpose(1, 3)
      end,
      function(a, b)
        return fnn.where(a:detach():gt(0), a, b:transpose(1, 3))
      end,
      function(a, b) return a:transpose(1, 3):maximum(b):transpose(1, 2) end,
    } do
      device.all("turned", f, { x, y }, { dtypes = { "f64", "f32" },
                                          f32 = 1e-4 })
    end
    alike("integers, turned", function(a, b) return a + b:transpose(1, 3) end,
          (x * 9):to "i32", (y * 9):to "i32")
  end)

  it("has rows beside numbers", function()
    local numbers = { 2, 0.5, -1.25, 0, 3 }
    for _, row in ipairs(rows) do
      if row.kind ~= "INT" and row_of(row) and not halves[row.name] then
        for _, v in ipairs(numbers) do
          local x = operands(row, { 3, 11 }, { 1 })[1]
          device.all(row.name .. " of a number", function(a)
            return { a[row.name](a, v),
                     (a:transpose(1, 2))[row.name](a:transpose(1, 2), v) }
          end, { x }, { back = row.kind ~= "TEST", dtypes = { "f32", "f64" },
                        f32 = 1e-4 })
        end
      end
    end
    device.all("numbers on the left", function(x)
      return { 2 - x, 1 / x, 3 * x, 2 ^ x, 1 + x, 7 % x, 7 // x }
    end, { random({ 31 }, 3):abs():round() + 1 })
  end)

  it("takes integers and bools", function()
    local x = random({ 260 }, 4) * 60
    local y = random({ 260 }, 5) * 3
    for _, row in ipairs(rows) do
      local f = row_of(row)
      for _, t in ipairs { "i64", "i32", "u8", "bool" } do
        for _, n in ipairs(f and not halves[row.name] and { 1, 6, 257 } or
                           {}) do
          local a, b = x:narrow(1, 1, n):to(t), y:narrow(1, 1, n):to(t)
          if t ~= "bool" then b = b + b:eq(0):to(t) end
          local what = ("%s of %d %s"):format(row.name, n, t)
          alike(what, f, a, b)
          alike(what .. ", number", function(u) return u[row.name](u, 3) end,
                a)
          alike(what .. ", fraction", function(u)
            return u[row.name](u, 2.5)
          end, a)
          alike(what .. ", mixed", f, a, b:to "i64")
        end
        if f and not halves[row.name] then
          alike(row.name .. ", strides", function(u, v)
            return f(u:view { 20, 13 }:transpose(1, 2),
                     v:view { 13, 20 }:narrow(2, 1, 1))
          end, x:to(t), (y:abs() + 1):to(t))
        end
      end
    end
  end)

  it("keeps large integers exact", function()
    local x = fnn.tensor({ math.maxinteger, math.mininteger, -1, 0, 2^53 | 0 },
                         { dtype = "i64" })
    for _, name in ipairs { "add", "sub", "mul", "maximum", "eq", "lt",
                            "bitand", "shl", "shr" } do
      local got = x:to(device.name)
      for _, v in ipairs { 1, -1, math.maxinteger, 63, 64 } do
        local there = got[name](got, v):to "cpu"
        assert.is_true(there:eq(x[name](x, v)):all():item(), name .. v)
      end
    end
  end)

  it("promotes dtypes as the cpu does", function()
    local x, y = random({ 9 }, 6) * 4, random({ 9 }, 7) * 4
    for _, a in ipairs { "bool", "u8", "i32", "i64", "f32", "f64" } do
      for _, b in ipairs { "bool", "u8", "i32", "i64", "f32", "f64" } do
        alike(a .. " * " .. b, function(u, v) return u * v end, x:to(a),
              y:to(b))
        alike(a .. " < " .. b, function(u, v) return u:lt(v) end, x:to(a),
              y:to(b))
      end
    end
    local function mixed(a, b)
      local z = x:to(a):to(device.name) + y:to(b):to(device.name)
      return z:dtype()
    end
    assert.equal("f16", mixed("f16", "i64"))
    assert.equal("bf16", mixed("bf16", "bool"))
    assert.equal("f32", mixed("f16", "bf16"))
    assert.equal("f32", mixed("bf16", "f32"))
    assert.equal("f64", mixed("f16", "f64"))
  end)

  it("compares infinities and what is no number", function()
    local inf, nan = math.huge, 0 / 0
    local list = { inf, -inf, nan, 0, -0.0, 1, 2 }
    local a, b = {}, {}
    for _, u in ipairs(list) do
      for _, v in ipairs(list) do a[#a + 1], b[#b + 1] = u, v end
    end
    a, b = fnn.tensor(a), fnn.tensor(b)
    for _, row in ipairs(rows) do
      local f = row_of(row)
      if row.kind ~= "INT" and f and not halves[row.name] then
        for _, t in ipairs { "f32", "f64" } do
          alike(row.name .. " " .. t, f, a:to(t), b:to(t))
        end
        if row.kind == "TEST" then
          same(f(a:to("f16", device.name), b:to("f16", device.name)), f(a, b),
               row.name)
          same(f(a:to("bf16", device.name), b:to("bf16", device.name)),
               f(a, b), row.name)
        end
      end
    end
  end)

  it("works in place", function()
    for _, t in ipairs { "f32", "f64", "i32" } do
      local function worked(d)
        local x = (random({ 6, 33 }, 8) * 4):to(t):to(d)
        local y = (random({ 33 }, 9) * 4):to(t):to(d)
        x:add_(y)
        x:mul_(2)
        x:sub_(x:transpose(1, 2):transpose(1, 2))
        x:add_(y:view { 1, 33 })
        x:transpose(1, 2):mul_(x:transpose(1, 2))
        x:narrow(2, 3, 9):sub_(y:narrow(1, 1, 9))
        x:select(1, 2):add_(x:select(1, 1))
        x:narrow(1, 1, 5):add_(x:narrow(1, 2, 5))  -- they overlap
        return x
      end
      same(worked(device.name), worked "cpu", t)
    end
  end)

  it("has prelu and the gates", function()
    local x, w = random({ 3, 4, 10 }, 10), random({ 4 }, 11)
    device.all("prelu", function(a, b) return a:prelu(b) end, { x, w },
               { back = false })
    device.all("prelu", function(a, b) return a:prelu(b) end,
               { x, w:narrow(1, 1, 1) }, { back = false })
    for _, name in ipairs { "glu", "swiglu", "geglu" } do
      for dim = 2, 3 do
        device.all(name, function(a) return a[name](a, dim) end, { x })
      end
    end
  end)
end)

describe("where on cuda", function()
  if not device.there() then return end

  it("chooses in every dtype", function()
    for _, t in ipairs { "bool", "u8", "i32", "i64", "f32", "f64" } do
      for _, n in ipairs { 0, 1, 15, 17, 257 } do
        local x, y = random({ n }, 12):to(t), random({ n }, 13):to(t)
        alike("where " .. t, fnn.where, random({ n }, 14):gt(0), x, y)
      end
      alike("where, stretched", function(c, x, y)
        return fnn.where(c:unsqueeze(2), x:transpose(1, 2), y)
      end, random({ 5 }, 15):gt(0), random({ 33, 5 }, 16):to(t),
      random({ 33 }, 17):to(t))
    end
  end)

  it("has gradients", function()
    local x, y, z = random({ 6, 33 }, 18), random({ 6, 33 }, 19),
                    random({ 6, 33 }, 20)
    device.all("where", function(a, b, c)
      return fnn.where(c:detach():gt(0), a, b)
    end, { x, y, z })
    device.all("masked_fill", function(a, c)
      return a:transpose(1, 2):masked_fill(c:detach():gt(0):transpose(1, 2),
                                           3)
    end, { x, z })
    device.all("masked_fill of a row", function(a, c)
      return a:masked_fill(c:detach():gt(0):select(1, 2), -math.huge)
    end, { x, z }, { back = false })
  end)
end)

describe("triangles and cross products on cuda", function()
  if not device.there() then return end

  it("keep what the cpu keeps", function()
    for _, s in ipairs { { 0, 3 }, { 1, 1 }, { 7, 5 }, { 2, 31, 33 },
                         { 3, 2, 130 }, { 300, 3 } } do
      for _, d in ipairs { -2, 0, 1, 40, -400 } do
        device.all("tril", function(x) return x:tril(d) end,
                   { random(s, 21) })
        device.all("triu", function(x) return x:transpose(-1, -2):triu(d) end,
                   { random(s, 22) })
      end
    end
    alike("tril", function(x) return x:tril() end,
          random({ 9, 9 }, 23):to "i64")
    alike("triu", function(x) return x:triu(1) end, random({ 9, 9 }, 24):gt(0))
  end)

  it("are the cpu's", function()
    for _, n in ipairs { 0, 1, 86, 257 } do
      local x, y = random({ n, 3 }, 25), random({ n, 3 }, 26)
      device.all("cross", function(a, b) return a:cross(b) end, { x, y })
      device.all("cross, columns", function(a, b)
        return a:transpose(1, 2):cross(b:transpose(1, 2), 1)
      end, { x, y })
    end
  end)
end)
