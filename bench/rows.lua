-- rows.lua - what run.lua measures of fnn: a worker that answers requests.
--
-- A request is a line "ROW SECONDS" on the standard input; the answer is a
-- line with the seconds that one turn of ROW takes, measured over at least
-- SECONDS.  rows.py is the same in PyTorch: the names are the same.
--
-- usage: fnn rows.lua wall|cpu [DEVICE]

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

if arg[2] then fnn.set_default_device(arg[2]) end

-- Each maker returns a function that does a row n times.
local rows = {}

local function mlp()
  return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
end

function rows.mlp_step()
  local model = mlp()
  local opt = optim.Adam(model:parameters(), { lr = 1e-3 })
  local x, y = fnn.randn(128, 784), fnn.randint(0, 10, 128)
  return function (n)
    for _ = 1, n do
      opt:zero_grad()
      nn.cross_entropy(model(x), y):backward()
      opt:step()
    end
  end
end

-- The same, replayed as one piece of work.
function rows.mlp_step_graph()
  local model = mlp()
  local opt = optim.Adam(model:parameters(), { lr = 1e-3 })
  local x, y = fnn.randn(128, 784), fnn.randint(0, 10, 128)
  local step = fnn.graph_step(function ()
    opt:zero_grad()
    nn.cross_entropy(model(x), y):backward()
    opt:step()
  end)
  return function (n) for _ = 1, n do step() end end
end

function rows.mlp_forward()
  local model, x = mlp(), fnn.randn(128, 784)
  return function (n)
    fnn.no_grad(function () for _ = 1, n do model(x) end end)
  end
end

-- GPTs: a character model's training step, and GPT-2's reading of a prompt and
-- of one token behind it.
local function gpt(...)
  local folder = arg[0]:match "^(.*/)" or "./"
  local o = { "vocabulary", "dim", "heads", "layers", "length" }
  for i, v in ipairs { ... } do o[o[i]] = v end
  return dofile(folder .. "gpt.lua")(o)
end

function rows.char_gpt_step()
  local model = gpt(128, 384, 6, 6, 256)
  local opt = optim.AdamW(model:parameters(), { lr = 1e-3 })
  local x, y = fnn.randint(0, 128, 8, 256), fnn.randint(0, 128, 8 * 256)
  return function (n)
    for _ = 1, n do
      opt:zero_grad()
      nn.cross_entropy(model(x):flatten(1, 2), y):backward()
      opt:step()
    end
  end
end

local function gpt2() return gpt(50257, 768, 12, 12, 1024):eval() end

function rows.gpt2_prefill()
  local model, ids = gpt2(), fnn.randint(0, 50257, 1, 256)
  return function (n)
    fnn.no_grad(function () for _ = 1, n do model(ids, nil, true) end end)
  end
end

function rows.gpt2_decode()
  local model, cache = gpt2(), nn.KvCache { length = 1024 }
  local prompt, one = fnn.randint(0, 50257, 1, 64), fnn.randint(0, 50257, 1, 1)
  fnn.no_grad(function () model(prompt, { cache = cache }, true) end)
  return function (n)
    fnn.no_grad(function ()
      for _ = 1, n do
        if #cache == 80 then cache:truncate(64) end
        model(one, { cache = cache }, true)
      end
    end)
  end
end

-- One tensor of 64 MB.
local large

local function memory_bound(f)
  return function ()
    large = large or fnn.randn(16384, 1024)
    return function (n) for _ = 1, n do f(large) end end
  end
end

local weight, bias = fnn.ones(1024), fnn.zeros(1024)
rows.layer_norm = memory_bound(function (x)
  return x:layer_norm(1, weight, bias)
end)
rows.softmax = memory_bound(function (x) return x:softmax(-1) end)
for _, name in ipairs { "gelu", "gelu_tanh", "silu", "exp", "tanh", "relu",
                        "sum" } do
  rows[name] = memory_bound(function (x) return x[name](x) end)
end
rows.add = memory_bound(function (x) return x + x end)
rows.mul_ = memory_bound(function (x) return x:mul_(1.0) end)

-- Tensors of one element: what an op costs beside its work.
local a, b, c = fnn.ones(1), fnn.ones(1), fnn.Param(fnn.ones(1))
local p, q = fnn.ones(4, 4), fnn.ones(4, 4)

local small = {
  one_add = function (n) for _ = 1, n do local _ = a + b end end,
  one_add_ = function (n) for _ = 1, n do a:add_(b) end end,
  one_add_graph = function (n) for _ = 1, n do local _ = c + b end end,
  one_backward = function (n) for _ = 1, n do (c + b):backward() end end,
  one_matmul = function (n) for _ = 1, n do p:matmul(q) end end,
  one_numel = function (n) for _ = 1, n do a:numel() end end,
}
for name, f in pairs(small) do rows[name] = function () return f end end

