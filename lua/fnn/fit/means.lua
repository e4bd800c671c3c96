-- means.lua - the loss and the metrics over the batches of an epoch.

local fnn, load = ...
local metrics = fnn.metrics
local module = load "nn/module"
local options = load "fit/options"

local ipairs, pairs, sort = ipairs, pairs, table.sort
local tostring, type, find = tostring, type, string.find
local raise, described, method = module.raise, module.described,
                                 options.method

local reserved = { epoch = true, loss = true, lr = true, batches = true }

-- What counts: a stream of this library, or an object of a script with add,
-- value and reset.
local function stream_of (name, key, v)
  if method(v, "add") and method(v, "value") then
    if method(v, "reset") then return v end
    raise("%s: option 'metrics': the object at %s has no method reset, " ..
          "which begins an epoch or a validation anew", name, tostring(key))
  end
  if type(v) == "string" or options.callable(v) then
    return metrics.stream(v)
  end
  raise("%s: option 'metrics': expected functions by name, got %s at %s", name,
        described(v), tostring(key))
end

-- Option metrics as a list of { key, stream } in the order of their names.
-- What has a place and no name is the name of a metric.
local function streams (name, given)
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" then
    raise("%s: option 'metrics': expected functions by name, got %s", name,
          described(given))
  end
  local list, names = {}, {}
  for key, v in pairs(given) do
    if reserved[key] or find(tostring(key), "^val_") then
      raise("%s: option 'metrics': '%s' is no name for one: it has another " ..
            "meaning", name, key)
    end
    local stream = stream_of(name, key, v)
    if type(key) ~= "string" then
      if type(v) ~= "string" then
        raise("%s: option 'metrics': expected functions by name, got %s at %s",
              name, described(v), tostring(key))
      end
      key = v
    end
    if names[key] then
      raise("%s: option 'metrics': two have the name '%s'", name, key)
    end
    names[key] = true
    list[#list + 1] = { key, stream }
  end
  sort(list, function (a, b) return a[1] < b[1] end)
  return list
end

-- New ones that count the same; an object that cannot be renewed is used.
local function fresh (list)
  local others = {}
  for i, entry in ipairs(list) do
    local key, stream = entry[1], entry[2]
    others[i] = { key, method(stream, "fresh") and stream:fresh() or stream }
  end
  return others
end

-- Means of the loss, an item counting once, and the streams.
local function new (list)
  local means = { list = fresh(list) }
  local sum, count  -- the sum is f64, where the loss is

  function means.reset ()
    sum, count = nil, 0
    for _, entry in ipairs(means.list) do entry[2]:reset() end
  end
  means.reset()

  -- What the model gave for a batch of n items, its targets, its loss or nil.
  function means.add (n, loss, output, ...)
    count = count + n
    if loss then
      local part = loss:detach():to("f64") * n
      sum = sum and sum + part or part
    end
    for _, entry in ipairs(means.list) do entry[2]:add(output, ...) end
  end

  function means.loss () return sum and sum:item() / count end

  function means.into (stats)
    stats.loss = means.loss()
    for _, entry in ipairs(means.list) do
      stats[entry[1]] = entry[2]:value()
    end
    return stats
  end

  -- Values by name, numbers and tensors.
  function means.state ()
    local state = { ["sum"] = sum, count = count }
    for _, entry in ipairs(means.list) do
      for key, v in pairs(entry[2]:state_dict()) do
        state["metric." .. entry[1] .. "." .. key] = v
      end
    end
    return state
  end

  function means.load_state (state, device)
    sum, count = state.sum, state.count
    if sum and device then sum = sum:to(device) end
    for _, entry in ipairs(means.list) do
      local prefix, own = "metric." .. entry[1] .. ".", {}
      for key, v in pairs(state) do
        if key:sub(1, #prefix) == prefix then
          if device and fnn.is_tensor(v) then v = v:to(device) end
          own[key:sub(#prefix + 1)] = v
        end
      end
      entry[2]:load_state_dict(own)
    end
  end
  return means
end

return { streams = streams, new = new }
