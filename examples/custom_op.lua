-- custom_op.lua - an operation with a derivative of its own, in a network whose
-- hidden units say only -1 or 1.
--
--   fnn examples/custom_op.lua [--quick] [--device cuda]
--
-- The sign of a number has no useful derivative.  Binary networks are trained
-- as if it were that of a clamped line ("straight through", Hubara et al. 2016,
-- arXiv:1602.02830): what fnn.Function is for.

local fnn = require "fnn"
local nn, optim, data = fnn.nn, fnn.optim, fnn.data

local quick = fnn.cli {
  "An operation with a derivative of its own, in a network of signs.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}.quick

local Sign = fnn.Function "Sign"

function Sign.forward (ctx, x)
  ctx:save(x)
  return fnn.where(x:ge(0), 1.0, -1.0)
end

-- The gradient passes where |x| is at most 1.
function Sign.backward (ctx, gy)
  local x = ctx:saved()
  return gy * x:abs():le(1):to(gy:dtype())
end

-- The operation as a layer.
local SignLayer = nn.module "SignLayer"
function SignLayer:forward (x) return Sign(x) end

-- A learning rate of the script's own: halved again and again.
local function halving (base, every)
  return function (step) return base * 0.5 ^ (step // every) end
end

local train, test = data.digits():split_stratified(0.8)
local model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256),
                            nn.LayerNorm(256), SignLayer(),
                            nn.Linear(256, 10))
print(model)

local epochs = quick and 8 or 20
local history = fnn.fit(model, train, {
  epochs = epochs, batch_size = 32, seed = 1, loss = nn.cross_entropy,
  optimizer = optim.AdamW, schedule = halving(4e-3, 4 * #train // 32),
  metrics = { accuracy = fnn.metrics.accuracy }, validation = test,
  on_epoch = function (epoch, stats)
    print(("epoch %2d  loss %.4f  %.1f %% of the test digits"):format(
      epoch, stats.loss, 100 * stats.val_accuracy))
  end,
})

-- All that is behind the second layer is one bit a unit.
local hidden = model[4](model[3](model[2](model[1](test:all()))))
assert(hidden:abs():eq(1):all():item())
assert(history[epochs].val_accuracy > 0.9, "the network has not learned")
