-- convergence_spec.lua - small models that must learn what they are shown: what
-- gradients, layers and optimizers do together.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local function ids(list) return fnn.tensor(list, { dtype = "i64" }) end

-- Takes steps down loss() until it is less than enough; returns the last.
local function descend(model, opt, steps, enough, loss)
  for step = 1, steps do
    opt:zero_grad()
    local l = loss()
    l:backward()
    opt:step()
    local v = l:item()
    if v < enough or step == steps then return v end
  end
end

describe("training", function()
  before_each(function() fnn.manual_seed(1) end)

  it("finds a line: 2 x + 1", function()
    local x = fnn.linspace(-1, 1, 40):reshape(40, 1)
    local y = x * 2 + 1 + fnn.normal(0, 0.01, { 40, 1 })
    local model = nn.Linear(1, 1)
    descend(model, optim.SGD(model, { lr = 0.3 }), 100, 0, function()
      return nn.mse(model(x), y)
    end)
    assert.near(2, model.weight:value():item(), 0.01)
    assert.near(1, model.bias:value():item(), 0.01)
  end)

  it("solves XOR with a hidden layer, from ten beginnings", function()
    local x = fnn.tensor { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }
    local y = fnn.tensor { { 0 }, { 1 }, { 1 }, { 0 } }
    for seed = 1, 10 do
      local g = fnn.Generator(seed)
      local model = nn.Sequential(nn.Linear(2, 8, { generator = g }), nn.Tanh(),
                                  nn.Linear(8, 1, { generator = g }))
      local opt = optim.Adam(model, { lr = 0.05 })
      local loss = descend(model, opt, 500, 0.01, function()
        return nn.bce_with_logits(model(x), y)
      end)
      assert.is_true(loss < 0.01, "seed " .. seed)
      assert.same(y:totable(), model(x):sigmoid():round():totable())
    end
  end)

  it("makes a convolutional network know ten images by heart", function()
    local x, y = data.digits():items { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }
    y = y:flip(1):clone()  -- wrong labels: nothing but memory helps
    local model = nn.Sequential(
      nn.Conv2d(1, 8, 3, { padding = "same" }), nn.BatchNorm2d(8), nn.ReLU(),
      nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, { padding = "same" }), nn.ReLU(),
      nn.Flatten(), nn.Linear(256, 10))
    local loss = descend(model, optim.AdamW(model, { lr = 0.01 }), 100, 0.01,
                         function() return nn.cross_entropy(model(x), y) end)
    assert.is_true(loss < 0.01)
    assert.same(y:totable(), fnn.metrics.classes(model(x)):totable())
  end)

  it("makes an LSTM know six sequences by heart", function()
    -- All begin alike: what comes next is in the state alone.
    local words = { "abacad", "abadac", "acabad", "acadab", "adabac",
                    "adacab" }
    local inputs, targets = {}, {}
    for i, word in ipairs(words) do
      inputs[i], targets[i] = { i + 3 }, {}  -- its number, then its letters
      for k = 1, #word do
        local id = word:byte(k) - 97
        targets[i][k] = id
        if k < #word then inputs[i][k + 1] = id end
      end
    end
    local x, y = ids(inputs), ids(targets)
    local Model = nn.module "Model"
    function Model:init()
      self.embed = nn.Embedding(10, 8)
      self.lstm = nn.LSTM(8, 24)
      self.out = nn.Linear(24, 4)
    end
    function Model:forward(v) return self.out((self.lstm(self.embed(v)))) end
    local model = Model()
    local loss = descend(model, optim.Adam(model, { lr = 0.02 }), 300, 0.01,
                         function()
      return nn.cross_entropy(model(x):permute(1, 3, 2), y)
    end)
    assert.is_true(loss < 0.01)
    assert.same(y:totable(), model(x):argmax(3):totable())
  end)

  it("makes a transformer know a text by heart", function()
    local text = "in the beginning was the tensor, and the tensor had a shape."
    local bytes = data.bytes(text):to "i64"
    local n = #bytes - 1
    local x = bytes:narrow(1, 1, n):reshape(1, n)
    local y = bytes:narrow(1, 2, n):reshape(1, n)
    local Model = nn.module "Model"
    function Model:init()
      self.embed = nn.Embedding(128, 32)
      self.layers = nn.TransformerEncoder(32, 4, 2, {
        causal = true, rotary = true, dropout = 0, ff = 64 })
      self.out = nn.Linear(32, 128)
    end
    function Model:forward(v) return self.out(self.layers(self.embed(v))) end
    local model = Model()
    local loss = descend(model, optim.AdamW(model, { lr = 0.005 }), 200, 0.02,
                         function()
      return nn.cross_entropy(model(x):permute(1, 3, 2), y)
    end)
    assert.is_true(loss < 0.02)
    -- It writes the text that it has read.
    local written = { bytes[1] }
    model:eval()
    for _ = 1, n do
      local logits = model(ids { written })
      written[#written + 1] = logits:argmax(3):totable()[1][#written]
    end
    assert.equal(text, string.char(table.unpack(written)))
  end)
end)
