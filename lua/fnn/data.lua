-- data.lua - datasets: how they are made, split, scaled and run through in
-- batches.
--
-- A dataset is a fnn.Dataset, or any table or userdata with
--   __len          how many items
--   fields         { { shape = {..}, dtype = ".." }, ... } of one item, or a
--                  method that returns it
--   get(self, i, x, y, ...)   fills the given views with item i, from 1
local fnn, _, internals = ...
local data, io = fnn.data, fnn.io
local Dataset, Loader = internals.Dataset, internals.Loader
-- What C lends to this file and scripts do not see.
local c_loader, point, digits_bytes = data.loader, data.point,
                                      data.digits_bytes
data.loader, data.point, data.digits_bytes = nil, nil, nil
local error, getmetatable, ipairs, pairs, select, setmetatable, type =
  error, getmetatable, ipairs, pairs, select, setmetatable, type
local floor, max, min = math.floor, math.max, math.min
local move, sort, unpack = table.move, table.sort, table.unpack

local function where(message) error(message, 3) end

---------------------------------------------------------------------------
-- Loaders
---------------------------------------------------------------------------

-- Batches of a dataset written in Lua.  Its get runs here, on the caller's
-- side; one box a field shows the part of the batch that is being filled.
local LuaLoader = {}
LuaLoader.__index = LuaLoader

local function fields_of(ds)
  local f = ds.fields
  if type(f) == "function" then f = f(ds) end
  if type(f) ~= "table" then
    where "DataLoader: a dataset in Lua needs fields: a list of { shape, dtype }"
  end
  return f
end

local function lua_loader(ds, opts)
  if type(ds.get) ~= "function" then
    where "DataLoader: a dataset in Lua needs a method get(self, i, x, ...)"
  end
  local batch = opts.batch or 1
  local count = #ds
  local batches = opts.drop_last and count // batch
                  or (count + batch - 1) // batch
  local self = setmetatable({
    ds = ds, fields = fields_of(ds), size = batch, count = count,
    batches = batches, shuffle = opts.shuffle, seed = opts.seed or 0,
    device = opts.device,
  }, LuaLoader)
  return self:start(0, 0)
end

function LuaLoader:start(epoch, batch)
  self.at, self.done = epoch, batch or 0
  self.order = self.shuffle
    and data.order(self.count, self.seed, epoch):totable() or nil
  return self
end

function LuaLoader:cursor() return self.at, self.done end

function LuaLoader:__len() return self.batches end

function LuaLoader:next()
  if self.done == self.batches then return end
  local first = self.done * self.size
  local n = min(self.size, self.count - first)
  local x, view = {}, {}
  for k, f in ipairs(self.fields) do
    x[k] = fnn.zeros({ n, unpack(f.shape or {}) }, { dtype = f.dtype })
    view[k] = x[k]:select(1, 1)
  end
  local ds, order = self.ds, self.order
  for i = 1, n do
    for k = 1, #x do point(view[k], x[k], i) end
    ds:get(order and order[first + i] + 1 or first + i, unpack(view))
  end
  if self.device then
    for k = 1, #x do x[k] = x[k]:to(self.device) end
  end
  self.done = self.done + 1
  return unpack(x)
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
  return function() return self:next() end
end

Loader.epoch = epoch
LuaLoader.epoch = epoch

local loader_options = { "batch", "batch_size", "shuffle", "seed", "drop_last",
                         "prefetch", "device" }

local function check(opts, names)
  for k in pairs(opts) do
    local known = false
    for _, name in ipairs(names) do known = known or name == k end
    if not known then
      local near = internals.nearest(k, names)
      where(("unknown option '%s'%s"):format(k, near and
            (" (did you mean '%s'?)"):format(near) or ""))
    end
  end
end

-- data.DataLoader(dataset, { batch =, shuffle =, seed =, drop_last =,
-- prefetch =, device = })
function data.DataLoader(ds, opts)
  local o = {}
  check(opts or {}, loader_options)
  for k, v in pairs(opts or {}) do o[k] = v end
  o.batch, o.batch_size = o.batch or o.batch_size, nil
  if getmetatable(ds) == "fnn.Dataset" then return c_loader(ds, o) end
  return lua_loader(ds, o)
end

-- ds:batches(n, options): iterates once over the dataset in batches of n;
-- the option epoch chooses the order.
function Dataset:batches(n, opts)
  local o, which = { batch = n }, 0
  for k, v in pairs(opts or {}) do
    if k == "epoch" then which = v else o[k] = v end
  end
  return data.DataLoader(self, o):epoch(which)
end

