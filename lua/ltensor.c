/* ltensor.c - tensors in Lua: making them from tables, reading them back,
** indexing, and what they say of themselves. */

#include <string.h>

#include "../src/core/ops.h"
#include "lbox.h"

/*
** {======================================================
** From tables
** =======================================================
*/

/* The shape of nested tables, from their first elements. */
static int table_shape (lua_State *L, int i, int64_t *shape) {
  int n = 0;
  lua_pushvalue(L, i);
  while (lua_type(L, -1) == LUA_TTABLE) {
    if (n == FNN_MAXDIM)
      raise_error(L, "tensor: tables nested deeper than %d", FNN_MAXDIM);
    shape[n] = (lua_Integer)lua_rawlen(L, -1);
    if (shape[n++] == 0) break;
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  lua_pop(L, 1);
  return n;
}

/* Where numbers of nested tables go. */
typedef struct Fill {
  fnn_Dtype dtype;
  void *to;
  int64_t at;
  int ndim;
  const int64_t *shape;
} Fill;

/* Stores the number or boolean on the top. */
static void store (lua_State *L, Fill *f) {
  int type = lua_type(L, -1);
  if (type == LUA_TBOOLEAN)
    dtype_set(f->dtype, f->to, f->at++, lua_toboolean(L, -1));
  else if (type != LUA_TNUMBER)
    raise_error(L, "tensor: element %d: expected a number, got %s",
                (int)f->at + 1, luaL_typename(L, -1));
  else if (f->dtype == FNN_I64 && lua_isinteger(L, -1))
    ((int64_t *)f->to)[f->at++] = lua_tointeger(L, -1);
  else dtype_set(f->dtype, f->to, f->at++, lua_tonumber(L, -1));
}

/* Stores the table on the top, which is at this depth. */
static void store_table (lua_State *L, Fill *f, int depth) {
  if (depth == f->ndim) {
    store(L, f);
    return;
  }
  if (lua_type(L, -1) != LUA_TTABLE)
    raise_error(L, "tensor: expected a table at depth %d, got %s", depth + 1,
                luaL_typename(L, -1));
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  if (n != f->shape[depth])
    raise_error(L,
                "tensor: ragged tables: %d elements at depth %d, where "
                "the first has %d",
                (int)n, depth + 1, (int)f->shape[depth]);
  luaL_checkstack(L, 2, "tensor");
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, -1, k);
    store_table(L, f, depth + 1);
    lua_pop(L, 1);
  }
}

/* A flat table with a shape given behind it. */
static void store_flat (lua_State *L, int i, Fill *f, int64_t numel) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  if (n != numel) {
    ShapeText text;
    raise_error(L, "tensor: %d elements do not fill shape %s", (int)n,
                shape_print(&text, f->ndim, f->shape));
  }
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    store(L, f);
    lua_pop(L, 1);
  }
}

/* The dtype of what a table holds first: booleans make a bool tensor, all
** numbers the default dtype, whatever their subtype. */
static fnn_Dtype table_dtype (lua_State *L, int i) {
  lua_pushvalue(L, i);
  for (int k = 0; k <= FNN_MAXDIM && lua_istable(L, -1); k++) {
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  bool boolean = lua_isboolean(L, -1);
  lua_pop(L, 1);
  return boolean ? FNN_BOOL : getlib(L)->dtype;
}

static const char *const like_options[] = { "dtype", "device", NULL };

/* fnn.tensor(number | nested tables [, options]) or
** fnn.tensor(flat table, sizes ... [, options]) */
static int tensor_from (lua_State *L) {
  int64_t shape[FNN_MAXDIM];
  if (testtensor(L, 1) == NULL && !lua_isnumber(L, 1) && !lua_isboolean(L, 1))
    luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_isnumber(L, 1) && lua_isnumber(L, 2))
    return raise_error(L, "tensor: expected a table of numbers, { 1, 2 }, got "
                          "them one by one (fnn.zeros takes sizes)");
  int next, given = 0;
  if (lua_type(L, 2) == LUA_TTABLE && (lua_Integer)lua_rawlen(L, 2) == 0)
    next = 2; /* options */
  else given = checkshape(L, 2, shape, &next);
  int o = list_options(L, 1, next, like_options);
  fnn_Dtype t = opt_dtype(L, o, table_dtype(L, 1));
  const fnn_Device *d = opt_device(L, o);
  bool flat = next > 2;
  int ndim = flat ? given : table_shape(L, 1, shape);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_empty(ndim, shape, t, NULL)));
  fnn_Tensor *x = *box;
  Fill f = { t, tensor_data(x), 0, ndim, shape };
  if (flat) store_flat(L, 1, &f, x->numel);
  else {
    lua_pushvalue(L, 1);
    store_table(L, &f, 0);
    lua_pop(L, 1);
  }
  if (d != x->storage->device) {
    void **moved = newbox(L, TENSOR);
    guard(L, *moved = fnn_retain(tensor_move(x, d)));
  }
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** To tables and numbers
** =======================================================
*/

