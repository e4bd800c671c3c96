local fnn = require "fnn"

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

describe("lerp_", function ()
  it("goes a share of the way", function ()
    local x = fnn.tensor { 1, 2, 4 }
    assert.equal(x, x:lerp_(fnn.tensor { 3, 2, 0 }, 0.25))
    assert.same({ 1.5, 2, 3 }, x:totable())
  end)

  it("takes views, itself, other dtypes and nothing", function ()
    local x = fnn.tensor { { 1, 2 }, { 3, 4 } }
    x:t():lerp_(fnn.tensor({ { 3, 3 }, { 0, 4 } }, { dtype = "f64" }), 0.5)
    assert.same({ { 2, 1 }, { 3, 4 } }, x:totable())
    x:lerp_(x:t(), 0.5)
    assert.same({ { 2, 2 }, { 2, 4 } }, x:totable())
    x:select(1, 2):lerp_(fnn.tensor({ 4, 8 }, { dtype = "i64" }), 0.5)
    assert.same({ { 2, 2 }, { 3, 6 } }, x:totable())
    assert.same({ 0 }, fnn.zeros(0):lerp_(fnn.zeros(0), 0.5):shape())
  end)

  it("says what does not fit", function ()
    fails("lerp_: expected shape (2), got (3)", function ()
      fnn.ones(2):lerp_(fnn.ones(3), 0.5)
    end)
    fails("expected a float tensor, got i64", function ()
      fnn.ones(2, { dtype = "i64" }):lerp_(fnn.ones(2), 0.5)
    end)
  end)
end)
