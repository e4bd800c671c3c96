/* largs.c - arguments: what the bindings read from the stack.  The one place
** that knows that Lua counts places from 1. */

#include "lbox.h"

#include <stdarg.h>
#include <string.h>

/*
** {======================================================
** Tensors
** =======================================================
*/

fnn_Tensor *testtensor (lua_State *L, int i) {
  return lib_totensor(L, getlib(L), i);
}

fnn_Tensor *checktensor (lua_State *L, int i) {
  fnn_Tensor *x = testtensor(L, i);
  return x != NULL ? x : checkobject(L, i, TENSOR);
}

fnn_Tensor *opttensor (lua_State *L, int i) {
  return lua_isnoneornil(L, i) ? NULL : checktensor(L, i);
}

fnn_Param *checkparam (lua_State *L, int i) {
  return checkobject(L, i, PARAM);
}

fnn_Tensor **checktensors (lua_State *L, int i, int *n) {
  if (lua_type(L, i) != LUA_TTABLE)
    raise_option(L, "expected a list of tensors, { x, y }, got %s",
                 push_type_name(L, i));
  i = lua_absindex(L, i);
  lua_Integer count = (lua_Integer)lua_rawlen(L, i);
  luaL_argcheck(L, count <= 1 << 20, i, "too many tensors");
  fnn_Tensor **x = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *x, 1);
  for (lua_Integer k = 1; k <= count; k++) {
    lua_rawgeti(L, i, k);
    x[k - 1] = testtensor(L, -1);
    if (x[k - 1] == NULL)
      raise_error(L, "element %d of the list: expected a tensor, got %s",
                  (int)k, push_type_name(L, -1));
    lua_pop(L, 1);
  }
  *n = (int)count;
  return x;
}

fnn_Tensor *checkids (lua_State *L, int i, const fnn_Device *d) {
  if (lua_type(L, i) != LUA_TTABLE) {
    fnn_Tensor *x = checktensor(L, i);
    lua_pushvalue(L, i);
    return x;
  }
  i = lua_absindex(L, i);
  lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  void **box = newbox(L, TENSOR);
  const int64_t shape[1] = { n };
  guard(L, *box = fnn_retain(fnn_empty(1, shape, FNN_I64, NULL)));
  int64_t *to = tensor_data(*box);
  for (lua_Integer k = 1; k <= n; k++) {
    int ok;
    lua_rawgeti(L, i, k);
    to[k - 1] = lua_tointegerx(L, -1, &ok);
    if (!ok)
      raise_error(L,
                  "element %d of the list of ids: expected an integer, "
                  "got %s",
                  (int)k, push_type_name(L, -1));
    lua_pop(L, 1);
  }
  if (d->host) return *box;
  void **moved = newbox(L, TENSOR);
  guard(L, *moved = fnn_retain(tensor_move(*box, d)));
  lua_remove(L, -2);
  return *moved;
}

/* }====================================================== */

/*
** {======================================================
** Numbers: integers stay exact beside tensors of integers
** =======================================================
*/

Number as_number (double v) { return (Number){ .d = v }; }

Number checknumber (lua_State *L, int i) {
  if (lua_isboolean(L, i)) return as_number(lua_toboolean(L, i));
  Number v = as_number(luaL_checknumber(L, i));
  v.is_integer = lua_isinteger(L, i);
  if (v.is_integer) v.i = lua_tointeger(L, i);
  return v;
}

void number_fill (fnn_Tensor *x, Number v) {
  if (v.is_integer) fnn_fill_integer_(x, v.i);
  else fnn_fill_(x, v.d);
}

fnn_Tensor *number_full (int ndim, const int64_t *shape, Number v, fnn_Dtype t,
                         const fnn_Device *d) {
  if (!v.is_integer) return fnn_full(ndim, shape, v.d, t, d);
  fnn_Tensor *x = fnn_empty(ndim, shape, t, d);
  fnn_fill_integer_(x, v.i);
  return x;
}

fnn_Tensor *number_masked_fill (fnn_Tensor *x, fnn_Tensor *mask, Number v) {
  if (!v.is_integer || tensor_is_float(x))
    return fnn_masked_fill(x, mask, v.d);
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  return fnn_where(mask, number_full(0, NULL, v, t, x->storage->device), x);
}

