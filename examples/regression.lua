-- regression.lua: from noisy measurements back to what made them, twice: the
-- slope and intercept of a line, and a curve whose formula nobody knows.
--
--   fnn examples/regression.lua [--quick] [--picture regression.png]
--
-- The picture shows the measured points, the true curve and the learned one.

local fnn = require "fnn"
local nn, optim, plot = fnn.nn, fnn.optim, fnn.plot

local o = fnn.cli {
  "Fits a line and a curve to noisy points.",
  { "picture", "regression.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}

-- A line -------------------------------------------------------------------

-- 200 measurements of y = 2.5 x - 0.7, each wrong by about 0.3.  A column is
-- one number a row: (200, 1).
local slope, intercept, noise = 2.5, -0.7, 0.3
local x = fnn.rand(200, 1) * 4 - 2
local y = x * slope + intercept + fnn.randn(200, 1) * noise

-- One weight and one bias are all that a line has.
local line = nn.Linear(1, 1)
local opt = optim.SGD(line:parameters(), { lr = 0.1 })
for _ = 1, 100 do
  opt:zero_grad()
  nn.mse_loss(line(x), y):backward()
  opt:step()
end
local found_slope = line.weight:item()
local found_intercept = line.bias:item()
print(("the line:  true  y = %.2f x %+.2f"):format(slope, intercept))
print(("           found y = %.2f x %+.2f"):format(found_slope,
                                                   found_intercept))
assert(math.abs(found_slope - slope) < 0.1, "the slope is wrong")
assert(math.abs(found_intercept - intercept) < 0.1, "the intercept is wrong")

-- A curve ------------------------------------------------------------------

local function truth (t) return (t * 2):sin() + t * 0.4 end

x = fnn.rand(400, 1) * 6 - 3
y = truth(x) + fnn.randn(400, 1) * noise

-- Two hidden layers can bend into any smooth curve.
local model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64),
                            nn.Tanh(), nn.Linear(64, 1))

-- Where the curves are drawn, and how far the model is from the truth there
-- (the root of the mean square).  The model never sees the truth, only points
-- beside it.
local grid = fnn.linspace(-3, 3, 200):reshape(-1, 1)
local function distance ()
  local fit = fnn.no_grad(function () return model(grid) end)
  return math.sqrt(nn.mse_loss(fit, truth(grid)):item()), fit
end
local before = distance()

-- The rate falls to nothing along half a cosine, so that the end is calm.
local steps = o.quick and 300 or 1000
opt = optim.Adam(model:parameters(), { lr = 0.01 })
local schedule = optim.scheduler(opt, optim.CosineAnnealing(0.01, steps))
for step = 1, steps do
  schedule(step - 1)
  opt:zero_grad()
  local loss = nn.mse_loss(model(x), y)
  loss:backward()
  opt:step()
  if step % (steps // 4) == 0 then
    print(("step %4d  loss %.4f  from the truth %.3f"):format(
      step, loss:item(), (distance())))
  end
end

local after, fit = distance()
print(("the curve: the points lie %.2f from it, the fit %.3f, before it " ..
       "learned %.2f"):format(noise, after, before))

-- A picture ----------------------------------------------------------------

local function column (t) return t:reshape(-1) end
plot.scatter {
  { x = column(x), y = column(y), label = "measured", color = "sky" },
  { x = column(grid), y = column(truth(grid)), label = "truth", line = true,
    color = "black", dash = true },
  { x = column(grid), y = column(fit), label = "fit", line = true,
    color = "vermilion" },
  title = "What a network makes of 400 noisy points", xlabel = "x",
  ylabel = "y",
}:save(o.picture)
print(("wrote %s: the points, the truth and the fit"):format(o.picture))

-- The points are 0.3 off; the fit must be much nearer to what they hide.
assert(after < 0.15, "the network has not found the curve")
