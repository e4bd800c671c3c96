-- conv.lua - gradient checks of convolutions and of the order in memory that
-- they compute in.

local fnn = require "fnn"

local cases = {}

local function add(op, options, inputs, f, more)
  local case = { op = op, options = options, inputs = inputs, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

add("channels_last", "", { { 2, 3, 2, 2 } },
    function(x) return x:channels_last():exp() * x end)
add("channels_last", "cat and sums of both orders", { { 2, 3, 4 } },
    function(x)
      local y = x:channels_last()
      return fnn.cat({ (y + x):tanh(), y }, 2) * fnn.cat({ y, x }, 2)
    end)

-- {======================================================
-- Convolutions: x, weight, bias
-- =======================================================

-- The layout "broadcast" stretches the batch, "empty" has none.
local function conv(op, options, x, w, b, o)
  local empty = { { 0, table.unpack(x, 2) }, w, b }
  add(op, options, { x, w, b },
      function(input, weight, bias)
        return fnn[op](input, weight, bias, o)
      end, { empty = empty, domain = "unit" })
end

conv("conv1d", "plain", { 2, 3, 7 }, { 4, 3, 3 }, { 4 })
conv("conv1d", "causal, dilation 2", { 2, 2, 6 }, { 3, 2, 3 }, { 3 },
     { padding = "causal", dilation = 2 })
conv("conv1d", "stride 2, groups 2", { 1, 4, 8 }, { 2, 2, 3 }, { 2 },
     { stride = 2, padding = 1, groups = 2 })
conv("conv2d", "plain", { 2, 3, 4, 5 }, { 2, 3, 3, 2 }, { 2 })
conv("conv2d", "stride 2, padding 1", { 1, 2, 5, 6 }, { 3, 2, 3, 3 }, { 3 },
     { stride = 2, padding = 1 })
conv("conv2d", "1x1", { 2, 3, 2, 3 }, { 4, 3, 1, 1 }, { 4 })
conv("conv2d", "1x1, stride 2", { 1, 3, 4, 3 }, { 2, 3, 1, 1 }, { 2 },
     { stride = 2 })
conv("conv2d", "dilation, asymmetric padding", { 1, 2, 5, 4 },
     { 2, 2, 2, 3 }, { 2 },
     { dilation = { 3, 1 }, padding = { { 2, 0 }, { 0, 1 } } })
conv("conv2d", "depthwise", { 2, 5, 4, 4 }, { 5, 1, 3, 3 }, { 5 },
     { groups = 5, padding = 1 })
conv("conv2d", "groups", { 1, 4, 3, 4 }, { 6, 2, 2, 2 }, { 6 },
     { groups = 2, padding = 1 })
conv("conv2d", "same", { 1, 2, 4, 3 }, { 2, 2, 2, 3 }, { 2 },
     { padding = "same" })
conv("conv3d", "plain", { 1, 2, 3, 4, 3 }, { 2, 2, 2, 2, 2 }, { 2 })
conv("conv3d", "stride, padding", { 1, 2, 3, 4, 3 }, { 2, 2, 2, 2, 2 },
     { 2 }, { stride = { 1, 2, 1 }, padding = 1 })
conv("conv_transpose1d", "plain", { 2, 3, 4 }, { 3, 2, 3 }, { 2 })
conv("conv_transpose1d", "stride, groups", { 1, 4, 3 }, { 4, 1, 3 }, { 2 },
     { stride = 3, groups = 2, output_padding = 1 })
conv("conv_transpose2d", "plain", { 2, 2, 3, 3 }, { 2, 3, 2, 2 }, { 3 })
conv("conv_transpose2d", "stride 2, padding, output_padding",
     { 1, 2, 3, 2 }, { 2, 2, 3, 3 }, { 2 },
     { stride = 2, padding = 1, output_padding = 1 })
conv("conv_transpose2d", "depthwise, dilation", { 1, 4, 3, 3 },
     { 4, 1, 2, 2 }, { 4 }, { stride = 2, groups = 4, dilation = 2 })

-- }======================================================

return cases