/* }====================================================== */

/*
** {======================================================
** Places and sizes
** =======================================================
*/

static int dim_of (lua_State *L, lua_Integer p, const fnn_Tensor *x) {
  int n = x->ndim;
  if (p >= 1 && p <= n) return (int)p - 1;
  if (p < 0 && p >= -n) return (int)p + n;
  ShapeText text;
  shape_print(&text, n, x->shape);
  if (p == 0)
    raise_error(L,
                "dimensions count from 1 (or -1 from the end): got 0 for "
                "a tensor of shape %s",
                text.s);
  raise_error(L, "dimension %d out of range for a rank-%d tensor of shape %s",
              (int)p, n, text.s);
  return 0;
}

int checkdim (lua_State *L, int i, const fnn_Tensor *x) {
  return dim_of(L, luaL_checkinteger(L, i), x);
}

int optdim (lua_State *L, int i, const fnn_Tensor *x, int p) {
  return dim_of(L, luaL_optinteger(L, i, p), x);
}

int optline (lua_State *L, int i, const fnn_Tensor *x, int p) {
  lua_Integer given = luaL_optinteger(L, i, p);
  bool single = x->ndim == 0 && (given == 1 || given == -1);
  return single ? 0 : dim_of(L, given, x);
}

int64_t place (lua_State *L, int64_t p, int64_t n, const char *what) {
  if (p >= 1 && p <= n) return p - 1;
  if (p < 0 && p >= -n) return p + n;
  if (p == 0)
    raise_error(L, "%s: places count from 1 (or -1 from the end): got 0",
                what);
  raise_error(L, "%s: %I is out of range (there are %I; places count from 1)",
              what, (LUAI_UACINT)p, (LUAI_UACINT)n);
  return 0;
}

int64_t checkplace (lua_State *L, int i, int64_t n, const char *what) {
  return place(L, luaL_checkinteger(L, i), n, what);
}

int checknewdim (lua_State *L, int i, int ndim) {
  lua_Integer p = luaL_optinteger(L, i, 1);
  if (p >= 1 && p <= ndim + 1) return (int)p - 1;
  if (p < 0 && p >= -ndim - 1) return (int)p + ndim + 1;
  raise_error(L,
              "no place %I for a new dimension beside %d (dimensions count "
              "from 1)",
              (LUAI_UACINT)p, ndim);
  return 0;
}

int64_t checkstart (lua_State *L, int i, int64_t n, const char *what) {
  lua_Integer p = luaL_checkinteger(L, i);
  return p == n + 1 ? n : place(L, p, n, what);
}

/* The range is clamped to the places that there are; going down it starts
** from the last. */
int64_t checkrange (lua_State *L, int i, int64_t n, int64_t *start,
                    int64_t *step) {
  *step = luaL_optinteger(L, i + 2, 1);
  bool up = *step > 0;
  if (*step == 0) raise_error(L, "slice: a step of 0 leads nowhere");
  int64_t first = luaL_optinteger(L, i, up ? 1 : -1);
  int64_t last = luaL_optinteger(L, i + 1, up ? -1 : 1);
  if (first < 0) first += n + 1;
  if (last < 0) last += n + 1;
  first = up ? max64(first, 1) : min64(first, n);
  last = up ? min64(last, n) : max64(last, 1);
  *start = 0;
  if (up ? first > last : first < last) return 0;
  *start = first - 1;
  uint64_t span = (uint64_t)(up ? last - first : first - last);
  return (int64_t)(span / (up ? (uint64_t)*step : -(uint64_t)*step)) + 1;
}

