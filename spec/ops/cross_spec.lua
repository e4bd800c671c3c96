-- cross_spec.lua - the cross product: values by hand, identities, errors.

local fnn = require "fnn"

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

describe("cross", function()
  local x, y = fnn.tensor { 1, 2, 3 }, fnn.tensor { 4, 5, 6 }

  it("is the vector across two others", function()
    assert.same({ -3, 6, -3 }, x:cross(y):totable())
    assert.same({ 3, -6, 3 }, fnn.cross(y, x):totable())
    assert.same({ 0, 0, 0 }, x:cross(x):totable())
    local a, b = fnn.randn(50, 3), fnn.randn(50, 3)
    assert.is_true((a:cross(b) * a):sum(2):abs():max():item() < 1e-5)
  end)

  it("goes along any dim, and broadcasts", function()
    local a, b = fnn.randn(4, 3, 5), fnn.randn(4, 3, 5)
    local z = a:cross(b, 2)
    assert.same(a:transpose(2, 3):cross(b:transpose(2, 3), -1)
                 :transpose(2, 3):totable(), z:totable())
    assert.same(a:select(3, 2):cross(b:select(3, 2)):totable(),
                z:select(3, 2):totable())
    z = fnn.stack({ x, y }):cross(y)
    assert.same({ { -3, 6, -3 }, { 0, 0, 0 } }, z:totable())
    assert.same({ 3, 4 }, fnn.ones(3, 1):cross(fnn.ones(3, 4), 1):shape())
    assert.same({ 0, 3 }, fnn.zeros(0, 3):cross(x):shape())
  end)

  it("takes the wider dtype", function()
    assert.equal("f64", x:cross(y:to("f64")):dtype())
    assert.equal("f32", x:cross(y:to("i64")):dtype())
  end)

  it("says what is wrong", function()
    raises("cross: the vectors must have 3 numbers (got shapes (2, 4) and " ..
           "(4))", fnn.cross, fnn.ones(2, 4), fnn.ones(4))
    raises("cross: expected float tensors, got i64", fnn.cross, x:to("i64"),
           y:to("i64"))
    raises("cross: ", fnn.cross, fnn.ones(2, 3), fnn.ones(4, 3))
    raises("out of range", x.cross, x, y, 2)
    raises("f16", fnn.cross, x:to("f16"), y:to("f16"))
  end)
end)
