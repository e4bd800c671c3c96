-- training.lua - the whole state of a run in one file: fnn.save_training and
-- fnn.load_training.
--
-- A file of safetensors.  Each entry of the table that is saved has a name;
-- the tensors of what has a state_dict (models, optimizers, averages) are
-- "entry.name", and what is no tensor is JSON in the metadata:
--
--   fnn.training   { version = 1, random = "entry of the default generator",
--                    entries = { model = { kind = "state", values = {..} },
--                                step = { kind = "value", value = 1200 } } }

local fnn, load = ...
local io = fnn.io
local module = load "nn/module"
local json = load "json"

local getmetatable, ipairs, pairs, pcall = getmetatable, ipairs, pairs, pcall
local error, tostring, type = error, tostring, type
local concat, sort = table.concat, table.sort
local find, format, sub = string.find, string.format, string.sub
local raise, described = module.raise, module.described

local key, version, random = "fnn.training", 1, "fnn"
local values_key = ".state"  -- of a state_dict: what is no tensor

local function is_object (v) return type(v) == "userdata" or
  type(v) == "table" and getmetatable(v) ~= nil end

local function method (v, name)
  if not is_object(v) then return nil end
  local ok, f = pcall(function () return v[name] end)
  return ok and type(f) == "function" and f or nil
end

-- How a value is kept.
local function kind_of (v)
  if fnn.is_tensor(v) then return "tensor" end
  if method(v, "state_dict") and method(v, "load_state_dict") then
    return "state"
  end
  if method(v, "set_state") and method(v, "state") then return "generator" end
  return not is_object(v) and type(v) ~= "function" and "value" or nil
end

local function names_of (t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  sort(names)
  return names
end

-- {======================================================
-- Out
-- =======================================================

-- Adds the tensors of a state_dict to the list; returns what else is kept.
-- One without names, of a scheduler, has no tensors.
local function add_state (list, name, dict)
  if dict[1] == nil and dict[values_key] == nil then
    return { kind = "state", plain = dict }
  end
  for _, part in ipairs(dict) do
    list[#list + 1] = { name .. "." .. part, dict[part] }
  end
  return { kind = "state", values = dict[values_key] }
end

local function add (list, name, v)
  local kind = kind_of(v)
  if kind == "state" then return add_state(list, name, v:state_dict()) end
  if kind == "value" then return { kind = kind, value = v } end
  if kind == nil then
    raise("save_training: '%s': expected what has a state_dict, a generator, "
          .. "a tensor or a plain value, got %s", name, described(v))
  end
  list[#list + 1] = { name, kind == "tensor" and v:detach() or v:state() }
  return { kind = kind }
end

local function check_table (what, state)
  if type(state) ~= "table" or is_object(state) then
    raise("%s: expected a table of what is %s by name, { model = model }, " ..
          "got %s", what, what == "save_training" and "saved" or "loaded",
          described(state))
  end
  for name in pairs(state) do
    if type(name) ~= "string" or not find(name, "^[%a_][%w_]*$") or
       name == random then
      raise("%s: '%s' is no name for an entry (expected letters, digits and " ..
            "_, but not '%s')", what, tostring(name), random)
    end
  end
end

local function save_training (path, state)
  check_table("save_training", state)
  local list, entries = {}, {}
  for _, name in ipairs(names_of(state)) do
    entries[name] = add(list, name, state[name])
  end
  list[#list + 1] = { random, fnn.default_generator():state() }
  local ok, text = pcall(json.encode, { version = version, entries = entries })
  if not ok then raise("save_training: %s", text) end
  io.save_safetensors(path, list, {
    ["fnn.version"] = fnn._VERSION, format = "pt", [key] = text,
  })
end

-- }======================================================

-- {======================================================
-- In
-- =======================================================

local kinds = { state = true, value = true, generator = true, tensor = true }

local function is_entry (e)
  local function is_table (v) return v == nil or type(v) == "table" end
  return type(e) == "table" and kinds[e.kind] and is_table(e.plain) and
         is_table(e.values)
end

-- The file and its entries.
local function open (path)
  local file = io.open_safetensors(path)
  local text = file:metadata()[key]
  if not text then
    raise("%s: no optimizer state and no steps in it: these are weights " ..
          "alone (model:load reads them; fnn.save_training writes a run)",
          path)
  end
  local ok, t = pcall(json.decode, text)
  if not ok or type(t) ~= "table" or type(t.entries) ~= "table" then
    raise("%s: metadata %s: %s", path, key, ok and "no entries" or t)
  end
  if t.version ~= version then
    raise("%s: version %s of a training file (this fnn reads version %d)",
          path, tostring(t.version), version)
  end
  for name, entry in pairs(t.entries) do
    if type(name) ~= "string" or not is_entry(entry) then
      raise("%s: metadata %s: '%s' is no entry", path, key, tostring(name))
    end
  end
  return file, t.entries
end

-- The state_dict of an entry.
local function state_of (file, name, entry)
  if entry.plain then return entry.plain end
  local dict, prefix = { [values_key] = entry.values }, name .. "."
  for _, full in ipairs(file:names()) do
    if sub(full, 1, #prefix) == prefix then
      local part = sub(full, #prefix + 1)
      dict[#dict + 1] = part
      dict[part] = file:read(full)
    end
  end
  return dict
end

-- What is asked for must be in the file, of its kind; and, but for plain
-- values and tensors, what is in the file must be asked for.
local function check_entries (path, entries, state, partial)
  for _, name in ipairs(names_of(state)) do
    local entry = entries[name]
    if not entry then
      raise("%s: no '%s' in it (there are: %s)", path, name,
            concat(names_of(entries), ", "))
    end
    local kind = kind_of(state[name])
    if kind == "value" then
      raise("%s: '%s' is to be filled, but is %s: load_training returns the " ..
            "plain values; leave them out", path, name,
            described(state[name]))
    elseif kind ~= entry.kind then
      raise("%s: '%s' is a %s there; what is to take it is %s", path, name,
            tostring(entry.kind), described(state[name]))
    end
  end
  for _, name in ipairs(names_of(entries)) do
    local kind = entries[name].kind
    if not state[name] and not partial and
       (kind == "state" or kind == "generator") then
      raise("%s: '%s' is in it, but nothing is given to take it " ..
            "({ partial = true } leaves it)", path, name)
    end
  end
end

local fill = {}

function fill.state (v, file, name, entry)
  v:load_state_dict(state_of(file, name, entry))
end

function fill.generator (v, file, name) v:set_state(file:read(name)) end
function fill.tensor (v, file, name) v:copy_(file:read(name)) end

-- The plain values, and tensors that nothing was given for.
local function values_of (file, entries, state)
  local values = {}
  for name, entry in pairs(entries) do
    if entry.kind == "value" then
      values[name] = entry.value
    elseif entry.kind == "tensor" and not state[name] then
      values[name] = file:read(name)
    end
  end
  return values
end

local function load_training (path, state, options)
  local o = module.options("load_training", options, { partial = false })
  state = state or {}
  check_table("load_training", state)
  local file, entries = open(path)
  check_entries(path, entries, state, o.partial)
  local values = values_of(file, entries, state)
  local numbers = not o.partial and file:read(random)
  for _, name in ipairs(names_of(state)) do
    local ok, why = pcall(fill[entries[name].kind], state[name], file, name,
                          entries[name])
    if not ok then error(format("%s: '%s': %s", path, name, why), 0) end
  end
  if numbers then fnn.default_generator():set_state(numbers) end
  return values
end

-- }======================================================

return { save_training = save_training, load_training = load_training }