int checkdims (lua_State *L, int i, const fnn_Tensor *x, int *dims,
               int *next) {
  int n = 0;
  if (lua_type(L, i) == LUA_TTABLE && (lua_Integer)lua_rawlen(L, i) > 0) {
    *next = i + 1;
    int count = (int)lua_rawlen(L, i);
    for (; n < count; n++) {
      lua_rawgeti(L, i, n + 1);
      if (n == FNN_MAXDIM || !lua_isinteger(L, -1))
        raise_error(L, "expected a list of at most %d dimensions", FNN_MAXDIM);
      dims[n] = dim_of(L, lua_tointeger(L, -1), x);
      lua_pop(L, 1);
    }
    return n;
  }
  for (; n < FNN_MAXDIM && lua_type(L, i + n) == LUA_TNUMBER; n++)
    dims[n] = dim_of(L, luaL_checkinteger(L, i + n), x);
  *next = i + n;
  if (n == 0 && lua_isnil(L, i)) *next = i + 1;
  return n;
}

static int64_t size_at (lua_State *L, int at, int k) {
  int ok;
  lua_Integer v = lua_tointegerx(L, at, &ok);
  if (!ok)
    raise_error(L, "size %d of the shape: expected an integer, got %s", k,
                push_type_name(L, at));
  return v;
}

int checkshape (lua_State *L, int i, int64_t *shape, int *next) {
  int n = 0;
  if (lua_type(L, i) == LUA_TTABLE) {
    lua_Integer count = (lua_Integer)lua_rawlen(L, i);
    if (count > FNN_MAXDIM)
      raise_error(L, "a shape has at most %d sizes (got %d)", FNN_MAXDIM,
                  (int)count);
    for (; n < count; n++) {
      lua_rawgeti(L, i, n + 1);
      shape[n] = size_at(L, -1, n + 1);
      lua_pop(L, 1);
    }
    *next = i + 1;
    return n;
  }
  for (; lua_type(L, i + n) == LUA_TNUMBER; n++) {
    if (n == FNN_MAXDIM)
      raise_error(L, "a shape has at most %d sizes", FNN_MAXDIM);
    shape[n] = size_at(L, i + n, n + 1);
  }
  if (lua_type(L, i + n) == LUA_TSTRING ||
      lua_type(L, i + n) == LUA_TBOOLEAN ||
      (lua_isnil(L, i + n) && lua_type(L, i + n + 1) == LUA_TNUMBER))
    raise_error(L, "size %d of the shape: expected an integer, got %s", n + 1,
                push_type_name(L, i + n));
  *next = i + n;
  return n;
}

/* }====================================================== */

/*
** {======================================================
** Names and options
** =======================================================
*/

fnn_Dtype checkdtype (lua_State *L, int i) {
  const char *name = luaL_checkstring(L, i);
  fnn_Dtype t = FNN_F32;
  guard(L, t = fnn_dtype(name));
  return t;
}

const fnn_Device *checkdevice (lua_State *L, int i) {
  const char *name = luaL_checkstring(L, i);
  const fnn_Device *d = NULL;
  guard(L, d = fnn_device(name));
  return d;
}

/* The name by which the function at a level was called, or NULL. */
static const char *name_at (lua_State *L, int level) {
  lua_Debug ar = { 0 };
  bool known = lua_getstack(L, level, &ar) && lua_getinfo(L, "n", &ar) &&
               ar.name != NULL && strcmp(ar.name, "?") != 0;
  return known ? ar.name : NULL;
}

int raise_option (lua_State *L, const char *fmt, ...) {
  va_list ap;
  const char *owner = name_at(L, 0);
  if (owner == NULL) { /* called by what f:try_NAME is */
    owner = name_at(L, 1);
    bool tried = owner != NULL && strncmp(owner, "try_", 4) == 0;
    owner = tried ? owner + 4 : "";
  }
  if (testobject(L, 1, MODULE) != NULL) owner = push_class_name(L, 1);
  va_start(ap, fmt);
  const char *text = lua_pushvfstring(L, fmt, ap);
  va_end(ap);
  return raise_error(L, "%s%s%s", owner, *owner != '\0' ? ": " : "", text);
}

static void check_option (lua_State *L, const char *key,
                          const char *const *names) {
  int n = 0;
  for (; names[n] != NULL; n++)
    if (strcmp(key, names[n]) == 0) return;
  const char *near = nearest_name(key, names, n, sizeof *names);
  if (near != NULL)
    raise_option(L, "unknown option '%s' (did you mean '%s'?)", key, near);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int k = 0; k < n; k++) {
    if (k > 0) luaL_addstring(&b, ", ");
    luaL_addstring(&b, names[k]);
  }
  luaL_pushresult(&b);
  raise_option(L, "unknown option '%s' (expected %s)", key,
               lua_tostring(L, -1));
}

