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

---Where that is now.
---@return string
function fnn.default_device() end

---The full name of a device, "cuda:0" of "cuda"; raises, and says why, if it is
---not there: the build has no CUDA, the machine no driver or no card.
---@param name string
---@return string
function fnn.device(name) end

---"cuda:0" if there is such a card, else "cpu".
---@return string
function fnn.best_device() end

---The devices there are, the CPU first: name, model, total and free bytes of
---memory; of a card also its compute capability ("9.0") and the CUDA version
---that its driver knows.
---@return table[]
function fnn.devices() end

---Waits until a device, the default one if none is named, has done what it was
---asked for. Reading a value does so by itself; a clock needs it.
---@param device? string
function fnn.synchronize(device) end

---How many threads compute, the script's own included; n sets it, 0 as many as
---the process may use CPUs. Results do not depend on it.
---@param n? integer
---@return integer
function fnn.threads(n) end

---Tells whoever watches how far long work has come: the name of the work, how
---many steps are done and, if it is known, of how many. Raises when it is to
---stop. The program shows a bar on stderr where that is a terminal, and
---elsewhere a line now and then; of work that is soon done it shows nothing.
---Work ends at its last step; where that is not known, fnn.progress("", 0) ends
---it.
---
---Of a loop it keeps count itself: `for x, y in fnn.progress(loader, "epoch
---1")`. It takes a loader, a list or a tensor (`for i, v in`), an iterator
---function, or a count (`for i in fnn.progress(100)`), and the name of the
---work, or options:
---what: string = "steps"    the name
---total: integer            how many there are, where the source cannot tell
---@param what string|any
---@param step? integer|string|table
---@param total? integer
---@return function
function fnn.progress(what, step, total) end

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
---@field [integer] fnn.Tensor|number
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

---Moves x that share of the way to y, which has its shape, in one pass.
---@param y fnn.Tensor
---@param share number
---@return fnn.Tensor
function Tensor:lerp_(y, share) end

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

---A dimension as several, of these sizes, one of which may be -1.
---@param dim integer
---@param sizes integer[]
---@return fnn.Tensor
function Tensor:unflatten(dim, sizes) end

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

---Sequences (n, ...) of unequal lengths as one batch (count, longest, ...), and
---their lengths, which recurrent layers take; the key_mask of attention is
---fnn.arange(x:size(2), { dtype = "i64" }):lt(lengths:unsqueeze(2)).
---value: number = 0        what fills up
---side: string = "right"   or "left": where it goes
---@param tensors fnn.Tensor[]
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function fnn.pad_sequence(tensors, options) end

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

---The elements where mask is true, as a vector; x and mask broadcast. x[mask]
---is the same for a mask of as many dimensions.
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
---broadcast, and vectors count as rows or columns. Integers give integers, which
---wrap.
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

---log(exp(x) + exp(y)), without overflow.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:logaddexp(y) end

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

---Zeroes each element with probability p (0.5) and scales the rest by
---1 / (1 - p).
---@param p? number
---@param options? table
---@return fnn.Tensor
function Tensor:dropout(p, options) end

---The same for whole channels of (n, channels, l).
---@param p? number
---@param options? table
---@return fnn.Tensor
function Tensor:dropout1d(p, options) end

---The same for whole channels of (n, channels, h, w).
---@param p? number
---@param options? table
---@return fnn.Tensor
function Tensor:dropout2d(p, options) end

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

---The cross product of the vectors of three numbers along dim (-1). x and y
---broadcast; dim is one of the operand that has more.
---@param y fnn.Tensor
---@param dim? integer
---@return fnn.Tensor
function Tensor:cross(y, dim) end

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

---n ids, each drawn with a probability in proportion to its weight: (n) of
---weights (classes), (rows, n) of (rows, classes). Weights are 0 or more and
---need not sum to 1; logits become such by softmax. Drawn on the host: every
---device gives the same ids.
---replacement: boolean = false    whether an id may be drawn more than once
---generator: Generator
---@param weights fnn.Tensor
---@param n integer
---@param options? table
---@return fnn.Tensor
function fnn.multinomial(weights, n, options) end

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

---Calls f with the arguments and returns its results. Inside, each operation
---looks at its result, also in no_grad and where it writes in place, and each
---backward at the gradients that it gives; the first that is not finite raises.
---The error names the operation, the line of the script that called it and the
---module it is in, shapes, how many elements are nan or inf and where the first
---is, and whether they were made there or came in with an input. -inf may be
---filled in and may come in, as it does in masks. What happens in a step that
---is being recorded (fnn.graph_step) is not looked at. Slow: for finding a
---fault.
---@param f function
---@param ... any
---@return any
function fnn.detect_anomaly(f, ...) end

---Calls f with the arguments behind the options and returns its results. Inside,
---matmul, linear layers, einsum and convolutions round their f32 operands to 16
---bits, add up in f32 and give 16 bits; sums, norms, losses, softmax, exp, log
---and powers take 16-bit operands as f32 (PyTorch's lists). Weights stay f32,
---and so are their gradients. Call backward and the optimizer outside of f, or
---inside: they are not changed by it. On the CPU products read rounded numbers
---and give f32. The mode is restored when f raises. Yielding out of f raises.
---dtype: string = "bf16"      or "f16", which wants optim.GradScaler, or "f32"
---enabled: boolean = true     false: as if f were called alone
---@param f function
---@param options? table
---@param ... any
---@return any
function fnn.autocast(f, options, ...) end

---"bf16" or "f16" inside of fnn.autocast, else nil.
---@return string|nil
function fnn.autocast_dtype() end

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

---An operation to be given forward(ctx, ...) and backward(ctx, gy, ...), and
---then called as a function. forward runs without a graph; backward is given the
---gradients of its results and returns one for each argument, nil for what is
---no tensor. In forward ctx:save(x, ...) keeps tensors, which ctx:saved()
---returns in backward; other values are fields, ctx.k = k.
---ctx.needs_input_grad[i] tells whether argument i needs one. All float results
---have one dtype. backward = false means that there is no derivative. name is
---used in error messages.
---@param name string
---@return table
function fnn.Function(name) end

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

---What the library holds now on a device, the CPU if none is named. live, idle
---and peak are bytes: in use, kept for the next tensors, and the most that were
---ever in use; workspace is what a card's own library keeps (cuBLAS, from the
---first product on, for all states together, not bounded by the limit); held is
---what the system or the card's driver gave: live, idle and workspace.
---allocations counts the blocks asked of it so far. limit is the bytes
---allowed, or 0. objects and nodes count what is alive: objects of the engine,
---and operations that a gradient could still flow back through. conversions
---counts the copies so far from one memory order to the other
---(Tensor:channels_last).
---@param device? string
---@return table
function fnn.memory(device) end

---Calls f with the arguments and returns its results; then releases each tensor
---that was made inside. Those that the results reach live on, through tables
---and modules too, and so do fields of modules. What else still holds a tensor
---made inside (an outer variable, a closure) finds it released. An error ends
---the scope as well. Scopes nest. Yielding out of f raises.
---@param f function
---@param ... any
---@return any
function fnn.scope(f, ...) end

---The most bytes that may be live on a device, the CPU if none is named; an
---operation that would need more raises before the system or the driver is
---asked. 0 or nothing lifts the limit. Each device has its own.
---@param bytes? integer
---@param device? string
function fnn.set_memory_limit(bytes, device) end

---The peak of fnn.memory starts again from what is live.
---@param device? string
function fnn.reset_peak_memory(device) end

---Gives idle memory back to the system, or to the driver of the card.
---@param device? string
function fnn.trim(device) end

---Collects what nothing reaches, then trims; the default device if none is
---named. It waits for the work of a card. Other programs get the memory; this
---one is slower for it.
---@param device? string
function fnn.empty_cache(device) end

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
---@field [string|integer] any
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
---integers their dtype. Where there is no room for all of it nothing is moved.
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

---In training zeroes each element with probability p (0.5) and scales the rest.
---p: number = 0.5    where it is not the first argument
---@param p? number
---@param options? table
---@return fnn.Module
function fnn.nn.Dropout(p, options) end

---The same for whole channels of (n, channels, l).
---@param p? number
---@param options? table
---@return fnn.Module
function fnn.nn.Dropout1d(p, options) end

---The same for whole channels of (n, channels, h, w).
---@param p? number
---@param options? table
---@return fnn.Module
function fnn.nn.Dropout2d(p, options) end

---Dimensions first (2) to last (-1) as one.
---@param first? integer
---@param last? integer
---@return fnn.Module
function fnn.nn.Flatten(first, last) end

---A dimension as several, of these sizes.
---@param dim integer
---@param sizes integer[]
---@return fnn.Module
function fnn.nn.Unflatten(dim, sizes) end

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
---approximate: string = "none"    or "tanh", "quick"
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

fnn.nn.init = {}

---Uniform numbers from lo (0) to hi (1).
---@param x fnn.Tensor
---@param lo? number
---@param hi? number
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.uniform_(x, lo, hi, options) end

---Normal numbers of mean (0) and deviation std (1).
---@param x fnn.Tensor
---@param mean? number
---@param std? number
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.normal_(x, mean, std, options) end

---Normal numbers of mean (0) and deviation std (1) from lo (-2) to hi (2); what
---is outside is drawn again.
---@param x fnn.Tensor
---@param mean? number
---@param std? number
---@param lo? number
---@param hi? number
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.trunc_normal_(x, mean, std, lo, hi, options) end

---One number throughout.
---@param x fnn.Tensor
---@param value number
---@return fnn.Tensor
function fnn.nn.init.constant_(x, value) end

---Zeros.
---@param x fnn.Tensor
---@return fnn.Tensor
function fnn.nn.init.zeros_(x) end

---Ones.
---@param x fnn.Tensor
---@return fnn.Tensor
function fnn.nn.init.ones_(x) end

---A matrix with ones on its diagonal.
---@param x fnn.Tensor
---@return fnn.Tensor
function fnn.nn.init.eye_(x) end

---Kernels of a convolution that lets its inputs pass.
---groups: integer = 1    in each group of its channels
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.dirac_(x, options) end

---A random matrix with orthonormal rows, or columns if there are no more of
---them, times gain (Saxe et al. 2014, arXiv:1312.6120).
---gain: number = 1
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.orthogonal_(x, options) end

---A matrix of normal numbers of deviation std (0.01), this share of each column
---being 0.
---@param x fnn.Tensor
---@param sparsity number
---@param std? number
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.sparse_(x, sparsity, std, options) end

---Uniform numbers of deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and
---Bengio 2010).
---gain: number = 1
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.xavier_uniform_(x, options) end

---The same, normal.
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.xavier_normal_(x, options) end

---Uniform numbers of deviation gain / sqrt(fan) (He et al. 2015).
---mode: string = "fan_in"                or "fan_out"
---activation: string = "leaky_relu"      whose gain it is
---slope: number = 0                      of leaky_relu
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.kaiming_uniform_(x, options) end

---The same, normal.
---@param x fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.init.kaiming_normal_(x, options) end

---The factor that keeps the variance through an activation: "linear", "sigmoid",
---"tanh", "relu", "leaky_relu" (of slope 0.01), "selu".
---@param activation string
---@param slope? number
---@return number
function fnn.nn.init.gain(activation, slope) end

