-- errors_spec.lua - how errors leave the engine: where they are said to be,
-- through callbacks, coroutines and try_ forms; released boxes; what the
-- constructors say to wrong arguments.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local function message (f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

local function says (part, f, ...)
  local text = message(f, ...)
  if type(text) ~= "string" or not text:find(part, 1, true) then
    error(("expected '%s' in: %s"):format(part, tostring(text)), 2)
  end
  return text
end

-- The message of a script's error.
local function error_of (name, script, ...)
  return message(assert(load(script, "@" .. name)), ...)
end

local function starts (start, text)
  assert.equal(start, text:sub(1, #start))
end

local a, b = fnn.ones(2, 3), fnn.ones(2, 3)

describe("an error's place", function ()
  it("is the line of the script", function ()
    starts("train.lua:2: matmul: ", error_of("train.lua", [[
      local a = ...
      a:matmul(a)]], a))
  end)

  it("is the first caller outside the library's own Lua", function ()
    local model = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))
    local text = error_of("deep.lua", [[
      local model, x = ...
      model(x)
      return 1]], model, fnn.ones(1, 2))
    starts("deep.lua:2: ", text)
    assert.truthy(text:find("(in 1: Linear)", 1, true))
    starts("deep.lua:2: ", error_of("deep.lua", [[
      local model = ...
      model:load "no such file"
      return 1]], model))
  end)

  it("is in the function that called, through calls of C", function ()
    starts("deep.lua:3: reshape: ", error_of("deep.lua", [[
      local fnn = ...
      local function inner (x)
        return x:reshape(7), 1
      end
      fnn.no_grad(function () return inner(fnn.ones(2, 3)) end)]], fnn))
  end)

  it("comes with the op and both shapes", function ()
    local text = says("(2, 3)", function () return a + fnn.ones(4) end)
    assert.truthy(text:find "add: ")
    assert.truthy(text:find "%(4,?%)")
  end)
end)

describe("an error at depth", function ()
  local function deep (n, x)
    if n == 0 then return x:matmul(x) end
    return (fnn.no_grad(deep, n - 1, x + 1))
  end

  it("leaves no objects, and the mode of gradients", function ()
    says("matmul", deep, 20, a)
    collectgarbage()
    local before = fnn.memory().objects
    for _ = 1, 20 do says("matmul", deep, 20, a) end
    collectgarbage()
    assert.equal(before, fnn.memory().objects)
    assert.is_true(fnn.is_grad_enabled())
  end)

  it("passes many pcalls, a table unchanged", function ()
    local thrown = { code = 7 }
    local function passes (n)
      if n == 0 then error(thrown) end
      local ok, e = pcall(passes, n - 1)
      assert(not ok)
      a:sum()
      error(e, 0)
    end
    assert.equal(thrown, message(passes, 100))
  end)
end)

describe("an error in a callback", function ()
  -- The error of a pass back through a hook.
  local function hooked (hook)
    local y = fnn.Param(fnn.ones(3)) * 2
    y:register_hook(hook)
    return message(y.backward, y:sum())
  end

  it("is raised again unchanged", function ()
    for _, value in ipairs { {}, 42, "text", false } do
      assert.equal(value, hooked(function () error(value, 0) end))
    end
    assert.is_nil(hooked(function () error() end))
  end)

  it("has the callback's line", function ()
    starts("hook.lua:3: reshape: ", error_of("hook.lua", [[
      local y = ...
      y:register_hook(function (g)
        return g:reshape(77), 1
      end)
      y:sum():backward()]], fnn.Param(fnn.ones(3)) * 2))
  end)

  it("leaves the engine usable, and nothing held", function ()
    collectgarbage()
    local before = fnn.memory()
    for _ = 1, 10 do hooked(function () error "no" end) end
    collectgarbage()
    local after = fnn.memory()
    assert.equal(before.objects, after.objects)
    assert.equal(before.nodes, after.nodes)
    local p = fnn.Param(fnn.full({ 3 }, 2));
    (p * p):sum():backward()
    assert.same({ 4, 4, 4 }, p:grad():totable())
  end)

  it("lets the callback go", function ()
    local seen = setmetatable({}, { __mode = "k" })
    for _ = 1, 10 do
      local f = function () return seen end
      seen[f] = true
      pcall(a.register_hook, a, f)  -- plain data: no gradient reaches it
    end
    collectgarbage()
    assert.is_nil(next(seen))
  end)

  it("in a callback in a callback is that of the innermost", function ()
    local thrown = {}
    assert.equal(thrown, hooked(function ()
      fnn.enable_grad(function ()
        local z = fnn.Param(fnn.ones(2)) * 3
        z:register_hook(function () error(thrown) end)
        z:sum():backward()
      end)
    end))
  end)

  it("says what a derivative must return", function ()
    local p = fnn.Param(fnn.ones(3))
    local y = fnn.record(p * 1, "mine", { p }, function () return "no" end)
    says("expected a tensor or nil, got string", y.backward, y:sum())
    y = fnn.record(p * 1, "mine", { p }, function () return fnn.ones(9) end)
    local text = message(y.backward, y:sum())
    assert.truthy(text:find "%(3" and text:find "%(9")
  end)

  it("may release what the engine is using", function ()
    local p = fnn.Param(fnn.ones(3))
    local y = p * 2
    y:register_hook(function (g)
      y:release()
      g:release()
      return fnn.full({ 3 }, 5)
    end)
    y:sum():backward()
    assert.same({ 10, 10, 10 }, p:grad():totable())
  end)
end)

describe("in a coroutine", function ()
  it("an error is raised in that coroutine", function ()
    local co = coroutine.create(function ()
      coroutine.yield(a:sum():item())
      return a:matmul(b)
    end)
    assert.same({ true, 6 }, { coroutine.resume(co) })
    assert.equal("suspended", coroutine.status(co))
    local ok, text = coroutine.resume(co)
    assert.is_false(ok)
    assert.truthy(text:find "matmul")
    assert.equal("dead", coroutine.status(co))
    assert.equal(6, a:sum():item())
  end)

  it("an error of a callback is, too", function ()
    local thrown = {}
    local co = coroutine.create(function ()
      local y = fnn.Param(fnn.ones(3)) * 2
      y:register_hook(function () error(thrown) end)
      y:sum():backward()
    end)
    assert.same({ false, thrown }, { coroutine.resume(co) })
    assert.equal("dead", coroutine.status(co))
  end)

  it("a module's forward may yield", function ()
    local Slow = nn.module "Slow"
    function Slow.forward (_, x)
      coroutine.yield "half"
      return x * 2
    end
    local slow = Slow()
    local co = coroutine.wrap(function () return slow(a) end)
    assert.equal("half", co())
    assert.equal(12, co():sum():item())
  end)

  local function does_not_yield (f)
    local co = coroutine.create(f)
    local ok, text = coroutine.resume(co)
    assert.is_false(ok)
    assert.truthy(tostring(text):find("yield", 1, true))
    assert.equal("dead", coroutine.status(co))
  end

  it("a yield out of the engine, or of a mode, raises", function ()
    does_not_yield(function ()
      local y = fnn.Param(fnn.ones(3)) * 2
      y:register_hook(function () coroutine.yield() end)
      y:sum():backward()
    end)
    does_not_yield(function () fnn.no_grad(coroutine.yield) end)
    does_not_yield(function () fnn.scope(coroutine.yield) end)
    assert.is_true(fnn.is_grad_enabled())
    assert.equal(6, a:sum():item())
  end)
end)

describe("try_ forms", function ()
  it("return nil and the message, or all results", function ()
    local y, text = a:try_matmul(b)
    assert.is_nil(y)
    assert.truthy(text:find "matmul")
    assert.same({ { 3 }, { 3 } }, a:try_matmul(fnn.ones(3, 1)):totable())
    local values, ids = fnn.tensor({ 1, 5, 3 }):try_topk(1)
    assert.same({ 5 }, values:totable())
    assert.same({ 1 }, ids:totable())
  end)

  it("are there for functions, constructors, modules and files", function ()
    local function tries (part, f, ...)
      local x, text = f(...)
      assert.is_nil(x)
      assert.truthy(text:find(part, 1, true))
    end
    tries("-1", fnn.try_zeros, -1)
    tries("Linear", nn.try_Linear, 0, 3)
    tries("no/file", fnn.io.try_read_npy, "no/file")
    local model = nn.Linear(2, 2)
    tries("no/file", model.try_load, model, "no/file")
    assert.is_nil(fnn.try_no_such_function)
  end)

  it("return error values that are tables unchanged", function ()
    local thrown = {}
    local x, e = fnn.try_no_grad(error, thrown)
    assert.is_nil(x)
    assert.equal(thrown, e)
  end)
end)

describe("a released box", function ()
  it("says so, and may be released twice", function ()
    local x = fnn.ones(3)
    x:release()
    x:release()
    says("attempt to use a released fnn.Tensor", x.sum, x)
    says("released", function () return x + 1 end)
    says("released", function () return 1 + x end)
    says("released", function () return a + x end)
    says("released", function () return x[1] end)
    says("released", function () x[1] = 1 end)
    says("released", function () return #x end)
    local m = nn.Linear(2, 2)
    m:release()
    says("released", m, fnn.ones(1, 2))
    local o = optim.SGD({ fnn.Param(fnn.ones(1)) }, { lr = 1 })
    o:release()
    says("released fnn.Optimizer", o.step, o)
  end)

  it("is what <close> leaves", function ()
    local kept
    do
      local x <close> = fnn.ones(3)
      kept = x
    end
    says("released", kept.sum, kept)
    message(function ()
      local x <close> = fnn.ones(3)
      kept = x
      error "out"
    end)
    says("released", kept.sum, kept)
  end)

  it("bears __gc called twice", function ()
    local meta = debug.getmetatable(a)
    local x = fnn.ones(3)
    meta.__gc(x)
    meta.__gc(x)
    says("released", x.sum, x)
    x = nil  -- luacheck: ignore
    collectgarbage()
    assert.equal(6, a:sum():item())
  end)

  it("is no way past the types", function ()
    local meta = debug.getmetatable(a)
    local others = { io.stdout, 1, "text", {}, nn.Linear(1, 1), print }
    for _, name in ipairs { "__gc", "__close", "__index", "__eq", "__len",
                            "__tostring", "__add", "__newindex", "__call" } do
      for _, other in ipairs(others) do
        if meta[name] then pcall(meta[name], other, other, other) end
        if meta[name] then pcall(meta[name], a, other, other) end
      end
    end
    says("object of the library expected", a.release, io.stdout)
    assert.is_false(a == io.stdout)
    assert.truthy(io.stdout:write "")
  end)
end)

-- Arguments that are wrong, by constructor: the message has the script's
-- place, and names what is wrong.
describe("a wrong argument of", function ()
  local p = fnn.Param(fnn.ones(2))
  local set = data.TensorDataset(fnn.ones(4, 2))
  local ids = fnn.tensor({ 1 }, { dtype = "i64" })
  local spaces = { fnn = fnn, nn = nn, optim = optim, data = data }
  local cases = {
    ["fnn.tensor"] = { { "x" }, { { 1, "x" } }, { { { 1, 2 }, { 3 } } },
      { { 1 }, { dtyp = "f32" } }, { { 1 }, { dtype = "f31" } } },
    ["fnn.zeros"] = { { "x" }, { -1 }, { 1.5 }, { 2, { dtype = 3 } },
      { { 2, "a" } }, { 1 << 40, 1 << 40 } },
    ["fnn.ones"] = { { {}, 1 }, { 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
    ["fnn.full"] = { { 2 }, { { 2 } }, { { 2 }, "x" } },
    ["fnn.arange"] = { {}, { "x" }, { 1, 2, 0 }, { 0, 1 / 0 }, { 0, 0 / 0 } },
    ["fnn.linspace"] = { { 1 }, { 0, 1, -1 }, { 0, 1, 1.5 } },
    ["fnn.eye"] = { { -1 }, { "x" } },
    ["fnn.rand"] = { { -1 }, { 2, { dtype = "i64" } } },
    ["fnn.randn"] = { { 2, { generator = 1 } }, { 2, { dtype = "bool" } } },
    ["fnn.randint"] = { { 5 }, { 5, 5, { 2 } },
      { 0, 300, { 2 }, { dtype = "u8" } } },
    ["fnn.randperm"] = { { -1 }, { 1.5 } },
    ["fnn.Param"] = { {}, { 1 }, { ids } },
    ["fnn.Generator"] = { { "x" }, { 1, { kind = "dice" } } },
    ["fnn.cat"] = { { 1 }, { { 1 } }, { { a, fnn.ones(5, 5) } } },
    ["fnn.manual_seed"] = { {}, { "x" }, { 1.5 } },
    ["nn.Linear"] = { {}, { 3 }, { 0, 1 }, { 3, 4, { bais = true } },
      { 3, 4, 5, 6 }, { "x", 1 } },
    ["nn.Dropout"] = { { 2 }, { -1 }, { "x" } },
    ["nn.LayerNorm"] = { {}, { 0 }, { {} }, { 3, { ep = 1 } } },
    ["nn.Embedding"] = { {}, { 3 }, { 0, 3 }, { 3, "x" } },
    ["nn.ReLU"] = { { 1 } },
    ["nn.LeakyReLU"] = { { "x" }, { { slop = 1 } } },
    ["nn.GELU"] = { { { approximate = "maybe" } }, { { approx = "tanh" } } },
    ["nn.Softmax"] = { { "x" }, { 0 }, { 1.5 } },
    ["nn.Flatten"] = { { "x" } },
    ["nn.Sequential"] = { { 1 }, { nn.Linear }, { nn.ReLU(), "x" } },
    ["nn.ModuleList"] = { { 1 }, { { 1 } } },
    ["nn.module"] = { {}, { "" }, { "A", 1 } },
    ["optim.SGD"] = { {}, { 1 }, { {} }, { { 1 } }, { { p }, { lr = -1 } },
      { { p }, { lr = "x" } }, { { p }, { momentun = 1 } } },
    ["optim.Adam"] = { {}, { { p }, { betas = 1 } }, { { p }, { eps = -1 } },
      { { p, p } } },
    ["optim.AdamW"] = { { { p }, { weight_decay = -1 } } },
    ["optim.RMSprop"] = { { { p }, { alpha = 1 } },
      { { p }, { centered = 1 } } },
    ["optim.Adagrad"] = { { { p }, { lr_decay = -1 } } },
    ["optim.Adadelta"] = { { { p }, { rho = 2 } } },
    ["optim.NAdam"] = { { { p }, { momentum_decay = -1 } } },
    ["optim.Adafactor"] = { { { p }, { eps = 1 } } },
    ["optim.Muon"] = { { { p } }, { { fnn.Param(fnn.ones(2, 2)) },
      { adjust_lr_fn = "none" } } },
    ["optim.decay_groups"] = { {}, { {} } },
    ["optim.optimizer"] = { {}, { "" }, { "A", 1 } },
    ["data.TensorDataset"] = { {}, { 1 }, { fnn.ones(3), fnn.ones(4) } },
    ["data.DataLoader"] = { {}, { 1 }, { set, { batch = 0 } },
      { set, { bach = 1 } }, { set, { batch = "x" } } },
  }

  local function check (name, f, arguments)
    local ok, text = pcall(function ()
      return (f(table.unpack(arguments)))
    end)
    assert(not ok, name .. ": no error")
    assert(type(text) == "string" and text:find "errors_spec.lua:%d+: ",
           name .. ": no place: " .. tostring(text))
    for _, word in ipairs { name:match "%.(%a+)", "expected", "argument #%d",
                            "unknown", "must not be", "needs a", "at most",
                            "too many" } do
      if text:find(word) then return end
    end
    error(name .. ": unclear: " .. text)
  end

  for name, list in pairs(cases) do
    it(name, function ()
      local space, key = name:match "(%w+)%.([%w_]+)"
      for i, arguments in ipairs(list) do
        check(("%s, case %d"):format(name, i), spaces[space][key], arguments)
      end
    end)
  end
end)

-- Statements of a script, with words of what it must say: always the line.
local slips = {
  ["a colon forgotten"] = {
    { "return x.sum(), 1", "got no value", "with a colon, x:sum?" },
    { "return x.sum(1), 1", "got number", "x:sum?" },
    { "return model.forward(x), 1", "got fnn.Tensor", "x:forward?" },
    { "return model.parameters(), 1", "got nil", "model:parameters?" },
    { "return model.save('a'), 1", "got a string", "model:save?" },
    { "model.eval() return 1", "got nil", "model:eval?" },
    { "model.to('cpu') return 1", "got a string", "model:to?" },
  },
  ["names that PyTorch has"] = {
    { "return x:cuda()", "fnn.Tensor has no 'cuda'", 'x:to("cuda")' },
    { "return x:numpy()", "has no 'numpy'", "x:totable()" },
    { "return x.T", "has no 'T'", "x:t()" },
    { "return fnn.load('a')", "fnn has no 'load'", "model:load(path)" },
    { "return nn.functional.relu(x)", "has no 'functional'", "x:relu()" },
    { "return fnn.optim.StepLR()", "has no 'StepLR'", "optim.StepDecay" },
    { "return fnn.optim.SGD(model).param_groups[1], 1",
      "has no 'param_groups'", "opt:set_learning_rate" },
    { "fnn.optim.scheduler(fnn.optim.SGD(model), print):step() return 1",
      "has no 'step'", "scheduler(step)" },
    { "return fnn.optim.StepDecay(fnn.optim.SGD(model), 3), 1",
      "StepDecay: base: expected", "optim.scheduler(optimizer, schedule)" },
    { "return fnn.plot.lines({ 1, 2 }):show(), 1", "has no 'show'",
      "p:print()" },
  },
  ["arguments in the wrong form"] = {
    { "return fnn.ones(2):sum(1, true), 1", "sum: expected a table of options",
      "{ keepdim = ... }", "got boolean" },
    { "return fnn.optim.Adam(model:parameters(), 1e-3), 1",
      "Adam: expected a table of options", "{ lr = ... }", "got number" },
    { "return fnn.cat(x, x), 1", "cat: expected a list of tensors, { x, y }" },
    { "return fnn.zeros(2, nil, 3), 1", "size 2 of the shape", "got nil" },
    { "return x:reshape(3, '2'), 1", "size 2 of the shape", "got string" },
    { "return fnn.tensor(1, 2, 3), 1", "tensor: expected a table of numbers" },
    { "return fnn.no_grad(), 1", "no_grad: expected a function to call" },
    { "return fnn.no_grad(x:sum()), 1", "no_grad: expected a function to call",
      "got fnn.Tensor" },
    { "return model:load(), 1", "expected a path, got nil" },
    { "return fnn.data.from_csv {}, 1", "expected a path, got table" },
    { "return model:apply(3), 1", "apply: expected a function" },
    { "return fnn.scope(), 1", "scope: expected a function to call" },
    { "return fnn.gradcheck(), 1", "gradcheck: expected a function" },
    { "x.name = 'x' return 1", "a tensor has no fields", "'name'" },
    { "return x[1.5], 1", "expected a place", "got a fraction" },
    { "return x[{ 1 }], 1", "expected a place", "got table" },
    { "return fnn.data.TensorDataset { 1, 2 }, 1", "expected a tensor",
      "got a table of number" },
    { "fnn.fit(model, { x, x }, { loss = nn.MSELoss }) return 1",
      "got the class MSELoss: call it, nn.MSELoss()" },
    { "return nn.MSELoss()(x, { 1 }), 1", "fnn.Tensor expected, got table" },
  },
}

describe("a slip", function ()
  local model = nn.Linear(3, 3)
  for what, list in pairs(slips) do
    it("is named, and what is meant: " .. what, function ()
      for _, slip in ipairs(list) do
        local text = error_of("slip.lua", "local fnn, nn, x, model = ...\n" ..
                              slip[1], fnn, nn, fnn.ones(2, 3), model)
        assert.equal("slip.lua:2: ", text:sub(1, 12), slip[1])
        for i = 2, #slip do
          assert(text:find(slip[i], 1, true),
                 slip[1] .. ": no '" .. slip[i] .. "' in: " .. text)
        end
      end
    end)
  end

  it("has its name and line in the try_ form too", function ()
    local f = assert(load([[
      local x, fnn = ...
      return select(2, x:try_add("a")), select(2, fnn.try_matmul(x, 3)),
             select(2, fnn.io.try_read_npy())]], "@slip.lua"))
    local add, matmul, read = f(fnn.ones(2), fnn)
    starts("slip.lua:2: bad argument #1 to 'add' (", add)
    starts("slip.lua:2: bad argument #2 to 'matmul' (", matmul)
    starts("slip.lua:3: read_npy: expected a path, got no value", read)
  end)

  it("is not seen where there is none", function ()
    assert.is_nil(fnn.ones(2).nothing_of_the_kind)
    assert.same({ 2 }, fnn.zeros(2, nil):shape())
    assert.equal(1, fnn.tensor(1, { dtype = "i64" }):item())
    model:release()
    model:release()
  end)
end)
