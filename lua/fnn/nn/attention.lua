-- attention.lua - MultiHeadAttention, over the op of lua/lattention.c.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"
local positions = load "nn/positions"

local getmetatable, ipairs, pairs = getmetatable, ipairs, pairs
local tostring, type = tostring, type
local match, sub, sort = string.match, string.sub, table.sort
local sqrt = math.sqrt
local core, raise, described = module.core, module.raise, module.described
local kind_of = core.kind
local count, shape_text = positions.count, positions.shape_text

local attention = {}

-- {======================================================
-- Masks
-- =======================================================

-- A mask of scores and one of keys (batch, n), either of which may be nil.
local function joined (mask, keep)
  if not keep then return mask end
  keep = keep:unsqueeze(2):unsqueeze(2)
  if not mask then return keep end
  if mask:dtype() == "bool" then return mask:logical_and(keep) end
  return fnn.where(keep, mask, -1 / 0)
end

-- }======================================================

-- {======================================================
-- Making one
-- =======================================================

local defaults = {
  kv_heads = false, head_dim = false, bias = true, dropout = 0, causal = false,
  rotary = false, alibi = false, kdim = false, vdim = false, dtype = false,
  device = false, generator = false,
}

-- A Rotary as an option tells it: true, its options, or one to share.
function attention.rotary_of (class, option, head_dim)
  if not option or kind_of(option) == "module" then return option or nil end
  if option == true then return nn.Rotary(head_dim) end
  if type(option) ~= "table" or getmetatable(option) then
    raise("%s: option 'rotary': expected true, its options or an nn.Rotary, " ..
          "got %s", class, described(option))
  end
  return nn.Rotary(head_dim, option)
end

function attention.alibi_of (class, option, heads)
  if not option or kind_of(option) == "module" then return option or nil end
  if option ~= true then
    raise("%s: option 'alibi': expected true or an nn.Alibi, got %s", class,
          described(option))
  end
  return nn.Alibi(heads)
end

-- The size of a head, checked.
function attention.head_dim (class, embed, heads, given)
  count(class, "embed", embed)
  count(class, "heads", heads)
  if given then return count(class, "option 'head_dim'", given) end
  if embed % heads ~= 0 then
    raise("%s: embed %d is not a multiple of %d heads (option 'head_dim' " ..
          "allows for that)", class, embed, heads)
  end
  return embed // heads
end

local MHA = nn.module "MultiHeadAttention"

-- As PyTorch draws the three as one matrix (Glorot and Bengio 2010), unless
-- they take inputs of different sizes.
local function draw_weights (self, like)
  local parts = { self.query, self.key, self.value }
  local all, same = 0, true
  for _, p in ipairs(parts) do
    all = all + p.weight:size(1)
    same = same and p.weight:size(2) == self.query.weight:size(2)
  end
  for _, p in ipairs(parts) do
    local rows, columns = p.weight:size(1), p.weight:size(2)
    local bound = sqrt(6 / (columns + (same and all or rows)))
    p.weight:set(fnn.uniform(-bound, bound, { rows, columns }, like))
  end
  parts[4] = self.output
  for _, p in ipairs(parts) do
    if p.bias then
      p.bias:set(fnn.zeros(p.bias:shape(), { dtype = p.bias:dtype(),
                                             device = p.bias:device() }))
    end
  end
end

function MHA:init (embed, heads, options, ...)
  module.no_more("MultiHeadAttention", 3, ...)
  local o = module.options("MultiHeadAttention", options, defaults)
  local size = attention.head_dim("MultiHeadAttention", embed, heads,
                                  o.head_dim)
  local groups = count("MultiHeadAttention", "option 'kv_heads'",
                       o.kv_heads or heads)
  if heads % groups ~= 0 then
    raise("MultiHeadAttention: kv_heads %d do not divide %d heads", groups,
          heads)
  end
  self.embed, self.heads, self.kv_heads, self.head_dim = embed, heads, groups,
                                                         size
  self.dropout = positions.number("MultiHeadAttention", "dropout", o.dropout)
  if o.dropout < 0 or o.dropout > 1 then
    raise("MultiHeadAttention: option 'dropout': expected 0 to 1, got %s",
          tostring(o.dropout))
  end
  self.causal = o.causal and true or false
  local like = positions.only(o, "dtype", "device", "generator")
  local linear = positions.only(o, "dtype", "device", "generator")
  linear.bias = o.bias and true or false
  self.query = nn.Linear(embed, heads * size, linear)
  self.key = nn.Linear(o.kdim or embed, groups * size, linear)
  self.value = nn.Linear(o.vdim or o.kdim or embed, groups * size, linear)
  self.output = nn.Linear(heads * size, embed, linear)
  draw_weights(self, like)
  self.rotary = attention.rotary_of(self.__name, o.rotary, size)
  self.alibi = attention.alibi_of(self.__name, o.alibi, heads)
end

function MHA:describe ()
  local text = self.embed .. ", " .. self.heads
  if self.kv_heads ~= self.heads then
    text = text .. ", kv_heads = " .. self.kv_heads
  end
  return text .. (self.causal and ", causal" or "")
end

nn.MultiHeadAttention = MHA

-- }======================================================

