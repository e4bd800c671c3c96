-- winograd_spec.lua - convolutions of 3 by 3 by way of transformed tiles agree
-- with their definition.

local fnn = require "fnn"

local function largest(x) return x:abs():max():item() end

-- How far a is from b, in parts of b's largest number.
local function distance(a, b) return largest(a - b) / largest(b) end

-- f() by the definition alone.
local function exactly(f)
  local before = fnn.set_exact_convolution(true)
  local _ <close> = setmetatable({}, {
    __close = function() fnn.set_exact_convolution(before) end,
  })
  return f()
end

describe("convolution by transformed tiles", function()
  local x, w, b

  before_each(function()
    fnn.manual_seed(1)
    x = fnn.randn(2, 32, 19, 22)
    w = fnn.Param(fnn.randn(48, 32, 3, 3) / 17)
    b = fnn.randn(48)
  end)

  local function run()
    return x:conv2d(w, b, { padding = 1 })
  end

  it("is near the definition, and is not it", function()
    local fast = fnn.no_grad(run)
    local slow = exactly(function() return fnn.no_grad(run) end)
    assert.is_true(distance(fast, slow) < 1e-5)
    assert.is_true(distance(fast, slow) > 0)
  end)

  it("gives near gradients", function()
    local function gradients()
      local p, q = fnn.Param(x), fnn.Param(w)
      local y = p:conv2d(q, b, { padding = { 0, 2 } })
      local loss = (y * y):mean()
      loss:backward()
      return p:grad(), q:grad()
    end
    local gx, gw = gradients()
    local ex, ew = exactly(gradients)
    assert.is_true(distance(gx, ex) < 1e-5)
    assert.is_true(distance(gw, ew) < 1e-5)
  end)

  it("follows a weight that changes", function()
    local first = fnn.no_grad(run)
    assert.equal(0, largest(fnn.no_grad(run) - first))
    fnn.no_grad(function() w:value():mul_(2) end)
    local second = fnn.no_grad(run)
    local want = exactly(function() return fnn.no_grad(run) end)
    assert.is_true(distance(second, want) < 1e-5)
  end)

  it("tells what the setting was", function()
    assert.is_false(fnn.set_exact_convolution(true))
    assert.is_true(fnn.set_exact_convolution(false))
    assert.error_matches(function() fnn.set_exact_convolution(1) end,
                         "boolean expected")
  end)
end)
