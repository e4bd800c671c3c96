local device = require "spec.support.device"
local fnn = require "fnn"
local nn = fnn.nn

local widths = { 1, 2, 7, 10, 31, 32, 33, 255, 256, 257, 1000, 5000, 50257 }
local reductions = { "mean", "sum", "none" }

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

local function ids(seed, n, ...)
  return fnn.randint(0, n, { ... }, { generator = fnn.Generator(seed) })
end

-- The options with tensors where x is and of its dtype.
local function beside(x, options)
  local o = {}
  for k, v in pairs(options) do
    o[k] = fnn.is_tensor(v) and v:to(x:dtype(), x:device()) or v
  end
  return o
end

describe("losses on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  describe("of class ids", function()
    it("have the CPU's values and gradients at all widths", function()
      for _, n in ipairs(widths) do
        local rows = n > 1000 and 2 or n < 8 and 150 or 5
        local t = ids(n, n, rows)
        for _, r in ipairs(n < 300 and reductions or { "mean" }) do
          device.all("cross_entropy", function(x, y)
            return nn.cross_entropy(x, y, { reduction = r })
          end, { numbers(n, rows, n) * 3, t },
          { dtypes = n > 300 and { "f32", "bf16" } or nil })
        end
      end
    end)

    it("know weights, smoothing and ids to ignore", function()
      for _, n in ipairs { 5, 257, 2050 } do
        local x, t = numbers(1, 9, n) * 3, ids(2, n, 9)
        t:narrow(1, 3, 2):fill_(3)
        local w = numbers(3, n):abs() + 0.1
        for _, o in ipairs {
          { weight = w }, { label_smoothing = 0.2 }, { ignore_index = 3 },
          { weight = w, label_smoothing = 0.1, ignore_index = 3 },
        } do
          for _, r in ipairs(reductions) do
            device.all("cross_entropy", function(v, y)
              local b = beside(v, o)
              b.reduction = r
              return nn.cross_entropy(v, y, b)
            end, { x, t }, { dtypes = n > 2000 and { "f32" } or nil })
          end
        end
      end
    end)

    it("take places, nothing, and ids that are all ignored", function()
      device.all("cross_entropy", nn.cross_entropy,
                 { numbers(4, 3, 7, 5), ids(5, 7, 3, 5) })
      device.all("cross_entropy", nn.cross_entropy,
                 { fnn.zeros(0, 7), ids(5, 7, 0) })
      for _, op in ipairs { "cross_entropy", "nll" } do
        device.all(op, function(x, y)
          return nn[op](x, y, { ignore_index = 2 })
        end, { numbers(6, 4, 5), fnn.full({ 4 }, 2, { dtype = "i64" }) })
      end
    end)

    it("stay exact where logits are large", function()
      local x = numbers(7, 6, 100) + 1e4
      device.parity("cross_entropy far", nn.cross_entropy,
                    { x, ids(8, 100, 6) })
      local inf = math.huge
      x:narrow(1, 2, 1):narrow(2, 1, 50):fill_(-inf)
      x:narrow(1, 3, 1):fill_(-inf)
      x:narrow(1, 4, 1):narrow(2, 7, 1):fill_(0 / 0)
      device.parity("cross_entropy far", function(v, y)
        return nn.cross_entropy(v, y, { reduction = "none" })
      end, { x, fnn.full({ 6 }, 70, { dtype = "i64" }) }, { back = false })
    end)

    it("take f32 weights beside 16-bit logits", function()
      local x, t, w = numbers(9, 8, 12):to "f16", ids(10, 12, 8),
                      numbers(11, 12):abs()
      local want = nn.cross_entropy(x:to "f32", t, { weight = w }):item()
      local d = device.name
      local got = nn.cross_entropy(x:to(d), t:to(d), { weight = w:to(d) })
      assert.near(want, got:item(), 4e-3 * math.max(1, want))
    end)
  end)

  -- Probabilities, none of them at an end.
  local function chance(x) return x:sigmoid() * 0.98 + 0.01 end

  local elements = {
    mse = {}, l1 = {}, huber = { delta = 0.5 }, smooth_l1 = { beta = 0.5 },
    bce_with_logits = {}, focal = { alpha = 0.25, gamma = 2 },
    hinge = {}, hinge_embedding = {}, poisson_nll = { full = true },
    kl_div = { log_target = true }, gaussian_nll_log_var = { third = true },
    margin_ranking = { third = true },
  }

  for op, options in pairs(elements) do
    it(op .. " has the CPU's values and gradients", function()
      for _, s in ipairs { { 1 }, { 33 }, { 257 }, { 5, 1000 }, { 0, 3 } } do
        local x, t = numbers(1, table.unpack(s)), numbers(2, table.unpack(s))
        local u = options.third and numbers(3, table.unpack(s)) or nil
        for _, r in ipairs(reductions) do
          device.all(op, function(...)
            local a, o = { ... }, { reduction = r }
            for k, v in pairs(options) do
              if k ~= "third" then o[k] = v end
            end
            if op == "poisson_nll" then a[2] = a[2]:abs() end
            a[#a + 1] = o
            return nn[op](table.unpack(a))
          end, { x, t, u }, { dtypes = s[2] == 1000 and { "f32", "bf16" }
                                       or nil, f16 = 1e-2, bf16 = 1e-1 })
        end
      end
    end)
  end

  it("bce and kl_divergence have them", function()
    for _, s in ipairs { { 4, 7 }, { 3, 257 } } do
      local x, t = chance(numbers(1, table.unpack(s))),
                   chance(numbers(2, table.unpack(s)))
      for _, r in ipairs(reductions) do
        for _, op in ipairs { "bce", "kl_divergence" } do
          device.all(op, function(a, b)
            return nn[op](a, b, { reduction = r })
          end, { x, t }, { bf16 = 0.1 })
        end
      end
    end
  end)

  it("take any strides, channels-last and weights that broadcast", function()
    local x, t, w = numbers(1, 4, 6, 5, 3), numbers(2, 5, 6, 4, 3),
                    numbers(3, 5, 1):abs()
    for _, r in ipairs(reductions) do
      device.all("bce_with_logits", function(a, b, c)
        local o = { reduction = r, weight = c:detach(),
                    pos_weight = c:detach() }
        return nn.bce_with_logits(a, b:transpose(1, 3):sigmoid(), o)
      end, { x, t, w })
      device.all("mse", function(a, b)
        return nn.mse(a:narrow(4, 1, 1), b:transpose(1, 3):narrow(4, 2, 1),
                      { reduction = r })
      end, { x, t })
      device.parity("mse", function(a, b)
        return nn.mse(a:channels_last(), b:transpose(1, 3),
                      { reduction = r })
      end, { x, t })
    end
  end)

  it("of rows have them", function()
    local a, b, c = numbers(1, 7, 33), numbers(2, 7, 33), numbers(3, 7, 33)
    local y = fnn.tensor { 1, -1, 1, 1, -1, -1, 1 }
    device.all("triplet", nn.triplet, { a, b, c })
    device.all("cosine_embedding", function(u, v)
      return nn.cosine_embedding(u, v, y:to(u:dtype(), u:device()))
    end, { a, b })
    device.all("contrastive", function(u, v)
      return nn.contrastive(u, v, y:gt(0):to(u:dtype()):to(u:device()))
    end, { a, b })
    device.all("dice", nn.dice, { chance(a), chance(b) })
  end)

  it("sum to the same bits twice, and lose nothing", function()
    local x, t = numbers(1, 200, 1000), numbers(2, 200, 1000)
    device.parity("mse", nn.mse, { x, t }, { back = false, tolerance = 1e-7 })
    local a, b = x:to(device.name), t:to(device.name)
    assert.equal(nn.mse(a, b):item(), nn.mse(a, b):item())
  end)

  it("work as modules", function()
    local x, t = numbers(1, 6, 9), ids(2, 9, 6)
    local m = nn.CrossEntropyLoss { label_smoothing = 0.1 }
    device.all("cross_entropy", function(v, y) return m(v, y) end, { x, t })
    for _, name in ipairs { "MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss",
                            "BCEWithLogitsLoss" } do
      local l = nn[name]()
      device.all(name, function(v, y) return l(v, y) end,
                 { x, numbers(3, 6, 9):sigmoid() })
    end
  end)
end)