static void push_element (lua_State *L, fnn_Dtype t, const void *p,
                          int64_t i) {
  switch (t) {
    case FNN_BOOL: lua_pushboolean(L, ((const uint8_t *)p)[i]); break;
    case FNN_I64: lua_pushinteger(L, ((const int64_t *)p)[i]); break;
    case FNN_U8:
    case FNN_I32: lua_pushinteger(L, (lua_Integer)dtype_get(t, p, i)); break;
    default: lua_pushnumber(L, dtype_get(t, p, i));
  }
}

/* Pushes dims from depth on; *at is the next element. */
static void push_table (lua_State *L, const fnn_Tensor *x, const void *p,
                        int depth, int64_t *at) {
  if (depth == x->ndim) {
    push_element(L, (fnn_Dtype)x->dtype, p, (*at)++);
    return;
  }
  luaL_checkstack(L, 3, "totable");
  int64_t n = x->shape[depth];
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t k = 1; k <= n; k++) {
    push_table(L, x, p, depth + 1, at);
    lua_rawseti(L, -2, k);
  }
}

/* x's elements in row-major order, in a userdata that is pushed. */
static void *push_bytes (lua_State *L, fnn_Tensor *x) {
  size_t n = (size_t)x->numel * fnn_dtype_size((fnn_Dtype)x->dtype);
  void *p = lua_newuserdatauv(L, n + 1, 0);
  guard(L, fnn_read(x, p));
  return p;
}

static int tensor_totable (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t at = 0;
  void *p = push_bytes(L, x);
  push_table(L, x, p, 0, &at);
  return 1;
}

static int tensor_item (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  if (x->numel != 1)
    return raise_error(L, "item: expected one element, got shape %s",
                       shape_text(x));
  double buffer[1];
  guard(L, fnn_read(x, buffer));
  push_element(L, (fnn_Dtype)x->dtype, buffer, 0);
  return 1;
}

/* x:at(id ...): the element or part with these ids, which count from 0. */
static int tensor_at (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int n = lua_gettop(L) - 1;
  if (n < 1 || n > x->ndim)
    return raise_error(L, "at: %d ids for a tensor of shape %s", n,
                       shape_text(x));
  int64_t ids[FNN_MAXDIM];
  for (int i = 0; i < n; i++) {
    ids[i] = luaL_checkinteger(L, i + 2);
    if (ids[i] < 0 || ids[i] >= x->shape[i])
      return raise_error(L,
                         "at: id %d is out of range for size %d (ids "
                         "count from 0)",
                         (int)ids[i], (int)x->shape[i]);
  }
  void **box = newbox(L, TENSOR);
  guard(L, for (int i = 0; i < n; i++) x = fnn_select(x, 0, ids[i]);
        *box = fnn_retain(x));
  if (x->ndim > 0) return 1;
  lua_replace(L, 1);
  lua_settop(L, 1);
  return tensor_item(L);
}

/* }====================================================== */

/*
** {======================================================
** Indexing
** =======================================================
*/

