-- lbfgs.lua - L-BFGS (Nocedal and Wright 2006, algorithms 7.4 and 7.5), with
-- the steps and the ends of torch.optim.LBFGS.
--
-- Directions are vectors of all parameters, one after the other.  step(f)
-- calls f, which must drop the gradients, compute the loss, walk back from it
-- and return it.

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"

local ipairs, tostring, type = ipairs, tostring, type
local abs, max, min, sqrt = math.abs, math.max, math.min, math.sqrt
local math_type, remove = math.type, table.remove
local raise = module.raise

local LBFGS = optim.optimizer("LBFGS", {
  lr = 1, max_iter = 20, max_eval = false, tolerance_grad = 1e-7,
  tolerance_change = 1e-9, history_size = 100, line_search_fn = false,
  maximize = false,
})

function LBFGS:check (o)
  for _, name in ipairs { "max_iter", "history_size", "max_eval" } do
    local v = o[name]
    if not (math_type(v) == "integer" and v >= 1) and
       not (name == "max_eval" and v == false) then
      raise("LBFGS: %s must be an integer of 1 or more (got %s)", name,
            tostring(v))
    end
  end
  if o.line_search_fn and o.line_search_fn ~= "strong_wolfe" then
    raise("LBFGS: line_search_fn: expected 'strong_wolfe', got '%s'",
          tostring(o.line_search_fn))
  end
end

-- {======================================================
-- Vectors
-- =======================================================

local function dot (x, y) return (x * y):sum():item() end
local function largest (x) return x:abs():max():item() end

local function gradient (self)
  local parts = {}
  for i, p in ipairs(self._free) do
    parts[i] = (p:grad() or fnn.zeros_like(p:detach())):reshape(-1)
  end
  local g = fnn.cat(parts, 1)
  return self._groups[1].maximize and -g or g
end

-- The parameters go t d further.
local function move (self, t, d)
  fnn.no_grad(function ()
    local at = 1
    for _, p in ipairs(self._free) do
      local n = p:numel()
      p:add_((d:narrow(1, at, n) * t):reshape(p:shape()))
      at = at + n
    end
  end)
end

local function evaluate (self, f)
  local loss = fnn.enable_grad(f)
  local value = fnn.is_tensor(loss) and loss:item() or loss
  if type(value) ~= "number" then
    raise("LBFGS: the function must return the loss, got %s",
          module.described(loss))
  end
  self._evals = self._evals + 1
  return self._groups[1].maximize and -value or value, loss
end

-- }======================================================

-- {======================================================
-- Line search (Nocedal and Wright, algorithms 3.5 and 3.6)
--
-- A point is { t =, f =, slope =, g = }: how far along d, the loss there, its
-- derivative along d, and its gradient.
-- =======================================================

local armijo, curvature = 1e-4, 0.9

-- The least place in [lo, hi] of the cubic with the values and slopes of two
-- points; the middle where it has none.
local function cubic (a, b, lo, hi)
  if a.t > b.t then a, b = b, a end
  lo, hi = lo or a.t, hi or b.t
  local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d1 * d1 - a.slope * b.slope
  if not (square >= 0) then return (lo + hi) / 2 end
  local d2 = sqrt(square)
  local t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) /
                                 (b.slope - a.slope + 2 * d2))
  return min(max(t, lo), hi)
end

local function too_high (p, start)
  return p.f > start.f + armijo * p.t * start.slope
end

local function flat_enough (p, start)
  return abs(p.slope) <= -curvature * start.slope
end

-- Goes on until two points have a good one between them; returns them, or one
-- that is good itself, and the evaluations left.
local function bracket (point_at, start, t, left)
  local last, p, tries = start, point_at(t), 0
  while tries < left do
    if too_high(p, start) or tries > 1 and p.f >= last.f then
      return { last, p }, left - tries
    elseif flat_enough(p, start) then
      return { p }, left - tries
    elseif p.slope >= 0 then
      return { last, p }, left - tries
    end
    local further = cubic(last, p, p.t + 0.01 * (p.t - last.t), p.t * 10)
    last, p, tries = p, point_at(further), tries + 1
  end
  return { start, p }, 0
end

-- A place between two, not too near to either for a second time; and whether
-- it was near.
local function between (a, b, near)
  local t, lo, hi = cubic(a, b), min(a.t, b.t), max(a.t, b.t)
  local margin = 0.1 * (hi - lo)
  if min(hi - t, t - lo) >= margin then return t, false end
  if not near and t < hi and t > lo then return t, true end
  return abs(t - hi) < abs(t - lo) and hi - margin or lo + margin, false
end

-- Narrows the two down; returns the lower in the end.
local function zoom (point_at, start, two, left, small)
  local function lower () return two[1].f <= two[2].f and 1 or 2 end
  local low, near, t = lower(), false
  while left > 0 and abs(two[2].t - two[1].t) >= small do
    t, near = between(two[1], two[2], near)
    local p, high = point_at(t), 3 - low
    left = left - 1
    if too_high(p, start) or p.f >= two[low].f then
      two[high] = p
      low = lower()
    else
      local done = flat_enough(p, start)
      if not done and p.slope * (two[high].t - two[low].t) >= 0 then
        two[high] = two[low]
      end
      two[low] = p
      if done then break end
    end
  end
  return two[low]
