-- groups.lua - which weights decay: optim.decay_groups.

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"
local tree = load "nn/tree"

local ipairs, pairs = ipairs, pairs
local find = string.find

-- Biases, whatever has one dim or none, and all that a normalization owns.
local function is_spared (entry)
  return entry.value:ndim() <= 1 or entry.key == "bias" or
         find(entry.owner.__name, "Norm", 1, true) ~= nil
end

-- optim.decay_groups(model, { weight_decay =, ... }): groups for an optimizer.
function optim.decay_groups (model, options)
  if module.core.kind(model) ~= "module" then
    module.raise("decay_groups: expected a module, got %s",
                 module.described(model))
  end
  local decayed, spared = { params = {} }, { params = {} }
  for key, v in pairs(options or {}) do decayed[key], spared[key] = v, v end
  decayed.weight_decay = decayed.weight_decay or 0.01
  spared.weight_decay = 0
  for _, entry in ipairs(tree.survey(model).tensors) do
    if entry.kind == "param" then
      local list = (is_spared(entry) and spared or decayed).params
      list[#list + 1] = entry.value
    end
  end
  local groups = {}
  for _, group in ipairs { decayed, spared } do
    if #group.params > 0 then groups[#groups + 1] = group end
  end
  return groups
end

return true
