local fnn = require "fnn"
local nn = fnn.nn

local Counter = nn.module "Counter"
function Counter:init (inner)
  self.inner = inner
  self.mean = fnn.ones(2)
  self.cache = nn.transient(fnn.ones(3))
  self.steps = 0
end
function Counter:forward (x) return self.inner(x) + self.mean end
function Counter:state () return { steps = self.steps, name = "a\n\"b\"" } end
function Counter:load_state (t)
  self.steps, self.name = t.steps, t.name
end

local function model ()
  return nn.Sequential(Counter(nn.Linear(3, 2)), nn.ReLU(), nn.Linear(2, 2))
end

local all = { "0.inner.weight", "0.inner.bias", "0.mean", "2.weight",
              "2.bias" }

local function list (t) return table.move(t, 1, #t, 1, {}) end

local function fails (text, f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
  assert.truthy(message:find("state_spec.lua:", 1, true), message)
end

local path

before_each(function () path = os.tmpname() end)
after_each(function () os.remove(path) end)

describe("state_dict", function ()
  it("has names in the order of the model, and tensors by name", function ()
    local m = model()
    local s = m:state_dict()
    assert.same(all, list(s))
    assert.same({ 2, 3 }, s["0.inner.weight"]:shape())
    assert.is_false(s["0.inner.weight"]:has_graph())
    assert.equal(0, s[".state"]["0"].steps)
    assert.is_nil(s["0.cache"])
  end)

  it("goes into another model bit for bit", function ()
    local a, b = model(), model()
    a[1].steps = 7
    a[1].mean = fnn.tensor { 0.1, 0.2 }
    local weight = b[1].inner.weight
    local report = b:load_state_dict(a:state_dict())
    assert.same(all, list(report.loaded))
    assert.same({ 0, 0, 0 }, { #report.missing, #report.unexpected,
                               #report.mismatched })
    local x = fnn.randn(4, 3)
    assert.same(a(x):totable(), b(x):totable())
    assert.equal(7, b[1].steps)
    assert.equal("a\n\"b\"", b[1].name)
    assert.equal(weight, b[1].inner.weight)
  end)

  it("lists a tied weight once and understands its other names", function ()
    local function tied ()
      local m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
      m[2].weight = m[1].weight
      m.again = m[2]
      return m
    end
    local a, b = tied(), tied()
    local s = a:state_dict()
    assert.same({ "0.weight", "0.bias", "1.bias" }, list(s))
    local r = b:load_state_dict { ["1.weight"] = s["0.weight"],
                                  ["0.bias"] = s["0.bias"],
                                  ["again.bias"] = s["1.bias"] }
    assert.same({ "0.weight", "0.bias", "1.bias" }, list(r.loaded))
    local x = fnn.randn(1, 2)
    assert.same(a(x):totable(), b(x):totable())
    -- a file with both names, as PyTorch writes them
    r = b:load_state_dict { ["0.weight"] = s["0.weight"],
                            ["1.weight"] = s["0.weight"],
                            ["0.bias"] = s["0.bias"],
                            ["1.bias"] = s["1.bias"] }
    assert.equal(3, #r.loaded)
  end)
end)

describe("load_state_dict", function ()
  it("is strict unless told otherwise", function ()
    local m = model()
    local s = m:state_dict()
    local part = { "2.weight", "extra", ["2.weight"] = s["2.weight"],
                   extra = fnn.zeros(4) }
    fails("missing: 0.inner.weight (2, 3), 0.inner.bias (2), 0.mean (2), " ..
          "2.bias (2), 0.state()\n  unexpected: extra (4)",
          function () m:load_state_dict(part) end)
    local r = m:load_state_dict(part, { strict = false })
    assert.same({ "2.weight" }, list(r.loaded))
    assert.same({ "0.inner.weight", "0.inner.bias", "0.mean", "2.bias",
                  "0.state()" }, list(r.missing))
    assert.same({ "extra" }, list(r.unexpected))
    assert.equal("(4)", r.unexpected.extra)
  end)

  it("names the tensor and both shapes when they clash", function ()
    local m = model()
    local before = m[3].bias:totable()
    local s = m:state_dict()
    s["0.inner.weight"] = fnn.zeros(5, 3)
    s["2.bias"] = fnn.ones(2)
    fails("0.inner.weight expected shape (2, 3), got (5, 3)",
          function () m:load_state_dict(s, { strict = false }) end)
    assert.same(before, m[3].bias:totable())  -- nothing was written
    local r = m:load_state_dict(s, { ignore_mismatched = true })
    assert.same({ "0.inner.weight" }, list(r.mismatched))
    assert.equal("expected shape (2, 3), got (5, 3)",
                 r.mismatched["0.inner.weight"])
    assert.same({ 1, 1 }, m[3].bias:totable())
  end)

  it("converts between floats but not from integers", function ()
    local m = nn.Linear(1, 1, { bias = false })
    m:load_state_dict { weight = fnn.tensor({ { 0.5 } }, { dtype = "f64" }) }
    assert.equal("f32", m.weight:dtype())
    assert.equal(0.5, m.weight:item())
    fails("weight expected floats, got integers", function ()
      m:load_state_dict { weight = fnn.tensor({ { 1 } }, { dtype = "i64" }) }
    end)
  end)

  it("renames", function ()
    local m = nn.Linear(2, 1)
    local s = { ["w"] = fnn.tensor { { 1, 2 } }, ["b"] = fnn.tensor { 3 },
                ["step"] = fnn.zeros(1) }
    local r = m:load_state_dict(s, { rename = { w = "weight", b = "bias",
                                                step = false } })
    assert.same({ "weight", "bias" }, list(r.loaded))
    assert.equal("w", r.loaded.weight)
    assert.same({ "step" }, list(r.ignored))
    assert.same({ { 1, 2 } }, m.weight:totable())
    s = { ["net.weight"] = fnn.zeros(1, 2), ["net.bias"] = fnn.zeros(1) }
    m:load_state_dict(s, { rename = function (name)
      return name:gsub("^net%.", "")
    end })
    assert.same({ { 0, 0 } }, m.weight:totable())
    fails("both 'w' and 'weight' are to be 'weight'", function ()
      m:load_state_dict({ "w", "weight", w = fnn.zeros(1, 2),
                          weight = fnn.zeros(1, 2) },
                        { rename = { w = "weight" } })
    end)
  end)

  it("says what it expects", function ()
    local m = nn.Linear(1, 1)
    fails("expected a table of tensors by name, got a number",
          function () m:load_state_dict(3) end)
    fails("'weight': expected a tensor, got a number",
          function () m:load_state_dict { weight = 3 } end)
    fails("unknown option 'strct' (did you mean 'strict'?)",
          function () m:load_state_dict({}, { strct = false }) end)
  end)

  it("fills frozen Params and leaves them frozen", function ()
    local m = nn.Linear(1, 1):freeze()
    m:load_state_dict { weight = fnn.ones(1, 1), bias = fnn.ones(1) }
    assert.equal(1, m.weight:item())
    assert.is_true(m.weight:is_frozen())
  end)
end)

describe("save and load", function ()
  it("round-trip bit for bit, over all kinds of modules", function ()
    local a, b = model(), model()
    a[1].steps = 12
    a[1].mean = fnn.randn(2)
    assert.equal(a, a:save(path))
    local r = b:load(path)
    assert.same(all, list(r.loaded))
    local x = fnn.randn(8, 3)
    assert.same(a(x):totable(), b(x):totable())
    assert.equal(12, b[1].steps)
    assert.equal("integer", math.type(b[1].steps))
  end)

  it("write names that other tools read", function ()
    model():save(path, { metadata = { note = "hello" } })
    local f = fnn.io.open_safetensors(path)
    local names = f:names()
    table.sort(names)
    local sorted = list(all)
    table.sort(sorted)
    assert.same(sorted, names)
    assert.equal("hello", f:metadata().note)
    assert.equal("pt", f:metadata().format)
    assert.equal(fnn._VERSION, f:metadata()["fnn.version"])
  end)

  it("report what does not fit", function ()
    model():save(path)
    local m = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2))
    fails("unexpected: ", function () m:load(path) end)
    local r = m:load(path, { strict = false })
    assert.same({ "2.weight", "2.bias" }, list(r.loaded))
    assert.same({ "0.weight", "0.bias" }, list(r.missing))
    r = m:load(path, { strict = false, rename = function (name)
      return name:gsub("%.inner", "")
    end })
    assert.equal(4, #r.loaded)
    m = nn.Sequential(nn.Linear(3, 5))
    fails("0.weight expected shape (5, 3), got (2, 3)", function ()
      m:load(path, { strict = false,
                     rename = { ["0.inner.weight"] = "0.weight" } })
    end)
  end)

  it("refuse values that no file can hold", function ()
    local M = nn.module "M"
    function M:state () return { f = print } end
    fails("save: the values of state(): json: a value that is a function",
          function () M():save(path) end)
  end)

  it("leave a model alone when the file is bad", function ()
    local m = nn.Linear(1, 1)
    local before = m.weight:item()
    local f = assert(io.open(path, "wb"))
    f:write(("x"):rep(100))
    f:close()
    assert.error(function () m:load(path) end)
    assert.error_matches(function () m:load(path .. "-none") end, "none")
    assert.equal(before, m.weight:item())
  end)
end)
