local fixture = require "spec.support.fixture"
local fnn = require "fnn"

-- The product of two matrices as tables, in Lua.
local function product (a, b)
  local c = {}
  for i = 1, #a do
    c[i] = {}
    for j = 1, #b[1] do
      local sum = 0
      for k = 1, #b do sum = sum + a[i][k] * b[k][j] end
      c[i][j] = sum
    end
  end
  return c
end

-- Whole numbers, whose products f32 holds exactly.
local function whole (rows, cols)
  return fnn.arange(rows * cols):mul(7):remainder(11):sub(5)
            :reshape(rows, cols)
end

describe("products", function ()
  fixture.define(require "spec.fixtures.matmul", it)

  it("of odd sizes, each operand transposed or not", function ()
    for _, m in ipairs{ 1, 7, 65 } do
      for _, k in ipairs{ 1, 7, 65 } do
        for _, n in ipairs{ 1, 7, 65 } do
          local a, b = whole(m, k), whole(k, n)
          local c = product(a:totable(), b:totable())
          local at, bt = a:t():contiguous():t(), b:t():contiguous():t()
          assert.same(c, a:matmul(b):totable())
          assert.same(c, at:matmul(b):totable())
          assert.same(c, a:matmul(bt):totable())
          assert.same(c, at:matmul(bt):totable())
        end
      end
    end
  end)

  it("widen what only stores", function ()
    local a, b = whole(3, 4), whole(4, 2)
    local c = product(a:totable(), b:totable())
    for _, t in ipairs{ "f16", "bf16" } do
      for _, y in ipairs{ a:to(t):matmul(b), a:matmul(b:to(t)),
                          a:to(t):matmul(b:to(t)) } do
        assert.equal("f32", y:dtype())
        assert.same(c, y:totable())
      end
    end
    assert.equal("f64", a:to("f64"):matmul(b):dtype())
    assert.same(c, a:matmul(b:to("f64")):totable())
  end)

  it("give a half operand its gradient in its own dtype", function ()
    local p = fnn.Param(whole(3, 2):to("f16"))
    whole(2, 3):matmul(p):sum():backward()
    assert.equal("f16", p:grad():dtype())
  end)

  it("apply any function of one number behind the bias", function ()
    local x, w, b = whole(3, 2), whole(4, 2), whole(1, 4):reshape(4)
    for _, act in ipairs{ "relu", "sigmoid", "tanh", "gelu", "silu",
                          "leaky_relu", "square", "neg" } do
      local p, q = fnn.Param(w), fnn.Param(w)
      local y, z = x:linear(p, b, act), x:linear(q, b)
      z = z[act](z)
      assert.same(z:totable(), y:totable())
      y:backward(whole(3, 4))
      z:backward(whole(3, 4))
      assert.same(q:grad():totable(), p:grad():totable())
    end
    assert.error_matches(function () x:linear(w, b, "rely") end,
                         "no function of one number is called 'rely'")
  end)

  it("multiply integers as the same numbers in f64", function ()
    for _, t in ipairs{ "i64", "i32" } do
      local function ints (...)
        return fnn.randint(-100, 100, { ... }, { dtype = t })
      end
      local function check (a, b)
        local c = a:matmul(b)
        assert.equal(t, c:dtype())
        local right = a:to("f64"):matmul(b:to("f64"))
        assert.same(right:shape(), c:shape())
        assert.is_true(c:eq(right:to("i64")):all():item())
      end
      check(ints(37, 301), ints(301, 270))
      check(ints(19, 7):t(), ints(5, 19):t())
      check(ints(5, 1, 3, 4), ints(6, 4, 2))
      check(ints(7), ints(7))
      check(ints(7), ints(3, 7, 2))
      check(ints(2, 5, 3), ints(3))
      check(ints(2, 0), ints(0, 3))
    end
  end)

  it("wrap and promote products of integers", function ()
    local big = (1 << 62) + 1
    local x = fnn.full({ 1, 2 }, big, { dtype = "i64" })
    assert.same({ { 2 * big * big } }, x:matmul(x:t()):totable())
    local u = fnn.tensor({ { 200, 100 } }, { dtype = "u8" })
    local y = u:matmul(u:t())
    assert.equal("u8", y:dtype())
    assert.same({ { (200 * 200 + 100 * 100) % 256 } }, y:totable())
    y = u:matmul(u:to("i32"):t())
    assert.equal("i32", y:dtype())
    assert.same({ { 50000 } }, y:totable())
    assert.same({ { 50000 } }, fnn.einsum("ij,kj->ik", y // y * u:to("i32"),
                                          u:to("i32")):totable())
  end)

  it("name both shapes", function ()
    local function fails (pattern, f) assert.error_matches(f, pattern) end
    local x = fnn.zeros(2, 3)
    fails("matmul: the inner dimensions of %(2, 3%) and %(2, 3%) differ " ..
          "%(3 and 2%)", function () x:matmul(x) end)
    fails("inner dimensions of %(3%) and %(2, 3%)",
          function () fnn.zeros(3):matmul(x) end)
    fails("leading dimensions of %(2, 2, 3%) and %(5, 3, 2%)", function ()
      fnn.zeros(2, 2, 3):matmul(fnn.zeros(5, 3, 2))
    end)
    fails("matmul: %(%) by %(2, 3%)",
          function () fnn.tensor(1):matmul(x) end)
    fails("matmul: expected a float tensor, got i64",
          function () x:to("i64"):matmul(x:t()) end)
    fails("matmul: %(2, 3%) by %(3, 2%): bools have no product",
          function () x:to("bool"):matmul(x:to("bool"):t()) end)
    fails("linear: the inner dimensions of x %(2, 3%) and weight %(3, 2%)",
          function () x:linear(x:t()) end)
    fails("linear: bias %(3%) for weight %(2, 3%) %(expected %(2%)%)",
          function () x:linear(x, fnn.zeros(3)) end)
    fails("linear: x %(2, 3%) and weight %(3%)",
          function () x:linear(fnn.zeros(3)) end)
  end)

  it("see an overwritten operand", function ()
    local p = fnn.Param(whole(2, 2))
    local x = fnn.ones(2, 2)
    local y = x:matmul(p)
    x:fill_(3)
    assert.error_matches(function () y:sum():backward() end,
                         "matmul needs a tensor of shape %(2, 2%)")
  end)
end)
