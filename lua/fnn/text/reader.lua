-- reader.lua - reads ids with a model, which is any function of them:
--
--   model(ids [, { cache = cache }]) -> logits (rows, length, vocabulary)
--
-- ids is an i64 tensor (rows, length).  With a cache only what it has not seen
-- is read.  The model runs without a graph and in eval mode, one call at a
-- time: between two calls nothing is set, so that a coroutine may stop there
-- for good.

local fnn, load = ...
local module = load "nn/module"
local check = load "text/ids"

local error, ipairs, pcall, setmetatable = error, ipairs, pcall, setmetatable
local type = type
local concat, move = table.concat, table.move
local math_type = math.type
local raise, described = module.raise, module.described
local kind_of = module.core.kind

local Reader = {}
Reader.__index = Reader

-- Who filled a cache last: another that holds as many ids holds others.
local filled_by = setmetatable({}, { __mode = "k" })

-- A cache is what has these methods.
local function check_cache (what, cache)
  local kind = type(cache)
  if not cache then return end
  if kind ~= "table" and kind ~= "userdata" or not cache.clear or
     not cache.truncate then
    raise("%s: option 'cache': expected a cache (with clear and truncate), " ..
          "got %s", what, described(cache))
  end
end

-- Where the model's weights are, or else new tensors.
local function device_of (model)
  if kind_of(model) ~= "module" then return fnn.default_device() end
  local part = model:parameters()[1] or model:buffers()[1]
  return part and part:device() or fnn.default_device()
end

-- what: who reads, for messages.  The cache, if any, is cleared.
function Reader.new (what, model, cache)
  if not check.callable(model) then
    raise("%s: expected a model or a function as the first argument, got %s",
          what, described(model))
  end
  check_cache(what, cache)
  if cache then cache:clear() end
  return setmetatable({
    what = what, model = model, cache = cache, read = 0,
    options = cache and { cache = cache }, device = device_of(model),
    modules = kind_of(model) == "module" and model:modules() or {},
  }, Reader)
end

local function restore (training, ok, ...)
  for _, m in ipairs(training) do m.training = true end
  if not ok then error((...), 0) end
  return ...
end

-- A layer takes no second argument, not even nil.
local function forward (self, x)
  if not self.options then return fnn.no_grad(self.model, x) end
  return fnn.no_grad(self.model, x, self.options)
end

local function call (self, x)
  local training = {}
  for _, m in ipairs(self.modules) do
    if m.training then training[#training + 1] = m end
  end
  for _, m in ipairs(training) do m.training = false end
  if #training > 0 then
    return restore(training, pcall(forward, self, x))
  end
  return forward(self, x)
end

local function check_logits (self, x, y)
  if not fnn.is_tensor(y) then
    raise("%s: the model returned %s (expected logits)", self.what,
          described(y))
  end
  local have, rows = y:shape(), x:shape()[1]
  if #have ~= 3 or have[1] ~= rows or have[2] < 1 then
    raise("%s: the model returned a tensor of shape (%s) for ids of shape " ..
          "(%s) (expected (rows, length, vocabulary))", self.what,
          concat(have, ", "), concat(x:shape(), ", "))
  end
  return y:select(2, -1)
end

-- What was put into the cache before the error is taken out again, if that can
-- be: what the model raised is what is told.
local function forget (self, message)
  pcall(self.cache.truncate, self.cache, self.read)
  error(message, 0)
end

-- The logits (rows, vocabulary) behind lists of ids that are of one length:
-- on the host, where one is chosen.
function Reader:logits (lists)
  local cache = self.cache
  if cache and (filled_by[cache] ~= self or #cache ~= self.read) then
    self:reset()  -- it has been used for something else
    filled_by[cache] = self
  end
  local first, last, fresh = self.cache and self.read + 1 or 1, #lists[1], {}
  for r, list in ipairs(lists) do
    fresh[r] = move(list, first, last, 1, {})
  end
  local x = fnn.tensor(fresh, { dtype = "i64", device = self.device })
  local y
  if self.cache then
    local ok
    ok, y = pcall(call, self, x)
    if not ok then forget(self, y) end
  else
    y = call(self, x)
  end
  y = check_logits(self, x, y)
  self.read = last
  return y:device() == "cpu" and y or y:to("cpu")
end

function Reader:reset ()
  self.read = 0
  if self.cache then self.cache:clear() end
end

-- The id that sampler chooses from logits (vocabulary) behind a list of ids.
function Reader:choose (sampler, logits, list)
  local id, count = sampler(logits, list), #logits
  if math_type(id) ~= "integer" or id < 0 or id >= count then
    raise("%s: the sampler returned %s (expected an id from 0 to %d)",
          self.what, check.shown(id), count - 1)
  end
  return id
end

return Reader
