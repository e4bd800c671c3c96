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

typedef enum fnn_Reduction { FNN_MEAN, FNN_SUM, FNN_NONE } fnn_Reduction;

typedef struct fnn_LossOptions {
  fnn_Tensor *weight;     /* (classes), or NULL */
  int64_t ignore_index;   /* an id whose rows count for nothing */
  double label_smoothing; /* 0 .. 1 */
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
/* Squared differences of two tensors of one shape; of o only the reduction
** is read. */
FNN_API fnn_Tensor *fnn_mse (fnn_Tensor *x, fnn_Tensor *y,
                             const fnn_LossOptions *o);

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

typedef struct fnn_SgdOptions {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
} fnn_SgdOptions;

typedef struct fnn_AdamOptions {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled; /* AdamW */
  bool amsgrad;
} fnn_AdamOptions;

#define FNN_ADAM_INIT \
  { 1e-3, 0.9, 0.999, 1e-8, 0, false, false }

FNN_API fnn_Optimizer *fnn_sgd (void);
FNN_API fnn_Optimizer *fnn_adam (void);
FNN_API void fnn_sgd_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                            const fnn_SgdOptions *s);
FNN_API void fnn_adam_group (fnn_Optimizer *o, int n, fnn_Param *const *p,
                             const fnn_AdamOptions *s);

FNN_API void fnn_optimizer_step (fnn_Optimizer *o);
FNN_API void fnn_optimizer_zero_grad (fnn_Optimizer *o);
FNN_API double fnn_optimizer_lr (fnn_Optimizer *o, int group);
FNN_API void fnn_optimizer_set_lr (fnn_Optimizer *o, int group,
                                   double lr); /* group -1: all */
FNN_API int fnn_optimizer_groups (const fnn_Optimizer *o);
FNN_API const char *fnn_optimizer_name (const fnn_Optimizer *o);
FNN_API int fnn_optimizer_params (const fnn_Optimizer *o, int group);
FNN_API fnn_Param *fnn_optimizer_param (const fnn_Optimizer *o, int group,
                                        int i);
/* The name of the k-th state tensor ("exp_avg"), NULL past the last; that
** tensor of p, or NULL before its first step; and its replacement. */
FNN_API const char *fnn_optimizer_state_name (const fnn_Optimizer *o, int k);
FNN_API fnn_Tensor *fnn_optimizer_state (fnn_Optimizer *o, fnn_Param *p, int k,
                                         int64_t *step);
FNN_API void fnn_optimizer_set_state (fnn_Optimizer *o, fnn_Param *p, int k,
                                      fnn_Tensor *x, int64_t step);

/* The L2 norm of all gradients; scaling them down to a norm of at most most
** (returns the norm before); clamping each element to +-most. */
FNN_API double fnn_grad_norm (int n, fnn_Param *const *p);
FNN_API double fnn_clip_grad_norm (int n, fnn_Param *const *p, double most);
FNN_API void fnn_clip_grad_value (int n, fnn_Param *const *p, double most);
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
** alone.  With prefetch a thread keeps that many batches ready. */
typedef struct fnn_Loader fnn_Loader;

typedef struct fnn_LoaderOptions {
  int64_t batch;
  bool shuffle, drop_last;
  uint64_t seed;
  int prefetch;
  const fnn_Device *device; /* where batches go; NULL: the CPU */
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
