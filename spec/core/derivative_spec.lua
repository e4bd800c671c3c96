-- derivative_spec.lua - what scripts add to the walk back: hooks, derivatives
-- of their own, a search for what is not finite; and what the graph refuses.

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

describe("a hook", function()
  it("sees the gradient, whole", function()
    local p = param(1, 2)
    local x = p * 2
    local seen = {}
    x:register_hook(function(g) seen[#seen + 1] = g:totable() end)
    p:register_hook(function(g) seen[#seen + 1] = g:totable() end);
    (x * x + x * 5):sum():backward()
    -- of x = (2, 4): 2 x + 5; of p: twice that.  Once each, though both are
    -- used twice.
    assert.same({ { 9, 13 }, { 18, 26 } }, seen)
    p:grad():zero_();
    (p * 3 + p * p):sum():backward()
    assert.same({ 5, 7 }, seen[3])
    assert.equal(3, #seen)
  end)

  it("replaces the gradient, the first added first", function()
    local p = param(1, 2)
    local x = p * 2
    x:register_hook(function(g) return g * 10 end)
    x:register_hook(function(g) return g + 1 end)
    x:sum():backward()
    same({ 22, 22 }, p:grad())
    local q = param(1, 2)
    q:register_hook(function(g) return g:clamp(-1, 1) end);
    (q * 3 + q * -1.5):sum():backward()  -- 1.5 in all
    same({ 1, 1 }, q:grad())
    assert.same({ 1, 1 }, fnn.grad((q * 5):sum(), q):totable())
  end)

  it("gives a gradient of the right shape and dtype", function()
    local p = param(1, 2)
    local x = p * 2
    x:register_hook(function() return vector(1, 2, 3) end)
    local y = x:sum()
    fails("hook: the gradient has shape %(2%), what the hook returned %(3%)",
          y.backward, y)
    x = p * 2
    x:register_hook(function()
      return fnn.tensor({ 3, 4 }, { dtype = "i64" })
    end)
    x:sum():backward()
    same({ 6, 8 }, p:grad())
    assert.equal("f32", p:grad():dtype())
    x = p * 2
    x:register_hook(function() return 5 end)
    y = x:sum()
    fails("hook: gradient 1: expected a tensor or nil, got number",
          y.backward, y)
  end)

  it("that raises stops the walk, its error unchanged", function()
    local p, thrown = param(1, 2), {}
    local before = nodes()
    for _, value in ipairs { thrown, "text", 7, true } do
      local x = p * 2
      x:register_hook(function() error(value, 0) end)
      local ok, e = pcall(x:exp():sum().backward, x:exp():sum())
      assert.is_false(ok)
      assert.equal(value, e)
    end
    assert.is_true(fnn.is_grad_enabled())
    assert.is_nil(p:grad())
    assert.equal(before, nodes());
    (p * 2):sum():backward()  -- the state is usable
    same({ 2, 2 }, p:grad())
  end)

  it("of a Param that raises leaves nothing behind", function()
    local p = param(1, 2)
    p:register_hook(function() error "no" end)
    collectgarbage()
    local before = fnn.memory().objects
    for _ = 1, 20 do
      local y = (p * 2):sum()
      fails("no", y.backward, y)
    end
    collectgarbage()
    assert.equal(before, fnn.memory().objects)
    assert.is_nil(p:grad())
  end)

  it("may move the Param that more gradients are for", function()
    local function moved(take)
      local p, seen = param(1, 2), {}
      p:register_hook(function(g) seen[1] = g:dtype() end)
      local y = p * 2
      local late = p * 3  -- passed before y
      y:register_hook(function() p:to "f64" end)
      return p, seen, take((late + y):sum(), p)
    end
    local p, seen = moved(function(loss) loss:backward() end)
    assert.same({ "f32" }, seen)
    assert.equal("f64", p:grad():dtype())
    assert.near(5, p:grad()[1], 1e-5)
    assert.near(5, p:grad()[2], 1e-5)
    local _, _, g = moved(fnn.grad)
    assert.near(5, g[1], 1e-5)
    assert.near(5, g[2], 1e-5)
  end)

  it("is what can be called", function()
    local p = param(1, 2)
    fails("register_hook: expected a function, got nil",
          p.register_hook, p, nil)
    fails("register_hook: expected a function, got number",
          p.register_hook, p, 3)
    fails("record: expected a function, got nil", fnn.record, vector(1), "f",
          { p }, nil)
    local function triple(_, g) return g * 3 end
    p:register_hook(setmetatable({}, { __call = triple }));
    (p * 2):sum():backward()
    same({ 6, 6 }, p:grad())
  end)

  it("goes with the graph", function()
    local p, gone = param(1), setmetatable({}, { __mode = "k" })
    do
      local x = p * 2
      local held = {}
      gone[held] = true
      -- It holds x, and x holds it, until a backward has passed.
      x:register_hook(function() return held and x and nil end)
      x:backward()
    end
    p:sum()  -- what the engine drops is let go with a next call
    collectgarbage()
    assert.is_nil(next(gone))
  end)

  it("needs something that a gradient reaches", function()
    local x, p = vector(1), param(1)
    fails("hook: no gradient reaches this tensor of shape %(1%)",
          x.register_hook, x, print)
    local y = p * 2
    y:backward()
    fails("the graph of mul was used already", y.register_hook, y, print)
  end)
end)

describe("record", function()
  local function product(back)
    local p, q = param(1, 2), param(3, 4)
    local a, b = p:detach(), q:detach()
    local y = fnn.record(a * b, "product", { p, q }, function(gy)
      return back(gy, a, b)
    end)
    return y:sum(), p, q
  end

  it("uses a derivative written in Lua, in the order of inputs", function()
    local y, p, q = product(function(gy, a, b) return gy * b, gy * a end)
    y:backward()
    same({ 3, 4 }, p:grad())
    same({ 1, 2 }, q:grad())
    y, p, q = product(function(gy, _, b) return gy * b, nil end)
    y:backward()
    same({ 3, 4 }, p:grad())
    assert.is_nil(q:grad())
  end)

  it("names the op when the count is wrong", function()
    local y = product(function(gy) return gy end)
    fails("backward: product gave 1 gradients %(expected 2, one an input%)",
          y.backward, y)
    y = product(function(gy) return gy, gy, gy end)
    fails("backward: product gave 3 gradients", y.backward, y)
    y = product(function() end)
    fails("backward: product gave 0 gradients", y.backward, y)
  end)

  it("names the op when a shape or type is wrong", function()
    local y = product(function(gy) return gy, vector(1, 2, 3) end)
    fails("backward: product gave input 2 a gradient of shape %(3%) " ..
          "%(expected %(2%)%)", y.backward, y)
    y = product(function(gy) return gy, "x" end)
    fails("backward: product: gradient 2: expected a tensor or nil, got " ..
          "string", y.backward, y)
  end)

  it("passes an error at depth on, unchanged, in a coroutine", function()
    local thrown = { "a table" }
    local function deep(n)
      if n == 0 then error(thrown) end
      return (deep(n - 1))
    end
    local y, p = product(function() return deep(50) end)
    local before = nodes()
    local co = coroutine.create(function() y:backward() end)
    local ok, e = coroutine.resume(co)
    assert.is_false(ok)
    assert.equal(thrown, e)
    assert.is_true(fnn.is_grad_enabled())
    assert.is_nil(p:grad())
    -- An engine error inside has the script's line and a plain message.
    y = product(function(gy) return gy:matmul(fnn.zeros(5, 5)), gy end)
    fails("derivative_spec.lua:%d+: matmul: ", y.backward, y)
    y = nil  -- luacheck: ignore
    assert.is_true(nodes() <= before)
  end)

  it("refuses a yield inside the derivative", function()
    local y, p = product(function(gy)
      coroutine.yield()
      return gy, gy
    end)
    local ok, e = coroutine.resume(coroutine.create(function()
      y:backward()
    end))
    assert.is_false(ok)
    assert.matches("attempt to yield across a C%-call boundary", e)
    assert.is_nil(p:grad())
  end)

  it("is named when its graph was used, whatever came since", function()
    local p = param(1, 2)
    local function named(name)
      return fnn.record(p:detach(), name, { p }, function(g) return g end)
    end
    local y = named "product"
    y:sum():backward()
    fnn.zeros(1)
    local others = {}
    for k = 1, 20 do others[k] = named "another" end
    assert.equal(20, #others)
    local z = y:sum()
    fails("the graph of product was used already", z.backward, z)
    fails("the graph of product was used already", y.register_hook, y, print)
  end)

  it("lets go of its function when the graph has passed", function()
    local gone = setmetatable({}, { __mode = "k" })
    do
      local held = {}
      gone[held] = true
      local y = product(function(gy) return held and gy, gy end)
      y:backward()
    end
    collectgarbage()
    fnn.zeros(1)
    collectgarbage()
    assert.is_nil(next(gone))
  end)

  it("releases inside a derivative only when it is over", function()
    local y, p
    y, p = product(function(gy, a, b)
      y:release()
      gy:release()
      return b, a
    end)
    y:backward()
    same({ 3, 4 }, p:grad())
    fails("attempt to use a released fnn.Tensor", y.sum, y)
  end)

  it("may run a backward of its own inside", function()
    local r = param(3)
    local y, p = product(function(gy, a, b)
      fnn.enable_grad(function() (r * r):sum():backward() end)
      return gy * b, gy * a
    end)
    y:backward()
    same({ 3, 4 }, p:grad())
    same({ 6 }, r:grad())
  end)
end)

describe("an in-place op", function()
  local function refused(pattern, f)
    fails(pattern, f)
  end

  it("is refused on a trainable Param", function()
    local p = param(1, 2)
    refused("add_?: an in%-place op on a trainable parameter of shape %(2%) " ..
            "cannot be recorded", function() p:add_(1) end)
    refused("in%-place op on a trainable parameter",
            function() p:value():fill_(0) end)
    refused("in%-place op on a trainable parameter",
            function() p[1] = 5 end)
    fnn.no_grad(function()
      p:add_(1)
      p[1] = 5
    end)
    same({ 5, 3 }, p)
    p:freeze()
    p:mul_(2)
    same({ 10, 6 }, p)
  end)

  it("is refused on a tensor with a graph, and with such an operand",
     function()
    local p = param(1, 2)
    local x, y = p * 2, vector(1, 2)
    refused("in%-place op on a tensor with a graph", function() x:mul_(2) end)
    refused("add", function() y:add_(x) end)
    refused("copy", function() y:copy_(p) end)
    same({ 1, 2 }, y)
    fnn.no_grad(function() y:add_(x) end)
    same({ 3, 6 }, y)
    fnn.no_grad(function() x:mul_(2) end)
    same({ 4, 8 }, x)
  end)

  it("is refused on an expanded tensor, also without the graph", function()
    local x = fnn.zeros(1, 2):expand(3, 2)
    local message = "the tensor of shape %(3, 2%) is expanded"
    refused(message, function() x:add_(1) end)
    refused(message, function() x:fill_(1) end)
    refused(message, function() fnn.no_grad(x.fill_, x, 1) end)
    x:clone():fill_(1)
  end)

  it("is refused for each name there is", function()
    local methods
    for _, v in pairs(debug.getregistry()) do
      if type(v) == "table" and rawget(v, "__name") == "fnn.Tensor" then
        methods = v.methods
      end
    end
    local bools = fnn.tensor { true, false }
    local ids = fnn.tensor({ 0, 1 }, { dtype = "i64" })
    local arguments = {
      masked_fill_ = { bools, 1 }, scatter_add_ = { 1, ids, vector(1, 2) },
      copy_ = { vector(1, 2) }, zero_ = {}, uniform_ = {}, normal_ = {},
      lerp_ = { vector(1, 2), 0.5 },
    }
    -- Of integers, which have no graph.
    local none = { bitand_ = true, bitor_ = true, bitxor_ = true,
                   bitnot_ = true, shl_ = true, shr_ = true }
    local seen = 0
    for name, method in pairs(methods) do
      if name:find "_$" and not name:find "^_" and not none[name] then
        local p = param(1, 2)
        local ok, e = pcall(method, p,
                            table.unpack(arguments[name] or { 1 }))
        assert.is_false(ok, name)
        assert.matches("in%-place op on a trainable parameter", e, 1, false,
                       name)
        same({ 1, 2 }, p)
        seen = seen + 1
      end
    end
    assert.is_true(seen > 50)
  end)
end)

describe("detect_anomaly", function()
  it("names the op, the value and the input", function()
    local p = fnn.Param(fnn.zeros(1))
    local loss = p:log():sum()  -- 1 / 0
    fails("anomaly: log produced inf in the gradient for input 1",
          fnn.detect_anomaly, function() loss:backward() end)
    assert.is_nil(p:grad())
    local q = fnn.Param(vector(2))
    loss = (q * p:sqrt() * 0):sum()  -- 0 / 0
    fails("anomaly: sqrt produced nan in the gradient for input 1",
          fnn.detect_anomaly, function() loss:backward() end)
    loss = (q * fnn.tensor { math.huge }):sum()
    fails("anomaly: mul produced inf", fnn.detect_anomaly,
          function() loss:backward() end)
  end)

  it("ends with its function, and lets healthy gradients be", function()
    local p, q = param(2), fnn.Param(fnn.zeros(1))
    assert.equal(5, fnn.detect_anomaly(function(n)
      (p * p):sum():backward()
      return n
    end, 5))
    same({ 4 }, p:grad())
    pcall(fnn.detect_anomaly, function() q:log():sum():backward() end)
    q:log():sum():backward()  -- the mode is off again
    same({ math.huge }, q:grad())
    local co = coroutine.create(function()
      fnn.detect_anomaly(function() error "lost" end)
    end)
    coroutine.resume(co)
    q:log():sum():backward()
  end)
end)
