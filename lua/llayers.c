/* llayers.c - the layers made in C: each function gives a new module, at 1,
** its insides.  nn.Linear(3, 4) makes the module, then calls init_linear. */

#include <math.h>
#include <string.h>

#include "../src/nn/nn.h"
#include "../src/ops/ops.h"
#include "lbox.h"

static void become (void **box, fnn_Module *m) {
  fnn_retain(m);
  fnn_release(*box);
  *box = m;
}

/* Makes the parts of m fields. */
static int expose (lua_State *L) {
  fnn_Module *m = checkmodule(L, 1);
  fnn_Member e;
  lua_getiuservalue(L, 1, 1);
  int fields = lua_gettop(L);
  for (int i = 0; fnn_member(m, i, &e); i++) {
    add_field_name(L, fields, e.name);
    lua_pushstring(L, e.name);
    if (e.param != NULL) pushobject(L, PARAM, e.param);
    else if (e.buffer != NULL) pushobject(L, TENSOR, e.buffer);
    else lua_pushnil(L);
    lua_rawset(L, fields);
  }
  return 0;
}

static void **checkbox (lua_State *L) {
  checkmodule(L, 1);
  return lua_touserdata(L, 1);
}

/* A size; name says which in messages ("in_features"). */
static int64_t checksize (lua_State *L, int i, const char *name) {
  int ok;
  lua_Integer n = lua_tointegerx(L, i, &ok);
  if (ok && lua_type(L, i) == LUA_TNUMBER && n >= 1) return n;
  const char *got = lua_isnone(L, i) ? "nothing" : luaL_tolstring(L, i, NULL);
  if (lua_type(L, i) == LUA_TSTRING) got = lua_pushfstring(L, "'%s'", got);
  return raise_error(L,
                     "%s: %s (argument %d): expected a whole number of at "
                     "least 1, got %s",
                     push_class_name(L, 1), name, i - 1, got);
}

/* The options at i, which end the arguments. */
static int lastoptions (lua_State *L, int i, const char *const *names) {
  int type = lua_type(L, i);
  if (type > LUA_TNIL && type != LUA_TTABLE)
    raise_error(L, "%s: argument %d: expected a table of options, got %s",
                push_class_name(L, 1), i - 1, push_type_name(L, i));
  int top = lua_gettop(L); /* before the name is pushed */
  if (top > i)
    raise_error(L, "%s: expected at most %d arguments, got %d",
                push_class_name(L, 1), i - 1, top - 1);
  return options(L, i, names);
}

static const char *const linear_options[] = { "bias", "dtype", "device",
                                              "generator", NULL };

static int init_linear (lua_State *L) {
  void **box = checkbox(L);
  int64_t in = checksize(L, 2, "inputs");
  int64_t out = checksize(L, 3, "outputs");
  int o = lastoptions(L, 4, linear_options);
  bool bias = opt_boolean(L, o, "bias", true);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  fnn_Generator *g = opt_generator(L, o);
  guard(L, become(box, fnn_nn_linear(in, out, bias, t, d, g)));
  return expose(L);
}

/* init(m, row, parameters ...): a row of map.def; its parameters are numbers
** in order, or options by their names */
static int init_activation (lua_State *L) {
  void **box = checkbox(L);
  int op = fnn_map_find(luaL_checkstring(L, 2));
  luaL_argcheck(L, op >= 0, 2, "no such function");
  lua_remove(L, 2);
  const MapRow *row = &map_rows[op];
  const char *names[3] = { NULL };
  double v[2] = { row->fallback[0], row->fallback[1] };
  int n = row->nargs, i = 0;
  memcpy(names, row->arg, (size_t)n * sizeof *names);
  for (; i < n && lua_type(L, 2 + i) == LUA_TNUMBER; i++)
    v[i] = lua_tonumber(L, 2 + i);
  if (n == 0 && !lua_isnoneornil(L, 2))
    return raise_error(L, "%s takes no arguments, got %s",
                       push_class_name(L, 1), push_type_name(L, 2));
  int o = lastoptions(L, 2 + i, names);
  for (int k = 0; k < n; k++) v[k] = opt_number(L, o, names[k], v[k]);
  guard(L, become(box, fnn_nn_activation(op, v[0], v[1])));
  return 0;
}

static const char *const dropout_options[] = { "p", "generator", NULL };

