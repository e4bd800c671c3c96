-- fit.lua - trains a model: the loop that every script would write, over
-- public functions alone.
--
--   local history = fnn.fit(model, train, { epochs = 5, loss =
--     nn.cross_entropy, metrics = { "accuracy" } })
--
-- Its parts are in fit/: options.lua reads what it is told, source.lua gives
-- batches, step.lua learns from one, means.lua counts, watch.lua tells when it
-- is enough, run.lua keeps the place, report.lua speaks.

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"
local options = load "fit/options"
local history = load "fit/history"
local means = load "fit/means"
local report = load "fit/report"
local source = load "fit/source"
local steps = load "fit/step"
local runs = load "fit/run"
local watch = load "fit/watch"

local getmetatable, ipairs, pairs = getmetatable, ipairs, pairs
local select, setmetatable, type = select, setmetatable, type
local unpack = table.unpack
local raise, described, method = module.raise, module.described,
                                 options.method

local glances = 50  -- steps between two looks at the loss

-- Where batches go: to the option's device, else to the model's; nil for a
-- model that is on several, or nowhere.
local function device_of (model, o)
  if o.device then return o.device end
  local found
  for _, list in ipairs { model:parameters(), model:buffers() } do
    for _, x in ipairs(list) do
      if found and x:device() ~= found then return nil end
      found = x:device()
    end
  end
  return found
end

-- Raises where what was given is not model, data, options: who comes from
-- elsewhere gives inputs and targets apart, or the loss by its place.
local function check_call (name, model, set, given, ...)
  local form = " (the call is fnn." .. name .. "(model, { x, y }, { loss = " ..
               "nn.cross_entropy }))"
  if module.core.kind(model) ~= "module" then
    raise("%s: expected a model, got %s%s", name, described(model), form)
  end
  if fnn.is_tensor(set) and fnn.is_tensor(given) then
    raise("%s: inputs and targets go in one table, got two tensors%s", name,
          form)
  end
  if given ~= nil and (type(given) ~= "table" or getmetatable(given)) then
    raise("%s: expected a table of options after the data, got %s%s", name,
          described(given), form)
  end
  if select("#", ...) > 0 then
    raise("%s: expected at most 3 arguments, got %d%s", name,
          3 + select("#", ...), form)
  end
end

