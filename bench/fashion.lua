-- fashion.lua - trains an MLP or a CNN on the whole of Fashion-MNIST.
--
-- usage: fnn bench/fashion.lua [--model cnn] [--seeds N] [--epochs N]
--
-- Adam at its defaults (lr 0.001), batches of 128, pixels from 0 to 1.
-- Prints, for each seed, the test accuracy after the last epoch and the
-- milliseconds a step of training took.  fashion.py is the same in PyTorch.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local models = {}

function models.mlp ()
  return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(),
                       nn.Linear(128, 10))
end

function models.cnn ()
  local function block (from, to)
    return nn.Sequential(nn.Conv2d(from, to, 3, { padding = 1 }),
                         nn.BatchNorm2d(to), nn.ReLU(), nn.MaxPool2d(2))
  end
  return nn.Sequential(block(1, 32), block(32, 64), nn.Flatten(),
                       nn.Linear(64 * 49, 10))
end

local epochs_of = { mlp = 10, cnn = 5 }

local o = fnn.cli {
  "Trains on the whole of Fashion-MNIST, for accuracy and time.",
  { "model", { "mlp", "cnn" }, "what learns" },
  { "seeds", 5, "how many runs", min = 1 },
  { "epochs", nil, "times through the data, if not 10 (cnn: 5)",
    type = "integer", min = 1 },
}
local name, seeds, epochs = o.model, o.seeds, o.epochs or epochs_of[o.model]
local train, test = data.fashion_mnist "train", data.fashion_mnist "test"

local function accuracy (model)
  local right = 0
  model:eval()
  fnn.no_grad(function ()
    for x, y in test:batches(1000) do
      local ids = model(x:view(-1, 1, 28, 28)):argmax(2)
      right = right + ids:eq(y):to("f32"):sum():item()
    end
  end)
  return 100 * right / #test
end

local function run (seed)
  fnn.manual_seed(seed)
  local model = models[name]()
  local opt = optim.Adam(model:parameters())
  local loader = data.DataLoader(train, { batch = 128, shuffle = true,
                                          seed = seed })
  local steps, begin = 0, fnn.clock()
  for epoch = 0, epochs - 1 do
    for x, y in loader:epoch(epoch) do
      opt:zero_grad()
      nn.cross_entropy(model(x:view(-1, 1, 28, 28)), y):backward()
      opt:step()
      steps = steps + 1
    end
  end
  local ms = 1e3 * (fnn.clock() - begin) / steps
  return accuracy(model), ms
end

local function median (list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local accuracies, times = {}, {}
for seed = 1, seeds do
  accuracies[seed], times[seed] = run(seed)
  print(("fnn %s seed %d: %.2f %%, %.2f ms a step"):format(
    name, seed, accuracies[seed], times[seed]))
end
print(("fnn %s median: %.2f %%, %.2f ms a step; peak %.0f MB"):format(
  name, median(accuracies), median(times), fnn.memory().peak / 1e6))
