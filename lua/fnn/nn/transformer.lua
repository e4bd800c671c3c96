-- transformer.lua - layers and stacks of attention (Vaswani et al. 2017), over
-- MultiHeadAttention.  The parts are named as PyTorch's are.
--
-- norm_first: each part is x + f(norm(x)), and the stack ends with a norm;
-- else each is norm(x + f(x)).
--
-- A call's options go down as they are: a model that is written so passes its
-- own on, model(ids, { cache = cache }).

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"
local positions = load "nn/positions"
local attention = load "nn/attention"

local ipairs, pairs = ipairs, pairs
local tostring = tostring
local concat, sort = table.concat, table.sort
local raise, described = module.raise, module.described
local count = positions.count

-- {======================================================
-- Options
-- =======================================================

local layer_defaults = {
  ff = false, dropout = 0.1, activation = "relu", norm_first = true,
  norm = "layer", eps = 1e-5, bias = true, causal = false, kv_heads = false,
  head_dim = false, rotary = false, alibi = false, dtype = false,
  device = false, generator = false,
}

local stack_defaults = { final_norm = false }
for key, v in pairs(layer_defaults) do stack_defaults[key] = v end
local final_norm = "final_norm"  -- by norm_first, unless given

-- Methods of tensors; gated ones halve what they get.
local activations = {
  relu = "relu", gelu = "gelu", gelu_tanh = "gelu_tanh",
  gelu_quick = "gelu_quick", silu = "silu", tanh = "tanh", mish = "mish",
  relu6 = "relu6", elu = "elu", glu = "glu", swiglu = "swiglu",
  geglu = "geglu",
}
local gated = { glu = true, swiglu = true, geglu = true }

local norms = { layer = "LayerNorm", rms = "RMSNorm" }

local function choice (class, name, v, t)
  if t[v] then return v end
  local names = {}
  for key in pairs(t) do names[#names + 1] = key end
  sort(names)
  raise("%s: option '%s': expected '%s', got '%s'%s", class, name,
        concat(names, "', '"), tostring(v), module.suggestion(v, t))
end

local function like (o) return positions.only(o, "dtype", "device") end

local function make_norm (embed, o)
  local options = like(o)
  options.eps = o.eps
  return nn[norms[o.norm]](embed, options)
end

-- What layers of one stack share: a Rotary, an Alibi.
local function share (class, o, embed, heads)
  local size = attention.head_dim(class, embed, heads, o.head_dim)
  o.rotary = attention.rotary_of(class, o.rotary, size) or false
  o.alibi = attention.alibi_of(class, o.alibi, heads) or false
end

-- Options of a layer among those of what holds it.
local function of_layer (o, causal)
  local t = {}
  for key in pairs(layer_defaults) do t[key] = o[key] end
  if causal ~= nil then t.causal = causal end
  return t
end

-- }======================================================

-- {======================================================
-- Parts of a layer
-- =======================================================

local function make_attention (embed, heads, o, self_attention)
  local options = positions.only(o, "kv_heads", "head_dim", "dtype", "device",
                                 "generator")
  options.bias, options.dropout = o.bias, o.dropout
  if self_attention then
    options.causal = o.causal
    options.rotary, options.alibi = o.rotary, o.alibi
  end
  return nn.MultiHeadAttention(embed, heads, options)
end

local function make_feed_forward (self, embed, o)
  local ff = o.ff and count(self.__name, "option 'ff'", o.ff) or 4 * embed
  local options = positions.only(o, "dtype", "device", "generator")
  options.bias = o.bias and true or false
  self.activation = choice(self.__name, "activation", o.activation,
                           activations)
  self.linear1 = nn.Linear(embed, gated[o.activation] and 2 * ff or ff,
                           options)
  self.linear2 = nn.Linear(ff, embed, options)
end

local function keep_all (x) return x end

-- What a call drops out by: with a cache, nothing.
local function dropped (self, options)
  return options and options.cache and keep_all or self.dropout
end

local function feed_forward (self, x, drop)
  local h = self.linear1(x)
  h = h[activations[self.activation]](h)
  return self.linear2(drop(h))
end

-- x with what f makes of it added.
local function residual (self, norm, x, drop, f)
  if self.norm_first then return x + drop(f(norm(x))) end
  return norm(x + drop(f(x)))
end

-- The norms, and what is dropped out between the parts.
local function finish_layer (self, embed, o, n)
  choice(self.__name, "norm", o.norm, norms)
  for i = 1, n do self["norm" .. i] = make_norm(embed, o) end
  self.dropout = nn.Dropout(o.dropout)
  self.norm_first = o.norm_first and true or false
end

local function describe_layer (self)
  return self.self_attn.embed .. ", " .. self.self_attn.heads .. ", " ..
         (self.norm_first and "pre-norm" or "post-norm") .. ", " ..
         self.activation
end

-- }======================================================

-- {======================================================
-- Layers
-- =======================================================

local EncoderLayer = nn.module "TransformerEncoderLayer"

function EncoderLayer:init (embed, heads, options, ...)
  module.no_more("TransformerEncoderLayer", 3, ...)
  local o = module.options("TransformerEncoderLayer", options, layer_defaults)
  share("TransformerEncoderLayer", o, embed, heads)
  self.self_attn = make_attention(embed, heads, o, true)
  make_feed_forward(self, embed, o)
  finish_layer(self, embed, o, 2)
end

-- x (batch, length, embed); options as MultiHeadAttention's
function EncoderLayer:forward (x, options)
  if options and options.need_weights then
    raise("%s: option 'need_weights' is for a call of attention itself, the " ..
          "part self_attn: a layer gives one result", self.__name)
  end
  local drop = dropped(self, options)
  x = residual(self, self.norm1, x, drop, function (h)
    return self.self_attn(h, options or {})
  end)
  return residual(self, self.norm2, x, drop, function (h)
    return feed_forward(self, h, drop)
  end)
end

EncoderLayer.describe = describe_layer

nn.TransformerEncoderLayer = EncoderLayer

local DecoderLayer = nn.module "TransformerDecoderLayer"

local decoder_defaults = {
  mask = false, key_mask = false, memory_mask = false, cross_mask = false,
  cache = false, positions = false,
}

function DecoderLayer:init (embed, heads, options, ...)
  module.no_more("TransformerDecoderLayer", 3, ...)
  local o = module.options("TransformerDecoderLayer", options, layer_defaults)
  if not options or options.causal == nil then o.causal = true end
  share("TransformerDecoderLayer", o, embed, heads)
  self.self_attn = make_attention(embed, heads, o, true)
  self.multihead_attn = make_attention(embed, heads, o, false)
  make_feed_forward(self, embed, o)
  finish_layer(self, embed, o, 3)
end

-- x (batch, length, embed), memory (batch, n, embed)
function DecoderLayer:forward (x, memory, options)
  local o = module.options("TransformerDecoderLayer", options,
                           decoder_defaults)
  if not positions.is_tensor(memory) then
    raise("TransformerDecoderLayer: expected a memory (batch, n, %d), got %s",
          self.multihead_attn.embed, described(memory))
  end
  local drop = dropped(self, o)
  x = residual(self, self.norm1, x, drop, function (h)
    return self.self_attn(h, positions.only(o, "mask", "key_mask", "cache",
                                            "positions"))
  end)
  x = residual(self, self.norm2, x, drop, function (h)
    return self.multihead_attn(h, memory, {
      mask = o.cross_mask, key_mask = o.memory_mask, cache = o.cache })
  end)
  return residual(self, self.norm3, x, drop, function (h)
    return feed_forward(self, h, drop)
  end)
end

DecoderLayer.describe = describe_layer

nn.TransformerDecoderLayer = DecoderLayer

-- }======================================================

-- {======================================================
-- Stacks
-- =======================================================

local function init_stack (self, class, embed, heads, layers, options, causal)
  local name = self.__name
  local o = module.options(name, options, stack_defaults)
  if options and options.causal ~= nil then causal = options.causal end
  share(name, o, embed, heads)
  local list = {}
  for i = 1, count(name, "layers", layers) do
    list[i] = class(embed, heads, of_layer(o, causal))
  end
  self.layers = list
  local ends = o.norm_first
  if options and options[final_norm] ~= nil then ends = o[final_norm] end
  if ends then self.norm = make_norm(embed, o) end
end

local function describe_stack (self)
  return #self.layers .. (#self.layers == 1 and " layer" or " layers")
end

local Encoder = nn.module "TransformerEncoder"

function Encoder:init (embed, heads, layers, options, ...)
  module.no_more("TransformerEncoder", 4, ...)
  init_stack(self, EncoderLayer, embed, heads, layers, options, false)
end

function Encoder:forward (x, options)
  for _, layer in ipairs(self.layers) do x = layer(x, options) end
  return self.norm and self.norm(x) or x
end

Encoder.describe = describe_stack

nn.TransformerEncoder = Encoder

local Decoder = nn.module "TransformerDecoder"

function Decoder:init (embed, heads, layers, options, ...)
  module.no_more("TransformerDecoder", 4, ...)
  init_stack(self, DecoderLayer, embed, heads, layers, options, true)
end

function Decoder:forward (x, memory, options)
  for _, layer in ipairs(self.layers) do x = layer(x, memory, options) end
  return self.norm and self.norm(x) or x
end

Decoder.describe = describe_stack

nn.TransformerDecoder = Decoder

-- }======================================================

-- {======================================================
-- Encoder and decoder
-- =======================================================

local Transformer = nn.module "Transformer"

local transformer_defaults = { encoder_layers = 6, decoder_layers = 6 }
for key, v in pairs(layer_defaults) do transformer_defaults[key] = v end
transformer_defaults.causal = nil

function Transformer:init (embed, heads, options, ...)
  module.no_more("Transformer", 3, ...)
  local o = module.options("Transformer", options, transformer_defaults)
  local encoder, decoder = of_layer(o, false), of_layer(o, true)
  encoder.final_norm, decoder.final_norm = true, true  -- as PyTorch's
  self.encoder = nn.TransformerEncoder(embed, heads, o.encoder_layers, encoder)
  self.decoder = nn.TransformerDecoder(embed, heads, o.decoder_layers, decoder)
end

local transformer_call = {
  source_mask = false, source_scores = false, mask = false, key_mask = false,
  cross_mask = false, cache = false, positions = false,
}

local function call_options (options)
  return module.options("Transformer", options, transformer_call)
end

-- The memory (batch, n, embed) that the decoder reads.
function Transformer:encode (source, options)
  local o = call_options(options)
  return self.encoder(source, { mask = o.source_scores,
                                key_mask = o.source_mask })
end

-- What the decoder makes of a target (batch, length, embed).
function Transformer:decode (target, memory, options)
  local o = call_options(options)
  return self.decoder(target, memory, {
    mask = o.mask, key_mask = o.key_mask, memory_mask = o.source_mask,
    cross_mask = o.cross_mask, cache = o.cache, positions = o.positions })
end

function Transformer:forward (source, target, options)
  return self:decode(target, self:encode(source, options), options)
end

nn.Transformer = Transformer

-- }======================================================

return true
