-- Steps that are recorded once and replayed.
local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data
local device = require "spec.support.device"

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

describe("graph_step on the CPU", function ()
  it("is the function itself", function ()
    local f = function () end
    assert.equal(f, fnn.graph_step(f, { device = "cpu" }))
  end)

  it("checks its arguments", function ()
    fails("expected a function", fnn.graph_step, 3)
    fails("did you mean 'warmup'", fnn.graph_step, print, { warmups = 1 })
    fails("warmup must be", fnn.graph_step, print, { warmup = 0 })
  end)
end)

if not device.there() then return end

local function tensor(shape, seed)
  local g = fnn.Generator(seed)
  return fnn.randn(shape, { generator = g }):to "cuda"
end

-- A model with dropout that is trained on changing batches under a cosine
-- schedule; each step by run(f)'s function.  Returns weights and losses.
local function train(make_optimizer, steps, run)
  fnn.manual_seed(11)
  local model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.3),
                              nn.Linear(16, 3)):to "cuda"
  local opt = make_optimizer(model:parameters())
  local schedule = optim.scheduler(opt, optim.CosineAnnealing(0.05, steps))
  local calls = 0
  local step = run(function (x, y)
    calls = calls + 1
    opt:zero_grad()
    local loss = nn.mse_loss(model(x), y)
    loss:backward()
    opt:step()
    return loss
  end)
  local losses = {}
  for i = 1, steps do
    schedule(i - 1)
    losses[i] = step(tensor({ 8, 6 }, i), tensor({ 8, 3 }, 1000 + i)):item()
  end
  local weights = {}
  for i, p in ipairs(model:parameters()) do weights[i] = p:totable() end
  return weights, losses, calls
end

local function plain(f) return f end
local function graph(f) return fnn.graph_step(f, { device = "cuda" }) end

