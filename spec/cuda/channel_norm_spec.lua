-- Batch, group and instance norms on the device as on the CPU.

local fnn = require "fnn"
local device = require "spec.support.device"

local there = device.there()

local function randn (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

local few = { "f32", "f16" }

-- f(x, w, b) for x of a shape, in both orders, with and without weights.
local function check (name, shape, f, dtypes)
  local x, c = randn(1, table.unpack(shape)), shape[2]
  local w, b = randn(2, c), randn(3, c)
  name = name .. " " .. table.concat(shape, "x")
  device.all(name, f, { x, w, b }, { dtypes = dtypes })
  device.all(name .. " plain", function (v) return f(v) end, { x },
             { dtypes = dtypes })
  if #shape < 3 then return end
  device.all(name .. " last", function (v, w_, b_)
    return f(v:channels_last(), w_, b_)
  end, { x, w, b }, { dtypes = dtypes })
end

local function batch (v, w, b) return v:batch_norm(nil, nil, w, b) end
local function instance (v, w, b) return v:instance_norm(w, b) end

describe("#cuda channel_norm", function ()
  if not there then return pending "no cuda" end

  it("takes all dtypes", function ()
    check("batch_norm", { 3, 5, 4, 3 }, batch)
    check("group_norm", { 2, 6, 4, 3 }, function (v, w, b)
      return v:group_norm(3, w, b)
    end)
    check("instance_norm", { 2, 3, 9 }, instance)
  end)

  it("takes any shape", function ()
    for _, c in ipairs { 1, 2, 31, 32, 33, 65 } do
      check("batch_norm", { 5, c }, batch, few)
      check("batch_norm", { 2, c, 7 }, batch, few)
    end
    for _, n in ipairs { 2, 31, 33, 255, 257, 2049, 5000 } do
      check("batch_norm", { 1, 2, n }, batch, few)
      check("instance_norm", { 2, 3, n }, instance, few)
    end
    check("batch_norm", { 2, 3, 2, 3, 4 }, batch, few)
  end)

  it("takes one group, each channel, and all between", function ()
    for _, g in ipairs { 1, 2, 4, 8 } do
      for _, shape in ipairs { { 2, 8, 5, 3 }, { 3, 8 }, { 1, 8, 700 } } do
        if #shape > 2 or g < 8 then
          check("group_norm of " .. g, shape, function (v, w, b)
            return v:group_norm(g, w, b)
          end, few)
        end
      end
    end
    check("group_norm", { 2, 66, 3, 3 }, function (v, w, b)
      return v:group_norm(2, w, b)
    end, few)
  end)

  it("is right at large means", function ()
    for _, last in ipairs { false, true } do
      local x = randn(1, 4, 3, 50, 7) + 1e4
      local function group (v) return v:group_norm(1) end
      local norms = { batch = batch, instance = instance, group = group }
      for name, f in pairs(norms) do
        if last then x = x:channels_last() end
        -- the CPU in double tells what is right
        local want = f(x:to "f64")
        local got = f(x:to(device.name)):to "cpu":to "f64"
        assert.is_true((want - got):abs():max():item() < 2e-3, name)
      end
      local flat = fnn.full({ 2, 3, 300 }, 1234.5):to(device.name)
      assert.equal(0, batch(flat):to "cpu":abs():max():item())
    end
  end)

  it("moves the running statistics", function ()
    for _, shape in ipairs { { 4, 3, 5, 6 }, { 7, 3 }, { 1, 3, 600 } } do
      local x = randn(4, table.unpack(shape)) * 2 + 1
      local function run (d, t)
        local mean = fnn.zeros(3):to(t):to(d)
        local var = fnn.ones(3):to(t):to(d)
        for _ = 1, 2 do
          x:to(t):to(d):batch_norm(mean, var, nil, nil,
                                   { training = true, momentum = 0.3 })
        end
        return mean:to "cpu":to "f64", var:to "cpu":to "f64"
      end
      local mean, var = run("cpu", "f64")
      local limits = { f64 = 1e-12, f32 = 1e-5, f16 = 2e-2, bf16 = 2e-1 }
      for t, most in pairs(limits) do
        local m, v = run(device.name, t)
        assert.is_true((m - mean):abs():max():item() < most, t)
        assert.is_true((v - var):abs():max():item() < most, t)
      end
    end
  end)

  it("uses statistics that are given", function ()
    local mean, var = randn(5, 3), randn(6, 3):abs() + 0.5
    for _, shape in ipairs { { 4, 3, 5, 6 }, { 7, 3 }, { 0, 3, 4 } } do
      check("given", shape, function (v, w, b)
        local function as (s) return s:to(v:dtype()):to(v:device()) end
        return v:batch_norm(as(mean), as(var), w, b, { training = false })
      end)
    end
  end)

  it("gives nothing for nothing", function ()
    check("batch_norm", { 0, 3, 5 }, batch, few)
    check("group_norm", { 0, 4, 5 }, function (v, w, b)
      return v:group_norm(2, w, b)
    end, few)
  end)

  it("takes layers", function ()
    local nn = fnn.nn
    local layers = {
      function () return nn.BatchNorm2d(4) end,
      function () return nn.BatchNorm2d(4, { momentum = false }) end,
      function () return nn.GroupNorm(2, 4) end,
      function () return nn.InstanceNorm2d(4, { affine = true }) end,
    }
    local x = randn(1, 3, 4, 5, 6) + 1
    for _, new in ipairs(layers) do
      local here, far = new(), new():to(device.name)
      local function compare ()
        local gap = (here(x) - far(x:to(device.name)):to "cpu"):abs():max()
        assert.is_true(gap:item() < 1e-5, tostring(gap))
      end
      compare()
      compare()
      here:eval()
      far:eval()
      compare()
    end
  end)
end)
