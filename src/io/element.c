/* element.c - numbers as files hold them, and the dtypes they become.
**
** An element type that is a dtype is read into the tensor as it is; the
** others are widened, exactly, a block at a time. */

#include "io.h"

#include <math.h>
#include <string.h>

/* BLOCK: bytes of the file that are widened at a time. */
enum { BLOCK = 1 << 16 };

static const struct {
  const char *name;
  uint8_t size, dtype;
} elements[] = {
  [ELEMENT_BOOL] = { "BOOL", 1, FNN_BOOL },
  [ELEMENT_U8] = { "U8", 1, FNN_U8 },
  [ELEMENT_I8] = { "I8", 1, FNN_I32 },
  [ELEMENT_U16] = { "U16", 2, FNN_I32 },
  [ELEMENT_I16] = { "I16", 2, FNN_I32 },
  [ELEMENT_U32] = { "U32", 4, FNN_I64 },
  [ELEMENT_I32] = { "I32", 4, FNN_I32 },
  [ELEMENT_U64] = { "U64", 8, FNN_I64 },
  [ELEMENT_I64] = { "I64", 8, FNN_I64 },
  [ELEMENT_F8_E4M3] = { "F8_E4M3", 1, FNN_F32 },
  [ELEMENT_F8_E5M2] = { "F8_E5M2", 1, FNN_F32 },
  [ELEMENT_F8_E8M0] = { "F8_E8M0", 1, FNN_F32 },
  [ELEMENT_F16] = { "F16", 2, FNN_F16 },
  [ELEMENT_BF16] = { "BF16", 2, FNN_BF16 },
  [ELEMENT_F32] = { "F32", 4, FNN_F32 },
  [ELEMENT_F64] = { "F64", 8, FNN_F64 },
};

size_t element_size (Element e) { return elements[e].size; }
const char *element_name (Element e) { return elements[e].name; }

Element element_find (const char *name) {
  int i = 0;
  while (i < ELEMENT_NONE && strcmp(name, elements[i].name) != 0) i++;
  return (Element)i;
}

/* Whether e is its dtype: widened ones are shorter.  (u64 is not i64.) */
static bool is_dtype (Element e) {
  return elements[e].size == fnn_dtype_size((fnn_Dtype)elements[e].dtype) &&
         e != ELEMENT_U64;
}

Element element_of (fnn_Dtype t) {
  int i = 0;
  while (elements[i].dtype != t || !is_dtype((Element)i)) i++;
  return (Element)i;
}

int64_t element_bytes (Element e, int ndim, const int64_t *shape) {
  int64_t n = elements[e].size;
  bool over = false, none = false;
  for (int i = 0; i < ndim; i++) {
    none |= shape[i] == 0;
    over |= __builtin_mul_overflow(n, max64(shape[i], 1), &n);
  }
  if (over || n > INT64_MAX / 8) return -1;
  return none ? 0 : n;
}

static void swap_bytes (void *p, size_t size, int64_t n) {
  uint16_t *h = p;
  uint32_t *w = p;
  uint64_t *d = p;
  for (int64_t i = 0; i < n; i++)
    if (size == 2) h[i] = __builtin_bswap16(h[i]);
    else if (size == 4) w[i] = __builtin_bswap32(w[i]);
    else if (size == 8) d[i] = __builtin_bswap64(d[i]);
}

/* The value of an 8-bit float: a sign, bits of exponent e, of fraction m.
** With m = 3 all ones are not a number and there is no infinity (Micikevicius
** et al. 2022, arXiv:2209.05433); E8M0 is a power of two without sign. */
static float f8_value (Element e, int code) {
  if (e == ELEMENT_F8_E8M0) return code == 255 ? NAN : ldexpf(1, code - 127);
  int m = e == ELEMENT_F8_E4M3 ? 3 : 2, bias = m == 3 ? 7 : 15;
  int fraction = code & ((1 << m) - 1), exponent = (code & 0x7f) >> m;
  float v;
  if (m == 3 && (code & 0x7f) == 0x7f) v = NAN;
  else if (m == 2 && exponent == 31) v = fraction == 0 ? INFINITY : NAN;
  else if (exponent == 0) v = ldexpf((float)fraction, 1 - bias - m);
  else v = ldexpf((float)(fraction + (1 << m)), exponent - bias - m);
  return code & 0x80 ? -v : v;
}

static void widen_f8 (Element e, float *y, const uint8_t *x, int64_t n) {
  float value[256];
  for (int i = 0; i < 256; i++) value[i] = f8_value(e, i);
  for (int64_t i = 0; i < n; i++) y[i] = value[x[i]];
}

static void widen_u64 (Reader *r, const char *what, int64_t *y,
                       const uint64_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (x[i] > INT64_MAX)
      fnn_throw(FNN_EFORMAT, "%s: %s: %llu does not fit i64", r->name, what,
                (unsigned long long)x[i]);
    y[i] = (int64_t)x[i];
  }
}

#define WIDEN(to, from) \
  for (int64_t i = 0; i < n; i++) ((to *)y)[i] = ((const from *)x)[i]

static void widen (Reader *r, const char *what, Element e, void *y,
                   const void *x, int64_t n) {
  switch (e) {
    case ELEMENT_I8: WIDEN(int32_t, int8_t); break;
    case ELEMENT_U16: WIDEN(int32_t, uint16_t); break;
    case ELEMENT_I16: WIDEN(int32_t, int16_t); break;
    case ELEMENT_U32: WIDEN(int64_t, uint32_t); break;
    case ELEMENT_U64: widen_u64(r, what, y, x, n); break;
    default: widen_f8(e, y, x, n);
  }
}

static void read_widened (Reader *r, Element e, bool swap, Tensor *y,
                          const char *what) {
  uint64_t block[BLOCK / 8];
  int64_t size = elements[e].size, per = BLOCK / size, done = 0;
  char *to = tensor_data(y);
  while (done < y->numel) {
    int64_t n = min64(per, y->numel - done);
    reader_read(r, block, n * size);
    if (swap) swap_bytes(block, (size_t)size, n);
    widen(r, what, e, to, block, n);
    to += n * (int64_t)fnn_dtype_size((fnn_Dtype)y->dtype);
    done += n;
  }
}

Tensor *element_read (Reader *r, Element e, bool swap, int ndim,
                      const int64_t *shape, const char *what) {
  int64_t bytes = element_bytes(e, ndim, shape);
  if (bytes < 0)
    fnn_throw(FNN_EFORMAT, "%s: %s: its shape is too large", r->name, what);
  reader_need(r, bytes);
  Tensor *y =
      tensor_new(ndim, shape, (fnn_Dtype)elements[e].dtype, device_cpu());
  if (!is_dtype(e)) {
    read_widened(r, e, swap, y, what);
    return y;
  }
  reader_read(r, tensor_data(y), bytes);
  if (swap) swap_bytes(tensor_data(y), elements[e].size, y->numel);
  uint8_t *b = tensor_data(y);
  if (e == ELEMENT_BOOL) /* any byte but 0 is true */
    for (int64_t i = 0; i < y->numel; i++) b[i] = b[i] != 0;
  return y;
}
