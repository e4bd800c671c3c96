-- zip.lua - gradient checks of functions of two numbers: of two tensors of one
-- shape, of shapes that broadcast, and of a tensor and a number.

local fnn = require "fnn"

local cases = {}

local function add(case) cases[#cases + 1] = case end

local function pairs_of(name, domains)
  local function f(x, y) return x[name](x, y) end
  add { op = name, options = "one shape", inputs = { { 3, 4 }, { 3, 4 } },
        domains = domains, f = f }
  add { op = name, options = "a row", inputs = { { 3, 4 }, { 4 } },
        domains = domains, f = f, empty = { { 0, 4 }, { 4 } } }
  add { op = name, options = "both stretched", domains = domains, f = f,
        inputs = { { 2, 1, 3 }, { 4, 1 } },
        empty = { { 0, 1, 3 }, { 4, 1 } } }
  add { op = name, options = "a scalar", inputs = { {}, { 2, 3 } },
        domains = domains, f = f, empty = { {}, { 0, 3 } } }
  add { op = name, options = "number behind", inputs = { { 3, 4 } },
        domains = domains, f = function(x) return x[name](x, 0.7) end }
  add { op = name, options = "number before", inputs = { { 3, 4 } },
        domains = domains and { domains[2] },
        f = function(x) return fnn[name](1.3, x) end }
end

for name in ("add sub mul div atan2 logaddexp mul_sigmoid mul_silu mul_gelu " ..
             "leaky"):gmatch "%S+" do pairs_of(name) end
pairs_of("pow", { "positive", "any" })
for name in ("fmod remainder floordiv"):gmatch "%S+" do
  pairs_of(name, { "any", "divisor" })
end
pairs_of("minimum")
pairs_of("maximum")

-- The same tensor on both sides.
for name in ("add sub mul div"):gmatch "%S+" do
  add { op = name, options = "itself", inputs = { { 3, 4 } }, twice = true,
        f = function(x, y) return x[name](x, y or x) end }
end
add { op = "pow", options = "itself", inputs = { { 3, 4 } }, twice = true,
      domain = "positive", f = function(x, y) return x:pow(y or x) end }

for _, p in ipairs { 0, 1, 2, 3, 0.5, -1, -0.5, -2, 1.7 } do
  add { op = "pow", options = "power " .. p, inputs = { { 3, 4 } },
        domain = "positive", f = function(x) return x ^ p end }
end
for _, p in ipairs { 2, 3, -1 } do
  add { op = "pow", options = "power " .. p .. " of any sign",
        inputs = { { 3, 4 } }, f = function(x) return x:pow(p) end }
end

add { op = "where", options = "two tensors", inputs = { { 3, 4 }, { 3, 4 } },
      f = function(x, y) return fnn.where(x:detach():gt(0.1), x, y) end }
add { op = "where", options = "method, numbers", inputs = { { 3, 4 } },
      f = function(x) return x:detach():lt(0.3):where(x, 2) end }
add { op = "where", options = "stretched", inputs = { { 3, 1 }, { 4 } },
      empty = { { 0, 1 }, { 4 } },
      f = function(x, y)
        return fnn.where((x + y):detach():gt(0.1), x, y)
      end }
add { op = "masked_fill", options = "none", inputs = { { 3, 4 } },
      f = function(x) return x:masked_fill(x:detach():gt(0.2), 7) end }

return cases
