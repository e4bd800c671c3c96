-- seeing.lua - help on looking into a program: time, memory, graphs.
return [[
# Seeing

What a program spends its time on, who holds the memory, what a graph looks
like. Nothing of this costs anything while it is not used. fnn.detect_anomaly
finds where a NaN comes from.

fnn.profile(f: function, options?: table) -> Profile, any
  Calls f and returns where its time went, and what f returned. print(p) shows
  a row for each operation, forward, backward and in the optimizer's step: how
  often it was called, milliseconds, microseconds each, its share, the bytes of
  its operands and results (0 of what writes in place), the bytes of storage
  that it made, and for products, convolutions and attention billions of
  floating point operations a second. The time of an operation is
  that of its kernels. The row 'outside ops' is all other time: Lua, checks,
  allocation, recording the graph, collecting. On a card each kernel is waited
  for, so that its time is its own: nothing overlaps, and the whole takes
  longer than it would. One profile is taken at a time.
  by: string = "op"     or "module": a row for each module of a model, by its
                        path; a module's own operations, without its children's
  trace: string         a file for Chrome's events, which ui.perfetto.dev shows

Profile:table(n?: integer) -> string
  The n rows that took longest as text; all of them without n, as tostring(p).
  p.rows is a list of tables with the fields op (or module), pass, calls,
  kernels, ms, us, share (of 1), bytes, made, flops and gflops; p.ms and so on
  are the same columns as lists. p.total and p.outside are milliseconds.

Profile:sorted_by(by: string) -> Profile
  The same profile by "op" or by "module".

fnn.memory_holders(options?: table) -> Holders
  Who holds the memory that is live on a device, the largest first: parameters,
  by their path in the model, gradients, the state of optimizers, buffers, what
  graphs keep for backward, by operation, and variables of Lua, by the name of
  the variable that leads to the tensor. What several hold is counted once, for
  the first of these. The rest, which Lua does not reach, is a row of its own:
  batches that a loader has ready, weights that were packed, scratch. Garbage is
  collected first, and all values of Lua are walked through, which takes a
  while.
  model: Module       whose paths name the parameters; else those of all models
  device: string      the default device, if none is named

Holders:table(n?: integer) -> string
  Groups, and the n largest of each (5), as text; tostring(h) does that too.
  h.rows is a list of tables with the fields group, name, bytes and count (of
  storages), h.groups has the bytes of each group by its name, h.live is their
  sum.

graph.dot(x: Tensor, options?: table) -> string
  The graph behind x as text for Graphviz: operations with the shape of their
  result and the bytes that they keep for backward, and parameters.
  names: Module               whose paths name the parameters
  direction: string = "BT"    or "TB", "LR", "RL": where the result is drawn
]]
