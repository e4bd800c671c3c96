/* loptim.c - optimizers in Lua.
**
**   local opt = optim.AdamW(model:parameters(), { lr = 3e-4 })
**   optim.SGD({ { params = a, lr = 1 }, { params = b } }, { lr = 0.1 }) */

#include <string.h>

#include "../src/fnn_nn.h"
#include "lbox.h"

static fnn_Optimizer *checkoptimizer (lua_State *L, int i) {
  return checkobject(L, i, OPTIMIZER);
}

/* The Params in the table (or the one Param) at i, in a userdata that is
** pushed. */
static fnn_Param **checkparams (lua_State *L, int i, int *n) {
  i = lua_absindex(L, i);
  fnn_Param *one = testobject(L, i, PARAM);
  if (one == NULL) luaL_checktype(L, i, LUA_TTABLE);
  *n = one != NULL ? 1 : (int)lua_rawlen(L, i);
  fnn_Param **p = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *p, 0);
  p[0] = one;
  for (int k = 0; one == NULL && k < *n; k++) {
    lua_rawgeti(L, i, k + 1);
    p[k] = testobject(L, -1, PARAM);
    if (p[k] == NULL)
      raise_error(L,
                  "element %d of the parameters: expected a fnn.Param, got "
                  "%s",
                  k + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  return p;
}

/*
** {======================================================
** Construction
** =======================================================
*/

/* The options of a group at o over the defaults d, and adding the group.
** ORDER RULE */
typedef union Options {
  fnn_SgdOptions sgd;
  fnn_AdamOptions adam;
} Options;

typedef struct Maker {
  const char *const *names; /* of options; "params" last in groups */
  fnn_Optimizer *(*make)(void);
  void (*read)(lua_State *L, int o, Options *v);
  void (*add)(fnn_Optimizer *opt, int n, fnn_Param *const *p,
              const Options *v);
} Maker;

static void sgd_read (lua_State *L, int o, Options *v) {
  fnn_SgdOptions *s = &v->sgd;
  s->lr = opt_number(L, o, "lr", s->lr);
  s->momentum = opt_number(L, o, "momentum", s->momentum);
  s->dampening = opt_number(L, o, "dampening", s->dampening);
  s->weight_decay = opt_number(L, o, "weight_decay", s->weight_decay);
  s->nesterov = opt_boolean(L, o, "nesterov", s->nesterov);
}

static void sgd_add (fnn_Optimizer *opt, int n, fnn_Param *const *p,
                     const Options *v) {
  fnn_sgd_group(opt, n, p, &v->sgd);
}

static void read_betas (lua_State *L, int o, double *a, double *b) {
  if (o == 0 || lua_getfield(L, o, "betas") == LUA_TNIL) return;
  if (lua_type(L, -1) != LUA_TTABLE || (lua_Integer)lua_rawlen(L, -1) != 2)
    raise_error(L, "option 'betas': expected a table of two numbers");
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  *a = luaL_checknumber(L, -2);
  *b = luaL_checknumber(L, -1);
  lua_pop(L, 3);
}

static void adam_read (lua_State *L, int o, Options *v) {
  fnn_AdamOptions *s = &v->adam;
  s->lr = opt_number(L, o, "lr", s->lr);
  s->eps = opt_number(L, o, "eps", s->eps);
  s->weight_decay = opt_number(L, o, "weight_decay", s->weight_decay);
  s->amsgrad = opt_boolean(L, o, "amsgrad", s->amsgrad);
  read_betas(L, o, &s->beta1, &s->beta2);
}

static void adam_add (fnn_Optimizer *opt, int n, fnn_Param *const *p,
                      const Options *v) {
  fnn_adam_group(opt, n, p, &v->adam);
}

static const char *const sgd_names[] = {
  "lr", "momentum", "dampening", "weight_decay", "nesterov", "params", NULL
};
static const char *const adam_names[] = {
  "lr", "betas", "eps", "weight_decay", "amsgrad", "params", NULL
};

static const Maker sgd_maker = { sgd_names, fnn_sgd, sgd_read, sgd_add };
static const Maker adam_maker = { adam_names, fnn_adam, adam_read, adam_add };

/* Adds the group at index g: options over the defaults. */
static void add_group (lua_State *L, const Maker *m, fnn_Optimizer *opt, int g,
                       Options v) {
  g = lua_absindex(L, g);
  m->read(L, options(L, g, m->names), &v);
  int n;
  lua_getfield(L, g, "params");
  fnn_Param **p = checkparams(L, -1, &n);
  guard(L, m->add(opt, n, p, &v));
  lua_pop(L, 2);
}

static bool has_groups (lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TTABLE) return false;
  bool table = lua_rawgeti(L, i, 1) == LUA_TTABLE;
  lua_pop(L, 1);
  return table;
}

