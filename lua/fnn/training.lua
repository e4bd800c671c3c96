-- training.lua - the whole state of a run in one file: fnn.save_training and
-- fnn.load_training.
--
-- A file of safetensors.  Each entry of the table that is saved has a name;
-- the tensors of what has a state_dict (models, optimizers, averages) are
-- "entry.name", and what is no tensor is JSON in the metadata:
--
--   fnn.training   { version = 1, random = "entry of the default generator",
--                    entries = { model = { kind = "state", values = {..} },
--                                loader = { kind = "state", plain = {..} },
--                                step = { kind = "value", value = 1200 },
--                                loss = { kind = "value",
--                                         value = { ["fnn.number"] = "nan" }
--                                       } } }
--
-- Tensors are written one after the other and never gathered.  Loading checks
-- every entry before it changes one.  An object of a script's own, whose
-- load_state_dict may raise halfway, comes first, and is put back.

local fnn, load, internals = ...
local io = fnn.io
local module = load "nn/module"
local model_state = load "nn/state"
local json = load "json"

local getmetatable, ipairs, pairs, pcall = getmetatable, ipairs, pairs, pcall
local error, tostring, type = error, tostring, type
local concat, sort = table.concat, table.sort
local find, gsub, sub = string.find, string.gsub, string.sub
local math_type, huge = math.type, math.huge
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

local function has_state (v)
  return method(v, "state_dict") and method(v, "load_state_dict")
end

-- A source of batches without a state_dict of its own.
local function has_cursor (v)
  return method(v, "cursor") and method(v, "start")
end

-- How a value is kept.
local function kind_of (v)
  if fnn.is_tensor(v) then return "tensor" end
  if has_state(v) or has_cursor(v) then return "state" end
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
-- Numbers that JSON has not are tables with their name
-- =======================================================

local number_key = "fnn.number"
local odd_numbers = { nan = 0 / 0, inf = huge, ["-inf"] = -huge }

local function each (t, f, depth)
  if depth > 100 then raise "tables nested too deep" end
  local out = {}
  for name, v in pairs(t) do out[name] = f(v, depth + 1) end
  return out
end

local function packed (v, depth)
  if type(v) == "table" then return each(v, packed, depth) end
  if math_type(v) ~= "float" or v - v == 0 then return v end
  return { [number_key] = v ~= v and "nan" or v > 0 and "inf" or "-inf" }
end

local function unpacked (v, depth)
  if type(v) ~= "table" then return v end
  local name = v[number_key]
  if name ~= nil then return odd_numbers[name] end
  return each(v, unpacked, depth)
end

-- }======================================================

