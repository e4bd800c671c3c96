-- gan.lua: two networks play against each other (Goodfellow et al. 2014), until
-- one of them can draw digits.
--
--   fnn examples/gan.lua [--quick] [--picture FILE] [--device cuda]
--
-- The picture has a row for each digit: two real ones on the left, and ten that
-- the network has drawn.  A classifier that has learned from real digits says
-- how many of 1000 are what they were to be.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local options = fnn.cli {
  "Two networks play against each other until one can draw digits.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "gan.png", "where to draw", value = "FILE" },
}
local steps = options.quick and 1000 or 8000
local batch, noise_size = 64, 32

local digits, labels = data.digits():all()
digits = digits:flatten(2) * 2 - 1  -- (1797, 64), from -1 to 1

-- The painter makes a digit of noise: other noise, another digit.  Which one of
-- the ten it is to be is told by an id, as which a vector goes in beside it.
local Painter = nn.module "Painter"

function Painter:init(hidden)
  self.class = nn.Embedding(10, 32)
  self.layers = nn.Sequential(
    nn.Linear(noise_size + 32, hidden), nn.BatchNorm1d(hidden),
    nn.LeakyReLU(0.2),
    nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.LeakyReLU(0.2),
    nn.Linear(hidden, 64), nn.Tanh())
end

function Painter:forward(ids)
  local noise = fnn.randn(#ids, noise_size)
  return self.layers(fnn.cat({ noise, self.class(ids) }, 2))
end

-- The critic says whether a digit is real: a logit.  It must not become too
-- sure, or the painter learns nothing from it: hence the Dropout.
local Critic = nn.module "Critic"

function Critic:init(hidden)
  self.class = nn.Embedding(10, 32)
  self.layers = nn.Sequential(
    nn.Linear(64 + 32, hidden), nn.LeakyReLU(0.2), nn.Dropout(0.3),
    nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Dropout(0.3),
    nn.Linear(hidden, 1))
end

function Critic:forward(x, ids)
  return self.layers(fnn.cat({ x, self.class(ids) }, 2))
end

local painter, critic = Painter(256), Critic(256)

-- The play -------------------------------------------------------------------

-- An optimizer for each, with less momentum than usual: what is good for one
-- changes with what the other learns.
local adam = { lr = 5e-4, betas = { 0.5, 0.999 } }
local painter_opt = optim.Adam(painter:parameters(), adam)
local critic_opt = optim.Adam(critic:parameters(), adam)
-- The painter goes to and fro; the running mean of its weights paints better.
local ema = optim.Ema(painter, { decay = options.quick and 0.98 or 0.995 })

local yes, no = fnn.full({ batch, 1 }, 0.9), fnn.zeros(batch, 1)

for step = 1, steps do
  local picked = fnn.randint(0, #digits, batch)
  local ids = labels:index_select(1, picked)
  local real, fake = digits:index_select(1, picked), painter(ids)

  -- The critic learns to tell them apart.  detach: not the painter.
  critic_opt:zero_grad()
  local critic_loss = nn.bce_with_logits(critic(real, ids), yes) +
                      nn.bce_with_logits(critic(fake:detach(), ids), no)
  critic_loss:backward()
  critic_opt:step()

  -- The painter learns to be taken for real: the gradient goes through the
  -- critic, whose own is dropped by its next zero_grad.
  painter_opt:zero_grad()
  local painter_loss = nn.bce_with_logits(critic(fake, ids), yes)
  painter_loss:backward()
  painter_opt:step()
  ema:update()

  if step % (steps // 8) == 0 then
    print(("step %4d: loss of the critic %.3f, of the painter %.3f"):format(
      step, critic_loss:item(), painter_loss:item()))
  end
end

-- What it paints -------------------------------------------------------------

painter:eval()
local ids = fnn.arange(1000, { dtype = "i64" }) % 10
local made = fnn.no_grad(ema.averaged, ema, painter, ids)

local judge = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3),
                            nn.Linear(128, 10))
fnn.fit(judge, { digits, labels }, { epochs = 12, lr = 2e-3, progress = false,
                                     loss = nn.cross_entropy })
local agreed = fnn.metrics.accuracy(judge(made), ids)

-- One that always paints the same 3 has learned little: how much the made ones
-- of a class vary, as a share of how much real ones do.
local variance, rows = 0, {}
for class = 0, 9 do
  local real = digits:index_select(1, labels:eq(class):nonzero():flatten())
  local own = made:index_select(1, ids:eq(class):nonzero():flatten())
  variance = variance + (own:var(1):sum() / real:var(1):sum()):item() / 10
  rows[class + 1] = fnn.cat { real:narrow(1, 1, 2), own:narrow(1, 1, 10) }
end
print(("%.1f %% of %d are taken for what they were to be; they vary %.0f %% " ..
       "as much as real ones"):format(100 * agreed, #ids, 100 * variance))
local shown = fnn.cat(rows):view(-1, 1, 8, 8) / 2 + 0.5
fnn.plot.images { shown:interpolate { scale_factor = 8, mode = "bilinear" },
                  columns = 12 }:save(options.picture)
print(options.picture .. " shows some, beside real ones")
assert(agreed > 0.8, "the digits are not what they were to be")
assert(variance > (options.quick and 0.2 or 0.6), "they are all alike")
