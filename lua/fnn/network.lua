-- network.lua - dense networks in a few words, over fnn.fit:
--
--   local net = fnn.Network { seed = 1 }:input_size(2):dense(8, "tanh")
--     :dense(1, "sigmoid"):loss("bce"):optimizer("adam", { lr = 0.05 })
--   net:fit({ {0, 0}, {0, 1}, {1, 0}, {1, 1} }, { 0, 1, 1, 0 },
--           { epochs = 200 })
--
-- net.model is the Sequential that it consists of.

local fnn, load, internals = ...
local nn, optim, metrics = fnn.nn, fnn.optim, fnn.metrics
local module = load "nn/module"
local json_file = load "json_file"

local ipairs, pairs, setmetatable = ipairs, pairs, setmetatable
local tostring, type, unpack = tostring, type, table.unpack
local concat, math_type = table.concat, math.type
local format, gsub = string.format, string.gsub
local raise, described = module.raise, module.described

local Network = internals.namespace({}, "fnn.Network")
local meta = { __name = "fnn.Network", __index = Network }

-- {======================================================
-- Building
-- =======================================================

local activations = {
  relu = nn.ReLU, sigmoid = nn.Sigmoid, tanh = nn.Tanh, softmax = nn.Softmax,
  linear = nn.Identity,
}

local optimizers = { sgd = optim.SGD, adam = optim.Adam, adamw = optim.AdamW }

local function choice (what, name, t)
  if not t[name] then
    local names = {}
    for key in pairs(t) do names[#names + 1] = key end
    table.sort(names)
    raise("Network: %s: expected '%s', got %s%s", what,
          concat(names, "', '"), name == nil and "nil" or
          "'" .. tostring(name) .. "'", module.suggestion(name, t))
  end
  return t[name]
end

local function size (what, n)
  if math_type(n) ~= "integer" or n < 1 then
    raise("Network: %s: expected an integer of 1 or more, got %s", what,
          tostring(n))
  end
  return n
end

-- fnn.Network([{ seed = }]): without layers yet.
local function new_network (options)
  local o = module.options("Network", options, { seed = false })
  return setmetatable({
    model = nn.Sequential(), sizes = {}, activations = {}, loss_name = "mse",
    optimizer_name = "adam", optimizer_options = {}, seed = o.seed or 0,
    generator = o.seed and fnn.Generator(o.seed) or nil,
  }, meta)
end

-- How many numbers an item has.
function Network:input_size (n)
  if #self.sizes > 0 then
    raise("Network: input_size: it is %d already", self.sizes[1])
  end
  self.sizes[1] = size("input_size", n)
  return self
end

-- A layer of n units: "relu", "sigmoid", "tanh", "softmax" or "linear".
function Network:dense (n, activation)
  if #self.sizes == 0 then
    raise "Network: dense: the input_size comes first"
  end
  size("dense", n)
  local class = choice("activation", activation or "linear", activations)
  self.model:append(nn.Linear(self.sizes[#self.sizes], n,
                              { generator = self.generator }))
  self.model:append(class())
  self.sizes[#self.sizes + 1] = n
  self.activations[#self.activations + 1] = activation or "linear"
  self.opt = nil
  return self
end

-- What each loss is of, and the last activations that it goes with: those of
-- a true value belong to the loss when it trains, which is stabler.
local losses = {
  mse = { f = nn.mse_loss },
  bce = { f = nn.bce_with_logits, last = { sigmoid = true } },
  cross_entropy = { f = nn.cross_entropy,
                    last = { softmax = true, linear = false } },
}

function Network:loss (name)
  choice("loss", name, losses)
  self.loss_name = name
  return self
end

-- "sgd", "adam" or "adamw", with the options of optim.SGD and so on.
function Network:optimizer (name, options)
  choice("optimizer", name, optimizers)
  self.optimizer_name, self.optimizer_options = name, options or {}
  self.opt = nil
  return self
end

-- }======================================================

-- {======================================================
-- Data
-- =======================================================

local function shape_text (x) return "(" .. concat(x:shape(), ", ") .. ")" end

local function as_tensor (what, v)
  if fnn.is_tensor(v) then return v end
  if type(v) ~= "table" then
    return nil, format("Network: %s: expected a tensor or a table of numbers, "
                       .. "got %s", what, described(v))
  end
  local x, message = fnn.try_tensor(v)
  if not x then
    message = gsub(message, "^[^\n]-:%d+: ", "")  -- the place is ours
    return nil, format("Network: %s: %s", what, message)
  end
  return x
end

-- Where the network is, as fit's option device or self.model:to may have it.
local function device_of (self) return self.model[1].weight:device() end

-- Rows of inputs, and whether v was one item; or nil and what is wrong.
local function inputs_of (self, v)
  if #self.activations == 0 then return nil, "Network: it has no layers yet" end
  local x, message = as_tensor("inputs", v)
  if not x then return nil, message end
  local n, single = self.sizes[1], x:ndim() == 1
  if x:ndim() < 1 or x:ndim() > 2 or x:size(-1) ~= n then
    return nil, format("Network: expected inputs (%d) or (n, %d), got %s", n,
                       n, shape_text(x))
  end
  if x:dtype() ~= "f64" then x = x:to("f32") end
  return single and x:unsqueeze(1) or x, single
end

-- Targets of n rows as the loss wants them: ids, or rows as the outputs.
local function targets_of (self, v, n)
  local y, message = as_tensor("targets", v)
  if not y then raise("%s", message) end
  local outputs = self.sizes[#self.sizes]
  local ids = self.loss_name == "cross_entropy" and y:ndim() == 1
  if y:ndim() == 1 and not ids then y = y:unsqueeze(2) end
  if y:ndim() > 2 or y:size(1) ~= n or not ids and y:size(2) ~= outputs then
    raise("Network: expected targets %s of %d rows, got %s",
          ids and "(n)" or format("(n, %d)", outputs), n, shape_text(y))
  end
  if ids and not y:eq(y:floor()):all():item() then
    raise "Network: targets: an id of a class is a whole number"
  end
  return y:to(ids and "i64" or "f32")
end

local function rows (self, x, y)
  local inputs, message = inputs_of(self, x)
  if not inputs then raise("%s", message) end
  return inputs, targets_of(self, y, #inputs)
end

-- }======================================================

-- {======================================================
-- Training
-- =======================================================

-- The model that is trained, and what of it is the loss's, or nil.
local function trained (self)
  local n = #self.model
  local last = self.activations[#self.activations]
  local fits = losses[self.loss_name].last
  if fits and fits[last] == nil then
    local names = {}
    for name in pairs(fits) do names[#names + 1] = name end
    table.sort(names)
    raise("Network: loss '%s' goes with the last activation '%s', got '%s'",
          self.loss_name, concat(names, "' or '"), last)
  end
  if not (fits and fits[last]) then return self.model end
  local layers = {}
  for i = 1, n - 1 do layers[i] = self.model[i] end
  return nn.Sequential(layers), self.model[n]
end

-- A metric of the network's outputs, which are behind the activation.
local function behind (activation, stream)
  local metric = {}
  for _, name in ipairs { "name", "value", "reset", "state_dict",
                          "load_state_dict" } do
    metric[name] = function (_, ...) return stream[name](stream, ...) end
  end
  function metric.add (_, z, y) stream:add(activation(z), y) end
  function metric.fresh () return behind(activation, stream:fresh()) end
  return metric
end

-- Option metrics as it is to be for what is trained.
local function metrics_of (activation, given)
  if not activation then return given end
  local list = {}
  for _, entry in ipairs(load("fit/means").streams("fit", given)) do
    list[entry[1]] = behind(activation, entry[2])
  end
  return list
end

-- net:fit(x, y, options): trains on rows x with targets y, by fnn.fit.
function Network:fit (x, y, options)
  local o = {}
  for key, v in pairs(options or {}) do o[key] = v end
  local inputs, targets = rows(self, x, y)
  local model, activation = trained(self)
  self.opt = self.opt or optimizers[self.optimizer_name](
    self.model:parameters(), self.optimizer_options)
  o.loss, o.optimizer = losses[self.loss_name].f, self.opt
  o.seed = o.seed or self.seed
  o.metrics = metrics_of(activation, o.metrics or {})
  if o.validation then o.validation = { rows(self, unpack(o.validation)) } end
  local history = fnn.fit(model, { inputs, targets }, o)
  self.model:eval()
  return history
end

-- The same with f(epoch, mean loss), which ends it by returning false.
function Network:fit_with (x, y, options, f)
  local o = {}
  for key, v in pairs(options or {}) do o[key] = v end
  o.on_epoch = function (epoch, stats) return f(epoch, stats.loss) end
  return self:fit(x, y, o)
end

-- }======================================================

-- {======================================================
-- Use
-- =======================================================

local function outputs_of (self, x, single)
  x = x:to(device_of(self))
  local y = fnn.no_grad(function () return self.model(x) end)
  return single and y:squeeze(1) or y
end

-- The outputs for rows x, and their targets beside them.
local function compared (self, x, y)
  local inputs, targets = rows(self, x, y)
  return outputs_of(self, inputs), targets:to(device_of(self))
end

-- The outputs for one item or for rows; raises when they do not fit.
function Network:forward (v)
  local x, single = inputs_of(self, v)
  if not x then raise("%s", single) end
  return outputs_of(self, x, single)
end

-- The same, with nil and a message when they do not fit.
function Network:predict (v)
  local x, single = inputs_of(self, v)
  if not x then return nil, single end
  return outputs_of(self, x, single)
end

-- The share of rows that it gets right.
function Network:accuracy (x, y)
  return metrics.accuracy(compared(self, x, y))
end

-- How often each actual class was predicted as each: counts (actual,
-- predicted).
function Network:confusion_matrix (x, y)
  return metrics.confusion(compared(self, x, y))
end

function meta:__tostring ()
  local parts = { tostring(self.sizes[1] or "?") }
  for i, name in ipairs(self.activations) do
    parts[i + 1] = self.sizes[i + 1] .. " " .. name
  end
  return format("Network %s, loss %s, optimizer %s", concat(parts, " > "),
                self.loss_name, self.optimizer_name)
end

-- }======================================================

-- {======================================================
-- Files
-- =======================================================

local file_format, file_version = "fnn.network", 1

-- net:save_json(path): the layers with their weights and the loss; not the
-- optimizer and what it remembers.
function Network:save_json (path)
  local layers = {}
  for i, activation in ipairs(self.activations) do
    local linear = self.model[2 * i - 1]
    layers[i] = { size = self.sizes[i + 1], activation = activation,
                  weight = linear.weight:totable(),
                  bias = linear.bias:totable() }
  end
  json_file.write(path, {
    format = file_format, version = file_version, input_size = self.sizes[1],
    layers = layers, loss = self.loss_name,
  })
  return self
end

-- Checks layer i of a file, which has this many inputs, and adds it.
local function load_layer (net, fail, i, layer, inputs)
  local at = format("layer %d", i)
  if type(layer) ~= "table" then
    fail("%s: expected an object, got %s", at, described(layer))
  end
  local n, activation = layer.size, layer.activation
  if math_type(n) ~= "integer" or n < 1 then
    fail("%s: size: expected an integer of 1 or more, got %s", at, tostring(n))
  end
  if type(activation) ~= "string" or not activations[activation] then
    fail("%s: no activation '%s'", at, tostring(activation))
  end
  local weight = json_file.tensor(fail, at .. ": weight", layer.weight,
                                  { n, inputs })
  local bias = json_file.tensor(fail, at .. ": bias", layer.bias, { n })
  net:dense(n, activation)
  local linear = net.model[#net.model - 1]
  linear.weight:set(weight)
  linear.bias:set(bias)
end

-- What is in a file, checked but for its layers.
local function read_file (fail, path)
  local t = json_file.read(path, file_format, file_version, "a network")
  if math_type(t.input_size) ~= "integer" or t.input_size < 1 then
    fail("input_size: expected an integer of 1 or more, got %s",
         tostring(t.input_size))
  end
  if type(t.layers) ~= "table" or #t.layers == 0 then
    fail("layers: expected a list of them, got %s", described(t.layers))
  end
  if type(t.loss) ~= "string" or not losses[t.loss] then
    fail("no loss '%s'", tostring(t.loss))
  end
  return t
end

-- fnn.Network():load_json(path): the network in a file.
function Network:load_json (path)
  if #self.sizes > 0 then
    raise "Network: load_json: this one has layers already"
  end
  local fail = json_file.failing(path)
  local t = read_file(fail, path)
  local net = new_network { seed = 0 }:input_size(t.input_size):loss(t.loss)
  for i, layer in ipairs(t.layers) do
    load_layer(net, fail, i, layer, net.sizes[i])
  end
  self.model, self.sizes, self.activations = net.model, net.sizes,
                                             net.activations
  self.loss_name = net.loss_name
  return self
end

-- }======================================================

return { Network = new_network }
