/* lclip.c - the gradients of a list of parameters, or of an optimizer's, taken
** together: functions of fnn.optim, and methods of optimizers. */

#include "lbox.h"

/* What the clipping functions take: an optimizer, made in C or in Lua, or a
** list of Params. */
static fnn_Param **clipped (lua_State *L, int *n) {
  fnn_Optimizer *o = testobject(L, 1, OPTIMIZER);
  if (o != NULL) return push_params(L, o, n);
  if (lua_istable(L, 1) && luaL_getmetafield(L, 1, "__name") != LUA_TNIL) {
    lua_pop(L, 1);
    lua_getfield(L, 1, "parameters");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_replace(L, 1);
  }
  return checkparams(L, 1, n);
}

/* A norm on the host is a number; elsewhere a tensor, since to read it is to
** wait for the device. */
void push_norm (lua_State *L, void **box) {
  fnn_Tensor *x = *box;
  double v = 0;
  if (!x->storage->device->host) return;
  guard(L, v = fnn_item(x));
  lua_pushnumber(L, v);
}

static int clip_grad_norm (lua_State *L) {
  double most = luaL_checknumber(L, 2);
  int n;
  fnn_Param **p = clipped(L, &n);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_clip_grad_norm_later(n, p, most)));
  push_norm(L, box);
  return 1;
}

static int grad_norm (lua_State *L) {
  double norm = 0;
  int n;
  fnn_Param **p = clipped(L, &n);
  guard(L, norm = fnn_grad_norm(n, p));
  lua_pushnumber(L, norm);
  return 1;
}

static int clip_grad_value (lua_State *L) {
  double most = luaL_checknumber(L, 2);
  int n;
  fnn_Param **p = clipped(L, &n);
  guard(L, fnn_clip_grad_value(n, p, most));
  return 0;
}

static int scale_grad (lua_State *L) {
  double factor = luaL_checknumber(L, 2);
  int n;
  fnn_Param **p = clipped(L, &n);
  guard(L, fnn_scale_grad(n, p, factor));
  return 0;
}

static int gradients_are_finite (lua_State *L) {
  int n;
  bool finite = false;
  fnn_Param **p = clipped(L, &n);
  guard(L, finite = fnn_gradients_are_finite(n, p));
  lua_pushboolean(L, finite);
  return 1;
}

static const luaL_Reg functions[] = {
  { "clip_grad_norm", clip_grad_norm },
  { "clip_grad_value", clip_grad_value },
  { "grad_norm", grad_norm },
  { "scale_grad", scale_grad },
  { "gradients_are_finite", gradients_are_finite },
  { NULL, NULL },
};

void open_clip (lua_State *L) {
  addmethods(L, OPTIMIZER, functions);
  lua_getfield(L, -1, "optim");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
