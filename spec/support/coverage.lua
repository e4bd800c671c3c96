-- coverage.lua - which ops there are that a set of names lacks.
--
-- Each function gives the missing names as text, "" when there are none.

local fnn = require "fnn"

local coverage = {}

function coverage.words(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

function coverage.listed(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, ", ")
end

function coverage.methods_of_tensors()
  for _, value in pairs(debug.getregistry()) do
    if type(value) == "table" and rawget(value, "__name") == "fnn.Tensor" then
      return value.methods
    end
  end
end

-- Functions of fnn that are no methods, but ops: the rest makes tensors, or
-- does not compute.
local functions = coverage.words "cat stack einsum pad_sequence record"
local others = coverage.words [[
  Function Generator Network Param arange autocast autocast_dtype
  checkpoints on_interrupt
  best_device cli default_device default_generator detect_anomaly devices
  empty_cache enable_grad evaluate eye clock fit fmt full grad gradcheck
  graph_step is_grad_enabled is_tensor kaiming linspace load_training
  manual_seed memory memory_holders multinomial no_grad normal ones ones_like
  profile
  progress rand randint randn
  randperm repl reset_peak_memory save_training scope set_default_device
  set_default_dtype
  set_exact_convolution set_memory_limit summary synchronize tensor threads
  trim uniform xavier zeros zeros_like
]]

-- The derivatives in the sources whose name is not the method's.
local method_of = {
  cast = "to",
  to_device = "to",  -- to another device, where there is one
}

-- Methods that are neither in cells nor plain.
function coverage.methods(cells, plain)
  local missing = {}
  for name in pairs(coverage.methods_of_tensors()) do
    local is_form = name:find "_$" or name:find "^try_"
    if not is_form and not cells[name] and not plain[name] then
      missing[name] = true
    end
  end
  return coverage.listed(missing)
end

function coverage.functions(cells)
  local missing, methods = {}, coverage.methods_of_tensors()
  for name, value in pairs(fnn) do
    if type(value) == "function" and not methods[name] and
       not name:find "^try_" and not others[name] and not cells[name] then
      missing[name] = true
    end
  end
  for name in pairs(functions) do
    if not cells[name] then missing[name] = true end
  end
  return coverage.listed(missing)
end

function coverage.losses(cells)
  local missing, count = {}, 0
  for name, class in pairs(fnn.nn) do
    if name:find "Loss$" then
      count = count + 1
      if not cells[class.loss] then missing[name] = true end
    end
  end
  assert(count > 20)
  return coverage.listed(missing)
end

-- Of the rules in the sources, { "softmax", softmax_back }.
function coverage.rules(cells)
  local missing, found = {}, {}
  local list = assert(io.popen("ls src/*/*.c"))
  for path in list:lines() do
    local file = assert(io.open(path))
    local text = file:read "a"
    for name in text:gmatch 'Rule [%w_]+ = { "([%w_]+)", [%w_]+ }' do
      found[name] = true
    end
    file:close()
  end
  list:close()
  assert(found.softmax)
  for name in pairs(found) do
    if not cells[method_of[name] or name] then missing[name] = true end
  end
  return coverage.listed(missing)
end

return coverage