-- ds:all(): the whole dataset as one batch.
function Dataset:all()
  return self:items(fnn.arange(#self, { dtype = "i64" }))
end

---------------------------------------------------------------------------
-- Splits
---------------------------------------------------------------------------

local function fraction(f)
  if type(f) ~= "number" or not (f >= 0 and f <= 1) then
    error("split: expected a fraction from 0 to 1", 3)
  end
end

local function two(ds, first, second)
  return ds:subset(first), ds:subset(second)
end

-- Elements first .. last of a list, as a list.
local function part(list, first, last)
  return move(list, first, last, 1, {})
end

-- ds:split(fraction, { seed = }): the items of the first part, fraction of
-- them, and the others, in random order.
function Dataset:split(f, opts)
  fraction(f)
  local order = data.order(#self, opts and opts.seed or 0, 0):totable()
  local k = floor(f * #order + 0.5)
  return two(self, part(order, 1, k), part(order, k + 1, #order))
end

-- Ids of the items of each class, classes in order, by the labels in a
-- field: ids, or one-hot rows.
local function by_class(ds, field)
  local labels = select(field, ds:all())
  if not labels then error("split_stratified: there is no such field", 3) end
  if labels:ndim() == 2 then labels = labels:argmax(2) end
  local groups, names = {}, {}
  for i, c in ipairs(labels:totable()) do
    if not groups[c] then
      groups[c] = {}
      names[#names + 1] = c
    end
    local g = groups[c]
    g[#g + 1] = i - 1
  end
  sort(names)
  return groups, names
end

-- ds:split_stratified(fraction, { seed =, field = }): as split, with each
-- class's share on both sides; a class of two or more is on both.
function Dataset:split_stratified(f, opts)
  fraction(f)
  local groups, names = by_class(self, opts and opts.field or 2)
  local first, second = {}, {}
  for index, c in ipairs(names) do
    local g = groups[c]
    local order = data.order(#g, opts and opts.seed or 0, index):totable()
    local k = floor(f * #g + 0.5)
    if #g >= 2 and f > 0 and f < 1 then k = max(1, min(#g - 1, k)) end
    for i, at in ipairs(order) do
      local to = i <= k and first or second
      to[#to + 1] = g[at + 1]
    end
  end
  sort(first)
  sort(second)
  return two(self, first, second)
end

---------------------------------------------------------------------------
-- Scaling
---------------------------------------------------------------------------

-- The mean and deviation of each column of a tensor (n, ...), which
-- standardizes other tensors alike.
local Standardizer = {}
Standardizer.__index = Standardizer

-- s:apply(x): (x - mean) / std, for rows or for one row.
function Standardizer:apply(x) return (x - self.mean) / self.std end

function Standardizer:state()
  return { mean = self.mean:totable(), std = self.std:totable() }
end

-- data.Standardizer(state): of what state() returned.
function data.Standardizer(state)
  return setmetatable({
    mean = fnn.tensor(state.mean, { dtype = "f64" }):to("f32"),
    std = fnn.tensor(state.std, { dtype = "f64" }):to("f32"),
  }, Standardizer)
end

-- data.standardize(x): x standardized by its columns (deviation of the
-- population, 0 counts as 1), and the Standardizer for other data.
function data.standardize(x)
  local wide = x:to("f64")
  local std = wide:std(1, { correction = 0 })
  local s = setmetatable({
    mean = wide:mean(1):to(x:dtype()),
    std = std:masked_fill(std:eq(0), 1):to(x:dtype()),
  }, Standardizer)
  return s:apply(x), s
end

-- data.one_hot_targets(labels, n): (rows, n) of whole numbers 0 .. n-1.
function data.one_hot_targets(labels, n)
  local ids = labels:to("i64")
  if ids:to(labels:dtype()):ne(labels):any():item() then
    error("one_hot_targets: the labels must be whole numbers", 2)
  end
  return ids:one_hot(n):to("f32")
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

-- data.from_csv(path, targets, options): the last targets columns are the
-- targets, the others the inputs.  Returns the dataset and the column names.
function data.from_csv(path, targets, opts)
  local x, names = io.read_csv(path, opts)
  local columns = x:size(2)
  if targets < 1 or targets >= columns then
    error(("from_csv: %d target columns of %d"):format(targets, columns), 2)
  end
  return data.TensorDataset(x:narrow(2, 1, columns - targets),
                            x:narrow(2, columns - targets + 1, targets)), names
end

-- data.from_csv_labeled(path, options): inputs and class ids of the last
-- column (or option label).  Returns the dataset, the class names (in sorted
-- order, id 0 first) and the column names.
function data.from_csv_labeled(path, opts)
  local o = { label = -1 }
  for k, v in pairs(opts or {}) do o[k] = v end
  local x, names, labels, names_of_classes = io.read_csv(path, o)
  return data.TensorDataset(x, labels), names_of_classes, names
end

-- data.from_npy(x, y): two .npy files.
function data.from_npy(x, y)
  return data.TensorDataset(io.read_npy(x), io.read_npy(y))
end

-- data.from_idx(images, labels): u8 images (n, h, w), read as f32 0 .. 1 of
-- shape (1, h, w), and their class ids.
function data.from_idx(images, labels)
  local x, y = io.read_idx(images), io.read_idx(labels)
  if x:ndim() ~= 3 or x:dtype() ~= "u8" then
    error(images .. ": expected bytes (n, h, w)", 2)
  end
  if y:ndim() ~= 1 or #y ~= #x then
    error(("%s: %s has %d images, this file %d labels"):format(labels, images,
          #x, y:ndim() > 0 and #y or 0), 2)
  end
  return data.TensorDataset(
    { x:unsqueeze(2), dtype = "f32", scale = 1 / 255 }, y:to("i64"))
end

-- data.digits(): the 1797 handwritten digits of the UCI Machine Learning
-- Repository's "Optical Recognition of Handwritten Digits" (8 by 8, inputs
-- 0 .. 1 of shape (1, 8, 8), labels 0 .. 9), which are in the library.
function data.digits()
  local x, y = digits_bytes()
  return data.TensorDataset(
    { x:unsqueeze(2), dtype = "f32", scale = 1 / 16 }, y)
end
