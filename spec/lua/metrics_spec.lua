-- metrics_spec.lua - accuracy, classes and confusion, counted by hand.

local fnn = require "fnn"
local metrics = fnn.metrics

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local function ids(...) return fnn.tensor({ ... }, { dtype = "i64" }) end

-- Rows whose classes are 2, 0, 1, 2.
local outputs = fnn.tensor { { 0, 1, 5 }, { 3, -1, 0 }, { 0, 2, 1 },
                             { -3, -2, -1 } }

describe("metrics.accuracy", function()
  it("compares classes with ids, rows or a column of ids", function()
    assert.equal(0.75, metrics.accuracy(outputs, ids(2, 0, 1, 0)))
    assert.equal(0.75, metrics.accuracy(outputs,
                                        ids(2, 0, 1, 0):reshape(4, 1)))
    assert.equal(0.5, metrics.accuracy(outputs, fnn.tensor {
      { 0, 0, 1 }, { 1, 0, 0 }, { 1, 0, 0 }, { 0.4, 0.3, 0.3 } }))
    assert.equal(1, metrics.accuracy(outputs, outputs * 2))
  end)

  it("has a threshold for one output", function()
    local one = fnn.tensor { { 0.2 }, { 0.5 }, { 0.9 }, { 0.4 } }
    assert.equal(0.75, metrics.accuracy(one, fnn.tensor { 0, 1, 1, 1 }))
    assert.equal(0.75, metrics.accuracy(one, ids(0, 1, 1, 1)))
    assert.equal(0.5, metrics.accuracy(one:reshape(-1), ids(0, 1, 1, 1),
                                       { threshold = 0.6 }))
    local logits = fnn.tensor { -1, 2 }
    assert.equal(1, metrics.accuracy(logits, fnn.tensor { 0, 1 },
                                     { threshold = 0 }))
  end)

  it("is not a number of no rows", function()
    local v = metrics.accuracy(fnn.zeros(0, 3), fnn.zeros(0, 3))
    assert.is_true(v ~= v)
  end)

  it("says what is wrong", function()
    raises("metrics.accuracy: outputs of shape (4, 3) and targets of shape " ..
           "(3) have not as many rows", metrics.accuracy, outputs,
           ids(0, 1, 2))
    raises("metrics.classes: expected outputs (n) or (n, classes), got " ..
           "(1, 2, 3)", metrics.accuracy, fnn.zeros(1, 2, 3), ids(1))
    raises("metrics.accuracy: expected a tensor of targets, got a table",
           metrics.accuracy, outputs, { 1, 2, 3, 4 })
    raises("metrics.classes: expected a tensor of outputs, got nil",
           metrics.classes)
  end)
end)

describe("metrics.classes", function()
  it("gives ids", function()
    assert.same({ 2, 0, 1, 2 }, metrics.classes(outputs):totable())
    assert.same({ 0, 1 }, metrics.classes(fnn.tensor { 0.4, 0.6 }):totable())
    assert.equal("i64", metrics.classes(outputs):dtype())
  end)
end)

describe("metrics.confusion", function()
  it("counts (actual, predicted)", function()
    local counts = metrics.confusion(outputs, ids(2, 0, 0, 1))
    assert.same({ { 1, 1, 0 }, { 0, 0, 1 }, { 0, 0, 1 } }, counts:totable())
    assert.equal("i64", counts:dtype())
    assert.same({ { 1, 0 }, { 2, 1 } }, metrics.confusion(
      fnn.tensor { 0.1, 0.2, 0.7, 0.3 }, ids(0, 1, 1, 1)):totable())
    assert.same({ { 0, 0 }, { 0, 0 } },
                metrics.confusion(fnn.zeros(0, 1), fnn.zeros(0, 1)):totable())
  end)

  it("knows how many classes there are", function()
    raises("metrics.confusion: targets from 0 to 3 are no classes (there " ..
           "are 3; ids count from 0)", metrics.confusion, outputs,
           ids(3, 0, 0, 1))
    raises("targets from -1 to 1", metrics.confusion, outputs,
           ids(-1, 0, 0, 1))
    assert.same({ 4, 4 }, metrics.confusion(
      outputs, ids(3, 0, 0, 1), { classes = 4 }):shape())
  end)
end)
