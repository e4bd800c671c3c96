-- spiral.lua: three arms of a spiral, which no straight lines part, and the map
-- that a network draws of them.
--
--   fnn examples/spiral.lua [--arms N] [--quick] [--picture spiral.png]
--
-- In the picture points are what the network learned from, and the ground is
-- coloured by what it takes each place for.

local fnn = require "fnn"
local nn, optim, plot = fnn.nn, fnn.optim, fnn.plot

local o = fnn.cli {
  "Learns which arm of a spiral a point is on.",
  { "arms", 3, "how many arms", min = 1 },
  { "picture", "spiral.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}

-- n points on each arm: (arms n, 2), and the id of the arm of each, from 0.
local function spiral (n)
  local points, ids = {}, {}
  for arm = 0, o.arms - 1 do
    local t = fnn.rand(n):sqrt()  -- as many points outside, where it is longer
    local angle = t * 6 + arm * 2 * math.pi / o.arms + fnn.randn(n) * 0.1
    points[#points + 1] = fnn.stack({ t * angle:cos(), t * angle:sin() }, 2)
    ids[#ids + 1] = fnn.full({ n }, arm, { dtype = "i64" })
  end
  return fnn.cat(points), fnn.cat(ids)
end

local x, y = spiral(150)
local new_x, new_y = spiral(150)  -- others, to test with

-- Two numbers go in, one for each arm comes out; between them the plane is bent
-- until straight lines part the arms.
local model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64),
                            nn.Tanh(), nn.Linear(64, o.arms))
print(model)

local function accuracy ()
  local outputs = fnn.no_grad(function () return model(new_x) end)
  return 100 * fnn.metrics.accuracy(outputs, new_y)
end

local steps = o.quick and 300 or 1500
local opt = optim.AdamW(model:parameters(), { lr = 1e-2 })
local schedule = optim.scheduler(opt, optim.CosineAnnealing(1e-2, steps))
print(("before: %.1f %% of new points"):format(accuracy()))
for step = 1, steps do
  schedule(step - 1)
  opt:zero_grad()
  local loss = nn.cross_entropy(model(x), y)
  loss:backward()
  opt:step()
  if step % (steps // 5) == 0 then
    print(("step %4d  loss %.4f  %.1f %% of new points"):format(
      step, loss:item(), accuracy()))
  end
end

-- The network's answer at each place of a fine grid: rows go up, columns to
-- the right.
local side, edge = 300, 1.1
local line = fnn.linspace(-edge, edge, side)
local places = fnn.stack({ line:unsqueeze(1):expand(side, side),
                           line:unsqueeze(2):expand(side, side) }, 3)
local ground = fnn.no_grad(function ()
  return model(places:reshape(-1, 2)):argmax(2)
end)

local series = {
  title = ("%.1f %% of new points are right"):format(accuracy()),
  xlabel = "x", ylabel = "y", width = 620, height = 620,
  background = { ground:reshape(side, side),
                 extent = { -edge, edge, -edge, edge } },
}
for arm = 0, o.arms - 1 do
  local own = x[y:eq(arm)]
  series[arm + 1] = { x = own:select(2, 1), y = own:select(2, 2),
                      label = "arm " .. arm }
end
plot.scatter(series):save(o.picture)
print(("wrote %s: the points, and what each place is taken for"):format(
  o.picture))
assert(accuracy() > 90, "the network has not learned the arms")
