/* lbox.c - boxes, guards and classes. */

#include "lbox.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char boxes_key = 0; /* registry: weak table, object -> box */

/*
** {======================================================
** Guards
** =======================================================
*/

void guard_enter (lua_State *L, Lib *lib, Guard *g) {
  if (lib->context == NULL) luaL_error(L, "fnn is closed in this state");
  g->context_before = fnn_use(lib->context);
  g->guarded_before = lib->guarded;
  lib->guarded = L;
  frame_enter(&g->frame);
}

static void restore (lua_State *L, Lib *lib, Guard *g) {
  lib->guarded = g->guarded_before;
  fnn_use(g->context_before);
  if (lib->listens) interrupt_notice(L, lib);
}

void guard_leave (lua_State *L, Lib *lib, Guard *g) {
  frame_leave(&g->frame);
  restore(L, lib, g);
  if (lib->dropped != NULL) slots_flush(L, lib);
  collect_if_due(L, lib);
}

/* An error of a finalizer ends nothing: a cancel that stopped it is for the
** code that it came between, too. */
FNN_NORETURN void guard_error (lua_State *L, Lib *lib, Guard *g) {
  restore(L, lib, g);
  lib->status = lib->context->status;
  if (lib->status == FNN_ECANCEL && in_finalizer(L))
    fnn_cancel(lib->context->cancel);
  if (lib->dropped != NULL) slots_flush(L, lib);
  if (lib->raised) { /* a callback's own error, on the top of the stack */
    lib->raised = false;
    lua_error(L);
  }
  raise_error(L, "%s", lib->context->message);
  abort(); /* not reached: lua_error does not return */
}

/* Whether source is a file of the library's own Lua half. */
static bool is_ours (const lua_Debug *ar) {
  return strncmp(ar->source, "=fnn:", 5) == 0;
}

bool find_where (lua_State *L, lua_Debug *ar) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline > 0 && !is_ours(ar)) return true;
  }
  return false;
}

void push_where (lua_State *L) {
  lua_Debug ar;
  if (find_where(L, &ar))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else lua_pushliteral(L, "");
}

int raise_error (lua_State *L, const char *fmt, ...) {
  va_list ap;
  push_where(L);
  va_start(ap, fmt);
  lua_pushvfstring(L, fmt, ap);
  va_end(ap);
  push_module_place(L);
  lua_concat(L, 3);
  return lua_error(L);
}

static int nothing (lua_State *L) {
  (void)L;
  return 0;
}

/* Lua stops the collector while a finalizer runs, which 5.4.4 and later tell
** by -1.  Before, it looks as if a script had stopped it (0): then the
** callers are asked. */
bool in_finalizer (lua_State *L) {
  int running = lua_gc(L, LUA_GCISRUNNING);
  if (running != 0) return running < 0;
  lua_Debug ar;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "n", &ar);
    if (ar.name != NULL && strcmp(ar.name, "__gc") == 0 &&
        strcmp(ar.namewhat, "metamethod") == 0)
      return true;
  }
  return false;
}

/* A finalizer that Lua has no memory to call is lost, and what it was to
** release with it.  Calling a function first makes the room that it takes. */
static bool run_collector (lua_State *L, Lib *lib, int what) {
  if (lib->collecting || lua_gc(L, LUA_GCISRUNNING) <= 0) return false;
  if (!lua_checkstack(L, 1)) return false;
  lua_pushcfunction(L, nothing);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
    lua_pop(L, 1);
    return false;
  }
  lib->collecting = true;
  lua_gc(L, what, 0);
  lib->collecting = false;
  return true;
}

bool collect (lua_State *L, Lib *lib) {
  return run_collector(L, lib, LUA_GCCOLLECT);
}

/* A generational collector makes a step for each few bytes: it walks over what
** is young alone, and what it frees is still in the cache.  But what has lived
** through two steps is old, and stays until a full collection: so not many to
** what is live, or the tensors of a training step would age within it; nor
** to Lua's heap, since a long table that takes in new objects is walked over
** each time. */
static void step_if_due (lua_State *L, Lib *lib) {
  fnn_Context *c = lib->context;
  uint64_t made = c->since_collect - lib->stepped; /* wraps: then it is due */
  if (made <= (uint64_t)1 << 20 || c->frame != NULL) return;
  if (made <= memory_live(c) / 4) return;
  if (made / 1024 <= (uint64_t)lua_gc(L, LUA_GCCOUNT) / 4) return;
  run_collector(L, lib, LUA_GCSTEP);
  lib->stepped = c->since_collect;
}

