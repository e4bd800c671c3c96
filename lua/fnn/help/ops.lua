-- ops.lua - help on the operations of tensors, but for their making, shapes
-- and gradients.
return [[
# Arithmetic

Operands broadcast: sizes are compared from the last dimension on, and a
dimension of size 1, or a missing one, is repeated. A number on either side
never widens a float tensor. The wider dtype wins, float beats integer. `+ - *
/ // % ^` and unary `-` are add, sub, mul, div, floordiv, remainder, pow and
neg. The forms that end in `_` write into the tensor itself.

Tensor:add(y: Tensor|number) -> Tensor
  x + y.

Tensor:sub(y: Tensor|number) -> Tensor
  x - y.

Tensor:mul(y: Tensor|number) -> Tensor
  x * y, element by element.

Tensor:div(y: Tensor|number) -> Tensor
  x / y. The result is always float.

Tensor:floordiv(y: Tensor|number) -> Tensor
  The largest whole number not above x / y, as Lua's //. No gradient flows.

Tensor:remainder(y: Tensor|number) -> Tensor
  x - y * floor(x / y), with the sign of y, as Lua's %.

Tensor:fmod(y: Tensor|number) -> Tensor
  The remainder of the division rounded toward zero, with the sign of x, as
  math.fmod.

Tensor:pow(y: Tensor|number) -> Tensor
  x to the power y.

Tensor:minimum(y: Tensor|number) -> Tensor
  The smaller of x and y, element by element; NaN if either is. Where they are
  equal each gets half of the gradient.

Tensor:maximum(y: Tensor|number) -> Tensor
  The larger of x and y, element by element.

Tensor:logaddexp(y: Tensor|number) -> Tensor
  log(exp(x) + exp(y)), without overflow.

Tensor:atan2(y: Tensor|number) -> Tensor
  The angle of the point (y, x), in radians: atan(x / y) in its quadrant.

Tensor:neg() -> Tensor
  -x.

Tensor:abs() -> Tensor
  The magnitude of each element.

Tensor:sign() -> Tensor
  -1, 0 or 1.

Tensor:square() -> Tensor
  x * x.

Tensor:reciprocal() -> Tensor
  1 / x.

# Comparison and logic

Results are of dtype bool. Lua's own `<` and `==` cannot give a tensor: `<`
raises and names the method, `==` asks whether two values are one tensor.

Tensor:eq(y: Tensor|number) -> Tensor
  x == y, element by element.

Tensor:ne(y: Tensor|number) -> Tensor
  x ~= y, element by element.

Tensor:lt(y: Tensor|number) -> Tensor
  x < y, element by element.

Tensor:le(y: Tensor|number) -> Tensor
  x <= y, element by element.

Tensor:gt(y: Tensor|number) -> Tensor
  x > y, element by element.

Tensor:ge(y: Tensor|number) -> Tensor
  x >= y, element by element.

Tensor:logical_and(y: Tensor|number) -> Tensor
  True where both are not zero.

Tensor:logical_or(y: Tensor|number) -> Tensor
  True where one is not zero.

Tensor:logical_xor(y: Tensor|number) -> Tensor
  True where just one is not zero.

Tensor:logical_not() -> Tensor
  True where x is zero.

Tensor:isnan() -> Tensor
  True where x is not a number.

Tensor:isinf() -> Tensor
  True where x is infinite.

Tensor:isfinite() -> Tensor
  True where x is neither infinite nor NaN.

Tensor:bitand(y: Tensor|integer) -> Tensor
  The bits that both have. Integers and bools only, as all of these.

Tensor:bitor(y: Tensor|integer) -> Tensor
  The bits that one has.

Tensor:bitxor(y: Tensor|integer) -> Tensor
  The bits that just one has.

Tensor:bitnot() -> Tensor
  The bits that x has not.

Tensor:shl(y: Tensor|integer) -> Tensor
  The bits moved up by y places.

Tensor:shr(y: Tensor|integer) -> Tensor
  The bits moved down by y places.

# Functions of one number

Element by element. Integers become f32 first where the result is not whole.

Tensor:exp() -> Tensor
  e to the power x.

Tensor:exp2() -> Tensor
  2 to the power x.

Tensor:expm1() -> Tensor
  exp(x) - 1, exact near 0.

Tensor:log() -> Tensor
  The natural logarithm.

Tensor:log1p() -> Tensor
  log(1 + x), exact near 0.

Tensor:log2() -> Tensor
  The logarithm to the base 2.

Tensor:log10() -> Tensor
  The logarithm to the base 10.

Tensor:sqrt() -> Tensor
  The square root.

Tensor:rsqrt() -> Tensor
  1 / sqrt(x).

Tensor:sin() -> Tensor
  The sine of x radians.

Tensor:cos() -> Tensor
  The cosine of x radians.

Tensor:tan() -> Tensor
  The tangent of x radians.

Tensor:asin() -> Tensor
  The angle whose sine is x.

Tensor:acos() -> Tensor
  The angle whose cosine is x.

Tensor:atan() -> Tensor
  The angle whose tangent is x.

Tensor:sinh() -> Tensor
  The hyperbolic sine.

Tensor:cosh() -> Tensor
  The hyperbolic cosine.

Tensor:tanh() -> Tensor
  The hyperbolic tangent.

Tensor:erf() -> Tensor
  The error function.

Tensor:floor() -> Tensor
  The largest whole number not above x.

Tensor:ceil() -> Tensor
  The smallest whole number not below x.

Tensor:round() -> Tensor
  The nearest whole number, halves to the even one.

Tensor:trunc() -> Tensor
  The whole part of x.

Tensor:clamp(lo?: number, hi?: number) -> Tensor
  x moved into [lo, hi]; either end may be nil.

# Activations

Tensor:relu() -> Tensor
  x where it is positive, else 0.

Tensor:relu6() -> Tensor
  relu, but at most 6.

Tensor:leaky_relu(slope?: number) -> Tensor
  x where it is positive, else slope * x; slope is 0.01 by default.

Tensor:elu(alpha?: number) -> Tensor
  x where it is positive, else alpha * (exp(x) - 1); alpha is 1 by default.

Tensor:selu() -> Tensor
  elu with the scale and alpha of self-normalizing networks.

Tensor:gelu() -> Tensor
  x times the chance that a standard normal number is below x.

Tensor:gelu_tanh() -> Tensor
  gelu by its approximation with tanh.

Tensor:gelu_quick() -> Tensor
  x * sigmoid(1.702 x).

Tensor:silu() -> Tensor
  x * sigmoid(x), also called swish.

Tensor:mish() -> Tensor
  x * tanh(softplus(x)).

Tensor:sigmoid() -> Tensor
  1 / (1 + exp(-x)).

Tensor:log_sigmoid() -> Tensor
  log(sigmoid(x)), without overflow.

Tensor:hardsigmoid() -> Tensor
  x / 6 + 1 / 2, moved into [0, 1].

Tensor:hardswish() -> Tensor
  x * hardsigmoid(x).

Tensor:softplus(beta?: number, threshold?: number) -> Tensor
  log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold.

Tensor:softsign() -> Tensor
  x / (1 + |x|).

Tensor:softmax(dim?: integer) -> Tensor
  Exponentials along dim (-1), scaled so that they sum to 1.

Tensor:log_softmax(dim?: integer) -> Tensor
  The logarithm of softmax, without overflow.

Tensor:dropout(p?: number, options?: table) -> Tensor
  Zeroes each element with probability p (0.5) and scales the rest by
  1 / (1 - p).

Tensor:dropout1d(p?: number, options?: table) -> Tensor
  The same for whole channels of (n, channels, l).

Tensor:dropout2d(p?: number, options?: table) -> Tensor
  The same for whole channels of (n, channels, h, w).

# Convolutions

Of an input (n, channels, ...), or (channels, ...), with a weight (channels out,
channels in / groups, kernel size ...) and a bias (channels out), all as in
PyTorch: also as functions, fnn.conv2d(x, weight, bias, options). Sizes in
options are one number, or a list of one for each dimension. padding is that
too, or a list of { before, after }, or a word: "same" keeps the size (stride
1), "valid" adds none, and in 1-D "causal" keeps the size with all zeros ahead,
so that no place sees a later one. Results are channels-last in memory
(Tensor:channels_last), and the layers behind them keep that.

fnn.set_exact_convolution(on: boolean) -> boolean
  Whether convolutions are computed by their definition alone; gives what it
  was. By default (false) those of 3 by 3 with stride 1 in f32 may go by
  Winograd's transformed tiles, two to four times faster: their error is about
  4e-6 of the largest result where the definition's is 2e-7. Without gradients,
  or with frozen weights, a layer then keeps a transformed copy of its weight,
  of up to 4 times the size.

Tensor:conv1d(weight: Tensor, bias?: Tensor, options?: table) -> Tensor
  The convolution of x (n, channels, length).
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself

Tensor:conv2d(weight: Tensor, bias?: Tensor, options?: table) -> Tensor
  The convolution of x (n, channels, height, width).
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself

Tensor:conv3d(weight: Tensor, bias?: Tensor, options?: table) -> Tensor
  The convolution of x (n, channels, depth, height, width).
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros around the input
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself

Tensor:conv_transpose1d(weight: Tensor, bias?: Tensor, options?: table)
    -> Tensor
  The transposed convolution, as conv1d's gradient of its input: the weight
  is (channels in, channels out / groups, kernel size ...).
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros taken off the result
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  output_padding: integer|integer[] = 0    places more at the end

Tensor:conv_transpose2d(weight: Tensor, bias?: Tensor, options?: table)
    -> Tensor
  The transposed convolution, as conv2d's gradient of its input: the weight
  is (channels in, channels out / groups, kernel size ...).
  stride: integer|integer[] = 1
  padding: integer|string|table = 0    zeros taken off the result
  dilation: integer|integer[] = 1      from one tap to the next
  groups: integer = 1    parts of the channels, each convolved by itself
  output_padding: integer|integer[] = 0    places more at the end

# Reductions

Over the dimensions given, as numbers or in a table, or over all. With
`{ keepdim = true }` a reduced dimension stays with size 1. Sums keep their
precision whatever their length, and integers and bools sum to i64.

Tensor:sum(dims?: integer, options?: table) -> Tensor
  The sum. Of no elements it is 0.

Tensor:mean(dims?: integer, options?: table) -> Tensor
  The mean, of float tensors. Of no elements it is NaN.

Tensor:prod(dims?: integer, options?: table) -> Tensor
  The product. Of no elements it is 1.

Tensor:max(dims?: integer, options?: table) -> Tensor
  The largest element; NaN if there is one. Its gradient goes to the first of
  equal ones along one dimension, and in equal parts to all over several.

Tensor:min(dims?: integer, options?: table) -> Tensor
  The smallest element; as max.

Tensor:argmax(dim?: integer, options?: table) -> Tensor
  The id of the largest element along dim, or in the whole tensor as if it were
  flat; the first of equal ones, and a NaN before all.

Tensor:argmin(dim?: integer, options?: table) -> Tensor
  The id of the smallest element.

Tensor:any(dims?: integer, options?: table) -> Tensor
  True where one element is not zero.

Tensor:all(dims?: integer, options?: table) -> Tensor
  True where no element is zero.

Tensor:var(dims?: integer, options?: table) -> Tensor
  The variance.
  correction: number = 1    what is taken from the count it divides by
  keepdim: boolean = false    keeps reduced dimensions

Tensor:std(dims?: integer, options?: table) -> Tensor
  The root of the variance.
  correction: number = 1    what is taken from the count it divides by
  keepdim: boolean = false    keeps reduced dimensions

Tensor:norm(dims?: integer, options?: table) -> Tensor
  The p-norm: the p-th root of the sum of |x| to the power p.
  p: number = 2    math.huge for the largest magnitude, 0 for how many not 0
  keepdim: boolean = false    keeps reduced dimensions

Tensor:logsumexp(dims?: integer, options?: table) -> Tensor
  log(sum(exp(x))), without overflow.

Tensor:cumsum(dim: integer) -> Tensor
  The sums of the elements up to each, along dim.

Tensor:cross(y: Tensor, dim?: integer) -> Tensor
  The cross product of the vectors of three numbers along dim (-1). x and y
  broadcast; dim is one of the operand that has more.

# Choice

A mask is a bool tensor, as comparisons give.

Tensor:where(a: Tensor|number, b: Tensor|number) -> Tensor
  Of a mask: a where it is true, b where it is false.

Tensor:masked_fill(mask: Tensor, value: number) -> Tensor
  x, but value where the mask is true.

# Losses

Methods of the prediction. Each takes `reduction`: "mean" (by default), "sum"
or "none".

Tensor:cross_entropy(targets: Tensor|table, options?: table) -> Tensor
  Of logits (n, classes) or (n, classes, ...) against ids of classes, or
  against probabilities of the logits' shape. The mean is over the weights of
  the ids that count; when none counts it is 0.
  weight: Tensor    one number a class
  ignore_index: integer = -100    an id that does not count
  label_smoothing: number = 0    the share that is spread over all classes
  reduction: string = "mean"    or "sum" or "none"

Tensor:mse(targets: Tensor, options?: table) -> Tensor
  The squared differences of two tensors of one shape.
  reduction: string = "mean"    or "sum" or "none"
]]
