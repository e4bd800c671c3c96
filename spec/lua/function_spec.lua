-- function_spec.lua - operations with a derivative, written in Lua.

local fnn = require "fnn"

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

local function nodes()
  collectgarbage()
  fnn.zeros(1)  -- what the engine drops is let go with a next call
  collectgarbage()
  return fnn.memory().nodes
end

-- log(1 + exp(x)), of any x.
local Softplus = fnn.Function "Softplus"

function Softplus.forward(ctx, x)
  ctx:save(x)
  return x:relu() + (-x:abs()):exp():log1p()
end

function Softplus.backward(ctx, gy)
  return gy * ctx:saved():sigmoid()
end

-- Two results, an integer one between them, and a number among the arguments.
local Polar = fnn.Function "Polar"

function Polar.forward(ctx, r, k, angle)
  ctx:save(r, angle)
  ctx.k = k
  return r * angle:cos() * k, r:gt(0), (r * angle:sin()):sum(1)
end

function Polar.backward(ctx, gx, none, gy)
  assert(none == nil)
  local r, angle = ctx:saved()
  local gr = gx * angle:cos() * ctx.k + gy * angle:sin()
  return gr, nil, r * (gy * angle:cos() - gx * angle:sin() * ctx.k)
end

describe("fnn.Function", function()
  it("has the values and derivative that the script gives it", function()
    local x = fnn.Param(fnn.tensor { -2, 0, 3 })
    local y = Softplus(x)
    local same = x:softplus()
    assert.is_true((y - same):abs():max():item() < 1e-6)
    assert.is_true(y:has_graph())
    y:sum():backward()
    local g = x:grad():clone()
    x:set_grad()
    same:sum():backward()
    assert.is_true((g - x:grad()):abs():max():item() < 1e-6)
  end)

  it("passes the gradient check, with several results too", function()
    assert.is_true(fnn.gradcheck(Softplus, { fnn.randn(3, 4) }))
    assert.is_true(fnn.gradcheck(function(x)
      return Softplus(x * 2):exp()
    end, { fnn.randn(2, 2) * 0.5 }))
    assert.is_true(fnn.gradcheck(function(r, angle)
      local x, positive, y = Polar(r, 3, angle)
      assert(positive:dtype() == "bool" and not positive:has_graph())
      return x * y
    end, { fnn.rand(2, 3) + 0.5, fnn.randn(2, 3) }))
  end)

  it("calls backward once, with zeros for a result that is not used",
     function()
    local calls, seen = 0, nil
    local Two = fnn.Function "Two"
    function Two.forward(_, x) return x * 2, x * 3 end
    function Two.backward(_, a, b)
      calls, seen = calls + 1, b:totable()
      return a * 2 + b * 3
    end
    local x = fnn.Param(fnn.ones(2))
    local a, b = Two(x);
    (a + b * b):sum():backward()
    assert.equal(1, calls)
    assert.same({ 20, 20 }, x:grad():totable())
    a = Two(x)
    a:sum():backward()
    assert.equal(2, calls)
    assert.same({ 0, 0 }, seen)
    assert.same({ 22, 22 }, x:grad():totable())
  end)

  it("says which inputs need a gradient", function()
    local seen
    local F = fnn.Function "F"
    function F.forward(ctx, x, y, n)
      seen = ctx.needs_input_grad
      return x + y * n
    end
    function F.backward(_, gy) return gy, gy end
    local p, frozen = fnn.Param(fnn.ones(1)), fnn.Param(fnn.ones(1)):freeze()
    local y = F(p, frozen, 2)
    assert.same({ true, false, false }, seen)
    assert.is_true(y:has_graph())
    F(fnn.ones(1), p * 2, 2)
    assert.same({ false, true, false }, seen)
    y = fnn.no_grad(F, p, p, 2)
    assert.same({ false, false, false }, seen)
    assert.is_false(y:has_graph())
    assert.is_false(F(frozen, fnn.ones(1), 2):has_graph())
  end)

  it("runs forward without a graph, on plain data", function()
    local F = fnn.Function "F"
    function F.forward(_, x)
      assert.is_false(x:has_graph())
      assert.is_false(fnn.is_grad_enabled())
      return x * 2
    end
    function F.backward(_, gy) return gy * 2 end
    local p = fnn.Param(fnn.ones(1))
    F(p * 3):backward()
    assert.same({ 6 }, p:grad():totable())
    assert.is_true(fnn.is_grad_enabled())
  end)

  it("may give an input back, and what it saved may be its result", function()
    local Same = fnn.Function "Same"
    function Same.forward(_, x) return x end
    function Same.backward(_, gy) return gy * 7 end
    local Exp = fnn.Function "Exp"
    function Exp.forward(ctx, x)
      local y = x:exp()
      ctx:save(y, nil)
      return y
    end
    function Exp.backward(ctx, gy)
      local y, none = ctx:saved()
      assert(none == nil)
      return gy * y
    end
    local p = fnn.Param(fnn.ones(2))
    Same(p):sum():backward()
    assert.same({ 7, 7 }, p:grad():totable())
    assert.is_true(fnn.gradcheck(Exp, { fnn.randn(3) }))
  end)

  it("works where results are empty or scalars", function()
    local Sum = fnn.Function "Sum"
    function Sum.forward(ctx, x)
      ctx.shape = x:shape()
      return x:sum(), x * 2
    end
    function Sum.backward(ctx, a, b) return a:expand(ctx.shape) + b * 2 end
    local p = fnn.Param(fnn.ones(0, 3))
    local s, y = Sum(p);
    (s + y:sum()):backward()
    assert.same({ 0, 3 }, p:grad():shape())
    assert.is_true(fnn.gradcheck(function(x)
      local a, b = Sum(x)
      return a * b
    end, { fnn.randn(2, 2) }))
  end)

  it("shows its name in errors and to detect_anomaly", function()
    local Bad = fnn.Function "Bad"
    function Bad.forward(_, x) return x * 1 end
    function Bad.backward(_, gy) return gy / 0 end
    local p = fnn.Param(fnn.ones(2))
    fails("anomaly: Bad produced inf in the gradient for input 1",
          fnn.detect_anomaly, function() Bad(p):sum():backward() end)
    function Bad.backward() return fnn.ones(3) end
    fails("backward: Bad gave input 1 a gradient of shape %(3%) %(expected " ..
          "%(2%)%)", function() Bad(p):sum():backward() end)
    function Bad.backward() return 5 end
    fails("backward: Bad: gradient 1: expected a tensor or nil, got number",
          function() Bad(p):sum():backward() end)
    function Bad.backward(_, g) return g, g end
    fails("backward: Bad gave 2 gradients %(expected 1, one an argument%)",
          function() Bad(p):sum():backward() end)
    function Bad.backward() end
    fails("backward: Bad gave 0 gradients",
          function() Bad(p):sum():backward() end)
    function Bad.backward(_, g) return g, g end
    fails("backward: Bad: gradient 2: argument 2 is no tensor",
          function() Bad(p, 3):sum():backward() end)
    assert.equal("function Bad", tostring(Bad))
  end)

  it("lets errors of both through unchanged", function()
    local thrown = {}
    local F = fnn.Function "F"
    function F.forward(_, x) return x * 1 end
    function F.backward() error(thrown) end
    local p = fnn.Param(fnn.ones(2))
    local y = F(p):sum()
    local ok, e = pcall(y.backward, y)
    assert.is_false(ok)
    assert.equal(thrown, e)
    function F.forward() error(thrown) end
    ok, e = pcall(F, p)
    assert.is_false(ok)
    assert.equal(thrown, e)
    assert.is_true(fnn.is_grad_enabled())
  end)

  it("refuses what an in-place op has overwritten since", function()
    local x = fnn.Param(fnn.ones(2))
    local z = x * 2
    local y = Softplus(z):sum()
    fnn.no_grad(function() z:zero_() end)
    fails("backward: Softplus needs a tensor of shape %(2%) that an " ..
          "in%-place op has overwritten since", y.backward, y)
  end)

  it("says what is missing", function()
    local F = fnn.Function "F"
    fails("F has no forward: define function F.forward %(ctx, x%)", F)
    function F.forward(_, x) return x end
    fails("F has no backward: define function F.backward %(ctx, gy%)", F,
          fnn.ones(1))
    F.backward = false
    local y = F(fnn.Param(fnn.ones(1)))
    assert.is_true(y:has_graph())
    fails("backward: F has no derivative", y.backward, y)
    fails("fnn.Function: expected the name of an operation, got nil",
          fnn.Function)
    local G = fnn.Function "G"
    function G.forward(ctx) ctx:save(3) end
    function G.backward(_, g) return g end
    fails("G: save: argument 1: expected a tensor, got a number", G,
          fnn.ones(1))
    function G.forward(_, x) return x, x:to("f64") end
    fails("G: results 1 and 2 have dtypes f32 and f64 %(expected one dtype%)",
          G, fnn.Param(fnn.ones(1)))
  end)

  it("leaves no node behind, whether backward came or not", function()
    local before = nodes()
    do
      local p = fnn.Param(fnn.ones(2))
      for _ = 1, 3 do
        Softplus(p)
        local a, _, b = Polar(p, 2, p)
        assert(a:has_graph() and b:has_graph())
      end
      Softplus(p):sum():backward()
    end
    assert.equal(before, nodes())
  end)

  it("keeps what it saved for a graph that is walked twice", function()
    local p = fnn.Param(fnn.ones(2))
    local y = Softplus(p):sum()
    y:backward(nil, { retain_graph = true })
    local first = p:grad():clone()
    y:backward()
    assert.same((first * 2):totable(), p:grad():totable())
  end)
end)
