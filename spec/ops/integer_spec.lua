-- integer_spec.lua - integers beyond 2^53, which a double would round.  The
-- values are Lua's own integer arithmetic.

local fnn = require "fnn"

local A, B = (1 << 60) + 1, (1 << 60) + 3

local function ints(...) return fnn.tensor({ ... }, { dtype = "i64" }) end

local function same(expected, x)
  assert.equal("i64", x:dtype())
  assert.same(expected, x:totable())
end

describe("where", function()
  it("makes integers of bools and a number that is none", function()
    local c = fnn.tensor { true, false }
    same({ 1, 5 }, fnn.where(c, c, 5))
    assert.same({ true, true }, fnn.where(c, c, 1):totable())
  end)
end)

describe("a large integer", function()
  it("is an operand on either side", function()
    local x = ints(1, A)
    same({ 1 + B, A + B }, x + B)
    same({ B - 1, 2 }, B - x)
    same({ 3 * B, A * B }, ints(3, A) * B)
    same({ 1 & B, A & B }, x & B)
    same({ 1 ~ B, 2 }, x ~ B)
    same({ B % 7, B // 7 }, fnn.cat { B % ints(7), B // ints(7) })
    same({ math.mininteger + 1 }, ints(1) + math.mininteger)
    same({ 1, A }, x:minimum(B))
    same({ B, B }, fnn.maximum(x, B))
    assert.same({ false, true }, x:eq(A):totable())
    assert.same({ true, false }, x:ne(A):totable())
    assert.same({ true, true }, x:lt(B):totable())
    assert.same({ false, true }, x:ge(A):totable())
    same({ 1 + B, A + B }, x:clone():add_(B))
  end)

  it("wraps in a narrower dtype, but is compared as it is", function()
    local x = fnn.tensor({ 1, -1 }, { dtype = "i32" })
    local y = x + A
    assert.equal("i32", y:dtype())
    assert.same({ 2, 0 }, y:totable())
    assert.same({ 2, 0 }, x:clone():add_(A):totable())
    assert.same({ false, false }, x:eq(A):totable())
    assert.same({ true, true }, x:lt(A):totable())
    same({ 1 + A, A }, fnn.tensor { true, false } + A)
  end)

  it("is what tensors are filled with", function()
    same({ A, A }, fnn.full({ 2 }, A, { dtype = "i64" }))
    same({ B, B }, ints(1, 2):fill_(B))
    same({ math.maxinteger }, ints(0):fill_(math.maxinteger))
    local x = ints(1, 2, 3)
    x[2] = A
    same({ 1, A, 3 }, x)
    x[x:gt(2)] = B
    same({ 1, B, B }, x)
    assert.equal(B, x[2])
    assert.equal(B, x:narrow(1, 2, 1):item())
    same({ 1, A, A }, x:masked_fill(x:gt(2), A))
    same({ A, B, B }, x:masked_fill_(x:lt(2), A))
    same({ A, B }, fnn.where(fnn.tensor { true, false }, A, ints(B, B)))
    same({ B, A }, fnn.where(fnn.tensor { true, false }, ints(B, B), A))
    for _, f in ipairs { "fill_", "masked_fill" } do
      local y = fnn.tensor({ 1 }, { dtype = "i32" })
      local ok, e = pcall(y[f], y, f == "fill_" and A or y:eq(1), A)
      assert.is_false(ok)
      assert.matches(A .. " does not fit i32", e)
    end
  end)

  it("begins and ends a range", function()
    local i64 = { dtype = "i64" }
    same({ A, A + 1, A + 2 }, fnn.arange(A, A + 3, i64))
    same({ -A, -A - 2 }, fnn.arange(-A, -A - 4, -2, i64))
    same({ math.maxinteger - 1 },
         fnn.arange(math.maxinteger - 1, math.maxinteger, i64))
    same({}, fnn.arange(B, A, i64))
    assert.is_false(pcall(fnn.arange, A, B, 0, i64))
    assert.is_false(pcall(fnn.arange, math.mininteger, math.maxinteger, i64))
  end)

  it("is an id that is told as it is", function()
    local ok, e = pcall(function() return ints(0, A):one_hot(3) end)
    assert.is_false(ok)
    assert.matches("id " .. A .. " at position 2", e)
  end)

  it("is a bound of clamp", function()
    local x = ints(1, A, B, B + 5)
    same({ 1, A, A, A }, x:clamp(0, A))
    same({ B, B, B, B + 5 }, x:clamp(B))
    same({ 1, A, A, A }, x:clamp { hi = A })
    same({ A, A, B, B }, x:clone():clamp_(A, B))
    same({ 1, 5, 5, 5 }, x:clamp(-math.huge, 5))
  end)
end)