---Over each part of the last n dimensions (1), whose shape weight and bias have.
---eps is 1e-5.
---@param n? integer
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:layer_norm(n, weight, bias, eps) end

---The same without the mean: x / sqrt(mean of x^2 + eps) times weight. eps is
---1e-6.
---@param n? integer
---@param weight? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:rms_norm(n, weight, eps) end

---Each channel over the whole batch, by the mean and variance given; without
---them, or in training, by those of the batch, towards which the given ones
---then move (var towards that of a sample).
---training: boolean         true without mean and var
---momentum: number = 0.1    how far they move
---eps: number = 1e-5        keeps the division finite
---@param mean? fnn.Tensor
---@param var? fnn.Tensor
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:batch_norm(mean, var, weight, bias, options) end

---Each group of channels of each image. eps is 1e-5.
---@param groups integer
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:group_norm(groups, weight, bias, eps) end

---Each channel of each image. eps is 1e-5.
---@param weight? fnn.Tensor
---@param bias? fnn.Tensor
---@param eps? number
---@return fnn.Tensor
function Tensor:instance_norm(weight, bias, eps) end

---layer_norm over dimensions of these sizes.
---eps: number = 1e-5        keeps the division finite
---affine: boolean = true    whether it has weight and bias
---@param size integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.LayerNorm(size, options) end

---rms_norm over dimensions of these sizes.
---eps: number = 1e-6        keeps the division finite
---affine: boolean = true    whether it has a weight
---@param size integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.RMSNorm(size, options) end

---batch_norm of (n, channels) or (n, channels, l): in training by the batch, in
---evaluation by running statistics, which are buffers: running_mean,
---running_var, num_batches_tracked.
---eps: number = 1e-5                    keeps the division finite
---momentum: number|boolean = 0.1        false: the mean of all batches
---affine: boolean = true                whether it has weight and bias
---track_running_stats: boolean = true   without, always by the batch
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.BatchNorm1d(channels, options) end

---The same for (n, channels, h, w).
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.BatchNorm2d(channels, options) end

---The same for (n, channels, d, h, w).
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.BatchNorm3d(channels, options) end

---group_norm.
---eps: number = 1e-5        keeps the division finite
---affine: boolean = true    whether it has weight and bias
---@param groups integer
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.GroupNorm(groups, channels, options) end

---instance_norm of (n, channels, l) or (channels, l).
---eps: number = 1e-5         keeps the division finite
---affine: boolean = false    whether it has weight and bias
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.InstanceNorm1d(channels, options) end

---The same for (n, channels, h, w) or (channels, h, w).
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.InstanceNorm2d(channels, options) end

---The same for (n, channels, d, h, w) or (channels, d, h, w).
---@param channels integer
---@param options? table
---@return fnn.Module
function fnn.nn.InstanceNorm3d(channels, options) end

---The largest of each window; of equal ones the first, and NaN over all.
---stride: integer|integer[]           from window to window; default: kernel
---padding: integer|integer[] = 0      on each side, at most half of the kernel
---dilation: integer|integer[] = 1     from place to place in a window
---ceil_mode: boolean = false          a window that sticks out counts too
---return_indices: boolean = false     also where they are: h * width + w, from 0
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:max_pool2d(kernel, options) end

---The same of signals.
---@param kernel integer
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:max_pool1d(kernel, options) end

---The mean of each window. Options as of max_pool2d but for dilation.
---count_include_pad: boolean = true   padding counts as zeros
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Tensor
function Tensor:avg_pool2d(kernel, options) end

---The same of signals.
---@param kernel integer
---@param options? table
---@return fnn.Tensor
function Tensor:avg_pool1d(kernel, options) end

---The largest of windows that divide the image into as many as size says; false
---in a table keeps a dimension.
---return_indices: boolean = false     also where they are
---@param size integer|table
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:adaptive_max_pool2d(size, options) end

---The same of signals.
---@param size integer
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:adaptive_max_pool1d(size, options) end

---The mean of such windows.
---@param size integer|table
---@return fnn.Tensor
function Tensor:adaptive_avg_pool2d(size) end

---The same of signals.
---@param size integer
---@return fnn.Tensor
function Tensor:adaptive_avg_pool1d(size) end

---max_pool2d with these options.
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.MaxPool2d(kernel, options) end

---max_pool1d with these options.
---@param kernel integer
---@param options? table
---@return fnn.Module
function fnn.nn.MaxPool1d(kernel, options) end

---avg_pool2d with these options.
---@param kernel integer|integer[]
---@param options? table
---@return fnn.Module
function fnn.nn.AvgPool2d(kernel, options) end

---avg_pool1d with these options.
---@param kernel integer
---@param options? table
---@return fnn.Module
function fnn.nn.AvgPool1d(kernel, options) end

---adaptive_max_pool2d; size 1 is global pooling.
---@param size integer|table
---@param options? table
---@return fnn.Module
function fnn.nn.AdaptiveMaxPool2d(size, options) end

---adaptive_max_pool1d; size 1 is global pooling.
---@param size integer
---@param options? table
---@return fnn.Module
function fnn.nn.AdaptiveMaxPool1d(size, options) end

---adaptive_avg_pool2d; size 1 is global pooling: the mean of each channel.
---@param size integer|table
---@return fnn.Module
function fnn.nn.AdaptiveAvgPool2d(size) end

---adaptive_avg_pool1d; size 1 is global pooling.
---@param size integer
---@return fnn.Module
function fnn.nn.AdaptiveAvgPool1d(size) end

---An image (n, channels, h, w) or a signal (n, channels, l) in another size.
---size: integer|integer[]             the new one, or
---scale_factor: number|number[]       how many times the old one
---mode: string = "nearest"            or "linear" (signals), "bilinear",
---                                    "bicubic" (images)
---align_corners: boolean = false      the outermost centres meet, not the edges
---antialias: boolean = false          a smaller image is made of all pixels, as
---                                    Pillow makes it; bilinear and bicubic
---@param options table
---@return fnn.Tensor
function Tensor:interpolate(options) end

---Channels as pixels: (..., c * factor^2, h, w) to (..., c, h * factor,
---w * factor).
---@param factor integer
---@return fnn.Tensor
function Tensor:pixel_shuffle(factor) end

---The way back.
---@param factor integer
---@return fnn.Tensor
function Tensor:pixel_unshuffle(factor) end

---interpolate with these options.
---@param options table
---@return fnn.Module
function fnn.nn.Upsample(options) end

---pixel_shuffle.
---@param factor integer
---@return fnn.Module
function fnn.nn.PixelShuffle(factor) end

---pixel_unshuffle.
---@param factor integer
---@return fnn.Module
function fnn.nn.PixelUnshuffle(factor) end

---a sigmoid(b) of the halves a and b.
---@param dim? integer
---@return fnn.Tensor
function Tensor:glu(dim) end

---silu(a) b of the halves a and b.
---@param dim? integer
---@return fnn.Tensor
function Tensor:swiglu(dim) end

---a gelu(b) of the halves a and b.
---@param dim? integer
---@return fnn.Tensor
function Tensor:geglu(dim) end

---x * sigmoid(y), in one pass.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:mul_sigmoid(y) end

---x * silu(y), in one pass.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:mul_silu(y) end

---x * gelu(y), in one pass.
---@param y fnn.Tensor|number
---@return fnn.Tensor
function Tensor:mul_gelu(y) end

---x where it is positive, else slope * x.
---@param slope fnn.Tensor|number
---@return fnn.Tensor
function Tensor:leaky(slope) end

---leaky with one slope, or one a channel (dimension 2 of x).
---@param weight fnn.Tensor
---@return fnn.Tensor
function Tensor:prelu(weight) end

---x A y for each matrix A in weight (outputs, n, m): x (..., n) and y (..., m)
---give (..., outputs).
---@param y fnn.Tensor
---@param weight fnn.Tensor
---@param bias? fnn.Tensor
---@return fnn.Tensor
function Tensor:bilinear(y, weight, bias) end

---glu along dim (-1).
---@param dim? integer
---@return fnn.Module
function fnn.nn.GLU(dim) end

---swiglu along dim (-1).
---@param dim? integer
---@return fnn.Module
function fnn.nn.SwiGLU(dim) end

---geglu along dim (-1).
---@param dim? integer
---@return fnn.Module
function fnn.nn.GEGLU(dim) end

---prelu with one slope (1), or one a channel.
---init: number = 0.25    where the slopes start
---@param count? integer
---@param options? table
---@return fnn.Module
function fnn.nn.PReLU(count, options) end

---bilinear of two inputs: layer(x, y).
---bias: boolean = true    whether it has one
---@param first integer
---@param second integer
---@param outputs integer
---@param options? table
---@return fnn.Module
function fnn.nn.Bilinear(first, second, outputs, options) end