end

-- The point to go to along d, which holds both of Wolfe's conditions if the
-- evaluations suffice.
local function search (self, f, start, d, t, left)
  local before = {}
  for i, p in ipairs(self._free) do before[i] = p:detach():clone() end
  local function point_at (far)
    move(self, far, d)
    local loss = evaluate(self, f)
    local g = gradient(self)
    for i, p in ipairs(self._free) do p:set(before[i]) end
    return { t = far, f = loss, slope = dot(g, d), g = g }
  end
  local found
  found, left = bracket(point_at, start, t, left)
  if #found == 1 then return found[1] end
  local small = self._groups[1].tolerance_change / largest(d)
  return zoom(point_at, start, found, left, small)
end

-- }======================================================

-- {======================================================
-- Directions
-- =======================================================

-- Remembers how the gradient changed along the last step, s = t d.
local function remember (s, g, size)
  local y, along = g - s.prev_flat_grad, s.d * s.t
  local ys = dot(y, along)
  if ys <= 1e-10 then return end
  if #s.old_dirs == size then
    remove(s.old_dirs, 1)
    remove(s.old_stps, 1)
    remove(s.ro, 1)
  end
  s.old_dirs[#s.old_dirs + 1] = y
  s.old_stps[#s.old_stps + 1] = along
  s.ro[#s.ro + 1] = 1 / ys
  s.H_diag = ys / dot(y, y)
end

-- The inverse Hessian that the memory is worth, times -g.
local function direction (s, g)
  local d, al = -g, {}
  for i = #s.ro, 1, -1 do
    al[i] = dot(s.old_stps[i], d) * s.ro[i]
    d:sub_(s.old_dirs[i] * al[i])
  end
  d:mul_(s.H_diag)
  for i = 1, #s.ro do
    local be = dot(s.old_dirs[i], d) * s.ro[i]
    d:add_(s.old_stps[i] * (al[i] - be))
  end
  return d
end

-- One step from where the loss is value and the gradient g; returns both
-- where it leads, or nil where there is no way down.
local function iterate (self, f, s, value, g, is_last, left)
  local o = self._groups[1]
  s.n_iter = s.n_iter + 1
  if s.n_iter == 1 then
    s.d, s.old_dirs, s.old_stps, s.ro, s.H_diag = -g, {}, {}, {}, 1
  else
    remember(s, g, o.history_size)
    s.d = direction(s, g)
  end
  s.prev_flat_grad, s.prev_loss = g, value
  s.t = o.lr
  if s.n_iter == 1 then s.t = min(1, 1 / g:abs():sum():item()) * o.lr end
  local slope = dot(g, s.d)
  if slope > -o.tolerance_change then return end
  if o.line_search_fn then
    local start = { t = 0, f = value, slope = slope, g = g }
    local p = search(self, f, start, s.d, s.t, left)
    s.t = p.t
    move(self, s.t, s.d)
    return p.f, p.g
  end
  move(self, s.t, s.d)
  if is_last then return value, g end  -- not known, nor needed, there
  value = evaluate(self, f)
  return value, gradient(self)
end

-- }======================================================

-- The Params that are not frozen, and what is kept of them: in the slot of
-- the first of all, begun anew when there are more or fewer.
local function ready (self)
  self._free = {}
  for _, p in ipairs(self:parameters()) do
    if not p:is_frozen() then self._free[#self._free + 1] = p end
  end
  local n, s = 0, self:slot(self:parameters()[1])
  for _, p in ipairs(self._free) do n = n + p:numel() end
  if s.n_iter == nil or s.d and s.d:numel() ~= n then
    s.n_iter, s.func_evals = 0, 0
  end
  return s
end

-- opt:step(f): goes down the loss that f returns, as it was before.
function LBFGS:step (f)
  if type(f) ~= "function" then
    raise("LBFGS: step needs a function that computes the loss and its "
          .. "gradients, got %s", module.described(f))
  end
  local s, o = ready(self), self._groups[1]
  local most = o.max_eval or o.max_iter * 5 // 4
  self._evals = 0
  local value, loss = evaluate(self, f)
  if #self._free == 0 then return loss end
  local g = gradient(self)
  local finished = largest(g) <= o.tolerance_grad
  local n = 0
  while not finished do
    n = n + 1
    local next_value, next_g = iterate(self, f, s, value, g,
                                       n == o.max_iter, most - self._evals)
    if next_value == nil or n == o.max_iter or self._evals >= most then
      break
    end
    finished = largest(next_g) <= o.tolerance_grad or
               largest(s.d) * abs(s.t) <= o.tolerance_change or
               abs(next_value - value) < o.tolerance_change
    value, g = next_value, next_g
  end
  s.step = s.step + 1
  s.func_evals = s.func_evals + self._evals
  return loss
end

function LBFGS:add_group (group)
  if #self._groups > 0 then
    raise("LBFGS: expected one group of parameters")
  end
  return self.super.add_group(self, group)
end

optim.LBFGS = LBFGS
return true
