-- graph_spec.lua - the graph is the tensors: what holds it, what frees it, and
-- how gradients flow back through it.  Values are from the rules of calculus,
-- worked out by hand.

local fnn = require "fnn"

local function nodes()
  collectgarbage()
  return fnn.memory().nodes
end

local function vector(...) return fnn.tensor { ... } end
local function param(...) return fnn.Param(vector(...)) end

local function same(expected, x) assert.same(expected, x:totable()) end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

describe("the graph", function()
  it("is not made for plain data", function()
    local before = nodes()
    local x = vector(1, 2)
    local y = (x * 2 + x:exp()):sum()
    assert.is_false(y:has_graph())
    assert.equal(before, nodes())
    fails("backward: nothing to differentiate", y.backward, y)
  end)

  it("is not made for integers and bools", function()
    local p = param(1, 3, 2)
    for _, y in ipairs { p:argmax(), p:gt(1), p:value():to("i64"),
                         (select(2, p:value():sort())), p:isnan() } do
      assert.is_false(y:has_graph())
    end
  end)

  it("has a node an op, freed with the result", function()
    local before = nodes()
    local p = param(1, 2)
    local y = (p * 2):exp():sum()
    assert.is_true(y:has_graph())
    assert.equal(before + 3, nodes())
    y = nil  -- luacheck: ignore
    assert.equal(before, nodes())
  end)

  it("goes when its result is released, without the collector", function()
    local p, before = param(1, 2), nodes()
    local x = p * 2
    local y = x:exp():sum()
    x:release()
    assert.equal(before + 3, fnn.memory().nodes)
    y:release()
    assert.equal(before + 2, fnn.memory().nodes)  -- the box of x:exp()
    assert.equal(before, nodes())
    do
      local z <close> = p * 2
      assert.is_true(z:has_graph())
      assert.equal(before + 1, fnn.memory().nodes)
    end
    assert.equal(before, fnn.memory().nodes)
  end)

  it("takes as long to free as to make, without recursion", function()
    local p, before = param(1), nodes()
    local function chain(n)
      local clock = os.clock()
      local x = p * 1
      for _ = 2, n do x = x + 1 end
      x:backward()
      x:release()
      collectgarbage()
      return os.clock() - clock
    end
    chain(1000)
    local short, long = chain(20000), chain(200000)
    -- Ten times as many; were it quadratic, a hundred times as long.
    assert.is_true(long < 40 * short + 0.1, long .. " s, " .. short .. " s")
    same({ 3 }, p:grad())
    assert.equal(before, nodes())
    local x = p * 1  -- and one that is dropped without a backward
    for _ = 1, 200000 do x = x + 1 end
    assert.is_true(nodes() >= before + 200000)
    x = nil  -- luacheck: ignore
    assert.equal(before, nodes())
  end)

  it("ends at a detached tensor", function()
    local p = param(2, 3)
    local x = p * p
    local y = x:detach()
    assert.is_false(y:has_graph())
    same({ 4, 9 }, y);
    (x * y):sum():backward()
    same({ 2 * 2 * 4, 2 * 3 * 9 }, p:grad())
    fnn.no_grad(function() y:fill_(0) end)  -- the memory is shared
    same({ 0, 0 }, x)
  end)

  it("holds memory steady over steps", function()
    local model = fnn.nn.Sequential(fnn.nn.Linear(8, 16), fnn.nn.Tanh(),
                                    fnn.nn.Linear(16, 4))
    local opt = fnn.optim.Adam(model:parameters(), { lr = 1e-3 })
    local x, y = fnn.rand(4, 8), fnn.tensor({ 0, 1, 2, 3 }, { dtype = "i64" })
    local function step()
      opt:zero_grad()
      model(x):cross_entropy(y):backward()
      opt:step()
    end
    local function held()
      collectgarbage()
      fnn.trim()
      local m = fnn.memory()
      return m.live, m.objects, m.nodes
    end
    for _ = 1, 10 do step() end
    local live, objects, count = held()
    for _ = 1, 1000 do step() end
    local live_now, objects_now, count_now = held()
    assert.equal(live, live_now)
    assert.equal(objects, objects_now)
    assert.equal(count, count_now)
  end)
end)

