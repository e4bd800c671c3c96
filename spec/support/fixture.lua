-- fixture.lua - runs cases that scripts/fixtures made: an expression over
-- inputs x, y, z, w, its value, and its gradients for a given upstream one.
-- Each runs with its inputs laid out in several ways, and must not notice.

local assert = require "luassert"
local fnn = require "fnn"

local fixture = {}

-- The input t = { shape, numbers [, dtype] } as a tensor; float ones are f64
-- or of the dtype given.
function fixture.tensor (t, float)
  local options = { dtype = t[3] or float or "f64" }
  if #t[1] == 0 then return fnn.tensor(t[2][1], options) end
  if #t[2] == 0 then return fnn.zeros(t[1], options) end
  return fnn.tensor(t[2], t[1], options)
end

-- Nested tables as one list.
function fixture.flatten (t, list)
  list = list or {}
  if type(t) ~= "table" then
    list[#list + 1] = t
    return list
  end
  for _, v in ipairs(t) do fixture.flatten(v, list) end
  return list
end

local function same (a, b)
  if a == b then return a ~= 0 or math.type(a) == "integer" or 1 / a == 1 / b
  end
  return a ~= a and b ~= b
end

-- Whether a is b to within the share near.
local function close (a, b, near)
  if a == b or (a ~= a and b ~= b) then return true end
  if type(a) ~= "number" or type(b) ~= "number" then return false end
  return math.abs(a - b) <= near * math.max(1, math.abs(a))
end

-- x has these numbers, NaN and the sign of zero included; or, with near, so
-- close to them.
function fixture.check (x, numbers, what, near)
  local have = fixture.flatten(x:totable())
  assert.equal(#numbers, #have, what .. ": how many")
  for i = 1, #numbers do
    local right
    if near then right = close(numbers[i], have[i], near)
    else right = same(numbers[i], have[i]) end
    if not right then
      assert.equal(numbers[i], have[i], ("%s: element %d"):format(what, i))
    end
  end
end

-- Ways to lay out the same elements: each makes a tensor whose view by its
-- own rule is x again.
fixture.layouts = {
  plain = function (x) return x end,
  transposed = function (x)
    return x:ndim() > 1 and x:transpose(1, -1) or x
  end,
  reversed = function (x)
    return x:ndim() > 0 and x:slice(1, -1, 1, -1) or x
  end,
}

local names = { "x", "y", "z", "w" }

-- Runs a case with all inputs that have a gradient as Params, or only the one
-- numbered alone: the derivative must do without the others.  With a dtype
-- float ones are of it, and near is how close results must be.
local function run (case, layout, view, alone, float, near)
  local env = { fnn = fnn, select = select }
  local leaves = {}
  for i, input in ipairs(case.inputs) do
    local t = view(fixture.tensor(input, float)):clone():contiguous()
    local is_leaf = case.gradients and case.gradients[i] and
                    (alone or i) == i
    leaves[i] = is_leaf and fnn.Param(t) or t
    env[names[i]] = view(leaves[i])
  end
  local y = assert(load("return " .. case[1], case[1], "t", env))()
  local dtype = case.output[3]
  assert.equal(dtype or float or "f64", y:dtype(), layout .. ": dtype")
  assert.same(case.output[1], y:shape(), layout .. ": shape")
  fixture.check(y, case.output[2], layout, near)
  if not case.gradients then return end
  y:backward(fixture.tensor({ case.output[1], case.upstream }, float))
  for i, g in ipairs(case.gradients) do
    if g and (alone or i) == i then
      local what = ("%s: gradient of %s"):format(layout, names[i])
      assert.truthy(leaves[i]:grad(), what)
      fixture.check(view(leaves[i]:grad()), g, what, near)
    end
  end
end

-- Defines a test for each case of a file of spec/fixtures.
function fixture.define (cases, it)
  for i, case in ipairs(cases) do
    local shapes = {}
    for k, input in ipairs(case.inputs) do
      shapes[k] = ("%s (%s)"):format(names[k], table.concat(input[1], ", "))
    end
    local title = ("%d: %s of %s"):format(i, case[1],
                                          table.concat(shapes, ", "))
    it(title, function ()
      local near = case.near
      for layout, view in pairs(fixture.layouts) do
        run(case, layout, view, nil, nil, near and 1e-12)
        if near then run(case, layout .. " f32", view, nil, "f32", 4e-6) end
      end
      for k = 1, case.gradients and #case.gradients or 0 do
        if case.gradients[k] then
          run(case, "alone", fixture.layouts.plain, k, nil, near and 1e-12)
        end
      end
    end)
  end
end

return fixture
