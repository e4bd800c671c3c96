/* fnn_nn.h - the public C API above tensors: modules, losses, optimizers,
** datasets.  Words, errors and ownership as in fnn.h. */

#ifndef fnn_nn_h
#define fnn_nn_h

#include "fnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
** {======================================================
** Modules
** =======================================================
*/

/* A layer and what it owns: Params, buffers (tensors that are saved but not
** trained) and submodules it made itself.  Trees of modules that a user puts
** together are built in Lua, or by the host's own code. */
typedef struct fnn_Module fnn_Module;

/* The module's function of x. */
FNN_API fnn_Tensor *fnn_forward (fnn_Module *m, fnn_Tensor *x);

/* "Linear", and what it was made with, as "784, 128" (size bytes at most). */
FNN_API const char *fnn_module_class (const fnn_Module *m);
FNN_API void fnn_module_text (const fnn_Module *m, char *to, size_t size);

/* Whether it behaves as in training (dropout draws); it does at first.
** fnn_train reaches the submodules. */
FNN_API void fnn_train (fnn_Module *m, bool on);
FNN_API bool fnn_is_training (const fnn_Module *m);

/* A part by name; one of the three pointers is set, or none when the module
** was made without this part (a bias). */
typedef struct fnn_Member {
  const char *name;
  fnn_Param *param;
  fnn_Tensor *buffer;
  fnn_Module *child;
} fnn_Member;

/* The i-th part, from 0; false behind the last. */
FNN_API bool fnn_member (const fnn_Module *m, int i, fnn_Member *to);
/* Another Param, or buffer, in the place of a part: the same shape.  Using
** one Param in two modules ties them. */
FNN_API void fnn_member_param (fnn_Module *m, const char *name, fnn_Param *p);
FNN_API void fnn_member_buffer (fnn_Module *m, const char *name,
                                fnn_Tensor *x);

/* All Params of m and its submodules, each once: fills to up to max and
** returns how many there are. */
FNN_API int fnn_parameters (const fnn_Module *m, fnn_Param **to, int max);

/* Moves Params and buffers, which keep their identity; t is the dtype that
** float ones get. */
FNN_API void fnn_module_to (fnn_Module *m, const fnn_Device *d, fnn_Dtype t);

/* Constructors: fnn_nn_linear is nn.Linear of Lua.  Initial values are
** PyTorch's, drawn from g (NULL: the context's). */

/* x W' + b.  x (..., in), result (..., out); weight (out, in), bias (out). */
FNN_API fnn_Module *fnn_nn_linear (int64_t in, int64_t out, bool bias,
                                   fnn_Dtype t, const fnn_Device *d,
                                   fnn_Generator *g);
/* A row of map.def, with its parameters. */
FNN_API fnn_Module *fnn_nn_activation (int op, double a, double b);
/* In training, zeroes with probability p and scales the rest by 1/(1-p);
** else nothing.  g is retained. */
FNN_API fnn_Module *fnn_nn_dropout (double p, fnn_Generator *g);
/* Normalizes over the last n dims, which have these sizes; affine: with
** weight and bias of that shape. */
FNN_API fnn_Module *fnn_nn_layer_norm (int n, const int64_t *shape, double eps,
                                       bool affine, fnn_Dtype t,
                                       const fnn_Device *d);
/* The same without the mean: a weight, and no bias. */
FNN_API fnn_Module *fnn_nn_rms_norm (int n, const int64_t *shape, double eps,
                                     bool affine, fnn_Dtype t,
                                     const fnn_Device *d);

typedef struct fnn_BatchNormOptions {
  double eps;
  double momentum; /* of the new statistics; negative: the mean of all */
  bool affine;     /* with weight and bias (channels) */
  bool track_running_stats;
} fnn_BatchNormOptions;

#define FNN_BATCH_NORM_INIT \
  { 1e-5, 0.1, true, true }

/* fnn_batch_norm of x (n, channels, ...) with dims 1 to 3 behind the channels
** (with 1 also none).  In training by the batch; else by the running
** statistics, if they are tracked: buffers running_mean, running_var and
** num_batches_tracked.  o NULL: the options of FNN_BATCH_NORM_INIT. */
FNN_API fnn_Module *fnn_nn_batch_norm (int dims, int64_t channels,
                                       const fnn_BatchNormOptions *o,
                                       fnn_Dtype t, const fnn_Device *d);
FNN_API fnn_Module *fnn_nn_group_norm (int64_t groups, int64_t channels,
                                       double eps, bool affine, fnn_Dtype t,
                                       const fnn_Device *d);
/* x may come without a batch. */
FNN_API fnn_Module *fnn_nn_instance_norm (int dims, int64_t channels,
                                          double eps, bool affine, fnn_Dtype t,
                                          const fnn_Device *d);
/* fnn_prelu with count slopes, 1 or the channels. */
FNN_API fnn_Module *fnn_nn_prelu (int64_t count, double start, fnn_Dtype t,
                                  const fnn_Device *d);
/* Rows of weight (count, dim) by ids: x (...) of integers from 0, result
** (..., dim). */
FNN_API fnn_Module *fnn_nn_embedding (int64_t count, int64_t dim, fnn_Dtype t,
                                      const fnn_Device *d, fnn_Generator *g);

/* fnn_conv and fnn_conv_transpose over 1, 2 or 3 dims: kernels of this size,
** weight (out, in / groups, size...), transposed (in, out / groups, size...),
** bias (out). */
FNN_API fnn_Module *fnn_nn_conv (int dims, int64_t in, int64_t out,
                                 const int64_t *size, const fnn_ConvOptions *o,
                                 bool bias, fnn_Dtype t, const fnn_Device *d,
                                 fnn_Generator *g);
FNN_API fnn_Module *fnn_nn_conv_transpose (int dims, int64_t in, int64_t out,
                                           const int64_t *size,
                                           const fnn_ConvOptions *o, bool bias,
                                           fnn_Dtype t, const fnn_Device *d,
                                           fnn_Generator *g);

/* What the laws of initial weights take the spread from. */
typedef enum fnn_Fan {
  FNN_FAN_IN,  /* inputs of an output: kaiming */
  FNN_FAN_OUT, /* outputs of an input: kaiming, by what flows back */
  FNN_FAN_BOTH /* their mean: xavier */
} fnn_Fan;

/* The standard deviation gain / sqrt(fan) for a weight (out, in, ...). */
FNN_API double fnn_init_std (int ndim, const int64_t *shape, fnn_Fan fan,
                             double gain);

/* }====================================================== */

/*
** {======================================================
** Losses
** =======================================================
*/

/* What is made of the losses of elements, rows or items: their mean, their
** sum, or all of them; FNN_BATCHMEAN, of kl_div alone, divides the sum by the
** size of dim 0. */
typedef enum fnn_Reduction {
  FNN_MEAN,
  FNN_SUM,
  FNN_NONE,
  FNN_BATCHMEAN
} fnn_Reduction;

/* Losses of class ids. */
typedef struct fnn_LossOptions {
  fnn_Tensor *weight;     /* (classes), or NULL */
  int64_t ignore_index;   /* an id whose rows count for nothing */
  double label_smoothing; /* 0 .. 1; not of nll */
  fnn_Reduction reduction;
} fnn_LossOptions;

#define FNN_LOSS_INIT \
  { NULL, -100, 0, FNN_MEAN }

/* Logits (n, c) or (n, c, d...) against ids (n) or (n, d...), or against
** probabilities of the logits' own shape.  The mean is over the weights of
** the ids that count; when none counts it is 0.  o NULL: the options of
** FNN_LOSS_INIT. */
FNN_API fnn_Tensor *fnn_cross_entropy (fnn_Tensor *logits, fnn_Tensor *targets,
                                       const fnn_LossOptions *o);
/* The same of log-probabilities, against ids. */
FNN_API fnn_Tensor *fnn_nll (fnn_Tensor *x, fnn_Tensor *ids,
                             const fnn_LossOptions *o);

/* Losses of elements.  Prediction x and target t have one shape, which
** everything else must broadcast to; without a reduction it is the result's.
** Targets may be integers or bools.  A gradient flows to x, to a float t
** (not of hinge_embedding), and to variances; not to weights.  weight: of
** each element, or NULL. */

FNN_API fnn_Tensor *fnn_mse (fnn_Tensor *x, fnn_Tensor *t, fnn_Reduction r);
FNN_API fnn_Tensor *fnn_l1 (fnn_Tensor *x, fnn_Tensor *t, fnn_Reduction r);
/* With d = |x - t|: d^2 / 2 up to delta > 0, delta (d - delta / 2) beyond. */
FNN_API fnn_Tensor *fnn_huber (fnn_Tensor *x, fnn_Tensor *t, double delta,
                               fnn_Reduction r);
/* d^2 / (2 beta) below beta >= 0, d - beta / 2 from there on. */
FNN_API fnn_Tensor *fnn_smooth_l1 (fnn_Tensor *x, fnn_Tensor *t, double beta,
                                   fnn_Reduction r);
/* Probabilities x, which must lie in 0 .. 1.  No logarithm is below -100. */
FNN_API fnn_Tensor *fnn_bce (fnn_Tensor *x, fnn_Tensor *t, fnn_Tensor *weight,
                             fnn_Reduction r);
/* Logits x.  pos_weight: of the positive part of each element, or NULL. */
FNN_API fnn_Tensor *fnn_bce_with_logits (fnn_Tensor *x, fnn_Tensor *t,
                                         fnn_Tensor *weight,
                                         fnn_Tensor *pos_weight,
                                         fnn_Reduction r);
/* Logits x; p is what they give to the true class: (1 - p)^gamma -log p,
** times alpha where t is 1 and 1 - alpha where it is 0, unless alpha is
** negative (Lin et al. 2017). */
FNN_API fnn_Tensor *fnn_focal (fnn_Tensor *x, fnn_Tensor *t, double alpha,
                               double gamma, fnn_Reduction r);
/* t (log t - x) of log-probabilities x; 0 where t is 0.  log_target: t holds
** logarithms too. */
FNN_API fnn_Tensor *fnn_kl_div (fnn_Tensor *x, fnn_Tensor *t, bool log_target,
                                fnn_Reduction r);
/* KL(t || x) of probabilities, summed over the last dim: a loss a row. */
FNN_API fnn_Tensor *fnn_kl_divergence (fnn_Tensor *x, fnn_Tensor *t,
                                       fnn_Reduction r);
/* (log v + (x - t)^2 / v) / 2 with v = var, eps at least; full adds
** log(2 pi) / 2.  var may also lack x's last dim. */
FNN_API fnn_Tensor *fnn_gaussian_nll (fnn_Tensor *x, fnn_Tensor *t,
                                      fnn_Tensor *var, bool full, double eps,
                                      fnn_Reduction r);
/* The same of the logarithm of the variance, which needs no eps. */
FNN_API fnn_Tensor *fnn_gaussian_nll_log_var (fnn_Tensor *x, fnn_Tensor *t,
                                              fnn_Tensor *log_var,
                                              fnn_Reduction r);
/* e^x - t x of logarithms of rates x, or x - t log(x + eps) of rates; full
** adds Stirling's log t! where t > 1. */
FNN_API fnn_Tensor *fnn_poisson_nll (fnn_Tensor *x, fnn_Tensor *t,
                                     bool log_input, bool full, double eps,
                                     fnn_Reduction r);
/* Targets 1 and -1: max(0, margin - t x). */
FNN_API fnn_Tensor *fnn_hinge (fnn_Tensor *x, fnn_Tensor *t, double margin,
                               fnn_Reduction r);
/* Targets 1 and -1: x for those that are alike, else max(0, margin - x). */
FNN_API fnn_Tensor *fnn_hinge_embedding (fnn_Tensor *x, fnn_Tensor *t,
                                         double margin, fnn_Reduction r);
/* y 1 where x should exceed t, -1 where t should exceed x:
** max(0, margin - y (x - t)). */
FNN_API fnn_Tensor *fnn_margin_ranking (fnn_Tensor *x, fnn_Tensor *t,
                                        fnn_Tensor *y, double margin,
                                        fnn_Reduction r);

/* Losses of rows: the last dim is the vector's, the shape before it is the
** result's without a reduction.  A distance of 0 has the gradient 0. */

/* max(0, |a - p| - |a - n| + margin), distances of order p > 0 of
** differences plus eps.  swap: from the nearer of anchor and positive to the
** negative (Balntas et al. 2016). */
FNN_API fnn_Tensor *fnn_triplet (fnn_Tensor *anchor, fnn_Tensor *positive,
                                 fnn_Tensor *negative, double margin, double p,
                                 double eps, bool swap, fnn_Reduction r);
/* y d^2 + (1 - y) max(0, margin - d)^2, y 1 for rows that are alike, else 0
** (Hadsell et al. 2006, without the halves). */
FNN_API fnn_Tensor *fnn_contrastive (fnn_Tensor *a, fnn_Tensor *b,
                                     fnn_Tensor *y, double margin,
                                     fnn_Reduction r);
/* 1 - cos(a, b) where y is 1, max(0, cos(a, b) - margin) where it is -1. */
FNN_API fnn_Tensor *fnn_cosine_embedding (fnn_Tensor *a, fnn_Tensor *b,
                                          fnn_Tensor *y, double margin,
                                          fnn_Reduction r);
/* Rows (n, d) that belong together, against all others of the batch: cross
** entropy of cosines over temperature > 0 (van den Oord et al. 2018). */
FNN_API fnn_Tensor *fnn_info_nce (fnn_Tensor *a, fnn_Tensor *b,
                                  double temperature, fnn_Reduction r);
/* 1 - (2 sum x t + smooth) / (sum x + sum t + smooth) of probabilities: for
** each item of dim 0, or, with batch or for a vector, over all. */
FNN_API fnn_Tensor *fnn_dice (fnn_Tensor *x, fnn_Tensor *t, double smooth,
                              bool batch, fnn_Reduction r);

/* Connectionist temporal classification (Graves et al. 2006) of
** log-probabilities x (steps, n, classes), or (steps, classes) of one
** sequence.  ids: (n, most), padded with anything, or those of all sequences
** behind each other; steps and counts (n) integers: the steps of x and the ids
** that belong to each.  blank: the class between labels.  A sequence with no
** way to its labels is infinite, or, with zero_infinity, 0.  The mean first
** divides each loss by its count of ids. */
FNN_API fnn_Tensor *fnn_ctc (fnn_Tensor *x, fnn_Tensor *ids, fnn_Tensor *steps,
                             fnn_Tensor *counts, int64_t blank,
                             bool zero_infinity, fnn_Reduction r);

/* }====================================================== */

/*
** {======================================================
** Optimizers
** =======================================================
*/

/* Updates the parameters of its groups, each with options of its own.  A
** parameter without a gradient, or frozen, is left alone.  The state of a
** parameter is kept in the Param: it moves with the weight. */
typedef struct fnn_Optimizer fnn_Optimizer;

/* An option by name, as in "betas", { 0.9, 0.99 }: one number, or two or
** three.  A flag is 0 or 1, one of some words its place among them. */
typedef struct fnn_Option {
  const char *name;
  double value[3];
} fnn_Option;

/* What there is to know of an option. */
typedef struct fnn_OptionInfo {
  const char *name;
  int numbers; /* how many it takes */
  bool flag;
  const char *const *words; /* NULL-ended, or NULL where it is a number */
  double value[3];          /* NaN: unset */
} fnn_OptionInfo;

/* An optimizer by name, without parameters yet: "SGD", "Adam", "AdamW" ...;
** these names by number, NULL behind the last. */
FNN_API fnn_Optimizer *fnn_optimizer (const char *name);
FNN_API const char *fnn_optimizer_rule (int i);
/* Adds a group of n parameters and returns its place.  Options that are not
** given are what PyTorch's are.  Throws FNN_EARG for an unknown option, one
** out of its range, or a parameter that is in a group already; FNN_ESHAPE for
** one that the optimizer cannot take. */
FNN_API int fnn_optimizer_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                                 int noptions, const fnn_Option *options);
/* The i-th option of a group (group -1: as it is when not given); false behind
** the last.  And other values for some, in one group or (-1) in all; what is
** kept of the parameters stays as it is. */
FNN_API bool fnn_optimizer_option (fnn_Optimizer *o, int group, int i,
                                   fnn_OptionInfo *to);
