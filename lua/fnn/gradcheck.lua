-- gradcheck.lua - derivatives against finite differences.
local fnn, load = ...
local options = load "data/options"
local error, getmetatable, ipairs, type =
  error, getmetatable, ipairs, type
local abs, max = math.abs, math.max
local unpack = table.unpack

-- The sum of f's result weighted by w, as a number; w is drawn at first.
-- f is given the values: a Param has methods of its own, as to, by which f
-- would change it.
local function weighted(f, params, w)
  local x = {}
  for i, p in ipairs(params) do x[i] = p:value() end
  local y = f(unpack(x))
  if not w then
    local like = { dtype = "f64", device = y:device() }
    w = fnn.uniform(0.5, 1.5, y:shape(), like)
  end
  return (y * w):sum(), w
end

local function value(f, params, w)
  return fnn.no_grad(function()
    return weighted(f, params, w):item()
  end)
end

-- The central difference at element i of a flat view.
local function difference(f, params, w, flat, i, eps)
  local was = flat[i]
  fnn.no_grad(function() flat[i] = was + eps end)
  local above = value(f, params, w)
  fnn.no_grad(function() flat[i] = was - eps end)
  local below = value(f, params, w)
  fnn.no_grad(function() flat[i] = was end)
  return (above - below) / (2 * eps)
end

local function params_of(inputs)
  if type(inputs) ~= "table" then inputs = { inputs } end
  local params = {}
  for i, x in ipairs(inputs) do
    if getmetatable(x) == "fnn.Param" then
      params[i] = x
    else
      params[i] = fnn.Param(x:to("f64"):contiguous():clone())
    end
    if params[i]:dtype() ~= "f64" then
      error("gradcheck: input " .. i .. " must be f64", 3)
    end
  end
  return params
end

local defaults = { eps = 1e-6, atol = 1e-6, rtol = 1e-5 }

-- fnn.gradcheck(f, inputs [, { eps =, atol =, rtol = }]): compares the
-- gradient of f(inputs...), weighted by a random upstream gradient, with
-- central differences in f64.  inputs are tensors, which are copied, or
-- Params.  Returns true and the largest error relative to max(1, |d|); an
-- error names the first element that differs.
function fnn.gradcheck(f, inputs, opts)
  if f == nil or inputs == nil then
    options.raise "gradcheck: expected a function and its inputs, a list"
  end
  opts = options.check("gradcheck", opts, defaults)
  local eps, atol, rtol = opts.eps, opts.atol, opts.rtol
  local params = params_of(inputs)
  local loss, w = weighted(f, params)
  local grads = fnn.grad(loss, params)
  local worst = 0
  for k, p in ipairs(params) do
    local flat = p:value():detach():reshape(-1)
    local g = grads[k] and grads[k]:reshape(-1):totable()
    for i = 1, flat:numel() do
      local expected = difference(f, params, w, flat, i, eps)
      local got = g and g[i] or 0
      local off = abs(got - expected)
      if off ~= off or off > atol + rtol * abs(expected) then
        error(("gradcheck: input %d, element %d: the derivative is %.9g, " ..
               "finite differences give %.9g"):format(k, i, got, expected), 2)
      end
      worst = max(worst, off / max(1, abs(expected)))
    end
  end
  return true, worst
end
