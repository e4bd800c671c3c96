-- losses.lua - losses as functions, nn.mse(x, y [, options]), and as modules
-- that keep their options.
--
-- What a loss takes is told by lua/lloss.c.  A tensor among the options is a
-- buffer of the module, so that it moves with the model.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local ipairs, pairs, pcall, select = ipairs, pairs, pcall, select
local concat, sort, unpack = table.concat, table.sort, table.unpack
local gsub, tostring, type = string.gsub, tostring, type
local core, raise = module.core, module.raise

-- The class, the name, and others: that of PyTorch's functional form.
local names = {
  { "CrossEntropyLoss", "cross_entropy" },
  { "NLLLoss", "nll", "nll_loss" },
  { "MSELoss", "mse", "mse_loss" },
  { "L1Loss", "l1", "l1_loss", "mae" },
  { "HuberLoss", "huber", "huber_loss" },
  { "SmoothL1Loss", "smooth_l1", "smooth_l1_loss" },
  { "BCELoss", "bce", "binary_cross_entropy" },
  { "BCEWithLogitsLoss", "bce_with_logits",
    "binary_cross_entropy_with_logits" },
  { "FocalLoss", "focal" },
  { "DiceLoss", "dice" },
  { "KLDivLoss", "kl_div" },
  { "KLDivergenceLoss", "kl_divergence" },
  { "GaussianNLLLoss", "gaussian_nll", "gaussian_nll_loss" },
  { "GaussianNLLLogVarLoss", "gaussian_nll_log_var" },
  { "PoissonNLLLoss", "poisson_nll", "poisson_nll_loss" },
  { "HingeLoss", "hinge" },
  { "HingeEmbeddingLoss", "hinge_embedding", "hinge_embedding_loss" },
  { "MarginRankingLoss", "margin_ranking", "margin_ranking_loss" },
  { "TripletMarginLoss", "triplet", "triplet_margin_loss" },
  { "ContrastiveLoss", "contrastive" },
  { "CosineEmbeddingLoss", "cosine_embedding", "cosine_embedding_loss" },
  { "InfoNCELoss", "info_nce" },
  { "CTCLoss", "ctc", "ctc_loss" },
}

-- "{ delta = 2, reduction = 'sum' }"
local function options_text (options)
  local words = {}
  for key, v in pairs(options) do
    local text = tostring(v)
    if type(v) == "string" then text = "'" .. v .. "'"
    elseif core.kind(v) then text = "(" .. concat(v:shape(), ", ") .. ")" end
    words[#words + 1] = key .. " = " .. text
  end
  sort(words)
  return #words > 0 and "{ " .. concat(words, ", ") .. " }" or ""
end

local function define (name, loss)
  local row = core.losses[loss]
  local class = nn.module(name)
  local known = {}
  for _, key in ipairs(row.options) do known[key] = false end
  class.loss = loss
  nn[name] = class

  function class:init (options, ...)
    if select("#", ...) > 0 then
      raise("%s: expected one table of options, got %d arguments", name,
            1 + select("#", ...))
    end
    module.options(name, options, known)
    local ok, text = pcall(row.check, options)
    if not ok then raise("%s: %s", name, gsub(text, "^.-:%d+: ", "")) end
    for _, key in ipairs(row.options) do
      self[key] = options and options[key]
    end
  end

  local function options_of (self)
    local options = {}
    for _, key in ipairs(row.options) do options[key] = self[key] end
    return options
  end

  function class:forward (...)
    if select("#", ...) ~= row.inputs then
      raise("%s: expected %d arguments, got %d", name, row.inputs,
            select("#", ...))
    end
    local x = { ... }
    x[row.inputs + 1] = options_of(self)
    return row.loss(unpack(x, 1, row.inputs + 1))
  end

  function class:describe () return options_text(options_of(self)) end
end

for _, row in ipairs(names) do
  local class, loss = row[1], row[2]
  define(class, loss)
  for i = 2, #row do nn[row[i]] = core.losses[loss].loss end
end

return true
