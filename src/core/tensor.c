/* tensor.c - storage and the views of it that tensors are. */

#include <string.h>

#include "core.h"

static void tensor_destroy (void *o) {
  Tensor *x = o;
  Object *s = x->source;
  if (s != NULL && s->type == &node_type) fnn_release(s); /* see param.c */
  storage_release(x->storage);
}

const Type tensor_type = { "tensor", tensor_destroy };

/* A tensor without storage yet: geometry alone. */
static Tensor *geometry (int ndim, const int64_t *shape, fnn_Dtype t) {
  int64_t numel = shape_numel(ndim, shape);
  Tensor *x = object_new(&tensor_type, sizeof *x);
  x->numel = numel;
  x->dtype = (uint8_t)t;
  x->ndim = (uint8_t)ndim;
  for (int i = 0; i < ndim; i++) x->shape[i] = shape[i];
  return x;
}

Tensor *tensor_new (int ndim, const int64_t *shape, fnn_Dtype t,
                    const fnn_Device *d) {
  Tensor *x = geometry(ndim, shape, t);
  shape_strides(ndim, shape, x->stride);
  x->storage = storage_new(d, (size_t)x->numel * fnn_dtype_size(t));
  return x;
}

Tensor *tensor_over (fnn_Storage *s, int ndim, const int64_t *shape,
                     fnn_Dtype t) {
  Tensor *x = geometry(ndim, shape, t);
  shape_strides(ndim, shape, x->stride);
  x->storage = storage_retain(s);
  return x;
}

Tensor *tensor_like_as (const Tensor *x, fnn_Dtype t) {
  return tensor_new(x->ndim, x->shape, t, x->storage->device);
}

Tensor *tensor_like (const Tensor *x) {
  return tensor_like_as(x, (fnn_Dtype)x->dtype);
}

Tensor *tensor_scalar (double v, fnn_Dtype t, const fnn_Device *d) {
  Tensor *x = tensor_new(0, NULL, t, d);
  kernel(x, fill)(x, v);
  return x;
}

Tensor *tensor_view (const Tensor *x, int ndim, const int64_t *shape,
                     const int64_t *stride, int64_t offset) {
  Tensor *y = geometry(ndim, shape, (fnn_Dtype)x->dtype);
  for (int i = 0; i < ndim; i++) y->stride[i] = stride[i];
  y->offset = offset;
  y->storage = storage_retain(x->storage);
  return y;
}

Tensor *tensor_alias (const Tensor *x) {
  Tensor *y = tensor_view(x, x->ndim, x->shape, x->stride, x->offset);
  y->order = x->order;
  return y;
}

bool tensor_is_dense (const Tensor *x) {
  int64_t n = 1;
  for (int i = x->ndim - 1; i >= 0; i--) {
    if (x->shape[i] != 1 && x->stride[i] != n && x->numel != 0) return false;
    n *= x->shape[i];
  }
  return true;
}

Tensor *tensor_dense (const Tensor *x) {
  if (tensor_is_dense(x)) return (Tensor *)x;
  Tensor *y = tensor_like(x);
  if (x->order == CHANNELSLAST) context()->conversions++;
  kernel(y, copy)(y, x);
  return y;
}

Tensor *tensor_convert (const Tensor *x, fnn_Dtype t) {
  if (x->dtype == t) return (Tensor *)x;
  Tensor *y = like_in_order(x, t);
  kernel(y, copy)(y, x);
  return y;
}

Tensor *tensor_move (const Tensor *x, const fnn_Device *d) {
  const fnn_Device *from = x->storage->device;
  if (from == d) return (Tensor *)x;
  x = tensor_dense(x);
  Tensor *y = tensor_new(x->ndim, x->shape, (fnn_Dtype)x->dtype, d);
  size_t bytes = (size_t)x->numel * fnn_dtype_size((fnn_Dtype)x->dtype);
  if (from->host) d->upload(d, tensor_data(y), tensor_data(x), bytes);
  else if (d->host)
    from->download(from, tensor_data(y), tensor_data(x), bytes);
  else {
    void *host = mem_scratch(bytes);
    from->download(from, host, tensor_data(x), bytes);
    d->upload(d, tensor_data(y), host, bytes);
  }
  return y;
}

/*
** {======================================================
** Channels-last
** =======================================================
*/

/* Dim 1 is innermost. */
static void channels_strides (int ndim, const int64_t *shape,
                              int64_t *stride) {
  int64_t n = 1;
  stride[1] = n;
  n *= max64(shape[1], 1);
  for (int i = ndim - 1; i >= 0; i--) {
    if (i == 1) continue;
    stride[i] = n;
    n *= max64(shape[i], 1);
  }
}

/* Whether x's elements lie so, whatever its field says. */
static bool lies_channels_last (const Tensor *x) {
  int64_t stride[FNN_MAXDIM];
  if (x->ndim < 3) return false;
  channels_strides(x->ndim, x->shape, stride);
  for (int i = 0; i < x->ndim; i++)
    if (x->shape[i] != 1 && x->stride[i] != stride[i] && x->numel != 0)
      return false;
  return true;
}

