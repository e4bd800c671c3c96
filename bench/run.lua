-- run.lua - fnn beside its peers, in one table.
--
-- usage: fnn bench/run.lua [OPTION ...] [PATTERN]
--   --quick          one short round
--   --rounds N       7 of them if not given
--   --threads N,M    1,2 if not given
--   --cpu            processors' time instead of time passed: for a machine
--                    that has other work (all threads together)
--   --device NAME    where all compute (cuda); PyTorch on the same card, rows
--                    for cards besides, and no targets
--
-- Each contender is a process of its own that waits for requests (rows.lua,
-- rows.py).  A round asks them one after the other for the same row, with a
-- pause between for the threads of the last to go to sleep; so a machine whose
-- speed drifts does so for all.  The figures are medians of the rounds with
-- the extremes; the ratio is that of the medians, the peer's over fnn's.
--
-- PyTorch is taken from the Python in FNN_BENCH_PYTHON, or python3; it runs
-- twice, as it comes and tuned (see TUNED).  PATTERN chooses rows by name.
-- Targets are ratios against the better of the two, or limits that are
-- absolute; a row that misses its target is marked.

local fnn = require "fnn"

local folder = arg[0]:match "^(.*/)" or "./"
local fnn_program = arg[-1] or "fnn"
for i = 0, -10, -1 do if arg[i] then fnn_program = arg[i] end end
local python = os.getenv "FNN_BENCH_PYTHON" or "python3"

-- Fresh pages cost more than the work on them: tuned, malloc keeps them, and
-- asks for huge ones.
local TUNED = "MALLOC_MMAP_THRESHOLD_=4294967296 " ..
              "MALLOC_TRIM_THRESHOLD_=17179869184 " ..
              "MALLOC_TOP_PAD_=268435456 " ..
              "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"

local ms, us, ns = { "ms", 1e3 }, { "us", 1e6 }, { "ns", 1e9 }

-- name, unit, and the target: a ratio, or a limit in the unit
local ROWS = {
  { "mlp_step", ms, ratio = 1.6, text = "MLP 784-128-10 b128, Adam step" },
  { "mlp_forward", ms, ratio = 1, text = "MLP forward, no graph" },
  { "char_gpt_step", ms, ratio = 1.25, text = "char GPT L6 d384 T256 b8 step" },
  { "gpt2_prefill", ms, ratio = 1.4, text = "GPT-2 124M, 256 tokens" },
  { "gpt2_decode", ms, ratio = 2, text = "GPT-2 124M, one token" },
  { "layer_norm", ms, ratio = 2.2, text = "layer_norm 16384x1024" },
  { "softmax", ms, ratio = 1.8, text = "softmax 16384x1024" },
  { "gelu", ms, ratio = 1.3, text = "gelu 64 MB" },
  { "gelu_tanh", ms, ratio = 4.5, text = "gelu_tanh 64 MB" },
  { "silu", ms, ratio = 1.9, text = "silu 64 MB" },
  { "exp", ms, ratio = 1.7, text = "exp 64 MB" },
  { "tanh", ms, ratio = 3.2, text = "tanh 64 MB" },
  { "relu", ms, ratio = 1.15, text = "relu 64 MB" },
  { "add", ms, ratio = 1.15, text = "add 64 MB" },
  { "sum", ms, ratio = 0.98, text = "sum 64 MB" },
  { "mul_", ms, ratio = 0.98, text = "mul_ by a number 64 MB" },
  { "one_add", ns, limit = 400, text = "add of 1 element" },
  { "one_add_", ns, limit = 400, text = "add_ of 1 element" },
  { "one_add_graph", ns, limit = 600, text = "add of 1 element, graph" },
  { "one_backward", ns, limit = 2600, text = "the same and backward" },
  { "one_matmul", ns, ratio = 1, text = "matmul 4x4" },
  { "one_numel", ns, ratio = 1, text = "numel()" },
}