-- {======================================================
-- Running it
-- =======================================================

local call_defaults = {
  mask = false, key_mask = false, causal = false, cache = false,
  positions = false, value = false, need_weights = false,
  average_attn_weights = true,
}

-- (batch, length, heads * size) as (batch, heads, length, size)
local function as_heads (x, n, size)
  return x:unflatten(-1, { n, size }):transpose(2, 3)
end

local function check_input (what, x, size)
  if not positions.is_tensor(x) then
    raise("MultiHeadAttention: %s: expected a tensor, got %s", what,
          described(x))
  end
  if x:ndim() ~= 3 or x:size(3) ~= size then
    raise("MultiHeadAttention: %s: expected (batch, length, %d), got %s", what,
          size, shape_text(x))
  end
end

-- Keys and values of a source.
local function keys_values (self, source, values)
  return as_heads(self.key(source), self.kv_heads, self.head_dim),
         as_heads(self.value(values), self.kv_heads, self.head_dim)
end

-- Queries, keys, values and the mask of keys where x attends itself.
local function of_itself (self, x, o, causal)
  local key_mask = o.key_mask or nil
  if key_mask then
    key_mask = positions.keep_mask("MultiHeadAttention", "key_mask", key_mask,
                                   x:size(1), x:size(2))
  end
  local q = as_heads(self.query(x), self.heads, self.head_dim)
  local k, v = keys_values(self, x, x)
  if self.rotary then
    local where = { positions = o.positions, cache = o.cache,
                    key_mask = o.key_mask }
    q, k = self.rotary(q, where, self), self.rotary(k, where, self)
  end
  if not o.cache then return q, k, v, key_mask end
  if not causal then
    raise("MultiHeadAttention: a cache is for causal attention: here a " ..
          "place attends later ones, so that each new token changes those " ..
          "before it")
  end
  return q, o.cache:append(self, k, v, key_mask)
end

-- The same where it attends a memory.
local function of_memory (self, x, memory, o)
  local values = o.value or memory
  check_input("memory", memory, self.key.weight:size(2))
  check_input("value", values, self.value.weight:size(2))
  local key_mask = o.key_mask or nil
  if key_mask then
    key_mask = positions.keep_mask("MultiHeadAttention", "key_mask", key_mask,
                                   memory:size(1), memory:size(2))
  end
  local q = as_heads(self.query(x), self.heads, self.head_dim)
  local function make () return keys_values(self, memory, values) end
  if not o.cache then
    local k, v = make()
    return q, k, v, key_mask
  end
  local k, v = o.cache:memory(self, memory, make)
  return q, k, v, key_mask
end

local function check_cache (cache)
  if type(cache) ~= "table" or not (cache.append and cache.memory) then
    raise("MultiHeadAttention: option 'cache': expected an nn.KvCache, got %s",
          described(cache))
  end
end

-- The weights (batch, heads, length, n), or (batch, length, n), their mean over
-- heads: what attention gives where the values are the rows of an identity.
local function weights_of (q, k, options, average)
  local n = k:size(3)
  local rows = fnn.eye(n, n, { dtype = k:dtype(), device = k:device() })
  local p = q:scaled_dot_product_attention(
    k, rows:expand(k:size(1), k:size(2), n, n), options)
  return average and p:mean(2) or p
end

-- mha(x [, memory] [, options])
function MHA:forward (x, memory, options)
  if memory ~= nil and options == nil and type(memory) == "table" then
    memory, options = nil, memory
  end
  local o = module.options("MultiHeadAttention", options, call_defaults)
  check_input("input", x, self.embed)
  if o.cache then check_cache(o.cache) end
  local causal = memory == nil and self.causal
  if options and options.causal ~= nil then causal = options.causal end
  local q, k, v, keep
  if memory == nil then
    q, k, v, keep = of_itself(self, x, o, causal)
  else
    q, k, v, keep = of_memory(self, x, memory, o)
  end
  local how = {
    mask = joined(o.mask or nil, keep), causal = causal,
    dropout = self.training and not o.cache and self.dropout or 0,
    alibi = self.alibi and self.alibi(q) or nil,
  }
  local y = q:scaled_dot_product_attention(k, v, how)
  y = self.output(y:transpose(2, 3):flatten(3, 4))
  if not o.need_weights then return y end
  how.dropout = 0
  return y, weights_of(q, k, how, o.average_attn_weights)
end

-- }======================================================

-- {======================================================
-- PyTorch's weights
-- =======================================================

local kinds = { "query", "key", "value" }
local torch_kinds = { q_proj_weight = "query", k_proj_weight = "key",
                      v_proj_weight = "value" }

-- nn.split_attention(state): a state, tensors by name, in which PyTorch's
-- names of a MultiheadAttention have become those of ours: in_proj_weight and
-- in_proj_bias, which hold three, are split, and out_proj is output.
function nn.split_attention (state)
  if type(state) ~= "table" then
    raise("nn.split_attention: expected tensors by name, got %s",
          described(state))
  end
  local to, names = {}, {}
  for _, name in ipairs(state) do names[#names + 1] = name end
  if #names == 0 then
    for name in pairs(state) do
      if type(name) == "string" then names[#names + 1] = name end
    end
    sort(names)
  end
  local function put (name, x)
    to[#to + 1] = name
    to[name] = x
  end
  for _, name in ipairs(names) do
    local x = state[name]
    local path, key = match(name, "^(.-)([^.]*)$")
    local part = match(key, "^in_proj_(.*)$")
    if part then
      for i, piece in ipairs(x:chunk(3, 1)) do
        put(path .. kinds[i] .. "." .. part, piece)
      end
    elseif torch_kinds[key] then
      put(path .. torch_kinds[key] .. ".weight", x)
    elseif sub(path, -9) == "out_proj." then
      put(sub(path, 1, -10) .. "output." .. key, x)
    else
      put(name, x)
    end
  end
  return to
end

-- }======================================================

return attention
