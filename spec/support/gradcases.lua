-- gradcases.lua - what the gradient check runs, by families of ops.
--
-- A case has
--   op        the method's or the function's name
--   options   what it is called with, in words
--   inputs    the shapes of its tensors, all f64; empty: those that take the
--             place of them in the layout "empty" (else the first dim is 0),
--             or false where there is no such
--   domain    of all inputs, or domains of each: "any", "positive", "unit"
--   expand    the dim that the layout "broadcast" stretches (1)
--   f         the function to differentiate
--   twice     it takes one tensor in both places
--   check     options of fnn.gradcheck

local cases = {}

for _, family in ipairs { "map", "zip", "reduce", "view", "index",
                          "product", "conv", "norm", "attention", "recurrent",
                          "loss" } do
  for _, case in ipairs(require("spec.support.gradcases." .. family)) do
    cases[#cases + 1] = case
  end
end

-- Names that have no gradient to check: what they give is no float tensor
-- made by the op, but ids, bools, integers or words.
local plain = [[
  all any argmax argmin argsort bitand bitnot bitor bitxor eq ge gt isfinite
  isinf isnan le logical_and logical_not logical_or logical_xor lt ne nonzero
  one_hot shl shr
  device dim dtype has_graph is_contiguous item ndim numel order shape
  size stride
  totable
  backward detach register_hook release
]]

return { cases = cases, plain = plain }
