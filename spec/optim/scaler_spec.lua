-- GradScaler's arithmetic against torch.amp.GradScaler's, and its manners.

local fnn = require "fnn"
local want = require "spec.fixtures.autocast"
local optim = fnn.optim

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

describe("GradScaler", function ()
  local function step(scaler, p, opt, finite)
    opt:zero_grad()
    scaler:scale(p:sum()):backward()
    if not finite then p:grad()[2] = 0 / 0 end
    return scaler:step(opt)
  end

  it("follows what it meets, as PyTorch's", function ()
    for _, case in ipairs(want.scales) do
      local options, finite, seen = case[1], case[2], { table.unpack(case, 3) }
      local scaler = optim.GradScaler(options)
      local p = fnn.Param(fnn.ones(2))
      local opt = optim.SGD({ p }, { lr = 1e-3 })
      for i, expected in ipairs(seen) do
        local ok = finite:sub(i, i) == "1"
        assert.equal(ok, step(scaler, p, opt, ok))
        scaler:update()
        assert.equal(expected[1], scaler:get_scale())
        assert.equal(expected[2], scaler:state_dict().streak)
      end
    end
  end)

  it("unscales once, leaves out what overflowed", function ()
    local p = fnn.Param(fnn.zeros(2))
    local opt = optim.SGD({ p }, { lr = 1 })
    local scaler = optim.GradScaler { init_scale = 1024 }
    scaler:scale(p:sum()):backward()
    assert.same({ 1024, 1024 }, p:grad():totable())
    scaler:unscale(opt)
    assert.same({ 1, 1 }, p:grad():totable())
    assert.near(math.sqrt(2), opt:clip_grad_norm(1), 1e-6)
    assert.is_true(scaler:step(opt))
    scaler:update()
    assert.near(-math.sqrt(0.5), p:value()[1], 1e-5)
    local before = p:value():totable()
    assert.is_false(step(scaler, p, opt, false))
    assert.same(before, p:value():totable())
    scaler:update()
    assert.equal(512, scaler:get_scale())
  end)

  it("takes optimizers, and says what else it got", function ()
    local scaler = optim.GradScaler()
    fails("GradScaler: step: expected an optimizer, got nil", scaler.step,
          scaler)
    fails("GradScaler: unscale: expected an optimizer, got a Linear",
          scaler.unscale, scaler, fnn.nn.Linear(1, 1))
    fails("init_scale: expected a positive number, got -1", optim.GradScaler,
          { init_scale = -1 })
  end)

  it("looks at each of several optimizers", function ()
    local p, q = fnn.Param(fnn.zeros(2)), fnn.Param(fnn.zeros(2))
    local a, b = optim.SGD({ p }, { lr = 1 }), optim.SGD({ q }, { lr = 1 })
    local scaler = optim.GradScaler { init_scale = 4 }
    local losses = scaler:scale { p:sum(), q:sum() }
    losses[1]:backward()
    losses[2]:backward()
    q:grad()[1] = 1 / 0
    assert.is_true(scaler:step(a))
    assert.is_false(scaler:step(b))
    scaler:update()
    assert.equal(2, scaler:get_scale())
    assert.same({ -1, -1 }, p:value():totable())
    assert.same({ 0, 0 }, q:value():totable())
  end)

  it("works with optimizers written in Lua", function ()
    local Sign = optim.optimizer("Sign", { lr = 1 })
    function Sign:update (p, g, _, group) p:sub_(g * group.lr) end
    local p = fnn.Param(fnn.zeros(2))
    local opt = Sign { p }
    local scaler = optim.GradScaler()
    assert.is_true(step(scaler, p, opt, true))
    scaler:update()
    assert.same({ -1, -1 }, p:value():totable())
  end)

  it("does nothing when it is not enabled", function ()
    local p = fnn.Param(fnn.zeros(2))
    local opt = optim.SGD({ p }, { lr = 1 })
    local scaler = optim.GradScaler { enabled = false }
    assert.is_false(scaler:is_enabled())
    step(scaler, p, opt, true)
    scaler:unscale(opt)
    scaler:update()
    assert.same({ 1, 1 }, p:grad():totable())
    assert.same({ -1, -1 }, p:value():totable())
  end)

  it("gives its state and takes it back", function ()
    local p = fnn.Param(fnn.zeros(2))
    local opt = optim.SGD({ p }, { lr = 1 })
    local one = optim.GradScaler { init_scale = 8, interval = 5 }
    for _ = 1, 3 do step(one, p, opt, true) one:update() end
    local two = optim.GradScaler()
    assert.equal(two, two:load_state_dict(one:state_dict()))
    assert.same({ scale = 8, growth = 2, backoff = 0.5, interval = 5,
                  streak = 3 }, two:state_dict())
    fails("interval: expected a count of 1 or more, got", function ()
      two:load_state_dict { scale = 1, growth = 2, backoff = 0.5,
                            interval = 0, streak = 0 }
    end)
    assert.equal(5, two:state_dict().interval)
    fails("expected what state_dict returns", two.load_state_dict, two, 1)
  end)

  it("says what is out of order", function ()
    local p = fnn.Param(fnn.zeros(2))
    local opt = optim.SGD({ p }, { lr = 1 })
    local scaler = optim.GradScaler()
    fails("there was no step since the last one", scaler.update, scaler)
    step(scaler, p, opt, true)
    fails("there was one already", scaler.step, scaler, opt)
    fails("after the step", scaler.unscale, scaler, opt)
    scaler:update(256)
    assert.equal(256, scaler:get_scale())
    opt:zero_grad()
    scaler:scale(p:sum()):backward()
    scaler:unscale(opt)
    fails("unscaled already", scaler.unscale, scaler, opt)
    for key, v in pairs { init_scale = 0, growth = 1, backoff = 1,
                          interval = 0.5, enabled = 1 } do
      fails(key .. ": expected", optim.GradScaler, { [key] = v })
    end
    fails("did you mean 'growth'", optim.GradScaler, { grow = 2 })
    assert.equal("GradScaler of 65536", tostring(optim.GradScaler()))
  end)
end)

describe("scale_grad", function ()
  it("scales all gradients", function ()
    local p, q = fnn.Param(fnn.ones(3)), fnn.Param(fnn.ones(2, {
      dtype = "f64" }))
    p:set_grad(fnn.full({ 3 }, 4))
    local opt = optim.SGD { p, q }
    optim.scale_grad(opt, 0.25)
    opt:scale_grad(3)
    assert.same({ 3, 3, 3 }, p:grad():totable())
    assert.is_nil(q:grad())
    optim.scale_grad({}, 2)
  end)
end)
