/* fnn.c - the fnn program: Lua's stand-alone interpreter with the library at
** hand.
**
** What section 7 of Lua's manual says of lua holds here, options, the table
** arg, LUA_INIT and exit codes included, but for 130 after an interrupt, as of
** a program that the signal ends; long options are fnn's own.  A first
** argument that is the name of a tool (an embedded fnn/tools/NAME.lua) runs
** the tool, unless there is a file of that name. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

#include <lualib.h>

static int run_chunk (lua_State *L, int status) {
  if (status == LUA_OK) status = call_run(L, 0, 0);
  return call_report(L, status);
}

static int run_file (lua_State *L, const char *name) {
  return run_chunk(L, luaL_loadfile(L, name));
}

static int run_string (lua_State *L, const char *text, const char *name) {
  return run_chunk(L, luaL_loadbuffer(L, text, strlen(text), name));
}

/* Requires a module into a global: "mod" or "global=mod". */
static int run_library (lua_State *L, const char *text) {
  const char *equals = strchr(text, '=');
  size_t n = equals ? (size_t)(equals - text) : strlen(text);
  const char *global = lua_pushlstring(L, text, n);
  lua_getglobal(L, "require");
  lua_pushstring(L, equals ? equals + 1 : text);
  int status = call_report(L, call_run(L, 1, 1));
  if (status == LUA_OK) lua_setglobal(L, global);
  lua_pop(L, 1);
  return status;
}

/* The code or @file in the environment's variable name, if it is set. */
static int run_variable (lua_State *L, const char *name) {
  const char *text = getenv(name);
  if (text == NULL) return LUA_OK;
  if (text[0] == '@') return run_file(L, text + 1);
  lua_pushfstring(L, "=%s", name);
  int status = run_string(L, text, lua_tostring(L, -1));
  lua_pop(L, 1);
  return status;
}

static int run_variables (lua_State *L) {
  const char *init = "LUA_INIT" LUA_VERSUFFIX;
  if (getenv(init) == NULL) init = "LUA_INIT";
  int status = run_variable(L, init);
  return status == LUA_OK ? run_variable(L, "FNN_INIT") : status;
}

/* The second pass: what runs before the script, in order. */
static int run_options (lua_State *L, char **argv, int script) {
  int status = LUA_OK;
  for (int i = 1; i < script && status == LUA_OK; i++) {
    const char *value = NULL;
    switch (options_next(argv, &i, &value)) {
      case 'e': status = run_string(L, value, "=(command line)"); break;
      case 'l': status = run_library(L, value); break;
      case 'W': lua_warning(L, "@on", 0); break;
      default: break;
    }
  }
  return status;
}

/* Pushes arg[1] and on; returns how many. */
static int push_arguments (lua_State *L) {
  if (lua_getglobal(L, "arg") != LUA_TTABLE)
    luaL_error(L, "'arg' is not a table");
  int n = (int)luaL_len(L, -1), table = lua_gettop(L);
  luaL_checkstack(L, n + 3, "too many arguments to script");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, table, i);
  lua_remove(L, table);
  return n;
}

static bool is_tool (lua_State *L, const char *word) {
  if (strpbrk(word, "/.") != NULL || access(word, F_OK) == 0) return false;
  bool found = library_has(lua_pushfstring(L, "fnn/tools/%s.lua", word));
  lua_pop(L, 1);
  return found;
}

static int run_script (lua_State *L, char **argv, int script) {
  const char *name = argv[script];
  bool after = strcmp(argv[script - 1], "--") == 0;
  int status = LUA_OK;
  if (!after && is_tool(L, name))
    library_embedded(L, lua_pushfstring(L, "fnn/tools/%s.lua", name));
  else
    status = luaL_loadfile(L, !after && strcmp(name, "-") == 0 ? NULL : name);
  if (status == LUA_OK) status = call_run(L, push_arguments(L), 0);
  return call_report(L, status);
}

/* arg[0] is the script, or the program when there is none; what stands
** before it has negative indices. */
static void set_arguments (lua_State *L, int argc, char **argv, int script) {
  int zero = script == argc ? 0 : script;
  lua_createtable(L, argc - zero, zero + 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
}

static int require_library (lua_State *L) {
  if (lua_getglobal(L, "require") != LUA_TFUNCTION) return LUA_ERRRUN;
  lua_pushstring(L, "fnn");
  return call_report(L, call_run(L, 1, 1));
}

/* Only here the library is a global, unless there is one of its name. */
static int run_session (lua_State *L) {
  lua_settop(L, 0);
  if (lua_getglobal(L, "fnn") == LUA_TNIL && require_library(L) == LUA_OK)
    lua_setglobal(L, "fnn");
  lua_settop(L, 0);
  if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
    printf("?name shows help, ?fnn all names; Ctrl-D leaves\n");
  repl_run(L);
  return LUA_OK;
}

static int run_all (lua_State *L, int argc, char **argv, const Options *o) {
  if (o->settings.any && require_library(L) != LUA_OK) return LUA_ERRRUN;
  if (!o->noenv && run_variables(L) != LUA_OK) return LUA_ERRRUN;
  if (run_options(L, argv, o->script) != LUA_OK) return LUA_ERRRUN;
  if (o->script < argc && run_script(L, argv, o->script) != LUA_OK)
    return LUA_ERRRUN;
  if (o->interactive) return run_session(L);
  if (o->script < argc || o->executes || o->version) return LUA_OK;
  if (!isatty(STDIN_FILENO)) return run_file(L, NULL);
  options_version();
  return run_session(L);
}

/* Runs protected; its result is whether all went well. */
static int protected_main (lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  const Options *o = lua_touserdata(L, 3);
  luaL_checkversion(L);
  if (o->version) options_version();
  if (o->noenv) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  lua_gc(L, LUA_GCSTOP);
  luaL_openlibs(L);
  library_preload(L, &o->settings);
  set_arguments(L, argc, argv, o->script);
  lua_gc(L, LUA_GCRESTART);
  lua_gc(L, LUA_GCGEN, 0, 0);
  lua_pushboolean(L, run_all(L, argc, argv, o) == LUA_OK);
  return 1;
}

enum { EXIT_INTERRUPTED = 130 };

int main (int argc, char **argv) {
  const char *program = argc > 0 && argv[0][0] != '\0' ? argv[0] : "fnn";
  Options o = { .script = argc };
  call_name(program);
  options_collect(argv, &o);
  if (o.wrong != NULL) {
    options_complain(&o, program);
    return EXIT_FAILURE;
  }
  if (o.exits) {
    options_inform(argv, program);
    return EXIT_SUCCESS;
  }
  lua_State *L = luaL_newstate();
  if (L == NULL) {
    call_message("cannot create state: not enough memory");
    return EXIT_FAILURE;
  }
  lua_pushcfunction(L, protected_main);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  lua_pushlightuserdata(L, &o);
  int status = lua_pcall(L, 3, 1, 0);
  bool well = lua_toboolean(L, -1);
  call_report(L, status);
  lua_close(L);
  if (status == LUA_OK && well) return EXIT_SUCCESS;
  return call_interrupted() ? EXIT_INTERRUPTED : EXIT_FAILURE;
}
