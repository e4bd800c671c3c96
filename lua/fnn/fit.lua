-- fit.lua - trains a model: the loop that every script would write, over
-- public functions alone.
--
--   local history = fnn.fit(model, train, { epochs = 5, loss =
--     nn.cross_entropy, metrics = { accuracy = fnn.metrics.accuracy } })

local fnn, load = ...
local optim, data = fnn.optim, fnn.data
local module = load "nn/module"

local getmetatable, ipairs, pairs, type = getmetatable, ipairs, pairs, type
local setmetatable, tostring = setmetatable, tostring
local math_type, unpack = math.type, table.unpack
local format = string.format
local raise, described = module.raise, module.described

-- {======================================================
-- Options
-- =======================================================

local defaults = {
  epochs = 1, batch_size = false, shuffle = true, seed = false,
  loss = false, optimizer = false, lr = false, schedule = false,
  clip = false, validation = false, metrics = {}, callback = false,
  device = false, progress = true,
}

local evaluate_defaults = { batch_size = false, loss = false, metrics = {},
                            device = false }

local reserved = { epoch = true, loss = true, lr = true }

local function callable (f)
  return type(f) == "function" or type(f) == "table" or type(f) == "userdata"
end

local function check (name, o)
  if o.epochs and (math_type(o.epochs) ~= "integer" or o.epochs < 0) then
    raise("%s: option 'epochs': expected an integer of 0 or more, got %s",
          name, tostring(o.epochs))
  end
  if not callable(o.loss) and (name == "fit" or o.loss) then
    raise("%s: option 'loss': expected a function of outputs and targets, " ..
          "nn.cross_entropy for one, got %s", name,
          o.loss and described(o.loss) or "none")
  end
  if type(o.metrics) ~= "table" then
    raise("%s: option 'metrics': expected functions by name, got %s", name,
          described(o.metrics))
  end
  for key, f in pairs(o.metrics) do
    if reserved[key] then
      raise("%s: option 'metrics': '%s' is no name for one: it has another " ..
            "meaning", name, key)
    end
    if type(key) ~= "string" or not callable(f) then
      raise("%s: option 'metrics': expected functions by name, got %s at %s",
            name, described(f), tostring(key))
    end
  end
end

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

-- What is trained with as a loader: one already, a dataset, or tensors of as
-- many rows, the targets last.
local function loader_of (name, set, o, shuffle, device)
  if type(set) == "table" and getmetatable(set) == nil and
     fnn.is_tensor(set[1]) then
    set = data.TensorDataset(unpack(set))
  elseif type(set) ~= "table" and type(set) ~= "userdata" then
    raise("%s: expected a dataset, a loader or { x, y }, got %s", name,
          described(set))
  elseif set.epoch then
    if name == "fit" and (o.batch_size or o.seed or not shuffle) then
      raise("%s: a loader has its own batches and order: options " ..
            "'batch_size', 'shuffle' and 'seed' are for datasets", name)
    end
    return set
  end
  return data.DataLoader(set, {
    batch = o.batch_size or 32, shuffle = shuffle, seed = o.seed or 0,
    device = device,
  })
end

-- Whether v is called to make an optimizer: optim.Adam, a class of a script.
local function is_maker (v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local function optimizer_of (model, o)
  local make = o.optimizer or optim.AdamW
  if not is_maker(make) then
    if o.lr then
      raise("fit: option 'lr' is for an optimizer that fit makes; this one " ..
            "has its own")
    end
    return make
  end
  return make(model:parameters(), { lr = o.lr or nil })
end

-- }======================================================

-- Running means of the loss and the metrics, an item counting once.
local function new_means (o)
  local sums, count = {}, 0
  local means = {}
  function means.add (output, target, loss)
    local n = #target
    count = count + n
    if loss then sums.loss = (sums.loss or 0) + loss:item() * n end
    for key, metric in pairs(o.metrics) do
      local v = metric(output, target)
      if fnn.is_tensor(v) then v = v:item() end
      sums[key] = (sums[key] or 0) + v * n
    end
  end
  function means.into (stats)
    for key, sum in pairs(sums) do stats[key] = sum / count end
    return stats
  end
  return means
end

-- Iterates over the batches of an epoch: lists of tensors.
local function batches (loader, epoch, device)
  local step = loader:epoch(epoch)
  return function ()
    local batch = { step() }
    if #batch == 0 then return end
    for i, x in ipairs(batch) do
      if device and fnn.is_tensor(x) then batch[i] = x:to(device) end
    end
    return batch
  end
end

-- The last tensor of a batch is the target, those before are the inputs.
local function run (model, batch)
  local n = #batch
  return model(unpack(batch, 1, n - 1)), batch[n]
end

-- fnn.evaluate(model, data, { loss =, metrics =, ... }): the means over the
-- data, without training.
local function evaluate (model, set, options)
  local o = module.options("evaluate", options, evaluate_defaults)
  check("evaluate", o)
  local means, training = new_means(o), model.training
  local _ <close> = setmetatable({}, { __close = function ()
    model:train(training)  -- as it was, also when something raises
  end })
  model:eval()
  fnn.no_grad(function ()
    local device = device_of(model, o)
    local loader = loader_of("evaluate", set, o, false, device)
    for batch in batches(loader, 0, device) do
      local output, target = run(model, batch)
      means.add(output, target, o.loss and o.loss(output, target))
    end
  end)
  return means.into({})
end

-- One step down the loss of a batch.
local function learn (model, opt, batch, o)
  opt:zero_grad()
  local output, target = run(model, batch)
  local loss = o.loss(output, target)
  loss:backward()
  if o.clip then opt:clip_grad_norm(o.clip) end
  opt:step()
  return output:detach(), target, loss
end

local function validate (model, o, stats)
  if not o.validation then return end
  local found = evaluate(model, o.validation, {
    loss = o.loss, metrics = o.metrics, device = o.device,
    batch_size = o.batch_size,
  })
  for key, v in pairs(found) do stats["val_" .. key] = v end
end

-- Raises when the mean loss of an epoch is no number to go on with.
local function check_loss (stats, o)
  local loss = stats.loss
  if loss and loss - loss ~= 0 then
    raise("fit: the loss of epoch %d of %d is %s: the data may hold such " ..
          "numbers, or the rate be too high (option 'clip' bounds gradients)",
          stats.epoch, o.epochs, loss ~= loss and "nan" or tostring(loss))
  end
end

-- One time through the data, from this step on; returns the next.
local function train (model, opt, loader, o, epoch, step, schedule, stats)
  local means, first = new_means(o), step
  local what = format("epoch %d of %d", epoch, o.epochs)
  model:train()
  for batch in batches(loader, epoch - 1, device_of(model, o)) do
    if schedule then stats.lr = schedule(step) end
    means.add(learn(model, opt, batch, o))
    step = step + 1
    if o.progress then fnn.progress(what, step - first, #loader) end
  end
  means.into(stats)
  check_loss(stats, o)
  return step
end

-- fnn.fit(model, data, options): trains, and returns what was seen in each
-- epoch that ran.
local function fit (model, set, options)
  local o = module.options("fit", options, defaults)
  check("fit", o)
  if o.device then model:to(o.device) end
  local loader = loader_of("fit", set, o, o.shuffle, device_of(model, o))
  local opt = optimizer_of(model, o)
  local schedule = o.schedule and optim.scheduler(opt, o.schedule)
  local follows = type(o.schedule) == "table" and o.schedule.update
  local history, step = {}, 0
  for epoch = 1, o.epochs do
    local stats = { epoch = epoch }
    step = train(model, opt, loader, o, epoch, step, schedule, stats)
    validate(model, o, stats)
    if follows then o.schedule:update(stats.val_loss or stats.loss) end
    history[epoch] = stats
    if o.callback and o.callback(epoch, stats) == false then break end
  end
  model:eval()
  return history
end

return { fit = fit, evaluate = evaluate }
