-- later_spec.lua - parts of the library that are compiled when they are first
-- used, in a program that has used none.

local shell = require "spec.support.shell"

local function prints(expected, script)
  local path = shell.write(script)
  local out, errors = shell.run(shell.FNN .. " " .. path)
  assert.equal("", errors)
  assert.equal(expected, (out:gsub(path:gsub("%p", "%%%0"), "script")))
end

describe("a part that is loaded later", function()
  teardown(shell.clean)

  it("works by a function that was held before", function()
    prints("2\n2\ntrue\n", [[
      local fnn = require "fnn"
      local Constant, first = fnn.optim.Constant, fnn.optim.Constant
      print(Constant(2)(0))
      print(Constant(2)(0))
      print(fnn.optim.Constant ~= first)
    ]])
  end)

  it("leaves what a script has put in its place", function()
    prints("mine\n0.5\nmine\n", [[
      local fnn = require "fnn"
      local old = fnn.optim.Constant
      fnn.optim.Constant = function() return "mine" end
      print(fnn.optim.Constant())
      print(fnn.optim.StepDecay(1, 1, 0.5)(1))
      print(fnn.optim.Constant())
      assert(old(3)(0) == 3)
    ]])
  end)

  it("has try_ forms, and errors at the caller's line", function()
    local message = "Constant: base: expected a finite number of 0 or more, " ..
                    "got -1\n"
    prints("nil\tscript:2: " .. message .. "script:3: " .. message, [[
      local optim = require "fnn".optim
      print(optim.try_Constant(-1))
      print(select(2, pcall(function() optim.Constant(-1) end)))
    ]])
  end)
end)
