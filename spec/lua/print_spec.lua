-- print_spec.lua - tensors and Params as text.

local fnn = require "fnn"

describe("a tensor as text", function ()
  it("has shape, dtype and device, and rows", function ()
    assert.equal("tensor (2, 3) f32 cpu\n  1  2  3\n  4  5  6",
                 tostring(fnn.arange(1, 7):reshape(2, 3)))
    assert.equal("tensor (2) f64 cpu\n   0.5000  -1.2500",
                 tostring(fnn.tensor({ 0.5, -1.25 }, { dtype = "f64" })))
    assert.equal("tensor (0, 3) f32 cpu", tostring(fnn.zeros(0, 3)))
    assert.equal("tensor () bool cpu\n  true", tostring(fnn.tensor(true)))
  end)

  it("goes on over lines when a row is wider than a screen", function ()
    local row = ("  7"):rep(26) .. "\n  " .. ("  7"):rep(4)
    assert.equal("tensor (2, 30) f32 cpu\n" .. row .. "\n" .. row,
                 tostring(fnn.full({ 2, 30 }, 7)))
    for line in tostring(fnn.randn(3, 40)):gmatch "[^\n]+" do
      assert.is_true(#line <= 80)
    end
  end)

  it("leaves out the middles of a large one", function ()
    local text = tostring(fnn.zeros(500, 500))
    assert.equal(6 + 2, select(2, text:gsub("\n", "")) + 1)
    assert.matches("\n  0  0  0  %.%.%.  0  0  0\n", text)
    assert.matches("\n  %.%.%.\n", text)
  end)
end)

describe("a Param as text", function ()
  it("has its values, and whether it is frozen", function ()
    local p = fnn.Param(fnn.tensor { 1, 2 })
    assert.equal("Param (2) f32 cpu\n  1  2", tostring(p))
    p:freeze()
    assert.equal("Param (2) f32 cpu frozen\n  1  2", tostring(p))
  end)
end)