-- {======================================================
-- Evaluation
-- =======================================================

-- fnn.evaluate(model, data, { loss =, metrics =, ... }): the mean loss and the
-- metrics over the data, without training.
local function evaluate (model, set, given, ...)
  check_call("evaluate", model, set, given, ...)
  local o = options.read("evaluate", given)
  local seen, modes = means.new(means.streams("evaluate", o.metrics)), {}
  for _, m in ipairs(model:modules()) do modes[m] = m.training end
  local _ <close> = setmetatable({}, { __close = function ()
    -- Each part as it was, also when something raises.
    for m, training in pairs(modes) do m.training = training end
  end })
  model:eval()
  fnn.no_grad(function ()
    local batches = source.of("evaluate", set, o, false, device_of(model, o))
    batches.start(0, 0)
    local some
    for batch in batches.next do
      some = true
      local output, loss = steps.forward(model, batch, o)
      if o.loss then steps.check_loss("evaluate", loss) end
      seen.add(steps.count(batch, o), loss, output,
               unpack(batch, #batch - o.targets + 1))
    end
    if not some then raise("evaluate: the data has no batches") end
  end)
  return seen.into({})
end

-- What the validation of an epoch gives, as val_NAME.
local function validate (run, stats)
  local o = run.o
  if not o.validation then return end
  local metrics = {}
  for _, entry in ipairs(run.means.list) do metrics[entry[1]] = entry[2] end
  local function look ()
    return evaluate(run.model, o.validation, {
      loss = o.loss, metrics = metrics, device = o.device,
      targets = o.targets, autocast = o.autocast, batch_size = o.batch_size,
    })
  end
  local found = o.average and o.average:averaged(look) or look()
  for key, v in pairs(found) do stats["val_" .. key] = v end
end

-- }======================================================

-- {======================================================
-- Making a run
-- =======================================================

-- Whether v is called to make an optimizer: optim.Adam, a class of a script.
local function is_maker (v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local function optimizer_of (model, o)
  local make = o.optimizer or optim.AdamW
  if is_maker(make) then
    return make(model:parameters(), { lr = o.lr or nil })
  end
  if o.lr then
    raise("fit: option 'lr' is for an optimizer that fit makes; this one " ..
          "has its own")
  end
  local own = {}
  if not method(make, "parameters") then return make end
  for _, p in ipairs(model:parameters()) do own[p] = true end
  for _, p in ipairs(make:parameters()) do
    if own[p] then return make end
  end
  raise("fit: option 'optimizer': it has none of the model's parameters")
end

local function new_run (model, set, o)
  if o.device then model:to(o.device) end
  local device = device_of(model, o)
  local list = means.streams("fit", o.metrics)
  if o.validation then  -- not only after an epoch
    source.of("fit: option 'validation'", o.validation, o, false, device)
  end
  if o.autocast == "f16" and not o.scaler then o.scaler = optim.GradScaler() end
  local opt = optimizer_of(model, o)
  local run = {
    model = model, opt = opt, o = o, device = device, epoch = 0, batch = 0,
    step = 0, history = history.new(), means = means.new(list),
    source = source.of("fit", set, o, o.shuffle, device),
    schedule = o.schedule and optim.scheduler(opt, o.schedule),
    report = report.new(o),
    seen = { model = model, optimizer = opt },  -- what callbacks are shown
  }
  run.stop = o.early_stopping and watch.stopper(model, o, list)
  run.monitor = watch.name_of("monitor", o, list)
  runs.open(run, list)
  return run
end

-- What callbacks are shown of the run.
local function shown (run)
  local seen = run.seen
  seen.epoch, seen.batch, seen.step = run.epoch, run.batch, run.step
  return seen
end

-- }======================================================

-- {======================================================
-- The loop
-- =======================================================

-- Raises when the mean loss is no number to go on with.
local function check_loss (run, loss)
  if loss and loss - loss ~= 0 then
    raise("fit: the loss of epoch %d of %d is %s (step %d): the data may " ..
          "hold such numbers, or the rate be too high (option 'clip' bounds " ..
          "gradients)", run.epoch + 1, run.o.epochs,
          loss ~= loss and "nan" or loss > 0 and "inf" or "-inf", run.step)
  end
end

-- What there is to do after a step, besides the next one.
local function after_step (run)
  local o, step = run.o, run.step
  run.report.batch(run.batch, run.source.length)
  local logs = o.log and o.log_every and step % o.log_every == 0
  if logs or o.on_batch or step % glances == 0 then
    local loss = run.means.loss()
    check_loss(run, loss)
    if logs then run.report.step(step, loss, run.lr) end
    if o.on_batch and o.on_batch(step, loss, shown(run)) == false then
      run.stopped = "on_batch"
    end
  end
  if run.interrupted then run.stopped = "interrupted" end
  local p, last = o.checkpoints, run.batch == run.source.length
  local due = p and p.every and step % p.every == 0
  if run.stopped or due and not last then run.save() end
end

-- The rest of an epoch; false if it was stopped before its end.
local function train (run)
  local o, batches = run.o, run.source
  if run.batch == 0 then run.means.reset() end
  run.report.begin(run.epoch + 1)
  if not run.model.training then run.model:train() end
  batches.start(run.epoch, run.batch)
  for batch in batches.next do
    if run.schedule then
      run.lr = run.schedule(o.schedule_by == "epoch" and run.epoch or run.step)
    end
    run.batch = run.batch + steps.learn(run.model, run.opt, o, batch,
                                        batches.next, run.means)
    run.step = run.step + 1
    after_step(run)
    if run.stopped then return false end
  end
  if run.batch == 0 then
    raise("fit: epoch %d of %d has no batches%s", run.epoch + 1, o.epochs,
          run.epoch > 0 and ": what gives batches must begin anew when it " ..
          "is asked for another epoch" or "")
  end
  run.report.pause(batches.length)
  return true
end

-- What an epoch is followed by.
local function after_epoch (run)
  local o = run.o
  local stats = { epoch = run.epoch + 1, lr = run.lr }
  run.means.into(stats)
  check_loss(run, stats.loss)
  validate(run, stats)
  if method(o.schedule, "update") then
    o.schedule:update(watch.value_of("schedule", stats, run.monitor))
  end
  run.epoch, run.batch = run.epoch + 1, 0
  run.history[run.epoch] = stats
  if run.stop and run.stop.update(stats) then
    run.stopped, run.ended = "early_stopping", true
  end
  run.report.epoch(stats, run.step)
  if o.on_epoch and o.on_epoch(run.epoch, stats, shown(run)) == false then
    run.stopped = run.stopped or "on_epoch"
  end
  if run.interrupted then run.stopped = run.stopped or "interrupted" end
  run.save(stats)
end

-- What is left of an epoch that did not end.
local function partial (run)
  if run.batch == 0 then return nil end
  local stats = run.means.into { epoch = run.epoch + 1, lr = run.lr }
  stats.batches = run.batch
  return stats
end

-- fnn.fit(model, data, options): trains, and returns what was seen in each
-- epoch that ran.
local function fit (model, set, given, ...)
  check_call("fit", model, set, given, ...)
  local run = new_run(model, set, options.read("fit", given))
  local _ <close> = runs.on_interrupt(function () run.interrupted = true end)
  while run.epoch < run.o.epochs and not run.ended and not run.stopped do
    if train(run) then after_epoch(run) else run.report.pause() end
  end
  if run.ended then run.stopped = "early_stopping" end
  history.tell(run.history, "stopped", run.stopped)
  history.tell(run.history, "steps", run.step)
  history.tell(run.history, "partial", partial(run))
  if run.stop and run.stopped ~= "interrupted" then
    history.tell(run.history, "best_epoch", run.stop.finish())
  end
  model:eval()
  return run.history
end

-- }======================================================

return { fit = fit, evaluate = evaluate }
