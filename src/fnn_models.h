/* fnn_models.h - the public C API of models: text.  Words, errors and
** ownership as in fnn.h. */

#ifndef fnn_models_h
#define fnn_models_h

#include "fnn_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
** {======================================================
** Sampling of tokens
** =======================================================
*/

/* How an id is chosen from logits, in this order. */
typedef struct fnn_SamplerOptions {
  double repetition_penalty; /* 1 or more, once for each id in the history:
                                divides a positive logit, multiplies others */
  double frequency_penalty;  /* taken off for each time in the history */
  double presence_penalty;   /* taken off once for an id in the history */
  double temperature;        /* divides the logits; 0: the largest is chosen */
  int64_t top_k;             /* 1 or more: so many of the largest stay */
  double top_p;              /* in (0, 1]: the fewest of the largest stay whose
                   probabilities, of what top_k left, have this sum */
  double min_p; /* in [0, 1]: what has at least this share of the largest
                   probability stays */
} fnn_SamplerOptions;

#define FNN_SAMPLER_INIT \
  { 1, 0, 0, 1, INT64_MAX, 1, 0 }

/* A sampler has the memory that it works in, and so makes none from the
** second call on.  Among equal logits those of the lowest ids are the larger.
** g is retained; NULL: the context's. */
typedef struct fnn_Sampler fnn_Sampler;
FNN_API fnn_Sampler *fnn_sampler (const fnn_SamplerOptions *o,
                                  fnn_Generator *g);
FNN_API fnn_SamplerOptions fnn_sampler_options (const fnn_Sampler *s);
/* Whether it looks at histories. */
FNN_API bool fnn_sampler_penalizes (const fnn_Sampler *s);

/* Chooses an id for each row of logits, (n) or (rows, n) of a float dtype, -inf
** where an id may not be chosen: writes one, or rows, to ids.  history: the ids
** so far, those of each row after another, count[r] of them for row r; both
** may be NULL.  A row takes one number from the generator, or none where the
** largest is chosen.  Throws for NaN, for inf, and where all are -inf. */
FNN_API void fnn_sample (fnn_Sampler *s, const fnn_Tensor *logits,
                         const int64_t *history, const int64_t *count,
                         int64_t *ids);

/* }====================================================== */

#ifdef __cplusplus
}
#endif

#endif
