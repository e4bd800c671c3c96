-- graph_step.lua - a step that a card replays: fnn.graph_step.
--
-- The engine's half is src/core/capture.c.  Here is when a step is recorded,
-- and where its arguments go: a replay reads what the recording read, so each
-- tensor among them has a place of its own, into which it is copied.
local fnn, load, internals = ...
local capture = internals.capture
local options = load "data/options"

local error, type = error, type
local math_type, pack, unpack = math.type, table.pack, table.unpack
local raise, check = options.raise, options.check

local function same_shape(x, y)
  local a, b = x:shape(), y:shape()
  if #a ~= #b or x:dtype() ~= y:dtype() then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- Whether a recording with these places serves these arguments.
local function fits(places, arguments)
  if places.n ~= arguments.n then return false end
  for i = 1, places.n do
    local x, y = places[i], arguments[i]
    if not fnn.is_tensor(x) then
      if x ~= y then return false end
    elseif not fnn.is_tensor(y) or not same_shape(x, y) then
      return false
    end
  end
  return true
end

local function places_of(arguments, device)
  local places = { n = arguments.n }
  for i = 1, arguments.n do
    local x = arguments[i]
    places[i] = fnn.is_tensor(x) and x:detach():to(device):clone() or x
  end
  return places
end

local function fill(places, arguments, device)
  for i = 1, places.n do
    local x = places[i]
    if fnn.is_tensor(x) then x:copy_(arguments[i]:detach():to(device)) end
  end
end

-- Records f on the places; returns the recording and what f returned.
local function record(f, places, device)
  local recording = capture.begin(device)
  local results = pack(capture.call(f, unpack(places, 1, places.n)))
  if not results[1] then
    capture.stop()
    error(results[2], 0)
  end
  capture.finish(recording)
  return recording, pack(unpack(results, 2, results.n))
end

-- The card of the first argument that is on one, or "cpu".
local function device_of(arguments)
  for i = 1, arguments.n do
    local x = arguments[i]
    if fnn.is_tensor(x) and x:device() ~= "cpu" then return x:device() end
  end
  return "cpu"
end

local defaults = { warmup = 2, device = false }
local types = { device = "string" }

-- fnn.graph_step(f, { warmup =, device = }): see help/train.lua.
local function graph_step(f, opts)
  if type(f) ~= "function" then
    raise("graph_step: expected a function, got %s", type(f))
  end
  local o = check("graph_step", opts, defaults, types)
  if math_type(o.warmup) ~= "integer" or o.warmup < 1 then
    raise "graph_step: warmup must be a whole number from 1"
  end
  local device = fnn.device(o.device or fnn.default_device())
  if device == "cpu" and (o.device or fnn.best_device() == "cpu") then
    return f
  end
  local calls, recording, places, results = 0, nil, nil, nil
  return function (...)
    local arguments = pack(...)
    if device == "cpu" then
      device = device_of(arguments)
      if device == "cpu" then return f(...) end
    end
    if calls < o.warmup or recording and not fits(places, arguments) then
      calls = calls + 1
      return f(...)
    end
    if recording then
      fill(places, arguments, device)
      if capture.replay(recording) then return unpack(results, 1, results.n) end
      recording:release()
    end
    recording, results = nil, nil
    places = places_of(arguments, device)
    recording, results = record(f, places, device)
    return unpack(results, 1, results.n)
  end
end

return { graph_step = graph_step }
