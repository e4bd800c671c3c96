/* lconv.c - convolutions in Lua, as functions and as methods of the input, and
** the options of convolution layers. */

#include <string.h>

#include "lbox.h"

/*
** {======================================================
** Options
** =======================================================
*/

/* The whole number on the top, at least `least`. */
static int64_t whole (lua_State *L, const char *name, int64_t least) {
  int ok;
  int64_t v = lua_tointegerx(L, -1, &ok);
  if (lua_type(L, -1) != LUA_TNUMBER)
    raise_option(L, "%s: expected a whole number, got %s", name,
                 push_type_name(L, -1));
  if (!ok || v < least || v > INT32_MAX)
    raise_option(L, "%s: expected a whole number of at least %d, got %s", name,
                 (int)least, luaL_tolstring(L, -1, NULL));
  return v;
}

/* The table on the top has a value for each dim, or raises. */
static void check_length (lua_State *L, const char *name, int dims) {
  int n = (int)lua_rawlen(L, -1);
  if (n != dims)
    raise_option(L, "%s: expected a number or a list of %d, got a list of %d",
                 name, dims, n);
}

int64_t *sizes_at (lua_State *L, int i, const char *name, int dims,
                   int64_t least, int64_t *v) {
  lua_pushvalue(L, i);
  if (lua_type(L, -1) == LUA_TTABLE) {
    check_length(L, name, dims);
    for (int d = 0; d < dims; d++) {
      lua_rawgeti(L, -1, d + 1);
      v[d] = whole(L, name, least);
      lua_pop(L, 1);
    }
  } else {
    v[0] = whole(L, name, least);
    for (int d = 1; d < dims; d++) v[d] = v[0];
  }
  lua_pop(L, 1);
  return v;
}

