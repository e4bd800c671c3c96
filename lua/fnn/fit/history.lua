-- history.lua - what was seen in each epoch: a list of tables, which can be
-- had as columns, and as what JSON can keep.

local fnn, load = ...
local module = load "nn/module"

local getmetatable, ipairs, pairs = getmetatable, ipairs, pairs
local setmetatable, tostring, type = setmetatable, tostring, type
local math_type = math.type
local format, rep = string.format, string.rep
local concat, sort = table.concat, table.sort
local raise = module.raise

local history = {}

-- {======================================================
-- The list
-- =======================================================

-- The names that are in any epoch.
local function names_of (list)
  local names = {}
  for _, stats in ipairs(list) do
    for name in pairs(stats) do names[name] = true end
  end
  return names
end

-- history:column(name): one value an epoch, nan where there was none.
local function column (list, name)
  local names, values = names_of(list), {}
  if not names[name] and #list > 0 then
    raise("history: no column '%s'%s", tostring(name),
          module.suggestion(name, names, true))
  end
  for i, stats in ipairs(list) do
    local v = stats[name]
    values[i] = v == nil and 0 / 0 or v
  end
  return values
end

-- The order in which columns are shown: as they are trained and validated.
local function shown (names)
  local list = {}
  local function rank (name)
    local place = ({ epoch = 0, loss = 1, val_loss = 3, lr = 5 })[name]
    return place or name:sub(1, 4) == "val_" and 4 or 2
  end
  for name in pairs(names) do list[#list + 1] = name end
  sort(list, function (a, b)
    local x, y = rank(a), rank(b)
    if x ~= y then return x < y end
    return a < b
  end)
  return list
end
history.shown = shown

local function text (v)
  if v == nil then return "" end
  return math_type(v) == "float" and format("%.5g", v) or
         math_type(v) and tostring(v) or "..."
end

local function show (list)
  local names, widths = shown(names_of(list)), {}
  local lines = { names }
  for i, stats in ipairs(list) do
    lines[i + 1] = {}
    for k, name in ipairs(names) do lines[i + 1][k] = text(stats[name]) end
  end
  for i, line in ipairs(lines) do
    local padded = {}
    for k, cell in ipairs(line) do
      if i == 1 then
        widths[k] = 0
        for _, other in ipairs(lines) do
          if #other[k] > widths[k] then widths[k] = #other[k] end
        end
      end
      padded[k] = rep(" ", widths[k] - #cell) .. cell
    end
    lines[i] = concat(padded, "  ")
  end
  return concat(lines, "\n")
end

-- An empty one; what fit tells of the run are fields that pairs does not see.
function history.new ()
  return setmetatable({}, {
    __name = "fnn.History", __index = { column = column }, __tostring = show,
  })
end

function history.tell (list, name, v) getmetatable(list).__index[name] = v end

-- }======================================================

-- {======================================================
-- In a file
-- =======================================================

-- A value as JSON keeps it: numbers that are none have names, tensors and
-- lists are tagged.
local function pack (v)
  if fnn.is_tensor(v) then
    return { tensor = pack(v:reshape(-1):totable()), shape = v:shape(),
             dtype = v:dtype() }
  elseif type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = pack(x) end
    return { list = list }
  elseif math_type(v) == "float" and v - v ~= 0 then
    return { number = v ~= v and "nan" or v > 0 and "inf" or "-inf" }
  end
  return v
end

local named = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

local function unpacked (v)
  if type(v) ~= "table" then return v end
  if v.number then return named[v.number] end
  if v.tensor then
    return fnn.tensor(unpacked(v.tensor), { dtype = v.dtype })
      :reshape(v.shape)
  end
  local list = {}
  for i, x in ipairs(v.list) do list[i] = unpacked(x) end
  return list
end

local function each (t, f)
  local out = {}
  for key, v in pairs(t) do out[key] = f(v) end
  return out
end

function history.pack (list)
  local out = {}
  for i, stats in ipairs(list) do out[i] = each(stats, pack) end
  return out
end

function history.unpack (list, packed)
  for i = #list, 1, -1 do list[i] = nil end
  for i, stats in ipairs(packed) do list[i] = each(stats, unpacked) end
end

history.pack_value, history.unpack_value = pack, unpacked

-- }======================================================

return history
