-- gradcheck_spec.lua - the derivative of every op against finite differences,
-- in f64, in every layout of its inputs, under a random upstream gradient; and
-- that no op goes without.

local fnn = require "fnn"
local gradcases = require "spec.support.gradcases"
local layouts = require "spec.support.layouts"

local kinds = { [0] = "scalar", "vector", "matrix" }

-- "softmax (dim 1): f64, transposed, matrix (3, 4)"
local function title(case, layout, inputs)
  local shapes = {}
  for i, shape in ipairs(inputs) do
    shapes[i] = ("%s (%s)"):format(kinds[#shape] or "batch",
                                   table.concat(shape, ", "))
  end
  return ("%s (%s): f64, %s, %s"):format(case.op, case.options, layout,
                                         table.concat(shapes, " and "))
end

describe("the gradient of", function()
  for _, case in ipairs(gradcases.cases) do
    for _, layout in ipairs(layouts.names) do
      local inputs = layouts.shapes(case, layout)
      if inputs then
        it(title(case, layout, inputs), function()
          assert.is_true(layouts.check(case, layout))
        end)
      end
    end
  end
end)

-- {======================================================
-- Coverage
-- =======================================================

local function words(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

local function listed(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, ", ")
end

local function methods_of_tensors()
  for _, value in pairs(debug.getregistry()) do
    if type(value) == "table" and rawget(value, "__name") == "fnn.Tensor" then
      return value.methods
    end
  end
end

-- Functions of fnn that are no methods, but ops: the rest makes tensors, or
-- does not compute.
local functions = words "cat stack einsum record"
local others = words [[
  Function Generator Network Param arange default_generator detect_anomaly
  enable_grad evaluate eye clock fit fmt full grad gradcheck is_grad_enabled
  is_tensor kaiming linspace manual_seed memory no_grad normal ones ones_like
  progress rand randint randn randperm repl reset_peak_memory scope
  set_default_device set_default_dtype set_exact_convolution
  set_memory_limit summary tensor threads trim uniform xavier zeros zeros_like
]]

-- A layout that an op cannot have, with the reason.
local impossible = {}

-- The derivatives in the sources whose name is not the method's.
local method_of = {
  cast = "to",
  to_device = "to",  -- to another device, where there is one
}

-- The names of rules in the sources, { "softmax", softmax_back }.
local function rules()
  local found = {}
  local list = assert(io.popen("ls src/*/*.c"))
  for path in list:lines() do
    local file = assert(io.open(path))
    local text = file:read "a"
    for name in text:gmatch 'Rule [%w_]+ = { "([%w_]+)", [%w_]+ }' do
      found[name] = true
    end
    file:close()
  end
  list:close()
  return found
end

describe("the gradient check", function()
  local plain, cells = words(gradcases.plain), {}
  for _, case in ipairs(gradcases.cases) do
    cells[case.op] = cells[case.op] or {}
    for _, layout in ipairs(layouts.names) do
      local shapes = layouts.shapes(case, layout)
      local is_empty, has_dims = false, false
      for _, shape in ipairs(shapes or {}) do
        has_dims = has_dims or #shape > 1
        for _, size in ipairs(shape) do is_empty = is_empty or size == 0 end
      end
      local counts = layout == "contiguous" or layout == "reused" or
                     layout == "empty" and is_empty or
                     layout ~= "empty" and has_dims
      if counts then cells[case.op][layout] = true end
    end
  end

  it("has a case for each method, or knows it as plain data", function()
    local missing = {}
    for name in pairs(methods_of_tensors()) do
      local is_form = name:find "_$" or name:find "^try_"
      if not is_form and not cells[name] and not plain[name] then
        missing[name] = true
      end
    end
    assert.equal("", listed(missing))
  end)

  it("has a case for each function that is an op", function()
    local missing, methods = {}, methods_of_tensors()
    for name, value in pairs(fnn) do
      if type(value) == "function" and not methods[name] and
         not name:find "^try_" and not others[name] and
         not cells[name] then
        missing[name] = true
      end
    end
    for name in pairs(functions) do
      if not cells[name] then missing[name] = true end
    end
    assert.equal("", listed(missing))
  end)

  it("has a case for each loss", function()
    local missing, count = {}, 0
    for name, class in pairs(fnn.nn) do
      if name:find "Loss$" then
        count = count + 1
        if not cells[class.loss] then missing[name] = true end
      end
    end
    assert.is_true(count > 20)
    assert.equal("", listed(missing))
  end)

  it("has a case for each derivative in the sources", function()
    local missing, found = {}, rules()
    assert.is_true(found.softmax)
    for name in pairs(found) do
      if not cells[method_of[name] or name] then missing[name] = true end
    end
    assert.equal("", listed(missing))
  end)

  it("leaves no cell empty", function()
    local empty = {}
    for op, have in pairs(cells) do
      for _, layout in ipairs(layouts.names) do
        local reason = impossible[op] and impossible[op][layout]
        if not have[layout] and not reason then
          empty[op .. ": " .. layout] = true
        end
      end
    end
    assert.equal("", listed(empty))
  end)

  it("knows nothing that is not there", function()
    local gone, methods = {}, methods_of_tensors()
    for name in pairs(plain) do
      if not methods[name] or cells[name] then gone[name] = true end
    end
    for name in pairs(cells) do
      if name ~= "index" and not methods[name] and not rawget(fnn, name) and
         not rawget(fnn.nn, name) then
        gone[name] = true
      end
    end
    assert.equal("", listed(gone))
  end)
end)

-- }======================================================

describe("gradcheck", function()
  local x = fnn.tensor({ 0.5, -1.5, 2 }, { dtype = "f64" })

  -- y = x^2 whose derivative says 2 x + off.
  local function wrong(off)
    return function(t)
      local d = t:detach()
      return fnn.record(d * d, "square", { t }, function(gy)
        return gy * (2 * d + off)
      end)
    end
  end

  it("finds a derivative that is wrong", function()
    assert.is_true(fnn.gradcheck(wrong(0), { x }))
    assert.error_matches(function() fnn.gradcheck(wrong(1e-3), { x }) end,
                         "gradcheck: input 1, element 1: the derivative is")
  end)

  it("finds a derivative that is missing", function()
    assert.error_matches(function()
      fnn.gradcheck(function(a, b) return a * b:detach() end, { x, x })
    end, "gradcheck: input 2, element 1: the derivative is 0")
  end)

  it("says how far off the worst element is", function()
    local ok, worst = fnn.gradcheck(function(a) return a:exp() end, x)
    assert.is_true(ok)
    assert.is_true(worst >= 0 and worst < 1e-6)
  end)

  it("takes Params, which it leaves as they were", function()
    local p = fnn.Param(x:clone())
    fnn.gradcheck(function(a) return a * p end, { p })
    assert.same(x:totable(), p:totable())
    assert.is_nil(p:grad())
    local f32 = fnn.Param(fnn.ones(2))
    assert.error_matches(function()
      fnn.gradcheck(function(a) return a end, { f32 })
    end, "gradcheck: input 1 must be f64")
  end)

  it("knows its options", function()
    assert.error_matches(function()
      fnn.gradcheck(function(a) return a end, x, { epsilon = 1 })
    end, "gradcheck: unknown option 'epsilon'")
    assert.is_true(fnn.gradcheck(wrong(1e-3), x, { atol = 1e-2 }))
  end)
end)
