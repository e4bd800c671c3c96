/* text.h - what the files of text share.
**
** sampler.c    samplers of ids
** row_f32.c    what they do with a row of logits, by row.h; row_f64.c */

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

/* A row among those of a call, and " (row 2 of 3)" for messages. */
typedef struct Place {
  int64_t row, rows;
} Place;
void sampler_place (char *to, size_t size, Place at);

/* The id for a row of n logits: row.h. */
int64_t sampler_choose_f32 (fnn_Sampler *s, const float *x, int64_t n,
                            const int64_t *history, int64_t count, Place at);
int64_t sampler_choose_f64 (fnn_Sampler *s, const double *x, int64_t n,
                            const int64_t *history, int64_t count, Place at);

void *sampler_scratch (fnn_Sampler *s, size_t bytes);
bool sampler_is_greedy (const fnn_Sampler *s);
double sampler_uniform (const fnn_Sampler *s); /* in [0, 1), of 53 bits */

#endif
