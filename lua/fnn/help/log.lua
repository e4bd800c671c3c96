-- log.lua - help on what is written down of a run.
return [[
# Logs

    local log = fnn.log.all {
      fnn.log.jsonl "runs/first/log.jsonl", fnn.log.tensorboard "runs/first",
    }
    log:scalar("loss", loss, step)

What a log is told is in its file when the call returns, so a killed run loses
nothing that it had said. A log is closed by `close`, by `<close>` or by the
collector. fnn.log(x) is still the logarithm.

log.jsonl(path: string, options?: table) -> Log
  Appends to a file of lines of JSON, {"step":100,"time":1767225600.25,
  "loss":0.5}; the time is that of the call, in seconds since 1970. The folder
  is made. A last line that a killed run left half is taken away. What is no
  finite number, which JSON has no word for, is "NaN", "Infinity" or
  "-Infinity". Images are PNG files in a folder beside ("log-images"), which
  the line names.
  resume: integer    a run that goes on from this step: drops later lines

log.tensorboard(folder: string, options?: table) -> Log
  Writes a new event file into the folder, which is made, for TensorBoard
  (`tensorboard --logdir`). A slash in a name makes groups. A run that goes on
  has a file more in the same folder, and its curves go on. Scalars are kept in
  32 bits.
  resume: integer    a run that goes on from this step: what other files have
    from it on does not count

log.all(logs: Log[]) -> Log
  A log that writes to each of them, and closes them. The first error is raised
  when all had their turn.

Log:scalar(name: string, value: number|Tensor, step: integer)
  A number, or a tensor of one element, which is read: on a card that waits.

Log:scalars(values: table, step: integer)
  Numbers by name, as scalar: one line of JSON.

Log:text(name: string, text: string, step?: integer)
  A text in UTF-8; TensorBoard takes it as Markdown. The step is 0 if it is
  left out.

Log:image(name: string, image: Tensor, step: integer)
  An image (height, width) or (channels, height, width), floats from 0 to 1 or
  bytes; of 1 to 4 channels: grey, with alpha, RGB, RGBA. Of several, (n,
  channels, height, width), each is one of its own.

Log:histogram(name: string, x: Tensor, step: integer)
  How the elements are spread: counts in 64 equal bins from the least to the
  largest, and sums. Elements that are nan or infinite are counted apart
  ("nonfinite").

Log:close()
  Closes the file; what is said later raises. Closing again does nothing.
]]
