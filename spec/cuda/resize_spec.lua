-- Interpolation, and its gradient, on the device as on the CPU.

local fnn = require "fnn"
local device = require "spec.support.device"

local there = device.there()

local function check (shape, o, dtypes)
  local x = fnn.randn(shape, { generator = fnn.Generator(5) })
  local name = ("interpolate %s %s"):format(table.concat(shape, "x"), o.mode)
  device.all(name, function (v) return v:interpolate(o) end, { x },
             { dtypes = dtypes })
  device.all(name .. " last", function (v)
    return v:channels_last():interpolate(o)
  end, { x }, { dtypes = dtypes })
end

local few = { "f32", "f16" }

describe("#cuda interpolate", function ()
  if not there then return pending "no cuda" end

  it("takes all modes and dtypes", function ()
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
      check({ 2, 3, 5, 6 }, { scale_factor = 2, mode = mode })
      check({ 1, 3, 9, 7 }, { size = { 4, 5 }, mode = mode })
    end
  end)

  it("takes larger and smaller sizes, odd ones and of one place", function ()
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
      for _, size in ipairs { { 1, 1 }, { 7, 1 }, { 3, 33 }, { 19, 2 } } do
        check({ 1, 2, 7, 11 }, { size = size, mode = mode }, few)
        check({ 2, 1, 1, 3 }, { size = size, mode = mode }, few)
      end
      check({ 1, 2, 7, 5 }, { scale_factor = 1.7, mode = mode }, few)
      check({ 1, 2, 7, 5 }, { scale_factor = 0.6, mode = mode }, few)
      check({ 1, 33, 3, 4 }, { scale_factor = 3, mode = mode }, few)
    end
  end)

  it("antialiases", function ()
    for _, mode in ipairs { "bilinear", "bicubic" } do
      for _, size in ipairs { { 1, 1 }, { 3, 4 }, { 19, 2 } } do
        check({ 2, 3, 7, 11 }, { size = size, mode = mode, antialias = true },
              few)
      end
      check({ 1, 33, 9, 4 }, { scale_factor = 0.3, mode = mode,
                               antialias = true }, few)
    end
  end)

  it("aligns corners", function ()
    for _, mode in ipairs { "bilinear", "bicubic" } do
      for _, size in ipairs { { 1, 1 }, { 9, 4 }, { 3, 17 } } do
        check({ 1, 3, 5, 6 }, { size = size, mode = mode,
                                align_corners = true }, few)
      end
    end
  end)

  it("takes signals", function ()
    for _, n in ipairs { 1, 4, 33 } do
      check({ 2, 3, 9 }, { size = n, mode = "nearest" }, few)
      check({ 2, 3, 9 }, { size = n, mode = "linear" }, few)
    end
  end)

  it("gives nothing for nothing, and is a layer", function ()
    check({ 0, 3, 4, 4 }, { scale_factor = 2, mode = "bilinear" }, few)
    local l = fnn.nn.Upsample { scale_factor = 2, mode = "nearest" }
    device.all("Upsample", function (v) return l(v) end,
               { fnn.randn(2, 3, 4, 5) }, { dtypes = few })
  end)
end)
