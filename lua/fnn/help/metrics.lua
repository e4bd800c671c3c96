-- metrics.lua - help on metrics.
return [[
# Metrics

Functions of a model's outputs and of targets. Outputs (n, classes), or
(n, classes, ...) as cross_entropy has them, mean the class of the largest
number; those of one, (n) or (n, 1), class 1 from the threshold on. Targets are
ids, or rows as the outputs. Numbers are those of scikit-learn. Of no rows a
metric is nan, but confusion, which is zeros.

A metric of a set is not the mean of its batches' metrics: metrics.stream counts
over batches, and so do fnn.fit and fnn.evaluate.

metrics.accuracy(outputs: Tensor, targets: Tensor, options?: table) -> number
  The share of rows whose class is the target's.
  threshold: number = 0.5  of one output a row; 0 for logits
  dim: integer = 2         the dimension of the classes; -1 if they are last
  ignore_index: integer    rows with this target do not count

metrics.top_k(outputs: Tensor, targets: Tensor, options?: table) -> number
  The share of rows (n, classes) whose target is among the k highest; of equal
  ones the lower id is first, as in argmax.
  k: integer = 5
  ignore_index: integer

metrics.precision(outputs: Tensor, targets: Tensor, options?: table)
    -> number|number[]
  The share of the rows taken for a class that are of it; 0 where none was.
  average: string          "binary", of the positive class, if left out and
                           there are two classes; else "macro", the mean over
                           the classes that are in targets or outputs;
                           "weighted" by the rows of each; "micro", of all
                           counts; "samples", the mean over rows, with
                           multilabel; "none", a list of the classes
  positive: integer = 1    the positive class
  multilabel: boolean = false    a row has any number of labels: outputs and
                           targets are (n, labels), targets 0 or 1
  threshold: number = 0.5  of one output a row; 0 for logits
  dim: integer = 2         the dimension of the classes; -1 if they are last
  ignore_index: integer    rows with this target do not count

metrics.recall(outputs: Tensor, targets: Tensor, options?: table)
    -> number|number[]
  The share of the rows of a class that were taken for it; 0 where none is.
  average: string          "binary", of the positive class, if left out and
                           there are two classes; else "macro", the mean over
                           the classes that are in targets or outputs;
                           "weighted" by the rows of each; "micro", of all
                           counts; "samples", the mean over rows, with
                           multilabel; "none", a list of the classes
  positive: integer = 1    the positive class
  multilabel: boolean = false    a row has any number of labels: outputs and
                           targets are (n, labels), targets 0 or 1
  threshold: number = 0.5  of one output a row; 0 for logits
  dim: integer = 2         the dimension of the classes; -1 if they are last
  ignore_index: integer    rows with this target do not count

metrics.f1(outputs: Tensor, targets: Tensor, options?: table)
    -> number|number[]
  The harmonic mean of precision and recall, 0 where neither has any.
  average: string          "binary", of the positive class, if left out and
                           there are two classes; else "macro", the mean over
                           the classes that are in targets or outputs;
                           "weighted" by the rows of each; "micro", of all
                           counts; "samples", the mean over rows, with
                           multilabel; "none", a list of the classes
  positive: integer = 1    the positive class
  multilabel: boolean = false    a row has any number of labels: outputs and
                           targets are (n, labels), targets 0 or 1
  threshold: number = 0.5  of one output a row; 0 for logits
  dim: integer = 2         the dimension of the classes; -1 if they are last
  ignore_index: integer    rows with this target do not count

metrics.auc(outputs: Tensor, targets: Tensor, options?: table)
    -> number|number[]
  The area under the ROC curve: how often a positive row has a higher score than
  another, a tie counting half. Of several classes each is held against all
  others. nan where all rows are of one class; such a class is not in the mean.
  softmax: boolean = true     of three columns and more: outputs are logits
  average: string = "macro"   or "weighted", "none"

metrics.confusion(outputs: Tensor, targets: Tensor, options?: table) -> Tensor
  How often each actual class was taken for each: counts (actual, predicted).
  classes: integer         how many there are, if the outputs do not tell
  threshold: number = 0.5  of one output a row; 0 for logits
  dim: integer = 2         the dimension of the classes; -1 if they are last
  ignore_index: integer    rows with this target do not count

metrics.classes(outputs: Tensor, options?: table) -> Tensor
  The id of each row's class.
  threshold: number = 0.5
  dim: integer = 2

metrics.perplexity(outputs: Tensor, targets: Tensor, options?: table) -> number
  exp of the mean cross_entropy of logits and ids: of the language model's loss
  alone, whatever else is added to the one that is trained.
  dim: integer = 2               the dimension of the classes
  ignore_index: integer = -100

metrics.mae(outputs: Tensor, targets: Tensor) -> number
  The mean of the differences' absolute values. Shapes must agree.

metrics.mse(outputs: Tensor, targets: Tensor) -> number
  The mean of the squared differences.

metrics.rmse(outputs: Tensor, targets: Tensor) -> number
  Its square root.

metrics.r2(outputs: Tensor, targets: Tensor) -> number
  The share of the targets' variance that outputs explain; the mean over
  columns. Where targets are all the same 1 if outputs are they, else 0; of one
  row nan.

metrics.stream(metric: string|function, options?: table) -> MetricStream
  Counts a metric over batches, exactly as over the whole set: on the CPU to the
  same bits. metric is a name, a function of this library with its options, or a
  function of outputs and targets, whose mean counts each row once.

MetricStream:add(outputs: Tensor, targets: Tensor, ...: Tensor) -> MetricStream
  Counts a batch. A function of your own is given further targets, too.

MetricStream:value() -> number|number[]|Tensor
  The metric of all that was added since the last reset.

MetricStream:reset() -> MetricStream
  Begins anew.

MetricStream:fresh() -> MetricStream
  Another one of the same metric and options, with nothing in it.

MetricStream:name() -> string
  The name of the metric.

MetricStream:state_dict() -> table
  What has been counted: numbers and tensors by name.

MetricStream:load_state_dict(state: table)
  Goes on from there.
]]