static void opt_sizes (lua_State *L, int o, const char *name, int dims,
                       int64_t least, int64_t *v) {
  if (o == 0) return;
  lua_pushstring(L, name);
  if (lua_rawget(L, o) != LUA_TNIL) {
    int at = lua_gettop(L);
    const char *option = lua_pushfstring(L, "option '%s'", name);
    sizes_at(L, at, option, dims, least, v);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The padding that is on the top as a word. */
static void named_padding (lua_State *L, int dims, const int64_t *size,
                           fnn_ConvOptions *o) {
  const char *word = lua_tostring(L, -1);
  bool same = strcmp(word, "same") == 0, causal = strcmp(word, "causal") == 0;
  if (strcmp(word, "valid") == 0) return;
  if (!same && !causal)
    raise_option(
        L,
        "option 'padding': expected a number, a list, 'same', 'valid' "
        "or 'causal', got '%s'",
        word);
  if (causal && dims != 1)
    raise_option(L, "option 'padding': 'causal' is for 1 dim, here are %d",
                 dims);
  for (int d = 0; d < dims; d++) {
    if (size[d] - 1 > INT32_MAX / o->dilation[d])
      raise_error(L,
                  "option 'padding': a kernel of %I with dilation %I is "
                  "too large",
                  (LUAI_UACINT)size[d], (LUAI_UACINT)o->dilation[d]);
    int64_t total = o->dilation[d] * (size[d] - 1);
    if (same && o->stride[d] != 1)
      raise_option(L, "option 'padding': 'same' needs a stride of 1, got %d",
                   (int)o->stride[d]);
    o->before[d] = causal ? total : total / 2;
    o->after[d] = total - o->before[d];
  }
}

/* The list on the top: a number, or before and after, for each dim. */
static void listed_padding (lua_State *L, int dims, fnn_ConvOptions *o) {
  check_length(L, "option 'padding'", dims);
  for (int d = 0; d < dims; d++) {
    if (lua_rawgeti(L, -1, d + 1) == LUA_TTABLE) {
      int64_t both[2];
      if (lua_rawlen(L, -1) != 2)
        raise_option(L,
                     "option 'padding': expected { before, after } for each "
                     "dim, got a list of %d",
                     (int)lua_rawlen(L, -1));
      sizes_at(L, lua_gettop(L), "option 'padding'", 2, 0, both);
      o->before[d] = both[0];
      o->after[d] = both[1];
    } else o->before[d] = o->after[d] = whole(L, "option 'padding'", 0);
    lua_pop(L, 1);
  }
}

void conv_options (lua_State *L, int o, int dims, const int64_t *size,
                   fnn_ConvOptions *to) {
  opt_sizes(L, o, "stride", dims, 1, to->stride);
  opt_sizes(L, o, "dilation", dims, 1, to->dilation);
  opt_sizes(L, o, "output_padding", dims, 0, to->output_padding);
  to->groups = opt_integer(L, o, "groups", 1);
  if (to->groups < 1)
    raise_option(L, "option 'groups': expected 1 or more, got %d",
                 (int)to->groups);
  if (o == 0) return;
  lua_pushliteral(L, "padding");
  switch (lua_rawget(L, o)) {
    case LUA_TNIL: break;
    case LUA_TSTRING: named_padding(L, dims, size, to); break;
    case LUA_TTABLE: listed_padding(L, dims, to); break;
    default:
      sizes_at(L, lua_gettop(L), "option 'padding'", dims, 0, to->before);
      memcpy(to->after, to->before, sizeof to->after);
  }
  lua_pop(L, 1);
}

/* }====================================================== */

static const char *const conv_names[] = { "stride", "padding", "dilation",
                                          "groups", NULL };
static const char *const transpose_names[] = { "stride",         "padding",
                                               "dilation",       "groups",
                                               "output_padding", NULL };

/* x, w [, b] [, options]: fnn.conv2d(x, w, b, { stride = 2 }). */
static int convolve (lua_State *L, int dims, bool transposed) {
  int64_t size[3] = { 1, 1, 1 };
  fnn_Tensor *x = checktensor(L, 1), *w = checktensor(L, 2), *b = NULL;
  int at = lua_type(L, 3) == LUA_TTABLE ? 3 : 4;
  if (at == 4) b = opttensor(L, 3);
  const char *op = transposed ? "conv_transpose" : "conv";
  if (w->ndim != dims + 2)
    return raise_error(L,
                       "%s%dd: expected a weight of %d dims (%s%s), got "
                       "shape %s",
                       op, dims, dims + 2,
                       transposed ? "in, out / groups" : "out, in / groups",
                       dims == 1   ? ", size"
                       : dims == 2 ? ", height, width"
                                   : ", depth, height, width",
                       shape_text(w));
  memcpy(size, w->shape + 2, (size_t)dims * sizeof *size);
  fnn_ConvOptions o = FNN_CONV_INIT;
  int table = options(L, at, transposed ? transpose_names : conv_names);
  conv_options(L, table, dims, size, &o);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(transposed ? fnn_conv_transpose(x, w, b, &o)
                                      : fnn_conv(x, w, b, &o)));
  return 1;
}

static int conv1d (lua_State *L) { return convolve(L, 1, false); }
static int conv2d (lua_State *L) { return convolve(L, 2, false); }
static int conv3d (lua_State *L) { return convolve(L, 3, false); }
static int conv_transpose1d (lua_State *L) { return convolve(L, 1, true); }
static int conv_transpose2d (lua_State *L) { return convolve(L, 2, true); }

static const luaL_Reg both[] = {
  { "conv1d", conv1d },
  { "conv2d", conv2d },
  { "conv3d", conv3d },
  { "conv_transpose1d", conv_transpose1d },
  { "conv_transpose2d", conv_transpose2d },
  { NULL, NULL },
};

/* fnn.set_exact_convolution(on) -> what it was */
static int set_exact (lua_State *L) {
  bool was = false;
  luaL_checktype(L, 1, LUA_TBOOLEAN);
  bool on = lua_toboolean(L, 1);
  guard(L, was = fnn_exact_convolution(on));
  lua_pushboolean(L, was);
  return 1;
}

void open_conv (lua_State *L) {
  static const luaL_Reg settings[] = { { "set_exact_convolution", set_exact },
                                       { NULL, NULL } };
  addmethods(L, TENSOR, both);
  addfunctions(L, both);
  addfunctions(L, settings);
}
