-- memory_spec.lua - scopes, and what fnn.memory tells.

local fnn = require "fnn"
local shell = require "spec.support.shell"

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

describe("scope", function()
  it("empties what was made inside, and results survive", function()
    local outside, kept = vector(1), nil
    local before = fnn.memory().live
    local a, b = fnn.scope(function(x)
      kept = fnn.zeros(1000)
      return x + 1, { list = { fnn.ones(2) } }
    end, outside)
    assert.is_true(fnn.memory().live < before + 4000)
    same({ 2 }, a)
    same({ 1, 1 }, b.list[1])
    same({ 1 }, outside)
    fails("attempt to use a released fnn.Tensor", kept.sum, kept)
  end)

  it("nests: what an inner one returns goes with the outer", function()
    local inner
    local out = fnn.scope(function()
      inner = fnn.scope(function() return vector(1) end)
      same({ 1 }, inner)
      return vector(2)
    end)
    same({ 2 }, out)
    fails("released", inner.sum, inner)
  end)

  it("ends with an error, whose tensors survive", function()
    local lost
    local ok, e = pcall(fnn.scope, function()
      lost = vector(1)
      error { x = vector(3) }
    end)
    assert.is_false(ok)
    same({ 3 }, e.x)
    fails("released", lost.sum, lost)
    local after = vector(4)  -- no scope is open any more
    fnn.scope(function() end)
    same({ 4 }, after)
    coroutine.resume(coroutine.create(function()
      fnn.scope(function()
        lost = vector(1)
        error "x"
      end)
    end))
    fails("released", lost.sum, lost)
    after = vector(5)
    fnn.scope(function() end)
    same({ 5 }, after)
  end)

  it("cannot be left by a yield", function()
    local ok, e = coroutine.resume(coroutine.create(function()
      fnn.scope(coroutine.yield)
    end))
    assert.is_false(ok)
    assert.matches("attempt to yield across a C%-call boundary", e)
  end)

  it("trains a model, whose weights and fields stay", function()
    local nn = fnn.nn
    local Net = nn.module "Net"
    function Net:init() self.inner = nn.Linear(2, 1) end
    function Net:forward(x)
      self.last = x * 1
      return self.inner(x)
    end
    local model, opt = Net(), nil
    local before = nodes()
    local loss
    for _ = 1, 3 do
      loss = fnn.scope(function()
        opt = opt or fnn.optim.SGD(model:parameters(), { lr = 0.1 })
        opt:zero_grad()
        local y = model(fnn.ones(1, 2)):square():sum()
        y:backward()
        opt:step()
        return y:item()
      end)
    end
    assert.is_number(loss)
    assert.equal(before, fnn.memory().nodes)  -- at once
    same({ { 1, 1 } }, model.last)
    assert.same({ 1, 2 }, model.inner.weight:grad():shape())
  end)

  it("frees a graph at its end", function()
    local p, before = param(1), nodes()
    fnn.scope(function()
      local x = p * 1
      for _ = 1, 100 do x = x + 1 end
      assert.is_true(x:has_graph())
    end)
    assert.equal(before, fnn.memory().nodes)
  end)
end)

describe("a finalizer", function()
  teardown(shell.clean)

  -- f(x), a method, until the collector runs a finalizer in the middle of it,
  -- between its checks and its work: the finalizer calls act(x).
  local function interrupt(f, x, act)
    local pause = collectgarbage("setpause", 100)
    local multiple = collectgarbage("setstepmul", 1000)
    local inside, y
    local trap = {}
    function trap.__gc()
      inside = debug.getinfo(2, "f").func == f
      if inside then act(x) else setmetatable({}, trap) end
    end
    setmetatable({}, trap)
    repeat y = f(x) until inside
    collectgarbage("setpause", pause)
    collectgarbage("setstepmul", multiple)
    return y
  end

  it("leaves what it releases to the collector", function()
    local acts = {
      function(x) x:release() end,
      function(x)
        coroutine.wrap(function() x:release() end)()
      end,
      function(x) do local _ <close> = x end end,
    }
    for _, act in ipairs(acts) do
      local x = vector(1, 2, 3)
      local y = interrupt(x.neg, x, act)
      same({ -1, -2, -3 }, y)
      same({ 1, 2, 3 }, x)
      x:release()
      fails("released", x.sum, x)
    end
  end)

  it("keeps what its scopes made, and frees it by and by", function()
    local made
    local x = vector(1, 2, 3)
    interrupt(x.neg, x, function()
      fnn.scope(function() made = vector(7) end)
    end)
    same({ 7 }, made)
  end)

  -- In a process of its own, whose few values one step collects.
  it("cannot add to metadata that have been counted", function()
    local out, err = shell.run(shell.FNN .. " " .. shell.write [[
      local fnn = require "fnn"
      local image, refused = fnn.zeros(1, 1, 3):to "u8", 0
      collectgarbage("incremental", 100, 1000, 30)
      for _ = 1, 10 do
        local texts = {}
        collectgarbage()
        collectgarbage "stop"
        for k = 1, 300 do texts["k" .. k] = "v" end
        setmetatable({}, { __gc = function()
          for k = 301, 5000 do texts["k" .. k] = "v" end
        end })
        collectgarbage "restart"  -- the next allocation begins a collection
        local ok, why = pcall(fnn.io.encode_png, image, texts)
        if not ok and why:find "metadata were added to" then
          refused = refused + 1
        end
      end
      print(refused > 0)
    ]])
    assert.equal("true\n", out, err)
  end)

  it("cannot move a parameter", function()
    local p, message = param(1, 2), nil
    local y = interrupt(p.neg, p, function()
      message = select(2, pcall(p.to, p, "f64"))
    end)
    assert.matches("a finalizer cannot move a parameter", message)
    same({ -1, -2 }, y)
    assert.equal("f64", p:to("f64"):value():dtype())
  end)
end)

describe("memory", function()
  it("counts bytes and their peak", function()
    collectgarbage()
    fnn.reset_peak_memory()
    local before = fnn.memory()
    local x <close> = fnn.zeros(1 << 20)
    local after = fnn.memory()
    assert.is_true(after.live >= before.live + (4 << 20))
    assert.is_true(after.peak >= before.live + (4 << 20))
    x:release()
    local now = fnn.memory()
    assert.is_true(now.live < after.live)
    assert.equal(after.peak, now.peak)
    fnn.reset_peak_memory()
    assert.is_true(fnn.memory().peak < after.peak)
    fnn.trim()
    assert.equal(0, fnn.memory().idle)
  end)

  it("has a limit that an op raises at", function()
    collectgarbage()
    local live = fnn.memory().live
    fnn.set_memory_limit(live + (8 << 20))
    local ok, e = pcall(fnn.zeros, 16 << 20)
    fnn.set_memory_limit()
    assert.is_false(ok)
    assert.matches("memory", e)
    assert.equal(0, fnn.memory().limit)
    assert.equal(16 << 20, fnn.zeros(16 << 20):numel())
    fails("expected 0 bytes or more", fnn.set_memory_limit, -1)
  end)
end)
