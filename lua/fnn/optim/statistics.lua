-- statistics.lua - running statistics made anew, for weights that no training
-- step has seen: averages of them (Izmailov et al. 2018, arXiv:1803.05407).

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"

local error, ipairs, pairs, pcall = error, ipairs, pairs, pcall
local core, described, raise = module.core, module.described, module.raise
local momentum_of = core.batch_norm_momentum

-- update_batch_norm(model, batches): the statistics of each BatchNorm in it
-- become the mean over the batches, which are what a for loop takes: a
-- loader, or what dataset:batches(n) gives.  Only the first of what a batch
-- is made of is the model's input.
function optim.update_batch_norm (model, ...)
  if core.kind(model) ~= "module" then
    raise("update_batch_norm: expected a model, got %s", described(model))
  end
  local momenta, training = {}, model.training
  for _, m in ipairs(model:modules()) do
    local momentum = momentum_of(m, -1)
    if momentum then
      momenta[m] = momentum
      m.num_batches_tracked:zero_()
    end
  end
  local ok, message = pcall(function (...)
    model:train()
    fnn.no_grad(function (...)
      for x in ... do model(x) end
    end, ...)
  end, ...)
  for m, momentum in pairs(momenta) do momentum_of(m, momentum) end
  model:train(training)
  if not ok then error(message, 0) end
end

return true
