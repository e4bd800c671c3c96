/* lib.c - opening the library in a lua_State: its context, its tables and
** its Lua half. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "embed.h"
#include "lbox.h"

static const char lib_key = 0; /* registry: the Lib */

Lib *findlib (lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &lib_key);
  Lib *lib = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return lib;
}

/*
** {======================================================
** The context of a state
** =======================================================
*/

/* The Lib was made before any box, so its finalizer runs after theirs. */
static int lib_gc (lua_State *L) {
  Lib *lib = lua_touserdata(L, 1);
  if (lib->context == NULL) return 0;
  fnn_Context *before = fnn_use(lib->context);
  slots_flush(L, lib);
  if (lib->listens) cancel_arm(lib->context->cancel, false);
  fnn_use(before == lib->context ? NULL : before);
  fnn_close(lib->context);
  lib->context = NULL;
  return 0;
}

/* The engine is out of memory: a full collection may free some.  The guard
** that is running keeps its own arguments alive. */
static void reclaim (void *ud) {
  Lib *lib = ud;
  lua_State *L = lib->guarded != NULL ? lib->guarded : lib->main;
  collect(L, lib);
}

/* Where the script is that called into the engine. */
static void where (void *ud, char *to, size_t n) {
  Lib *lib = ud;
  lua_Debug ar;
  if (lib->guarded != NULL && find_where(lib->guarded, &ar))
    snprintf(to, n, "%s:%d", ar.short_src, ar.currentline);
}

static void open_context (lua_State *L, Lib *lib, const fnn_Host *host) {
  lib->context = fnn_open(host);
  if (lib->context == NULL) luaL_error(L, "fnn: no memory for a context");
  lib->context->reclaim_library = reclaim;
  lib->context->where = where;
  lib->context->place = module_place;
  lib->context->library = lib;
}

/* }====================================================== */

/*
** {======================================================
** The Lua half
** =======================================================
*/

/* Fills the table at 1 with standard libraries. */
static int open_standard (lua_State *L) {
  static const luaL_Reg libraries[] = {
    { LUA_GNAME, luaopen_base },       { LUA_COLIBNAME, luaopen_coroutine },
    { LUA_TABLIBNAME, luaopen_table }, { LUA_STRLIBNAME, luaopen_string },
    { LUA_UTF8LIBNAME, luaopen_utf8 }, { LUA_MATHLIBNAME, luaopen_math },
  };
  lua_pushvalue(L, 1);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  for (int i = 0; i < countof(libraries); i++) {
    lua_pushcfunction(L, libraries[i].func);
    lua_pushstring(L, libraries[i].name);
    lua_call(L, 1, 1);
    lua_setfield(L, 1, libraries[i].name);
  }
  return 0;
}

/* Pushes the globals of the Lua half: libraries of its own, whatever the host
** opened and scripts change.  luaopen_base fills the state's globals, and
** luaopen_string sets the metatable of strings: both are put back. */
static void push_environment (lua_State *L) {
  lua_newtable(L);
  int env = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_pushliteral(L, "");
  bool methods = lua_getmetatable(L, -1);
  if (!methods) lua_pushnil(L);
  lua_pushcfunction(L, open_standard);
  lua_pushvalue(L, env);
  int status = lua_pcall(L, 1, 0, 0);
  lua_pushvalue(L, env + 1);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  if (status != LUA_OK) lua_error(L);
  if (methods) lua_setmetatable(L, -2);
  lua_settop(L, env);
}

/* load(name): runs the embedded file once with (fnn, load, internals) and
** returns its value.  internals has the methods of each class, to be added
** to, and what only the library's own Lua needs.  Upvalues: the Lib, fnn, a
** table of what has run, internals, the globals. */
static int load_module (lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (lua_getfield(L, lua_upvalueindex(3), name) != LUA_TNIL) return 1;
  const char *file = lua_pushfstring(L, "fnn/%s.lua", name);
  for (const Embedded *e = embedded; e->name != NULL; e++) {
    if (strcmp(e->name, file) != 0) continue;
    lua_pushfstring(L, "=fnn:%s", name);
    if (luaL_loadbufferx(L, (const char *)e->text, e->size,
                         lua_tostring(L, -1), "t") != LUA_OK)
      return lua_error(L);
    lua_pushvalue(L, lua_upvalueindex(5));
    lua_setupvalue(L, -2, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    for (int i = 1; i <= 5; i++) lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, load_module, 5);
    lua_pushvalue(L, lua_upvalueindex(4));
    lua_call(L, 3, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(3), name);
    return 1;
  }
  return luaL_error(L, "the library has no part '%s'", name);
}

