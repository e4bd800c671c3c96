-- Batches that go to a card while it computes.  Under EMU_LAZY=1 a wait that is
-- missing gives wrong numbers.
local fnn = require "fnn"
local data = fnn.data
local device = require "spec.support.device"

if not device.there() then return end

-- Where accesses are checked freed blocks are not kept.
local function caches()
  fnn.zeros({ 1000 }, { device = "cuda" }):release()
  return fnn.memory("cuda").idle > 0
end
local it_caches = caches() and it or pending

local function make(n)
  local g = fnn.Generator(3)
  return data.TensorDataset(fnn.randn(n, 5, { generator = g }),
                            fnn.arange(n, { dtype = "i64" }))
end

-- The batches of some epochs; each is used on the card before the next.
local function batches(ds, options, epochs)
  local loader, list = data.DataLoader(ds, options), {}
  for _ = 1, epochs or 1 do
    for x, y in loader do
      list[#list + 1] = { x * 2, y + 1 }
    end
  end
  return list
end

local function same(a, b)
  assert.equal(#a, #b)
  for i = 1, #a do
    for k = 1, 2 do
      assert.same(a[i][k]:shape(), b[i][k]:shape())
      assert.is_true(a[i][k]:to "cpu":eq(b[i][k]):all():item())
    end
  end
end

describe("a loader for a card", function ()
  for _, prefetch in ipairs { 0, 1, 2, 5 } do
    for _, pinned in ipairs { true, false } do
      it(("gives the CPU's batches (prefetch %d, pinned %s)"):format(
         prefetch, pinned), function ()
        local ds = make(37)
        local o = { batch = 4, shuffle = true, seed = 5 }
        local want = batches(ds, o, 2)
        o.device, o.prefetch, o.pin_memory = "cuda", prefetch, pinned
        local got = batches(ds, o, 2)
        assert.equal("cuda:0", got[1][1]:device())
        same(got, want)
      end)
    end
  end

  it("goes where new tensors go", function ()
    fnn.set_default_device "cuda"
    local ok, where = pcall(function ()
      local x = data.DataLoader(make(4), { batch = 2, prefetch = 1 }):next()
      return x:device()
    end)
    fnn.set_default_device "cpu"
    assert.is_true(ok)
    assert.equal("cuda:0", where)
  end)

  -- Blocks of the cache go from a batch to what is computed, and back: a copy
  -- that does not wait for the kernels before it would overwrite their inputs.
  it("does not write what is still read", function ()
    local n = 40
    local x = fnn.arange(n, { dtype = "f32" }):reshape(n, 1):expand(n, 64)
    local ds = data.TensorDataset(x:clone())
    local loader = data.DataLoader(ds, { batch = 2, device = "cuda",
                                         prefetch = 3 })
    local sums = {}
    for b in loader do
      local sum = b
      for _ = 1, 3 do
        sum = sum + b  -- frees what it was
        collectgarbage "step"
      end
      sums[#sums + 1] = sum:sum()
      b:release()
      sum:release()
    end
    for i, s in ipairs(sums) do
      assert.equal(4 * 64 * (4 * (i - 1) + 1), s:item())
    end
  end)

  it("can be left in the middle, and started anew", function ()
    local ds = make(30)
    local loader = data.DataLoader(ds, { batch = 3, device = "cuda",
                                         prefetch = 4 })
    for _ = 1, 5 do
      loader:start(0, 2)
      local _, y = loader:next()
      assert.same({ 6, 7, 8 }, y:totable())
    end
    loader:release()
    local live = fnn.memory("cuda").live
    collectgarbage()
    assert.is_true(fnn.memory("cuda").live <= live)
  end)

  it_caches("asks for no memory from the second epoch on", function ()
    local loader = data.DataLoader(make(40), { batch = 4, device = "cuda",
                                               prefetch = 2 })
    local function epoch()
      for x, y in loader do
        x:release()
        y:release()
      end
    end
    epoch()
    local before = fnn.memory("cuda").allocations
    epoch()
    epoch()
    assert.equal(before, fnn.memory("cuda").allocations)
  end)

  it("serves datasets written in Lua", function ()
    local ds = setmetatable({
      fields = { { shape = { 2 } } },
      get = function (_, i, x) x:fill_(i) end,
    }, { __len = function () return 5 end })
    local sums = {}
    for x in data.DataLoader(ds, { batch = 2, device = "cuda" }) do
      assert.equal("cuda:0", x:device())
      sums[#sums + 1] = x:sum():item()
    end
    assert.same({ 6, 14, 10 }, sums)
  end)
end)
