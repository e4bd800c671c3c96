-- report.lua - what a run says while it goes: the program's bar, a line an
-- epoch, numbers in a log.

local fnn, load = ...
local history = load "fit/history"

local ipairs, tostring = ipairs, tostring
local math_type = math.type
local format, concat = string.format, table.concat
local stderr = io and io.stderr

-- A number, short.
local function short (v)
  return math_type(v) == "float" and format("%.4g", v) or tostring(v)
end

-- "epoch 3 of 10  loss 0.1234  val_loss 0.2  lr 0.001  1.2 s"
local function line_of (stats, epochs, seconds)
  local parts = { format("epoch %d of %d", stats.epoch, epochs) }
  for _, name in ipairs(history.shown(stats)) do
    if name ~= "epoch" and math_type(stats[name]) then
      parts[#parts + 1] = name .. " " .. short(stats[name])
    end
  end
  parts[#parts + 1] = format(seconds < 100 and "%.1f s" or "%.0f s", seconds)
  return concat(parts, "  ")
end

local function new (o)
  local report, start, what = {}, fnn.clock(), ""

  function report.begin (epoch)
    start, what = fnn.clock(), format("epoch %d of %d", epoch, o.epochs)
  end

  function report.batch (done, total)
    if o.progress then fnn.progress(what, done, total) end
  end

  -- Ends the bar's line, where the bar did not know that it was the last.
  function report.pause (total)
    if o.progress and not total then fnn.progress("", 0) end
  end

  function report.step (step, loss, lr)
    if not o.log then return end
    o.log:scalar("batch_loss", loss, step)
    if lr then o.log:scalar("lr", lr, step) end
  end

  function report.epoch (stats, step)
    if o.verbose then
      local line = line_of(stats, o.epochs, fnn.clock() - start)
      if o.verbose == true then
        if stderr then stderr:write(line, "\n") end
      else
        o.verbose(line)
      end
    end
    if not o.log then return end
    for _, name in ipairs(history.shown(stats)) do
      local v = stats[name]
      if name ~= "epoch" and math_type(v) then o.log:scalar(name, v, step) end
    end
  end
  return report
end

return { new = new }
