-- Standardized inputs and one-hot targets.
local fnn = require "fnn"
local data = fnn.data

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

-- Each number of a state as %.17g writes it, and read again.
local function through_text (t)
  if type(t) ~= "table" then
    return type(t) == "number" and tonumber(("%.17g"):format(t)) or t
  end
  local copy = {}
  for k, v in pairs(t) do copy[k] = through_text(v) end
  return copy
end

describe("standardize", function ()
  -- scikit-learn's StandardScaler of these rows has mean_ (2, 7, 3) and
  -- scale_ sqrt(2/3), sqrt(8/3)... by hand: columns 1 2 3, 7 7 7, 1 3 5.
  local x = fnn.tensor { { 1, 7, 1 }, { 2, 7, 3 }, { 3, 7, 5 } }
  local root = math.sqrt(1.5)

  it("uses the population's deviation, and 1 for a constant column",
     function ()
    local y, s = data.standardize(x)
    local want = { { -root, 0, -root }, { 0, 0, 0 }, { root, 0, root } }
    for i, row in ipairs(y:totable()) do
      for k, v in ipairs(row) do assert.near(want[i][k], v, 1e-6) end
    end
    assert.same({ 2, 7, 3 }, s:state().mean)
    assert.near(math.sqrt(2 / 3), s:state().std[1], 1e-7)
    assert.equal(1, s:state().std[2])
    assert.near(math.sqrt(8 / 3), s:state().std[3], 1e-7)
    assert.same({ { 1, 7, 1 }, { 2, 7, 3 }, { 3, 7, 5 } }, x:totable())
  end)

  it("does to a test set, or a row, what it did to the training set",
     function ()
    local _, s = data.standardize(x)
    local y = s:apply(fnn.tensor { { 5, 8, 3 } }):totable()[1]
    assert.near(3 * root, y[1], 1e-5)
    assert.equal(1, y[2])
    assert.equal(0, y[3])
    assert.same(y, s:apply(fnn.tensor { 5, 8, 3 }):totable())
    fails("expected rows of shape (3), got (2)", s.apply, s, fnn.zeros(2))
    fails("(1, 1, 3)", s.apply, s, fnn.zeros(1, 1, 3))
  end)

  for _, dtype in ipairs { "f32", "f64" } do
    it("keeps every bit of its state through text: " .. dtype, function ()
      local big = fnn.randn(50, 4, { dtype = dtype }) * 3 + 0.1
      local y, s = data.standardize(big)
      local t = data.Standardizer(through_text(s:state()))
      assert.same(s:state(), t:state())
      assert.same(y:totable(), t:apply(big):totable())
      assert.equal(dtype, t:apply(big):dtype())
    end)
  end

  it("takes a dataset, whose first field it scales", function ()
    local y = fnn.tensor({ 0, 1, 0 }, { dtype = "i64" })
    local ds, s = data.standardize(data.TensorDataset(x, y))
    local a, b = ds:all()
    assert.same((data.standardize(x)):totable(), a:totable())
    assert.same({ 0, 1, 0 }, b:totable())
    local other = s:apply(data.TensorDataset(fnn.tensor { { 2, 9, 3 } },
                                             fnn.ones(1)))
    assert.same({ { 0, 2, 0 } }, (other:all()):totable())
  end)

  it("is exact for columns far from zero", function ()
    -- f32 sums of 1e6 + (0, 1, 2, 3) would lose the deviation sqrt(1.25)
    local far = fnn.tensor { { 1e6 }, { 1e6 + 1 }, { 1e6 + 2 }, { 1e6 + 3 } }
    local _, s = data.standardize(far)
    assert.near(math.sqrt(1.25), s:state().std[1], 1e-6)
  end)

  it("refuses integers, no rows and a state that is none", function ()
    fails("got i64", data.standardize, fnn.ones(2, 2, { dtype = "i64" }))
    fails("no rows", data.standardize, fnn.zeros(0, 3))
    fails("mean", data.Standardizer, {})
  end)
end)

describe("one_hot_targets", function ()
  it("has a one at each label", function ()
    local y = data.one_hot_targets(fnn.tensor { 2, 0 }, 3)
    assert.same({ { 0, 0, 1 }, { 1, 0, 0 } }, y:totable())
    assert.equal("f32", y:dtype())
    local ids = fnn.tensor({ 1 }, { dtype = "i64" })
    assert.same({ { 0, 1 } }, data.one_hot_targets(ids, 2):totable())
  end)

  it("refuses fractions, negative labels, labels out of range", function ()
    fails("whole numbers", data.one_hot_targets, fnn.tensor { 0.5 }, 2)
    fails("whole numbers", data.one_hot_targets, fnn.tensor { 0 / 0 }, 2)
    fails("-1", data.one_hot_targets, fnn.tensor { -1 }, 2)
    fails("2", data.one_hot_targets, fnn.tensor { 2 }, 2)
  end)
end)
