-- train.lua - help on training in one call, and metrics.
return [[
# Training

fnn.fit is the loop that a script would write, over public functions: where it
does not fit, write the loop: an optimizer whose step wants a function that
computes the loss needs one. The data is a Dataset, a dataset of your own, a
DataLoader, or a list of tensors of as many rows, { x, y }; what comes last is
the target, what comes before goes to the model. The order of the items follows
from seed; what dropout draws, from fnn.manual_seed. The same seeds give the
same bits.

fnn.fit(model: Module, data: Dataset|Loader|table, options?: table) -> table
  Trains the model and returns a list of what was seen in each epoch that ran:
  tables of epoch, loss, lr, val_loss and the metrics by their names, those of
  the validation as val_NAME; means over the items. The model is left in
  evaluation, as by model:eval(). A mean loss that is infinite or nan raises.
  loss: function                 of outputs and targets: nn.cross_entropy
  epochs: integer = 1
  batch_size: integer = 32       of a dataset; a loader has its own
  shuffle: boolean = true        of a dataset
  seed: integer = 0              of a dataset's order
  optimizer: Optimizer|function  or what makes one: optim.Adam; AdamW without
  lr: number                     for an optimizer that is made
  schedule: function             the rate by the step, counted from 0
  clip: number                   the longest gradient
  validation: Dataset            what to evaluate on after each epoch
  metrics: table                 functions of outputs and targets, by name
  callback: function             f(epoch, stats); false ends the training
  device: string                 where model and batches go; if left out,
                                 batches go to where the model is
  progress: boolean = true       whether the program's bar is shown

fnn.evaluate(model: Module, data: Dataset|Loader|table, options?: table)
    -> table
  The mean loss and metrics over the data, in evaluation and without gradients.
  loss: function
  metrics: table
  batch_size: integer = 32
  device: string           where batches go; if left out, to where the model is

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

# Metrics

Functions of a model's outputs and of targets. Outputs of several columns mean
the class of the largest number; those of one, class 1 from the threshold on.
Targets are ids, or rows as the outputs.

metrics.accuracy(outputs: Tensor, targets: Tensor, options?: table) -> number
  The share of rows whose class is the target's.
  threshold: number = 0.5    0 for outputs that are no probabilities yet

metrics.classes(outputs: Tensor, options?: table) -> Tensor
  The id of each row's class.
  threshold: number = 0.5

metrics.confusion(outputs: Tensor, targets: Tensor, options?: table) -> Tensor
  How often each actual class was taken for each: counts (actual, predicted).
  threshold: number = 0.5
  classes: integer           how many there are, if the outputs do not tell
]]
