-- digits_cnn.lua: a convolutional network learns to read digits.
--
--   fnn examples/digits_cnn.lua [--data NAME] [--epochs N] [--picture FILE]
--                               [--quick] [--device cuda]
--
-- NAME is digits, the 1797 small ones that fnn carries (what it takes without
-- the option), or fashion-mnist or mnist, 70,000 pictures of clothes or of
-- digits.  It prints the accuracy after each epoch and writes a PNG of some
-- test pictures with what the network takes them for.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "A convolutional network learns to read digits.",
  { "data", { "digits", "fashion-mnist", "mnist" }, "what it learns from" },
  { "epochs", nil, "times through the data", type = "integer", min = 1 },
  { "picture", "digits_cnn.png", "where to draw", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
if options.quick then options.data, options.epochs = "digits", 3 end

-- Data ---------------------------------------------------------------------

local train, test, classes
if options.data == "digits" then
  train, test = data.digits():split_stratified(0.8, { seed = 1 })
  classes = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }
elseif options.data == "mnist" then
  train, classes = data.mnist "train"
  test = data.mnist "test"
else
  train, classes = data.fashion_mnist "train"
  test = data.fashion_mnist "test"
end
print(("%s: %d pictures to learn from, %d to be tested with"):format(
  options.data, #train, #test))

-- Model --------------------------------------------------------------------

-- A picture is (1, height, width).  A block sees more features in half the
-- height and width; the norm makes up for the bias of the convolution.
local function block(inputs, outputs)
  return nn.Sequential(
    nn.Conv2d(inputs, outputs, 3, { padding = "same", bias = false }),
    nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))
end

local model = nn.Sequential(
  block(1, 16), block(16, 32),
  nn.AdaptiveAvgPool2d(1), -- global pooling: one number for each feature
  nn.Flatten(), nn.Linear(32, #classes))
print(model)

-- Training -----------------------------------------------------------------

local epochs = options.epochs or #train > 10000 and 5 or 15
local batch = #train > 10000 and 128 or 32

local history = fnn.fit(model, train, {
  epochs = epochs, batch_size = batch, seed = 1,
  loss = nn.cross_entropy,
  optimizer = optim.AdamW,
  schedule = optim.OneCycle(1e-2, epochs * math.ceil(#train / batch)),
  metrics = { accuracy = fnn.metrics.accuracy },
  validation = test,
  on_epoch = function (epoch, stats)
    print(("epoch %2d of %d: loss %.4f, %.2f %% of the test set right")
      :format(epoch, epochs, stats.loss, 100 * stats.val_accuracy))
  end,
})
local accuracy = history[#history].val_accuracy

-- A picture ----------------------------------------------------------------

-- fit has left the model in evaluation.
local images, ids = test:items(fnn.arange(24, { dtype = "i64" }))
local guesses = fnn.no_grad(function () return model(images):argmax(2) end)
local labels, truth = {}, {}
for k = 1, #ids do
  labels[k] = classes[guesses[k] + 1]
  truth[k] = guesses[k] ~= ids[k] and classes[ids[k] + 1]
end
fnn.plot.images {
  images, labels = labels, wrong = truth, columns = 8,
  title = ("%s: %.1f%% of %d right"):format(options.data, 100 * accuracy,
                                            #test),
}:save(options.picture)
print(("wrote %s: what the network takes some pictures for, mistakes in red")
  :format(options.picture))

-- What each set must reach.
local wanted = { digits = 0.95, mnist = 0.9, ["fashion-mnist"] = 0.82 }
assert(accuracy > wanted[options.data] or epochs < 3,
       "the network has learned too little")
