/* loptim.c - optimizers in Lua.
**
**   local opt = optim.AdamW(model:parameters(), { lr = 3e-4 })
**   optim.SGD({ { params = a, lr = 1 }, { params = b } }, { lr = 0.1 })
**
** Those written in Lua, which have the same methods, are in fnn/optim/. */

#include <math.h>
#include <string.h>

#include "../src/fnn_nn.h"
#include "lbox.h"

static fnn_Optimizer *checkoptimizer (lua_State *L, int i) {
  return checkobject(L, i, OPTIMIZER);
}

fnn_Param **checkparams (lua_State *L, int i, int *n) {
  i = lua_absindex(L, i);
  if (testobject(L, i, MODULE) != NULL) {
    lua_getfield(L, i, "parameters");
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    lua_replace(L, i);
  }
  fnn_Param *one = testobject(L, i, PARAM);
  if (one == NULL && lua_type(L, i) != LUA_TTABLE)
    raise_option(L, "expected a model or a list of Params, got %s",
                 push_type_name(L, i));
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
                  k + 1, push_type_name(L, -1));
    lua_pop(L, 1);
  }
  return p;
}

/*
** {======================================================
** Options
** =======================================================
*/

enum { OPTIONS_MAX = 16 }; /* of one optimizer */

/* The words of a choice as "'a', 'b'", pushed. */
static const char *push_words (lua_State *L, const char *const *words) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int i = 0; words[i] != NULL; i++) {
    lua_pushfstring(L, i > 0 ? ", '%s'" : "'%s'", words[i]);
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
  return lua_tostring(L, -1);
}

static double word_at (lua_State *L, int i, const fnn_OptionInfo *info) {
  const char *s = luaL_tolstring(L, i, NULL);
  for (int k = 0; info->words[k] != NULL; k++)
    if (strcmp(info->words[k], s) == 0) {
      lua_pop(L, 1);
      return k;
    }
  return raise_option(L, "option '%s': expected one of %s, got %s", info->name,
                      push_words(L, info->words), s);
}

static void numbers_at (lua_State *L, int i, const fnn_OptionInfo *info,
                        double *to) {
  bool fits = lua_istable(L, i) && lua_rawlen(L, i) == (size_t)info->numbers;
  for (int k = 0; fits && k < info->numbers; k++) {
    fits = lua_rawgeti(L, i, k + 1) == LUA_TNUMBER;
    to[k] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  if (!fits)
    raise_option(L, "option '%s': expected a table of %d numbers", info->name,
                 info->numbers);
}

/* Adds the options in the table at i, or absent, to the n in the list; a
** group's table has its params too. */
static int read_options (lua_State *L, int i, fnn_Optimizer *opt, bool group,
                         fnn_Option *list, int n) {
  const char *names[OPTIONS_MAX + 2] = { NULL };
  fnn_OptionInfo info;
  int count = 0;
  for (; fnn_optimizer_option(opt, -1, count, &info); count++)
    names[count] = info.name;
  if (group) names[count] = "params";
  int o = options(L, i, names);
  for (int k = 0; o != 0 && k < count; k++) {
    fnn_optimizer_option(opt, -1, k, &info);
    fnn_Option *to = &list[n];
    to->name = info.name;
    if (lua_getfield(L, o, info.name) != LUA_TNIL) {
      int top = lua_gettop(L);
      if (info.flag) to->value[0] = opt_boolean(L, o, info.name, false);
      else if (info.words != NULL) to->value[0] = word_at(L, top, &info);
      else if (info.numbers > 1) numbers_at(L, top, &info, to->value);
      else to->value[0] = opt_number(L, o, info.name, 0);
      n++;
    }
    lua_pop(L, 1);
  }
  return n;
}

/* Sets the fields of the table on the top to the options of a group. */
static void write_options (lua_State *L, fnn_Optimizer *opt, int group) {
  fnn_OptionInfo info;
  for (int i = 0; fnn_optimizer_option(opt, group, i, &info); i++) {
    if (info.flag) lua_pushboolean(L, info.value[0] != 0);
    else if (info.words != NULL)
      lua_pushstring(L, info.words[(int)info.value[0]]);
    else if (info.numbers > 1) {
      lua_createtable(L, info.numbers, 0);
      for (int k = 0; k < info.numbers; k++) {
        lua_pushnumber(L, info.value[k]);
        lua_rawseti(L, -2, k + 1);
      }
    } else if (info.value[0] != info.value[0]) lua_pushnil(L);
    else lua_pushnumber(L, info.value[0]);
    lua_setfield(L, -2, info.name);
  }
}

/* }====================================================== */

/*
** {======================================================
** Construction
** =======================================================
*/

/* Adds the group in the table at g: its options after the n in the list. */
static void add_group (lua_State *L, fnn_Optimizer *opt, int g,
                       fnn_Option *list, int n) {
  int nparams, top = lua_gettop(L);
  g = lua_absindex(L, g);
  n = read_options(L, g, opt, true, list, n);
  lua_getfield(L, g, "params");
  fnn_Param **p = checkparams(L, -1, &nparams);
  guard(L, fnn_optimizer_group(opt, nparams, p, n, list));
  lua_settop(L, top);
}

static bool has_groups (lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TTABLE) return false;
  bool table = lua_rawgeti(L, i, 1) == LUA_TTABLE;
  lua_pop(L, 1);
  return table;
}

