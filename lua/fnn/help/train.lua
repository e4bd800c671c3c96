-- train.lua - help on steps that a card replays.
return [[
# Steps that a card replays

A small model's step takes a card less time than it takes the host to ask for
it. Recorded, it is asked for as a whole (a CUDA graph), with the same bits as
results.

fnn.graph_step(f: function, options?: table) -> function
  A function that does what f does. On the CPU it is f. On a card it calls f
  the first times, then records a call, and from then on replays it: f itself
  runs no more. Tensors among the arguments are copied to where the recording
  reads them, from the CPU too; the results are always the same tensors, with
  new values. Random numbers go on, and optimizers in f take their rates and
  counts of steps as they are at each call. For arguments of other shapes, as
  the last batch of an epoch, f is called. When a generator is seeded anew, or
  an optimizer gets other parameters or loads a state, the step is recorded
  anew. All that f needs each time must be in it (zero_grad too); what it reads
  from outside must stay where it is: write into a tensor (copy_), do not
  replace it. In f, reading a value (item, totable), copying from or to the
  host, seeding, a scheduler, an average's update, a GradScaler and an optimizer
  written in Lua raise: call them outside. An error ends the recording; the
  gradients then have no values that mean anything.
  warmup: integer = 2    calls of f before the recording
  device: string         the card; if left out, the default device, or where
                         the first argument on a card is
]]
