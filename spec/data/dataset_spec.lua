-- Items, parts and splits of datasets.
local fnn = require "fnn"
local data = fnn.data

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

-- n items: x is (i, 10 i), y is what label(i) says, for i = 0 .. n-1.
local function numbers (n, label)
  local x, y = {}, {}
  for i = 0, n - 1 do x[i + 1], y[i + 1] = { i, 10 * i }, label(i) end
  return data.TensorDataset(fnn.tensor(x), fnn.tensor(y, { dtype = "i64" }))
end

-- The ids of ds's items, in its order.
local function ids (ds)
  if #ds == 0 then return {} end
  local list = {}
  for i, row in ipairs((ds:all()):totable()) do list[i] = row[1] end
  return list
end

local function sorted (a, b)
  local list = table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
  table.sort(list)
  return list
end

local function upto (n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = i end
  return list
end

describe("Windows", function ()
  it("are what comes next", function ()
    local bytes = data.bytes "abcdefg"
    assert.equal("u8", bytes:dtype())
    local ds = data.Windows(bytes, 3)
    assert.equal("Windows of 4 items: i64 (3), i64 (3)", tostring(ds))
    local x, y = ds:items { 3, 0 }
    assert.same({ { 100, 101, 102 }, { 97, 98, 99 } }, x:totable())
    assert.same({ { 101, 102, 103 }, { 98, 99, 100 } }, y:totable())
  end)

  it("do not overlap with a step of their length", function ()
    for _, t in ipairs { "i32", "i64", "u8" } do
      local ds = data.Windows(fnn.arange(10, { dtype = t }), 3, { step = 3 })
      assert.same({ { 0, 1, 2 }, { 3, 4, 5 }, { 6, 7, 8 } },
                  (ds:all()):totable())
    end
    assert.equal(2, #data.Windows(fnn.arange(9, { dtype = "i32" }), 3,
                                  { step = 3 }))
  end)

  it("refuse what has none", function ()
    fails("no window of 3", data.Windows, fnn.arange(3, { dtype = "i64" }), 3)
    fails("one dim", data.Windows, fnn.zeros(9), 3)
    fails("a step of 1 or more", data.Windows, data.bytes "abcd", 2,
          { step = 0 })
    fails("'step'", data.Windows, data.bytes "abcd", 2, { stp = 1 })
  end)
end)

