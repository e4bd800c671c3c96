-- gradcheck_spec.lua - the derivative of every op against finite differences,
-- in f64, in every layout of its inputs, under a random upstream gradient; and
-- that no op goes without.

local fnn = require "fnn"
local coverage = require "spec.support.coverage"
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

-- A layout that an op cannot have, with the reason.
local impossible = {}

describe("the gradient check", function()
  local plain, cells = coverage.words(gradcases.plain), {}
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
    assert.equal("", coverage.methods(cells, plain))
  end)

  it("has a case for each function that is an op", function()
    assert.equal("", coverage.functions(cells))
  end)

  it("has a case for each loss", function()
    assert.equal("", coverage.losses(cells))
  end)

  it("has a case for each derivative in the sources", function()
    assert.equal("", coverage.rules(cells))
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
    assert.equal("", coverage.listed(empty))
  end)

  it("knows nothing that is not there", function()
    local gone, methods = {}, coverage.methods_of_tensors()
    for name in pairs(plain) do
      if not methods[name] or cells[name] then gone[name] = true end
    end
    for name in pairs(cells) do
      if name ~= "index" and not methods[name] and not rawget(fnn, name) and
         not rawget(fnn.nn, name) then
        gone[name] = true
      end
    end
    assert.equal("", coverage.listed(gone))
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
