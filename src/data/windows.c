/* windows.c - a dataset of the windows of a sequence: what comes next. */

#include "data.h"

#include <inttypes.h>
#include <string.h>

typedef struct Windows {
  fnn_Dataset d;
  Tensor *ids; /* (count), dense, on the CPU */
  int64_t length, step;
} Windows;

static void windows_destroy (fnn_Dataset *d) {
  fnn_release(((Windows *)d)->ids);
}

/* n ids from a place on, as i64. */
static void widen (int64_t *to, const Tensor *ids, int64_t at, int64_t n) {
  switch ((fnn_Dtype)ids->dtype) {
    case FNN_U8: {
      const uint8_t *from = (const uint8_t *)tensor_data(ids) + at;
      for (int64_t i = 0; i < n; i++) to[i] = from[i];
      break;
    }
    case FNN_I32: {
      const int32_t *from = (const int32_t *)tensor_data(ids) + at;
      for (int64_t i = 0; i < n; i++) to[i] = from[i];
      break;
    }
    default:
      memcpy(to, (const int64_t *)tensor_data(ids) + at,
             (size_t)n * sizeof *to);
  }
}

static void windows_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                          Tensor *const *to) {
  Windows *w = (Windows *)d;
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < n && to[k] != NULL; i++)
      widen((int64_t *)tensor_data(to[k]) + i * w->length, w->ids,
            ids[i] * w->step + k, w->length);
}

static const DatasetClass windows_class = { "Windows", windows_read,
                                            windows_destroy };

fnn_Dataset *fnn_windows (fnn_Tensor *ids, int64_t length, int64_t step) {
  fnn_Dtype t = (fnn_Dtype)ids->dtype;
  if (ids->ndim != 1 || (t != FNN_U8 && t != FNN_I32 && t != FNN_I64))
    fnn_throw(FNN_ESHAPE,
              "Windows: expected ids of one dim, u8, i32 or i64, got shape "
              "%s of %s",
              shape_text(ids), fnn_dtype_name(t));
  if (length < 1 || step < 1)
    fnn_throw(FNN_EARG,
              "Windows: expected a length and a step of 1 or more, got "
              "%" PRId64 " and %" PRId64,
              length, step);
  if (ids->numel <= length)
    fnn_throw(FNN_ESHAPE,
              "Windows: %" PRId64 " ids have no window of %" PRId64
              " and the one that comes next",
              ids->numel, length);
  Windows *w = dataset_new(&windows_class, sizeof *w);
  w->ids =
      fnn_retain(tensor_alias(tensor_dense(tensor_move(ids, device_cpu()))));
  w->length = length;
  w->step = step;
  w->d.n = (ids->numel - 1 - length) / step + 1;
  w->d.nfields = 2;
  for (int k = 0; k < 2; k++)
    w->d.fields[k] = (Field){ FNN_I64, 1, { length } };
  return &w->d;
}
