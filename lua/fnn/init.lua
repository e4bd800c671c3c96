-- init.lua - loads the parts of the library that are written in Lua.
local fnn, load, internals = ...
local optim = fnn.optim
local gmatch = string.gmatch

load "nn"
load "optim"
load "data"
load "gradcheck"

-- Parts that not every script needs are compiled when one of their functions,
-- which the part returns by name, is called.
local function later (t, part, names)
  local stubs, real = {}, nil
  for name in gmatch(names, "%S+") do
    stubs[name] = function (...)
      if not real then
        real = load(part)
        for key, stub in next, stubs do  -- but for what a script replaced
          if t[key] == stub then t[key] = real[key] end
        end
      end
      return real[name](...)
    end
    t[name] = stubs[name]
  end
end

fnn.metrics = internals.namespace({}, "fnn.metrics")
fnn.plot = internals.namespace({}, "fnn.plot")

later(fnn, "function", "Function")
later(fnn, "cli", "cli")
later(fnn, "graph_step", "graph_step")
later(optim, "optim/schedule", "scheduler")
later(optim, "optim/laws", [[
  Constant StepDecay MultiStep Exponential Polynomial CosineAnnealing
  CosineRestarts Warmup OneCycle WarmupCosine WSD Chained Sequential
]])
later(optim, "optim/plateau", "ReduceOnPlateau")
later(fnn.metrics, "metrics", "accuracy classes confusion")
later(fnn.plot, "plot", [[
  lines scatter histogram images confusion heatmap grid
]])
later(fnn, "fit", "fit evaluate")
later(fnn, "training", "save_training load_training")
later(fnn, "network", "Network")
later(fnn.text, "text/generate", "generate stream Decoder")
later(fnn.text, "text/beam", "BeamSearch")
