-- Profiles, holders of memory and anomalies on a card.
local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim
local device = require "spec.support.device"

if not device.there() then return end

local cuda = { device = "cuda" }

local function row(p, name, pass)
  for _, r in ipairs(p.rows) do
    if (r.op or r.module) == name and r.pass == pass then return r end
  end
end

local function model()
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)):to "cuda"
end

describe("a profile on a card", function ()
  it("counts the same as on the CPU, and waits for each kernel", function ()
    local function take(name)
      fnn.manual_seed(1)
      local m = nn.Sequential(nn.Linear(8, 16), nn.Tanh(),
                              nn.Linear(16, 4)):to(name)
      local opt = optim.Adam(m:parameters())
      local x = fnn.randn({ 32, 8 }, { device = name })
      return fnn.profile(function ()
        opt:zero_grad()
        m(x):square():mean():backward()
        opt:step()
      end)
    end
    local a, b = take "cpu", take "cuda"
    assert.equal(#a.rows, #b.rows)
    for _, r in ipairs(a.rows) do
      local other = row(b, r.op, r.pass)
      assert.equal(r.calls, other.calls, r.op)
      assert.equal(r.flops, other.flops, r.op)
      assert.equal(r.bytes, other.bytes, r.op)
    end
    assert.is_true(b.ms[1] > 0)
  end)

  it("leaves a step that is recorded as it is", function ()
    local m, x = model(), fnn.randn({ 4, 8 }, cuda)
    local step = fnn.graph_step(function (v) return m(v):sum() end,
                                { device = "cuda", warmup = 1 })
    local plain = m(x):sum():item()
    fnn.profile(function () for _ = 1, 3 do step(x) end end)
    assert.near(plain, step(x):item(), 1e-5)
    fnn.detect_anomaly(function () assert.near(plain, step(x):item(), 1e-5) end)
  end)
end)

describe("memory_holders of a card", function ()
  it("has the card's tensors and no other", function ()
    local m = nn.Linear(500, 1000):to "cuda"
    local opt = optim.Adam(m:parameters())
    m(fnn.randn({ 3, 500 }, cuda)):sum():backward()
    opt:step()
    local h = fnn.memory_holders { model = m, device = "cuda" }
    local bytes = {}
    for _, r in ipairs(h.rows) do
      if r.name == "weight" then bytes[r.group] = r.bytes end
    end
    for group, n in pairs { parameters = 1, gradients = 1,
                            ["optimizer state"] = 2 } do
      assert.is_true(bytes[group] >= n * 2e6 and bytes[group] < n * 2.3e6)
    end
    assert.equal(fnn.memory("cuda").live, h.live)
    h = fnn.memory_holders { model = m, device = "cpu" }
    for _, r in ipairs(h.rows) do assert.is_false(r.name == "weight") end
  end)
end)

describe("detect_anomaly on a card", function ()
  local function finds(text, f)
    local ok, message = pcall(fnn.detect_anomaly, f)
    assert.is_false(ok)
    assert.is_truthy(message:find(text, 1, true), message)
  end

  it("sees results, operands, writes and gradients", function ()
    local x = fnn.tensor({ { 1, 2 }, { 0, 3 } }, cuda)
    finds("log made 1 -inf in its result (2, 2); first at [2][1]",
          function () return x:log() end)
    finds("mul: input 2, (2, 2), has 2 nan and 1 inf; first at [1][2]",
          function () return x * fnn.tensor({ { 1, 0 / 0 }, { 0 / 0, 1 / 0 } },
                                            cuda) end)
    finds("div (in place) made 1 nan and 3 inf",
          function () x:clone():div_(0) end)
    local p = fnn.Param(fnn.zeros({ 3 }, cuda))
    finds("sqrt produced inf in the gradient for input 1, (3): 3 inf",
          function () p:sqrt():sum():backward() end)
    finds("input 1, (1), has 1 inf", function ()
      return fnn.tensor({ 1 / 0 }, cuda):to "f16"
    end)
    finds("made 1 inf", function ()
      return fnn.tensor({ 300 }, cuda):to "f16":square()
    end)
  end)
end)
