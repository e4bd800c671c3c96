-- anomaly_spec.lua - detect_anomaly: which op made the first number that is
-- not finite, of what, where in the script and in the model.

local fnn = require "fnn"
local nn = fnn.nn

local inf, nan = math.huge, 0 / 0

-- Runs f in anomaly mode; the error must have each of these texts.
local function finds(f, ...)
  local ok, message = pcall(fnn.detect_anomaly, f)
  assert.is_false(ok)
  for _, text in ipairs { ... } do
    assert.is_truthy(message:find(text, 1, true),
                     ("no '%s' in '%s'"):format(text, message))
  end
  return message
end

local function quiet(f) fnn.detect_anomaly(f) end

local function line() return debug.getinfo(2, "l").currentline end

local x = fnn.tensor { { 1, 2 }, { 0, 3 } }
local bad = fnn.tensor { { 1, 2 }, { nan, inf } }

describe("detect_anomaly forward", function()
  it("says that an op made it of finite inputs, and where", function()
    finds(function() return x:log() end,
          "anomaly: log made 1 -inf in its result (2, 2); first at [2][1]",
          "what came in, (2, 2), is finite")
    finds(function() return x:log() end,
          ("anomaly_spec.lua:%d: anomaly"):format(line() - 1))
    finds(function()
      return fnn.no_grad(function() return (x - 1):log() end)
    end, "log made 1 nan and 1 -inf in its result (2, 2); first at [1][1]")
    finds(function()
      return fnn.scaled_dot_product_attention(x, x, x, { scale = 1e38 })
    end, "scaled_dot_product_attention made 4 nan")
    finds(function() return x / fnn.zeros(2) end, "div made 1 nan and 3 inf",
          "what came in, (2, 2) and (2), is finite")
  end)

  it("says that it came in, with which input", function()
    finds(function() return x * bad end,
          "anomaly: mul: input 2, (2, 2), has 1 nan and 1 inf; first at [2][1]")
    finds(function() return bad:matmul(x) end,
          "matmul: input 1, (2, 2), has 1 nan and 1 inf; first at [2][1]")
    finds(function() return fnn.tensor(nan) + 1 end,
          "add: input 1, (), has 1 nan")
  end)

  it("sees what is written in place", function()
    finds(function() x:clone():add_(bad) end,
          "add (in place): input 2, (2, 2), has 1 nan and 1 inf; first at " ..
          "[2][1]")
    finds(function() x:clone():div_(0) end, "div (in place) made 1 nan and " ..
          "3 inf in its result (2, 2); first at [1][1]")
    finds(function() x:clone():log_() end, "log (in place) made 1 -inf")
    local copy = bad:clone()
    finds(function() copy:mul_(2) end,
          "mul (in place): input 1, (2, 2), has 1 nan and 1 inf")
    finds(function() x:clone():copy_(bad) end, "input 2, (2, 2), has 1 nan")
    local norm = nn.BatchNorm1d(2)
    norm.running_mean:copy_(fnn.tensor { nan, 0 })
    finds(function() norm(x) end,
          "batch_norm (in place): input 1, (2), has 1 nan; first at [1]")
    local p, q = fnn.Param(x:clone()), fnn.Param(x:clone())
    local opt = fnn.optim.SGD({ q, p }, { lr = 1e38 })
    q:set_grad(x)
    p:set_grad(x * 1e3)
    finds(function() opt:step() end,
          "SGD (in place) made 3 -inf in its result (2, 2); first at [1][1]")
  end)

  it("lets masks be, and finds the row that is masked whole", function()
    quiet(function()
      x:masked_fill(x:gt(2), -inf):softmax(-1)
      x:clone():masked_fill_(x:gt(1), -inf)
      local mask = fnn.tensor { { 0, -inf }, { -inf, 0 } }
      return (x + mask):softmax(-1) + (x + mask):log_softmax(-1)
    end)
    finds(function() return fnn.full({ 1, 2 }, -inf):softmax(-1) end,
          "softmax made 2 nan in its result (1, 2); first at [1][1]",
          "input 1, (1, 2), has 2 -inf")
  end)

  it("looks at f64 and 16 bits, and at nothing but floats", function()
    local max = fnn.tensor({ 60000 }, { dtype = "f16" })
    finds(function() return fnn.tensor({ 70000 }):to "f16" end, "made 1 inf")
    finds(function() return x:to "f64":log() end, "log made 1 -inf")
    quiet(function()
      return max:to "f32", x:to "i64" + 1, x:gt(0), bad:isnan(), bad:gt(1)
    end)
  end)

  it("names the module, in Lua and C, nested", function()
    local Half = nn.module "Half"
    function Half:init() self.norm = nn.LayerNorm(2) end
    function Half:forward(v) return self.norm(v):sqrt() end
    local model = nn.Sequential(nn.Linear(2, 2),
                                nn.Sequential(nn.Tanh(), Half()))
    finds(function() model(x) end, "sqrt made", "(in 1.1: Half)")
    model[2][2].norm.weight:set(fnn.tensor { 1, nan })
    finds(function() model(x) end,
          "layer_norm: input 2, (2), has 1 nan; first at [2]",
          "(in 1.1.norm: LayerNorm)")
    finds(function() fnn.no_grad(function() model[2](x) end) end,
          "(in 1.norm: LayerNorm)")
  end)
end)

