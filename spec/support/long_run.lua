-- long_run.lua: a training that can be killed at any moment and goes on where
-- it was: dropout, shuffled batches read ahead, BatchNorm, an average of the
-- weights, a schedule and clipping.  For scripts/kill-training.
--
--   fnn spec/support/long_run.lua FOLDER STEPS
--
-- Prints where it begins, "from STEP EPOCH BATCH", and each step when it is
-- done.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data
local folder, steps = arg[1], math.tointeger(arg[2])
io.stdout:setvbuf "line"

fnn.manual_seed(1)
local model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32),
                            nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3),
                            nn.Linear(32, 10))
local inner = optim.AdamW(model:parameters(), { lr = 5e-3 })
local state = {
  model = model,
  opt = optim.Lookahead(inner, { k = 4 }),
  ema = optim.Ema(model:parameters(), { decay = 0.95 }),
  plateau = optim.ReduceOnPlateau(1, { patience = 5 }),
  loader = data.DataLoader(data.digits(), { batch = 64, shuffle = true,
                                            seed = 7, prefetch = 3 }),
  noise = fnn.Generator(5),
}
state.schedule = optim.scheduler(state.opt,
                                 optim.WarmupCosine(5e-3, steps // 10, steps))

local checkpoints = fnn.checkpoints(folder, { keep = 2, best = "loss" })
local run = checkpoints:resume(state) or { step = 0, sum = 0.0 }
local epoch, batch = state.loader:cursor()
print(("from %d %d %d"):format(run.step, epoch, batch))

local function learn(x, y)
  state.schedule(run.step)
  state.opt:zero_grad()
  x = x + fnn.randn(x:shape(), { generator = state.noise }) * 0.1
  local loss = nn.cross_entropy(model(x), y)
  loss:backward()
  optim.clip_grad_norm(model:parameters(), 1)
  state.opt:step()
  state.ema:update()
  run.step, run.loss = run.step + 1, loss:item()
  run.sum = run.sum + run.loss
  state.plateau:update(run.loss)
end

while run.step < steps do
  for x, y in state.loader do
    learn(x, y)
    if run.step % 3 == 0 or run.step == steps then
      checkpoints:save(state, run)
    end
    print(run.step)
    if run.step == steps then break end
  end
end
