-- reduce.lua - help on reductions.
return [[
# Reductions

Over one dimension, several, or all: x:sum(), x:sum(1), x:sum(1, 3),
x:sum({ 1, 3 }, { keepdim = true }). A reduced dimension is left out, or kept
with size 1.

Tensor:sum(...: integer|table) -> Tensor
  The sum. Its precision does not fall with length.
  keepdim: boolean = false    keeps reduced dimensions with size 1

Tensor:mean(...: integer|table) -> Tensor
  The mean.

Tensor:prod(...: integer|table) -> Tensor
  The product.

Tensor:max(...: integer|table) -> Tensor
  The largest element; NaN if there is one.

Tensor:min(...: integer|table) -> Tensor
  The smallest element; NaN if there is one.

Tensor:argmax(...: integer|table) -> Tensor
  The id of the largest element along a dimension, or among all: from 0.

Tensor:argmin(...: integer|table) -> Tensor
  The id of the smallest element.

Tensor:any(...: integer|table) -> Tensor
  Whether any element is not zero.

Tensor:all(...: integer|table) -> Tensor
  Whether no element is zero.

Tensor:var(...: integer|table) -> Tensor
  The variance.
  correction: number = 1    what is taken off the count; 0 for a population

Tensor:std(...: integer|table) -> Tensor
  The standard deviation, with the options of var.

Tensor:norm(...: integer|table) -> Tensor
  The p-norm: the p-th root of the sum of p-th powers of the magnitudes.
  p: number = 2    any, also math.huge

Tensor:logsumexp(...: integer|table) -> Tensor
  The logarithm of the sum of exponentials, without overflow.

Tensor:cumsum(dim: integer) -> Tensor
  The sums of all places along dim up to each.
]]
