local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local function param (v)
  return fnn.Param(fnn.tensor({ v }, { dtype = "f64" }))
end

local path
before_each(function () path = os.tmpname() end)
after_each(function () os.remove(path) end)

describe("Ema", function ()
  it("has its closed form", function ()
    local p, d = param(2), 0.9
    local ema = optim.Ema({ p }, { decay = d })
    local want = d ^ 10 * 2
    for i = 1, 10 do
      p:set(fnn.tensor({ i / 4 }, { dtype = "f64" }))
      ema:update()
      want = want + (1 - d) * d ^ (10 - i) * (i / 4)
    end
    assert.near(want, ema:averaged(function () return p:item() end), 1e-14)
    assert.equal(2.5, p:item())
    assert.equal(10, ema:updates())
  end)

  it("swaps in and out without losing a bit", function ()
    local model = nn.Linear(3, 2)
    local ema = optim.Ema(model, { decay = 0.5 })
    local before = model.weight:detach():clone()
    model.weight:set(before + 1)
    ema:update()
    local raw = model.weight:detach():clone()
    ema:swap()
    assert.near(0.5, (model.weight - before):mean():item(), 1e-6)
    fails("swapped in", ema.update, ema)
    fails("swapped in", ema.state_dict, ema)
    ema:swap()
    assert.is_true(model.weight:eq(raw):all():item())
  end)

  it("swaps out when the function raises", function ()
    local p = param(1)
    local ema = optim.Ema({ p })
    p:set(fnn.tensor({ 3 }, { dtype = "f64" }))
    fails("stop", ema.averaged, ema, function () error "stop" end)
    assert.equal(3, p:item())
  end)

  it("is saved", function ()
    local p = param(1)
    local ema = optim.Ema({ p }, { decay = 0.75 })
    p:set(fnn.tensor({ 3 }, { dtype = "f64" }))
    ema:update():save(path)
    local other = optim.Ema({ p })
    other:load(path)
    assert.equal(1, other:updates())
    assert.equal(1.5, other:averaged(function () return p:item() end))
    assert.equal(0.75, other:groups()[1].decay)
    local swa = optim.SWA { p }
    fails("the state of Ema does not fit SWA", swa.load, swa, path)
    local two = optim.Ema { p, param(1) }
    fails("the state of 1 parameters does not fit 2", two.load, two, path)
    assert.equal("Ema of 1 parameters, 1 updates", tostring(other))
  end)

  it("checks its options", function ()
    fails("decay must be in [0, 1]", optim.Ema, { param(1) }, { decay = 2 })
    fails("unknown option 'deca'", optim.Ema, { param(1) }, { deca = 1 })
    fails("Ema: expected a model or a list of Params", optim.Ema, 1)
  end)
end)

describe("SWA", function ()
  it("is the mean of the weights at its updates", function ()
    local p = param(100)
    local swa = optim.SWA { p }
    for i = 1, 7 do
      p:set(fnn.tensor({ i * i }, { dtype = "f64" }))
      swa:update()
    end
    assert.near(20, swa:averaged(function () return p:item() end), 1e-13)
    assert.equal(49, p:item())
  end)

  it("goes on where it was saved", function ()
    local p = param(1)
    local swa = optim.SWA { p }
    swa:update()
    swa:save(path)
    local other = optim.SWA { p }
    other:load(path)
    p:set(fnn.tensor({ 4 }, { dtype = "f64" }))
    other:update()
    assert.equal(2.5, other:averaged(function () return p:item() end))
  end)
end)

describe("update_batch_norm", function ()
  local function column (...)
    return fnn.tensor({ ... }, { dtype = "f64" }):reshape(-1, 1)
  end

  it("makes statistics the mean over batches", function ()
    local norm = nn.BatchNorm1d(1, { dtype = "f64" })
    local model = nn.Sequential(norm, nn.Dropout())
    model(column(100, 200))
    model:eval()
    -- means 2 and 5, variances 2 and 18
    local set = fnn.data.TensorDataset(column(1, 3, 2, 8))
    optim.update_batch_norm(model, set:batches(2))
    assert.near(3.5, norm.running_mean:item(), 1e-12)
    assert.near(10, norm.running_var:item(), 1e-12)
    assert.equal(2, norm.num_batches_tracked:item())
    assert.is_false(model.training)
    assert.is_false(norm.training)
    optim.update_batch_norm(model, fnn.data.DataLoader(set, { batch = 4 }))
    assert.near(3.5, norm.running_mean:item(), 1e-12)
    assert.equal(1, norm.num_batches_tracked:item())
    model:train()
    model(column(0, 2)) -- the momentum is 0.1 again
    assert.near(0.9 * 3.5 + 0.1, norm.running_mean:item(), 1e-12)
  end)

  it("puts all back after an error, and checks its arguments", function ()
    local norm = nn.BatchNorm1d(1, { momentum = 0.5, dtype = "f64" })
    local set = fnn.data.TensorDataset(fnn.zeros(2, 3))
    norm:eval()
    fails("expected 1 channels, got 3", optim.update_batch_norm, norm,
          set:batches(2))
    assert.is_false(norm.training)
    assert.equal("BatchNorm1d(1, { momentum = 0.5 })",
                 tostring(norm):match "^[^)]*%)")
    fails("update_batch_norm: expected a model, got a table",
          optim.update_batch_norm, {})
    local plain = nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1, {
      track_running_stats = false,
    }))
    optim.update_batch_norm(plain, set:batches(2))
  end)
end)
