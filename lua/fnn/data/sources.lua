-- sources.lua - sources of batches: what training loops and fnn.fit read from.
--
-- A source, as a DataLoader is one, has
--
--   next()               the next batch, a tensor a field; nothing at the end
--                        of the epoch
--   start(epoch, batch)  goes behind the first batch batches of an epoch
--   cursor()             the epoch, and how many of its batches were given
--   skip(n)              leaves out n batches; returns how many there were
--   epoch([n])           iterates over the batches of epoch n
--   #                    batches in an epoch, or nil where it does not know
--
-- and what an epoch gives is a function of its number (and the source's seed)
-- alone, so that a cursor is all that must be kept to go on from.
local fnn, load, internals = ...
local options = load "data/options"

local getmetatable, ipairs, next, pairs = getmetatable, ipairs, next, pairs
local setmetatable, tostring, type = setmetatable, tostring, type
local math_type, maxinteger, min = math.type, math.maxinteger, math.min
local format, pack, unpack = string.format, table.pack, table.unpack
local raise, check = options.raise, options.check

local methods = internals.namespace({}, "Source")
local Source = { __name = "fnn.Source", __index = methods }

-- {======================================================
-- Any source, from what can begin an epoch and read on
-- =======================================================

local function is_count (v) return math_type(v) == "integer" and v >= 0 end

-- data.source { start = f(self, epoch), next = f(self), ... }
local function source (given)
  if type(given) ~= "table" then
    raise("source: expected a table with functions next and start, got %s",
          type(given))
  end
  for _, name in ipairs { "next", "start" } do
    if type(given[name]) ~= "function" then
      raise("source: '%s': expected a function, got %s", name,
            type(given[name]))
    end
  end
  if given.count ~= nil and not is_count(given.count) then
    raise("source: 'count': expected how many batches an epoch has, got %s",
          tostring(given.count))
  end
  return setmetatable({ given = given, count = given.count or false,
                        name = given.name or "source" }, Source):start(0)
end

function Source:__len () return self.count or nil end

function Source:__tostring ()
  local n = self.count
  return format("%s of %s batches", self.name, n and tostring(n) or "some")
end

function methods:cursor () return self.at, self.done end

-- It ends here: as many batches has an epoch.
local function finish (self)
  self.ended = true
  if not self.given.count then self.count = self.done end
end

local function skip_by_reading (self, n)
  for i = 1, n do
    if self.given:next() == nil then return i - 1 end
  end
  return n
end

function methods:skip (n)
  if not is_count(n) then
    raise("%s: skip: expected how many batches, got %s", self.name,
          tostring(n))
  end
  if self.ended or n == 0 then return 0 end
  self.lost = true
  local found = self.given.skip and self.given:skip(n) or
                not self.given.skip and skip_by_reading(self, n) or n
  self.lost = false
  self.done = self.done + found
  if found < n then finish(self) end
  return found
end

function methods:start (epoch, batch)
  batch = batch or 0
  if not (is_count(epoch) and is_count(batch)) then
    raise("%s: no batch %s in epoch %s (both count what was done, from 0)",
          self.name, tostring(batch), tostring(epoch))
  end
  self.at, self.done, self.ended, self.lost = epoch, 0, false, false
  self.given:start(epoch)
  if self:skip(batch) < batch then
    raise("%s: no batch %d in epoch %d (it has %d)", self.name, batch, epoch,
          self.done)
  end
  return self
end

-- What raised in the midst of a batch has left the reading at some place:
-- the next call goes back to the cursor.
function methods:next ()
  if self.lost then self:start(self.at, self.done) end
  if self.ended then return end
  self.lost = true
  local batch = pack(self.given:next())
  self.lost = false
  if batch[1] == nil then return finish(self) end
  self.done = self.done + 1
  return unpack(batch, 1, batch.n)
end

-- Whether all that the epoch has was given.
local function is_over (self)
  return self.ended or self.count and self.done >= self.count
end

function methods:epoch (n)
  if n then
    self:start(n)
  elseif is_over(self) and self.done > 0 then
    self:start(self.at + 1)
  end
  return function () return self:next() end
end

-- for x, y in source do: the rest of an epoch, of the next the next time.
function Source:__call ()
  local batch = pack(self:next())
  if batch[1] == nil then self:start(self.at + 1) end
  return unpack(batch, 1, batch.n)
end

function methods:state_dict ()
  local state = { epoch = self.at, batch = self.done,
                  batches = self.count or nil }
  for key, v in pairs(self.given.match or {}) do state[key] = v end
  return state
end

-- Raises what load_state_dict would raise, but for batches that are not there.
function methods:check_state_dict (state)
  if type(state) ~= "table" or not is_count(state.epoch) or
     not is_count(state.batch) then
    raise("%s: load_state_dict: expected { epoch =, batch = }, got %s",
          self.name, type(state) == "table" and "another table" or type(state))
  end
  for key, v in pairs(self.given.match or {}) do
    if state[key] ~= v then
      raise("%s: load_state_dict: the state is of %s %s, this source has %s",
            self.name, key, tostring(state[key]), tostring(v))
    end
  end
end

function methods:load_state_dict (state)
  self:check_state_dict(state)
  self:start(state.epoch, state.batch)
  if not self.count and is_count(state.batches) then
    self.count = state.batches
  end
  return self
end

-- }======================================================

-- {======================================================
-- Files of JSON lines
-- =======================================================

local defaults = { input = false, target = false, batch = 1, batch_size = 1,
                   shuffle = 0, seed = 0, drop_last = false, device = false,
                   reuse = false }
local types = { input = "any", target = "any", device = "string" }
local field_keys = { [1] = true, dtype = true, shape = true }

-- A field by its name, or { name, dtype =, shape = }.
local function field_of (option, v)
  if type(v) == "string" then v = { v } end
  if type(v) ~= "table" or getmetatable(v) or type(v[1]) ~= "string" then
    raise("JsonlStream: option '%s': expected the name of a field, or "
          .. "{ name, dtype =, shape = }, got %s", option, type(v))
  end
  for key in next, v do
    if not field_keys[key] then
      raise("JsonlStream: option '%s': a field is { name, dtype =, shape = }: "
            .. "got '%s'", option, tostring(key))
    end
  end
  return v
end

local function size_of (o, opts)
  if opts and opts.batch and opts.batch_size then
    raise "JsonlStream: batch and batch_size are one option: give one"
  end
  local size = opts and opts.batch_size or o.batch
  if not is_count(size) or size == 0 then
    raise("JsonlStream: the batch must have at least one item (got %s)",
          tostring(size))
  end
  return size
end

-- data.JsonlStream(path, { input =, target =, batch =, ... })
local function JsonlStream (path, opts)
  local o = check("JsonlStream", opts, defaults, types)
  options.check_path("JsonlStream", path)
  if not o.input then
    raise "JsonlStream: expected an option 'input', the name of a field"
  end
  local size, whole = size_of(o, opts), o.drop_last
  local fields = { field_of("input", o.input) }
  if o.target then fields[2] = field_of("target", o.target) end
  local device = o.device and tostring(fnn.device(o.device)) or
                 tostring(fnn.default_device())
  local file = internals.JsonlStream(path, fields, {
    shuffle = o.shuffle, seed = o.seed, reuse = o.reuse,
  })
  return source {
    name = "JsonlStream",
    match = { batch_size = size, shuffle = o.shuffle, seed = o.seed,
              drop_last = whole },
    start = function (_, epoch) file:_start(epoch) end,
    next = function () return file:_next(size, whole, device) end,
    skip = function (_, n)
      local items = file:_skip(min(n, maxinteger // size) * size)
      return whole and items // size or (items + size - 1) // size
    end,
  }
end

-- }======================================================

return { source = source, JsonlStream = JsonlStream }
