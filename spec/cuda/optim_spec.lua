-- Optimizers on a card: steps over all parameters at once, norms and clipping
-- without a number of the host, against the CPU's.

local fnn = require "fnn"
local device = require "spec.support.device"
local makers = require("spec.support.optim").makers
local optim = fnn.optim

local there = device.there()
local function test(name, f)
  if there then it(name, f) else pending(name) end
end

-- Around chunks (4096 elements), fours and warps; matrices last.
local shapes = { { 1 }, { 0 }, { 3 }, { 31 }, { 4095 }, { 4097 }, {},
                 { 2, 3, 5 }, { 7, 5 }, { 33, 65 }, { 100, 3 } }

local options = {
  { "SGD", { lr = 0.1, weight_decay = 0.1 } },
  { "SGD", { lr = 0.1, momentum = 0.9, dampening = 0.5, maximize = true } },
  { "Adam", { lr = 0.05, weight_decay = 0.1, maximize = true } },
  { "AdamW", { lr = 0.05, amsgrad = true, betas = { 0.8, 0.95 } } },
  { "RMSprop", { lr = 0.01, weight_decay = 0.1, momentum = 0.5 } },
  { "RMSprop", { lr = 0.01, centered = true } },
  { "Adagrad", { lr = 0.1, lr_decay = 0.1, initial_accumulator_value = 0.5 } },
  { "Adadelta", { weight_decay = 0.1, rho = 0.8 } },
  { "RAdam", { lr = 0.05, weight_decay = 0.1 } },
  { "RAdam", { lr = 0.05, weight_decay = 0.1,
               decoupled_weight_decay = true } },
  { "NAdam", { lr = 0.05, decoupled_weight_decay = true,
               weight_decay = 0.1 } },
  { "Adamax", { lr = 0.05, weight_decay = 0.1 } },
  { "Lion", { lr = 0.005, weight_decay = 0.1 } },
  { "Adafactor", { lr = 0.05, weight_decay = 0.1, d = 2 } },
  { "Adafactor", { lr = 0.5, eps1 = 1e-3 } },
  { "Muon", { lr = 0.02, nesterov = false, weight_decay = 0.1 } },
  { "Muon", { lr = 0.02, adjust_lr_fn = "match_rms_adamw" } },
}
for _, m in ipairs(makers) do options[#options + 1] = m end

local function numbers(shape, seed, dtype)
  return fnn.randn(shape, { generator = fnn.Generator(seed) }):to(dtype)
end

-- Params of all shapes on d, whose numbers are those of dtype `rounded`.
local function params(d, dtype, rounded, of)
  local list = {}
  for i, shape in ipairs(of or shapes) do
    local x = numbers(shape, i, rounded):to(dtype):to(d)
    list[i] = fnn.Param(x:clone())
  end
  return list
end

local function give(list, step, d, dtype, rounded)
  for i, p in ipairs(list) do
    local g = numbers(p:shape(), 100 * step + i, rounded)
    p:set_grad(g:to(dtype):to(d))
  end
end

local function assert_close(a, b, tolerance, what)
  a, b = a:to("cpu"):to "f64", b:to("cpu"):to "f64"
  if a:numel() == 0 then return end
  local gap = (a - b):abs():max():item() / math.max(1, b:abs():max():item())
  assert.is_true(gap <= tolerance,
                 ("%s: differs by %g of %s"):format(what, gap, tostring(b)))
end

local function text(m)
  local list = {}
  for key, v in pairs(m[2]) do
    v = type(v) == "table" and table.concat(v, "/") or tostring(v)
    list[#list + 1] = (" %s=%s"):format(key, v)
  end
  table.sort(list)
  return m[1] .. table.concat(list)
end

-- What the matrices of Muon are.
local function shapes_for(m)
  return m[1] == "Muon" and { { 7, 5 }, { 5, 33 }, { 16, 16 }, { 1, 3 } }
         or shapes
end

local function compare(m, dtype, steps, tolerance)
  local small = dtype == "f16" or dtype == "bf16"
  local wide = small and "f32" or dtype
  local a = params("cpu", wide, dtype, shapes_for(m))
  local b = params(device.name, dtype, dtype, shapes_for(m))
  local on_a, on_b = optim[m[1]](a, m[2]), optim[m[1]](b, m[2])
  for step = 1, steps do
    give(a, step, "cpu", wide, dtype)
    give(b, step, device.name, dtype, dtype)
    on_a:step()
    on_b:step()
  end
  for i, p in ipairs(b) do
    assert_close(p:value(), a[i]:value(), tolerance,
                 text(m) .. " " .. dtype .. " " .. i)
  end
end

describe("an optimizer on cuda", function ()
  for _, m in ipairs(options) do
    test("steps as on the CPU: " .. text(m), function ()
      local muon = m[1] == "Muon"
      compare(m, "f32", 3, muon and 2e-3 or 2e-5)
      compare(m, "f64", 3, muon and 1e-9 or 1e-11)
      compare(m, "f16", 1, muon and 2e-2 or 2e-3)
      compare(m, "bf16", 1, muon and 1e-1 or 1.2e-2)
    end)
  end

  test("keeps f32 state of 16-bit weights", function ()
    local p = fnn.Param(fnn.zeros(8, { dtype = "bf16", device = device.name }))
    local opt = optim.Adam({ p }, { lr = 1 })
    -- a mean that bf16 would not move
    for _ = 1, 40 do
      p:set_grad(fnn.full({ 8 }, 1, { dtype = "bf16", device = device.name }))
      opt:step()
    end
    local s = opt:_states()[1]
    assert.equal("f32", s.exp_avg:dtype())
    assert.near(1 - 0.999 ^ 40, s.exp_avg_sq:to("cpu")[1], 1e-5)
    opt:load_state_dict(opt:state_dict())
    assert.equal("f32", opt:_states()[1].exp_avg:dtype())
    p:to "f16"
    assert.equal("f32", opt:_states()[1].exp_avg:dtype())
    p:to "f64"
    assert.equal("f64", opt:_states()[1].exp_avg:dtype())
  end)

  test("takes weights of several dtypes, views and groups", function ()
    local function run(d)
      local base = numbers({ 50 }, 1, "f32"):to(d)
      local list = { fnn.Param(base:narrow(1, 2, 37)),
                     fnn.Param(numbers({ 33 }, 2, "f64"):to(d)),
                     fnn.Param(numbers({ 5, 9 }, 3, "f32"):to(d)) }
      local opt = optim.SGD({ { params = { list[1] }, lr = 0.5,
                                momentum = 0.9 },
                              { params = { list[2], list[3] } } },
                            { lr = 0.1 })
      for step = 1, 3 do
        for i, p in ipairs(list) do
          p:set_grad(numbers(p:shape(), 10 * step + i, p:dtype()):to(d))
        end
        if step == 2 then list[3]:set_grad(nil) end
        opt:step()
      end
      return list
    end
    local a, b = run "cpu", run(device.name)
    for i in ipairs(a) do
      assert_close(b[i]:value(), a[i]:value(), 1e-6, "weight " .. i)
    end
  end)

  test("has the same bits in each run", function ()
    local function run()
      local list = params(device.name, "f32", "f32")
      give(list, 1, device.name, "f32", "f32")
      local opt = optim.Adafactor(list, { lr = 0.1 })
      local norm = opt:step { max_norm = 1 }
      local all = { norm:to("cpu"):item() }
      for i, p in ipairs(list) do
        all[i + 1] = p:value():to("cpu"):totable()
      end
      return all
    end
    assert.same(run(), run())
  end)

  test("lets a table be used again while it is copied", function ()
    -- more steps than there are pinned tables
    local function run(d)
      local p = fnn.Param(fnn.ones(5, { device = d }))
      local opt = optim.SGD({ p }, { lr = 1 })
      p:set_grad(fnn.ones(5, { device = d }))
      for i = 1, 20 do
        opt:set_lr(1 / i)
        opt:step()
      end
      return p:value():to("cpu")[1]
    end
    assert.near(run "cpu", run(device.name), 1e-6)
  end)
end)

describe("gradients at large on cuda", function ()
  local function all(d, dtype)
    local list = params(d, dtype, dtype)
    give(list, 1, d, dtype, dtype)
    return list
  end

  test("have the CPU's norm", function ()
    for _, t in ipairs { "f32", "f64", "f16", "bf16" } do
      local want = optim.grad_norm(all("cpu", t))
      assert.near(want, optim.grad_norm(all(device.name, t)), want * 1e-12)
    end
    assert.equal(0, optim.grad_norm { fnn.Param(fnn.ones(2, {
      device = device.name })) })
  end)

  test("are many: the sum takes three steps", function ()
    local n = 4096 * 1100 + 5
    local p = fnn.Param(fnn.zeros(n, { device = device.name }))
    p:set_grad(fnn.full({ n }, 2, { device = device.name }))
    assert.near(2 * math.sqrt(n), optim.grad_norm { p }, 1e-9 * n)
  end)

  test("are clipped without being read", function ()
    for _, t in ipairs { "f32", "f64" } do
      for _, most in ipairs { 0, 1.5, 1e6 } do
        local a, b = all("cpu", t), all(device.name, t)
        local want = optim.clip_grad_norm(a, most)
        local got = optim.clip_grad_norm(b, most)
        assert.matches("^cuda", got:device())
        assert.same({}, got:shape())
        assert.near(want, got:item(), want * 1e-12)
        for i in ipairs(a) do
          assert_close(b[i]:grad(), a[i]:grad(), t == "f32" and 1e-6 or 1e-12,
                       "gradient " .. i)
        end
      end
    end
    for _, t in ipairs { "f16", "bf16" } do
      local b = all(device.name, t)
      optim.clip_grad_norm(b, 1.5)
      assert.near(1.5, optim.grad_norm(b), t == "f16" and 3e-3 or 3e-2)
    end
  end)

  test("are scaled and clipped in the step", function ()
    for _, name in ipairs { "SGD", "Adafactor", "Adam" } do
      local a, b = all("cpu", "f32"), all(device.name, "f32")
      local want = optim[name](a, { lr = 0.1 }):step { scale = 0.5,
                                                       max_norm = 2 }
      local got = optim[name](b, { lr = 0.1 }):step { scale = 0.5,
                                                      max_norm = 2 }
      assert.near(want, got:item(), want * 1e-12)
      for i in ipairs(a) do
        assert_close(b[i]:value(), a[i]:value(), 1e-5, name .. " " .. i)
      end
    end
  end)

  test("take steps that nobody waits for", function ()
    local function run(d)
      local p = fnn.Param(numbers({ 40 }, 1, "f32"):to(d))
      local q = fnn.Param(numbers({ 7 }, 2, "f32"):to(d))
      local one = optim.Adam({ p }, { lr = 0.1 })
      local other = optim.SGD({ q }, { lr = 0.5 })
      for k = 1, 12 do
        one:set_lr(0.1 / k)
        other:set_lr(0.5 / k)
        p:set_grad(numbers({ 40 }, k, "f32"):to(d))
        q:set_grad(numbers({ 7 }, k + 20, "f32"):to(d))
        one:step()
        other:step()
      end
      return p:value():to "cpu", q:value():to "cpu"
    end
    local p, q = run(device.name)
    local want_p, want_q = run "cpu"
    assert_close(p, want_p, 1e-5, "Adam")
    assert_close(q, want_q, 1e-5, "SGD")
  end)

  test("are looked through for what is not finite", function ()
    local list = all(device.name, "f32")
    assert.is_true(optim.gradients_are_finite(list))
    for _, v in ipairs { 1 / 0, -1 / 0, 0 / 0 } do
      list[5]:grad()[4095] = v
      assert.is_false(optim.gradients_are_finite(list))
      list[5]:grad()[4095] = 3e38 -- whose square is beyond f32
      assert.is_true(optim.gradients_are_finite(list))
    end
  end)

  test("are scaled in one go, channels-last ones too", function ()
    local function run(d)
      local p = fnn.Param(numbers({ 2, 3, 4, 5 }, 1, "f32"):to(d))
      local y = numbers({ 1, 3, 8, 8 }, 2, "f32"):to(d):conv2d(p)
      y:sum():backward()
      optim.scale_grad({ p }, 0.25)
      return p:grad():to "cpu"
    end
    assert_close(run(device.name), run "cpu", 1e-5, "scaled")
  end)

  test("on two devices have one norm", function ()
    local a = fnn.Param(fnn.ones(3))
    local b = fnn.Param(fnn.ones(4, { device = device.name }))
    a:set_grad(fnn.full({ 3 }, 2))
    b:set_grad(fnn.full({ 4 }, 1, { device = device.name }))
    assert.near(4, optim.grad_norm { a, b }, 1e-12)
    optim.clip_grad_norm({ a, b }, 1)
    assert.near(0.5, a:grad()[1], 1e-6)
    assert.near(0.25, b:grad():to("cpu")[1], 1e-6)
  end)
end)
