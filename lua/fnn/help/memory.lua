-- memory.lua - help on what is held, limits and scopes.
return [[
# Memory

Tensors are freed when nothing reaches them: the library counts their bytes
and asks Lua's collector to run when enough has been made. `x:release()`,
`local x <close> = ...` and fnn.scope free at once instead.

fnn.memory(device?: string) -> table
  What the library holds now on a device, the CPU if none is named. live, idle
  and peak are bytes: in use, kept for the next tensors, and the most that were
  ever in use; workspace is what a card's own library keeps (cuBLAS, from the
  first product on, for all states together, not bounded by the limit); held is
  what the system or the card's driver gave: live, idle and workspace.
  allocations counts the blocks asked of it so far. limit is the bytes
  allowed, or 0. objects and nodes count what is alive: objects of the engine,
  and operations that a gradient could still flow back through. conversions
  counts the copies so far from one memory order to the other
  (Tensor:channels_last).

fnn.scope(f: function, ...: any) -> any
  Calls f with the arguments and returns its results; then releases each tensor
  that was made inside. Those that the results reach live on, through tables
  and modules too, and so do fields of modules. What else still holds a tensor
  made inside (an outer variable, a closure) finds it released. An error ends
  the scope as well. Scopes nest. Yielding out of f raises.

fnn.set_memory_limit(bytes?: integer, device?: string)
  The most bytes that may be live on a device, the CPU if none is named; an
  operation that would need more raises before the system or the driver is
  asked. 0 or nothing lifts the limit. Each device has its own.

fnn.reset_peak_memory(device?: string)
  The peak of fnn.memory starts again from what is live.

fnn.trim(device?: string)
  Gives idle memory back to the system, or to the driver of the card.

fnn.empty_cache(device?: string)
  Collects what nothing reaches, then trims; the default device if none is
  named. It waits for the work of a card. Other programs get the memory; this
  one is slower for it.
]]
