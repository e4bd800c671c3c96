local fnn = require "fnn"
local nn = fnn.nn

local Residual = nn.module "Residual"
function Residual:init (inner) self.inner = inner end
function Residual:forward (x) return x + self.inner(x):relu() end

local function model ()
  local m = nn.Sequential(nn.Flatten(), nn.Linear(4, 3),
                          Residual(nn.Linear(3, 3, { bias = false })),
                          nn.LayerNorm(3), nn.Dropout(0.1))
  m[3].mean = fnn.zeros(3)
  return m
end

describe("print(model)", function ()
  it("is a tree with shapes and totals", function ()
    assert.equal([[
Sequential()
  0: Flatten()
  1: Linear(4, 3)                          weight (3, 4), bias (3)
  2: Residual()                            buffer mean (3)
    inner: Linear(3, 3, { bias = false })  weight (3, 3)
  3: LayerNorm(3)                          weight (3), bias (3)
  4: Dropout(0.1)
30 parameters, 132 bytes]], tostring(model()))
  end)

  it("tells what is frozen, tied or met again", function ()
    local a, b = nn.Linear(1000, 1000), nn.Linear(1000, 1000)
    b.weight = a.weight
    a.weight:freeze()
    local m = nn.Sequential(a, b, a)
    m.self = m
    assert.equal([[
Sequential()
  0: Linear(1000, 1000)  weight (1000, 1000) frozen, bias (1000)
  1: Linear(1000, 1000)  weight = 0.weight, bias (1000)
  2: the same as 0
  self: the same as the model
1,002,000 parameters, 1,000,000 frozen, 4.0 MB]], tostring(m))
  end)

  it("shows what a class says of itself", function ()
    function Residual:describe () return "deep" end
    assert.equal("Residual(deep)", tostring(Residual()):match("[^\n]+"))
    Residual.describe = nil
  end)
end)

describe("fnn.summary", function ()
  it("runs the model and tells each module's output", function ()
    local m = model()
    m[2]:freeze()
    local s = fnn.summary(m, fnn.zeros(5, 2, 2))
    assert.equal([[
module   type        output    parameters
(model)  Sequential  (5, 3)             0
0        Flatten     (5, 4)             0
1        Linear      (5, 3)            15
2        Residual    (5, 3)             0
2.inner  Linear      (5, 3)             9
3        LayerNorm   (5, 3)             6
4        Dropout     (5, 3)             0
30 parameters, 15 frozen, 132 bytes]], tostring(s))
    assert.equal("2.inner", s[5].name)
    assert.equal(9, s[5].parameters)
    assert.equal(tostring(s), tostring(m:summary { 5, 2, 2 }))
  end)

  it("leaves the model as it was, after an error too", function ()
    local m = model()
    m[5]:eval()
    assert.error_matches(function () fnn.summary(m, { 5, 7 }) end,
                         "inner dimensions")
    assert.is_true(m.training)
    assert.is_false(m[5].training)
    local y = m(fnn.ones(1, 4))
    assert.is_true(y:has_graph())
  end)

  it("tells what did not run", function ()
    local m = Residual(nn.Identity())
    m.spare = nn.Linear(2, 2)
    assert.truthy(tostring(fnn.summary(m, { 1, 2 }))
                  :find("spare    Linear    not run             6", 1, true))
  end)

  it("asks for an input", function ()
    assert.error_matches(function () fnn.summary(model()) end,
                         "summary: expected an input for the model", 1, true)
    assert.error_matches(function () fnn.summary(3, { 1 }) end,
                         "summary: expected a module, got a number", 1, true)
  end)
end)
