-- function.lua - operations with a derivative, written in Lua.
--
--   local Cube = fnn.Function "Cube"
--   function Cube.forward (ctx, x) ctx:save(x) return x * x * x end
--   function Cube.backward (ctx, gy)
--     local x = ctx:saved()
--     return gy * x * x * 3
--   end
--   local y = Cube(x)
--
-- forward runs without a graph, on tensors without a history; fnn.record
-- gives its result the derivative.  A node has one result: several are parts
-- of one tensor that has it, so that backward is called once, with all.

local fnn, load, internals = ...
local module = load "nn/module"

local ipairs, rawget, setmetatable = ipairs, rawget, setmetatable
local tostring, type = tostring, type
local concat, pack, unpack = table.concat, table.pack, table.unpack
local raise, described = module.raise, module.described
local is_tensor, version = fnn.is_tensor, internals.version

-- {======================================================
-- What forward leaves for backward
-- =======================================================

local Context = {}
Context.__index = Context

local saved_key = Context  -- in a context: what it saved

-- Keeps tensors for backward; nil may be among them.
function Context:save (...)
  local list = pack(...)
  local versions = {}
  for i = 1, list.n do
    local x = list[i]
    if is_tensor(x) then
      list[i], versions[i] = x:detach(), version(x)
    elseif x ~= nil then
      raise("%s: save: argument %d: expected a tensor, got %s (other values " ..
            "are fields: ctx.name = value)", self.name, i, described(x))
    end
  end
  self[saved_key] = { list = list, versions = versions }
end

-- What was saved, in that order.
function Context:saved ()
  local kept = self[saved_key]
  if not kept then return end
  for i = 1, kept.list.n do
    local x = kept.list[i]
    if x and version(x) ~= kept.versions[i] then
      raise("backward: %s needs a tensor of shape (%s) that an in-place op " ..
            "has overwritten since", self.name,
            concat(x:shape(), ", "))
    end
  end
  return unpack(kept.list, 1, kept.list.n)
end

-- }======================================================

-- {======================================================
-- The way back
-- =======================================================

-- The gradients of the arguments at places, from what backward returned for
-- all n arguments; nils at the end may be left out behind the last tensor.
local function gradients (name, places, n, got)
  if got.n > n or got.n < places[#places] then
    raise("backward: %s gave %d gradients (expected %d, one an argument)",
          name, got.n, n)
  end
  local list, at = {}, 1
  for i = 1, got.n do
    if i == places[at] then
      list[at] = got[i]
      at = at + 1
    elseif got[i] ~= nil then
      raise("backward: %s: gradient %d: argument %d is no tensor (expected " ..
            "nil, got %s)", name, i, i, described(got[i]))
    end
  end
  return unpack(list, 1, #places)
end

-- The derivative by the outputs in full, whose order is that of forward's
-- results: results that are no float tensors get nil.
local function derivative (class, ctx, places, n)
  local name, backward = class.name, class.backward
  return function (...)
    if not backward then
      raise("backward: %s has no derivative", name)
    end
    return gradients(name, places, n, pack(backward(ctx, ...)))
  end
end

local float = { f16 = true, bf16 = true, f32 = true, f64 = true }

-- Which of the results have gradients.
local function differentiable (name, out)
  local list = {}
  for i = 1, out.n do
    if is_tensor(out[i]) and float[out[i]:dtype()] then list[#list + 1] = i end
  end
  for _, i in ipairs(list) do
    local a, b = out[list[1]]:dtype(), out[i]:dtype()
    if a ~= b then
      raise("%s: results %d and %d have dtypes %s and %s (expected one " ..
            "dtype)", name, list[1], i, a, b)
    end
  end
  return list
end

-- Several results as parts of one, which has the derivative.  What the
-- derivative holds must not hold the results: nobody would free that circle.
local function record_parts (name, out, list, inputs, back)
  local flat, shapes, sizes = {}, {}, {}
  local n = out.n
  for k, i in ipairs(list) do
    flat[k] = out[i]:detach():reshape(-1)
    shapes[k], sizes[k] = out[i]:shape(), #flat[k]
  end
  local function parts_of (x, to)
    local at = 1
    for k, i in ipairs(list) do
      to[i] = x:narrow(1, at, sizes[k]):reshape(shapes[k])
      at = at + sizes[k]
    end
    return unpack(to, 1, n)
  end
  parts_of(fnn.record(fnn.cat(flat, 1), name, inputs, function (g)
    return back(parts_of(g, {}))
  end), out)
end

-- One result, the place-th of n.
local function record_one (name, out, place, inputs, back)
  local n = out.n
  out[place] = fnn.record(out[place], name, inputs, function (gy)
    return back(unpack({ [place] = gy }, 1, n))
  end)
end

-- }======================================================

-- {======================================================
-- Classes
-- =======================================================

-- The arguments with tensors that have no history, the tensors themselves
-- and their places.
local function prepare (ctx, args)
  local inputs, places, wanted = {}, {}, false
  local recording = fnn.is_grad_enabled()
  for i = 1, args.n do
    local x = args[i]
    local needs = false
    if is_tensor(x) then
      needs = recording and x:has_graph()
      inputs[#inputs + 1], places[#places + 1] = x, i
      args[i] = x:detach()
    end
    ctx.needs_input_grad[i] = needs
    wanted = wanted or needs
  end
  return inputs, places, wanted
end

local function check_class (class)
  for _, name in ipairs { "forward", "backward" } do
    local f = class[name]
    if type(f) ~= "function" and not (name == "backward" and f == false) then
      raise("%s has no %s: define function %s.%s (ctx, %s)", class.name, name,
            class.name, name, name == "forward" and "x" or "gy")
    end
  end
end

local function call (class, ...)
  check_class(class)
  local name = class.name
  local ctx = setmetatable({ name = name, needs_input_grad = {} }, Context)
  local args = pack(...)
  local inputs, places, wanted = prepare(ctx, args)
  local out = pack(fnn.no_grad(class.forward, ctx, unpack(args, 1, args.n)))
  local list = wanted and differentiable(name, out) or {}
  if #list == 0 then return unpack(out, 1, out.n) end
  local back = derivative(class, ctx, places, args.n)
  if #list > 1 then
    record_parts(name, out, list, inputs, back)
  else
    record_one(name, out, list[1], inputs, back)
  end
  return unpack(out, 1, out.n)
end

local meta = {
  __name = "fnn.Function",
  __call = call,
  __tostring = function (class)
    return "function " .. tostring(rawget(class, "name"))
  end,
}

-- fnn.Function(name): an operation to be given forward(ctx, ...) and
-- backward(ctx, gy, ...).  backward = false says that it has no derivative.
local function Function (name)
  if type(name) ~= "string" or name == "" then
    raise("fnn.Function: expected the name of an operation, got %s",
          described(name))
  end
  return setmetatable({ name = name }, meta)
end

-- }======================================================

return { Function = Function }
