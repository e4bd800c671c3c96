-- fit_resume_spec.lua - a run of fnn.fit that was interrupted, at any step and
-- by whatever, and goes on from a checkpoint, is the run that was not, bit for
-- bit: weights, history, optimizer, and what comes after.

local fnn = require "fnn"
local nn, optim, data, metrics = fnn.nn, fnn.optim, fnn.data, fnn.metrics
local shell = require "spec.support.shell"

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local x = fnn.normal(0, 1, { 22, 3 }, { generator = fnn.Generator(1) })
local ids = fnn.normal(0, 1, { 22, 2 }, { generator = fnn.Generator(2) })
  :argmax(2)

local path = os.tmpname()
teardown(function() os.remove(path) end)

-- Keeps one file: what fnn.checkpoints does with a folder.
local function new_store()
  os.remove(path)
  local store = { saves = {} }
  function store:save(state, info)
    fnn.save_training(path, state)
    self.saves[#self.saves + 1] = info
  end
  function store:resume(state)
    local file = io.open(path)
    if not file then return nil end
    file:close()
    return fnn.load_training(path, state)
  end
  return store
end

-- All that can be in a run: dropout, BatchNorm, shuffled data read ahead,
-- groups of batches, an average, a rate that follows the validation.
local function run(store, o)
  fnn.manual_seed(4)
  local model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Tanh(),
                              nn.Dropout(0.3), nn.Linear(6, 2))
  local ema = not o.restore and optim.Ema(model, { decay = 0.9 }) or nil
  local loader = data.DataLoader(data.TensorDataset(x, ids), {
    batch = 4, shuffle = true, seed = 8, prefetch = 2 })
  local plateau = optim.ReduceOnPlateau(0.05, { patience = 0, factor = 0.5 })
  local history = fnn.fit(model, loader, {
    epochs = o.epochs or 4, loss = nn.cross_entropy, optimizer = optim.AdamW,
    schedule = plateau, accumulate = o.accumulate, average = ema,
    metrics = { "f1", "auc", "confusion", m = function(a) return #a end,
                list = metrics.stream("recall", { average = "none" }) },
    validation = { x, ids }, on_batch = o.on_batch, on_epoch = o.on_epoch,
    early_stopping = { patience = o.patience or 9,
                       restore_best = o.restore },
    checkpoints = store and { folder = store, every = o.every }, resume = true,
  })
  local all = {}
  for i, stats in ipairs(history) do
    all[i] = {}
    for key, v in pairs(stats) do
      all[i][key] = fnn.is_tensor(v) and v:totable() or v
    end
  end
  local tensors = {}
  for i, name in ipairs(model:state_dict()) do
    tensors[i] = model:state_dict()[name]:totable()
  end
  return { all, tensors, ema and ema:state_dict()["average.0"],
           plateau:state_dict(), fnn.rand(3):totable() }, history
end

local function plain(o)
  local other = {}
  for key, v in pairs(o) do other[key] = v end
  other.every = nil
  return run(nil, other)
end