---softmax(scale query key' + mask) value, for a query (..., heads, m, d), key
---(..., groups, n, d) and value (..., groups, n, e); gives (..., heads, m, e).
---Each group of keys and values serves heads / groups heads. The scores are
---never stored, so memory is linear in m and n. A query that may attend nothing
---gives zeros and no gradient.
---mask: Tensor              broadcasts to (batch, heads, m, n): bool, true where
---                          something may be attended, or floats to add
---causal: boolean = false   queries are the last m of n places, and see no
---                          later ones
---scale: number             1 / sqrt(d)
---dropout: number = 0       of the weights
---alibi: Tensor             (heads): a score falls by its head's slope times the
---                          distance
---generator: Generator      of the dropout
---@param key fnn.Tensor
---@param value fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:scaled_dot_product_attention(key, value, options) end

---Rotary positions of (batch, heads, length, size): of the first r numbers of
---each vector pair i turns by the angle whose cosine and sine stand in row p,
---column i of the tables (places, r / 2), p being the vector's place. The rest
---passes. nn.Rotary makes the tables.
---positions: integer|Tensor = 0   the first place, from 0; or all of them,
---                                integers (length) or (batch, length)
---interleaved: boolean = false    pairs are numbers 2i and 2i + 1, not i and
---                                i + r / 2
---@param cos fnn.Tensor
---@param sin fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Tensor:rotary(cos, sin, options) end

---Attention of several heads (Vaswani et al. 2017) between four Linear layers:
---query, key, value, output. Called as m(x, options), x (batch, length, embed)
---attends itself; as m(x, memory, options), a memory (batch, n, kdim). Options
---of a call: mask, which broadcasts to (batch, heads, length, n), true where
---something may be attended, or floats to add; key_mask (batch, n), true for
---keys to attend; causal; cache; positions; value, where values are not made
---of the memory; need_weights, which gives the weights as a second result, not
---dropped out, (batch, length, n), the mean over heads, or with
---average_attn_weights = false (batch, heads, length, n). They take memory and
---time by the square of the length.
---kv_heads: integer           heads of keys and values, a divisor of heads
---head_dim: integer           embed / heads
---bias: boolean = true        of the four layers
---dropout: number = 0         of the weights, in training
---causal: boolean = false     a place attends itself and those before it
---rotary: boolean|table|Module    true, options of nn.Rotary, or one to share
---alibi: boolean|Module       true, or an nn.Alibi
---kdim: integer = embed       of the memory that keys are made of
---vdim: integer = kdim        and values
---@param embed integer
---@param heads integer
---@param options? table
---@return fnn.Module
function fnn.nn.MultiHeadAttention(embed, heads, options) end

---A state by PyTorch's names with those of nn.MultiHeadAttention:
---in_proj_weight and in_proj_bias, which hold three, are split, and out_proj is
---output. All other names stay.
---@param state table
---@return table
function fnn.nn.split_attention(state) end

---Turns heads (batch, heads, length, head_dim) by their places (Su et al.
---2021): m(x, options). Its tables grow as they are asked for; largest values
---among positions that are a tensor are read from it.
---base: number = 10000
---dims: integer = head_dim        how many numbers of a head turn
---fraction: number                the same as a share of them
---interleaved: boolean = false    pairs are neighbours, not halves
---length: integer                 places to make tables for at once
---scaling: table                  { type = "linear", factor = }, or { type =
---                                "llama3", factor =, low_freq_factor =,
---                                high_freq_factor =, original_length = }
---@param head_dim integer
---@param options? table
---@return fnn.Module
function fnn.nn.Rotary(head_dim, options) end

---Adds sines (at even numbers) and cosines of the place to (batch, length,
---dim): m(x, options).
---base: number = 10000
---length: integer    places to make the table for at once
---@param dim integer
---@param options? table
---@return fnn.Module
function fnn.nn.SinusoidalPositions(dim, options) end

---Adds a weight of its own to each of the places 0 .. length-1: m(x, options).
---std: number = 0.02    of the weights at first
---@param length integer
---@param dim integer
---@param options? table
---@return fnn.Module
function fnn.nn.LearnedPositions(length, dim, options) end

---The slopes (heads) by which scores fall with the distance (Press et al.
---2022), for the option alibi of attention: m(x), on x's device.
---@param heads integer
---@return fnn.Module
function fnn.nn.Alibi(heads) end

---Attention, then two Linear layers, each with a norm and added to its input.
---Called as m(x, options), with the options of nn.MultiHeadAttention's call.
---ff: integer                    what the two Linear layers have between them:
---                               4 embed
---dropout: number = 0.1          of attention's weights and each part's result
---activation: string = "relu"    or "gelu", "gelu_tanh", "silu", ..., and gates:
---                               "swiglu", "geglu", "glu"
---norm_first: boolean = true     x + f(norm(x)); false: norm(x + f(x))
---norm: string = "layer"         or "rms"
---eps: number = 1e-5             of the norms
---causal: boolean = false        and kv_heads, head_dim, bias, rotary, alibi:
---                               as in nn.MultiHeadAttention
---@param embed integer
---@param heads integer
---@param options? table
---@return fnn.Module
function fnn.nn.TransformerEncoderLayer(embed, heads, options) end

---Layers one after the other, with a norm at the end where norms come first.
---The options are those of a layer; one Rotary serves all. causal = true makes
---it the stack of a language model.
---final_norm: boolean = norm_first
---@param embed integer
---@param heads integer
---@param layers integer
---@param options? table
---@return fnn.Module
function fnn.nn.TransformerEncoder(embed, heads, layers, options) end

---Causal attention, attention of a memory, two Linear layers. Called as
---m(x, memory, options): mask, key_mask, cache and positions are of the first;
---memory_mask (batch, n), true for what may be read of the memory, and
---cross_mask, which broadcasts to (batch, heads, length, n), of the second.
---causal: boolean = true    the others as in nn.TransformerEncoderLayer
---@param embed integer
---@param heads integer
---@param options? table
---@return fnn.Module
function fnn.nn.TransformerDecoderLayer(embed, heads, options) end

---Decoder layers one after the other; as nn.TransformerEncoder.
---@param embed integer
---@param heads integer
---@param layers integer
---@param options? table
---@return fnn.Module
function fnn.nn.TransformerDecoder(embed, heads, layers, options) end

---An encoder and a decoder, each with a norm at its end. Called as m(source,
---target, options), of sizes (batch, n, embed) and (batch, length, embed), it
---gives what the decoder makes of the target. Options of a call: source_mask
---(batch, n), true for what is to be read of the source; source_scores, a mask
---of the encoder's; mask, key_mask, cross_mask, cache, positions of the decoder.
---encoder_layers: integer = 6
---decoder_layers: integer = 6    the others as in nn.TransformerEncoderLayer
---@param embed integer
---@param heads integer
---@param options? table
---@return fnn.Module
function fnn.nn.Transformer(embed, heads, options) end

---@class fnn.Transformer
local Transformer = {}

---The memory that its decoder reads.
---@param source fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Transformer:encode(source, options) end

---What its decoder makes of a target.
---@param target fnn.Tensor
---@param memory fnn.Tensor
---@param options? table
---@return fnn.Tensor
function Transformer:decode(target, memory, options) end

---Keys and values of the tokens read so far, for causal attention in
---fnn.no_grad: model(ids, { cache = cache }) reads ids as those that follow.
---Buffers are made when a layer first comes; a later pass copies nothing of the
---past. A key_mask (batch, length) of a call is that of its new tokens, and is
---kept; rotary, sinusoidal and learned positions then count what each row keeps,
---so that prompts may be padded on either side (ALiBi's distances count all
---places: pad on the left). A layer comes once in a pass: one that is used twice
---cannot tell the second time from the next tokens. #cache is how many tokens it
---holds.
---length: integer    the most tokens
---layers: integer    the most attention layers; as many as come
---dtype: string      of the buffers: that of the keys
---@param options table
---@return table
function fnn.nn.KvCache(options) end

---@class fnn.KvCache
local KvCache = {}

---Forgets all tokens.
---@return table
function KvCache:clear() end

---Keeps the first n tokens.
---@param n integer
---@return table
function KvCache:truncate(n) end

---Whether it holds no token.
---@return boolean
function KvCache:is_empty() end

---The places of new tokens, before all layers or in one, and how many rows a
---table needs for them.
---@param length integer
---@param key_mask? fnn.Tensor
---@param layer? any
---@return integer|fnn.Tensor
---@return integer
function KvCache:positions(length, key_mask, layer) end

---For a layer of a script: adds keys and values (batch, heads, new, size) and
---returns views of all so far, and their mask, if there is one.
---@param layer any
---@param k fnn.Tensor
---@param v fnn.Tensor
---@param key_mask? fnn.Tensor
---@return fnn.Tensor
---@return fnn.Tensor
---@return fnn.Tensor|nil
function KvCache:append(layer, k, v, key_mask) end

---Keys and values that make() gives for a memory: made once for each.
---@param layer any
---@param memory fnn.Tensor
---@param make function
---@return fnn.Tensor
---@return fnn.Tensor
function KvCache:memory(layer, memory, make) end

---A classifier of images (n, channels, h, w) (Dosovitskiy et al. 2021): a Linear
---layer over the channels p p numbers of each patch, in the order (channel, row,
---column), rotary positions in reading order, an encoder, the mean over the
---patches and a Linear layer: logits (n, classes).
---image_size: integer|integer[]    { height, width }, multiples of the patch's
---patch: integer|integer[]
---channels: integer = 3
---classes: integer
---dim: integer        of a patch's vector
---depth: integer      layers
---heads: integer
---ff: integer         4 dim
---dropout: number = 0
---activation: string = "gelu"
---norm_first: boolean = true
---@param options table
---@return fnn.Module
function fnn.nn.VisionTransformer(options) end

---@class fnn.VisionTransformer
local VisionTransformer = {}

---Images as (n, patches, channels p p).
---@param x fnn.Tensor
---@return fnn.Tensor
function VisionTransformer:patches(x) end

---fnn.fit with cross_entropy.
---@param data any
---@param options? table
---@return table[]
function VisionTransformer:fit(data, options) end

---The class of each image, as an id.
---@param x fnn.Tensor
---@return fnn.Tensor|integer
function VisionTransformer:predict(x) end

---The share that it gets right of a dataset, a loader or { images, ids }.
---@param data any
---@return number
function VisionTransformer:accuracy(data) end

---Writes its options and weights.
---@param path string
---@return fnn.Module
function VisionTransformer:save_json(path) end

---Reads the weights of one made with the same options.
---@param path string
---@return fnn.Module
function VisionTransformer:load_json(path) end

---The model in a file of save_json.
---@param path string
---@return fnn.Module
function fnn.nn.load_vision_transformer(path) end

---h = tanh(a). One layer in one direction: w_ih (hidden, inputs), w_hh (hidden,
---hidden), biases (hidden); gives h of all steps and the final h.
---h: Tensor                       where it starts, (batch, hidden): zeros
---lengths: integer[]|Tensor       steps of each sequence: all
---reverse: boolean = false        from the last step to the first
---nonlinearity: string = "tanh"   or "relu"
---@param w_ih fnn.Tensor
---@param w_hh fnn.Tensor
---@param b_ih? fnn.Tensor
---@param b_hh? fnn.Tensor
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:rnn(w_ih, w_hh, b_ih, b_hh, options) end

---Gates i, f, g, o, whose weights are one below the other (4 hidden, ...): c =
---sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). Gives h of all
---steps, and the final h and c.
---h: Tensor                       where it starts, (batch, hidden): zeros
---c: Tensor                       the same, of c
---lengths: integer[]|Tensor       steps of each sequence: all
---reverse: boolean = false        from the last step to the first
---@param w_ih fnn.Tensor
---@param w_hh fnn.Tensor
---@param b_ih? fnn.Tensor
---@param b_hh? fnn.Tensor
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:lstm(w_ih, w_hh, b_ih, b_hh, options) end

---Gates r, z, n, (3 hidden, ...): h = (1 - sigmoid(z)) n + sigmoid(z) h with n =
---tanh(w_ih x + b_ih + sigmoid(r) (w_hh h + b_hh)). Gives h of all steps and
---the final h.
---h: Tensor                       where it starts, (batch, hidden): zeros
---lengths: integer[]|Tensor       steps of each sequence: all
---reverse: boolean = false        from the last step to the first
---@param w_ih fnn.Tensor
---@param w_hh fnn.Tensor
---@param b_ih? fnn.Tensor
---@param b_hh? fnn.Tensor
---@param options? table
---@return fnn.Tensor
---@return fnn.Tensor
function Tensor:gru(w_ih, w_hh, b_ih, b_hh, options) end

---y, h = rnn(x, h?, { lengths = }?): several rnn over each other. A state is
---(layers times directions, batch, hidden); x and the states may come without
---the batch. Weights are uniform within 1 / sqrt(hidden).
---layers: integer = 1             over each other
---bidirectional: boolean = false  a second one from the end, beside each: the
---                                results are 2 hidden wide
---dropout: number = 0             of what goes from layer to layer
---bias: boolean = true            whether there are biases
---nonlinearity: string = "tanh"   or "relu"
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.RNN(inputs, hidden, options) end

---y, h, c = lstm(x, h?, c?, { lengths = }?). Options as nn.RNN's, without
---nonlinearity.
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.LSTM(inputs, hidden, options) end

---y, h = gru(x, h?, { lengths = }?). Options as nn.RNN's, without nonlinearity.
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.GRU(inputs, hidden, options) end