/* ORDER KIND */
static const char *const class_names[KINDS] = {
  "Tensor", "Param",  "Generator", "Module",  "Optimizer", "Dataset",
  "Loader", "Reader", "Jsonl",     "Capture", "Sampler"
};

/* nearest(name, list): the string of the list nearest to name, or nil */
static int nearest (lua_State *L) {
  const char *s = luaL_checkstring(L, 1), *names[2] = { NULL, NULL };
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_Integer n = luaL_len(L, 2);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_geti(L, 2, i);
    names[1] = luaL_checkstring(L, -1);
    const char *near = names[0] == NULL
                           ? nearest_name(s, &names[1], 1, sizeof *names)
                           : nearest_name(s, names, 2, sizeof *names);
    if (near != NULL) names[0] = near;
    lua_pop(L, 1); /* the list holds it */
  }
  lua_pushstring(L, names[0]);
  return 1;
}

/* getenv(name): also where the host has not opened Lua's os */
static int get_variable (lua_State *L) {
  lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
  return 1;
}

/* global(name): a global of the script, nil where the host has none */
static int get_global (lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  return 1;
}

/* version(x): counts the in-place writes to the tensor's storage */
static int tensor_version (lua_State *L) {
  lua_pushinteger(L, (lua_Integer)checktensor(L, 1)->storage->version);
  return 1;
}

/* warn(text): to the host's log */
static int host_warning (lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  guard(L, fnn_report(FNN_WARNING, "%s", text));
  return 0;
}

/* tell(text): the same, of what was asked for */
static int host_info (lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  guard(L, fnn_report(FNN_INFO, "%s", text));
  return 0;
}

/* namespace(t, name): t, with try_ forms of its functions */
static int make_namespace (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const char *name = luaL_checkstring(L, 2);
  lua_pushvalue(L, 1);
  setnamespace(L, name);
  return 1;
}

static const luaL_Reg internal_functions[] = {
  { "nearest", nearest },        { "getenv", get_variable },
  { "global", get_global },      { "namespace", make_namespace },
  { "version", tensor_version }, { "tell", host_info },
  { "warn", host_warning },      { NULL, NULL },
};

static void push_internals (lua_State *L) {
  lua_createtable(L, 0, KINDS + 10);
  addfunctions(L, internal_functions);
  add_log(L);
  push_nn(L);
  lua_setfield(L, -2, "nn");
  push_capture(L);
  lua_setfield(L, -2, "capture");
  push_folder(L);
  lua_setfield(L, -2, "folder");
  push_canvas(L);
  lua_setfield(L, -2, "canvas");
  push_watch(L);
  lua_setfield(L, -2, "watch");
  for (int k = 0; k < KINDS; k++) {
    pushmethods(L, (Kind)k);
    lua_setfield(L, -2, class_names[k]);
  }
}

/* Runs the part "init", which loads the others. */
static void open_scripts (lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, -2);
  lua_newtable(L);
  push_internals(L);
  push_environment(L);
  lua_pushcclosure(L, load_module, 5);
  lua_pushliteral(L, "init");
  lua_call(L, 1, 0);
}

/* }====================================================== */

/* fnn.clock(): seconds since some moment, whatever is done to the date; Lua's
** os.clock adds up the time of all threads. */
static int wall_clock (lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + 1e-9 * (lua_Number)t.tv_nsec);
  return 1;
}

