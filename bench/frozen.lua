-- frozen.lua - what freezing saves: a training step of a small convolutional
-- network with everything trainable, with all but its head frozen, and with
-- only its first layer trainable, which the gradient must reach through all.
--
--   build/fnn bench/frozen.lua [BATCH] [DEVICE]

local fnn = require "fnn"
local nn = fnn.nn

local batch = tonumber(arg[1]) or 32
local device = arg[2] or "cpu"

local function network()
  fnn.manual_seed(1)
  return nn.Sequential(
    nn.Conv2d(3, 32, 3, { padding = 1 }), nn.ReLU(),
    nn.Conv2d(32, 64, 3, { padding = 1, stride = 2 }), nn.ReLU(),
    nn.Conv2d(64, 64, 3, { padding = 1 }), nn.ReLU(),
    nn.Flatten(), nn.Linear(64 * 16 * 16, 10)):to(device)
end

local x = fnn.randn({ batch, 3, 32, 32 }, { device = device })
local ids = fnn.randint(0, 10, { batch }, { dtype = "i64", device = device })

-- Milliseconds of a step, the least of some, and of the passes of one.
local function measure(model)
  local opt = fnn.optim.SGD(model:trainable_parameters(), { lr = 0.01 })
  local function step()
    opt:zero_grad()
    local loss = model(x):cross_entropy(ids)
    loss:backward()
    opt:step()
  end
  step()
  local least = math.huge
  for _ = 1, 7 do
    fnn.synchronize(device)
    local t = fnn.clock()
    step()
    fnn.synchronize(device)
    least = math.min(least, fnn.clock() - t)
  end
  local back = 0
  for _, row in ipairs(fnn.profile(step).rows) do
    if row.pass == "backward" then back = back + row.kernels end
  end
  return least * 1e3, back
end

local full = network()
local head = network()
for i = 1, #head - 1 do head[i]:freeze() end
local first = network():freeze()
first[1]:unfreeze()

local whole = measure(full)
print "trainable     ms a step  of the whole  kernels backward"
for _, case in ipairs { { "all", full }, { "the head", head },
                        { "the first", first } } do
  local ms, kernels = measure(case[2])
  print(("%-12s  %9.2f  %11.0f%%  %16d"):format(case[1], ms, 100 * ms / whole,
                                                kernels))
end
