local fixture = require "spec.support.fixture"
local fnn = require "fnn"
local cases = require "spec.fixtures.nn"
local nn = fnn.nn

local function near (case, numbers, x, what)
  local have = fixture.flatten(x:totable())
  assert.equal(#numbers, #have, what)
  for i, v in ipairs(numbers) do
    assert.near(v, have[i], case.tolerance or 1e-12, what)
  end
end

describe("a layer", function ()
  for i, case in ipairs(cases.layers) do
    it(("%d: %s has PyTorch's values and gradients"):format(i, case[1]),
       function ()
      local env = { nn = nn }
      local layer = load("return " .. case[1], case[1], "t", env)():to("f64")
      local names = {}
      for name, p in layer:named_parameters() do
        local want = case.parameters[#names + 1]
        assert.equal(want[1], name)
        p:set(fixture.tensor(want[2]))
        names[#names + 1] = name
      end
      assert.equal(#case.parameters, #names)
      local x = fixture.tensor(case.input)
      if case.gradient then x = fnn.Param(x) end
      local y = layer(x)
      assert.same(case.output[1], y:shape())
      near(case, case.output[2], y, "output")
      if y:has_graph() then
        y:backward(fixture.tensor { case.output[1], case.upstream })
      end
      if case.gradient and x:grad() then
        near(case, case.gradient, x:grad(), "gradient of the input")
      end
      for k, p in ipairs(layer:parameters()) do
        near(case, case.parameters[k][3], p:grad(),
             "gradient of " .. names[k])
      end
    end)
  end
end)

describe("Linear", function ()
  it("draws as PyTorch does, from the generator given", function ()
    local g = fnn.Generator(7)
    local a = nn.Linear(400, 100, { generator = g })
    local bound = 1 / math.sqrt(400)
    for _, p in ipairs { a.weight, a.bias } do
      assert.is_true(p:max():item() <= bound)
      assert.is_true(p:min():item() >= -bound)
    end
    assert.near(bound / math.sqrt(3), a.weight:std():item(), 0.01 * bound)
    assert.near(0, a.weight:mean():item(), 0.02 * bound)
    local b = nn.Linear(400, 100, { generator = fnn.Generator(7) })
    assert.same(a.bias:totable(), b.bias:totable())
    assert.same(a.weight:totable(), b.weight:totable())
  end)

  it("keeps dtype and the absence of a bias", function ()
    local l = nn.Linear(2, 3, { bias = false, dtype = "f64" })
    assert.equal("f64", l.weight:dtype())
    assert.same({ 3, 2 }, l.weight:shape())
    assert.is_nil(l.bias)
  end)

  it("says what is wrong with its arguments", function ()
    local function fails (text, f)
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
      assert.truthy(message:find("layers_spec.lua:", 1, true), message)
    end
    fails("Linear: outputs (argument 2): expected a whole number of at least "
          .. "1, got nothing", function () nn.Linear(3) end)
    fails("Linear: inputs (argument 1): expected a whole number of at least "
          .. "1, got -2", function () nn.Linear(-2, 3) end)
    fails("Linear: unknown option 'bais' (did you mean 'bias'?)",
          function () nn.Linear(2, 3, { bais = false }) end)
    fails("Linear: option 'bias': expected true or false, got number",
          function () nn.Linear(2, 3, { bias = 1 }) end)
    fails("Linear: inputs (argument 1): expected a whole number of at least "
          .. "1, got '2'", function () nn.Linear("2", 3) end)
    fails("ELU: argument 1: expected a table of options, got string",
          function () nn.ELU "1" end)
    fails("Flatten: expected at most 2 arguments, got 3",
          function () nn.Flatten(1, 2, 3) end)
    fails("SwiGLU: expected at most 1 argument, got 2",
          function () nn.SwiGLU(1, 2) end)
    fails("ModuleDict: expected a table of modules, got a number",
          function () nn.ModuleDict(3) end)
    fails("GELU: unknown option 'form' (expected approximate)",
          function () nn.GELU { form = "tanh" } end)
    fails("Linear: argument 3: expected a table of options, got boolean",
          function () nn.Linear(2, 3, false) end)
    fails("Linear: expected at most 3 arguments, got 4",
          function () nn.Linear(2, 3, {}, 4) end)
    fails("linear: the inner dimensions of x (1, 4) and weight (3, 2)",
          function () nn.Linear(2, 3)(fnn.zeros(1, 4)) end)
    fails("Linear: expected a tensor, got nothing (in Linear)",
          function () nn.Linear(2, 3)() end)
    fails("Linear: expected one tensor, got a second argument",
          function () nn.Linear(2, 3)(fnn.zeros(1, 2), 1) end)
    fails("ReLU takes no arguments, got fnn.Tensor",
          function () nn.ReLU(fnn.zeros(2)) end)
    fails("LeakyReLU: unknown option 'slop' (did you mean 'slope'?)",
          function () nn.LeakyReLU { slop = 1 } end)
    fails("LayerNorm: expected a shape that ends in (3), got (2, 2)",
          function () nn.LayerNorm(3)(fnn.zeros(2, 2)) end)
    fails("Embedding: ids must be integers",
          function () nn.Embedding(3, 2)(fnn.zeros(2)) end)
    fails("id 3 at position 1 is out of range for 3 rows (ids count from 0)",
          function () nn.Embedding(3, 2)(fnn.tensor({ 3 },
                                                    { dtype = "i64" })) end)
    fails("Softmax: dim: expected a dimension",
          function () nn.Softmax(0) end)
    fails("fnn.nn has no 'Liner' (did you mean 'Linear'?)",
          function () return nn.Liner end)
  end)
end)

describe("Dropout", function ()
  it("takes p among its options too", function ()
    for _, class in ipairs { nn.Dropout, nn.Dropout1d, nn.Dropout2d } do
      assert.equal(tostring(class(0.25)), tostring(class { p = 0.25 }))
    end
  end)

  it("zeroes a share of p in training and scales the rest", function ()
    local d = nn.Dropout(0.3, { generator = fnn.Generator(1) })
    local n = 100000
    local y = d(fnn.ones(n)):totable()
    local zeros = 0
    for _, v in ipairs(y) do
      if v == 0 then zeros = zeros + 1 else assert.near(1 / 0.7, v, 1e-6) end
    end
    -- four standard deviations of a binomial
    assert.near(0.3, zeros / n, 4 * math.sqrt(0.3 * 0.7 / n))
  end)

  it("draws anew each time, the same from the same seed", function ()
    local function draws ()
      local d = nn.Dropout(0.5, { generator = fnn.Generator(5) })
      local x = fnn.ones(64)
      return d(x):totable(), d(x):totable()
    end
    local a, b = draws()
    local c, d = draws()
    assert.same(a, c)
    assert.same(b, d)
    assert.not_same(a, b)
  end)

  it("is the identity in evaluation and for p = 0", function ()
    local x = fnn.randn(10)
    assert.same(x:totable(), nn.Dropout(0.5):eval()(x):totable())
    assert.same(x:totable(), nn.Dropout(0)(x):totable())
    assert.same(x:totable(), nn.Dropout(1):eval()(x):totable())
  end)

  it("gives zeros, and no NaN, for p = 1", function ()
    assert.same({ 0, 0, 0 }, nn.Dropout(1)(fnn.ones(3)):totable())
  end)

  it("takes a probability", function ()
    assert.error_matches(function () nn.Dropout(1.5) end,
                         "Dropout: expected a probability from 0 to 1, got 1.5",
                         1, true)
  end)
end)

describe("losses", function ()
  local x = fnn.tensor { { 1, 2, 3 }, { 0, 1, 0 } }
  local y = fnn.tensor({ 2, 0 }, { dtype = "i64" })

  -- log sum exp minus the logit of the class
  local a = math.log(math.exp(1) + math.exp(2) + math.exp(3)) - 3
  local b = math.log(2 + math.exp(1))

  it("are functions and modules of two arguments", function ()
    assert.near((a + b) / 2, nn.cross_entropy(x, y):item(), 1e-6)
    assert.near((a + b) / 2, nn.CrossEntropyLoss()(x, y):item(), 1e-6)
    local z = fnn.tensor { { 1, 0, 3 }, { 3, 1, 0 } }
    assert.near(13 / 6, nn.mse_loss(x, z):item(), 1e-6)
    assert.near(13, nn.MSELoss { reduction = "sum" } (x, z):item(), 1e-6)
  end)

  it("keep their options; a weight moves with the model", function ()
    local weight = fnn.tensor { 3, 1, 1 }
    local loss = nn.CrossEntropyLoss { weight = weight, reduction = "sum" }
    assert.near(a + 3 * b, loss(x, y):item(), 1e-5)
    local m = nn.ModuleDict { loss = loss }:to("f64")
    assert.equal("f64", m.loss.weight:dtype())
    assert.near(a + 3 * b, loss(x:to("f64"), y):item(), 1e-12)
  end)

  it("know their options", function ()
    assert.error_matches(function ()
      nn.CrossEntropyLoss { label_smothing = 0.1 }
    end, "CrossEntropyLoss: unknown option 'label_smothing' (did you mean " ..
         "'label_smoothing'?)", 1, true)
    assert.error_matches(function ()
      nn.CrossEntropyLoss { label_smoothing = 1.5 }
    end, "CrossEntropyLoss: option 'label_smoothing': expected a number " ..
         "from 0 to 1, got 1.5", 1, true)
    assert.error_matches(function () nn.MSELoss { weight = 1 } end,
                         "MSELoss: unknown option 'weight'", 1, true)
  end)
end)

describe("nn.init", function ()
  for _, case in ipairs(cases.spreads) do
    local name, shape, options, std = table.unpack(case)
    it(("%s of (%s) has the spread of its law"):format(
       name, table.concat(shape, ", ")), function ()
      options.generator = fnn.Generator(3)
      local p = fnn.Param(fnn.zeros(shape))
      assert.equal(p, nn.init[name](p, options))
      local n = p:numel()
      assert.near(std, p:std():item(), std * 4 / math.sqrt(n))
      assert.near(0, p:mean():item(), std * 4 / math.sqrt(n))
      if name:find "uniform" then
        assert.is_true(p:max():item() <= std * math.sqrt(3) * 1.000001)
      end
    end)
  end

  it("fills with constants and plain draws", function ()
    local p = fnn.Param(fnn.zeros(2, 2))
    assert.same({ { 1, 1 }, { 1, 1 } }, nn.init.ones_(p):totable())
    assert.same({ { 0, 0 }, { 0, 0 } }, nn.init.zeros_(p):totable())
    assert.same({ { 3, 3 }, { 3, 3 } }, nn.init.constant_(p, 3):totable())
    local x = nn.init.uniform_(fnn.zeros(1000), 2, 3)
    assert.is_true(x:min():item() >= 2 and x:max():item() <= 3)
    x = nn.init.normal_(fnn.zeros(10000), 5, 2)
    assert.near(5, x:mean():item(), 0.1)
    assert.near(2, x:std():item(), 0.1)
  end)

  it("makes tensors by both laws", function ()
    local x = fnn.xavier({ 300, 200 }, { generator = fnn.Generator(1) })
    assert.is_true(x:max():item() <= math.sqrt(6 / 500))
    assert.near(math.sqrt(2 / 500), x:std():item(), 0.001)
    x = fnn.kaiming({ 300, 200 }, { dtype = "f64" })
    assert.equal("f64", x:dtype())
    assert.near(math.sqrt(2 / 200), x:std():item(), 0.002)
  end)

  it("says what is wrong", function ()
    local function fails (text, ...)
      assert.error_matches(..., text, 1, true)
    end
    fails("at least 2 dims (got shape (3))",
          function () nn.init.xavier_normal_(fnn.zeros(3)) end)
    fails("unknown option 'gian' (did you mean 'gain'?)", function ()
      nn.init.xavier_normal_(fnn.zeros(3, 3), { gian = 1 })
    end)
    fails("no gain for 'relo' (did you mean 'relu'?)",
          function () nn.init.gain("relo") end)
    fails("expected a Param or a tensor, got nil",
          function () nn.init.zeros_() end)
  end)
end)
