local fnn = require "fnn"
local nn = fnn.nn

local Residual = nn.module "Residual"
function Residual:init (inner) self.inner = inner end
function Residual:forward (x) return x + self.inner(x):relu() end

local function names (iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return list
end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  assert.truthy(message:find("module_spec.lua:", 1, true), message)
end

describe("a module written in Lua", function ()
  it("is called and computes", function ()
    local m = Residual(nn.Linear(2, 2, { dtype = "f64" }))
    m.inner.weight:set(fnn.tensor { { 1, 2 }, { -3, 4 } })
    m.inner.bias:set(fnn.tensor { 0.5, -0.5 })
    local y = m(fnn.tensor({ { 1, -1 } }, { dtype = "f64" }))
    assert.same({ { 1, -1 } }, y:totable())  -- relu of (-0.5, -7.5)
    y = m(fnn.tensor({ { 1, 1 } }, { dtype = "f64" }))
    assert.same({ { 4.5, 1.5 } }, y:totable())
  end)

  it("passes all arguments and results", function ()
    local M = nn.module "M"
    function M:forward (...) return select("#", ...), ... end
    assert.same({ 3, 1, nil, 3, n = 4 }, table.pack(M()(1, nil, 3)))
  end)

  it("is the same kind of value as one made in C", function ()
    local a, b = Residual(nn.ReLU()), nn.ReLU()
    assert.equal("userdata", type(a))
    assert.equal(getmetatable(a), getmetatable(b))
    assert.equal("fnn.Module", getmetatable(a))
  end)

  it("can yield from its forward", function ()
    local M = nn.module "M"
    function M:forward (x) return x + coroutine.yield(x) end
    local m = nn.Sequential(M(), M())
    local run = coroutine.wrap(function () return m(1) end)
    assert.equal(1, run())
    assert.equal(11, run(10))
    assert.equal(111, run(100))
  end)

  it("raises an error value of its own unchanged", function ()
    local M, value = nn.module "M", {}
    function M:forward () error(value) end
    local _, e = pcall(nn.Sequential(M()), 1)
    assert.equal(value, e)
  end)

  it("inherits", function ()
    local Scaled = nn.module("Scaled", Residual)
    function Scaled:init (inner, scale)
      Scaled.super.init(self, inner)
      self.scale = scale
    end
    function Scaled:forward (x)
      return Residual.forward(self, x) * self.scale
    end
    local m = Scaled(nn.Identity(), 3)
    assert.same({ 6, -3 }, m(fnn.tensor { 1, -1 }):totable())
    assert.is_true(m:is_a(Scaled))
    assert.is_true(m:is_a(Residual))
    assert.is_false(m:is_a(nn.Linear))
  end)

  it("inherits from a layer made in C", function ()
    local Square = nn.module("Square", nn.Linear)
    function Square:init (n)
      nn.Linear.init(self, n, n)
      self.act = nn.ReLU()
    end
    function Square:forward (x)
      return self.act(nn.Linear.forward(self, x))
    end
    local m = Square(2)
    m.weight:set(fnn.tensor { { 1, 0 }, { 0, -1 } })
    m.bias:set(fnn.zeros(2))
    assert.same({ { 2, 0 } }, m(fnn.tensor { { 2, 3 } }):totable())
    assert.same({ "weight", "bias" }, names(m:named_parameters()))
  end)

  it("says when the init of its parent was forgotten", function ()
    local Square = nn.module("Square", nn.Linear)
    function Square:init () end
    fails("a module without a function (was the init of its parent called?)",
          function () Square()(fnn.zeros(1, 2)) end)
  end)

  it("has try_ forms of its class and its methods", function ()
    local m = Residual(nn.Linear(2, 2))
    local y, message = m:try_forward(fnn.zeros(1, 3))
    assert.is_nil(y)
    assert.truthy(message:find("inner dimensions", 1, true))
    assert.same({ 1, 2 }, m:try_forward(fnn.zeros(1, 2)):shape())
    y, message = nn.try_Linear(3)
    assert.is_nil(y)
    assert.truthy(message:find("Linear: outputs", 1, true))
    assert.equal("Linear", nn.try_Linear(3, 3).__name)
  end)

  it("cannot be used when released", function ()
    local m = nn.ReLU()
    m:release()
    fails("attempt to use a released fnn.Module",
          function () m(fnn.zeros(1)) end)
  end)

  it("nests deep", function ()
    local m = nn.Identity()
    for _ = 1, 60 do m = Residual(m) end
    assert.equal(61, m(fnn.ones(1)):item())
    assert.equal(61, #m:modules())
  end)
end)

describe("an error in a forward", function ()
  it("names the place in the model", function ()
    local m = nn.Sequential(Residual(nn.Linear(4, 4)), nn.Linear(5, 2))
    fails("(in 0.inner: Linear)", function () m(fnn.zeros(1, 3)) end)
    fails("(in 1: Linear)", function () m(fnn.zeros(1, 4)) end)
    fails("(in Linear)", function () m[2](fnn.zeros(1, 4)) end)
    local Bad = nn.module "Bad"
    function Bad:forward (x) return x:transpose(1, 5) end
    fails("out of range for a rank-2 tensor of shape (1, 4) (in 2.inner: Bad)",
          function ()
      nn.Sequential(nn.Identity(), nn.Identity(), Residual(Bad()))
        (fnn.zeros(1, 4))
    end)
  end)

  it("leaves other errors as they are", function ()
    local _, message = pcall(function () fnn.zeros(2, 3):transpose(1, 5) end)
    assert.is_nil(message:find("(in ", 1, true))
  end)

  it("says that there is no forward", function ()
    local M = nn.module "M"
    fails("M has no forward: define function M:forward (x)",
          function () M()(1) end)
    function M:foward () end
    fails("M has no forward (did you mean it by 'foward'?)",
          function () M()(1) end)
  end)
end)

describe("a field", function ()
  it("is kept in the order of first assignment", function ()
    local M = nn.module "M"
    function M:init ()
      self.z = nn.Linear(1, 1, { bias = false })
      self.a = fnn.Param(fnn.ones(2))
      self.mean = fnn.zeros(3)
      self.k = 5
      self.c = nn.Linear(1, 1, { bias = false })
      self.a = fnn.Param(fnn.ones(4))
      self.gone = nil
    end
    local m = M()
    assert.same({ "z.weight", "a", "c.weight" }, names(m:named_parameters()))
    assert.same({ "mean" }, names(m:named_buffers()))
    assert.same({ "z", "c" }, names(m:named_children()))
    assert.same({ "z", "a", "mean", "c" }, names(pairs(m)))
    assert.same({ "z.weight", "a", "mean", "c.weight" },
                table.move(m:state_dict(), 1, 9, 1, {}))
    assert.equal(5, m.k)
    m.gone = nn.ReLU()
    assert.same({ "z", "c", "gone" }, names(m:named_children()))
  end)

  it("of a layer made in C ties it", function ()
    local a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    assert.not_equal(a.weight, b.weight)
    b.weight = a.weight
    assert.equal(a.weight, b.weight)
    b.bias = a.bias
    local x = fnn.randn(2, 3)
    assert.same(a(x):totable(), b(x):totable())
    local m = nn.Sequential(a, b)
    assert.equal(2, #m:parameters())
    m(x):sum():backward()
    assert.truthy(a.weight:grad())
    assert.same({ "0.weight", "0.bias" }, names(m:named_parameters()))
  end)

  it("of a layer made in C takes only what fits", function ()
    local l = nn.Linear(3, 2)
    fails("Linear.weight: expected a fnn.Param, got fnn.Tensor",
          function () l.weight = fnn.zeros(2, 3) end)
    fails("Linear.weight: expected a fnn.Param, got nil",
          function () l.weight = nil end)
    fails("Linear.weight: expected shape (2, 3), got (3, 3)",
          function () l.weight = fnn.Param(fnn.zeros(3, 3)) end)
    assert.same({ 1, 2 }, l(fnn.zeros(1, 3)):shape())
    l = nn.Linear(3, 2, { bias = false })
    l.bias = fnn.Param(fnn.ones(2))
    assert.same({ { 1, 1 } }, l(fnn.zeros(1, 3)):totable())
  end)

  it("that is misspelt is named", function ()
    local m = Residual(nn.Linear(2, 2))
    fails("Residual has no 'iner' (did you mean 'inner'?)",
          function () return m.iner end)
    fails("Residual has no 'trian' (did you mean 'train'?)",
          function () m:trian() end)
    fails("Linear has no 'wieght' (did you mean 'weight'?)",
          function () return m.inner.wieght end)
  end)

  it("that may be absent can be asked for", function ()
    local m = Residual(nn.Linear(2, 2, { bias = false }))
    assert.is_nil(m.inner.bias)
    assert.is_nil(m.something)
    m.norm1 = nn.Identity()
    assert.is_nil(m.norm2)
    m.inner2 = nil
    assert.is_nil(m.inner2)
  end)

  it("with a part of the model has a proper name", function ()
    local m = Residual()
    fails("Residual.to: to is a method: choose another name for a ReLU",
          function () m.to = nn.ReLU() end)
    fails("Residual: 'a.b' is no name for a Param",
          function () m["a.b"] = fnn.Param(fnn.zeros(1)) end)
    fails("Residual.act: the class ReLU is no module yet: call it, ReLU()",
          function () m.act = nn.ReLU end)
    fails("a field has a name, got a key that is a boolean",
          function () m[true] = 1 end)
  end)

  it("with a table of modules becomes a ModuleList or a ModuleDict",
     function ()
    local m = Residual()
    m.layers = { nn.ReLU(), nn.Linear(1, 1), { nn.Tanh() } }
    assert.is_true(m.layers:is_a(nn.ModuleList))
    assert.equal(3, #m.layers)
    assert.is_true(m.layers[3]:is_a(nn.ModuleList))
    m.heads = { b = nn.Linear(1, 1), a = nn.ReLU() }
    assert.is_true(m.heads:is_a(nn.ModuleDict))
    assert.same({ "layers.1.weight", "layers.1.bias", "heads.b.weight",
                  "heads.b.bias" }, names(m:named_parameters()))
    m.words = { "a", "b" }
    assert.equal("table", type(m.words))
    fails("Residual.mixed: a table with modules and other values",
          function () m.mixed = { nn.ReLU(), 3 } end)
  end)

  it("with a table that is filled later is seen", function ()
    local m = Residual()
    m.layers = {}
    for i = 1, 3 do m.layers[i] = nn.Linear(1, 1, { bias = false }) end
    assert.equal(3, #m:parameters())
    assert.is_true(m.layers:is_a(nn.ModuleList))
  end)

  it("with the result of a forward is no buffer", function ()
    local m = Residual(nn.Linear(2, 2))
    m.last = m(fnn.ones(1, 2))
    assert.same({}, m:buffers())
    assert.same({ 1, 2 }, m.last:shape())
  end)
end)

describe("containers", function ()
  it("have places from 1 and names from 0", function ()
    local a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 2)
    local s = nn.Sequential(a, b, c)
    assert.equal(3, #s)
    assert.equal(a, s[1])
    assert.equal(c, s[-1])
    assert.is_nil(s[4])
    assert.same({ "0", "1", "2" }, names(s:named_children()))
    assert.same({ "0.weight", "0.bias", "2.weight", "2.bias" },
                names(s:named_parameters()))
    local seen = {}
    for i, m in ipairs(s) do seen[i] = m end
    assert.same({ a, b, c }, seen)
    fails("places count from 1", function () return s[0] end)
    fails("out of range", function () return s[5] end)
    fails("Sequential: place 5 is out of range (there are 3",
          function () s[5] = nn.ReLU() end)
  end)

  it("grow and shrink", function ()
    local a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    local l = nn.ModuleList { a }
    assert.equal(l, l:append(c))
    l:insert(2, b)
    assert.same({ a, b, c }, l:children())
    assert.equal(a, l:remove(1))
    assert.same({ b, c }, l:children())
    assert.equal(c, l:remove())
    l:extend { a, c }
    assert.same({ b, a, c }, l:children())
    l[2] = nn.Identity()
    l[#l + 1] = a
    l[#l] = nil
    assert.equal(3, #l)
    fails("only the last child can be removed", function () l[1] = nil end)
    fails("ModuleList[4]: expected a module, got a number",
          function () l[4] = 3 end)
  end)

  it("take modules only", function ()
    fails("Sequential: element 2: expected a module, got the class ReLU: " ..
          "call it, ReLU()",
          function () nn.Sequential(nn.ReLU(), nn.ReLU) end)
    fails("Sequential: element 1: expected a module, got nil",
          function () nn.Sequential(nil, nn.ReLU()) end)
    fails("ModuleDict: 'a': expected a module, got a number",
          function () nn.ModuleDict { a = 1 } end)
    fails("ModuleList has no forward",
          function () nn.ModuleList { nn.ReLU() } (fnn.zeros(1)) end)
  end)

  it("keep modules by name", function ()
    local d = nn.ModuleDict { b = nn.ReLU(), a = nn.Linear(1, 1) }
    assert.same({ "a", "b" }, d:keys())
    assert.same({ "a.weight", "a.bias" }, names(d:named_parameters()))
    d.c = nn.Tanh()
    assert.same({ "a", "b", "c" }, d:keys())
  end)

  it("of nothing are the identity", function ()
    assert.same({ 1, 2 }, nn.Sequential()(fnn.tensor { 1, 2 }):totable())
  end)
end)

describe("the collector", function ()
  it("owns trees with cycles", function ()
    collectgarbage()
    local memory = rawget(fnn, "memory")
    local before = memory and memory().objects
    local gone = setmetatable({}, { __mode = "v" })
    do
      local a, b = Residual(), Residual(nn.Linear(64, 64))
      a.inner, b.back = b, a
      a.me = a
      assert.equal(2, #a:parameters())
      gone[1], gone[2], gone[3] = a, b, b.inner
      gone[4] = b.inner.weight
    end
    collectgarbage()
    collectgarbage()
    assert.same({}, gone)
    if before then assert.equal(before, memory().objects) end
  end)

  it("keeps what a Param is asked for by one box", function ()
    local l = nn.Linear(2, 2)
    local key = { [l.weight] = true }
    collectgarbage()
    assert.is_true(key[l.weight])
  end)
end)
