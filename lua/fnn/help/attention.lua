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
]]