FNN_API void fnn_optimizer_set (fnn_Optimizer *o, int group, int n,
                                const fnn_Option *options);
FNN_API double fnn_optimizer_lr (fnn_Optimizer *o, int group);
FNN_API void fnn_optimizer_set_lr (fnn_Optimizer *o, int group,
                                   double lr); /* group -1: all */

FNN_API void fnn_optimizer_step (fnn_Optimizer *o);
/* A step with gradients times scale, and times less where their L2 norm would
** be more than most; returns that norm.  The gradients stay as they are. */
FNN_API double fnn_optimizer_step_clipped (fnn_Optimizer *o, double scale,
                                           double most);
/* The same without waiting for a device: the norm is an f64 tensor without
** dims there, to be read when it is wanted. */
FNN_API fnn_Tensor *
fnn_optimizer_step_clipped_later (fnn_Optimizer *o, double scale, double most);
FNN_API void fnn_optimizer_zero_grad (fnn_Optimizer *o);
FNN_API const char *fnn_optimizer_name (const fnn_Optimizer *o);
FNN_API int fnn_optimizer_groups (const fnn_Optimizer *o);
FNN_API int fnn_optimizer_params (fnn_Optimizer *o, int group);
FNN_API fnn_Param *fnn_optimizer_param (fnn_Optimizer *o, int group, int i);

