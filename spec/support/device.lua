-- device.lua - the same computation on the CPU and on a second device.
--
-- The CPU's kernels are held against PyTorch and finite differences by other
-- specs; here they are what the second device is held against.

local fnn = require "fnn"

local device = {
  -- the largest error seen, by name and dtype: { name, dtype, error }
  worst = {},
}

-- Of the largest value that the CPU has (at least 1).
local tolerance = { f64 = 1e-11, f32 = 2e-5, f16 = 4e-3, bf16 = 3e-2 }

device.name = "cuda"

-- Whether there is one to test.
function device.there()
  return (pcall(function() return fnn.zeros(1):to(device.name) end))
end

-- Whether it is the emulator's, which the environment has do what no card does.
function device.emulated()
  local card = fnn.devices()[2]
  return card ~= nil and card.model == "emulated card"
end

-- Whether freed blocks are kept: not where accesses are checked.
function device.caches()
  fnn.zeros({ 1000 }, { device = device.name }):release()
  return fnn.memory(device.name).idle > 0
end

local function is_float(x)
  return x:dtype():match "^b?f%d" ~= nil
end

-- A tensor of its own on device d, in dtype t where it is of floats, as a
-- leaf of the graph where it can be one.
local function leaf(x, d, t, grad)
  if not is_float(x) then return x:to(d) end
  local y = x:to(t):to(d)
  return grad and fnn.Param(y) or y
end

local function list(y)
  if type(y) == "table" then return y end
  return { y }
end

-- f with new tensors made on d.
local function made_on(d, f, ...)
  fnn.set_default_device(d)
  local results = table.pack(pcall(f, ...))
  fnn.set_default_device "cpu"
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- What f gives on d and the gradients of its inputs, all as CPU tensors in
-- f64 or as they are where they are no floats.
local function run(f, inputs, d, t, back)
  local xs, results = {}, {}
  for i, x in ipairs(inputs) do xs[i] = leaf(x, d, t, back) end
  local outputs = list(made_on(d, f, table.unpack(xs)))
  for i, y in ipairs(outputs) do
    if type(y) == "number" then y = fnn.tensor(y, { dtype = "f64" }) end
    results[i] = { "output " .. i, y }
    if back and is_float(y) and y:has_graph() then
      local g = fnn.Generator(100 + i)
      local gy = fnn.randn(y:shape(), { generator = g })
      y:backward(gy:to(y:dtype(), y:device()))
    end
  end
  for i, x in ipairs(xs) do
    local grad = back and is_float(inputs[i]) and x:grad()
    if grad then results[#results + 1] = { "gradient " .. i, grad } end
  end
  for _, r in ipairs(results) do
    r[2] = r[2]:detach():to "cpu"
    if is_float(r[2]) then r[2] = r[2]:to "f64" end
  end
  return results
end

-- The largest difference of two CPU tensors, of the size of b; NaN and
-- infinities must stand at the same places.
local function distance(a, b)
  if a:numel() == 0 then return 0 end
  if not is_float(a) then
    return a:ne(b):any():item() and math.huge or 0
  end
  local same = a:eq(b):logical_or(a:isnan():logical_and(b:isnan()))
  local gap = fnn.where(same, fnn.zeros_like(a), (a - b):abs())
  local finite = fnn.where(b:isfinite(), b:abs(), fnn.zeros_like(b))
  local most = gap:max():item() / math.max(1, finite:max():item())
  return most == most and most or math.huge
end

-- Runs f(inputs ...) on both in dtype o.dtype ("f32") and asserts that what it
-- gives, and the gradients of the inputs that are floats unless o.back is
-- false, agree within o.tolerance.  f gives a tensor or a list of them.  In
-- the 16-bit dtypes, in which the CPU does not compute, it gets the same
-- rounded numbers as f32.
function device.parity(name, f, inputs, o)
  o = o or {}
  local t = o.dtype or "f32"
  local back = o.back ~= false
  local small = t == "f16" or t == "bf16"
  local rounded = {}
  for i, x in ipairs(inputs) do
    rounded[i] = is_float(x) and x:to(t):to(small and "f32" or t) or x
  end
  local want = run(f, rounded, "cpu", small and "f32" or t, back)
  local got = run(f, rounded, device.name, t, back)
  assert(#got == #want, name .. ": another number of results")
  for i, r in ipairs(want) do
    local what = ("%s (%s): %s"):format(name, t, r[1])
    local a, b = got[i][2], r[2]
    local sa = table.concat(a:shape(), ", ")
    local sb = table.concat(b:shape(), ", ")
    assert(sa == sb, ("%s has shape (%s), not (%s)"):format(what, sa, sb))
    local gap = distance(a, b)
    local worst = device.worst[name .. " " .. t]
    if not worst or gap > worst[3] then
      device.worst[name .. " " .. t] = { name, t, gap }
    end
    if gap > (o.tolerance or tolerance[t]) then
      error(("%s differs by %g\n%s has %s\nthe cpu has %s"):format(
        what, gap, device.name, tostring(a), tostring(b)), 2)
    end
  end
end

-- The same for each of the dtypes ("f32", "f64", "f16", "bf16" if not given).
function device.all(name, f, inputs, o)
  o = o or {}
  for _, t in ipairs(o.dtypes or { "f32", "f64", "f16", "bf16" }) do
    device.parity(name, f, inputs,
                  { dtype = t, back = o.back, tolerance = o[t] })
  end
end

return device
