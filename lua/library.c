/* library.c - opens the library for scripts, with the program as its host.
**
** A script that never requires fnn is not to pay for it, so the library opens
** at the first require "fnn", through package.preload.  Options of the command
** line that concern it are applied then. */

#include <stdio.h>
#include <string.h>

#include "embed.h"
#include "lbox.h"
#include "program.h"

static void apply (lua_State *L, const char *function) {
  lua_getfield(L, -2, function);
  lua_insert(L, -2);
  lua_call(L, 1, 0);
}

/* Warnings of the library, and what a script has asked for, are for whoever
** runs it; the rest is not. */
static void show_log (void *ud, fnn_Level level, const char *text) {
  char line[1024];
  (void)ud;
  if (level == FNN_INFO) {
    progress_end();
    fprintf(stderr, "%s\n", text);
  }
  if (level != FNN_WARNING) return;
  snprintf(line, sizeof line, "warning: %s", text);
  call_message(line);
}

/* Boxes die young.  In generational mode they are found without a walk over
** what is old, at each 2 % that are new, while their memory is still in the
** cache.  Before 5.4.4 that mode has faults. */
static void set_collector (lua_State *L) {
  bool generational = LUA_VERSION_RELEASE_NUM >= 50404;
  findlib(L)->generational = generational;
  if (generational) lua_gc(L, LUA_GCGEN, 2, 0);
  else lua_gc(L, LUA_GCINC, 120, 400, 0);
}

/* The loader of package.preload.fnn. */
static int open_library (lua_State *L) {
  const Settings *s = lua_touserdata(L, lua_upvalueindex(1));
  fnn_Host host = FNN_HOST_INIT;
  host.log = show_log;
  host.progress = progress_show;
  host.threads = s->threads;
  host.memory_limit = s->memory;
  host.cancel = call_token();
  fnn_openlibs(L, &host);
  set_collector(L);
  lua_pushcfunction(L, repl_run);
  lua_setfield(L, -2, "repl");
  if (s->seeded) {
    lua_pushinteger(L, s->seed);
    apply(L, "manual_seed");
  }
  if (s->device != NULL) {
    lua_pushstring(L, s->device);
    apply(L, "set_default_device");
  }
  return 1;
}

static const Embedded *find (const char *name) {
  for (const Embedded *e = embedded; e->name != NULL; e++)
    if (strcmp(e->name, name) == 0) return e;
  return NULL;
}

bool library_has (const char *name) { return find(name) != NULL; }

bool library_embedded (lua_State *L, const char *name) {
  const Embedded *e = find(name);
  if (e == NULL) return false;
  lua_pushfstring(L, "=fnn:%s", name + strlen("fnn/"));
  if (luaL_loadbufferx(L, (const char *)e->text, e->size, lua_tostring(L, -1),
                       "t") != LUA_OK)
    lua_error(L);
  lua_remove(L, -2);
  return true;
}

/* The loader of package.preload["fnn.help"] and the like. */
static int open_embedded (lua_State *L) {
  library_embedded(L, lua_tostring(L, lua_upvalueindex(1)));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 1);
  return 1;
}

/* The reference's texts are modules on their own: they need no library. */
static bool is_module (const char *name) {
  return strncmp(name, "fnn/help", strlen("fnn/help")) == 0 ||
         strcmp(name, "fnn/manual.lua") == 0;
}

/* Adds to the table on top a loader for each. */
static void preload_modules (lua_State *L) {
  for (const Embedded *e = embedded; e->name != NULL; e++) {
    if (!is_module(e->name)) continue;
    lua_pushlstring(L, e->name, strlen(e->name) - strlen(".lua"));
    luaL_gsub(L, lua_tostring(L, -1), "/", ".");
    lua_pushstring(L, e->name);
    lua_pushcclosure(L, open_embedded, 1);
    lua_settable(L, -4);
    lua_pop(L, 1);
  }
}

void library_preload (lua_State *L, const Settings *s) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushlightuserdata(L, (void *)s);
  lua_pushcclosure(L, open_library, 1);
  lua_setfield(L, -2, "fnn");
  lua_pushcfunction(L, env_open);
  lua_setfield(L, -2, "fnn.env");
  preload_modules(L);
  lua_pop(L, 1);
}

static void poll (void *ud) {
  (void)ud;
  fnn_poll();
}

bool library_interrupt (lua_State *L) {
  Lib *lib = findlib(L);
  return lib != NULL && lib->context != NULL && interrupt_call(L, lib);
}

bool library_uncancel (lua_State *L) {
  Lib *lib = findlib(L);
  if (lib == NULL || lib->context == NULL) return true;
  interrupt_forget(lib);
  fnn_Context *before = fnn_use(lib->context);
  bool set = fnn_pcall(poll, NULL) == FNN_ECANCEL;
  fnn_use(before);
  return set;
}
