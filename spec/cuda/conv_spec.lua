-- Convolutions, and their gradients, on the device as on the CPU.

local fnn = require "fnn"
local device = require "spec.support.device"

local there = device.there()

local function randn (seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- Runs op on x (n, channels, size ...) with a weight (out, in / groups,
-- kernel ...); c: { op, x's shape, w's shape, options, bias = false }.
local function check (c, dtypes)
  local op, xs, ws, o = c[1], c[2], c[3], c[4] or {}
  local groups = o.groups or 1
  local x, w = randn(1, table.unpack(xs)), randn(2, table.unpack(ws))
  local out = op:find "transpose" and ws[2] * groups or ws[1]
  local inputs = { x, w }
  if c.bias ~= false then inputs[3] = randn(3, out) end
  local name = ("%s %s %s"):format(op, table.concat(xs, "x"),
                                   table.concat(ws, "x"))
  device.all(name, function (x_, w_, b)
    return fnn[op](x_, w_, b, o)
  end, inputs, { dtypes = dtypes })
end

local few = { "f32", "f16" }

describe("#cuda conv", function ()
  if not there then return pending "no cuda" end

  it("takes all dtypes", function ()
    check { "conv2d", { 2, 3, 7, 9 }, { 5, 3, 3, 3 }, { padding = 1 } }
    check { "conv2d", { 2, 8, 5, 6 }, { 4, 8, 3, 3 }, { stride = 2 } }
    check { "conv2d", { 1, 4, 5, 5 }, { 6, 4, 1, 1 } }
    check { "conv_transpose2d", { 2, 4, 3, 4 }, { 4, 3, 4, 4 },
            { stride = 2, padding = 1 } }
    check { "conv2d", { 2, 8, 6, 5 }, { 8, 1, 3, 3 },
            { groups = 8, padding = 1 } }
  end)

  it("takes 1, 2 and 3 dims, with kernels of 1 to 7", function ()
    for _, k in ipairs { 1, 2, 3, 5, 7 } do
      check({ "conv1d", { 2, 3, 33 }, { 4, 3, k }, { padding = "same" } }, few)
      check({ "conv2d", { 1, 5, 8, 9 }, { 3, 5, k, k }, { padding = k // 2 } },
            few)
      check({ "conv3d", { 1, 2, 7, 8, 7 }, { 3, 2, k, 1, k } }, few)
    end
    check({ "conv3d", { 2, 4, 4, 5, 6 }, { 4, 4, 3, 2, 3 },
            { padding = { 1, 0, 2 }, stride = { 1, 2, 1 } } })
  end)

  it("takes strides, dilations and any padding", function ()
    for _, s in ipairs { 1, 2, 3 } do
      for _, d in ipairs { 1, 2, 3 } do
        check({ "conv1d", { 2, 4, 31 }, { 3, 4, 3 },
                { stride = s, dilation = d, padding = 2 } }, few)
        check({ "conv2d", { 1, 3, 9, 11 }, { 2, 3, 3, 2 },
                { stride = { s, 1 }, dilation = { 1, d },
                  padding = { { 0, 2 }, { 3, 1 } } } }, few)
      end
    end
    check({ "conv1d", { 1, 2, 9 }, { 2, 2, 4 },
            { padding = "causal", dilation = 2 } }, few)
    check({ "conv2d", { 1, 2, 5, 4 }, { 2, 2, 4, 3 }, { padding = "same" } },
          few)
    -- windows that lie in the padding whole; strides that skip inputs
    check({ "conv1d", { 1, 1, 3 }, { 2, 1, 2 }, { padding = 5 } }, few)
    check({ "conv2d", { 1, 2, 9, 9 }, { 2, 2, 2, 2 }, { stride = 4 } }, few)
    check({ "conv2d", { 1, 3, 8, 8 }, { 7, 3, 4, 4 }, { stride = 4 } }, few)
    check({ "conv2d", { 1, 4, 5, 5 }, { 6, 4, 1, 1 }, { stride = 2 } }, few)
    check({ "conv2d", { 1, 4, 5, 5 }, { 6, 4, 1, 1 }, { padding = 1 } }, few)
  end)

  it("takes any number of channels", function ()
    for _, c in ipairs { 1, 3, 31, 32, 33, 64, 65 } do
      check({ "conv1d", { 2, c, 6 }, { 3, c, 3 }, { padding = 1 } }, few)
      check({ "conv2d", { 1, 2, 4, 3 }, { c, 2, 2, 2 } }, few)
      check({ "conv1d", { 2, c, 5 }, { c, 1, 3 }, { groups = c } }, few)
    end
  end)

  it("takes groups", function ()
    for _, g in ipairs { 2, 3 } do
      check({ "conv2d", { 2, 4 * g, 5, 6 }, { 2 * g, 4, 3, 3 },
              { groups = g, padding = 1 } }, few)
      check({ "conv1d", { 2, 3 * g, 7 }, { 5 * g, 3, 1 }, { groups = g } },
            few)
      check({ "conv_transpose2d", { 2, 3 * g, 4, 3 }, { 3 * g, 4, 3, 2 },
              { groups = g, stride = 2 } }, few)
    end
  end)

  it("takes depthwise ones, of a few outputs too", function ()
    for _, m in ipairs { 1, 2, 3 } do
      for _, c in ipairs { 3, 4, 33 } do
        check({ "conv2d", { 2, c, 6, 7 }, { m * c, 1, 3, 3 },
                { groups = c, padding = 1 } }, few)
      end
      check({ "conv1d", { 2, 4, 40 }, { 4 * m, 1, 11 },
              { groups = 4, dilation = 2, stride = 2, padding = 3 } }, few)
      check({ "conv3d", { 1, 4, 4, 5, 4 }, { 4 * m, 1, 2, 3, 3 },
              { groups = 4, padding = { { 0, 1 }, { 2, 0 }, 1 } } })
      check({ "conv_transpose1d", { 1, 4, 5 }, { 4, m, 4 },
              { groups = 4, stride = 2 } }, few)
    end
    check { "conv1d", { 3, 2, 700 }, { 2, 1, 3 }, { groups = 2 } }
  end)

  it("takes transposed ones", function ()
    for _, s in ipairs { 1, 2, 3 } do
      check({ "conv_transpose1d", { 2, 3, 9 }, { 3, 5, 4 },
              { stride = s, padding = 1, output_padding = s - 1 } }, few)
      check({ "conv_transpose2d", { 1, 4, 4, 5 }, { 4, 2, 3, 3 },
              { stride = s, dilation = 2 } }, few)
    end
    check({ "conv_transpose2d", { 1, 4, 4, 5 }, { 4, 4, 1, 1 },
            bias = false }, few)
  end)

  -- Patches of more than the 64 MB that are in memory at a time.
  it("takes large ones in chunks", function ()
    local x = randn(1, 1, 64, 1299)
    device.all("chunks", function (w)
      return fnn.conv1d(x:to(w:dtype()):to(w:device()), w)
    end, { randn(2, 1, 64, 1000) }, { dtypes = { "f32" } })
  end)

  -- The input's gradient of an image whose patches are more: by lines of it.
  -- Checking all of them takes long.
  local it_quick = device.caches() and it or pending
  it_quick("takes large images in lines", function ()
    local w = randn(2, 1, 64, 3, 3)
    device.all("lines", function (x)
      return fnn.conv2d(x, w:to(x:dtype()):to(x:device()),
                        { padding = 1, stride = { 2, 1 } })
    end, { randn(1, 1, 64, 126, 240) }, { dtypes = { "f64" } })
  end)

  it("gives nothing for nothing", function ()
    check({ "conv2d", { 0, 3, 4, 4 }, { 2, 3, 3, 3 } }, few)
    check({ "conv1d", { 0, 4, 5 }, { 4, 1, 3 }, { groups = 4 } }, few)
    check({ "conv_transpose1d", { 0, 4, 5 }, { 4, 2, 3 } }, few)
  end)

  it("takes layers, and inputs in either order", function ()
    local x = randn(1, 2, 4, 6, 5)
    device.all("channels last", function (v, w)
      return fnn.conv2d(v:channels_last(), w, { padding = 1 })
    end, { x, randn(2, 3, 4, 3, 3) })
    for _, t in ipairs { "f32", "f16" } do
      local small = t == "f16"
      local layers = {
        fnn.nn.Conv2d(4, 6, 3, { padding = 1 }),
        fnn.nn.Conv2d(4, 4, 3, { groups = 4, stride = 2 }),
        fnn.nn.ConvTranspose2d(4, 3, 4, { stride = 2, padding = 1 }),
      }
      for _, l in ipairs(layers) do
        if small then l:to("f16") end
        if small then l:to("f32") end
        local xs = small and x:to "f16":to "f32" or x
        local want = fnn.no_grad(function () return l(xs) end)
        l:to(device.name)
        if small then l:to("f16") end
        local got = {}
        for i = 1, 2 do -- the second time with weights kept in order
          got[i] = fnn.no_grad(function ()
            return l(xs:to(t):to(device.name))
          end):to "cpu":to "f32"
          local gap = (got[i] - want):abs():max():item()
          assert.is_true(gap < (small and 1e-2 or 1e-5), tostring(gap))
        end
        assert.equal(0, (got[1] - got[2]):abs():max():item())
      end
    end
  end)
end)