static int init_dropout (lua_State *L) {
  void **box = checkbox(L);
  int at = lua_isnumber(L, 2) || lua_isnil(L, 2) ? 3 : 2;
  double p = at == 3 ? luaL_optnumber(L, 2, 0.5) : 0.5;
  int o = lastoptions(L, at, dropout_options);
  p = opt_number(L, o, "p", p);
  fnn_Generator *g = opt_generator(L, o);
  guard(L, become(box, fnn_nn_dropout(p, g)));
  return 0;
}

static const char *const norm_options[] = { "eps", "affine", "dtype", "device",
                                            NULL };

/* size | { sizes } [, options] */
static int init_last_norm (lua_State *L, bool rms) {
  void **box = checkbox(L);
  int64_t shape[FNN_MAXDIM];
  int next = 3, n = 1;
  if (lua_istable(L, 2)) n = checkshape(L, 2, shape, &next);
  else shape[0] = checksize(L, 2, "size");
  int o = lastoptions(L, next, norm_options);
  double eps = opt_number(L, o, "eps", rms ? 1e-6 : 1e-5);
  bool affine = opt_boolean(L, o, "affine", true);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  guard(L, become(box, (rms ? fnn_nn_rms_norm : fnn_nn_layer_norm)(
                           n, shape, eps, affine, t, d)));
  return expose(L);
}

static int init_layer_norm (lua_State *L) { return init_last_norm(L, false); }
static int init_rms_norm (lua_State *L) { return init_last_norm(L, true); }

static const char *const batch_norm_options[] = {
  "eps", "momentum", "affine", "track_running_stats", "dtype", "device", NULL
};