/* optim.NAME(params, options): NAME is the second upvalue. */
static int construct (lua_State *L) {
  const char *name = lua_tostring(L, lua_upvalueindex(2));
  fnn_Option list[2 * OPTIONS_MAX] = { 0 };
  lua_settop(L, 2);
  void **box = newbox(L, OPTIMIZER);
  guard(L, *box = fnn_retain(fnn_optimizer(name)));
  int n = read_options(L, 2, *box, false, list, 0);
  if (has_groups(L, 1)) {
    lua_Integer groups = (lua_Integer)lua_rawlen(L, 1);
    for (lua_Integer i = 1; i <= groups; i++) {
      lua_rawgeti(L, 1, i);
      luaL_checktype(L, -1, LUA_TTABLE);
      add_group(L, *box, -1, list, n);
      lua_pop(L, 1);
    }
    return 1;
  }
  int nparams;
  fnn_Param **p = checkparams(L, 1, &nparams);
  if (nparams == 0)
    return raise_option(L, "expected a parameter: there are none");
  guard(L, fnn_optimizer_group(*box, nparams, p, n, list));
  lua_settop(L, 3);
  return 1;
}

/* opt:add_group { params =, ... } */
static int optimizer_add_group (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  fnn_Option list[OPTIONS_MAX] = { 0 };
  luaL_checktype(L, 2, LUA_TTABLE);
  add_group(L, o, 2, list, 0);
  lua_settop(L, 1);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Use
** =======================================================
*/

/* A loss that is added up with its graph, a hidden state that is not detached:
** each step leaves nodes.  What nothing reaches is collected before they are
** counted, and where they do not grow, they are counted ever less often. */
static void watch_growth (lua_State *L) {
  enum { FIRST = 100, LAST = 12800, TIMES = 3 };
  Lib *lib = getlib(L);
  fnn_Context *c = lib->context;
  uint64_t before = lib->growth.nodes, steps = c->steps - lib->growth.steps;
  if (lib->growth.wait == 0) lib->growth.wait = FIRST;
  if (steps < lib->growth.wait || lib->growth.told) return;
  if (c->nodes >= before + steps && !collect(L, lib)) return;
  bool grows = before > 0 && c->nodes >= before + steps;
  lib->growth.grown = grows ? lib->growth.grown + 1 : 0;
  lib->growth.nodes = c->nodes + (c->nodes == 0);
  lib->growth.steps = c->steps;
  if (!grows) {
    if (lib->growth.wait < LAST) lib->growth.wait *= 2;
  } else if (lib->growth.grown == TIMES) {
    lib->growth.told = true;
    guard(L, fnn_report(FNN_WARNING,
                        "the graph grows: %llu operations are kept, %llu more "
                        "than %llu steps ago: is a loss or a state held with "
                        "its graph? (take loss:item() or x:detach(); "
                        "fnn.memory_holders tells who holds it)",
                        (unsigned long long)c->nodes,
                        (unsigned long long)(c->nodes - before),
                        (unsigned long long)steps));
  }
}

/* opt:step(): nothing; opt:step { scale =, max_norm = }: the norm of the
** gradients times scale, before they are clipped. */
static int optimizer_step (lua_State *L) {
  static const char *const names[] = { "scale", "max_norm", NULL };
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int t = options(L, 2, names);
  double scale = opt_number(L, t, "scale", 1);
  double most = opt_number(L, t, "max_norm", HUGE_VAL);
  if (t == 0) {
    guard(L, fnn_optimizer_step(o));
    watch_growth(L);
    return 0;
  }
  void **box = newbox(L, TENSOR);
  guard(L,
        *box = fnn_retain(fnn_optimizer_step_clipped_later(o, scale, most)));
  watch_growth(L);
  push_norm(L, box);
  return 1;
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

/* opt:set_options(t [, group]) */
static int optimizer_set_options (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  fnn_Option list[OPTIONS_MAX] = { 0 };
  luaL_checktype(L, 2, LUA_TTABLE);
  int n = read_options(L, 2, o, false, list, 0), g = optgroup(L, 3, o);
  guard(L, fnn_optimizer_set(o, g, n, list));
  lua_settop(L, 1);
  return 1;
}

/* opt:groups(): { { params = {..}, lr = .., ... }, ... } */
static int optimizer_groups (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int groups = fnn_optimizer_groups(o);
  lua_createtable(L, groups, 0);
  for (int g = 0; g < groups; g++) {
    int n = fnn_optimizer_params(o, g);
    lua_newtable(L);
    write_options(L, o, g);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
      pushobject(L, PARAM, fnn_optimizer_param(o, g, i));
      lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "params");
    lua_rawseti(L, -2, g + 1);
  }
  return 1;
}

static int optimizer_name (lua_State *L) {
  lua_pushstring(L, fnn_optimizer_name(checkoptimizer(L, 1)));
  return 1;
}

fnn_Param **push_params (lua_State *L, fnn_Optimizer *o, int *n) {
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

/* }====================================================== */

/*
** {======================================================
** State
** =======================================================
*/

/* What the Lua half (fnn/optim/state.lua) makes state_dict of.
** opt:_states(): { { step =, mu_product =, NAME = tensor ... }, ... } in the
** order of parameters() */
static int optimizer_states (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int n;
  fnn_Param **p = push_params(L, o, &n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    fnn_OptimizerState s = fnn_optimizer_state(o, p[i]);
    lua_newtable(L);
    lua_pushinteger(L, s.step);
    lua_setfield(L, -2, "step");
    if (s.product != 0) {
      lua_pushnumber(L, s.product);
      lua_setfield(L, -2, "mu_product");
    }
    for (int k = 0; k < countof(s.tensor); k++) {
      const char *name = fnn_optimizer_state_name(o, k);
      if (name == NULL) continue;
      pushobject(L, TENSOR, s.tensor[k]);
      lua_setfield(L, -2, name);
    }
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int place_of_state (const fnn_Optimizer *o, const char *name) {
  fnn_OptimizerState s;
  for (int k = 0; k < countof(s.tensor); k++) {
    const char *known = fnn_optimizer_state_name(o, k);
    if (known != NULL && strcmp(known, name) == 0) return k;
  }
  return -1;
}

/* Reads the table on the top, the state of parameter i. */
static void read_state (lua_State *L, const fnn_Optimizer *o, int i,
                        fnn_OptimizerState *s) {
  luaL_checktype(L, -1, LUA_TTABLE);
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    const char *name = luaL_checkstring(L, -2);
    int k = place_of_state(o, name);
    fnn_Tensor *x = testtensor(L, -1);
    if (k >= 0 && x != NULL) s->tensor[k] = x;
    else if (strcmp(name, "step") == 0) s->step = luaL_checkinteger(L, -1);
    else if (strcmp(name, "mu_product") == 0)
      s->product = luaL_checknumber(L, -1);
    else
      raise_error(L, "%s keeps no %s of a parameter (parameter %d)",
                  fnn_optimizer_name(o), name, i + 1);
    lua_pop(L, 1);
  }
}

/* Reads the list at 2 into a userdata that is pushed; *n is its length. */
static fnn_OptimizerState *checkstates (lua_State *L, const fnn_Optimizer *o,
                                        int *length) {
  luaL_checktype(L, 2, LUA_TTABLE);
  int n = *length = (int)lua_rawlen(L, 2);
  size_t size = (size_t)(n + 1) * sizeof(fnn_OptimizerState);
  fnn_OptimizerState *s = memset(lua_newuserdatauv(L, size, 0), 0, size);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    read_state(L, o, i, &s[i]);
    lua_pop(L, 1);
  }
  return s;
}

/* opt:_load(states): takes back what _states gave. */
static int optimizer_load (lua_State *L) {
  int n;
  fnn_Optimizer *o = checkoptimizer(L, 1);
  const fnn_OptimizerState *s = checkstates(L, o, &n);
  guard(L, fnn_optimizer_load(o, n, s));
  return 0;
}

/* opt:_check(states): raises unless _load would take them. */
static int optimizer_check (lua_State *L) {
  int n;
  fnn_Optimizer *o = checkoptimizer(L, 1);
  const fnn_OptimizerState *s = checkstates(L, o, &n);
  guard(L, fnn_optimizer_check(o, n, s));
  return 0;
}

/* }====================================================== */

static int optimizer_tostring (lua_State *L) {
  fnn_Optimizer *o = checkoptimizer(L, 1);
  int n;
  int groups = fnn_optimizer_groups(o);
  push_params(L, o, &n);
  lua_pushfstring(L, "%s lr %f, %d parameter%s in %d group%s",
                  fnn_optimizer_name(o), (lua_Number)fnn_optimizer_lr(o, 0), n,
                  n == 1 ? "" : "s", groups, groups == 1 ? "" : "s");
  return 1;
}

static const luaL_Reg methods[] = {
  { "step", optimizer_step },
  { "zero_grad", optimizer_zero_grad },
  { "lr", optimizer_lr },
  { "set_lr", optimizer_set_lr },
  { "learning_rate", optimizer_lr },
  { "set_learning_rate", optimizer_set_lr },
  { "name", optimizer_name },
  { "groups", optimizer_groups },
  { "add_group", optimizer_add_group },
  { "set_options", optimizer_set_options },
  { "parameters", optimizer_parameters },
  { "_states", optimizer_states },
  { "_load", optimizer_load },
  { "_check", optimizer_check },
  { NULL, NULL },
};

static const luaL_Reg metamethods[] = {
  { "__tostring", optimizer_tostring },
  { NULL, NULL },
};

void open_optim (lua_State *L) {
  newclass(L, OPTIMIZER, "fnn.Optimizer", metamethods);
  addmethods(L, OPTIMIZER, methods);
  lua_getfield(L, -1, "optim");
  const char *name;
  for (int i = 0; (name = fnn_optimizer_rule(i)) != NULL; i++) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushstring(L, name);
    lua_pushcclosure(L, construct, 2);
    lua_setfield(L, -2, name);
  }
  lua_pop(L, 1);
}
