/* lgraph.c - gradients in Lua: backward, grad, modes, hooks, Params, and
** functions whose derivative is written in Lua. */

#include <string.h>

#include "lbox.h"

/* create_graph is what others call a request for second derivatives. */
static const char *const backward_options[] = { "retain_graph", "create_graph",
                                                NULL };

static void check_create (lua_State *L, int o) {
  if (opt_boolean(L, o, "create_graph", false))
    raise_error(L, "backward: gradients are plain data: there are no second "
                   "derivatives");
}

/* x:backward([gradient] [, { retain_graph = }]) */
static int tensor_backward (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *gy = testtensor(L, 2);
  int o = options(L,
                  gy != NULL        ? 3
                  : lua_isnil(L, 2) ? 3
                                    : 2,
                  backward_options);
  bool keep = opt_boolean(L, o, "retain_graph", false);
  check_create(L, o);
  guard(L, fnn_backward(x, gy, keep));
  return 0;
}

static const char *const grad_options[] = { "retain_graph", "gradient",
                                            "create_graph", NULL };

/* fnn.grad(x, params [, options]): a list of gradients, false where x does
** not depend on the Param.  The Params' own gradients stay. */
static int graph_grad (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *gy = NULL;
  bool one = testobject(L, 2, PARAM) != NULL;
  if (!one) luaL_checktype(L, 2, LUA_TTABLE);
  int n = one ? 1 : (int)lua_rawlen(L, 2);
  int o = options(L, 3, grad_options);
  bool keep = opt_boolean(L, o, "retain_graph", false);
  check_create(L, o);
  if (o != 0 && lua_getfield(L, o, "gradient") != LUA_TNIL)
    gy = checktensor(L, -1);
  fnn_Param **p = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *p, 0);
  fnn_Tensor **g = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *g, 0);
  for (int i = 0; i < n; i++) {
    if (one) lua_pushvalue(L, 2);
    else lua_rawgeti(L, 2, i + 1);
    p[i] = testobject(L, -1, PARAM);
    if (p[i] == NULL)
      return raise_error(L, "grad: element %d: expected a fnn.Param, got %s",
                         i + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  lua_createtable(L, n, 0);
  void ***boxes = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *boxes, 0);
  lua_insert(L, -2);
  for (int i = 0; i < n; i++) {
    boxes[i] = newbox(L, TENSOR);
    lua_rawseti(L, -2, i + 1);
  }
  guard(L, fnn_grad(x, gy, n, p, g, keep);
        for (int i = 0; i < n; i++) * boxes[i] = fnn_retain(g[i]));
  for (int i = 0; i < n; i++)
    if (*boxes[i] == NULL) {
      lua_pushboolean(L, 0);
      lua_rawseti(L, -2, i + 1);
    }
  if (one) lua_rawgeti(L, -1, 1);
  return 1;
}

/*
** {======================================================
** Modes
** =======================================================
*/

typedef bool (*Mode)(bool on);

static const Mode modes[] = { fnn_grad_mode, fnn_anomaly_mode };
enum { GRAD, ANOMALY };

/* Ends what with_mode began: upvalue 2 is the mode, 3 what it was before. */
static int restore_mode (lua_State *L) {
  int which = (int)lua_tointeger(L, lua_upvalueindex(2));
  bool before = lua_toboolean(L, lua_upvalueindex(3));
  guard(L, modes[which](before));
  if (which == ANOMALY) forget_places(L);
  return 0;
}

/* What is to be called is at 1: there is no mode that stays on. */
static void check_called (lua_State *L, const char *what) {
  if (lua_isfunction(L, 1)) return;
  if (luaL_getmetafield(L, 1, "__call") == LUA_TNIL)
    raise_error(L,
                "%s: expected a function to call, %s(function () ... end), "
                "got %s",
                what, what, push_type_name(L, 1));
  lua_pop(L, 1);
}

