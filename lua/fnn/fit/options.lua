-- options.lua - what fnn.fit and fnn.evaluate are told: defaults, checks, and
-- words for those who come with the names of other libraries.

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"

local getmetatable, ipairs, next, pairs = getmetatable, ipairs, next, pairs
local pcall, tostring, type = pcall, tostring, type
local math_type, huge = math.type, math.huge
local concat, sort = table.concat, table.sort
local find, format = string.find, string.format
local raise, described = module.raise, module.described

local options = {}

options.fit = {
  epochs = 1, batch_size = false, shuffle = true, seed = false, loss = false,
  targets = 1, optimizer = false, lr = false, schedule = false,
  schedule_by = "step", accumulate = 1, clip = false, clip_value = false,
  autocast = false, scaler = false, average = false, validation = false,
  metrics = {}, monitor = false, mode = false, early_stopping = false,
  checkpoints = false, resume = false, on_epoch = false, on_batch = false,
  log = false, log_every = false, verbose = false, device = false,
  progress = true,
}

options.evaluate = { batch_size = false, loss = false, metrics = {},
                     targets = 1, autocast = false, device = false }

local stopping = { patience = 3, min_delta = 0, monitor = false, mode = false,
                   restore_best = false }

local saving = { folder = false, every = false, keep = false, best = false,
                 mode = false }

-- What options are called elsewhere.
local elsewhere = {
  callback = "on_epoch", callbacks = "on_epoch and on_batch",
  batch = "batch_size", batchsize = "batch_size",
  num_epochs = "epochs", max_epochs = "epochs", criterion = "loss",
  loss_fn = "loss", learning_rate = "lr", scheduler = "schedule",
  lr_scheduler = "schedule", patience = "early_stopping = { patience = }",
  validation_data = "validation", valid = "validation",
  validation_split = "validation, a part that data:split made",
  grad_clip = "clip", max_norm = "clip", clipnorm = "clip",
  clipvalue = "clip_value", gradient_clip_val = "clip",
  accumulate_grad_batches = "accumulate", accumulation = "accumulate",
  checkpoint = "checkpoints", logger = "log", ema = "average",
  amp = "autocast", precision = "autocast", early_stop = "early_stopping",
}

-- {======================================================
-- Kinds of values
-- =======================================================

-- v[name] where it is a function; types of this library raise for names that
-- they do not know.
local function method (v, name)
  local kind = type(v)
  if kind ~= "table" and kind ~= "userdata" then return nil end
  local ok, f = pcall(function () return v[name] end)
  return ok and type(f) == "function" and f or nil
end
options.method = method

local function callable (f)
  local meta = getmetatable(f)
  return type(f) == "function" or type(f) == "userdata" or
         type(meta) == "table" and meta.__call ~= nil
end

local function is_count (v, least)
  return math_type(v) == "integer" and v >= least
end

local function is_positive (v)
  return math_type(v) ~= nil and v > 0 and v < huge
end

local function show (v)
  return type(v) == "string" and "'" .. v .. "'" or
         math_type(v) and tostring(v) or described(v)
end

local function expect (name, option, ok, what, v)
  if not ok then
    raise("%s: option '%s': expected %s, got %s", name, option, what, show(v))
  end
end

local function check_function (name, o, key, what)
  if o[key] then expect(name, key, callable(o[key]), what, o[key]) end
end

-- Raises for an option that has another name here.
local function check_names (name, given, defaults)
  if type(given) ~= "table" then return end
  for key in pairs(given) do
    if defaults[key] == nil and elsewhere[key] and
       defaults[elsewhere[key]:match "^[%w_]+"] ~= nil then
      raise("%s: unknown option '%s' (here it is %s)", name, tostring(key),
            elsewhere[key])
    end
  end
end

-- }======================================================

