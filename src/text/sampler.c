/* sampler.c - samplers: the choice of an id from a row of logits. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

void sampler_place (char *to, size_t size, Place at) {
  if (at.rows == 1) *to = '\0';
  else
    snprintf(to, size, " (row %lld of %lld)", (long long)at.row + 1,
             (long long)at.rows);
}

/*
** {======================================================
** Memory
** =======================================================
*/

void *sampler_scratch (fnn_Sampler *s, size_t bytes) {
  if (s->scratch_bytes < bytes) {
    mem_free(s->scratch, s->scratch_bytes);
    s->scratch = NULL;
    s->scratch_bytes = 0;
    s->scratch = mem_new(bytes);
    s->scratch_bytes = bytes;
  }
  return s->scratch;
}

int64_t *sampler_room (fnn_Sampler *s, int64_t n) {
  if (s->room < n) {
    int64_t room = max64(n, 2 * s->room);
    size_t each = sizeof *s->history;
    size_t bytes = (size_t)mem_mul(room, (int64_t)each, "Sampler: history");
    s->history = mem_grow(s->history, (size_t)s->room * each, bytes);
    s->room = room;
  }
  return s->history;
}

static void counts_for (fnn_Sampler *s, int64_t n) {
  if (s->ncounts >= n) return;
  mem_free(s->counts, (size_t)s->ncounts * sizeof *s->counts);
  s->counts = NULL;
  s->ncounts = 0;
  s->counts = mem_new((size_t)n * sizeof *s->counts);
  memset(s->counts, 0, (size_t)n * sizeof *s->counts);
  s->ncounts = n;
}

static void weights_for (fnn_Sampler *s, int64_t n, fnn_Dtype t) {
  Tensor *w = s->weights;
  size_t bytes = (size_t)n * fnn_dtype_size(t);
  if (w != NULL && w->dtype == t && w->storage->bytes >= bytes) return;
  w = fnn_retain(tensor_new(1, &n, t, device_cpu()));
  fnn_release(s->weights);
  s->weights = w;
}

static void sampler_destroy (void *p) {
  fnn_Sampler *s = p;
  fnn_release(s->generator);
  fnn_release(s->weights);
  mem_free(s->scratch, s->scratch_bytes);
  mem_free(s->counts, (size_t)s->ncounts * sizeof *s->counts);
  mem_free(s->history, (size_t)s->room * sizeof *s->history);
}

/* }====================================================== */

static const Type sampler_type = { "Sampler", sampler_destroy };

bool sampler_is_greedy (const fnn_Sampler *s) {
  return s->options.temperature == 0 || s->options.top_k == 1;
}

double sampler_uniform (const fnn_Sampler *s) {
  uint64_t bits = generator_next(generator_or_default(s->generator));
  return (double)(bits >> 11) * 0x1p-53;
}

/*
** {======================================================
** Samplers
** =======================================================
*/

static void check (const char *name, double v, bool ok, const char *expected) {
  if (!ok)
    fnn_throw(FNN_EARG, "Sampler: option '%s': expected %s, got %g", name,
              expected, v != v ? NAN : v); /* without a sign */
}

static void check_options (const fnn_SamplerOptions *o) {
  double r = o->repetition_penalty, f = o->frequency_penalty;
  check("temperature", o->temperature,
        o->temperature >= 0 && isfinite(o->temperature),
        "a finite number of 0 or more");
  if (o->top_k < 1)
    fnn_throw(FNN_EARG,
              "Sampler: option 'top_k': expected an integer of 1 or more, "
              "got %lld",
              (long long)o->top_k);
  check("top_p", o->top_p, o->top_p > 0 && o->top_p <= 1,
        "a number above 0, at most 1");
  check("min_p", o->min_p, o->min_p >= 0 && o->min_p <= 1,
        "a number from 0 to 1");
  check("repetition_penalty", r, r >= 1 && isfinite(r),
        "a finite number of 1 or more");
  check("frequency_penalty", f, isfinite(f), "a finite number");
  check("presence_penalty", o->presence_penalty, isfinite(o->presence_penalty),
        "a finite number");
}

fnn_Sampler *fnn_sampler (const fnn_SamplerOptions *o, fnn_Generator *g) {
  check_options(o);
  fnn_Sampler *s = object_new(&sampler_type, sizeof *s);
  s->options = *o;
  s->generator = fnn_retain(g);
  return s;
}

fnn_SamplerOptions fnn_sampler_options (const fnn_Sampler *s) {
  return s->options;
}

bool fnn_sampler_penalizes (const fnn_Sampler *s) {
  const fnn_SamplerOptions *o = &s->options;
  return o->repetition_penalty != 1 || o->frequency_penalty != 0 ||
         o->presence_penalty != 0;
}

static void check_logits (const Tensor *x) {
  if (!tensor_is_float(x))
    fnn_throw(FNN_EDTYPE, "Sampler: expected logits of a float dtype, got %s",
              fnn_dtype_name((fnn_Dtype)x->dtype));
  if (x->ndim < 1 || x->ndim > 2)
    fnn_throw(FNN_ESHAPE,
              "Sampler: expected logits of shape (vocabulary) or (rows, "
              "vocabulary), got %s",
              shape_text(x));
  int64_t n = x->shape[x->ndim - 1];
  if (n < 1 || n > INT32_MAX)
    fnn_throw(FNN_ESHAPE,
              "Sampler: expected a vocabulary of 1 to %d ids, got logits of "
              "shape %s",
              INT32_MAX, shape_text(x));
}

static void check_history (const int64_t *history, int64_t count, int64_t n,
                           Place at) {
  char row[64];
  for (int64_t i = 0; i < count; i++) {
    if (history[i] >= 0 && history[i] < n) continue;
    sampler_place(row, sizeof row, at);
    fnn_throw(FNN_EARG,
              "Sampler: id %lld in the history%s is out of range (the "
              "vocabulary has %lld; ids count from 0)",
              (long long)history[i], row, (long long)n);
  }
}

/* x on the host, dense, in f32 or f64. */
static const Tensor *read_logits (const Tensor *x) {
  if (!x->storage->device->host) x = tensor_move(x, device_cpu());
  if (!dtype_is_compute((fnn_Dtype)x->dtype)) x = tensor_convert(x, FNN_F32);
  return tensor_dense(x);
}

void fnn_sample (fnn_Sampler *s, const fnn_Tensor *logits,
                 const int64_t *history, const int64_t *count, int64_t *ids) {
  check_logits(logits);
  bool penalizes =
      fnn_sampler_penalizes(s) && history != NULL && count != NULL;
  int64_t n = logits->shape[logits->ndim - 1];
  int64_t rows = logits->ndim == 2 ? logits->shape[0] : 1;
  const int64_t *past = history;
  for (int64_t r = 0; penalizes && r < rows; past += count[r++])
    check_history(past, count[r], n, (Place){ r, rows });
  const Tensor *x = read_logits(logits);
  if (penalizes) counts_for(s, n);
  weights_for(s, n, (fnn_Dtype)x->dtype);
  past = history;
  for (int64_t r = 0; r < rows; r++) {
    int64_t k = penalizes ? count[r] : 0;
    fnn_poll();
    Place at = { r, rows };
    if (x->dtype == FNN_F64)
      ids[r] = sampler_choose_f64(s, (const double *)tensor_data(x) + r * n, n,
                                  past, k, at);
    else
      ids[r] = sampler_choose_f32(s, (const float *)tensor_data(x) + r * n, n,
                                  past, k, at);
    if (penalizes) past += k;
  }
}

/* }====================================================== */
