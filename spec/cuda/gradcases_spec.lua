-- gradcases_spec.lua - every case of the gradient check, in every layout, gives
-- on the second device the CPU's values and gradients; and no op goes without
-- a case.

local fnn = require "fnn"
local coverage = require "spec.support.coverage"
local device = require "spec.support.device"
local gradcases = require "spec.support.gradcases"
local layouts = require "spec.support.layouts"

-- Runs f; a kernel that is not there yet leaves the test pending.
local function unless_missing(f, ...)
  local ok, message = pcall(f, ...)
  if ok then return end
  local missing = tostring(message):match "[%w_]+: not on cuda yet"
  if missing then pending(missing) else error(message, 0) end
end

local function run(case, layout)
  for _, t in ipairs { "f64", "f32" } do
    local leaves, f = layouts.make(case, layout)
    local title = ("%s (%s), %s"):format(case.op, case.options, layout)
    device.parity(title, f, leaves, { dtype = t })
  end
end

describe("on cuda", function()
  if not device.there() then
    pending "no second device"
    return
  end
  for _, case in ipairs(gradcases.cases) do
    for _, layout in ipairs(layouts.names) do
      if layouts.shapes(case, layout) then
        it(("%s (%s) is the cpu's, %s"):format(case.op, case.options, layout),
           function() unless_missing(run, case, layout) end)
      end
    end
  end
end)

-- {======================================================
-- What has no gradient
-- =======================================================

local function bits(name)
  return function(x, y) return x[name](x:to "i32", y:to "i32") end
end

local function compared(name)
  return function(x, y)
    return { x[name](x, y), x[name](x, 0.0685), x[name](x, x) }
  end
end

local function tested(name)
  return function(x) return { x[name](x), x[name](1 / (x - x)) } end
end

local function along(name)
  return function(x)
    return { x[name](x), x[name](x, 1), x[name](x, -1) }
  end
end

local function masks(name)
  return function(x, y) return x[name](x:gt(0), y:gt(0)) end
end

local plain = {
  all = function(x) return along "all" (x:gt(-0.5)) end,
  any = function(x) return along "any" (x:gt(0.5)) end,
  argmax = along "argmax", argmin = along "argmin",
  argsort = function(x) return { x:argsort(1), x:argsort(-1) } end,
  bitand = bits "bitand", bitor = bits "bitor", bitxor = bits "bitxor",
  shl = bits "shl", shr = bits "shr",
  bitnot = function(x) return { x:to("i64"):bitnot(), x:gt(0):bitnot() } end,
  eq = compared "eq", ne = compared "ne", lt = compared "lt",
  le = compared "le", gt = compared "gt", ge = compared "ge",
  isfinite = tested "isfinite", isinf = tested "isinf",
  isnan = tested "isnan",
  logical_and = masks "logical_and", logical_or = masks "logical_or",
  logical_xor = masks "logical_xor",
  logical_not = function(x) return { x:logical_not(), x:gt(0):logical_not() }
  end,
  nonzero = function(x) return x:gt(0):nonzero() end,
  one_hot = function(x) return x:abs():to("i64"):one_hot(9) end,
}

-- Names that compute nothing.
local words = coverage.words [[
  device dim dtype has_graph is_contiguous item ndim numel order shape size
  stride totable backward detach register_hook release
]]

describe("on cuda", function()
  if not device.there() then return end
  local x = fnn.randn(5, 7, { generator = fnn.Generator(1) }) * 2
  local y = fnn.randn(5, 7, { generator = fnn.Generator(2) }) * 2
  y:select(2, 3):copy_(x:select(2, 3))
  for name, f in pairs(plain) do
    it(name .. " is the cpu's", function()
      unless_missing(function()
        for _, t in ipairs { "f64", "f32" } do
          device.parity(name, f, { x, y }, { dtype = t, back = false })
          device.parity(name .. ", transposed", function(a, b)
            return f(a:transpose(1, 2), b:transpose(1, 2))
          end, { x, y }, { dtype = t, back = false })
        end
      end)
    end)
  end
end)

-- }======================================================

describe("the parity of devices", function()
  local cells = {}
  for _, case in ipairs(gradcases.cases) do cells[case.op] = true end

  it("has a case for each op", function()
    local all = {}
    for name in pairs(plain) do all[name] = true end
    for name in pairs(words) do all[name] = true end
    assert.equal("", coverage.methods(cells, all))
    assert.equal("", coverage.functions(cells))
    assert.equal("", coverage.losses(cells))
    assert.equal("", coverage.rules(cells))
  end)
end)
