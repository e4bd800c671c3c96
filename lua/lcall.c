/* lcall.c - values of Lua that the engine holds, and calls back into Lua.
**
** A slot keeps its value in a table of the registry.  The engine may drop it
** anywhere, where Lua must not be touched; so a drop only queues it, and the
** next guard to end empties the queue.  A callback runs under lua_pcall on the
** guard's L, so that it cannot yield or jump over the engine; its error value
** stays on top of that stack, and the guard raises it again. */

#include <stdio.h>

#include "lbox.h"

struct Slot_ {
  Slot_ *next; /* among the dropped */
  Lib *lib;
  int ref;
  int count;             /* of the results of a derivative; -1: a hook */
  char name[64];         /* of its op */
  struct Holder *holder; /* until the engine has it */
};

/* A temporary that drops its slot if a throw comes between. */
typedef struct Holder {
  Object o;
  Slot_ *slot;
} Holder;

static const char slots_key = 0; /* registry: the table of values */

static void push_slots (lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &slots_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &slots_key);
}

int slot_ref (lua_State *L, int i) {
  i = lua_absindex(L, i);
  push_slots(L);
  lua_pushvalue(L, i);
  int ref = luaL_ref(L, -2);
  lua_pop(L, 1);
  return ref;
}

static void holder_destroy (void *o) {
  Slot_ *s = ((Holder *)o)->slot;
  if (s != NULL) slot_drop(s);
}

static const Type holder_type = { "slot", holder_destroy };

/* Without memory for one its value stays in the table: no more. */
Slot_ *slot_new (Lib *lib, int ref, const char *name, int n) {
  Holder *h = object_new(&holder_type, sizeof *h);
  Slot_ *s = mem_new(sizeof *s);
  *s = (Slot_){ .lib = lib, .ref = ref, .holder = h };
  s->count = name != NULL ? n : -1;
  if (name != NULL) snprintf(s->name, sizeof s->name, "%s", name);
  h->slot = s;
  return s;
}

void slot_keep (Slot_ *s) {
  s->holder->slot = NULL;
  s->holder = NULL;
}

int slot_count (const Slot_ *s) { return s->count; }

void slot_drop (void *slot) {
  Slot_ *s = slot;
  s->next = s->lib->dropped;
  s->lib->dropped = s;
}

void slots_flush (lua_State *L, Lib *lib) {
  push_slots(L);
  fnn_Context *before = fnn_use(lib->context);
  while (lib->dropped != NULL) {
    Slot_ *s = lib->dropped;
    lib->dropped = s->next;
    luaL_unref(L, -1, s->ref);
    mem_free(s, sizeof *s);
  }
  fnn_use(before);
  lua_pop(L, 1);
}

/* What slot_call hands to the protected side. */
typedef struct Call {
  Slot_ *slot;
  int n, nr;
  fnn_Tensor *const *args;
  fnn_Tensor **results; /* with a reference each */
  int count;            /* how many results there were */
  int bad;              /* the first that is neither a tensor nor nil, or 0 */
  const char *type;     /* its type */
} Call;

void lib_pushtensor (lua_State *L, const Lib *lib, fnn_Tensor *x) {
  void **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, lib->meta[TENSOR]);
  lua_setmetatable(L, -2);
  if (lib->scoped) scope_note(L, -1);
  *box = fnn_retain(x);
}

fnn_Tensor *lib_totensor (lua_State *L, const Lib *lib, int i) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  const void *meta = lua_topointer(L, -1);
  lua_pop(L, 1);
  if (meta != lib->meta[TENSOR] && meta != lib->meta[PARAM]) return NULL;
  void *o = *(void **)lua_touserdata(L, i);
  if (o == NULL || meta == lib->meta[TENSOR]) return o;
  return fnn_value(o);
}

static int protected_call (lua_State *L) {
  Call *c = lua_touserdata(L, 1);
  Lib *lib = c->slot->lib;
  luaL_checkstack(L, c->n + c->nr + 4, "too many tensors");
  push_slots(L);
  lua_rawgeti(L, -1, c->slot->ref);
  for (int i = 0; i < c->n; i++)
    if (c->args[i] == NULL) lua_pushnil(L);
    else lib_pushtensor(L, lib, c->args[i]);
  int base = lua_gettop(L) - c->n - 1;
  lua_call(L, c->n, LUA_MULTRET);
  c->count = lua_gettop(L) - base;
  for (int i = 0; i < c->nr && i < c->count && c->bad == 0; i++) {
    int at = base + 1 + i;
    if (lua_isnil(L, at)) continue;
    fnn_Tensor *x = lib_totensor(L, lib, at);
    c->results[i] = fnn_retain(x);
    if (x == NULL) {
      c->bad = i + 1;
      c->type = luaL_typename(L, at);
    }
  }
  return 0;
}

/* Throws unless the results are what a derivative or a hook returns. */
static void check_results (const Slot_ *s, const Call *c) {
  bool hook = s->count < 0;
  if (c->bad != 0)
    fnn_throw(FNN_EARG, "%s%s: gradient %d: expected a tensor or nil, got %s",
              hook ? "" : "backward: ", hook ? "hook" : s->name, c->bad,
              c->type);
  if (!hook && c->count != s->count)
    fnn_throw(FNN_EARG,
              "backward: %s gave %d gradients (expected %d, one an "
              "input)",
              s->name, c->count, s->count);
}

void slot_call (Slot_ *s, int n, fnn_Tensor *const *args, int nr,
                fnn_Tensor **results) {
  Lib *lib = s->lib;
  lua_State *L = lib->guarded;
  Call c = { s, n, nr, args, results, 0, 0, NULL };
  for (int i = 0; i < nr; i++) results[i] = NULL;
  if (!lua_checkstack(L, 4)) fnn_throw(FNN_EMEMORY, "stack overflow");
  frame_room((size_t)nr);
  lua_pushcfunction(L, protected_call);
  lua_pushlightuserdata(L, &c);
  int status = lua_pcall(L, 1, 0, 0);
  for (int i = 0; i < nr; i++) frame_adopt(results[i]);
  if (status != LUA_OK) {
    lib->raised = true;
    fnn_throw(FNN_EHOST, "an error in a function of the script");
  }
  check_results(s, &c);
}

/* On the main thread the closer becomes a variable to be closed, so that an
** error keeps its traceback.  A coroutine that dies of an error closes nothing
** until somebody asks: there the call is protected.  Either way it is a call
** of C, so a yield out of it raises. */
bool closer_set (lua_State *L) {
  bool is_main = lua_pushthread(L);
  lua_pop(L, 1);
  if (is_main) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "__close");
    lua_setmetatable(L, -2);
    lua_insert(L, 2);
    lua_toclose(L, 2);
  } else {
    lua_pushnil(L);
    lua_insert(L, 2);
  }
  luaL_checkstack(L, 4, NULL);
  return is_main;
}

int closer_call (lua_State *L, bool set,
                 void (*kept)(lua_State *L, int first)) {
  int n = lua_gettop(L) - 3, status = LUA_OK;
  if (set) lua_call(L, n, LUA_MULTRET);
  else status = lua_pcall(L, n, LUA_MULTRET, 0);
  if (status == LUA_OK && kept != NULL) kept(L, 3);
  if (set) return lua_gettop(L) - 2;
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  if (status == LUA_OK) lua_pushnil(L);
  else lua_pushvalue(L, -3);
  lua_call(L, 2, 0);
  return status == LUA_OK ? lua_gettop(L) - 2 : lua_error(L);
}
