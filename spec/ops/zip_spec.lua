local fnn = require "fnn"
local fixture = require "spec.support.fixture"

describe("zip", function ()
  fixture.define(require "spec.fixtures.zip", it)

  it("logaddexp neither overflows nor loses infinities", function ()
    local inf, ln2 = math.huge, math.log(2)
    local x = fnn.tensor { -inf, inf, 1e4, -1e4, inf, -inf, 0 / 0, 0 }
    local y = fnn.tensor { -inf, inf, 1e4, -1e4, -inf, 3, 1, 0 / 0 }
    local z = x:logaddexp(y):totable()
    local expected = { -inf, inf, 1e4 + ln2, -1e4 + ln2, inf, 3 }
    for i, v in ipairs(expected) do
      assert.is_true(z[i] == v or math.abs(z[i] - v) < 1e-3, tostring(z[i]))
    end
    assert.is_true(z[7] ~= z[7] and z[8] ~= z[8])
  end)
end)