int options (lua_State *L, int i, const char *const *names) {
  if (lua_isnoneornil(L, i)) return 0;
  if (lua_type(L, i) != LUA_TTABLE)
    raise_option(L, "expected a table of options, { %s = ... }, got %s",
                 names[0], push_type_name(L, i));
  lua_pushnil(L);
  while (lua_next(L, i)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      raise_option(L, "options are a table of names: got a key of type %s",
                   push_type_name(L, -1));
    check_option(L, lua_tostring(L, -1), names);
  }
  return i;
}

/* Pushes the string keys of the table at i; false, with nothing pushed, when
** it has none. */
static bool push_names (lua_State *L, int i) {
  bool any = false;
  lua_pushnil(L);
  while (lua_next(L, i)) {
    if (lua_type(L, -2) == LUA_TSTRING) {
      if (!any) {
        lua_newtable(L);
        lua_insert(L, -3);
      }
      any = true;
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, -4);
    } else lua_pop(L, 1);
  }
  return any;
}

int list_options (lua_State *L, int i, int next, const char *const *names) {
  if (!lua_istable(L, i) || !lua_isnoneornil(L, next) || !push_names(L, i))
    return options(L, next, names);
  return options(L, lua_gettop(L), names);
}

/* Pushes the field; false, with nothing pushed, when it is absent. */
static bool field (lua_State *L, int o, const char *name) {
  if (o == 0) return false;
  lua_pushstring(L, name);
  if (lua_rawget(L, o) != LUA_TNIL) return true;
  lua_pop(L, 1);
  return false;
}

static void wrong (lua_State *L, const char *name, const char *expected) {
  raise_option(L, "option '%s': expected %s, got %s", name, expected,
               push_type_name(L, -1));
}

bool opt_boolean (lua_State *L, int o, const char *name, bool d) {
  if (!field(L, o, name)) return d;
  if (!lua_isboolean(L, -1)) wrong(L, name, "true or false");
  bool v = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

double opt_number (lua_State *L, int o, const char *name, double d) {
  if (!field(L, o, name)) return d;
  if (lua_type(L, -1) != LUA_TNUMBER) wrong(L, name, "a number");
  double v = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return v;
}

int64_t opt_integer (lua_State *L, int o, const char *name, int64_t d) {
  if (!field(L, o, name)) return d;
  int ok;
  int64_t v = lua_tointegerx(L, -1, &ok);
  if (!ok || lua_type(L, -1) != LUA_TNUMBER) wrong(L, name, "an integer");
  lua_pop(L, 1);
  return v;
}

/* The string lives as long as the table holds it. */
const char *opt_string (lua_State *L, int o, const char *name, const char *d) {
  if (!field(L, o, name)) return d;
  if (lua_type(L, -1) != LUA_TSTRING) wrong(L, name, "a string");
  const char *v = lua_tostring(L, -1);
  lua_pop(L, 1);
  return v;
}

fnn_Tensor *opt_tensor (lua_State *L, int o, const char *name) {
  if (!field(L, o, name)) return NULL;
  fnn_Tensor *x = testtensor(L, -1);
  if (x == NULL) wrong(L, name, "a tensor");
  return x;
}

fnn_Dtype opt_dtype (lua_State *L, int o, fnn_Dtype d) {
  const char *name = opt_string(L, o, "dtype", NULL);
  if (name != NULL) guard(L, d = fnn_dtype(name));
  return d;
}

const fnn_Device *opt_device (lua_State *L, int o) {
  const char *name = opt_string(L, o, "device", NULL);
  const fnn_Device *d = getlib(L)->device;
  if (name != NULL) guard(L, d = fnn_device(name));
  return d;
}

fnn_Generator *opt_generator (lua_State *L, int o) {
  if (!field(L, o, "generator")) return NULL;
  fnn_Generator *g = testobject(L, -1, GENERATOR);
  if (g == NULL) wrong(L, "generator", "a fnn.Generator");
  lua_pop(L, 1);
  return g;
}

/* }====================================================== */
