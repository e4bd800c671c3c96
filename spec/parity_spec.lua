-- parity_spec.lua - fnn beside PyTorch: every family of spec/fixtures/parity,
-- in f64 and f32.

local parity = require "spec.support.parity"

describe("parity", function ()
  for _, family in ipairs(parity.families()) do
    describe("of " .. family.name, function ()
      for i, case in ipairs(family.cases) do
        for _, dtype in ipairs { "f64", "f32" } do
          local kind, name = parity.subject(case)
          it(("%d: %s %s, %s: %s"):format(i, kind, name, dtype, case.lua),
             function ()
            local value, gradient = parity.run(case, dtype)
            local most = parity.tolerance(case, dtype)
            assert.is_true(value <= most, "error " .. value)
            assert.is_true((gradient or 0) <= most,
                           "error of the gradient " .. (gradient or 0))
          end)
        end
      end
    end)
  end
end)
