-- random.lua - help on random numbers.
return [[
# Random numbers

One seed gives the same numbers for any number of threads. Without { generator
= g } they come from the state's own generator. The "philox" kind is fnn's own;
"torch" is a Mersenne twister whose normal numbers are those that PyTorch draws
on the CPU for the same seed.

fnn.manual_seed(seed: integer|string)
  Seeds the state's generator. Seeds from 2^63 on are given in decimal digits.

fnn.Generator(seed?: integer|string, options?: table) -> Generator
  A generator. Without a seed the system gives one.
  kind: string = "philox"    or "torch"

fnn.default_generator() -> Generator
  The state's generator.

fnn.rand(...: integer|table) -> Tensor
  Uniform numbers from 0 to before 1, in the sizes given.
  generator: Generator     where they come from; also dtype and device

fnn.randn(...: integer|table) -> Tensor
  Normal numbers of mean 0 and standard deviation 1.

fnn.uniform(lo: number, hi: number, ...: integer|table) -> Tensor
  Uniform numbers from lo to before hi.

fnn.normal(mean: number, std: number, ...: integer|table) -> Tensor
  Normal numbers.

fnn.randint(lo: integer, hi: integer, ...: integer|table) -> Tensor
  Integers from lo to before hi, of dtype i64.

fnn.randperm(n: integer, options?: table) -> Tensor
  The ids 0 .. n-1 in random order.

fnn.multinomial(weights: Tensor, n: integer, options?: table) -> Tensor
  n ids, each drawn with a probability in proportion to its weight: (n) of
  weights (classes), (rows, n) of (rows, classes). Weights are 0 or more and
  need not sum to 1; logits become such by softmax. Drawn on the host: every
  device gives the same ids.
  replacement: boolean = false    whether an id may be drawn more than once
  generator: Generator

Tensor:uniform_(lo?: number, hi?: number, options?: table) -> Tensor
  Fills x with uniform numbers, from 0 to before 1 by default.

Tensor:normal_(mean?: number, std?: number, options?: table) -> Tensor
  Fills x with normal numbers, of mean 0 and deviation 1 by default.

Generator:manual_seed(seed: integer|string) -> Generator
  Starts again from a seed.

Generator:seed() -> integer
  The seed it was given.

Generator:kind() -> string
  "philox" or "torch".

Generator:state() -> Tensor
  All of its state, as a u8 tensor.

Generator:set_state(state: Tensor)
  Goes on from a state.
]]
