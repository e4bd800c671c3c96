-- Devices: what there is, moving models, and errors across devices.
local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim
local device = require "spec.support.device"
local shell = require "spec.support.shell"

local function fails(pattern, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

describe("without a card too", function ()
  it("the CPU is the first device", function ()
    local cpu = fnn.devices()[1]
    assert.equal("cpu", cpu.name)
    assert.is_true(cpu.total > 0 and cpu.free > 0)
    assert.matches("kernels", cpu.model)
    assert.is_nil(cpu.capability)
    assert.equal("cpu", fnn.device "cpu")
    fnn.synchronize "cpu"
  end)

  it("a name that is none raises", function ()
    fails("unknown device 'gpu' %(expected cpu or cuda:N%)", function ()
      fnn.device "gpu"
    end)
    for _, name in ipairs { "cuda:", "cuda:x", "cudax", "cuda:1x" } do
      fails("unknown device", function () fnn.device(name) end)
    end
  end)

  it("x:to names what it takes", function ()
    fails("to: expected a dtype %(bool, .*%) or a device %(cpu or cuda:N%), " ..
          "got 'gpu'", function () fnn.ones(2):to "gpu" end)
    fails("unknown device 'cudaa'", function () fnn.ones(2):to "cudaa" end)
  end)

  it("a card that is not there says why", function ()
    local ok, message = pcall(fnn.device, "cuda:9")
    assert.is_false(ok)
    assert.is_truthy(message:find("make CUDA=1", 1, true) or
                     message:find("no NVIDIA", 1, true) or
                     message:find("only %d CUDA device"))
  end)

  it("the best device is one of the list", function ()
    local names = {}
    for _, d in ipairs(fnn.devices()) do names[d.name] = true end
    assert.is_true(names[fnn.best_device()])
  end)

  it("the default device is told", function ()
    assert.equal("cpu", fnn.default_device())
  end)
end)

if not device.there() then return end

describe("a card", function ()
  after_each(function () fnn.set_default_device "cpu" end)

  it("has gradcheck and summary look at what is there", function ()
    local x = fnn.rand({ 3 }, { dtype = "f64", device = "cuda" })
    assert.is_true((fnn.gradcheck(function (v) return v:exp():sum() end, x)))
    local text = tostring(fnn.summary(nn.Linear(3, 2):to "cuda", { 1, 3 }))
    assert.matches("Linear", text)
  end)

  it("tells of itself", function ()
    assert.equal("cuda:0", fnn.device "cuda")
    assert.equal("cuda:0", fnn.best_device())
    local card = fnn.devices()[2]
    assert.equal("cuda:0", card.name)
    assert.is_true(card.total >= card.free and card.free > 0)
    assert.matches("^%d+%.%d$", card.capability)
    assert.matches("^%d+%.%d$", card.driver)
    fnn.synchronize "cuda"
  end)

  it("says at a synchronization what went wrong before it", function ()
    local ids = fnn.tensor({ 7 }, { dtype = "i64", device = "cuda" })
    fnn.ones(3, { device = "cuda" }):index_select(1, ids)
    assert.error_matches(function () fnn.synchronize "cuda" end,
                         "id 7 at position 1 is out of range for 3 rows")
    fnn.synchronize "cuda"
  end)

  it("takes new tensors as the default device", function ()
    fnn.set_default_device "cuda"
    assert.equal("cuda:0", fnn.default_device())
    assert.equal("cuda:0", fnn.zeros(3):device())
    assert.equal("cuda:0", fnn.tensor { 1, 2 }:device())
    assert.same({ 1, 2 }, fnn.tensor { 1, 2 }:totable())
  end)

  it("gets a model in place, with buffers and optimizer state", function ()
    local model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4),
                                nn.Linear(4, 2))
    local opt = optim.Adam(model:parameters(), { lr = 0.1 })
    local p = model:parameters()[1]
    local x = fnn.randn(5, 3, { generator = fnn.Generator(1) })
    model(x):sum():backward()
    opt:step()
    local before = p:totable()
    assert.equal(model, model:to "cuda")
    assert.equal("cuda:0", p:device())
    assert.equal(p, model:parameters()[1])
    assert.same(before, p:totable())
    for _, b in ipairs(model:buffers()) do
      assert.equal("cuda:0", b:device())
    end
    local state = opt:state_dict()
    assert.is_true(#state >= 4)
    for _, name in ipairs(state) do
      assert.equal("cuda:0", state[name]:device())
    end
    model:to "cpu"
    assert.equal("cpu", p:device())
    assert.same(before, p:totable())
  end)

  it("loads an optimizer's state to where its parameters are", function ()
    local function made(d)
      local p = fnn.Param(fnn.ones { 4 })
      p:set_grad(fnn.full({ 4 }, 0.5))
      local opt = optim.Adam({ p }, { lr = 0.1 })
      if d then p:to(d) end
      return p, opt
    end
    local p, opt = made()
    opt:step()
    local q, other = made "cuda"
    other:load_state_dict(opt:state_dict())
    q:set(p:detach():to "cuda")
    p:set_grad(fnn.full({ 4 }, 0.25))
    q:set_grad(fnn.full({ 4 }, 0.25):to "cuda")
    opt:step()
    other:step()
    local a, b = p:totable(), q:totable()
    for i = 1, 4 do assert.near(a[i], b[i], 1e-6) end
  end)

  it("mixes with no other: both devices are named", function ()
    local x, y = fnn.ones(3), fnn.ones(3):to "cuda"
    local both = function (f)
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.matches("two devices", message)
      assert.matches("on cpu", message)
      assert.matches("on cuda:0", message)
    end
    both(function () return x + y end)
    both(function () return y:matmul(fnn.ones(3, 2)) end)
    both(function () return fnn.cat { x, y } end)
    both(function () y:copy_(x) end)
    both(function () y[fnn.tensor({ 0 }, { dtype = "i64" })]:item() end)
    both(function () return fnn.where(x:gt(0), y, y) end)
    both(function () return nn.mse_loss(x, y) end)
    both(function () return nn.cross_entropy(y:view { 1, 3 }, fnn.zeros(1)
                                               :to "i64") end)
    both(function () return nn.Linear(3, 2)(y) end)
    both(function () return nn.BatchNorm1d(3):to "cuda"(x:view { 1, 3 }) end)
    both(function () fnn.Param(y):set_grad(x) end)
    both(function () fnn.Param(y):value():mul(1):add_(x) end)
  end)

  it("has derivatives in Lua give gradients where the arguments are",
     function ()
    local Half = fnn.Function "Half"
    function Half.forward(_, x) return x / 2 end
    function Half.backward(_, gy) return gy / 2 end
    local p = fnn.Param(fnn.ones(3):to "cuda")
    Half(p):sum():backward()
    assert.same({ 0.5, 0.5, 0.5 }, p:grad():totable())
    function Half.backward(_, gy) return (gy / 2):to "cpu" end
    fails("backward: Half gave input 1 a gradient on cpu %(expected cuda:0%)",
          function () Half(p):sum():backward() end)
    fails("Half gave input 1 a gradient on cpu %(expected cuda:0%)",
          function () Half(p * 1):sum():backward() end)
  end)

  it("gives no gradient to a Param that went away", function ()
    local p = fnn.Param(fnn.ones(2):to "cuda")
    local loss = (p * 3):sum()
    p:to "cpu"
    fails("backward: mul gave input 1 a gradient on cuda:0 %(expected cpu%)",
          function () loss:backward() end)
    assert.is_nil(p:grad())
  end)

  it("gets the batches of a model that is there", function ()
    local x = fnn.randn(12, 3, { generator = fnn.Generator(1) })
    local y = x:sum(2, { keepdim = true })
    local function trained(d)
      local model = nn.Linear(3, 1, { generator = fnn.Generator(2) }):to(d)
      local o = { loss = nn.mse_loss, optimizer = optim.SGD, lr = 0.1,
                  epochs = 3, batch_size = 5, progress = false,
                  validation = { x, y } }
      local history = fnn.fit(model, { x, y }, o)
      assert.equal(d, model.weight:device())
      return history[3].val_loss,
        fnn.evaluate(model, { x, y }, { loss = nn.mse_loss }).loss, model
    end
    local want, again = trained "cpu"
    local loss, found, model = trained "cuda:0"
    assert.near(want, loss, 1e-6)
    assert.near(again, found, 1e-6)
    -- batches that are there go to a model on the CPU as well
    local set = { x:to "cuda", y:to "cuda" }
    local o = { loss = nn.mse_loss }
    assert.near(found, fnn.evaluate(model:to "cpu", set, o).loss, 1e-6)
  end)

  it("keeps a Network that was trained there", function ()
    local net = fnn.Network { seed = 1 }:input_size(2):dense(8, "tanh")
                  :dense(1, "sigmoid"):loss "bce"
    local x, y = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, { 0, 1, 1, 0 }
    local o = { epochs = 1, progress = false, device = "cuda" }
    net:fit(x, y, o)
    o.device = nil
    net:fit(fnn.tensor(x), y, o)
    assert.equal("cuda:0", net.model:parameters()[1]:device())
    assert.equal("cuda:0", net:predict(x):device())
    assert.equal("cuda:0", net:forward(fnn.tensor(x)):device())
    assert.same({ 1 }, net:predict { 0, 1 }:shape())
    local right = net:accuracy(x, y)
    local table_of = net:confusion_matrix(x, fnn.tensor(y)):to "cpu"
    net.model:to "cpu"
    assert.equal("cpu", net:predict(x):device())
    assert.equal(right, net:accuracy(x, y))
    assert.same(net:confusion_matrix(x, y):totable(), table_of:totable())
  end)
end)

