-- state.lua - what an optimizer or an average keeps, by name: state_dict,
-- load_state_dict, save and load.
--
-- A state is an ordered table as a model's is: a list of names, the tensor of
-- each, and in state[".state"] what is no tensor.  Names are those of PyTorch
-- behind the place of the parameter, from 0: "0.exp_avg".  The owner, made in
-- C or in Lua, has for it
--
--   name()              "AdamW"
--   groups()            { { params = {..}, lr = .. }, ... }
--   parameters()        all of these, in order
--   _states()           a table for each: tensors, numbers, lists of either
--   _load(states)       takes such a list back: checks all, then changes
--   _check(states)      what _load checks, if that is more than nothing
--   set_options(t, g)   other options for a group

local fnn, load, internals = ...
local module = load "nn/module"
local json = load "json"

local ipairs, next, pairs, pcall = ipairs, next, pairs, pcall
local error, tonumber, tostring, type = error, tonumber, tostring, type
local concat, sort = table.concat, table.sort
local format, match = string.format, string.match
local tointeger = math.tointeger

local raise, described = module.raise, module.described
local is_tensor = fnn.is_tensor

local state = {}
local methods = {}
local values_key, values_meta = ".state", "fnn.state"

local function shape_text (shape)
  return "(" .. concat(shape, ", ") .. ")"
end

-- {======================================================
-- Out
-- =======================================================

local function sorted_keys (t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  sort(keys)
  return keys
end

-- Adds the tensors of a parameter's table to the state; returns the rest.
local function add_tensors (dict, path, t)
  local rest = {}
  local function add (name, x)
    dict[#dict + 1] = name
    dict[name] = x:detach()
  end
  for _, key in ipairs(sorted_keys(t)) do
    local v = t[key]
    if is_tensor(v) then
      add(path .. key, v)
    elseif type(v) == "table" and is_tensor(v[1]) then
      for i, x in ipairs(v) do add(format("%s%s.%d", path, key, i - 1), x) end
    else
      rest[key] = v
    end
  end
  return rest
end

local function groups_of (owner)
  local groups = {}
  for i, group in ipairs(owner:groups()) do
    groups[i] = { options = {}, params = #group.params }
    for key, v in pairs(group) do
      if key ~= "params" then groups[i].options[key] = v end
    end
  end
  return groups
end

function methods:state_dict ()
  local dict, rests, params = {}, {}, self:parameters()
  for i, t in ipairs(self:_states()) do
    rests[i] = { values = add_tensors(dict, format("%d.", i - 1), t),
                 shape = params[i]:shape() }
  end
  dict[values_key] = { name = self:name(), groups = groups_of(self),
                       params = rests }
  return dict
end

-- }======================================================

-- {======================================================
-- In
-- =======================================================

-- Raises unless the state is of such an owner, with parameters of the same
-- shapes in groups of the same sizes.
local function check_fits (owner, values)
  if type(values) ~= "table" or type(values.params) ~= "table" or
     type(values.groups) ~= "table" then
    raise("load_state_dict: expected what state_dict returns")
  end
  local name = owner:name()
  if values.name ~= name then
    raise("load_state_dict: the state of %s does not fit %s",
          tostring(values.name), name)
  end
  local params = owner:parameters()
  if #values.params ~= #params then
    raise("load_state_dict: %s: the state of %d parameters does not fit %d",
          name, #values.params, #params)
  end
  for i, p in ipairs(params) do
    local saved, want = values.params[i], p:shape()
    local got = type(saved) == "table" and saved.shape or nil
    if got and type(saved.values or {}) ~= "table" then
      raise("load_state_dict: %s: parameter %d: expected a table of values, " ..
            "got %s", name, i, described(saved.values))
    end
    if type(got) ~= "table" or shape_text(got) ~= shape_text(want) then
      raise("load_state_dict: %s: parameter %d: expected shape %s, got %s",
            name, i, shape_text(want),
            type(got) == "table" and shape_text(got) or tostring(got))
    end
  end
  for i, group in ipairs(owner:groups()) do
    local its = values.groups[i]
    local saved = type(its) == "table" and type(its.options) == "table" and
                  its.params or nil
    if saved ~= #group.params or values.groups[i + 1] and
       not owner:groups()[i + 1] then
      raise("load_state_dict: %s: group %d has %d parameters, %s in the state",
            name, i, #group.params, tostring(saved))
    end
  end
end

-- The tables of _states, made again.
local function tables_of (owner, dict)
  local tables = {}
  for i, saved in ipairs(dict[values_key].params) do
    tables[i] = {}
    for key, v in pairs(saved.values or {}) do tables[i][key] = v end
  end
  for _, name in ipairs(dict) do
    local i, key = match(name, "^(%d+)%.(.+)$")
    local t = i and tables[tonumber(i) + 1]
    if not t or not is_tensor(dict[name]) then
      raise("load_state_dict: %s has no place for '%s' (%s)", owner:name(),
            name, described(dict[name]))
    end
    local list, place = match(key, "^(.-)%.(%d+)$")
    if list then
      t[list] = t[list] or {}
      t[list][tointeger(place) + 1] = dict[name]
    else
      t[key] = dict[name]
    end
  end
  return tables
end

local function set_groups (owner, groups)
  for i, g in ipairs(groups) do owner:set_options(g.options, i) end
end

-- Gives the groups their options from the state and calls f; the options are
-- as before if that raises, or only_try.
local function with_options (owner, values, only_try, f)
  local before = groups_of(owner)
  local ok, why = pcall(function ()
    set_groups(owner, values.groups)
    f()
  end)
  if not ok or only_try then set_groups(owner, before) end
  if not ok then error(why, 0) end
end

local function check_dict (owner, dict)
  if type(dict) ~= "table" then
    raise("load_state_dict: expected a table, got %s", described(dict))
  end
  check_fits(owner, dict[values_key])
  return tables_of(owner, dict)
end

-- Changes options and state, or nothing.
function methods:load_state_dict (dict)
  local tables = check_dict(self, dict)
  with_options(self, dict[values_key], false, function ()
    self:_load(tables)
  end)
  return self
end

-- Raises unless load_state_dict would take the state.
function methods:check_state_dict (dict)
  local tables = check_dict(self, dict)
  with_options(self, dict[values_key], true, function ()
    if self._check then self:_check(tables) end
  end)
end

-- }======================================================

-- opt:save(path): a safetensors file
function methods:save (path)
  local dict, list = self:state_dict(), {}
  for i, name in ipairs(dict) do list[i] = { name, dict[name] } end
  local ok, text = pcall(json.encode, dict[values_key])
  if not ok then raise("save: the state of %s: %s", self:name(), text) end
  fnn.io.save_safetensors(path, list, {
    ["fnn.version"] = fnn._VERSION, format = "pt", [values_meta] = text,
  })
  return self
end

function methods:load (path)
  local f = fnn.io.open_safetensors(path)
  local dict = f:names()
  local ok, values = pcall(json.decode, f:metadata()[values_meta] or "{}")
  if not ok or next(values) == nil then
    raise("%s: expected the state of an optimizer in metadata %s", path,
          values_meta)
  end
  for _, name in ipairs(dict) do dict[name] = f:read(name) end
  dict[values_key] = values
  return self:load_state_dict(dict)
end

for name, f in pairs(methods) do internals.Optimizer[name] = f end

state.methods = methods
return state
