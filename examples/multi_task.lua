-- multi_task.lua: one network finds a digit in a picture and says which one it
-- is: a trunk that both tasks share, a head for each, and one loss.
--
--   fnn examples/multi_task.lua [--quick] [--picture FILE] [--device cuda]
--
-- The picture shows scenes of test digits, the box that the network draws
-- around each (green, and grey where it truly is) and what it takes it for;
-- what is wrong is red.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "A network finds a digit in a picture and says which one it is.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "multi_task.png", "where to draw", value = "FILE" },
}
local steps = options.quick and 400 or 3000
math.randomseed(options.seed)

local train, test = data.digits():split_stratified(0.8)
local side = 20  -- pixels of a scene

-- Noisy pictures (n, 1, side, side), each with one digit, of any size from 8
-- to 12 and anywhere; what digit that is, and its box: row, column and size, as
-- shares of the side.
local function scenes(digits, ids)
  local x, boxes = fnn.rand(#ids, 1, side, side) * 0.4, {}
  for i = 1, #ids do
    local size = math.random(8, 12)
    local row, column = math.random(0, side - size), math.random(0, side - size)
    local digit = digits[i]:unsqueeze(1):interpolate {
      size = size, mode = "bilinear" }
    local place = x[i]:narrow(2, row + 1, size):narrow(3, column + 1, size)
    place:copy_(place:maximum(digit[1]))
    boxes[i] = { row / side, column / side, size / side }
  end
  return x, ids, fnn.tensor(boxes)
end

local Finder = nn.module "Finder"

local function block(inputs, outputs)
  return nn.Sequential(
    nn.Conv2d(inputs, outputs, 3, { padding = "same", bias = false }),
    nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))
end

function Finder:init()
  -- What both need: where there are strokes, and of what kind.
  self.trunk = nn.Sequential(block(1, 16), block(16, 32), block(32, 64),
                             nn.Flatten(), nn.Linear(64 * 2 * 2, 128),
                             nn.ReLU())
  self.class = nn.Linear(128, 10)
  self.box = nn.Linear(128, 3)
end

function Finder:forward(x)
  local seen = self.trunk(x)
  return self.class(seen), self.box(seen)
end

-- One loss: each task's, weighted so that neither drowns the other.
local function loss_of(logits, boxes, ids, true_boxes)
  return nn.cross_entropy(logits, ids) +
         3 * nn.smooth_l1(boxes, true_boxes, { beta = 0.1 })
end

-- How well boxes lie: the area that they share, of all that they cover.
local function overlap(a, b)
  local function edges(box)
    return box:narrow(2, 1, 2), box:narrow(2, 1, 2) + box:narrow(2, 3, 1),
           box:select(2, 3):square()
  end
  local a1, a2, area_a = edges(a)
  local b1, b2, area_b = edges(b)
  local shared = (a2:minimum(b2) - a1:maximum(b1)):clamp(0):prod(2)
  return shared / (area_a + area_b - shared)
end

local finder = Finder()
local opt = optim.AdamW(finder:parameters(), { lr = 5e-3 })
local law = optim.WarmupCosine(5e-3, steps // 20, steps)
local schedule = optim.scheduler(opt, law)
local x, ids, boxes = scenes(test:all())

local function score(step)  -- prints it, and returns what it is of
  finder:eval()
  local logits, found = fnn.no_grad(finder, x)
  finder:train()
  local right = fnn.metrics.accuracy(logits, ids)
  local shared = overlap(found, boxes)
  print(("step %4d: %5.1f %% of the digits right, boxes overlap by %4.1f %%")
    :format(step, 100 * right, 100 * shared:mean():item()))
  return right, shared, logits:argmax(2), found
end

for step = 0, steps - 1 do
  if step % (steps // 8) == 0 then score(step) end
  local seen, is, at = scenes(train:items(fnn.randint(0, #train, 64)))
  schedule(step)
  opt:zero_grad()
  local logits, found = finder(seen)
  loss_of(logits, found, is, at):backward()
  opt:step()
end
local right, shared, guesses, found = score(steps)

-- The picture ----------------------------------------------------------------

local scale, count = 6, 32
local shown = (x:narrow(1, 1, count):interpolate { scale_factor = scale }
               :clamp(0, 1) * 255):to "u8":expand(count, 3, -1, -1)
local images, truth = {}, {}
for i = 1, count do
  local image = shown[i]:permute(2, 3, 1):contiguous()
  for _, box in ipairs { { boxes[i], 0x808080 }, { found[i], 0x00c040 } } do
    local place = (box[1] * (side * scale)):totable()
    fnn.io.draw_rect(image, place[2] // 1 + 1, place[1] // 1 + 1,
                     place[3] // 1, place[3] // 1, box[2], 2)
  end
  images[i] = image:permute(3, 1, 2)
  truth[i] = guesses[i] ~= ids[i] and ids[i]
end
fnn.plot.images { fnn.stack(images), labels = guesses, wrong = truth,
                  columns = 8 }:save(options.picture)
print(options.picture .. " shows test scenes with what was found in them")
assert(right > (options.quick and 0.8 or 0.95), "digits are not told apart")
assert(shared:mean():item() > (options.quick and 0.65 or 0.75), "boxes are off")
