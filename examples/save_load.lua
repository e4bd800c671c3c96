-- save_load.lua: what training has learned, in files: the weights of a model,
-- and a whole run that stops and goes on as if it had not.
--
--   fnn examples/save_load.lua [--quick] [--picture save_load.png]
--
-- The picture shows the loss of a run in one go, and of one that stopped half
-- way and was taken up by a new model and optimizer: the points are on the
-- line.  The files stay: save_load.safetensors and save_load.training.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "Saves and loads a model, and a run of training.",
  { "picture", "save_load.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
local train, test = data.digits():split_stratified(0.8, { seed = 1 })
local images, labels = test:all()

local function new_model (width)
  return nn.Sequential(nn.Flatten(), nn.Linear(64, width),
                       nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.3),
                       nn.Linear(width, 10))
end

local function predict (model)
  model:eval()  -- nothing is dropped, and the norm's statistics stand
  return fnn.no_grad(function () return model(images) end)
end

local function accuracy (model)
  return 100 * fnn.metrics.accuracy(predict(model), labels)
end

local function same (a, b) return a:eq(b):all():item() end

-- A run is all that changes while a model is trained: its weights, what the
-- optimizer knows of each, and which of the shuffled pictures come next.  (The
-- random numbers, which Dropout draws, are always kept with it.)
local function new_run ()
  local model = new_model(64)
  return {
    model = model, optimizer = optim.AdamW(model:parameters(), { lr = 2e-3 }),
    loader = data.DataLoader(train, { batch = 32, shuffle = true, seed = 1 }),
  }
end

-- Trains from one step to another.  Returns a curve: the mean loss of each 20
-- steps.
local function train_steps (run, step, last)
  local curve, sum = { x = {}, y = {} }, 0
  run.model:train()
  while step < last do
    for x, y in run.loader:epoch() do  -- what is left of it, or the next one
      run.optimizer:zero_grad()
      local loss = nn.cross_entropy(run.model(x), y)
      loss:backward()
      run.optimizer:step()
      step, sum = step + 1, sum + loss:item()
      if step % 20 == 0 then
        table.insert(curve.x, step)
        table.insert(curve.y, sum / 20)
        sum = 0
      end
      if step == last then break end
    end
  end
  return curve
end

-- A run in one go ----------------------------------------------------------

local steps = o.quick and 200 or 1000
local straight = new_run()
local line = train_steps(straight, 0, steps)
local answers = predict(straight.model)
print(("trained %d steps: %.1f %% of the test digits"):format(
  steps, accuracy(straight.model)))
assert(accuracy(straight.model) > 90, "the model has learned too little")

-- The model in a file ------------------------------------------------------

-- A file has the numbers; what the model is, the script says again.
straight.model:save "save_load.safetensors"
local again = new_model(64)
print(("a new model before loading: %.1f %%"):format(accuracy(again)))
again:load "save_load.safetensors"
assert(same(predict(again), answers), "the loaded model answers otherwise")
print "and after: the same answers as the model that was saved, bit for bit"

-- A model of other shapes does not take them, and says why.
local ok, why = pcall(function ()
  new_model(32):load "save_load.safetensors"
end)
assert(not ok and tostring(why):find "expected shape")
print("\ninto a model of 32 units instead of 64:\n" .. why)

-- The run in a file --------------------------------------------------------

-- Half of the steps.
fnn.manual_seed(o.seed)
local half = new_run()
local before = train_steps(half, 0, steps // 2)
half.step = steps // 2
fnn.save_training("save_load.training", half)

-- Later, in another process perhaps, when other random numbers were drawn.
fnn.manual_seed(o.seed + 1)
local resumed = new_run()
local step = fnn.load_training("save_load.training", resumed).step
print(("\nthe run in the file goes on after step %d"):format(step))
local after = train_steps(resumed, step, steps)
assert(same(predict(resumed.model), answers),
       "the run that went on ends otherwise")
print(("after step %d: the same answers as of the run in one go, bit for bit")
  :format(steps))

-- A picture ----------------------------------------------------------------

line.label, before.label, after.label =
  "in one go", "until it stopped", "taken up again"
line.line = true
plot.scatter {
  line, before, after, title = "A run that stops and goes on",
  xlabel = "step", ylabel = "loss", yscale = "log",
}:save(o.picture)
print(("wrote %s: the losses of both runs"):format(o.picture))
