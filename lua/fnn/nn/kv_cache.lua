-- kv_cache.lua - keys and values of what has been read, so that the next
-- tokens need not read it again.
--
--   local cache = nn.KvCache { length = 256 }
--   local logits = model(prompt, { cache = cache })
--   logits = model(token, { cache = cache })
--
-- Each attention layer of the model gets a slot when it first comes: buffers
-- (batch, heads, length, size) for all there will be, of which it is given
-- views.  A mask of keys is the same for all layers and kept once.

local fnn, load, internals = ...
local nn = fnn.nn
local module = load "nn/module"
local positions = load "nn/positions"

local ipairs, pairs, min, rawequal = ipairs, pairs, math.min, rawequal
local setmetatable, tostring, math_type = setmetatable, tostring, math.type
local raise, described = module.raise, module.described
local count, keep_mask = positions.count, positions.keep_mask

local Cache = internals.namespace({}, "nn.KvCache")
local meta = { __name = "fnn.KvCache", __index = Cache }

local dtypes = { f64 = true, f32 = true, f16 = true, bf16 = true }

function nn.KvCache (options)
  local o = module.options("KvCache", options, {
    layers = false, length = false, dtype = false })
  if o.layers then count("KvCache", "option 'layers'", o.layers) end
  if o.dtype and not dtypes[o.dtype] then
    raise("KvCache: option 'dtype': expected f64, f32, f16 or bf16, got %s",
          tostring(o.dtype))
  end
  return setmetatable({
    layers = o.layers, dtype = o.dtype,
    length = count("KvCache", "option 'length'", o.length or nil),
    slots = {}, of = {}, crossed = {},
  }, meta)
end

-- The number of tokens that all layers hold.
function meta:__len ()
  local held
  for _, slot in ipairs(self.slots) do
    held = min(held or slot.held, slot.held)
  end
  return held or 0
end

function meta:__tostring ()
  return "KvCache of " .. #self .. " of " .. self.length .. " tokens, " ..
         #self.slots .. " layers"
end

function Cache:is_empty () return #self == 0 end

-- {======================================================
-- Forgetting
-- =======================================================

-- Keeps the first n tokens.
function Cache:truncate (n)
  local held = #self
  if math_type(n) ~= "integer" or n < 0 or n > held then
    raise("KvCache:truncate: expected 0 to %d, the tokens that it holds, " ..
          "got %s", held, tostring(n))
  end
  for _, slot in ipairs(self.slots) do slot.held = n end
  self.places = nil
  if n == 0 then self.keep, self.crossed = nil, {} end
  return self
end

-- Forgets all; the buffers stay for the next use.
function Cache:clear () return self:truncate(0) end

-- }======================================================

