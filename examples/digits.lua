-- digits.lua: trains a small network on real handwritten digits and draws what
-- it takes the test digits for.
--
--   fnn examples/digits.lua [--quick] [--picture digits.png] [--device cuda]
--
-- The 1797 digits of 8 by 8 pixels are in the library; see data.digits.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "A small network learns handwritten digits and draws what it makes of them.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "digits.png", "where to draw", value = "FILE" },
}
local epochs, picture = options.quick and 4 or 20, options.picture

local train, test = data.digits():split_stratified(0.8)
print(("%d digits to learn from, %d to be tested on"):format(#train, #test))

local model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(),
                            nn.Dropout(0.2), nn.Linear(128, 10))
print(model)
local opt = optim.AdamW(model:parameters(), { lr = 2e-3 })

-- What the model takes the digits for, and how many of them are right.
local function predict(images, labels)
  model:eval()
  local ids = fnn.no_grad(function() return model(images):argmax(-1) end)
  model:train()
  return ids, ids:eq(labels):sum():item()
end

local images, labels = test:all()
local begin = os.clock()
for epoch = 1, epochs do
  local sum, count = 0, 0
  for x, y in train:batches(32, { shuffle = true, epoch = epoch }) do
    opt:zero_grad()
    local loss = nn.cross_entropy(model(x), y)
    loss:backward()
    opt:step()
    sum, count = sum + loss:item(), count + 1
  end
  if epoch % 4 == 0 then
    local _, right = predict(images, labels)
    print(("epoch %2d  loss %.4f  test accuracy %.1f %%"):format(
      epoch, sum / count, 100 * right / #test))
  end
end
print(("trained in %.1f s of processor time"):format(os.clock() - begin))

-- The picture: test digits with what they were taken for, the wrong ones first
-- so that it has them all.
local ids, right = predict(images, labels)
local order = {}
for _, wrong in ipairs { true, false } do
  for i = 1, #test do
    if (ids[i] ~= labels[i]) == wrong then order[#order + 1] = i - 1 end
  end
end
local shown = math.min(96, #order)
local said, truth = {}, {}
for k = 1, shown do
  local i = order[k] + 1
  said[k] = ids[i]
  truth[k] = ids[i] ~= labels[i] and labels[i]  -- false where it is right
end
local drawn = images:index_select(1, { table.unpack(order, 1, shown) })
fnn.plot.images { drawn, labels = said, wrong = truth, columns = 12 }
  :save(picture)
print(("%d of %d test digits are right; %s shows %d of them, the %d wrong " ..
       "ones first, marked"):format(right, #test, picture, shown,
                                    #test - right))
