/* lnn.c - modules in Lua: calling them and their fields.
**
** The box of a module has one user value: the table of its fields.  A part of
** a layer made in C (weight, bias) is a field too.  In that table
**
**   [1], [2] ...   are the children of a container
**   [name]         are named fields
**   [order]        lists names and places in the order of first assignment
**
** where order is the address of a constant of this file.  The table's
** metatable is the module's class, so that one look-up finds a field, a method
** of the class or of its parents, or a method of all modules.
**
** The rest is written in Lua (fnn/nn/), over the table that push_nn makes. */

#include <stdio.h>
#include <string.h>

#include "../src/nn/nn.h"
#include "lbox.h"

static const char order_key = 0; /* in fields: the list of names */
static const char place_key = 0; /* registry: the function that finds one */

fnn_Module *checkmodule (lua_State *L, int i) {
  return checkobject(L, i, MODULE);
}

const char *push_class_name (lua_State *L, int i) {
  lua_getiuservalue(L, i, 1);
  lua_getfield(L, -1, "__name");
  lua_remove(L, -2);
  const char *name = lua_tostring(L, -1);
  return name != NULL ? name : "module";
}

const char *push_type_name (lua_State *L, int i) {
  if (luaL_getmetafield(L, i, "__name") == LUA_TSTRING)
    return lua_tostring(L, -1);
  lua_pushstring(L, luaL_typename(L, i));
  return lua_tostring(L, -1);
}

/*
** {======================================================
** Fields
** =======================================================
*/

static bool is_digit (char c) { return c >= '0' && c <= '9'; }

/* Whether a and b are the same but for their digits, as fc1 and fc2. */
static bool differ_in_digits (const char *a, const char *b) {
  for (;; a++, b++) {
    while (is_digit(*a)) a++;
    while (is_digit(*b)) b++;
    if (*a != *b) return false;
    if (*a == '\0') return true;
  }
}

/* A field may well be absent: only what is surely a slip is one. */
static bool is_slip (const char *s, const char *name) {
  int d = name_distance(s, name);
  return strlen(s) >= 4 && d <= (strlen(s) >= 8 ? 2 : 1) &&
         !differ_in_digits(s, name);
}

/* Whether s was assigned before (and is nil now); else *near is the name in
** the list of fields nearest to it. */
static bool find_name (lua_State *L, int fields, const char *s,
                       const char **near) {
  lua_rawgetp(L, fields, &order_key);
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  for (lua_Integer i = 1; i <= n; i++) {
    if (lua_rawgeti(L, -1, i) == LUA_TSTRING) {
      const char *name = lua_tostring(L, -1);
      if (strcmp(name, s) == 0) return true;
      if (is_slip(s, name)) *near = name;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return false;
}

/* The name nearest to s in the class of the fields and its parents. */
static const char *find_in_class (lua_State *L, int fields, const char *s) {
  lua_getmetatable(L, fields);
  for (;;) {
    const char *name = nearest_key(L, -1, s);
    if (name != NULL && is_slip(s, name)) return name;
    if (!lua_getmetatable(L, -1)) return NULL;
    lua_getfield(L, -1, "__index");
    if (!lua_istable(L, -1)) return NULL;
  }
}

/* The child at a place that is not there: nil just behind the last, where
** ipairs stops. */
static int missing_place (lua_State *L) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, 3), p = lua_tointeger(L, 2);
  if (p == n + 1) {
    lua_pushnil(L);
    return 1;
  }
  lua_rawgeti(L, 3, place(L, p, n, push_class_name(L, 1)) + 1);
  return 1;
}

/* m[key] when neither field nor method has that name: self, key, fields. */
static int missing_field (lua_State *L) {
  lua_settop(L, 3);
  if (lua_isinteger(L, 2)) return missing_place(L);
  if (lua_type(L, 2) != LUA_TSTRING) {
    lua_pushnil(L);
    return 1;
  }
  const char *s = lua_tostring(L, 2), *near = NULL;
  if (strncmp(s, "try_", 4) == 0 &&
      lua_getfield(L, 3, s + 4) == LUA_TFUNCTION) {
    make_try(L);
    return 1;
  }
  if (!find_name(L, 3, s, &near)) {
    if (near == NULL) near = find_in_class(L, 3, s);
    if (near != NULL)
      return raise_error(L, "%s has no '%s' (did you mean '%s'?)",
                         push_class_name(L, 1), s, near);
  }
  lua_pushnil(L);
  return 1;
}

/* m[key]: a field, or a method. */
static int module_index (lua_State *L) {
  luaL_checktype(L, 1, LUA_TUSERDATA);
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 2);
  if (lua_gettable(L, -2) != LUA_TNIL) return 1;
  lua_pop(L, 1);
  return missing_field(L);
}

