---@meta fnn
-- Written by scripts/reference from lua/fnn/help/; change it there.

---@class fnn
local fnn = {}

---A tensor of the numbers in nested tables. With sizes after it, a flat table
---fills that shape. Booleans make a bool tensor.
---dtype: string = "f32"    f32 f64 f16 bf16 i64 i32 u8 bool
---device: string = "cpu"   where it lives
---@param values number|boolean|table
---@param ... integer|table
---@return fnn.Tensor
function fnn.tensor(values, ...) end

---Zeros.
---@param ... integer|table
---@return fnn.Tensor
function fnn.zeros(...) end

---Ones.
---@param ... integer|table
---@return fnn.Tensor
function fnn.ones(...) end

---The same value everywhere.
---@param shape integer[]
---@param value number|boolean
---@param options? table
---@return fnn.Tensor
function fnn.full(shape, value, options) end

---Zeros of x's shape, dtype and device.
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.zeros_like(x, options) end

---Ones of x's shape, dtype and device.
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.ones_like(x, options) end

---first, first + step, ... up to but without last. fnn.arange(n) is 0 .. n-1.
---@param first number
---@param last? number
---@param step? number
---@param options? table
---@return fnn.Tensor
function fnn.arange(first, last, step, options) end

---n numbers from first to last, both included, at equal distances.
---@param first number
---@param last number
---@param n integer
---@param options? table
---@return fnn.Tensor
function fnn.linspace(first, last, n, options) end

---A matrix with ones on its diagonal.
---@param n integer
---@param m? integer
---@param options? table
---@return fnn.Tensor
function fnn.eye(n, m, options) end

---Whether value is a tensor or a Param.
---@param value any
---@return boolean
function fnn.is_tensor(value) end

---The dtype of new float tensors.
---@param dtype string
function fnn.set_default_dtype(dtype) end

---Where new tensors live.
---@param device string
function fnn.set_default_device(device) end

---Seconds since some moment: the difference of two is the time that passed,
---which os.clock, adding up the work of all threads, does not tell.
---@return number
function fnn.clock() end