---h = cell(x, h?): one step, x (batch, inputs) or (inputs). Options bias and
---nonlinearity as nn.RNN's.
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.RNNCell(inputs, hidden, options) end

---h, c = cell(x, h?, c?): one step. The option bias as nn.RNN's.
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.LSTMCell(inputs, hidden, options) end

---h = cell(x, h?): one step. The option bias as nn.RNN's.
---@param inputs integer
---@param hidden integer
---@param options? table
---@return fnn.Module
function fnn.nn.GRUCell(inputs, hidden, options) end

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

---l1, by its other name.
---@param x fnn.Tensor
---@param target fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.nn.mae(x, target, options) end

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
---lr: number = 0.001           the learning rate
---momentum: number = 0         the share of the last step that goes on
---dampening: number = 0        how much less a gradient counts with momentum
---nesterov: boolean = false    looks ahead along the momentum
---weight_decay: number = 0     the share of the weight that decays
---maximize: boolean = false    goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.SGD(params, options) end

---Steps scaled by running means of the gradient and its square (Kingma and Ba
---2015, arXiv:1412.6980).
---lr: number = 0.001               the learning rate
---betas: table = { 0.9, 0.999 }    how slowly the two means follow
---eps: number = 1e-8               added to the root of the second
---amsgrad: boolean = false         uses the largest second mean so far
---weight_decay: number = 0         the share of the weight that decays
---maximize: boolean = false        goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adam(params, options) end

---Adam with decay of the weight itself (Loshchilov and Hutter 2019,
---arXiv:1711.05101). The options of Adam, weight_decay 0.01 by default.
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.AdamW(params, options) end

---Adam that takes plain steps until the variance can be relied on (Liu et al.
---2020, arXiv:1908.03265).
---lr: number = 0.001                         the learning rate
---betas: table = { 0.9, 0.999 }              how slowly the two means follow
---eps: number = 1e-8                         added to the root
---decoupled_weight_decay: boolean = false    decay of the weight itself
---weight_decay: number = 0                   the share of the weight that decays
---maximize: boolean = false                  goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.RAdam(params, options) end

---Adam that looks ahead along its momentum (Dozat 2016).
---lr: number = 0.002                         the learning rate
---betas: table = { 0.9, 0.999 }              how slowly the two means follow
---eps: number = 1e-8                         added to the root
---momentum_decay: number = 0.004             how the momentum grows
---decoupled_weight_decay: boolean = false    decay of the weight itself
---weight_decay: number = 0                   the share of the weight that decays
---maximize: boolean = false                  goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.NAdam(params, options) end

---Adam with the largest gradient of late in the place of the mean square
---(Kingma and Ba, section 7).
---lr: number = 0.002               the learning rate
---betas: table = { 0.9, 0.999 }    how slowly the two means follow
---eps: number = 1e-8               added to the root
---weight_decay: number = 0         the share of the weight that decays
---maximize: boolean = false        goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adamax(params, options) end

---The sign of a mean of gradients: each element moves by lr (Chen et al. 2023,
---arXiv:2302.06675). Decay is of the weight itself.
---lr: number = 0.0001             the learning rate
---betas: table = { 0.9, 0.99 }    of the mean that moves, and the one kept
---weight_decay: number = 0        the share of the weight that decays
---maximize: boolean = false       goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Lion(params, options) end

---Steps over the root of a running mean square.
---lr: number = 0.01            the learning rate
---alpha: number = 0.99         how slowly it follows
---eps: number = 1e-8           added to the root
---momentum: number = 0         the share of the last step that goes on
---centered: boolean = false    the variance in the place of the mean square
---weight_decay: number = 0     the share of the weight that decays
---maximize: boolean = false    goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.RMSprop(params, options) end

---Steps over the root of the sum of all squares so far (Duchi et al. 2011).
---lr: number = 0.01                        the learning rate
---lr_decay: number = 0                     the rate falls by 1 / (1 + this n)
---initial_accumulator_value: number = 0    where the sum starts
---eps: number = 1e-10                      added to the root
---weight_decay: number = 0                 the share of the weight that decays
---maximize: boolean = false                goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adagrad(params, options) end

---Steps in the units of the weight: over the root of a mean square of gradients,
---times that of the steps (Zeiler 2012, arXiv:1212.5701).
---lr: number = 1               the learning rate
---rho: number = 0.9            how slowly both follow
---eps: number = 1e-6           added under both roots
---weight_decay: number = 0     the share of the weight that decays
---maximize: boolean = false    goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adadelta(params, options) end

---The mean squares of a matrix kept as those of its rows and columns: hardly
---any memory (Shazeer and Stern 2018, arXiv:1804.04235). Steps are relative to
---the size of the weight. Decay is of the weight itself.
---lr: number = 0.01             the most of a relative step
---beta2_decay: number = -0.8    the power of the step by which means slow down
---eps1: number                  keeps roots from 0; the dtype's if not given
---eps2: number = 0.001          the least size that a weight counts with
---d: number = 1                 the most that an update's size may be
---weight_decay: number = 0      the share of the weight that decays
---maximize: boolean = false     goes up, not down
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Adafactor(params, options) end

---Momentum made orthogonal, for the matrices of hidden layers (Jordan et al.
---2024); other parameters are AdamW's. PyTorch iterates in bf16, this in the
---dtype of the parameter. Decay is of the weight itself.
---lr: number = 0.001             the learning rate
---weight_decay: number = 0.1     the share of the weight that decays
---momentum: number = 0.95        the share of the last step that goes on
---nesterov: boolean = true       looks ahead along the momentum
---ns_coefficients: table         of the iteration: { 3.4445, -4.775, 2.0315 }
---ns_steps: integer = 5          how often it is done
---eps: number = 1e-7             the least norm that is divided by
---adjust_lr_fn: string           the rate for a shape: "original" if not given
---maximize: boolean = false      goes up, not down
---adjust_lr_fn may also be "match_rms_adamw", with which the rates of AdamW
---will do, or "spectral_unclamped".
---@param params fnn.Module|fnn.Param[]|table[]
---@param options? table
---@return fnn.Optimizer
function fnn.optim.Muon(params, options) end

---Quasi-Newton steps for small smooth problems (Nocedal and Wright 2006).
---step(f) calls f, which drops the gradients, computes the loss, walks back from
---it and returns it; more than once a step. One group of parameters.
---lr: number = 1                     the learning rate
---max_iter: integer = 20             iterations a step
---max_eval: integer                  calls of f a step; 5/4 of max_iter
---tolerance_grad: number = 1e-7      ends at a gradient so small
---tolerance_change: number = 1e-9    ends at a change so small
---history_size: integer = 100        steps remembered
---line_search_fn: string             "strong_wolfe": finds the length of a step
---maximize: boolean = false          goes up, not down
---@param params fnn.Module|fnn.Param[]
---@param options? table
---@return table
function fnn.optim.LBFGS(params, options) end

---An optimizer around another: every k steps, slow weights go a part of the way
---to where it went, and it goes on from there (Zhang et al. 2019,
---arXiv:1907.08610).
---k: integer = 5         how many steps
---alpha: number = 0.5    how much of the way
---@param optimizer fnn.Optimizer|table
---@param options? table
---@return table
function fnn.optim.Lookahead(optimizer, options) end

---A new class of optimizers. Calling it with parameters and options makes one,
---which has all methods below. options names all there are and what they are
---when not given. Give the class update(self, p, g, state, group), which changes
---the Param p by its gradient g: state is what is kept of p, a table that update
---fills with tensors, numbers or lists of them; group has the options. Recording
---is off in it. A class may have check(self, options), which raises.
---@param name string
---@param options? table
---@param parent? table
---@return table
function fnn.optim.optimizer(name, options, parent) end

---Two groups for an optimizer: weights that decay, and those that are spared
---(biases, what has one dimension, all of a normalization). options are of both.
---weight_decay: number = 0.01    of the first
---@param model fnn.Module
---@param options? table
---@return table[]
function fnn.optim.decay_groups(model, options) end

---@class fnn.Optimizer
local Optimizer = {}

---Changes the weights by their gradients, which stay as they are. With options
---it returns the Euclidean length of all gradients, scaled, before clipping: on
---a card a tensor there, as clip_grad_norm.
---scale: number = 1    times the gradients: 1/k after k batches
---max_norm: number     the most that their length may be
---@param options? table
---@return number|fnn.Tensor|nil
function Optimizer:step(options) end

---Drops the gradients of all its Params.
function Optimizer:zero_grad() end

---The learning rate of a group, the first without one.
---@param group? integer
---@return number
function Optimizer:learning_rate(group) end

---Changes the learning rate of a group, or of all, and nothing else.
---@param lr number
---@param group? integer
function Optimizer:set_learning_rate(lr, group) end

---learning_rate, shorter.
---@param group? integer
---@return number
function Optimizer:lr(group) end

---set_learning_rate, shorter.
---@param lr number
---@param group? integer
function Optimizer:set_lr(lr, group) end

---The groups: their options, and their params as a list.
---@return table[]
function Optimizer:groups() end

---Adds a group: params, and options over the defaults.
---@param group table
---@return fnn.Optimizer
function Optimizer:add_group(group) end

---Changes options of a group, or of all.
---@param options table
---@param group? integer
---@return fnn.Optimizer
function Optimizer:set_options(options, group) end

---All Params, in the order of their groups.
---@return fnn.Param[]
function Optimizer:parameters() end

---"AdamW".
---@return string
function Optimizer:name() end