void add_field_name (lua_State *L, int fields, const char *name) {
  const char *near;
  int top = lua_gettop(L);
  if (!find_name(L, fields, name, &near)) {
    lua_rawgetp(L, fields, &order_key);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  lua_settop(L, top);
}

/* }====================================================== */

/*
** {======================================================
** Calls
** =======================================================
*/

/* m:forward(x) of a layer made in C. */
static int module_forward (lua_State *L) {
  fnn_Module *m = checkmodule(L, 1);
  fnn_Tensor *x = testtensor(L, 2);
  if (x == NULL || !lua_isnoneornil(L, 3)) {
    const char *got = x != NULL          ? "a second argument"
                      : lua_isnone(L, 2) ? "nothing"
                                         : push_type_name(L, 2);
    return raise_error(L, "%s: expected %s tensor, got %s",
                       push_class_name(L, 1), x == NULL ? "a" : "one", got);
  }
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_forward(m, x)));
  return 1;
}

/* What is above the caller's n values are the results. */
static int finish_call (lua_State *L, int status, lua_KContext n) {
  (void)status;
  return lua_gettop(L) - (int)n;
}

static int no_forward (lua_State *L) {
  lua_getiuservalue(L, 1, 1);
  const char *near = find_in_class(L, lua_gettop(L), "forward");
  const char *name = push_class_name(L, 1);
  if (near != NULL)
    return raise_error(L, "%s has no forward (did you mean it by '%s'?)", name,
                       near);
  return raise_error(L, "%s has no forward: define function %s:forward (x)",
                     name, name);
}

/* m(...): m:forward(...).  The module stays at 1, where push_module_place
** looks for it. */
static int module_call (lua_State *L) {
  checkmodule(L, 1);
  int n = lua_gettop(L);
  lua_getiuservalue(L, 1, 1);
  lua_getfield(L, -1, "forward");
  if (lua_tocfunction(L, -1) == module_forward) {
    lua_settop(L, n);
    return module_forward(L);
  }
  if (lua_isnil(L, -1)) return no_forward(L);
  lua_remove(L, -2);
  luaL_checkstack(L, n, "too many arguments");
  for (int i = 1; i <= n; i++) lua_pushvalue(L, i);
  lua_callk(L, n, LUA_MULTRET, n, finish_call);
  return finish_call(L, LUA_OK, n);
}

/* Pushes the innermost and the outermost module that run on L; false when
** none does. */
static bool push_running (lua_State *L) {
  lua_Debug ar;
  bool found = false;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "f", &ar);
    bool is = lua_tocfunction(L, -1) == module_call;
    lua_pop(L, 1);
    if (!is || lua_getlocal(L, &ar, 1) == NULL) continue;
    if (found) lua_replace(L, -2);
    else lua_pushvalue(L, -1);
    found = true;
  }
  return found;
}

/* Calls the function that finds places with what push_running pushed: leaves
** " (in 0.inner: Linear)" and "0.inner (Linear)", or nothing. */
static bool call_place (lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &place_key);
  lua_insert(L, -3);
  if (lua_pcall(L, 2, 2, 0) == LUA_OK) return true;
  lua_pop(L, 1);
  return false;
}

void push_module_place (lua_State *L) {
  if (lua_checkstack(L, 8) && push_running(L) && call_place(L)) lua_pop(L, 1);
  else lua_pushliteral(L, "");
}

/*
** While something looks on, each op asks where it is.  The registry has a
** table of what was asked before: [box] is a number, [number] the place as the
** profile names it and [-number] as errors do.
*/

static const char places_key = 0;

/* Pushes it. */
static void push_places (lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &places_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &places_key);
}

void forget_places (lua_State *L) {
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &places_key);
}

void push_place_name (lua_State *L, int place) {
  push_places(L);
  lua_rawgeti(L, -1, place);
  lua_remove(L, -2);
}

typedef struct Place {
  Lib *lib;
  char *to;
  size_t n;
  int number;
} Place;

/* With the modules that run on the top: enters the inner one in the table at
** t as the next number. */
static int new_place (lua_State *L, int t) {
  int number = ++((Place *)lua_touserdata(L, 1))->lib->places;
  lua_pushvalue(L, -2); /* the inner one, under the outer */
  lua_insert(L, t + 1);
  if (!call_place(L)) return 0;
  lua_rawseti(L, t, number);
  lua_rawseti(L, t, -number);
  lua_pushvalue(L, t + 1);
  lua_pushinteger(L, number);
  lua_rawset(L, t);
  return number;
}

static int find_place (lua_State *L) {
  Place *p = lua_touserdata(L, 1);
  push_places(L);
  int t = lua_gettop(L);
  if (!push_running(L)) return 0;
  lua_pushvalue(L, -2);
  lua_rawget(L, t);
  p->number = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  if (p->number == 0) p->number = new_place(L, t);
  if (p->n == 0 || p->number == 0) return 0;
  lua_rawgeti(L, t, -p->number);
  const char *text = lua_tostring(L, -1);
  snprintf(p->to, p->n, "%s", text != NULL ? text : "");
  return 0;
}

int module_place (void *ud, char *to, size_t n) {
  Lib *lib = ud;
  lua_State *L = lib->guarded;
  Place p = { lib, to, n, 0 };
  if (L == NULL || !lua_checkstack(L, 16)) return 0;
  lua_pushcfunction(L, find_place);
  lua_pushlightuserdata(L, &p);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1);
  return p.number;
}

