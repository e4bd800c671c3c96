/* conv_keep.c - packed weights, kept with a weight that stays as it is for a
** while: nothing is learnt now, or not by it. */

#include "conv.h"

/* Fewer places than this are computed so fast that packing for them counts. */
enum { PLACES = 1024 };

typedef struct Keep {
  const Weights *w;
  int64_t group, groups;
  Param *of;
  const void *key;
  Tensor *blob;
} Keep;

/* All groups, one after the other. */
static void pack (const Keep *k, real *to) {
  int64_t size = CPU(weights_size)(k->w);
  for (int64_t g = 0; g < k->groups; g++) {
    Weights part = *k->w;
    part.data += g * k->group;
    CPU(weights_pack)(&part, to + g * size);
  }
}

static void pack_kept (void *ud) {
  Keep *k = ud;
  int64_t shape[2] = { k->groups, CPU(weights_size)(k->w) };
  const Tensor *value = k->of->value;
  k->blob =
      tensor_new(2, shape, (fnn_Dtype)value->dtype, value->storage->device);
  pack(k, tensor_data(k->blob));
  param_derive(k->of, k->key, k->blob);
  fnn_retain(k->blob);
}

/* The copy kept, made where there is none, or one for other groups.  NULL: no
** memory to keep one. */
static const real *kept (Keep *k) {
  k->blob = param_derived(k->of, k->key);
  if (k->blob == NULL || k->blob->shape[0] != k->groups) {
    frame_room(1);
    fnn_Status status = fnn_pcall(pack_kept, k);
    if (status == FNN_EMEMORY) return NULL;
    if (status != FNN_OK) fnn_throw(status, "%s", fnn_message());
    frame_adopt(k->blob);
  }
  return tensor_data(k->blob);
}

const real *CPU (weights_packed)(const Tensor *from, const Weights *w,
                                 int64_t group, int64_t groups, int64_t m,
                                 bool back) {
  /* What the order of rows depends on, beside the weight. */
  static const char keys[2][2];
  Keep k = { .w = w, .group = group, .groups = groups };
  k.of = from != NULL && m <= PLACES ? param_of(from) : NULL;
  k.key = &keys[back][w->taps->across > 1];
  if (k.of != NULL && (k.of->frozen || !context()->grad_mode)) {
    const real *packed = kept(&k);
    if (packed != NULL) return packed;
  }
  int64_t size = CPU(weights_size)(w) * groups;
  real *packed = mem_scratch((size_t)size * sizeof(real));
  pack(&k, packed);
  return packed;
}
