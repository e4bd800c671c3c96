-- fit_loop_spec.lua - what fnn.fit adds to the loop: sources of batches,
-- metrics of a whole set, accumulation, callbacks, early ends, averages, what
-- it tells.

local fnn = require "fnn"
local nn, optim, data, metrics = fnn.nn, fnn.optim, fnn.data, fnn.metrics

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local function random(shape, seed, dtype)
  return fnn.normal(0, 1, shape, { generator = fnn.Generator(seed),
                                   dtype = dtype })
end

local x, y = random({ 22, 3 }, 1), random({ 22, 2 }, 2)
local ids = y:argmax(2):clone()

local function net(dtype)
  local g = fnn.Generator(3)
  local model = nn.Sequential(nn.Linear(3, 5, { generator = g }), nn.Tanh(),
                              nn.Linear(5, 2, { generator = g }))
  return dtype and model:to(dtype) or model
end

local function fit(model, set, o)
  o.loss = o.loss or nn.mse
  return fnn.fit(model, set, o)
end

local function weights(model)
  local list = {}
  for i, p in ipairs(model:parameters()) do list[i] = p:totable() end
  return list
end

-- The largest difference between the weights of two models.
local function apart(a, b)
  local most, others = 0, b:parameters()
  for i, p in ipairs(a:parameters()) do
    most = math.max(most, (p:detach() - others[i]:detach()):abs():max():item())
  end
  return most
end

describe("fnn.fit's data", function()
  local set = data.TensorDataset(x, y)

  it("may stream: the same bits as from memory", function()
    local function run(source, o)
      local model = net()
      o.epochs = 3
      return { fit(model, source, o), weights(model) }
    end
    local function loader()
      return data.DataLoader(set, { batch = 4, shuffle = true, seed = 9 })
    end
    local wanted = run(set, { batch_size = 4, seed = 9 })
    assert.same(wanted, run({ x, y }, { batch_size = 4, seed = 9 }))
    assert.same(wanted, run(loader(), {}))
    -- What has next, start and cursor, and does not know its length.
    local inner = loader()
    local stream = setmetatable({}, { __index = {
      start = function(_, ...) inner:start(...) end,
      next = function() return inner:next() end,
      cursor = function() return inner:cursor() end,
    } })
    assert.same(wanted, run(stream, {}))
    -- A function of the epoch, from 0, that gives what a for loop takes.
    assert.same(wanted, run(function(epoch)
      return set:batches(4, { shuffle = true, seed = 9, epoch = epoch })
    end, {}))
  end)

  it("begins anew in each epoch", function()
    local batches = set:batches(4)
    raises("fit: epoch 2 of 3 has no batches: what gives batches must begin " ..
           "anew", fit, net(), function() return batches end, { epochs = 3 })
    raises("fit: the data gave nil for epoch 0: expected a function", fit,
           net(), function() end, {})
  end)

  it("may have several targets and outputs", function()
    local Two = nn.module "Two"
    function Two:init() self.a, self.b = net(), net() end
    function Two:forward(v) return { self.a(v), self.b(v) } end
    local seen
    local history = fit(Two(), { x, y, ids }, {
      targets = 2, batch_size = 22,
      loss = function(out, a, b)
        return nn.mse(out[1], a) + nn.cross_entropy(out[2], b)
      end,
      metrics = { right = function(out, _)
        seen = out[1]:has_graph()
        return metrics.accuracy(out[2], ids)
      end },
      validation = { x, y, ids },
    })
    assert.is_false(seen)
    assert.is_number(history[1].val_right)
  end)
end)

