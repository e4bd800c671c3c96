-- threads_spec.lua - fnn.threads: how many threads compute.

local fnn = require "fnn"

describe("threads", function()
  local before = fnn.threads()
  after_each(function() fnn.threads(before) end)

  it("is read and set", function()
    assert.is_true(math.type(before) == "integer" and before >= 1)
    assert.equal(3, fnn.threads(3))
    assert.equal(3, fnn.threads())
    assert.equal(1, fnn.threads(1))
    assert.is_true(fnn.threads(0) >= 1)  -- what the process may use
  end)

  it("changes no result", function()
    fnn.manual_seed(1)
    local x = fnn.randn(300, 400)
    fnn.threads(1)
    local one = x:matmul(x:t()):softmax(-1)
    fnn.threads(3)
    assert.is_true(one:eq(x:matmul(x:t()):softmax(-1)):all():item())
  end)

  it("names what is out of range", function()
    for _, n in ipairs { -1, 257, math.maxinteger, math.mininteger } do
      assert.error_matches(function() fnn.threads(n) end,
                           "threads: count out of range %(expected 0 to 256")
    end
    assert.equal(before, fnn.threads())
    assert.error_matches(function() fnn.threads "x" end, "number expected")
  end)

  it("is not set by a finalizer", function()
    local ok, message
    setmetatable({}, { __gc = function()
      ok, message = pcall(fnn.threads, 2)
    end })
    collectgarbage()
    collectgarbage()
    assert.is_false(ok)
    assert.matches("a finalizer cannot set the count", message)
    assert.equal(before, fnn.threads())
  end)
end)
