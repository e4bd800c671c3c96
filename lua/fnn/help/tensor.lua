-- tensor.lua - help on making tensors, reading them, and their shapes.
return [[
# Indexing

Places count from 1, ids from 0. A place is a dimension or a position that you
give as an argument: x[1] is the first row, x[-1] the last, x:sum(1) sums over
the first dimension, x:softmax(-1) goes along the last. An id is a class, a
token or a row named in data: what argmax, topk and sort return, what
cross_entropy, gather, index_select and embedding take. Ids stay as files and
other tools have them, so what argmax returns feeds cross_entropy unchanged.
x:at(id) takes an id where x[place] takes a place.

x[i] is a view that shares memory with x, or a number when x has one
dimension. x[mask], with a bool tensor, gives the elements where it is true, or
the rows, when x has more dimensions: the mask is of the first ones. x[ids],
with a tensor of integers, gives those rows. x[i] = v and x[mask] = number
write. #x is the size of the first dimension, and ipairs(x) goes along it.

# Making tensors

All take { dtype = , device = } as a last argument. Without it the dtype is f32
(or what set_default_dtype says), whatever the subtype of Lua's numbers.
Sizes are given one by one or as a table: fnn.zeros(2, 3), fnn.zeros{2, 3}.

fnn.tensor(values: number|boolean|table, ...: integer|table) -> Tensor
  A tensor of the numbers in nested tables. With sizes after it, a flat table
  fills that shape. Booleans make a bool tensor.
  dtype: string = "f32"    f32 f64 f16 bf16 i64 i32 u8 bool
  device: string = "cpu"   where it lives

fnn.zeros(...: integer|table) -> Tensor
  Zeros.

fnn.ones(...: integer|table) -> Tensor
  Ones.

fnn.full(shape: integer[], value: number|boolean, options?: table) -> Tensor
  The same value everywhere.

fnn.zeros_like(x: Tensor, options?: table) -> Tensor
  Zeros of x's shape, dtype and device.

fnn.ones_like(x: Tensor, options?: table) -> Tensor
  Ones of x's shape, dtype and device.

fnn.arange(first: number, last?: number, step?: number, options?: table)
    -> Tensor
  first, first + step, ... up to but without last. fnn.arange(n) is 0 .. n-1.

fnn.linspace(first: number, last: number, n: integer, options?: table)
    -> Tensor
  n numbers from first to last, both included, at equal distances.

fnn.eye(n: integer, m?: integer, options?: table) -> Tensor
  A matrix with ones on its diagonal.

fnn.is_tensor(value: any) -> boolean
  Whether value is a tensor or a Param.

fnn.set_default_dtype(dtype: string)
  The dtype of new float tensors.

fnn.set_default_device(device: string)
  Where new tensors live.

fnn.default_device() -> string
  Where that is now.

fnn.device(name: string) -> string
  The full name of a device, "cuda:0" of "cuda"; raises, and says why, if it is
  not there: the build has no CUDA, the machine no driver or no card.

fnn.best_device() -> string
  "cuda:0" if there is such a card, else "cpu".

fnn.devices() -> table[]
  The devices there are, the CPU first: name, model, total and free bytes of
  memory; of a card also its compute capability ("9.0") and the CUDA version
  that its driver knows.

fnn.synchronize(device?: string)
  Waits until a device, the default one if none is named, has done what it was
  asked for. Reading a value does so by itself; a clock needs it.

fnn.threads(n?: integer) -> integer
  How many threads compute, the script's own included; n sets it, 0 as many as
  the process may use CPUs. Results do not depend on it.

fnn.progress(what: string|any, step?: integer|string|table, total?: integer)
    -> function
  Tells whoever watches how far long work has come: the name of the work, how
  many steps are done and, if it is known, of how many. Raises when it is to
  stop. The program shows a bar on stderr where that is a terminal, and
  elsewhere a line now and then; of work that is soon done it shows nothing.
  Work ends at its last step; where that is not known, fnn.progress("", 0) ends
  it.

  Of a loop it keeps count itself: `for x, y in fnn.progress(loader, "epoch
  1")`. It takes a loader, a list or a tensor (`for i, v in`), an iterator
  function, or a count (`for i in fnn.progress(100)`), and the name of the
  work, or options:
  what: string = "steps"    the name
  total: integer            how many there are, where the source cannot tell

fnn.clock() -> number
  Seconds since some moment: the difference of two is the time that passed,
  which os.clock, adding up the work of all threads, does not tell.

# Reading tensors

print(x) shows the values, the ends only of a large tensor, and its shape,
dtype and device.

Tensor:item() -> number|boolean
  The value of a tensor of one element.

Tensor:totable() -> table
  The values as nested tables.

Tensor:at(...: integer) -> Tensor|number
  The part with these ids, which count from 0: x:at(0) is x[1].

Tensor:shape() -> integer[]
  The sizes of all dimensions.

Tensor:size(dim?: integer) -> integer|integer[]
  The size of a dimension, or all sizes.

Tensor:stride() -> integer[]
  How many elements apart neighbours along each dimension are in memory.

Tensor:ndim() -> integer
  The number of dimensions.

Tensor:dim() -> integer
  The same as ndim.

Tensor:numel() -> integer
  The number of elements.

Tensor:dtype() -> string
  The element type: f32 f64 f16 bf16 i64 i32 u8 or bool.

Tensor:device() -> string
  Where the tensor lives: "cpu", "cuda:0".

Tensor:is_contiguous() -> boolean
  Whether the elements lie in memory in row-major order without gaps.

Tensor:order() -> string
  How the elements lie in memory: "row_major", "channels_last" (see there) or
  "strided", a view with gaps or another order.

Tensor:release()
  Gives the memory back now. Any later use of this handle raises; other tensors
  over the same memory keep it. Every object of the library has it. Called in a
  finalizer (__gc) it leaves the object to the collector.

# Copying and converting

Tensor:to(what: string|table, more?: string) -> Tensor
  Another dtype or device, or both: x:to "f64", x:to{ dtype = "f16" }. x itself
  when there is nothing to do.

Tensor:contiguous() -> Tensor
  x itself if it is contiguous, else a copy that is.

Tensor:channels_last() -> Tensor
  The same (n, channels, ...) tensor laid out in memory as (n, ..., channels).
  Convolutions give such tensors, layers behind them keep the order, and
  contiguous() ends it; values and shape do not change.

Tensor:clone() -> Tensor
  A copy with memory of its own. The gradient flows through it.

Tensor:copy_(y: Tensor) -> Tensor
  Writes y, broadcast, into x.

fnn.where(condition: Tensor, x: Tensor|number, y: Tensor|number) -> Tensor
  x where condition is true, else y; all broadcast.

Tensor:masked_fill(mask: Tensor, value: number) -> Tensor
  value where mask is true, else x.

Tensor:lerp_(y: Tensor, share: number) -> Tensor
  Moves x that share of the way to y, which has its shape, in one pass.

Tensor:fill_(value: number) -> Tensor
  Writes one value everywhere.

Tensor:zero_() -> Tensor
  Writes zeros.
]]
