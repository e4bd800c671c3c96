-- Mixed precision on a card: dtypes by PyTorch's lists, and training that
-- follows f32.

local fnn = require "fnn"
local device = require "spec.support.device"
local want = require "spec.fixtures.autocast"
local nn, optim = fnn.nn, fnn.optim

local there = device.there()
local function test(name, f)
  if there then it(name, f) else pending(name) end
end

local cuda = { device = device.name }

local function list_has(list, name)
  for _, v in ipairs(list) do if v == name then return true end end
  return false
end

describe("autocast on cuda", function ()
  -- by the names that PyTorch has for them
  local function lower(t)
    local x, m = t(4, 6), t(6, 3)
    return {
      matmul = x:matmul(m),
      bmm = t(2, 3, 4):matmul(t(2, 4, 5)),
      linear = nn.Linear(6, 2):to(device.name)(x),
      einsum = fnn.einsum("ij,jk->ik", x, m),
      conv1d = t(2, 3, 9):conv1d(t(4, 3, 3)),
      conv2d = t(2, 3, 7, 7):conv2d(t(4, 3, 3, 3)),
      conv3d = t(1, 2, 4, 4, 4):conv3d(t(3, 2, 2, 2, 2)),
      conv_transpose2d = t(2, 3, 5, 5):conv_transpose2d(t(3, 4, 2, 2)),
    }
  end

  local function wide(x, image)
    local ids = fnn.tensor({ 0, 1, 2, 1 }, { dtype = "i64",
                                             device = device.name })
    return {
      softmax = x:softmax(-1), log_softmax = x:log_softmax(-1),
      sum = x:sum(), prod = x:prod(), cumsum = x:cumsum(1),
      linalg_vector_norm = x:norm(), logsumexp = x:logsumexp(2),
      exp = x:exp(), expm1 = x:expm1(), log = x:log(), log1p = x:log1p(),
      log2 = x:log2(), log10 = x:log10(), tan = x:tan(), asin = x:asin(),
      acos = x:acos(), sinh = x:sinh(), cosh = x:cosh(),
      softplus = x:softplus(), pow = x ^ 3, reciprocal = 1 / x,
      rsqrt = x:rsqrt(), layer_norm = x:layer_norm(1),
      rms_norm = x:rms_norm(1), group_norm = image:group_norm(2),
      mse_loss = nn.mse_loss(x, x), l1_loss = nn.l1(x, x),
      huber_loss = nn.huber(x, x), smooth_l1_loss = nn.smooth_l1(x, x),
      nll_loss = nn.nll(x, ids), kl_div = nn.kl_div(x, x),
      binary_cross_entropy_with_logits = nn.bce_with_logits(x, x),
      poisson_nll_loss = nn.poisson_nll(x, x),
      upsample_nearest2d = image:interpolate { size = { 9, 9 } },
    }
  end

  test("rounds the operands that PyTorch rounds", function ()
    for _, dtype in ipairs { "bf16", "f16" } do
      local function t(...) return fnn.randn(..., cuda) end
      local function f32(...)
        local size = { ... }
        return t(size)
      end
      local got = fnn.autocast(lower, { dtype = dtype }, f32)
      for name, y in pairs(got) do
        assert.is_true(list_has(want.lower, name), name)
        assert.equal(dtype, y:dtype(), name)
      end
    end
  end)

  test("widens what PyTorch widens, and nothing else", function ()
    local x = fnn.rand({ 4, 6 }, cuda):to "bf16"
    local image = fnn.rand({ 2, 4, 5, 5 }, cuda):to "bf16"
    for name, y in pairs(fnn.autocast(wide, nil, x, image)) do
      assert.is_true(list_has(want.wide, name), name)
      assert.equal("f32", y:dtype(), name)
    end
    fnn.autocast(function ()
      for _, y in ipairs { x + x, x * 2, x:relu(), x:tanh(), x:gelu(),
                           x:mean(), x:max(), x:dropout(0.5), x:t() } do
        assert.equal("bf16", y:dtype())
      end
      assert.equal("f32", (x + x:to "f32"):dtype())
    end)
  end)

  test("has PyTorch's numbers for a layer", function ()
    local f = want.linear
    local l = nn.Linear(8, 5)
    l.weight:set(fnn.tensor(f.w):reshape(5, 8))
    l.bias:set(fnn.tensor(f.b))
    l:to(device.name)
    local x = fnn.Param(fnn.tensor(f.x):reshape(3, 8):to(device.name))
    local y = fnn.autocast(l, nil, x)
    assert.equal(f.dtypes.y, y:dtype())
    y:backward(fnn.tensor(f.gy):reshape(3, 5):to "bf16":to(device.name))
    local function check(name, a)
      local flat = a:detach():to("cpu"):to("f32"):reshape(-1):totable()
      for i, v in ipairs(f[name]) do
        assert.is_true(math.abs(v - flat[i]) <= 2 ^ -7 *
                       math.max(1, math.abs(v)), name .. " " .. i)
      end
    end
    check("y", y)
    check("gx", x:grad())
    check("gw", l.weight:grad())
    check("gb", l.bias:grad())
    for _, p in ipairs { x, l.weight, l.bias } do
      assert.equal("f32", p:grad():dtype())
    end
  end)

  test("rounds a weight once for each of its versions", function ()
    local l = nn.Linear(64, 64):to(device.name)
    local x = fnn.randn({ 2, 64 }, cuda)
    local first = fnn.autocast(l, nil, x)
    collectgarbage()
    local live = fnn.memory(device.name).live
    for _ = 1, 5 do fnn.autocast(l, nil, x) end
    collectgarbage()
    assert.is_true(fnn.memory(device.name).live <= live + 4096)
    fnn.no_grad(function () l.weight:mul_(0) l.bias:mul_(0) end)
    assert.equal(0, fnn.autocast(l, nil, x):abs():max():item())
    assert.is_true(first:abs():max():item() > 0)
  end)
end)

