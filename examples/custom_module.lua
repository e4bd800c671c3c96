-- custom_module.lua: layers written in Lua, in a model that tells the arms of
-- two spirals apart.
--
--   fnn examples/custom_module.lua [--quick] [--device cuda]
--
-- A module is a class with a forward.  What its fields hold - parameters,
-- tensors, other modules, tables of them - is found by everything that works
-- on models: training, saving, moving, printing.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local quick = fnn.cli {
  "Layers written in Lua tell the arms of two spirals apart.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 7, "the same start, and so the same end, each time" },
}.quick

-- x + inner(x), with a learned scale that starts small.
local Residual = nn.module "Residual"

function Residual:init (inner)
  self.inner = inner
  self.scale = fnn.Param(fnn.full({ 1 }, 0.1))
end

function Residual:forward (x)
  return x + self.inner(x) * self.scale
end

-- A network of residual blocks.  It also counts the examples it was trained
-- on; state and load_state keep that number with the weights.
local Spirals = nn.module "Spirals"

function Spirals:init (width, depth)
  self.first = nn.Linear(2, width)
  self.blocks = {}
  for i = 1, depth do
    self.blocks[i] = Residual(nn.Sequential(nn.LayerNorm(width),
                                            nn.Linear(width, width), nn.GELU(),
                                            nn.Linear(width, width)))
  end
  self.last = nn.Linear(width, 2)
  self.seen = 0
end

function Spirals:forward (x)
  x = self.first(x)
  for _, block in ipairs(self.blocks) do x = block(x) end
  if self.training then self.seen = self.seen + #x end
  return self.last(x)
end

function Spirals:state () return { seen = self.seen } end
function Spirals:load_state (t) self.seen = t.seen end

-- n points on each arm, and the id of the arm: 0 or 1.
local function spirals (n)
  local points, arms = {}, {}
  for i = 1, n do
    local t = i / n
    for arm = 0, 1 do
      local angle = 3.5 * math.pi * t + math.pi * arm
      points[#points + 1] = { t * math.cos(angle), t * math.sin(angle) }
      arms[#arms + 1] = arm
    end
  end
  local x = fnn.tensor(points)
  return x + fnn.randn(x:shape()) * 0.01, fnn.tensor(arms, { dtype = "i64" })
end

local function accuracy (model, x, y)
  local right = 0
  model:eval()
  local found = fnn.no_grad(function () return model(x):argmax(2) end)
  model:train()
  for i, id in ipairs(found:totable()) do
    if id == y[i] then right = right + 1 end
  end
  return 100 * right / #y
end

local x, y = spirals(quick and 40 or 200)
local model = Spirals(quick and 16 or 32, 2)
print(model)
print(fnn.summary(model, x))

local opt = optim.AdamW(model:parameters(), { lr = 1e-2 })
local steps = quick and 100 or 400
for step = 1, steps do
  opt:zero_grad()
  local loss = nn.cross_entropy(model(x), y)
  loss:backward()
  opt:step()
  if step % (steps // 4) == 0 then
    print(("step %4d  loss %.4f  %.1f%% right"):format(
      step, loss:item(), accuracy(model, x, y)))
  end
end
model:eval()

-- Saved, and read into a model with other weights: the same output.
local path = os.tmpname()
model:save(path)
local copy = Spirals(quick and 16 or 32, 2):eval()
local report = copy:load(path)
os.remove(path)
print(("read %d tensors; trained on %d points"):format(#report.loaded,
                                                       copy.seen))
local a, b = model(x):totable(), copy(x):totable()
for i = 1, #a do
  assert(a[i][1] == b[i][1] and a[i][2] == b[i][2], "the copy differs")
end
print("the copy gives the same output")
