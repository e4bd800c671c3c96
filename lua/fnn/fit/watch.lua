-- watch.lua - the number that tells whether a run gets better: what ends it
-- early, and the weights that were best.

local _, load = ...
local module = load "nn/module"
local history = load "fit/history"

local getmetatable, ipairs, tostring = getmetatable, ipairs, tostring
local find, gsub, math_type = string.find, string.gsub, math.type
local raise = module.raise

local better = { accuracy = "max", auc = "max", f1 = "max", precision = "max",
                 r2 = "max", recall = "max", top_k = "max", mae = "min",
                 mse = "min", perplexity = "min", rmse = "min", loss = "min" }

-- What may be watched: the loss and the metrics, and those of a validation.
local function names_of (list, validated)
  local names = { loss = true, val_loss = validated or nil }
  for _, entry in ipairs(list) do
    names[entry[1]] = true
    names["val_" .. entry[1]] = validated or nil
  end
  return names
end

-- Whether less or more of it is better.
local function mode_of (name, list)
  local plain = gsub(name, "^val_", "")
  local mode = better[plain] or find(plain, "loss$") and "min"
  for _, entry in ipairs(list) do
    local meta = getmetatable(entry[2])
    if entry[1] == plain and meta and meta.__name == "fnn.MetricStream" then
      mode = mode or better[entry[2]:name()]
    end
  end
  if mode then return mode end
  raise("fit: option 'mode': is less of '%s' better, or more? ('min' or " ..
        "'max')", name)
end

-- The name that is watched: what a part of the options says, else what the run
-- does.
local function name_of (what, o, list, name)
  name = name or o.monitor or (o.validation and "val_loss" or "loss")
  local names = names_of(list, o.validation and true)
  if not names[name] then
    raise("fit: option '%s': no '%s' to follow%s%s", what, tostring(name),
          module.suggestion(name, names, true),
          find(tostring(name), "^val_") and not o.validation and
          ": there is no validation" or "")
  end
  return name
end

-- The same, and whether less or more of it is better.
local function choose (what, o, list, name, mode)
  name = name_of(what, o, list, name)
  return name, mode or o.mode or mode_of(name, list)
end

-- The number of that name in an epoch.
local function value_of (what, stats, name)
  local v = stats[name]
  if math_type(v) == nil then
    raise("fit: option '%s': '%s' is no number (a metric that is a list or " ..
          "a tensor cannot be followed)", what, name)
  end
  return v
end

local function clones (model)
  local state = model:state_dict()
  for _, name in ipairs(state) do state[name] = state[name]:clone() end
  return state
end

-- Early stopping: update(stats) tells whether it is time to end.
local function stopper (model, o, list)
  local p = o.early_stopping
  local name, mode = choose("early_stopping", o, list, p.monitor, p.mode)
  local best, best_epoch, bad, weights = nil, nil, 0, nil
  local stop = {}

  local function improved (v)
    if v ~= v then return false end
    if not best then return true end
    if mode == "min" then return v < best - p.min_delta end
    return v > best + p.min_delta
  end

  function stop.update (stats)
    local v = value_of("early_stopping", stats, name)
    if improved(v) then
      best, best_epoch, bad = v, stats.epoch, 0
      if p.restore_best then weights = clones(model) end
      return false
    end
    bad = bad + 1
    return bad >= p.patience
  end

  -- Puts the best weights back; tells their epoch.
  function stop.finish ()
    if weights then model:load_state_dict(weights) end
    return best_epoch
  end

  function stop.state ()
    return { best = history.pack_value(best), epoch = best_epoch, bad = bad },
           weights
  end

  function stop.load_state (state, saved)
    best, best_epoch = history.unpack_value(state.best), state.epoch
    bad, weights = state.bad, saved
  end
  return stop
end

return { choose = choose, name_of = name_of, stopper = stopper, value_of = value_of }
