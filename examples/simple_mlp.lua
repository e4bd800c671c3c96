-- simple_mlp.lua: a tiny network learns XOR, the smallest thing that a single
-- layer cannot.  Everything that training takes is here.
--
--   fnn examples/simple_mlp.lua [--quick] [--device cuda]

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local quick = fnn.cli {
  "A tiny network learns XOR.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}.quick

-- Four examples, a row each: two inputs, and one output that is 1 when the
-- inputs differ.
local inputs = fnn.tensor { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }
local targets = fnn.tensor { { 0 }, { 1 }, { 1 }, { 0 } }

-- Two inputs, eight hidden units, one output.  The weights are random yet.
local model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
print(model)

-- The optimizer knows the model's parameters and how to change them.
local opt = optim.Adam(model:parameters(), { lr = 0.05 })

local steps = quick and 200 or 500
local loss
for step = 1, steps do
  opt:zero_grad()                            -- forget the last gradients
  loss = nn.mse_loss(model(inputs), targets) -- how wrong is the model?
  loss:backward()                            -- which way is less wrong?
  opt:step()                                 -- go a little that way
  if step % 100 == 0 then
    print(("step %4d  loss %.6f"):format(step, loss:item()))
  end
end

-- No gradients are wanted any more.
local answers = fnn.no_grad(function () return model(inputs) end)
print "\ninputs  target  answer"
for i = 1, #inputs do
  print(("%d xor %d  %5d  %+.3f"):format(inputs[i][1] // 1, inputs[i][2] // 1,
                                       targets[i][1] // 1, answers[i][1]))
end

-- It has learned when every answer, rounded, is right.
assert(answers:round():eq(targets):all():item(), "the network has not learned")
assert(loss:item() < 0.01, "the loss is still high")
