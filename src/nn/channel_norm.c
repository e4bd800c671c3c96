/* channel_norm.c - layers of normalization over channels: batch (Ioffe and
** Szegedy 2015), group (Wu and He 2018), instance (Ulyanov et al. 2016). */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn.h"

/* Weight 1 and bias 0 for n channels, or neither. */
static void add_affine (fnn_Module *m, fnn_Param **weight, fnn_Param **bias,
                        int64_t n, bool affine, fnn_Dtype t,
                        const fnn_Device *d) {
  module_param(m, "weight", weight, affine ? fnn_full(1, &n, 1, t, d) : NULL);
  module_param(m, "bias", bias, affine ? fnn_zeros(1, &n, t, d) : NULL);
}

static Tensor *value_or_null (fnn_Param *p) {
  return p != NULL ? fnn_value(p) : NULL;
}

static void check_channels (const char *class, int64_t n) {
  if (n < 1)
    fnn_throw(FNN_EARG, "%s: expected at least 1 channel, got %" PRId64, class,
              n);
}

/* Throws unless x has n channels in dim 1; shapes says what fits. */
static void check_input (const fnn_Module *m, const Tensor *x, bool fits,
                         const char *shapes, int dim, int64_t n) {
  if (!fits)
    fnn_throw(FNN_ESHAPE, "%s: expected shape %s, got %s", fnn_module_class(m),
              shapes, shape_text(x));
  if (x->shape[dim] != n)
    fnn_throw(FNN_ESHAPE,
              "%s: expected %" PRId64 " channels, got %" PRId64 " (shape %s)",
              fnn_module_class(m), n, x->shape[dim], shape_text(x));
}

static void check_dims (const char *class, int dims, int most) {
  if (dims < 1 || dims > most)
    fnn_throw(FNN_EARG, "%s: expected 1 to %d dims, got %d", class, most,
              dims);
}

/*
** {======================================================
** BatchNorm1d, 2d, 3d
** =======================================================
*/

typedef struct BatchNorm {
  fnn_Module m;
  int dims;
  int64_t channels;
  fnn_BatchNormOptions o;
  fnn_Param *weight, *bias; /* (channels), or NULL */
  Tensor *mean, *var;       /* (channels), or NULL when not tracked */
  Tensor *batches;          /* i64 (): how many were seen in training */
  /* That number as of a version of its storage: reading it from a device
  ** would wait for all that the device has to do. */
  double count;
  const fnn_Storage *counted;
  unsigned version;
} BatchNorm;

/* What the running statistics take of the batch's: all of the first, half of
** the second ... where the momentum asks for their mean. */
static double share (BatchNorm *l) {
  const fnn_Storage *s = l->batches->storage;
  if (l->o.momentum >= 0) return l->o.momentum;
  bool known = l->counted == s && l->version == s->version &&
               !s->device->host && capture_of(l->batches) == NULL;
  if (!known) l->count = fnn_item(l->batches);
  l->counted = s;
  l->version = s->version;
  return 1 / (l->count + 1);
}

static void count_batch (BatchNorm *l) {
  fnn_zip_number_(fnn_zip_find("add"), l->batches, 1);
  if (l->o.momentum >= 0) return;
  l->count++;
  l->version++;
}

static Tensor *batch_forward (fnn_Module *m, Tensor *x) {
  static const char *const shapes[] = { "(n, channels) or (n, channels, l)",
                                        "(n, channels, h, w)",
                                        "(n, channels, d, h, w)" };
  BatchNorm *l = (BatchNorm *)m;
  bool fits = x->ndim == l->dims + 2 || (l->dims == 1 && x->ndim == 2);
  check_input(m, x, fits, shapes[l->dims - 1], 1, l->channels);
  bool moves = m->training && l->mean != NULL;
  Tensor *y = fnn_batch_norm(
      x, l->mean, l->var, value_or_null(l->weight), value_or_null(l->bias),
      m->training || l->mean == NULL, moves ? share(l) : 0, l->o.eps);
  if (moves) count_batch(l);
  return y;
}

/* Adds ", { a" or ", a" to the text of options. */
static void add_option (char *to, size_t size, const char *option) {
  size_t n = strlen(to);
  bool first = strchr(to, '{') == NULL;
  if (n < size)
    snprintf(to + n, size - n, "%s%s", first ? ", { " : ", ", option);
}

static void batch_text (const fnn_Module *m, char *to, size_t size) {
  const BatchNorm *l = (const BatchNorm *)m;
  char option[64];
  snprintf(to, size, "%" PRId64, l->channels);
  snprintf(option, sizeof option, "eps = %g", l->o.eps);
  if (l->o.eps != 1e-5) add_option(to, size, option);
  snprintf(option, sizeof option, "momentum = %g", l->o.momentum);
  if (l->o.momentum < 0) add_option(to, size, "momentum = false");
  else if (l->o.momentum != 0.1) add_option(to, size, option);
  if (l->weight == NULL) add_option(to, size, "affine = false");
  if (l->mean == NULL) add_option(to, size, "track_running_stats = false");
  size_t n = strlen(to);
  if (strchr(to, '{') != NULL && n < size) snprintf(to + n, size - n, " }");
}

static const Class batch_norms[] = {
  { { "BatchNorm1d", module_destroy }, batch_forward, batch_text },
  { { "BatchNorm2d", module_destroy }, batch_forward, batch_text },
  { { "BatchNorm3d", module_destroy }, batch_forward, batch_text },
};

