/* lmemory.c - memory in Lua: what is held, its limit, and scopes.
**
** While a scope is open, each box of a tensor that is made enters a table of
** the registry, the scope's set, whose keys are weak: what the collector finds
** first is gone from it.  The end of the scope empties the boxes in the set
** but those that the results reach; these pass to the scope around it, which
** is [1] of the set's metatable. */

#include "lbox.h"

static const char set_key = 0; /* registry: the set of the innermost scope */

/*
** {======================================================
** Sets of boxes
** =======================================================
*/

void scope_note (lua_State *L, int i) {
  i = lua_absindex(L, i);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &set_key);
  lua_pushvalue(L, i);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void scope_keep (lua_State *L, int i) {
  i = lua_absindex(L, i);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &set_key);
  while (lua_istable(L, -1)) {
    lua_pushvalue(L, i);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_getmetatable(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_replace(L, -3);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Moves the box at i from a set to the one around it, which may be nil. */
static void pass (lua_State *L, int i, int set, int outer) {
  lua_pushvalue(L, i);
  bool inside = lua_rawget(L, set) != LUA_TNIL;
  lua_pop(L, 1);
  if (!inside) return;
  lua_pushvalue(L, i);
  lua_pushnil(L);
  lua_rawset(L, set);
  if (lua_isnil(L, outer)) return;
  lua_pushvalue(L, i);
  lua_pushboolean(L, 1);
  lua_rawset(L, outer);
}

/* A walk over what values reach: the stack's places of its tables, and how
** many tables wait. */
typedef struct Reach {
  int set, outer, seen, waiting;
  lua_Integer n;
} Reach;

/* Takes in the value on the top, and pops it. */
static void reach (lua_State *L, Reach *r) {
  if (lua_type(L, -1) == LUA_TUSERDATA) {
    pass(L, lua_gettop(L), r->set, r->outer);
    lua_getiuservalue(L, -1, 1); /* the fields of a module */
    lua_remove(L, -2);
  }
  if (lua_istable(L, -1)) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, r->seen) == LUA_TNIL) {
      lua_pushvalue(L, -2);
      lua_pushboolean(L, 1);
      lua_rawset(L, r->seen);
      lua_pushvalue(L, -2);
      lua_rawseti(L, r->waiting, ++r->n);
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Passes on every box that the values at first .. last reach. */
static void pass_reached (lua_State *L, int set, int outer, int first,
                          int last) {
  int top = lua_gettop(L);
  luaL_checkstack(L, 10, "scope");
  lua_newtable(L);
  lua_newtable(L);
  Reach r = { set, outer, top + 1, top + 2, 0 };
  for (int i = first; i <= last; i++) {
    lua_pushvalue(L, i);
    reach(L, &r);
  }
  while (r.n > 0) {
    lua_rawgeti(L, r.waiting, r.n);
    lua_pushnil(L);
    lua_rawseti(L, r.waiting, r.n--);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
      lua_pushvalue(L, -2);
      reach(L, &r);
      reach(L, &r);
    }
    lua_pop(L, 1);
  }
  lua_settop(L, top);
}

/* }====================================================== */

/*
** {======================================================
** Scopes
** =======================================================
*/

/* What a scope returns lives on. */
static void scope_results (lua_State *L, int first) {
  int last = lua_gettop(L);
  lua_getupvalue(L, 1, 2);
  lua_getupvalue(L, 1, 3);
  pass_reached(L, last + 1, last + 2, first, last);
  lua_settop(L, last);
}

/* (value, error): ends the scope; what an error holds lives on too.
** Upvalues: the Lib, the scope's set, the set around it or nil. */
static int scope_end (lua_State *L) {
  int set = lua_upvalueindex(2), outer = lua_upvalueindex(3);
  lua_settop(L, 2);
  lua_pushvalue(L, outer);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &set_key);
  getlib(L)->scoped = !lua_isnil(L, outer);
  pass_reached(L, set, outer, 2, 2);
  lua_pushnil(L);
  while (lua_next(L, set)) {
    lua_pop(L, 1);
    box_empty(L, -1);
  }
  return 0;
}

