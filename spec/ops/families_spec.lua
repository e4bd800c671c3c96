-- The forms in place of every row of map.def and zip.def, and what arithmetic
-- says of a mistake.  The rows are read from the tables, so that one without a
-- test cannot be.

local fnn = require "fnn"

local function rows (file, macro)
  local list = {}
  local f = assert(io.open("src/core/" .. file))
  local text = f:read("a"):gsub("%s*/%*.-%*/", "") -- no comments
  f:close()
  for name, rest in text:gmatch(macro .. "%(([%w_]+),(.-)%)\n") do
    list[#list + 1] = { name = name, text = rest }
  end
  local _, count = text:gsub("\n" .. macro .. "%(", "")
  assert(#list == count and count > 10)
  return list
end

-- Numbers between kinks, which are at multiples of 1/8: 1/16 off those.
local function grid (lo, hi, shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  local list, steps = {}, math.floor((hi - lo) * 8)
  for i = 1, n do
    list[i] = lo + (i * 37 % steps) / 8 + 1 / 16
  end
  if n == 0 then return fnn.zeros(shape, { dtype = "f64" }) end
  return fnn.tensor(list, shape, { dtype = "f64" })
end

-- The kind of a row is the first of these words in it.
local function kind_of (row)
  for word in row.text:gmatch "%u+" do
    if word == "REAL" or word == "SAME" or word == "TEST" or
       word == "INT" then
      return word
    end
  end
end

-- {======================================================
-- In place
-- =======================================================

describe("in place", function ()
  local function same (a, b)
    assert.same(a:shape(), b:shape())
    assert.equal(a:dtype(), b:dtype())
    assert.same(a:totable(), b:totable())
  end

  for _, row in ipairs(rows("map.def", "MAP")) do
    local name, kind = row.name, kind_of(row)
    if kind == "REAL" or kind == "SAME" then
      it(name .. "_ is " .. name, function ()
        local x = grid(0.25, 0.75, { 4, 3 }):to "f32"
        local y, t = x:clone(), x:clone()
        assert.equal(y, y[name .. "_"](y))
        same(x[name](x), y)
        t:t()[name .. "_"](t:t())
        same(x[name](x), t)
      end)
    end
  end

  for _, row in ipairs(rows("zip.def", "ZIP")) do
    local name, kind = row.name, kind_of(row)
    if kind == "REAL" or kind == "SAME" then
      it(name .. "_ is " .. name, function ()
        local x = grid(0.25, 2, { 4, 3 }):to "f32"
        local row_of, by = grid(0.5, 2, { 3 }):to "f32", name .. "_"
        local y = x:clone()
        same(x[name](x, row_of), y[by](y, row_of))
        y = x:clone()
        same(x[name](x, 1.5), y[by](y, 1.5))
        y = x:clone()
        same(x[name](x, x), y[by](y, y))
      end)
    end
  end

  it("keeps the dtype, or says that it cannot", function ()
    local x = fnn.tensor({ 1, 2, 3 }, { dtype = "i64" })
    assert.error_matches(function () x:exp_() end,
      "exp_: the result is f32 and does not fit into the i64 tensor")
    assert.error_matches(function () x:add_(0.5) end, "add_: the result is f32")
    assert.error_matches(function () x:div_(2) end, "div_: the result is f32")
    assert.same({ 1, 2, 3 }, x:totable())
    same(fnn.tensor({ 2, 3, 4 }, { dtype = "i64" }), x:add_(1))
    local y = fnn.ones(2)
    y:add_(fnn.ones({ 2 }, { dtype = "f64" }))
    same(fnn.tensor{ 2, 2 }, y)
  end)

  it("needs room for the operand", function ()
    local x = fnn.ones(3)
    assert.error_matches(function () x:add_(fnn.ones(2, 3)) end,
      "add_: an operand of shape %(2, 3%) does not fit into the tensor of " ..
      "shape %(3%)")
  end)

  it("is not for graphs, expanded or read-only tensors", function ()
    local p = fnn.Param(fnn.ones(2))
    assert.error_matches(function () (p * 2):add_(1) end, "in%-place")
    assert.error_matches(function () fnn.ones(2):add_(p) end, "in%-place")
    assert.error_matches(function () fnn.ones(1):expand(3):add_(1) end,
                         "expanded")
  end)
end)

-- }======================================================

-- {======================================================
-- Errors
-- =======================================================

describe("arithmetic says", function ()
  it("what does not broadcast", function ()
    assert.error_matches(function () return fnn.ones(2, 3) + fnn.ones(2) end,
      "add: shapes %(2, 3%) and %(2%) do not broadcast")
  end)
  it("that the cpu only stores half floats", function ()
    local h = fnn.ones(2):to "f16"
    for _, f in ipairs{ function () return h + 1 end,
                        function () return h:exp() end,
                        function () return h:sum() end,
                        function () return h:cumsum(1) end,
                        function () return h:softmax(1) end } do
      assert.error_matches(f, ":to%(\"f32\"%)")
    end
  end)
  it("that integers do not divide by zero", function ()
    local x = fnn.tensor({ 1, 2 }, { dtype = "i64" })
    assert.error_matches(function () return x // 0 end,
                         "floordiv: integer division by zero")
    assert.error_matches(function () return x % x:sub(1) end,
                         "remainder: integer division by zero")
    assert.same({ 1 / 0, 1 / 0 }, (x / 0):totable())
  end)
  it("which dtypes a function takes", function ()
    local x = fnn.tensor({ 1, 2 }, { dtype = "i64" })
    assert.error_matches(function () return x:mean() end,
      "mean: expected a float tensor, got i64 of shape %(2%)")
    assert.error_matches(function () return fnn.ones(2) & 1 end,
      "bitand: expected integers or bools, got f32")
    assert.error_matches(function () return -x:gt(0) end,
      "neg: expected numbers, got a bool tensor")
    assert.error_matches(function () return x ^ -1 end,
      "pow: integers have no negative powers")
  end)
  it("that nothing has no maximum", function ()
    assert.error_matches(function () return fnn.ones(2, 0):max(2) end,
      "max: nothing to choose from in an empty dim of shape %(2, 0%)")
    assert.error_matches(function () return fnn.ones(0):argmin() end,
                         "argmin: nothing to choose from")
  end)
  it("what cross_entropy needs", function ()
    local x = fnn.ones(2, 3)
    assert.error_matches(function () return x:cross_entropy{ 0, 3 } end,
      "cross_entropy: id 3 is out of range for 3 classes")
    assert.error_matches(function () return x:cross_entropy{ 0, 1, 2 } end,
      "logits of shape %(2, 3%) and ids of shape %(3%)")
    assert.error_matches(function ()
      return x:cross_entropy({ 0, 1 }, { label_smoothing = 2 })
    end, "option 'label_smoothing': expected a number from 0 to 1, got 2")
    assert.error_matches(function ()
      return x:cross_entropy({ 0, 1 }, { weight = fnn.ones(2) })
    end, "weight must be f32 of shape %(3%), got f32 of shape %(2%)")
  end)
  it("nothing of ids that are all ignored: the loss is 0", function ()
    local p = fnn.Param(fnn.ones(2, 3))
    local loss = p:cross_entropy({ -100, -100 })
    assert.equal(0, loss:item())
    loss:backward()
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, p:grad():totable())
  end)
end)

-- }======================================================
