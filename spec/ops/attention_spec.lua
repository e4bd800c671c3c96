local fnn = require "fnn"

local function largest (x)
  if x:numel() == 0 then return 0 end
  return x:abs():max():item()
end

-- {======================================================
-- The definition, over ops that are tested elsewhere
-- =======================================================

-- x (b, g, n, d) with each group as often as it has heads.
local function repeated (x, heads)
  local b, g, n, d = table.unpack(x:shape())
  x = x:reshape { b, g, 1, n, d }:expand { b, g, heads // g, n, d }
  return x:reshape { b, heads, n, d }
end

-- Places: query i of m is place n - m + i.
local function distances (m, n, dtype)
  local i = fnn.arange(n - m, n, { dtype = dtype }):reshape { m, 1 }
  return fnn.arange(0, n, { dtype = dtype }):reshape { 1, n } - i
end

local function definition (q, k, v, o)
  local b, h, m, d = table.unpack(q:shape())
  local n, dtype = k:size(3), q:dtype()
  local least = fnn.full({ 1 }, -math.huge, { dtype = dtype })
  local zero = fnn.zeros({ 1 }, { dtype = dtype })
  k, v = repeated(k, h), repeated(v, h)
  local s = q:matmul(k:transpose(3, 4)) * (o.scale or 1 / math.sqrt(d))
  if o.mask and o.mask:dtype() == "bool" then
    s = s + o.mask:where(zero, least)
  elseif o.mask then s = s + o.mask:to(dtype) end
  local far = distances(m, n, dtype)
  if o.alibi then
    s = s - o.alibi:to(dtype):reshape { h, 1, 1 } * far:abs()
  end
  if o.causal then s = (far:le(0)):where(s, least) end
  local some = s:gt(-math.huge):any({ 4 }, { keepdim = true })
  local p = some:where(some:where(s, zero):softmax(4), zero)
  if o.dropout then
    local g = fnn.Generator(o.seed)
    local kept = fnn.ones({ b, h, m, n }):dropout(o.dropout,
                                                  { generator = g })
    p = p * kept:gt(0):to(dtype) / (1 - o.dropout)
  end
  return p:matmul(v)
end

-- }======================================================

-- {======================================================
-- Cases
-- =======================================================

-- What a kind of mask makes of sizes, by a generator.
local kinds = {
  none = function () return {} end,
  causal = function () return { causal = true } end,
  bool = function (b, _, m, n, g)
    return { mask = fnn.rand({ b, 1, m, n }, { generator = g }):gt(0.3) }
  end,
  heads = function (_, h, m, n, g)
    return { mask = fnn.rand({ h, m, n }, { generator = g }):gt(0.3),
             causal = true }
  end,
  padding = function (b, _, _, n)
    local far = fnn.arange(0, n):reshape { 1, 1, 1, n }
    local last = fnn.arange(0, b):reshape { b, 1, 1, 1 } * -(n // 3) + n
    return { mask = far:lt(last) }
  end,
  shifted = function (b, _, _, n, g)
    return { mask = fnn.randn({ b, 1, 1, n }, { generator = g }) }
  end,
  additive = function (_, h, m, n, g)
    return { mask = fnn.randn({ 1, h, m, n }, { generator = g }) }
  end,
  by_query = function (b, _, m, _, g)
    return { mask = fnn.rand({ b, 1, m, 1 }, { generator = g }):gt(0.5) }
  end,
  transposed = function (_, _, m, n, g)
    return { mask = fnn.randn({ n, m }, { generator = g }):transpose(1, 2) }
  end,
  alibi = function (_, h, _, _, g)
    return { alibi = fnn.rand({ h }, { generator = g }), causal = true }
  end,
  far = function (_, h, _, _, g)
    return { alibi = fnn.rand({ h }, { generator = g }), scale = -0.3 }
  end,
  dropout = function () return { dropout = 0.3, seed = 7 } end,
  dropped = function (b, _, m, n, g)
    return { dropout = 0.5, seed = 8, causal = true,
             mask = fnn.randn({ b, 1, m, n }, { generator = g }) }
  end,
  nothing = function (b, _, m, n)
    return { mask = fnn.zeros({ b, 1, m, n }, { dtype = "bool" }) }
  end,
}

local function options (o, dtype)
  local copy = {}
  for name, value in pairs(o) do copy[name] = value end
  if o.seed then copy.generator, copy.seed = fnn.Generator(o.seed), nil end
  for _, name in ipairs { "mask", "alibi" } do
    if o[name] and o[name]:dtype() ~= "bool" then
      copy[name] = o[name]:to(dtype)
    end
  end
  return copy
end

-- Operands (b, heads, length, size); every other time they lie in memory as
-- (b, length, heads, size).
local function operands (c, g)
  local function make (heads, length, size)
    if c.strided then
      return fnn.randn({ c.b, length, heads, size }, { generator = g })
               :transpose(2, 3)
    end
    return fnn.randn({ c.b, heads, length, size }, { generator = g })
  end
  return make(c.h, c.m, c.d), make(c.g, c.n, c.d), make(c.g, c.n, c.e)
end

-- Values and gradients of f under a gradient, in dtype.
local function run (f, list, gy, dtype, o)
  local p = {}
  for i, x in ipairs(list) do p[i] = fnn.Param(x:to(dtype)) end
  local y = f(p[1], p[2], p[3], o)
  y:backward(gy:to(dtype))
  return { y:detach(), p[1]:grad(), p[2]:grad(), p[3]:grad() }
end

local function fused (q, k, v, o)
  return q:scaled_dot_product_attention(k, v, o)
end

local names = { "value", "gradient of q", "gradient of k", "gradient of v" }

local function check (c, o, dtype, gradients)
  local g = fnn.Generator(3)
  local q, k, v = operands(c, g)
  local most = dtype == "f64" and 1e-12 or 4e-6
  if not gradients then
    local want = definition(q:to("f64"), k:to("f64"), v:to("f64"), o)
    local y = fused(q:to(dtype), k:to(dtype), v:to(dtype), options(o, dtype))
    assert.is_true(largest(y:to("f64") - want) <= most * (1 + largest(want)),
                   "value " .. largest(y:to("f64") - want))
    return
  end
  local gy = fnn.randn({ c.b, c.h, c.m, c.e }, { generator = g })
  local want = run(definition, { q, k, v }, gy, "f64", o)
  local got = run(fused, { q, k, v }, gy, dtype, options(o, dtype))
  for i, name in ipairs(names) do
    local off = largest(got[i]:to("f64") - want[i])
    assert.is_true(off <= 3 * most * (1 + largest(want[i])),
                   name .. " " .. off)
  end
end

local lengths = { 1, 3, 15, 16, 17, 33, 63, 64, 65, 97, 130 }
local sizes = { 1, 8, 33, 40, 64, 80, 128 }

-- A walk through lengths, sizes and groups, so that each meets others.
local count = 0
local function next_case ()
  count = count + 1
  local function pick (list, step) return list[count * step % #list + 1] end
  local h, g = table.unpack(pick({ { 1, 1 }, { 2, 2 }, { 4, 2 }, { 3, 1 } },
                                 3))
  return { b = count % 2 + 1, h = h, g = g, m = pick(lengths, 5),
           n = pick(lengths, 3), d = pick(sizes, 3), e = pick(sizes, 5),
           strided = count % 3 == 0 }
end

local function text_of (c)
  return ("b %d, heads %d of %d, m %d, n %d, d %d, e %d%s"):format(
    c.b, c.h, c.g, c.m, c.n, c.d, c.e, c.strided and ", strided" or "")
end

-- }======================================================

describe("attention", function ()
  for name, make in pairs(kinds) do
    for _, dtype in ipairs { "f32", "f64" } do
      it(("is its definition: %s, %s"):format(name, dtype), function ()
        for turn = 1, 8 do
          local c = next_case()
          local o = make(c.b, c.h, c.m, c.n, fnn.Generator(turn))
          local ok, message = pcall(check, c, o, dtype, turn % 2 == 0)
          assert.is_true(ok, text_of(c) .. ": " .. tostring(message))
        end
      end)
    end
  end

  it("is its definition at edges of tiles and blocks", function ()
    for _, m in ipairs { 31, 32, 65, 129, 150 } do
      for _, n in ipairs { 127, 129, 257 } do
        for _, o in ipairs { {}, { causal = true } } do
          local c = { b = 1, h = 1, g = 1, m = m, n = n, d = 16, e = 24 }
          local ok, message = pcall(check, c, o, "f32", true)
          assert.is_true(ok, text_of(c) .. ": " .. tostring(message))
        end
      end
    end
  end)

  it("is its definition where few queries see many keys", function ()
    for _, m in ipairs { 1, 2, 4, 7 } do
      for _, h in ipairs { 1, 6 } do
        local c = { b = 2, h = h, g = 1, m = m, n = 2500, d = 40, e = 70 }
        check(c, {}, "f32")
        check(c, { causal = true }, "f32")
        check(c, { dropout = 0.2, seed = 3 }, "f64")
      end
    end
  end)

  it("takes heads of 256 and more", function ()
    check({ b = 1, h = 1, g = 1, m = 40, n = 70, d = 256, e = 256 }, {}, "f32",
          true)
    check({ b = 1, h = 1, g = 1, m = 20, n = 30, d = 1024, e = 300 }, {},
          "f32", true)
    check({ b = 1, h = 2, g = 1, m = 1, n = 30, d = 1024, e = 300 }, {}, "f32")
  end)
end)

-- What a single and several threads make of it.
local function by_threads (f)
  local before, list = fnn.threads(), {}
  for i, n in ipairs { 1, 2, 3 } do
    fnn.threads(n)
    list[i] = f()
  end
  fnn.threads(before)
  return list
end

describe("attention", function ()
  it("does not depend on the number of threads", function ()
    for _, c in ipairs {
      { b = 2, h = 4, g = 2, m = 150, n = 200, d = 40, e = 40 },
      { b = 1, h = 1, g = 1, m = 70, n = 700, d = 64, e = 33 },
      { b = 1, h = 2, g = 1, m = 1, n = 3000, d = 64, e = 64 },
    } do
      local q, k, v = operands(c, fnn.Generator(1))
      local gy = fnn.randn({ c.b, c.h, c.m, c.e },
                           { generator = fnn.Generator(2) })
      local got = by_threads(function ()
        return run(fused, { q, k, v }, gy, "f32",
                   { causal = true, dropout = 0.1,
                     generator = fnn.Generator(5) })
      end)
      for i, name in ipairs(names) do
        for t = 2, 3 do
          assert.equal(0, largest(got[1][i] - got[t][i]), name)
        end
      end
    end
  end)

  it("does not depend on what else is in the batch", function ()
    local g = fnn.Generator(1)
    local q, k, v = fnn.randn({ 3, 2, 50, 24 }, { generator = g }),
                    fnn.randn({ 3, 2, 60, 24 }, { generator = g }),
                    fnn.randn({ 3, 2, 60, 24 }, { generator = g })
    local all = fused(q, k, v)
    for b = 1, 3 do
      local function part (x) return x:narrow(1, b, 1) end
      local one = fused(part(q), part(k), part(v))
      assert.equal(0, largest(one - part(all)))
    end
  end)

  it("goes on with a NaN, whether or not its mask learns", function ()
    local x, v = fnn.full({ 1, 1, 2, 4 }, 0 / 0), fnn.ones(1, 1, 2, 4)
    for _, mask in ipairs { fnn.zeros(2, 2), fnn.Param(fnn.zeros(2, 2)) } do
      local y = x:scaled_dot_product_attention(v, v, { mask = mask })
      assert.is_true(y:isnan():all():item())
    end
  end)

  it("attends nothing where there is nothing", function ()
    local q = fnn.Param(fnn.randn(2, 3, 5, 4))
    local k = fnn.Param(fnn.zeros(2, 3, 0, 4))
    local v = fnn.Param(fnn.zeros(2, 3, 0, 6))
    local y = fused(q, k, v)
    assert.same({ 2, 3, 5, 6 }, y:shape())
    assert.equal(0, largest(y))
    y:backward(fnn.ones(2, 3, 5, 6))
    assert.equal(0, largest(q:grad()))
    assert.same({ 2, 3, 0, 4 }, k:grad():shape())
    for _, m in ipairs { 1, 40 } do -- queries before all places
      local z = fused(fnn.randn(1, 1, m, 4), fnn.ones(1, 1, 1, 4),
                      fnn.ones(1, 1, 1, 4), { causal = true })
      assert.equal(1, z:sum():item() / 4)
    end
  end)

  it("keeps keys that are padding out of results", function ()
    local q, k, v = fnn.randn(1, 2, 40, 8), fnn.randn(1, 2, 300, 8),
                    fnn.randn(1, 2, 300, 8)
    local seen = fnn.arange(0, 300):lt(129):reshape { 1, 1, 1, 300 }
    local function first (x) return x:narrow(3, 1, 129) end
    local want = fused(q, first(k), first(v))
    assert.is_true(largest(fused(q, k, v, { mask = seen }) - want) < 1e-6)
  end)

  it("takes very low numbers in masks for numbers", function ()
    -- what other programs write for minus infinity: all alike are a mean
    local low = -3.4028234663852886e38
    for _, m in ipairs { 1, 20 } do
      local v = fnn.randn(1, 1, 9, 4)
      local mask = fnn.full({ m, 9 }, low)
      local y = fused(fnn.randn(1, 1, m, 4), fnn.randn(1, 1, 9, 4), v,
                      { mask = mask })
      local want = v:mean({ 3 }, { keepdim = true })
      assert.is_true(largest(y - want) < 1e-6)
    end
  end)

  it("does not overflow", function ()
    local q = fnn.full({ 1, 1, 40, 8 }, 1e3)
    local k = fnn.cat({ fnn.full({ 1, 1, 200, 8 }, -1e3),
                        fnn.full({ 1, 1, 1, 8 }, 1e3) }, 3)
    local v = fnn.cat({ fnn.full({ 1, 1, 200, 8 }, 5),
                        fnn.full({ 1, 1, 1, 8 }, 3) }, 3)
    assert.equal(0, largest(fused(q, k, v) - 3))
    local one = q:narrow(3, 1, 1)
    assert.equal(0, largest(fused(one, k, v) - 3))
  end)

  it("takes NaN and infinity for what they are", function ()
    local nan, inf = 0 / 0, math.huge
    for _, m in ipairs { 1, 40 } do
      local function with (where, at, value)
        local x = { q = fnn.ones(1, 1, m, 4), k = fnn.ones(1, 1, 50, 4),
                    v = fnn.ones(1, 1, 50, 4) }
        x[where]:narrow(3, at, 1):fill_(value)
        return fused(x.q, x.k, x.v):reshape { m, 4 }:totable()
      end
      local y = with("q", 1, nan)
      assert.is_true(y[1][1] ~= y[1][1])
      if m > 1 then assert.near(1, y[2][1], 1e-6) end
      for _, where in ipairs { "k", "v" } do
        y = with(where, 7, nan)
        assert.is_true(y[1][1] ~= y[1][1])
      end
      y = with("v", 7, inf)
      assert.equal(inf, y[1][1])
      y = with("k", 7, inf) -- softmax of infinity
      assert.is_true(y[1][1] ~= y[1][1])
      y = with("k", 7, -inf)
      assert.near(1, y[1][1], 1e-6)
    end
  end)

  it("widens 16-bit keys and values", function ()
    for _, dtype in ipairs { "f16", "bf16" } do
      for _, m in ipairs { 1, 3, 40 } do
        for _, d in ipairs { 40, 64, 33 } do
          local g = fnn.Generator(1)
          local q = fnn.randn({ 1, 4, m, d }, { generator = g })
          local k = fnn.randn({ 1, 2, 150, d }, { generator = g }):to(dtype)
          local v = fnn.randn({ 1, 2, 150, d }, { generator = g }):to(dtype)
          local want = fused(q, k:to("f32"), v:to("f32"))
          assert.is_true(largest(fused(q, k, v) - want) < 1e-6)
        end
      end
    end
  end)

  it("drops the share that it is told, and the same by a seed", function ()
    local q, k = fnn.zeros(1, 2, 60, 4), fnn.zeros(1, 2, 400, 4)
    local v = fnn.ones(1, 2, 400, 4)
    local function drop (p, seed)
      return fused(q, k, v, { dropout = p, generator = fnn.Generator(seed) })
    end
    assert.near(1, drop(0.25, 1):mean():item(), 0.02)
    -- a mean of 400 numbers, 0 or 4/3
    assert.near(math.sqrt(1 / 3 / 400), drop(0.25, 1):std():item(), 0.005)
    assert.equal(0, largest(drop(0.25, 1) - drop(0.25, 1)))
    assert.is_true(largest(drop(0.25, 1) - drop(0.25, 2)) > 0)
    assert.equal(0, largest(drop(1, 1)))
    assert.equal(0, largest(drop(0, 1) - 1))
  end)

  it("needs memory that grows with the length, not its square", function ()
    local function peak (n)
      local q = fnn.Param(fnn.randn(1, 1, n, 8))
      collectgarbage()
      fnn.reset_peak_memory()
      local before = fnn.memory().peak
      local y = fused(q, q, q)
      y:backward(fnn.ones(1, 1, n, 8))
      return fnn.memory().peak - before
    end
    peak(512)
    assert.is_true(peak(2048) < 6 * peak(512))
    assert.is_true(peak(2048) < 4 * 2048 * 2048 / 2)  -- half of all scores
  end)

  it("takes 2 and 3 dims", function ()
    local q, k, v = fnn.randn(5, 4), fnn.randn(7, 4), fnn.randn(7, 3)
    local want = definition(q:reshape { 1, 1, 5, 4 }, k:reshape { 1, 1, 7, 4 },
                            v:reshape { 1, 1, 7, 3 }, {})
    local y = fused(q, k, v)
    assert.same({ 5, 3 }, y:shape())
    assert.is_true(largest(y - want:reshape { 5, 3 }) < 1e-6)
  end)

  it("says what is wrong", function ()
    local function fails (text, f, ...)
      local ok, message = pcall(f, ...)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
    end
    local q, k = fnn.ones(2, 4, 3, 8), fnn.ones(2, 2, 5, 8)
    fails("groups divide heads, got (2, 4, 3, 8), (2, 3, 5, 8)", fused, q,
          fnn.ones(2, 3, 5, 8), fnn.ones(2, 3, 5, 8))
    fails("scaled_dot_product_attention: expected query", fused, q,
          fnn.ones(2, 2, 5, 7), k)
    fails("the query is f32, key f64", fused, q, k:to("f64"), k:to("f64"))
    fails("expected a float tensor, got i64", fused, q:to("i64"), k, k)
    fails("broadcasts to (2, 4, 3, 5)", fused, q, k, k,
          { mask = fnn.ones(3, 4) })
    fails("expected a mask of bool", fused, q, k, k,
          { mask = fnn.ones({ 3, 5 }, { dtype = "i64" }) })
    fails("expected 4 slopes", fused, q, k, k, { alibi = fnn.ones(2) })
    fails("dropout out of range", fused, q, k, k, { dropout = 1.5 })
    fails("'scale'", fused, q, k, k, { scale = 0 })
    fails("unknown option 'causl'", fused, q, k, k, { causl = true })
    local long = fnn.zeros(1, 1, 1, 1):expand(1, 1, 1 << 57, 1)
    fails("is too large", fused, fnn.zeros(1, 1 << 15, 1, 1), long, long)
    fails("nothing to compare", fused, fnn.ones(1, 1, 3, 0),
          fnn.ones(1, 1, 3, 0), fnn.ones(1, 1, 3, 2))
  end)
end)