/* Pushes a set within the one on the top, or nil. */
static void push_set (lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 1, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_pushvalue(L, -3);
  lua_rawseti(L, -2, 1);
  lua_setmetatable(L, -2);
}

/* fnn.scope(f, ...): f(...), whose tensors go when it returns */
static int memory_scope (lua_State *L) {
  if (lua_isnoneornil(L, 1))
    return raise_error(
        L, "scope: expected a function to call, scope(function () ... end)");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_rawgetp(L, LUA_REGISTRYINDEX, &set_key);
  push_set(L);
  lua_insert(L, -2);
  lua_pushcclosure(L, scope_end, 3);
  lua_insert(L, 1);
  bool set = closer_set(L);
  lua_getupvalue(L, 1, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &set_key);
  getlib(L)->scoped = true;
  return closer_call(L, set, scope_results);
}

/* }====================================================== */

/* The device that is named at i; without a name the CPU. */
static const fnn_Device *device_at (lua_State *L, int i) {
  return lua_isnoneornil(L, i) ? device_cpu() : checkdevice(L, i);
}

/* fnn.memory([device]): bytes live, idle, of the device's own workspace, held
** (all of these), peak and limit; blocks asked of the system so far; objects
** and nodes alive; conversions of memory order so far */
static int memory_memory (lua_State *L) {
  fnn_Memory m;
  const fnn_Device *d = device_at(L, 1);
  guard(L, m = fnn_device_memory(d));
  const struct {
    const char *name;
    uint64_t value;
  } fields[] = { { "live", m.live },
                 { "idle", m.idle },
                 { "workspace", m.workspace },
                 { "held", m.live + m.idle + m.workspace },
                 { "peak", m.peak },
                 { "limit", m.limit },
                 { "allocations", m.allocations },
                 { "objects", m.objects },
                 { "nodes", m.nodes },
                 { "conversions", m.conversions } };
  lua_createtable(L, 0, countof(fields));
  for (int i = 0; i < countof(fields); i++) {
    lua_pushinteger(L, (lua_Integer)fields[i].value);
    lua_setfield(L, -2, fields[i].name);
  }
  return 1;
}

/* fnn.set_memory_limit([bytes [, device]]): 0 or nothing is no limit */
static int memory_set_limit (lua_State *L) {
  lua_Integer n = luaL_optinteger(L, 1, 0);
  const fnn_Device *d = device_at(L, 2);
  luaL_argcheck(L, n >= 0, 1, "expected 0 bytes or more");
  guard(L, fnn_device_memory_limit(d, (uint64_t)n));
  return 0;
}

/* fnn.trim([device]): gives idle memory back */
static int memory_trim (lua_State *L) {
  const fnn_Device *d = device_at(L, 1);
  guard(L, fnn_device_trim(d));
  return 0;
}

/* fnn.empty_cache([device]): collects what nothing reaches, then trims */
static int memory_empty_cache (lua_State *L) {
  const fnn_Device *d =
      lua_isnoneornil(L, 1) ? getlib(L)->device : checkdevice(L, 1);
  collect(L, getlib(L));
  guard(L, fnn_device_trim(d));
  return 0;
}

/* fnn.reset_peak_memory([device]): the peak becomes what is live now */
static int memory_reset_peak (lua_State *L) {
  const fnn_Device *d = device_at(L, 1);
  guard(L, fnn_device_memory_peak_reset(d));
  return 0;
}

static const luaL_Reg functions[] = { { "memory", memory_memory },
                                      { "set_memory_limit", memory_set_limit },
                                      { "reset_peak_memory",
                                        memory_reset_peak },
                                      { "trim", memory_trim },
                                      { "empty_cache", memory_empty_cache },
                                      { "scope", memory_scope },
                                      { NULL, NULL } };

void open_memory (lua_State *L) { addfunctions(L, functions); }