/* }====================================================== */

/*
** {======================================================
** What the Lua half needs
** =======================================================
*/

/* core.new(class): a module of that class, made of nothing yet */
static int core_new (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  void **box = newbox(L, MODULE);
  lua_newtable(L);
  lua_newtable(L);
  lua_rawsetp(L, -2, &order_key);
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "training");
  lua_pushvalue(L, 1);
  lua_setmetatable(L, -2);
  lua_setiuservalue(L, -2, 1);
  guard(L, *box = fnn_retain(module_plain()));
  return 1;
}

static int core_fields (lua_State *L) {
  checkmodule(L, 1);
  lua_getiuservalue(L, 1, 1);
  return 1;
}

/* core.kind(v): "module", "param", "tensor" or nil */
static int core_kind (lua_State *L) {
  if (testobject(L, 1, MODULE) != NULL) lua_pushliteral(L, "module");
  else if (testobject(L, 1, PARAM) != NULL) lua_pushliteral(L, "param");
  else if (testobject(L, 1, TENSOR) != NULL) lua_pushliteral(L, "tensor");
  else lua_pushnil(L);
  return 1;
}

/* core.link(m, name, value): a field that is a part of a layer made in C
** changes there too */
static int core_link (lua_State *L) {
  fnn_Module *m = checkmodule(L, 1);
  const char *name = luaL_checkstring(L, 2);
  if (getlib(L)->scoped) scope_keep(L, 3); /* it belongs to the module now */
  fnn_Member e;
  int i = 0;
  while (fnn_member(m, i, &e) && strcmp(e.name, name) != 0) i++;
  if (!fnn_member(m, i, &e)) return 0;
  MemberKind kind = m->members[i].kind;
  Kind k = kind == MEMBER_PARAM ? PARAM : TENSOR;
  void *o = kind == MEMBER_CHILD ? NULL : testobject(L, 3, k);
  if (o == NULL)
    return raise_error(L, "%s.%s: expected %s, got %s", push_class_name(L, 1),
                       name,
                       kind == MEMBER_PARAM    ? "a fnn.Param"
                       : kind == MEMBER_BUFFER ? "a tensor"
                                               : "no other module",
                       push_type_name(L, 3));
  guard(L, if (kind == MEMBER_PARAM) fnn_member_param(m, name, o);
        else fnn_member_buffer(m, name, o));
  return 0;
}

static int core_train (lua_State *L) {
  checkmodule(L, 1)->training = lua_toboolean(L, 2);
  return 0;
}

/* core.text(m): what a layer made in C was made with */
static int core_text (lua_State *L) {
  char text[200];
  fnn_module_text(checkmodule(L, 1), text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

/* core.bytes(x): the bytes of its elements */
static int core_bytes (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  size_t size = fnn_dtype_size((fnn_Dtype)x->dtype);
  lua_pushinteger(L, x->numel * (lua_Integer)size);
  return 1;
}

/* core.raise(message): at the first caller outside the library */
static int core_raise (lua_State *L) {
  return raise_error(L, "%s", luaL_checkstring(L, 1));
}

/* core.metamethods(t): adds t's functions to the metatable of modules */
static int core_metamethods (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[MODULE]);
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
  return 0;
}

/* core.set_place(f): f(inner, outer) tells where in the outermost module that
** runs the innermost is, for error messages */
static int core_set_place (lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &place_key);
  return 0;
}

/* core.init_std(shape, fan, gain) */
static int core_init_std (lua_State *L) {
  static const char *const fans[] = { "fan_in", "fan_out", "both", NULL };
  int64_t shape[FNN_MAXDIM];
  int next, n = checkshape(L, 1, shape, &next);
  int fan = luaL_checkoption(L, next, NULL, fans);
  double gain = luaL_checknumber(L, next + 1), std = 0;
  guard(L, std = fnn_init_std(n, shape, (fnn_Fan)fan, gain));
  lua_pushnumber(L, std);
  return 1;
}

/* }====================================================== */

static const luaL_Reg core[] = {
  { "new", core_new },
  { "fields", core_fields },
  { "kind", core_kind },
  { "link", core_link },
  { "train", core_train },
  { "text", core_text },
  { "bytes", core_bytes },
  { "raise", core_raise },
  { "metamethods", core_metamethods },
  { "set_place", core_set_place },
  { "init_std", core_init_std },
  { "forward", module_forward },
  { NULL, NULL },
};

static const luaL_Reg metamethods[] = {
  { "__call", module_call },
  { "__index", module_index },
  { NULL, NULL },
};

void push_nn (lua_State *L) {
  lua_newtable(L);
  addfunctions(L, core);
  add_layers(L);
  add_losses(L);
  lua_pushlightuserdata(L, (void *)&order_key);
  lua_setfield(L, -2, "order");
}

void open_nn (lua_State *L) { newclass(L, MODULE, "fnn.Module", metamethods); }
