-- fit_spec.lua - metrics and fnn.fit on a card: the numbers are the CPU's, and
-- a run that goes on there keeps its bits.

local fnn = require "fnn"
local nn, optim, metrics = fnn.nn, fnn.optim, fnn.metrics
local device = require "spec.support.device"

local function random(seed, ...)
  return fnn.normal(0, 1, { ... }, { generator = fnn.Generator(seed) })
end

describe("on a card", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  it("metrics are the CPU's", function()
    local x, y = random(1, 50, 4), random(2, 50, 4)
    local ids = y:argmax(2):clone()
    local wide = random(3, 50)
    local function value(name, outputs, targets, d)
      local stream = metrics.stream(name)
      for first = 1, 50, 20 do
        local n = math.min(20, 51 - first)
        stream:add(outputs:narrow(1, first, n):to(d),
                   targets:narrow(1, first, n):to(d))
      end
      local v = stream:value()
      return fnn.is_tensor(v) and v:totable() or v
    end
    local d = device.name
    for _, name in ipairs { "accuracy", "confusion", "f1", "precision",
                            "recall", "top_k" } do
      assert.same(value(name, x, ids, "cpu"), value(name, x, ids, d), name)
    end
    for _, name in ipairs { "mae", "mse", "r2", "rmse" } do
      assert.near(value(name, x, y, "cpu"), value(name, x, y, d), 1e-12, name)
    end
    assert.near(value("auc", wide, ids:gt(1), "cpu"),
                value("auc", wide, ids:gt(1), d), 1e-12)
    assert.near(value("auc", x, ids, "cpu"), value("auc", x, ids, d), 1e-12)
    local want = value("perplexity", x, ids, "cpu")
    assert.near(want, value("perplexity", x, ids, d), 1e-5 * want)
  end)

  it("a run goes on to the same bits", function()
    local path = os.tmpname()
    os.remove(path)
    local store = {}
    function store:save(state) fnn.save_training(path, state) end
    function store:resume(state)
      local file = io.open(path)
      if file then
        file:close()
        fnn.load_training(path, state)
      end
    end
    local x = random(1, 20, 3)
    local function run(last, kept)
      fnn.manual_seed(3)
      local model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.ReLU(),
                                  nn.Linear(8, 1)):to(device.name)
      local history = fnn.fit(model, { x, x:sum(2, { keepdim = true }) }, {
        epochs = 3, batch_size = 4, accumulate = 2, loss = nn.mse, lr = 0.01,
        clip = 1, metrics = { "r2" }, average = optim.Ema(model),
        checkpoints = kept and store, resume = kept, progress = false,
        on_batch = function(step) return step ~= last end,
      })
      return { model[1].weight:totable(), history:column "loss",
               history:column "r2" }, #history
    end
    local wanted = run(0, false)
    local _, epochs = run(4, true)
    assert.equal(1, epochs)
    assert.same(wanted, (run(0, true)))
    os.remove(path)
  end)
end)
