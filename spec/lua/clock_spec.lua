-- fnn.clock: time that passes, whoever works.

local fnn = require "fnn"

describe("clock", function ()
  it("goes forward while the process sleeps", function ()
    local before, worked = fnn.clock(), os.clock()
    os.execute "sleep 0.05"
    assert.is_true(fnn.clock() - before >= 0.05)
    assert.is_true(os.clock() - worked < 0.05)
  end)
end)
