-- metrics_spec.lua - metrics beside scikit-learn's numbers and counts by hand,
-- of a set at once and in batches.

local fnn = require "fnn"
local nn, metrics = fnn.nn, fnn.metrics

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
    raises("metrics.accuracy: outputs of shape (1, 2, 3) and targets of " ..
           "shape (1) have not as many rows (classes are in dimension 2: " ..
           "option 'dim')", metrics.accuracy, fnn.zeros(1, 2, 3), ids(1))
    raises("metrics.accuracy: expected a tensor of targets, got a table",
           metrics.accuracy, outputs, { 1, 2, 3, 4 })
    raises("metrics.classes: expected a tensor of outputs, got nil",
           metrics.classes)
    raises("metrics.accuracy: expected outputs (n), (n, classes) or " ..
           "(n, classes, ...), got ()", metrics.accuracy, fnn.tensor(1),
           ids(1))
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

describe("metrics beside scikit-learn", function()
  local fixture = dofile "spec/fixtures/metrics.lua"
  local tensors = {}
  for i, t in ipairs(fixture.tensors) do
    tensors[i] = fnn.tensor(t[2], { dtype = t[3] }):reshape(t[1])
  end

  local function same(expected, got, what)
    if fnn.is_tensor(got) then got = got:totable() end
    if type(expected) == "table" then
      assert.equal(#expected, #got, what)
      for i, v in ipairs(expected) do same(v, got[i], what) end
    elseif expected ~= expected then
      assert.is_true(got ~= got, what)
    else
      assert.near(expected, got, 1e-9 * math.max(1, math.abs(expected)), what)
    end
  end

  -- Bit for bit: not a number is one, too.
  local function equal(a, b, what)
    if fnn.is_tensor(a) then a, b = a:totable(), b:totable() end
    if a ~= a then
      assert.is_true(b ~= b, what)
    else
      assert.same(a, b, what)
    end
  end

  local seen = {}
  for i, case in ipairs(fixture.cases) do
    local name, options, at_x, at_y, value = table.unpack(case)
    seen[name] = true
    local function check(what, f)
      it(("%s, case %d: %s"):format(name, i, what), function()
        f(tensors[at_x], tensors[at_y], ("%s, case %d"):format(name, i))
      end)
    end

    check("of a set at once", function(x, y, what)
      same(value, metrics[name](x, y, options), what)
    end)

    check("in batches, the last one uneven", function(x, y, what)
      local wanted = metrics[name](x, y, options)
      for _, size in ipairs { 1, 4, 7 } do
        local stream = metrics.stream(name, options)
        for first = 1, #x, size do
          local n = math.min(size, #x - first + 1)
          stream:add(x:narrow(1, first, n), y:narrow(1, first, n))
        end
        equal(wanted, stream:value(), what)
      end
    end)
  end

  it("are all metrics but classes and stream", function()
    for name in pairs(metrics) do
      assert.is_true(seen[name] or name == "classes" or name == "stream" or
                     name:find "^try_" ~= nil, name)
    end
  end)
end)

describe("metrics of several labels", function()
  local x = fnn.tensor { { 0.9, 0.5, 0.1 }, { 0.2, 0.8, 0.3 } }
  local y = ids(1, 0, 0, 1, 1, 0):reshape(2, 3)
  local f1 = metrics.f1
  local function with(o)
    o.multilabel = true
    return o
  end

  it("take outputs and targets as zeros and ones of any dtype", function()
    -- Labels: 1 of 1 + 2, 1 of 2 + 1, nothing: 2/3, 2/3, 0.
    local want = (2 / 3 + 2 / 3 + 0) / 3
    for _, dtype in ipairs { "i64", "f32", "u8", "bool" } do
      assert.near(want, f1(x, y:to(dtype), with {}), 1e-12)
    end
    assert.near(want, f1(x:ge(0.5), y, with {}), 1e-12)
    -- Rows: 2 of 1 + 2, 2 of 2 + 1.
    assert.near(2 / 3, f1(x, y, with { average = "samples" }), 1e-12)
    assert.near(1 / 3, metrics.recall(x, y, with { average = "micro",
                                                   threshold = 0.85 }), 1e-12)
  end)

  it("go on from their state, and are no number of no rows", function()
    local o = with { average = "samples" }
    local one, two = metrics.stream("f1", o), metrics.stream(f1, o)
    one:add(x:narrow(1, 1, 1), y:narrow(1, 1, 1))
    two:load_state_dict(one:state_dict())
    two:add(x:narrow(1, 2, 1), y:narrow(1, 2, 1))
    assert.equal(f1(x, y, o), two:value())
    for _, average in ipairs { "macro", "micro", "samples", "weighted" } do
      local none = f1(fnn.zeros(0, 3), fnn.zeros(0, 3),
                      with { average = average })
      assert.is_true(none ~= none)
    end
  end)

  it("say what is wrong", function()
    raises("metrics.f1: with 'multilabel' outputs and targets are (n, " ..
           "labels), got (2, 3) and (2)", f1, x, ids(0, 1), with {})
    raises("metrics.f1: with 'multilabel' targets are 0 or 1, got others", f1,
           x, y * 2, with {})
    raises("got others", f1, x, x, with {})
    raises("metrics.f1: option 'average': expected 'macro', 'micro', " ..
           "'weighted', 'samples' or 'none' with 'multilabel', got 'binary'",
           f1, x, y, with { average = "binary" })
    raises("metrics.f1: option 'average': 'samples' is for rows of several " ..
           "labels (option 'multilabel')", f1, x, y, { average = "samples" })
    raises("metrics.f1: option 'ignore_index' is for ids", f1, x, y,
           with { ignore_index = 0 })
    raises("metrics.f1: outputs of 2 labels, and before of 3", function()
      metrics.stream("f1", with {}):add(x, y):add(x:narrow(2, 1, 2),
                                                  y:narrow(2, 1, 2))
    end)
  end)
end)

describe("metrics of no rows", function()
  it("are no number", function()
    local x, y = fnn.zeros(0, 3), fnn.zeros({ 0 }, { dtype = "i64" })
    for _, name in ipairs { "accuracy", "top_k", "precision", "recall", "f1",
                            "auc", "perplexity" } do
      for _, v in ipairs { metrics[name](x, y), metrics.stream(name):value(),
                           metrics.stream(name):add(x, y):value() } do
        assert.is_true(v ~= v, name)
      end
    end
    for _, name in ipairs { "mae", "mse", "rmse", "r2" } do
      local v = metrics[name](x, x)
      assert.is_true(v ~= v, name)
      v = metrics.stream(name):value()
      assert.is_true(v ~= v, name)
    end
    raises("metrics.confusion: nothing was added",
           metrics.stream("confusion").value, metrics.stream "confusion")
  end)
end)

describe("metrics.top_k", function()
  it("counts the lower id first where scores are equal, as argmax", function()
    local x = fnn.tensor { { 1, 1, 1 }, { 1, 2, 2 } }
    assert.equal(0.5, metrics.top_k(x, ids(0, 2), { k = 1 }))
    assert.equal(metrics.accuracy(x, ids(0, 2)),
                 metrics.top_k(x, ids(0, 2), { k = 1 }))
    assert.equal(1, metrics.top_k(x, ids(1, 2), { k = 2 }))
    assert.equal(0.5, metrics.top_k(x, ids(2, 2), { k = 2 }))
    assert.equal(1, metrics.top_k(x, ids(2, 0), { k = 9 }))
  end)

  it("says what is wrong", function()
    raises("metrics.top_k: option 'k': expected an integer of 1 or more, " ..
           "got 0", metrics.top_k, outputs, ids(0, 1, 2, 0), { k = 0 })
    raises("metrics.top_k: targets from 0 to 3 are no classes", metrics.top_k,
           outputs, ids(0, 1, 3, 0))
    raises("metrics.top_k: expected outputs (n, classes), got (3)",
           metrics.top_k, fnn.zeros(3), ids(0, 1, 3))
  end)
end)

describe("metrics.auc", function()
  local scores = fnn.tensor { 0.1, 0.4, 0.35, 0.8 }

  it("is no number where a class is all there is", function()
    local v = metrics.auc(scores, ids(1, 1, 1, 1))
    assert.is_true(v ~= v)
    v = metrics.auc(fnn.tensor { 0.1, 0 / 0 }, ids(0, 1))
    assert.is_true(v ~= v)
    assert.equal(1, metrics.auc(fnn.tensor { -math.huge, math.huge },
                                ids(0, 1)))
  end)

  it("leaves out classes without rows, or without others", function()
    -- Class 0 is above in 1 of 2 pairs, class 1 in 2 of 2; none is of class 2.
    local x = fnn.tensor { { 3, 1, 0 }, { 1, 1, 0 }, { 2, 2, 1 } }
    local o = { softmax = false }
    assert.equal(3 / 4, metrics.auc(x, ids(0, 0, 1), o))
    o.average = "none"
    local areas = metrics.auc(x, ids(0, 0, 1), o)
    assert.equal(1 / 2, areas[1])
    assert.equal(1, areas[2])
    assert.is_true(areas[3] ~= areas[3])
  end)
end)

describe("metrics of sequences and images", function()
  it("find classes in dimension 2, or where they are told", function()
    local x = fnn.normal(0, 1, { 3, 5, 4 }, { generator = fnn.Generator(4) })
    local y = x:argmax(2):clone()
    assert.equal(1, metrics.accuracy(x, y))
    local last = x:permute(1, 3, 2)
    assert.equal(1, metrics.accuracy(last, y, { dim = -1 }))
    assert.equal(1, metrics.f1(last, y, { dim = 3 }))
    local want = math.exp(nn.cross_entropy(x, y):item())
    assert.near(want, metrics.perplexity(x, y), 1e-6 * want)
    assert.near(want, metrics.perplexity(last, y, { dim = -1 }), 1e-6 * want)
    raises("option 'dim': outputs of shape (3, 5, 4) have no classes in " ..
           "dimension 4", metrics.accuracy, x, y, { dim = 4 })
  end)

  it("leave out ignored ids", function()
    local o = { ignore_index = -100 }
    local y = ids(2, -100, 0, -100)
    assert.equal(0.5, metrics.accuracy(outputs, y, o))
    assert.equal(0.5, metrics.top_k(outputs, y, { ignore_index = -100,
                                                  k = 1 }))
    assert.same({ { 0, 1, 0 }, { 0, 0, 0 }, { 0, 0, 1 } },
                metrics.confusion(outputs, y, o):totable())
    raises("targets from -100 to 2 are no classes", metrics.f1, outputs, y)
    raises("metrics.accuracy: 2 targets are no classes (option " ..
           "'ignore_index' leaves out those of an id)", metrics.accuracy,
           outputs, y)
    raises("1 targets are no classes", metrics.accuracy, outputs,
           ids(2, 3, 0, 0))
  end)

  it("take numbers that are whole for ids, and no others", function()
    assert.equal(0.75, metrics.accuracy(outputs, fnn.tensor { 2, 0, 1, 0 }))
    for _, v in ipairs { 0.5, 0 / 0 } do
      local y = fnn.tensor { 2, 0, 1, v }
      raises("1 targets are no classes", metrics.accuracy, outputs, y)
      raises("are no classes", metrics.f1, outputs, y)
    end
  end)

  it("refuse batches of other classes", function()
    for _, name in ipairs { "confusion", "f1" } do
      local stream = metrics.stream(name):add(outputs, ids(2, 0, 1, 2))
      raises(("metrics.%s: outputs of 4 classes, and before of others")
             :format(name), stream.add, stream, fnn.ones(1, 4), ids(0))
    end
  end)

  it("refuse options of another kind", function()
    local y = ids(2, 0, 1, 2)
    raises("metrics.accuracy: option 'dim': expected an integer, got 1.5",
           metrics.accuracy, outputs, y, { dim = 1.5 })
    raises("metrics.f1: option 'positive': expected an id of 0 or more, got ",
           metrics.f1, outputs, y, { positive = "a" })
    raises("metrics.accuracy: option 'threshold': expected a number, got ",
           metrics.stream, "accuracy", { threshold = "half" })
    raises("metrics.classes: option 'dim': expected an integer, got 1.5",
           metrics.classes, outputs, { dim = 1.5 })
    raises("metrics.confusion: option 'classes': expected an integer of 1 " ..
           "or more, got -1", metrics.confusion, outputs, y, { classes = -1 })
    raises("metrics.confusion: option 'classes': 2, but outputs have 3",
           metrics.confusion, outputs, ids(0, 0, 0, 0), { classes = 2 })
  end)

  it("do not take nan for the highest of scores", function()
    local x = outputs:clone()
    x[1] = 0 / 0
    assert.equal(0.75, metrics.top_k(x, ids(2, 0, 1, 2), { k = 1 }))
    assert.equal(0.75, metrics.top_k(x, ids(2, 0, 1, 2), { k = 2 }))
  end)
end)

describe("metrics.stream", function()
  it("takes a name, a function of the library or one of a script", function()
    local y = ids(2, 0, 0, 2)
    for _, metric in ipairs { "accuracy", metrics.accuracy } do
      assert.equal(0.75, metrics.stream(metric):add(outputs, y):value())
    end
    local two = metrics.stream(metrics.top_k, { k = 2 })
    assert.equal(1, two:add(outputs, ids(2, 0, 2, 2)):value())
    local rows = metrics.stream(function(x) return #x end)
    rows:add(outputs, y):add(outputs:narrow(1, 1, 1), y:narrow(1, 1, 1))
    assert.equal((4 * 4 + 1) / 5, rows:value())
    assert.equal("MetricStream of top_k", tostring(two))
  end)

  it("starts again, alone or as another", function()
    local stream = metrics.stream "accuracy"
    stream:add(outputs, ids(2, 0, 0, 2))
    local other = stream:fresh()
    assert.equal(0.75, stream:value())
    assert.equal(1, other:add(outputs, ids(2, 0, 1, 2)):value())
    assert.equal(0, stream:reset():add(outputs, ids(0, 1, 2, 0)):value())
  end)

  it("goes on from its state", function()
    local x = fnn.normal(0, 1, { 10, 3 }, { generator = fnn.Generator(7) })
    local y = ids(0, 1, 2, 2, 1, 0, 0, 1, 2, 1)
    for _, name in ipairs { "accuracy", "auc", "confusion", "f1", "perplexity",
                            "r2" } do
      local t = name == "r2" and x * 2 or y
      local whole = metrics.stream(name):add(x, t)
      local one, two = metrics.stream(name), metrics.stream(name)
      one:add(x:narrow(1, 1, 3), t:narrow(1, 1, 3))
      one:add(x:narrow(1, 4, 2), t:narrow(1, 4, 2))
      two:load_state_dict(one:state_dict())
      one:reset()
      two:add(x:narrow(1, 6, 5), t:narrow(1, 6, 5))
      local a, b = whole:value(), two:value()
      if fnn.is_tensor(a) then a, b = a:totable(), b:totable() end
      assert.same(a, b, name)
    end
  end)

  it("says what is wrong", function()
    raises("metrics.stream: no metric 'acuracy' (did you mean 'accuracy'?)",
           metrics.stream, "acuracy")
    raises("metrics.stream: expected a metric or its name, got nil",
           metrics.stream)
    raises("metrics.precision: option 'average': expected 'binary', " ..
           "'macro', 'micro', 'weighted' or 'none', got 'marco' " ..
           "(did you mean 'macro'?)", metrics.stream, "precision",
           { average = "marco" })
    raises("metrics.f1: unknown option 'averge' (did you mean 'average'?)",
           metrics.f1, outputs, ids(1, 1, 1, 1), { averge = "macro" })
    raises("metrics.f1: option 'positive': no class 3", metrics.f1, outputs,
           ids(1, 1, 1, 1), { average = "binary", positive = 3 })
    raises("metrics.mae: outputs of shape (2, 1) and targets of shape (2) " ..
           "differ", metrics.mae, fnn.zeros(2, 1), fnn.zeros(2))
    raises("metrics.stream: the metric gave a table, expected a number",
           function()
             metrics.stream(function() return {} end):add(outputs, outputs)
           end)
  end)
end)