/* x[i]: the element of a vector as a number, else the part as a view; nil
** just behind the last, which ends ipairs. */
static int index_place (lua_State *L, fnn_Tensor *x) {
  lua_Integer p = lua_tointeger(L, 2);
  if (x->ndim == 0)
    return raise_error(L, "a tensor of shape () has no places (item() is "
                          "its value)");
  if (p == x->shape[0] + 1) {
    lua_pushnil(L);
    return 1;
  }
  int64_t i = place(L, p, x->shape[0], "index");
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_select(x, 0, i)));
  if (x->ndim > 1) return 1;
  lua_replace(L, 1);
  lua_settop(L, 1);
  return tensor_item(L);
}

/* Whether mask (n, ..., m) is for the first dims of x alone, whose other dims
** are then had whole. */
static bool is_row_mask (const fnn_Tensor *x, const fnn_Tensor *mask) {
  if (mask->ndim < 1 || mask->ndim >= x->ndim) return false;
  for (int d = 0; d < mask->ndim; d++)
    if (mask->shape[d] != x->shape[d])
      fnn_throw(FNN_ESHAPE, "index: a mask %s does not fit the rows of %s",
                shape_text(mask), shape_text(x));
  return true;
}

static fnn_Tensor *masked (fnn_Tensor *x, fnn_Tensor *mask) {
  if (!is_row_mask(x, mask)) return fnn_masked_select(x, mask);
  int64_t shape[FNN_MAXDIM] = { mask->numel };
  int n = mask->ndim - 1; /* dims that become one with the first */
  for (int d = 1; d + n < x->ndim; d++) shape[d] = x->shape[d + n];
  if (n > 0) {
    x = fnn_reshape(x, x->ndim - n, shape);
    mask = fnn_reshape(mask, 1, shape);
  }
  return fnn_index_select(x, 0, fnn_select(fnn_nonzero(mask), 1, 0));
}

/* x[mask]: the elements where mask is true, or, of a mask of fewer dims, the
** rows; x[ids]: those rows. */
static int index_tensor (lua_State *L, fnn_Tensor *x, fnn_Tensor *t) {
  void **box = newbox(L, TENSOR);
  guard(L,
        *box = fnn_retain(t->dtype == FNN_BOOL ? masked(x, t)
                                               : fnn_index_select(x, 0, t)));
  return 1;
}

/* The place at the index 2. */
static lua_Integer check_index (lua_State *L) {
  int is;
  lua_Integer i = lua_tointegerx(L, 2, &is);
  if (!is)
    raise_error(L,
                "index: expected a place (x[1] is the first row), a mask or a "
                "tensor of ids, got %s",
                lua_isnumber(L, 2) ? "a fraction" : push_type_name(L, 2));
  return i;
}

/* Upvalue 2 is the table of methods, 3 the class's own __index. */
static int tensor_index (lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
    lua_pop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
  }
  fnn_Tensor *x = checktensor(L, 1), *t = testtensor(L, 2);
  if (t != NULL) return index_tensor(L, x, t);
  if (!lua_isinteger(L, 2)) check_index(L);
  return index_place(L, x);
}

static fnn_Tensor *mask_filled (fnn_Tensor *x, fnn_Tensor *mask, Number v) {
  int64_t shape[FNN_MAXDIM];
  if (is_row_mask(x, mask)) {
    for (int d = 0; d < x->ndim; d++)
      shape[d] = d < mask->ndim ? mask->shape[d] : 1;
    mask = fnn_reshape(mask, x->ndim, shape);
  }
  return number_masked_fill(x, mask, v);
}

