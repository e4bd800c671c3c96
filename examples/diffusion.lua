-- diffusion.lua: makes handwritten digits out of noise, by flow matching
-- (Lipman et al. 2023), which is what today's makers of images do.
--
--   fnn examples/diffusion.lua [--quick] [--picture FILE] [--device cuda]
--
-- The picture has a row for each digit: on the left the noise that one of them
-- is made of and how it comes out, then eight that nobody wrote.  A classifier
-- that has learned from real digits says how many of 1000 are what they were
-- to be.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "Learns to make handwritten digits out of noise.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "diffusion.png", "where to draw", value = "FILE" },
}
local steps = options.quick and 250 or 2000

local train, test = data.digits():split_stratified(0.8)
local digits, labels = train:all()
digits = digits:flatten(2) * 2 - 1  -- (n, 64), from -1 to 1

-- The model ------------------------------------------------------------------

-- A point goes straight from noise, at t = 0, to a digit, at t = 1.  The net
-- sees where it is at some time and which digit it is to be, and says where it
-- is going: digit - noise, in the mean of all that come through there.
local Flow = nn.module "Flow"

function Flow:init(dim, depth)
  self.input = nn.Linear(64, dim)
  self.time = nn.Sequential(nn.Linear(32, dim), nn.SiLU(), nn.Linear(dim, dim))
  self.class = nn.Embedding(10, dim)
  self.blocks, self.norms, self.scales = {}, {}, {}
  for i = 1, depth do
    self.norms[i] = nn.LayerNorm(dim)
    self.scales[i] = nn.Linear(dim, 2 * dim)
    self.blocks[i] = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(),
                                   nn.Linear(2 * dim, dim))
  end
  self.output = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64))
end

-- x (n, 64), t (n, 1), ids (n): the velocities (n, 64).
function Flow:forward(x, t, ids)
  -- The time as waves of many lengths, from which it can be told finely.
  local angles = t * (fnn.arange(1, 17):to "f32" * (math.pi / 2))
  local waves = fnn.cat({ angles:sin(), angles:cos() }, 2)
  local what = (self.time(waves) + self.class(ids)):silu()
  local h = self.input(x)
  for i, block in ipairs(self.blocks) do
    -- Time and class stretch and move what a block sees.
    local scale, shift = table.unpack(self.scales[i](what):chunk(2, 2))
    h = h + block(self.norms[i](h) * (scale + 1) + shift)
  end
  return self.output(h)
end

local flow = Flow(256, 4)

local opt = optim.AdamW(flow:parameters(), { weight_decay = 0.01 })
local law = optim.WarmupCosine(2e-3, steps // 20, steps)
local schedule = optim.scheduler(opt, law)
-- What is sampled with is the running mean of the weights, which wobbles less.
local ema = optim.Ema(flow, { decay = options.quick and 0.98 or 0.998 })

for step = 1, steps do
  local picked = fnn.randint(0, #digits, 128)
  local digit = digits:index_select(1, picked)
  local noise, t = fnn.randn(128, 64), fnn.rand(128, 1)
  schedule(step - 1)
  opt:zero_grad()
  local velocity = flow(noise + t * (digit - noise), t,
                        labels:index_select(1, picked))
  local loss = nn.mse(velocity, digit - noise)
  loss:backward()
  opt:step()
  ema:update()
  if step % (steps // 5) == 0 then
    print(("step %4d: loss %.3f"):format(step, loss:item()))
  end
end

-- Samples --------------------------------------------------------------------

-- From noise straight on, in small steps; stages[k + 1] is how it is after k.
local ids = fnn.arange(1000, { dtype = "i64" }) % 10
local stages = { fnn.randn(#ids, 64) }
fnn.no_grad(ema.averaged, ema, function ()
  for k = 0, 19 do
    local x, t = stages[k + 1], fnn.full({ #ids, 1 }, k / 20)
    stages[k + 2] = x + flow(x, t, ids) / 20
  end
end)
local made = stages[21]:clamp(-1, 1)

-- The judge has seen real digits alone.
local judge = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3),
                            nn.Linear(128, 10))
fnn.fit(judge, { digits, labels }, { epochs = 12, lr = 2e-3, progress = false,
                                     loss = nn.cross_entropy })
local agreed = fnn.metrics.accuracy(judge(made), ids)

-- Is a sample a copy?  How far the nearest digit of those learned from is,
-- beside how far it is from digits that were put aside.
local function nearest(x)
  local square = (x * x):sum(2, { keepdim = true }) + (digits * digits):sum(2) -
                 2 * x:matmul(digits:t())
  return square:min(2):clamp(0):sqrt():mean():item()
end
local real = test:all():flatten(2) * 2 - 1
print(("%.1f %% of %d are taken for what they were to be"):format(
  100 * agreed, #ids))
print(("the nearest digit learned from is %.2f away, of a new real one %.2f")
  :format(nearest(made), nearest(real)))

local rows = {}
for k, at in ipairs { 1, 7, 13, 17, 21, 21, 21, 21, 21, 21, 21, 21, 21 } do
  rows[k] = stages[at]:narrow(1, 10 * math.max(0, k - 5) + 1, 10)
end
local shown = (fnn.stack(rows, 2):view(-1, 1, 8, 8) / 2 + 0.5)
              :interpolate { scale_factor = 8, mode = "bilinear" }
fnn.plot.images { shown, columns = #rows }:save(options.picture)
print(options.picture .. " shows some, and how they come out of the noise")
assert(agreed > 0.8, "the digits are not what they were to be")