/* fnn.threads([n]): how many threads compute; n sets it, 0 as many as the
** process has CPUs.  A finalizer may run while an op that has made room for
** its threads allocates. */
static int threads (lua_State *L) {
  int n = 0;
  if (!lua_isnoneornil(L, 1)) {
    lua_Integer want = luaL_checkinteger(L, 1);
    n = want < INT_MIN ? INT_MIN : want > INT_MAX ? INT_MAX : (int)want;
    if (in_finalizer(L))
      return raise_error(L, "threads: a finalizer cannot set the count");
    guard(L, fnn_threads(n));
  }
  guard(L, n = fnn_thread_count());
  lua_pushinteger(L, n);
  return 1;
}

/* fnn.progress(what, step, total): tells the host how far long work has come;
** raises when the host says stop. */
static int report_progress (lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  lua_Integer step = luaL_checkinteger(L, 2);
  lua_Integer total = luaL_optinteger(L, 3, 0);
  guard(L, fnn_progress(what, step, total));
  return 0;
}

static const luaL_Reg functions[] = { { "clock", wall_clock },
                                      { "progress", report_progress },
                                      { "threads", threads },
                                      { NULL, NULL } };

static void open_namespaces (lua_State *L) {
  static const char *const names[] = { "nn", "optim", "data",
                                       "io", "text",  "graph" };
  for (int i = 0; i < countof(names); i++) {
    lua_newtable(L);
    lua_pushfstring(L, "fnn.%s", names[i]);
    const char *what = lua_tostring(L, -1);
    lua_insert(L, -2);
    setnamespace(L, what);
    lua_setfield(L, -3, names[i]);
    lua_pop(L, 1);
  }
}

static int open_parts (lua_State *L) {
  lua_newtable(L);
  setnamespace(L, "fnn");
  addfunctions(L, functions);
  lua_pushliteral(L, FNN_VERSION);
  lua_setfield(L, -2, "_VERSION");
  open_namespaces(L);
  open_tensor(L);
  open_graph(L);
  open_memory(L);
  open_device(L);
  open_random(L);
  open_math(L);
  open_norm(L);
  open_attention(L);
  open_recurrent(L);
  open_pool(L);
  open_conv(L);
  open_loss(L);
  open_view(L);
  open_index(L);
  open_nn(L);
  open_optim(L);
  open_clip(L);
  open_data(L);
  open_io(L);
  open_file(L);
  open_sources(L);
  open_text(L);
  open_interrupt(L);
  open_scripts(L);
  return 1;
}

static const char version_key[] = "fnn.version", table_key[] = "fnn.table";

/* The table of an engine that is in this state already; another version is
** refused. */
static bool find_open (lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, version_key) == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  if (strcmp(lua_tostring(L, -1), FNN_VERSION) != 0)
    luaL_error(L, "fnn %s cannot be opened: fnn %s is in this state already",
               FNN_VERSION, lua_tostring(L, -1));
  lua_pop(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, table_key);
  return true;
}

static void open_library (lua_State *L, const fnn_Host *host) {
  luaL_checkversion(L);
  if (find_open(L)) return;
  Lib *lib = lua_newuserdatauv(L, sizeof *lib, KINDS);
  memset(lib, 0, sizeof *lib);
  lua_newtable(L);
  lua_pushcfunction(L, lib_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lib->main = lua_tothread(L, -1);
  lua_pop(L, 1);
  lib->device = device_cpu();
  lib->dtype = FNN_F32;
  open_context(L, lib, host);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &lib_key);
  lua_pushcclosure(L, open_parts, 1);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, table_key);
  lua_pushliteral(L, FNN_VERSION); /* last: it says that all is there */
  lua_setfield(L, LUA_REGISTRYINDEX, version_key);
}

void fnn_openlibs (lua_State *L, const fnn_Host *host) {
  open_library(L, host);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "fnn");
  lua_pop(L, 1);
}

fnn_Context *fnn_tocontext (lua_State *L) {
  Lib *lib = findlib(L);
  return lib != NULL ? lib->context : NULL;
}

fnn_Tensor *fnn_totensor (lua_State *L, int i) {
  Lib *lib = findlib(L);
  return lib != NULL ? lib_totensor(L, lib, i) : NULL;
}

void fnn_pushtensor (lua_State *L, fnn_Tensor *x) {
  lib_pushtensor(L, findlib(L), x);
}

int luaopen_fnn (lua_State *L) {
  open_library(L, NULL);
  return 1;
}
