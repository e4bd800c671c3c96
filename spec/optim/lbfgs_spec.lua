-- LBFGS on two problems, step by step beside PyTorch's.

local fnn = require "fnn"
local optim = fnn.optim
local fixtures = require "spec.fixtures.optim"

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local problems = {}

function problems.valley (p)
  local x = p[1]
  local n = x:size(1)
  local a, b = x:narrow(1, 1, n - 1), x:narrow(1, 2, n - 1)
  return ((b - a:square()):square() * 100 + (a * -1 + 1):square()):sum()
end

local points, classes = {}, fnn.tensor({ 1, 0, 1, 1, 0, 0, 1, 0 },
                                       { dtype = "f64" })
for i = 0, 7 do
  points[i + 1] = {}
  for j = 0, 2 do points[i + 1][j + 1] = ((7 * i + 3 * j) % 11 - 5) / 4 end
end
points = fnn.tensor(points, { dtype = "f64" })

function problems.logistic (p)
  local z = points:matmul(p[1]) + p[2]
  return ((-z):exp():log1p() + (classes * -1 + 1) * z):mean() +
         p[1]:square():sum() * 0.01
end

local function run (case, dtype)
  local params = {}
  for i, v in ipairs(case.start) do
    params[i] = fnn.Param(fnn.tensor(v, { dtype = dtype }))
  end
  local opt = optim.LBFGS(params, case.options)
  local function closure ()
    opt:zero_grad()
    local loss = problems[case.problem](params)
    loss:backward()
    return loss
  end
  return opt, params, closure
end

describe("LBFGS", function ()
  for n, case in ipairs(fixtures) do
    it(("goes PyTorch's way, %d: %s"):format(n, case.problem), function ()
      local opt, params, closure = run(case, "f64")
      for step, want in ipairs(case.at) do
        local loss = opt:step(closure)
        assert.near(want.loss, loss:item(), 1e-9 * math.max(1, want.loss))
        local flat = {}
        for _, p in ipairs(params) do
          table.move(p:totable(), 1, p:numel(), #flat + 1, flat)
        end
        for i, v in ipairs(want[1]) do
          assert(math.abs(v - flat[i]) < 1e-9,
                 ("step %d: %g %g"):format(step, v, flat[i]))
        end
      end
      local slot = opt:slot(params[1])
      assert.equal(case.func_evals, slot.func_evals)
      assert.equal(case.n_iter, slot.n_iter)
    end)
  end

  it("finds the floor of the valley in f32", function ()
    local opt, params, closure = run({
      problem = "valley", start = { { -1.2, 1, -1.2, 1 } },
      options = { line_search_fn = "strong_wolfe", max_iter = 100 },
    }, "f32")
    for _ = 1, 3 do opt:step(closure) end
    for _, v in ipairs(params[1]:totable()) do assert.near(1, v, 1e-3) end
  end)

  it("checks what it is given", function ()
    local p = fnn.Param(fnn.ones(2))
    local opt = optim.LBFGS({ p })
    fails("step needs a function", opt.step, opt)
    fails("must return the loss", opt.step, opt, function () end)
    fails("expected 'strong_wolfe', got 'armijo'", optim.LBFGS, { p },
          { line_search_fn = "armijo" })
    fails("max_iter must be an integer", optim.LBFGS, { p }, { max_iter = 0 })
    fails("expected one group", opt.add_group, opt,
          { params = { fnn.Param(fnn.ones(2)) } })
  end)

  it("begins anew when other parameters are free", function ()
    local p, q = fnn.Param(fnn.ones(2)), fnn.Param(fnn.ones(2))
    local opt = optim.LBFGS({ p, q })
    local function closure ()
      opt:zero_grad()
      local loss = (p * p):sum() + (q * q):sum()
      loss:backward()
      return loss
    end
    opt:step(closure)
    q:freeze()
    local before = q:detach():clone()
    p:set(fnn.ones(2))
    for _ = 1, 3 do opt:step(closure) end
    assert.is_true(q:eq(before):all():item())
    assert.near(0, p:sum():item(), 1e-4)
  end)
end)
