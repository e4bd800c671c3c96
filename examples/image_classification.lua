-- image_classification.lua: a folder of pictures, a folder in it for each
-- class, and a network that tells the classes apart.
--
--   fnn examples/image_classification.lua [--quick] [--folder FOLDER]
--                                         [--picture FILE]
--
-- The pictures are drawn here, in the folder shapes, so that there are some:
-- circles, squares, triangles and crosses of any size, place, turn and colour,
-- in noise.  A folder of your own serves as well: FOLDER/cat/anything.png,
-- FOLDER/dog/...

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "Learns the classes of a folder of pictures.",
  { "folder", nil, "the pictures, if not ones that are drawn here",
    value = "FOLDER" },
  { "picture", "image_classification.png", "where to draw", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
local side = 32  -- pixels of a picture, each way

-- Pictures -----------------------------------------------------------------

-- Whether points are inside of a shape of size 1 around the middle: how far
-- outside they are, below 0 inside.  u goes right, v down; both (side, side).
local shapes = {
  circle = function (u, v) return (u * u + v * v):sqrt() - 0.9 end,
  square = function (u, v) return fnn.maximum(u:abs(), v:abs()) - 0.8 end,
  triangle = function (u, v)
    return fnn.maximum(u:abs() * 0.866 - v * 0.5, v) - 0.5
  end,
  cross = function (u, v)
    u, v = u:abs(), v:abs()
    return fnn.maximum(fnn.maximum(u, v) - 1, fnn.minimum(u, v) - 0.3)
  end,
}

-- One picture of a shape: bytes (side, side, 3).
local function draw (shape)
  local r = fnn.rand(4)  -- four numbers from 0 to 1 say where and how
  local line = fnn.linspace(-1, 1, side)
  local x = line:unsqueeze(1) - (r[1] - 0.5) * 0.7  -- columns
  local y = line:unsqueeze(2) - (r[2] - 0.5) * 0.7  -- rows
  local turn, size = (r[3] - 0.5) * 1.2, 0.28 + 0.35 * r[4]
  local u = (x * math.cos(turn) + y * math.sin(turn)) / size
  local v = (y * math.cos(turn) - x * math.sin(turn)) / size
  local inside = (shape(u, v) * (-side * size)):sigmoid():unsqueeze(3)
  local ground, color = fnn.rand(3) * 0.4, fnn.rand(3) * 0.6 + 0.4
  local image = ground + inside * (color - ground)
                + fnn.randn(side, side, 3) * 0.12
  return (image:clamp(0, 1) * 255):to "u8"
end

local function draw_all (folder, count)
  for _, name in ipairs { "circle", "cross", "square", "triangle" } do
    fnn.io.make_folder(folder .. "/" .. name)
    for i = 1, count do
      fnn.io.write_png(("%s/%s/%03d.png"):format(folder, name, i),
                       draw(shapes[name]))
    end
  end
end

-- Only into a folder of its own.
local folder = o.folder or "shapes"
if not o.folder and not fnn.io.is_file(folder .. "/triangle/120.png") then
  draw_all(folder, 120)
end

-- Data ---------------------------------------------------------------------

-- Pictures (3, side, side) with values from 0 to 1, read as they are asked for,
-- and the id of each one's class; the classes are the folders' names.
local pictures = data.ImageFolder(folder, { size = { side, side } })
local classes = pictures.classes

-- Half of each class is kept for testing.  Those to learn from come twice, as
-- they are and mirrored: a triangle in a mirror is a triangle.
local train, test = pictures:split_stratified(0.5, { seed = 1 })
local mirrored = train:flip_horizontal()
print(("%s: %d pictures of %s; %d to learn from, with mirror images %d"):format(
  folder, #pictures, table.concat(classes, ", "), #train, #mirrored))

-- Model and training -------------------------------------------------------

local function block (inputs, outputs)
  return nn.Sequential(
    nn.Conv2d(inputs, outputs, 3, { padding = "same", bias = false }),
    nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))
end

local model = nn.Sequential(
  block(3, 16), block(16, 32), block(32, 64),
  nn.AdaptiveMaxPool2d(1),  -- the most of each feature, wherever it is
  nn.Flatten(), nn.Linear(64, #classes))
print(model)

local epochs = o.quick and 8 or 20
fnn.fit(model, mirrored, {
  epochs = epochs, batch_size = 32, seed = 1, loss = nn.cross_entropy,
  optimizer = optim.AdamW,
  schedule = optim.OneCycle(1e-2, epochs * math.ceil(#mirrored / 32)),
  metrics = { accuracy = fnn.metrics.accuracy }, validation = test,
  on_epoch = function (epoch, stats)
    print(("epoch %2d of %d: loss %.4f, %.1f %% of the test pictures"):format(
      epoch, epochs, stats.loss, 100 * stats.val_accuracy))
  end,
})

-- What was taken for what --------------------------------------------------

local images, ids = test:all()
local outputs = fnn.no_grad(function () return model(images) end)
local guesses = outputs:argmax(2)
local accuracy = fnn.metrics.accuracy(outputs, ids)

-- Every tenth test picture: they are in the order of their classes.
local shown, labels, truth = {}, {}, {}
for i = 1, #test, 10 do
  shown[#shown + 1] = i - 1
  labels[#shown] = classes[guesses[i] + 1]
  truth[#shown] = guesses[i] ~= ids[i] and classes[ids[i] + 1]
end
plot.grid {
  plot.images { images:index_select(1, shown), labels = labels, wrong = truth,
                columns = 6, title = "what it takes some of them for" },
  plot.confusion { fnn.metrics.confusion(outputs, ids), classes = classes,
                   title = ("%.1f %% of %d test pictures are right"):format(
                     100 * accuracy, #test) },
  columns = 2,
}:save(o.picture)
print(("wrote %s: some pictures, and what was taken for what"):format(
  o.picture))
assert(accuracy > 0.8, "the network has not learned the shapes")
