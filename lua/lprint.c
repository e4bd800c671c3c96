/* lprint.c - tensors as text: values, shape, dtype and device.
**
**   tensor (2, 3) f32 cpu
**     1.0000  2.0000  3.0000
**     4.0000  5.0000  6.0000
**
** Large ones show the three first and last of each dim; a row that is wider
** than a screen goes on over further lines, which stand two columns in.
** Numbers of one tensor share a format: integers plain, others with four
** digits, in powers of ten when their range asks for it. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lbox.h"

enum { EDGE = 3, MANY = 1000, WIDTH = 80 };

typedef struct Printer {
  lua_State *L;
  luaL_Buffer b;
  const fnn_Tensor *x;
  const void *data;
  bool cut; /* whether the middles are left out */
  char format[16];
  int width;
} Printer;

static void write_number (const Printer *p, char *to, size_t n, int64_t i) {
  fnn_Dtype t = (fnn_Dtype)p->x->dtype;
  if (t == FNN_BOOL)
    snprintf(to, n, "%s", dtype_get(t, p->data, i) != 0 ? "true" : "false");
  else if (!dtype_is_float(t))
    snprintf(to, n, "%lld",
             t == FNN_I64 ? (long long)((const int64_t *)p->data)[i]
                          : (long long)dtype_get(t, p->data, i));
  else if (isnan(dtype_get(t, p->data, i))) /* whose sign says nothing */
    snprintf(to, n, "nan");
  else snprintf(to, n, p->format, dtype_get(t, p->data, i));
}

/* The next place after k that is shown, of n. */
static int64_t next_shown (const Printer *p, int64_t k, int64_t n) {
  return p->cut && n > 2 * EDGE && k == EDGE - 1 ? n - EDGE : k + 1;
}

/* Calls f for each element that is shown, at index i of dims from depth. */
static void each (Printer *p, int depth, int64_t i,
                  void (*f)(Printer *p, int64_t i)) {
  if (depth == p->x->ndim) {
    f(p, i);
    return;
  }
  int64_t n = p->x->shape[depth];
  for (int64_t k = 0; k < n; k = next_shown(p, k, n))
    each(p, depth + 1, i * n + k, f);
}

typedef struct Range_ {
  double least, most;
  bool fraction;
} Range_;

/* The finite values' range, into the range at the end of the printer. */
typedef struct Scan {
  Printer p;
  Range_ r;
} Scan;

static void scan (Printer *p, int64_t i) {
  Range_ *r = &((Scan *)p)->r;
  double v = fabs(dtype_get((fnn_Dtype)p->x->dtype, p->data, i));
  if (!isfinite(v)) return;
  if (v != floor(v)) r->fraction = true;
  if (v > r->most) r->most = v;
  if (v > 0 && v < r->least) r->least = v;
}

static void widest (Printer *p, int64_t i) {
  char text[48];
  write_number(p, text, sizeof text, i);
  int n = (int)strlen(text);
  if (n > p->width) p->width = n;
}

static void choose_format (Scan *s) {
  Printer *p = &s->p;
  s->r = (Range_){ .least = INFINITY };
  each(p, 0, 0, scan);
  bool wide = s->r.most >= 1e5 || (s->r.fraction && s->r.least < 1e-3 &&
                                   s->r.most / s->r.least > 1e3);
  if (!s->r.fraction && s->r.most < 1e8) strcpy(p->format, "%.0f");
  else if (wide || s->r.most < 1e-3) strcpy(p->format, "%.4e");
  else strcpy(p->format, "%.4f");
  each(p, 0, 0, widest);
}

static void put_element (Printer *p, int64_t i) {
  char text[64];
  write_number(p, text, sizeof text, i);
  char padded[128];
  snprintf(padded, sizeof padded, "%*s", p->width + 2, text);
  luaL_addstring(&p->b, padded);
}

/* A row of the last dim, from element i. */
static void put_row (Printer *p, int64_t i) {
  int64_t n = p->x->ndim > 0 ? p->x->shape[p->x->ndim - 1] : 1;
  int fit = (WIDTH - 2) / (p->width + 2), shown = 0;
  luaL_addstring(&p->b, "\n");
  for (int64_t k = 0, next; k < n; k = next) {
    if (shown > 0 && shown % fit == 0) luaL_addstring(&p->b, "\n  ");
    shown++;
    put_element(p, i + k);
    next = next_shown(p, k, n);
    if (next > k + 1) luaL_addstring(&p->b, "  ...");
  }
}

/* Rows of dims from depth on; a blank line between matrices. */
static void put_rows (Printer *p, int depth, int64_t i) {
  const fnn_Tensor *x = p->x;
  if (depth >= x->ndim - 1) {
    put_row(p, depth < x->ndim ? i * x->shape[depth] : i);
    return;
  }
  int64_t n = x->shape[depth];
  for (int64_t k = 0, next; k < n; k = next) {
    put_rows(p, depth + 1, i * n + k);
    next = next_shown(p, k, n);
    if (next > k + 1) luaL_addstring(&p->b, "\n  ...");
    if (next < n && depth < x->ndim - 2) luaL_addstring(&p->b, "\n");
  }
}

int tensor_tostring (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  const fnn_Param *param = testobject(L, 1, PARAM);
  size_t bytes = (size_t)x->numel * fnn_dtype_size((fnn_Dtype)x->dtype);
  void *data = lua_newuserdatauv(L, bytes + 1, 0);
  guard(L, fnn_read(x, data));
  Scan s = { .p = { .L = L, .x = x, .data = data, .cut = x->numel > MANY } };
  choose_format(&s);
  luaL_buffinit(L, &s.p.b);
  lua_pushfstring(L, "%s %s %s %s%s", param != NULL ? "Param" : "tensor",
                  shape_text(x), fnn_dtype_name((fnn_Dtype)x->dtype),
                  x->storage->device->name,
                  param != NULL && param->frozen ? " frozen" : "");
  luaL_addvalue(&s.p.b);
  if (x->numel > 0) put_rows(&s.p, 0, 0);
  luaL_pushresult(&s.p.b);
  return 1;
}