describe("detect_anomaly backward", function()
  it("remembers line and module of the op", function()
    local Root = nn.module "Root"
    local at
    function Root:init() self.lin = nn.Linear(2, 2) end
    function Root:forward(v)
      at = line() + 1
      return (self.lin(v) * 0):sqrt()
    end
    local model = nn.Sequential(nn.Linear(2, 2), Root())
    local message = finds(function()
      model(x):sum():backward()
    end, "anomaly: sqrt produced", "in the gradient for input 1, (2, 2): ",
    "; first at [1][1]; the op was called at", "(in 1: Root)")
    assert.is_truthy(message:find(("anomaly_spec.lua:%d (in"):format(at), 1,
                                  true), message)
    assert.matches("^[^:]*anomaly_spec.lua:%d+: anomaly", message)
  end)

  it("blames no op for a gradient that came from outside", function()
    local p = fnn.Param(x)
    finds(function() (p * 2):backward(bad) end,
          "the gradient that reaches mul, (2, 2), has 1 nan and 1 inf; " ..
          "first at [2][1]", "a hook, the script or a sum")
    finds(function()
      local y = p * 2
      y:register_hook(function(g) return g * nan end)
      y:sum():backward()
    end, "the gradient that reaches mul, (2, 2), has 4 nan")
  end)

  it("is off again after an error, and costs nothing then", function()
    pcall(fnn.detect_anomaly, function() return x:log() end)
    assert.equal(-inf, x:log():min():item())
    local p = fnn.Param(fnn.zeros(1))
    fnn.detect_anomaly(function() return (p + 1):log() end)
    local y = p:log():sum()
    y:backward()
    assert.equal(inf, p:grad():item())
  end)

  it("is quiet over ops that are sound", function()
    fnn.manual_seed(1)
    local model = nn.Sequential(
      nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
      nn.Flatten(), nn.Linear(4, 3))
    local lstm = nn.LSTM(3, 4)
    local attention = nn.MultiHeadAttention(4, 2)
    local opt = fnn.optim.Adam(model:parameters())
    fnn.detect_anomaly(function()
      model(fnn.randn(2, 1, 4, 4)):cross_entropy { 0, 2 }:backward()
      opt:step { max_norm = 1 }
      local h = lstm(fnn.randn(2, 5, 3))
      attention(h, { causal = true }):square():mean():backward()
      fnn.autocast(function() return model(fnn.randn(2, 1, 4, 4)) end)
    end)
  end)
end)
