-- index_spec.lua - elements and rows moved by ids on the second device, and
-- what is said of an id that is out of range.

local fnn = require "fnn"
local device = require "spec.support.device"

local nn = fnn.nn

local function randn(...)
  return fnn.randn({ ... }, { generator = fnn.Generator(5) })
end

local function ids(n, ...)
  local o = { generator = fnn.Generator(n), dtype = "i64" }
  return fnn.randint(0, n, { ... }, o)
end

-- Runs f, which must fail, and gives its message; the card works on after it.
local function failure(f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.equal(6, fnn.full({ 3 }, 2):to(device.name):sum():to("cpu"):item())
  return message
end

local function line() return debug.getinfo(2, "l").currentline end

local function describe_there(name, f)
  describe(name, function()
    if device.there() then f() else pending "no second device" end
  end)
end

describe_there("ids on cuda", function()
  it("select rows of every width", function()
    for _, width in ipairs { 1, 2, 3, 4, 8, 31, 257 } do
      device.all("index_select", function(x, i)
        return x:index_select(1, i)
      end, { randn(9, width), ids(9, 17) })
    end
    device.all("index_select inside", function(x, i)
      return x:index_select(2, i)
    end, { randn(3, 7, 5), ids(7, 2, 4) })
    device.all("index_select of columns", function(x, i)
      return x:index_select(2, i)
    end, { randn(33, 65), ids(65, 31) })
  end)

  it("move every dtype", function()
    for _, t in ipairs { "bool", "u8", "i32", "i64" } do
      local x = fnn.randint(0, 9, { 7, 5 }, { generator = fnn.Generator(1) })
      x = t == "bool" and x:gt(4) or x:to(t)
      device.parity("select " .. t, function(y, i)
        return y:index_select(1, i)
      end, { x, ids(7, 12) })
      device.parity("gather " .. t, function(y, i) return y:gather(2, i) end,
                    { x, ids(5, 7, 6) })
    end
    for _, t in ipairs { "bool", "u8", "i32", "i64" } do
      if t ~= "bool" then
        local x = fnn.zeros({ 5, 4 }, { dtype = t })
        local src = fnn.full({ 90, 4 }, 77, { dtype = t })
        device.parity("add " .. t, function(y, i, s)
          return y:scatter_add(1, i, s)
        end, { x, ids(5, 90, 4), src })
      end
    end
  end)

  it("are of any integer dtype, and may be none", function()
    device.parity("i32 ids", function(x, i) return x:index_select(1, i) end,
                  { randn(5, 3), ids(5, 4):to "i32" })
    device.all("no ids", function(x, i) return x:index_select(1, i) end,
               { randn(5, 3), ids(5, 0) })
  end)

  it("gather along any dim", function()
    for dim = 1, 3 do
      local shape = { 7, 5, 33 }
      shape[dim] = 11
      device.all("gather", function(x, i) return x:gather(dim, i) end,
                 { randn(7, 5, 33), ids(({ 7, 5, 33 })[dim],
                                        table.unpack(shape)) })
    end
    device.all("gather a corner", function(x, i) return x:gather(2, i) end,
               { randn(7, 5, 4), ids(5, 3, 2, 2) })
  end)

  it("add up, few and many", function()
    for _, n in ipairs { 1, 33, 65, 300 } do
      for _, inner in ipairs { 1, 5 } do
        device.all("scatter_add", function(x, i, s)
          return x:scatter_add(1, i, s)
        end, { randn(4, inner), ids(4, n, inner), randn(n, inner) },
        { f16 = 8e-3, bf16 = 6e-2 })
      end
    end
    device.all("scatter_add inside", function(x, i, s)
      return x:scatter_add(2, i, s)
    end, { randn(3, 9, 2), ids(9, 3, 100, 2), randn(3, 100, 2) },
    { f16 = 8e-3, bf16 = 6e-2 })
  end)

  it("have the same sums every time", function()
    local x, s = fnn.zeros({ 7, 13 }):to(device.name), randn(300, 13)
    local i = ids(7, 300, 13):to(device.name)
    local first = x:scatter_add(1, i, s:to(device.name)):to "cpu"
    for _ = 1, 2 do
      local again = x:scatter_add(1, i, s:to(device.name)):to "cpu"
      assert.is_true(first:eq(again):all():item())
    end
    local cpu = fnn.zeros({ 7, 13 }):scatter_add(1, i:to "cpu", s)
    assert.is_true(cpu:eq(first):all():item())
  end)

  it("find what is true", function()
    for _, n in ipairs { 1, 7, 255, 257, 4096, 4097, 9000 } do
      local x = randn(n):gt(0.3)
      device.parity("nonzero", function(y) return y:nonzero() end, { x })
    end
    device.parity("nonzero of dims", function(y) return y:nonzero() end,
                  { randn(7, 5, 33):gt(0) })
    device.parity("nonzero of nothing", function(y) return y:nonzero() end,
                  { fnn.zeros { 4, 5 }:gt(1) })
    device.parity("nonzero of none", function(y) return y:nonzero() end,
                  { fnn.zeros({ 0, 5 }):gt(1) })
    device.all("masked_select", function(x, m) return x[m] end,
               { randn(9, 33), randn(9, 33):gt(0) })
    device.all("rows by ids", function(x, i) return x[i] end,
               { randn(9, 33), ids(9, 5) })
  end)

  it("become one_hot", function()
    device.parity("one_hot", function(i) return i:one_hot(7) end,
                  { ids(7, 5, 3) })
    device.parity("one_hot counted", function(i) return i:one_hot() end,
                  { ids(7, 40) })
  end)
end)

describe_there("an embedding on cuda", function()
  it("has the cpu's gradients, few ids and many", function()
    for _, c in ipairs { { 4, 7, 10 }, { 130, 50, 33 }, { 257, 5, 33 },
                         { 3, 300, 1025 } } do
      local width, rows, count = table.unpack(c)
      local table_, i = randn(rows, width), ids(rows, count)
      device.all("embedding", function(x, y) return x:index_select(1, y) end,
                 { table_, i }, { f16 = 2e-2, bf16 = 1e-1 })
    end
  end)

  it("is a module's", function()
    local e = nn.Embedding(11, 5)
    local i = ids(11, 3, 4)
    local want = e(i)
    e:to(device.name)
    assert.is_true(e(i:to(device.name)):to("cpu"):eq(want):all():item())
  end)
end)

describe_there("an id out of range on cuda", function()
  it("is told at the next synchronization, with op, id and line", function()
    local x = randn(10, 4):to(device.name)
    local i = fnn.tensor({ 3, 10, 4, -1 }, { dtype = "i64" }):to(device.name)
    local y, at
    y, at = x:index_select(1, i), line()
    local message = failure(function() return y:to "cpu" end)
    assert.matches("index_select: id 10 at position 2 is out of range for " ..
                   "10 rows %(ids count from 0; called at " ..
                   "[^ ]*index_spec%.lua:" .. at .. "%)", message)
    assert.is_true(y:to("cpu")[1]:eq(x:to("cpu")[4]):all():item())
  end)

  it("is told once, the first of several", function()
    local x = randn(10, 4):to(device.name)
    local far = ids(10, 5000)
    far[4001] = 77
    far[4900] = 78
    x:index_select(1, far:to(device.name))
    local i = fnn.tensor({ { -5 } }, { dtype = "i64" }):to(device.name)
    local y = x:gather(1, i)
    assert.matches("index_select: id 77 at position 4001 ",
                   failure(function() return y:to "cpu" end))
    assert.equal(0, y:to("cpu"):item())
    y = x:scatter_add(1, i, fnn.ones({ 1, 1 }):to(device.name))
    assert.matches("scatter_add: id %-5 at position 1 is out of range for " ..
                   "10 places", failure(function() return y:to "cpu" end))
    assert.is_true(y:to("cpu"):eq(x:to "cpu"):all():item())
  end)

  it("is told of embeddings and losses", function()
    local e = nn.Embedding(11, 5):to(device.name)
    local y = e(fnn.tensor({ 50257 }, { dtype = "i64" }):to(device.name))
    assert.matches("id 50257 at position 1 is out of range for 11 ",
                   failure(function() return y:to "cpu" end))
    y = fnn.tensor({ 5 }, { dtype = "i64" }):to(device.name):one_hot(4)
    assert.matches("one_hot: id 5 at position 1 is out of range for 4 classes",
                   failure(function() return y:to "cpu" end))
    assert.equal(0, y:to("cpu"):sum():item())
  end)

  it("is not written by its gradient", function()
    for _, count in ipairs { 3, 1100 } do
      local x = fnn.Param(randn(10, 4):to(device.name))
      local i = ids(10, count)
      i[2] = 10
      local y = x:index_select(1, i:to(device.name))
      y:sum():backward()
      assert.matches("id 10 at position 2",
                     failure(function() return y:to "cpu" end))
      local sum = x:grad():to("cpu"):sum():item()
      assert.near(4 * (count - 1), sum, 1e-3)
    end
  end)

  it("is forgotten by name where too many calls came after it", function()
    local x = randn(10, 4):to(device.name)
    local bad = fnn.tensor({ 10 }, { dtype = "i64" }):to(device.name)
    local good = ids(10, 2):to(device.name)
    x:index_select(1, bad)
    for _ = 1, 260 do x:index_select(1, good) end
    assert.matches("ids: id 10 at position 1 is out of range for 10 places",
                   failure(function() return x:to "cpu" end))
  end)
end)
