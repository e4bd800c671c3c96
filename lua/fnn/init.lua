-- init.lua - loads the parts of the library that are written in Lua.
local fnn, load, internals = ...
local optim = fnn.optim
local setmetatable = setmetatable
local gmatch = string.gmatch

load "nn"
load "optim"
load "data"
load "gradcheck"

-- Of a function that stands for one of a part not loaded yet, what gives it.
internals.stubs = setmetatable({}, { __mode = "k" })

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
    internals.stubs[stubs[name]] = function ()
      return real and real[name] or load(part)[name]
    end
  end
end

internals.progress = fnn.progress  -- one step; the part has loops too

fnn.metrics = internals.namespace({}, "fnn.metrics")
fnn.plot = internals.namespace({}, "fnn.plot")

-- fnn.log is the logarithm as well, fnn.log(x).
local logarithm, kind_of = fnn.log, internals.nn.kind
fnn.log = internals.namespace({}, "fnn.log")
getmetatable(fnn.log).__call = function (_, x)
  local kind = kind_of(x)
  if kind ~= "tensor" and kind ~= "param" then
    internals.nn.raise("log: expected a tensor, got " ..
                       (kind and "a " .. kind or type(x)))
  end
  return logarithm(x)
end

later(fnn, "function", "Function")
later(fnn, "cli", "cli")
later(fnn, "multinomial", "multinomial")
later(fnn, "pad_sequence", "pad_sequence")
later(fnn, "progress", "progress")
later(fnn.data, "data/sources", "source JsonlStream")
later(fnn, "graph_step", "graph_step")
later(optim, "optim/schedule", "scheduler")
later(optim, "optim/laws", [[
  Constant StepDecay MultiStep Exponential Polynomial CosineAnnealing
  CosineRestarts Warmup OneCycle WarmupCosine WSD Chained Sequential
]])
later(optim, "optim/plateau", "ReduceOnPlateau")
later(fnn.metrics, "metrics", [[
  accuracy auc classes confusion f1 mae mse perplexity precision r2 recall rmse
  stream top_k
]])
later(fnn.plot, "plot", [[
  lines scatter histogram images confusion heatmap grid
]])
later(fnn, "fit", "fit evaluate")
later(fnn.log, "log", "jsonl tensorboard all")
later(fnn, "training", "save_training load_training")
later(fnn, "checkpoints", "checkpoints")
later(fnn, "network", "Network")
later(fnn.text, "text/generate", "generate stream Decoder")
later(fnn.text, "text/beam", "BeamSearch")
later(fnn, "seeing/profile", "profile")
later(fnn, "seeing/holders", "memory_holders")
later(fnn.graph, "seeing/dot", "dot")