---What is needed to go on later: tensors by name ("0.exp_avg": the place of the
---parameter, from 0, and PyTorch's name), as a list of names and a table; steps
---and options in [".state"].
---@return table
function Optimizer:state_dict() end

---Takes back what state_dict returned, options too, for parameters of the same
---shapes in the same order. Raises, with nothing changed, when it does not fit.
---@param state table
---@return fnn.Optimizer
function Optimizer:load_state_dict(state) end

---Raises what load_state_dict would, and changes nothing.
---@param state table
function Optimizer:check_state_dict(state) end

---Writes state_dict as a safetensors file, whole or not at all.
---@param path string
---@return fnn.Optimizer
function Optimizer:save(path) end

---load_state_dict from such a file.
---@param path string
---@return fnn.Optimizer
function Optimizer:load(path) end

---The running mean: decay times the average, plus 1 - decay times the weight.
---decay: number = 0.999    what stays of the average
---@param params fnn.Module|fnn.Param[]
---@param options? table
---@return table
function fnn.optim.Ema(params, options) end

---The mean of the weights at all updates (Izmailov et al. 2018,
---arXiv:1803.05407).
---@param params fnn.Module|fnn.Param[]
---@return table
function fnn.optim.SWA(params) end

---Makes the running statistics of each BatchNorm anew, as the mean over batches:
---a loader, or train:batches(64), or what else a for loop takes. For weights
---that no step of training has seen, as those of an average: after swa:swap().
---@param model fnn.Module
---@param batches function|table
---@param ... any
function fnn.optim.update_batch_norm(model, batches, ...) end

---The Euclidean length of all gradients together.
---@param params fnn.Optimizer|fnn.Module|fnn.Param[]
---@return number
function fnn.optim.grad_norm(params) end

---Scales all gradients down so that their length is at most most; returns the
---length before. Of gradients on a card it is a tensor there, which nobody has
---waited for: norm:item() does.
---@param params fnn.Optimizer|fnn.Module|fnn.Param[]
---@param most number
---@return number|fnn.Tensor
function fnn.optim.clip_grad_norm(params, most) end

---Moves each element of the gradients into [-most, most].
---@param params fnn.Optimizer|fnn.Module|fnn.Param[]
---@param most number
function fnn.optim.clip_grad_value(params, most) end

---Multiplies all gradients with a number.
---@param params fnn.Optimizer|fnn.Module|fnn.Param[]
---@param factor number
function fnn.optim.scale_grad(params, factor) end

---Whether no gradient has an infinite element or NaN.
---@param params fnn.Optimizer|fnn.Module|fnn.Param[]
---@return boolean
function fnn.optim.gradients_are_finite(params) end

---As optim.grad_norm.
---@return number
function Optimizer:grad_norm() end

---As optim.clip_grad_norm.
---@param most number
---@return number|fnn.Tensor
function Optimizer:clip_grad_norm(most) end

---As optim.clip_grad_value.
---@param most number
function Optimizer:clip_grad_value(most) end

---As optim.scale_grad.
---@param factor number
function Optimizer:scale_grad(factor) end

---As optim.gradients_are_finite.
---@return boolean
function Optimizer:gradients_are_finite() end

---A scale that follows what it meets. scaler:scale(loss) multiplies a loss, or
---each of a list; scaler:step(opt, ...) divides opt's gradients by the scale,
---steps unless one of them is infinite or NaN, and returns whether it did;
---scaler:unscale(opt) divides before, so that they can be clipped;
---scaler:update(scale?) goes on, with less where a step was left out, with more
---after interval steps without. scaler:get_scale(), scaler:is_enabled(),
---scaler:state_dict() and scaler:load_state_dict(state). Of a card's gradients
---one word is read each step.
---init_scale: number = 65536  the first scale
---growth: number = 2          what it grows by
---backoff: number = 0.5       what it shrinks by
---interval: integer = 2000    good steps before it grows
---enabled: boolean = true     false: scale, step and update do nothing of it
---@param options? table
---@return table
function fnn.optim.GradScaler(options) end

---What is called with a step: it gives the optimizer the rate of that step, and
---returns it. Groups keep the ratios of their rates; the largest is the
---schedule's. s:state_dict() and s:load_state_dict(state) keep the ratios, which
---the rates no longer tell once all are 0, and what a schedule with state has.
---@param opt fnn.Optimizer
---@param schedule function
---@return function
function fnn.optim.scheduler(opt, schedule) end

---The same rate always.
---@param base number
---@return function
function fnn.optim.Constant(base) end

---Times gamma (0.1) after each so many steps.
---@param base number
---@param every number
---@param gamma? number
---@return function
function fnn.optim.StepDecay(base, every, gamma) end

---Times gamma (0.1) at each of these steps.
---@param base number
---@param milestones integer[]
---@param gamma? number
---@return function
function fnn.optim.MultiStep(base, milestones, gamma) end

---Times gamma at each step.
---@param base number
---@param gamma number
---@return function
function fnn.optim.Exponential(base, gamma) end

---Down to floor at step total, as a power of what is left, and flat after.
---power: number = 1
---floor: number = 0
---@param base number
---@param total number
---@param options? table
---@return function
function fnn.optim.Polynomial(base, total, options) end

---Half a cosine from base to floor at step total, and flat after.
---floor: number = 0
---@param base number
---@param total number
---@param options? table
---@return function
function fnn.optim.CosineAnnealing(base, total, options) end

---Half a cosine from base to floor in each period (Loshchilov and Hutter 2017,
---arXiv:1608.03983).
---mult: integer = 1    how many times longer each period is than the one before
---floor: number = 0
---@param base number
---@param period number
---@param options? table
---@return function
function fnn.optim.CosineRestarts(base, period, options) end

---Another schedule, times (step + 1) / steps in its first steps.
---@param inner function
---@param steps number
---@return function
function fnn.optim.Warmup(inner, steps) end

---Up to peak along a line, then down along a cosine until step total (Smith and
---Topin 2018, arXiv:1708.07120).
---warmup_fraction: number = 0.3    the part of the steps that goes up
---start_div: number = 25           begins at peak / start_div
---end_div: number = 1e4            ends at peak / end_div
---@param peak number
---@param total number
---@param options? table
---@return function
function fnn.optim.OneCycle(peak, total, options) end

---Up to peak along a line in warmup steps, then along a cosine to floor at step
---total, and flat after.
---floor: number    peak / 10 without
---@param peak number
---@param warmup number
---@param total number
---@param options? table
---@return function
function fnn.optim.WarmupCosine(peak, warmup, total, options) end

---Up to peak in warmup steps, there for stable steps, down to floor in decay
---steps (Hu et al. 2024, arXiv:2404.06395).
---floor: number = 0
---shape: string = "linear"    of the way down; or "cosine", "sqrt"
---@param peak number
---@param warmup number
---@param stable number
---@param decay number
---@param options? table
---@return function
function fnn.optim.WSD(peak, warmup, stable, decay, options) end

---The product of schedules: the first gives the rate, the others factors.
---@param ... function
---@return function
function fnn.optim.Chained(...) end

---One after the other; each milestone is the step at which the next begins, with
---a step 0 of its own.
---@param schedules function[]
---@param milestones integer[]
---@return function
function fnn.optim.Sequential(schedules, milestones) end

---Times factor when the value that it is told, s:update(value), has not become
---better for more than patience times. s(step) is the rate now. s:state_dict()
---and s:load_state_dict(state) keep it, s:reset() starts again. fnn.fit tells it
---the loss of each epoch: of the validation, if there is one.
---mode: string = "min"              or "max"
---factor: number = 0.1
---patience: integer = 10
---threshold: number = 1e-4          how much better counts
---threshold_mode: string = "rel"    as a share of the best, or "abs"
---cooldown: integer = 0             values to ignore after a change
---floor: number = 0                 the lowest rate
---eps: number = 1e-8                a change smaller than this is not made
---@param base number
---@param options? table
---@return table
function fnn.optim.ReduceOnPlateau(base, options) end

fnn.data = {}

---Items along the first dimension of tensors of one length. A field may be
---{ tensor, dtype = , scale = }: converted and scaled as it is read.
---@param ... fnn.Tensor|table
---@return fnn.Dataset
function fnn.data.TensorDataset(...) end

---Windows of a sequence of ids (count), u8, i32 or i64, to learn what comes
---next: an item is length ids, and the same moved on by one; both i64.
---step: integer = 1          from one window to the next
---@param ids fnn.Tensor
---@param length integer
---@param options? table
---@return fnn.Dataset
function fnn.data.Windows(ids, length, options) end

---The bytes of a string, u8 (n).
---@param s string
---@return fnn.Tensor
function fnn.data.bytes(s) end

---1797 real handwritten digits of 8 by 8 pixels, (1, 8, 8) from 0 to 1, and
---their labels. In the library.
---@return fnn.Dataset
function fnn.data.digits() end

---Two IDX files, plain or .gz, as MNIST has them: images (1, h, w) from 0 to 1.
---flatten: boolean = false    rows of h * w instead
---@param images string
---@param labels string
---@param options? table
---@return fnn.Dataset
function fnn.data.from_idx(images, labels, options) end

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

---The items with these ids as a batch, a tensor a field; or that field alone,
---without reading the others.
---@param ids fnn.Tensor|integer[]
---@param field? integer
---@return fnn.Tensor
---@return fnn.Tensor
function Dataset:items(ids, field) end

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
---device: string                where batches go; the default device if left out
---pin_memory: boolean = true    with prefetch, batches for a card are read into
---                              pinned memory and copied while it computes
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

---The cursor, and what decides which items a batch has: how many there are,
---batch_size, seed, shuffle, drop_last. What was read ahead is not in it.
---@return table
function Loader:state_dict() end

---Goes to that cursor; raises for a loader whose batches have other items.
---@param state table
---@return fnn.Loader
function Loader:load_state_dict(state) end

---Raises what load_state_dict would, and changes nothing.
---@param state table
function Loader:check_state_dict(state) end

---The images in a folder that has a folder for each class, as torchvision's: all
---PNG and JPEG files in it and in folders below it. Items are (3, h, w) from 0
---to 1, and class ids in the sorted order of the folders' names, which
---dataset.classes has, id 0 first, and parts of the dataset have too. A file is
---read and decoded when its item is: labels, splits and subsets decode nothing.
---Names that begin with a dot, files that are no images and links to folders
---(below a class) are left out; a class without an image is an error, and so is
---an image of a kind that is not read (.gif, .webp, .bmp, .tif, .ppm).
---size: integer[]            { height, width } to resize to, bilinear with
---                           antialias; left out, all must be as the first is
---gray: boolean = false      one channel, luma, instead of three
---one_hot: boolean = false   rows of 0 and 1 instead of ids
---@param path string
---@param options? table
---@return fnn.Dataset
function fnn.data.ImageFolder(path, options) end

---One field (2) of all items, without reading the others.
---@param field? integer
---@return fnn.Tensor
function Dataset:labels(field) end

---The items, then all of them again mirrored, with their labels: the last dim of
---the first field runs backwards. In items of one dim, each run of width does:
---rows of pixels, channel after channel.
---@param width? integer
---@return fnn.Dataset
function Dataset:flip_horizontal(width) end

---A source of your own, from a table with
---    start(self, epoch)    goes to the beginning of an epoch
---    next(self)            the next batch, a tensor a field; nil at the end
---    skip(self, n)         if there: leaves out up to n batches and returns how
---                          many; without it they are read and thrown away
---    count                 if there: batches in an epoch
---    match                 if there: values by name that a state_dict has too,
---                          and that must be the same when it is loaded
---The cursor, iteration and state are added. Where next raises, the cursor
---stays, and the next call starts there again.
---@param functions table
---@return fnn.Source
function fnn.data.source(functions) end

---Batches of a file of JSON objects, one a line, plain or in gzip, read as they
---are asked for: memory holds one batch, and the lines that shuffle draws from.
---A field of an object is a number, or an array of numbers of the same shape in
---every line. A line that does not fit is an error with its number.
---input: string|table           the field's name, or { name, dtype = "f32",
---                              shape = }: of this shape, from a flat array
---target: string|table          the same; left out, batches are inputs alone
---batch: integer = 1            items a batch, also batch_size
---shuffle: integer = 0          how many lines each item is drawn from
---seed: integer = 0             of the draws
---drop_last: boolean = false    leaves out a last batch that is not full
---device: string                where batches go; the default if left out
---reuse: boolean = false        next fills the tensors it gave before: for a
---                              loop that keeps none of them
---@param path string
---@param options table
---@return fnn.Source
function fnn.data.JsonlStream(path, options) end

---@class fnn.Source
local Source = {}

---The next batch, or nothing at the end of the epoch.
---@return fnn.Tensor
---@return fnn.Tensor
function Source:next() end

---Goes to a batch of an epoch; both count what has been done, so from 0.
---@param epoch integer
---@param batch? integer
---@return fnn.Source
function Source:start(epoch, batch) end

---The epoch, and how many of its batches have been given.
---@return integer
---@return integer
function Source:cursor() end

