-- autocast on the CPU, which stores 16-bit floats and computes in f32: what is
-- rounded, what comes out, and where the mode ends.  The dtypes of a card are
-- in spec/cuda/autocast_spec.lua.

local fnn = require "fnn"
local want = require "spec.fixtures.autocast"
local nn = fnn.nn

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function assert_near(a, list, tolerance)
  local flat = a:to("f32"):reshape(-1):totable()
  assert.equal(#list, #flat)
  for i, v in ipairs(list) do
    local most = tolerance * math.max(1, math.abs(v))
    assert.is_true(math.abs(v - flat[i]) <= most,
                   ("element %d: %g, not %g"):format(i, flat[i], v))
  end
end

-- x w' + b by a layer whose Params are w and b.
local function layer(w, b)
  local l = nn.Linear(w:size(2), w:size(1), { bias = b ~= nil })
  l.weight:set(w)
  if b then l.bias:set(b) end
  return l
end

describe("autocast", function ()
  local f = want.linear

  it("makes a layer of rounded numbers", function ()
    local x = fnn.Param(fnn.tensor(f.x):reshape(3, 8))
    local l = layer(fnn.tensor(f.w):reshape(5, 8), fnn.tensor(f.b))
    local w, b = l.weight, l.bias
    local y = fnn.autocast(l, nil, x)
    local function rounded(t) return t:to("bf16"):to "f32" end
    local plain = layer(rounded(w), b:value())(rounded(x))
    assert.equal(0, (y - plain):abs():max():item())
    assert.equal("f32", y:dtype())
    assert_near(y, f.y, 2 ^ -7)
    y:backward(fnn.tensor(f.gy):reshape(3, 5))
    for name, p in pairs { gx = x, gw = w, gb = b } do
      assert.equal("f32", p:grad():dtype())
      assert_near(p:grad(), f[name], 2 ^ -7)
    end
    -- the gradient is not rounded on the way
    local gy = fnn.tensor(f.gy):reshape(3, 5)
    assert.is_true((w:grad() - gy:t():matmul(rounded(x))):abs():max():item()
                   < 1e-5)
  end)

  it("rounds what matmul and convolutions read", function ()
    local function round(t, dtype) return t:to(dtype):to "f32" end
    for _, dtype in ipairs { "bf16", "f16" } do
      local a, b = fnn.randn(4, 6), fnn.randn(6, 3)
      local x, w = fnn.randn(2, 3, 7, 7), fnn.randn(4, 3, 3, 3)
      local function all(p, q, u, v)
        return p:matmul(q), u:conv2d(v),
               u:conv_transpose2d(v:transpose(1, 2):contiguous())
      end
      local got = { fnn.autocast(function () return all(a, b, x, w) end,
                                 { dtype = dtype }) }
      local exact = { all(round(a, dtype), round(b, dtype), round(x, dtype),
                          round(w, dtype)) }
      for i, y in ipairs(got) do
        assert.is_true((y - exact[i]):abs():max():item() < 1e-5)
        assert.is_true((y - ({ all(a, b, x, w) })[i]):abs():max():item() > 0)
      end
    end
  end)

  it("leaves f64 and integers alone", function ()
    local a, b = fnn.randn(3, 3, { dtype = "f64" }), fnn.randn(3, 3)
    fnn.autocast(function ()
      assert.same(a:matmul(a):totable(),
                  fnn.autocast(function () return a:matmul(a) end,
                               { enabled = false }):totable())
      assert.equal("f64", a:matmul(b):dtype())
      local i = fnn.ones(2, 2, { dtype = "i64" })
      assert.equal("i64", i:matmul(i):dtype())
    end)
  end)

  it("takes 16-bit operands of sums, norms and losses as f32", function ()
    local x = fnn.randn(2, 4):to "bf16"
    local ids = fnn.tensor({ 1, 0 }, { dtype = "i64" })
    fails("bf16", function () return x:softmax(-1) end)
    fnn.autocast(function ()
      for _, y in ipairs { x:softmax(-1), x:log_softmax(-1), x:sum(),
                           x:exp(), x:log(), x ^ 2, 1 / x, x:cumsum(1),
                           x:layer_norm(1), x:norm(), x:logsumexp(2),
                           x:softplus(), nn.mse_loss(x, x),
                           nn.cross_entropy(x, ids) } do
        assert.equal("f32", y:dtype())
      end
    end)
  end)

  it("keeps a rounded weight while its version stays", function ()
    local l = layer(fnn.randn(64, 64))
    local w, x = l.weight, fnn.randn(2, 64)
    local function product() return fnn.autocast(l, nil, x) end
    local first = product()
    local live = fnn.memory().live
    for _ = 1, 5 do product() end
    collectgarbage()
    assert.is_true(fnn.memory().live <= live + 4096)
    fnn.no_grad(function () w:mul_(2) end)
    assert.is_true((product() - first * 2):abs():max():item() < 1e-5)
  end)

  it("trains f32 weights", function ()
    local w = fnn.Param(fnn.zeros(3, 1))
    local x = fnn.randn(64, 3, { generator = fnn.Generator(1) })
    local y = x:matmul(fnn.tensor { { 1 }, { -2 }, { 3 } })
    local opt = fnn.optim.Adam({ w }, { lr = 0.1 })
    for _ = 1, 200 do
      local loss = fnn.autocast(function ()
        return nn.mse_loss(x:matmul(w), y)
      end)
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
    assert_near(w:value(), { 1, -2, 3 }, 0.01)
  end)

  it("is off in a backward and in a step inside of it", function ()
    local w = fnn.Param(fnn.randn(8, 8))
    local x = fnn.randn(4, 8)
    local function gradient(inside)
      w:set_grad(nil)
      fnn.autocast(function ()
        local y = x:matmul(w):matmul(w):sum()
        if inside then y:backward() end
        return y
      end)
      if not inside then
        fnn.autocast(function () return x:matmul(w):matmul(w):sum() end)
          :backward()
      end
      return w:grad():totable()
    end
    assert.same(gradient(false), gradient(true))
    fnn.autocast(function ()
      fnn.optim.Muon({ w }, { lr = 0.1 }):step()
      assert.equal("bf16", fnn.autocast_dtype())
    end)
  end)

  it("passes arguments and results, and ends", function ()
    assert.is_nil(fnn.autocast_dtype())
    local function all(...)
      return fnn.autocast_dtype(), select("#", ...), ...
    end
    assert.same({ "bf16", 0 }, { fnn.autocast(all) })
    assert.same({ "f16", 2, 7, 8 },
                { fnn.autocast(all, { dtype = "f16" }, 7, 8) })
    assert.same({ nil, 1, 7 },
                { fnn.autocast(all, { enabled = false }, 7) })
    assert.same({ "bf16", 1, 7 }, { fnn.autocast(all, nil, 7) })
    fnn.autocast(function ()
      fnn.autocast(function () assert.is_nil(fnn.autocast_dtype()) end,
                   { dtype = "f32" })
      assert.equal("bf16", fnn.autocast_dtype())
      assert.is_false(pcall(fnn.autocast, function () error "no" end,
                            { dtype = "f16" }))
      assert.equal("bf16", fnn.autocast_dtype())
      -- a throw of the engine restores it too
      assert.is_false(pcall(fnn.autocast, function ()
        return fnn.ones(2):matmul(fnn.ones(3))
      end, { dtype = "f16" }))
      assert.equal("bf16", fnn.autocast_dtype())
    end)
    assert.is_nil(fnn.autocast_dtype())
  end)

  it("cannot be yielded out of", function ()
    local co = coroutine.create(function ()
      fnn.autocast(function () coroutine.yield() end)
    end)
    local ok, message = coroutine.resume(co)
    assert.is_false(ok)
    assert.matches("yield", message)
    assert.is_nil(fnn.autocast_dtype())
  end)

  it("says what it cannot", function ()
    fails("expected f16, bf16 or f32, got f64", fnn.autocast, print,
          { dtype = "f64" })
    fails("did you mean 'dtype'", fnn.autocast, print, { dtyp = "f16" })
    fails("autocast: expected a function to call", fnn.autocast)
  end)
end)

describe("a module under autocast", function ()
  it("gives finite losses with norms and dropout in it", function ()
    local model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4),
                                nn.ReLU(), nn.Dropout(0.1), nn.Flatten(),
                                nn.Linear(4 * 6 * 6, 3))
    local loss = fnn.autocast(function ()
      return nn.cross_entropy(model(fnn.randn(5, 1, 8, 8)),
                               fnn.tensor({ 0, 1, 2, 0, 1 },
                                          { dtype = "i64" }))
    end)
    loss:backward()
    assert.is_true(fnn.optim.gradients_are_finite(model))
  end)
end)
