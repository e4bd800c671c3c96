-- optim.lua - a step of each optimizer beside PyTorch's: ns an element.
--
-- usage: fnn bench/optim.lua [--threads N] [--rounds N] [--numel N]
--
-- Processors' time of all threads, the median of the rounds in each of
-- which all take turns at one parameter of NUMEL (10 million) elements.
-- PyTorch, from the Python in FNN_BENCH_PYTHON or python3, runs as it comes,
-- with foreach and, where it has such, fused: "best" is the fastest.  SGD has a
-- momentum; Muon, which is products, runs on a tenth of the elements.

local fnn = require "fnn"

local o = fnn.cli {
  "A step of each optimizer beside PyTorch's.",
  { "rounds", 3, "of which the median is told", min = 1 },
  { "numel", 10000000, "elements of the parameter", min = 10000 },
  { "threads", 1, "how many threads compute" },
}
local rounds, numel, threads = o.rounds, o.numel, o.threads
local seconds = 0.2
local names = { "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta",
                "RAdam", "NAdam", "Adamax", "Lion", "Adafactor", "Muon" }
local ways = { "default", "foreach", "fused" }

local folder = arg[0]:match "^(.*/)" or "./"
local python = os.getenv "FNN_BENCH_PYTHON" or "python3"
local pipe = os.tmpname()
os.remove(pipe)
assert(os.execute("mkfifo " .. pipe))
local peer = assert(io.popen(("%s %soptim.py %s >%s"):format(
  python, folder, threads, pipe), "w"))
local answers = assert(io.open(pipe))
os.remove(pipe)

local function measure(name, n)
  local p = fnn.Param(fnn.randn(n // 1000, 1000))
  local opt = fnn.optim[name]({ p },
                              name == "SGD" and { momentum = 0.9 } or nil)
  p:set_grad(fnn.randn(n // 1000, 1000))
  opt:step()
  local start, turns = os.clock(), 0
  repeat
    opt:step()
    turns = turns + 1
  until os.clock() - start >= seconds
  return (os.clock() - start) / turns
end

local function ask(name, way, n)
  peer:write(("%s %s %d %g\n"):format(name, way, n, seconds))
  peer:flush()
  return tonumber(answers:read "l" or "none")
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function text(v) return v and ("%9.2f"):format(v) or "        -" end

print(("%d elements, %s threads, ns an element"):format(numel, threads))
print "optimizer       fnn  default     best    ratio to best"
for _, name in ipairs(names) do
  local n = name == "Muon" and numel // 10 or numel
  local own, peers = {}, { default = {}, foreach = {}, fused = {} }
  for i = 1, rounds do
    own[i] = measure(name, n) / n * 1e9
    collectgarbage()
    for _, way in ipairs(ways) do
      local t = ask(name, way, n)
      if t then table.insert(peers[way], t / n * 1e9) end
    end
  end
  local best
  for _, way in ipairs(ways) do
    local t = median(peers[way])
    if t and (not best or t < best) then best = t end
  end
  local mine = median(own)
  print(("%-9s%s%s%s%s"):format(name, text(mine), text(median(peers.default)),
                               text(best), text(best and best / mine)))
end
peer:close()
answers:close()