bool tensor_is_channels_last (const Tensor *x) {
  return x->order == CHANNELSLAST && lies_channels_last(x);
}

Tensor *tensor_new_channels_last (int ndim, const int64_t *shape, fnn_Dtype t,
                                  const fnn_Device *d) {
  Tensor *x = tensor_new(ndim, shape, t, d);
  x->order = CHANNELSLAST;
  channels_strides(ndim, shape, x->stride);
  return x;
}

Tensor *tensor_channels_last (const Tensor *x) {
  if (tensor_is_channels_last(x)) return (Tensor *)x;
  if (lies_channels_last(x)) {
    Tensor *y = tensor_alias(x);
    y->order = CHANNELSLAST;
    channels_strides(x->ndim, x->shape, y->stride);
    return y;
  }
  Tensor *y = tensor_new_channels_last(x->ndim, x->shape, (fnn_Dtype)x->dtype,
                                       x->storage->device);
  kernel(y, copy)(y, x);
  context()->conversions++;
  return y;
}

Tensor *like_in_order (const Tensor *x, fnn_Dtype t) {
  return tensor_is_channels_last(x)
             ? tensor_new_channels_last(x->ndim, x->shape, t,
                                        x->storage->device)
             : tensor_like_as(x, t);
}

/* }====================================================== */

/* First and one past the last element that x can touch. */
static void extent (const Tensor *x, int64_t *lo, int64_t *hi) {
  *lo = *hi = x->offset;
  for (int i = 0; i < x->ndim; i++) {
    int64_t span = (x->shape[i] - 1) * x->stride[i];
    *(span < 0 ? lo : hi) += span;
  }
  (*hi)++;
}

bool tensor_overlaps (const Tensor *a, const Tensor *b) {
  if (a->storage != b->storage || a->numel == 0 || b->numel == 0) return false;
  int64_t alo, ahi, blo, bhi;
  extent(a, &alo, &ahi);
  extent(b, &blo, &bhi);
  return alo < bhi && blo < ahi;
}

/*
** {======================================================
** Checks
** =======================================================
*/

/* Apart from the check, which stays without a frame of its own. */
FNN_NORETURN __attribute__((noinline)) static void
two_devices (const char *op, const Tensor *a, const Tensor *b) {
  fnn_throw(FNN_EDEVICE,
            "%s: tensors on two devices (%s %s on %s and %s "
            "on %s)",
            op, "shape", shape_text(a), a->storage->device->name,
            shape_text(b), b->storage->device->name);
}

void tensor_check_device (const char *op, const Tensor *a, const Tensor *b) {
  if (a->storage->device != b->storage->device) two_devices(op, a, b);
  if (context_now->watch != 0) watch_operands(op, a, b);
}

void tensor_check_float (const char *op, const Tensor *x) {
  if (dtype_is_compute((fnn_Dtype)x->dtype)) return;
  const char *name = fnn_dtype_name((fnn_Dtype)x->dtype);
  if (!tensor_is_float(x))
    fnn_throw(FNN_EDTYPE, "%s: expected a float tensor, got %s of shape %s",
              op, name, shape_text(x));
  if (x->storage->device->host)
    fnn_throw(FNN_EDTYPE,
              "%s: %s only stores on the cpu: convert it with "
              ":to(\"f32\")",
              op, name);
}

void tensor_check_ids (const char *op, const Tensor *ids) {
  if (ids->dtype != FNN_I64 && ids->dtype != FNN_I32)
    fnn_throw(FNN_EDTYPE,
              "%s: ids must be integers (use dtype = \"i64\"), "
              "got %s of shape %s",
              op, fnn_dtype_name((fnn_Dtype)ids->dtype), shape_text(ids));
}

void tensor_check_memory (const char *op, const Tensor *x) {
  if (x->storage->readonly)
    fnn_throw(FNN_EARG, "%s: the tensor of shape %s is read-only", op,
              shape_text(x));
  for (int i = 0; i < x->ndim; i++)
    if (x->stride[i] == 0 && x->shape[i] > 1)
      fnn_throw(FNN_EARG,
                "%s: the tensor of shape %s is expanded: several of "
                "its elements share one place (clone it first)",
                op, shape_text(x));
}

FNN_NORETURN __attribute__((noinline)) static void
not_in_place (const char *op, const Tensor *x) {
  fnn_throw(FNN_EGRAPH,
            "%s: an in-place op on %s of shape %s cannot be "
            "recorded (use no_grad, or the op that makes a new tensor)",
            op,
            param_of(x) != NULL ? "a trainable parameter"
                                : "a tensor with a graph",
            shape_text(x));
}

void tensor_check_write (const char *op, const Tensor *x) {
  tensor_check_memory(op, x);
  if (context()->grad_mode && graph_source(x) != NULL) not_in_place(op, x);
  if (context_now->watch != 0) watch_write(op, x);
}

void tensor_written (Tensor *x) {
  atomic_fetch_add_explicit(&x->storage->version, 1, memory_order_relaxed);
  fnn_Capture *c = capture_of(x);
  if (c != NULL) capture_written(c, x->storage);
  if (context_now->watch != 0) watch_written(x);
}

