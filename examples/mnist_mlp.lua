-- mnist_mlp.lua: a network learns to tell pictures apart.
--
--   fnn examples/mnist_mlp.lua [--data NAME] [--epochs N] [--picture FILE]
--                              [--checkpoint FILE] [--quick] [--device cuda]
--
-- NAME is fashion-mnist or mnist, 70,000 pictures of clothes or of digits, or
-- digits, the 1797 small ones that fnn carries.  Without it the first of them
-- that is on this machine.  It trains, saves the weights, loads them into a
-- new model, which must be as good, and writes a PNG of some test pictures
-- with what the model takes them for.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "A network learns to tell pictures apart.",
  { "data", { "found", "fashion-mnist", "mnist", "digits" },
    "what it learns from; found is the first that is on this machine" },
  { "epochs", nil, "times through the data", type = "integer", min = 1 },
  { "picture", "mnist_mlp.png", "where to draw", value = "FILE" },
  { "checkpoint", "mnist_mlp.safetensors", "where to save", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
if options.quick then options.data, options.epochs = "digits", 8 end

-- Data ---------------------------------------------------------------------

local open = {}

open["fashion-mnist"] = function (options_of)
  local train, classes = data.fashion_mnist("train", options_of)
  return train, data.fashion_mnist("test", options_of), classes
end

function open.mnist(options_of)
  local train, classes = data.mnist("train", options_of)
  return train, data.mnist("test", options_of), classes
end

-- The embedded digits are one set: a fifth of each digit is kept for testing.
function open.digits()
  local train, test = data.digits():split_stratified(0.8, { seed = 1 })
  return train, test, { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }
end

-- The first set that is here, without a download.
local function find()
  for _, name in ipairs { "fashion-mnist", "mnist" } do
    local found, train, test, classes =
      pcall(open[name], { download = false })
    if found then return name, train, test, classes end
  end
  return "digits", open.digits()
end

local name, train, test, classes
if options.data ~= "found" then
  name = options.data
  train, test, classes = open[name]()
else
  name, train, test, classes = find()
end
print(("%s: %d pictures to learn from, %d to be tested with"):format(
  name, #train, #test))

-- Model --------------------------------------------------------------------


-- An item is a picture (1, height, width) with values from 0 to 1.
local shape = train:fields()[1].shape
local pixels = shape[2] * shape[3]

local function new_model()
  return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 128), nn.ReLU(),
                       nn.Linear(128, #classes))
end

local model = new_model()
local opt = optim.Adam(model:parameters(), { lr = 1e-3 })
print(model)

-- The share of the test set that m gets right.
local function accuracy(m)
  local right = 0
  m:eval()
  fnn.no_grad(function ()
    for x, y in test:batches(1000) do
      right = right + m(x):argmax(2):eq(y):sum():item()
    end
  end)
  m:train()
  return right / #test
end

-- Training -----------------------------------------------------------------

-- Small sets are read in small batches, so that there are enough steps.
local loader = data.DataLoader(train, {
  batch = #train > 10000 and 128 or 16, shuffle = true, seed = 1,
})
local epochs = options.epochs or #train > 10000 and 10 or 20

for epoch = 1, epochs do
  local sum = 0
  for x, y in loader do
    opt:zero_grad()
    local loss = nn.cross_entropy(model(x), y)
    loss:backward()
    opt:step()
    sum = sum + loss:item()
  end
  print(("epoch %2d of %d: loss %.4f, %.2f %% of the test set right"):format(
    epoch, epochs, sum / #loader, 100 * accuracy(model)))
end

-- Saving and loading -------------------------------------------------------

local before = accuracy(model)
model:save(options.checkpoint)
local again = new_model()
again:load(options.checkpoint)
assert(accuracy(again) == before, "the loaded model differs")
print(("saved to %s and loaded again: the same %.2f %%"):format(
  options.checkpoint, 100 * before))

-- A picture ----------------------------------------------------------------

-- Some test pictures; wrong ones first, as they are the more interesting.
local function examples(m, count)
  local x, y = test:items(fnn.arange(math.min(400, #test), { dtype = "i64" }))
  local predicted = fnn.no_grad(function () return m(x):argmax(2) end)
  local wrong, right = {}, {}
  for k = 1, #y do
    local list = predicted[k] == y[k] and right or wrong
    list[#list + 1] = k
  end
  local chosen = table.move(wrong, 1, math.min(#wrong, count // 4), 1, {})
  table.move(right, 1, count - #chosen, #chosen + 1, chosen)
  local labels, truth, ids = {}, {}, {}
  for k, place in ipairs(chosen) do
    labels[k] = classes[predicted[place] + 1]
    truth[k] = predicted[place] ~= y[place] and classes[y[place] + 1]
    ids[k] = place - 1
  end
  return (test:items(ids)), labels, truth
end

local images, labels, truth = examples(again, 24)
fnn.plot.images {
  images, labels = labels, wrong = truth, columns = 8,
  title = ("%s: %.1f%% of %d right"):format(name, 100 * before, #test),
}:save(options.picture)
print(("wrote %s: what the model takes some pictures for, mistakes in red")
  :format(options.picture))

-- What each set must reach.
local wanted = name == "mnist" and 0.96 or name == "digits" and 0.93 or 0.85
assert(before > wanted or epochs < 5, "the model has learned too little")
