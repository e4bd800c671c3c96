-- run.lua - where a run of fnn.fit is: its place, which a file keeps, and
-- the files that it leaves.
--
-- A checkpoint is a file of fnn.save_training with entries model, optimizer
-- and fit, and schedule, scaler and average where there are such with state.
-- It is written between two steps, so no gradients are in it.

local fnn, load = ...
local module = load "nn/module"
local options = load "fit/options"
local history = load "fit/history"
local watch = load "fit/watch"

local ipairs, pairs, sub = ipairs, pairs, string.sub
local setmetatable, tostring, type = setmetatable, tostring, type
local raise, method = module.raise, options.method

-- {======================================================
-- The place, as what save_training takes
-- =======================================================

local Place = {}
Place.__index = Place

-- What makes another run: a checkpoint of one is not for the other.
local function shape_of (run)
  local shape = { accumulate = run.o.accumulate, batches = run.source.length }
  for key, v in pairs(run.source.facts) do shape[key] = v end
  return shape
end

local function add_tensors (dict, prefix, t)
  for _, name in ipairs(t) do
    local full = prefix .. name
    dict[#dict + 1] = full
    dict[full] = t[name]
  end
end

-- Numbers of the means go to the values, tensors beside them.
local function add_means (dict, values, means)
  values.means, values.metrics = {}, {}
  for i, entry in ipairs(means.list) do values.metrics[i] = entry[1] end
  for key, v in pairs(means.state()) do
    if fnn.is_tensor(v) then
      dict[#dict + 1] = "means." .. key
      dict["means." .. key] = v
    else
      values.means[key] = history.pack_value(v)
    end
  end
end

function Place:state_dict ()
  local run = self.run
  local values = {
    epoch = run.epoch, batch = run.batch, step = run.step,
    lr = run.lr, ended = run.ended, shape = shape_of(run),
    history = history.pack(run.history),
  }
  local dict = { [".state"] = values }
  if run.batch > 0 then add_means(dict, values, run.means) end
  if run.stop then
    local weights
    values.stop, weights = run.stop.state()
    if weights then
      add_tensors(dict, "best.", weights)
      values.best_state = weights[".state"]
    end
  end
  return dict
end

-- The tensors of a state whose names begin so, without that.
local function part_of (dict, prefix)
  local t = {}
  for _, name in ipairs(dict) do
    if sub(name, 1, #prefix) == prefix then
      local rest = sub(name, #prefix + 1)
      t[#t + 1], t[rest] = rest, dict[name]
    end
  end
  return t
end

local function load_means (run, dict, values)
  local state = {}
  for key, v in pairs(values.means) do state[key] = history.unpack_value(v) end
  local tensors = part_of(dict, "means.")
  for _, key in ipairs(tensors) do state[key] = tensors[key] end
  run.means.load_state(state, run.device)
end

local function check_shape (run, saved)
  for key, v in pairs(shape_of(run)) do
    if saved[key] ~= nil and saved[key] ~= v then
      raise("fit: the checkpoint is of a run with %s = %s, this one has %s: " ..
            "resume with the same data and options", key, tostring(saved[key]),
            tostring(v))
    end
  end
end

-- What has counted a part of an epoch must go on with it.
local function check_means (run, saved)
  local counted = {}
  for _, name in ipairs(saved) do counted[name] = true end
  for _, entry in ipairs(run.means.list) do
    if not counted[entry[1]] then
      raise("fit: the checkpoint is amid an epoch, in which metric '%s' has " ..
            "not counted: resume with the same metrics", entry[1])
    end
  end
end

-- Raises for the place of another run.
function Place:check_state_dict (dict)
  local values = dict[".state"]
  if type(values) ~= "table" or not values.epoch then
    raise("fit: the checkpoint was not made by fnn.fit")
  end
  check_shape(self.run, values.shape)
  if values.batch > 0 then check_means(self.run, values.metrics or {}) end
end

function Place:load_state_dict (dict)
  self:check_state_dict(dict)
  local run, values = self.run, dict[".state"]
  run.epoch, run.batch, run.step = values.epoch, values.batch, values.step
  run.lr, run.ended = values.lr, values.ended
  history.unpack(run.history, values.history)
  if run.batch > 0 then load_means(run, dict, values) end
  if run.stop and values.stop then
    local weights = part_of(dict, "best.")
    weights[".state"] = values.best_state
    run.stop.load_state(values.stop, #weights > 0 and weights or nil)
  end
end

-- }======================================================

-- {======================================================
-- Checkpoints
-- =======================================================

local function check_metrics (run)
  for _, entry in ipairs(run.means.list) do
    if not method(entry[2], "state_dict") or
       not method(entry[2], "load_state_dict") then
      raise("fit: option 'checkpoints': metric '%s' has no state_dict and " ..
            "load_state_dict, so what it has counted cannot be kept", entry[1])
    end
  end
end

local function state_of (run)
  local o = run.o
  local state = { model = run.model, optimizer = run.opt,
                  fit = setmetatable({ run = run }, Place) }
  if method(o.schedule, "state_dict") then state.schedule = o.schedule end
  state.scaler, state.average = o.scaler or nil, o.average or nil
  return state
end

-- Gives the run save(stats), and resumes it if that is asked for.
local function open (run, list)
  local p = run.o.checkpoints
  if not p then
    run.save = function () end
    return
  end
  check_metrics(run)
  local best, mode = p.best, p.mode
  if not best and type(p.folder) == "table" and p.folder._metric then
    best, mode = p.folder._metric, p.folder._mode  -- fnn.checkpoints has it
  end
  if best then
    best, mode = watch.choose("checkpoints", run.o, list,
                              best ~= true and best, mode)
  end
  local store, state = p.folder, state_of(run)
  if type(store) == "string" then
    store = fnn.checkpoints(store, { keep = p.keep, best = best or nil,
                                     mode = mode or nil })
  end
  local saved  -- the step and epoch that are in a file
  function run.save (stats)
    local place = run.step .. " " .. run.epoch .. tostring(run.ended)
    if saved == place then return end
    local info = { step = run.step, epoch = run.epoch }
    if best and stats then
      info[best] = watch.value_of("checkpoints", stats, best)
    end
    store:save(state, info)
    saved = place
  end
  if run.o.resume then
    store:resume(state)
  elseif method(store, "latest") and store:latest() then
    raise("fit: option 'checkpoints': %s has a run already: option 'resume' " ..
          "goes on with it, else take another folder", tostring(store))
  end
end

-- }======================================================

-- Calls f at the first interrupt, and what a script has wanted called, until
-- what is returned is closed.
local function on_interrupt (f)
  local before
  before = fnn.on_interrupt(function ()
    f()
    local also = before
    before = nil
    if also then also() end
  end)
  return setmetatable({}, { __close = function ()
    fnn.on_interrupt(before)
  end })
end

return { open = open, on_interrupt = on_interrupt }
