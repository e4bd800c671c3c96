-- scale.lua - inputs scaled to mean 0 and deviation 1, labels as one-hot rows.
local fnn, load, internals = ...
local data = fnn.data
local options = load "data/options"

local getmetatable, setmetatable, type = getmetatable, setmetatable, type
local concat, unpack = table.concat, table.unpack
local raise = options.raise

-- The mean and deviation of each column of a tensor (n, ...), which
-- standardizes other tensors alike.
local methods = internals.namespace({}, "Standardizer")
local Standardizer = { __name = "fnn.Standardizer", __index = methods }

local function is_dataset(x) return getmetatable(x) == "fnn.Dataset" end

-- A dataset in memory whose first field is f of that of ds.
local function with_first(ds, f)
  local fields = { ds:all() }
  fields[1] = f(fields[1])
  return data.TensorDataset(unpack(fields))
end

local function check_columns(self, x, what)
  local shape, own = x:shape(), self.mean:shape()
  local from = #shape - #own
  local same = from == 0 or from == 1
  for i = 1, #own do same = same and shape[from + i] == own[i] end
  if not same then
    raise("%s: expected rows of shape (%s), got (%s)", what,
          concat(own, ", "), concat(shape, ", "))
  end
end

-- s:apply(x): (x - mean) / std, of rows, of one row, or of a dataset's first
-- field.
function methods:apply(x)
  if is_dataset(x) then
    return with_first(x, function (inputs) return self:apply(inputs) end)
  end
  check_columns(self, x, "Standardizer")
  return (x - self.mean) / self.std
end

function methods:state()
  return { dtype = self.mean:dtype(), mean = self.mean:totable(),
           std = self.std:totable() }
end

function Standardizer:__tostring()
  return ("Standardizer of (%s)"):format(concat(self.mean:shape(), ", "))
end

-- data.Standardizer(state): of what state() returned.
function data.Standardizer(state)
  if type(state) ~= "table" or not state.mean or not state.std then
    raise "Standardizer: expected what state() returned: { mean =, std = }"
  end
  local as = { dtype = state.dtype or "f32" }
  return setmetatable({ mean = fnn.tensor(state.mean, as),
                        std = fnn.tensor(state.std, as) }, Standardizer)
end

-- The Standardizer of a tensor's columns (deviation of the population, 0
-- counts as 1).
local function measure(x)
  local dtype = x:dtype()
  if dtype ~= "f32" and dtype ~= "f64" then
    raise("standardize: expected f32 or f64, got %s", dtype)
  elseif x:ndim() < 1 or #x == 0 then
    raise "standardize: there are no rows"
  end
  local wide = x:to "f64"
  local std = wide:std(1, { correction = 0 })
  return setmetatable({
    mean = wide:mean(1):to(dtype),
    std = std:masked_fill(std:eq(0), 1):to(dtype),
  }, Standardizer)
end

-- data.standardize(x): a tensor standardized by its columns, or a dataset
-- whose first field is, and the Standardizer for other data.
function data.standardize(x)
  local s = measure(is_dataset(x) and (x:all()) or x)
  return s:apply(x), s
end

-- data.one_hot_targets(labels, n): (rows, n) of whole numbers 0 .. n-1.
function data.one_hot_targets(labels, n)
  local ids = labels:to "i64"
  if ids:to(labels:dtype()):ne(labels):any():item() then
    raise "one_hot_targets: the labels must be whole numbers"
  end
  return ids:one_hot(n):to "f32"
end