describe("graph_step on a card", function ()
  for name, make in pairs {
    Adam = function (p) return optim.Adam(p, { lr = 0.05 }) end,
    AdamW = function (p) return optim.AdamW(p, { lr = 0.05 }) end,
    SGD = function (p) return optim.SGD(p, { lr = 0.05, momentum = 0.9 }) end,
    NAdam = function (p) return optim.NAdam(p, { lr = 0.05 }) end,
  } do
    it("replays 100 steps with the plain ones' bits: " .. name, function ()
      local steps = name == "Adam" and 100 or 12
      local w1, l1 = train(make, steps, plain)
      local w2, l2, calls = train(make, steps, graph)
      assert.equal(3, calls)  -- twice as it is, once to record it
      assert.same(l1, l2)
      assert.same(w1, w2)
    end)
  end

  it("gives the same tensors each time, with new values", function ()
    local step = graph(function (x) return x * 2, "kept" end)
    local x = tensor({ 3 }, 1)
    for _ = 1, 2 do step(x) end
    local y, word = step(x)
    assert.equal("kept", word)
    local again = step(fnn.tensor { 1, 2, 3 })
    assert.equal(y, again)
    assert.same({ 2, 4, 6 }, y:totable())
  end)

  it("runs where its arguments are, without a device", function ()
    local calls = 0
    local step = fnn.graph_step(function (x)
      calls = calls + 1
      return x:sum()
    end)
    local x = tensor({ 4 }, 1)
    for i = 1, 3 do assert.equal(i, step(fnn.ones(i)):item()) end
    assert.equal(3, calls)
    for _ = 1, 4 do assert.equal(x:sum():item(), step(x):item()) end
    assert.equal(6, calls)  -- twice as it is, once to record it
  end)

  it("draws on where the generator is", function ()
    local function draws(run)
      fnn.manual_seed(3)
      local step, list = run(function ()
        return fnn.rand({ 4 }, { device = "cuda" })
      end), {}
      for i = 1, 6 do
        list[#list + 1] = step():totable()
        if i == 4 then
          list[#list + 1] = fnn.rand({ 3 }, { device = "cuda" }):totable()
        end
      end
      fnn.manual_seed(9)
      list[#list + 1] = step():totable()
      list[#list + 1] = step():totable()
      return list
    end
    assert.same(draws(plain), draws(graph))
  end)

  it("calls the function for other shapes", function ()
    local calls = 0
    local step = graph(function (x)
      calls = calls + 1
      return x:sum()
    end)
    for _ = 1, 5 do step(tensor({ 4 }, 1)) end
    assert.equal(3, calls)
    assert.equal(2, step(fnn.ones(2):to "cuda"):item())
    assert.equal(4, calls)
    assert.equal(4, step(fnn.ones(4)):item())
    assert.equal(4, calls)
  end)

  it("leaves nothing of a block to others while it is kept", function ()
    local step = graph(function (x) return (x * 2 + 1) * 3 end)
    local x = tensor({ 1000 }, 1)
    for _ = 1, 3 do step(x) end
    local y = step(x)
    local want = ((x * 2 + 1) * 3):totable()
    local others = {}
    for i = 1, 20 do others[i] = fnn.full({ 1000 }, i, { device = "cuda" }) end
    assert.equal(y, step(x))
    assert.same(want, y:totable())
    for i = 1, 20 do
      assert.is_true(others[i]:eq(i):all():item())
    end
  end)

  it("gives its memory back", function ()
    collectgarbage()
    local before = fnn.memory("cuda").live
    do
      local step = graph(function (x) return x:exp():sum() end)
      for _ = 1, 5 do step(tensor({ 100, 100 }, 1)) end
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, fnn.memory("cuda").live)
  end)

  it("asks for no memory when it replays", function ()
    local x = tensor({ 64 }, 1)
    local step = graph(function (v) return v:exp():sum() end)
    for _ = 1, 3 do step(x) end
    local before = fnn.memory "cuda"
    for _ = 1, 10 do step(x) end
    local after = fnn.memory "cuda"
    assert.equal(before.allocations, after.allocations)
    assert.equal(before.live, after.live)
  end)

  describe("raises, and can be used on, for", function ()
    local x
    before_each(function () x = tensor({ 4 }, 1) end)

    local function refused(pattern, f)
      local step = fnn.graph_step(f, { device = "cuda", warmup = 1 })
      step(x)
      fails(pattern, step, x)
      fails(pattern, step, x)
      -- The card is as it was.
      assert.equal(x:sum():item(), (x * 1):sum():item())
    end

    it("reading a value", function ()
      refused("reading a value: not in a step", function (v)
        return v:sum():item()
      end)
    end)

    it("a copy from the host", function ()
      refused("copy to the device: not in a step", function ()
        return fnn.tensor { 1, 2 }:to "cuda"
      end)
    end)

    it("waiting", function ()
      refused("synchronize: not in a step", function ()
        fnn.synchronize "cuda"
      end)
    end)

    it("a seed", function ()
      refused("manual_seed: not in a step", function ()
        fnn.manual_seed(1)
        return fnn.rand({ 2 }, { device = "cuda" })
      end)
      refused("generator: not in a step", function ()
        return fnn.rand({ 2 }, { device = "cuda",
                                 generator = fnn.Generator(1) })
      end)
    end)

    it("a scheduler", function ()
      local opt = optim.SGD({ fnn.Param(x) }, { lr = 0.1 })
      local schedule = optim.scheduler(opt, optim.Constant(0.1))
      refused("scheduler: not in a step", function () schedule(1) end)
    end)

    it("a batch of a loader", function ()
      local loader = data.DataLoader(data.TensorDataset(fnn.ones(64, 2)),
                                     { device = "cuda", prefetch = 2 })
      refused("not in a step", function () return loader:next() end)
    end)

    it("an error of the function, and a yield", function ()
      local calls = 0
      refused("mine", function (v)
        calls = calls + 1
        local y = v + 1
        if calls > 1 then error("mine", 0) end
        return y
      end)
      local step = fnn.graph_step(function () coroutine.yield() end,
                                  { device = "cuda", warmup = 1 })
      local co = coroutine.wrap(function ()
        step()
        return pcall(step)
      end)
      co()
      local ok, message = co()
      assert.is_false(ok)
      assert.matches("yield", message)
    end)

    it("a step within", function ()
      local inner = fnn.graph_step(function (v) return v + 1 end,
                                   { device = "cuda", warmup = 1 })
      for _ = 1, 3 do inner(x) end
      refused("another step is being recorded", function (v)
        return inner(v)
      end)
    end)
  end)

  it("derives from weights anew after a replay", function ()
    local w = fnn.Param(tensor({ 4, 4 }, 2))
    local opt = optim.SGD({ w }, { lr = 0.1 })
    local x = tensor({ 2, 4 }, 3)
    local step = graph(function (v)
      opt:zero_grad()
      v:matmul(w):sum():backward()
      opt:step()
    end)
    for _ = 1, 5 do
      step(x)
      local a = x:matmul(w):totable()
      local b = x:to "cpu":matmul(w:detach():to "cpu"):totable()
      for i = 1, 2 do
        for k = 1, 4 do assert.near(b[i][k], a[i][k], 1e-4) end
      end
    end
  end)

  it("is recorded anew when the optimizer's state is loaded", function ()
    local function run(wrap)
      local w = fnn.Param(tensor({ 8 }, 4))
      local opt = optim.Adam({ w }, { lr = 0.1 })
      local step = wrap(function (v)
        opt:zero_grad()
        local loss = (w * v):sum()
        loss:backward()
        opt:step()
      end)
      local x = tensor({ 8 }, 5)
      for _ = 1, 4 do step(x) end
      local state = opt:state_dict()
      for _ = 1, 3 do step(x) end
      opt:load_state_dict(state)
      for _ = 1, 3 do step(x) end
      return w:totable()
    end
    assert.same(run(plain), run(graph))
  end)

  describe("leaves weights rounded for products as they are", function ()
    local x = tensor({ 8, 16 }, 6)

    -- A layer's product in bf16, and what it must be.
    local function layer ()
      local m = nn.Linear(16, 16, { bias = false }):to "cuda"
      return m, function (v)
        local y
        fnn.autocast(function () y = m(v) end, { dtype = "bf16" })
        return y
      end
    end

    it("for what comes after a step that failed", function ()
      local _, product = layer()
      local want = product(x):totable()
      local step = fnn.graph_step(function (v)
        product(v)
        error "fails"
      end, { device = "cuda", warmup = 1 })
      fails("fails", step, x)
      fails("fails", step, x)  -- while it is recorded
      assert.same(want, product(x):totable())
    end)

    it("for a step recorded after one that failed and is gone", function ()
      local m, product = layer()
      for _ = 1, 20 do
        local failing = true
        local step = fnn.graph_step(function (v)
          local y = product(v)
          if failing then error "fails" end
          return y
        end, { device = "cuda", warmup = 1 })
        for _ = 1, 2 do
          fails("fails", step, x)
          collectgarbage()
        end
        failing = false
        step(x)
        fnn.no_grad(function () m.weight:mul_(1.5) end)
        local got = step(x):clone():totable()
        assert.same(product(x):totable(), got)
      end
    end)
  end)

  it("leaves a dropout its mask when the step is gone", function ()
    local w = fnn.Param(fnn.ones(64):to "cuda")
    local dropout = nn.Dropout(0.5)
    local step = fnn.graph_step(function () return dropout(w) end,
                                { device = "cuda", warmup = 1 })
    local y
    for _ = 1, 4 do y = step() end
    step = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local others = {}
    for i = 1, 8 do
      others[i] = fnn.full({ 1 }, 99, { dtype = "i64" }):to "cuda"
    end
    y:sum():backward()
    assert.same(y:detach():totable(), w:grad():totable())
    assert.equal(8, #others)
  end)

  it("refuses the first step of a parameter, which makes its state",
     function ()
    local w = fnn.Param(tensor({ 8 }, 4))
    local opt = optim.Adam({ w }, { lr = 0.1 })
    local x = tensor({ 8 }, 5)
    local step = fnn.graph_step(function (v, steps)
      opt:zero_grad()
      local loss = (w * v):sum()
      loss:backward()
      if steps then opt:step() end
    end, { device = "cuda", warmup = 1 })
    step(x, false)
    fails("makes its state", step, x, true)
  end)
end)