describe("backward", function()
  it("adds to gradients until they are zeroed", function()
    local p = param(1, 2)
    local opt = fnn.optim.SGD({ p }, { lr = 0.1 })
    assert.is_nil(p:grad());
    (p * p):sum():backward()
    same({ 2, 4 }, p:grad());
    (p * p):sum():backward()
    same({ 4, 8 }, p:grad())
    opt:zero_grad()
    assert.is_nil(p:grad());
    (p * 3):sum():backward()
    same({ 3, 3 }, p:grad())
  end)

  -- loss = sum(a w) + sum(b w^2), so the gradient is a + 2 b w.
  it("adds the paths of a tied weight", function()
    local p = fnn.Param(fnn.tensor({ 0.3, -0.7 }))
    local a, b = vector(1.5, 2), vector(-1, 0.25)
    local loss = (p * a):sum() + (p * p * b):sum()
    loss:backward()
    local g = p:grad():totable()
    assert.near(1.5 - 0.6, g[1], 1e-5)
    assert.near(2 - 0.35, g[2], 1e-5)
  end)

  it("adds the paths of two layers with one weight", function()
    local nn = fnn.nn
    local one, two = nn.Linear(2, 2, { bias = false }),
                     nn.Linear(2, 2, { bias = false })
    two.weight = one.weight
    one.weight:set(fnn.tensor { { 1, 2 }, { 3, 4 } })
    local x = fnn.tensor { { 1, -1 } }
    two(one(x)):sum():backward()
    -- y = W W x: with u = W' 1, the gradient is u x' + 1 (W x)'.
    local g = one.weight:grad():totable()
    local expected = { { 4 - 1, -4 - 1 }, { 6 - 1, -6 - 1 } }
    for i = 1, 2 do
      for k = 1, 2 do assert.near(expected[i][k], g[i][k], 1e-5) end
    end
  end)

  it("weighs what has many elements by a gradient given", function()
    local p = param(1, 2);
    (p * p):backward(vector(10, 100))
    same({ 20, 400 }, p:grad())
    local y = p * p
    fails("backward: without a gradient the tensor must have one element " ..
          "%(got shape %(2%)%)", y.backward, y)
    fails("backward: the tensor has shape %(2%), the gradient %(3%)",
          y.backward, y, vector(1, 2, 3))
  end)

  it("starts at a Param itself", function()
    local p = param(5)
    p:backward()
    p:backward(vector(2))
    same({ 3 }, p:grad())
  end)

  it("passes a graph once", function()
    local p = param(1, 2)
    local loss = p:exp():sum()
    loss:backward()
    fails("backward: the graph of sum was used already and is freed " ..
          "%(keep it with { retain_graph = true }%)", loss.backward, loss)
  end)

  it("passes a graph again that was kept", function()
    local p = param(1, 2)
    local loss = (p * p):sum()
    loss:backward { retain_graph = true }
    loss:backward(nil, { retain_graph = true })
    same({ 4, 8 }, p:grad())
    loss:backward()
    same({ 6, 12 }, p:grad())
    fails("the graph of sum was used already", loss.backward, loss)
  end)

  it("names the op at which two graphs met", function()
    local p = param(1, 2)
    local shared = p:exp()
    local one, two = (shared * 2):sum(), shared:log():sum()
    one:backward()
    fails("backward: the graph of exp was used already", two.backward, two)
  end)

  it("frees what it passed", function()
    local p = param(1)
    local loss = (p:expand(100000) * 2):square():sum()
    collectgarbage()  -- only the node of square holds what it squared
    local before = fnn.memory().live
    loss:backward()
    assert.is_true(fnn.memory().live < before - 300000)
  end)

  it("names a saved tensor that was overwritten since", function()
    local p = param(1, 2)
    local w = vector(3, 4)
    local loss = (p * w):sum()
    w:fill_(0)
    fails("backward: mul needs a tensor of shape %(2%) that an in%-place op " ..
          "has overwritten since", loss.backward, loss)
    loss = p:square():sum()
    fnn.no_grad(function() p:add_(1) end)
    fails("backward: square needs", loss.backward, loss)
    w = vector(3, 4)
    loss = (p + w):sum()  -- add reads neither
    w:fill_(0)
    loss:backward()
    same({ 1, 1 }, p:grad())
  end)

  it("refuses what has no derivative of its own second", function()
    local p = param(2)
    local g = fnn.grad((p * p):sum(), p)
    assert.is_false(g:has_graph())
    fails("gradients are plain data: there are no second derivatives",
          g.backward, g)
    local loss = (p * p):sum()
    fails("no second derivatives", fnn.grad, loss, p,
          { create_graph = true })
    fails("no second derivatives", loss.backward, loss,
          { create_graph = true })
    loss:backward()
    assert.is_false(p:grad():has_graph())
  end)

  it("leaves no part of a gradient where memory ran out", function()
    local p = fnn.Param(fnn.ones(300))
    local y, parts, failed = p * 1, {}, 0
    for i = 1, 100 do parts[i] = y:sum() end  -- many nodes wait at once
    local loss = fnn.stack(parts):sum()
    for k = 0, 60 do
      collectgarbage()
      fnn.trim()
      fnn.set_memory_limit(fnn.memory().live + 32 * k)
      local ok = pcall(loss.backward, loss, { retain_graph = true })
      fnn.set_memory_limit(0)
      failed = failed + (ok and 0 or 1)
      p:set_grad(nil)
      loss:backward { retain_graph = true }
      assert.equal(100, p:grad()[1])
      p:set_grad(nil)
    end
    assert.equal(61, failed)
  end)
end)