/* What it keeps of a parameter: tensors, NULL where there is none (yet), and
** their names ("exp_avg"), which are NULL too where it has no such. */
typedef struct fnn_OptimizerState {
  int64_t step;
  double product; /* NAdam's, of its momenta */
  fnn_Tensor *tensor[3];
} fnn_OptimizerState;

FNN_API const char *fnn_optimizer_state_name (const fnn_Optimizer *o, int k);
FNN_API fnn_OptimizerState fnn_optimizer_state (fnn_Optimizer *o,
                                                fnn_Param *p);
/* Takes the states of all n parameters, in the order of the groups: copies.
** Throws, with nothing changed, when a shape does not fit or one is missing. */
FNN_API void fnn_optimizer_load (fnn_Optimizer *o, int n,
                                 const fnn_OptimizerState *s);
/* Throws what fnn_optimizer_load would, and changes nothing. */
FNN_API void fnn_optimizer_check (const fnn_Optimizer *o, int n,
                                  const fnn_OptimizerState *s);

/* The L2 norm of all gradients; scaling them down to a norm of at most most
** (returns the norm before); clamping each element to +-most. */
FNN_API double fnn_grad_norm (int n, fnn_Param *const *p);
FNN_API double fnn_clip_grad_norm (int n, fnn_Param *const *p, double most);
/* The same without waiting for a device, as fnn_optimizer_step_clipped_later.
** The functions that return numbers do wait. */
FNN_API fnn_Tensor *fnn_grad_norm_later (int n, fnn_Param *const *p);
FNN_API fnn_Tensor *fnn_clip_grad_norm_later (int n, fnn_Param *const *p,
                                              double most);