---Leaves out n batches, or those that are left; returns how many.
---@param n integer
---@return integer
function Source:skip(n) end

---Iterates over the batches of epoch n; without n over what is left of the
---present one, or over the next. `for x, y in source do` does so too, and moves
---on to the next epoch at the end.
---@param n? integer
---@return function
function Source:epoch(n) end

---Its place: { epoch =, batch = } and what must match; an entry of
---fnn.save_training.
---@return table
function Source:state_dict() end

---Goes to that place. A source of another seed, shuffle or batch is an error.
---@param state table
---@return fnn.Source
function Source:load_state_dict(state) end

---Raises for a state of another seed, shuffle or batch, and changes nothing.
---@param state table
function Source:check_state_dict(state) end

---Leaves out n batches, or those that are left; returns how many.
---@param n integer
---@return integer
function Loader:skip(n) end

---Its batches as a source, the same as data.DataLoader(dataset, options).
---@param options? table
---@return fnn.Loader
function Dataset:stream(options) end

---A function that does what f does. On the CPU it is f. On a card it calls f
---the first times, then records a call, and from then on replays it: f itself
---runs no more. Tensors among the arguments are copied to where the recording
---reads them, from the CPU too; the results are always the same tensors, with
---new values. Random numbers go on, and optimizers in f take their rates and
---counts of steps as they are at each call. For arguments of other shapes, as
---the last batch of an epoch, f is called. When a generator is seeded anew, or
---an optimizer gets other parameters or loads a state, the step is recorded
---anew. All that f needs each time must be in it (zero_grad too); what it reads
---from outside must stay where it is: write into a tensor (copy_), do not
---replace it. In f, reading a value (item, totable), copying from or to the
---host, seeding, a scheduler, an average's update, a GradScaler and an optimizer
---written in Lua raise: call them outside. An error ends the recording; the
---gradients then have no values that mean anything.
---warmup: integer = 2    calls of f before the recording
---device: string         the card; if left out, the default device, or where
---                       the first argument on a card is
---@param f function
---@param options? table
---@return function
function fnn.graph_step(f, options) end

---A network without layers.
---seed: integer    of its first weights and of the order of the data
---@param options? table
---@return fnn.Network
function fnn.Network(options) end

---@class fnn.Network
local Network = {}

---How many numbers an item has. Comes first.
---@param n integer
---@return fnn.Network
function Network:input_size(n) end

---Adds a layer of n units with "relu", "sigmoid", "tanh", "softmax" or "linear".
---@param n integer
---@param activation? string
---@return fnn.Network
function Network:dense(n, activation) end

---"mse", "bce" (behind "sigmoid") or "cross_entropy" (behind "softmax", or
---"linear" for outputs that are logits). Targets of cross_entropy are ids or
---rows of probabilities.
---@param name string
---@return fnn.Network
function Network:loss(name) end

---"sgd", "adam" or "adamw", with the options of optim.SGD and so on.
---@param name string
---@param options? table
---@return fnn.Network
function Network:optimizer(name, options) end

---Trains on rows x with targets y; options and result are those of fnn.fit.
---Where its option device puts the network, it stays; the methods below copy
---their rows there.
---@param x fnn.Tensor|table
---@param y fnn.Tensor|table
---@param options? table
---@return table
function Network:fit(x, y, options) end

---The same; f(epoch, loss) is called after each epoch, and ends the training by
---returning false.
---@param x fnn.Tensor|table
---@param y fnn.Tensor|table
---@param options table
---@param f function
---@return table
function Network:fit_with(x, y, options, f) end

---The outputs for rows or for one item. Raises when the size is wrong.
---@param x fnn.Tensor|table
---@return fnn.Tensor
function Network:forward(x) end

---The same, but nil and a message when the size is wrong.
---@param x fnn.Tensor|table
---@return fnn.Tensor|nil
---@return string
function Network:predict(x) end

---The share of rows that it gets right: the largest output, or 0.5 for one.
---@param x fnn.Tensor|table
---@param y fnn.Tensor|table
---@return number
function Network:accuracy(x, y) end

---How often each actual class was taken for each: counts (actual, predicted).
---@param x fnn.Tensor|table
---@param y fnn.Tensor|table
---@return fnn.Tensor
function Network:confusion_matrix(x, y) end

---Writes layers, weights and loss; not what the optimizer remembers.
---@param path string
---@return fnn.Network
function Network:save_json(path) end

---Reads what save_json wrote into a network without layers.
---@param path string
---@return fnn.Network
function Network:load_json(path) end

fnn.text = {}

---How ids are chosen: sampler(logits, ids) is an id for logits (vocabulary) of
---any float dtype and device, or for logits (rows, vocabulary) an i64 tensor of
---one for each row. ids, which may be left out, are those so far, a list or a
---tensor, or one of these for each row; they are looked at where there is a
---penalty. -inf bans an id; NaN, inf, and nothing but -inf raise. The options
---are applied in the order below. Nothing is sorted: the time is linear in the
---vocabulary. Of equal logits the one of the lowest id is the larger.
---callback: function                first, of logits and ids: the logits are the
---                                  call's own, on the host, to edit, or others
---                                  are returned
---repetition_penalty: number = 1    1 or more: divides a positive logit of an id
---                                  in ids, multiplies a negative one, once
---frequency_penalty: number = 0     taken off for each time an id is in ids
---presence_penalty: number = 0      taken off once for an id in ids
---temperature: number = 1           divides logits; 0 chooses the largest
---top_k: integer                    so many of the largest stay
---top_p: number = 1                 the fewest of the largest stay, one or more,
---                                  that have this share of the probability
---                                  that top_k left
---min_p: number = 0                 what has this share of the largest
---                                  probability stays
---seed: integer                     of a generator of its own, or
---generator: Generator              where its numbers come from: one a choice,
---                                  none where the largest is chosen
---@param options? table
---@return fnn.Sampler
function fnn.text.Sampler(options) end

---@class fnn.Sampler
local Sampler = {}

---The options that differ from the defaults, but for seed and generator.
---@return table
function Sampler:options() end

---            -> integer[]
---The new ids behind a prompt: a list of ids or a tensor (length). For a batch,
---a list of prompts of one length or a tensor (rows, length), a list for each.
---max_tokens: integer = 100    as many at most
---sampler: Sampler|function    of logits (vocabulary) and the list of all ids;
---                             the largest logit if not given
---cache: any                   what has clear(), truncate(n) and, by #, the
---                             number of ids it holds: it is cleared, the prompt
---                             is read once, then an id a step; without one all
---                             is read for each id
---callback: function           called with each id (and the place of its
---                             prompt); ends it by returning false, that id
---                             included. It may yield
---stop_ids: integer[]          end it, and are left out
---stop: table                  a list of sequences of ids, which do so too; ids
---                             that may begin one are held back until that is
---                             known
---@param model fnn.Module|function
---@param prompt table|fnn.Tensor
---@param options? table
function fnn.text.generate(model, prompt, options) end

---          -> function
---An iterator over the same ids, each made when it is asked for:
---for id in text.stream(model, prompt) do ... end
---@param model fnn.Module|function
---@param prompt table|fnn.Tensor
---@param options? table
function fnn.text.stream(model, prompt, options) end

---A model that is fed and asked in turns. #decoder is the number of its ids.
---cache: any                   as generate's: a turn then reads what is new
---sampler: Sampler|function    the largest logit if not given
---@param model fnn.Module|function
---@param options? table
---@return fnn.Decoder
function fnn.text.Decoder(model, options) end

---@class fnn.Decoder
local Decoder = {}

---Adds ids, to be read by the next next.
---@param ids integer|integer[]|fnn.Tensor
---@return fnn.Decoder
function Decoder:feed(ids) end

---Reads what has not been read and chooses the next id, which is added. An error
---of the model leaves ids and cache as they were.
---@param sampler? fnn.Sampler|function
---@return integer
function Decoder:next(sampler) end

---All ids so far, fed and chosen.
---@return integer[]
function Decoder:ids() end

---Forgets them, and clears the cache.
---@return fnn.Decoder
function Decoder:reset() end

---search(step, prompt) is the list of ids behind the prompt that is found to be
---the most probable, and its score: the logarithm of its probability over
---max(1, length) ^ length_penalty. step is a function of a list of ids, prompt
---included, that gives logits (vocabulary), a tensor or a list of numbers; -inf
---is what may not follow.
---width: integer = 4             sequences that are kept; 1 is greedy
---length_penalty: number = 1     the exponent; a larger one favours long ones
---eos: integer                   the id that ends a sequence; it counts in its
---                               probability, and is in neither the result nor
---                               the length
---max_tokens: integer = 100      as many at most
---batched: boolean = false       step gets all live sequences, an i64 tensor
---                               (n, length), and gives logits (n, vocabulary)
---@param options? table
---@return function
function fnn.text.BeamSearch(options) end

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

---An image in PNG or JPEG, u8 (height, width, channels). A JPEG image is turned
---upright, as its Exif data say, and CMYK becomes RGB; a file that ends early or
---is damaged is an error.
---channels: integer = 0    1 grey, 2 with alpha, 3 RGB, 4 RGBA; 0 as it is
---@param path string
---@param options? table
---@return fnn.Tensor
function fnn.io.read_image(path, options) end

---Whether this build reads JPEG, by libjpeg.
---@return boolean
function fnn.io.has_jpeg() end

---Writes u8 (height, width) or (height, width, channels).
---@param path string
---@param image fnn.Tensor
---@param texts? table
function fnn.io.write_png(path, image, texts) end

---The bytes of the file that write_png would write.
---@param image fnn.Tensor
---@param texts? table
---@return string
function fnn.io.encode_png(image, texts) end

---A whole file.
---@param path string
---@return string
function fnn.io.read_text(path) end

---Writes a whole file.
---@param path string
---@param text string
function fnn.io.write_text(path, text) end

---Makes a folder, and those it is in; one that is there is left as it is.
---@param path string
function fnn.io.make_folder(path) end

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

---Reads the command line of the script: the global arg, or a list of words. The
---table has the value of each option by its name, its default where none is
---given. `--name value`, `--name=value`, `name=value` and, for options with
---short, `-n value` are the same; a dash in a name is as good as `_`. A word
---`--` ends the options.
---
---The spec: what the script does, if it is said, then `{ name, default, text }`
---for each option. The default's type is that of the value: an integer, a
---number, a string, a boolean (`--name`, `--no-name`) or a list of what may be
---chosen, the first if nothing is said. Without a default it is a string, or
---what type says, and nil unless given. Other keys of an option:
---required: boolean     raises if it is not given; it has no default
---short: string         a letter: -e
---min: number           the least that is taken
---max: number           the most
---type: string          "integer", "number" or "string"
---value: string         what stands for the value in the help: "FILE"
---The key words of the spec says which words without dashes there may be, "IN
---OUT", "FILE...", "[FILE...]"; they are at 1 and on. Without it such a word
---is wrong.
---
---Every script has `--device`, `--threads` and `--seed`, which take effect at
---once (see fnn.set_default_device, fnn.threads, fnn.manual_seed); device,
---threads and seed in the table tell what is in force. A spec that lists them
---gives them defaults. `--help` prints the options and ends the script with 0,
---by os.exit of the host. `--completion bash`, `zsh` or `fish` prints what
---makes that shell complete the options: `eval "$(./train.lua --completion
---bash)"`.
---
---A wrong word raises an object whose tostring is one line: interpreters print
---it without a traceback and end with 1, a host may catch it. With a list of
---words that is not arg nothing is printed or ended: a wrong word raises a
---string, and for `--help` and `--completion` the results are nil and the text.
---@param spec table
---@param words? string[]
---@return table
function fnn.cli(spec, words) end

