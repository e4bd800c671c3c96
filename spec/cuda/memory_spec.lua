-- Memory of a card: counters, the cache, limits, a steady training step.
local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim
local device = require "spec.support.device"
local shell = require "spec.support.shell"

if not device.there() then return end
-- The checking build of the emulated card turns the cache off.
if os.getenv "FNN_CACHE" == "0" then return end

local it_caches = device.caches() and it or pending

local MB = 1 << 20

local function live() return fnn.memory("cuda").live end

describe("memory of a card", function ()
  before_each(function ()
    collectgarbage()
    fnn.empty_cache "cuda"
  end)
  after_each(function ()
    fnn.set_memory_limit(0, "cuda")
    collectgarbage()
  end)

  it_caches("is counted beside the CPU's", function ()
    local cpu, before = fnn.memory().live, fnn.memory "cuda"
    local x = fnn.zeros({ 1 << 20 }, { device = "cuda" })
    local after = fnn.memory "cuda"
    assert.equal(4 * MB, after.live - before.live)
    assert.equal(1, after.allocations - before.allocations)
    assert.is_true(fnn.memory().live - cpu < MB)
    assert.is_true(after.peak >= after.live)
    x:release()
    after = fnn.memory "cuda"
    assert.equal(before.live, after.live)
    assert.equal(before.idle + 4 * MB, after.idle)
    assert.equal(after.live + after.idle + after.workspace, after.held)
    fnn.reset_peak_memory "cuda"
    assert.equal(live(), fnn.memory("cuda").peak)
  end)

  it_caches("is handed out again by size class", function ()
    local before = fnn.memory("cuda").allocations
    for _ = 1, 5 do fnn.zeros({ 1000 }, { device = "cuda" }):release() end
    assert.equal(1, fnn.memory("cuda").allocations - before)
    fnn.zeros({ 1010 }, { device = "cuda" }):release() -- of the same class
    assert.equal(1, fnn.memory("cuda").allocations - before)
    fnn.zeros({ 4000 }, { device = "cuda" }):release()
    assert.equal(2, fnn.memory("cuda").allocations - before)
  end)

  it_caches("is given back by empty_cache", function ()
    fnn.zeros({ 1 << 20 }, { device = "cuda" }):release()
    assert.is_true(fnn.memory("cuda").idle >= 4 * MB)
    fnn.empty_cache "cuda"
    assert.equal(0, fnn.memory("cuda").idle)
  end)

  it("has a limit of its own", function ()
    fnn.set_memory_limit(live() + 8 * MB, "cuda")
    assert.equal(0, fnn.memory().limit)
    local x = fnn.zeros({ 1 << 20 }, { device = "cuda" })
    local asked = fnn.memory("cuda").allocations
    local ok, message = pcall(fnn.zeros, { 1 << 21 }, { device = "cuda" })
    assert.is_false(ok)
    assert.matches("out of memory on cuda:0: asked for 8.0 MB, holding",
                   message)
    assert.matches("of the %d+%.%d MB allowed", message)
    assert.matches("of the card's .* are free", message)
    assert.equal(asked, fnn.memory("cuda").allocations)
    assert.equal(4 * MB, x:numel() * 4)
    fnn.set_memory_limit(0, "cuda")
    fnn.zeros({ 1 << 21 }, { device = "cuda" }):release()
  end)

  it("is collected, trimmed and tried again when there is none", function ()
    fnn.set_memory_limit(live() + 8 * MB, "cuda")
    -- Two thirds of it, which nothing reaches, then as much again.
    for _ = 1, 6 do fnn.zeros({ 1 << 20 }, { device = "cuda" }) end
    for _ = 1, 3 do fnn.zeros({ 3 << 19 }, { device = "cuda" }) end
  end)

  it("has a model in whole or not at all", function ()
    local model = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512),
                                nn.Linear(512, 2048))
    fnn.set_memory_limit(live() + 3 * MB, "cuda")
    local ok, message = pcall(model.to, model, "cuda")
    assert.is_false(ok)
    assert.matches("out of memory on cuda:0", message)
    for _, list in ipairs { model:parameters(), model:buffers() } do
      for _, x in ipairs(list) do assert.equal("cpu", x:device()) end
    end
    assert.same({ 1, 2048 }, model:eval()(fnn.ones(1, 512)):shape())
    fnn.set_memory_limit(0, "cuda")
    assert.equal("cuda:0", model:to("cuda")[2].running_mean:device())
  end)

  it_caches("is not asked for by a steady step", function ()
    local model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(),
                                nn.Linear(32, 4)):to "cuda"
    local opt = optim.Adam(model:parameters(), { lr = 1e-3 })
    local x = fnn.randn(16, 20, { device = "cuda" })
    local y = fnn.randn(16, 4, { device = "cuda" })
    local function step()
      opt:zero_grad()
      nn.mse_loss(model(x), y):backward()
      opt:step()
    end
    local function round()
      for _ = 1, 10 do step() end
      collectgarbage()
    end
    for _ = 1, 3 do round() end
    local before = fnn.memory("cuda").allocations
    for _ = 1, 5 do round() end
    assert.equal(before, fnn.memory("cuda").allocations)
  end)
end)

-- The card's size is the emulator's to set.
if not device.emulated() then return end

describe("the workspace of cuBLAS", function ()
  after_each(shell.clean)

  local function run(script, bytes)
    local path = shell.write([[
      local fnn = require "fnn"
      local x = fnn.ones({ 2, 2 }, { device = "cuda" })
      local function told() return fnn.memory("cuda").workspace end
    ]] .. script)
    local out, err = shell.run(shell.FNN .. " " .. path,
                               { env = "EMU_MEMORY=" .. bytes })
    return out .. err
  end

  it("is told, and held once", function ()
    assert.equal("0 33554432 33554432 true\n", run([[
      local before, held = told(), fnn.memory("cuda").held
      local y = x:matmul(x)
      local after = told()
      y = y:matmul(x)
      local m = fnn.memory "cuda"
      print(before .. " " .. after .. " " .. told() .. " " ..
            tostring(m.held == m.live + m.idle + m.workspace))
    ]], 100000000))
  end)

  it("gets what is idle", function ()
    assert.equal("33554432 8.0\n", run([[
      fnn.zeros({ 60 << 20 }, { dtype = "u8", device = "cuda" }):release()
      local y = x:matmul(x)
      print(told() .. " " .. y:sum():item())
    ]], 80000000))
  end)

  it("that does not fit is told of", function ()
    local said = run("print(pcall(x.matmul, x, x)) print(told())", 30000000)
    assert.matches("matmul: no memory on cuda:0 for the workspace of cuBLAS " ..
                   "%(32 MB%)", said)
    assert.matches("\n0\n", said)
  end)
end)