-- Convolutions: the sizes of rows.lua, and a ratio each for the result and for
-- it with both gradients.
for _, row in ipairs {
  { "1,320,64,320,3,1,1,1", 3, 1.7 }, { "1,640,32,640,3,1,1,1", 3, 1.7 },
  { "1,1280,16,1280,3,1,1,1", 3, 1.7 }, { "1,128,256,128,3,1,1,1", 3, 1.7 },
  { "1,320,64,320,3,2,1,1" }, { "1,320,64,320,1,1,1,1" },
  { "32,64,28,64,3,1,1,1" }, { "32,64,28,128,3,2,1,1" },
  { "32,64,28,256,1,1,1,1" }, { "32,64,28,128,1,2,1,1" },
  { "128,1,28,32,3,1,1,1" }, { "128,32,14,64,3,1,1,1" },
  { "32,3,64,64,7,2,1,1" }, { "1,3,224,64,7,2,1,1" },
  { "32,3,64,32,3,1,1,1" }, { "8,64,32,64,5,1,1,1" },
  { "8,32,32,32,7,1,1,1" }, { "8,64,32,64,3,1,2,1" },
  { "8,33,31,35,3,1,1,1" }, { "1,17,40,19,5,2,1,1" },
  { "32,64,28,64,3,1,1,64" }, { "1,256,56,256,3,2,1,256" },
  { "8,64,32,64,3,1,1,4" },
} do
  for i, what in ipairs { "forward", "all" } do
    ROWS[#ROWS + 1] = { ("conv_%s:%s"):format(what, row[1]), ms,
                        ratio = row[1 + i] or 1,
                        text = ("conv %s %s"):format(what, row[1]) }
  end
end

-- Choosing an id from logits, and what only sorting them takes.
for _, how in ipairs { "greedy", "temperature", "top_k", "top_p", "min_p",
                       "all", "sort" } do
  for _, n in ipairs { 32000, 150000 } do
    ROWS[#ROWS + 1] = { ("sample_%s:%d"):format(how, n), us,
                        ratio = how ~= "sort" and 1 or nil,
                        text = ("sample %s of %d"):format(how, n) }
  end
end