fnn.plot = {}

---Lines through numbers: plot.lines { train, { y = val, label = "val" } }. A
---series is a list, a tensor (n), or { x =, y =, label =, color =, width =,
---dash =, shape =, size =, alpha = }; x counts from 1 without. With line = false
---it is points alone.
---title: string       above
---xlabel: string      below the x axis
---ylabel: string      beside the y axis
---xscale: string = "linear"    or "log", where numbers up to 0 are gaps
---yscale: string = "linear"    or "log"
---xlim: table         { low, high } that the axis shows
---ylim: table         { low, high }
---width: integer = 800     pixels
---height: integer = 500    pixels
---@param series table
---@return fnn.Plot
function fnn.plot.lines(series) end

---Points: a series is { x =, y =, label =, color =, size =, shape =, alpha = }
---or a tensor (n, 2); with line = true it is a line as of lines. Options as of
---lines, and
---background: table    { matrix, extent = { x0, x1, y0, y1 }, colors = } drawn
---                     behind, row 1 at y0: numbers, or ids of the series
---shape, of a series: circle, square, triangle, diamond, cross or plus.
---@param series table
---@return fnn.Plot
function fnn.plot.scatter(series) end

---How many of the numbers of each series lie in each of equal bins. Options as
---of lines, and
---bins: integer       how many; without, about 2 n^(1/3) with round ends
---labels: string[]    a name for each series
---density: boolean    as shares, of an area of 1
---@param values table
---@return fnn.Plot
function fnn.plot.histogram(values) end

---Images (n, height, width) or (n, channels, height, width), floats from 0 to 1
---or bytes, side by side with texts under them: plot.images { x, labels = ids }.
---labels: table|Tensor    a text or number for each
---wrong: table        true, or what it should be, for those to mark in red
---columns: integer    how many in a row
---scale: integer      how many times larger than they are
---title: string       above
---width: integer      pixels; images are made smaller to fit
---height: integer     pixels
---@param images table
---@return fnn.Plot
function fnn.plot.images(images) end

---A matrix of counts (true class, predicted class), as metrics.confusion makes;
---colors are shares of the row.
---classes: string[]   names of the classes; without, their ids
---title: string       above
---xlabel: string = "predicted"    below
---ylabel: string = "true"         beside
---colors: string = "blues"        as of heatmap
---width: integer      pixels
---height: integer     pixels
---@param counts table
---@return fnn.Plot
function fnn.plot.confusion(counts) end

---A matrix (rows, columns) as colors: weights, attention. Row 1 is at the top;
---with extent at y0, the bottom.
---xlabels: string[]   names of the columns
---ylabels: string[]   names of the rows
---extent: table       { x0, x1, y0, y1 } that it covers, for axes of numbers
---colors: string = "viridis"    "diverging" around 0, "blues" or "grey"
---range: table        { low, high } that the ends of the colors stand for
---values: boolean     whether numbers are written into the cells
---title: string       above
---xlabel: string      below
---ylabel: string      beside
---width: integer      pixels
---height: integer     pixels
---@param matrix table
---@return fnn.Plot
function fnn.plot.heatmap(matrix) end

---Several plots in one picture: plot.grid { a, b, c, columns = 2 }.
---columns: integer    how many in a row
---title: string       above all
---width: integer      pixels of all
---height: integer     pixels of all
---@param plots table
---@return fnn.Plot
function fnn.plot.grid(plots) end

---@class fnn.Plot
local Plot = {}

---Writes a PNG, drawn by cairo where it is installed.
---plain: boolean = false    drawn without cairo
---@param path string
---@param options? table
function Plot:save(path, options) end

---Prints it, to the terminal or to what has a method write: braille dots, blocks
---in colors or shades, a table; in kitty, Ghostty, iTerm2 and WezTerm the
---picture itself. Colors only on a terminal, and not where NO_COLOR is set.
---width: integer      columns; without, the terminal's, or 80
---height: integer     lines, of lines and points 20
---color: boolean|string = "auto"      true, false, "256" or "true" (24 bits)
---picture: boolean|string = "auto"    false, "kitty" or "iterm"
---@param file? userdata
---@param options? table
function Plot:print(file, options) end

---The picture, u8 (height, width, 3).
---plain: boolean = false    drawn without cairo
---@param options? table
---@return fnn.Tensor
function Plot:image(options) end

---Writes a run that is to go on: what state has by name. Models, optimizers,
---averages, schedulers, schedules with state, GradScalers and loaders are kept
---by their state_dict, generators and tensors as they are, and plain values (a
---step, the sizes of the model) as JSON; the default generator, of which dropout
---draws, too. A loader's state is the next batch that it gives, whatever it has
---read ahead; anything with start and cursor, as a source of batches, is kept by
---its cursor. The file is the old one or the whole new one, whenever the
---process is killed. What is written is never gathered: it takes the memory of
---the largest tensor at most.
---@param path string
---@param state table
function fnn.save_training(path, state) end

---Fills the models, optimizers and so on in state from such a file, each by its
---name, and the default generator; returns the plain values, which state leaves
---out, and the tensors that nothing was given for. A file of weights alone is
---refused. All is checked before anything is changed: when an entry does not fit
---(a name, a shape, another kind of optimizer, a loader with other batches)
---everything is as it was. An object of your own needs state_dict and
---load_state_dict; its check_state_dict(state), if it has one, raises for what
---does not fit; without one its load_state_dict comes before the others', and
---takes back its own state_dict when something fails.
---partial: boolean = false   leaves what state does not name, and the generator
---@param path string
---@param state? table
---@param options? table
---@return table
function fnn.load_training(path, state, options) end

---What is in a folder, which is made if it is not there. Temporary files of
---saves that were killed are removed. A damaged file is passed over with a
---warning. #cp is how many there are.
---keep: integer = 3       how many of the last steps are kept
---best: string            the value by which one is the best, and kept as well:
---                        "val_loss"; it is read from the files, also by a new
---                        process; a save without it, or of nan, is no best
---mode: string = "min"    or "max": which of two values is better
---@param folder string
---@param options? table
---@return fnn.Checkpoints
function fnn.checkpoints(folder, options) end

---@class fnn.Checkpoints
local Checkpoints = {}

---Saves the run as fnn.save_training does, with plain values beside it, of which
---step is one that must be there (in either); then removes what is not to be
---kept. Returns the path. A step that is before the last one raises: that is
---another run.
---@param state table
---@param values? table
---@return string
function Checkpoints:save(state, values) end

---Fills state from the newest file, as fnn.load_training does, and returns the
---plain values; nil in a folder without one. Plain values in state are
---overlooked, so that the same table serves to save.
---@param state table
---@param options? table
---@return table
function Checkpoints:resume(state, options) end

---The path of the file with the highest step, and its plain values; or nil.
---@return string
---@return table
function Checkpoints:latest() end

---The same of the best one; of several that are as good, the first.
---@return string
---@return table
function Checkpoints:best() end

---The paths of all, by rising steps.
---@return string[]
function Checkpoints:list() end

---Lets the script end by itself what Ctrl-C would break off: at the next Ctrl-C
---f is called once, between two instructions of Lua (an op that runs is done
---first), and the script goes on. f takes a note, `stop = true`, by which the
---loop ends where it has something whole to save. A second Ctrl-C ends the
---process. nil for f takes it back; the function that was there before is
---returned, nil if it has been called. In a host's state f answers to the token
---with which the host cancels work: the first time it is called instead, the
---second time work is cancelled. In Lua's own program Ctrl-C is Lua's.
---@param f function
---@return function
function fnn.on_interrupt(f) end

---Calls f and returns where its time went, and what f returned. print(p) shows
---a row for each operation, forward, backward and in the optimizer's step: how
---often it was called, milliseconds, microseconds each, its share, the bytes of
---its operands and results (0 of what writes in place), the bytes of storage
---that it made, and for products, convolutions and attention billions of
---floating point operations a second. The time of an operation is
---that of its kernels. The row 'outside ops' is all other time: Lua, checks,
---allocation, recording the graph, collecting. On a card each kernel is waited
---for, so that its time is its own: nothing overlaps, and the whole takes
---longer than it would. One profile is taken at a time.
---by: string = "op"     or "module": a row for each module of a model, by its
---                      path; a module's own operations, without its children's
---trace: string         a file for Chrome's events, which ui.perfetto.dev shows
---@param f function
---@param options? table
---@return fnn.Profile
---@return any
function fnn.profile(f, options) end

---@class fnn.Profile
local Profile = {}

---The n rows that took longest as text; all of them without n, as tostring(p).
---p.rows is a list of tables with the fields op (or module), pass, calls,
---kernels, ms, us, share (of 1), bytes, made, flops and gflops; p.ms and so on
---are the same columns as lists. p.total and p.outside are milliseconds.
---@param n? integer
---@return string
function Profile:table(n) end

---The same profile by "op" or by "module".
---@param by string
---@return fnn.Profile
function Profile:sorted_by(by) end

---Who holds the memory that is live on a device, the largest first: parameters,
---by their path in the model, gradients, the state of optimizers, buffers, what
---graphs keep for backward, by operation, and variables of Lua, by the name of
---the variable that leads to the tensor. What several hold is counted once, for
---the first of these. The rest, which Lua does not reach, is a row of its own:
---batches that a loader has ready, weights that were packed, scratch. Garbage is
---collected first, and all values of Lua are walked through, which takes a
---while.
---model: Module       whose paths name the parameters; else those of all models
---device: string      the default device, if none is named
---@param options? table
---@return fnn.Holders
function fnn.memory_holders(options) end

---@class fnn.Holders
local Holders = {}

---Groups, and the n largest of each (5), as text; tostring(h) does that too.
---h.rows is a list of tables with the fields group, name, bytes and count (of
---storages), h.groups has the bytes of each group by its name, h.live is their
---sum.
---@param n? integer
---@return string
function Holders:table(n) end

fnn.graph = {}

---The graph behind x as text for Graphviz: operations with the shape of their
---result and the bytes that they keep for backward, and parameters.
---names: Module               whose paths name the parameters
---direction: string = "BT"    or "TB", "LR", "RL": where the result is drawn
---@param x fnn.Tensor
---@param options? table
---@return string
function fnn.graph.dot(x, options) end

