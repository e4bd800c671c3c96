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

#define FNN_ADAM_INIT { 1e-3, 0.9, 0.999, 1e-8, 0, false, false }

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
FNN_API fnn_Tensor *fnn_optimizer_state (fnn_Optimizer *o, fnn_Param *p,
                                         int k, int64_t *step);
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