-- {======================================================
-- Checks
-- =======================================================

-- " (nn.mse_loss is one)" for the name of a function in a table.
local function meant (v, t, where)
  if type(v) ~= "string" then return "" end
  local names = {}
  for key, f in next, t do
    if callable(f) and not find(key, "^try_") then names[key] = true end
  end
  local near = names[v] and v
  for key in pairs(names) do
    if key:lower() == v:lower() and (not near or key > near) then
      near = key
    end
  end
  if near then return format(" (did you mean %s.%s?)", where, near) end
  return module.suggestion(v, names)
end

local function check_loss (name, o)
  if module.is_class(o.loss) then
    raise("%s: option 'loss': got the class %s: call it, nn.%s()", name,
          o.loss.__name, o.loss.__name)
  end
  if callable(o.loss) or name == "evaluate" and not o.loss then return end
  raise("%s: option 'loss': expected a function of outputs and targets, " ..
        "nn.cross_entropy for one, got %s%s", name,
        o.loss and show(o.loss) or "none", meant(o.loss, fnn.nn, "nn"))
end

local function check_device (name, o)
  if o.device then
    expect(name, "device", type(o.device) == "string", "cpu or cuda:N",
           o.device)
    fnn.device(o.device)  -- raises for what is none
  end
  if o.autocast then
    local t = o.autocast
    expect(name, "autocast", t == true or t == "bf16" or t == "f16",
           "true, 'bf16' or 'f16'", t)
  end
end

local function check_optimizer (o)
  local v = o.optimizer
  if v and not callable(v) and not (method(v, "step") and
                                    method(v, "zero_grad")) then
    raise("fit: option 'optimizer': expected an optimizer or what makes one, "
          .. "optim.Adam for one, got %s%s", show(v), meant(v, optim, "optim"))
  end
  if o.lr then
    expect("fit", "lr", math_type(o.lr) and o.lr >= 0,
           "a number of 0 or more (a schedule goes to 'schedule')", o.lr)
  end
end

local least = { epochs = 0, accumulate = 1, targets = 1, batch_size = 1,
                log_every = 1 }

local function check_numbers (name, o)
  for key, n in pairs(least) do
    if o[key] or options[name][key] then
      expect(name, key, is_count(o[key], n),
             format("an integer of %d or more", n), o[key])
    end
  end
  for _, key in ipairs { "clip", "clip_value" } do
    if o[key] then
      expect(name, key, is_positive(o[key]), "a number above 0", o[key])
    end
  end
end

local function check_parts (o)
  local by = o.schedule_by
  expect("fit", "schedule_by", by == "step" or by == "epoch",
         "'step' or 'epoch'", by)
  check_function("fit", o, "schedule", "a function of the step")
  check_function("fit", o, "on_epoch", "a function of epoch and stats")
  check_function("fit", o, "on_batch", "a function of step and loss")
  if o.verbose ~= true then
    check_function("fit", o, "verbose", "true, or a function of a line")
  end
  if o.log then
    expect("fit", "log", method(o.log, "scalar"),
           "what has a method scalar, fnn.log.jsonl(path) for one", o.log)
  end
  if o.average then
    expect("fit", "average", method(o.average, "averaged"),
           "an average, optim.Ema(model) for one", o.average)
  end
  if o.scaler then
    expect("fit", "scaler", method(o.scaler, "unscale"),
           "an optim.GradScaler", o.scaler)
  end
  if math_type(o.validation) then
    raise("fit: option 'validation': expected a dataset, got %s (data:split " ..
          "makes two parts of one)", tostring(o.validation))
  end
end

local function check_mode (where, mode)
  expect("fit", where, not mode or mode == "min" or mode == "max",
         "'min' or 'max'", mode)
end

-- A table of options in an option, or nil.
local function part (given, key, defaults, short)
  local v = given[key]
  if not v then return nil end
  if short and type(v) ~= "table" then v = { [short] = v } end
  return module.options("fit: option '" .. key .. "'", v, defaults)
end

local function early_stopping (o)
  local v = o.early_stopping
  local p = part({ early_stopping = v ~= true and v or v and {} },
                 "early_stopping", stopping, "patience")
  if p then
    expect("fit", "early_stopping", is_count(p.patience, 0),
           "patience as an integer of 0 or more", p.patience)
    expect("fit", "early_stopping", math_type(p.min_delta) and
           p.min_delta >= 0, "min_delta as a number of 0 or more",
           p.min_delta)
    check_mode("early_stopping", p.mode)
    if p.restore_best and o.average then
      raise("fit: option 'restore_best' would restore weights, but with " ..
            "'average' it is the average that is evaluated: choose one")
    end
  end
  return p
end

local function checkpoints (o)
  local v = o.checkpoints
  if method(v, "save") then v = { folder = v } end
  local p = part({ checkpoints = v }, "checkpoints", saving, "folder")
  if not p then
    if o.resume then
      raise("fit: option 'resume' wants 'checkpoints': the folder to look in")
    end
    return nil
  end
  expect("fit", "checkpoints", type(p.folder) == "string" or
         method(p.folder, "save"), "a folder", p.folder or nil)
  if p.every then
    expect("fit", "checkpoints", is_count(p.every, 1),
           "every as an integer of 1 or more (steps)", p.every)
  end
  check_mode("checkpoints", p.mode)
  if type(p.folder) == "string" then
    p.keep = p.keep or 3
  elseif p.keep or p.mode then
    raise("fit: option 'checkpoints': keep and mode are for a folder; what " ..
          "saves here has its own")
  end
  return p
end

-- The options given, checked and over the defaults.
function options.read (name, given)
  local defaults = options[name]
  check_names(name, given, defaults)
  local o = module.options(name, given, defaults)
  check_loss(name, o)
  check_device(name, o)
  check_numbers(name, o)
  if name == "fit" then
    check_optimizer(o)
    check_parts(o)
    check_mode("mode", o.mode)
    o.early_stopping = early_stopping(o)
    o.checkpoints = checkpoints(o)
  end
  return o
end

-- }======================================================

-- Names in order, for messages.
function options.listed (names)
  local list = {}
  for name in pairs(names) do list[#list + 1] = name end
  sort(list)
  return concat(list, ", ")
end

options.callable, options.show = callable, show
return options
