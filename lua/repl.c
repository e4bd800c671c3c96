/* repl.c - the read, evaluate, print loop.
**
** A text is tried as an expression, then as statements, and goes on over
** further lines while only the end of either is missing.  Results go through
** the global print, tables shown to depth 2, unless the text ends in ';'; the
** first is kept in _.  ?name asks for help.  fnn/repl.lua has what is easier
** said in Lua: showing, completing and helping. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

/* Where repl_run keeps its values on the stack. */
enum { ENV = 1, HELPER, EDIT, BASE = EDIT };

/* The outcomes of reading that are no status of Lua's. */
enum { FINISHED = -1, ABANDONED = -2 };

static void report (lua_State *L, int status) {
  const char *name = call_name(NULL);
  bool colour = progress_colour(STDERR_FILENO) && status != LUA_OK;
  if (colour) fputs("\033[31m", stderr);
  call_report(L, status);
  if (colour) fputs("\033[0m", stderr);
  call_name(name);
}

/* Pushes a line; false when there is none, *outcome says why. */
static bool read_line (lua_State *L, Edit *e, const char *variable,
                       const char *prompt, int *outcome) {
  bool interrupted = false;
  progress_end();
  if (lua_getfield(L, ENV, variable) != LUA_TNIL)
    prompt = luaL_tolstring(L, -1, NULL);
  else lua_pushnil(L);
  char *line = edit_line(e, prompt, &interrupted);
  lua_pop(L, 2);
  if (interrupted) fputs("\n", stdout);
  *outcome = interrupted ? ABANDONED : FINISHED;
  if (line == NULL) return false;
  lua_pushstring(L, line);
  free(line);
  return true;
}

static int load (lua_State *L, const char *text, size_t size) {
  return luaL_loadbufferx(L, text, size, "=stdin", "t");
}

/* Whether the error on top only misses the end of the text. */
static bool is_incomplete (lua_State *L, int status) {
  static const char mark[] = "<eof>";
  size_t n, m = sizeof mark - 1;
  if (status != LUA_ERRSYNTAX) return false;
  const char *text = lua_tolstring(L, -1, &n);
  return n >= m && strcmp(text + n - m, mark) == 0;
}

/* Pushes the function that the text on top is, an expression or statements, or
** an error.  *more: the text is the beginning of one. */
static int load_text (lua_State *L, bool *more) {
  size_t n;
  const char *text = lua_tostring(L, -1);
  const char *expression = lua_pushfstring(L, "return %s", text);
  int status = load(L, expression, strlen(expression));
  lua_remove(L, -2);
  if (status == LUA_OK) return status;
  *more = is_incomplete(L, status);
  lua_pop(L, 1);
  text = lua_tolstring(L, -1, &n);
  status = load(L, text, n);
  if (status == LUA_OK) *more = false;
  else if (is_incomplete(L, status)) *more = true;
  return status;
}

/* Whether text ends in ';' but for blanks. */
static bool is_silent (const char *text) {
  size_t n = strlen(text);
  while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL) n--;
  return n > 0 && text[n - 1] == ';';
}

/* Replaces the text on top by its function, reading on as long as it needs,
** or by an error.  *silent: its results are not to be printed. */
static int load_lines (lua_State *L, Edit *e, bool *silent) {
  for (;;) {
    bool more = false;
    int outcome = FINISHED, status = load_text(L, &more);
    if (more && read_line(L, e, "_PROMPT2", ">> ", &outcome)) {
      lua_remove(L, -2);
      lua_pushliteral(L, "\n");
      lua_insert(L, -2);
      lua_concat(L, 3);
      continue;
    }
    if (more && outcome == ABANDONED) return outcome;
    *silent = is_silent(lua_tostring(L, -2));
    edit_remember(e, lua_tostring(L, -2));
    lua_remove(L, -2);
    return status;
  }
}

