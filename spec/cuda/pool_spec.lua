-- Pools, and their gradients, on the device as on the CPU.

local fnn = require "fnn"
local device = require "spec.support.device"

local there = device.there()

local function randn (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- op with its arguments, in both orders.
local function check (op, shape, dtypes, ...)
  local args = table.pack(...)
  local x = randn(7, table.unpack(shape))
  local name = op .. " " .. table.concat(shape, "x")
  local o = { dtypes = dtypes }
  device.all(name, function (v)
    return { v[op](v, table.unpack(args, 1, args.n)) }
  end, { x }, o)
  if #shape ~= (op:find "1d" and 3 or 4) then return end
  device.all(name .. " last", function (v)
    v = v:channels_last()
    return { v[op](v, table.unpack(args, 1, args.n)) }
  end, { x }, o)
end

local few = { "f32", "bf16" }

describe("#cuda pool", function ()
  if not there then return pending "no cuda" end

  it("takes all dtypes", function ()
    check("max_pool2d", { 2, 3, 6, 7 }, nil, 2)
    check("avg_pool2d", { 2, 3, 6, 7 }, nil, 3, { padding = 1, stride = 2 })
    check("adaptive_avg_pool2d", { 2, 3, 6, 7 }, nil, { 2, 3 })
    check("adaptive_max_pool2d", { 2, 3, 6, 7 }, nil, { 4, 3 })
  end)

  it("takes windows, strides, padding and dilation", function ()
    for _, k in ipairs { 1, 2, 3, 5 } do
      for _, s in ipairs { 1, 2, 3 } do
        for _, up in ipairs { false, true } do
          check("max_pool1d", { 2, 3, 33 }, few, k,
                { stride = s, padding = k // 2, ceil_mode = up,
                  return_indices = true })
          check("avg_pool1d", { 2, 3, 31 }, few, k,
                { stride = s, padding = k // 2, ceil_mode = up,
                  count_include_pad = up })
        end
      end
    end
    check("max_pool2d", { 1, 5, 9, 11 }, few, { 3, 2 },
          { stride = { 2, 1 }, dilation = { 2, 3 }, padding = { 1, 1 },
            return_indices = true })
    check("avg_pool2d", { 3, 9, 8 }, few, { 3, 2 }, { padding = { 1, 0 } })
    check("max_pool2d", { 1, 33, 4, 4 }, few, 3, { stride = 1 })
  end)

  it("takes large windows", function ()
    check("max_pool1d", { 2, 3, 300 }, few, 129,
          { stride = 40, return_indices = true })
    check("avg_pool1d", { 2, 3, 300 }, few, 129, { stride = 40, padding = 60 })
    check("max_pool2d", { 2, 3, 20, 19 }, few, 11,
          { dilation = { 1, 2 }, padding = 4, return_indices = true })
    check("avg_pool2d", { 1, 35, 12, 13 }, few, { 9, 12 })
    check("adaptive_avg_pool2d", { 2, 5, 15, 17 }, few, 1)
    check("adaptive_max_pool2d", { 2, 5, 15, 17 }, few, 1,
          { return_indices = true })
  end)

  it("takes adaptive ones, to more places too", function ()
    for _, n in ipairs { 1, 2, 5, 7, 16 } do
      check("adaptive_avg_pool1d", { 2, 3, 7 }, few, n)
      check("adaptive_max_pool1d", { 2, 3, 7 }, few, n,
            { return_indices = true })
    end
    check("adaptive_avg_pool2d", { 3, 9, 7 }, few, { 4, 9 })
  end)

  it("lets NaN win and keeps the first of equals", function ()
    local nan, inf = 0 / 0, math.huge
    local x = fnn.tensor({ 1, nan, 3, nan, -inf, -inf, -inf, -inf, inf, 2, 2,
                           2, 5, nan, nan, 0 }, { 1, 1, 16 })
    local y = fnn.cat({ x, fnn.zeros(1, 1, 16) }, 2)
    for _, k in ipairs { 2, 4, 16 } do
      device.all("special values", function (v)
        return { v:max_pool1d(k, { return_indices = true }) }
      end, { y }, { dtypes = few })
      device.all("special values last", function (v)
        return { v:channels_last():max_pool1d(k, { return_indices = true }) }
      end, { y }, { dtypes = few })
    end
    local long = fnn.zeros(1, 2, 100)
    long:narrow(3, 40, 2):fill_(nan)
    device.all("special values of many", function (v)
      return { v:max_pool1d(100, { return_indices = true }) }
    end, { long }, { dtypes = few })
  end)

  it("gives nothing for nothing", function ()
    check("max_pool1d", { 0, 3, 5 }, few, 2, { return_indices = true })
    check("avg_pool2d", { 0, 3, 5, 4 }, few, 2)
    check("adaptive_avg_pool1d", { 2, 0, 5 }, few, 2)
  end)

  it("takes layers", function ()
    for _, l in ipairs { fnn.nn.MaxPool2d(3, { stride = 2, padding = 1 }),
                         fnn.nn.AvgPool2d(2), fnn.nn.AdaptiveAvgPool2d(1),
                         fnn.nn.AdaptiveMaxPool2d(2) } do
      device.all("layer", function (v) return l(v) end,
                 { randn(1, 2, 4, 8, 9) }, { dtypes = few })
    end
  end)
end)