/* x[i] = number or tensor; x[mask] = number. */
static int tensor_newindex (lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING && !lua_isnumber(L, 2))
    return raise_error(L, "a tensor has no fields: cannot assign '%s'",
                       lua_tostring(L, 2));
  fnn_Tensor *x = checktensor(L, 1), *t = testtensor(L, 2);
  fnn_Tensor *v = testtensor(L, 3);
  Number number = v == NULL ? checknumber(L, 3) : as_number(0);
  if (t != NULL && (t->dtype != FNN_BOOL || v != NULL))
    return raise_error(L, "only x[mask] = number assigns by a tensor");
  int64_t i = 0;
  if (t == NULL) {
    if (x->ndim == 0)
      return raise_error(L, "a tensor of shape () has no places (use fill_)");
    i = place(L, check_index(L), x->shape[0], "index");
  }
  guard(L, tensor_check_write("assignment", x);
        if (t != NULL) fnn_copy_(x, mask_filled(x, t, number));
        else if (v != NULL) fnn_copy_(fnn_select(x, 0, i), v);
        else number_fill(fnn_select(x, 0, i), number));
  return 0;
}

static int tensor_len (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  if (x->ndim == 0)
    return raise_error(L, "a tensor of shape () has no length");
  lua_pushinteger(L, x->shape[0]);
  return 1;
}

/* Comparisons by operator give one boolean, so they cannot be elementwise. */
static int no_compare (lua_State *L) {
  return raise_error(L, "tensors do not compare with < or <=: use x:lt(y), "
                        "x:le(y), x:gt(y) or x:ge(y)");
}

/* }====================================================== */

/*
** {======================================================
** Properties
** =======================================================
*/

static int tensor_shape (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  lua_createtable(L, x->ndim, 0);
  for (int i = 0; i < x->ndim; i++) {
    lua_pushinteger(L, x->shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int tensor_size (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  if (lua_isnoneornil(L, 2)) return tensor_shape(L);
  lua_pushinteger(L, x->shape[checkdim(L, 2, x)]);
  return 1;
}

static int tensor_stride (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  lua_createtable(L, x->ndim, 0);
  for (int i = 0; i < x->ndim; i++) {
    lua_pushinteger(L, x->stride[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int tensor_ndim (lua_State *L) {
  lua_pushinteger(L, checktensor(L, 1)->ndim);
  return 1;
}

static int tensor_numel (lua_State *L) {
  lua_pushinteger(L, checktensor(L, 1)->numel);
  return 1;
}

static int tensor_dtype (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  lua_pushstring(L, fnn_dtype_name((fnn_Dtype)x->dtype));
  return 1;
}

static int tensor_device (lua_State *L) {
  lua_pushstring(L, checktensor(L, 1)->storage->device->name);
  return 1;
}

static int tensor_is_contiguous (lua_State *L) {
  lua_pushboolean(L, tensor_is_dense(checktensor(L, 1)));
  return 1;
}

/* "row_major", "channels_last", or "strided" for a view that is neither. */
static int tensor_order (lua_State *L) {
  const fnn_Tensor *x = checktensor(L, 1);
  lua_pushstring(L, tensor_is_channels_last(x) ? "channels_last"
                    : tensor_is_dense(x)       ? "row_major"
                                               : "strided");
  return 1;
}

/* The dtype at i, where a device may be as well. */
static fnn_Dtype checkdtype_to (lua_State *L, int i) {
  const char *s = lua_tostring(L, i);
  for (int t = FNN_BOOL; t <= FNN_F64; t++)
    if (strcmp(s, fnn_dtype_name((fnn_Dtype)t)) == 0) return (fnn_Dtype)t;
  raise_error(L,
              "to: expected a dtype (bool, u8, i32, i64, f16, bf16, f32 or "
              "f64) or a device (cpu or cuda:N), got '%s'",
              s);
  return FNN_F32;
}

/* x:to("f64"), x:to("cuda"), x:to{ dtype =, device = }: x itself, detached
** from nothing, when there is nothing to do. */
static int tensor_to (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  const fnn_Device *d = x->storage->device;
  for (int i = 2; i <= lua_gettop(L); i++) {
    if (lua_type(L, i) == LUA_TTABLE) {
      int o = options(L, i, like_options);
      t = opt_dtype(L, o, t);
      if (opt_string(L, o, "device", NULL) != NULL) d = opt_device(L, o);
      continue;
    }
    const char *s = luaL_checkstring(L, i);
    if (strncmp(s, "cpu", 3) == 0 || strncmp(s, "cuda", 4) == 0)
      d = checkdevice(L, i);
    else t = checkdtype_to(L, i);
  }
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_to_device(fnn_cast(x, t), d)));
  return 1;
}

static int tensor_contiguous (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_contiguous(x)));
  return 1;
}

static int tensor_to_channels_last (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_channels_last(x)));
  return 1;
}

static int tensor_clone (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_clone(x)));
  return 1;
}

