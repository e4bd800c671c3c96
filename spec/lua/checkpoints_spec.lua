-- checkpoints_spec.lua - runs kept in a folder, and runs that are killed.

local fnn = require "fnn"
local shell = require "spec.support.shell"
local nn, optim = fnn.nn, fnn.optim
local FNN = shell.FNN

local function new_state()
  local model = nn.Linear(2, 2)
  return { model = model,
           opt = optim.SGD(model:parameters(), { lr = 0.1, momentum = 0.9 }) }
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

-- The steps of the files in a folder, in the order of their names.
local function steps_in(folder)
  local list = {}
  local out = shell.run(shell.with("ls -A %s", folder))
  for name in out:gmatch "[^\n]+" do
    local step = name:match "^step%-(%d+)%.safetensors$"
    list[#list + 1] = step and math.tointeger(tonumber(step)) or name
  end
  return list
end

describe("fnn.checkpoints", function()
  local folder, state

  before_each(function()
    folder, state = shell.folder(), new_state()
  end)

  teardown(shell.clean)

  it("makes its folder, and is empty", function()
    local path = folder .. "/runs/a"
    local cp = fnn.checkpoints(path)
    assert.equal(0, #cp)
    assert.is_nil(cp:latest())
    assert.is_nil(cp:best())
    assert.is_nil(cp:resume(state))
    assert.same({}, cp:list())
    assert.same({}, steps_in(path))
    assert.equal("checkpoints in " .. path .. ": 0", tostring(cp))
  end)

  it("keeps the last ones, and what they hold", function()
    local cp = fnn.checkpoints(folder, { keep = 2 })
    for step = 1, 4 do
      state.model.bias:set(fnn.full({ 2 }, step))
      local path = cp:save(state, { step = step, note = "n" .. step })
      assert.equal(("%s/step-%09d.safetensors"):format(folder, step), path)
    end
    assert.same({ 3, 4 }, steps_in(folder))
    local again = new_state()
    cp = fnn.checkpoints(folder, { keep = 2 })
    assert.same({ step = 4, note = "n4" }, cp:resume(again))
    assert.same({ 4, 4 }, again.model.bias:value():totable())
    local path, values = cp:latest()
    assert.equal(folder .. "/step-000000004.safetensors", path)
    assert.equal("n4", values.note)
  end)

  -- The losses of steps 1, 2, ... and what is left with keep = 2.
  local cases = {
    { "min", { 3, 1, 2, 4, 5 }, { 2, 4, 5 }, 2 },
    { "max", { 3, 5, 2, 4, 1 }, { 2, 4, 5 }, 2 },
    { "min", { 5, 4, 3, 2, 1 }, { 4, 5 }, 5 },
    { "min", { 1, 1, 1, 1 }, { 1, 3, 4 }, 1 },
    { "min", { 2, 0 / 0, 1 / 0, 3, 4 }, { 1, 4, 5 }, 1 },
    { "max", { 0 / 0, 0 / 0, 0 / 0 }, { 2, 3 }, nil },
    { "min", { 3, false, 1, false, false, false }, { 3, 5, 6 }, 3 },
  }
  for k, case in ipairs(cases) do
    it("keeps the best, case " .. k, function()
      local options = { keep = 2, best = "loss", mode = case[1] }
      local cp = fnn.checkpoints(folder, options)
      local function check()
        local path, values = cp:best()
        if not case[4] then return assert.is_nil(path) end
        assert.equal(cp:list()[1]:match "^(.*)/", path:match "^(.*)/")
        assert.equal(case[4], values.step)
      end
      for step, loss in ipairs(case[2]) do
        if k % 2 == 0 then cp = fnn.checkpoints(folder, options) end
        cp:save(state, { step = step, loss = loss or nil })
      end
      assert.same(case[3], steps_in(folder))
      check()
      cp = fnn.checkpoints(folder, options)  -- from the files alone
      check()
    end)
  end

  it("orders steps as numbers, of any size", function()
    local big = (1 << 33) + 1
    local cp = fnn.checkpoints(folder, { keep = 3 })
    cp:save(state, { step = 999999999 })
    cp:save(state, { step = big })
    cp = fnn.checkpoints(folder)
    assert.equal(big, cp:resume(new_state()).step)
    assert.same({ folder .. "/step-999999999.safetensors",
                  folder .. "/step-8589934593.safetensors" }, cp:list())
  end)

  it("writes a step anew, but none before the last", function()
    local cp = fnn.checkpoints(folder)
    cp:save(state, { step = 5, v = 1 })
    cp:save(state, { step = 5, v = 2 })
    assert.equal(1, #cp)
    assert.equal(2, cp:resume(new_state()).v)
    fails("step 4 is before step 5, which .* has: resume", cp.save, cp, state,
          { step = 4 })
  end)

  it("takes plain values of the state as well", function()
    local cp = fnn.checkpoints(folder, { best = "loss" })
    state.step, state.loss = 7, 0.5
    cp:save(state)
    state.step = 0
    local values = cp:resume(state)
    assert.equal(7, values.step)
    assert.equal(0.5, select(2, cp:best()).loss)
  end)

  it("refuses what is no step, and no value", function()
    local cp = fnn.checkpoints(folder)
    for _, step in ipairs { -1, 1.5, "1", false } do
      fails("save: step: expected an integer of 0 or more", cp.save, cp, state,
            { step = step })
    end
    fails("step: .* got nil", cp.save, cp, state)
    fails("value 'm': expected a plain value, got a Linear", cp.save, cp, {},
          { step = 1, m = state.model })
    fails("'opt' is both an entry and a value", cp.save, cp, state,
          { step = 1, opt = 3 })
    fails("expected a table of what is saved", cp.save, cp, 3)
    cp = fnn.checkpoints(folder, { best = "loss" })
    fails("'loss', which makes the best: expected a number, got a string",
          cp.save, cp, {}, { step = 1, loss = "0.5" })
    assert.same({}, steps_in(folder))
    fails("did you mean 'best'", fnn.checkpoints, folder, { bets = "x" })
    fails("keep: expected an integer of 1 or more", fnn.checkpoints, folder,
          { keep = 0 })
    fails("mode: expected 'min' or 'max', got 'low'", fnn.checkpoints, folder,
          { mode = "low" })
    fails("expected the path of a folder", fnn.checkpoints, {})
    local file = shell.write "x"
    fails("cannot make the folder", fnn.checkpoints, file)
    fails("cannot make the folder", fnn.checkpoints, file .. "/a")
  end)

  it("passes over a damaged file, with a warning", function()
    local cp = fnn.checkpoints(folder, { keep = 2 })
    for step = 1, 3 do cp:save(state, { step = step }) end
    assert(os.execute("truncate -s -9 " .. cp:latest()))
    local script = shell.write([[
      local fnn = require "fnn"
      local model = fnn.nn.Linear(2, 2)
      local state = { model = model, opt = fnn.optim.SGD(model:parameters(),
                      { lr = 0.1, momentum = 0.9 }) }
      local cp = fnn.checkpoints(..., { keep = 2 })
      print(cp:resume(state).step)
      print((cp:save(state, { step = 3, whole = true }):gsub(".*/", "")))
    ]])
    local out, err = shell.run(FNN .. " " .. script .. " " .. folder)
    assert.equal("2\nstep-000000003.safetensors\n", out, err)
    assert.matches("warning: checkpoints: passed over: .*step%-000000003" ..
                   "%.safetensors: truncated", err)
    assert.same({ 2, 3 }, steps_in(folder))
    assert.is_true(fnn.checkpoints(folder):resume(new_state()).whole)
  end)

  it("passes over none for want of memory", function()
    local cp = fnn.checkpoints(folder)
    cp:save({ text = ("x"):rep(1 << 20) }, { step = 1 })
    collectgarbage()
    fnn.trim()  -- what is kept for the next tensors counts, too
    fnn.set_memory_limit(fnn.memory().live + (1 << 18))
    local ok, message = pcall(fnn.checkpoints, folder)
    fnn.set_memory_limit(0)
    assert.is_false(ok)
    assert.matches("checkpoints: out of memory", message)
  end)

  it("says so when all are damaged, rather than begin anew", function()
    local cp = fnn.checkpoints(folder)
    assert(os.execute("truncate -s 100 " .. cp:save(state, { step = 1 })))
    cp = fnn.checkpoints(folder)
    fails("no file of .* can be read: .*step%-000000001", cp.resume, cp, state)
  end)

  it("does not pass over a run that does not fit", function()
    local cp = fnn.checkpoints(folder)
    cp:save(state, { step = 1 })
    cp:save({ model = nn.Linear(3, 3) }, { step = 2 })
    fails("'model'.*mismatched", cp.resume, cp, { model = state.model })
  end)

  it("removes what killed saves left, not what others are writing", function()
    local mine, theirs = folder .. "/.fnn-0123456789abcdef.tmp",
                         folder .. "/.fnn-fedcba9876543210.tmp"
    local other = folder .. "/.fnn-note.tmp"
    for _, path in ipairs { mine, theirs, other } do shell.write("x", path) end
    local gate = shell.folder() .. "/gate"
    assert(os.execute("mkfifo " .. gate))
    local holder = io.popen(("flock %s sh -c 'echo held; read x <%s'"):format(
      theirs, gate))
    assert.equal("held", holder:read())
    fnn.checkpoints(folder)
    assert.same({ ".fnn-fedcba9876543210.tmp", ".fnn-note.tmp" },
                steps_in(folder))
    assert(os.execute("echo >" .. gate))
    holder:close()
    fnn.checkpoints(folder)
    assert.same({ ".fnn-note.tmp" }, steps_in(folder))
  end)
end)

describe("a run that is killed again and again", function()
  it("ends with the bits of one that is not", function()
    local out, err, code = shell.run(shell.with(
      "FNN=%s scripts/kill-training 8", FNN))
    assert.equal(0, code, out .. err)
    assert.matches("^8 kills .*last files: equal", out)
  end)
end)