/* The collector sees boxes of a few bytes; this sees their tensors.  What was
** released, or found by a cycle of Lua's own, was made and is not held: only
** what has stayed counts.  It is never more than what was made. */
void collect_if_due (lua_State *L, Lib *lib) {
  fnn_Context *c = lib->context;
  uint64_t due = (uint64_t)32 << 20, live;
  if (lib->generational) step_if_due(L, lib);
  if (lib->collected_live / 2 > due) due = lib->collected_live / 2;
  if (c->since_collect <= due || lib->collecting || c->frame != NULL) return;
  live = memory_live(c);
  c->since_collect =
      live > lib->collected_live ? live - lib->collected_live : 0;
  if (c->since_collect <= due || !collect(L, lib)) return;
  c->since_collect = 0;
  lib->collected_live = memory_live(c);
}

/* }====================================================== */

/*
** {======================================================
** Boxes
** =======================================================
*/

void **newbox (lua_State *L, Kind k) {
  void **box = lua_newuserdatauv(L, sizeof *box, k == MODULE || k == SAMPLER);
  *box = NULL;
  Lib *lib = getlib(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, lib->meta[k]);
  lua_setmetatable(L, -2);
  if (lib->scoped && k == TENSOR) scope_note(L, -1);
  return box;
}

/* Pushes the table from objects to boxes, whose values are weak. */
static void push_boxes (lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &boxes_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &boxes_key);
}

void pushobject (lua_State *L, Kind k, void *o) {
  if (o == NULL) {
    lua_pushnil(L);
    return;
  }
  push_boxes(L);
  if (lua_rawgetp(L, -1, o) == LUA_TUSERDATA &&
      *(void **)lua_touserdata(L, -1) == o) {
    lua_remove(L, -2);
    return;
  }
  lua_pop(L, 1);
  void **box = newbox(L, k);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, -3, o);
  *box = fnn_retain(o);
  lua_remove(L, -2);
}

void enter_box (lua_State *L) {
  push_boxes(L);
  lua_pushvalue(L, -2);
  lua_rawsetp(L, -2, *(void **)lua_touserdata(L, -1));
  lua_pop(L, 1);
}

void *testobject (lua_State *L, int i, Kind k) {
  void **box = lua_touserdata(L, i);
  if (box == NULL || !lua_getmetatable(L, i)) return NULL;
  bool is = lua_topointer(L, -1) == getlib(L)->meta[k];
  lua_pop(L, 1);
  return is ? *box : NULL;
}

/* Kinds' names, "fnn.Tensor", are in their metatables. */
static const char *kind_name (lua_State *L, Kind k) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[k]);
  lua_getfield(L, -1, "__name");
  const char *name = lua_tostring(L, -1);
  lua_pop(L, 2);
  return name;
}

static bool is_kind (lua_State *L, int i, Kind k) {
  if (!lua_getmetatable(L, i)) return false;
  bool is = lua_topointer(L, -1) == getlib(L)->meta[k];
  lua_pop(L, 1);
  return is;
}

/* Whether the function that ar is of is the method of its name. */
static bool is_method (lua_State *L, Kind k, lua_Debug *ar) {
  lua_getinfo(L, "f", ar);
  pushmethods(L, k);
  lua_getfield(L, -1, ar->name);
  bool is = lua_rawequal(L, -1, -3);
  lua_pop(L, 3);
  return is;
}