/* Calls a function of fnn/repl.lua with the n values on top. */
static int call_helper (lua_State *L, const char *name, int n, int results) {
  lua_getfield(L, HELPER, name);
  lua_insert(L, -n - 1);
  return lua_pcall(L, n, results, 0);
}

static void show_help (lua_State *L, Edit *e, const char *line) {
  edit_remember(e, line);
  lua_pushstring(L, line + 1);
  int status = call_helper(L, "help", 1, 1);
  if (status == LUA_OK) printf("%s\n", lua_tostring(L, -1));
  else report(L, status);
}

/* Says once that a local is gone with the chunk that made it: programs of the
** manual, typed in by lines, begin with some. */
static void hint_local (lua_State *L, const char *line) {
  if (strncmp(line, "local ", 6) != 0 || !isatty(STDIN_FILENO)) return;
  if (lua_getfield(L, HELPER, "told_of_locals") == LUA_TNIL) {
    puts("(a local ends with its line here: leave out 'local' to keep it)");
    lua_pushboolean(L, true);
    lua_setfield(L, HELPER, "told_of_locals");
  }
  lua_pop(L, 1);
}

/* Reads one chunk and pushes its function or an error. */
static int read_chunk (lua_State *L, Edit *e, bool *silent) {
  int outcome;
  if (!read_line(L, e, "_PROMPT", "> ", &outcome)) return outcome;
  const char *line = lua_tostring(L, -1);
  if (line[0] == '?') {
    show_help(L, e, line);
    return ABANDONED;
  }
  hint_local(L, line);
  if (line[0] == '=') { /* as Lua 5.2 had it */
    lua_pushfstring(L, "return %s", line + 1);
    lua_remove(L, -2);
  }
  return load_lines(L, e, silent);
}

/* Prints the values above BASE and keeps the first. */
static void print_results (lua_State *L, bool silent) {
  int n = lua_gettop(L) - BASE;
  if (n == 0) return;
  luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
  lua_pushvalue(L, BASE + 1);
  lua_pushliteral(L, "_");
  lua_insert(L, -2);
  lua_rawset(L, ENV);
  if (silent) return;
  lua_pushboolean(L, progress_colour(STDOUT_FILENO));
  lua_insert(L, BASE + 1);
  int status = call_helper(L, "show", n + 1, LUA_MULTRET);
  if (status == LUA_OK) {
    lua_getfield(L, ENV, "print");
    lua_insert(L, BASE + 1);
    status = lua_pcall(L, lua_gettop(L) - BASE - 1, 0, 0);
  }
  if (status != LUA_OK) {
    lua_pushfstring(L, "error calling 'print' (%s)", lua_tostring(L, -1));
    report(L, status);
  }
}

static void evaluate (lua_State *L, int status, bool silent) {
  if (status == LUA_OK) {
    lua_pushvalue(L, ENV);
    if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1);
    status = call_run(L, 0, LUA_MULTRET);
  }
  if (status == LUA_OK) print_results(L, silent);
  else report(L, status);
}

/* Pushes the table of fnn/repl.lua; returns the reference of its complete. */
static int open_helper (lua_State *L) {
  library_embedded(L, "fnn/repl.lua");
  lua_pushvalue(L, ENV);
  lua_pushcfunction(L, edit_files);
  lua_call(L, 2, 1);
  lua_getfield(L, -1, "complete");
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

int repl_run (lua_State *L) {
  bool silent = false;
  if (lua_isnoneornil(L, 1)) {
    lua_settop(L, 0);
    lua_pushglobaltable(L);
  }
  luaL_checktype(L, ENV, LUA_TTABLE);
  lua_settop(L, ENV);
  int complete = open_helper(L);
  Edit *e = edit_open(L, complete);
  for (int status; (status = read_chunk(L, e, &silent)) != FINISHED;) {
    if (status != ABANDONED) evaluate(L, status, silent);
    lua_settop(L, BASE);
  }
  fputs("\n", stdout);
  fflush(stdout);
  edit_close(e);
  luaL_unref(L, LUA_REGISTRYINDEX, complete);
  return 0;
}
