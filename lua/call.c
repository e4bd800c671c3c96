/* call.c - protected calls of the program: messages, tracebacks, interrupts.
**
** SIGINT has two things to stop: Lua code, by a hook that raises an error at
** its next instruction, and the engine, by the cancel token.  Whichever comes
** first takes the token, so one signal is one error.  A script's handler
** (fnn.on_interrupt) is called instead, by this hook or by the library's.  A
** second signal in the same call ends the process. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

static const char *caller = "fnn";
static lua_State *volatile running;
static fnn_Cancel *volatile token;
static volatile sig_atomic_t interrupted; /* and perhaps not yet noticed */
static volatile sig_atomic_t signalled;   /* in this call */
static bool broken_off;                   /* the last call, by that */

/* The hook of the script that ours takes the place of. */
static struct {
  lua_Hook f;
  int mask, count;
} script_hook;

fnn_Cancel *call_token (void) {
  if (token == NULL) token = fnn_cancel_new();
  return token;
}

const char *call_name (const char *name) {
  const char *old = caller;
  caller = name;
  return old;
}

void call_message (const char *text) {
  progress_end();
  if (caller != NULL) fprintf(stderr, "%s: ", caller);
  fprintf(stderr, "%s\n", text);
  fflush(stderr);
}

int call_report (lua_State *L, int status) {
  if (status != LUA_OK) {
    const char *text = lua_tostring(L, -1);
    call_message(text ? text : "(error message not a string)");
    lua_pop(L, 1);
  }
  return status;
}

/* The error's text: its own, what its __tostring says, or its type.  Only an
** object that describes itself goes without a traceback. */
static int describe (lua_State *L) {
  const char *text = lua_tostring(L, 1);
  if (text == NULL) {
    if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
      return 1;
    text = lua_pushfstring(L, "(error object is a %s value)",
                           luaL_typename(L, 1));
  }
  luaL_traceback(L, L, text, 1);
  return 1;
}

static void restore_hook (lua_State *L) {
  lua_sethook(L, script_hook.f, script_hook.mask, script_hook.count);
}

static void stop (lua_State *L, lua_Debug *ar) {
  (void)ar;
  restore_hook(L);
  interrupted = 0;
  if (library_interrupt(L)) return;
  if (library_uncancel(L)) luaL_error(L, "interrupted!");
}

static void interrupt (int signal_number) {
  int kept = errno;
  signal(signal_number, SIG_DFL);
  script_hook.f = lua_gethook(running);
  script_hook.mask = lua_gethookmask(running);
  script_hook.count = lua_gethookcount(running);
  lua_sethook(running, stop,
              LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
  if (token != NULL) fnn_cancel(token);
  interrupted = signalled = 1;
  errno = kept;
}

/* Whether the error on the top is an interrupt's, and not one of a script that
** caught it and went on: by what the hook and the engine say. */
static bool is_interrupt (lua_State *L) {
  const char *text = signalled ? lua_tostring(L, -1) : NULL;
  return text != NULL && (strstr(text, "interrupted!") != NULL ||
                          strstr(text, "cancelled") != NULL);
}

bool call_interrupted (void) { return broken_off; }

int call_run (lua_State *L, int n, int results) {
  int base = lua_gettop(L) - n;
  lua_State *outer = running;
  struct sigaction action, old;
  lua_pushcfunction(L, describe);
  lua_insert(L, base);
  memset(&action, 0, sizeof action);
  action.sa_handler = interrupt;
  running = L;
  signalled = 0;
  sigaction(SIGINT, &action, &old);
  int status = lua_pcall(L, n, results, base);
  sigaction(SIGINT, &old, NULL);
  running = outer;
  broken_off = status != LUA_OK && is_interrupt(L);
  if (interrupted) { /* too late for this call, and not meant for the next */
    interrupted = 0;
    if (lua_gethook(L) == stop) restore_hook(L);
    library_uncancel(L);
  }
  lua_remove(L, base);
  return status;
}