static int tensor_copy_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  guard(L, fnn_copy_(x, y));
  lua_settop(L, 1);
  return 1;
}

static int tensor_fill_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  Number v = checknumber(L, 2);
  guard(L, number_fill(x, v));
  lua_settop(L, 1);
  return 1;
}

static int tensor_zero_ (lua_State *L) {
  lua_settop(L, 1);
  lua_pushnumber(L, 0);
  return tensor_fill_(L);
}

/* }====================================================== */

/*
** {======================================================
** Creation
** =======================================================
*/

/* Reads shape and options of fnn.zeros and its like. */
static int shape_options (lua_State *L, int i, int64_t *shape, fnn_Dtype *t,
                          const fnn_Device **d) {
  int next;
  int n = checkshape(L, i, shape, &next);
  int o = list_options(L, i, next, like_options);
  *t = opt_dtype(L, o, getlib(L)->dtype);
  *d = opt_device(L, o);
  return n;
}

static int filled (lua_State *L, int i, Number value) {
  int64_t shape[FNN_MAXDIM];
  fnn_Dtype t;
  const fnn_Device *d;
  int n = shape_options(L, i, shape, &t, &d);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(number_full(n, shape, value, t, d)));
  return 1;
}

static int new_zeros (lua_State *L) { return filled(L, 1, as_number(0)); }
static int new_ones (lua_State *L) { return filled(L, 1, as_number(1)); }

/* fnn.full({2, 3}, value [, options]) */
static int new_full (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  Number v = checknumber(L, 2);
  lua_remove(L, 2);
  return filled(L, 1, v);
}

static int filled_like (lua_State *L, double value) {
  fnn_Tensor *x = checktensor(L, 1);
  int o = options(L, 2, like_options);
  fnn_Dtype t = opt_dtype(L, o, (fnn_Dtype)x->dtype);
  const fnn_Device *d = opt_string(L, o, "device", NULL) != NULL
                            ? opt_device(L, o)
                            : x->storage->device;
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_full(x->ndim, x->shape, value, t, d)));
  return 1;
}

static int new_zeros_like (lua_State *L) { return filled_like(L, 0); }
static int new_ones_like (lua_State *L) { return filled_like(L, 1); }

/* Of integers that a double may round: from 0, and then shifted. */
static fnn_Tensor *arange_far (int64_t a, int64_t b, int64_t step,
                               const fnn_Device *d) {
  double span = a <= b ? (double)((uint64_t)b - (uint64_t)a)
                       : -(double)((uint64_t)a - (uint64_t)b);
  fnn_Tensor *x = fnn_arange(0, span, (double)step, FNN_I64, d);
  fnn_zip_integer_(ZIP_add, x, a);
  return x;
}

/* Whether the n numbers from 1 on are integers, and one is that large. */
static bool are_far (lua_State *L, int n) {
  const int64_t most = (int64_t)1 << 53;
  bool far = false;
  for (int i = 1; i <= n; i++) {
    int64_t v = lua_tointeger(L, i);
    if (!lua_isinteger(L, i)) return false;
    far = far || v > most || v < -most;
  }
  return far;
}

