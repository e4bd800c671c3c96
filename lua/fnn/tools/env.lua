-- env.lua - the tool `fnn env`: prints what a bug report needs.

local env = require "fnn.env"
local fnn = require "fnn"

if ... == "--help" or ... == "-h" then
  print "usage: fnn env\nPrints the build, the machine and the versions in use."
  return
elseif ... then
  io.stderr:write("fnn env: unexpected argument '", (...), "'\n")
  os.exit(2, true)
end

-- The value of the first line of a file that pattern matches.
local function read_first(path, pattern)
  local f = io.open(path)
  if f == nil then return nil end
  local found
  for line in f:lines() do
    found = line:match(pattern)
    if found then break end
  end
  f:close()
  return found
end

local function list_isas()
  local names = {}
  for name, has in pairs(env.isas) do
    if has then names[#names + 1] = name end
  end
  table.sort(names)
  return table.concat(names, ", ")
end

local function list_libraries()
  local names = {}
  for name, version in pairs(env.libraries) do
    names[#names + 1] = name .. " " .. version
  end
  table.sort(names)
  return table.concat(names, ", ")
end

-- The cards, or why there are none.
local function cards()
  local list, names = fnn.devices(), {}
  for i = 2, #list do
    local d = list[i]
    names[i - 1] = ("%s: %s, compute capability %s, driver for CUDA %s"):format(
      d.name, d.model, d.capability, d.driver)
  end
  if #names > 0 then return table.concat(names, "; ") end
  local _, why = pcall(fnn.device, "cuda")
  return (why:gsub("^.-device 'cuda': ", ""))
end

local function gib(bytes) return ("%.1f GiB"):format(bytes / 2^30) end

local function memory()
  local free = read_first("/proc/meminfo", "^MemAvailable:%s*(%d+) kB")
  local text = gib(env.memory)
  return free and text .. ", " .. gib(free * 1024) .. " available" or text
end

local cpu = read_first("/proc/cpuinfo", "^model name%s*:%s*(.*)") or
            read_first("/proc/cpuinfo", "^Hardware%s*:%s*(.*)") or "unknown"
local forced = os.getenv "FNN_ISA"

local facts = {
  { "fnn", env.version },
  { "Lua", (env.lua:gsub("^Lua ", "")) },
  { "compiler", env.compiler },
  { "flags", env.flags },
  { "CUDA", cards() },
  { "libraries", list_libraries() },
  { "CPU", cpu },
  { "kernels", env.isa .. (forced and " (FNN_ISA=" .. forced .. ")" or "") ..
               ", available: " .. list_isas() },
  { "threads", env.threads .. " of " .. env.cores .. " cores" },
  { "memory", memory() },
  { "system", env.system },
  { "distribution",
    read_first("/etc/os-release", '^PRETTY_NAME="?(.-)"?$') or "unknown" },
}

for _, fact in ipairs(facts) do print(("%-13s %s"):format(fact[1], fact[2])) end
