-- data.lua - datasets, and what is made of them: parts, splits, batches.
--
-- A dataset is a fnn.Dataset, or any table or userdata with
--   __len          how many items
--   fields         { { shape = {..}, dtype = ".." }, ... } of one item, or a
--                  method that returns it
--   get(self, i, x, y, ...)   fills the given views with item i, from 1
local fnn, load, internals = ...
local data, Dataset = fnn.data, internals.Dataset
local options = load "data/options"

load "data/loader"
load "data/scale"
load "data/files"
load "data/mnist"

local getmetatable, ipairs, pairs, tostring, type =
  getmetatable, ipairs, pairs, tostring, type
local abs, floor, max, min = math.abs, math.floor, math.max, math.min
local math_type, move, sort, unpack =
  math.type, table.move, table.sort, table.unpack
local raise, check = options.raise, options.check

-- ds:batches(n, options): iterates once over the dataset in batches of n;
-- the option epoch chooses the order.
function Dataset:batches(n, opts)
  local o, which = { batch = n }, 0
  for k, v in pairs(opts or {}) do
    if k == "epoch" then which = v else o[k] = v end
  end
  return data.DataLoader(self, o):epoch(which)
end

-- ds:stream(options): the same batches as a source, epoch after epoch.
function Dataset:stream(opts) return data.DataLoader(self, opts) end

-- ds:labels([field]): one field of all items, the others unread.
function Dataset:labels(field)
  return self:items(fnn.arange(#self, { dtype = "i64", device = "cpu" }),
                    field or 2)
end

-- ds:all(): the whole dataset as one batch.
function Dataset:all()
  return self:items(fnn.arange(#self, { dtype = "i64", device = "cpu" }))
end

---------------------------------------------------------------------------
-- Splits
---------------------------------------------------------------------------

-- A fraction, or a list of fractions that add up to 1, as a list.
local function fractions(f)
  local list = type(f) == "number" and { f, 1 - f } or f
  if type(list) ~= "table" or #list == 0 then
    raise("split: expected a fraction or a list of them, got %s", type(f))
  end
  local sum = 0
  for _, v in ipairs(list) do
    if type(v) ~= "number" or not (v >= 0 and v <= 1) then
      raise("split: expected fractions from 0 to 1, got %s", tostring(v))
    end
    sum = sum + v
  end
  if abs(sum - 1) > 1e-6 then
    raise("split: the fractions must add up to 1 (got %g)", sum)
  end
  return list
end

-- How many of n items are in the parts up to each; with each set, no part
-- whose fraction is above 0 stays empty, where n is enough.
local function bounds(n, list, each)
  local at, sum, wanted = {}, 0, 0
  for i, f in ipairs(list) do
    sum = sum + f
    at[i] = i == #list and n or min(n, floor(sum * n + 0.5))
    if f > 0 then wanted = wanted + 1 end
  end
  if not each or n < wanted then return at end
  local left, before = wanted, 0
  for i, f in ipairs(list) do
    local own = f > 0 and 1 or 0
    left = left - own
    at[i] = max(before + own, min(at[i], n - left))
    before = at[i]
  end
  return at
end

-- A subset of ds for each list of ids.
local function subsets(ds, lists)
  for i, ids in ipairs(lists) do lists[i] = ds:subset(ids) end
  return unpack(lists)
end

-- ds:split(fraction, { seed = }): the items of the first part, fraction of
-- them, and the others, in random order; or a part for each of a list of
-- fractions.
function Dataset:split(f, opts)
  local list = fractions(f)
  local o = check("split", opts, { seed = 0 })
  local order = data.order(#self, o.seed, 0):totable()
  local parts, first = {}, 1
  for i, last in ipairs(bounds(#order, list)) do
    parts[i] = move(order, first, last, 1, {})
    first = last + 1
  end
  return subsets(self, parts)
end

-- The labels in a field, ids or one-hot rows, as ids; the other fields are not
-- read.
local function labels_of(ds, field)
  local n = #ds:fields()
  if math_type(field) ~= "integer" or field < 1 or field > n then
    raise("split_stratified: no field %s (there are %d)", tostring(field), n)
  end
  local list = {}
  for first = 0, #ds - 1, 1024 do
    local ids = fnn.arange(first, min(first + 1024, #ds),
                           { dtype = "i64", device = "cpu" })
    local y = ds:items(ids, field)
    if y:ndim() == 2 and y:size(2) > 1 then y = y:argmax(2) end
    if y:numel() ~= #ids then
      raise("split_stratified: field %d has no labels (expected an id or a "
            .. "one-hot row an item)", field)
    end
    move(y:reshape(-1):totable(), 1, #ids, #list + 1, list)
  end
  return list
end

-- Lists of the items of each class, and the classes in order.
local function by_class(labels)
  local groups, classes = {}, {}
  for i, c in ipairs(labels) do
    if not groups[c] then
      groups[c] = {}
      classes[#classes + 1] = c
    end
    local g = groups[c]
    g[#g + 1] = i - 1
  end
  sort(classes)
  return groups, classes
end

-- ds:split_stratified(fraction, { seed =, field = }): as split, with each
-- class's share in every part, and a class of enough items in all of them.
function Dataset:split_stratified(f, opts)
  local list = fractions(f)
  local o = check("split_stratified", opts, { seed = 0, field = 2 })
  local groups, classes = by_class(labels_of(self, o.field))
  local parts = {}
  for i = 1, #list do parts[i] = {} end
  for index, c in ipairs(classes) do
    local g = groups[c]
    local order = data.order(#g, o.seed, index):totable()
    local first = 1
    for i, last in ipairs(bounds(#g, list, true)) do
      local to = parts[i]
      for k = first, last do to[#to + 1] = g[order[k] + 1] end
      first = last + 1
    end
  end
  for i = 1, #list do sort(parts[i]) end
  return subsets(self, parts)
end

-- The same as functions: data.split(ds, ...).
for _, name in ipairs { "split", "split_stratified" } do
  data[name] = function (ds, ...)
    if getmetatable(ds) ~= "fnn.Dataset" then
      raise("%s: expected a Dataset, got %s", name, type(ds))
    end
    return Dataset[name](ds, ...)
  end
end
