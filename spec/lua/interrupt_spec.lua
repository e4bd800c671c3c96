-- interrupt_spec.lua - Ctrl-C in the program: real processes, real signals.

local shell = require "spec.support.shell"
local FNN = shell.FNN

-- Runs a script that prints "ready" when it may be interrupted; then does what
-- follows, in which $p is the process.  Returns what was printed, errors and
-- the exit code of the process.
local function interrupted(script, what)
  local path, out = shell.write(script), os.tmpname()
  local _, err, code = shell.run(shell.with([[
    %s %s >%s & p=$!
    until grep -q ready %s || ! kill -0 $p; do sleep 0.02; done
    %s
    wait $p]], FNN, path, out, out, what))
  local text = shell.read(out)
  os.remove(out)
  return text:gsub("ready\n", ""), err, code
end

local head = [[
local fnn = require "fnn"
io.stdout:setvbuf "no"
local stop, calls = false, 0
local function note() stop, calls = true, calls + 1 end
]]

local once = "kill -INT $p"
local twice = "kill -INT $p; sleep 0.3; kill -INT $p"

describe("fnn.on_interrupt", function ()
  teardown(shell.clean)

  local loops = {
    ["Lua code"] = "while not stop do i = i + 1 end",
    ["an op"] = "local x = fnn.ones(300, 300); "
                .. "while not stop do i = i + 1; x:matmul(x) end",
    ["a coroutine"] = "coroutine.wrap(function() while not stop do "
                      .. "i = i + 1; fnn.ones(9):sum() end end)()",
    ["a wait for batches"] = [[
      local ds = fnn.data.TensorDataset(fnn.ones(4000, 500))
      local loader = fnn.data.DataLoader(ds, { batch = 2000, prefetch = 1 })
      while not stop do for x in loader do i = i + x:numel() end end]],
    ["a callback of the engine"] = [[
      local F = fnn.Function "F"
      function F.forward(_, x) return x * 1 end
      function F.backward(_, g)
        for k = 1, 1e5 do i = i + k end
        return g
      end
      local p = fnn.Param(fnn.ones(3))
      while not stop do F(p):sum():backward() end]],
  }
  for name, loop in pairs(loops) do
    it("lets " .. name .. " go on, and is called once", function ()
      local out, err, code = interrupted(head .. [[
        fnn.on_interrupt(note)
        local i = 0
        print "ready"
        ]] .. loop .. [[

        print(calls, fnn.on_interrupt(nil))
      ]], once)
      assert.equal("1\tnil\n", out, err)
      assert.equal(0, code)
    end)
  end

  it("ends the process the second time", function ()
    local out, _, code = interrupted(head .. [[
      fnn.on_interrupt(function() note() print "noted" end)
      print "ready"
      while true do fnn.ones(100):sum() end
    ]], twice)
    assert.equal("noted\n", out)
    assert.equal(130, code)
  end)

  it("can be taken back", function ()
    local out, err, code = interrupted(head .. [[
      assert(fnn.on_interrupt(note) == nil)
      assert(fnn.on_interrupt(nil) == note)
      assert(fnn.on_interrupt(nil) == nil)
      print "ready"
      while not stop do fnn.ones(100):sum() end
    ]], once)
    assert.equal("", out)
    assert.truthy(err:find "cancelled" or err:find "interrupted!")
    assert.equal(130, code)
  end)

  it("gives back what was there, which is called then", function ()
    local out, err, code = interrupted(head .. [[
      local function inner() error "not this one" end
      fnn.on_interrupt(note)
      assert(fnn.on_interrupt(inner) == note)
      assert(fnn.on_interrupt(note) == inner)
      print "ready"
      while not stop do fnn.ones(100):sum() end
      print(calls)
    ]], once)
    assert.equal("1\n", out, err)
    assert.equal(0, code)
  end)

  it("may raise, which ends the loop there", function ()
    local out, err, code = interrupted(head .. [[
      fnn.on_interrupt(function() error "enough" end)
      print "ready"
      print(pcall(function() while true do fnn.ones(100):sum() end end))
    ]], once)
    assert.matches("^false\t.*:%d+: enough\n$", out, err)
    assert.equal(0, code)
  end)

  it("leaves 1 as the exit code of another error that comes later", function ()
    for _, script in ipairs {
      [[fnn.on_interrupt(note)
        print "ready"
        while not stop do fnn.ones(100):sum() end]],
      [[print "ready"
        pcall(function() while true do fnn.ones(100):sum() end end)]],
    } do
      local _, err, code = interrupted(head .. script .. " error 'no room'",
                                       once)
      assert.matches("no room", err)
      assert.equal(1, code)
    end
  end)

  it("leaves the hooks of a script", function ()
    local out = interrupted(head .. [[
      local lines = 0
      debug.sethook(function() lines = lines + 1 end, "l")
      fnn.on_interrupt(note)
      print "ready"
      while not stop do
        fnn.ones(100):sum()
      end
      local before = lines
      local a = 1
      print(calls, lines > before)
    ]], once)
    assert.equal("1\ttrue\n", out)
  end)

  it("is the token's in a lua that loads the library", function ()
    if not shell.has "lua5.4" then return end
    local path = shell.write [[
      local fnn = require "fnn"
      local function note() end
      print(fnn.on_interrupt(note), fnn.on_interrupt(nil) == note)
      fnn.on_interrupt(note)
      os.execute "(sleep 0.2; kill -INT $PPID) &"
      while true do fnn.ones(9):sum() end
    ]]
    local out, err, code = shell.run("lua5.4 " .. path,
                                     { env = "LUA_CPATH='build/?.so'" })
    assert.equal("nil\ttrue\n", out)
    assert.matches("interrupted!", err)  -- Lua's own Ctrl-C
    assert.equal(1, code)
  end)

  it("wants a function or nil", function ()
    local fnn = require "fnn"
    for _, v in ipairs { 3, "f", {} } do
      assert.error_matches(function () fnn.on_interrupt(v) end,
                           "on_interrupt: expected a function or nil, got " ..
                           type(v))
    end
    assert.has_error(function () fnn.on_interrupt() end)
  end)
end)

