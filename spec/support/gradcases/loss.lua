-- loss.lua - gradient checks of losses.

local fnn = require "fnn"
local nn = fnn.nn

local cases = {}

local function add(op, options, inputs, f, more)
  local case = { op = op, options = options, inputs = inputs, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

local reductions = { "mean", "sum", "none" }

-- The options, their tensors where x is and of its dtype.
local function beside(x, options)
  local o = {}
  for k, v in pairs(options) do
    o[k] = fnn.is_tensor(v) and v:to(x:dtype(), x:device()) or v
  end
  return o
end

-- A case of each reduction.
local function each(op, text, inputs, options, more)
  for _, reduction in ipairs(reductions) do
    local o = { reduction = reduction }
    for k, v in pairs(options) do o[k] = v end
    add(op, text .. reduction, inputs, function(...)
      local x = { ... }
      if more and more.last then x[#x + 1] = more.last(x[1]) end
      x[#x + 1] = o
      return nn[op](table.unpack(x))
    end, more)
  end
end

-- {======================================================
-- Class ids
-- =======================================================

-- The first ids of the list, as many as there are rows.
local function entropy(op, options, text, more)
  add(op, "ids" .. text, { { 4, 5 } }, function(x)
    local all = fnn.tensor({ 1, 4, 0, 1 }, { dtype = "i64" })
    return nn[op](x, all:narrow(1, 1, x:size(1)), beside(x, options))
  end, more)
end

local weight = fnn.tensor({ 0.5, 1, 2, 0.7, 1.3 }, { dtype = "f64" })
for _, op in ipairs { "cross_entropy", "nll" } do
  entropy(op, {}, "")
  entropy(op, { reduction = "sum" }, ", sum")
  entropy(op, { reduction = "none" }, ", none")
  entropy(op, { weight = weight }, ", weight")
  entropy(op, { ignore_index = 1 }, ", ignore_index")
  add(op, "ids of a vector", { { 5 } }, function(x)
    return nn[op](x, fnn.tensor(2, { dtype = "i64" }))
  end, { empty = false })
  add(op, "ids in places", { { 2, 3, 2 } }, function(x)
    local all = fnn.tensor({ { 0, 2 }, { 1, 1 } }, { dtype = "i64" })
    return nn[op](x, all:narrow(1, 1, x:size(1)))
  end)
end
entropy("cross_entropy", { label_smoothing = 0.2 }, ", label_smoothing")
entropy("cross_entropy", { weight = weight, label_smoothing = 0.2,
                           ignore_index = 4 }, ", all of these")
add("cross_entropy", "probabilities", { { 4, 5 }, { 4, 5 } },
    function(x, t) return x:cross_entropy(t) end,
    { domains = { "any", "positive" } })
add("cross_entropy", "probabilities, weight, label_smoothing, none",
    { { 4, 5 }, { 4, 5 } }, function(x, t)
  return x:cross_entropy(t, beside(x, { weight = weight,
                                        label_smoothing = 0.1,
                                        reduction = "none" }))
end, { domains = { "any", "positive" } })

-- }======================================================

-- {======================================================
-- Elements
-- =======================================================

local two, three = { { 3, 4 }, { 3, 4 } }, { { 3, 4 }, { 3, 4 }, { 3, 4 } }

-- Probabilities of any numbers, in 0 .. 1, none of them at an end.
local function chance(x) return x:sigmoid() end

-- A weight that broadcasts.
local row = fnn.tensor({ 0.5, 1, 2, 0.25 }, { dtype = "f64" })

for _, reduction in ipairs(reductions) do
  add("mse", reduction, two,
      function(x, y) return x:mse(y or x:flip(1), { reduction = reduction })
      end)
end
each("l1", "", two, {})
each("huber", "", two, {})
each("huber", "delta, ", two, { delta = 0.2 })
each("smooth_l1", "", two, {})
each("smooth_l1", "beta, ", two, { beta = 0.2 })
each("smooth_l1", "beta 0, ", two, { beta = 0 })

for _, reduction in ipairs(reductions) do
  for text, w in pairs { [""] = false, ["weight, "] = row } do
    local o = { reduction = reduction, weight = w or nil }
    add("bce", text .. reduction, two, function(x, y)
      return nn.bce(chance(x), chance(y), beside(x, o))
    end)
    add("bce_with_logits", text .. reduction, two, function(x, y)
      return nn.bce_with_logits(x, chance(y), beside(x, o))
    end)
  end
  add("bce_with_logits", "pos_weight, " .. reduction, two, function(x, y)
    local o = beside(x, { reduction = reduction, pos_weight = row })
    return nn.bce_with_logits(x, chance(y), o)
  end)
  for _, o in ipairs { { 0.25, 2 }, { 0.5, 0 }, { -1, 0.5 }, { 0.9, 3 } } do
    add("focal", ("alpha %g, gamma %g, %s"):format(o[1], o[2], reduction),
        two, function(x, y)
      return nn.focal(x, chance(y), { alpha = o[1], gamma = o[2],
                                      reduction = reduction })
    end)
  end
  add("kl_div", reduction, two, function(x, y)
    return nn.kl_div(x, chance(y), { reduction = reduction })
  end)
  add("kl_divergence", reduction, two, function(x, y)
    return nn.kl_divergence(chance(x), chance(y), { reduction = reduction })
  end)
end
each("kl_div", "log_target, ", two, { log_target = true })
add("kl_div", "batchmean", two, function(x, y)
  return nn.kl_div(x, chance(y), { reduction = "batchmean" })
end)

local variance = { domains = { "any", "any", "positive" } }
each("gaussian_nll", "", three, {}, variance)
each("gaussian_nll", "full, ", three, { full = true }, variance)
add("gaussian_nll", "a variance a row", { { 3, 4 }, { 3, 4 }, { 3 } },
    nn.gaussian_nll, variance)
each("gaussian_nll_log_var", "", three, {})
add("gaussian_nll_log_var", "a variance a column",
    { { 3, 4 }, { 3, 4 }, { 4 } }, nn.gaussian_nll_log_var,
    { empty = { { 3, 0 }, { 3, 0 }, { 0 } } })
each("poisson_nll", "", two, {}, { domains = { "any", "positive" } })
each("poisson_nll", "full, ", two, { full = true },
     { domains = { "any", "positive" } })
each("poisson_nll", "rates, ", two, { log_input = false },
     { domains = { "positive", "positive" } })

-- Labels of 1 and -1 for the elements of x.
local function signs(x)
  local y = fnn.ones(x:shape(), { dtype = x:dtype() })
  if x:numel() > 0 then y:view(-1):slice(1, 1, -1, 2):fill_(-1) end
  return y
end

each("hinge", "", two, {})
each("hinge", "labels, ", { { 3, 4 } }, { margin = 0.3 }, { last = signs })
each("hinge_embedding", "", { { 3, 4 } }, {}, { last = signs })
each("margin_ranking", "", three, { margin = 0.2 })
each("margin_ranking", "labels, ", two, {}, { last = signs })

-- }======================================================

-- {======================================================
-- Rows
-- =======================================================

local function row_signs(x) return signs(x:detach():sum(-1)) end
local function row_labels(x) return row_signs(x):maximum(0) end

each("triplet", "", three, { margin = 2 })
each("triplet", "swap, ", three, { margin = 2, swap = true })
each("triplet", "p 1, ", three, { margin = 3, p = 1, eps = 0 })
each("contrastive", "", two, { margin = 3 }, { last = row_labels })
each("cosine_embedding", "", two, { margin = -0.5 }, { last = row_signs })
each("dice", "", two, {}, { domain = "positive" })
each("dice", "batch, ", { { 2, 3, 2 }, { 2, 3, 2 } }, { batch = true },
     { domain = "positive" })
each("info_nce", "", two, { temperature = 0.5 },
     { empty = { { 3, 0 }, { 3, 0 } } })

-- As many sequences as x has.
local function ctc(options, text)
  add("ctc", text, { { 5, 2, 4 } }, function(x)
    return nn.ctc(x, fnn.tensor { { 1, 1 }, { 2, 3 } }:to "i64", { 5, 4 },
                  { 2, 1 }, options)
  end, { empty = false, expand = 3 })
end

for _, reduction in ipairs(reductions) do ctc({ reduction = reduction },
                                              reduction) end
ctc({ blank = 0, zero_infinity = true }, "zero_infinity")
add("ctc", "no sequences", { { 5, 0, 4 } }, function(x)
  return nn.ctc(x, fnn.zeros({ 0, 2 }, { dtype = "i64" }),
                fnn.zeros({ 0 }, { dtype = "i64" }),
                fnn.zeros({ 0 }, { dtype = "i64" }), { reduction = "none" })
end, { empty = { { 5, 0, 4 } } })

-- }======================================================

return cases
