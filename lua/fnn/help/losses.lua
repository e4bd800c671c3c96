-- losses.lua - help on losses.
return [[
# Losses

Of a prediction and a target: functions, and modules that keep the options.
Every loss has the option reduction: "mean", "sum" or "none", which gives the
losses of elements, rows or items themselves. Shapes must agree; a target may
hold integers or bools. Gradients flow to predictions and to float targets (not
to those of hinge_embedding), not to weights. Where PyTorch has another name
for the function, that is there too.

nn.cross_entropy(x: Tensor, target: Tensor|integer[], options?: table) -> Tensor
  How badly logits x (n, classes) or (n, classes, ...) predict class ids, or
  probabilities of the logits' shape. The mean is over the weights of the ids
  that count; when none counts it is 0.
  reduction: string = "mean"      or "sum", "none"
  weight: Tensor                  a weight for each class
  ignore_index: integer = -100    rows with this id do not count
  label_smoothing: number = 0     the share that goes to all classes alike

nn.nll(x: Tensor, ids: Tensor|integer[], options?: table) -> Tensor
  cross_entropy of log-probabilities x, which log_softmax gives, and ids.
  reduction: string = "mean"      or "sum", "none"
  weight: Tensor                  a weight for each class
  ignore_index: integer = -100    rows with this id do not count

nn.nll_loss(x: Tensor, ids: Tensor|integer[], options?: table) -> Tensor
  nll, by PyTorch's name.

nn.mse(x: Tensor, target: Tensor, options?: table) -> Tensor
  The squared differences.
  reduction: string = "mean"    or "sum", "none"

nn.mse_loss(x: Tensor, target: Tensor, options?: table) -> Tensor
  mse, by PyTorch's name.

nn.l1(x: Tensor, target: Tensor, options?: table) -> Tensor
  The absolute differences (mean absolute error).
  reduction: string = "mean"    or "sum", "none"

nn.l1_loss(x: Tensor, target: Tensor, options?: table) -> Tensor
  l1, by PyTorch's name.

nn.mae(x: Tensor, target: Tensor, options?: table) -> Tensor
  l1, by its other name.

nn.huber(x: Tensor, target: Tensor, options?: table) -> Tensor
  Half the squared difference up to delta, beyond it the line
  delta (d - delta / 2).
  reduction: string = "mean"    or "sum", "none"
  delta: number = 1             more than 0

nn.huber_loss(x: Tensor, target: Tensor, options?: table) -> Tensor
  huber, by PyTorch's name.

nn.smooth_l1(x: Tensor, target: Tensor, options?: table) -> Tensor
  huber divided by its delta, here beta; l1 when that is 0.
  reduction: string = "mean"    or "sum", "none"
  beta: number = 1              0 or more

nn.smooth_l1_loss(x: Tensor, target: Tensor, options?: table) -> Tensor
  smooth_l1, by PyTorch's name.

nn.bce(x: Tensor, target: Tensor, options?: table) -> Tensor
  Binary cross entropy of probabilities, which must lie in 0 .. 1. Logarithms
  stop at -100.
  reduction: string = "mean"    or "sum", "none"
  weight: Tensor                a weight for each element; broadcasts

nn.binary_cross_entropy(x: Tensor, target: Tensor, options?: table) -> Tensor
  bce, by PyTorch's name.

nn.bce_with_logits(x: Tensor, target: Tensor, options?: table) -> Tensor
  bce of the sigmoid of logits, exact where that is 0 or 1.
  reduction: string = "mean"    or "sum", "none"
  weight: Tensor                a weight for each element; broadcasts
  pos_weight: Tensor            a weight for positive targets; broadcasts

nn.binary_cross_entropy_with_logits(x: Tensor, target: Tensor, options?: table)
    -> Tensor
  bce_with_logits, by PyTorch's name.

nn.focal(x: Tensor, target: Tensor, options?: table) -> Tensor
  bce_with_logits times (1 - p) ^ gamma, p what the true class is given, so that
  what is easy counts for little (Lin et al. 2017); and times alpha where the
  target is 1, 1 - alpha where it is 0.
  reduction: string = "mean"    or "sum", "none"
  alpha: number = 0.25          negative for no such weights
  gamma: number = 2             0 or more

nn.dice(x: Tensor, target: Tensor, options?: table) -> Tensor
  1 - (2 overlap + smooth) / (sum of x + sum of target + smooth), of
  probabilities, for each item of dimension 1; a vector is one item.
  reduction: string = "mean"    or "sum", "none"
  smooth: number = 1            keeps two empty masks at 0
  batch: boolean = false        sums over all items

nn.kl_div(x: Tensor, target: Tensor, options?: table) -> Tensor
  target (log target - x) of log-probabilities x and probabilities; 0 where the
  target is 0. As in PyTorch the mean is over all elements.
  reduction: string = "mean"      or "batchmean", "sum", "none"
  log_target: boolean = false     the target holds logarithms too

nn.kl_divergence(x: Tensor, target: Tensor, options?: table) -> Tensor
  KL(target, x) of probabilities: summed over the last dimension, the mean over
  the rest.
  reduction: string = "mean"    or "sum", "none"

nn.gaussian_nll(x: Tensor, target: Tensor, var: Tensor, options?: table)
    -> Tensor
  (log var + (x - target)^2 / var) / 2: x and var are mean and variance of a
  normal law. var broadcasts, or lacks the last dimension.
  reduction: string = "mean"    or "sum", "none"
  full: boolean = false         with the constant log(2 pi) / 2
  eps: number = 1e-6            what var counts for at least

nn.gaussian_nll_loss(x: Tensor, target: Tensor, var: Tensor, options?: table)
    -> Tensor
  gaussian_nll, by PyTorch's name.

nn.gaussian_nll_log_var(x: Tensor, target: Tensor, log_var: Tensor,
    options?: table) -> Tensor
  gaussian_nll of the logarithm of the variance, which may have any value.
  reduction: string = "mean"    or "sum", "none"

nn.poisson_nll(x: Tensor, target: Tensor, options?: table) -> Tensor
  e^x - target x, x the logarithm of the rate of a Poisson law.
  reduction: string = "mean"      or "sum", "none"
  log_input: boolean = true       else x is the rate: x - target log(x + eps)
  full: boolean = false           with Stirling's formula for target > 1
  eps: number = 1e-8              keeps the logarithm of a rate finite

nn.poisson_nll_loss(x: Tensor, target: Tensor, options?: table) -> Tensor
  poisson_nll, by PyTorch's name.

nn.hinge(x: Tensor, target: Tensor|integer[], options?: table) -> Tensor
  max(0, margin - target x) for targets 1 and -1.
  reduction: string = "mean"    or "sum", "none"
  margin: number = 1            any number

nn.hinge_embedding(x: Tensor, target: Tensor|integer[], options?: table)
    -> Tensor
  x where the target is 1, max(0, margin - x) where it is -1.
  reduction: string = "mean"    or "sum", "none"
  margin: number = 1            any number

nn.hinge_embedding_loss(x: Tensor, target: Tensor|integer[], options?: table)
    -> Tensor
  hinge_embedding, by PyTorch's name.

nn.margin_ranking(x: Tensor, y: Tensor, target: Tensor|integer[],
    options?: table) -> Tensor
  max(0, margin - target (x - y)): the target is 1 where x should be larger, -1
  where y should.
  reduction: string = "mean"    or "sum", "none"
  margin: number = 0            any number

nn.margin_ranking_loss(x: Tensor, y: Tensor, target: Tensor|integer[],
    options?: table) -> Tensor
  margin_ranking, by PyTorch's name.

nn.triplet(anchor: Tensor, positive: Tensor, negative: Tensor, options?: table)
    -> Tensor
  max(0, |anchor - positive| - |anchor - negative| + margin) of rows, by
  Euclidean distance.
  reduction: string = "mean"    or "sum", "none"
  margin: number = 1            more than 0
  p: number = 2                 the order of the norm
  eps: number = 1e-6            added to differences
  swap: boolean = false         takes the nearer of anchor and positive to the
                                negative

nn.triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor,
    options?: table) -> Tensor
  triplet, by PyTorch's name.

nn.contrastive(x: Tensor, y: Tensor, target: Tensor|integer[], options?: table)
    -> Tensor
  Of the distance d of rows: d^2 where the target is 1, max(0, margin - d)^2
  where it is 0 (Hadsell et al. 2006).
  reduction: string = "mean"    or "sum", "none"
  margin: number = 1            0 or more

nn.cosine_embedding(x: Tensor, y: Tensor, target: Tensor|integer[],
    options?: table) -> Tensor
  Of rows: 1 - cos(x, y) where the target is 1, max(0, cos(x, y) - margin) where
  it is -1.
  reduction: string = "mean"    or "sum", "none"
  margin: number = 0            any number

nn.cosine_embedding_loss(x: Tensor, y: Tensor, target: Tensor|integer[],
    options?: table) -> Tensor
  cosine_embedding, by PyTorch's name.

nn.info_nce(x: Tensor, y: Tensor, options?: table) -> Tensor
  Row i of x (n, d) belongs to row i of y: cross_entropy of the cosines with all
  rows of y (van den Oord et al. 2018).
  reduction: string = "mean"      or "sum", "none"
  temperature: number = 0.1       divides the cosines

nn.ctc(x: Tensor, target: Tensor, steps: Tensor|integer[],
    lengths: Tensor|integer[], options?: table) -> Tensor
  Labels whose places are not known (Graves et al. 2006), of log-probabilities x
  (steps, n, classes), or (steps, classes) of one sequence. The target is
  (n, most) with any padding, or all labels in a row; steps and lengths tell how
  much of x and of the target belongs to each sequence. The mean is of losses
  divided by their number of labels.
  reduction: string = "mean"        or "sum", "none"
  blank: integer = 0                the class between labels
  zero_infinity: boolean = false    0 instead of infinity for a target that does
                                    not fit into its steps

nn.ctc_loss(x: Tensor, target: Tensor, steps: Tensor|integer[],
    lengths: Tensor|integer[], options?: table) -> Tensor
  ctc, by PyTorch's name.

# Losses as modules

Called with what the function is called with, but the options.

nn.CrossEntropyLoss(options?: table) -> Module
  cross_entropy with these options, as a module.

nn.NLLLoss(options?: table) -> Module
  nll with these options, as a module.

nn.MSELoss(options?: table) -> Module
  mse with these options, as a module.

nn.L1Loss(options?: table) -> Module
  l1 with these options, as a module.

nn.HuberLoss(options?: table) -> Module
  huber with these options, as a module.

nn.SmoothL1Loss(options?: table) -> Module
  smooth_l1 with these options, as a module.

nn.BCELoss(options?: table) -> Module
  bce with these options, as a module.

nn.BCEWithLogitsLoss(options?: table) -> Module
  bce_with_logits with these options, as a module.

nn.FocalLoss(options?: table) -> Module
  focal with these options, as a module.

nn.DiceLoss(options?: table) -> Module
  dice with these options, as a module.

nn.KLDivLoss(options?: table) -> Module
  kl_div with these options, as a module.

nn.KLDivergenceLoss(options?: table) -> Module
  kl_divergence with these options, as a module.

nn.GaussianNLLLoss(options?: table) -> Module
  gaussian_nll with these options, as a module.

nn.GaussianNLLLogVarLoss(options?: table) -> Module
  gaussian_nll_log_var with these options, as a module.

nn.PoissonNLLLoss(options?: table) -> Module
  poisson_nll with these options, as a module.

nn.HingeLoss(options?: table) -> Module
  hinge with these options, as a module.

nn.HingeEmbeddingLoss(options?: table) -> Module
  hinge_embedding with these options, as a module.

nn.MarginRankingLoss(options?: table) -> Module
  margin_ranking with these options, as a module.

nn.TripletMarginLoss(options?: table) -> Module
  triplet with these options, as a module.

nn.ContrastiveLoss(options?: table) -> Module
  contrastive with these options, as a module.

nn.CosineEmbeddingLoss(options?: table) -> Module
  cosine_embedding with these options, as a module.

nn.InfoNCELoss(options?: table) -> Module
  info_nce with these options, as a module.

nn.CTCLoss(options?: table) -> Module
  ctc with these options, as a module.
]]
