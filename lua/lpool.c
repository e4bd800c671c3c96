/* lpool.c - pooling and resizing of tensors in Lua. */

#include <string.h>

#include "../src/core/core.h"
#include "lbox.h"

/*
** {======================================================
** Sizes: a number for each of dims, or a table of them
** =======================================================
*/

/* What is wrong with the size at i, for messages. */
static int bad_size (lua_State *L, int i, const char *op, const char *name,
                     int dims, int64_t least) {
  const char *list =
      dims == 1 ? "" : lua_pushfstring(L, " or a table of %d", dims);
  const char *got = luaL_tolstring(L, i, NULL);
  return raise_error(L,
                     "%s: %s: expected a whole number of at least %d%s, "
                     "got %s",
                     op, name, (int)least, list, got);
}

/* Reads the value at i; -1 may be written false where least is -1. */
static void check_sizes (lua_State *L, int i, const char *op, const char *name,
                         int dims, int64_t least, int64_t *to) {
  bool list = lua_type(L, i) == LUA_TTABLE;
  if (list && (int)lua_rawlen(L, i) != dims)
    bad_size(L, i, op, name, dims, least);
  for (int k = 0; k < dims; k++) {
    int ok;
    if (list) lua_rawgeti(L, i, k + 1);
    else lua_pushvalue(L, i);
    to[k] = lua_tointegerx(L, -1, &ok);
    if (least == -1 && lua_type(L, -1) == LUA_TBOOLEAN &&
        !lua_toboolean(L, -1)) {
      to[k] = -1;
      ok = 1;
    } else if (lua_type(L, -1) != LUA_TNUMBER) ok = 0;
    if (!ok || to[k] < least) bad_size(L, i, op, name, dims, least);
    lua_pop(L, 1);
  }
}

/* The same of an option, which stays as it is where absent. */
static void opt_sizes (lua_State *L, int o, const char *op, const char *name,
                       int dims, int64_t least, int64_t *to) {
  if (o == 0) return;
  if (lua_getfield(L, o, name) != LUA_TNIL)
    check_sizes(L, lua_gettop(L), op, name, dims, least, to);
  lua_pop(L, 1);
}

/* }====================================================== */

/*
** {======================================================
** Pools
** =======================================================
*/

static const char *const max_options[] = { "stride",         "padding",
                                           "dilation",       "ceil_mode",
                                           "return_indices", NULL };
static const char *const avg_options[] = { "stride", "padding", "ceil_mode",
                                           "count_include_pad", NULL };
static const char *const adaptive_options[] = { "return_indices", NULL };

/* Pushes y, which f makes of x, and the places of the maxima if asked. */
#define PUSH_POOL(places, f) \
  do { \
    void **y_ = newbox(L, TENSOR), **ids_ = (places) ? newbox(L, TENSOR) : 0; \
    guard(L, fnn_Tensor *p_ = NULL, **ids = (places) ? &p_ : NULL; \
          *y_ = fnn_retain(f); if (places) *ids_ = fnn_retain(p_)); \
  } while (0)

static int max_pool (lua_State *L, const char *op, int dims) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_PoolOptions p = { .dims = dims };
  check_sizes(L, 2, op, "kernel", dims, 1, p.kernel);
  int o = options(L, 3, max_options);
  opt_sizes(L, o, op, "stride", dims, 1, p.stride);
  opt_sizes(L, o, op, "padding", dims, 0, p.padding);
  opt_sizes(L, o, op, "dilation", dims, 1, p.dilation);
  p.ceil_mode = opt_boolean(L, o, "ceil_mode", false);
  bool places = opt_boolean(L, o, "return_indices", false);
  PUSH_POOL(places, fnn_max_pool(x, &p, ids));
  return places ? 2 : 1;
}

static int avg_pool (lua_State *L, const char *op, int dims) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_PoolOptions p = { .dims = dims };
  check_sizes(L, 2, op, "kernel", dims, 1, p.kernel);
  int o = options(L, 3, avg_options);
  opt_sizes(L, o, op, "stride", dims, 1, p.stride);
  opt_sizes(L, o, op, "padding", dims, 0, p.padding);
  p.ceil_mode = opt_boolean(L, o, "ceil_mode", false);
  p.count_include_pad = opt_boolean(L, o, "count_include_pad", true);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_avg_pool(x, &p)));
  return 1;
}

static int adaptive_max_pool (lua_State *L, const char *op, int dims) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t size[2];
  check_sizes(L, 2, op, "size", dims, -1, size);
  int o = options(L, 3, adaptive_options);
  bool places = opt_boolean(L, o, "return_indices", false);
  PUSH_POOL(places, fnn_adaptive_max_pool(x, dims, size, ids));
  return places ? 2 : 1;
}

