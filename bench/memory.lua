-- memory.lua - what it costs to leave tensors to the collector: peaks and
-- times beside the same work with explicit releases.
--
-- usage: fnn bench/memory.lua          in the program, then embedded
--        lua5.4 bench/memory.lua       as a guest of stock Lua
--
-- The promise: within 1.5 times the live set and 32 MB, at 5 % of the time.
-- live is the peak with releases; the two ways take turns, the best of five
-- counts.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim
local MB = 1 << 20
local now = fnn.clock or os.clock

-- {======================================================
-- Work.  Each takes what drops a tensor: release, or nothing.
-- =======================================================

-- Nothing but ops on 4 KB, which released tensors do in the first cache.
local function bare (drop)
  local a, b = fnn.ones(1000), fnn.ones(1000)
  return function ()
    for _ = 1, 20000 do
      local c = a * b
      local d = c + a
      drop(c)
      drop(d)
    end
  end
end

-- 50 tensors of 20 MB, alive at once.
local function large (drop)
  local x = fnn.ones(20 * MB // 4)
  return function ()
    local list = {}
    for i = 1, 50 do list[i] = x * i end
    for i = 1, 50 do drop(list[i]) end
  end
end

-- Steps of an MLP; with releases, of every tensor that the script sees.
local function training (drop, steps, batch, inputs, hidden)
  fnn.manual_seed(1)
  local model = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(),
                              nn.Linear(hidden, 10))
  local opt = optim.Adam(model:parameters())
  local all = fnn.randn(10 * batch, inputs)
  local ids = fnn.zeros(batch, { dtype = "i64" })
  return function ()
    for i = 1, steps do
      opt:zero_grad()
      local x = all:narrow(1, i % 10 * batch + 1, batch)
      local h = model[1](x)
      local r = model[2](h)
      local y = model[3](r)
      local loss = y:cross_entropy(ids)
      loss:backward()
      opt:step()
      drop(x) drop(h) drop(r) drop(y) drop(loss)
    end
  end
end

local function mlp (drop) return training(drop, 40, 128, 784, 512) end
local function small (drop) return training(drop, 1000, 32, 64, 64) end

-- The same with 200,000 other Lua objects alive.
local function crowded (make)
  return function (drop)
    local crowd = {}
    for i = 1, 200000 do crowd[i] = { i } end
    local work = make(drop)
    return function ()
      work()
      return crowd
    end
  end
end

-- }======================================================

local function release (x) x:release() end
local function leave () end

-- Peak above what was live before, in MB, and seconds.
local function measure (work)
  collectgarbage()
  fnn.reset_peak_memory()
  local begin = now()
  work()
  return fnn.memory().peak / MB, now() - begin
end

local function compare (name, make)
  local ways = { { drop = release }, { drop = leave } }
  for _, w in ipairs(ways) do w.peak, w.time = 0, math.huge end
  for _ = 1, 5 do
    for _, w in ipairs(ways) do
      local work = make(w.drop)
      work()  -- fills the cache
      local peak, time = measure(work)
      w.peak, w.time = math.max(w.peak, peak), math.min(w.time, time)
    end
  end
  local live, peak = ways[1].peak, ways[2].peak
  local bound = 1.5 * live + 32
  local cost = 100 * (ways[2].time / ways[1].time - 1)
  print(("%-26s %7.1f %7.1f %7.1f %4s %8.1f %8.1f %+6.1f %% %s"):format(name,
    live, peak, bound, peak <= bound and "ok" or "OVER",
    1e3 * ways[1].time, 1e3 * ways[2].time, cost,
    cost <= 5 and "ok" or "OVER"))
end

local embedded = not package.preload.fnn
print(embedded and "embedded in stock Lua" or "in the program")
print(("%-26s %7s %7s %7s %4s %8s %8s %s"):format("", "live", "peak", "bound",
  "", "released", "left", "cost"))
print(("%-26s %7s %7s %7s %4s %8s %8s"):format("", "MB", "MB", "MB", "", "ms",
  "ms"))
compare("40,000 bare ops on 4 KB", bare)
compare("1000 steps of a small MLP", small)
compare("... and 200,000 objects", crowded(small))
compare("40 steps of an MLP", mlp)
compare("... and 200,000 objects", crowded(mlp))
compare("50 of 20 MB at once", large)
compare("... and 200,000 objects", crowded(large))

if not embedded then
  local build = arg[-1]:match "^(.*)/[^/]*$" or "build"
  print()
  os.execute(("LUA_CPATH='%s/?.so' lua5.4 '%s'"):format(build, arg[0]))
end
