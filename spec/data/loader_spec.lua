-- Loaders: of datasets of the library, and of tables and userdata in Lua.
local fnn = require "fnn"
local data = fnn.data

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

-- Item i, from 0, is x = (i, i / 2) and y = i * i.
local function in_memory (n)
  local ids = fnn.arange(n, { dtype = "f64" })
  local x = fnn.stack({ ids, ids / 2 }, 2):to "f32"
  return data.TensorDataset(x, (ids * ids):to "i64")
end

-- The same in Lua.
local Squares = {}
Squares.__index = Squares
function Squares:__len () return self.n end
Squares.fields = { { shape = { 2 } }, { shape = {}, dtype = "i64" } }
function Squares:get (i, x, y)
  self.calls = (self.calls or 0) + 1
  x[1], x[2] = i - 1, (i - 1) / 2
  y:fill_((i - 1) * (i - 1))
end

local function in_lua (n) return setmetatable({ n = n }, Squares) end

-- The batches that an iterator gives, as lists of ids; each item is checked.
local function batches (iterator)
  local list = {}
  for x, y in iterator do
    local ids = {}
    x, y = x:totable(), y:totable()
    for k, row in ipairs(x) do
      ids[k] = row[1] // 1 | 0
      assert.equal(row[1] / 2, row[2])
      assert.equal(ids[k] * ids[k], y[k])
    end
    list[#list + 1] = ids
  end
  return list
end

local function flat (list)
  local all = {}
  for _, ids in ipairs(list) do table.move(ids, 1, #ids, #all + 1, all) end
  return all
end

local function upto (n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = i end
  return list
end

local kinds = { memory = in_memory, Lua = in_lua }

for kind, make in pairs(kinds) do
  describe("DataLoader of a dataset in " .. kind, function ()
    it("keeps the order, and a short last batch", function ()
      local loader = data.DataLoader(make(7), { batch = 3 })
      assert.equal(3, #loader)
      assert.same({ { 0, 1, 2 }, { 3, 4, 5 }, { 6 } },
                  batches(loader:epoch()))
      assert.equal("DataLoader of 3 batches", tostring(loader))
    end)

    it("drops the short one when asked", function ()
      local loader = data.DataLoader(make(7), { batch = 3, drop_last = true })
      assert.equal(2, #loader)
      assert.same({ { 0, 1, 2 }, { 3, 4, 5 } }, batches(loader:epoch()))
    end)

    it("gives each item once in each shuffled epoch", function ()
      local loader = data.DataLoader(make(100), { batch = 8, shuffle = true,
                                                  seed = 3 })
      local seen = {}
      for e = 1, 3 do
        local ids = flat(batches(loader))
        seen[e] = table.concat(ids, " ")
        assert.equal(100, #ids)
        table.sort(ids)
        assert.same(upto(100), ids)
      end
      assert.not_equal(seen[1], seen[2])
      assert.not_equal(seen[2], seen[3])
      assert.not_equal(seen[1], table.concat(upto(100), " "))
    end)

    it("has an order of seed and epoch alone", function ()
      local o = { batch = 4, shuffle = true, seed = 11 }
      local a, b = data.DataLoader(make(30), o), data.DataLoader(make(30), o)
      for _ = 0, 4 do batches(a) end  -- epochs 0 to 4
      local fifth = batches(a)
      assert.same(fifth, batches(b:epoch(5)))
      assert.same(data.order(30, 11, 5):totable(), flat(fifth))
      o.seed = 12
      assert.not_same(fifth,
                      batches(data.DataLoader(make(30), o):epoch(5)))
    end)

    it("goes on from a cursor in the midst of an epoch", function ()
      local o = { batch = 4, shuffle = true, seed = 1 }
      local loader = data.DataLoader(make(30), o)
      local whole = batches(loader:epoch(2))
      loader:start(2)
      for _ = 1, 3 do loader:next() end
      local epoch, done = loader:cursor()
      assert.same({ 2, 3 }, { epoch, done })
      local again = data.DataLoader(make(30), o):start(epoch, done)
      assert.same(table.move(whole, 4, #whole, 1, {}), batches(again))
      assert.same({ 3, 0 }, { again:cursor() })
      loader:start(2, #loader)
      assert.is_nil((loader:next()))
      assert.same({ 2, #loader }, { loader:cursor() })
    end)

    it("keeps the next batch that was not given, whatever is read ahead",
       function ()
      for _, prefetch in ipairs { 0, 1, 4 } do
        local o = { batch = 4, shuffle = true, seed = 9, prefetch = prefetch }
        local loader = data.DataLoader(make(30), o)
        loader:start(1)
        for _ = 1, 3 do loader:next() end
        local state = loader:state_dict()
        assert.same({ epoch = 1, batch = 3, items = 30, batch_size = 4,
                      seed = 9, shuffle = true, drop_last = false }, state)
        local rest = batches(function () return loader:next() end)
        local again = data.DataLoader(make(30), o)
        again:next()
        assert.equal(again, again:load_state_dict(state))
        assert.same(rest, batches(function () return again:next() end))
        state.batch = 8  -- the epoch's end: the next is the next epoch's
        again:load_state_dict(state)
        assert.same({}, batches(again))
        assert.same({ 2, 0 }, { again:cursor() })
      end
    end)

    it("refuses the state of another", function ()
      local o = { batch = 4, shuffle = true, seed = 9 }
      local loader = data.DataLoader(make(30), o)
      loader:start(2, 3)
      local function refused(text, key, v)
        local state = data.DataLoader(make(30), o):state_dict()
        state[key] = v
        fails(text, loader.check_state_dict, loader, state)
        fails(text, loader.load_state_dict, loader, state)
        assert.same({ 2, 3 }, { loader:cursor() })
      end
      refused("items was 31, and is 30", "items", 31)
      refused("batch_size was 5, and is 4", "batch_size", 5)
      refused("shuffle was false, and is true", "shuffle", false)
      refused("seed was 8, and is 9: a batch has other items", "seed", 8)
      refused("drop_last was true", "drop_last", true)
      refused("no batch 9 in epoch 0 (an epoch has 8)", "batch", 9)
      refused("no batch 0 in epoch -1", "epoch", -1)
      refused("expected what state_dict returns", "epoch", "1")
      fails("expected what state_dict returns", loader.load_state_dict, loader)
      -- The seed of what is not shuffled decides nothing.
      local plain = data.DataLoader(make(30), { batch = 4, seed = 1 })
      local state = plain:state_dict()
      state.seed = 2
      plain:load_state_dict(state)
    end)

    it("runs an epoch in a for loop, and the next in the next", function ()
      local loader = data.DataLoader(make(6), { batch = 4, shuffle = true,
                                                seed = 2 })
      assert.same(data.order(6, 2, 0):totable(), flat(batches(loader)))
      assert.same(data.order(6, 2, 1):totable(), flat(batches(loader)))
      loader()
      assert.same({ 2, 1 }, { loader:cursor() })
      assert.equal(1, #batches(loader))  -- what was left of it
    end)

    it("has batches of one dataset of none", function ()
      local loader = data.DataLoader(make(0), { batch = 4 })
      assert.equal(0, #loader)
      assert.same({}, batches(loader:epoch()))
    end)

    it("refuses options and places that are not there", function ()
      local message = fails("did you mean 'shuffle'?", data.DataLoader,
                            make(3), { shufle = true })
      assert.truthy(message:find("loader_spec.lua:", 1, true), message)
      fails("at least one item (got 0)", data.DataLoader, make(3),
            { batch = 0 })
      fails("expected a boolean", data.DataLoader, make(3), { shuffle = 1 })
      fails("give one", data.DataLoader, make(3),
            { batch = 2, batch_size = 2 })
      fails("cuda", function ()
        data.DataLoader(make(3), { device = "cuda" }):next()
      end)
      local loader = data.DataLoader(make(3), { batch_size = 2 })
      fails("no batch 3 in epoch 0 (an epoch has 2)", loader.start, loader,
            0, 3)
      fails("epoch -1", loader.start, loader, -1)
      local none, why = loader:try_start(0, 3)
      assert.is_nil(none)
      assert.truthy(why:find("no batch 3", 1, true), why)
    end)

    it("moves batches to its device", function ()
      local x = data.DataLoader(make(2), { device = "cpu" }):next()
      assert.equal("cpu", x:device())
    end)
  end)
end

describe("order", function ()
  it("is a permutation, and even in the mean", function ()
    -- Each id should come to each of 5 places in 1/5 of 5000 epochs: the
    -- deviation of a count is sqrt(5000 * 0.2 * 0.8) = 28.3; 5 of them.
    local counts = {}
    for e = 0, 4999 do
      for place, id in ipairs(data.order(5, 1, e):totable()) do
        local k = place * 5 + id
        counts[k] = (counts[k] or 0) + 1
      end
    end
    for place = 1, 5 do
      for id = 0, 4 do assert.near(1000, counts[place * 5 + id], 142) end
    end
    assert.same({}, data.order(0, 1, 0):totable())
    assert.same({ 0 }, data.order(1, 1, 0):totable())
  end)
end)

describe("reading ahead", function ()
  local function bits (prefetch)
    local ds = in_memory(103)
    local loader = data.DataLoader(ds, { batch = 8, shuffle = true, seed = 9,
                                         prefetch = prefetch })
    local list = {}
    for _ = 1, 2 do
      for x, y in loader do
        list[#list + 1] = x:totable()
        list[#list + 1] = y:totable()
      end
    end
    return list
  end

  it("changes no bit, however far", function ()
    local plain = bits(0)
    assert.equal(2 * 2 * 13, #plain)
    assert.same(plain, bits(1))
    assert.same(plain, bits(4))
    assert.same(plain, bits(100))
  end)

  it("can be left at any place", function ()
    local ds = in_memory(64)
    for taken = 0, 8 do
      local loader = data.DataLoader(ds, { batch = 8, prefetch = 3 })
      for _ = 1, taken do loader:next() end
      if taken % 2 == 0 then loader:release() end
    end
    collectgarbage()
    local loader = data.DataLoader(ds, { batch = 8, prefetch = 3 })
    loader:next()
    loader:start(0, 7)
    assert.same({ upto(64)[57] }, { (loader:next())[1][1] // 1 | 0 })
    fails("prefetch must be 0 to 1024", data.DataLoader, ds,
          { prefetch = -1 })
  end)
end)

describe("a dataset in Lua", function ()
  it("may be a table with methods and fields of any shape", function ()
    local ds = setmetatable({
      fields = function () return { { shape = { 2, 2 }, dtype = "u8" } } end,
      get = function (_, i, x) x:fill_(i) end,
    }, { __len = function () return 3 end })
    local x = data.DataLoader(ds, { batch = 2 }):next()
    assert.equal("u8", x:dtype())
    assert.same({ { { 1, 1 }, { 1, 1 } }, { { 2, 2 }, { 2, 2 } } },
                x:totable())
  end)

  it("may be a userdata", function ()
    -- A file handle is a userdata of Lua's own; here it gets other clothes.
    local u = io.tmpfile()
    local meta = { __index = { fields = { {} }, get = function (_, i, x)
      x:fill_(2 * i)
    end }, __len = function () return 4 end }
    local real = debug.getmetatable(u)
    debug.setmetatable(u, meta)
    local x = data.DataLoader(u, { batch = 4 }):next()
    debug.setmetatable(u, real)
    u:close()
    assert.same({ 2, 4, 6, 8 }, x:totable())
  end)

  it("starts each batch as zeros", function ()
    local ds = setmetatable({ fields = { { shape = { 2 } } },
                              get = function (_, i, x)
      if i == 2 then x[1] = 5 end
    end }, { __len = function () return 3 end })
    assert.same({ { 0, 0 }, { 5, 0 }, { 0, 0 } },
                (data.DataLoader(ds, { batch = 3 }):next()):totable())
  end)

  it("passes on what get raises, and stays where it was", function ()
    local ds = in_lua(6)
    local loader = data.DataLoader(ds, { batch = 2 })
    loader:next()
    local get = Squares.get
    ds.get = function (self, i, x, y)
      if i == 4 then error { code = 7 } end
      get(self, i, x, y)
    end
    local ok, e = pcall(loader.next, loader)
    assert.is_false(ok)
    assert.equal(7, e.code)
    assert.same({ 0, 1 }, { loader:cursor() })
    ds.get = nil
    assert.equal(2, (loader:next())[1][1])
  end)

  it("says what it lacks", function ()
    local function with (t, meta)
      return setmetatable(t, meta or { __len = function () return 1 end })
    end
    local get = function () end
    fails("expected a dataset, got number", data.DataLoader, 3)
    fails("__len", data.DataLoader, { get = get, fields = { {} } })
    fails("a method get", data.DataLoader, with { fields = { {} } })
    fails("needs fields", data.DataLoader, with { get = get })
    fails("field 2", data.DataLoader, with { get = get, fields = { {}, 3 } })
    fails("__len gave -1", data.DataLoader,
          with({ get = get, fields = { {} } },
               { __len = function () return -1 end }))
  end)

  it("makes no garbage an item", function ()
    local ds = in_lua(20000)
    local function bytes (batch)
      local loader = data.DataLoader(ds, { batch = batch })
      collectgarbage()
      collectgarbage "stop"
      local before = collectgarbage "count"
      for _ in loader do end
      local made = collectgarbage "count" - before
      collectgarbage "restart"
      return made * 1024
    end
    -- Twenty batches of 1000 make hardly more than two of 10000.
    assert.is_true(bytes(1000) < 20 * 1500, bytes(1000))
    assert.is_true(bytes(10000) < 2 * 1500, bytes(10000))
  end)
end)

describe("batching 60,000 images", function ()
  it("makes boxes by the batch", function ()
    local images = fnn.zeros({ 60000, 28, 28 }, { dtype = "u8" })
    local ds = data.TensorDataset({ images, dtype = "f32", scale = 1 / 255 },
                                  fnn.zeros({ 60000 }, { dtype = "i64" }))
    local loader = data.DataLoader(ds, { batch = 1000, shuffle = true })
    collectgarbage()
    collectgarbage "stop"
    local before, n = collectgarbage "count", 0
    for x in loader do n = n + #x; x:release() end
    local made = (collectgarbage "count" - before) * 1024
    collectgarbage "restart"
    assert.equal(60000, n)
    assert.is_true(made < 60 * 500, made)
  end)
end)