/* As luaL_typeerror, but at the line of the script where the library's own
** Lua half is what calls, and with a hint for x.sum() instead of x:sum(). */
static void wrong_kind (lua_State *L, int i, Kind k) {
  lua_Debug ar = { 0 }, caller;
  const char *expected = kind_name(L, k);
  if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar) || ar.name == NULL)
    luaL_typeerror(L, i, expected);
  bool method = strcmp(ar.namewhat, "method") == 0;
  bool ours = lua_getstack(L, 1, &caller) && lua_getinfo(L, "S", &caller) &&
              is_ours(&caller);
  bool dot =
      i == 1 && !method && !ours && (k == MODULE || is_method(L, k, &ar));
  if (!dot && (!ours || i - method < 1)) luaL_typeerror(L, i, expected);
  const char *got = push_type_name(L, i), *hint = "";
  if (dot)
    hint = lua_pushfstring(L, ": is it called with a colon, x:%s?", ar.name);
  raise_error(L, "bad argument #%d to '%s' (%s expected, got %s%s)",
              i - method, ar.name, expected, got, hint);
}

void *checkobject (lua_State *L, int i, Kind k) {
  void *o = testobject(L, i, k);
  if (o != NULL) return o;
  if (is_kind(L, i, k))
    raise_error(L, "attempt to use a released %s", kind_name(L, k));
  wrong_kind(L, i, k);
  return NULL;
}

/* The box at i, of any kind, or NULL: methods can be called with anything. */
static void **tobox (lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  const Lib *lib = getlib(L);
  const void *meta = lua_topointer(L, -1);
  lua_pop(L, 1);
  for (int k = 0; k < KINDS; k++)
    if (meta == lib->meta[k]) return lua_touserdata(L, i);
  return NULL;
}

/* Drops what the box at i holds.  Inside an engine call (a callback) the
** object lives on until the guard ends, for the engine may be using it; not so
** when the collector found the box, which nothing reaches then. */
static void drop (lua_State *L, int i) {
  void **box = tobox(L, i);
  void *o = box != NULL ? *box : NULL;
  Lib *lib = getlib(L);
  if (o == NULL || lib->context == NULL) return;
  *box = NULL;
  fnn_Context *before = fnn_use(lib->context);
  fnn_Context *c = lib->context;
  if (c->frame == NULL || c->finalizing || !frame_try_adopt(o)) fnn_release(o);
  fnn_use(before);
}

/* A finalizer of the script runs wherever Lua allocates, so between a
** binding's check of an argument and the guard that uses it.  What it releases
** is left to the collector, which sees the box among the arguments. */
void box_empty (lua_State *L, int i) {
  if (!in_finalizer(L)) drop(L, i);
}

static int box_gc (lua_State *L) {
  fnn_Context *c = getlib(L)->context;
  if (c == NULL) return 0; /* the library was closed before */
  bool was = c->finalizing;
  c->finalizing = true;
  drop(L, 1);
  c->finalizing = was;
  return 0;
}

static int box_release (lua_State *L) {
  if (tobox(L, 1) == NULL)
    return luaL_typeerror(L, 1, "object of the library");
  box_empty(L, 1);
  return 0;
}

/* One object may have several boxes: they are equal. */
static int box_eq (lua_State *L) {
  void **a = tobox(L, 1), **b = tobox(L, 2);
  lua_pushboolean(L, a != NULL && b != NULL && *a == *b);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Classes and namespaces
** =======================================================
*/

/* What luaL_argerror says of a function that try_call has called, on the top,
** has neither place nor name: both are those of the call of try_call. */
static void name_argument (lua_State *L) {
  static const char start[] = "bad argument #";
  lua_Debug ar = { 0 };
  const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
  const char *rest = strstr(s, "' (");
  if (strncmp(s, start, strlen(start)) != 0 || rest == NULL ||
      !lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar) ||
      ar.name == NULL || strncmp(ar.name, "try_", 4) != 0)
    return;
  int i = atoi(s + strlen(start));
  if (i > 1 && strcmp(ar.namewhat, "method") == 0) i--;
  push_where(L);
  lua_pushfstring(L, "%s%d to '%s%s", start, i, ar.name + 4, rest);
  lua_concat(L, 2);
  lua_replace(L, -2);
}

/* f(...) where f is an upvalue: its results, or nil and the message.  A
** cancel is no failure of f: it goes on. */
static int try_call (lua_State *L) {
  Lib *lib = getlib(L);
  int n = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lib->status = FNN_OK;
  if (lua_pcall(L, n, LUA_MULTRET, 0) == LUA_OK) return lua_gettop(L);
  if (lib->status == FNN_ECANCEL) return lua_error(L);
  name_argument(L);
  lua_pushnil(L);
  lua_insert(L, -2);
  return 2;
}