-- Runs to the end, each time from where it was stopped by an error or by
-- on_batch, after those steps.
local function in_parts(o, places, how)
  local store, result, history = new_store(), nil, nil
  local at = 1
  o.on_batch = function(step)
    if step ~= places[at] then return end
    at = at + 1
    if how == "error" then error("lightning", 0) end
    return false
  end
  repeat
    local ok, found, list = pcall(run, store, o)
    if not ok then
      assert.equal("lightning", found)
    else
      result, history = found, list
    end
  until ok and history.stopped ~= "on_batch"
  assert.equal(#places + 1, at)
  return result, store, history
end

-- A resumed run has no option resume = true without checkpoints.
local real_fit = fnn.fit
local function lenient()
  fnn.fit = function(model, set, o)
    if not o.checkpoints then o.resume = nil end
    return real_fit(model, set, o)
  end
end

describe("fnn.fit's checkpoints", function()
  setup(lenient)
  teardown(function() fnn.fit = real_fit end)

  it("resume a run that ended in the middle of an epoch", function()
    local wanted = plain {}
    -- An epoch has 6 batches: at its begin, middle and end, and twice.
    for _, places in ipairs { { 1 }, { 6, 7, 15 }, { 24 } } do
      assert.same(wanted, (in_parts({}, places, "stop")))
    end
  end)

  it("resume a run that an error ended, from the last file", function()
    local wanted = plain {}
    for _, every in ipairs { 1, 4 } do
      assert.same(wanted, (in_parts({ every = every }, { 2, 9, 13 }, "error")))
    end
    assert.same(wanted, (in_parts({}, { 2, 9, 13 }, "error")))
  end)

  it("are written between groups of batches", function()
    -- Groups of 4 and 2 batches.
    local wanted = plain { accumulate = 4 }
    assert.same(wanted, (in_parts({ accumulate = 4, every = 1 }, { 1, 2, 5 },
                                  "stop")))
  end)

  it("know what was best, and that it was enough", function()
    local o = { restore = true, patience = 2, epochs = 12 }
    local wanted, whole = plain(o)
    assert.equal("early_stopping", whole.stopped)
    local found, _, history = in_parts(o, { 8, 21 }, "stop")
    assert.same(wanted, found)
    assert.equal(whole.best_epoch, history.best_epoch)
  end)

  it("of a run that is over give it back, or let it go on", function()
    local store = new_store()
    local wanted = run(store, { epochs = 2 })
    local saves = #store.saves
    local again, history = run(store, { epochs = 2 })
    for i = 1, 4 do assert.same(wanted[i], again[i]) end
    assert.equal(saves, #store.saves)
    assert.equal(2, #history)
    assert.same(plain { epochs = 4 }, (run(store, { epochs = 4 })))
  end)

  it("say where they are", function()
    local store = new_store()
    run(store, { epochs = 2, every = 4 })
    assert.same({ { step = 4, epoch = 0 }, { step = 6, epoch = 1 },
                  { step = 8, epoch = 1 }, { step = 12, epoch = 2 } },
                store.saves)
  end)

  it("want the batches that were given", function()
    local store = new_store()
    local function go(n, stop)
      local function batches()
        local i = 0
        return function()
          i = i + 1
          if i <= n then return x, x end
        end
      end
      return fnn.fit(nn.Linear(3, 3), batches, {
        epochs = 2, loss = nn.mse, checkpoints = store, resume = true,
        on_batch = function(step) return step < stop end })
    end
    assert.equal(3, go(5, 8).partial.batches)
    raises("fit: the data has 2 batches in epoch 1, and 3 were given when it "
           .. "was left", go, 2, 99)
    assert.equal(10, go(5, 99).steps)
  end)

  it("are of a run, and not of another", function()
    local store = new_store()
    run(store, { epochs = 1 })
    raises("fit: the checkpoint is of a run with accumulate = 1, this one " ..
           "has 2: resume with the same data and options", run, store,
           { accumulate = 2 })
    local function other(o)
      o.epochs, o.loss, o.checkpoints, o.resume = 1, nn.mse_loss, store, true
      return fnn.fit(nn.Linear(3, 3), { x, x }, o)
    end
    store = new_store()
    other { batch_size = 11, seed = 1 }
    raises("of a run with seed = 1, this one has 2", other,
           { batch_size = 11, seed = 2 })
    raises("of a run with shuffle = true, this one has false", other,
           { batch_size = 11, shuffle = false })
    raises("of a run with batch_size = 11, this one has 12", other,
           { batch_size = 12, seed = 1 })
    fnn.save_training(path, { model = nn.Linear(1, 1) })
    raises("no 'average' in it", run, store, {})
    raises("fit: option 'checkpoints': metric 'own' has no state_dict",
           fnn.fit, nn.Linear(3, 2), { x, x }, {
             loss = nn.mse, checkpoints = new_store(),
             metrics = { own = { add = print, value = print,
                                 reset = tostring } } })
  end)
end)

describe("a program that fits and is killed", function()
  teardown(shell.clean)

  it("ends as one that is not", function()
    local script = shell.write [[
      local fnn = require "fnn"
      local nn, folder, kill = fnn.nn, arg[1], tonumber(arg[2])
      fnn.manual_seed(1)
      local model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5),
                                  nn.Linear(4, 1))
      local x = fnn.randn(40, 2)
      local store = {}
      function store:save(state) fnn.save_training(folder, state) end
      function store:resume(state)
        if io.open(folder) then return fnn.load_training(folder, state) end
      end
      local history = fnn.fit(model, { x, x:sum(2, { keepdim = true }) }, {
        epochs = 3, batch_size = 4, loss = nn.mse, resume = true,
        checkpoints = { folder = store, every = 3 },
        on_batch = function(step)
          if step == kill then os.exit(9, false) end
        end,
      })
      for _, p in ipairs(model:parameters()) do
        print(table.concat(p:detach():reshape(-1):totable(), " "))
      end
      for _, stats in ipairs(history) do print(stats.loss) end
    ]]
    local function program(step)
      local out, _, status = shell.run(table.concat({ shell.FNN, script, path,
                                                      step }, " "))
      return out, status
    end
    os.remove(path)
    local wanted = program(0)
    assert.matches("%d\n$", wanted)
    os.remove(path)
    for _, step in ipairs { 2, 14, 29 } do assert.equal("", program(step)) end
    assert.equal(wanted, program(0))
  end)
end)

describe("fnn.fit in a folder of fnn.checkpoints", function()
  local folder
  setup(function() folder = shell.folder() end)
  teardown(shell.clean)

  local function fit(o, losses)
    local model = nn.Linear(3, 2, { generator = fnn.Generator(1) })
    local at = 0
    o.loss = function(out)
      local l = out:square():mean()
      if model.training then return l end
      at = at + 1
      return l * 0 + (losses or { 5, 4, 1, 3 })[at]
    end
    local some = x:narrow(1, 1, 11)
    o.batch_size, o.validation, o.epochs = 11, { some, some }, o.epochs or 4
    return fnn.fit(model, { x, x }, o)
  end

  it("keeps the last ones and the best", function()
    local place = folder .. "/a"
    fit { checkpoints = { folder = place, keep = 1, best = true, every = 1 } }
    local kept = fnn.checkpoints(place, { best = "val_loss" })
    assert.equal(2, #kept)
    local _, values = kept:latest()
    assert.equal(8, values.step)
    _, values = kept:best()
    assert.same({ 6, 3, 1 }, { values.step, values.epoch, values.val_loss })
  end)

  it("tells what fnn.checkpoints gave which is the best", function()
    local kept = fnn.checkpoints(folder .. "/f", { keep = 1,
                                                   best = "val_loss" })
    fit { checkpoints = kept }
    local _, values = kept:best()
    assert.same({ 6, 3, 1 }, { values.step, values.epoch, values.val_loss })
    kept = fnn.checkpoints(folder .. "/g", { best = "val_los" })
    raises("no 'val_los' to follow (did you mean 'val_loss'?)", fit,
           { checkpoints = kept })
    raises("keep and mode are for a folder", fit,
           { checkpoints = { folder = kept, keep = 1 } })
  end)

  it("goes on amid an epoch with the metrics that have counted", function()
    local place = folder .. "/e"
    local function stop() return false end
    local function one() return 1 end
    fit { checkpoints = place, metrics = { m = one }, on_batch = stop }
    raises("the checkpoint is amid an epoch, in which metric 'n' has not " ..
           "counted", fit, { checkpoints = place, resume = true,
                             metrics = { m = one, n = one } })
    assert.equal(4, #fit { checkpoints = place, resume = true })
  end)

  it("goes on, begins, and does not mix two runs", function()
    local place = folder .. "/b"
    assert.equal(2, #fit { checkpoints = place, epochs = 2, resume = true })
    raises("has a run already: option 'resume' goes on with it, else take " ..
           "another folder", fit, { checkpoints = place })
    local history = fit { checkpoints = place, epochs = 3, resume = true }
    assert.equal(3, #history)
    assert.equal(6, history.steps)
  end)

  it("stops for Ctrl-C, once, with a checkpoint", function()
    local script = shell.write [[
      local fnn = require "fnn"
      local nn = fnn.nn
      local x = fnn.ones(40, 2)
      local also = 0
      fnn.on_interrupt(function() also = also + 1 end)
      local history = fnn.fit(nn.Linear(2, 2), { x, x }, {
        epochs = 3, batch_size = 4, loss = nn.mse, resume = true,
        checkpoints = arg[1], verbose = true,
        on_batch = function(step)
          if step ~= 13 or not arg[2] then return end
          os.execute "(sleep 0.1; kill -INT $PPID) &"
          local start = fnn.clock()  -- os.execute itself is deaf to it
          while also == 0 and fnn.clock() - start < 5 do end
        end,
      })
      print(history.stopped, #history, history.steps, also)
    ]]
    local command = table.concat({ shell.FNN, script, folder .. "/c" }, " ")
    local out, errors = shell.run(command .. " interrupted")
    assert.matches("^interrupted\t1\t13\t1\n$", out)
    assert.matches("^epoch 1 of 3  loss [%d.e-]+  %d+%.%d s\n$", errors)
    out = shell.run(command)
    assert.equal("nil\t3\t30\t0\n", out)
  end)
end)