---Trains the model and returns what was seen in each epoch that ran to its end:
---tables of epoch, loss, lr, val_loss and the metrics by their names, those of
---the validation as val_NAME. The loss is a mean over the items, a metric is of
---all items. A model in evaluation is put in training, one in training is left
---as it is: parts of it may be in evaluation, so that a batch norm keeps its
---statistics. It ends in evaluation, as by model:eval(). A mean loss that is
---infinite or nan raises.
---loss: function                 of outputs and targets: nn.cross_entropy; the
---                               mean over a batch
---epochs: integer = 1
---batch_size: integer = 32       of tensors and datasets
---shuffle: boolean = true        the same
---seed: integer = 0              of their order
---targets: integer = 1           how many tensors of a batch are targets
---optimizer: Optimizer|function  or what makes one: optim.Adam; AdamW without
---lr: number                     for an optimizer that is made
---schedule: function             the rate by the step, counted from 0;
---                               ReduceOnPlateau follows what is monitored
---schedule_by: string = "step"   or "epoch"
---accumulate: integer = 1        batches that make one step, as if they were one
---clip: number                   the longest gradient
---clip_value: number             the largest number in a gradient
---autocast: boolean|string       true is "bf16"; "f16" has a GradScaler
---scaler: GradScaler             another one
---average: Ema|SWA               follows the weights, and is what is validated
---validation: Dataset            what to evaluate on after each epoch; whatever
---                               data may be
---metrics: table                 functions of outputs and targets by name, names
---                               of metrics ({ "accuracy" }), metrics.stream,
---                               objects with add(outputs, targets), value() and
---                               reset()
---monitor: string                what tells how good it is: val_loss, or loss
---                               without a validation
---mode: string                   "min" or "max", if the name does not tell
---early_stopping: table|integer  how many epochs without a better one end it;
---                               patience = 3, min_delta = 0, monitor, mode,
---                               restore_best = false (its weights)
---checkpoints: table|string      the folder of fnn.checkpoints, or what it gave;
---                               folder, every (steps; an epoch's end always is
---                               one), keep = 3, best (true, or a name), mode
---resume: boolean = false        goes on from the last checkpoint, if any
---on_epoch: function             f(epoch, stats, run); false ends the training
---on_batch: function             f(step, loss, run) after each step, with the
---                               loss of the epoch so far; false ends it
---log: table                     what has scalar(name, value, step):
---                               fnn.log.tensorboard(folder)
---log_every: integer             steps between two batch_loss in it
---verbose: boolean|function      a line an epoch on the program's stderr (the
---                               log of another host), or to a function
---device: string                 where model and batches go; if left out,
---                               batches go to where the model is
---progress: boolean = true       whether the program's bar is shown
---@param model fnn.Module
---@param data fnn.Dataset|fnn.Loader|table|function
---@param options table
---@return fnn.History
function fnn.fit(model, data, options) end

---@class fnn.History
local History = {}

---One value an epoch, nan where there was none: what a plot takes. A history
---knows stopped ("early_stopping", "on_epoch", "on_batch", "interrupted", or nil
---if all epochs ran), steps, best_epoch of early stopping, and partial: what was
---seen of an epoch that was ended, and of how many batches.
---@param name string
---@return table
function History:column(name) end

---The mean loss and metrics over the data, in evaluation and without gradients.
---loss: function
---metrics: table
---targets: integer = 1
---batch_size: integer = 32
---autocast: boolean|string
---device: string           where batches go; if left out, to where the model is
---@param model fnn.Module
---@param data fnn.Dataset|fnn.Loader|table|function
---@param options? table
---@return table
function fnn.evaluate(model, data, options) end

fnn.metrics = {}

---The share of rows whose class is the target's.
---threshold: number = 0.5  of one output a row; 0 for logits
---dim: integer = 2         the dimension of the classes; -1 if they are last
---ignore_index: integer    rows with this target do not count
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number
function fnn.metrics.accuracy(outputs, targets, options) end

---The share of rows (n, classes) whose target is among the k highest; of equal
---ones the lower id is first, as in argmax.
---k: integer = 5
---ignore_index: integer
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number
function fnn.metrics.top_k(outputs, targets, options) end

---The share of the rows taken for a class that are of it; 0 where none was.
---average: string          "binary", of the positive class, if left out and
---                         there are two classes; else "macro", the mean over
---                         the classes that are in targets or outputs;
---                         "weighted" by the rows of each; "micro", of all
---                         counts; "samples", the mean over rows, with
---                         multilabel; "none", a list of the classes
---positive: integer = 1    the positive class
---multilabel: boolean = false    a row has any number of labels: outputs and
---                         targets are (n, labels), targets 0 or 1
---threshold: number = 0.5  of one output a row; 0 for logits
---dim: integer = 2         the dimension of the classes; -1 if they are last
---ignore_index: integer    rows with this target do not count
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number|number[]
function fnn.metrics.precision(outputs, targets, options) end

---The share of the rows of a class that were taken for it; 0 where none is.
---average: string          "binary", of the positive class, if left out and
---                         there are two classes; else "macro", the mean over
---                         the classes that are in targets or outputs;
---                         "weighted" by the rows of each; "micro", of all
---                         counts; "samples", the mean over rows, with
---                         multilabel; "none", a list of the classes
---positive: integer = 1    the positive class
---multilabel: boolean = false    a row has any number of labels: outputs and
---                         targets are (n, labels), targets 0 or 1
---threshold: number = 0.5  of one output a row; 0 for logits
---dim: integer = 2         the dimension of the classes; -1 if they are last
---ignore_index: integer    rows with this target do not count
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number|number[]
function fnn.metrics.recall(outputs, targets, options) end

---The harmonic mean of precision and recall, 0 where neither has any.
---average: string          "binary", of the positive class, if left out and
---                         there are two classes; else "macro", the mean over
---                         the classes that are in targets or outputs;
---                         "weighted" by the rows of each; "micro", of all
---                         counts; "samples", the mean over rows, with
---                         multilabel; "none", a list of the classes
---positive: integer = 1    the positive class
---multilabel: boolean = false    a row has any number of labels: outputs and
---                         targets are (n, labels), targets 0 or 1
---threshold: number = 0.5  of one output a row; 0 for logits
---dim: integer = 2         the dimension of the classes; -1 if they are last
---ignore_index: integer    rows with this target do not count
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number|number[]
function fnn.metrics.f1(outputs, targets, options) end

---The area under the ROC curve: how often a positive row has a higher score than
---another, a tie counting half. Of several classes each is held against all
---others. nan where all rows are of one class; such a class is not in the mean.
---softmax: boolean = true     of three columns and more: outputs are logits
---average: string = "macro"   or "weighted", "none"
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number|number[]
function fnn.metrics.auc(outputs, targets, options) end

---How often each actual class was taken for each: counts (actual, predicted).
---classes: integer         how many there are, if the outputs do not tell
---threshold: number = 0.5  of one output a row; 0 for logits
---dim: integer = 2         the dimension of the classes; -1 if they are last
---ignore_index: integer    rows with this target do not count
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.metrics.confusion(outputs, targets, options) end

---The id of each row's class.
---threshold: number = 0.5
---dim: integer = 2
---@param outputs fnn.Tensor
---@param options? table
---@return fnn.Tensor
function fnn.metrics.classes(outputs, options) end

---exp of the mean cross_entropy of logits and ids: of the language model's loss
---alone, whatever else is added to the one that is trained.
---dim: integer = 2               the dimension of the classes
---ignore_index: integer = -100
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param options? table
---@return number
function fnn.metrics.perplexity(outputs, targets, options) end

---The mean of the differences' absolute values. Shapes must agree.
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@return number
function fnn.metrics.mae(outputs, targets) end

---The mean of the squared differences.
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@return number
function fnn.metrics.mse(outputs, targets) end

---Its square root.
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@return number
function fnn.metrics.rmse(outputs, targets) end

---The share of the targets' variance that outputs explain; the mean over
---columns. Where targets are all the same 1 if outputs are they, else 0; of one
---row nan.
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@return number
function fnn.metrics.r2(outputs, targets) end

---Counts a metric over batches, exactly as over the whole set: on the CPU to the
---same bits. metric is a name, a function of this library with its options, or a
---function of outputs and targets, whose mean counts each row once.
---@param metric string|function
---@param options? table
---@return fnn.MetricStream
function fnn.metrics.stream(metric, options) end

---@class fnn.MetricStream
local MetricStream = {}

---Counts a batch. A function of your own is given further targets, too.
---@param outputs fnn.Tensor
---@param targets fnn.Tensor
---@param ... fnn.Tensor
---@return fnn.MetricStream
function MetricStream:add(outputs, targets, ...) end

---The metric of all that was added since the last reset.
---@return number|number[]|fnn.Tensor
function MetricStream:value() end

---Begins anew.
---@return fnn.MetricStream
function MetricStream:reset() end

---Another one of the same metric and options, with nothing in it.
---@return fnn.MetricStream
function MetricStream:fresh() end

---The name of the metric.
---@return string
function MetricStream:name() end

---What has been counted: numbers and tensors by name.
---@return table
function MetricStream:state_dict() end

---Goes on from there.
---@param state table
function MetricStream:load_state_dict(state) end

fnn.log = {}

---Appends to a file of lines of JSON, {"step":100,"time":1767225600.25,
---"loss":0.5}; the time is that of the call, in seconds since 1970. The folder
---is made. A last line that a killed run left half is taken away. What is no
---finite number, which JSON has no word for, is "NaN", "Infinity" or
---"-Infinity". Images are PNG files in a folder beside ("log-images"), which
---the line names.
---resume: integer    a run that goes on from this step: drops later lines
---@param path string
---@param options? table
---@return fnn.Log
function fnn.log.jsonl(path, options) end

---Writes a new event file into the folder, which is made, for TensorBoard
---(`tensorboard --logdir`). A slash in a name makes groups. A run that goes on
---has a file more in the same folder, and its curves go on. Scalars are kept in
---32 bits.
---resume: integer    a run that goes on from this step: what other files have
---  from it on does not count
---@param folder string
---@param options? table
---@return fnn.Log
function fnn.log.tensorboard(folder, options) end

---A log that writes to each of them, and closes them. The first error is raised
---when all had their turn.
---@param logs fnn.Log[]
---@return fnn.Log
function fnn.log.all(logs) end

---@class fnn.Log
local Log = {}

---A number, or a tensor of one element, which is read: on a card that waits.
---@param name string
---@param value number|fnn.Tensor
---@param step integer
function Log:scalar(name, value, step) end

---Numbers by name, as scalar: one line of JSON.
---@param values table
---@param step integer
function Log:scalars(values, step) end

---A text in UTF-8; TensorBoard takes it as Markdown. The step is 0 if it is
---left out.
---@param name string
---@param text string
---@param step? integer
function Log:text(name, text, step) end

---An image (height, width) or (channels, height, width), floats from 0 to 1 or
---bytes; of 1 to 4 channels: grey, with alpha, RGB, RGBA. Of several, (n,
---channels, height, width), each is one of its own.
---@param name string
---@param image fnn.Tensor
---@param step integer
function Log:image(name, image, step) end

---How the elements are spread: counts in 64 equal bins from the least to the
---largest, and sums. Elements that are nan or infinite are counted apart
---("nonfinite").
---@param name string
---@param x fnn.Tensor
---@param step integer
function Log:histogram(name, x, step) end

---Closes the file; what is said later raises. Closing again does nothing.
function Log:close() end

---Opens a prompt in the midst of a script, until Ctrl-D, and returns nothing.
---env is the table of globals there, the script's own if it is left out: give
---`setmetatable({ model = model }, { __index = _G })` to look at locals.
---@param env? table
function fnn.repl(env) end

return fnn