/* }====================================================== */

/*
** {======================================================
** The host's view
** =======================================================
*/

int fnn_ndim (const Tensor *x) { return x->ndim; }

int64_t fnn_size (const Tensor *x, int dim) {
  return x->shape[tensor_dim(x, dim, "size")];
}

const int64_t *fnn_shape (const Tensor *x) { return x->shape; }
const int64_t *fnn_strides (const Tensor *x) { return x->stride; }
int64_t fnn_numel (const Tensor *x) { return x->numel; }
fnn_Dtype fnn_dtype_of (const Tensor *x) { return (fnn_Dtype)x->dtype; }

const fnn_Device *fnn_device_of (const Tensor *x) {
  return x->storage->device;
}

bool fnn_is_contiguous (const Tensor *x) { return tensor_is_dense(x); }

bool fnn_is_channels_last (const Tensor *x) {
  return tensor_is_channels_last(x);
}

fnn_Tensor *fnn_empty (int ndim, const int64_t *shape, fnn_Dtype t,
                       const fnn_Device *d) {
  return tensor_new(ndim, shape, t, d != NULL ? d : device_cpu());
}

fnn_Tensor *fnn_tensor (fnn_Dtype t, int ndim, const int64_t *shape,
                        const void *data) {
  Tensor *x = tensor_new(ndim, shape, t, device_cpu());
  if (x->numel > 0)
    memcpy(tensor_data(x), data, (size_t)x->numel * fnn_dtype_size(t));
  return x;
}

fnn_Tensor *fnn_wrap (fnn_Dtype t, int ndim, const int64_t *shape, void *data,
                      void (*release)(void *ud, void *data), void *ud,
                      bool readonly) {
  if ((uintptr_t)data % fnn_dtype_size(t) != 0)
    fnn_throw(FNN_EARG, "wrap: the memory is not aligned for %s",
              fnn_dtype_name(t));
  Tensor *x = geometry(ndim, shape, t);
  shape_strides(ndim, shape, x->stride);
  x->storage = storage_wrap(data, (size_t)x->numel * fnn_dtype_size(t),
                            release, ud, readonly);
  return x;
}

/* x's first byte, if a host may walk over its elements. */
static void *host_data (const char *op, const Tensor *x) {
  if (!x->storage->device->host)
    fnn_throw(FNN_EDEVICE, "%s: the tensor of shape %s is on %s", op,
              shape_text(x), x->storage->device->name);
  if (!tensor_is_dense(x))
    fnn_throw(FNN_ESHAPE, "%s: the tensor of shape %s is not contiguous", op,
              shape_text(x));
  return tensor_data(x);
}

const void *fnn_data (const Tensor *x) { return host_data("data", x); }

void *fnn_mutable_data (Tensor *x) {
  void *p = host_data("mutable_data", x);
  tensor_check_write("mutable_data", x);
  tensor_written(x);
  return p;
}

void fnn_read (const Tensor *x, void *to) {
  size_t m = fnn_mark();
  x = tensor_dense(x);
  size_t bytes = (size_t)x->numel * fnn_dtype_size((fnn_Dtype)x->dtype);
  const fnn_Device *d = x->storage->device;
  if (bytes > 0) d->download(d, to, tensor_data(x), bytes);
  fnn_escape(m, NULL);
}

double fnn_item (const Tensor *x) {
  if (x->numel != 1)
    fnn_throw(FNN_ESHAPE, "item: expected one element, got shape %s",
              shape_text(x));
  double buffer[1];
  const fnn_Device *d = x->storage->device;
  d->download(d, buffer, tensor_data(x), fnn_dtype_size((fnn_Dtype)x->dtype));
  return dtype_get((fnn_Dtype)x->dtype, buffer, 0);
}

fnn_Tensor *fnn_detach (Tensor *x) { return tensor_alias(x); }

/* The handle is the account's memory, so that it outlives the context. */
fnn_Share *fnn_share (Tensor *x) {
  if (!tensor_is_dense(x))
    fnn_throw(FNN_ESHAPE, "share: the tensor of shape %s is not contiguous",
              shape_text(x));
  fnn_Share *h = account_alloc(x->storage->account, sizeof *h);
  if (h == NULL) fnn_throw(FNN_EMEMORY, "share: out of memory");
  memset(h, 0, sizeof *h);
  h->storage = storage_retain(x->storage);
  h->offset = x->offset;
  h->ndim = x->ndim;
  h->dtype = x->dtype;
  memcpy(h->shape, x->shape, sizeof h->shape);
  return h;
}

fnn_Tensor *fnn_shared (const fnn_Share *h) {
  Tensor *x = geometry(h->ndim, h->shape, (fnn_Dtype)h->dtype);
  shape_strides(h->ndim, h->shape, x->stride);
  x->offset = h->offset;
  x->storage = storage_retain(h->storage);
  return x;
}

void fnn_share_free (fnn_Share *h) {
  if (h == NULL) return;
  fnn_Storage *s = h->storage;
  account_free(s->account, h, sizeof *h);
  storage_release(s);
}

/* }====================================================== */