fnn_Module *fnn_nn_batch_norm (int dims, int64_t channels,
                               const fnn_BatchNormOptions *options,
                               fnn_Dtype t, const fnn_Device *d) {
  static const fnn_BatchNormOptions plain = FNN_BATCH_NORM_INIT;
  check_dims("BatchNorm", dims, 3);
  const Class *class = &batch_norms[dims - 1];
  check_channels(class->type.name, channels);
  BatchNorm *l = module_new(class, sizeof *l);
  l->dims = dims;
  l->channels = channels;
  l->o = options != NULL ? *options : plain;
  if (!(l->o.momentum <= 1))
    fnn_throw(FNN_EARG,
              "%s: expected a momentum of at most 1 (negative: the mean of "
              "all batches), got %g",
              class->type.name, l->o.momentum);
  check_eps(class->type.name, l->o.eps);
  bool track = l->o.track_running_stats;
  add_affine(&l->m, &l->weight, &l->bias, channels, l->o.affine, t, d);
  module_buffer(&l->m, "running_mean", &l->mean,
                track ? fnn_zeros(1, &channels, t, d) : NULL);
  module_buffer(&l->m, "running_var", &l->var,
                track ? fnn_full(1, &channels, 1, t, d) : NULL);
  module_buffer(&l->m, "num_batches_tracked", &l->batches,
                track ? fnn_zeros(0, NULL, FNN_I64, d) : NULL);
  return &l->m;
}

double batch_norm_momentum (fnn_Module *m, double momentum) {
  BatchNorm *l = (BatchNorm *)m;
  bool is_one = false;
  for (int i = 0; i < 3; i++)
    if (m->o.type == &batch_norms[i].type) is_one = true;
  if (!is_one || l->mean == NULL) return NAN;
  double before = l->o.momentum;
  l->o.momentum = momentum;
  return before;
}

/* }====================================================== */

/*
** {======================================================
** GroupNorm
** =======================================================
*/

typedef struct GroupNorm {
  fnn_Module m;
  int dims; /* of InstanceNorm */
  int64_t groups, channels;
  double eps;
  fnn_Param *weight, *bias; /* (channels), or NULL */
} GroupNorm;

static Tensor *group_forward (fnn_Module *m, Tensor *x) {
  GroupNorm *l = (GroupNorm *)m;
  check_input(m, x, x->ndim >= 2, "(n, channels, ...)", 1, l->channels);
  return fnn_group_norm(x, l->groups, value_or_null(l->weight),
                        value_or_null(l->bias), l->eps);
}

static void group_text (const fnn_Module *m, char *to, size_t size) {
  const GroupNorm *l = (const GroupNorm *)m;
  snprintf(to, size, "%" PRId64 ", %" PRId64 "%s", l->groups, l->channels,
           l->weight != NULL ? "" : ", { affine = false }");
}

static const Class group_norm = { { "GroupNorm", module_destroy },
                                  group_forward,
                                  group_text };

fnn_Module *fnn_nn_group_norm (int64_t groups, int64_t channels, double eps,
                               bool affine, fnn_Dtype t, const fnn_Device *d) {
  check_channels("GroupNorm", channels);
  if (groups < 1 || channels % groups != 0)
    fnn_throw(FNN_EARG,
              "GroupNorm: %" PRId64 " channels do not divide into %" PRId64
              " groups",
              channels, groups);
  check_eps("GroupNorm", eps);
  GroupNorm *l = module_new(&group_norm, sizeof *l);
  l->groups = groups;
  l->channels = channels;
  l->eps = eps;
  add_affine(&l->m, &l->weight, &l->bias, channels, affine, t, d);
  return &l->m;
}

/* }====================================================== */

/*
** {======================================================
** InstanceNorm1d, 2d, 3d: a group a channel, and a batch is not needed
** =======================================================
*/

static Tensor *instance_forward (fnn_Module *m, Tensor *x) {
  static const char *const shapes[] = {
    "(n, channels, l) or (channels, l)",
    "(n, channels, h, w) or (channels, h, w)",
    "(n, channels, d, h, w) or (channels, d, h, w)",
  };
  GroupNorm *l = (GroupNorm *)m;
  bool batched = x->ndim == l->dims + 2;
  check_input(m, x, batched || x->ndim == l->dims + 1, shapes[l->dims - 1],
              batched ? 1 : 0, l->channels);
  Tensor *y = fnn_instance_norm(batched ? x : fnn_unsqueeze(x, 0),
                                value_or_null(l->weight),
                                value_or_null(l->bias), l->eps);
  return batched ? y : fnn_squeeze(y, 0);
}

static void instance_text (const fnn_Module *m, char *to, size_t size) {
  const GroupNorm *l = (const GroupNorm *)m;
  snprintf(to, size, "%" PRId64 "%s", l->channels,
           l->weight != NULL ? ", { affine = true }" : "");
}

static const Class instance_norms[] = {
  { { "InstanceNorm1d", module_destroy }, instance_forward, instance_text },
  { { "InstanceNorm2d", module_destroy }, instance_forward, instance_text },
  { { "InstanceNorm3d", module_destroy }, instance_forward, instance_text },
};

fnn_Module *fnn_nn_instance_norm (int dims, int64_t channels, double eps,
                                  bool affine, fnn_Dtype t,
                                  const fnn_Device *d) {
  check_dims("InstanceNorm", dims, 3);
  const Class *class = &instance_norms[dims - 1];
  check_channels(class->type.name, channels);
  check_eps(class->type.name, eps);
  GroupNorm *l = module_new(class, sizeof *l);
  l->dims = dims;
  l->groups = l->channels = channels;
  l->eps = eps;
  add_affine(&l->m, &l->weight, &l->bias, channels, affine, t, d);
  return &l->m;
}

/* }====================================================== */