-- {======================================================
-- What layers ask for
-- =======================================================

-- The places of length new tokens in a layer (or before all layers), as
-- positions.of gives them: where masks came with tokens, each row counts what
-- is kept of it.
function Cache:positions (length, key_mask, layer)
  local slot = layer and self.of[layer]
  local held = slot and slot.held or layer and 0 or #self
  local rows = held + length
  if not key_mask and not self.keep then return held, rows end
  local p = self.places  -- the layers of one pass ask for the same
  if p and p.held == held and p.length == length and
     rawequal(p.mask, key_mask) then
    return p.value, rows
  end
  local before = held
  if self.keep and held > 0 then
    before = self.keep:narrow(2, 1, held):to("i64"):sum(2, { keepdim = true })
  end
  local value
  if key_mask then
    value = positions.counted(key_mask, before)
  else
    value = before + fnn.arange(0, length, 1, {
      dtype = "i64", device = self.keep:device() })
  end
  self.places = { held = held, length = length, mask = key_mask,
                  value = value }
  return value, rows
end

local function check_room (self, slot, new)
  if slot.held + new > self.length then
    raise("KvCache: length %d, holds %d, asked for %d more", self.length,
          slot.held, new)
  end
end

-- A slot for a layer that comes for the first time, with the tokens that
-- other layers got a moment ago.
local function new_slot (self, layer, new)
  if self.layers and #self.slots >= self.layers then
    raise("KvCache: it is for %d layers, and this is one more", self.layers)
  end
  for _, other in ipairs(self.slots) do
    if other.held > 0 and other.held ~= new then
      raise("KvCache: a layer that has not seen the %d tokens before: clear " ..
            "the cache", other.held - new)
    end
  end
  local slot = { held = 0 }
  self.slots[#self.slots + 1] = slot
  self.of[layer] = slot
  return slot
end

local function buffer (self, have, x)
  local shape = x:shape()
  local dtype = self.dtype or x:dtype()
  if have and have:dtype() == dtype and have:device() == x:device() and
     have:size(1) == shape[1] and have:size(2) == shape[2] and
     have:size(4) == shape[4] then
    return have
  end
  return fnn.zeros({ shape[1], shape[2], self.length, shape[4] },
                   { dtype = dtype, device = x:device() })
end

local function check_like (b, x)
  if x:size(1) ~= b:size(1) or x:size(2) ~= b:size(2) or
     x:size(4) ~= b:size(4) or x:device() ~= b:device() then
    raise("KvCache: holds keys %s on %s, got %s on %s: clear it for another " ..
          "batch", positions.shape_text(b), b:device(),
          positions.shape_text(x), x:device())
  end
end

-- Keys and values of a layer of a script may be anything.
local function check_new (k, v)
  for name, x in pairs { keys = k or false, values = v or false } do
    if not positions.is_tensor(x) or x:ndim() ~= 4 then
      raise("KvCache:append: expected %s (batch, heads, new, size), got %s",
            name, positions.is_tensor(x) and positions.shape_text(x) or
                  described(x or nil))
    end
  end
  for d = 1, 3 do
    if k:size(d) ~= v:size(d) then
      raise("KvCache:append: keys %s and values %s differ in more than the " ..
            "last size", positions.shape_text(k), positions.shape_text(v))
    end
  end
end

-- Writes the mask of new tokens behind those of the first `held`.
local function keep_new (self, key_mask, batch, held, new, device)
  if not key_mask and not self.keep then return end
  if not self.keep then
    self.keep = fnn.full({ batch, self.length }, true,
                         { dtype = "bool", device = device })
  end
  local to = self.keep:narrow(2, held + 1, new)
  if key_mask then to:copy_(key_mask) else to:fill_(1) end
end

-- Adds k and v (batch, heads, new, size) of a layer's new tokens, whose mask
-- (batch, new) may be nil; returns keys, values and the mask of all so far.
function Cache:append (layer, k, v, key_mask)
  check_new(k, v)
  if k:has_graph() or v:has_graph() then
    raise "KvCache: for inference only: call the model in fnn.no_grad"
  end
  local new = k:size(3)
  local slot = self.of[layer]
  if slot and slot.held > #self then
    raise("KvCache: a layer comes twice in this pass, which it may not, or " ..
          "the last pass did not reach all layers: truncate(%d), or clear, " ..
          "goes on", #self)
  end
  slot = slot or new_slot(self, layer, new)
  check_room(self, slot, new)
  if slot.held > 0 then
    check_like(slot.k, k)
    check_like(slot.v, v)
  end
  if key_mask then
    key_mask = keep_mask("KvCache", "key_mask", key_mask, k:size(1), new)
  end
  if slot.held == 0 then
    slot.k, slot.v = buffer(self, slot.k, k), buffer(self, slot.v, v)
  end
  if slot == self.slots[1] then
    keep_new(self, key_mask, k:size(1), slot.held, new, k:device())
  end
  if new > 0 then
    slot.k:narrow(3, slot.held + 1, new):copy_(k:detach())
    slot.v:narrow(3, slot.held + 1, new):copy_(v:detach())
  end
  slot.held = slot.held + new
  return slot.k:narrow(3, 1, slot.held), slot.v:narrow(3, 1, slot.held),
         self.keep and self.keep:narrow(2, 1, slot.held)
end

-- Keys and values that a layer makes of a memory by make(): once for each.
function Cache:memory (layer, memory, make)
  local c = self.crossed[layer]
  if not (c and rawequal(c.memory, memory)) then
    local k, v = make()
    if k:has_graph() or v:has_graph() then
      raise "KvCache: for inference only: call the model in fnn.no_grad"
    end
    c = { memory = memory, k = k, v = v }
    self.crossed[layer] = c
  end
  return c.k, c.v
end

-- }======================================================

return true
