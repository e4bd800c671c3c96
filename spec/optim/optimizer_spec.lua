-- What all optimizers have: groups, options, steps.  That each follows its
-- formula is in spec/fixtures/parity/optim.lua.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim
local support = require "spec.support.optim"

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function param (...)
  return fnn.Param(fnn.tensor({ ... }, { dtype = "f64" }))
end

local function set_grad (p, ...)
  p:set_grad(fnn.tensor({ ... }, { dtype = "f64" }))
end

local function near (want, x, eps)
  local have = x:totable()
  assert.equal(#want, #have)
  for i, v in ipairs(want) do assert.near(v, have[i], eps or 1e-12) end
end

describe("every optimizer", function ()
  for _, m in ipairs(support.all()) do
    it("converges: " .. m[1], function ()
      local loss = support.least_squares "f32"
      local p = fnn.Param(fnn.zeros(3, 1))
      local opt = m[2] { p }
      local last
      for _ = 1, 1500 do
        last = support.step(opt, function () return loss(p) end)
        if last < 1e-6 then break end
      end
      last = loss(p):item()
      assert(last < 1e-3, m[1] .. ": " .. last)
    end)

    it("leaves what has no gradient, or is frozen, alone: " .. m[1],
       function ()
      local a, b, c = fnn.Param(fnn.ones(2, 2)), fnn.Param(fnn.ones(2, 2)),
                      fnn.Param(fnn.ones(2, 2))
      local opt = m[2] { a, b, c }
      b:freeze()
      for _ = 1, 7 do
        support.step(opt, function () return (a * a):sum() end)
      end
      assert.is_true(a[1][1] < 1)
      assert.equal(4, b:sum():item())
      assert.equal(4, c:sum():item())
    end)

    it("says its name and rate: " .. m[1], function ()
      local opt = m[2] { fnn.Param(fnn.ones(2, 2)) }
      assert.truthy(tostring(opt):find(opt:name(), 1, true))
      opt:set_learning_rate(0.25)
      assert.equal(0.25, opt:learning_rate())
      assert.equal(0.25, opt:groups()[1].lr)
      assert.equal(0.25, opt:lr(1))
      assert.equal(1, #opt:groups()[1].params)
      fails("must not be negative", opt.set_learning_rate, opt, -1)
      fails("out of range", opt.learning_rate, opt, 2)
    end)
  end
end)

describe("groups", function ()
  it("have options of their own over those of all", function ()
    local a, b = param(1), param(1)
    local opt = optim.SGD({ { params = { a }, lr = 1 }, { params = { b } } },
                          { lr = 0.5 })
    set_grad(a, 0.25)
    set_grad(b, 0.25)
    opt:step()
    near({ 0.75 }, a)
    near({ 0.875 }, b)
    opt:set_learning_rate(0.1, 2)
    assert.equal(1, opt:learning_rate())
    assert.equal(0.1, opt:learning_rate(2))
    opt:set_options({ momentum = 0.5 }, 1)
    assert.equal(0.5, opt:groups()[1].momentum)
    assert.equal(0, opt:groups()[2].momentum)
  end)

  it("takes a model for the list of its Params", function ()
    local model = nn.Linear(2, 3)
    for _, class in ipairs { optim.SGD, optim.LBFGS } do
      local list = class(model):parameters()
      assert.equal(2, #list)
      assert.equal(model.weight, list[1])
    end
    local mean = model(fnn.ones(1, 2)):sum()
    mean:backward() -- a gradient of ones: 6 of the weight, 3 of the bias
    assert.near(3, optim.grad_norm(model), 1e-6)
    local ok, text = pcall(function () optim.SGD(1) end)
    assert.is_false(ok)
    assert.truthy(text:find("SGD: expected a model or a list of Params, " ..
                            "got number", 1, true), text)
    ok, text = pcall(function () optim.SGD(nn.ReLU()) end)
    assert.is_false(ok)
    assert.truthy(text:find("SGD: expected a parameter: there are none", 1,
                            true), text)
  end)

  it("can be added", function ()
    local a, b = param(1), param(1)
    local opt = optim.Adam({ a }, { lr = 0.5 })
    opt:add_group { params = { b }, lr = 0.25, betas = { 0.5, 0.75 } }
    assert.equal(0.25, opt:learning_rate(2))
    assert.same({ 0.5, 0.75 }, opt:groups()[2].betas)
    fails("in the list twice", opt.add_group, opt, { params = { b } })
    fails("has no parameters", opt.add_group, opt, { params = {} })
    fails("unknown option 'lrr'", opt.add_group, opt,
          { params = { param(1) }, lrr = 1 })
    assert.equal(2, #opt:groups())
  end)

  it("change all options or none", function ()
    local opt = optim.SGD({ param(1) }, { lr = 0.5 })
    fails("nesterov needs a momentum", opt.set_options, opt,
          { lr = 1, nesterov = true })
    assert.equal(0.5, opt:learning_rate())
    opt:set_options { momentum = 0.9, nesterov = true }
    assert.is_true(opt:groups()[1].nesterov)
  end)

  it("keep what is kept when the rate changes", function ()
    local p, q = param(1), param(1)
    local one, two = optim.Adam({ p }, { lr = 0.1 }),
                     optim.Adam({ q }, { lr = 0.1 })
    for i = 1, 4 do
      set_grad(p, i)
      set_grad(q, i)
      if i == 3 then two:set_learning_rate(0.1) end
      one:step()
      two:step()
    end
    assert.equal(p:item(), q:item())
  end)

  it("spare biases and norms of decay", function ()
    local model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm { 4, 4 },
                                nn.Embedding(5, 4))
    local groups = optim.decay_groups(model, { weight_decay = 0.1, lr = 2 })
    assert.equal(0.1, groups[1].weight_decay)
    assert.equal(0, groups[2].weight_decay)
    assert.equal(2, groups[2].lr)
    assert.equal(2, #groups[1].params)
    assert.equal(3, #groups[2].params)
    assert.equal(model:get "0.weight", groups[1].params[1])
    assert.equal(model:get "2.weight", groups[1].params[2])
    local opt = optim.AdamW(groups)
    assert.equal(2, #opt:groups())
    assert.equal(1, #optim.decay_groups(nn.Linear(2, 2, { bias = false })))
    fails("expected a module", optim.decay_groups, {})
  end)
end)

describe("a step", function ()
  it("scales gradients, clips them and tells their norm", function ()
    local p, q = param(1, 1), param(1, 1)
    local opt = optim.SGD({ p, q }, { lr = 1 })
    set_grad(p, 6, 0)
    set_grad(q, 0, 8)
    assert.near(5, opt:step { scale = 0.5 }, 1e-12)
    near({ -2, 1 }, p)
    near({ 1, -3 }, q)
    near({ 6, 0 }, p:grad())  -- the gradients stay
    assert.near(5, opt:step { scale = 0.5, max_norm = 1 }, 1e-12)
    near({ -2.6, 1 }, p, 1e-6)
    near({ 1, -3.8 }, q, 1e-6)
    assert.near(10, opt:step { max_norm = 20 }, 1e-12)
    assert.is_nil(opt:step())
    fails("max_norm must not be negative", opt.step, opt, { max_norm = -1 })
    fails("scale must be a finite number", opt.step, opt, { scale = 1 / 0 })
    fails("unknown option", opt.step, opt, { scle = 1 })
  end)

  it("after k batches, scaled by 1/k, is that of one batch", function ()
    local x, y = fnn.randn(12, 3), fnn.randn(12, 1)
    local function run (k)
      local p = fnn.Param(fnn.ones(3, 1))
      local opt = optim.Adam({ p }, { lr = 0.1 })
      for _ = 1, 5 do
        opt:zero_grad()
        local n = 12 // k
        for i = 0, k - 1 do
          local off = x:narrow(1, 1 + i * n, n):matmul(p) -
                      y:narrow(1, 1 + i * n, n)
          off:square():mean():backward()
        end
        opt:step { scale = 1 / k }
      end
      return p:detach()
    end
    near(run(1):reshape(-1):totable(), run(4):reshape(-1), 1e-6)
  end)

  it("goes the other way to maximize", function ()
    local p = param(1)
    local opt = optim.SGD({ p }, { lr = 1, maximize = true })
    set_grad(p, 0.5)
    opt:step()
    near({ 1.5 }, p)
  end)

  it("of Lion moves each element by the rate", function ()
    local p = param(1, 1, 1)
    local opt = optim.Lion({ p }, { lr = 0.125 })
    set_grad(p, 100, -1e-9, 0)
    opt:step()
    near({ 0.875, 1.125, 1 }, p)
  end)

  it("lets a NaN be seen", function ()
    for _, m in ipairs(support.makers) do
      local p = fnn.Param(fnn.ones(2, 2))
      local opt = optim[m[1]]({ p }, m[2])
      p:set_grad(fnn.tensor { { 0 / 0, 1 }, { 1, 1 } })
      opt:step()
      assert.is_true(p:isnan():any():item(), m[1])
    end
  end)

  it("takes parameters of no elements and of one", function ()
    for _, m in ipairs(support.makers) do
      if m[1] ~= "Muon" then
        local p, q = fnn.Param(fnn.zeros(0, 3)), fnn.Param(fnn.tensor(2))
        local opt = optim[m[1]]({ p, q }, m[2])
        for _ = 1, 2 do
          opt:zero_grad()
          local loss = p:sum() + q * q
          loss:backward()
          opt:step()
        end
        assert.is_true(q:item() < 2, m[1])
      end
    end
  end)

  it("is refused where the weight is read-only or no float of the CPU's",
     function ()
    local p = fnn.Param(fnn.ones(2, { dtype = "bf16" }))
    p:set_grad(fnn.ones(2, { dtype = "bf16" }))
    fails("bf16", function () optim.Adam({ p }):step() end)
  end)

  it("has the same bits whatever the threads", function ()
    local code = [[
      local fnn = require "fnn"
      local g = fnn.Generator(3)
      for _, name in ipairs { "Adam", "Adafactor", "Muon" } do
        local p = fnn.Param(fnn.randn(1200, 301, { generator = g }))
        local opt = fnn.optim[name]({ p })
        for _ = 1, 2 do
          p:set_grad(fnn.randn(1200, 301, { generator = g }))
          print(("%.17g"):format(opt:step { max_norm = 1 }))
        end
        print(("%.17g %.17g"):format(p:sum():item(), p:square():sum():item()))
      end]]
    local function run (threads)
      local pipe <close> = assert(io.popen(
        ("build/fnn --threads %d -e '%s'"):format(threads, code)))
      return pipe:read "a"
    end
    local one = run(1)
    assert.truthy(one:find "%d+%.%d+ %d+%.%d+")
    assert.equal(one, run(2))
  end)
end)

describe("a class of optimizers", function ()
  local Sign = optim.optimizer("Sign", { lr = 0.5, weight_decay = 0 })
  function Sign:update (p, g, state, group)
    state.seen = (state.seen or 0) + 1
    p:sub_(g:sign() * group.lr)
  end

  it("has the methods of those made in C", function ()
    local opt = Sign { param(1) }
    for _, name in ipairs { "step", "zero_grad", "parameters", "groups",
                            "add_group", "set_options", "learning_rate",
                            "set_learning_rate", "lr", "set_lr", "name",
                            "state_dict", "load_state_dict", "save", "load",
                            "clip_grad_norm", "clip_grad_value", "grad_norm",
                            "gradients_are_finite" } do
      assert.equal("function", type(opt[name]), name)
      assert.equal("function", type(optim.SGD({ param(1) })[name]), name)
    end
  end)

  it("steps, clips and checks as they do", function ()
    local p = param(1, 1)
    local opt = Sign({ p }, { lr = 0.25 })
    set_grad(p, 3, -4)
    assert.near(5, opt:step { max_norm = 1 }, 1e-12)
    near({ 0.75, 1.25 }, p)
    assert.equal(1, opt:slot(p).seen)
    assert.equal(5, opt:clip_grad_norm(2.5))
    assert.near(2.5, optim.grad_norm(opt), 1e-5)
    assert.equal("Sign lr 0.25, 1 parameter in 1 group", tostring(opt))
    fails("unknown option 'lrr' (did you mean 'lr'?)", Sign, { p },
          { lrr = 1 })
    fails("must not be negative", Sign, { p }, { lr = -1 })
    fails("twice", Sign, { p, p })
    fails("element 2 of the parameters: expected a fnn.Param", Sign,
          { p, 1 })
    fails("expected the name of a class", optim.optimizer, "")
  end)

  it("may inherit from another", function ()
    local Slow = optim.optimizer("Slow", nil, Sign)
    function Slow:step (...)
      self.steps = (self.steps or 0) + 1
      return Slow.super.step(self, ...)
    end
    local p = param(1)
    local opt = Slow({ p }, { lr = 0.25 })
    set_grad(p, 3)
    opt:step()
    near({ 0.75 }, p)
    assert.equal(1, opt.steps)
    local Searching = optim.optimizer("Searching", nil, optim.LBFGS)
    assert.equal("Searching", Searching({ p }):name())
    fails("expected a class as the parent", optim.optimizer, "A", {}, 1)
  end)

  it("keeps its state where the Param is", function ()
    local p = fnn.Param(fnn.ones(2))
    local opt = Sign({ p })
    opt:slot(p).mean = fnn.ones(2)
    p:to("f64")
    assert.equal("f64", opt:slot(p).mean:dtype())
  end)
end)

describe("Lookahead", function ()
  it("takes slow weights a part of the way, each k steps", function ()
    local p = param(1)
    local opt = optim.Lookahead(optim.SGD({ p }, { lr = 1 }),
                                { k = 2, alpha = 0.5 })
    local want = { 0.75, 0.75, 0.5, 0.5 }  -- of gradients of 0.25
    for i = 1, 4 do
      set_grad(p, 0.25)
      opt:step()
      near({ want[i] }, p)
    end
  end)

  it("checks what it is given", function ()
    fails("expected an optimizer", optim.Lookahead, {})
    local sgd = optim.SGD({ param(1) })
    fails("k must be an integer", optim.Lookahead, sgd, { k = 0 })
    fails("alpha must be in [0, 1]", optim.Lookahead, sgd, { alpha = 2 })
    assert.equal("Lookahead(SGD)", optim.Lookahead(sgd):name())
  end)
end)
