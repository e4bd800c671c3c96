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

local ipairs, pairs, select, type = ipairs, pairs, select, type
local floor, max, min = math.floor, math.max, math.min
local math_type, move, sort = math.type, table.move, table.sort
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

-- ds:all(): the whole dataset as one batch.
function Dataset:all()
  return self:items(fnn.arange(#self, { dtype = "i64" }))
end

---------------------------------------------------------------------------
-- Splits
---------------------------------------------------------------------------

local function fraction(f)
  if type(f) ~= "number" or not (f >= 0 and f <= 1) then
    raise("split: expected a fraction from 0 to 1, got %s", f)
  end
end

-- Elements first .. last of a list, as a list.
local function part(list, first, last)
  return move(list, first, last, 1, {})
end

-- ds:split(fraction, { seed = }): the items of the first part, fraction of
-- them, and the others, in random order.
function Dataset:split(f, opts)
  fraction(f)
  local o = check("split", opts, { seed = 0 })
  local order = data.order(#self, o.seed, 0):totable()
  local k = floor(f * #order + 0.5)
  return self:subset(part(order, 1, k)),
         self:subset(part(order, k + 1, #order))
end

-- The labels in a field, ids or one-hot rows, as ids; only a piece of the
-- other fields is read at a time.
local function labels_of(ds, field)
  local n = #ds:fields()
  if math_type(field) ~= "integer" or field < 1 or field > n then
    raise("split_stratified: field %s of %d", field, n)
  end
  local list = {}
  for first = 0, #ds - 1, 1024 do
    local ids = fnn.arange(first, min(first + 1024, #ds), { dtype = "i64" })
    local y = select(field, ds:items(ids))
    if y:ndim() == 2 and y:size(2) > 1 then y = y:argmax(2) end
    if y:ndim() ~= 1 then y = y:reshape(-1) end
    if #y ~= #ids then
      raise("split_stratified: field %d has no labels: an id or a one-hot "
            .. "row an item", field)
    end
    move(y:totable(), 1, #y, #list + 1, list)
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
-- class's share on both sides; a class of two or more is on both.
function Dataset:split_stratified(f, opts)
  fraction(f)
  local o = check("split_stratified", opts, { seed = 0, field = 2 })
  local groups, classes = by_class(labels_of(self, o.field))
  local first, second = {}, {}
  for index, c in ipairs(classes) do
    local g = groups[c]
    local order = data.order(#g, o.seed, index):totable()
    local k = floor(f * #g + 0.5)
    if #g >= 2 and f > 0 and f < 1 then k = max(1, min(#g - 1, k)) end
    for i, at in ipairs(order) do
      local to = i <= k and first or second
      to[#to + 1] = g[at + 1]
    end
  end
  sort(first)
  sort(second)
  return self:subset(first), self:subset(second)
end
