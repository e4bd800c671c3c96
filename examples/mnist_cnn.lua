-- mnist_cnn.lua: a convolutional network learns to read digits.
--
--   fnn examples/mnist_cnn.lua [--data NAME] [--epochs N] [--picture FILE]
--                              [--quick] [--device cuda]
--
-- NAME is mnist or fashion-mnist, 70,000 pictures of digits or of clothes, or
-- digits, the 1797 small ones that fnn carries.  Without it mnist, if it is on
-- this machine, else digits.  It prints the accuracy after each epoch and
-- writes a PNG of test pictures with what the network takes them for.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "Trains a convolutional network on pictures of digits or clothes.",
  { "data", { "found", "digits", "mnist", "fashion-mnist" },
    "what it learns from; found is mnist if it is here, else digits" },
  { "epochs", nil, "times through the data", type = "integer", min = 1 },
  { "picture", "mnist_cnn.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
if o.quick then o.data, o.epochs = "digits", 4 end

-- Data ---------------------------------------------------------------------

if o.data == "found" then
  o.data = data.try_mnist("train", { download = false }) and "mnist" or "digits"
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
local large = #train > 10000
print(("%s: %d pictures to learn from, %d to be tested with"):format(
  o.data, #train, #test))

-- Model --------------------------------------------------------------------

-- A picture is (1, height, width).  A block sees more features in half the
-- height and width.  The norm makes up for the bias of the convolution.
local function block (inputs, outputs)
  return nn.Sequential(
    nn.Conv2d(inputs, outputs, 3, { padding = "same", bias = false }),
    nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))
end

local model = nn.Sequential(
  block(1, 16), block(16, 32),
  nn.AdaptiveAvgPool2d(2),  -- of any size four numbers for each feature
  nn.Flatten(), nn.Linear(4 * 32, #classes))
print(model)

-- Training -----------------------------------------------------------------

-- The rate goes up to its peak in the first steps and from there down to
-- nothing (Smith and Topin 2017, arXiv:1708.07120): quick and calm at the end.
local epochs = o.epochs or large and 5 or 12
local batch = large and 128 or 32
local steps = epochs * math.ceil(#train / batch)

local history = fnn.fit(model, train, {
  epochs = epochs, batch_size = batch, seed = 1,
  loss = nn.cross_entropy,
  optimizer = optim.AdamW,
  schedule = optim.OneCycle(1e-2, steps),
  metrics = { accuracy = fnn.metrics.accuracy },
  validation = test,
  on_epoch = function (epoch, stats)
    print(("epoch %2d of %d: loss %.4f, %.2f %% of the test set right")
      :format(epoch, epochs, stats.loss, 100 * stats.val_accuracy))
  end,
})
local accuracy = history[#history].val_accuracy

-- A picture ----------------------------------------------------------------

-- Of 200 test pictures 32, the mistakes first: false comes before true.  (fit
-- has left the model in evaluation.)
local images, ids = test:items(fnn.arange(200, { dtype = "i64" }))
local guesses = fnn.no_grad(function () return model(images):argmax(2) end)
local order = guesses:eq(ids):to("u8"):argsort():narrow(1, 1, 32)
images, ids, guesses = images[order], ids[order], guesses[order]
local labels, truth = {}, {}
for k = 1, #ids do
  labels[k] = classes[guesses[k] + 1]
  truth[k] = guesses[k] ~= ids[k] and classes[ids[k] + 1]
end
plot.images {
  images, labels = labels, wrong = truth, columns = 8,
  title = ("%s: %.1f %% of %d right"):format(o.data, 100 * accuracy, #test),
}:save(o.picture)
print(("wrote %s: what the network takes some pictures for, mistakes first")
  :format(o.picture))

-- What each set must reach.
local wanted = { digits = 0.96, mnist = 0.98, ["fashion-mnist"] = 0.88 }
assert(accuracy > wanted[o.data] or epochs < 3,
       "the network has learned too little")
