-- shape.lua - help on shapes, parts, joining, ids and order.
return [[
# Shapes

All but reshape and flatten, which copy when they must, share memory with the
tensor that they are a view of.

Tensor:reshape(...: integer|table) -> Tensor
  The same elements in other sizes. One size may be -1: what is left.

Tensor:view(...: integer|table) -> Tensor
  The same as reshape.

Tensor:flatten(first?: integer, last?: integer) -> Tensor
  The dimensions from first to last, or all, as one.

Tensor:unflatten(dim: integer, sizes: integer[]) -> Tensor
  A dimension as several, of these sizes, one of which may be -1.

Tensor:squeeze(dim?: integer) -> Tensor
  Without a dimension of size 1, or without all such.

Tensor:unsqueeze(dim: integer) -> Tensor
  With a new dimension of size 1 at that place.

Tensor:transpose(a: integer, b: integer) -> Tensor
  With dimensions a and b exchanged. A transposed operand of a product costs no
  copy.

Tensor:t() -> Tensor
  A matrix transposed.

Tensor:permute(...: integer|table) -> Tensor
  With the dimensions in that order.

Tensor:expand(...: integer|table) -> Tensor
  With dimensions of size 1 repeated to these sizes; -1 keeps a size.

Tensor:expand_as(y: Tensor) -> Tensor
  Expanded to the shape of y.

# Parts

Tensor:narrow(dim: integer, start: integer, length: integer) -> Tensor
  length places along dim from start on.

Tensor:slice(dim: integer, first?: integer, last?: integer, step?: integer)
    -> Tensor
  The places along dim from first to last, both included, as string.sub has it.

Tensor:select(dim: integer, place: integer) -> Tensor
  One place along dim, without that dimension.

Tensor:diagonal(offset?: integer, a?: integer, b?: integer) -> Tensor
  The diagonal of dimensions a and b (1 and 2), offset places above the main
  one, as a new last dimension.

Tensor:split(size: integer|integer[], dim?: integer) -> Tensor[]
  Parts of that size along dim (1), the last one shorter; or parts of the sizes
  in a table.

Tensor:chunk(n: integer, dim?: integer) -> Tensor[]
  n parts of equal size along dim, the last one shorter.

Tensor:unbind(dim?: integer) -> Tensor[]
  A tensor for each place along dim, without that dimension.

Tensor:tril(diagonal?: integer) -> Tensor
  The last two dimensions with zeros above a diagonal; 0 is the main one.

Tensor:triu(diagonal?: integer) -> Tensor
  The last two dimensions with zeros below a diagonal.

# Joining and repeating

fnn.cat(tensors: Tensor[], dim?: integer) -> Tensor
  Tensors joined along dim (1); the other sizes are equal.

fnn.stack(tensors: Tensor[], dim?: integer) -> Tensor
  Tensors of one shape, joined along a new dimension.

fnn.pad_sequence(tensors: Tensor[], options?: table) -> Tensor, Tensor
  Sequences (n, ...) of unequal lengths as one batch (count, longest, ...), and
  their lengths, which recurrent layers take; the key_mask of attention is
  fnn.arange(x:size(2), { dtype = "i64" }):lt(lengths:unsqueeze(2)).
  value: number = 0        what fills up
  side: string = "right"   or "left": where it goes

Tensor:tile(...: integer|table) -> Tensor
  The tensor repeated that often along each dimension.

Tensor:repeat(...: integer|table) -> Tensor
  The same as tile. `repeat` is a word of Lua, so call it as x["repeat"](x, 2).

Tensor:flip(...: integer|table) -> Tensor
  With the order reversed along these dimensions, or all.

Tensor:roll(shift: integer, dim?: integer) -> Tensor
  Moved by shift places along dim (1); what leaves at the end comes in at the
  beginning.

# Ids

Ids count from 0. They are an integer tensor, or a table of integers.

Tensor:index_select(dim: integer, ids: Tensor|integer[]) -> Tensor
  The places along dim that ids name, in their order. The dimensions of ids
  take the place of dim: ids (b, t) of a table (n, c) give (b, t, c).

Tensor:gather(dim: integer, ids: Tensor) -> Tensor
  For each element of ids the element of x with that id along dim, at the same
  place in the others.

Tensor:scatter_add(dim: integer, ids: Tensor, source: Tensor) -> Tensor
  x with each element of source added where ids says along dim.

Tensor:scatter_add_(dim: integer, ids: Tensor, source: Tensor) -> Tensor
  The same, into x itself.

Tensor:masked_select(mask: Tensor) -> Tensor
  The elements where mask is true, as a vector; x and mask broadcast. x[mask]
  is the same for a mask of as many dimensions.

Tensor:nonzero() -> Tensor
  The ids of the elements that are not zero, a row each.

Tensor:one_hot(classes?: integer) -> Tensor
  For each id a vector of zeros with a one at it.

# Order

Tensor:sort(dim?: integer, options?: table) -> Tensor, Tensor
  The values in order along dim (the last), and their ids. Equal ones keep
  theirs; NaN counts as the largest.
  descending: boolean = false    largest first

Tensor:argsort(dim?: integer, options?: table) -> Tensor
  The ids of sort alone.

Tensor:topk(k: integer, dim?: integer, options?: table) -> Tensor, Tensor
  The k largest values along dim (the last), largest first, and their ids.
  largest: boolean = true    false for the smallest

# Products

Tensor:matmul(y: Tensor) -> Tensor
  The matrix product of (..., m, k) and (..., k, n); leading dimensions
  broadcast, and vectors count as rows or columns. Integers give integers, which
  wrap.

Tensor:linear(weight: Tensor, bias?: Tensor, act?: string) -> Tensor
  x times weight transposed, plus bias: (..., in) and (out, in) give (..., out).
  act names a function of one number ("relu") that the result goes through.

fnn.einsum(spec: string, ...: Tensor|table) -> Tensor
  A sum of products written with letters: fnn.einsum("ij,jk->ik", x, y).
]]
