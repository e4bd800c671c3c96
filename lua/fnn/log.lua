-- log.lua - what is written down of a run: fnn.log.jsonl, fnn.log.tensorboard
-- and fnn.log.all.
--
-- A log checks what it is given and makes numbers, PNG files and counts of it;
-- its sink writes these:
--
--   scalars(list, step)         { { name, number }, ... }
--   image(name, images, step)   { { height =, width =, channels =, png = } }
--   text(name, text, step)
--   histogram(name, h, step)    what log/values.lua makes
--   close()

local _, load, internals = ...
local module = load "nn/module"
local values = load "log/values"

local ipairs, pairs, pcall = ipairs, pairs, pcall
local error, getmetatable, setmetatable, type =
  error, getmetatable, setmetatable, type
local sort = table.sort
local raise, described = module.raise, module.described

local methods = internals.namespace({}, "fnn.Log")
local meta = { __name = "fnn.Log", __index = methods }

local function new (sink) return setmetatable({ sink = sink }, meta) end

local function sink_of (log, what)
  if getmetatable(log) ~= meta then
    raise("%s: expected a log, got %s", what, described(log))
  end
  return log.sink or raise("%s: the log is closed", what)
end

function meta.__close (log) log:close() end
function meta.__tostring (log)
  return log.sink and "fnn.Log: " .. log.sink.name or "fnn.Log: closed"
end

function methods:scalar (name, value, step)
  local sink = sink_of(self, "scalar")
  name = values.name("scalar", name)
  sink.scalars({ { name, values.number("scalar", name, value) } },
               values.step("scalar", step))
end

function methods:scalars (numbers, step)
  local sink, list = sink_of(self, "scalars"), {}
  if type(numbers) ~= "table" then
    raise("scalars: expected numbers by name, got %s", described(numbers))
  end
  for name, value in pairs(numbers) do
    name = values.name("scalars", name)
    list[#list + 1] = { name, values.number("scalars", name, value) }
  end
  sort(list, function (a, b) return a[1] < b[1] end)
  sink.scalars(list, values.step("scalars", step))
end

function methods:image (name, image, step)
  local sink = sink_of(self, "image")
  sink.image(values.name("image", name), values.images("image", image),
             values.step("image", step))
end

function methods:text (name, text, step)
  local sink = sink_of(self, "text")
  sink.text(values.name("text", name), values.text("text", text),
            values.step("text", step == nil and 0 or step))
end

function methods:histogram (name, x, step)
  local sink = sink_of(self, "histogram")
  sink.histogram(values.name("histogram", name),
                 values.histogram("histogram", x),
                 values.step("histogram", step))
end

function methods:close ()
  if getmetatable(self) ~= meta then sink_of(self, "close") end
  local sink = self.sink
  self.sink = nil
  if sink then sink.close() end
end

-- {======================================================
-- Makers
-- =======================================================

local function options_of (what, path, options)
  if type(path) ~= "string" or path == "" then
    raise("%s: expected a path, got %s", what,
          path == "" and "''" or described(path))
  end
  local o = module.options(what, options, { resume = false })
  return o.resume and values.step(what .. ": option 'resume'", o.resume)
end

local function jsonl (path, options)
  local resume = options_of("jsonl", path, options)
  return new(load "log/jsonl"(path, resume))
end

local function tensorboard (folder, options)
  local resume = options_of("tensorboard", folder, options)
  return new(load "log/tensorboard"(folder, resume))
end

-- Calls each, and raises the first error when all had their turn.
local function each (logs, name, ...)
  local failed, why
  for _, log in ipairs(logs) do
    local ok, e = pcall(function (...)
      sink_of(log, name)[name](...)
    end, ...)
    if not ok and not failed then failed, why = true, e end
  end
  if failed then error(why, 0) end
end

local function all (logs)
  if type(logs) ~= "table" or #logs == 0 or getmetatable(logs) then
    raise("all: expected a list of logs, got %s", described(logs))
  end
  local list = {}
  for i, log in ipairs(logs) do
    sink_of(log, "all")
    list[i] = log
  end
  local sink = { name = #list .. " logs" }
  for _, name in ipairs { "scalars", "image", "text", "histogram" } do
    sink[name] = function (...) each(list, name, ...) end
  end
  function sink.close ()
    for _, log in ipairs(list) do log:close() end
  end
  return new(sink)
end

-- }======================================================

return { jsonl = jsonl, tensorboard = tensorboard, all = all }