void make_try (lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, -2);
  lua_pushcclosure(L, try_call, 2);
}

/* t[key] without the __index of a namespace; a class's methods may inherit. */
static int lookup (lua_State *L, int t) {
  if (lua_rawequal(L, t, lua_upvalueindex(2))) return lua_gettable(L, t);
  return lua_rawget(L, t);
}

/* Whether the value on the top can be called. */
static bool is_callable (lua_State *L) {
  if (lua_isfunction(L, -1)) return true;
  if (luaL_getmetafield(L, -1, "__call") == LUA_TNIL) return false;
  lua_pop(L, 1);
  return true;
}

/* Looks up t[key], where key may be try_NAME; pushes it or nil. */
static void find_method (lua_State *L, int t, int key) {
  lua_pushvalue(L, key);
  if (lookup(L, t) != LUA_TNIL) return;
  const char *s = lua_type(L, key) == LUA_TSTRING ? lua_tostring(L, key) : "";
  if (strncmp(s, "try_", 4) != 0) return;
  lua_pop(L, 1);
  lua_pushstring(L, s + 4);
  lookup(L, t);
  if (!is_callable(L)) {
    lua_pop(L, 1);
    lua_pushnil(L);
    return;
  }
  make_try(L);
  lua_pushvalue(L, key);
  lua_pushvalue(L, -2);
  lua_rawset(L, t);
}

const char *nearest_key (lua_State *L, int t, const char *s) {
  const char *best = NULL;
  t = lua_absindex(L, t);
  lua_pushnil(L);
  while (lua_next(L, t)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) continue;
    const char *pair[2] = { best, lua_tostring(L, -1) };
    const char *both = best == NULL
                           ? nearest_name(s, &pair[1], 1, sizeof *pair)
                           : nearest_name(s, pair, 2, sizeof *pair);
    if (both != NULL) best = both;
  }
  return best;
}

/* Names of PyTorch's that are said otherwise here. */
static const struct Foreign {
  const char *what, *name, *instead;
} foreign[] = {
  { "fnn", "load", "model:load(path) reads weights, fnn.load_training a run" },
  { "fnn", "save",
    "model:save(path) writes weights, fnn.save_training a run" },
  { "fnn", "cuda", "x:to(\"cuda\") moves, fnn.devices() lists" },
  { "fnn", "from_numpy", "fnn.io.read_npy(path), or fnn.tensor of a table" },
  { "fnn.nn", "Module", "nn.module \"Name\" makes a class" },
  { "fnn.nn", "Parameter", "fnn.Param(x)" },
  { "fnn.nn", "functional", "x:relu() and others are methods, nn.mse a loss" },
  { "fnn.optim", "lr_scheduler", "optim.CosineAnnealing ...: ?schedules" },
  { "fnn.optim", "StepLR", "optim.StepDecay" },
  { "fnn.optim", "ExponentialLR", "optim.Exponential" },
  { "fnn.optim", "CosineAnnealingLR", "optim.CosineAnnealing" },
  { "fnn.optim", "OneCycleLR", "optim.OneCycle" },
  { "fnn.optim", "ReduceLROnPlateau", "optim.ReduceOnPlateau" },
  { "fnn.scheduler", "step", "it is called: scheduler(step)" },
  { "fnn.Optimizer", "param_groups", "opt:set_learning_rate(lr, group)" },
  { "fnn.Plot", "show", "p:print() in the terminal, p:save(path) as PNG" },
  { "fnn.Tensor", "T", "x:t(), or x:transpose(1, 2)" },
  { "fnn.Tensor", "mm", "x:matmul(y)" },
  { "fnn.Tensor", "bmm", "x:matmul(y)" },
  { "fnn.Tensor", "cuda", "x:to(\"cuda\")" },
  { "fnn.Tensor", "cpu", "x:to(\"cpu\")" },
  { "fnn.Tensor", "float", "x:to(\"f32\")" },
  { "fnn.Tensor", "double", "x:to(\"f64\")" },
  { "fnn.Tensor", "half", "x:to(\"f16\")" },
  { "fnn.Tensor", "long", "x:to(\"i64\")" },
  { "fnn.Tensor", "int", "x:to(\"i32\")" },
  { "fnn.Tensor", "bool", "x:to(\"bool\")" },
  { "fnn.Tensor", "type", "x:dtype(), x:to(\"f32\")" },
  { "fnn.Tensor", "numpy", "x:totable(), or fnn.io.write_npy" },
  { "fnn.Tensor", "tolist", "x:totable()" },
  { "fnn.Tensor", "data", "x:detach()" },
  { "fnn.Tensor", "grad", "a Param has one: p = fnn.Param(x), p:grad()" },
  { "fnn.Tensor", "requires_grad", "fnn.Param(x) is what has a gradient" },
  { "fnn.Tensor", "requires_grad_", "fnn.Param(x) is what has a gradient" },
};

