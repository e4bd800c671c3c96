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

#ifdef __cplusplus
}
#endif

#endif