FNN_API void fnn_clip_grad_value (int n, fnn_Param *const *p, double most);
FNN_API void fnn_scale_grad (int n, fnn_Param *const *p, double factor);
FNN_API bool fnn_gradients_are_finite (int n, fnn_Param *const *p);

/* }====================================================== */

/*
** {======================================================
** Datasets and loaders
** =======================================================
*/

/* Items of a fixed number of tensors, the fields: inputs, labels ... */
typedef struct fnn_Dataset fnn_Dataset;

/* A field of tensors in memory: x (n, item ...).  When convert is set, items
** are converted to dtype and multiplied by scale as they are read, so that
** images may stay bytes. */
typedef struct fnn_DataField {
  fnn_Tensor *x;
  bool convert;
  fnn_Dtype dtype;
  double scale;
} fnn_DataField;

FNN_API fnn_Dataset *fnn_tensor_dataset (int n, const fnn_DataField *f);
/* Windows of a sequence of ids (count), u8, i32 or i64: item i is the length
** ids from i * step on, and those that come one later; both i64. */
FNN_API fnn_Dataset *fnn_windows (fnn_Tensor *ids, int64_t length,
                                  int64_t step);
/* The n items of base with these ids, which count from 0. */
FNN_API fnn_Dataset *fnn_subset (fnn_Dataset *base, int64_t n,
                                 const int64_t *ids);