static int construct (lua_State *L, const Maker *m, Options v) {
  m->read(L, options(L, 2, m->names), &v);
  void **box = newbox(L, OPTIMIZER);
  guard(L, *box = fnn_retain(m->make()));
  if (has_groups(L, 1)) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    for (lua_Integer i = 1; i <= n; i++) {
      lua_rawgeti(L, 1, i);
      luaL_checktype(L, -1, LUA_TTABLE);
      add_group(L, m, *box, -1, v);
      lua_pop(L, 1);
    }
    return 1;
  }
  int n;
  fnn_Param **p = checkparams(L, 1, &n);
  if (n == 0)
    return raise_error(L, "an optimizer needs a parameter: the list "
                          "is empty");
  guard(L, m->add(*box, n, p, &v));
  lua_pop(L, 1);
  return 1;
}

static int new_sgd (lua_State *L) {
  return construct(L, &sgd_maker, (Options){ .sgd = { .lr = 1e-2 } });
}

static int new_adam (lua_State *L) {
  return construct(L, &adam_maker, (Options){ .adam = FNN_ADAM_INIT });
}

static int new_adamw (lua_State *L) {
  Options v = { .adam = FNN_ADAM_INIT };
  v.adam.decoupled = true;
  v.adam.weight_decay = 1e-2;
  return construct(L, &adam_maker, v);
}

/* }====================================================== */

/*
** {======================================================
** Use
** =======================================================
*/

static int optimizer_step (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  guard(L, fnn_optimizer_step(o));
  return 0;
}

static int optimizer_zero_grad (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  guard(L, fnn_optimizer_zero_grad(o));
  return 0;
}

/* A group's place, or -1 for all when absent. */
static int optgroup (lua_State *L, int i, fnn_Optimizer *o) {
  if (lua_isnoneornil(L, i)) return -1;
  return (int)checkplace(L, i, fnn_optimizer_groups(o), "group");
}

static int optimizer_lr (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int g = optgroup(L, 2, o);
  lua_Number lr = 0;
  guard(L, lr = fnn_optimizer_lr(o, g < 0 ? 0 : g));
  lua_pushnumber(L, lr);
  return 1;
}

static int optimizer_set_lr (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  double lr = luaL_checknumber(L, 2);
  int g = optgroup(L, 3, o);
  guard(L, fnn_optimizer_set_lr(o, g, lr));
  return 0;
}

/* All Params of o as an array in a userdata that is pushed. */
static fnn_Param **push_params (lua_State *L, fnn_Optimizer *o, int *n) {
  *n = 0;
  int groups = fnn_optimizer_groups(o);
  for (int g = 0; g < groups; g++) *n += fnn_optimizer_params(o, g);
  fnn_Param **p = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *p, 0);
  for (int g = 0, k = 0; g < groups; g++)
    for (int i = 0; i < fnn_optimizer_params(o, g); i++)
      p[k++] = fnn_optimizer_param(o, g, i);
  return p;
}

