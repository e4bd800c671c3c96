-- plans.lua - calls that fit more often than any: see tensor_fuzz.c.
--
-- byte() reads the input.  A plan gets two registers and may raise.

local fnn, byte = ...
local nn, optim = fnn.nn, fnn.optim
local wild = { 0, -1, 63, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 60,
  math.maxinteger, math.mininteger, 0.5, 1e300, 0 / 0, 1 / 0 }
local plans = {}

local function pick (...)
  return (select(1 + byte() % select('#', ...), ...))
end

-- Mostly least .. least + 3.
local function size (least)
  local b = byte()
  if b >= 244 then return wild[1 + byte() % #wild] end
  return least + b % 4
end

local function flag () return byte() % 2 == 1 end

-- One number, or one for each of dims.
local function sizes (least, dims)
  if byte() % 4 > 0 then return size(least) end
  local t = {}
  for i = 1, dims do t[i] = size(least) end
  return t
end

local function dtype ()
  local b = byte()
  return b < 200 and 'f32' or b < 245 and 'f64' or b < 250 and 'f16' or 'i64'
end

-- A tensor of any layout, plain or of a Param.
local function tensor (t, ...)
  local x = fnn.rand(...)
  if byte() % 16 == 0 then x = x * pick(0 / 0, 1 / 0, -1e30, 0, -1) end
  x = x:to(t)
  local how = byte() % 8
  if how == 1 and x:dim() > 2 then x = x:channels_last() end
  if how == 2 and x:dim() > 1 then
    x = x:transpose(1, -1):contiguous():transpose(1, -1)
  end
  if how == 3 then x = x:narrow(1, 1, 1):expand(...) end
  if byte() % 4 == 0 then return x end
  local p = fnn.Param(x)
  if byte() % 8 == 0 then p:freeze() end
  return p
end

-- The gradients of y, to which something was done on the way.
local function back (y, x)
  local b = byte() % 8
  if b == 0 and x ~= nil then fnn.no_grad(function () x:add_(1) end) end
  if b == 1 then y = y:transpose(1, -1) end
  if b == 2 and y:dim() > 2 then y = y:channels_last() end
  if b ~= 3 then y:sum():backward() end
  return y, x
end

-- 'x' without channels fits no weight, and so on: sizes are mostly right.
local function shape_of (n, channels, dims)
  local s = { n, channels }
  local large = byte() % 4 == 0 and 8 or 1
  for i = 1, dims do s[2 + i] = large + byte() % 6 end
  return s
end

local function channels () return pick(1, 2, 3, 4, 6, 16, 17) end

function plans.conv ()
  local dims, transposed = 1 + byte() % 3, flag()
  if dims == 3 then transposed = false end
  local groups = byte() % 4 == 0 and size(1) or 1
  local cin, cout = channels(), channels()
  if groups ~= 1 and byte() % 8 > 0 then
    cin, cout = cin * groups, cout * groups
  end
  if byte() % 8 == 0 then groups, cout = cin, cin end
  local w = { transposed and cin or cout,
    (transposed and cout or cin) // groups }
  for i = 1, dims do w[2 + i] = byte() % 4 > 0 and 3 or 1 + byte() % 5 end
  local t = dtype()
  local x = tensor(t, shape_of(byte() % 3, cin, dims))
  local weight = tensor(byte() % 16 > 0 and t or dtype(), w)
  local b = flag() and tensor(t, { cout }) or nil
  local o = { groups = groups }
  if flag() then o.stride = sizes(1, dims) end
  if flag() then o.dilation = sizes(1, dims) end
  if flag() then
    o.padding = byte() % 4 > 0 and sizes(0, dims) or pick('same', 'causal')
  end
  if transposed and flag() then o.output_padding = sizes(0, dims) end
  local f = fnn[(transposed and 'conv_transpose' or 'conv') .. dims .. 'd']
  local function run () return f(x, weight, b, o) end
  if byte() % 8 == 0 then
    fnn.no_grad(run)
    return fnn.no_grad(run)
  end
  if byte() % 16 == 0 then return back(f(x, x, b, o)) end
  return back(run(), flag() and x or weight)
end

-- One weight that stays, split in groups in one way and another.
function plans.groups ()
  local w = fnn.Param(fnn.rand(4 * (1 + byte() % 4), channels(), 3)):freeze()
  local t = pick('conv1d', 'conv_transpose1d')
  for _ = 1, 3 do
    local g = pick(1, 2, 4)
    local c = t == 'conv1d' and w:size(2) * g or w:size(1)
    fnn[t](fnn.rand(1, c, 5), w, nil, { groups = g })
  end
end

function plans.pool ()
  local dims = 1 + byte() % 2
  local x = tensor(dtype(), shape_of(byte() % 3, channels(), dims))
  local name = pick('max_pool', 'avg_pool')
  local o = {}
  if flag() then o.stride = sizes(1, dims) end
  if flag() then o.padding = sizes(0, dims) end
  if flag() then o.ceil_mode = flag() end
  if name == 'max_pool' then
    if flag() then o.dilation = sizes(1, dims) end
    o.return_indices = flag()
  else o.count_include_pad = flag() end
  return back((fnn[name .. dims .. 'd'](x, sizes(1, dims), o)), x)
end

function plans.adaptive ()
  local dims = 1 + byte() % 2
  local x = tensor(dtype(), shape_of(byte() % 3, channels(), dims))
  local name = pick('adaptive_max_pool', 'adaptive_avg_pool')
  return back((fnn[name .. dims .. 'd'](x, sizes(0, dims))), x)
end

function plans.interpolate ()
  local dims = 1 + byte() % 2
  local x = tensor(dtype(), shape_of(byte() % 3, channels(), dims))
  local o = { mode = pick('nearest', dims == 1 and 'linear' or 'bilinear',
    'bicubic') }
  if o.mode ~= 'nearest' then o.align_corners = flag() end
  if flag() then o.size = sizes(1, dims)
  else o.scale_factor = pick(0.3, 1, 1.7, 2, 1e-300, 1e300, 1 << 40) end
  return back(fnn.interpolate(x, o), x)
end

function plans.norm ()
  local dims, c = 1 + byte() % 3, channels()
  local name = pick('BatchNorm', 'InstanceNorm', 'GroupNorm')
  local o = { affine = flag() }
  if flag() then o.eps = pick(0, 1e-5, -1, 1e300) end
  if name == 'BatchNorm' then
    o.momentum = pick(false, 0, 0.1, 1)
    o.track_running_stats = flag()
  end
  local m = name == 'GroupNorm' and nn.GroupNorm(pick(1, c, 2), c, o)
            or nn[name .. dims .. 'd'](c, o)
  local t = dtype()
  if t ~= 'f32' and flag() then m:to(t) end
  local x = tensor(t, shape_of(byte() % 3, c, dims))
  if flag() then m(x) end
  if flag() then m:eval() end
  return back(m(x), x)
end

local losses = { 'mse', 'l1', 'huber', 'smooth_l1', 'bce', 'bce_with_logits',
  'focal', 'kl_div', 'kl_divergence', 'gaussian_nll', 'poisson_nll', 'hinge',
  'hinge_embedding', 'margin_ranking', 'cosine_embedding', 'triplet',
  'contrastive', 'info_nce', 'dice' }

function plans.loss ()
  local name = losses[1 + byte() % #losses]
  local s = shape_of(byte() % 4, channels(), byte() % 2)
  local x, y = tensor(dtype(), s), tensor(dtype(), s)
  local z = flag() and tensor(dtype(), s) or tensor(dtype(), { s[1] })
  local o = { reduction = pick('mean', 'sum', 'none', 'batchmean') }
  local row = nn[name]
  if name == 'gaussian_nll' or name == 'margin_ranking' or name == 'triplet'
     or name == 'cosine_embedding' or name == 'contrastive' then
    return back(row(x, y, z, o), x)
  end
  return back(row(x, y, o), x)
end

local function ids (most, ...)
  local y = fnn.randint(0, most, ...)
  if byte() % 16 == 0 then y = y * size(0) end
  return y
end

function plans.ids ()
  local dims, c = byte() % 3, channels()
  local s = shape_of(byte() % 4, c, dims)
  local x = tensor(dtype(), s)
  if dims == 0 and flag() then x = x:narrow(1, 1, 1):squeeze(1) end
  local o = { reduction = pick('mean', 'sum', 'none') }
  if flag() then o.weight = tensor('f32', { c }) end
  if byte() % 4 == 0 then o.ignore_index = size(0) end
  local name = pick('cross_entropy', 'nll')
  if name ~= 'nll' and flag() then o.label_smoothing = pick(0.1, 1, 2) end
  table.remove(s, 2)
  local y = x:dim() == 1 and ids(c, 1):squeeze() or ids(c, s)
  return back(nn[name](x, y, o), x)
end

function plans.ctc ()
  local steps, n, c, most = byte() % 6, byte() % 4, 1 + byte() % 4, byte() % 4
  local x = tensor(dtype(), { steps, n, c })
  local y = flag() and ids(c, { n, most }) or ids(c, { n * most })
  return back(nn.ctc(x, y, ids(steps + 1, n), ids(most + 1, n),
                     { reduction = pick('mean', 'sum', 'none'),
                       zero_infinity = flag() }), x)
end

local rules = { 'SGD', 'Adam', 'AdamW', 'RAdam', 'NAdam', 'Adamax', 'Lion',
  'RMSprop', 'Adagrad', 'Adadelta', 'Adafactor', 'Muon' }

-- An optimizer of two Params, and what may happen to them between its steps.
function plans.optim (_, other)
  local name = rules[1 + byte() % #rules]
  local p, q = tensor(dtype(), { byte() % 4, byte() % 5 }),
               tensor('f32', byte() % 2 == 0 and { 3 } or { 2, 3, 4 })
  local o = {}
  if flag() then o.lr = pick(0, 0.1, -1, 1e300, 0 / 0) end
  if flag() then o.weight_decay = pick(0, 0.1) end
  if name ~= 'Muon' and byte() % 2 == 0 then o.maximize = flag() end
  local opt = optim[name](name == 'Muon' and { p } or { p, q }, o)
  for _ = 1, 3 do
    local b = byte() % 16
    if b == 1 then p:to(pick('f64', 'f32', 'f16')) end
    if b == 2 then p:freeze() end
    if b == 3 then opt:_load(opt:_states()) end
    if b == 4 then
      local s = opt:_states()
      for i = 1, #s do s[i].step = size(0) end
      opt:_load(s)
    end
    if b == 5 then opt:set_options { weight_decay = size(0) } end
    if b == 6 then opt:add_group { params = { fnn.Param(fnn.ones(2, 2)) } } end
    if b == 7 then pcall(p.set_grad, p, other) end
    if b == 8 then pcall(p.set_grad, p, p:value()) end
    local y = p:sum() * p:sum()
    if name ~= 'Muon' then y = y + q:sum() end
    pcall(y.backward, y)
    if flag() then opt:step { max_norm = pick(0, 1, 1e30) } else opt:step() end
    if flag() then opt:zero_grad() end
  end
  return p, q
end

local sorted, list = {}, {}
for name in pairs(plans) do sorted[#sorted + 1] = name end
table.sort(sorted)
for i, name in ipairs(sorted) do list[i] = plans[name] end
return list
