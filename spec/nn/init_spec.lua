-- init_spec.lua - laws of initial weights: PyTorch's draws, identities, shares
-- and bounds.

local fnn = require "fnn"
local init = fnn.nn.init

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local function generator(seed) return { generator = fnn.Generator(seed) } end

describe("nn.init draws as PyTorch", function()
  for _, case in ipairs(require "spec.fixtures.init") do
    local name, arguments, seed, shape, expected = table.unpack(case)
    it(("%s of (%s)"):format(name, table.concat(shape, ", ")), function()
      local G = { generator = fnn.Generator(seed, { kind = "torch" }) }
      local x = fnn.Param(fnn.zeros(shape))
      assert.equal(x, init[name](x, assert(load("local G = ... return " ..
                                                arguments))(G)))
      for i, v in ipairs(x:value():reshape(-1):totable()) do
        assert.near(expected[i], v, 2e-6, "element " .. i)
      end
    end)
  end
end)

describe("orthogonal_", function()
  -- How far x x' (or x' x) is from gain^2 times the identity.
  local function off(x, gain)
    local q = x:reshape(x:size(1), -1):to("f64")
    if q:size(1) > q:size(2) then q = q:t() end
    local one = fnn.eye(#q, { dtype = "f64" }) * gain ^ 2
    return (q:matmul(q:t()) - one):abs():max():item()
  end

  for _, shape in ipairs { { 1, 1 }, { 2, 7 }, { 7, 2 }, { 64, 64 },
                           { 65, 130 }, { 200, 129 }, { 8, 3, 3, 3 },
                           { 130, 2, 65 } } do
    it(("gives orthonormal rows or columns of (%s)"):format(
       table.concat(shape, ", ")), function()
      local x = init.orthogonal_(fnn.zeros(shape), generator(1))
      assert.is_true(off(x, 1) < 5e-7)
      x = init.orthogonal_(fnn.zeros(shape, { dtype = "f64" }),
                           { gain = 3, generator = fnn.Generator(2) })
      assert.is_true(off(x, 3) < 1e-12)
    end)
  end

  it("turns evenly: each element has mean 0 and variance 1 / n", function()
    local sum, squares, g = 0, 0, fnn.Generator(4)
    for _ = 1, 400 do
      local v = init.orthogonal_(fnn.zeros(3, 3), { generator = g })[1][1]
      sum, squares = sum + v, squares + v * v
    end
    assert.near(0, sum / 400, 0.12)  -- four deviations
    assert.near(1 / 3, squares / 400, 0.06)
  end)
end)

describe("trunc_normal_", function()
  it("stays within its bounds and has the spread of the cut bell", function()
    local x = init.trunc_normal_(fnn.zeros(20000), 0, 1, -2, 2, generator(1))
    assert.is_true(x:min():item() >= -2 and x:max():item() <= 2)
    assert.near(0, x:mean():item(), 0.025)
    -- 1 - 2 a phi(a) / (2 Phi(a) - 1) at a = 2
    assert.near(math.sqrt(0.7737413), x:std():item(), 0.02)
    x = init.trunc_normal_(fnn.zeros(20000), 1, 0.5, nil, nil, generator(2))
    assert.is_true(x:max():item() <= 2)
  end)

  it("is a tail where that is asked", function()
    local x = init.trunc_normal_(fnn.zeros(20000), 0, 1, 3, 50, generator(1))
    assert.is_true(x:min():item() >= 3)
    assert.near(3.2831, x:mean():item(), 0.01)  -- phi(3) / (1 - Phi(3))
    x = init.trunc_normal_(fnn.zeros(1000), 0, 1, 8, math.huge, generator(1))
    assert.is_true(x:min():item() >= 8 and x:max():item() < 12)
    x = init.trunc_normal_(fnn.zeros(1000), 0, 1, -0.1, 0.1, generator(1))
    assert.near(0, x:mean():item(), 0.01)
    assert.is_true(x:abs():max():item() <= 0.1)
  end)
end)

describe("sparse_", function()
  it("zeroes the same share of each column", function()
    for _, case in ipairs { { 10, 7, 0.25, 3 }, { 4, 3, 1, 4 },
                            { 5, 2, 0, 0 }, { 1, 9, 0.5, 1 } } do
      local rows, columns, share, zeros = table.unpack(case)
      local x = init.sparse_(fnn.zeros(rows, columns), share, 0.5,
                             generator(3))
      local counts = x:eq(0):sum(1):totable()
      for i = 1, columns do assert.equal(zeros, counts[i]) end
    end
    local x = init.sparse_(fnn.zeros(100, 100), 0.1, 0.5, generator(3))
    assert.near(0.5 * math.sqrt(0.9), x:std():item(), 0.02)
    local first = x:select(2, 1):eq(0):totable()
    assert.not_same(first, x:select(2, 2):eq(0):totable())
  end)
end)

describe("nn.init", function()
  it("takes weights without elements", function()
    for _, name in ipairs { "orthogonal_", "trunc_normal_", "dirac_" } do
      assert.equal(0, init[name](fnn.zeros(0, 3, 2)):numel())
      assert.equal(0, init[name](fnn.zeros(3, 0, 2)):numel())
    end
    assert.equal(0, init.sparse_(fnn.zeros(0, 3), 0.5):numel())
    assert.equal(0, init.eye_(fnn.zeros(3, 0)):numel())
  end)

  it("says what is wrong", function()
    local eye = fnn.zeros(2, 2)
    raises("nn.init.orthogonal_: expected at least 2 dims, got shape (3)",
           init.orthogonal_, fnn.zeros(3))
    raises("nn.init.eye_: expected 2 dims, got shape (2, 2, 2)", init.eye_,
           fnn.zeros(2, 2, 2))
    raises("nn.init.dirac_: expected 3 to 5 dims, got shape (2, 2)",
           init.dirac_, eye)
    raises("nn.init.dirac_: option 'groups': expected a divisor of the 4 " ..
           "channels, got 3", init.dirac_, fnn.zeros(4, 2, 1), { groups = 3 })
    raises("nn.init.sparse_: sparsity: expected a number from 0 to 1, " ..
           "got 1.5", init.sparse_, eye, 1.5)
    raises("nn.init.sparse_: sparsity: expected a number, got nil",
           init.sparse_, eye)
    raises("nn.init.trunc_normal_: expected std above 0 and lo below hi, " ..
           "got std 1, lo 2, hi 1", init.trunc_normal_, eye, 0, 1, 2, 1)
    raises("nn.init.orthogonal_: expected a Param or a tensor, got a table",
           init.orthogonal_, {})
  end)
end)