-- Recurrent layers: batch, steps, inputs, hidden, layers.
for _, row in ipairs {
  "lstm_step:32,128,128,256,1", "lstm_step:32,128,128,256,2",
  "lstm_step:1,128,128,256,1", "gru_step:32,128,128,256,1",
  "gru_step:32,128,128,256,2", "gru_step:1,128,128,256,1",
} do
  ROWS[#ROWS + 1] = { row, ms, ratio = 1, text = (row:gsub("_step:", " ")) }
end

-- Attention: the sizes of rows.lua, and the ratio.
for _, row in ipairs {
  { "forward", "8,4096,4096,40", 1.1 }, { "forward", "8,1024,1024,64", 1.1 },
  { "forward", "8,4096,77,40", 1.1 }, { "causal", "8,1024,1024,64", 1.1 },
  { "forward", "12,1,4096,64", 1 }, { "all", "8,4096,4096,40", 1.1 },
  { "all", "8,1024,1024,64", 1.1 },
} do
  local name = ("attention_%s:%s"):format(row[1], row[2])
  ROWS[#ROWS + 1] = { name, ms, ratio = row[3],
                      text = ("attention %s %s"):format(row[1], row[2]) }
end

-- ---------------------------------------------------------------------------
-- Options
-- ---------------------------------------------------------------------------

local rounds, seconds, threads, pattern = 7, 0.15, { 1, 2 }, "."
local clock, device = "wall", "cpu"

-- What only a card is measured by: a step replayed as a whole, and products in
-- the dtypes that it has units for.
local CARD_ROWS = {
  { "mlp_step_graph", ms, text = "MLP Adam step, replayed" },
  { "matmul_f32:4096", ms, text = "matmul 4096 f32" },
  { "matmul_bf16:4096", ms, text = "matmul 4096 bf16" },
  { "matmul_f16:4096", ms, text = "matmul 4096 f16" },
}

-- The CPU's targets are not a card's.
local function use_device(name)
  device, threads = name, { 1 }
  for _, row in ipairs(ROWS) do row.ratio, row.limit = nil, nil end
  table.move(CARD_ROWS, 1, #CARD_ROWS, #ROWS + 1, ROWS)
end

local function read_options()
  local i = 1
  while arg[i] do
    if arg[i] == "--quick" then
      rounds, seconds = 1, 0.02
    elseif arg[i] == "--cpu" then
      clock = "cpu"
    elseif arg[i] == "--device" then
      i = i + 1
      use_device(arg[i] or error "--device NAME")
    elseif arg[i] == "--rounds" then
      i = i + 1
      rounds = math.tointeger(tonumber(arg[i])) or error "--rounds N"
    elseif arg[i] == "--threads" then
      i = i + 1
      threads = {}
      for n in arg[i]:gmatch "%d+" do
        threads[#threads + 1] = math.tointeger(tonumber(n))
      end
    else
      pattern = arg[i]
    end
    i = i + 1
  end
end

-- ---------------------------------------------------------------------------
-- Contenders
-- ---------------------------------------------------------------------------

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

-- Starts a worker whose answers come through a named pipe.
local function start(name, command)
  local pipe = os.tmpname()
  os.remove(pipe)
  assert(os.execute("mkfifo " .. pipe))
  local to = assert(io.popen(("exec %s >%s"):format(command, pipe), "w"))
  local from = assert(io.open(pipe))
  os.remove(pipe)
  return { name = name, to = to, from = from }
end

local function ask(worker, row)
  worker.to:write(row, " ", seconds, "\n")
  worker.to:flush()
  local answer = worker.from:read "l"
  return tonumber(answer) or error(worker.name .. " failed at " .. row)
end

local function stop(worker)
  worker.to:close()
  worker.from:close()
end

local function has_torch()
  return os.execute(quote(python) .. " -c 'import torch' 2>/dev/null")
end

local function contenders(n, torch)
  local list = {
    start("fnn", ("%s --threads=%d %srows.lua %s %s"):format(
      quote(fnn_program), n, folder, clock, device))
  }
  if not torch then return list end
  local peer = ("%s %srows.py %d "):format(quote(python), folder, n)
  list[2] = start("default", "env " .. peer .. "default " .. clock .. " " ..
                  device)
  list[3] = start("tuned", "env " .. TUNED .. " " .. peer .. "tuned " ..
                           clock .. " " .. device)
  return list
end

-- ---------------------------------------------------------------------------
-- The table
-- ---------------------------------------------------------------------------

-- Median and extremes.
local function sum_up(list)
  table.sort(list)
  local n = #list
  return { median = (list[(n + 1) // 2] + list[n // 2 + 1]) / 2,
           lo = list[1], hi = list[n] }
end

local function number(v)
  return (v < 10 and "%.3f" or v < 100 and "%.2f" or v < 1000 and "%.1f" or
          "%.0f"):format(v)
end

local function spread(s, unit)
  if not s then return "-" end
  local k = unit[2]
  return ("%s [%s-%s]"):format(number(s.median * k), number(s.lo * k),
                               number(s.hi * k))
end

local function print_line(...)
  print(("%-31s %2s  %-25s %-25s %-25s %6s  %-9s %s"):format(...))
end

local missed = {}

-- The target as text, and whether it is met.
local function judge(row, own, best)
  if row.limit then
    return "<= " .. row.limit .. " " .. row[2][1],
           own.median * row[2][2] <= row.limit
  end
  if not (row.ratio and best) then return "-", true end
  return ">= " .. row.ratio, best / own.median >= row.ratio
end

local function report(row, n, result)
  local own, other, tuned = result.fnn, result.default, result.tuned
  local best = other and tuned and math.min(other.median, tuned.median)
  local target, met = judge(row, own, best)
  if not met then missed[#missed + 1] = row.text .. ", threads " .. n end
  print_line(row.text .. ", " .. row[2][1], n, spread(own, row[2]),
             spread(other, row[2]), spread(tuned, row[2]),
             best and ("%.2f"):format(best / own.median) or "-", target,
             met and "" or "missed")
  io.flush()
end

local function pause() os.execute "sleep 0.05" end

local function run_rows(n, torch)
  local workers = contenders(n, torch)
  for _, row in ipairs(ROWS) do
    if row[1]:find(pattern) then
      local times, result = {}, {}
      for _, w in ipairs(workers) do times[w.name] = {} end
      for _ = 1, rounds do
        for _, w in ipairs(workers) do
          table.insert(times[w.name], ask(w, row[1]))
          pause()
        end
      end
      for name, list in pairs(times) do result[name] = sum_up(list) end
      report(row, n, result)
    end
  end
  for _, w in ipairs(workers) do stop(w) end
end

-- ---------------------------------------------------------------------------
-- Start-up: what a user waits for, and the memory that is resident then
-- ---------------------------------------------------------------------------

local STATUS = "for l in io.lines '/proc/self/status' do " ..
               "local kb = l:match 'VmHWM:%s*(%d+)' " ..
               "if kb then print(kb) end end"
local PY_STATUS = "; import resource; " ..
                  "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"

local function program_row(text, command, code, status, time, memory)
  return { text = text, run = command .. " " .. quote(code),
           memory_run = command .. " " .. quote(code .. status),
           time = time, memory = memory }
end

local function start_rows(torch)
  local own = quote(fnn_program) .. " -e"
  local list = {
    { text = "true", run = "true" },
    program_row("lua5.4 -e ''", "lua5.4 -e", "", STATUS),
    program_row("fnn -e ''", own, "", STATUS, 5, 8),
    program_row("fnn: require", own, "require 'fnn' ", STATUS, 5, 8),
  }
  if torch then
    list[5] = program_row("python: import torch", quote(python) .. " -c",
                          "import torch", PY_STATUS)
  end
  return list
end

local function resident(command)
  local f = io.popen("exec " .. command .. " 2>/dev/null")
  local kb = tonumber(f:read "n")
  f:close()
  return kb and kb / 1024
end

local function run_starts(torch)
  local list, count = start_rows(torch), rounds > 1 and 15 or 3
  for _, row in ipairs(list) do
    local found = os.execute("exec " .. row.run .. " >/dev/null 2>&1")
    row.times = found and {}
  end
  for i = 1, count do
    for k, row in ipairs(list) do
      if row.times and (k < 5 or i <= 3) then
        local begin = fnn.clock()
        os.execute("exec " .. row.run .. " >/dev/null")
        table.insert(row.times, fnn.clock() - begin)
      end
    end
  end
  print "\nStart-up, with that of a shell; memory at its highest"
  for _, row in ipairs(list) do
    if row.times then
      local s, mb = sum_up(row.times), row.memory_run and
                                       resident(row.memory_run)
      local met = (not row.time or s.median * 1e3 <= row.time) and
                  (not row.memory or not mb or mb <= row.memory)
      if not met then missed[#missed + 1] = row.text end
      print(("%-31s %-25s %-9s %-18s %s"):format(
        row.text .. ", ms", spread(s, ms), mb and ("%.1f MB"):format(mb) or "",
        row.time and ("<= %d ms, %d MB"):format(row.time, row.memory) or "",
        met and "" or "missed"))
    end
  end
end

-- ---------------------------------------------------------------------------

read_options()
local torch = has_torch()
if not torch then
  print("skipped PyTorch: " .. python .. " has none (set FNN_BENCH_PYTHON)")
end
print_line("row", "th", "fnn", "PyTorch default", "PyTorch tuned", "ratio",
           "target", "")
for _, n in ipairs(threads) do run_rows(n, torch) end
if device == "cpu" and ("start"):find(pattern) then run_starts(torch) end
print(("\n%d targets missed%s"):format(#missed, #missed > 0 and ":" or ""))
for _, text in ipairs(missed) do print("  " .. text) end
