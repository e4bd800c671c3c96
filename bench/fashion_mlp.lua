-- fashion_mlp.lua - trains a 784-128-10 MLP on the whole of Fashion-MNIST.
--
-- usage: fnn bench/fashion_mlp.lua [SEEDS [EPOCHS]]
--
-- Adam at its defaults (lr 0.001), batches of 128, pixels from 0 to 1.
-- Prints, for each seed, the test accuracy after the last epoch and the
-- steps a second of training.  fashion_mlp.py is the same in PyTorch.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local seeds, epochs = tonumber(arg[1]) or 5, tonumber(arg[2]) or 10
local train, test = data.fashion_mnist "train", data.fashion_mnist "test"
local now = fnn.clock or os.clock

local function accuracy (model)
  local right = 0
  fnn.no_grad(function ()
    for x, y in test:batches(1000) do
      right = right + model(x):argmax(2):eq(y):to("f32"):sum():item()
    end
  end)
  return 100 * right / #test
end

local function run (seed)
  fnn.manual_seed(seed)
  local model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(),
                              nn.Linear(128, 10))
  local opt = optim.Adam(model:parameters())
  local loader = data.DataLoader(train, { batch = 128, shuffle = true,
                                          seed = seed })
  local steps, begin = 0, now()
  for epoch = 0, epochs - 1 do
    for x, y in loader:epoch(epoch) do
      opt:zero_grad()
      nn.cross_entropy(model(x), y):backward()
      opt:step()
      steps = steps + 1
    end
  end
  local rate = steps / (now() - begin)
  return accuracy(model), rate
end

local function median (list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local accuracies, rates = {}, {}
for seed = 1, seeds do
  accuracies[seed], rates[seed] = run(seed)
  print(("fnn seed %d: %.2f %%, %.0f steps/s"):format(seed, accuracies[seed],
                                                      rates[seed]))
end
print(("fnn median: %.2f %%, %.0f steps/s"):format(median(accuracies),
                                                   median(rates)))