-- What only the emulator can have happen, each in a program of its own.
if not device.emulated() then return end

local function run(script, env)
  return shell.run(shell.FNN .. " " .. shell.write(script), { env = env })
end

describe("a card of an old kind", function ()
  after_each(shell.clean)
  local script = [[
    local fnn = require "fnn"
    print(select(2, pcall(fnn.device, "cuda")))
    print(select(2, pcall(fnn.device, "cuda:0")))
    print(select(2, pcall(fnn.device, "cuda:1")))
    print(fnn.best_device(), #fnn.devices(), fnn.ones(3):sum():item())
  ]]

  it("is refused, and the CPU goes on", function ()
    local out, err, code = run(script, "EMU_CAPABILITY=61")
    assert.equal(0, code, err)
    local why = "emulated card has compute capability 6.1, and this build " ..
                "needs 7.5, 8.0, 8.6, 8.9, 9.0 or later"
    assert.is_truthy(out:find("device 'cuda': " .. why, 1, true), out)
    assert.is_truthy(out:find("device 'cuda:0': " .. why, 1, true), out)
    assert.matches("device 'cuda:1': there is only 1 CUDA device", out)
    assert.matches("cpu\t1\t3.0", out)
  end)

  it("and later ones are not", function ()
    for _, capability in ipairs { 75, 87, 120 } do
      local out = run("print(require('fnn').device 'cuda')",
                      "EMU_CAPABILITY=" .. capability)
      assert.equal("cuda:0\n", out)
    end
  end)
end)

describe("a card with the host's page tables", function ()
  after_each(shell.clean)

  it("has read what it was sent when the call is over", function ()
    local out, err = run([[
      local x = require("fnn").ones(1000)
      local y = x:to "cuda"
      x:fill_(2)
      print(y:sum():item())
    ]], "EMU_PAGES=1 EMU_LAZY=1")
    assert.equal("1000.0\n", out, err)
  end)
end)

describe("a kernel that fails", function ()
  after_each(shell.clean)
  local script = [[
    local fnn = require "fnn"
    fnn.ones(2):to "cuda"
    local objects, live = fnn.memory().objects, fnn.memory("cuda").live
    print(pcall(function ()
      local x = fnn.full({ 4, 4 }, 1, { device = "cuda" })
      local y = x:softmax(2) -- line 6
      return y:sum():item()  -- line 7
    end))
    print(pcall(fnn.ones, { 2 }, { device = "cuda" }))
    print(pcall(fnn.synchronize, "cuda"))
    print(fnn.ones(3):sum():item())
    collectgarbage()
    print(fnn.memory().objects <= objects, fnn.memory("cuda").live <= live)
  ]]

  -- What is said at the failure, and of it after.
  local function failed(env)
    local out, err, code = run(script, env)
    assert.equal(0, code, err)
    local first, second, third, rest =
      out:match "^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)"
    for _, text in ipairs { second, third } do
      assert.matches("^false\t.*cuda:0: lost to this process, since a " ..
                     "kernel failed %(cudaErrorLaunchFailure%): what it " ..
                     "held is gone; start the program anew", text)
    end
    assert.equal("3.0\ntrue\ttrue\n", rest)
    return first
  end

  it("is named when something waits, as one that it may have been", function ()
    local text = failed "EMU_FAIL=softmax EMU_LAZY=1"
    assert.matches("^false\t.*:7: cuda:0: kernel .*, or one before it: " ..
                   "unspecified launch failure %(cudaErrorLaunchFailure%); " ..
                   "the card is lost to this process", text)
    assert.matches("With CUDA_LAUNCH_BLOCKING=1 in the environment", text)
  end)

  it("is named, with its line, where launches wait", function ()
    local env = "EMU_FAIL=softmax EMU_LAZY=1 CUDA_LAUNCH_BLOCKING=1"
    local text = failed(env)
    assert.matches("^false\t.*:6: cuda:0: kernel %(%w*softmax[^:]*: " ..
                   "unspecified launch failure", text)
    assert.is_nil(text:find "before it")
  end)

  it("that is refused is named, and the card goes on", function ()
    local out, err, code = run([[
      local fnn = require "fnn"
      local x = fnn.full({ 4, 4 }, 1, { device = "cuda" })
      print(pcall(x.softmax, x, 2))
      print(x:softmax(2):sum():item())
    ]], "EMU_REFUSE=softmax")
    assert.equal(0, code, err)
    assert.matches("^false\t.*softmax.*: too many resources requested for " ..
                   "launch %(cudaErrorLaunchOutOfResources%)\n4.0\n$", out)
  end)

  -- Wherever it is in a training: with a loader's thread, recorded steps, an
  -- optimizer, products.  The program goes on on the CPU, and ends.
  it("crashes nothing", function ()
    local training = [[
      local fnn = require "fnn"
      local nn, optim, data = fnn.nn, fnn.optim, fnn.data
      local set = data.TensorDataset(fnn.randn(64, 8), fnn.zeros(64, 1))
      local function train ()
        local model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5),
                                    nn.Linear(8, 1)):to "cuda"
        local opt = optim.Adam(model:parameters(), { lr = 0.1 })
        local loader = data.DataLoader(set, { batch = 8, prefetch = 2,
                                              device = "cuda" })
        local step = fnn.graph_step(function (x, y)
          opt:zero_grad()
          local loss = nn.mse_loss(model(x), y)
          loss:backward()
          opt:step()
          return loss
        end, { device = "cuda" })
        local last
        for x, y in loader do last = step(x, y) end
        return last:item()
      end
      local ok, message = pcall(train)
      assert(not ok and message:find "lost to this process", message)
      assert(not pcall(fnn.ones, { 2 }, { device = "cuda" }))
      collectgarbage()
      assert(fnn.memory("cuda").live == 0)
      print(fnn.ones(3):sum():item())
    ]]
    for i, n in ipairs { 1, 3, 7, 15, 29, 44, 60, 75, 90 } do
      local out, err, code = run(training, ("EMU_FAIL=:%d EMU_LAZY=%d"):format(
                                 n, i % 2 + 1))
      assert.equal("3.0\n", out, "at " .. n .. ": " .. err)
      assert.equal(0, code)
    end
  end)
end)