static int optimizer_parameters (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int n;
  fnn_Param **p = push_params(L, o, &n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    pushobject(L, PARAM, p[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* What the clipping functions take: an optimizer, or a list of Params. */
static fnn_Param **clipped (lua_State *L, int *n) {
  fnn_Optimizer *o = testobject(L, 1, OPTIMIZER);
  return o != NULL ? push_params(L, o, n) : checkparams(L, 1, n);
}

static int clip_grad_norm (lua_State *L) {
  double most = luaL_checknumber(L, 2), norm = 0;
  int n;
  fnn_Param **p = clipped(L, &n);
  guard(L, norm = fnn_clip_grad_norm(n, p, most));
  lua_pushnumber(L, norm);
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

static int gradients_are_finite (lua_State *L) {
  int n;
  bool finite = false;
  fnn_Param **p = clipped(L, &n);
  guard(L, finite = fnn_gradients_are_finite(n, p));
  lua_pushboolean(L, finite);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** State
** =======================================================
*/

/* opt:state(): { name =, steps = { step of each parameter },
** tensors = { { NAME = tensor }, ... } } in the order of parameters() */
static int optimizer_state (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int n;
  fnn_Param **p = push_params(L, o, &n);
  lua_createtable(L, 0, 3);
  lua_pushstring(L, fnn_optimizer_name(o));
  lua_setfield(L, -2, "name");
  lua_createtable(L, n, 0);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    int64_t step = 0;
    lua_newtable(L);
    const char *name;
    for (int k = 0; (name = fnn_optimizer_state_name(o, k)) != NULL; k++) {
      pushobject(L, TENSOR, fnn_optimizer_state(o, p[i], k, &step));
      lua_setfield(L, -2, name);
    }
    lua_rawseti(L, -2, i + 1);
    lua_pushinteger(L, step);
    lua_rawseti(L, -3, i + 1);
  }
  lua_setfield(L, -3, "tensors");
  lua_setfield(L, -2, "steps");
  return 1;
}

/* The state tensor NAME of parameter i in the table of tensors on the top,
** pushed, or nil; checked against the Param's shape. */
static fnn_Tensor *state_tensor (lua_State *L, int i, const char *name,
                                 const fnn_Param *p) {
  lua_rawgeti(L, -1, i + 1);
  if (!lua_istable(L, -1))
    raise_error(L, "load_state: parameter %d has no state", i + 1);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  fnn_Tensor *x = testtensor(L, -1);
  if (x != NULL && !tensor_same_shape(x, p->value))
    raise_error(L,
                "load_state: %s of parameter %d has shape %s, the "
                "parameter %s",
                name, i + 1, shape_text(x), shape_text(p->value));
  return x;
}

/* opt:load_state(s): what state() returned, for as many parameters of the
** same shapes and the same kind of optimizer.  Checks all, then writes. */
static int optimizer_load_state (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  int n;
  fnn_Param **p = push_params(L, o, &n);
  lua_getfield(L, 2, "name");
  const char *name = luaL_optstring(L, -1, "?");
  if (strcmp(name, fnn_optimizer_name(o)) != 0)
    return raise_error(L, "load_state: the state of %s does not fit %s", name,
                       fnn_optimizer_name(o));
  lua_getfield(L, 2, "steps");
  lua_getfield(L, 2, "tensors");
  if (!lua_istable(L, -1) || !lua_istable(L, -2))
    return raise_error(L, "load_state: expected what state() returns");
  if ((lua_Integer)lua_rawlen(L, -1) != n ||
      (lua_Integer)lua_rawlen(L, -2) != n)
    return raise_error(L,
                       "load_state: the state of %d parameters does not "
                       "fit %d",
                       (int)lua_rawlen(L, -1), n);
  for (int write = 0; write <= 1; write++)
    for (int i = 0; i < n; i++) {
      lua_rawgeti(L, -2, i + 1);
      lua_Integer step = luaL_checkinteger(L, -1);
      lua_pop(L, 1);
      for (int k = 0; (name = fnn_optimizer_state_name(o, k)) != NULL; k++) {
        fnn_Tensor *x = state_tensor(L, i, name, p[i]);
        if (write) guard(L, fnn_optimizer_set_state(o, p[i], k, x, step));
        lua_pop(L, 1);
      }
    }
  return 0;
}

/* }====================================================== */

static int optimizer_tostring (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int n;
  push_params(L, o, &n);
  lua_pushfstring(L, "%s lr %f, %d parameters in %d groups",
                  fnn_optimizer_name(o), (lua_Number)fnn_optimizer_lr(o, 0), n,
                  fnn_optimizer_groups(o));
  return 1;
}

static const luaL_Reg methods[] = {
  { "step", optimizer_step },
  { "zero_grad", optimizer_zero_grad },
  { "lr", optimizer_lr },
  { "set_lr", optimizer_set_lr },
  { "parameters", optimizer_parameters },
  { "state", optimizer_state },
  { "load_state", optimizer_load_state },
  { "clip_grad_norm", clip_grad_norm },
  { "clip_grad_value", clip_grad_value },
  { "grad_norm", grad_norm },
  { "gradients_are_finite", gradients_are_finite },
  { NULL, NULL },
};

static const luaL_Reg metamethods[] = {
  { "__tostring", optimizer_tostring },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "SGD", new_sgd },
  { "Adam", new_adam },
  { "AdamW", new_adamw },
  { "clip_grad_norm", clip_grad_norm },
  { "clip_grad_value", clip_grad_value },
  { "grad_norm", grad_norm },
  { "gradients_are_finite", gradients_are_finite },
  { NULL, NULL },
};

void open_optim (lua_State *L) {
  newclass(L, OPTIMIZER, "fnn.Optimizer", metamethods);
  addmethods(L, OPTIMIZER, methods);
  lua_getfield(L, -1, "optim");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
