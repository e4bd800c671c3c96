-- digits.lua: trains a small network on real handwritten digits and draws what
-- it takes the test digits for.
--
--   fnn examples/digits.lua [--quick] [--picture digits.png]
--
-- The 1797 digits of 8 by 8 pixels are in the library; see data.digits.

local fnn = require "fnn"
local nn, optim, data, io_ = fnn.nn, fnn.optim, fnn.data, fnn.io

local epochs, picture = 20, "digits.png"
do
  local i = 1
  while arg[i] do
    if arg[i] == "--quick" then
      epochs = 4
    elseif arg[i] == "--picture" and arg[i + 1] then
      i = i + 1
      picture = arg[i]
    else
      error("digits.lua: unknown argument " .. arg[i], 0)
    end
    i = i + 1
  end
end

fnn.manual_seed(1)
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

-- ---------------------------------------------------------------------------
-- The picture: a grid of test digits, each with its label
-- ---------------------------------------------------------------------------

local columns, rows, pixels = 12, 8, 6  -- pixels: the side of one of theirs
local side, line = 8 * pixels, 14       -- of a digit, and of its label
local cell = { side + 12, side + line + 12 }

local sheet = fnn.full({ rows * cell[2] + 6, columns * cell[1] + 6, 3 }, 24,
                       { dtype = "u8" })

-- A digit (1, 8, 8) from 0 to 1 as RGB bytes, each pixel a square.
local function enlarged(digit)
  return (digit:reshape(8, 1, 8, 1, 1) * 255):expand(8, pixels, 8, pixels, 3)
         :reshape(side, side, 3):to "u8"
end

local ids, right = predict(images, labels)
-- Wrong ones first, so that the picture has them all.
local order = {}
for _, wrong in ipairs { true, false } do
  for i = 1, #test do
    if (ids[i] ~= labels[i]) == wrong then order[#order + 1] = i end
  end
end

for k = 1, math.min(#order, rows * columns) do
  local i = order[k]
  local x = (k - 1) % columns * cell[1] + 10
  local y = (k - 1) // columns * cell[2] + 10
  sheet:narrow(1, y, side):narrow(2, x, side):copy_(enlarged(images[i]))
  local said, is = ids[i], labels[i]
  if said == is then
    io_.draw_text(sheet, x, y + side + 4, tostring(said), 0x60d060)
  else
    io_.draw_text(sheet, x, y + side + 4, ("%d, is %d"):format(said, is),
                  0xff6060)
    io_.draw_rect(sheet, x - 3, y - 3, side + 6, side + line + 6, 0xff6060, 2)
  end
end
io_.write_png(picture, sheet)
print(("%d of %d test digits are right; %s shows %d of them, the %d wrong " ..
       "ones first, in red"):format(right, #test, picture,
                                    math.min(#order, rows * columns),
                                    #test - right))
