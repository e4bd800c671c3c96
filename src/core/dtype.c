/* dtype.c - element types: names, sizes, promotion, single elements.
**
** f16 is IEEE binary16, bf16 the high half of an f32. */

#include <math.h>
#include <string.h>

#include "core.h"

/* ORDER DTYPE */
static const struct {
  const char *name;
  size_t size;
} dtypes[] = {
  { "bool", 1 }, { "u8", 1 },   { "i32", 4 }, { "i64", 8 },
  { "f16", 2 },  { "bf16", 2 }, { "f32", 4 }, { "f64", 8 },
};

const char *fnn_dtype_name (fnn_Dtype t) { return dtypes[t].name; }

size_t fnn_dtype_size (fnn_Dtype t) { return dtypes[t].size; }

fnn_Dtype fnn_dtype (const char *name) {
  for (int i = 0; i < countof(dtypes); i++)
    if (strcmp(dtypes[i].name, name) == 0) return (fnn_Dtype)i;
  const char *near =
      nearest_name(name, &dtypes[0].name, countof(dtypes), sizeof dtypes[0]);
  if (near != NULL)
    fnn_throw(FNN_EARG, "unknown dtype '%s' (did you mean '%s'?)", name, near);
  fnn_throw(FNN_EARG,
            "unknown dtype '%s' (expected bool, u8, i32, i64, f16, "
            "bf16, f32 or f64)",
            name);
}

fnn_Dtype fnn_promote (fnn_Dtype a, fnn_Dtype b) {
  if ((a == FNN_F16 && b == FNN_BF16) || (a == FNN_BF16 && b == FNN_F16))
    return FNN_F32;
  return a > b ? a : b;
}

float f16_to_f32 (uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t e = (h >> 10) & 31u, m = h & 0x3ffu;
  union {
    uint32_t u;
    float f;
  } v;
  if (e == 0) { /* zero or subnormal: m 2^-24 is exact */
    v.f = (float)m * 0x1p-24f;
    v.u |= sign;
  } else if (e == 31) { /* infinity or NaN */
    v.u = sign | 0x7f800000u | m << 13;
  } else v.u = sign | (e + 112) << 23 | m << 13;
  return v.f;
}

uint16_t f16_from_f32 (float f) {
  union {
    float f;
    uint32_t u;
  } v = { f };
  uint32_t sign = v.u >> 16 & 0x8000u, a = v.u & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* >= 65520 */
  if (a < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, to even */
    union {
      uint32_t u;
      float f;
    } m = { a };
    return (uint16_t)(sign | (uint32_t)lrintf(m.f * 0x1p24f));
  }
  uint32_t odd = a >> 13 & 1u;
  return (uint16_t)(sign | (a - 0x38000000u + 0xfffu + odd) >> 13);
}

uint16_t bf16_from_f32 (float f) {
  union {
    float f;
    uint32_t u;
  } v = { f };
  if ((v.u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(v.u >> 16 | 0x40u);
  return (uint16_t)((v.u + 0x7fffu + (v.u >> 16 & 1u)) >> 16);
}

double dtype_get (fnn_Dtype t, const void *p, int64_t i) {
  switch (t) {
    case FNN_BOOL: return ((const uint8_t *)p)[i] != 0;
    case FNN_U8: return ((const uint8_t *)p)[i];
    case FNN_I32: return ((const int32_t *)p)[i];
    case FNN_I64: return (double)((const int64_t *)p)[i];
    case FNN_F16: return f16_to_f32(((const uint16_t *)p)[i]);
    case FNN_BF16: return bf16_to_f32(((const uint16_t *)p)[i]);
    case FNN_F32: return ((const float *)p)[i];
    case FNN_F64: return ((const double *)p)[i];
  }
  return 0;
}

/* v as an integer of bits; what does not fit saturates, NaN is 0. */
static int64_t to_int (double v, int64_t lo, int64_t hi) {
  if (isnan(v)) return 0;
  if (v <= (double)lo) return lo;
  if (v >= (double)hi) return hi;
  return (int64_t)v;
}

void dtype_set (fnn_Dtype t, void *p, int64_t i, double v) {
  switch (t) {
    case FNN_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    case FNN_U8: ((uint8_t *)p)[i] = (uint8_t)to_int(v, 0, UINT8_MAX); break;
    case FNN_I32:
      ((int32_t *)p)[i] = (int32_t)to_int(v, INT32_MIN, INT32_MAX);
      break;
    case FNN_I64: ((int64_t *)p)[i] = to_int(v, INT64_MIN, INT64_MAX); break;
    case FNN_F16: ((uint16_t *)p)[i] = f16_from_f32((float)v); break;
    case FNN_BF16: ((uint16_t *)p)[i] = bf16_from_f32((float)v); break;
    case FNN_F32: ((float *)p)[i] = (float)v; break;
    case FNN_F64: ((double *)p)[i] = v; break;
  }
}