FNN_API int64_t fnn_dataset_size (const fnn_Dataset *d);
FNN_API int fnn_dataset_fields (const fnn_Dataset *d);
/* Shape and dtype of an item's k-th field; returns the number of dims. */
FNN_API int fnn_dataset_field (const fnn_Dataset *d, int k,
                               const int64_t **shape, fnn_Dtype *t);
/* Makes to[k] (n, item ...) of the items with these ids, for each field. */
FNN_API void fnn_dataset_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                               fnn_Tensor **to);

/* The 1797 handwritten digits that the library carries: u8 (1797, 8, 8) of 0
** to 16, and through *labels i64 (1797). */
FNN_API fnn_Tensor *fnn_digits (fnn_Tensor **labels);

/* Batches of a dataset.  The order of an epoch depends on seed and epoch
** alone.  With prefetch a thread keeps that many batches ready; for a card it
** does so in pinned memory, from where they are copied while the card computes
** on what it was given before. */
typedef struct fnn_Loader fnn_Loader;

typedef struct fnn_LoaderOptions {
  int64_t batch;
  bool shuffle, drop_last;
  uint64_t seed;
  int prefetch;
  const fnn_Device *device; /* where batches go; NULL: the CPU */
  bool pageable;            /* without pinned memory: copied by next */
} fnn_LoaderOptions;

FNN_API fnn_Loader *fnn_loader (fnn_Dataset *d, const fnn_LoaderOptions *o);
/* The next batch, a tensor a field; false at the end of the epoch. */
FNN_API bool fnn_loader_next (fnn_Loader *l, fnn_Tensor **x);
/* Moves the cursor to an epoch, behind the first batch of its batches. */
FNN_API void fnn_loader_start (fnn_Loader *l, int64_t epoch, int64_t batch);
FNN_API void fnn_loader_cursor (const fnn_Loader *l, int64_t *epoch,
                                int64_t *batch);
FNN_API int64_t fnn_loader_batches (const fnn_Loader *l); /* in an epoch */
FNN_API fnn_Dataset *fnn_loader_dataset (const fnn_Loader *l);
/* The order of n items in an epoch, as loaders use it. */
FNN_API void fnn_epoch_order (int64_t n, uint64_t seed, int64_t epoch,
                              int64_t *order);

/* }====================================================== */

#ifdef __cplusplus
}
#endif

#endif
