-- loader.lua - loaders: batches of a dataset, epoch by epoch.
--
-- A dataset of the library has the loader of src/data, which may read ahead
-- on a thread.  One written in Lua has LuaLoader, whose order and cursor are
-- the same; its get runs on the caller's side.
local fnn, load, internals = ...
local data, Loader = fnn.data, internals.Loader
local options = load "data/options"
-- What C lends to this file and scripts do not see.
local DataLoader, c_facts, point = data.loader, data.loader_facts, data.point
data.loader, data.loader_facts, data.point = nil, nil, nil

local getmetatable, ipairs, pairs, setmetatable =
  getmetatable, ipairs, pairs, setmetatable
local tostring, type = tostring, type
local math_type, min = math.type, math.min
local format, unpack = string.format, table.unpack
local raise, check = options.raise, options.check

local methods = internals.namespace({}, "DataLoader")
local LuaLoader = { __name = "fnn.DataLoader", __index = methods }

-- The fields of a dataset in Lua, each with a shape and a dtype.
local function fields_of(ds)
  local given = ds.fields
  if type(given) == "function" then given = given(ds) end
  if type(given) ~= "table" or #given == 0 then
    raise("DataLoader: a dataset in Lua needs fields: a list of "
          .. "{ shape =, dtype = }")
  end
  local fields = {}
  for k, f in ipairs(given) do
    if type(f) ~= "table" or type(f.shape or {}) ~= "table" then
      raise("DataLoader: field %d: expected { shape = {..}, dtype = '..' }", k)
    end
    fields[k] = { shape = f.shape or {}, dtype = f.dtype or "f32" }
  end
  return fields
end

local function lua_loader(ds, o)
  if type(ds) ~= "table" and type(ds) ~= "userdata" then
    raise("DataLoader: expected a dataset, got %s", type(ds))
  end
  if type(ds) == "table" and not getmetatable(ds) then
    raise "DataLoader: a dataset in Lua needs a metatable with __len"
  end
  if type(ds.get) ~= "function" then
    raise "DataLoader: a dataset in Lua needs a method get(self, i, x, ...)"
  end
  if math_type(o.batch) ~= "integer" or o.batch < 1 then
    raise("DataLoader: the batch must have at least one item (got %s)",
          tostring(o.batch))
  end
  local count = #ds
  if math_type(count) ~= "integer" or count < 0 then
    raise("DataLoader: the dataset's __len gave %s", tostring(count))
  end
  local self = setmetatable({
    ds = ds, fields = fields_of(ds), size = o.batch, count = count,
    batches = o.drop_last and count // o.batch
              or (count + o.batch - 1) // o.batch,
    shuffle = o.shuffle, seed = o.seed, drop_last = o.drop_last,
    device = fnn.device(o.device or fnn.default_device()),
    order = false, at = 0, done = 0,
  }, LuaLoader)
  return self:start(0, 0)
end

function LuaLoader:__len() return self.batches end

function LuaLoader:__tostring()
  return format("DataLoader of %d batches", self.batches)
end

function methods:start(epoch, batch)
  batch = batch or 0
  if math_type(epoch) ~= "integer" or math_type(batch) ~= "integer"
     or epoch < 0 or batch < 0 or batch > self.batches then
    raise("DataLoader: no batch %s in epoch %s (an epoch has %d)",
          tostring(batch), tostring(epoch), self.batches)
  end
  self.at, self.done = epoch, batch
  self.order = self.shuffle and data.order(self.count, self.seed, epoch)
  return self
end

function methods:cursor() return self.at, self.done end

-- A batch of zeros, and for each field a view that get will see.
local function blank(self, n)
  local x, views = {}, {}
  for k, f in ipairs(self.fields) do
    x[k] = fnn.zeros({ n, unpack(f.shape) },
                     { dtype = f.dtype, device = "cpu" })
    views[k] = x[k]:select(1, 1)
  end
  return x, views
end

