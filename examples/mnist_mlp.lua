-- mnist_mlp.lua: a network learns to tell pictures apart, and goes to a file.
--
--   fnn examples/mnist_mlp.lua [--data NAME] [--epochs N] [--picture FILE]
--                              [--checkpoint FILE] [--quick] [--device cuda]
--
-- NAME is fashion-mnist or mnist, 70,000 pictures of clothes or of digits, or
-- digits, the 1797 small ones that fnn carries.  Without it the first of them
-- that is on this machine.  The picture shows test pictures with what the
-- network takes them for.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "A network learns to tell pictures apart.",
  { "data", { "found", "fashion-mnist", "mnist", "digits" },
    "what it learns from; found is the first that is on this machine" },
  { "epochs", nil, "times through the data", type = "integer", min = 1 },
  { "picture", "mnist_mlp.png", "where to draw", value = "FILE" },
  { "checkpoint", "mnist_mlp.safetensors", "where to save", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
if o.quick then o.data, o.epochs = "digits", 8 end

-- Data ---------------------------------------------------------------------

-- What is not on this machine is downloaded, if it was asked for by name.
if o.data == "found" then
  local here = { download = false }
  o.data = data.try_fashion_mnist("train", here) and "fashion-mnist" or
           data.try_mnist("train", here) and "mnist" or "digits"
end

local train, test, classes
if o.data == "digits" then
  -- They are one set: a fifth of each digit is kept for testing.
  train, test = data.digits():split_stratified(0.8, { seed = 1 })
  classes = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }
else
  local open = o.data == "mnist" and data.mnist or data.fashion_mnist
  train, classes = open "train"
  test = open "test"
end
print(("%s: %d pictures to learn from, %d to be tested with"):format(
  o.data, #train, #test))

-- Model --------------------------------------------------------------------

-- An item is a picture (1, height, width) with values from 0 to 1.
local shape = train:fields()[1].shape
local pixels = shape[2] * shape[3]

local function new_model ()
  return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 128), nn.ReLU(),
                       nn.Linear(128, #classes))
end

local model = new_model()
local opt = optim.Adam(model:parameters(), { lr = 1e-3 })
print(model)

-- The share of the test set that a model gets right.
local function accuracy (m)
  local found = fnn.evaluate(m, test, {
    batch_size = 1000, metrics = { accuracy = fnn.metrics.accuracy } })
  return found.accuracy
end

-- Training -----------------------------------------------------------------

-- Small sets are read in small batches, so that there are enough steps.
local large = #train > 10000
local loader = data.DataLoader(train, {
  batch = large and 128 or 16, shuffle = true, seed = 1,
})
local epochs = o.epochs or large and 10 or 20

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
model:save(o.checkpoint)
local again = new_model()
again:load(o.checkpoint)
assert(accuracy(again) == before, "the loaded model differs")
print(("saved to %s and loaded again: the same %.2f %%"):format(
  o.checkpoint, 100 * before))

-- A picture ----------------------------------------------------------------

local images, ids = test:items(fnn.arange(32, { dtype = "i64" }))
local guesses = fnn.no_grad(function () return again(images):argmax(2) end)
local labels, truth = {}, {}
for k = 1, #ids do
  labels[k] = classes[guesses[k] + 1]
  truth[k] = guesses[k] ~= ids[k] and classes[ids[k] + 1]
end
plot.images {
  images, labels = labels, wrong = truth, columns = 8,
  title = ("%s: %.1f %% of %d right"):format(o.data, 100 * before, #test),
}:save(o.picture)
print(("wrote %s: what the network takes some pictures for, mistakes in red")
  :format(o.picture))

local wanted = { digits = 0.93, mnist = 0.96, ["fashion-mnist"] = 0.85 }
assert(before > wanted[o.data] or epochs < 5,
       "the model has learned too little")
