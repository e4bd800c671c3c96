-- tree.lua - what is done over a whole model: parameters, to, train, freeze.
--
-- A walk goes through the fields in the order of first assignment and meets
-- each module, Param and buffer once, whatever leads there again: a tied
-- weight, a layer used twice, a cycle.

local fnn, load = ...
local module = load "nn/module"

local error, getmetatable, ipairs, pairs = error, getmetatable, ipairs, pairs
local pcall, tostring, type = pcall, tostring, type
local find, gmatch, match = string.find, string.gmatch, string.match

local core, raise, parts, join = module.core, module.raise, module.parts,
                                 module.join
local fields, kind_of = core.fields, core.kind
local methods = module.methods

local tree = {}

-- Surveys a model: lists of its modules and of its tensors (Params and
-- buffers), entries of { name, value, kind, owner, key }; and where else they
-- are found: again[name] is the first name of the same part.
function tree.survey (root)
  local modules, tensors, again, seen = {}, {}, {}, {}
  local function visit (m, path)
    seen[m] = path
    modules[#modules + 1] = { name = path, value = m }
    for key, v, kind in parts(m) do
      local name = join(path, key)
      if seen[v] then
        again[name] = seen[v]
      elseif kind == "module" then
        visit(v, name)
      else
        seen[v] = name
        tensors[#tensors + 1] = { name = name, value = v, kind = kind,
                                  owner = m, key = key }
      end
    end
  end
  visit(root, "")
  return { modules = modules, tensors = tensors, again = again }
end

local survey = tree.survey

-- {======================================================
-- Lists
-- =======================================================

local function values (entries, kind)
  local list = {}
  for _, e in ipairs(entries) do
    if not kind or e.kind == kind then list[#list + 1] = e.value end
  end
  return list
end

-- An iterator over name, value.
local function named (entries, kind)
  local i = 0
  return function ()
    repeat i = i + 1 until not (entries[i] and kind) or entries[i].kind == kind
    local e = entries[i]
    if e then return e.name, e.value end
  end
end

function methods:parameters ()
  return values(survey(self).tensors, "param")
end

function methods:named_parameters ()
  return named(survey(self).tensors, "param")
end

function methods:trainable_parameters ()
  local list = {}
  for _, p in ipairs(self:parameters()) do
    if not p:is_frozen() then list[#list + 1] = p end
  end
  return list
end

function methods:buffers () return values(survey(self).tensors, "tensor") end

function methods:named_buffers ()
  return named(survey(self).tensors, "tensor")
end

function methods:modules () return values(survey(self).modules) end
function methods:named_modules () return named(survey(self).modules) end

local function children (m)
  local list, seen = {}, {}
  for key, v, kind in parts(m) do
    if kind == "module" and not seen[v] then
      seen[v] = true
      list[#list + 1] = { name = join("", key), value = v }
    end
  end
  return list
end

function methods:children () return values(children(self)) end
function methods:named_children () return named(children(self)) end

-- The number of elements of all parameters, and of those not frozen.
function methods:parameter_count ()
  local all, trainable = 0, 0
  for _, p in ipairs(self:parameters()) do
    all = all + p:numel()
    if not p:is_frozen() then trainable = trainable + p:numel() end
  end
  return all, trainable
end

-- m:get("layers.0.weight"): a part by its path, or nil
function methods:get (path)
  local v = self
  for key in gmatch(tostring(path), "[^.]+") do
    if kind_of(v) ~= "module" then return nil end
    local place = match(key, "^%d+$")
    v = fields(v)[place and place + 1 or key]
  end
  return kind_of(v) and v or nil
end

-- }======================================================

-- {======================================================
-- Changes
-- =======================================================

function methods:train (on)
  if on ~= nil and type(on) ~= "boolean" then
    raise("train: expected true or false, got a %s", type(on))
  end
  for _, m in ipairs(self:modules()) do m.training = on ~= false end
  return self
end

function methods:eval () return self:train(false) end

function methods:freeze ()
  for _, p in ipairs(self:parameters()) do p:freeze() end
  return self
end

function methods:unfreeze ()
  for _, p in ipairs(self:parameters()) do p:unfreeze() end
  return self
end

function methods:zero_grad ()
  for _, p in ipairs(self:parameters()) do p:set_grad(nil) end
  return self
end

-- f(m) for each module, children before the module that holds them.
function methods:apply (f)
  if type(f) ~= "function" then
    raise("apply: expected a function of a module, got %s", module.described(f))
  end
  local seen = {}
  local function visit (m)
    seen[m] = true
    for _, v, kind in parts(m) do
      if kind == "module" and not seen[v] then visit(v) end
    end
    f(m)
  end
  visit(self)
  return self
end

local floats = { f16 = true, bf16 = true, f32 = true, f64 = true }

-- Reads "cuda", "f64" and { dtype =, device = } in any order.
local function read_to (dtype, device, v, ...)
  if v == nil then return dtype, device end
  if type(v) == "table" and getmetatable(v) == nil then
    for key in pairs(v) do
      if key ~= "dtype" and key ~= "device" then
        raise("unknown option '%s' (expected dtype, device)", tostring(key))
      end
    end
    return read_to(v.dtype or dtype, v.device or device, ...)
  end
  if type(v) ~= "string" then
    raise("to: expected a device or a dtype, got %s", module.described(v))
  end
  if find(v, "^cpu") or find(v, "^cuda") then
    return read_to(dtype, v, ...)
  end
  return read_to(v, device, ...)
end

-- Moves what m and its children have; undo gets a function for each that was
-- moved, which moves it back.
local function move_all (self, dtype, device, undo)
  local moved = {}
  local function move (x)
    if device then x = x:to(device) end
    if dtype and floats[x:dtype()] then x = x:to(dtype) end
    return x
  end
  for _, m in ipairs(self:modules()) do
    for key, v, kind in parts(m) do
      if kind == "param" and not moved[v] then
        local was = v:device()
        undo[#undo + 1] = function () v:to(was) end
        moved[v] = move(v)
      elseif kind == "tensor" then
        moved[v] = moved[v] or move(v)
        undo[#undo + 1] = function () m[key] = v end
        m[key] = moved[v]
      end
    end
  end
end

-- Moves Params, which keep their identity, and buffers; integers keep their
-- dtype.  Where there is no room for all of it nothing is moved.
function methods:to (...)
  local dtype, device = read_to(nil, nil, ...)
  if dtype and not floats[dtype] then
    raise("to: expected a float dtype for a model, or a device (cpu or " ..
          "cuda:N), got '%s'", dtype)
  end
  if device then fnn.zeros({ 0 }, { device = device }) end  -- is there one?
  local undo = {}
  local ok, message = pcall(move_all, self, dtype, device, undo)
  if not ok then
    for _, f in ipairs(undo) do f() end
    error(message, 0)
  end
  return self
end

-- }======================================================

-- For errors and the profile: " (in 0.inner: Linear)" and "0.inner (Linear)",
-- where the outermost module that runs holds the innermost.
core.set_place(function (inner, outer)
  local name = inner.__name
  for path, m in outer:named_modules() do
    if m == inner and path ~= "" then
      return " (in " .. path .. ": " .. name .. ")", path .. " (" .. name .. ")"
    end
  end
  return " (in " .. name .. ")", name
end)

return tree
