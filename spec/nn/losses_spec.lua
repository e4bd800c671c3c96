-- losses_spec.lua - losses: values worked out by hand, edges, errors, modules.

local fnn = require "fnn"
local nn = fnn.nn

local log, exp = math.log, math.exp
local inf, nan = 1 / 0, 0 / 0

local function f64(t) return fnn.tensor(t, { dtype = "f64" }) end
local function f32(t) return fnn.tensor(t, { dtype = "f32" }) end

local function values(x)
  if x:ndim() == 0 then return { x:item() } end
  return x:view(-1):totable()
end

local function near(expected, x, eps)
  local have = type(x) == "number" and { x } or values(x)
  if type(expected) ~= "table" then expected = { expected } end
  assert.equal(#expected, #have)
  for i, v in ipairs(expected) do assert.near(v, have[i], eps or 1e-12) end
end

local function is_finite(x)
  for _, v in ipairs(values(x)) do
    assert.is_true(v - v == 0, "not finite: " .. v)
  end
end

-- The gradients of the sum of f(...) by its tensors.
local function slopes(f, ...)
  local params = {}
  for i, x in ipairs { ... } do params[i] = fnn.Param(x) end
  f(table.unpack(params)):sum():backward()
  for i, p in ipairs(params) do params[i] = p:grad() end
  return table.unpack(params)
end

-- {======================================================
-- Values
-- =======================================================

describe("the loss", function()
  it("cross_entropy smooths labels", function()
    local x = f64 { { log(1 / 4), log(3 / 4) } }
    near(-0.1 * log(1 / 4) - 0.9 * log(3 / 4),
         nn.cross_entropy(x, { 1 }, { label_smoothing = 0.2 }))
  end)

  it("cross_entropy divides by the weights of the ids that count", function()
    local x = f64 { { log(1 / 4), log(3 / 4) }, { log(1 / 2), log(1 / 2) } }
    local o = { weight = f64 { 3, 1 } }
    near((3 * log(4) + log(2)) / 4, nn.cross_entropy(x, { 0, 1 }, o))
    near((3 * log(4) + log(2)) / 4, nn.nll(x, { 0, 1 }, o))
  end)

  it("cross_entropy takes probabilities", function()
    local x, t = f64 { { log(1 / 4), log(3 / 4) } }, f64 { { 0.5, 0.5 } }
    near(0.5 * log(4) + 0.5 * log(4 / 3), nn.cross_entropy(x, t))
    near(log(4) + 0.5 * log(4 / 3),
         nn.cross_entropy(x, t, { weight = f64 { 2, 1 } }))
    near(0.6 * log(4) + 0.4 * log(4 / 3),
         nn.cross_entropy(x, f64 { { 0.75, 0.25 } },
                          { label_smoothing = 0.6 }))
  end)

  it("mse, l1, huber, smooth_l1", function()
    local x, y = f64 { 0.5, 3 }, f64 { 0, 0 }
    near(9.25 / 2, nn.mse(x, y))
    near(1.75, nn.l1(x, y))
    near(1.3125, nn.huber(x, y))
    near(1.3125, nn.smooth_l1(x, y))
    near({ 0.125, 4 }, nn.huber(x, y, { delta = 2, reduction = "none" }))
    near({ 0.0625, 2 }, nn.smooth_l1(x, y, { beta = 2, reduction = "none" }))
    near({ 0.5, 3 }, nn.smooth_l1(x, y, { beta = 0, reduction = "none" }))
  end)

  it("bce, with and without logits", function()
    local p, t = f64 { 0.25, 0.75 }, f64 { 1, 0 }
    near(2 * log(4), nn.bce(p, t, { reduction = "sum" }))
    local x = f64 { -log(3), log(3) }
    near(2 * log(4), nn.bce_with_logits(x, t, { reduction = "sum" }))
    near({ 5 * log(4), log(4) },
         nn.bce_with_logits(x, t, { pos_weight = f64 { 5 },
                                    reduction = "none" }))
    near({ 2 * log(4), 3 * log(4) },
         nn.bce(p, t, { weight = f64 { 2, 3 }, reduction = "none" }))
  end)

  it("focal is a share of bce", function()
    local x, t = f64 { -1.5, 0.25, 2 }, f64 { 1, 0, 1 }
    near(0.5 * nn.bce_with_logits(x, t):item(),
         nn.focal(x, t, { gamma = 0, alpha = 0.5 }))
    near(0.25 * 0.75 ^ 2 * log(4), nn.focal(f64 { -log(3) }, f64 { 1 }))
  end)

  it("kl_divergence of probabilities, kl_div of logarithms", function()
    local p, q = f64 { { 0.25, 0.75 } }, f64 { { 0.5, 0.5 } }
    near(0.14384103622589, nn.kl_divergence(p, q))
    near(0.14384103622589, nn.kl_div(p:log(), q, { reduction = "batchmean" }))
    near(0.14384103622589 / 2, nn.kl_div(p:log(), q))
    near(0.14384103622589,
         nn.kl_div(p:log(), q:log(), { log_target = true,
                                       reduction = "sum" }))
    near(0, nn.kl_divergence(p, p))
    near({ log(4), 0 },
         nn.kl_divergence(f64 { { 0.75, 0.25 }, { 0, 1 } },
                          f64 { { 0, 1 }, { 0, 1 } },
                          { reduction = "none" }))
  end)

  it("gaussian_nll and its logarithmic form", function()
    local x, t, v = f64 { 1 }, f64 { 3 }, f64 { 1 }
    near(2, nn.gaussian_nll(x, t, v))
    near(2, nn.gaussian_nll_log_var(x, t, f64 { 0 }))
    near(2 + 0.5 * log(2 * math.pi), nn.gaussian_nll(x, t, v, { full = true }))
    near(0.5 * (log(4) + 1), nn.gaussian_nll(x, t, f64 { 4 }))
    near(0.5 * (log(4) + 1), nn.gaussian_nll_log_var(x, t, f64 { log(4) }))
  end)

  it("poisson_nll", function()
    near(1, nn.poisson_nll(f64 { 0 }, f64 { 3 }))
    near(2 - 3 * log(2), nn.poisson_nll(f64 { 2 }, f64 { 3 },
                                        { log_input = false, eps = 0 }))
    near(1 + 3 * log(3) - 3 + 0.5 * log(6 * math.pi),
         nn.poisson_nll(f64 { 0 }, f64 { 3 }, { full = true }))
  end)

  it("triplet, by Euclidean distance", function()
    local a, p, n = f64 { { 0, 0 } }, f64 { { 3, 4 } }, f64 { { 0, 5.5 } }
    near(0.5, nn.triplet(a, p, n, { eps = 0 }))
    near(0.5, nn.triplet(a, p, n), 1e-5)
  end)

  it("contrastive", function()
    local a, b = f64 { { 0, 0 }, { 0, 0 } }, f64 { { 0.6, 0.8 }, { 3, 4 } }
    near({ 1, 0 }, nn.contrastive(a, b, f64 { 1, 0 },
                                  { reduction = "none" }))
    near(0.5, nn.contrastive(a, b, { 1, 0 }))
    near({ 0, 4 }, nn.contrastive(a, b, { 0, 0 },
                                  { margin = 7, reduction = "none" })
         :sub(f64 { 36, 0 }))
  end)

  it("cosine_embedding and margin_ranking", function()
    local a, b = f64 { { 1, 0 }, { 1, 0 } }, f64 { { 0, 2 }, { 3, 0 } }
    near(0.5, nn.cosine_embedding(a, b, f64 { 1, 1 }))
    near({ 0, 0.75 }, nn.cosine_embedding(a, b, { -1, -1 },
                                          { margin = 0.25,
                                            reduction = "none" }))
    near(0.75, nn.margin_ranking(f64 { 1, 2 }, f64 { 2, 1.5 }, f64 { 1, -1 }))
  end)

  it("hinge and hinge_embedding", function()
    local x, t = f64 { 0.5, 0.5, 3 }, f64 { 1, -1, 1 }
    near({ 0.5, 1.5, 0 }, nn.hinge(x, t, { reduction = "none" }))
    near({ 0.5, 0.5, 3 }, nn.hinge_embedding(x, t, { reduction = "none" }))
  end)

  it("info_nce", function()
    local x = f64 { { 1, 0 }, { 0, 1 } }
    near(log(1 + exp(-1)), nn.info_nce(x, x, { temperature = 1 }))
    near(log(1 + exp(-1)), nn.info_nce(x * 3, x * 0.1, { temperature = 1 }))
  end)

  it("dice, of items or of the batch", function()
    local x, t = f64 { { 1, 1, 0, 0 } }, f64 { { 0, 0, 1, 1 } }
    near(0.8, nn.dice(x, t))
    near(0, nn.dice(x, x))
    near(1, nn.dice(x, t, { smooth = 0 }))
    x, t = f64 { { 1, 0 }, { 0, 1 } }, f64 { { 0, 1 }, { 0, 1 } }
    near({ 2 / 3, 0 }, nn.dice(x, t, { reduction = "none" }))
    near(1 - 3 / 5, nn.dice(x, t, { batch = true }))
    near(1 - 3 / 5, nn.dice(x:view(4), t:view(4)))
  end)

  it("ctc counts all ways", function()
    -- Two steps, one label: (a, a), (a, -), (-, a) of probability 1/4 each.
    local x = fnn.full({ 2, 1, 2 }, log(1 / 2), { dtype = "f64" })
    near(log(4 / 3), nn.ctc(x, { 1 }, { 2 }, { 1 }))
    -- Twice the same label needs a blank between.
    x = fnn.full({ 3, 1, 2 }, log(1 / 2), { dtype = "f64" })
    near(log(8), nn.ctc(x, { 1, 1 }, { 3 }, { 2 }, { reduction = "sum" }))
    near(log(8) / 2, nn.ctc(x, { 1, 1 }, { 3 }, { 2 }))
    -- One sequence needs no dim for it.
    near(log(8), nn.ctc(x:squeeze(2), { 1, 1 }, { 3 }, { 2 },
                        { reduction = "none" }))
    -- No label: blanks alone.
    near(log(8), nn.ctc(x, fnn.zeros({ 1, 0 }, { dtype = "i64" }), { 3 },
                        { 0 }))
  end)
end)

-- }======================================================

-- {======================================================
-- Edges
-- =======================================================

describe("at its edges the loss", function()
  it("cross_entropy takes logits of 1e4", function()
    for _, make in ipairs { f32, f64 } do
      local x = make { { 1e4, -1e4, 0 }, { -1e4, 1e4, 0 } }
      near({ 0, 2e4 }, nn.cross_entropy(x, { 0, 0 }, { reduction = "none" }))
      near({ 0, 0, 0, 1, -1, 0 }, slopes(function(p)
        return nn.cross_entropy(p, { 0, 0 }, { reduction = "none" })
      end, x):mul(-1))
      local t = make { { 1, 0, 0 }, { 1, 0, 0 } }
      near({ 0, 2e4 }, nn.cross_entropy(x, t, { reduction = "none" }))
    end
  end)

  it("cross_entropy and nll are 0 where nothing counts", function()
    for _, name in ipairs { "cross_entropy", "nll" } do
      local x = f64 { { -inf, 1 }, { 2, -inf } }
      if name == "cross_entropy" then x = f64 { { 0, 1 }, { 2, 0 } } end
      local o = { ignore_index = 1, weight = f64 { 2, 3 } }
      for _, options in ipairs { { ignore_index = 1 }, o } do
        near(0, nn[name](x, { 1, 1 }, options))
        near({ 0, 0, 0, 0 }, slopes(function(p)
          return nn[name](p, { 1, 1 }, options)
        end, x))
      end
    end
  end)

  it("mse, l1, huber take what f32 holds, and pass NaN on", function()
    local x, y = f32 { 1e30, nan }, f32 { -1e30, 0 }
    local h = nn.huber(x, y, { reduction = "none" }):totable()
    assert.near(2e30, h[1], 1e24)
    assert.is_true(h[2] ~= h[2])
    for _, name in ipairs { "mse", "l1", "smooth_l1", "hinge" } do
      local v = nn[name](f32 { nan }, f32 { 1 }):item()
      assert.is_true(v ~= v, name)
    end
    near(0, (slopes(nn.l1, f64 { 1 }, f64 { 1 })))
    near(0, slopes(function(a)
      return nn.smooth_l1(a, f64 { 1 }, { beta = 0 })
    end, f64 { 1 }))
  end)

  it("bce stops its logarithms at -100", function()
    for _, make in ipairs { f32, f64 } do
      local x, t = make { 0, 1, 0, 1 }, make { 1, 0, 0, 1 }
      near({ 100, 100, 0, 0 }, nn.bce(x, t, { reduction = "none" }))
      is_finite(slopes(nn.bce, x, t))
    end
  end)

  it("bce_with_logits takes logits of 1e4", function()
    for _, make in ipairs { f32, f64 } do
      local x, t = make { 1e4, -1e4, 1e4, -1e4 }, make { 1, 0, 0, 1 }
      near({ 0, 0, 1e4, 1e4 },
           nn.bce_with_logits(x, t, { reduction = "none" }))
      local gx = slopes(function(p)
        return nn.bce_with_logits(p, t, { reduction = "none" })
      end, x)
      near({ 0, 0, 1, -1 }, gx)
    end
    -- Small losses keep their digits.
    assert.near(1, nn.bce_with_logits(f32 { -30 }, f32 { 0 }):item() /
                   exp(-30), 1e-6)
  end)

  it("focal takes logits of 1e4", function()
    for _, make in ipairs { f32, f64 } do
      for _, gamma in ipairs { 0, 0.5, 2 } do
        local x, t = make { 1e4, -1e4, 1e4, -1e4 }, make { 1, 0, 0, 1 }
        local o = { gamma = gamma, alpha = 0.5, reduction = "none" }
        near({ 0, 0, 5e3, 5e3 }, nn.focal(x, t, o))
        near({ 0, 0, 0.5, -0.5 }, slopes(function(p)
          return nn.focal(p, t, o)
        end, x))
      end
    end
  end)

  it("kl_div and kl_divergence leave out targets of 0", function()
    local x, t = f64 { -inf, 0 }, f64 { 0, 1 }
    near(0, nn.kl_div(x, t))
    is_finite(slopes(function(p, q) return nn.kl_div(p, q) end,
                     f64 { -1, 0 }, t))
    near(0, nn.kl_divergence(f64 { 0, 1 }, t))
    is_finite(nn.kl_divergence(f64 { 0, 1 }, f64 { 1, 0 }))
    local gx, gt = slopes(nn.kl_divergence, f64 { 0, 1 }, f64 { 1, 0 })
    is_finite(gx)
    is_finite(gt)
  end)

  it("gaussian_nll takes a variance of 0", function()
    for _, make in ipairs { f32, f64 } do
      local x, t, v = make { 1, 1 }, make { 1, 2 }, make { 0, 0 }
      is_finite(nn.gaussian_nll(x, t, v))
      for _, g in ipairs { slopes(nn.gaussian_nll, x, t, v) } do
        is_finite(g)
      end
      near(-500, nn.gaussian_nll_log_var(make { 1 }, make { 1 },
                                         make { -1000 }))
      for _, g in ipairs { slopes(nn.gaussian_nll_log_var, make { 1 },
                                  make { 1 }, make { -1000 }) } do
        is_finite(g)
      end
    end
  end)

  it("poisson_nll takes a rate of 0 that gave nothing", function()
    near(0, nn.poisson_nll(f64 { -inf }, f64 { 0 }))
    near(0, nn.poisson_nll(f64 { 0 }, f64 { 0 }, { log_input = false }))
    is_finite(nn.poisson_nll(f64 { 0 }, f64 { 0 }, { full = true }))
  end)

  it("triplet and contrastive have a gradient at distance 0", function()
    for _, make in ipairs { f32, f64 } do
      local x = make { { 1, 2 } }
      for _, eps in ipairs { 0, 1e-6 } do
        local function f(a, p, n) return nn.triplet(a, p, n, { eps = eps }) end
        near(1, f(x, x, x))
        for _, g in ipairs { slopes(f, x, x:clone(), x:clone()) } do
          is_finite(g)
        end
      end
      for label = 0, 1 do
        local ga, gb = slopes(function(a, b)
          return nn.contrastive(a, b, { label })
        end, x, x:clone())
        near({ 0, 0 }, ga)
        near({ 0, 0 }, gb)
      end
    end
  end)

  it("cosine_embedding and info_nce take vectors of 0", function()
    for _, make in ipairs { f32, f64 } do
      local x, y = make { { 0, 0 }, { 1, 0 } }, make { { 0, 0 }, { 0, 0 } }
      near({ 1, 1 }, nn.cosine_embedding(x, y, { 1, 1 },
                                         { reduction = "none" }))
      local function f(a, b) return nn.cosine_embedding(a, b, { 1, -1 }) end
      for _, g in ipairs { slopes(f, x, y) } do is_finite(g) end
      near(log(2), nn.info_nce(x, y), 1e-6)
      for _, g in ipairs { slopes(nn.info_nce, x, y) } do is_finite(g) end
      is_finite(nn.info_nce(x, x, { temperature = 1e-4 }))
    end
    near(0, nn.cosine_embedding(f32 { { 1e15, 0 } }, f32 { { 3e15, 0 } },
                                { 1 }), 1e-6)
  end)

  it("dice of two empty masks is 0", function()
    local none = fnn.zeros { 2, 3 }
    near(0, nn.dice(none, none))
    near({ 0, 0, 0, 0, 0, 0 }, slopes(function(x)
      return nn.dice(x, none) * 0
    end, none))
  end)

  it("ctc is infinite without a way, or 0 when asked", function()
    local x = fnn.zeros({ 2, 2, 3 }, { dtype = "f64" }):log_softmax(-1)
    local function f(zero)
      return function(p)
        return nn.ctc(p, fnn.tensor({ { 1, 1 }, { 1, 2 } },
                                    { dtype = "i64" }), { 2, 2 }, { 2, 2 },
                      { reduction = "none", zero_infinity = zero })
      end
    end
    near({ inf, 2 * log(3) }, f(false)(x))
    near({ 0, 2 * log(3) }, f(true)(x))
    local g = slopes(f(true), x)
    near({ 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, -1 }, g)
  end)

  it("ctc does not hide NaN", function()
    local x = fnn.full({ 3, 1, 3 }, 0 / 0)
    local y = nn.ctc(x, { 1 }, { 3 }, { 1 }, { zero_infinity = true }):item()
    assert.is_true(y ~= y)
  end)

  it("ctc takes logits of 1e4, long inputs and no steps", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local x = fnn.zeros({ 3, 1, 2 }, { dtype = dtype })
      x:select(3, 1):fill_(1e4)
      local function f(p)
        return nn.ctc(p:log_softmax(-1), { 1 }, { 3 }, { 1 })
      end
      near(1e4, f(x), 2)
      is_finite(slopes(f, x))
      local long = fnn.zeros({ 2000, 1, 3 }, { dtype = dtype })
      is_finite(slopes(function(p)
        return nn.ctc(p:log_softmax(-1), { 1, 2, 1 }, { 2000 }, { 3 })
      end, long))
    end
    local x = fnn.zeros { 2, 2, 3 }
    near({ 0, inf }, nn.ctc(x, { 1 }, { 0, 0 }, { 0, 1 },
                            { reduction = "none" }))
  end)

  it("sums without losing digits, whatever the threads", function()
    local n = 1 << 20
    local x, y = fnn.full({ n }, 0.1), fnn.zeros { n }
    assert.near(n * 0.1 ^ 2, nn.mse(x, y, { reduction = "sum" }):item(),
                n * 1e-9)
    assert.near(0.1, nn.l1(x, y):item(), 3e-8)
  end)

  it("of nothing has the sum 0 and no mean", function()
    local x = fnn.zeros { 0, 3 }
    for _, name in ipairs { "mse", "l1", "bce", "bce_with_logits", "focal",
                            "kl_div", "kl_divergence", "hinge" } do
      near(0, nn[name](x, x, { reduction = "sum" }))
      local v = nn[name](x, x):item()
      assert.is_true(v ~= v, name)
      assert.same({ 0 }, { nn[name](x, x, { reduction = "none" }):numel() })
    end
  end)
end)

-- }======================================================

-- {======================================================
-- Arguments
-- =======================================================

local function fails(message, f, ...)
  local args = { ... }
  assert.error_matches(function() f(table.unpack(args)) end, message)
end

describe("a loss", function()
  it("takes integers and bools as targets", function()
    near(0.5, nn.mse(f64 { 1, 2 }, fnn.tensor({ 1, 3 }, { dtype = "i64" })))
    near(nn.bce_with_logits(f64 { 1, 2 }, f64 { 1, 0 }):item(),
         nn.bce_with_logits(f64 { 1, 2 }, fnn.tensor { true, false }))
  end)

  it("goes to the wider dtype, and gives each input its own", function()
    local y = nn.mse(f32 { 1, 2 }, f64 { 1, 3 })
    assert.equal("f64", y:dtype())
    local gx, gt = slopes(nn.mse, f32 { 1, 2 }, f64 { 1, 3 })
    assert.equal("f32", gx:dtype())
    near({ 0, -1 }, gx)
    near({ 0, 1 }, gt)
  end)

  it("gives variances that were broadcast their gradient", function()
    local x, t = f64 { { 1, 2 }, { 3, 4 } }, f64 { { 0, 0 }, { 0, 0 } }
    local _, _, g = slopes(nn.gaussian_nll_log_var, x, t, f64 { 0, 0 })
    assert.same({ 2 }, g:shape())
    near({ (2 - 1 - 4) / 8, (2 - 9 - 16) / 8 }, g)
  end)

  it("names both shapes, and stretches nothing", function()
    local x = fnn.zeros { 2, 3 }
    fails("mse: the prediction has shape %(2, 3%), the target %(3%) " ..
          "%(expected the same: nothing is stretched%)", nn.mse, x,
          fnn.zeros { 3 })
    fails("triplet: the anchor has shape %(2, 3%), the negative %(3, 3%)",
          nn.triplet, x, x, fnn.zeros { 3, 3 })
    fails("bce_with_logits: the pos_weight of shape %(2%) does not " ..
          "broadcast to %(2, 3%)", nn.bce_with_logits, x, x,
          { pos_weight = fnn.ones { 2 } })
    fails("bce: the weight of shape %(4%) does not broadcast", nn.bce, x, x,
          { weight = fnn.ones { 4 } })
    fails("gaussian_nll: the variance of shape %(3, 3%) does not broadcast",
          nn.gaussian_nll, x, x, fnn.ones { 3, 3 })
    fails("cosine_embedding: rows of shape %(2, 3%) and labels of shape " ..
          "%(3%) %(expected one for each row%)", nn.cosine_embedding, x, x,
          { 1, 1, 1 })
    fails("info_nce: expected rows %(n, d%), got shape %(3%)", nn.info_nce,
          fnn.zeros { 3 }, fnn.zeros { 3 })
    fails("nll: log%-probabilities of shape %(2, 3%) and ids of shape %(3%)",
          nn.nll, x, { 0, 1, 2 })
  end)

  it("says which number is wrong", function()
    local x = fnn.zeros { 2 }
    fails("bce: predictions must lie in 0 .. 1 %(got 1.5; bce_with_logits",
          nn.bce, fnn.tensor { 0, 1.5 }, x)
    fails("bce: predictions must lie in 0 .. 1 %(got %-1;", nn.bce,
          fnn.tensor { -1, 0.5 }, x)
    fails("gaussian_nll: variances must not be negative %(got %-1;",
          nn.gaussian_nll, x, x, fnn.tensor { 1, -1 })
    fails("focal: alpha must be between 0 and 1, or negative for none " ..
          "%(got 2%)", nn.focal, x, x, { alpha = 2 })
    fails("nll: id 3 is out of range for 3 classes", nn.nll,
          fnn.zeros { 1, 3 }, { 3 })
    fails("mse: expected a float tensor, got i64 of shape %(2%)", nn.mse,
          fnn.zeros({ 2 }, { dtype = "i64" }), x)
  end)

  it("checks its options", function()
    local x = fnn.zeros { 2 }
    fails("option 'delta': expected a number greater than 0", nn.huber, x, x,
          { delta = 0 })
    fails("option 'beta': expected a number of at least 0", nn.smooth_l1, x,
          x, { beta = -1 })
    fails("option 'reduction': expected mean, sum or none, got 'batchmean'",
          nn.mse, x, x, { reduction = "batchmean" })
    fails("expected mean, sum, batchmean or none, got 'all'", nn.kl_div, x, x,
          { reduction = "all" })
    fails("unknown option 'margn' %(did you mean 'margin'%?%)", nn.hinge, x,
          x, { margn = 1 })
    fails("option 'weight': expected a tensor, got table", nn.bce, x, x,
          { weight = { 1 } })
  end)

  it("ctc says what does not fit", function()
    local x = fnn.zeros { 4, 2, 3 }
    local ids = fnn.tensor({ { 1, 2 }, { 1, 0 } }, { dtype = "i64" })
    fails("ctc: label 0 of sequence 1 is the blank", nn.ctc, x, ids,
          { 4, 4 }, { 2, 2 })
    fails("ctc: the steps of sequence 1 must be 0 .. 4 %(got 5%)", nn.ctc, x,
          ids, { 4, 5 }, { 2, 1 })
    fails("ctc: the labels of sequence 0 must be 0 .. 2 %(got 3%)", nn.ctc, x,
          ids, { 4, 4 }, { 3, 1 })
    fails("ctc: 3 ids, but the counts of labels add up to 2", nn.ctc, x,
          { 1, 2, 1 }, { 4, 4 }, { 1, 1 })
    fails("ctc: steps of shape %(1%) %(expected one for each of 2",
          nn.ctc, x, ids, { 4 }, { 2, 1 })
    fails("ctc: the blank must be 0 .. 2 %(got 3%)", nn.ctc, x, ids, { 4, 4 },
          { 2, 1 }, { blank = 3 })
    fails("ctc: label 5 of sequence 0 is out of range for 3 classes", nn.ctc,
          x, { 5, 1 }, { 4, 4 }, { 1, 1 })
    fails("ctc: expected log%-probabilities %(steps, n, classes%), got " ..
          "shape %(3%)", nn.ctc, fnn.zeros { 3 }, ids, { 4 }, { 1 })
  end)
end)

-- }======================================================

-- {======================================================
-- Modules
-- =======================================================

describe("a loss module", function()
  it("is its function with options kept", function()
    local x, y, z = fnn.rand { 3, 4 }, fnn.rand { 3, 4 }, fnn.rand { 3, 4 }
    local signs = { 1, -1, 1 }
    for name, args in pairs {
      MSELoss = { x, y }, L1Loss = { x, y }, HuberLoss = { x, y },
      SmoothL1Loss = { x, y }, BCELoss = { x, y },
      BCEWithLogitsLoss = { x, y }, FocalLoss = { x, y }, DiceLoss = { x, y },
      KLDivLoss = { x, y }, KLDivergenceLoss = { x, y },
      GaussianNLLLoss = { x, y, z }, GaussianNLLLogVarLoss = { x, y, z },
      PoissonNLLLoss = { x, y }, HingeLoss = { x, y },
      HingeEmbeddingLoss = { x, y }, MarginRankingLoss = { x, y, z },
      TripletMarginLoss = { x, y, z }, InfoNCELoss = { x, y },
      ContrastiveLoss = { x, y, signs },
      CosineEmbeddingLoss = { x, y, signs },
      CrossEntropyLoss = { x, { 0, 1, 2 } }, NLLLoss = { x, { 0, 1, 2 } },
      CTCLoss = { x:unsqueeze(2), { 1 }, { 3 }, { 1 } },
    } do
      local f = nn[nn[name].loss]
      for _, reduction in ipairs { "mean", "sum", "none" } do
        local o = { reduction = reduction }
        local a = nn[name](o)(table.unpack(args))
        args[#args + 1] = o
        local b = f(table.unpack(args))
        args[#args] = nil
        assert.same(b:totable(), a:totable(), name)
      end
      assert.equal(f(table.unpack(args)):item(),
                   nn[name]()(table.unpack(args)):item())
    end
  end)

  it("checks its options when it is made", function()
    fails("HuberLoss: option 'delta': expected a number greater than 0",
          nn.HuberLoss, { delta = -1 })
    fails("BCELoss: option 'weight': expected a tensor, got number",
          nn.BCELoss, { weight = 1 })
    fails("FocalLoss: option 'gamma': expected a number, got string",
          nn.FocalLoss, { gamma = "2" })
    fails("MSELoss: expected a table of options, got a number", nn.MSELoss, 3)
    fails("BCELoss: unknown option 'wieght' %(did you mean 'weight'%?%)",
          nn.BCELoss, { wieght = 1 })
    fails("MSELoss: expected 2 arguments, got 1", nn.MSELoss(), fnn.ones(2))
  end)

  it("keeps weights as buffers", function()
    local loss = nn.CrossEntropyLoss { weight = fnn.ones(3) }
    loss:to "f64"
    assert.equal("f64", loss.weight:dtype())
    assert.near(log(3), loss(fnn.zeros({ 2, 3 }, { dtype = "f64" }),
                             { 0, 1 }):item(), 1e-12)
  end)

  it("shows its options", function()
    assert.matches("HuberLoss%({ delta = 2, reduction = 'sum' }%)",
                   tostring(nn.HuberLoss { delta = 2, reduction = "sum" }))
    assert.matches("MSELoss%(%)", tostring(nn.MSELoss()))
  end)

  it("has PyTorch's names for the functions, too", function()
    assert.equal(nn.l1, nn.l1_loss)
    assert.equal(nn.l1, nn.mae)
    assert.equal(nn.bce, nn.binary_cross_entropy)
    assert.equal(nn.triplet, nn.triplet_margin_loss)
    assert.equal(nn.ctc, nn.ctc_loss)
  end)
end)

-- }======================================================
