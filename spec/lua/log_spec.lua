-- log_spec.lua - logs: lines of JSON, and event files held against what
-- TensorBoard read of the same (fixtures/log, written by scripts/fixtures/
-- log.py), through a reader of its own.

local fnn = require "fnn"
local json = dofile "lua/fnn/json.lua"
local logged = require "spec.support.logged"
local shell = require "spec.support.shell"
local want = dofile "spec/fixtures/log/tensorboard.lua"

local function lines(path)
  local list = {}
  for line in io.lines(path) do list[#list + 1] = line end
  return list
end

-- Each line without its time, which is checked.
local function untimed(path)
  local list = lines(path)
  for i, line in ipairs(list) do
    local time = tonumber(line:match ',"time":(%d+%.%d%d%d)')
    assert(math.abs(time - os.time()) < 100)
    list[i] = line:gsub(',"time":[%d.]+', "")
  end
  return list
end

local function fails(message, f, ...)
  local ok, got = pcall(f, ...)
  assert.is_false(ok)
  assert.equal(message, (got:gsub("^[^:]*:%d+: ", "")))
end

describe("fnn.log", function()
  it("is the logarithm as well", function()
    assert.equal(0, fnn.log(fnn.ones(1)):item())
    assert.equal(0, fnn.log(fnn.Param(fnn.ones(1))):item())
    assert.equal(0, fnn.try_log(fnn.ones(1)):item())
    fails("log: expected a tensor, got number", fnn.log, 3)
  end)
end)

-- {======================================================
-- Lines of JSON
-- =======================================================

describe("fnn.log.jsonl", function()
  teardown(shell.clean)
  local path
  before_each(function() path = shell.folder() .. "/new/run.jsonl" end)

  it("writes a line for each call", function()
    local log = fnn.log.jsonl(path)
    log:scalar("loss", 0.5, 1)
    log:scalar("loss", 3, 2.0)
    log:scalars({ b = fnn.tensor(0.25), ["a/b\n"] = -1 }, -3)
    log:scalars({}, math.maxinteger)
    log:scalar("x", 0.1, 0)
    log:scalar("x", 1e300, 0)
    log:text("note", 'say "hé"\n', 7)
    log:text("note", "no step")
    assert.same({
      '{"step":1,"loss":0.5}', '{"step":2,"loss":3}',
      '{"step":-3,"a/b\\n":-1,"b":0.25}', '{"step":9223372036854775807}',
      '{"step":0,"x":0.1}', '{"step":0,"x":1e+300}',
      '{"step":7,"note":"say \\"hé\\"\\n"}', '{"step":0,"note":"no step"}',
    }, untimed(path))  -- before it is closed
    log:close()
  end)

  it("says in strings what is no number of JSON", function()
    local log = fnn.log.jsonl(path)
    log:scalars({ a = 0 / 0, b = 1 / 0, c = -1 / 0 }, 1)
    assert.same({ '{"step":1,"a":"NaN","b":"Infinity","c":"-Infinity"}' },
                untimed(path))
  end)

  it("appends, and takes a torn last line away", function()
    local function open() return fnn.log.jsonl(path) end
    local log = open()
    log:scalar("a", 1, 1)
    log:close()
    for cut, left in pairs { ['{"step":2,"ti'] = 0, ['{"step":2}'] = 1,
                             ["{"] = 0 } do
      shell.write('{"step":1}\n' .. cut, path)
      log = open()
      log:scalar("b", 1, 3)
      log:close()
      local all = lines(path)
      assert.equal(2 + left, #all, cut)
      assert.matches('^{"step":3,"time":[%d.]+,"b":1}$', all[#all])
    end
    shell.write("", path)
    open():scalar("b", 1, 3)
    assert.equal(1, #lines(path))
    shell.write(("x"):rep(2000000), path)
    fails(path .. ": is no file of lines", open)
    for _, other in ipairs { "my thesis", "a\nb", "{ 1 }", "a\n{\"steps" } do
      shell.write(other, path)
      fails("jsonl: " .. path .. ": is no log: its last line is of another " ..
            "kind", open)
      assert.equal(other, shell.read(path))
    end
  end)

  it("drops the lines of steps that come again", function()
    local log = fnn.log.jsonl(path)
    for step = 1, 9 do log:scalar("a", step, step) end
    log:close()
    log = fnn.log.jsonl(path, { resume = 5 })
    log:scalar("a", 50, 5)
    local last = lines(path)
    assert.equal(5, #last)
    assert.matches('^{"step":4,', last[4])
    assert.matches('"a":50}', last[5])
  end)

  it("describes histograms", function()
    local log = fnn.log.jsonl(path)
    log:histogram("h", fnn.tensor { 1, 2, 2, 4, 0 / 0 }, 1)
    log:histogram("h", fnn.tensor { 1 / 0 }, 2)
    local first, second = table.unpack(untimed(path))
    local h = json.decode(first).h
    assert.same({ 4, 1, 1.0, 4.0, 9.0, 25.0, 64 },
                { h.count, h.nonfinite, h.min, h.max, h.sum, h.squares,
                  #h.counts })
    for i, n in ipairs(h.counts) do  -- (2 - 1) / 3 of 64 bins is in the 22nd
      assert.equal(({ [1] = 1, [22] = 2, [64] = 1 })[i] or 0, n)
    end
    assert.equal('{"step":2,"h":{"count":0,"nonfinite":1}}', second)
  end)

  it("puts images beside", function()
    local log = fnn.log.jsonl(path)
    log:image("../a b", fnn.tensor { { 0, 1 } }, 3)
    log:image("two", fnn.zeros(2, 3, 4, 4), 3)
    assert.same({
      '{"step":3,"../a b":{"images":["run-images/..%2Fa%20b-3.png"]}}',
      '{"step":3,"two":{"images":["run-images/two-3-1.png",' ..
      '"run-images/two-3-2.png"]}}',
    }, untimed(path))
    local folder = path:gsub("run.jsonl$", "run-images/")
    local image = fnn.io.read_png(folder .. "..%2Fa%20b-3.png")
    assert.same({ { { 0 }, { 255 } } }, image:totable())
  end)

  it("loses at most a line when the run is killed", function()
    local script = shell.write(([[
      local log = require "fnn".log.jsonl %q
      for i = 1, 1000 do log:scalar("x", i, i) end
      os.execute("kill -9 $PPID")]]):format(path))
    shell.run(shell.FNN .. " " .. script)
    assert.equal(1000, #lines(path))
  end)
end)

-- }======================================================

-- {======================================================
-- Event files
-- =======================================================

-- A bit at a time, as the definition has it.
local function crc32c(s)
  local c = 0xffffffff
  for i = 1, #s do
    c = c ~ s:byte(i)
    for _ = 1, 8 do c = (c >> 1) ~ (c & 1 == 1 and 0x82f63b78 or 0) end
  end
  return c ~ 0xffffffff
end

local function check_crc(s, masked)
  local turned = masked - 0xa282ead8 & 0xffffffff
  assert.equal(crc32c(s), (turned << 15 | turned >> 17) & 0xffffffff)
end

local function records(s)
  local list, at = {}, 1
  while at <= #s do
    local length, first, after = ("<I8I4"):unpack(s, at)
    check_crc(s:sub(at, at + 7), first)
    local data = s:sub(after, after + length - 1)
    check_crc(data, (("<I4"):unpack(s, after + length)))
    list[#list + 1], at = data, after + length + 4
  end
  return list
end

local function varint(s, at)
  local n, shift = 0, 0
  while true do
    local byte = s:byte(at)
    n, shift, at = n | (byte & 127) << shift, shift + 7, at + 1
    if byte < 128 then return n, at end
  end
end

-- A message: for each field the list of its values.
local function message(s)
  local fields, at = {}, 1
  while at <= #s do
    local key, v
    key, at = varint(s, at)
    local wire, field = key & 7, key >> 3
    if wire == 0 then v, at = varint(s, at)
    elseif wire == 1 then v, at = ("<d"):unpack(s, at)
    elseif wire == 5 then v, at = ("<f"):unpack(s, at)
    else
      assert.equal(2, wire)
      local n
      n, at = varint(s, at)
      v, at = s:sub(at, at + n - 1), at + n
    end
    assert(at <= #s + 1)
    fields[field] = fields[field] or {}
    table.insert(fields[field], v)
  end
  return fields
end

local function doubles(s)
  local list = {}
  for at = 1, #s, 8 do list[#list + 1] = ("<d"):unpack(s, at) end
  return list
end

local function pixels(png)
  local path = shell.write ""
  local f = io.open(path, "wb")
  f:write(png)
  f:close()
  return fnn.io.read_png(path):flatten():totable()
end

-- What a file holds, as the fixture has it.
local function decode(path)
  local found = { scalars = {}, texts = {}, images = {}, histograms = {} }
  local function add(kind, ...) table.insert(found[kind], { ... }) end
  for i, data in ipairs(records(shell.read(path))) do
    local event = message(data)
    assert(math.abs(event[1][1] - os.time()) < 100)
    if i == 1 then assert.equal("brain.Event:2", event[3][1]) end
    local step = event[2] and event[2][1]
    found.start = found.start or event[7] and step
    local summary = message(event[5] and event[5][1] or "")
    for _, s in ipairs(summary[1] or {}) do
      local v = message(s)
      local tag = v[1][1]
      if v[2] then add("scalars", tag, step, v[2][1]) end
      if v[4] then
        local m = message(v[4][1])
        add("images", tag, step, m[2][1], m[1][1], pixels(m[4][1]))
      end
      if v[5] then
        local m = message(v[5][1])
        add("histograms", tag, step, m[1][1], m[2][1], m[3][1], m[4][1],
            m[5][1], doubles(m[6][1]), doubles(m[7][1]))
      end
      if v[8] then
        local tensor, metadata = message(v[8][1]), message(v[9][1])
        assert.equal(7, tensor[1][1])
        assert.equal(1, message(message(tensor[2][1])[2][1])[1][1])
        add("texts", tag, step, tensor[8][1],
            message(metadata[1][1])[1][1])
      end
    end
  end
  for _, list in pairs(found) do
    if type(list) == "table" then
      for i, row in ipairs(list) do row.place = i end
      table.sort(list, function(a, b)
        if a[1] == b[1] then return a.place < b.place end
        return a[1] < b[1]
      end)
      for _, row in ipairs(list) do row.place = nil end
    end
  end
  return found
end

local function files(folder)
  local list = {}
  local pipe = io.popen("ls " .. folder)
  for name in pipe:lines() do list[#list + 1] = folder .. "/" .. name end
  pipe:close()
  return list
end

-- nan is not itself.
local function plain(list)
  for _, row in ipairs(list) do
    if row[3] ~= row[3] then row[3] = "nan" end
  end
  return list
end

describe("fnn.log.tensorboard", function()
  teardown(shell.clean)

  it("frames records as TensorBoard does", function()
    local list = records(want.record)
    assert.equal(1, #list)
    assert.equal(1.5, message(list[1])[1][1])
    assert.equal(-2, message(list[1])[2][1])
  end)

  it("writes what TensorBoard reads", function()
    local folder = shell.folder() .. "/a/b"
    local log <close> = fnn.log.tensorboard(folder)
    logged(log)
    local names = files(folder)
    assert.equal(1, #names)
    assert.matches("/events%.out%.tfevents%.%d+%.[%w.-]+%.%d+%.%d+$", names[1])
    local found = decode(names[1])
    assert.same(plain(want.scalars), plain(found.scalars))
    for _, kind in ipairs { "texts", "images", "histograms" } do
      assert.same(want[kind], found[kind])
    end
    assert.is_nil(found.start)
  end)

  it("goes on in a file of its own", function()
    local folder = shell.folder()
    for i = 1, 2 do
      local log <close> = fnn.log.tensorboard(
        folder, i == 2 and { resume = 100 } or nil)
      log:scalar("loss", i, 99 + i)
    end
    local names = files(folder)
    assert.equal(2, #names)
    assert.same({ { "loss", 100, 1.0 } }, decode(names[1]).scalars)
    local second = decode(names[2])
    assert.same({ { "loss", 101, 2.0 } }, second.scalars)
    assert.equal(100, second.start)
  end)

  it("writes at once", function()
    local folder = shell.folder()
    local log = fnn.log.tensorboard(folder)
    log:scalar("x", 1, 1)
    assert.equal(1, #decode(files(folder)[1]).scalars)
    log:close()
  end)
end)

-- }======================================================

describe("a log", function()
  teardown(shell.clean)

  local function open() return fnn.log.jsonl(shell.folder() .. "/x.jsonl") end

  it("says what is wrong", function()
    local log = open()
    local tensor = fnn.zeros(2, 3)
    fails("scalar: expected a name, got nil", log.scalar, log)
    fails("scalar: expected a name, got ''", log.scalar, log, "", 1, 1)
    fails("scalar: 'step' is no name for a value: each has its step",
          log.scalar, log, "step", 1, 1)
    fails("scalar: 'a\\xff' is not UTF-8 at its byte 2", log.scalar, log,
          "a\255", 1, 1)
    fails("scalar: 'a': expected a number or a tensor of one element, got " ..
          "a string", log.scalar, log, "a", "1", 1)
    fails("scalar: 'a': expected a number or a tensor of one element, got " ..
          "shape (2, 3)", log.scalar, log, "a", tensor, 1)
    fails("scalar: expected an integer as the step, got nil", log.scalar, log,
          "a", 1)
    fails("scalar: expected an integer as the step, got 1.5", log.scalar, log,
          "a", 1, 1.5)
    fails("scalars: expected numbers by name, got a number", log.scalars, log,
          1, 1)
    fails("scalars: expected a name, got a number", log.scalars, log, { 1 }, 1)
    fails("text: expected a text, got a number", log.text, log, "a", 1, 1)
    fails("histogram: expected a tensor, got a table", log.histogram, log,
          "a", {}, 1)
    fails("histogram: the tensor has no elements", log.histogram, log, "a",
          fnn.zeros(0), 1)
    fails("image: expected (h, w), (channels, h, w) or (n, channels, h, w) " ..
          "with 1 to 4 channels, got shape (8, 8, 3) (x:permute(3, 1, 2) " ..
          "puts channels first)", log.image, log, "a", fnn.zeros(8, 8, 3), 1)
    fails("scalar: expected a log, got a number", log.scalar, 3)
    assert.same({}, lines(log.sink.name))  -- nothing of these was written
  end)

  it("checks how it is made", function()
    fails("jsonl: expected a path, got nil", fnn.log.jsonl)
    fails("tensorboard: expected a path, got ''", fnn.log.tensorboard, "")
    fails("jsonl: unknown option 'resum' (did you mean 'resume'?)",
          fnn.log.jsonl, "x", { resum = 1 })
    fails("jsonl: option 'resume': expected an integer as the step, got 1.5",
          fnn.log.jsonl, "x", { resume = 1.5 })
    fails("all: expected a list of logs, got a table", fnn.log.all, {})
    fails("all: expected a log, got a number", fnn.log.all, { 1 })
    local file = shell.write ""
    fails(file .. ": cannot make the folder: Not a directory",
          fnn.log.tensorboard, file)
    fails(file .. "/x/: cannot make the folder: Not a directory",
          fnn.log.jsonl, file .. "/x/y.jsonl")
  end)

  it("refuses what comes after close, which may be twice", function()
    local log = open()
    log:close()
    log:close()
    fails("scalar: the log is closed", log.scalar, log, "a", 1, 1)
    assert.equal("fnn.Log: closed", tostring(log))
    local kept
    do
      local inner <close> = open()
      kept = inner
    end
    fails("text: the log is closed", kept.text, kept, "a", "b")
  end)

  it("is closed by the collector", function()
    if not os.execute "test -d /proc/self/fd" then return end
    local function count()
      local pipe = io.popen "ls /proc/$PPID/fd | wc -l"
      local n = pipe:read "n"
      pipe:close()
      return n
    end
    collectgarbage()
    local before = count()
    for _ = 1, 20 do open() end
    collectgarbage()
    collectgarbage()
    assert(count() <= before + 1)  -- one may still be on the stack
  end)

  it("of several writes to all, whatever one of them says", function()
    local a, b = open(), open()
    local log = fnn.log.all { a, b }
    log:scalar("x", 1, 1)
    assert.equal(1, #lines(a.sink.name))
    assert.equal(1, #lines(b.sink.name))
    a:close()
    fails("scalars: the log is closed", log.scalar, log, "x", 1, 2)
    assert.equal(2, #lines(b.sink.name))
    log:close()
    fails("scalar: the log is closed", b.scalar, b, "x", 1, 1)
  end)

  it("raises when there is no room, and leaves no half of a line", function()
    if not io.open "/dev/full" then return end
    local log = fnn.log.jsonl "/dev/full"
    local ok, why = pcall(log.scalar, log, "x", 1, 1)
    assert.is_false(ok)
    assert.matches("/dev/full: cannot write: ", why)
  end)
end)

describe("io.encode_png", function()
  teardown(shell.clean)

  it("gives the bytes of the file", function()
    local path, x = shell.write "", fnn.arange(60):view(5, 4, 3):to "u8"
    fnn.io.write_png(path, x, { Title = "a" })
    assert.equal(shell.read(path), fnn.io.encode_png(x, { Title = "a" }))
    x = fnn.randint(0, 256, { 300, 400 }):to "u8"  -- more than the buffer has
    fnn.io.write_png(path, x)
    assert.equal(shell.read(path), fnn.io.encode_png(x))
    fails("png_encode: expected u8 of shape (h, w) or (h, w, 1 to 4), got " ..
          "f32 of shape (2, 2)", fnn.io.encode_png, fnn.zeros(2, 2))
  end)
end)
