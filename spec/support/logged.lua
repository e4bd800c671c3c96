-- logged.lua - writes the same things to any log: what lua/log_spec.lua looks
-- for in the file, and what scripts/fixtures/log.py lets TensorBoard
-- read.

local fnn = require "fnn"

return function(log)
  for step = 0, 4 do log:scalar("loss", 1 / (step + 1), step) end
  log:scalars({ ["a/b"] = 3, ["two\nlines"] = fnn.tensor(-0.5) }, 7)
  log:scalar("größe", 1e30, math.maxinteger)
  log:scalar("negative", 2, -3)
  log:scalar("nan", 0 / 0, 1)
  log:scalar("inf", -1 / 0, 1)
  log:text("notes", "Hello *world*,\nsecond line", 2)
  log:histogram("weights", fnn.arange(1000):to "f32" / 1024, 3)  -- exact sums
  log:histogram("same", fnn.full({ 4 }, 2.5), 3)
  log:histogram("broken", fnn.tensor { 1, 2, 0 / 0, 1 / 0 }, 3)
  log:image("grey", fnn.tensor { { 0, 0.5, 1 }, { 2, -1, 0.25 } }, 4)
  log:image("colour", fnn.arange(12):view(3, 2, 2):to "u8", 4)
  log:image("both", fnn.tensor { 0, 1 }:view(2, 1, 1, 1), 4)
end