-- Convolutions, named by what is timed and their sizes: conv_WHAT:N,IN,SIDE,
-- OUT,KERNEL,STRIDE,DILATION,GROUPS.  Images are square, channels-last, and
-- padded so that a stride of 1 keeps their size.  WHAT: forward, or the
-- gradient of the input or of the weight, or all three.  Results are released
-- at once, as PyTorch's are.
local function conv_row(name)
  local what, list = name:match "^conv_(%a+):(.*)$"
  local v = {}
  for s in (list or ""):gmatch "%d+" do v[#v + 1] = math.tointeger(s) end
  if #v ~= 8 then return nil end
  local n, cin, side, cout, k, stride, dilation, groups = table.unpack(v)
  local o = { stride = stride, dilation = dilation, groups = groups,
              padding = dilation * (k - 1) // 2 }
  local x = fnn.randn(n, cin, side, side):channels_last()
  local w = fnn.randn(cout, cin // groups, k, k)
  local shift = fnn.randn(cout)
  local gy = x:conv2d(w, shift, o) * 0.01
  local pw = fnn.Param(w)
  if what == "forward" then
    return function (count)
      fnn.no_grad(function ()
        for _ = 1, count do x:conv2d(w, shift, o):release() end
      end)
    end
  end
  -- An input that wants a gradient, and throws it away.
  local leaf = fnn.Param(fnn.ones(1))
  local function drop(g) g:release() return nil end
  local function wanting()
    return fnn.record(x:detach(), "end", { leaf }, drop)
  end
  if what == "all" then
    return function (count)
      for _ = 1, count do
        local y = wanting():conv2d(pw, shift, o)
        fnn.grad(y, { pw }, { gradient = gy })[1]:release()
        y:release()
      end
    end
  end
  local y = what == "input" and wanting():conv2d(w, shift, o) or
            x:conv2d(pw, shift, o)
  return function (count)
    for _ = 1, count do
      local g = fnn.grad(y, { pw, leaf }, { gradient = gy,
                                            retain_graph = true })[1]
      if g then g:release() end
    end
  end
end

-- Attention, named by what is timed and its sizes: attention_WHAT:HEADS,
-- QUERIES,KEYS,SIZE.  WHAT: forward, causal, or all, with the gradients.
local function attention_row(name)
  local what, list = name:match "^attention_(%a+):(.*)$"
  local v = {}
  for s in (list or ""):gmatch "%d+" do v[#v + 1] = math.tointeger(s) end
  if #v ~= 4 then return nil end
  local h, m, n, d = table.unpack(v)
  local query, key = fnn.randn(1, h, m, d), fnn.randn(1, h, n, d)
  local values, gy = fnn.randn(1, h, n, d), fnn.randn(1, h, m, d)
  local o = { causal = what == "causal" }
  if what ~= "all" then
    return function (count)
      fnn.no_grad(function ()
        for _ = 1, count do
          query:scaled_dot_product_attention(key, values, o):release()
        end
      end)
    end
  end
  local leaves = { fnn.Param(query), fnn.Param(key), fnn.Param(values) }
  return function (count)
    for _ = 1, count do
      local y = leaves[1]:scaled_dot_product_attention(leaves[2], leaves[3])
      for _, g in ipairs(fnn.grad(y, leaves, { gradient = gy })) do
        g:release()
      end
      y:release()
    end
  end
end

-- Square products: matmul_DTYPE:SIZE.
local function product_row(name)
  local dtype, n = name:match "^matmul_(%w+):(%d+)$"
  if not dtype then return nil end
  local x = fnn.randn(n // 1, n // 1):to(dtype)
  local y = fnn.randn(n // 1, n // 1):to(dtype)
  return function (count)
    fnn.no_grad(function ()
      for _ = 1, count do x:matmul(y):release() end
    end)
  end
end

-- An id from a row of logits, spread as those of a language model are:
-- sample_HOW:VOCABULARY, or, to compare, the same row sorted.
local samplers = {
  greedy = { temperature = 0 }, temperature = { temperature = 0.8 },
  top_k = { top_k = 40 }, top_p = { top_p = 0.9 }, min_p = { min_p = 0.05 },
  all = { temperature = 0.8, top_k = 40, top_p = 0.9, min_p = 0.05,
          repetition_penalty = 1.1 },
}

local function sample_row(name)
  local how, n = name:match "^sample_([%a_]+):(%d+)$"
  if not how then return nil end
  local x, history = 3 * fnn.randn(n // 1), {}
  for i = 1, 200 do history[i] = 7 * i end
  if how == "sort" then
    return function (count)
      for _ = 1, count do
        local y, ids = x:sort()
        y:release()
        ids:release()
      end
    end
  end
  local s = fnn.text.Sampler(samplers[how])
  return function (count) for _ = 1, count do s(x, history) end end
end

-- Recurrent layers, forward and backward with all gradients: lstm_step:BATCH,
-- STEPS,IN,HIDDEN,LAYERS, and gru_step.
local function recurrent_row(name)
  local kind, list = name:match "^(%a+)_step:(.*)$"
  local class = ({ lstm = nn.LSTM, gru = nn.GRU, rnn = nn.RNN })[kind]
  if not class then return nil end
  local v = {}
  for s in list:gmatch "%d+" do v[#v + 1] = math.tointeger(s) end
  local model = class(v[3], v[4], { layers = v[5] })
  local x = fnn.randn(v[1], v[2], v[3])
  local gy = fnn.randn(v[1], v[2], v[4])
  return function (count)
    for _ = 1, count do
      model:zero_grad()
      model(fnn.Param(x)):backward(gy)
    end
  end
end

local clock = arg[1] == "cpu" and os.clock or fnn.clock

local function measure(f, seconds)
  local n = 1
  f(1)
  while true do
    fnn.synchronize()
    local start = clock()
    f(n)
    fnn.synchronize()
    local t = clock() - start
    if t >= seconds then return t / n end
    n = math.max(n + 1, math.ceil(n * math.min(100, 1.2 * seconds / t)))
  end
end

local ready = {}
for line in io.lines() do
  local name, seconds = line:match "^(%S+) (%S+)$"
  ready[name] = ready[name] or conv_row(name) or attention_row(name) or
                product_row(name) or sample_row(name) or recurrent_row(name) or
                rows[name]()
  print(("%.9g"):format(measure(ready[name], tonumber(seconds))))
  io.flush()
end
