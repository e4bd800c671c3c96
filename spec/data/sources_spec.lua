-- Sources of batches: any of a script's own, and files of JSON lines.
local fnn = require "fnn"
local shell = require "spec.support.shell"
local data = fnn.data

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, text)
  assert.truthy(message:find(text, 1, true), message)
  return message
end

after_each(shell.clean)

-- Batch b, from 1, of epoch e is (100 e + b).
local function counted (n, more)
  local t = {
    calls = 0,
    start = function (self, epoch) self.epoch, self.at = epoch, 0 end,
    next = function (self)
      self.calls = self.calls + 1
      if self.at == n then return nil end
      self.at = self.at + 1
      return fnn.tensor { 100 * self.epoch + self.at }, "more"
    end,
  }
  for k, v in pairs(more or {}) do t[k] = v end
  return t
end

-- The numbers that an iterator gives, flat.
local function numbers (iterator)
  local list = {}
  for x in iterator do
    for _, v in ipairs(x:reshape(-1):totable()) do
      list[#list + 1] = v // 1 | 0
    end
  end
  return list
end

-- n lines: x is (i, 10 i), y is i % 3, for i = 0 .. n-1.
local function lines (n)
  local list = {}
  for i = 0, n - 1 do
    list[i + 1] = ('{"x": [%d, %d.0], "y": %d, "name": "\\u00e9"}\n'):format(
      i, 10 * i, i % 3)
  end
  return table.concat(list)
end

local function jsonl (text, options)
  local o = { input = "x" }
  for k, v in pairs(options or {}) do o[k] = v end
  return data.JsonlStream(shell.write(text), o)
end

-- The first column, of the lines that were given.
local function ids (iterator)
  local list = {}
  for x in iterator do
    for _, row in ipairs(x:totable()) do list[#list + 1] = row[1] // 1 | 0 end
  end
  return list
end

local function upto (n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = i end
  return list
end

-- What every source promises, for three kinds that have 5 batches of 2.
local kinds = {
  DataLoader = function ()
    return data.TensorDataset(fnn.arange(9):reshape(9, 1))
           :stream { batch = 2, shuffle = true, seed = 5 }
  end,
  JsonlStream = function ()
    return jsonl(lines(9), { batch = 2, shuffle = 4, seed = 5 })
  end,
  source = function ()
    local x
    return data.source {
      start = function (_, epoch)
        x = data.order(9, 5, epoch):reshape(9, 1):to "f32"
      end,
      next = function ()
        if #x == 0 then return nil end
        local n = math.min(2, #x)
        local batch = x:narrow(1, 1, n)
        x = n < #x and x:narrow(1, n + 1, #x - n) or fnn.zeros(0, 1)
        return batch
      end,
    }
  end,
}

for kind, make in pairs(kinds) do
  describe("a source: " .. kind, function ()
    it("has an order of the epoch's number alone", function ()
      local a, b = make(), make()
      local seen = {}
      for e = 0, 4 do seen[e] = ids(a) end
      local fifth = ids(a)
      assert.same({ 6, 0 }, { a:cursor() })
      assert.same(fifth, ids(b:epoch(5)))
      assert.same(seen[2], ids(b:epoch(2)))
      assert.not_same(seen[0], seen[1])
      table.sort(fifth)
      assert.same(upto(9), fifth)
    end)

    it("goes on from each cursor", function ()
      local whole = ids(make():epoch(3))
      for done = 0, 5 do
        local a = make():start(3)
        for _ = 1, done do a:next() end
        local epoch, batch = a:cursor()
        assert.same({ 3, done }, { epoch, batch })
        local b = make():start(epoch, batch)
        assert.same(table.move(whole, 2 * done + 1, 9, 1, {}), ids(b))
        assert.same({ 4, 0 }, { b:cursor() })
      end
    end)

    it("leaves out batches, and says how many there were", function ()
      local whole = ids(make():epoch(1))
      local a = make():start(1)
      assert.equal(2, a:skip(2))
      assert.equal(0, a:skip(0))
      assert.same({ 1, 2 }, { a:cursor() })
      assert.same({ whole[5], whole[6] }, ids(function ()
        local _, batch = a:cursor()
        if batch < 3 then return a:next() end
      end))
      assert.equal(2, a:skip(10))
      assert.is_nil((a:next()))
      fails("skip", a.skip, a, -1)
      fails("no batch 6 in epoch 0", a.start, a, 0, 6)
      fails("no batch", a.start, a, -1)
    end)

    it("goes through what is left, then through the next", function ()
      local a = make():start(2, 3)
      assert.equal(3, #ids(a:epoch()))
      assert.equal(9, #ids(a:epoch()))
      assert.equal(3, (a:cursor()))
    end)

    it("gives tensors that stay what they were", function ()
      local a = make()
      local x = a:next()
      local before = x:totable()
      a:next()
      assert.same(before, x:totable())
    end)
  end)
end

describe("source", function ()
  it("makes a source of two functions", function ()
    local t = counted(3)
    local s = data.source(t)
    local x, more = s:next()
    assert.equal(1, x[1])
    assert.equal("more", more)
    assert.same({ 2, 3 }, numbers(s))
    assert.same({ 101, 102, 103 }, numbers(s))
    assert.same({ 701, 702, 703 }, numbers(s:epoch(7)))
    local calls = t.calls
    assert.is_nil((s:next()))
    assert.equal(calls, t.calls)  -- it is not asked behind its end
  end)

  it("knows how many batches there are when told, or once through", function ()
    local s = data.source(counted(3))
    assert.is_nil(#s)
    assert.equal("source of some batches", tostring(s))
    numbers(s)
    assert.equal(3, #s)
    assert.equal(8, #data.source(counted(8, { count = 8 })))
  end)

  it("reads and discards to skip, or asks skip", function ()
    local t = counted(10)
    data.source(t):start(0, 4)
    assert.equal(4, t.calls)
    t = counted(10, { skip = function (self, n)
      n = math.min(n, 10 - self.at)
      self.at = self.at + n
      return n
    end })
    local s = data.source(t):start(2, 4)
    assert.equal(0, t.calls)
    assert.equal(205, s:next()[1])
    fails("no batch 11 in epoch 0 (it has 10)", s.start, s, 0, 11)
  end)

  it("stays where it was when next raises", function ()
    local bad = true
    local s = data.source(counted(4, { next = function (self)
      self.at = self.at + 1
      if self.at == 2 and bad then error { code = 3 } end
      if self.at <= 4 then return fnn.tensor { self.at } end
    end }))
    s:next()
    local ok, e = pcall(s.next, s)
    assert.same({ false, 3 }, { ok, e.code })
    assert.same({ 0, 1 }, { s:cursor() })
    bad = false
    assert.same({ 2, 3, 4 }, numbers(s:epoch()))
  end)

  it("keeps its place in a state_dict", function ()
    local s = data.source(counted(3, { match = { seed = 4 } }))
    s:start(5, 2)
    local state = s:state_dict()
    assert.same({ epoch = 5, batch = 2, seed = 4 }, state)
    local other = data.source(counted(3, { match = { seed = 4 } }))
    assert.equal(503, other:load_state_dict(state):next()[1])
    state.seed = 7
    fails("of seed 7, this source has 4", s.load_state_dict, s, state)
    fails("expected { epoch =, batch = }", s.load_state_dict, s, {})
    -- At the end of an epoch, whose length is known then.
    numbers(s:epoch(1))
    other:load_state_dict(s:state_dict())
    assert.equal(3, #other)
    assert.same({ 201, 202, 203 }, numbers(other:epoch()))
  end)

  it("is an entry of save_training", function ()
    local path = shell.write ""
    local s = data.source(counted(3)):start(4, 1)
    fnn.save_training(path, { data = s })
    local again = data.source(counted(3))
    fnn.load_training(path, { data = again })
    assert.equal(402, again:next()[1])
  end)

  it("trains in a loop and in fit", function ()
    local x = fnn.arange(8):reshape(8, 1):to "f32" / 8
    local given = {
      count = 4,
      start = function (self) self.at = 0 end,
      next = function (self)
        if self.at == 4 then return nil end
        self.at = self.at + 1
        local part = x:narrow(1, 2 * self.at - 1, 2)
        return part, part * 3
      end,
    }
    local model = fnn.nn.Linear(1, 1)
    local history = fnn.fit(model, data.source(given), {
      epochs = 30, lr = 0.1, loss = fnn.nn.mse, progress = false })
    assert.is_true(history[30].loss < 0.1 * history[1].loss)
  end)

  it("is the same path for a dataset: fit gives the same bits", function ()
    local x = fnn.rand({ 20, 3 }, { generator = fnn.Generator(1) })
    local ds = data.TensorDataset(x, x:sum(2):unsqueeze(2))
    local function fitted (set, o)
      fnn.manual_seed(3)
      local model = fnn.nn.Linear(3, 1)
      o.epochs, o.loss, o.progress = 3, fnn.nn.mse, false
      fnn.fit(model, set, o)
      return model.weight:totable()
    end
    assert.same(fitted(ds, { batch_size = 6, seed = 4 }),
                fitted(ds:stream { batch = 6, shuffle = true, seed = 4 }, {}))
  end)

  it("says what is missing", function ()
    fails("expected a table", data.source, 3)
    fails("'start': expected a function, got nil", data.source,
          { next = function () end })
    fails("'count'", data.source, counted(3, { count = -1 }))
  end)
end)

describe("JsonlStream", function ()
  it("gives arrays and numbers, a batch at a time", function ()
    local s = jsonl(lines(5), { target = { "y", dtype = "i64" }, batch = 2 })
    local x, y = s:next()
    assert.same({ { 0, 0 }, { 1, 10 } }, x:totable())
    assert.same({ "f32", "i64" }, { x:dtype(), y:dtype() })
    assert.same({ 0, 1 }, y:totable())
    s:next()
    x, y = s:next()
    assert.same({ { { 4, 40 } }, { 1 } }, { x:totable(), y:totable() })
    assert.is_nil((s:next()))
    assert.equal(3, #s)
    assert.equal(2, select("#", jsonl(lines(5), { target = "y" }):next()))
    assert.equal(1, select("#", jsonl(lines(5)):next()))
  end)

  it("drops a batch that is not full when asked", function ()
    local s = jsonl(lines(5), { batch_size = 2, drop_last = true })
    assert.same({ 0, 1, 2, 3 }, ids(s))
    assert.equal(2, #s)
    assert.equal(2, s:start(0):skip(9))
  end)

  it("takes blank lines, other newlines, gzip, no last newline", function ()
    local text = '\xef\xbb\xbf{"x":1}\r\n\n  \t\r\n{"x":-2.5e1}'
    assert.same({ 1, -25 }, jsonl(text, { batch = 2 }):next():totable())
    local path = shell.write(lines(700))
    assert.truthy(os.execute("gzip -f " .. path))
    local s = data.JsonlStream(path .. ".gz", { input = "x", batch = 64 })
    assert.same(upto(700), ids(s))
    os.remove(path .. ".gz")
    assert.same({}, ids(jsonl("\n\n")))
    assert.same({}, ids(jsonl("")))
  end)

  it("takes shapes: nested, or flat ones that are told", function ()
    local text = '{"x": [[1,2,3],[4,5,6]]}\n{"x": [[0,0,0],[0,0,7]]}\n'
    assert.same({ 2, 2, 3 }, jsonl(text, { batch = 2 }):next():shape())
    text = '{"x": [1,2,3,4]}\n'
    local x = jsonl(text, { input = { "x", shape = { 1, 2, 2 },
                                      dtype = "u8" } }):next()
    assert.equal("u8", x:dtype())
    assert.same({ { { { 1, 2 }, { 3, 4 } } } }, x:totable())
  end)

  it("reads lines that need more the same way", function ()
    -- An escape makes a line one for the whole of JSON.
    local random, plain, other = fnn.Generator(2), {}, {}
    local texts = { "0", "-0", "-0.0", "1e22", "1E-7", "5e-324", "0.1",
                    "123456789012345678", "9007199254740993", "1.0e+0" }
    local x = fnn.randn({ 200 }, { generator = random, dtype = "f64" })
    for i, v in ipairs(x:totable()) do
      texts[#texts + 1] = ("%.17g"):format(v * 10.0 ^ (i % 40 - 20))
    end
    for i, text in ipairs(texts) do
      plain[i] = ('{"n": ["a", 1, []], "x": [%s ,-1]}'):format(text)
      other[i] = ('{"n": "\\u0041", "x": [%s, -1]}'):format(text)
    end
    local function read(list)
      local all = {}
      local o = { input = { "x", dtype = "f64" } }
      for v in jsonl(table.concat(list, "\n"), o) do
        all[#all + 1] = ("%a"):format(v[1][1])
      end
      return all
    end
    local seen = read(plain)
    assert.same(read(other), seen)
    for i, text in ipairs(texts) do
      -- To Lua "-0" is the integer 0, and JSON's is too.
      assert.equal(("%a"):format(tonumber(text)), seen[i], text)
    end
  end)

  it("reads lines longer than its pieces", function ()
    local list = {}
    for i = 1, 60000 do list[i] = i % 7 end
    local text = '{"x": [' .. table.concat(list, ", ") .. "]}\n"
    local x = jsonl(text .. text, { batch = 2 }):next()
    assert.same(list, x[2]:totable())
  end)

  it("uses its tensors again only when asked", function ()
    local s = jsonl(lines(5), { batch = 2, reuse = true, device = "cpu" })
    local x = s:next()
    s:next()
    assert.same({ { 2, 20 }, { 3, 30 } }, x:totable())
    assert.same({ { 4, 40 } }, s:next():totable())
    assert.same({ { 4, 40 }, { 3, 30 } }, x:totable())
    assert.same({ { 0, 0 }, { 1, 10 } }, s:start(0):next():totable())
  end)

  it("draws from as many lines as shuffle says", function ()
    -- With 3 lines to draw from, line i comes at place i - 2 at the earliest.
    local o = { batch = 7, shuffle = 3, seed = 1 }
    local order = ids(jsonl(lines(50), o))
    for place, id in ipairs(order) do assert.is_true(id <= place + 1) end
    assert.not_same(upto(50), order)
    o.seed = 2
    assert.not_same(order, ids(jsonl(lines(50), o)))
    -- Each of 4 lines is first about as often: 1000 of 4000, sigma 27.4.
    local s = jsonl(lines(4), { batch = 4, shuffle = 100 })
    local first = {}
    for e = 0, 3999 do
      local id = s:start(e):next()[1][1]
      first[id] = (first[id] or 0) + 1
    end
    for id = 0, 3 do assert.near(1000, first[id], 137) end
  end)

  it("names the line, the field and what was expected", function ()
    local good = '{"x": [1, 2], "y": 0}\n\n'
    for text, wanted in pairs {
      ['{"x": [1, 2, 3], "y": 0}'] =
        "field 'x': expected numbers of shape (2), got numbers of shape (3)",
      ['{"x": 1, "y": 0}'] = "numbers of shape (2), got one number",
      ['{"x": [1, 2], "y": [0]}'] = "field 'y': expected one number, got",
      ['{"x": [1, "2"], "y": 0}'] =
        "field 'x': element 2: expected a number, got a string",
      ['{"x": [1, null], "y": 0}'] = "expected a number, got null",
      ['{"x": [1, true], "y": 0}'] = "expected a number, got a boolean",
      ['{"x": [[1], 2], "y": 0}'] = "field 'x': expected numbers of shape (2)",
      ['{"x": [1, [2]], "y": 0}'] = "expected a number, got an array",
      ['{"x": {}, "y": 0}'] = "got one number",
      ['{"x": [], "y": 0}'] = "an empty array",
      ['{"x": [1, 2]}'] = "no field 'y' (it has x)",
      ['[1, 2]'] = "expected an object, got an array",
      ['{"x": [1, NaN], "y": 0}'] = "NaN",
      ['{"x": [1, 1e999], "y": 0}'] = "overflow",
      ['{"x": [1, 2], "y": 0} {}'] = "end of file expected",
      ['{"x": [1, 2'] = "']' expected",
      ['{"x": [1, 2], "y": 0.5}'] = "field 'y': element 1: expected a whole",
      ['{"x": [1, 2], "y": 1e300}'] = "expected a whole number",
      ['{"x": [1, 2], "y": 9007199254740993}'] =
        "expected a whole number below 2^53 (larger ones are rounded)",
      ['{"x": [1, -1e39], "y": 0}'] =
        "field 'x': element 2: expected a number that f32 holds, got -9.99",
      ['{"x": [1, 2], "y": 0, "y": 1}'] = "duplicate",
      ['{"x": ' .. ("["):rep(300)] = "nested deeper than 200",
      ['{"x": ' .. ("["):rep(20) .. "1" .. ("]"):rep(20) .. ', "y": 1}'] =
        "arrays in too many arrays",
      ['\0\1\2'] = "'{' expected",
    } do
      local path = shell.write(good .. text .. "\n" .. good)
      local s = data.JsonlStream(path, { input = "x", target = {
        "y", dtype = "i64" } })
      assert.truthy(s:next())
      local message = fails(wanted, s.next, s)
      assert.truthy(message:find(path .. ":3:", 1, true), message)
      assert.truthy(message:find("sources_spec.lua:", 1, true), message)
      fails(wanted, s.next, s)  -- and again: it stays there
      assert.same({ 0, 1 }, { s:cursor() })
    end
  end)

  it("names itself where an option is no integer", function ()
    local path = shell.write('{"x": 1}\n')
    fails("JsonlStream: option 'shuffle': expected an integer",
          data.JsonlStream, path, { input = "x", shuffle = 1.5 })
    fails("JsonlStream: expected a path, got table", data.JsonlStream, {},
          { input = "x" })
  end)

  it("refuses a line without an end", function ()
    local path = shell.write('{"x": 1}\n')
    local f = assert(io.open(path, "r+b"))
    f:seek("set", 40 << 20)  -- a hole, which reads as zeros
    f:write "\n"
    f:close()
    local s = data.JsonlStream(path, { input = "x" })
    s:next()
    fails(":2: a line of more than", s.next, s)
  end)

  it("holds a batch, however long the file is", function ()
    local path = shell.write ""
    local f = assert(io.open(path, "wb"))
    local text = lines(1000)
    for _ = 1, 60 do f:write(text) end
    f:close()
    local s = data.JsonlStream(path, { input = "x", batch = 100, reuse = true,
                                       shuffle = 50 })
    s:next()
    collectgarbage()
    fnn.reset_peak_memory()
    local before = fnn.memory().peak
    local n = 0
    for x in s:epoch(0) do n = n + #x end
    assert.equal(60000, n)
    -- The file has 2.4 MB; what it takes is a piece, 50 lines and a batch.
    assert.is_true(fnn.memory().peak - before < 2e5)
  end)

  it("goes on in the midst of an epoch with the same bits", function ()
    local text = shell.write(lines(30))
    local path = shell.write ""
    local function run ()
      fnn.manual_seed(1)
      local model = fnn.nn.Sequential(fnn.nn.Linear(2, 4), fnn.nn.Dropout(0.5),
                                      fnn.nn.Linear(4, 1))
      return {
        model = model, opt = fnn.optim.Adam(model:parameters(), { lr = .01 }),
        source = data.JsonlStream(text, { input = "x", target = "y", batch = 4,
                                          shuffle = 8, seed = 2 }),
      }
    end
    local function steps (r, n)
      while n > 0 do
        for x, y in r.source do
          r.opt:zero_grad()
          fnn.nn.mse(r.model(x / 300):squeeze(2), y):backward()
          r.opt:step()
          n = n - 1
          if n == 0 then return end
        end
      end
    end
    local function weights (r)
      local list = {}
      for i, p in ipairs(r.model:parameters()) do list[i] = p:totable() end
      return list
    end
    local whole = run()
    steps(whole, 29)
    for _, at in ipairs { 5, 8, 13 } do  -- 8 are an epoch
      local first = run()
      steps(first, at)
      fnn.save_training(path, first)
      local second = run()
      fnn.rand(7)
      fnn.load_training(path, second)
      steps(second, 29 - at)
      assert.same(weights(whole), weights(second))
    end
  end)

  it("has a state_dict of its options", function ()
    local o = { batch = 2, shuffle = 5, seed = 3 }
    local text = lines(20)
    local a = jsonl(text, o):start(1, 4)
    local rest = ids(jsonl(text, o):load_state_dict(a:state_dict()))
    assert.same(ids(a), rest)
    o.seed = 4
    fails("of seed 3, this source has 4", function ()
      jsonl(text, o):load_state_dict(a:state_dict())
    end)
  end)

  it("refuses what are no options of it", function ()
    local path = shell.write(lines(2))
    local function refuse (text, o) fails(text, data.JsonlStream, path, o) end
    refuse("expected an option 'input'", {})
    refuse("did you mean 'target'?", { input = "x", targets = "y" })
    refuse("got 'dtyp'", { input = { "x", dtyp = "f64" } })
    refuse("the name of a field", { input = 3 })
    refuse("no field 'z' (it has x, y, name)", { input = "z" })
    refuse("expected a number, got a string", { input = "name" })
    refuse("at least one item", { input = "x", batch = 0 })
    refuse("give one", { input = "x", batch = 1, batch_size = 2 })
    refuse("a number of lines from 0", { input = "x", shuffle = -1 })
    refuse("expected f32, f64, i64, i32 or u8, got bool",
           { input = { "x", dtype = "bool" } })
    refuse("cuda", { input = "x", device = "cuda" })
    fails("no_such_file", data.JsonlStream, "no_such_file", { input = "x" })
  end)
end)