static const char *said_otherwise (const char *what, const char *name) {
  for (int k = 0; k < countof(foreign); k++)
    if (strcmp(foreign[k].name, name) == 0 &&
        strcmp(foreign[k].what, what) == 0)
      return foreign[k].instead;
  return NULL;
}

/* With nil pushed for the string at key: raises if a name in t is near it, or
** another name is known for it. */
static int suggest (lua_State *L, int t, int key, const char *what) {
  if (!lua_isnil(L, -1) || lua_type(L, key) != LUA_TSTRING) return 1;
  const char *s = lua_tostring(L, key);
  const char *instead = said_otherwise(what, s);
  if (instead != NULL)
    return raise_error(L, "%s has no '%s' (%s)", what, s, instead);
  const char *near = nearest_key(L, t, s);
  if (near == NULL) return 1; /* nil, so that `if fnn.x` can ask */
  return raise_error(L, "%s has no '%s' (did you mean '%s'?)", what, s, near);
}

/* __index of a class: upvalue 2 is its methods, 3 its name. */
static int class_index (lua_State *L) {
  find_method(L, lua_upvalueindex(2), 2);
  return suggest(L, lua_upvalueindex(2), 2,
                 lua_tostring(L, lua_upvalueindex(3)));
}

void newclass (lua_State *L, Kind k, const char *name,
               const luaL_Reg *metamethods) {
  Lib *lib = getlib(L);
  lua_newtable(L);
  lib->meta[k] = lua_topointer(L, -1);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, lua_upvalueindex(1), (int)k + 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, lib->meta[k]);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  const luaL_Reg own[] = { { "__gc", box_gc },
                           { "__close", box_release },
                           { "__eq", box_eq },
                           { NULL, NULL } };
  addfunctions(L, own);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "methods");
  const luaL_Reg methods[] = { { "release", box_release }, { NULL, NULL } };
  addfunctions(L, methods);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, -2);
  lua_pushstring(L, name);
  lua_pushcclosure(L, class_index, 3);
  lua_setfield(L, -2, "__index");
  if (metamethods != NULL) addfunctions(L, metamethods);
  lua_pop(L, 1);
}

void pushmethods (lua_State *L, Kind k) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[k]);
  lua_getfield(L, -1, "methods");
  lua_remove(L, -2);
}

void addfunctions (lua_State *L, const luaL_Reg *functions) {
  lua_pushvalue(L, lua_upvalueindex(1));
  luaL_setfuncs(L, functions, 1);
}

void addmetamethods (lua_State *L, Kind k, const luaL_Reg *metamethods) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[k]);
  addfunctions(L, metamethods);
  lua_pop(L, 1);
}

void addmethods (lua_State *L, Kind k, const luaL_Reg *methods) {
  pushmethods(L, k);
  addfunctions(L, methods);
  lua_pop(L, 1);
}

/* __index of a namespace: upvalue 2 is its name. */
static int namespace_index (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  find_method(L, 1, 2);
  return suggest(L, 1, 2, lua_tostring(L, lua_upvalueindex(2)));
}

void setnamespace (lua_State *L, const char *what) {
  lua_newtable(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushstring(L, what);
  lua_pushcclosure(L, namespace_index, 2);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

/* }====================================================== */
