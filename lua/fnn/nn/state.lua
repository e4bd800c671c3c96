-- state.lua - a model's tensors by name: state_dict, load_state_dict, save and
-- load.
--
-- A state is an ordered table: a list of names in the order of the model, and
-- the tensor of each name.  A part found under several names (a tied weight)
-- has the first; files that use another are understood.  What a class gives
-- by its method state() is kept beside, in state[".state"], by the paths of
-- its modules, and handed back to load_state(t).

local fnn, load = ...
local module = load "nn/module"
local tree = load "nn/tree"
local json = load "json"

local ipairs, next, pairs, pcall = ipairs, next, pairs, pcall
local error, tostring, type = error, tostring, type
local min, concat, sort = math.min, table.concat, table.sort
local format, match, sub = string.format, string.match, string.sub

local raise, described = module.raise, module.described
local methods = module.methods

local values_key = ".state"  -- no part's name begins with a dot

local function shape_text (shape)
  return "(" .. concat(shape, ", ") .. ")"
end

-- The entries that are saved.
local function saved (survey)
  local list = {}
  for _, e in ipairs(survey.tensors) do
    if e.kind == "param" or not module.is_transient(e.owner, e.key) then
      list[#list + 1] = e
    end
  end
  return list
end

-- What the classes' own state() gives, by path; nil when none has any.
local function own_values (survey)
  local values = {}
  for _, e in ipairs(survey.modules) do
    if e.value.state then values[e.name] = e.value:state() end
  end
  return next(values) ~= nil and values or nil
end

function methods:state_dict ()
  local survey = tree.survey(self)
  local state = {}
  for i, e in ipairs(saved(survey)) do
    state[i] = e.name
    state[e.name] = e.value:detach()
  end
  state[values_key] = own_values(survey)
  return state
end

-- {======================================================
-- Sources: where tensors come from.  names, shape(name), is_float(name),
-- read(name), values.
-- =======================================================

local float_names = { F16 = true, BF16 = true, F32 = true, F64 = true,
                      F8_E4M3 = true, F8_E5M2 = true, F8_E8M0 = true }
local float_dtypes = { f16 = true, bf16 = true, f32 = true, f64 = true }

local function table_source (t)
  local names = {}
  for _, name in ipairs(t) do names[#names + 1] = name end
  if #names == 0 then
    for name in pairs(t) do
      if name ~= values_key then names[#names + 1] = name end
    end
    sort(names)
  end
  for _, name in ipairs(names) do
    if not fnn.is_tensor(t[name]) then
      raise("load_state_dict: '%s': expected a tensor, got %s", name,
            described(t[name]))
    end
  end
  return {
    names = names,
    values = t[values_key],
    shape = function (name) return t[name]:shape() end,
    is_float = function (name) return float_dtypes[t[name]:dtype()] end,
    read = function (name) return t[name] end,
  }
end

local values_meta = "fnn.state"  -- in a file's metadata

-- The names of an open file that begin with prefix.
local function part_source (f, prefix, values)
  local names = {}
  for _, name in ipairs(f:names()) do
    if sub(name, 1, #prefix) == prefix then
      names[#names + 1] = sub(name, #prefix + 1)
    end
  end
  return {
    names = names,
    values = values,
    shape = function (name) return f:shape(prefix .. name) end,
    is_float = function (name) return float_names[f:dtype(prefix .. name)] end,
    read = function (name) return f:read(prefix .. name) end,
  }
end

local function file_source (path)
  local f = fnn.io.open_safetensors(path)
  local text = f:metadata()[values_meta]
  local ok, values = pcall(json.decode, text or "{}")
  if not ok or type(values) ~= "table" then
    raise("%s: metadata %s: %s", path, values_meta, tostring(values))
  end
  return part_source(f, "", values)
end

-- }======================================================

-- {======================================================
-- Loading
-- =======================================================

-- The name in the model of a source's name, or nil to ignore it.
local function renamed (rename, name)
  if rename == nil then return name end
  local to
  if type(rename) == "function" then
    to = rename(name)
  else
    to = rename[name]
    if to == nil then to = name end
  end
  return to or nil
end

-- The first name in the model of the part that is also called so: names below
-- a module found twice follow it.
local function first_name (again, name)
  for _ = 1, 100 do  -- a chain of names, not a circle
    if again[name] then return again[name] end
    local head, rest = name, ""
    repeat
      head, rest = match(head, "^(.*)%.([^.]*)$"), rest
      if head then rest = sub(name, #head + 1) end
    until not head or again[head]
    if not head then return name end
    local first = again[head]
    name = first == "" and sub(rest, 2) or first .. rest
  end
  return name
end

local function note (list, name, text)
  list[#list + 1] = name
  list[name] = text or true
end

-- Why the source's tensor does not fit the entry, or nil.
local function misfit (entry, source, name)
  local want, got = entry.value:shape(), source.shape(name)
  if shape_text(want) ~= shape_text(got) then
    return format("expected shape %s, got %s", shape_text(want),
                  shape_text(got))
  end
  local float = float_dtypes[entry.value:dtype()] or false
  if float ~= (source.is_float(name) or false) then
    return format("expected %s, got %s",
                  float and "floats" or "integers",
                  float and "integers" or "floats")
  end
end

-- What the source's names are in the model: { model's name = source's name },
-- and the names it has no place for.
local function resolve (source, survey, rename, report)
  local known, from = {}, {}
  for _, e in ipairs(saved(survey)) do known[e.name] = true end
  for _, name in ipairs(source.names) do
    local to = renamed(rename, name)
    if to == nil then
      note(report.ignored, name, shape_text(source.shape(name)))
    elseif type(to) ~= "string" then
      raise("load: rename of '%s': expected a string, got %s", name,
            described(to))
    else
      local first = known[to] and to or first_name(survey.again, to)
      if not known[first] then
        note(report.unexpected, to, shape_text(source.shape(name)))
      elseif from[first] and first == to and known[to] then
        if from[first].exact then
          raise("load: both '%s' and '%s' are to be '%s'",
                from[first].name, name, to)
        end
        from[first] = { name = name, exact = true }
      elseif not from[first] then
        from[first] = { name = name, exact = first == to }
      end
    end
  end
  return from
end

-- Checks the values of state() against the modules that take them.
local function resolve_values (source, survey, report)
  local values = {}
  for path, v in pairs(source.values or {}) do values[path] = v end
  local jobs = {}
  for _, e in ipairs(survey.modules) do
    local m, path = e.value, e.name
    local label = module.join(path, "state()")
    if m.load_state and values[path] ~= nil then
      jobs[#jobs + 1] = { m = m, value = values[path] }
      values[path] = nil
    elseif m.state then
      note(report.missing, label)
    end
  end
  for path in pairs(values) do
    note(report.unexpected, module.join(path, "state()"))
  end
  return jobs
end

-- "  missing: a (2, 3), b (3,)" and how many more.
local function list_text (title, list)
  if #list == 0 then return "" end
  local out = {}
  for i = 1, min(#list, 8) do
    local text = list[list[i]]
    out[i] = list[i] .. (type(text) == "string" and " " .. text or "")
  end
  local more = #list > 8 and format(", and %d more", #list - 8) or ""
  return format("\n  %s: %s%s", title, concat(out, ", "), more)
end

local function check (what, report, options)
  if #report.mismatched > 0 and not options.ignore_mismatched then
    raise("%s: tensors that do not fit the model:%s", what,
          list_text("mismatched", report.mismatched))
  end
  if options.strict and #report.missing + #report.unexpected > 0 then
    raise("%s: not the tensors of this model ({ strict = false } takes " ..
          "what fits):%s%s", what, list_text("missing", report.missing),
          list_text("unexpected", report.unexpected))
  end
end

local function write (entry, x)
  local to = entry.value
  x = x:to(to:device())
  if entry.kind == "param" then to:set(x) else to:copy_(x:to(to:dtype())) end
end

local defaults = { strict = true, ignore_mismatched = false, rename = false }

-- Gives classes' own load_state what is theirs; returns what undoes it, as far
-- as their state() tells, which is done when one raises.
local function load_values (jobs)
  local before = {}
  local function undo ()
    for k = #before, 1, -1 do
      local m = jobs[k].m
      if before[k] then pcall(m.load_state, m, before[k][1]) end
    end
  end
  for i, job in ipairs(jobs) do
    before[i] = job.m.state and { job.m:state() } or false
    local ok, why = pcall(job.m.load_state, job.m, job.value)
    if not ok then
      undo()
      error(why, 0)
    end
  end
  return undo
end

-- Checks everything, and changes nothing; returns the report and two functions
-- to be called in this order: values() gives what state() gave back, may raise,
-- and returns what undoes it; tensors() writes.
local function prepare (what, m, source, options)
  local survey = tree.survey(m)
  local report = { loaded = {}, missing = {}, unexpected = {},
                   mismatched = {}, ignored = {} }
  local from = resolve(source, survey, options.rename or nil, report)
  local jobs = {}
  for _, e in ipairs(saved(survey)) do
    local found = from[e.name]
    local why = found and misfit(e, source, found.name)
    if not found then
      note(report.missing, e.name, shape_text(e.value:shape()))
    elseif why then
      note(report.mismatched, e.name, why)
    else
      note(report.loaded, e.name, found.name)
      jobs[#jobs + 1] = { entry = e, name = found.name }
    end
  end
  local values = resolve_values(source, survey, report)
  check(what, report, options)
  return report, function () return load_values(values) end, function ()
    for _, job in ipairs(jobs) do write(job.entry, source.read(job.name)) end
  end
end

local function load_from (what, m, source, options)
  local report, values, tensors = prepare(what, m, source, options)
  values()
  tensors()
  return report
end

-- Fills the model; returns what became of every tensor: lists of names
-- loaded, missing, unexpected, mismatched and ignored, each with a text by
-- name.
function methods:load_state_dict (state, options)
  options = module.options("load_state_dict", options, defaults)
  if type(state) ~= "table" then
    raise("load_state_dict: expected a table of tensors by name, got %s",
          described(state))
  end
  return load_from("load_state_dict", self, table_source(state), options)
end

function methods:load (path, options)
  options = module.options("load", options, defaults)
  return load_from(path, self, file_source(path), options)
end

-- }======================================================

-- m:save(path [, { metadata = {} }]): a safetensors file
function methods:save (path, options)
  options = module.options("save", options, { metadata = false })
  local survey, list, metadata = tree.survey(self), {}, {}
  for i, e in ipairs(saved(survey)) do
    list[i] = { e.name, e.value:detach() }
  end
  for key, text in pairs(options.metadata or {}) do metadata[key] = text end
  metadata["fnn.version"] = fnn._VERSION
  metadata["format"] = metadata["format"] or "pt"
  local values = own_values(survey)
  if values then
    local ok, text = pcall(json.encode, values)
    if not ok then raise("save: the values of state(): %s", text) end
    metadata[values_meta] = text
  end
  fnn.io.save_safetensors(path, list, metadata)
  return self
end

-- For training.lua: prepares m to take its part of a file.
local function prepare_part (m, f, prefix, values)
  local _, first, rest = prepare("load_state_dict", m,
                                 part_source(f, prefix, values), defaults)
  return first, rest
end

return { prepare_part = prepare_part }