/* f(...) with a mode on or off. */
static int with_mode (lua_State *L, int which, bool on) {
  const fnn_Context *c = getlib(L)->context;
  check_called(L, which == ANOMALY ? "detect_anomaly"
                  : on             ? "enable_grad"
                                   : "no_grad");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, which);
  lua_pushboolean(L, which == GRAD ? c->grad_mode
                                   : (c->watch & WATCH_ANOMALY) != 0);
  lua_pushcclosure(L, restore_mode, 3);
  lua_insert(L, 1);
  bool set = closer_set(L);
  if (which == ANOMALY) forget_places(L);
  guard(L, modes[which](on));
  return closer_call(L, set, NULL);
}

static int graph_no_grad (lua_State *L) { return with_mode(L, GRAD, false); }

static int graph_enable_grad (lua_State *L) {
  return with_mode(L, GRAD, true);
}

static int graph_detect_anomaly (lua_State *L) {
  return with_mode(L, ANOMALY, true);
}

/* Ends fnn.autocast: upvalue 2 is the dtype that there was. */
static int restore_autocast (lua_State *L) {
  fnn_Dtype before = (fnn_Dtype)lua_tointeger(L, lua_upvalueindex(2));
  guard(L, fnn_autocast(before));
  return 0;
}

/* fnn.autocast(f [, options [, ...]]): f(...) with products in 16 bits */
static int graph_autocast (lua_State *L) {
  static const char *const names[] = { "dtype", "enabled", NULL };
  check_called(L, "autocast");
  int o = options(L, 2, names);
  fnn_Dtype t = FNN_BF16;
  if (o != 0 && lua_getfield(L, o, "dtype") != LUA_TNIL) t = checkdtype(L, -1);
  if (!opt_boolean(L, o, "enabled", true)) t = FNN_F32;
  lua_settop(L, lua_gettop(L) - (o != 0));
  if (lua_gettop(L) >= 2) lua_remove(L, 2); /* the options */
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, getlib(L)->context->autocast);
  lua_pushcclosure(L, restore_autocast, 2);
  lua_insert(L, 1);
  bool set = closer_set(L);
  guard(L, fnn_autocast(t));
  return closer_call(L, set, NULL);
}

/* fnn.autocast_dtype(): "bf16" or "f16" inside of autocast, else nil */
static int graph_autocast_dtype (lua_State *L) {
  fnn_Dtype t = (fnn_Dtype)getlib(L)->context->autocast;
  if (t == FNN_F32) lua_pushnil(L);
  else lua_pushstring(L, fnn_dtype_name(t));
  return 1;
}

static int graph_is_grad_enabled (lua_State *L) {
  lua_pushboolean(L, getlib(L)->context->grad_mode);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Hooks and functions
** =======================================================
*/

/* Raises unless what is at i can be called. */
static void check_callable (lua_State *L, int i, const char *op) {
  if (lua_isfunction(L, i)) return;
  if (luaL_getmetafield(L, i, "__call") == LUA_TNIL)
    raise_error(L, "%s: expected a function, got %s", op,
                push_type_name(L, i));
  lua_pop(L, 1);
}

static fnn_Tensor *call_hook (void *ud, fnn_Tensor *g) {
  fnn_Tensor *r;
  slot_call(ud, 1, &g, 1, &r);
  return r;
}

/* x:register_hook(f): f(g) sees each gradient of x, and may return another */
static int tensor_hook (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  check_callable(L, 2, "register_hook");
  int ref = slot_ref(L, 2);
  guard(L, Slot_ *s = slot_new(getlib(L), ref, NULL, 1);
        fnn_hook(x, call_hook, slot_drop, s); slot_keep(s));
  return 0;
}

static void call_back (void *ud, fnn_Tensor *gy, fnn_Tensor **gx) {
  int n = slot_count(ud);
  slot_call(ud, 1, &gy, n, gx);
}

/* fnn.record(y, name, inputs, back): y, computed by the script from inputs,
** gets back(gy) -> a gradient (or nil) for each input as its derivative. */
static int graph_record_ (lua_State *L) {
  fnn_Tensor *y = checktensor(L, 1);
  const char *name = luaL_checkstring(L, 2);
  check_callable(L, 4, "record");
  int n;
  fnn_Tensor **x = checktensors(L, 3, &n);
  void **box = newbox(L, TENSOR);
  int ref = slot_ref(L, 4);
  guard(L, Slot_ *s = slot_new(getlib(L), ref, name, n);
        fnn_Tensor *z = fnn_detach(y);
        fnn_record(z, name, n, x, call_back, slot_drop, s); slot_keep(s);
        *box = fnn_retain(z));
  return 1;
}

/* }====================================================== */

static int tensor_detach (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_detach(x)));
  return 1;
}