describe("fnn.fit's metrics", function()
  it("are of the whole set, not means of batches", function()
    local model = net()
    local o = { loss = nn.cross_entropy, batch_size = 5, metrics = {
      "f1", "auc", area = metrics.auc, p = metrics.precision, "confusion",
      top = metrics.stream("top_k", { k = 1 }),
    } }
    local found = fnn.evaluate(model, { x, ids }, o)
    local out = model(x)
    assert.equal(metrics.f1(out, ids), found.f1)
    assert.equal(metrics.auc(out, ids), found.auc)
    assert.equal(found.auc, found.area)
    assert.equal(metrics.precision(out, ids), found.p)
    assert.equal(metrics.accuracy(out, ids), found.top)
    assert.same(metrics.confusion(out, ids):totable(),
                found.confusion:totable())
    assert.near(nn.cross_entropy(out, ids):item(), found.loss, 1e-6)
    -- In batches as at once, exactly.
    for _, size in ipairs { 22, 7, 1 } do
      o.batch_size = size
      local again = fnn.evaluate(model, { x, ids }, o)
      for name, v in pairs(found) do
        if name ~= "loss" and name ~= "confusion" then
          assert.equal(v, again[name], name)
        end
      end
    end
    o.epochs, o.validation, o.lr, o.optimizer = 1, { x, ids }, 0, optim.SGD
    local stats = fnn.fit(model, { x, ids }, o)[1]
    assert.equal(found.f1, stats.val_f1)
    assert.equal(found.auc, stats.auc)  -- of a rate of 0
  end)

  it("get all targets, as the loss does", function()
    local history = fnn.fit(net(), { x, y, y * 3 }, {
      targets = 2, loss = function(out, a, b) return nn.mse(out, a + b) end,
      metrics = { ratio = function(_, a, b) return (b / a):mean():item() end }
    })
    assert.near(3, history[1].ratio, 1e-5)
  end)

  it("may be objects of a script", function()
    local count = { n = 0 }
    function count:reset() self.n = 0 end
    function count:add(output) self.n = self.n + #output end
    function count:value() return self.n end
    local history = fit(net(), { x, y }, { epochs = 2, batch_size = 4,
                                           metrics = { rows = count } })
    assert.same({ 22, 22 }, history:column "rows")
    count.reset = nil
    raises("fit: option 'metrics': the object at rows has no method reset",
           fit, net(), { x, y }, { metrics = { rows = count } })
  end)
end)

describe("fnn.fit's accumulation", function()
  it("is the larger batch, the last group weighed by its items", function()
    for _, case in ipairs { { 4, 3, 12 }, { 2, 2, 4 }, { 5, 5, 25 } } do
      local a, b = net "f64", net "f64"
      local u, v = x:to "f64", y:to "f64"
      local o = { epochs = 2, shuffle = false, lr = 0.1, optimizer = optim.SGD,
                  clip = 0.5 }
      o.batch_size, o.accumulate = case[1], case[2]
      local one = fit(a, { u, v }, o)
      o.batch_size, o.accumulate = case[3], 1
      local two = fit(b, { u, v }, o)
      assert.is_true(apart(a, b) < 1e-12)
      assert.near(two[2].loss, one[2].loss, 1e-12)
      assert.equal(two.steps, one.steps)
    end
  end)
end)

describe("fnn.fit's bounds on gradients", function()
  it("are of the norm, or of each number", function()
    local model, loop = net(), net()
    fit(model, { x, y * 100 }, { batch_size = 22, clip_value = 0.01, lr = 1,
                                 optimizer = optim.SGD, shuffle = false })
    local opt = optim.SGD(loop, { lr = 1 })
    nn.mse(loop(x), y * 100):backward()
    opt:clip_grad_value(0.01)
    opt:step()
    assert.same(weights(loop), weights(model))
  end)
end)

