-- checkpoints.lua - the runs that are kept in a folder: fnn.checkpoints.
--
-- Each is a file of fnn.save_training with its step in its name,
-- step-000001200.safetensors.  What makes one the best is a plain value in it,
-- so that a new process finds out what is there from the files alone.

local fnn, load, internals = ...
local module = load "nn/module"
local training = load "training"
local folder = internals.folder

local ipairs, pairs, setmetatable = ipairs, pairs, setmetatable
local tostring, type = tostring, type
local find, format, gmatch = string.find, string.format, string.gmatch
local gsub, match = string.gsub, string.match
local math_type, tointeger = math.type, math.tointeger
local remove, sort = table.remove, table.sort
local raise, described = module.raise, module.described

local Checkpoints = internals.namespace({}, "fnn.Checkpoints")
Checkpoints.__index = Checkpoints

-- {======================================================
-- What is there
-- =======================================================

local function path_of (self, step)
  return format("%s/step-%09d.safetensors", self._folder, step)
end

-- What a file that cannot be read is no fault of.
local faultless = { "out of memory", "not enough memory",
                    "Too many open files" }

local function pass_over (self, why)
  why = gsub(tostring(why), "^[^\n:]+:%d+: ", "")
  for _, what in ipairs(faultless) do
    if find(why, what, 1, true) then raise("checkpoints: %s", why) end
  end
  self._damaged = why
  internals.warn("checkpoints: passed over: " .. why)
end

-- Finds the files, by rising steps: { step =, path =, values = }.  A damaged
-- one is passed over, with a warning.
local function survey (self)
  local list = {}
  for name in gmatch(folder.names(self._folder), "[^\0]+") do
    local step = tointeger(match(name, "^step%-(%d+)%.safetensors$"))
    local path = step and self._folder .. "/" .. name
    local values, why
    if path then values, why = training.inside.try_plain_values(path) end
    if values then
      list[#list + 1] = { step = step, path = path, values = values }
    elseif path then
      pass_over(self, why)
    end
  end
  sort(list, function (a, b) return a.step < b.step end)
  self._files = list
end

-- The value by which a file may be the best; nil when it has none.
local function score (self, entry)
  local v = self._metric and entry.values[self._metric]
  return math_type(v) and v == v and v or nil
end

-- The place in the list of the best: of the first, among equals.
local function best_of (self)
  local best, at
  for i, entry in ipairs(self._files) do
    local v = score(self, entry)
    if v and (not best or self._mode == "min" and v < best or
              self._mode == "max" and v > best) then
      best, at = v, i
    end
  end
  return at
end

local function told (entry)
  if not entry then return nil end
  local values = {}
  for key, v in pairs(entry.values) do values[key] = v end
  return entry.path, values
end

-- cp:latest(): path and plain values of the file with the highest step, or nil
function Checkpoints:latest () return told(self._files[#self._files]) end

-- cp:best(): the same of the one with the best value
function Checkpoints:best () return told(self._files[best_of(self)]) end

-- cp:list(): the paths, by rising steps
function Checkpoints:list ()
  local paths = {}
  for i, entry in ipairs(self._files) do paths[i] = entry.path end
  return paths
end

function Checkpoints:__len () return #self._files end

function Checkpoints:__tostring ()
  return format("checkpoints in %s: %d", self._folder, #self._files)
end

-- }======================================================

-- {======================================================
-- Out
-- =======================================================

-- Removes what is neither among the last nor the best.
local function prune (self)
  local i = 1
  while #self._files - i + 1 > self._keep do
    if best_of(self) == i then
      i = i + 1
    else
      folder.remove(self._files[i].path)
      remove(self._files, i)
    end
  end
end

-- The entries of state and the values, which state may repeat.
local function merged (state, values)
  if type(state) ~= "table" then
    raise("checkpoints: save: expected a table of what is saved by name, got "
          .. "%s", described(state))
  end
  if values ~= nil and type(values) ~= "table" then
    raise("checkpoints: save: expected a table of values by name, got %s",
          described(values))
  end
  local all = {}
  for key, v in pairs(state) do all[key] = v end
  for key, v in pairs(values or {}) do
    if training.kind_of(v) ~= "value" then
      raise("checkpoints: save: value '%s': expected a plain value, got %s",
            tostring(key), described(v))
    end
    if all[key] ~= nil and training.kind_of(all[key]) ~= "value" then
      raise("checkpoints: save: '%s' is both an entry and a value", key)
    end
    all[key] = v
  end
  return all
end

local function check_step (self, step)
  if math_type(step) ~= "integer" or step < 0 then
    raise("checkpoints: save: step: expected an integer of 0 or more, got %s",
          math_type(step) and tostring(step) or described(step))
  end
  local last = self._files[#self._files]
  if last and step < last.step then
    raise("checkpoints: save: step %d is before step %d, which %s has: " ..
          "resume from it, or save to another folder", step, last.step,
          self._folder)
  end
end

-- cp:save(state, { step = 1200, val_loss = 0.3 }): returns the path
function Checkpoints:save (state, values)
  local all = merged(state, values)
  check_step(self, all.step)
  local rank = self._metric and all[self._metric]
  if rank and not math_type(rank) then
    raise("checkpoints: save: '%s', which makes the best: expected a number, "
          .. "got %s", self._metric, described(rank))
  end
  local entry = { step = all.step, path = path_of(self, all.step),
                  values = {} }
  training.save_training(entry.path, all)
  for key, v in pairs(all) do
    if training.kind_of(v) == "value" then entry.values[key] = v end
  end
  local files = self._files
  local last = files[#files]
  files[last and last.step == all.step and #files or #files + 1] = entry
  prune(self)
  return entry.path
end

-- }======================================================

-- cp:resume(state): fills what state has from the newest file, and returns its
-- plain values; nil when there is none.
function Checkpoints:resume (state, options)
  local last = self._files[#self._files]
  if not last then
    if self._damaged then
      raise("checkpoints: no file of %s can be read: %s", self._folder,
            self._damaged)
    end
    return nil
  end
  local entries = {}
  for key, v in pairs(state or {}) do
    if training.kind_of(v) ~= "value" then entries[key] = v end
  end
  return training.load_training(last.path, entries, options)
end

-- {======================================================
-- Opening
-- =======================================================

local defaults = { keep = 3, best = false, mode = "min" }

local function check (path, o)
  if type(path) ~= "string" or path == "" then
    raise("checkpoints: expected the path of a folder, got %s",
          path == "" and "''" or described(path))
  end
  if math_type(o.keep) ~= "integer" or o.keep < 1 then
    raise("checkpoints: keep: expected an integer of 1 or more, got %s",
          tostring(o.keep))
  end
  if o.best and type(o.best) ~= "string" then
    raise("checkpoints: best: expected the name of a value, got %s",
          described(o.best))
  end
  if o.mode ~= "min" and o.mode ~= "max" then
    raise("checkpoints: mode: expected 'min' or 'max', got '%s'",
          tostring(o.mode))
  end
end

-- fnn.checkpoints(folder, { keep =, best =, mode = })
local function checkpoints (path, options)
  local o = module.options("checkpoints", options, defaults)
  check(path, o)
  fnn.io.make_folder(path)
  folder.sweep(path)
  local self = setmetatable({ _folder = path, _keep = o.keep, _mode = o.mode,
                              _metric = o.best, _damaged = false },
                            Checkpoints)
  survey(self)
  return self
end

-- }======================================================

return { checkpoints = checkpoints }
