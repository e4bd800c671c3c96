-- fit_spec.lua - the training loop: what it does in what order, what it says,
-- and that the same seeds give the same bits.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

-- y = 2 x1 - x2 + 1 on 20 points.
local x = fnn.normal(0, 1, { 20, 2 }, { generator = fnn.Generator(1) })
local y = x:matmul(fnn.tensor { { 2 }, { -1 } }) + 1

local function line()
  return nn.Linear(2, 1, { generator = fnn.Generator(2) })
end

local function fit(options, model, set)
  options.loss = options.loss or nn.mse_loss
  return fnn.fit(model or line(), set or { x, y }, options)
end

describe("fnn.fit", function()
  it("takes the steps that a loop would take", function()
    local model, loop = line(), line()
    local history = fit({ epochs = 3, batch_size = 8, shuffle = false,
                          optimizer = optim.SGD, lr = 0.1 }, model)
    local opt = optim.SGD(loop:parameters(), { lr = 0.1 })
    for epoch = 1, 3 do
      local sum = 0
      for first = 1, 20, 8 do
        local n = math.min(8, 21 - first)
        opt:zero_grad()
        local loss = nn.mse_loss(loop(x:narrow(1, first, n)),
                                 y:narrow(1, first, n))
        loss:backward()
        opt:step()
        sum = sum + loss:item() * n
      end
      assert.equal(epoch, history[epoch].epoch)
      assert.near(sum / 20, history[epoch].loss, 1e-12)
    end
    assert.same(loop.weight:totable(), model.weight:totable())
    assert.same(loop.bias:totable(), model.bias:totable())
  end)

  it("learns, from tensors, datasets, loaders and a script's own set",
     function()
    local set = data.TensorDataset(x, y)
    local Own = { fields = { { shape = { 2 } }, { shape = { 1 } } } }
    Own.__index = Own
    function Own.__len() return 20 end
    function Own:get(i, to_x, to_y)
      to_x:copy_(x:select(1, i))
      to_y:copy_(y:select(1, i))
    end
    local wanted
    for _, source in ipairs { { x, y }, set, setmetatable({}, Own),
                              data.DataLoader(set, { batch = 4,
                                                     shuffle = true }) } do
      local loader = source.epoch ~= nil
      local history = fit({ epochs = 40, optimizer = optim.SGD, lr = 0.1,
                            batch_size = not loader and 4 or nil }, nil,
                          source)
      wanted = wanted or history[40].loss
      assert.equal(wanted, history[40].loss)
      assert.is_true(wanted < 1e-4)
    end
  end)

  it("gives the same bits for the same seeds", function()
    local function run(seed)
      fnn.manual_seed(5)
      local model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Tanh(),
                                  nn.Linear(8, 1))
      local history = fit({ epochs = 3, batch_size = 4, seed = seed }, model)
      return { history, model[1].weight:totable() }
    end
    local first = run(1)
    assert.same(first, run(1))
    assert.not_same(first, run(2))
  end)

  it("applies a schedule by the step, before it", function()
    local seen = {}
    local rates = {}
    local schedule = function(step)
      seen[#seen + 1] = step
      return 1 / (step + 1)
    end
    local model = line()
    local opt = optim.SGD(model:parameters(), { lr = 1 })
    fit({ epochs = 2, batch_size = 8, schedule = schedule, optimizer = opt,
          on_epoch = function(_, stats) rates[#rates + 1] = stats.lr end },
        model)
    assert.same({ 0, 1, 2, 3, 4, 5 }, seen)
    assert.same({ 1 / 3, 1 / 6 }, rates)
    assert.near(1 / 6, opt:lr(), 1e-15)
  end)

  it("tells ReduceOnPlateau the loss of each epoch", function()
    local told = {}
    local plateau = optim.ReduceOnPlateau(0.1, { patience = 0, factor = 0.5 })
    local model = line()
    local history = fit({ epochs = 4, schedule = plateau,
                          optimizer = optim.SGD,
                          validation = { x, y * 0 + 1e6 } }, model)
    for i, stats in ipairs(history) do told[i] = stats.lr end
    -- Later losses are smaller, but by less than the threshold.
    assert.equal(history[1].val_loss, plateau:state_dict().best)
    assert.same({ 0.1, 0.1, 0.05, 0.025 }, told)
  end)

  it("evaluates on the validation, in evaluation", function()
    local modes = {}
    local Spy = nn.module "Spy"
    function Spy:init() self.inner = line() end
    function Spy:forward(v)
      modes[#modes + 1] = self.training
      return self.inner(v)
    end
    local model = Spy()
    local history = fit({ epochs = 2, batch_size = 20, validation = { x, y },
                          metrics = { error = function(a, b)
                            return (a - b):abs():mean()
                          end } }, model)
    assert.same({ true, false, true, false }, modes)
    assert.is_false(model.training)
    local stats = history[2]
    assert.near(nn.mse_loss(model(x), y):item(), stats.val_loss, 1e-6)
    assert.near((model(x) - y):abs():mean():item(), stats.val_error, 1e-6)
    assert.is_number(stats.error)
    assert.is_true(stats.val_loss < stats.loss)
  end)

  it("means over the items, not over the batches", function()
    local history = fit { batch_size = 16, shuffle = false, metrics = {
      rows = function(a) return #a end } }
    assert.near((16 * 16 + 4 * 4) / 20, history[1].rows, 1e-12)
  end)

  it("ends when the callback returns false", function()
    local calls = {}
    local history = fit { epochs = 10, on_epoch = function(epoch, stats)
      calls[#calls + 1] = stats
      return epoch < 4
    end }
    assert.equal(4, #history)
    assert.same(history, calls)
    assert.equal(10, #fit { epochs = 10, on_epoch = function() end })
    assert.same({}, fit { epochs = 0 })
  end)

  it("leaves parts of the model in evaluation that are so", function()
    local model = nn.Sequential(nn.BatchNorm1d(2), line())
    local function mean() return model[1].running_mean:totable() end
    local before = mean()
    model[1]:eval()
    local seen = {}
    local function look(_, _, run)
      seen[#seen + 1] = { run.model.training, run.model[1].training }
    end
    fit({ epochs = 2, validation = { x, y }, on_epoch = look }, model)
    assert.same({ { true, false }, { true, false } }, seen)
    assert.same(before, mean())
    fit({}, model)  -- it was left in evaluation
    assert.not_same(before, mean())
  end)

  it("looks at the validation before it trains", function()
    local steps = 0
    raises("fit: option 'validation': expected a dataset, a loader or " ..
           "{ x, y }, got a string", fit,
           { validation = "test", on_batch = function() steps = 1 end })
    assert.equal(0, steps)
  end)

  it("clips gradients by their length", function()
    local model = line()
    local before = model.weight:value():clone()
    fit({ batch_size = 20, clip = 1e-3, optimizer = optim.SGD, lr = 1 }, model)
    assert.is_true((model.weight:value() - before):square():sum():item() < 1e-6)
  end)

  it("takes models of several inputs", function()
    local Add = nn.module "Add"
    function Add:init() self.inner = line() end
    function Add:forward(a, b) return self.inner(a) + b end
    local history = fit({ epochs = 2 }, Add(), { x, fnn.zeros(20, 1), y })
    assert.equal(2, #history)
  end)

  it("uses an optimizer that it is given, and goes on with it", function()
    local function run(...)
      local model = line()
      local opt = optim.Adam(model:parameters(), { lr = 0.01 })
      for _, epochs in ipairs { ... } do
        fit({ epochs = epochs, batch_size = 20, optimizer = opt,
              shuffle = false }, model)
      end
      return model.weight:totable()
    end
    assert.same(run(3), run(2, 1))
    assert.not_same(run(3), run(3, 1))
  end)

  it("lets errors through", function()
    local thrown = {}
    local ok, e = pcall(fit, { on_epoch = function() error(thrown) end })
    assert.is_false(ok)
    assert.equal(thrown, e)
  end)

  it("raises when the loss is no number to go on with", function()
    local calls = 0
    local function bad(found, wanted)
      calls = calls + 1
      return nn.mse_loss(found, wanted) * (calls > 4 and 0 / 0 or 1)
    end
    local options = { loss = bad, epochs = 3, batch_size = 16,
                      progress = false }
    assert.error_matches(function() fnn.fit(line(), { x, y }, options) end,
                         "fit: the loss of epoch 3 of 3 is nan")
    options.batch_size = 20
    options.loss = function(found, wanted)
      return nn.mse_loss(found, wanted) * math.huge
    end
    assert.error_matches(function() fnn.fit(line(), { x, y }, options) end,
                         "fit: the loss of epoch 1 of 3 is inf")
  end)

  it("says what is wrong", function()
    raises("fit: option 'loss': expected a function of outputs and targets, " ..
           "nn.cross_entropy for one, got none", fnn.fit, line(), { x, y })
    raises("fit: unknown option 'epoch' (did you mean 'epochs'?)", fit,
           { epoch = 3 })
    for key, text in pairs {
      callback = "on_epoch", criterion = "loss", learning_rate = "lr",
      validation_data = "validation", patience = "early_stopping = ",
      gradient_clip_val = "clip", batch = "batch_size",
    } do
      raises(("fit: unknown option '%s' (here it is %s"):format(key, text),
             fit, { [key] = 1 })
    end
    raises("fit: option 'loss': expected a function of outputs and targets, " ..
           "nn.cross_entropy for one, got 'mse' (did you mean nn.mse?)",
           fnn.fit, line(), { x, y }, { loss = "mse" })
    raises("got 'adam' (did you mean optim.Adam?)", fit, { optimizer = "adam" })
    raises("fit: option 'validation': expected a dataset, got 0.2 " ..
           "(data:split makes two parts of one)", fit, { validation = 0.2 })
    raises("fit: expected a list of tensors, got a table at place 1 " ..
           "(fnn.tensor makes one)", fit, {}, line(), { { 1, 2 }, { 3 } })
    raises("fit: expected a dataset, a loader or { x, y }, got a tensor", fit,
           {}, line(), x)
    raises("fit: expected a dataset, a loader or { x, y }, got a table of 1 " ..
           "tensors", fit, {}, line(), { x })
    raises("fit: a batch has 1 tensor: expected inputs and then a target " ..
           "({ x, x } learns its own input)", fit, {}, line(),
           data.TensorDataset(x))
    raises("fit: expected a model, got a table", fnn.fit, {}, { x, y },
           { loss = nn.mse_loss })
    raises("fit: the loss gave a tensor of shape (20, 1), expected one " ..
           "number: the mean over the batch", fit,
           { loss = function(a, b) return a - b end, batch_size = 20 })
    raises("fit: the loss gave a number, expected a tensor of one number",
           fit, { loss = function() return 1 end })
    raises("it has none of the model's parameters", fit,
           { optimizer = optim.SGD(line():parameters()) })
    raises("fit: epoch 1 of 1 has no batches", fit, {}, line(),
           { fnn.zeros(0, 2), fnn.zeros(0, 1) })
    raises("fit: option 'early_stopping': no 'val_loss' to follow (expected "
           .. "loss): there is no validation", fit,
           { early_stopping = { monitor = "val_loss" } })
    raises("fit: option 'early_stopping': no 'val_acuracy' to follow (did " ..
           "you mean 'val_accuracy'?)", fit,
           { early_stopping = { monitor = "val_acuracy" },
             metrics = { "accuracy" }, validation = { x, y } })
    raises("fit: option 'mode': is less of 'fun' better, or more?", fit,
           { early_stopping = { monitor = "fun" },
             metrics = { fun = function() return 1 end } })
    raises("fit: option 'early_stopping': unknown option 'patients' (did " ..
           "you mean 'patience'?)", fit, { early_stopping = { patients = 2 } })
    raises("fit: option 'resume' wants 'checkpoints'", fit, { resume = true })
    raises("fit: option 'clip': expected a number above 0, got 0", fit,
           { clip = 0 })
    raises("fit: option 'accumulate': expected an integer of 1 or more, got 0",
           fit, { accumulate = 0 })
    raises("fit: option 'schedule_by': expected 'step' or 'epoch', got " ..
           "'batch'", fit, { schedule_by = "batch" })
    raises("metrics.stream: no metric 'acuracy' (did you mean 'accuracy'?)",
           fit, { metrics = { "acuracy" } })
    raises("fit: option 'verbose': expected true, or a function of a line, " ..
           "got 1", fit, { verbose = 1 })
    raises("unknown device 'f16' (expected cpu or cuda:N)", fit,
           { device = "f16" })
    raises("fit: option 'log': expected what has a method scalar", fit,
           { log = "runs" })
    raises("fit: option 'epochs': expected an integer of 0 or more, got 1.5",
           fit, { epochs = 1.5 })
    raises("fit: expected a dataset, a loader or { x, y }, got nil",
           fnn.fit, line(), nil, { loss = nn.mse_loss })
    raises("fit: option 'lr' is for an optimizer that fit makes", fit,
           { lr = 1, optimizer = optim.SGD(line():parameters()) })
    raises("fit: a loader has its own batches and order", fit,
           { batch_size = 3 }, line(),
           data.DataLoader(data.TensorDataset(x, y)))
    raises("metrics.stream: no metric 'acc' (here it is accuracy)", fit,
           { metrics = { "acc" } })
    raises("fit: option 'metrics': two have the name 'mae'", fit,
           { metrics = { "mae", mae = fnn.metrics.mse } })
    raises("fit: option 'metrics': 'val_mae' is no name for one", fit,
           { metrics = { val_mae = "mae" } })
    raises("DataLoader: option 'seed': expected an integer", fit,
           { seed = 1.5 })
    raises("fit: option 'metrics': 'loss' is no name for one", fit,
           { metrics = { loss = print } })
    raises("fit: option 'metrics': expected functions by name, got a number " ..
           "at good", fit, { metrics = { good = 5 } })
  end)

  it("shows the call to who gives things in another order", function()
    local loss = { loss = nn.mse_loss }
    local set = data.TensorDataset(x, y)
    for name, f in pairs { fit = fnn.fit, evaluate = fnn.evaluate } do
      local form = " (the call is fnn." .. name ..
                   "(model, { x, y }, { loss = nn.cross_entropy }))"
      local function says(text, ...) raises(name .. ": " .. text, f, ...) end
      says("inputs and targets go in one table, got two tensors" .. form,
           line(), x, y)
      says("inputs and targets go in one table, got two tensors" .. form,
           line(), x, y, loss)
      says("expected a model, got a tensor" .. form, x, y, line())
      says("expected a model, got a table" .. form,
           line():parameters(), set, loss)
      says("expected a table of options after the data, got a function" ..
           form, line(), set, nn.mse_loss)
      says("expected a table of options after the data, got a number" .. form,
           line(), { x, y }, 5)
      says("expected at most 3 arguments, got 4" .. form, line(), set, loss, 5)
      says("expected a dataset, a loader or { x, y }, got a table with names",
           line(), { x = x, y = y }, loss)
    end
  end)
end)

describe("fnn.evaluate", function()
  it("gives means without training", function()
    local model = line():train()
    model.weight:set_grad(fnn.ones(1, 2))
    local before = model.weight:totable()
    local found = fnn.evaluate(model, { x, y }, { loss = nn.mse_loss,
                                                  batch_size = 7 })
    assert.near(nn.mse_loss(model(x), y):item(), found.loss, 1e-6)
    assert.same(before, model.weight:totable())
    assert.same({ { 1, 1 } }, model.weight:grad():totable())
    assert.is_true(model.training)
    assert.is_false((pcall(fnn.evaluate, model, { x, y }, { loss = error })))
    assert.is_true(model.training)
    assert.same({}, fnn.evaluate(model:eval(), { x, y }))
    assert.is_false(model.training)
  end)

  it("says what is wrong", function()
    raises("evaluate: option 'targets': expected an integer of 1 or more, " ..
           "got 'a'", fnn.evaluate, line(), { x, y }, { targets = "a" })
    raises("evaluate: option 'batch_size': expected an integer of 1 or more, "
           .. "got 0", fnn.evaluate, line(), { x, y }, { batch_size = 0 })
    raises("evaluate: option 'device': expected cpu or cuda:N, got 1",
           fnn.evaluate, line(), { x, y }, { device = 1 })
    raises("evaluate: the loss gave a number, expected a tensor of one number",
           fnn.evaluate, line(), { x, y }, { loss = function() return 1 end })
    raises("evaluate: the data has no batches", fnn.evaluate, line(),
           { fnn.zeros(0, 2), fnn.zeros(0, 1) })
    raises("evaluate: unknown option 'epochs'", fnn.evaluate, line(), { x, y },
           { epochs = 1 })
    raises("evaluate: unknown option 'criterion' (here it is loss)",
           fnn.evaluate, line(), { x, y }, { criterion = nn.mse })
  end)

  it("takes from a loader what is no tensor, and models without weights",
     function()
    local given
    local Sum = nn.module "Sum"
    function Sum:forward(v, scale)
      given = scale
      return v:sum(2, { keepdim = true }) * scale
    end
    local loader = {
      epoch = function()
        local done
        return function()
          if done then return end
          done = true
          return x, 2, x:sum(2, { keepdim = true })
        end
      end,
    }
    local o = { loss = nn.mse_loss }
    assert.near(x:sum(2):square():mean():item(),
                fnn.evaluate(Sum(), loader, o).loss, 1e-5)
    assert.equal(2, given)
  end)
end)

describe("fnn.progress", function()
  it("is nothing where nobody watches", function()
    fnn.progress("work", 1, 10)
    fnn.progress("work", 2)
    assert.is_false((pcall(fnn.progress, "work", "x")))
  end)
end)