describe("fnn.fit's callbacks", function()
  it("tell of each step, and end the run in the middle", function()
    local calls, places = {}, {}
    local o = { epochs = 3, batch_size = 5, shuffle = false,
                optimizer = optim.SGD, lr = 0 }
    o.on_batch = function(step, loss, run)
      calls[#calls + 1] = loss
      places[#places + 1] = ("%d:%d:%d"):format(run.epoch, run.batch, run.step)
      return step < 7
    end
    local model = net()
    local history = fit(model, { x, y }, o)
    assert.same({ "0:1:1", "0:2:2", "0:3:3", "0:4:4", "0:5:5", "1:1:6",
                  "1:2:7" }, places)
    assert.near(nn.mse(model(x), y):item(), calls[5], 1e-6)
    assert.near(nn.mse(model(x:narrow(1, 1, 5)), y:narrow(1, 1, 5)):item(),
                calls[6], 1e-6)
    assert.equal("on_batch", history.stopped)
    assert.equal(1, #history)
    assert.equal(7, history.steps)
    assert.equal(2, history.partial.epoch)
    assert.equal(2, history.partial.batches)
    assert.equal(calls[7], history.partial.loss)
  end)

  it("are shown the optimizer", function()
    fit(net(), { x, y }, { on_epoch = function(epoch, _, run)
      assert.equal(1, epoch)
      assert.is_number(run.optimizer:learning_rate())
      assert.equal(run.step, 1)
    end })
  end)
end)

describe("fnn.fit's early stopping", function()
  -- Validation losses as they are wished, by a loss that knows where it is.
  local function run(values, o)
    local model, epoch = nn.Linear(3, 2), 0
    o.epochs, o.batch_size, o.validation = #values, 22, { x, y }
    o.lr, o.optimizer = 0.1, optim.SGD
    local kept = {}
    o.loss = function(out)
      if model.training then return out:square():mean() end
      epoch = epoch + 1
      kept[epoch] = weights(model)
      return fnn.tensor(values[epoch])
    end
    return fit(model, { x, y }, o), model, kept
  end

  it("waits, and can go back to what was best", function()
    local values = { 5, 3, 4, 2.9, 3.5, 3.1, 1 }
    local history, model, kept = run(values, { early_stopping = {
      patience = 2, restore_best = true } })
    assert.equal("early_stopping", history.stopped)
    assert.equal(6, #history)
    assert.equal(4, history.best_epoch)
    assert.same(kept[4], weights(model))
    history, model, kept = run(values, { early_stopping = 2 })
    assert.equal(6, #history)
    assert.same(kept[6], weights(model))
    assert.equal(7, #run(values, { early_stopping = 3 }))
  end)

  it("wants a little more than nothing", function()
    local values = { 5, 4.95, 4.9, 4.85, 4.8 }
    assert.equal(3, #run(values, { early_stopping = {
      patience = 2, min_delta = 0.3 } }))
    assert.equal(5, #run(values, { early_stopping = {
      patience = 2, min_delta = 0.06 } }))
  end)

  it("knows what is better the more it is", function()
    local shares = { 0.2, 0.5, 0.4, 0.3, 0.9 }
    local at = 0
    local history = fit(net(), { x, y }, {
      epochs = 5, early_stopping = { patience = 2, monitor = "share" },
      mode = "max", metrics = { share = function()
        at = at + 1
        return shares[at]
      end } })
    assert.equal(4, #history)
    history = fit(net(), { x, ids }, {
      loss = nn.cross_entropy, epochs = 4, lr = 0, optimizer = optim.SGD,
      metrics = { right = metrics.accuracy }, monitor = "right",
      early_stopping = 1 })
    assert.equal(2, #history)
  end)
end)

describe("fnn.fit's schedule", function()
  it("goes by the epoch, too", function()
    local history = fit(net(), { x, y }, {
      epochs = 4, batch_size = 5, schedule_by = "epoch",
      schedule = optim.StepDecay(1, 2, 0.5), optimizer = optim.SGD })
    assert.same({ 1, 1, 0.5, 0.5 }, history:column "lr")
  end)
end)

describe("fnn.fit's average", function()
  it("follows each step, and is what is validated", function()
    local model, loop = net(), net()
    local ema = optim.Ema(model, { decay = 0.5 })
    local history = fit(model, { x, y }, {
      epochs = 2, batch_size = 11, shuffle = false, average = ema, lr = 0.1,
      optimizer = optim.SGD, validation = { x, y } })
    local opt = optim.SGD(loop, { lr = 0.1 })
    local own = optim.Ema(loop, { decay = 0.5 })
    for _ = 1, 2 do
      for first = 1, 22, 11 do
        opt:zero_grad()
        nn.mse(loop(x:narrow(1, first, 11)), y:narrow(1, first, 11)):backward()
        opt:step()
        own:update()
      end
    end
    assert.same(weights(loop), weights(model))
    local loss = own:averaged(function() return nn.mse(loop(x), y):item() end)
    assert.near(loss, history[2].val_loss, 1e-6)
  end)
end)

describe("fnn.fit in 16 bits", function()
  it("is the loop with autocast, and with a scaler", function()
    local model, loop = net(), net()
    local scaler = optim.GradScaler { init_scale = 1024 }
    fit(model, { x, y }, { autocast = "f16", batch_size = 22, lr = 0.1,
                           shuffle = false, epochs = 2, clip = 0.1,
                           optimizer = optim.SGD,
                           scaler = optim.GradScaler { init_scale = 1024 } })
    local opt = optim.SGD(loop, { lr = 0.1 })
    for _ = 1, 2 do
      opt:zero_grad()
      local loss = fnn.autocast(function() return nn.mse(loop(x), y) end,
                                { dtype = "f16" })
      scaler:scale(loss):backward()
      scaler:unscale(opt)
      opt:clip_grad_norm(0.1)
      scaler:step(opt)
      scaler:update()
    end
    assert.same(weights(loop), weights(model))
  end)
end)

describe("fnn.fit tells", function()
  it("a log, by epochs and every so many steps", function()
    local lines = {}
    local log = {}
    function log:scalar(name, v, step)
      assert.is_number(v)
      lines[#lines + 1] = name .. " " .. step
    end
    fit(net(), { x, y }, { epochs = 2, batch_size = 5, log = log,
                           log_every = 2, validation = { x, y },
                           schedule = optim.Constant(0.1), metrics = {
      "mae", list = { add = function() end, value = function() return {} end,
                      reset = function() end },
    }, on_epoch = function() lines[#lines + 1] = "-" end,
        loss = function(a, b) return nn.mse(a, b) end })
    assert.same({
      "batch_loss 2", "lr 2", "batch_loss 4", "lr 4", "loss 5", "mae 5",
      "val_loss 5", "val_mae 5", "lr 5", "-", "batch_loss 6", "lr 6",
      "batch_loss 8", "lr 8", "batch_loss 10", "lr 10", "loss 10", "mae 10",
      "val_loss 10", "val_mae 10", "lr 10", "-" }, lines)
  end)

  it("a line an epoch", function()
    local lines = {}
    fit(net(), { x, y }, { epochs = 2, metrics = { "mae" },
                           verbose = function(s) lines[#lines + 1] = s end })
    assert.equal(2, #lines)
    assert.matches("^epoch 2 of 2  loss [%d.e-]+  mae [%d.e-]+  %d+%.%d s$",
                   lines[2])
  end)

  it("its history, in columns and as text", function()
    local history = fit(net(), { x, y }, { epochs = 2, metrics = { "mae" } })
    assert.same({ 1, 2 }, history:column "epoch")
    assert.equal(history[2].mae, history:column "mae"[2])
    raises("history: no column 'mea' (did you mean 'mae'?)", history.column,
           history, "mea")
    assert.matches("^epoch +loss +mae\n +1 +[%d.]+ +[%d.]+\n +2",
                   tostring(history))
    assert.same({}, fit(net(), { x, y }, { epochs = 0 }):column "loss")
    assert.is_nil(history.stopped)
  end)
end)

describe("fnn.fit on a loss that is no number", function()
  it("does not wait for the end of a long epoch", function()
    local steps = 0
    raises("fit: the loss of epoch 1 of 1 is nan (step 50)", fit, net(),
           function()
             local n = 0
             return function()
               n = n + 1
               if n <= 500 then return x, y end
             end
           end, { loss = function(a, b)
             steps = steps + 1
             return nn.mse(a, b) * (steps > 20 and 0 / 0 or 1)
           end })
    assert.equal(50, steps)
  end)
end)
