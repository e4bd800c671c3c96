-- progress_spec.lua - loops that tell how far they have come.

local fnn = require "fnn"
local shell = require "spec.support.shell"

local function gathered(...)
  local list = {}
  for a, b in fnn.progress(...) do
    list[#list + 1] = b == nil and tostring(a) or
                      ("%s %s"):format(a, fnn.is_tensor(b) and b:item() or b)
  end
  return table.concat(list, ", ")
end

local function fails(message, ...)
  local _, got = fnn.try_progress(...)
  assert.equal(message, (got:gsub("^[^:]*:%d+: ", "")))
end

describe("fnn.progress", function()
  teardown(shell.clean)

  it("goes over counts, lists, tensors and iterators", function()
    assert.equal("1, 2, 3", gathered(3))
    assert.equal("", gathered(0))
    assert.equal("1 a, 2 b", gathered { "a", "b" })
    assert.equal("", gathered {})
    assert.equal("1 5.0, 2 7.0", gathered(fnn.tensor { 5, 7 }))
    assert.equal("a, b", gathered(("a b"):gmatch "%S", "letters"))
    assert.equal("a, b", gathered(("a b"):gmatch "%S", { total = 1 }))
    local n = 0
    assert.equal("1, 2", gathered(setmetatable({}, { __call = function()
      n = n + 1
      if n < 3 then return n end
    end })))
  end)

  it("goes over loaders, from where they are", function()
    local set = fnn.data.TensorDataset(fnn.arange(7):to "f32")
    local loader = fnn.data.DataLoader(set, { batch = 2 })
    for _ = 1, 2 do  -- each time an epoch
      local sums = {}
      for x in fnn.progress(loader, "epoch") do
        sums[#sums + 1] = x:sum():item()
      end
      assert.same({ 1.0, 5.0, 9.0, 6.0 }, sums)
    end
    loader:start(5, 3)
    local count = 0
    for _ in fnn.progress(loader) do count = count + 1 end
    assert.equal(1, count)
  end)

  it("may be left, and passes errors on", function()
    for i in fnn.progress(5) do if i == 3 then break end end
    assert.error_matches(function()
      for _ in fnn.progress(5) do error "mine" end
    end, "mine")
  end)

  it("tells single steps", function()
    fnn.progress("work", 1, 10)
    fnn.progress("work", 2)
    fails("progress: expected an integer as the step, got nil", "work")
    fails("progress: expected an integer as the step, got 1.5", "work", 1.5)
    fails("progress: expected an integer as the total, got a string", "work",
          1, "2")
  end)

  it("says what is wrong", function()
    local expected = "progress: expected a loader, a list, an iterator, a " ..
                     "count or the name of the work, got "
    fails(expected .. "nil")
    fails(expected .. "-1", -1)
    fails(expected .. "1.5", 1.5)
    fails("progress: unknown option 'totl' (did you mean 'total'?)", 3,
          { totl = 1 })
    fails("progress: option 'total': expected an integer of 0 or more, got " ..
          "-1", 3, { total = -1 })
    fails("progress: option 'what': expected a text, got a number", 3,
          { what = 1 })
  end)

  it("shows a bar at a terminal, and nothing on stdout", function()
    if not shell.has "script" then return end
    local path = shell.write [[
      local fnn = require "fnn"
      local function wait(seconds)
        local from = fnn.clock()
        while fnn.clock() - from < seconds do end
      end
      for i in fnn.progress(4, "training") do wait(0.12) end
      for i in fnn.progress(8, "left") do
        wait(0.12)
        if i == 5 then break end
      end
      print "after"]]
    local out = shell.run(shell.with(
      "script -qec '%s %s >%s' /dev/null", shell.FNN, path, path .. ".out"),
      { env = "TERM=xterm NO_COLOR=1" })
    assert.matches("\rtraining +%d+%% %[=+>? *%]  %d/4  ", out)
    assert.matches("\rtraining 100%% %[=+%]  4/4  [^\n]*\n", out)
    assert.matches("\rleft +%d+%% [^\r]*/8  [^\r]*\r\n$", out)
    assert.is_nil(out:find "\27%[32m")
    assert.equal("after\n", shell.read(path .. ".out"))
    os.remove(path .. ".out")
  end)
end)