-- {======================================================
-- Out
-- =======================================================

-- Adds the tensors of a state_dict to the list; returns what else is kept.
-- One without names, of a scheduler, has no tensors.
local function dict_of (name, v)
  if has_state(v) then
    local dict = v:state_dict()
    if type(dict) == "table" then return dict end
    raise("save_training: '%s': its state_dict returned %s, expected a table",
          name, described(dict))
  end
  local epoch, batch = v:cursor()
  return { epoch = epoch, batch = batch }
end

local function add_state (list, name, dict)
  if dict[1] == nil and dict[values_key] == nil then
    return { kind = "state", plain = dict }
  end
  for _, part in ipairs(dict) do
    if type(part) ~= "string" or not fnn.is_tensor(dict[part]) then
      raise("save_training: '%s': a state_dict is a list of names and the " ..
            "tensor of each, { 'w', w = tensor }, or has no list: got %s in it",
            name, type(part) == "string" and
                  "'" .. part .. "' for " .. described(dict[part]) or
                  described(part))
    end
    list[#list + 1] = { name .. "." .. part, dict[part] }
  end
  return { kind = "state", values = dict[values_key] }
end

local function add (list, name, v)
  local kind = kind_of(v)
  if kind == "state" then return add_state(list, name, dict_of(name, v)) end
  if kind == "value" then return { kind = kind, value = v } end
  if kind == nil then
    raise("save_training: '%s': expected what has a state_dict, a generator, "
          .. "a tensor or a plain value, got %s", name, described(v))
  end
  list[#list + 1] = { name, kind == "tensor" and v:detach() or v:state() }
  return { kind = kind }
end

local function check (what, path, state)
  if type(path) ~= "string" then
    raise("%s: expected the path of a file, got %s", what, described(path))
  end
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

-- An entry without odd numbers, which JSON can hold.
local function encodable (name, entry)
  local ok, t = pcall(function ()
    local all = packed(entry, 0)
    json.encode(all)
    return all
  end)
  if ok then return t end
  raise("save_training: '%s': %s", name, gsub(t, "^[^\n:]+:%d+: ", ""))
end

local function save_training (path, state)
  check("save_training", path, state)
  local list, entries = {}, {}
  for _, name in ipairs(names_of(state)) do
    entries[name] = encodable(name, add(list, name, state[name]))
  end
  list[#list + 1] = { random, fnn.default_generator():state() }
  local text = json.encode { version = version, entries = entries }
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
  local entries = each(t.entries, unpacked, 0)
  for name, entry in pairs(entries) do
    if type(name) ~= "string" or not is_entry(entry) then
      raise("%s: metadata %s: '%s' is no entry", path, key, tostring(name))
    end
  end
  return file, entries
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

-- {======================================================
-- Preparing: each checks an entry, changes nothing, and returns what takes it
-- in.  first, where there is one, may raise and returns what undoes it; all of
-- these run before the others.  copies changes all or nothing, but takes memory
-- for as much; all of these run before the first rest, which takes one tensor
-- at a time: memory that is short is short before a model has changed.
-- =======================================================

local function copied (v)
  if fnn.is_tensor(v) then return v:clone() end
  if type(v) ~= "table" then return v end
  local t = {}
  for name, x in pairs(v) do t[name] = copied(x) end
  return t
end

local function prepare_cursor (v, entry)
  local dict = entry.plain or {}
  if math_type(dict.epoch) ~= "integer" or math_type(dict.batch) ~= "integer"
  then
    raise "no cursor in it"
  end
  local epoch, batch = v:cursor()
  return { first = function ()
    v:start(dict.epoch, dict.batch)
    return function () v:start(epoch, batch) end
  end }
end

local prepare = {}

function prepare.state (v, file, name, entry)
  if module.core.kind(v) == "module" then
    local first, rest = model_state.prepare_part(v, file, name .. ".",
                                                 entry.values)
    return { first = first, rest = rest }
  elseif not has_state(v) then
    return prepare_cursor(v, entry)
  elseif method(v, "check_state_dict") then
    local dict = state_of(file, name, entry)
    v:check_state_dict(dict)
    return { copies = function () v:load_state_dict(dict) end }
  end
  return { first = function ()
    local before = copied(v:state_dict())
    local function undo () pcall(v.load_state_dict, v, before) end
    local ok, why = pcall(v.load_state_dict, v, state_of(file, name, entry))
    if not ok then
      undo()
      error(why, 0)
    end
    return undo
  end }
end

function prepare.generator (v, file, name)
  local state = file:read(name)
  fnn.Generator(0):set_state(state)
  return { rest = function () v:set_state(state) end }
end

local function shape_text (shape) return "(" .. concat(shape, ", ") .. ")" end

function prepare.tensor (v, file, name)
  local got, want = shape_text(file:shape(name)), shape_text(v:shape())
  if got ~= want then raise("expected shape %s, got %s", want, got) end
  return { rest = function () v:detach():copy_(file:read(name)) end }
end

-- f(...), whose error is of that entry.
local function entered (path, name, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    local why = gsub(tostring(result), "^[^\n:]+:%d+: ", "")  -- the place
    raise("%s: '%s': %s", path, name, why)
  end
  return result
end

-- Takes all in, or nothing.
local function commit (path, names, jobs)
  local undo = {}
  local ok, why = pcall(function ()
    for _, name in ipairs(names) do
      local first = jobs[name].first
      if first then undo[#undo + 1] = entered(path, name, first) end
    end
  end)
  if not ok then
    for i = #undo, 1, -1 do undo[i]() end
    error(why, 0)
  end
  for _, step in ipairs { "copies", "rest" } do
    for _, name in ipairs(names) do
      local job = jobs[name][step]
      if job then entered(path, name, job) end
    end
  end
end

-- }======================================================

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
  check("load_training", path, state)
  local file, entries = open(path)
  check_entries(path, entries, state, o.partial)
  local values = values_of(file, entries, state)
  local numbers = not o.partial and
                  prepare.generator(fnn.default_generator(), file, random)
  local names, jobs = names_of(state), {}
  for _, name in ipairs(names) do
    jobs[name] = entered(path, name, prepare[entries[name].kind], state[name],
                         file, name, entries[name])
  end
  commit(path, names, jobs)
  if numbers then numbers.rest() end
  return values
end

-- }======================================================

-- For checkpoints.lua: the plain values of a file; raises for a damaged one.
local function plain_values (path)
  local file, entries = open(path)
  local values = {}
  for name, entry in pairs(entries) do
    if entry.kind == "value" then values[name] = entry.value end
  end
  if not file:has(random) then raise("%s: no tensor '%s'", path, random) end
  return values
end

-- In such a table it has a try_ form, which a cancel passes.
local inside = internals.namespace({ plain_values = plain_values },
                                   "fnn.training")

return { save_training = save_training, load_training = load_training,
         inside = inside, kind_of = kind_of }
