/* linterrupt.c - fnn.on_interrupt: a script's own way to stop.
**
** The token of the context is armed, so that the first time it is set it
** stops nothing.  The next guard to end, in whichever coroutine, or the
** program's own hook, sees that it was asked and has the handler called by a
** hook: between two instructions of Lua, so that no op is torn.  The truth is
** in the token; a hook that is lost is set again by the next guard. */

#include "lbox.h"

static const char handler_key = 0; /* registry: the function */

/* The hook that ours took the place of, and where. */
static const char hook_key = 0; /* registry: a Hook */

typedef struct Hook {
  lua_State *L;
  lua_Hook f;
  int mask, count;
} Hook;

static Hook *saved_hook (lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return h;
}

bool interrupt_call (lua_State *L, Lib *lib) {
  if (!lib->listens || !cancel_take(lib->context->cancel)) return false;
  lib->listens = false;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &handler_key);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler_key);
  lua_call(L, 0, 0);
  return true;
}

void interrupt_forget (Lib *lib) {
  if (lib->listens && cancel_take(lib->context->cancel))
    cancel_arm(lib->context->cancel, true);
}

static void run_handler (lua_State *L, lua_Debug *ar) {
  (void)ar;
  const Hook *h = saved_hook(L);
  if (h->L == L) lua_sethook(L, h->f, h->mask, h->count);
  else lua_sethook(L, NULL, 0, 0);
  luaL_checkstack(L, 4, "interrupt");
  interrupt_call(L, findlib(L));
}

void interrupt_notice (lua_State *L, Lib *lib) {
  if (!cancel_is_asked(lib->context->cancel)) return;
  if (lua_gethook(L) == run_handler || !lua_checkstack(L, 1)) return;
  *saved_hook(L) =
      (Hook){ L, lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L) };
  lua_sethook(L, run_handler,
              LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

/* fnn.on_interrupt(f): f is called once, at the first interrupt; nil takes it
** back.  Returns the function that waited before.  One that is asked already
** is called here, rather than lost. */
static int on_interrupt (lua_State *L) {
  Lib *lib = getlib(L);
  if (!lua_isfunction(L, 1) && (lua_isnone(L, 1) || !lua_isnil(L, 1)))
    return raise_error(L, "on_interrupt: expected a function or nil, got %s",
                       push_type_name(L, 1));
  if (lib->context == NULL)
    return luaL_error(L, "fnn is closed in this state");
  lua_settop(L, 1);
  if (lua_isnil(L, 1)) cancel_arm(lib->context->cancel, false);
  interrupt_call(L, lib);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &handler_key);
  lua_pushvalue(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler_key);
  lib->listens = !lua_isnil(L, 1);
  if (lib->listens) cancel_arm(lib->context->cancel, true);
  return 1;
}

static const luaL_Reg functions[] = { { "on_interrupt", on_interrupt },
                                      { NULL, NULL } };

void open_interrupt (lua_State *L) {
  lua_newuserdatauv(L, sizeof(Hook), 0);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hook_key);
  addfunctions(L, functions);
}