describe("grad", function()
  it("leaves the gradients of Params as they are", function()
    local p, q, r = param(1, 2), param(3, 4), param(5);
    (p * 7):sum():backward()
    local g = fnn.grad((p * q):sum(), { p, q, r })
    same({ 3, 4 }, g[1])
    same({ 1, 2 }, g[2])
    assert.is_false(g[3])
    same({ 7, 7 }, p:grad())
    assert.is_nil(q:grad())
  end)

  it("takes one Param, a gradient, and keeps a graph", function()
    local p = param(1, 2)
    local y = p * p
    same({ 20, 400 }, fnn.grad(y, p, { gradient = vector(10, 100),
                                       retain_graph = true }))
    same({ 2, 4 }, fnn.grad(y, p, { gradient = vector(1, 1) }))
    fails("the graph of mul was used already", fnn.grad, y, p,
          { gradient = vector(1, 1) })
  end)

  it("gives each Param memory of its own", function()
    local p, q, upstream = param(1, 2), param(3, 4), vector(5, 6)
    local g = fnn.grad(p + q, { p, q }, { gradient = upstream })
    g[1]:fill_(0)
    same({ 5, 6 }, g[2])
    same({ 5, 6 }, upstream);
    (p + q):backward(upstream)
    p:grad():fill_(0)
    same({ 5, 6 }, q:grad())
    same({ 5, 6 }, upstream)
  end)
end)

describe("a frozen Param", function()
  it("stops the pass", function()
    local p, q = param(1, 2), param(3, 4)
    local before = nodes()
    p:freeze()
    local y = (p * 2):exp()  -- no node: nothing below is trainable
    assert.is_false(y:has_graph())
    assert.equal(before, nodes());
    (p * q):sum():backward()
    assert.is_nil(p:grad())
    same({ 1, 2 }, q:grad())
    p:unfreeze();
    (p * 2):sum():backward()
    same({ 2, 2 }, p:grad())
  end)

  it("keeps no gradient", function()
    local p = param(1, 2);
    (p * 2):sum():backward()
    p:freeze()
    assert.is_nil(p:grad())
    p:unfreeze()
    local loss = (p * 2):sum()
    p:freeze()  -- with a graph that was made before
    loss:backward()
    assert.is_nil(p:grad())
  end)
end)

describe("no_grad", function()
  it("records nothing, nests, and gives results", function()
    local p, before = param(1, 2), nodes()
    local y, n = fnn.no_grad(function(a, b)
      assert.is_false(fnn.is_grad_enabled())
      local inner = fnn.enable_grad(function() return p * 2 end)
      assert.is_true(inner:has_graph())
      fnn.no_grad(function() end)
      assert.is_false(fnn.is_grad_enabled())
      return p * a, b
    end, 3, 7)
    assert.is_true(fnn.is_grad_enabled())
    assert.is_false(y:has_graph())
    same({ 3, 6 }, y)
    assert.equal(7, n)
    assert.equal(before, nodes())
  end)

  it("ends with an error, which goes on", function()
    local thrown = {}
    local ok, e = pcall(fnn.no_grad, function() error(thrown) end)
    assert.is_false(ok)
    assert.equal(thrown, e)
    assert.is_true(fnn.is_grad_enabled())
    fails("matmul", fnn.no_grad, function()
      return fnn.zeros(2, 3):matmul(fnn.zeros(2, 3))
    end)
    assert.is_true(fnn.is_grad_enabled())
  end)

  it("ends with an error in a coroutine that nobody closes", function()
    local co = coroutine.create(function()
      fnn.no_grad(function() error "lost" end)
    end)
    assert.is_false((coroutine.resume(co)))
    assert.is_true(fnn.is_grad_enabled())
    co = coroutine.create(function()
      return fnn.no_grad(function(...)
        return fnn.is_grad_enabled(), ...
      end, 1, nil)
    end)
    assert.same({ true, false, 1, n = 4 },
                table.pack(coroutine.resume(co)))
  end)

  it("cannot be left by a yield", function()
    local co = coroutine.create(function()
      fnn.no_grad(function() coroutine.yield() end)
    end)
    local ok, e = coroutine.resume(co)
    assert.is_false(ok)
    assert.matches("attempt to yield across a C%-call boundary", e)
    assert.is_true(fnn.is_grad_enabled())
  end)

  it("keeps the traceback of an error", function()
    local function thrower() error "deep" end
    local _, trace = xpcall(fnn.no_grad, debug.traceback, thrower)
    assert.matches("deep.*graph_spec.lua:%d+: in .*no_grad", trace)
  end)
end)
