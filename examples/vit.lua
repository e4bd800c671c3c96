-- vit.lua: a vision transformer (Dosovitskiy et al. 2021) learns to read
-- digits, as sequences of 16 patches, and shows what it goes by.
--
--   fnn examples/vit.lua [--quick] [--picture FILE] [--device cuda]
--
-- The picture shows test digits with what each was taken for; orange is what
-- that rests on: without it the answer would be much less likely.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local options = fnn.cli {
  "A vision transformer learns to read digits and shows what it goes by.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "vit.png", "where to draw", value = "FILE" },
}
local epochs, batch = options.quick and 8 or 60, options.quick and 32 or 64
local train, test = data.digits():split_stratified(0.8)

-- Patches of 2 by 2 pixels, a vector of 64 numbers for each, three layers in
-- which each patch attends to all others; the mean over them is classified.
local vit = nn.VisionTransformer {
  image_size = 8, patch = 2, channels = 1, classes = 10,
  dim = 64, depth = 3, heads = 4, dropout = 0.1,
}

local steps = epochs * math.ceil(#train / batch)
vit:fit(train, {
  epochs = epochs, batch_size = batch, seed = options.seed,
  schedule = optim.WarmupCosine(3e-3, steps // 10, steps),
  progress = false, validation = test,
  metrics = { accuracy = fnn.metrics.accuracy },
  on_epoch = function (epoch, stats)
    if epoch % (epochs // 4) == 0 then
      print(("epoch %2d: loss %.4f, %.1f %% of the test digits right"):format(
        epoch, stats.loss, 100 * stats.val_accuracy))
    end
  end,
})
local accuracy = vit:accuracy(test)

-- What it goes by ------------------------------------------------------------

-- A square of 3 by 3 pixels is blacked out, at each place in turn: how much
-- less likely the answer becomes, as (8, 8) numbers.
local function evidence(image, id)
  local hidden = image:expand(64, 1, 8, 8):clone()
  for i = 0, 63 do
    local row, column = i // 8, i % 8  -- the middle of the square
    hidden[i + 1]:slice(2, math.max(1, row), math.min(8, row + 2))
                 :slice(3, math.max(1, column), math.min(8, column + 2)):zero_()
  end
  local before = vit(image:unsqueeze(1)):log_softmax(-1)[1][id + 1]
  local after = vit(hidden):log_softmax(-1):select(2, id + 1)
  return (before - after):view(1, 8, 8)
end

local count = 24
local images, ids = test:items(fnn.arange(count, { dtype = "i64" }))
local guesses = vit:predict(images)
local maps, truth = {}, {}
for i = 1, count do
  local map = fnn.no_grad(evidence, images[i], guesses[i]):clamp(0)
  maps[i] = map / map:max():clamp(1e-6)
  truth[i] = guesses[i] ~= ids[i] and ids[i]
end

-- The digit in grey, what matters in orange over it.
local function smooth(x)
  return x:interpolate { scale_factor = 10, mode = "bilinear" }
end
local digit, map = smooth(images) * 0.7, smooth(fnn.stack(maps))
local shown = fnn.cat({ digit + map * 0.6,
                        digit * (1 - map * 0.6) + map * 0.25,
                        digit * (1 - map) }, 2)
plot.images { shown, labels = guesses, wrong = truth, columns = 8 }
    :save(options.picture)
print(options.picture .. " shows test digits and what matters in them")
assert(accuracy > (options.quick and 0.6 or 0.95), "it has learned too little")
