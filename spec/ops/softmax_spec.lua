local fixture = require "spec.support.fixture"
local fnn = require "fnn"

describe("softmax", function ()
  fixture.define(require "spec.fixtures.softmax", it)

  it("is the same down long columns as along rows", function()
    local inf, n = math.huge, 2100
    local small = { softmax = 1e-9, log_softmax = 1e-5 }
    fnn.manual_seed(3)
    for _, t in ipairs { "f32", "f64" } do
      local x = fnn.randn(n, 150, { dtype = t }) * 10
      x:narrow(2, 1, 1):narrow(1, 1, 50):fill_(-inf)
      x:narrow(2, 2, 1):fill_(-inf)
      x:narrow(2, 3, 1):narrow(1, 99, 1):fill_(0 / 0)
      x:narrow(2, 4, 1):narrow(1, 99, 1):fill_(inf)
      x:narrow(2, 5, 1):copy_(fnn.arange(n):reshape(n, 1))
      local rows = x:t():contiguous()
      for _, f in ipairs { "softmax", "log_softmax" } do
        local y, right = x[f](x, 1), rows[f](rows, 2):t()
        assert.is_true(y:isnan():eq(right:isnan()):all():item())
        local function finite(z) return z:masked_fill(right:isnan(), 0) end
        local near = finite(y):sub(finite(right)):abs()
                       :le(finite(right):abs() * 1e-5 + small[f])
        assert.is_true(near:logical_or(right:eq(-inf)):all():item())
        assert.is_true(y:eq(-inf):eq(right:eq(-inf)):all():item())
      end
    end
  end)
end)
