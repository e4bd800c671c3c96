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

return cases
