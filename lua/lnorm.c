/* lnorm.c - normalization of tensors in Lua, and products with gates. */

#include "../src/core/core.h"
#include "lbox.h"

/*
** {======================================================
** Normalization
** =======================================================
*/

/* How many dims, 1 when absent. */
static int optdims (lua_State *L, int i) {
  lua_Integer n = luaL_optinteger(L, i, 1);
  luaL_argcheck(L, n == (int)n, i, "not a number of dims");
  return (int)n;
}

/* x:layer_norm(n [, weight, bias, eps]): over the last n dims */
static int layer_norm (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int n = optdims(L, 2);
  fnn_Tensor *w = opttensor(L, 3), *b = opttensor(L, 4);
  double eps = luaL_optnumber(L, 5, 1e-5);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_layer_norm(x, n, w, b, eps)));
  return 1;
}

/* x:rms_norm(n [, weight, eps]) */
static int rms_norm (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int n = optdims(L, 2);
  fnn_Tensor *w = opttensor(L, 3);
  double eps = luaL_optnumber(L, 4, 1e-6);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_rms_norm(x, n, w, eps)));
  return 1;
}

static const char *const batch_options[] = { "training", "momentum", "eps",
                                             NULL };

/* x:batch_norm([mean, var, weight, bias, options]) */
static int batch_norm (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_Tensor *mean = opttensor(L, 2), *var = opttensor(L, 3);
  fnn_Tensor *w = opttensor(L, 4), *b = opttensor(L, 5);
  int o = options(L, 6, batch_options);
  bool training = opt_boolean(L, o, "training", mean == NULL);
  double momentum = opt_number(L, o, "momentum", 0.1);
  double eps = opt_number(L, o, "eps", 1e-5);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(
               fnn_batch_norm(x, mean, var, w, b, training, momentum, eps)));
  return 1;
}

/* x:group_norm(groups [, weight, bias, eps]) */
static int group_norm (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t groups = luaL_checkinteger(L, 2);
  fnn_Tensor *w = opttensor(L, 3), *b = opttensor(L, 4);
  double eps = luaL_optnumber(L, 5, 1e-5);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_group_norm(x, groups, w, b, eps)));
  return 1;
}

/* x:instance_norm([weight, bias, eps]) */
static int instance_norm (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_Tensor *w = opttensor(L, 2), *b = opttensor(L, 3);
  double eps = luaL_optnumber(L, 4, 1e-5);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_instance_norm(x, w, b, eps)));
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Gates
** =======================================================
*/

static int gate (lua_State *L, fnn_Tensor *f(fnn_Tensor *, int)) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = optdim(L, 2, x, -1);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(f(x, dim)));
  return 1;
}

static int glu (lua_State *L) { return gate(L, fnn_glu); }
static int swiglu (lua_State *L) { return gate(L, fnn_swiglu); }
static int geglu (lua_State *L) { return gate(L, fnn_geglu); }

static int prelu (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *w = checktensor(L, 2);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_prelu(x, w)));
  return 1;
}

/* x:bilinear(y, weight [, bias]) */
static int bilinear (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  fnn_Tensor *w = checktensor(L, 3), *b = opttensor(L, 4);
  void **z = newbox(L, TENSOR);
  guard(L, *z = fnn_retain(fnn_bilinear(x, y, w, b)));
  return 1;
}

/* }====================================================== */

static const luaL_Reg both[] = {
  { "layer_norm", layer_norm },
  { "rms_norm", rms_norm },
  { "batch_norm", batch_norm },
  { "group_norm", group_norm },
  { "glu", glu },
  { "instance_norm", instance_norm },
  { "swiglu", swiglu },
  { "geglu", geglu },
  { "prelu", prelu },
  { "bilinear", bilinear },
  { NULL, NULL },
};

void open_norm (lua_State *L) {
  addmethods(L, TENSOR, both);
  addfunctions(L, both);
}
