local fixture = require "spec.support.fixture"
local fnn = require "fnn"

local dtypes = { "bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64" }

local function ids (...)
  return fnn.tensor({ ... }, { dtype = "i64" })
end

describe("ops with ids", function ()
  fixture.define(require "spec.fixtures.index", it)

  it("take tables of ids, and i32", function ()
    local x = fnn.tensor{ 10, 11, 12 }
    assert.same({ 12, 10 }, x:index_select(1, { 2, 0 }):totable())
    assert.same({ 12, 10 }, x:gather(1, { 2, 0 }):totable())
    local small = fnn.tensor({ 2, 0 }, { dtype = "i32" })
    assert.same({ 12, 10 }, x:index_select(1, small):totable())
    assert.same({ 12, 10 }, x[small]:totable())
    assert.same({ 10, 12, 12 },
                x:scatter_add(1, { 1 }, fnn.ones(1)):totable())
  end)

  it("work on every dtype", function ()
    for _, dtype in ipairs(dtypes) do
      local x = fnn.tensor({ 0, 1, 1, 0 }, 2, 2, { dtype = dtype })
      local function got (y)
        assert.equal(dtype, y:dtype())
        return y:to("i64"):totable()
      end
      assert.same({ { 1, 0 }, { 0, 1 } }, got(x:index_select(1, { 1, 0 })))
      assert.same({ { 1, 0 }, { 0, 1 } }, got(x:index_select(2, { 1, 0 })))
      local places = fnn.tensor({ 0, 1 }, 2, 1, { dtype = "i64" })
      assert.same({ { 0 }, { 0 } }, got(x:gather(2, places)))
      local y = x:scatter_add(2, places, x:narrow(2, 2, 1))
      assert.same({ { 1, 1 }, { 1, 0 } }, got(y))
      assert.same({ { 0, 0 }, { 1, 0 } }, got(x:tril()))
      assert.same({ { 0, 1 }, { 1, 0 } }, x:nonzero():totable())
    end
  end)

  it("scatter into the tensor itself", function ()
    local x = fnn.zeros(3)
    assert.equal(x, x:scatter_add_(1, { 2, 2, 0 }, fnn.ones(3)))
    assert.same({ 1, 0, 2 }, x:totable())
    assert.error_matches(function ()
      fnn.zeros(1):expand(3):scatter_add_(1, { 0 }, fnn.ones(1))
    end, "expanded")
  end)

  it("name a bad id, its place and the range", function ()
    local x = fnn.zeros(5, 2)
    local function fails (pattern, f) assert.error_matches(f, pattern) end
    fails("index_select: id 7 at position 3 is out of range for 5 rows " ..
          "%(ids count from 0%)",
          function () x:index_select(1, { 0, 4, 7, 9 }) end)
    fails("id %-1 at position 1",
          function () x:index_select(1, { -1 }) end)
    fails("id %-9223372036854775808 at position 2", function ()
      x:index_select(1, { 0, math.mininteger })
    end)
    fails("id 0 at position 1 is out of range for 0 rows",
          function () fnn.zeros(0, 2):index_select(1, { 0 }) end)
    fails("gather: id 2 at position 4 is out of range for 2 places",
          function () x:gather(2, ids(0, 1, 1, 2):reshape(4, 1)) end)
    fails("scatter_add: id 5 at position 1 is out of range for 5 places",
          function () x:scatter_add(1, ids(5):reshape(1, 1), x) end)
    fails("one_hot: id 3 at position 2 is out of range for 3 classes",
          function () ids(0, 3):one_hot(3) end)
    fails("one_hot: too many classes",
          function () ids(math.maxinteger):one_hot() end)
    fails("one_hot: no ids", function () ids():one_hot() end)
    fails("one_hot: id %-2", function () ids(-2):one_hot() end)
    fails("ids must be integers.*i64.*got f32",
          function () x:index_select(1, fnn.zeros(2)) end)
    fails("ids must be integers", function () x:gather(1, x) end)
    fails("ids must be integers", function () fnn.zeros(2):one_hot(2) end)
    fails("gather: ids %(3%) do not fit %(5, 2%)",
          function () x:gather(1, { 0, 1, 2 }) end)
    fails("gather: ids %(1, 3%) do not fit",
          function () x:gather(1, ids(0, 0, 0):reshape(1, 3)) end)
    fails("scatter_add: ids %(2, 1%) do not fit %(1, 1%)", function ()
      x:scatter_add(1, ids(0, 0):reshape(2, 1), fnn.zeros(1, 1))
    end)
    fails("expected src of dtype f32, got f64", function ()
      x:scatter_add(1, ids(0):reshape(1, 1), fnn.zeros(1, 1,
                                                       { dtype = "f64" }))
    end)
    fails("masked_select: expected a bool mask, got f32",
          function () x:masked_select(x) end)
    fails("masked_select: shapes %(5, 2%) and %(3%) do not broadcast",
          function () x:masked_select(fnn.zeros(3, { dtype = "bool" })) end)
  end)

  it("take the places of a mask of the first dimensions", function ()
    -- A cube, where the mask could be taken for one of the last ones.
    local x = fnn.arange(8):reshape(2, 2, 2)
    local mask = fnn.tensor{ { 0, 1 }, { 1, 0 } }:eq(1)
    assert.same({ { 2, 3 }, { 4, 5 } }, x[mask]:totable())
    assert.same({ { 4, 5 }, { 2, 3 } },
                x:permute(2, 1, 3)[mask]:totable())
    x[mask] = -1
    assert.same({ { { 0, 1 }, { -1, -1 } }, { { -1, -1 }, { 6, 7 } } },
                x:totable())
    assert.same({ 0, 4 }, fnn.ones(2, 0, 4)[fnn.ones(2, 0):eq(1)]:shape())
    assert.error_matches(function () return fnn.ones(2, 3, 3)[mask] end,
                         "index: a mask %(2, 2%) does not fit the rows of")
  end)

  it("take the rows of a mask of one dimension", function ()
    local x = fnn.arange(12):reshape(3, 2, 2)
    local mask = fnn.tensor{ 1, 0, 1 }:eq(1)
    assert.same({ { { 0, 1 }, { 2, 3 } }, { { 8, 9 }, { 10, 11 } } },
                x[mask]:totable())
    assert.same({ 0, 2, 2 }, x[fnn.zeros(3, { dtype = "bool" })]:shape())
    -- A square one too, where a mask could be taken for one of columns.
    local square = fnn.arange(9):reshape(3, 3)
    assert.same({ { 0, 1, 2 }, { 6, 7, 8 } }, square[mask]:totable())
    square[mask] = -1
    assert.same({ { -1, -1, -1 }, { 3, 4, 5 }, { -1, -1, -1 } },
                square:totable())
    assert.same({ 0, 3 }, fnn.arange(4)[fnn.tensor{ 1, 0, 0, 1 }:eq(1)]
                                       :totable())
    for _, f in ipairs{ function () return x[mask:narrow(1, 1, 2)] end,
                        function () x[mask:narrow(1, 1, 2)] = 0 end } do
      assert.error_matches(f, "index: a mask %(2%) does not fit the rows of "
                              .. "%(3, 2, 2%)")
    end
  end)

  it("find a bad id in the middle of many", function ()
    local many = fnn.zeros(200000, { dtype = "i64" })
    many[150001], many[70001] = 9, -3
    assert.error_matches(function () fnn.zeros(5):index_select(1, many) end,
                         "id %-3 at position 70001 ")
  end)

  -- Against sums in Lua, for shapes that split into several tasks.
  it("add what repeats, in order", function ()
    local seed = 1
    local function random (n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % n
    end
    for _, shape in ipairs{ { 1, 90000, 1 }, { 300, 300, 2 },
                            { 3, 500, 70 } } do
      local outer, count, inner = table.unpack(shape)
      local rows, list, sum = 7, {}, {}
      for j = 1, count do list[j] = random(rows) end
      for r = 1, rows do sum[r] = 0 end
      for j = 1, count do sum[list[j] + 1] = sum[list[j] + 1] + j % 5 end
      local p = fnn.Param(fnn.zeros(outer, rows, inner))
      local y = p:index_select(2, list)
      local g = fnn.arange(1, count + 1):remainder(5):reshape(1, count, 1)
      y:backward(g:expand(outer, count, inner))
      local got = p:grad()
      for r = 1, rows do
        local part = got:select(2, r)
        assert.equal(sum[r], part:min():item())
        assert.equal(sum[r], part:max():item())
      end
    end
  end)

  it("list the true places of a long mask", function ()
    local mask = fnn.arange(100000):remainder(3):eq(0)
    local at = mask:nonzero()
    assert.same({ 33334, 1 }, at:shape())
    assert.equal(99999, at:at(33333, 0))
    assert.equal(33333 * 33334 // 2 * 3, at:sum():item())
  end)
end)
