-- runs.lua - help on long runs: in files, kept in a folder, interrupted.
return [[
# A run in a file

fnn.save_training(path: string, state: table)
  Writes a run that is to go on: what state has by name. Models, optimizers,
  averages, schedulers, schedules with state, GradScalers and loaders are kept
  by their state_dict, generators and tensors as they are, and plain values (a
  step, the sizes of the model) as JSON; the default generator, of which dropout
  draws, too. A loader's state is the next batch that it gives, whatever it has
  read ahead; anything with start and cursor, as a source of batches, is kept by
  its cursor. The file is the old one or the whole new one, whenever the
  process is killed. What is written is never gathered: it takes the memory of
  the largest tensor at most.

fnn.load_training(path: string, state?: table, options?: table) -> table
  Fills the models, optimizers and so on in state from such a file, each by its
  name, and the default generator; returns the plain values, which state leaves
  out, and the tensors that nothing was given for. A file of weights alone is
  refused. All is checked before anything is changed: when an entry does not fit
  (a name, a shape, another kind of optimizer, a loader with other batches)
  everything is as it was. An object of your own needs state_dict and
  load_state_dict; its check_state_dict(state), if it has one, raises for what
  does not fit; without one its load_state_dict comes before the others', and
  takes back its own state_dict when something fails.
  partial: boolean = false   leaves what state does not name, and the generator

# Runs kept in a folder

Files of fnn.save_training, one a step, in a folder of their own:
step-000001200.safetensors. The last few are kept, and the best.

fnn.checkpoints(folder: string, options?: table) -> Checkpoints
  What is in a folder, which is made if it is not there. Temporary files of
  saves that were killed are removed. A damaged file is passed over with a
  warning. #cp is how many there are.
  keep: integer = 3       how many of the last steps are kept
  best: string            the value by which one is the best, and kept as well:
                          "val_loss"; it is read from the files, also by a new
                          process; a save without it, or of nan, is no best
  mode: string = "min"    or "max": which of two values is better

Checkpoints:save(state: table, values?: table) -> string
  Saves the run as fnn.save_training does, with plain values beside it, of which
  step is one that must be there (in either); then removes what is not to be
  kept. Returns the path. A step that is before the last one raises: that is
  another run.

Checkpoints:resume(state: table, options?: table) -> table
  Fills state from the newest file, as fnn.load_training does, and returns the
  plain values; nil in a folder without one. Plain values in state are
  overlooked, so that the same table serves to save.

Checkpoints:latest() -> string, table
  The path of the file with the highest step, and its plain values; or nil.

Checkpoints:best() -> string, table
  The same of the best one; of several that are as good, the first.

Checkpoints:list() -> string[]
  The paths of all, by rising steps.

# Interrupts

fnn.on_interrupt(f: function) -> function
  Lets the script end by itself what Ctrl-C would break off: at the next Ctrl-C
  f is called once, between two instructions of Lua (an op that runs is done
  first), and the script goes on. f takes a note, `stop = true`, by which the
  loop ends where it has something whole to save. A second Ctrl-C ends the
  process. nil for f takes it back; the function that was there before is
  returned, nil if it has been called. In a host's state f answers to the token
  with which the host cancels work: the first time it is called instead, the
  second time work is cancelled. In Lua's own program Ctrl-C is Lua's.
]]