static int adaptive_avg_pool (lua_State *L, const char *op, int dims) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t size[2];
  check_sizes(L, 2, op, "size", dims, -1, size);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_adaptive_avg_pool(x, dims, size)));
  return 1;
}

#define POOL(name) \
  static int name##1d(lua_State * L) { return name(L, #name "1d", 1); } \
  static int name##2d(lua_State * L) { return name(L, #name "2d", 2); }

POOL(max_pool)
POOL(avg_pool)
POOL(adaptive_max_pool)
POOL(adaptive_avg_pool)

/* }====================================================== */

/*
** {======================================================
** Resizing
** =======================================================
*/

static const struct {
  const char *name;
  fnn_Interpolation mode;
  int ndim; /* of the tensors it is for; 0: any */
} modes[] = {
  { "nearest", FNN_NEAREST, 0 },
  { "linear", FNN_LINEAR, 3 },
  { "bilinear", FNN_LINEAR, 4 },
  { "bicubic", FNN_CUBIC, 4 },
};

static fnn_Interpolation check_mode (lua_State *L, const char *name,
                                     const fnn_Tensor *x) {
  for (int i = 0; i < countof(modes); i++) {
    if (strcmp(modes[i].name, name) != 0) continue;
    if (modes[i].ndim != 0 && modes[i].ndim != x->ndim)
      raise_error(L, "interpolate: mode '%s' is for shapes of %d dims, got %s",
                  name, modes[i].ndim, shape_text(x));
    return modes[i].mode;
  }
  raise_error(L,
              "interpolate: mode: expected 'nearest', 'linear', 'bilinear' "
              "or 'bicubic', got '%s'",
              name);
  return FNN_NEAREST;
}

/* The option scale_factor, a number for each of dims or a table of them;
** false where it is absent. */
static bool opt_scale (lua_State *L, int o, int dims, double *to) {
  if (o == 0 || lua_getfield(L, o, "scale_factor") == LUA_TNIL) return false;
  bool list = lua_istable(L, -1);
  bool ok = !list || (int)lua_rawlen(L, -1) == dims;
  for (int k = 0; ok && k < dims; k++) {
    if (list) lua_rawgeti(L, -1, k + 1);
    else lua_pushvalue(L, -1);
    to[k] = lua_tonumber(L, -1);
    ok = lua_type(L, -1) == LUA_TNUMBER && to[k] > 0;
    lua_pop(L, 1);
  }
  if (!ok)
    raise_error(L,
                "interpolate: scale_factor: expected a number above 0, or "
                "%d in a table, got %s",
                dims, luaL_tolstring(L, -1, NULL));
  return true;
}

static const char *const interpolate_options[] = {
  "size", "scale_factor", "mode", "align_corners", "antialias", NULL
};

static int interpolate (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int o = options(L, 2, interpolate_options);
  int dims = x->ndim == 4 ? 2 : 1;
  int64_t size[2] = { 0, 0 };
  double scale[2];
  opt_sizes(L, o, "interpolate", "size", dims, 1, size);
  bool scaled = opt_scale(L, o, dims, scale), sized = size[0] != 0;
  fnn_Interpolation mode =
      check_mode(L, opt_string(L, o, "mode", "nearest"), x);
  bool align = opt_boolean(L, o, "align_corners", false);
  bool wide = opt_boolean(L, o, "antialias", false);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_interpolate(x, sized ? size : NULL,
                                           scaled ? scale : NULL, mode, align,
                                           wide)));
  return 1;
}

static int pixel_shuffle (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t r = luaL_checkinteger(L, 2);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_pixel_shuffle(x, r)));
  return 1;
}

static int pixel_unshuffle (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t r = luaL_checkinteger(L, 2);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_pixel_unshuffle(x, r)));
  return 1;
}

/* }====================================================== */

#define POOLS(name) \
  { #name "1d", name##1d }, { #name "2d", name##2d }

static const luaL_Reg both[] = { POOLS(max_pool),
                                 POOLS(avg_pool),
                                 POOLS(adaptive_max_pool),
                                 POOLS(adaptive_avg_pool),
                                 { "interpolate", interpolate },
                                 { "pixel_shuffle", pixel_shuffle },
                                 { "pixel_unshuffle", pixel_unshuffle },
                                 { NULL, NULL } };

void open_pool (lua_State *L) {
  addmethods(L, TENSOR, both);
  addfunctions(L, both);
}