describe("training in mixed precision on cuda", function ()
  local function numbers(seed, ...)
    return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
  end

  -- The mean loss of the last of n steps, and all of them.
  local function train(make, x, y, loss, steps, options, scaler)
    fnn.manual_seed(7)
    local model = make():to(device.name)
    x, y = x:to(device.name), y:to(device.name)
    local opt = optim.AdamW(model:parameters(), { lr = 3e-3 })
    local curve = {}
    for step = 1, steps do
      opt:zero_grad()
      local l = fnn.autocast(function () return loss(model(x), y) end,
                             options)
      assert.equal("f32", l:dtype())
      curve[step] = l:item()
      if scaler then
        scaler[1]:scale(l):backward()
        if scaler.spoil == step then
          model:parameters()[1]:grad():fill_(1 / 0)
        end
        scaler.log[step] = scaler[1]:step(opt)
        scaler[1]:update()
      else
        l:backward()
        opt:step()
      end
    end
    return curve, model
  end

  -- How far two curves are from each other, at the worst of the means of 20
  -- steps, of where they started.
  local function distance(a, b)
    local worst = 0
    for from = 1, #a, 20 do
      local sa, sb = 0, 0
      for i = from, from + 19 do sa, sb = sa + a[i], sb + b[i] end
      worst = math.max(worst, math.abs(sa - sb) / 20 / a[1])
    end
    return worst
  end

  local function mlp()
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32),
                         nn.Linear(32, 1))
  end
  local mx = numbers(1, 64, 8)
  local my = (mx:narrow(2, 1, 1) * mx:narrow(2, 2, 1)):tanh() +
             mx:narrow(2, 3, 1)

  test("an MLP follows the curve of f32", function ()
    local plain = train(mlp, mx, my, nn.mse_loss, 200, { enabled = false })
    local mixed, model = train(mlp, mx, my, nn.mse_loss, 200,
                               { dtype = "bf16" })
    assert.is_true(plain[200] < plain[1] / 20)
    assert.is_true(distance(plain, mixed) < 0.01)
    assert.equal("f32", model:parameters()[1]:dtype())
  end)

  test("a CNN follows it", function ()
    local function cnn()
      return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
                           nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    end
    local x = numbers(2, 12, 1, 6, 6)
    local ids = fnn.arange(0, 12):remainder(3):to "i64"
    for i = 1, 12 do
      local id = (i - 1) % 3
      x[i][1][id + 2]:add_(2)
    end
    local plain = train(cnn, x, ids, nn.cross_entropy, 200,
                        { enabled = false })
    local mixed = train(cnn, x, ids, nn.cross_entropy, 200,
                        { dtype = "bf16" })
    assert.is_true(plain[200] < plain[1] / 5)
    assert.is_true(distance(plain, mixed) < 0.01)
  end)

  test("f16 with a scaler recovers from an infinity", function ()
    local s = { optim.GradScaler { init_scale = 2 ^ 15, interval = 50 },
                spoil = 30, log = {} }
    local plain = train(mlp, mx, my, nn.mse_loss, 100, { enabled = false })
    local mixed = train(mlp, mx, my, nn.mse_loss, 100, { dtype = "f16" }, s)
    assert.is_false(s.log[30])
    local skipped = 0
    for _, ok in ipairs(s.log) do skipped = skipped + (ok and 0 or 1) end
    assert.is_true(skipped <= 5)
    assert.is_true(mixed[100] < plain[1] / 10)
    assert.is_true(distance(plain, mixed) < 0.02)
  end)

  test("a scale that overflows f16 comes down by itself", function ()
    local s = { optim.GradScaler { init_scale = 2 ^ 40 }, log = {} }
    local mixed = train(mlp, mx, my, nn.mse_loss, 60, { dtype = "f16" }, s)
    assert.is_false(s.log[1])
    assert.is_true(s.log[60])
    assert.is_true(s[1]:get_scale() < 2 ^ 40)
    assert.is_true(mixed[60] < mixed[1])
  end)
end)