describe("examples/char_lm.lua", function ()
  teardown(shell.clean)

  it("stops at Ctrl-C, and goes on at that step with the same bits",
     function ()
    local whole, stopped = shell.folder(), shell.folder()
    local command = FNN .. " --threads 1 examples/char_lm.lua --quick " ..
                    "--steps 300 --run "
    local _, err, code = shell.run(command .. whole)
    assert.equal(0, code, err)
    local out
    out, err, code = shell.run(shell.with([[
      %s >%s/out & p=$!
      until grep -q "step    50" %s/out || ! kill -0 $p; do sleep 0.02; done
      kill -INT $p
      wait $p]], command .. stopped, stopped, stopped))
    assert.equal(130, code, out .. err)
    local step = shell.read(stopped .. "/out"):match
      "stopped after step (%d+): the same command goes on\n$"
    assert.is_true(tonumber(step) < 300)
    out, err, code = shell.run(command .. stopped)
    assert.equal(0, code, err)
    assert.matches("from step " .. step .. " of 300\n", out)
    local last = "/step-000000300.safetensors"
    assert.is_true(shell.read(whole .. last) == shell.read(stopped .. last))
    out = shell.run(FNN .. " examples/char_lm.lua --generate 20 --run " ..
                    stopped)
    assert.is_true(#out >= 20)
  end)
end)

describe("Ctrl-C in a finalizer's op", function ()
  teardown(shell.clean)

  it("stops the script, too", function ()
    local out, err, code = interrupted([[
      local fnn = require "fnn"
      io.stdout:setvbuf "no"
      local x, stopped = fnn.ones(200, 200), 0
      setmetatable({}, { __gc = function ()
        print "ready"
        local from = fnn.clock()
        while stopped == 0 and fnn.clock() - from < 5 do
          if not pcall(x.matmul, x, x) then stopped = stopped + 1 end
        end
        print(stopped)
      end })
      collectgarbage()
      for _ = 1, 1000 do x:matmul(x) end
      print "went on"
    ]], once)
    assert.equal("1\n", out, err)
    assert.equal(130, code)
  end)
end)