static int tensor_has_graph (lua_State *L) {
  lua_pushboolean(L, fnn_has_graph(checktensor(L, 1)));
  return 1;
}

/*
** {======================================================
** Params
** =======================================================
*/

/* fnn.Param(x): a leaf of the graph over x's storage */
static int new_param (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **p = newbox(L, PARAM);
  guard(L, *p = fnn_retain(fnn_param(x)));
  enter_box(L);
  return 1;
}

static int param_value (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  pushobject(L, TENSOR, fnn_value(p));
  return 1;
}

static int param_grad (lua_State *L) {
  pushobject(L, TENSOR, fnn_gradient(checkparam(L, 1)));
  return 1;
}

static int param_set_grad (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  fnn_Tensor *g = opttensor(L, 2);
  guard(L, fnn_set_gradient(p, g));
  return 0;
}

static int param_set (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  fnn_Tensor *x = checktensor(L, 2);
  guard(L, fnn_set_value(p, x));
  return 0;
}

static int param_freeze (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  guard(L, fnn_freeze(p, true));
  lua_settop(L, 1);
  return 1;
}

static int param_unfreeze (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  guard(L, fnn_freeze(p, false));
  lua_settop(L, 1);
  return 1;
}

static int param_is_frozen (lua_State *L) {
  lua_pushboolean(L, fnn_is_frozen(checkparam(L, 1)));
  return 1;
}

/* p:to("cuda"), p:to("f64"): moves it in place, with all that it has */
static int param_to (lua_State *L) {
  fnn_Param *p = checkparam(L, 1);
  fnn_Dtype t = (fnn_Dtype)p->value->dtype;
  const fnn_Device *d = p->value->storage->device;
  for (int i = 2; i <= lua_gettop(L); i++) {
    const char *s = luaL_checkstring(L, i);
    if (strncmp(s, "cpu", 3) == 0 || strncmp(s, "cuda", 4) == 0)
      d = checkdevice(L, i);
    else t = checkdtype(L, i);
  }
  if (in_finalizer(L))
    return raise_error(L, "to: a finalizer cannot move a parameter, which may "
                          "be in use");
  guard(L, fnn_param_to(p, d, t));
  lua_settop(L, 1);
  return 1;
}

static const luaL_Reg param_methods[] = {
  { "value", param_value },
  { "grad", param_grad },
  { "set_grad", param_set_grad },
  { "set", param_set },
  { "freeze", param_freeze },
  { "unfreeze", param_unfreeze },
  { "is_frozen", param_is_frozen },
  { "to", param_to },
  { NULL, NULL },
};

static const luaL_Reg param_metamethods[] = {
  { "__tostring", tensor_tostring },
  { NULL, NULL },
};

/* }====================================================== */

static const luaL_Reg methods[] = {
  { "backward", tensor_backward },
  { "register_hook", tensor_hook },
  { "detach", tensor_detach },
  { "has_graph", tensor_has_graph },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "grad", graph_grad },
  { "no_grad", graph_no_grad },
  { "enable_grad", graph_enable_grad },
  { "detect_anomaly", graph_detect_anomaly },
  { "is_grad_enabled", graph_is_grad_enabled },
  { "autocast", graph_autocast },
  { "autocast_dtype", graph_autocast_dtype },
  { "record", graph_record_ },
  { "Param", new_param },
  { NULL, NULL },
};

/* A Param has the methods of tensors, on its value, behind its own. */
static void inherit (lua_State *L) {
  pushmethods(L, PARAM);
  lua_createtable(L, 0, 1);
  pushmethods(L, TENSOR);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

void open_graph (lua_State *L) {
  addmetamethods(L, PARAM, param_metamethods);
  addmethods(L, PARAM, param_methods);
  inherit(L);
  addmethods(L, TENSOR, methods);
  addfunctions(L, functions);
}
