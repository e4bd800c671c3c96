-- source.lua - where fit's batches come from: tensors, a dataset, a loader or
-- whatever else goes through batches, a function.
--
-- All become one thing: start(epoch, batch) goes to a batch of an epoch, both
-- counted from 0; next() gives a batch as a list, or nil; length is how many
-- batches an epoch has, nil where that is not known.

local fnn, load = ...
local data = fnn.data
local module = load "nn/module"
local options = load "fit/options"

local getmetatable, ipairs, next = getmetatable, ipairs, next
local pcall, type = pcall, type
local math_type, unpack = math.type, table.unpack
local raise, described = module.raise, module.described
local method = options.method

local function length_of (set)
  local ok, n = pcall(function () return #set end)
  return ok and math_type(n) == "integer" and n > 0 and n or nil
end

-- Goes where next is called; on the way to a batch others are read.
local function reading (open)
  local step
  local source = {}
  function source.start (epoch, batch)
    step = open(epoch)
    if type(step) ~= "function" then
      raise("fit: the data gave %s for epoch %d: expected a function that " ..
            "gives a batch, or nothing at the end", described(step), epoch)
    end
    for i = 1, batch do
      if step() == nil then
        raise("fit: the data has %d batches in epoch %d, and %d were given " ..
              "when it was left", i - 1, epoch, batch)
      end
    end
  end
  function source.next () return step() end
  return source
end

-- What decides which items a loader's batches have, so far as it tells.
local function facts_of (set)
  local facts, state = {}, method(set, "state_dict") and set:state_dict()
  if type(state) ~= "table" then return facts end
  for _, key in ipairs { "items", "batch_size", "shuffle", "drop_last" } do
    facts[key] = state[key]
  end
  if state.shuffle then facts.seed = state.seed end
  return facts
end

-- What has start and next, or epoch alone.
local function walking (set)
  if not method(set, "start") or not method(set, "next") then
    local source = reading(function (epoch) return set:epoch(epoch) end)
    source.length = length_of(set)
    return source
  end
  return {
    length = length_of(set), facts = facts_of(set),
    start = function (epoch, batch) set:start(epoch, batch) end,
    next = function () return set:next() end,
  }
end

local function own_order (name, o, shuffle)
  if name == "fit" and (o.batch_size or o.seed or not shuffle) then
    raise("%s: a loader has its own batches and order: options " ..
          "'batch_size', 'shuffle' and 'seed' are for datasets", name)
  end
end

-- A dataset, or tensors of as many rows, as a loader.
local function loader_of (name, set, o, shuffle, device)
  if type(set) == "table" and getmetatable(set) == nil and
     not method(set, "get") then
    for i, x in ipairs(set) do
      if not fnn.is_tensor(x) then
        raise("%s: expected a list of tensors, got %s at place %d%s", name,
              described(x), i,
              type(x) == "table" and " (fnn.tensor makes one)" or "")
      end
    end
    if #set == 0 and next(set) ~= nil then
      raise("%s: expected a dataset, a loader or { x, y }, got a table with " ..
            "names: inputs and targets go by their places, { x, y }", name)
    end
    if #set < 2 then
      raise("%s: expected a dataset, a loader or { x, y }, got a table of %d "
            .. "tensors", name, #set)
    end
    set = data.TensorDataset(unpack(set))
  end
  return data.DataLoader(set, {
    batch = o.batch_size or 32, shuffle = shuffle, seed = o.seed or 0,
    device = device,
  })
end

local function raw (name, set, o, shuffle, device)
  if type(set) == "function" then
    own_order(name, o, shuffle)
    return reading(set)
  elseif method(set, "epoch") or method(set, "start") and
         method(set, "next") then
    own_order(name, o, shuffle)
    return walking(set)
  elseif type(set) ~= "table" and type(set) ~= "userdata" or
         fnn.is_tensor(set) then
    raise("%s: expected a dataset, a loader or { x, y }, got %s", name,
          described(set))
  end
  return walking(loader_of(name, set, o, shuffle, device))
end

-- The source of what was given; batches go to the device, if any.
local function source_of (name, set, o, shuffle, device)
  local inner = raw(name, set, o, shuffle, device)
  local source = { start = inner.start, length = inner.length,
                   facts = inner.facts or {} }
  function source.next ()
    local batch = { inner.next() }
    local n = #batch
    if n == 0 then return nil end
    if n <= o.targets then
      raise("%s: a batch has %d tensor%s: expected inputs and then %s ({ x, x "
            .. "} learns its own input)", name, n, n == 1 and "" or "s",
            o.targets == 1 and "a target" or o.targets .. " targets")
    end
    for i, x in ipairs(batch) do
      if device and fnn.is_tensor(x) then batch[i] = x:to(device) end
    end
    return batch
  end
  return source
end

return { of = source_of }
