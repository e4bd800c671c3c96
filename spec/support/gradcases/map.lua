-- map.lua - gradient checks of functions of one number.

local shape = { { 3, 4 } }

local cases = {}

local function add(names, domain)
  for name in names:gmatch "%S+" do
    cases[#cases + 1] = {
      op = name, options = "none", inputs = shape, domain = domain,
      f = function(x) return x[name](x) end,
    }
  end
end

local function with(name, options, text, inputs)
  cases[#cases + 1] = {
    op = name, options = text, inputs = inputs or shape,
    f = function(x) return x[name](x, options) end,
  }
end

add([[abs atan ceil cos cosh elu erf exp exp2 expm1 floor gelu gelu_quick
      gelu_tanh hardsigmoid hardswish leaky_relu log_sigmoid mish neg
      reciprocal relu relu6 round selu sigmoid sign silu sin sinh softplus
      softsign square tanh trunc]], "any")
add("log log10 log1p log2 rsqrt sqrt", "positive")
add("acos asin tan", "unit")
with("clamp", { lo = -0.3, hi = 0.4 }, "lo and hi")
with("clamp", { lo = 0.1 }, "lo")
with("elu", { alpha = 0.7 }, "alpha")
with("leaky_relu", { slope = 0.2 }, "slope")
with("softplus", { beta = 2, threshold = 1 }, "beta and threshold")
with("tanh", nil, "none", { {} })
with("exp", nil, "none", { { 5 } })
with("gelu", nil, "none", { { 2, 3, 4 } })
-- Wide enough to reach the flat parts.
with("relu6", nil, "none", { { 10, 10 } })
with("hardswish", nil, "none", { { 8, 8 } })
with("hardsigmoid", nil, "none", { { 8, 8 } })

return cases