/* fnn.arange(n), (first, last) or (first, last, step): from first, or 0, to
** before last. */
static int new_arange (lua_State *L) {
  int n = 0;
  while (n < 3 && lua_type(L, n + 1) == LUA_TNUMBER) n++;
  double a = luaL_checknumber(L, 1), b = n > 1 ? lua_tonumber(L, 2) : a;
  double step = n > 2 ? lua_tonumber(L, 3) : 1;
  if (n == 1) a = 0;
  int o = options(L, n + 1, like_options);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  bool far = t == FNN_I64 && n > 1 && step != 0 && are_far(L, n);
  int64_t ia = lua_tointeger(L, 1), ib = lua_tointeger(L, 2);
  int64_t istep = n > 2 ? lua_tointeger(L, 3) : 1;
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(far ? arange_far(ia, ib, istep, d)
                                 : fnn_arange(a, b, step, t, d)));
  return 1;
}

static int new_linspace (lua_State *L) {
  double a = luaL_checknumber(L, 1), b = luaL_checknumber(L, 2);
  lua_Integer n = luaL_checkinteger(L, 3);
  int o = options(L, 4, like_options);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_linspace(a, b, n, t, d)));
  return 1;
}

static int new_eye (lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1), m = n;
  int next = 2;
  if (lua_isinteger(L, 2)) m = lua_tointeger(L, next++);
  int o = options(L, next, like_options);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_eye(n, m, t, d)));
  return 1;
}

/* }====================================================== */

static int set_default_device (lua_State *L) {
  getlib(L)->device = checkdevice(L, 1);
  return 0;
}

static int default_device (lua_State *L) {
  lua_pushstring(L, getlib(L)->device->name);
  return 1;
}

static int set_default_dtype (lua_State *L) {
  fnn_Dtype t = checkdtype(L, 1);
  if (!dtype_is_float(t))
    return raise_error(L, "set_default_dtype: expected a float dtype, got %s",
                       fnn_dtype_name(t));
  getlib(L)->dtype = t;
  return 0;
}

static int is_tensor (lua_State *L) {
  lua_pushboolean(L, testtensor(L, 1) != NULL);
  return 1;
}

/* The methods of tensors; Params have them too, on their values. */
static const luaL_Reg methods[] = {
  { "totable", tensor_totable },
  { "item", tensor_item },
  { "at", tensor_at },
  { "shape", tensor_shape },
  { "size", tensor_size },
  { "stride", tensor_stride },
  { "ndim", tensor_ndim },
  { "dim", tensor_ndim },
  { "numel", tensor_numel },
  { "dtype", tensor_dtype },
  { "device", tensor_device },
  { "is_contiguous", tensor_is_contiguous },
  { "to", tensor_to },
  { "order", tensor_order },
  { "contiguous", tensor_contiguous },
  { "channels_last", tensor_to_channels_last },
  { "clone", tensor_clone },
  { "copy_", tensor_copy_ },
  { "fill_", tensor_fill_ },
  { "zero_", tensor_zero_ },
  { NULL, NULL },
};

static const luaL_Reg metamethods[] = {
  { "__newindex", tensor_newindex },
  { "__len", tensor_len },
  { "__lt", no_compare },
  { "__le", no_compare },
  { "__tostring", tensor_tostring },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "tensor", tensor_from },
  { "zeros", new_zeros },
  { "ones", new_ones },
  { "full", new_full },
  { "zeros_like", new_zeros_like },
  { "ones_like", new_ones_like },
  { "arange", new_arange },
  { "linspace", new_linspace },
  { "eye", new_eye },
  { "is_tensor", is_tensor },
  { "set_default_device", set_default_device },
  { "default_device", default_device },
  { "set_default_dtype", set_default_dtype },
  { NULL, NULL },
};

/* Integers and tensors index too, of tensors and of Params. */
static void index_too (lua_State *L, Kind k) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[k]);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getfield(L, -2, "methods");
  lua_getfield(L, -3, "__index");
  lua_pushcclosure(L, tensor_index, 3);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

void open_tensor (lua_State *L) {
  newclass(L, TENSOR, "fnn.Tensor", metamethods);
  newclass(L, PARAM, "fnn.Param", metamethods);
  addmethods(L, TENSOR, methods);
  index_too(L, TENSOR);
  index_too(L, PARAM);
  addfunctions(L, functions);
}
