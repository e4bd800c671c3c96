-- profile_spec.lua - fnn.profile: which ops, how often, how long; and that
-- what is frozen is not computed.

local fnn = require "fnn"
local shell = require "spec.support.shell"
local nn = fnn.nn

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

-- The row of an op (or module) in a pass, or nil.
local function row(p, name, pass)
  for _, r in ipairs(p.rows) do
    if (r.op or r.module) == name and (not pass or r.pass == pass) then
      return r
    end
  end
end

local function model()
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(),
                       nn.Sequential(nn.Linear(16, 4)))
end

local x = fnn.randn(32, 8)

describe("fnn.profile", function()
  it("counts ops, forward and backward and in the step", function()
    local m = model()
    local opt = fnn.optim.SGD(m:parameters(), { lr = 0.1 })
    local p, seven = fnn.profile(function()
      for _ = 1, 3 do
        opt:zero_grad()
        m(x):square():mean():backward()
        opt:step()
      end
      return 7
    end)
    assert.equal(7, seven)
    assert.equal(6, row(p, "linear", "forward").calls)
    assert.equal(6, row(p, "linear", "backward").calls)
    assert.equal(3, row(p, "mean", "forward").calls)
    assert.equal(3, row(p, "square", "backward").calls)
    assert.equal(3, row(p, "SGD", "step").calls)
    local linear = row(p, "linear", "forward")
    assert.equal(3 * 2 * 32 * (8 * 16 + 16 * 4), linear.flops)
    -- operands and results of both layers, in f32
    assert.equal(3 * 4 * ((32 * 8 + 16 * 8 + 16 + 32 * 16) +
                          (32 * 16 + 4 * 16 + 4 + 32 * 4)), linear.bytes)
    assert.is_true(linear.made >= 3 * 4 * (32 * 16 + 32 * 4))
    -- backward has two products, but for the first layer, whose input wants
    -- no gradient
    assert.equal(3 * 2 * 32 * (8 * 16 + 2 * 16 * 4),
                 row(p, "linear", "backward").flops)
  end)

  it("counts attention, with a gradient and without", function()
    local q, v = fnn.randn(2, 4, 10, 16), fnn.randn(2, 4, 12, 8)
    local k = fnn.randn(2, 4, 12, 16)
    local query = fnn.Param(q)
    for _, either in ipairs { q, query } do
      local p = fnn.profile(function()
        fnn.scaled_dot_product_attention(either, k, v)
      end)
      local r = row(p, "scaled_dot_product_attention", "forward")
      assert.equal(2 * 2 * 4 * 10 * 12 * (16 + 8), r.flops)
      assert.equal(4 * 2 * 4 * (10 * 16 + 12 * 16 + 12 * 8 + 10 * 8), r.bytes)
    end
  end)

  it("has the whole time, of which ops have a share", function()
    local t = fnn.clock()
    local p = fnn.profile(function()
      local a = fnn.randn(200, 200)
      for _ = 1, 5 do a:matmul(a) end
      local till = fnn.clock() + 0.02
      repeat until fnn.clock() > till
    end)
    t = (fnn.clock() - t) * 1e3
    assert.is_true(p.outside >= 19.9 and p.outside <= p.total)
    assert.is_true(p.total <= t)
    local sum, share = 0, 0
    for _, r in ipairs(p.rows) do sum = sum + r.ms; share = share + r.share end
    assert.near(p.total, sum, 1e-6)
    assert.near(1, share, 1e-9)
    local last = p.rows[#p.rows]
    assert.equal("outside ops", last.op)
    local product = row(p, "matmul")
    assert.near(1e3 * product.ms / 5, product.us, 1e-9)
    assert.near(5 * 2 * 200 ^ 3 / product.ms * 1e-6, product.gflops, 1e-6)
  end)

  it("sorts by time, and has its columns as lists", function()
    local p = fnn.profile(function() return model()(x):exp():sum() end)
    for i = 2, #p.rows - 1 do
      assert.is_true(p.ms[i - 1] >= p.ms[i])
    end
    assert.equal(#p.rows, #p.op)
    for i, r in ipairs(p.rows) do
      assert.equal(r.op, p.op[i])
      assert.equal(r.calls, p.calls[i])
      assert.equal(r.us, p.us[i])
    end
    local text = tostring(p)
    assert.equal(text, p:table())
    assert.matches("^op +pass +calls +ms +us each +share", text)
    assert.matches("\nexp +forward +1 ", text)
    assert.matches("\noutside ops ", text)
    local _, lines = p:table(2):gsub("\n", "")
    assert.equal(4, lines)
  end)

  it("names what is not recorded by what it writes, or its kernel", function()
    local p = fnn.profile(function()
      local y = x:clone()
      y:add_(x)
      y:mul_(2)
      y:argmax(1)
      fnn.no_grad(function() return y:exp() end)
    end)
    for _, name in ipairs { "clone", "add", "mul", "exp" } do
      assert.equal(1, row(p, name, "forward").calls, name)
    end
    assert.is_truthy(row(p, "topk") or row(p, "reduce"))
  end)

  it("goes by module, by path, backward too", function()
    local m = model()
    local p = fnn.profile(function() m(x):sum():backward() end,
                          { by = "module" })
    assert.equal("module", p.by)
    for _, pass in ipairs { "forward", "backward" } do
      assert.equal(1, row(p, "0 (Linear)", pass).calls)
      assert.equal(1, row(p, "1 (Tanh)", pass).calls)
      assert.equal(1, row(p, "2.0 (Linear)", pass).calls)
      assert.equal(1, row(p, "no module", pass).calls)  -- sum
    end
    assert.equal(1, row(p:sorted_by "op", "tanh", "forward").calls)
    assert.is_nil(row(p:sorted_by "op", "2.0 (Linear)"))
    assert.matches("^module ", tostring(p))
  end)

  it("writes events for a trace viewer", function()
    local path = os.tmpname()
    fnn.profile(function() model()(x):sum():backward() end, { trace = path })
    local text = fnn.io.read_text(path)
    os.remove(path)
    assert.matches('"traceEvents":', text)
    local found, last = {}, -1
    for event in text:gmatch "{[^{}]*{[^{}]*}[^{}]*}" do
      if event:find '"ph":"X"' then
        local key = event:match '"cat":"(%a+)"' .. " " ..
                    event:match '"name":"([%w_]+)"'
        found[key] = (found[key] or 0) + 1
        local ts = tonumber(event:match '"ts":([%d%.e-]+)')
        assert.is_true(ts >= last)
        last = ts
      end
    end
    assert.equal(2, found["forward linear"])
    assert.equal(2, found["backward linear"])
    assert.equal(1, found["forward tanh"])
  end)

  it("ends with its function, also with an error", function()
    fails("lost", fnn.profile, function() error "lost" end)
    fails("taken already", fnn.profile, function()
      fnn.profile(function() end)
    end)
    local p = fnn.profile(function()
      pcall(x.matmul, x, x)  -- shapes that do not fit
      return x:exp()
    end)
    assert.equal(1, row(p, "exp").calls)
    assert.is_nil(row(p, "matmul"))
    assert.equal(1, #fnn.profile(function() end).rows)
  end)

  it("refuses what it cannot do", function()
    fails("expected a function, got nil", fnn.profile)
    fails("Profile:table: expected a number of rows, an integer, got a string",
          function() fnn.profile(print):table "op" end)
    fails("did you mean 'trace'", fnn.profile, print, { tracee = "x" })
    fails("profile: begun within backward", function()
      local y = fnn.Param(fnn.ones(2)):exp()
      y:register_hook(function(g) return (select(2, fnn.profile(function()
        return g * 2
      end))) end)
      y:sum():backward()
    end)
    fails("expected 'op' or 'module', got 'modul'", fnn.profile, print,
          { by = "modul" })
  end)
end)

describe("freezing", function()
  -- Calls and kernels backward of the ops of one step.
  local function backward(m)
    local back, kernels = {}, {}
    m:zero_grad()
    local p = fnn.profile(function() m(x):square():mean():backward() end)
    for _, r in ipairs(p.rows) do
      if r.pass == "backward" then
        back[r.op] = r.calls
        kernels[r.op] = r.kernels
      end
    end
    return back, kernels
  end

  local function network()
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16),
                         nn.Tanh(), nn.Linear(16, 4))
  end

  it("stops below the first layer that is trained", function()
    local m = network()
    m[1]:freeze()
    m[3]:freeze()
    local back, kernels = backward(m)
    assert.same({ linear = 1, square = 1, mean = 1 }, back)
    -- one product, of the weight's gradient, and the bias' sum
    assert.equal(2, kernels.linear)
    m:freeze()
    assert.is_false(m(x):has_graph())
  end)

  it("makes no gradient of a frozen weight on the way", function()
    local m = network()
    local _, all = backward(m)
    m[3]:freeze()
    m[5]:freeze()
    local back, kernels = backward(m)
    assert.equal(3, back.linear)
    -- all: 2 products and a sum for each, but for the first, whose input
    -- wants none; frozen: a product each
    assert.equal(8, all.linear)
    assert.equal(4, kernels.linear)
    for _, i in ipairs { 3, 5 } do
      assert.is_nil(m[i].weight:grad())
      assert.is_nil(m[i].bias:grad())
    end
    assert.is_truthy(m[1].weight:grad())
  end)

  it("holds for convolutions, norms, recurrent layers", function()
    local conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3))
    local image = fnn.randn(1, 1, 8, 8)
    local function kernels(m, input)
      local n = 0
      m:zero_grad()
      local p = fnn.profile(function()
        local y = m(input)
        y:sum():backward()
      end)
      for _, r in ipairs(p.rows) do
        if r.pass == "backward" and r.op ~= "sum" then n = n + r.kernels end
      end
      return n
    end
    local all = kernels(conv, image)
    conv[2]:freeze()
    assert.equal(all - 2, kernels(conv, image))  -- weight and bias
    conv[2]:unfreeze()
    conv[1]:freeze()
    -- weight and bias again, and a copy of the gradient to channels-last
    assert.equal(3, kernels(conv, image))
    local lstm = nn.LSTM(3, 4)
    local entry = fnn.Param(fnn.randn(2, 5, 3))
    local whole = kernels(lstm, entry)
    lstm:freeze()
    assert.is_true(kernels(lstm, entry) < whole)
    assert.is_nil(lstm:parameters()[1]:grad())
  end)
end)

describe("a graph that grows", function()
  teardown(shell.clean)

  local program = [[
    local fnn = require "fnn"
    local p = fnn.Param(fnn.ones(4))
    local opt = fnn.optim.SGD({ p }, { lr = 0.01 })
    local total = 0
    for _ = 1, 2000 do
      opt:zero_grad()
      local loss = (p * 2):square():sum()
      loss:backward()
      opt:step()
      total = total + loss%s
    end
    collectgarbage()
    print(fnn.memory().nodes < 100)
  ]]

  it("is told once, when a loss is kept with it", function()
    local path = shell.write(program:format "")
    local _, messages = shell.run(shell.FNN .. " " .. path)
    local _, count = messages:gsub("warning: ", "")
    assert.equal(1, count, messages)
    assert.matches("the graph grows: %d+ operations are kept", messages)
    path = shell.write(program:format ":item()")
    local output
    output, messages = shell.run(shell.FNN .. " " .. path)
    assert.equal("", messages)
    assert.equal("true\n", output)
  end)
end)
