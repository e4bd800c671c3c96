-- custom_op.lua: an operation with a derivative of its own, in a network whose
-- hidden units say only -1 or 1.
--
--   fnn examples/custom_op.lua [--quick] [--picture FILE] [--device cuda]
--
-- The sign of a number has no useful derivative.  Binary networks are trained
-- as if it were that of a clamped line ("straight through", Hubara et al. 2016,
-- arXiv:1602.02830): what fnn.Function is for.  The picture shows digits, and
-- under each the 256 bits that are all the network's last layer knows of it:
-- those of one digit are alike.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local o = fnn.cli {
  "Trains a network of binary hidden units.",
  { "picture", "custom_op.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}

local Sign = fnn.Function "Sign"

-- What is saved here is there when the gradient is computed.
function Sign.forward (ctx, x)
  ctx:save(x)
  return fnn.where(x:ge(0), 1.0, -1.0)
end

-- Of the gradient of the result the gradient of x: as it is where |x| is at
-- most 1, nothing elsewhere.
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

local epochs = o.quick and 8 or 20
local history = fnn.fit(model, train, {
  epochs = epochs, batch_size = 32, seed = 1, loss = nn.cross_entropy,
  optimizer = optim.AdamW, schedule = halving(4e-3, 4 * #train // 32),
  metrics = { accuracy = fnn.metrics.accuracy }, validation = test,
  on_epoch = function (epoch, stats)
    print(("epoch %2d  loss %.4f  %.1f %% of the test digits"):format(
      epoch, stats.loss, 100 * stats.val_accuracy))
  end,
})
local accuracy = history[#history].val_accuracy

-- All that is behind the second layer is one bit a unit.
local images, labels = test:all()
local bits = fnn.no_grad(function ()
  return model[4](model[3](model[2](model[1](images))))
end)
assert(bits:abs():eq(1):all():item(), "a unit says something else")

-- How many bits of two digits differ: of the same class fewer than of two.
local distance = (256 - bits:matmul(bits:t())) / 2
local same = labels:unsqueeze(1):eq(labels:unsqueeze(2)):to "f32"
local function mean (weight)
  return (distance * weight):sum():item() / weight:sum():item()
end
local within, across = mean(same - fnn.eye(#test)), mean(1 - same)
print(("codes of one digit differ in %.0f bits of 256, of two in %.0f"):format(
  within, across))

-- Three examples of each of four digits, and under each its code, 16 by 16.
-- Units are in the order of the digit that they say 1 of most often.
local pictures, codes, names, means = {}, {}, {}, {}
for digit = 0, 3 do
  local own = labels:eq(digit)
  means[digit + 1] = bits[own]:mean(1)
  pictures[digit + 1] = images[own]:narrow(1, 1, 3)
  codes[digit + 1] = bits[own]:narrow(1, 1, 3)
  table.move({ digit, digit, digit }, 1, 3, #names + 1, names)
end
local order = fnn.stack(means):argmax(1):argsort()
codes = fnn.cat(codes):index_select(2, order)
plot.grid {
  plot.images { fnn.cat(pictures), labels = names, columns = 12,
                scale = 10, title = "Digits, and below the bits that the " ..
                "hidden layer has for each" },
  plot.images { codes:reshape(-1, 16, 16):ge(0):to "f32", columns = 12,
                scale = 5 },
  columns = 1,
}:save(o.picture)
print(("wrote %s: digits and their bits"):format(o.picture))
assert(accuracy > 0.9, "the network has not learned")
assert(within < across, "the codes say nothing of the digits")