/* momentum false: the mean of all batches, as PyTorch's None. */
static double opt_momentum (lua_State *L, int o) {
  bool none = false;
  if (o != 0) {
    none = lua_getfield(L, o, "momentum") == LUA_TBOOLEAN &&
           !lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  if (none) return -1;
  double momentum = opt_number(L, o, "momentum", 0.1);
  if (!(momentum >= 0 && momentum <= 1))
    raise_option(L,
                 "option 'momentum': expected a number from 0 to 1, or "
                 "false, got %f",
                 momentum);
  return momentum;
}

static int init_batch_norm (lua_State *L, int dims) {
  void **box = checkbox(L);
  int64_t channels = checksize(L, 2, "channels");
  int o = lastoptions(L, 3, batch_norm_options);
  fnn_BatchNormOptions b = { .eps = opt_number(L, o, "eps", 1e-5),
                             .momentum = opt_momentum(L, o),
                             .affine = opt_boolean(L, o, "affine", true),
                             .track_running_stats = opt_boolean(
                                 L, o, "track_running_stats", true) };
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  guard(L, become(box, fnn_nn_batch_norm(dims, channels, &b, t, d)));
  return expose(L);
}

/* batch_norm_momentum(m, momentum): what it was, or nil for other modules */
static int set_momentum (lua_State *L) {
  double momentum = luaL_checknumber(L, 2), before = NAN;
  guard(L, before = batch_norm_momentum(checkmodule(L, 1), momentum));
  if (isnan(before)) lua_pushnil(L);
  else lua_pushnumber(L, before);
  return 1;
}

static int init_group_norm (lua_State *L) {
  void **box = checkbox(L);
  int64_t groups = checksize(L, 2, "groups");
  int64_t channels = checksize(L, 3, "channels");
  int o = lastoptions(L, 4, norm_options);
  double eps = opt_number(L, o, "eps", 1e-5);
  bool affine = opt_boolean(L, o, "affine", true);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  guard(L,
        become(box, fnn_nn_group_norm(groups, channels, eps, affine, t, d)));
  return expose(L);
}

static int init_instance_norm (lua_State *L, int dims) {
  void **box = checkbox(L);
  int64_t channels = checksize(L, 2, "channels");
  int o = lastoptions(L, 3, norm_options);
  double eps = opt_number(L, o, "eps", 1e-5);
  bool affine = opt_boolean(L, o, "affine", false);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  guard(L,
        become(box, fnn_nn_instance_norm(dims, channels, eps, affine, t, d)));
  return expose(L);
}

#define BY_DIMS(name) \
  static int name##1d(lua_State * L) { return name(L, 1); } \
  static int name##2d(lua_State * L) { return name(L, 2); } \
  static int name##3d(lua_State * L) { return name(L, 3); }

BY_DIMS(init_batch_norm)
BY_DIMS(init_instance_norm)

static const char *const prelu_options[] = { "init", "dtype", "device", NULL };

/* [count [, options]] */
static int init_prelu (lua_State *L) {
  void **box = checkbox(L);
  int at = lua_istable(L, 2) || lua_isnoneornil(L, 2) ? 2 : 3;
  int64_t count = at == 3 ? checksize(L, 2, "count") : 1;
  if (lua_isnil(L, 2)) at = 3;
  int o = lastoptions(L, at, prelu_options);
  double start = opt_number(L, o, "init", 0.25);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  guard(L, become(box, fnn_nn_prelu(count, start, t, d)));
  return expose(L);
}

static const char *const embedding_options[] = { "dtype", "device",
                                                 "generator", NULL };

static int init_embedding (lua_State *L) {
  void **box = checkbox(L);
  int64_t count = checksize(L, 2, "count"), dim = checksize(L, 3, "dim");
  int o = lastoptions(L, 4, embedding_options);
  fnn_Dtype t = opt_dtype(L, o, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, o);
  fnn_Generator *g = opt_generator(L, o);
  guard(L, become(box, fnn_nn_embedding(count, dim, t, d, g)));
  return expose(L);
}

static const char *const conv_names[] = { "stride", "padding", "dilation",
                                          "groups", "bias",    "padding_mode",
                                          "dtype",  "device",  "generator",
                                          NULL };
static const char *const transpose_names[] = {
  "stride", "padding", "dilation",  "groups",         "bias", "padding_mode",
  "dtype",  "device",  "generator", "output_padding", NULL
};

/* (channels in, channels out, kernel size [, options]) */
static int init_conv (lua_State *L, int dims, bool transposed) {
  void **box = checkbox(L);
  int64_t in = checksize(L, 2, "channels in");
  int64_t out = checksize(L, 3, "channels out"), size[3];
  if (!lua_istable(L, 4)) checksize(L, 4, "kernel size");
  sizes_at(L, 4, "kernel size (argument 3)", dims, 1, size);
  int at = lastoptions(L, 5, transposed ? transpose_names : conv_names);
  fnn_ConvOptions o = FNN_CONV_INIT;
  conv_options(L, at, dims, size, &o);
  const char *mode = opt_string(L, at, "padding_mode", "zeros");
  if (strcmp(mode, "zeros") != 0)
    raise_option(L, "option 'padding_mode': expected 'zeros', got '%s'", mode);
  bool bias = opt_boolean(L, at, "bias", true);
  fnn_Dtype t = opt_dtype(L, at, getlib(L)->dtype);
  const fnn_Device *d = opt_device(L, at);
  fnn_Generator *g = opt_generator(L, at);
  guard(L, become(box, (transposed ? fnn_nn_conv_transpose : fnn_nn_conv)(
                           dims, in, out, size, &o, bias, t, d, g)));
  return expose(L);
}

static int init_conv1d (lua_State *L) { return init_conv(L, 1, false); }
static int init_conv2d (lua_State *L) { return init_conv(L, 2, false); }
static int init_conv3d (lua_State *L) { return init_conv(L, 3, false); }
static int init_transpose1d (lua_State *L) { return init_conv(L, 1, true); }
static int init_transpose2d (lua_State *L) { return init_conv(L, 2, true); }

static const luaL_Reg layers[] = {
  { "conv1d", init_conv1d },
  { "conv2d", init_conv2d },
  { "conv3d", init_conv3d },
  { "conv_transpose1d", init_transpose1d },
  { "conv_transpose2d", init_transpose2d },
  { "linear", init_linear },
  { "activation", init_activation },
  { "dropout", init_dropout },
  { "layer_norm", init_layer_norm },
  { "embedding", init_embedding },
  { "rms_norm", init_rms_norm },
  { "prelu", init_prelu },
  { "group_norm", init_group_norm },
  { "batch_norm1d", init_batch_norm1d },
  { "batch_norm2d", init_batch_norm2d },
  { "batch_norm3d", init_batch_norm3d },
  { "batch_norm_momentum", set_momentum },
  { "instance_norm1d", init_instance_norm1d },
  { "instance_norm2d", init_instance_norm2d },
  { "instance_norm3d", init_instance_norm3d },
  { NULL, NULL },
};

void add_layers (lua_State *L) { addfunctions(L, layers); }
