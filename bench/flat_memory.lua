-- flat_memory.lua - does memory stay where it is?  Steps of a small MLP, plain
-- Lua with no collectgarbage, and what the library and the process hold.
--
--   build/fnn bench/flat_memory.lua [STEPS]     100,000 without it
--
-- Prints a line every tenth of the steps, and ends with status 1 if the second
-- half of them took more than 2 MB.

local fnn = require "fnn"

local steps = tonumber(arg[1]) or 100000

-- Bytes of memory that the process has in use, as Linux counts it.
local function resident()
  local file = io.open "/proc/self/statm"
  if not file then return 0 end
  local pages = file:read "a":match "^%d+ (%d+)"
  file:close()
  return pages * 4096
end

fnn.manual_seed(1)
local model = fnn.nn.Sequential(fnn.nn.Linear(8, 32), fnn.nn.ReLU(),
                                fnn.nn.Linear(32, 1))
local opt = fnn.optim.Adam(model:parameters(), { lr = 1e-3 })
local x = fnn.randn(64, 8)
local y = x:sum({ 2 }, { keepdim = true }):sin()

print "steps    live KB  idle KB  RSS MB   Lua KB  objects  nodes  loss"
local middle, last
for step = 1, steps do
  opt:zero_grad()
  local loss = fnn.nn.mse(model(x), y)
  loss:backward()
  opt:step()
  if step % (steps // 10) == 0 then
    local m = fnn.memory()
    last = resident()
    if step * 2 <= steps then middle = last end
    print(("%-7d  %7.0f  %7.0f  %6.1f  %7.0f  %7d  %5d  %.2g"):format(
          step, m.live / 1e3, m.idle / 1e3, last / 1e6,
          collectgarbage "count", m.objects, m.nodes, loss:item()))
  end
end
os.exit(last - middle <= 2e6)
