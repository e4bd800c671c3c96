-- parity.lua - runs the cases that hold fnn against PyTorch.
--
-- A case (spec/fixtures/parity/*.lua, written by scripts/fixtures/parity.py)
-- names an op, a module, a loss or an optimizer, tells by seeds what is drawn
-- into its inputs, and holds what PyTorch made of them in f64.

local fnn = require "fnn"

local parity = {}

-- {======================================================
-- Inputs
-- =======================================================

-- What a draw r of 0 .. 47 becomes.  No float is 0, where kinks are.
local kinds = {
  float = function (r) return (r - 23.5) / 8 end,
  unit = function (r) return (r + 8) / 64 end, -- 0.125 .. 0.859
  positive = function (r) return (r + 1) / 8 end,
  sign = function (r) return r % 2 == 1 and 1.0 or -1.0 end,
}

-- n numbers by seed: the twin of `draw` in scripts/fixtures/parity.py.
local function draw (seed, n, kind)
  local numbers = {}
  local state = seed * 2654435761 + 12345 & 0x7fffffff
  for i = 1, n do
    state = state * 1103515245 + 12345 & 0x7fffffff
    local r = state // 65536 % 48
    if math.type(kind) == "integer" then numbers[i] = r % kind
    else numbers[i] = kinds[kind](r) end
  end
  return numbers
end

local function product (shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

local function tensor (numbers, shape, dtype)
  if #shape == 0 then return fnn.tensor(numbers[1], { dtype = dtype }) end
  if #numbers == 0 then return fnn.zeros(shape, { dtype = dtype }) end
  return fnn.tensor(numbers, shape, { dtype = dtype })
end

-- The input { name, shape, kind, seed } of a case.
local function input (t, dtype)
  local kind, numbers = t[3]
  if type(kind) == "table" then
    numbers = kind
    for _, v in ipairs(numbers) do
      if math.type(v) == "float" then kind = "float" end
    end
    if type(kind) == "table" then kind = 1 end
  else numbers = draw(t[4], product(t[2]), kind) end
  return tensor(numbers, t[2], math.type(kind) == "integer" and "i64" or dtype)
end

-- }======================================================

-- {======================================================
-- Errors
-- =======================================================

local function flatten (t, list)
  if type(t) ~= "table" then list[#list + 1] = t
  else for _, v in ipairs(t) do flatten(v, list) end end
  return list
end

-- The largest difference of x from numbers, over the largest of numbers.
local function distance (x, numbers, what)
  local have = flatten(x:totable(), {})
  if #have ~= #numbers then
    error(("%s: expected %d numbers, got %d"):format(what, #numbers, #have), 0)
  end
  local most, scale = 0, 0
  for i, v in ipairs(numbers) do
    local d = math.abs(v - have[i])
    if v == have[i] or (v ~= v and have[i] ~= have[i]) then d = 0 end
    if d ~= d then d = math.huge end
    most = math.max(most, d)
    if math.abs(v) < math.huge then scale = math.max(scale, math.abs(v)) end
  end
  return scale > 0 and most / scale or most
end

-- }======================================================

-- {======================================================
-- Cases
-- =======================================================

local function evaluate (source, env)
  return assert(load("return " .. source, source, "t", env))()
end

local function environment ()
  return setmetatable({ fnn = fnn, nn = fnn.nn, optim = fnn.optim },
                      { __index = _G })
end

local function set_parameters (case, module, dtype)
  local given = {}
  for _, t in ipairs(case.parameters) do given[t[1]] = t end
  for name, p in module:named_parameters() do
    local t = given[name]
    if not t then error("PyTorch has no parameter " .. name, 0) end
    p:set(input(t, dtype) * case.scale)
    given[name] = nil
  end
  if next(given) then error("there is no parameter " .. next(given), 0) end
end

-- The largest distance of the gradients of leaves, by name.
local function gradients (case, y, leaves)
  local most = 0
  local g = draw(case.upstream, product(case.shape), "float")
  y:backward(tensor(g, case.shape, y:dtype()))
  for name, want in pairs(case.gradients) do
    local have = leaves[name]:grad()
    if not have then error("no gradient of " .. name, 0) end
    most = math.max(most, distance(have, want, "gradient of " .. name))
  end
  return most
end

local function run_graph (case, dtype)
  local env, leaves, args = environment(), {}, {}
  for i, t in ipairs(case.inputs) do
    local x = input(t, dtype)
    if case.gradients and case.gradients[t[1]] then
      x = fnn.Param(x)
      leaves[t[1]] = x
    end
    env[t[1]], args[i] = x, x
  end
  local module, y = case.parameters and evaluate(case.lua, env)
  if module then
    module:to(dtype)
    set_parameters(case, module, dtype)
    if case.eval then module:eval() end
    for name, p in module:named_parameters() do leaves[name] = p end
    y = module(table.unpack(args, 1, #case.inputs))
  else y = evaluate(case.lua, env) end
  local shape = table.concat(y:shape(), ", ")
  if shape ~= table.concat(case.shape, ", ") then
    error(("expected shape (%s), got (%s)"):format(
      table.concat(case.shape, ", "), shape), 0)
  end
  local value = distance(y, case.output, "output")
  local gradient = case.gradients and gradients(case, y, leaves)
  for name, want in pairs(case.buffers or {}) do
    local have = module:state_dict()[name]
    if not have then error("there is no buffer " .. name, 0) end
    value = math.max(value, distance(have, want, name))
  end
  return value, gradient
end

local function run_optimizer (case, dtype)
  local params, most = {}, 0
  for i, t in ipairs(case.parameters) do
    params[i] = fnn.Param(input(t, dtype))
  end
  local env = environment()
  env.params = params
  local source = case.lua -- the options, or the whole of it
  if not source:find "^optim%." then
    source = ("optim.%s(params, %s)"):format(case.optimizer, source)
  end
  local opt = evaluate(source, env)
  for step = 1, case.steps do
    local function backward ()
      local total = 0
      opt:zero_grad()
      for i, p in ipairs(params) do
        local shape = case.parameters[i][2]
        local g = draw(1000 * case.seed + 10 * step + i - 1, product(shape),
                       "float")
        local loss = (p * tensor(g, shape, dtype)):sum()
        loss:backward()
        total = total + loss:item()
      end
      return total
    end
    if case.closure then opt:step(backward)
    else
      backward()
      opt:step()
    end
    for i, want in ipairs(case.at[step] or {}) do
      most = math.max(most, distance(params[i]:value(), want,
                                     ("parameter %d after step %d"):format(
                                       i, step)))
    end
  end
  return most
end

-- The errors of a case in dtype, of its value and its gradient (nil where it
-- has none).
function parity.run (case, dtype)
  if case.optimizer then return run_optimizer(case, dtype) end
  return run_graph(case, dtype)
end

-- All families, { name =, cases = }, in the order of their names.
function parity.families ()
  local families = {}
  local list = assert(io.popen("ls spec/fixtures/parity"))
  for file in list:lines() do
    local name = file:match "^(.*)%.lua$"
    families[#families + 1] = {
      name = name, cases = require("spec.fixtures.parity." .. name)
    }
  end
  list:close()
  return families
end

-- What a case is about, and its name: "op", "softmax".
function parity.subject (case)
  for _, kind in ipairs { "op", "module", "loss", "optimizer" } do
    if case[kind] then return kind, case[kind] end
  end
end

-- The largest error that a case may have in dtype.
function parity.tolerance (case, dtype)
  if dtype == "f64" then return 1e-10 end
  return case.tolerance or 1e-5
end

-- A test a case and dtype, under this title, by the words of busted.
function parity.specs (title, describe, it, assert)
  for _, family in ipairs(parity.families()) do
    describe(title .. " of " .. family.name, function ()
      for i, case in ipairs(family.cases) do
        for _, dtype in ipairs { "f64", "f32" } do
          local kind, name = parity.subject(case)
          it(("%d: %s %s, %s: %s"):format(i, kind, name, dtype, case.lua),
             function ()
            local value, gradient = parity.run(case, dtype)
            local most = parity.tolerance(case, dtype)
            assert.is_true(value <= most, "error " .. value)
            assert.is_true((gradient or 0) <= most,
                           "error of the gradient " .. (gradient or 0))
          end)
        end
      end
    end)
  end
end

-- }======================================================

return parity