function methods:next()
  if self.done == self.batches then return end
  local first = self.done * self.size
  local n = min(self.size, self.count - first)
  local x, views = blank(self, n)
  local ids = self.order
              and self.order:narrow(1, first + 1, n):totable()
  local ds = self.ds
  for i = 1, n do
    for k = 1, #x do point(views[k], x[k], i) end
    ds:get(ids and ids[i] + 1 or first + i, unpack(views))
  end
  for k = 1, #x do x[k] = x[k]:to(self.device) end
  self.done = self.done + 1
  return unpack(x)
end

-- for x, y in loader do: the batches of an epoch, of the next one the next
-- time.
function LuaLoader:__call()
  if self.done == self.batches then
    self:start(self.at + 1, 0)
    return
  end
  return self:next()
end

-- loader:epoch([n]): iterates over the batches of epoch n; without n, over
-- what is left of the one the cursor is in, or over the next one.
local function epoch(self, n)
  if n then
    self:start(n, 0)
  else
    local at, done = self:cursor()
    if done == #self and done > 0 then self:start(at + 1, 0) end
  end
  return function () return self:next() end
end

Loader.epoch = epoch
methods.epoch = epoch

-- loader:skip(n): leaves out up to n batches; returns how many.
local function skip(self, n)
  if math_type(n) ~= "integer" or n < 0 then
    raise("DataLoader: skip: expected how many batches, got %s", tostring(n))
  end
  local at, done = self:cursor()
  n = min(n, #self - done)
  if n > 0 then self:start(at, done + n) end
  return n
end

Loader.skip = skip
methods.skip = skip

-- {======================================================
-- State: the next batch that the loop has not been given, whatever is read
-- ahead, and what decides which items are in it.
-- =======================================================

local function facts_of(self)
  if getmetatable(self) ~= LuaLoader then return c_facts(self) end
  return { items = self.count, batch_size = self.size, seed = self.seed,
           shuffle = self.shuffle or false,
           drop_last = self.drop_last or false }
end

local function state_dict(self)
  local state = facts_of(self)
  state.epoch, state.batch = self:cursor()
  return state
end

local facts = { "items", "batch_size", "shuffle", "seed", "drop_last" }

-- Raises unless load_state_dict would take the state.
local function check_state_dict(self, state)
  local name = "DataLoader: load_state_dict"
  if type(state) ~= "table" or math_type(state.epoch) ~= "integer" or
     math_type(state.batch) ~= "integer" then
    raise("%s: expected what state_dict returns", name)
  end
  local here = facts_of(self)
  for _, key in ipairs(facts) do
    local seedless = key == "seed" and not here.shuffle
    if state[key] ~= here[key] and not seedless then
      raise("%s: %s was %s, and is %s: a batch has other items", name, key,
            tostring(state[key]), tostring(here[key]))
    end
  end
  if state.epoch < 0 or state.batch < 0 or state.batch > #self then
    raise("%s: no batch %d in epoch %d (an epoch has %d)", name, state.batch,
          state.epoch, #self)
  end
end

local function load_state_dict(self, state)
  check_state_dict(self, state)
  self:start(state.epoch, state.batch)
  return self
end

for _, class in ipairs { Loader, methods } do
  class.state_dict, class.load_state_dict = state_dict, load_state_dict
  class.check_state_dict = check_state_dict
end

-- }======================================================

local defaults = { batch = 1, batch_size = 1, shuffle = false, seed = 0,
                   drop_last = false, prefetch = 0, device = false,
                   pin_memory = true }
local types = { device = "string" }

-- data.DataLoader(dataset, { batch =, shuffle =, seed =, drop_last =,
-- prefetch =, device =, pin_memory = })
function data.DataLoader(ds, opts)
  local o = check("DataLoader", opts, defaults, types)
  if opts and opts.batch and opts.batch_size then
    raise "DataLoader: batch and batch_size are one option: give one"
  end
  local given = { batch = opts and opts.batch_size or o.batch }
  for k, v in pairs(o) do
    if k ~= "batch" and k ~= "batch_size" then given[k] = v or nil end
  end
  given.pin_memory = o.pin_memory
  if getmetatable(ds) == "fnn.Dataset" then return DataLoader(ds, given) end
  given.seed = o.seed
  return lua_loader(ds, given)
end
