-- fit.lua - help on training in one call.
return [[
# Training

fnn.fit is the loop that a script would write, over public functions: where it
does not fit, write the loop: an optimizer whose step wants a function that
computes the loss needs one. The order of the items follows from seed; what
dropout draws, from fnn.manual_seed. The same seeds give the same bits.

The data is a list of tensors of as many rows, { x, y }, a Dataset or one of
your own, a DataLoader or whatever else has start(epoch, batch) and next(), or
a function that is given the epoch, counted from 0, and returns what a for loop
takes; its length need not be known. From all the same batches give the same
bits. The last tensor of a batch is the target, those before go to the model;
metrics and loss get the model's output and the target.

Callbacks are given what they may change: run.model, run.optimizer; and
run.epoch, run.batch, run.step, what has been done.

Steps are those of the optimizer, and count what is done: on_batch is called
with 1 first. A run that was ended between two steps, by a callback that returns
false or raises, by Ctrl-C (one lets it save and return, a second ends the
process) or by what nobody can catch, goes on from its last checkpoint with
resume, to the same bits as one that was not: so scripts may always say resume =
true. Data and options must be the same; more epochs may be added. A checkpoint
is a file of fnn.save_training with entries model, optimizer, fit, and where
there are such schedule, scaler and average.

fnn.fit(model: Module, data: Dataset|Loader|table|function, options: table)
    -> History
  Trains the model and returns what was seen in each epoch that ran to its end:
  tables of epoch, loss, lr, val_loss and the metrics by their names, those of
  the validation as val_NAME. The loss is a mean over the items, a metric is of
  all items. A model in evaluation is put in training, one in training is left
  as it is: parts of it may be in evaluation, so that a batch norm keeps its
  statistics. It ends in evaluation, as by model:eval(). A mean loss that is
  infinite or nan raises.
  loss: function                 of outputs and targets: nn.cross_entropy; the
                                 mean over a batch
  epochs: integer = 1
  batch_size: integer = 32       of tensors and datasets
  shuffle: boolean = true        the same
  seed: integer = 0              of their order
  targets: integer = 1           how many tensors of a batch are targets
  optimizer: Optimizer|function  or what makes one: optim.Adam; AdamW without
  lr: number                     for an optimizer that is made
  schedule: function             the rate by the step, counted from 0;
                                 ReduceOnPlateau follows what is monitored
  schedule_by: string = "step"   or "epoch"
  accumulate: integer = 1        batches that make one step, as if they were one
  clip: number                   the longest gradient
  clip_value: number             the largest number in a gradient
  autocast: boolean|string       true is "bf16"; "f16" has a GradScaler
  scaler: GradScaler             another one
  average: Ema|SWA               follows the weights, and is what is validated
  validation: Dataset            what to evaluate on after each epoch; whatever
                                 data may be
  metrics: table                 functions of outputs and targets by name, names
                                 of metrics ({ "accuracy" }), metrics.stream,
                                 objects with add(outputs, targets), value() and
                                 reset()
  monitor: string                what tells how good it is: val_loss, or loss
                                 without a validation
  mode: string                   "min" or "max", if the name does not tell
  early_stopping: table|integer  how many epochs without a better one end it;
                                 patience = 3, min_delta = 0, monitor, mode,
                                 restore_best = false (its weights)
  checkpoints: table|string      the folder of fnn.checkpoints, or what it gave;
                                 folder, every (steps; an epoch's end always is
                                 one), keep = 3, best (true, or a name), mode
  resume: boolean = false        goes on from the last checkpoint, if any
  on_epoch: function             f(epoch, stats, run); false ends the training
  on_batch: function             f(step, loss, run) after each step, with the
                                 loss of the epoch so far; false ends it
  log: table                     what has scalar(name, value, step):
                                 fnn.log.tensorboard(folder)
  log_every: integer             steps between two batch_loss in it
  verbose: boolean|function      a line an epoch on the program's stderr (the
                                 log of another host), or to a function
  device: string                 where model and batches go; if left out,
                                 batches go to where the model is
  progress: boolean = true       whether the program's bar is shown

History:column(name: string) -> table
  One value an epoch, nan where there was none: what a plot takes. A history
  knows stopped ("early_stopping", "on_epoch", "on_batch", "interrupted", or nil
  if all epochs ran), steps, best_epoch of early stopping, and partial: what was
  seen of an epoch that was ended, and of how many batches.

fnn.evaluate(model: Module, data: Dataset|Loader|table|function,
    options?: table) -> table
  The mean loss and metrics over the data, in evaluation and without gradients.
  loss: function
  metrics: table
  targets: integer = 1
  batch_size: integer = 32
  autocast: boolean|string
  device: string           where batches go; if left out, to where the model is
]]