---@class fnn.Tensor
---@operator add(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator sub(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mul(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator div(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mod(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator pow(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator idiv(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator unm: fnn.Tensor
---@operator len: integer
local Tensor = {}

---The value of a tensor of one element.
---@return number|boolean
function Tensor:item() end

---The values as nested tables.
---@return table
function Tensor:totable() end

---The part with these ids, which count from 0: x:at(0) is x[1].
---@param ... integer
---@return fnn.Tensor|number
function Tensor:at(...) end

---The sizes of all dimensions.
---@return integer[]
function Tensor:shape() end

---The size of a dimension, or all sizes.
---@param dim? integer
---@return integer|integer[]
function Tensor:size(dim) end

---How many elements apart neighbours along each dimension are in memory.
---@return integer[]
function Tensor:stride() end

---The number of dimensions.
---@return integer
function Tensor:ndim() end

---The same as ndim.
---@return integer
function Tensor:dim() end

---The number of elements.
---@return integer
function Tensor:numel() end

---The element type: f32 f64 f16 bf16 i64 i32 u8 or bool.
---@return string
function Tensor:dtype() end

---Where the tensor lives: "cpu", "cuda:0".
---@return string
function Tensor:device() end

---Whether the elements lie in memory in row-major order without gaps.
---@return boolean
function Tensor:is_contiguous() end

---How the elements lie in memory: "row_major", "channels_last" (see there) or
---"strided", a view with gaps or another order.
---@return string
function Tensor:order() end

---Gives the memory back now. Any later use of this handle raises; other tensors
---over the same memory keep it. Every object of the library has it. Called in a
---finalizer (__gc) it leaves the object to the collector.
function Tensor:release() end

---Another dtype or device, or both: x:to "f64", x:to{ dtype = "f16" }. x itself
---when there is nothing to do.
---@param what string|table
---@param more? string
---@return fnn.Tensor
function Tensor:to(what, more) end

---x itself if it is contiguous, else a copy that is.
---@return fnn.Tensor
function Tensor:contiguous() end

---The same (n, channels, ...) tensor laid out in memory as (n, ..., channels).
---Convolutions give such tensors, layers behind them keep the order, and
---contiguous() ends it; values and shape do not change.
---@return fnn.Tensor
function Tensor:channels_last() end

---A copy with memory of its own. The gradient flows through it.
---@return fnn.Tensor
function Tensor:clone() end

---Writes y, broadcast, into x.
---@param y fnn.Tensor
---@return fnn.Tensor
function Tensor:copy_(y) end

---x where condition is true, else y; all broadcast.
---@param condition fnn.Tensor
---@param x fnn.Tensor|number
---@param y fnn.Tensor|number
---@return fnn.Tensor
function fnn.where(condition, x, y) end

---value where mask is true, else x.
---@param mask fnn.Tensor
---@param value number
---@return fnn.Tensor
function Tensor:masked_fill(mask, value) end

---Writes one value everywhere.
---@param value number
---@return fnn.Tensor
function Tensor:fill_(value) end

---Writes zeros.
---@return fnn.Tensor
function Tensor:zero_() end

---The same elements in other sizes. One size may be -1: what is left.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:reshape(...) end

---The same as reshape.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:view(...) end

---The dimensions from first to last, or all, as one.
---@param first? integer
---@param last? integer
---@return fnn.Tensor
function Tensor:flatten(first, last) end

---Without a dimension of size 1, or without all such.
---@param dim? integer
---@return fnn.Tensor
function Tensor:squeeze(dim) end

---With a new dimension of size 1 at that place.
---@param dim integer
---@return fnn.Tensor
function Tensor:unsqueeze(dim) end

---With dimensions a and b exchanged. A transposed operand of a product costs no
---copy.
---@param a integer
---@param b integer
---@return fnn.Tensor
function Tensor:transpose(a, b) end

---A matrix transposed.
---@return fnn.Tensor
function Tensor:t() end

---With the dimensions in that order.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:permute(...) end

---With dimensions of size 1 repeated to these sizes; -1 keeps a size.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:expand(...) end

---Expanded to the shape of y.
---@param y fnn.Tensor
---@return fnn.Tensor
function Tensor:expand_as(y) end

---length places along dim from start on.
---@param dim integer
---@param start integer
---@param length integer
---@return fnn.Tensor
function Tensor:narrow(dim, start, length) end

---The places along dim from first to last, both included, as string.sub has it.
---@param dim integer
---@param first? integer
---@param last? integer
---@param step? integer
---@return fnn.Tensor
function Tensor:slice(dim, first, last, step) end

---One place along dim, without that dimension.
---@param dim integer
---@param place integer
---@return fnn.Tensor
function Tensor:select(dim, place) end

---The diagonal of dimensions a and b (1 and 2), offset places above the main
---one, as a new last dimension.
---@param offset? integer
---@param a? integer
---@param b? integer
---@return fnn.Tensor
function Tensor:diagonal(offset, a, b) end

---Parts of that size along dim (1), the last one shorter; or parts of the sizes
---in a table.
---@param size integer|integer[]
---@param dim? integer
---@return fnn.Tensor[]
function Tensor:split(size, dim) end

---n parts of equal size along dim, the last one shorter.
---@param n integer
---@param dim? integer
---@return fnn.Tensor[]
function Tensor:chunk(n, dim) end

---A tensor for each place along dim, without that dimension.
---@param dim? integer
---@return fnn.Tensor[]
function Tensor:unbind(dim) end

---The last two dimensions with zeros above a diagonal; 0 is the main one.
---@param diagonal? integer
---@return fnn.Tensor
function Tensor:tril(diagonal) end

---The last two dimensions with zeros below a diagonal.
---@param diagonal? integer
---@return fnn.Tensor
function Tensor:triu(diagonal) end

---Tensors joined along dim (1); the other sizes are equal.
---@param tensors fnn.Tensor[]
---@param dim? integer
---@return fnn.Tensor
function fnn.cat(tensors, dim) end

---Tensors of one shape, joined along a new dimension.
---@param tensors fnn.Tensor[]
---@param dim? integer
---@return fnn.Tensor
function fnn.stack(tensors, dim) end

---The tensor repeated that often along each dimension.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:tile(...) end

---The same as tile. `repeat` is a word of Lua, so call it as x["repeat"](x, 2).
---@param ... integer|table
---@return fnn.Tensor
Tensor["repeat"] = function(self, ...) end

---With the order reversed along these dimensions, or all.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:flip(...) end

---Moved by shift places along dim (1); what leaves at the end comes in at the
---beginning.
---@param shift integer
---@param dim? integer
---@return fnn.Tensor
function Tensor:roll(shift, dim) end

---The places along dim that ids name, in their order. The dimensions of ids
---take the place of dim: ids (b, t) of a table (n, c) give (b, t, c).
---@param dim integer
---@param ids fnn.Tensor|integer[]
---@return fnn.Tensor
function Tensor:index_select(dim, ids) end

---For each element of ids the element of x with that id along dim, at the same
---place in the others.
---@param dim integer
---@param ids fnn.Tensor
---@return fnn.Tensor
function Tensor:gather(dim, ids) end

---x with each element of source added where ids says along dim.
---@param dim integer
---@param ids fnn.Tensor
---@param source fnn.Tensor
---@return fnn.Tensor
function Tensor:scatter_add(dim, ids, source) end

---The same, into x itself.
---@param dim integer
---@param ids fnn.Tensor
---@param source fnn.Tensor
---@return fnn.Tensor
function Tensor:scatter_add_(dim, ids, source) end

---The elements where mask is true, as a vector. The same as x[mask].
---@param mask fnn.Tensor
---@return fnn.Tensor
function Tensor:masked_select(mask) end

---The ids of the elements that are not zero, a row each.
---@return fnn.Tensor
function Tensor:nonzero() end

---For each id a vector of zeros with a one at it.
---@param classes? integer
---@return fnn.Tensor
function Tensor:one_hot(classes) end

---The values in order along dim (the last), and their ids. Equal ones keep
---theirs; NaN counts as the largest.
---descending: boolean = false    largest first
---@param dim? integer
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:sort(dim, options) end

---The ids of sort alone.
---@param dim? integer
---@param options? table
---@return fnn.Tensor
function Tensor:argsort(dim, options) end

---The k largest values along dim (the last), largest first, and their ids.
---largest: boolean = true    false for the smallest
---@param k integer
---@param dim? integer
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:topk(k, dim, options) end

---The matrix product of (..., m, k) and (..., k, n); leading dimensions
---broadcast, and vectors count as rows or columns.
---@param y fnn.Tensor
---@return fnn.Tensor
function Tensor:matmul(y) end

---x times weight transposed, plus bias: (..., in) and (out, in) give (..., out).
---act names a function of one number ("relu") that the result goes through.
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param act? string
---@return fnn.Tensor
function Tensor:linear(weight, bias, act) end

---A sum of products written with letters: fnn.einsum("ij,jk->ik", x, y).
---@param spec string
---@param ... fnn.Tensor|table
---@return fnn.Tensor
function fnn.einsum(spec, ...) end

---x + y.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:add(y) end

---x - y.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:sub(y) end

---x * y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:mul(y) end

---x / y. The result is always float.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:div(y) end

---The largest whole number not above x / y, as Lua's //. No gradient flows.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:floordiv(y) end

---x - y * floor(x / y), with the sign of y, as Lua's %.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:remainder(y) end

---The remainder of the division rounded toward zero, with the sign of x, as
---math.fmod.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:fmod(y) end

---x to the power y.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:pow(y) end

---The smaller of x and y, element by element; NaN if either is. Where they are
---equal each gets half of the gradient.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:minimum(y) end

---The larger of x and y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:maximum(y) end

---The angle of the point (y, x), in radians: atan(x / y) in its quadrant.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:atan2(y) end

----x.
---@return fnn.Tensor
function Tensor:neg() end

---The magnitude of each element.
---@return fnn.Tensor
function Tensor:abs() end

----1, 0 or 1.
---@return fnn.Tensor
function Tensor:sign() end

---x * x.
---@return fnn.Tensor
function Tensor:square() end

---1 / x.
---@return fnn.Tensor
function Tensor:reciprocal() end

---x == y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:eq(y) end

---x ~= y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:ne(y) end

---x < y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:lt(y) end

---x <= y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:le(y) end

---x > y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:gt(y) end

---x >= y, element by element.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:ge(y) end

---True where both are not zero.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:logical_and(y) end

---True where one is not zero.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:logical_or(y) end

---True where just one is not zero.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:logical_xor(y) end

---True where x is zero.
---@return fnn.Tensor
function Tensor:logical_not() end

---True where x is not a number.
---@return fnn.Tensor
function Tensor:isnan() end

---True where x is infinite.
---@return fnn.Tensor
function Tensor:isinf() end

---True where x is neither infinite nor NaN.
---@return fnn.Tensor
function Tensor:isfinite() end

---The bits that both have. Integers and bools only, as all of these.
---@param y fnn.Tensor|integer
---@return fnn.Tensor
function Tensor:bitand(y) end

---The bits that one has.
---@param y fnn.Tensor|integer
---@return fnn.Tensor
function Tensor:bitor(y) end

---The bits that just one has.
---@param y fnn.Tensor|integer
---@return fnn.Tensor
function Tensor:bitxor(y) end

---The bits that x has not.
---@return fnn.Tensor
function Tensor:bitnot() end

---The bits moved up by y places.
---@param y fnn.Tensor|integer
---@return fnn.Tensor
function Tensor:shl(y) end

---The bits moved down by y places.
---@param y fnn.Tensor|integer
---@return fnn.Tensor
function Tensor:shr(y) end

---e to the power x.
---@return fnn.Tensor
function Tensor:exp() end

---2 to the power x.
---@return fnn.Tensor
function Tensor:exp2() end

---exp(x) - 1, exact near 0.
---@return fnn.Tensor
function Tensor:expm1() end

---The natural logarithm.
---@return fnn.Tensor
function Tensor:log() end

---log(1 + x), exact near 0.
---@return fnn.Tensor
function Tensor:log1p() end

---The logarithm to the base 2.
---@return fnn.Tensor
function Tensor:log2() end

---The logarithm to the base 10.
---@return fnn.Tensor
function Tensor:log10() end

---The square root.
---@return fnn.Tensor
function Tensor:sqrt() end

---1 / sqrt(x).
---@return fnn.Tensor
function Tensor:rsqrt() end

---The sine of x radians.
---@return fnn.Tensor
function Tensor:sin() end

---The cosine of x radians.
---@return fnn.Tensor
function Tensor:cos() end

---The tangent of x radians.
---@return fnn.Tensor
function Tensor:tan() end

---The angle whose sine is x.
---@return fnn.Tensor
function Tensor:asin() end

---The angle whose cosine is x.
---@return fnn.Tensor
function Tensor:acos() end

---The angle whose tangent is x.
---@return fnn.Tensor
function Tensor:atan() end

---The hyperbolic sine.
---@return fnn.Tensor
function Tensor:sinh() end

---The hyperbolic cosine.
---@return fnn.Tensor
function Tensor:cosh() end

---The hyperbolic tangent.
---@return fnn.Tensor
function Tensor:tanh() end

---The error function.
---@return fnn.Tensor
function Tensor:erf() end

---The largest whole number not above x.
---@return fnn.Tensor
function Tensor:floor() end

---The smallest whole number not below x.
---@return fnn.Tensor
function Tensor:ceil() end

---The nearest whole number, halves to the even one.
---@return fnn.Tensor
function Tensor:round() end

---The whole part of x.
---@return fnn.Tensor
function Tensor:trunc() end

---x moved into [lo, hi]; either end may be nil.
---@param lo? number
---@param hi? number
---@return fnn.Tensor
function Tensor:clamp(lo, hi) end

---x where it is positive, else 0.
---@return fnn.Tensor
function Tensor:relu() end

---relu, but at most 6.
---@return fnn.Tensor
function Tensor:relu6() end

---x where it is positive, else slope * x; slope is 0.01 by default.
---@param slope? number
---@return fnn.Tensor
function Tensor:leaky_relu(slope) end

---x where it is positive, else alpha * (exp(x) - 1); alpha is 1 by default.
---@param alpha? number
---@return fnn.Tensor
function Tensor:elu(alpha) end

---elu with the scale and alpha of self-normalizing networks.
---@return fnn.Tensor
function Tensor:selu() end

---x times the chance that a standard normal number is below x.
---@return fnn.Tensor
function Tensor:gelu() end

---gelu by its approximation with tanh.
---@return fnn.Tensor
function Tensor:gelu_tanh() end

---x * sigmoid(1.702 x).
---@return fnn.Tensor
function Tensor:gelu_quick() end

---x * sigmoid(x), also called swish.
---@return fnn.Tensor
function Tensor:silu() end

---x * tanh(softplus(x)).
---@return fnn.Tensor
function Tensor:mish() end

---1 / (1 + exp(-x)).
---@return fnn.Tensor
function Tensor:sigmoid() end

---log(sigmoid(x)), without overflow.
---@return fnn.Tensor
function Tensor:log_sigmoid() end

---x / 6 + 1 / 2, moved into [0, 1].
---@return fnn.Tensor
function Tensor:hardsigmoid() end

---x * hardsigmoid(x).
---@return fnn.Tensor
function Tensor:hardswish() end

---log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold.
---@param beta? number
---@param threshold? number
---@return fnn.Tensor
function Tensor:softplus(beta, threshold) end

---x / (1 + |x|).
---@return fnn.Tensor
function Tensor:softsign() end

---Exponentials along dim (-1), scaled so that they sum to 1.
---@param dim? integer
---@return fnn.Tensor
function Tensor:softmax(dim) end

---The logarithm of softmax, without overflow.
---@param dim? integer
---@return fnn.Tensor
function Tensor:log_softmax(dim) end

---Shifts and scales each part of the last n dimensions (1) to mean 0 and
---variance 1, then times weight plus bias. eps (1e-5) is added to the variance.
---@param n? integer
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:layer_norm(n, weight, bias, eps) end

---Zeroes each element with probability p (0.5) and scales the rest by
---1 / (1 - p).
---@param p? number
---@param options? table
---@return fnn.Tensor
function Tensor:dropout(p, options) end

---Whether convolutions are computed by their definition alone; gives what it
---was. By default (false) those of 3 by 3 with stride 1 in f32 may go by
---Winograd's transformed tiles, two to four times faster: their error is about
---4e-6 of the largest result where the definition's is 2e-7. Without gradients,
---or with frozen weights, a layer then keeps a transformed copy of its weight,
---of up to 4 times the size.
---@param on boolean
---@return boolean
function fnn.set_exact_convolution(on) end

---The convolution of x (n, channels, length).
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:conv1d(weight, bias, options) end

---The convolution of x (n, channels, height, width).
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:conv2d(weight, bias, options) end

---The convolution of x (n, channels, depth, height, width).
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:conv3d(weight, bias, options) end

---The transposed convolution, as conv1d's gradient of its input: the weight
---is (channels in, channels out / groups, kernel size ...).
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros taken off the result
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---output_padding: integer|integer[] = 0    places more at the end
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:conv_transpose1d(weight, bias, options) end

---The transposed convolution, as conv2d's gradient of its input: the weight
---is (channels in, channels out / groups, kernel size ...).
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros taken off the result
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---output_padding: integer|integer[] = 0    places more at the end
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:conv_transpose2d(weight, bias, options) end

---The sum. Of no elements it is 0.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:sum(dims, options) end

---The mean, of float tensors. Of no elements it is NaN.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:mean(dims, options) end

---The product. Of no elements it is 1.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:prod(dims, options) end

---The largest element; NaN if there is one. Its gradient goes to the first of
---equal ones along one dimension, and in equal parts to all over several.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:max(dims, options) end

---The smallest element; as max.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:min(dims, options) end

---The id of the largest element along dim, or in the whole tensor as if it were
---flat; the first of equal ones, and a NaN before all.
---@param dim? integer
---@param options? table
---@return fnn.Tensor
function Tensor:argmax(dim, options) end

---The id of the smallest element.
---@param dim? integer
---@param options? table
---@return fnn.Tensor
function Tensor:argmin(dim, options) end

---True where one element is not zero.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:any(dims, options) end

---True where no element is zero.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:all(dims, options) end

---The variance.
---correction: number = 1    what is taken from the count it divides by
---keepdim: boolean = false    keeps reduced dimensions
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:var(dims, options) end

---The root of the variance.
---correction: number = 1    what is taken from the count it divides by
---keepdim: boolean = false    keeps reduced dimensions
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:std(dims, options) end

---The p-norm: the p-th root of the sum of |x| to the power p.
---p: number = 2    math.huge for the largest magnitude, 0 for how many not 0
---keepdim: boolean = false    keeps reduced dimensions
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:norm(dims, options) end

---log(sum(exp(x))), without overflow.
---@param dims? integer
---@param options? table
---@return fnn.Tensor
function Tensor:logsumexp(dims, options) end

---The sums of the elements up to each, along dim.
---@param dim integer
---@return fnn.Tensor
function Tensor:cumsum(dim) end

---Of a mask: a where it is true, b where it is false.
---@param a fnn.Tensor|number
---@param b fnn.Tensor|number
---@return fnn.Tensor
function Tensor:where(a, b) end

---x, but value where the mask is true.
---@param mask fnn.Tensor
---@param value number
---@return fnn.Tensor
function Tensor:masked_fill(mask, value) end

---Of logits (n, classes) or (n, classes, ...) against ids of classes, or
---against probabilities of the logits' shape. The mean is over the weights of
---the ids that count; when none counts it is 0.
---weight: Tensor    one number a class
---ignore_index: integer = -100    an id that does not count
---label_smoothing: number = 0    the share that is spread over all classes
---reduction: string = "mean"    or "sum" or "none"
---@param targets fnn.Tensor|table
---@param options? table
---@return fnn.Tensor
function Tensor:cross_entropy(targets, options) end

---The squared differences of two tensors of one shape.
---reduction: string = "mean"    or "sum" or "none"
---@param targets fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:mse(targets, options) end

---The sum. Its precision does not fall with length.
---keepdim: boolean = false    keeps reduced dimensions with size 1
---@param ... integer|table
---@return fnn.Tensor
function Tensor:sum(...) end

---The mean.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:mean(...) end

---The product.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:prod(...) end

---The largest element; NaN if there is one.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:max(...) end

---The smallest element; NaN if there is one.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:min(...) end

---The id of the largest element along a dimension, or among all: from 0.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:argmax(...) end

---The id of the smallest element.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:argmin(...) end

---Whether any element is not zero.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:any(...) end

---Whether no element is zero.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:all(...) end

---The variance.
---correction: number = 1    what is taken off the count; 0 for a population
---@param ... integer|table
---@return fnn.Tensor
function Tensor:var(...) end

---The standard deviation, with the options of var.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:std(...) end

---The p-norm: the p-th root of the sum of p-th powers of the magnitudes.
---p: number = 2    any, also math.huge
---@param ... integer|table
---@return fnn.Tensor
function Tensor:norm(...) end

---The logarithm of the sum of exponentials, without overflow.
---@param ... integer|table
---@return fnn.Tensor
function Tensor:logsumexp(...) end

---The sums of all places along dim up to each.
---@param dim integer
---@return fnn.Tensor
function Tensor:cumsum(dim) end

---The last n (1) dimensions scaled to mean 0 and variance 1, then times weight
---plus bias.
---@param n? integer
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:layer_norm(n, weight, bias, eps) end

---Seeds the state's generator. Seeds from 2^63 on are given in decimal digits.
---@param seed integer|string
function fnn.manual_seed(seed) end

---A generator. Without a seed the system gives one.
---kind: string = "philox"    or "torch"
---@param seed? integer|string
---@param options? table
---@return fnn.Generator
function fnn.Generator(seed, options) end

---The state's generator.
---@return fnn.Generator
function fnn.default_generator() end

---Uniform numbers from 0 to before 1, in the sizes given.
---generator: Generator     where they come from; also dtype and device
---@param ... integer|table
---@return fnn.Tensor
function fnn.rand(...) end

---Normal numbers of mean 0 and standard deviation 1.
---@param ... integer|table
---@return fnn.Tensor
function fnn.randn(...) end

---Uniform numbers from lo to before hi.
---@param lo number
---@param hi number
---@param ... integer|table
---@return fnn.Tensor
function fnn.uniform(lo, hi, ...) end

---Normal numbers.
---@param mean number
---@param std number
---@param ... integer|table
---@return fnn.Tensor
function fnn.normal(mean, std, ...) end

---Integers from lo to before hi, of dtype i64.
---@param lo integer
---@param hi integer
---@param ... integer|table
---@return fnn.Tensor
function fnn.randint(lo, hi, ...) end

---The ids 0 .. n-1 in random order.
---@param n integer
---@param options? table
---@return fnn.Tensor
function fnn.randperm(n, options) end

---Fills x with uniform numbers, from 0 to before 1 by default.
---@param lo? number
---@param hi? number
---@param options? table
---@return fnn.Tensor
function Tensor:uniform_(lo, hi, options) end

---Fills x with normal numbers, of mean 0 and deviation 1 by default.
---@param mean? number
---@param std? number
---@param options? table
---@return fnn.Tensor
function Tensor:normal_(mean, std, options) end

---@class fnn.Generator
local Generator = {}

---Starts again from a seed.
---@param seed integer|string
---@return fnn.Generator
function Generator:manual_seed(seed) end

---The seed it was given.
---@return integer
function Generator:seed() end

---"philox" or "torch".
---@return string
function Generator:kind() end

---All of its state, as a u8 tensor.
---@return fnn.Tensor
function Generator:state() end

---Goes on from a state.
---@param state fnn.Tensor
function Generator:set_state(state) end

---A shared slot for one weight: its value, its gradient, and the optimizer's
---state for it. Every operation takes a Param where it takes a tensor. Tying two
---layers is using one Param twice. Also the way to the gradient of an input.
---@param x fnn.Tensor
---@return fnn.Param
function fnn.Param(x) end

---Adds the gradient of x to each Param that x was made from. Without gradient x
---has one element, and the gradient starts as 1. A graph can be walked once.
---retain_graph: boolean = false    keeps it for another walk
---@param gradient? fnn.Tensor
---@param options? table
function Tensor:backward(gradient, options) end

---The gradients of x for a list of Params, in its order, or for one; false
---where x does not depend on it. The Params' own gradients stay as they are.
---retain_graph: boolean = false    keeps the graph for another walk
---gradient: Tensor                 the gradient of x, if it has many elements
---@param x fnn.Tensor
---@param params fnn.Param|fnn.Param[]
---@param options? table
---@return fnn.Tensor|table
function fnn.grad(x, params, options) end

---Calls f with the arguments and returns its results; nothing is recorded
---inside. The mode is restored when f raises. Yielding out of f raises.
---@param f function
---@param ... any
---@return any
function fnn.no_grad(f, ...) end

---The same, but recording; for use inside no_grad.
---@param f function
---@param ... any
---@return any
function fnn.enable_grad(f, ...) end

---Calls f with the arguments and returns its results. A backward inside looks
---at each gradient and raises at the first that is infinite or not a number,
---with the name of the operation that made it. Slow: for finding a fault.
---@param f function
---@param ... any
---@return any
function fnn.detect_anomaly(f, ...) end

---Whether operations are recorded now.
---@return boolean
function fnn.is_grad_enabled() end

---Gives a result that the script computed a derivative of its own. back(gy) is
---given the gradient of y and returns one gradient for each input, in order, nil
---for one that has none. name is used in error messages.
---@param y fnn.Tensor
---@param name string
---@param inputs fnn.Tensor[]
---@param back function
---@return fnn.Tensor
function fnn.record(y, name, inputs, back) end

---The same values without their history; memory is shared.
---@return fnn.Tensor
function Tensor:detach() end

---Whether a gradient would flow back from x.
---@return boolean
function Tensor:has_graph() end

---f(g) is called with the gradient of x, once it is complete. What it returns,
---if not nil, takes its place. It goes with the graph, or with the Param. Its
---function must not hold x itself, if no backward will ever pass: such a circle
---is not collected.
---@param f function
function Tensor:register_hook(f) end

---Compares the derivatives of f(x, ...) with finite differences, in f64, and
---raises where they differ. Returns true and the largest error.
---eps: number     the step
---atol: number    how far off an element may be
---rtol: number    and as a share of it
---@param f function
---@param inputs fnn.Tensor[]
---@param options? table
---@return boolean
---@return number
function fnn.gradcheck(f, inputs, options) end

---@class fnn.Param
---@operator add(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator sub(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mul(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator div(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator mod(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator pow(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator idiv(fnn.Tensor|fnn.Param|number): fnn.Tensor
---@operator unm: fnn.Tensor
---@operator len: integer
local Param = {}

---The weight as a tensor. It shares memory with the Param.
---@return fnn.Tensor
function Param:value() end

---The gradient collected so far, or nil.
---@return fnn.Tensor|nil
function Param:grad() end

---Replaces the gradient, or drops it.
---@param gradient? fnn.Tensor
function Param:set_grad(gradient) end

---Replaces the weight by one of the same shape.
---@param value fnn.Tensor
function Param:set(value) end

---No gradient flows to it any more.
---@return fnn.Param
function Param:freeze() end

---Undoes freeze.
---@return fnn.Param
function Param:unfreeze() end

---Whether it is frozen.
---@return boolean
function Param:is_frozen() end

---Moves weight, gradient and optimizer state to a device or dtype, in place.
---@param what string
---@param more? string
---@return fnn.Param
function Param:to(what, more) end

---What the library holds now. live, idle and peak are bytes: in use, kept for
---the next tensors, and the most that were ever in use. limit is the bytes
---allowed, or 0. objects and nodes count what is alive: objects of the engine,
---and operations that a gradient could still flow back through. conversions
---counts the copies so far from one memory order to the other
---(Tensor:channels_last).
---@return table
function fnn.memory() end

---Calls f with the arguments and returns its results; then releases each tensor
---that was made inside. Those that the results reach live on, through tables
---and modules too, and so do fields of modules. What else still holds a tensor
---made inside (an outer variable, a closure) finds it released. An error ends
---the scope as well. Scopes nest. Yielding out of f raises.
---@param f function
---@param ... any
---@return any
function fnn.scope(f, ...) end

---The most bytes that may be live; an operation that would need more raises. 0
---or nothing lifts the limit.
---@param bytes? integer
function fnn.set_memory_limit(bytes) end

---The peak of fnn.memory() starts again from what is live.
function fnn.reset_peak_memory() end

---Gives idle memory back to the system.
function fnn.trim() end

fnn.nn = {}

---A new class. Give it init(self, ...), which makes the parts, and
---forward(self, x, ...).
---@param name string
---@param parent? table
---@return table
function fnn.nn.module(name, parent) end

---Assigned to a field, a buffer that moves with the model but is not saved.
---@param x fnn.Tensor
---@return fnn.Tensor
function fnn.nn.transient(x) end

---Runs the model on inputs (or zeros of the shapes given) and tells, for print,
---the shape of each module's output and how many parameters are its own.
---@param model fnn.Module
---@param ... fnn.Tensor|table
---@return table
function fnn.summary(model, ...) end

---@class fnn.Module
---@overload fun(...: any): fnn.Tensor
local Module = {}

---All its Params, each once.
---@return fnn.Param[]
function Module:parameters() end

---An iterator over names and Params.
---@return function
function Module:named_parameters() end

---The Params that are not frozen.
---@return fnn.Param[]
function Module:trainable_parameters() end

---Its tensors that are no Params.
---@return fnn.Tensor[]
function Module:buffers() end

---An iterator over names and buffers.
---@return function
function Module:named_buffers() end

---It and all modules below it.
---@return fnn.Module[]
function Module:modules() end

---An iterator over names and modules; its own name is "".
---@return function
function Module:named_modules() end

---The modules in its own fields.
---@return fnn.Module[]
function Module:children() end

---An iterator over names and children.
---@return function
function Module:named_children() end

---The number of elements of all parameters, and of those that are not frozen.
---@return integer
---@return integer
function Module:parameter_count() end

---A part by its path, "layers.0.weight", or nil.
---@param path string
---@return any
function Module:get(path) end

---Whether it is of that class, or of one that inherits from it.
---@param class table
---@return boolean
function Module:is_a(class) end

---Goes into training: Dropout drops. train(false) is eval.
---@param on? boolean
---@return fnn.Module
function Module:train(on) end

---Goes into evaluation: Dropout passes all.
---@return fnn.Module
function Module:eval() end

---Freezes all its parameters.
---@return fnn.Module
function Module:freeze() end

---Undoes freeze.
---@return fnn.Module
function Module:unfreeze() end

---Drops the gradients of all its parameters.
---@return fnn.Module
function Module:zero_grad() end

---Calls f(module) for each module, parts before the module that holds them.
---@param f function
---@return fnn.Module
function Module:apply(f) end

---Moves parameters and buffers to a device or dtype. Params keep their identity,
---integers their dtype.
---@param ... string|table
---@return fnn.Module
function Module:to(...) end

---What print shows in parentheses behind the class; a class may have its own.
---@return string
function Module:describe() end

---As fnn.summary.
---@param ... fnn.Tensor|table
---@return table
function Module:summary(...) end

---Its tensors by name, in order.
---@return table
function Module:state_dict() end

---Fills the model from tensors by name. All is checked before the first write.
---Returns lists of names: loaded, missing, unexpected, mismatched, ignored.
---strict: boolean = true               missing or unexpected tensors raise
---ignore_mismatched: boolean = false   leaves those of another shape alone
---rename: function|table               the model's name for one in the file
---@param state table
---@param options? table
---@return table
function Module:load_state_dict(state, options) end

---Writes a safetensors file, whole or not at all.
---metadata: table    strings by name to keep in it
---@param path string
---@param options? table
---@return fnn.Module
function Module:save(path, options) end

---load_state_dict from a safetensors file.
---@param path string
---@param options? table
---@return table
function Module:load(path, options) end

---x times weight transposed, plus bias: (..., inputs) to (..., outputs).
---bias: boolean = true    whether it has one
---@param inputs integer
---@param outputs integer
---@param options? table
---@return fnn.Module
function fnn.nn.Linear(inputs, outputs, options) end

---A vector of size dim for each id 0 .. count-1.
---@param count integer
---@param dim integer
---@param options? table
---@return fnn.Module
function fnn.nn.Embedding(count, dim, options) end

---Tensor:conv1d with a weight (outputs, inputs / groups, kernel ...) and a bias
---of its own.
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---bias: boolean = true    whether it has one
---padding_mode: string = "zeros"    no other is there
---@param inputs integer
---@param outputs integer
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.Conv1d(inputs, outputs, kernel, options) end

---Tensor:conv2d with a weight (outputs, inputs / groups, kernel ...) and a bias
---of its own.
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---bias: boolean = true    whether it has one
---padding_mode: string = "zeros"    no other is there
---@param inputs integer
---@param outputs integer
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.Conv2d(inputs, outputs, kernel, options) end

---Tensor:conv3d with a weight (outputs, inputs / groups, kernel ...) and a bias
---of its own.
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros around the input
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---bias: boolean = true    whether it has one
---padding_mode: string = "zeros"    no other is there
---@param inputs integer
---@param outputs integer
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.Conv3d(inputs, outputs, kernel, options) end

---Tensor:conv_transpose1d with a weight (inputs, outputs / groups, kernel ...)
---and a bias of its own.
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros taken off the result
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---output_padding: integer|integer[] = 0    places more at the end
---bias: boolean = true    whether it has one
---padding_mode: string = "zeros"    no other is there
---@param inputs integer
---@param outputs integer
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.ConvTranspose1d(inputs, outputs, kernel, options) end

---Tensor:conv_transpose2d with a weight (inputs, outputs / groups, kernel ...)
---and a bias of its own.
---stride: integer|integer[] = 1
---padding: integer|string|table = 0    zeros taken off the result
---dilation: integer|integer[] = 1      from one tap to the next
---groups: integer = 1    parts of the channels, each convolved by itself
---output_padding: integer|integer[] = 0    places more at the end
---bias: boolean = true    whether it has one
---padding_mode: string = "zeros"    no other is there
---@param inputs integer
---@param outputs integer
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.ConvTranspose2d(inputs, outputs, kernel, options) end

---The last dimensions scaled to mean 0 and variance 1, then by a weight and a
---bias.
---eps: number = 1e-5        keeps the division finite
---affine: boolean = true    whether it has weight and bias
---@param size integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.LayerNorm(size, options) end

---In training zeroes each element with probability p (0.5) and scales the rest.
---@param p? number
---@param options? table
---@return fnn.Module
function fnn.nn.Dropout(p, options) end

---Dimensions first (2) to last (-1) as one.
---@param first? integer
---@param last? integer
---@return fnn.Module
function fnn.nn.Flatten(first, last) end

---x as it is.
---@return fnn.Module
function fnn.nn.Identity() end

---softmax along dim (-1).
---@param dim? integer
---@return fnn.Module
function fnn.nn.Softmax(dim) end

---log_softmax along dim (-1).
---@param dim? integer
---@return fnn.Module
function fnn.nn.LogSoftmax(dim) end

---Calls its modules one after the other.
---@param ... fnn.Module|table
---@return fnn.Module
function fnn.nn.Sequential(...) end

---Modules by place: list[1], #list, append, insert, remove, extend.
---@param ... fnn.Module|table
---@return fnn.Module
function fnn.nn.ModuleList(...) end

---Modules by name: dict.name, keys().
---@param modules? table
---@return fnn.Module
function fnn.nn.ModuleDict(modules) end

---relu.
---@return fnn.Module
function fnn.nn.ReLU() end

---relu6.
---@return fnn.Module
function fnn.nn.ReLU6() end

---leaky_relu.
---@param slope? number|table
---@return fnn.Module
function fnn.nn.LeakyReLU(slope) end

---elu.
---@param alpha? number|table
---@return fnn.Module
function fnn.nn.ELU(alpha) end

---selu.
---@return fnn.Module
function fnn.nn.SELU() end

---gelu.
---approximate: string = "none"    or "tanh"
---@param options? table
---@return fnn.Module
function fnn.nn.GELU(options) end

---silu.
---@return fnn.Module
function fnn.nn.SiLU() end

---mish.
---@return fnn.Module
function fnn.nn.Mish() end

---sigmoid.
---@return fnn.Module
function fnn.nn.Sigmoid() end

---log_sigmoid.
---@return fnn.Module
function fnn.nn.LogSigmoid() end

---hardsigmoid.
---@return fnn.Module
function fnn.nn.Hardsigmoid() end

---hardswish.
---@return fnn.Module
function fnn.nn.Hardswish() end

---tanh.
---@return fnn.Module
function fnn.nn.Tanh() end

---softplus.
---@param beta? number|table
---@param threshold? number
---@return fnn.Module
function fnn.nn.Softplus(beta, threshold) end

---softsign.
---@return fnn.Module
function fnn.nn.Softsign() end

---Normal numbers of deviation sqrt(2 / inputs), for relu (He et al. 2015).
---@param shape integer[]
---@param options? table
---@return fnn.Tensor
function fnn.kaiming(shape, options) end

---Uniform numbers in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
---@param shape integer[]
---@param options? table
---@return fnn.Tensor
function fnn.xavier(shape, options) end

---How badly logits x (n, classes) or (n, classes, ...) predict class ids, or
---probabilities of the logits' shape. The mean is over the weights of the ids
---that count; when none counts it is 0.
---reduction: string = "mean"      or "sum", "none"
---weight: Tensor                  a weight for each class
---ignore_index: integer = -100    rows with this id do not count
---label_smoothing: number = 0     the share that goes to all classes alike
---@param x fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.cross_entropy(x, target, options) end

---cross_entropy of log-probabilities x, which log_softmax gives, and ids.
---reduction: string = "mean"      or "sum", "none"
---weight: Tensor                  a weight for each class
---ignore_index: integer = -100    rows with this id do not count
---@param x fnn.Tensor
---@param ids fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.nll(x, ids, options) end

---nll, by PyTorch's name.
---@param x fnn.Tensor
---@param ids fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.nll_loss(x, ids, options) end

---The squared differences.
---reduction: string = "mean"    or "sum", "none"
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.mse(x, target, options) end

---mse, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.mse_loss(x, target, options) end

---The absolute differences (mean absolute error).
---reduction: string = "mean"    or "sum", "none"
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.l1(x, target, options) end

---l1, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.l1_loss(x, target, options) end

---Half the squared difference up to delta, beyond it the line
---delta (d - delta / 2).
---reduction: string = "mean"    or "sum", "none"
---delta: number = 1             more than 0
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.huber(x, target, options) end

---huber, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.huber_loss(x, target, options) end

---huber divided by its delta, here beta; l1 when that is 0.
---reduction: string = "mean"    or "sum", "none"
---beta: number = 1              0 or more
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.smooth_l1(x, target, options) end

---smooth_l1, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.smooth_l1_loss(x, target, options) end

---Binary cross entropy of probabilities, which must lie in 0 .. 1. Logarithms
---stop at -100.
---reduction: string = "mean"    or "sum", "none"
---weight: Tensor                a weight for each element; broadcasts
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.bce(x, target, options) end

---bce, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.binary_cross_entropy(x, target, options) end

---bce of the sigmoid of logits, exact where that is 0 or 1.
---reduction: string = "mean"    or "sum", "none"
---weight: Tensor                a weight for each element; broadcasts
---pos_weight: Tensor            a weight for positive targets; broadcasts
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.bce_with_logits(x, target, options) end

---bce_with_logits, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.binary_cross_entropy_with_logits(x, target, options) end

---bce_with_logits times (1 - p) ^ gamma, p what the true class is given, so that
---what is easy counts for little (Lin et al. 2017); and times alpha where the
---target is 1, 1 - alpha where it is 0.
---reduction: string = "mean"    or "sum", "none"
---alpha: number = 0.25          negative for no such weights
---gamma: number = 2             0 or more
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.focal(x, target, options) end

---1 - (2 overlap + smooth) / (sum of x + sum of target + smooth), of
---probabilities, for each item of dimension 1; a vector is one item.
---reduction: string = "mean"    or "sum", "none"
---smooth: number = 1            keeps two empty masks at 0
---batch: boolean = false        sums over all items
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.dice(x, target, options) end

---target (log target - x) of log-probabilities x and probabilities; 0 where the
---target is 0. As in PyTorch the mean is over all elements.
---reduction: string = "mean"      or "batchmean", "sum", "none"
---log_target: boolean = false     the target holds logarithms too
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.kl_div(x, target, options) end

---KL(target, x) of probabilities: summed over the last dimension, the mean over
---the rest.
---reduction: string = "mean"    or "sum", "none"
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.kl_divergence(x, target, options) end

---(log var + (x - target)^2 / var) / 2: x and var are mean and variance of a
---normal law. var broadcasts, or lacks the last dimension.
---reduction: string = "mean"    or "sum", "none"
---full: boolean = false         with the constant log(2 pi) / 2
---eps: number = 1e-6            what var counts for at least
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param var fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.gaussian_nll(x, target, var, options) end

---gaussian_nll, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param var fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.gaussian_nll_loss(x, target, var, options) end

---gaussian_nll of the logarithm of the variance, which may have any value.
---reduction: string = "mean"    or "sum", "none"
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param log_var fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.gaussian_nll_log_var(x, target, log_var, options) end

---e^x - target x, x the logarithm of the rate of a Poisson law.
---reduction: string = "mean"      or "sum", "none"
---log_input: boolean = true       else x is the rate: x - target log(x + eps)
---full: boolean = false           with Stirling's formula for target > 1
---eps: number = 1e-8              keeps the logarithm of a rate finite
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.poisson_nll(x, target, options) end

---poisson_nll, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.poisson_nll_loss(x, target, options) end

---max(0, margin - target x) for targets 1 and -1.
---reduction: string = "mean"    or "sum", "none"
---margin: number = 1            any number
---@param x fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.hinge(x, target, options) end

---x where the target is 1, max(0, margin - x) where it is -1.
---reduction: string = "mean"    or "sum", "none"
---margin: number = 1            any number
---@param x fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.hinge_embedding(x, target, options) end

---hinge_embedding, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.hinge_embedding_loss(x, target, options) end

---max(0, margin - target (x - y)): the target is 1 where x should be larger, -1
---where y should.
---reduction: string = "mean"    or "sum", "none"
---margin: number = 0            any number
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.margin_ranking(x, y, target, options) end

---margin_ranking, by PyTorch's name.
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.margin_ranking_loss(x, y, target, options) end

---max(0, |anchor - positive| - |anchor - negative| + margin) of rows, by
---Euclidean distance.
---reduction: string = "mean"    or "sum", "none"
---margin: number = 1            more than 0
---p: number = 2                 the order of the norm
---eps: number = 1e-6            added to differences
---swap: boolean = false         takes the nearer of anchor and positive to the
---                              negative
---@param anchor fnn.Tensor
---@param positive fnn.Tensor
---@param negative fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.triplet(anchor, positive, negative, options) end

---triplet, by PyTorch's name.
---@param anchor fnn.Tensor
---@param positive fnn.Tensor
---@param negative fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.triplet_margin_loss(anchor, positive, negative, options) end

---Of the distance d of rows: d^2 where the target is 1, max(0, margin - d)^2
---where it is 0 (Hadsell et al. 2006).
---reduction: string = "mean"    or "sum", "none"
---margin: number = 1            0 or more
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.contrastive(x, y, target, options) end

---Of rows: 1 - cos(x, y) where the target is 1, max(0, cos(x, y) - margin) where
---it is -1.
---reduction: string = "mean"    or "sum", "none"
---margin: number = 0            any number
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.cosine_embedding(x, y, target, options) end

---cosine_embedding, by PyTorch's name.
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param target fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.cosine_embedding_loss(x, y, target, options) end

---Row i of x (n, d) belongs to row i of y: cross_entropy of the cosines with all
---rows of y (van den Oord et al. 2018).
---reduction: string = "mean"      or "sum", "none"
---temperature: number = 0.1       divides the cosines
---@param x fnn.Tensor
---@param y fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.info_nce(x, y, options) end

---Labels whose places are not known (Graves et al. 2006), of log-probabilities x
---(steps, n, classes), or (steps, classes) of one sequence. The target is
---(n, most) with any padding, or all labels in a row; steps and lengths tell how
---much of x and of the target belongs to each sequence. The mean is of losses
---divided by their number of labels.
---reduction: string = "mean"        or "sum", "none"
---blank: integer = 0                the class between labels
---zero_infinity: boolean = false    0 instead of infinity for a target that does
---                                  not fit into its steps
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param steps fnn.Tensor|integer[]
---@param lengths fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.ctc(x, target, steps, lengths, options) end

---ctc, by PyTorch's name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param steps fnn.Tensor|integer[]
---@param lengths fnn.Tensor|integer[]
---@param options? table
---@return fnn.Tensor
function fnn.nn.ctc_loss(x, target, steps, lengths, options) end

---cross_entropy with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.CrossEntropyLoss(options) end

---nll with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.NLLLoss(options) end

---mse with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.MSELoss(options) end

---l1 with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.L1Loss(options) end

---huber with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.HuberLoss(options) end

---smooth_l1 with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.SmoothL1Loss(options) end

---bce with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.BCELoss(options) end

---bce_with_logits with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.BCEWithLogitsLoss(options) end

---focal with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.FocalLoss(options) end

---dice with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.DiceLoss(options) end

---kl_div with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.KLDivLoss(options) end

---kl_divergence with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.KLDivergenceLoss(options) end

---gaussian_nll with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.GaussianNLLLoss(options) end

---gaussian_nll_log_var with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.GaussianNLLLogVarLoss(options) end

---poisson_nll with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.PoissonNLLLoss(options) end

---hinge with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.HingeLoss(options) end

---hinge_embedding with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.HingeEmbeddingLoss(options) end

---margin_ranking with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.MarginRankingLoss(options) end

---triplet with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.TripletMarginLoss(options) end

---contrastive with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.ContrastiveLoss(options) end

---cosine_embedding with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.CosineEmbeddingLoss(options) end

---info_nce with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.InfoNCELoss(options) end

---ctc with these options, as a module.
---@param options? table
---@return fnn.Module
function fnn.nn.CTCLoss(options) end

fnn.optim = {}

---Gradient descent, with momentum if asked.
---lr: number = 0.01           the learning rate
---momentum: number = 0        the share of the last step that goes on
---dampening: number = 0       how much less a gradient counts with momentum
---weight_decay: number = 0    times the weight, added to its gradient
---nesterov: boolean = false   looks ahead along the momentum
---@param params fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.SGD(params, options) end

---Steps scaled by running means of the gradient and its square (Kingma and Ba
---2015, arXiv:1412.6980).
---lr: number = 0.001                the learning rate
---betas: table = { 0.9, 0.999 }     how slowly the two means follow
---eps: number = 1e-8                added to the root of the second
---weight_decay: number = 0          times the weight, added to its gradient
---amsgrad: boolean = false          uses the largest second mean so far
---@param params fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adam(params, options) end

---Adam with weight decay applied to the weight itself (Loshchilov and Hutter
---2019, arXiv:1711.05101). The options of Adam, weight_decay 0.01 by default.
---@param params fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.AdamW(params, options) end

---@class fnn.Optimizer
local Optimizer = {}

---Changes the weights by their gradients.
function Optimizer:step() end

---Drops the gradients of all its Params.
function Optimizer:zero_grad() end

---The learning rate of a group, the first without one.
---@param group? integer
---@return number
function Optimizer:lr(group) end

---Changes the learning rate of a group, or of all.
---@param lr number
---@param group? integer
function Optimizer:set_lr(lr, group) end

---All Params, in the order of their groups.
---@return fnn.Param[]
function Optimizer:parameters() end

---What is needed to go on later: the step and state tensors of each Param.
---@return table
function Optimizer:state() end

---Takes back what state returned, for the same parameters in the same order.
---@param state table
function Optimizer:load_state(state) end

---The Euclidean length of all gradients together.
---@param params fnn.Optimizer|fnn.Param[]
---@return number
function fnn.optim.grad_norm(params) end

---Scales all gradients down so that their length is at most most; returns the
---length before.
---@param params fnn.Optimizer|fnn.Param[]
---@param most number
---@return number
function fnn.optim.clip_grad_norm(params, most) end

---Moves each element of the gradients into [-most, most].
---@param params fnn.Optimizer|fnn.Param[]
---@param most number
function fnn.optim.clip_grad_value(params, most) end

---Whether no gradient has an infinite element or NaN.
---@param params fnn.Optimizer|fnn.Param[]
---@return boolean
function fnn.optim.gradients_are_finite(params) end

---As optim.grad_norm.
---@return number
function Optimizer:grad_norm() end

---As optim.clip_grad_norm.
---@param most number
---@return number
function Optimizer:clip_grad_norm(most) end

---As optim.clip_grad_value.
---@param most number
function Optimizer:clip_grad_value(most) end

---As optim.gradients_are_finite.
---@return boolean
function Optimizer:gradients_are_finite() end

fnn.data = {}

---Items along the first dimension of tensors of one length. A field may be
---{ tensor, dtype = , scale = }: converted and scaled as it is read.
---@param ... fnn.Tensor|table
---@return fnn.Dataset
function fnn.data.TensorDataset(...) end

---1797 real handwritten digits of 8 by 8 pixels, (1, 8, 8) from 0 to 1, and
---their labels. In the library.
---@return fnn.Dataset
function fnn.data.digits() end

---Two IDX files, plain or .gz, as MNIST has them: images (1, h, w) from 0 to 1.
---@param images string
---@param labels string
---@return fnn.Dataset
function fnn.data.from_idx(images, labels) end

---The 60,000 handwritten digits of MNIST for "train", or 10,000 for "test":
---images (1, 28, 28) from 0 to 1, class ids, and the names of the classes. They
---are looked for in root, or in FNN_DATA, in /usr/share/datasets and in the
---user's cache, and else downloaded, into root or the cache. Nothing is
---downloaded when FNN_OFFLINE is set.
---root: string               the folder of the files
---download: boolean = true   whether they may be downloaded
---mirror: string|string[]    addresses to download from
---@param which string
---@param options? table
---@return fnn.Dataset
---@return string[]
function fnn.data.mnist(which, options) end

---The same of clothes, for the same models. Debian and Ubuntu have it as
---dataset-fashion-mnist.
---@param which string
---@param options? table
---@return fnn.Dataset
---@return string[]
function fnn.data.fashion_mnist(which, options) end

---Two .npy files.
---@param x string
---@param y string
---@return fnn.Dataset
function fnn.data.from_npy(x, y) end

---The last targets columns of a table of numbers are targets, the others inputs.
---Also returns the names of the columns. Options as io.read_csv.
---@param path string
---@param targets integer
---@param options? table
---@return fnn.Dataset
---@return string[]
function fnn.data.from_csv(path, targets, options) end

---Inputs, and class ids of the last column (or option label). Also returns the
---names of the classes, id 0 first, and of the columns.
---@param path string
---@param options? table
---@return fnn.Dataset
---@return string[]
---@return string[]
function fnn.data.from_csv_labeled(path, options) end

---Rows of n zeros with a one at each label.
---@param labels fnn.Tensor
---@param n integer
---@return fnn.Tensor
function fnn.data.one_hot_targets(labels, n) end

---x, or the first field of a dataset, with each column scaled to mean 0 and
---deviation 1, and what does the same to other data: s:apply(x) to rows, one row
---or a dataset; s:state() is for saving.
---@param x fnn.Tensor|fnn.Dataset
---@return fnn.Tensor|fnn.Dataset
---@return table
function fnn.data.standardize(x) end

---What standardize returned, from its state().
---@param state table
---@return table
function fnn.data.Standardizer(state) end

---The ids 0 .. n-1 in the order of an epoch.
---@param n integer
---@param seed integer
---@param epoch integer
---@return fnn.Tensor
function fnn.data.order(n, seed, epoch) end

---@class fnn.Dataset
local Dataset = {}

---The shape and dtype of each field of an item.
---@return table[]
function Dataset:fields() end

---The items with these ids as a batch, a tensor a field.
---@param ids fnn.Tensor|integer[]
---@return fnn.Tensor
---@return fnn.Tensor
function Dataset:items(ids) end

---All items as one batch.
---@return fnn.Tensor
---@return fnn.Tensor
function Dataset:all() end

---The items with these ids, as a dataset.
---@param ids fnn.Tensor|integer[]
---@return fnn.Dataset
function Dataset:subset(ids) end

---That fraction of the items, and the others, in random order; or a part for
---each of a list of fractions that add up to 1.
---seed: integer = 0    chooses the order
---@param fraction number|number[]
---@param options? table
---@return fnn.Dataset
---@return fnn.Dataset
function Dataset:split(fraction, options) end

---As split, with each class's share in every part: a class of two items is on
---both sides.
---seed: integer = 0     chooses the items
---field: integer = 2    which field has the classes
---@param fraction number|number[]
---@param options? table
---@return fnn.Dataset
---@return fnn.Dataset
function Dataset:split_stratified(fraction, options) end

---As dataset:split.
---@param dataset fnn.Dataset
---@param fraction number|number[]
---@param options? table
---@return fnn.Dataset
---@return fnn.Dataset
function fnn.data.split(dataset, fraction, options) end

---As dataset:split_stratified.
---@param dataset fnn.Dataset
---@param fraction number|number[]
---@param options? table
---@return fnn.Dataset
---@return fnn.Dataset
function fnn.data.split_stratified(dataset, fraction, options) end

---Iterates once over the dataset, n items at a time. Options of DataLoader.
---epoch: integer = 0    whose order it is
---@param n integer
---@param options? table
---@return function
function Dataset:batches(n, options) end

---Gives batches, each epoch in an order that seed and epoch alone decide.
---`for x, y in loader do` runs through an epoch, the next time through the next.
---batch: integer = 1            items a batch, also batch_size
---shuffle: boolean = false      a new order each epoch
---seed: integer = 0             of the order
---drop_last: boolean = false    leaves out a last batch that is not full
---prefetch: integer             batches read ahead on a thread
---device: string                where batches go
---@param dataset fnn.Dataset|table
---@param options? table
---@return fnn.Loader
function fnn.data.DataLoader(dataset, options) end

---@class fnn.Loader
local Loader = {}

---Iterates over the batches of epoch n; without n over what is left of the
---present one, or over the next.
---@param n? integer
---@return function
function Loader:epoch(n) end

---The next batch, or nothing at the end of the epoch.
---@return fnn.Tensor
---@return fnn.Tensor
function Loader:next() end

---Goes to a batch of an epoch; both count what has been done, so from 0.
---@param epoch integer
---@param batch? integer
function Loader:start(epoch, batch) end

---The epoch, and how many of its batches have been given.
---@return integer
---@return integer
function Loader:cursor() end

fnn.io = {}

---A safetensors file, whose tensors are read one at a time.
---@param path string
---@return fnn.Safetensors
function fnn.io.open_safetensors(path) end

---Writes { { name, tensor }, ... } in this order, and strings by name.
---@param path string
---@param tensors table[]
---@param metadata? table
function fnn.io.save_safetensors(path, tensors, metadata) end

---A numpy array.
---@param path string
---@return fnn.Tensor
function fnn.io.read_npy(path) end

---Writes a numpy array.
---@param path string
---@param x fnn.Tensor
function fnn.io.write_npy(path, x) end

---An IDX file, plain or .gz.
---@param path string
---@return fnn.Tensor
function fnn.io.read_idx(path) end

---A table of numbers (rows, columns), plain or .gz, and the names of its
---columns; with label also its class ids and the names of the classes.
---separator: string = ","    between fields
---header: boolean            whether the first row has names; else it is guessed
---label: integer             the column of class names; -1 is the last
---dtype: string = "f32"      or "f64"
---@param path string
---@param options? table
---@return fnn.Tensor
---@return string[]
---@return fnn.Tensor
---@return string[]
function fnn.io.read_csv(path, options) end

---An image, u8 (height, width, channels), and its texts by name.
---channels: integer = 0    1 grey, 2 with alpha, 3 RGB, 4 RGBA; 0 as it is
---@param path string
---@param options? table
---@return fnn.Tensor
---@return table
function fnn.io.read_png(path, options) end

---Writes u8 (height, width) or (height, width, channels).
---@param path string
---@param image fnn.Tensor
---@param texts? table
function fnn.io.write_png(path, image, texts) end

---Writes a PNG of images (n, height, width) or (n, channels, height, width),
---floats from 0 to 1 or bytes, side by side with texts under them.
---labels: table|Tensor    a text or number for each
---wrong: table            true, or what it should be, for those to mark in red
---columns: integer        how many in a row
---scale: integer          how many times larger than they are
---title: string           a line above all
---@param path string
---@param images fnn.Tensor
---@param options? table
function fnn.io.write_grid(path, images, options) end

---Whether there is a file that may be read.
---@param path string
---@return boolean
function fnn.io.is_file(path) end

---Fetches a file by http or https, by libcurl where it is installed. The folders
---are made. With size and crc32, those of the content (unzipped if it is in
---gzip) must be these; else nothing is kept.
---size: integer     bytes
---crc32: integer    checksum
---@param url string
---@param path string
---@param options? table
function fnn.io.download(url, path, options) end

---Writes into an RGB image; x and y are places. color is 0xRRGGBB, white
---without.
---@param image fnn.Tensor
---@param x integer
---@param y integer
---@param text string
---@param color? integer
---@param scale? integer
function fnn.io.draw_text(image, x, y, text, color, scale) end

---Draws a rectangle into an RGB image, filled when line is 0 or missing.
---@param image fnn.Tensor
---@param x integer
---@param y integer
---@param width integer
---@param height integer
---@param color? integer
---@param line? integer
function fnn.io.draw_rect(image, x, y, width, height, color, line) end

---@class fnn.Safetensors
local Safetensors = {}

---The names of the tensors.
---@return string[]
function Safetensors:names() end

---Whether there is one of that name.
---@param name string
---@return boolean
function Safetensors:has(name) end

---Its sizes.
---@param name string
---@return integer[]
function Safetensors:shape(name) end

---Its dtype as the file has it: "F16".
---@param name string
---@return string
function Safetensors:dtype(name) end

---The tensor.
---@param name string
---@return fnn.Tensor
function Safetensors:read(name) end

---Strings by name.
---@return table
function Safetensors:metadata() end

---Opens a prompt in the midst of a script, until Ctrl-D, and returns nothing.
---env is the table of globals there, the script's own if it is left out: give
---`setmetatable({ model = model }, { __index = _G })` to look at locals.
---@param env? table
function fnn.repl(env) end

return fnn
