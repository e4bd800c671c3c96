-- step.lua - a step of an optimizer down the loss of one batch, or of several
-- that count as one.

local fnn, load = ...
local optim = fnn.optim
local module = load "nn/module"

local next, type, unpack = next, type, table.unpack
local concat, max = table.concat, math.max
local raise, described = module.raise, module.described

-- The inputs of a batch go to the model, the targets behind them to the loss.
local function forward (model, batch, o)
  local n = #batch - o.targets
  local function run (f, ...)
    if not o.autocast then return f(...) end
    return fnn.autocast(f, { dtype = o.autocast == true and "bf16" or
                                     o.autocast }, ...)
  end
  return run(function ()
    local output = model(unpack(batch, 1, n))
    return output, o.loss and o.loss(output, unpack(batch, n + 1))
  end)
end

-- How many items a batch has.
local function count (batch, o)
  local target = batch[#batch - o.targets + 1]
  if not fnn.is_tensor(target) then target = batch[1] end
  if not fnn.is_tensor(target) or target:ndim() == 0 then return 1 end
  return #target
end

-- Outputs without their graph: a tensor, or tables of them.
local function detached (v)
  if fnn.is_tensor(v) then return v:detach() end
  if type(v) ~= "table" then return v end
  local list = {}
  for key, x in next, v do list[key] = detached(x) end
  return list
end

local function check_loss (name, loss)
  if not fnn.is_tensor(loss) then
    raise("%s: the loss gave %s, expected a tensor of one number", name,
          described(loss))
  elseif loss:numel() ~= 1 then
    raise("%s: the loss gave a tensor of shape (%s), expected one number: " ..
          "the mean over the batch", name, concat(loss:shape(), ", "))
  end
end

-- Adds the gradients of up to o.accumulate batches, each as its items count;
-- returns how many there were, and what their sum is to be divided by.  The
-- first is given, read gives the others.
local function gather (model, o, batch, read, means)
  local scaler = o.scaler
  local first, total, batches
  for i = 1, o.accumulate do
    if i > 1 then batch = read() end
    if not batch then break end
    local n = count(batch, o)
    local output, loss = forward(model, batch, o)
    check_loss("fit", loss)
    first, total, batches = first or max(n, 1), (total or 0) + n, i
    local part = n == first and loss or loss * (n / first)
    if scaler then part = scaler:scale(part) end
    part:backward()
    means.add(n, loss, detached(output), unpack(batch, #batch - o.targets + 1))
  end
  return batches, total / first
end

-- What is done to gradients before a step.
local function bound (opt, o)
  if o.clip then optim.clip_grad_norm(opt, o.clip) end
  if o.clip_value then optim.clip_grad_value(opt, o.clip_value) end
end

-- A step; returns how many batches it took.
local function learn (model, opt, o, batch, read, means)
  local scaler = o.scaler
  opt:zero_grad()
  local batches, share = gather(model, o, batch, read, means)
  if share ~= 1 and share > 0 then optim.scale_grad(opt, 1 / share) end
  if scaler then
    if o.clip or o.clip_value then scaler:unscale(opt) end
    bound(opt, o)
    scaler:step(opt)
    scaler:update()
  else
    bound(opt, o)
    opt:step()
  end
  if o.average then o.average:update() end
  return batches
end

return { learn = learn, forward = forward, count = count,
         detached = detached, check_loss = check_loss }
