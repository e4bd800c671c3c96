local fnn = require "fnn"
local nn = fnn.nn

local Residual = nn.module "Residual"
function Residual:init (inner)
  self.inner = inner
  self.scale = fnn.Param(fnn.ones(1))
  self.mean = fnn.zeros(2)
  self.seen = fnn.zeros({ 1 }, { dtype = "i64" })
end
function Residual:forward (x)
  return x + self.inner(x) * self.scale + self.mean
end

local function mixed ()
  return nn.Sequential(Residual(nn.Sequential(nn.Linear(2, 2), nn.ReLU(),
                                              nn.Dropout(0.5))),
                       nn.Linear(2, 1))
end

local function names (iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return list
end

describe("walks over a model", function ()
  it("name every part", function ()
    local m = mixed()
    assert.same({ "0.inner.0.weight", "0.inner.0.bias", "0.scale", "1.weight",
                  "1.bias" }, names(m:named_parameters()))
    assert.same({ "0.mean", "0.seen" }, names(m:named_buffers()))
    assert.same({ "", "0", "0.inner", "0.inner.0", "0.inner.1", "0.inner.2",
                  "1" }, names(m:named_modules()))
    assert.equal(5, #m:parameters())
    assert.equal(2, #m:buffers())
    assert.equal(7, #m:modules())
    assert.equal(2, #m:children())
    assert.equal(10, (m:parameter_count()))
  end)

  it("find parts by their paths", function ()
    local m = mixed()
    assert.equal(m[1].inner[1].weight, m:get "0.inner.0.weight")
    assert.equal(m[2], m:get "1")
    assert.equal(m, m:get "")
    assert.is_nil(m:get "0.nothing.weight")
    assert.is_nil(m:get "9")
  end)

  it("meet each part once, in cycles too", function ()
    local shared = nn.Linear(2, 2)
    local m = nn.Sequential(shared, nn.ReLU(), shared)
    m.self = m
    assert.equal(2, #m:parameters())
    assert.equal(3, #m:modules())
    local counts = {}
    m:apply(function (x) counts[x] = (counts[x] or 0) + 1 end)
    assert.same({ [m] = 1, [shared] = 1, [m[2]] = 1 }, counts)
  end)

  it("apply to children before their parents", function ()
    local order = {}
    mixed():apply(function (x) order[#order + 1] = x.__name end)
    assert.equal("Linear ReLU Dropout Sequential Residual Linear Sequential",
                 table.concat(order, " "))
  end)

  it("survive a field that shares its Param", function ()
    local m = Residual(nn.Linear(2, 2))
    m.again = m.inner.weight
    assert.same({ "inner.weight", "inner.bias", "scale" },
                names(m:named_parameters()))
  end)
end)

describe("train and eval", function ()
  it("reach through containers and classes", function ()
    local m = mixed()
    local x = fnn.ones(4, 2)
    assert.is_true(m[1].inner[3].training)
    assert.equal(m, m:eval())
    for _, part in ipairs(m:modules()) do assert.is_false(part.training) end
    assert.same(m(x):totable(), m(x):totable())
    m:train()
    for _, part in ipairs(m:modules()) do assert.is_true(part.training) end
    m:train(false)
    assert.is_false(m[1].inner[3].training)
    m[1].inner[3].training = true
    local d = m[1].inner[3]
    assert.not_same(d(fnn.ones(64)):totable(), d(fnn.ones(64)):totable())
  end)
end)

describe("freeze", function ()
  it("stops gradients, keeps the parameters listed", function ()
    local m = mixed():eval()
    assert.equal(m[1], m[1]:freeze())
    assert.equal(5, #m:parameters())
    assert.equal(2, #m:trainable_parameters())
    assert.same({ 10, 3 }, { m:parameter_count() })
    m(fnn.ones(3, 2)):sum():backward()
    for name, p in m:named_parameters() do
      assert.equal(name:sub(1, 1) == "1", p:grad() ~= nil, name)
    end
    assert.is_false(m[1](fnn.ones(3, 2)):has_graph())
    m:unfreeze()
    assert.equal(5, #m:trainable_parameters())
    m:zero_grad()
    for _, p in ipairs(m:parameters()) do assert.is_nil(p:grad()) end
  end)
end)

describe("to", function ()
  it("moves Params in place and buffers with them", function ()
    local m = mixed():eval()
    local before, x = m:parameters(), fnn.randn(3, 2)
    local y = m(x)
    assert.equal(m, m:to("f64"))
    assert.same(before, m:parameters())
    for i, p in ipairs(m:parameters()) do
      assert.equal(before[i], p)
      assert.equal("f64", p:dtype())
    end
    assert.equal("f64", m[1].mean:dtype())
    assert.equal("i64", m[1].seen:dtype())
    local z = m(x:to("f64"))
    assert.equal("f64", z:dtype())
    for i, row in ipairs(z:totable()) do
      assert.near(y:totable()[i][1], row[1], 1e-5)
    end
    m:to { dtype = "f32", device = "cpu" }
    assert.same(y:totable(), m(x):totable())
  end)

  it("keeps tied buffers tied", function ()
    local a, b = Residual(nn.ReLU()), Residual(nn.ReLU())
    b.mean = a.mean
    nn.Sequential(a, b):to("f64")
    assert.equal("f64", b.mean:dtype())
    assert.is_true(rawequal(a.mean, b.mean))
  end)

  it("says what is wrong before it changes anything", function ()
    local m = mixed()
    assert.error_matches(function () m:to("i64") end,
                         "to: expected a float dtype for a model, or a " ..
                         "device (cpu or cuda:N), got 'i64'",
                         1, true)
    assert.error_matches(function () m:to("f64", "cuda:77") end, "cuda")
    assert.error_matches(function () m:to(3) end,
                         "to: expected a device or a dtype, got a number",
                         1, true)
    assert.error_matches(function () m:to { typ = "f64" } end,
                         "unknown option 'typ'", 1, true)
    assert.equal("f32", m[2].weight:dtype())
  end)
end)
