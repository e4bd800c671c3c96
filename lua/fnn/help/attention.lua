-- attention.lua - help on attention.
return [[
# Attention

Queries look for keys that they agree with, and take the mean of their values,
weighted by the softmax of how much they agree.

Tensor:scaled_dot_product_attention(key: Tensor, value: Tensor, options?: table)
    -> Tensor
  softmax(scale query key' + mask) value, for a query (..., heads, m, d), key
  (..., groups, n, d) and value (..., groups, n, e); gives (..., heads, m, e).
  Each group of keys and values serves heads / groups heads. The scores are
  never stored, so memory is linear in m and n. A query that may attend nothing
  gives zeros and no gradient.
  mask: Tensor              broadcasts to (batch, heads, m, n): bool, true where
                            something may be attended, or floats to add
  causal: boolean = false   queries are the last m of n places, and see no
                            later ones
  scale: number             1 / sqrt(d)
  dropout: number = 0       of the weights
  alibi: Tensor             (heads): a score falls by its head's slope times the
                            distance
  generator: Generator      of the dropout

Tensor:rotary(cos: Tensor, sin: Tensor, options?: table) -> Tensor
  Rotary positions of (batch, heads, length, size): of the first r numbers of
  each vector pair i turns by the angle whose cosine and sine stand in row p,
  column i of the tables (places, r / 2), p being the vector's place. The rest
  passes. nn.Rotary makes the tables.
  positions: integer|Tensor = 0   the first place, from 0; or all of them,
                                  integers (length) or (batch, length)
  interleaved: boolean = false    pairs are numbers 2i and 2i + 1, not i and
                                  i + r / 2

nn.MultiHeadAttention(embed: integer, heads: integer, options?: table) -> Module
  Attention of several heads (Vaswani et al. 2017) between four Linear layers:
  query, key, value, output. Called as m(x, options), x (batch, length, embed)
  attends itself; as m(x, memory, options), a memory (batch, n, kdim). Options
  of a call: mask, which broadcasts to (batch, heads, length, n), true where
  something may be attended, or floats to add; key_mask (batch, n), true for
  keys to attend; causal; cache; positions; value, where values are not made
  of the memory; need_weights, which gives the weights as a second result, not
  dropped out, (batch, length, n), the mean over heads, or with
  average_attn_weights = false (batch, heads, length, n). They take memory and
  time by the square of the length.
  kv_heads: integer           heads of keys and values, a divisor of heads
  head_dim: integer           embed / heads
  bias: boolean = true        of the four layers
  dropout: number = 0         of the weights, in training
  causal: boolean = false     a place attends itself and those before it
  rotary: boolean|table|Module    true, options of nn.Rotary, or one to share
  alibi: boolean|Module       true, or an nn.Alibi
  kdim: integer = embed       of the memory that keys are made of
  vdim: integer = kdim        and values

nn.split_attention(state: table) -> table
  A state by PyTorch's names with those of nn.MultiHeadAttention:
  in_proj_weight and in_proj_bias, which hold three, are split, and out_proj is
  output. All other names stay.

# Positions

Places count from 0. A call tells them by options: positions, an integer (how
many are before the first) or integers (length) or (batch, length); or cache;
or key_mask (batch, length), where only what it keeps is counted.

nn.Rotary(head_dim: integer, options?: table) -> Module
  Turns heads (batch, heads, length, head_dim) by their places (Su et al.
  2021): m(x, options). Its tables grow as they are asked for; largest values
  among positions that are a tensor are read from it.
  base: number = 10000
  dims: integer = head_dim        how many numbers of a head turn
  fraction: number                the same as a share of them
  interleaved: boolean = false    pairs are neighbours, not halves
  length: integer                 places to make tables for at once
  scaling: table                  { type = "linear", factor = }, or { type =
                                  "llama3", factor =, low_freq_factor =,
                                  high_freq_factor =, original_length = }

nn.SinusoidalPositions(dim: integer, options?: table) -> Module
  Adds sines (at even numbers) and cosines of the place to (batch, length,
  dim): m(x, options).
  base: number = 10000
  length: integer    places to make the table for at once

nn.LearnedPositions(length: integer, dim: integer, options?: table) -> Module
  Adds a weight of its own to each of the places 0 .. length-1: m(x, options).
  std: number = 0.02    of the weights at first

nn.Alibi(heads: integer) -> Module
  The slopes (heads) by which scores fall with the distance (Press et al.
  2022), for the option alibi of attention: m(x), on x's device.

# Transformers

Parts are named as PyTorch's. A stack hands the options of a call to its layers
as they are; so should a model of a script: then model(ids, { cache = cache })
reaches them.

nn.TransformerEncoderLayer(embed: integer, heads: integer, options?: table)
    -> Module
  Attention, then two Linear layers, each with a norm and added to its input.
  Called as m(x, options), with the options of nn.MultiHeadAttention's call.
  ff: integer                    what the two Linear layers have between them:
                                 4 embed
  dropout: number = 0.1          of attention's weights and each part's result
  activation: string = "relu"    or "gelu", "gelu_tanh", "silu", ..., and gates:
                                 "swiglu", "geglu", "glu"
  norm_first: boolean = true     x + f(norm(x)); false: norm(x + f(x))
  norm: string = "layer"         or "rms"
  eps: number = 1e-5             of the norms
  causal: boolean = false        and kv_heads, head_dim, bias, rotary, alibi:
                                 as in nn.MultiHeadAttention

nn.TransformerEncoder(embed: integer, heads: integer, layers: integer,
    options?: table) -> Module
  Layers one after the other, with a norm at the end where norms come first.
  The options are those of a layer; one Rotary serves all. causal = true makes
  it the stack of a language model.
  final_norm: boolean = norm_first

nn.TransformerDecoderLayer(embed: integer, heads: integer, options?: table)
    -> Module
  Causal attention, attention of a memory, two Linear layers. Called as
  m(x, memory, options): mask, key_mask, cache and positions are of the first;
  memory_mask (batch, n), true for what may be read of the memory, and
  cross_mask, which broadcasts to (batch, heads, length, n), of the second.
  causal: boolean = true    the others as in nn.TransformerEncoderLayer

nn.TransformerDecoder(embed: integer, heads: integer, layers: integer,
    options?: table) -> Module
  Decoder layers one after the other; as nn.TransformerEncoder.

nn.Transformer(embed: integer, heads: integer, options?: table) -> Module
  An encoder and a decoder, each with a norm at its end. Called as m(source,
  target, options), of sizes (batch, n, embed) and (batch, length, embed), it
  gives what the decoder makes of the target. Options of a call: source_mask
  (batch, n), true for what is to be read of the source; source_scores, a mask
  of the encoder's; mask, key_mask, cross_mask, cache, positions of the decoder.
  encoder_layers: integer = 6
  decoder_layers: integer = 6    the others as in nn.TransformerEncoderLayer

Transformer:encode(source: Tensor, options?: table) -> Tensor
  The memory that its decoder reads.

Transformer:decode(target: Tensor, memory: Tensor, options?: table) -> Tensor
  What its decoder makes of a target.

# Caches

nn.KvCache(options: table) -> table
  Keys and values of the tokens read so far, for causal attention in
  fnn.no_grad: model(ids, { cache = cache }) reads ids as those that follow.
  Buffers are made when a layer first comes; a later pass copies nothing of the
  past. A key_mask (batch, length) of a call is that of its new tokens, and is
  kept; rotary, sinusoidal and learned positions then count what each row keeps,
  so that prompts may be padded on either side (ALiBi's distances count all
  places: pad on the left). A layer comes once in a pass: one that is used twice
  cannot tell the second time from the next tokens. #cache is how many tokens it
  holds.
  length: integer    the most tokens
  layers: integer    the most attention layers; as many as come
  dtype: string      of the buffers: that of the keys

KvCache:clear() -> table
  Forgets all tokens.

KvCache:truncate(n: integer) -> table
  Keeps the first n tokens.

KvCache:is_empty() -> boolean
  Whether it holds no token.

KvCache:positions(length: integer, key_mask?: Tensor, layer?: any)
    -> integer|Tensor, integer
  The places of new tokens, before all layers or in one, and how many rows a
  table needs for them.

KvCache:append(layer: any, k: Tensor, v: Tensor, key_mask?: Tensor)
    -> Tensor, Tensor, Tensor|nil
  For a layer of a script: adds keys and values (batch, heads, new, size) and
  returns views of all so far, and their mask, if there is one.

KvCache:memory(layer: any, memory: Tensor, make: function) -> Tensor, Tensor
  Keys and values that make() gives for a memory: made once for each.

# Vision transformers

nn.VisionTransformer(options: table) -> Module
  A classifier of images (n, channels, h, w) (Dosovitskiy et al. 2021): a Linear
  layer over the channels p p numbers of each patch, in the order (channel, row,
  column), rotary positions in reading order, an encoder, the mean over the
  patches and a Linear layer: logits (n, classes).
  image_size: integer|integer[]    { height, width }, multiples of the patch's
  patch: integer|integer[]
  channels: integer = 3
  classes: integer
  dim: integer        of a patch's vector
  depth: integer      layers
  heads: integer
  ff: integer         4 dim
  dropout: number = 0
  activation: string = "gelu"
  norm_first: boolean = true

VisionTransformer:patches(x: Tensor) -> Tensor
  Images as (n, patches, channels p p).

VisionTransformer:fit(data: any, options?: table) -> table[]
  fnn.fit with cross_entropy.

VisionTransformer:predict(x: Tensor) -> Tensor|integer
  The class of each image, as an id.

VisionTransformer:accuracy(data: any) -> number
  The share that it gets right of a dataset, a loader or { images, ids }.

VisionTransformer:save_json(path: string) -> Module
  Writes its options and weights.

VisionTransformer:load_json(path: string) -> Module
  Reads the weights of one made with the same options.

nn.load_vision_transformer(path: string) -> Module
  The model in a file of save_json.
]]