describe("TensorDataset", function ()
  local ds = numbers(5, function (i) return i % 2 end)

  it("counts its items and tells their fields", function ()
    assert.equal(5, #ds)
    assert.same({ { shape = { 2 }, dtype = "f32" },
                  { shape = {}, dtype = "i64" } }, ds:fields())
    assert.equal("TensorDataset of 5 items: f32 (2), i64 ()", tostring(ds))
  end)

  it("gives items by id as a batch, in the order asked", function ()
    local x, y = ds:items { 3, 0, 3 }
    assert.same({ { 3, 30 }, { 0, 0 }, { 3, 30 } }, x:totable())
    assert.same({ 1, 0, 1 }, y:totable())
    assert.same({ 0, 2 }, { (ds:items {}):size(1), (ds:items {}):size(2) })
    fails("item 5 of 5", ds.items, ds, { 5 })
    fails("item -1 of 5", ds.items, ds, { -1 })
  end)

  it("gives items by place, and ends for ipairs", function ()
    assert.same({ 1, 10 }, ds[2][1]:totable())
    assert.equal(1, ds[2][2]:item())
    assert.same({ 4, 40 }, ds[-1][1]:totable())
    local n = 0
    for i, item in ipairs(ds) do
      n = n + 1
      assert.equal(i - 1, item[1]:totable()[1])
    end
    assert.equal(5, n)
    fails("7", function () return ds[7] end)
  end)

  it("converts and scales a field as it is read", function ()
    local bytes = fnn.tensor({ { 0, 255 }, { 51, 102 } }, { dtype = "u8" })
    local scaled = data.TensorDataset { bytes, dtype = "f32", scale = 1 / 255 }
    -- 51 / 255 is 0.2, 102 / 255 is 0.4
    local x = scaled:all()
    assert.equal("f32", x:dtype())
    assert.equal(1, x[1][2])
    assert.near(0.2, x[2][1], 1e-7)
    assert.near(0.4, x[2][2], 1e-7)
    bytes:fill_(0)  -- the memory is shared: no copy was made
    assert.equal(0, (scaled:all()):sum():item())
  end)

  it("reads views and does not see what is next to them", function ()
    local x = fnn.tensor { { 0, 1, 2 }, { 10, 11, 12 } }
    local t = data.TensorDataset(x:transpose(1, 2), fnn.ones(3))
    assert.same({ { 1, 11 } }, (t:items { 1 }):totable())
  end)

  it("refuses tensors of other lengths, options it has not, scalars",
     function ()
    local message = fails("as many rows", data.TensorDataset,
                          fnn.zeros(3, 2), fnn.zeros(4))
    assert.truthy(message:find("(3, 2)", 1, true), message)
    assert.truthy(message:find("(4)", 1, true), message)
    fails("'scal'", data.TensorDataset, { fnn.zeros(2), scal = 2 })
    fails("rows", data.TensorDataset, fnn.tensor(1))
    assert.is_nil((data.try_TensorDataset(fnn.zeros(3), fnn.zeros(4))))
  end)

  it("holds a part, and a part of a part", function ()
    local part = ds:subset { 4, 2, 0 }
    assert.equal(3, #part)
    assert.same({ 4, 2, 0 }, ids(part))
    assert.same({ 2, 2 }, ids(part:subset(fnn.tensor({ 1, 1 },
                                                    { dtype = "i64" }))))
    fails("3", ds.subset, part, { 3 })
  end)
end)

describe("split", function ()
  it("puts each item on one side, by rounding", function ()
    local ds = numbers(10, function () return 0 end)
    for f, n in pairs { [0] = 0, [0.25] = 3, [0.8] = 8, [1] = 10 } do
      local a, b = ds:split(f)
      assert.equal(n, #a, f)
      assert.same(upto(10), sorted(ids(a), ids(b)))
    end
  end)

  it("has an order that the seed alone decides", function ()
    local ds = numbers(50, function () return 0 end)
    local a, b = ds:split(0.5, { seed = 3 })
    local c, d = ds:split(0.5, { seed = 3 })
    assert.same(ids(a), ids(c))
    assert.same(ids(b), ids(d))
    assert.not_same(ids(a), ids((ds:split(0.5, { seed = 4 }))))
    assert.not_same(upto(25), ids(a))
  end)

  it("makes as many parts as fractions", function ()
    local ds = numbers(20, function () return 0 end)
    local a, b, c = data.split(ds, { 0.5, 0.3, 0.2 }, { seed = 1 })
    assert.same({ 10, 6, 4 }, { #a, #b, #c })
    local all = sorted(sorted(ids(a), ids(b)), ids(c))
    assert.same(upto(20), all)
    fails("add up to 1 (got 0.8)", data.split, ds, { 0.5, 0.3 })
  end)

  it("refuses what is no fraction", function ()
    local ds = numbers(4, function () return 0 end)
    fails("from 0 to 1", ds.split, ds, 1.5)
    fails("from 0 to 1", ds.split, ds, 0 / 0)
    fails("got string", ds.split, ds, "half")
    local message = fails("did you mean 'seed'?", ds.split, ds, 0.5,
                          { sead = 1 })
    assert.truthy(message:find("dataset_spec.lua:", 1, true), message)
  end)
end)

describe("split_stratified", function ()
  local function counts (ds)
    local n = {}
    local _, y = ds:all()
    for _, c in ipairs(y:totable()) do n[c] = (n[c] or 0) + 1 end
    return n
  end

  it("keeps both sides' shares of 95 to 5", function ()
    local ds = numbers(200, function (i) return i % 20 == 7 and 1 or 0 end)
    -- 190 and 10 items: round(0.8 n) of each class
    local a, b = ds:split_stratified(0.8)
    assert.same({ [0] = 152, [1] = 8 }, counts(a))
    assert.same({ [0] = 38, [1] = 2 }, counts(b))
    assert.same(upto(200), sorted(ids(a), ids(b)))
  end)

  it("has a class of two on both sides, one of one on the first", function ()
    local ds = numbers(43, function (i)
      return i < 40 and 0 or i < 42 and 1 or 2
    end)
    local a, b = ds:split_stratified(0.95)
    assert.same({ [0] = 38, [1] = 1, [2] = 1 }, counts(a))
    assert.same({ [0] = 2, [1] = 1 }, counts(b))
    a, b = ds:split_stratified(0.01)
    assert.same({ [0] = 1, [1] = 1 }, counts(a))
    assert.same({ [0] = 39, [1] = 1, [2] = 1 }, counts(b))
    a, b = ds:split_stratified(1)
    assert.same({ 43, 0 }, { #a, #b })
  end)

  it("has a class of three in each of three parts", function ()
    local ds = numbers(103, function (i) return i < 100 and 0 or 1 end)
    local a, b, c = data.split_stratified(ds, { 0.9, 0.05, 0.05 })
    assert.same({ [0] = 90, [1] = 1 }, counts(a))
    assert.same({ [0] = 5, [1] = 1 }, counts(b))
    assert.same({ [0] = 5, [1] = 1 }, counts(c))
  end)

  it("finds the classes in one-hot rows and other fields", function ()
    local x = fnn.arange(6):reshape(6, 1)
    local hot = fnn.tensor { { 1, 0 }, { 0, 1 }, { 1, 0 }, { 0, 1 }, { 1, 0 },
                             { 0, 1 } }
    local a = data.TensorDataset(hot, x):split_stratified(
      0.67, { field = 1, seed = 2 })
    local sums = (a:all()):sum(1):totable()
    assert.same({ 2, 2 }, sums)
    fails("no field 3", function ()
      data.TensorDataset(hot, x):split_stratified(0.5, { field = 3 })
    end)
    fails("has no labels", function ()
      data.TensorDataset(x, fnn.zeros(6, 2, 2)):split_stratified(0.5)
    end)
  end)

  it("is the same for the same seed", function ()
    local ds = numbers(60, function (i) return i % 3 end)
    local a = ds:split_stratified(0.5, { seed = 5 })
    local b = ds:split_stratified(0.5, { seed = 5 })
    local c = ds:split_stratified(0.5, { seed = 6 })
    assert.same(ids(a), ids(b))
    assert.not_same(ids(a), ids(c))
  end)
end)
