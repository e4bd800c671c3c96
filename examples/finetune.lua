-- finetune.lua: a network that reads the digits 0 to 4 learns 5 to 9 from ten
-- examples of each.  What it knows of strokes is frozen; only a new last layer
-- is trained, which takes less than half the work of learning all of it.
--
--   fnn examples/finetune.lua [--quick] [--picture finetune.png]
--
-- The picture compares it with a network that starts from nothing.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "Trains a new head on a frozen backbone.",
  { "picture", "finetune.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}

-- Data ---------------------------------------------------------------------

-- The digits from first to first + 4, as classes 0 to 4.
local function five_digits (first)
  local x, y = data.digits():all()
  local wanted = y:ge(first):logical_and(y:lt(first + 5))
  return data.TensorDataset(x[wanted], y[wanted] - first)
end

local old_train, old_test = five_digits(0):split_stratified(0.8, { seed = 1 })
local new = five_digits(5)
local new_train, new_test = new:split_stratified(50 / #new, { seed = 1 })
print(("%d pictures of 0 to 4 come first, then %d of 5 to 9; %d to test")
  :format(#old_train, #new_train, #new_test))

-- Models -------------------------------------------------------------------

-- The backbone makes 256 numbers of a picture, the head tells classes by them.
local function new_backbone ()
  return nn.Sequential(
    nn.Conv2d(1, 32, 3, { padding = 1 }), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 64, 3, { padding = 1 }), nn.BatchNorm2d(64), nn.ReLU(),
    nn.MaxPool2d(4), nn.Flatten())
end

local function new_head () return nn.Linear(256, 5) end

-- Training -----------------------------------------------------------------

-- Trains what is not frozen.  Returns the processor's milliseconds at the end
-- of each epoch, and the per cent of the test set that are right then.
local function learn (model, lr, epochs, train, test)
  local opt = optim.AdamW(model:trainable_parameters(), { lr = lr })
  local times, rights, spent = { 0 }, { 0 }, 0
  for epoch = 1, epochs + 1 do
    rights[epoch] = 100 * fnn.evaluate(model, test, {
      batch_size = 500, metrics = { accuracy = fnn.metrics.accuracy },
    }).accuracy
    times[epoch] = 1000 * spent
    if epoch > epochs then return times, rights end
    local begin = os.clock()
    model:train()
    -- A frozen norm must not gather statistics either.
    if #model[1]:trainable_parameters() == 0 then model[1]:eval() end
    for x, y in train:batches(16, { shuffle = true, epoch = epoch }) do
      opt:zero_grad()
      nn.cross_entropy(model(x), y):backward()
      opt:step()
    end
    spent = spent + os.clock() - begin
  end
end

-- First the old digits, of which there are many.
local backbone = new_backbone()
local _, old = learn(nn.Sequential(backbone, new_head()), 2e-3, 5, old_train,
                     old_test)
print(("0 to 4: %.1f %% of the test pictures"):format(old[#old]))

-- Then the new ones.  What the backbone holds, weights and statistics, is
-- noted to see that nothing of it changes.
backbone:freeze()
local function contents ()
  local state = backbone:state_dict()
  for i, name in ipairs(state) do state[i] = state[name]:clone() end
  return state
end
local before = contents()

local epochs = o.quick and 20 or 40
local tuned = nn.Sequential(backbone, new_head())
print(tuned)
local tuned_times, tuned_rights = learn(tuned, 5e-3, epochs, new_train,
                                        new_test)
for i, x in ipairs(contents()) do
  assert(x:eq(before[i]):all():item(), "the frozen backbone has changed")
end
print "after training the backbone has the same bits as before"

-- The same examples without any knowledge.
local scratch = nn.Sequential(new_backbone(), new_head())
local times, rights = learn(scratch, 2e-3, epochs, new_train, new_test)

local function tell (what, t, r)
  print(("%-14s %.1f %% of 5 to 9 after %.0f ms"):format(what, r[#r], t[#t]))
end
tell("frozen:", tuned_times, tuned_rights)
tell("from nothing:", times, rights)

plot.lines {
  { x = tuned_times, y = tuned_rights, label = "new head, frozen backbone" },
  { x = times, y = rights, label = "all from nothing" },
  title = "5 to 9 from ten examples each", ylabel = "% of test pictures right",
  xlabel = "processor time of training [ms]",
}:save(o.picture)
print("wrote " .. o.picture .. ": how fast both learn")
assert(tuned_rights[#tuned_rights] > 90, "the head has learned too little")
