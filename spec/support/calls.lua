-- calls.lua - a module that is called in another way: calls(m, f) runs
-- f(m, ...).  Its parts have the names of m's.

local fnn = require "fnn"

local Calls = fnn.nn.module "Calls"

function Calls:init(m, f)
  for name, part in pairs(m) do self[name] = part end
  self.run = function(...) return f(m, ...) end
end

function Calls:forward(...) return self.run(...) end

return Calls
