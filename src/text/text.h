/* text.h - what the files of text share.
**
** sampler.c    samplers of ids; row.h what is done with one row of logits */

#ifndef text_h
#define text_h

#include "../fnn_models.h"
#include "../core/core.h"
#include "../core/ops.h"

struct fnn_Sampler {
  Object o;
  fnn_SamplerOptions options;
  fnn_Generator *generator; /* retained, or NULL: the context's */
  Tensor *weights;          /* of f32 or f64: e^z of what may be chosen */
  char *scratch;
  size_t scratch_bytes;
  int32_t *counts; /* how often each of ncounts ids is in a history: zeros */
  int64_t ncounts; /* between two calls */
  int64_t *history;
  int64_t room; /* for so many ids of a history */
};

/* Room for a history of n ids that the caller collects; the next call may move
** it. */
int64_t *sampler_room (fnn_Sampler *s, int64_t n) LENT(sampler_room);

#endif
