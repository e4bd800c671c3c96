/* lwatch.c - what fnn/seeing/ needs of the engine: the profile, graphs as
** tables, and who holds a storage. */

#include <string.h>

#include "lbox.h"

/*
** {======================================================
** The profile
** =======================================================
*/

static int end_profile (lua_State *L) {
  guard(L, profile_end());
  return 0;
}

/* profile(f, traced, ...): f(...), looked at */
static int watch_profile (lua_State *L) {
  bool traced = lua_toboolean(L, 2);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  if (getlib(L)->context->watch & WATCH_PROFILE)
    return raise_error(L, "profile: one is being taken already");
  lua_remove(L, 2);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushcclosure(L, end_profile, 1);
  lua_insert(L, 1);
  bool set = closer_set(L);
  forget_places(L);
  guard(L, profile_begin(traced));
  return closer_call(L, set, NULL);
}

static void set_number (lua_State *L, const char *name, double v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, name);
}

static void set_integer (lua_State *L, const char *name, int64_t v) {
  lua_pushinteger(L, (lua_Integer)v);
  lua_setfield(L, -2, name);
}

static void push_row (lua_State *L, const ProfileRow *r) {
  static const char *const passes[] = { "forward", "backward", "step" };
  lua_createtable(L, 0, 9);
  lua_pushstring(L, r->op);
  lua_setfield(L, -2, "op");
  lua_pushstring(L, passes[r->phase]);
  lua_setfield(L, -2, "pass");
  push_place_name(L, r->place);
  lua_setfield(L, -2, "module");
  set_integer(L, "calls", r->calls);
  set_integer(L, "kernels", r->kernels);
  set_number(L, "ms", (double)r->ns * 1e-6);
  set_number(L, "bytes", r->bytes);
  set_number(L, "made", r->made);
  set_number(L, "flops", r->flops);
}

/* rows(): of the last profile, as tables; and its milliseconds: all of them,
** and those that looking took */
static int watch_rows (lua_State *L) {
  const Profile *p = NULL;
  guard(L, p = profile_last());
  lua_newtable(L);
  if (p == NULL) return 1;
  for (size_t i = 0; i < p->nrows; i++) {
    push_row(L, &p->rows[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  forget_places(L); /* which hold the modules */
  lua_pushnumber(L, (double)p->total * 1e-6);
  lua_pushnumber(L, (double)p->own * 1e-6);
  return 3;
}

/* events(): { { row, start, us }, ... } in microseconds */
static int watch_events (lua_State *L) {
  const Profile *p = NULL;
  guard(L, p = profile_last());
  lua_newtable(L);
  for (size_t i = 0; p != NULL && i < p->nevents; i++) {
    const ProfileEvent *e = &p->events[i];
    lua_createtable(L, 3, 0);
    lua_pushinteger(L, e->row + 1);
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, (double)e->start * 1e-3);
    lua_rawseti(L, -2, 2);
    lua_pushnumber(L, (double)e->ns * 1e-3);
    lua_rawseti(L, -2, 3);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Storage and graphs
** =======================================================
*/

/* Pushes { id, bytes, device } of what x lies in: id is its own. */
static void push_storage (lua_State *L, const fnn_Tensor *x) {
  const fnn_Storage *s = x->storage;
  lua_createtable(L, 3, 0);
  lua_pushlightuserdata(L, (void *)s);
  lua_rawseti(L, -2, 1);
  lua_pushinteger(L, (lua_Integer)s->capacity);
  lua_rawseti(L, -2, 2);
  lua_pushstring(L, s->device->name);
  lua_rawseti(L, -2, 3);
}

/* storage(x) */
static int watch_storage (lua_State *L) {
  push_storage(L, checktensor(L, 1));
  return 1;
}

/* states(p): the storages of what optimizers keep for a Param, the one of its
** gradient being the first, or false */
static int watch_states (lua_State *L) {
  const fnn_Param *p = checkparam(L, 1);
  lua_newtable(L);
  if (p->grad != NULL) push_storage(L, p->grad);
  else lua_pushboolean(L, false);
  lua_rawseti(L, -2, 1);
  lua_Integer n = 1;
  for (const Slot *s = p->slots; s != NULL; s = s->next)
    for (int i = 0; i < countof(s->t); i++)
      if (s->t[i] != NULL) {
        push_storage(L, s->t[i]);
        lua_rawseti(L, -2, ++n);
      }
  return 1;
}

static void push_shape (lua_State *L, int ndim, const int64_t *shape) {
  lua_createtable(L, ndim, 0);
  for (int i = 0; i < ndim; i++) {
    lua_pushinteger(L, (lua_Integer)shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* { storage, ... } of what n has saved, and so an input of plain data */
static void push_saved (lua_State *L, const Node *n) {
  lua_createtable(L, n->nsave, 0);
  lua_Integer k = 0;
  for (int i = 0; i < n->nsave; i++)
    if (n->save[i] != NULL) {
      push_storage(L, n->save[i]);
      lua_rawseti(L, -2, ++k);
    }
}

/* { id of a node, or a Param, or false for what has no gradient, ... } */
static void push_inputs (lua_State *L, const Node *n) {
  lua_createtable(L, n->nin, 0);
  for (int i = 0; i < n->nin; i++) {
    const Object *o = n->in[i];
    if (o == NULL) lua_pushboolean(L, false);
    else if (graph_is_param(o)) pushobject(L, PARAM, (void *)o);
    else lua_pushinteger(L, (lua_Integer)((const Node *)o)->sequence);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_node (lua_State *L, const Node *n) {
  lua_createtable(L, 0, 8);
  set_integer(L, "id", (int64_t)n->sequence);
  lua_pushstring(L, n->rule->name);
  lua_setfield(L, -2, "op");
  push_shape(L, n->ndim, n->shape);
  lua_setfield(L, -2, "shape");
  lua_pushstring(L, fnn_dtype_name((fnn_Dtype)n->dtype));
  lua_setfield(L, -2, "dtype");
  lua_pushboolean(L, n->spent);
  lua_setfield(L, -2, "spent");
  push_saved(L, n);
  lua_setfield(L, -2, "saved");
  push_inputs(L, n);
  lua_setfield(L, -2, "inputs");
}

/* graph{ x, ... }: the nodes that the tensors come from, as tables, the latest
** first among those of one tensor.  The list is an object of a box, so that
** the nodes live until it is done. */
static int watch_graph (lua_State *L) {
  int n;
  fnn_Tensor **x = checktensors(L, 1, &n);
  void **box = newbox(L, CAPTURE);
  guard(L, *box = fnn_retain(graph_nodes(n, x)));
  const Nodes *list = *box;
  lua_newtable(L);
  for (size_t i = 0; i < list->n; i++) {
    push_node(L, list->node[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* id(x): of the node that made x, a Param, or nil for plain data */
static int watch_source (lua_State *L) {
  Object *o = graph_source_of(checktensor(L, 1));
  if (o == NULL) lua_pushnil(L);
  else if (graph_is_param(o)) pushobject(L, PARAM, o);
  else lua_pushinteger(L, (lua_Integer)((const Node *)o)->sequence);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** What Lua reaches
** =======================================================
*/

/* A walk over all values: places on the stack of tables. */
typedef struct Reach {
  int seen;  /* [value] = true */
  int queue; /* values, and with each a name */
  int found; /* { box, name, ... } */
  lua_Integer head, tail, n;
} Reach;

/* Takes the value on the top, which goes; the name is at place `name`. */
static void reach (lua_State *L, Reach *r, int name) {
  int t = lua_type(L, -1);
  bool holds = t == LUA_TTABLE || t == LUA_TFUNCTION || t == LUA_TUSERDATA ||
               t == LUA_TTHREAD;
  lua_pushvalue(L, -1);
  if (!holds || lua_rawget(L, r->seen) != LUA_TNIL) {
    lua_pop(L, 2);
    return;
  }
  lua_pop(L, 1);
  lua_pushvalue(L, -1);
  lua_pushboolean(L, 1);
  lua_rawset(L, r->seen);
  lua_rawseti(L, r->queue, ++r->tail);
  lua_pushvalue(L, name);
  lua_rawseti(L, r->queue, ++r->tail);
}

/* What a table has but for what is weak in it; a field of a table without a
** name of its own gives it. */
static void reach_table (lua_State *L, Reach *r, int i, int name) {
  bool keys = true, values = true;
  if (lua_getmetatable(L, i)) {
    lua_pushliteral(L, "__mode");
    if (lua_rawget(L, -2) == LUA_TSTRING) {
      keys = strchr(lua_tostring(L, -1), 'k') == NULL;
      values = strchr(lua_tostring(L, -1), 'v') == NULL;
    }
    lua_pop(L, 1);
    reach(L, r, name);
  }
  lua_pushnil(L);
  while (lua_next(L, i)) {
    bool named =
        lua_tostring(L, name)[0] == '\0' && lua_type(L, -2) == LUA_TSTRING;
    if (values && keys) reach(L, r, named ? lua_gettop(L) - 1 : name);
    else lua_pop(L, 1);
    if (!keys) continue;
    lua_pushvalue(L, -1);
    reach(L, r, name);
  }
}

/* "local x", "upvalue x" */
static void reach_named (lua_State *L, Reach *r, const char *kind,
                         const char *variable, int name) {
  if (variable[0] == '\0' || variable[0] == '(') {
    reach(L, r, name);
    return;
  }
  lua_pushfstring(L, "%s %s", kind, variable);
  lua_insert(L, -2);
  reach(L, r, lua_gettop(L) - 1);
  lua_pop(L, 1);
}

static void reach_function (lua_State *L, Reach *r, int i, int name) {
  for (int k = 1;; k++) {
    const char *variable = lua_getupvalue(L, i, k);
    if (variable == NULL) return;
    reach_named(L, r, "upvalue", variable, name);
  }
}

/* The stack of a thread: variables of its calls, and what waits on it. */
static void reach_thread (lua_State *L, Reach *r, lua_State *T, int name) {
  lua_Debug ar;
  if (T != L && !lua_checkstack(T, 2)) return;
  for (int level = 0; lua_getstack(T, level, &ar); level++) {
    const char *variable;
    for (int k = 1; (variable = lua_getlocal(T, &ar, k)) != NULL; k++) {
      if (T != L) lua_xmove(T, L, 1);
      reach_named(L, r, "local", variable, name);
    }
  }
  if (T == L) return;
  for (int k = 1; k <= lua_gettop(T); k++) {
    lua_pushvalue(T, k);
    lua_xmove(T, L, 1);
    reach(L, r, name);
  }
}

static void reach_userdata (lua_State *L, Reach *r, int i, int name) {
  if (testobject(L, i, TENSOR) || testobject(L, i, PARAM) ||
      testobject(L, i, MODULE) || testobject(L, i, OPTIMIZER)) {
    lua_pushvalue(L, i);
    lua_rawseti(L, r->found, ++r->n);
    lua_pushvalue(L, name);
    lua_rawseti(L, r->found, ++r->n);
  }
  if (lua_getmetatable(L, i)) reach(L, r, name);
  for (int k = 1; lua_getiuservalue(L, i, k) != LUA_TNONE; k++)
    reach(L, r, name);
  lua_pop(L, 1);
}

/* reachable(): { box, name, ... } of all tensors, Params, modules and
** optimizers that Lua reaches; name: of the variable, or "" */
static int watch_reachable (lua_State *L) {
  lua_settop(L, 0);
  luaL_checkstack(L, 24, "reachable");
  lua_newtable(L);
  lua_newtable(L);
  lua_newtable(L);
  Reach r = { 1, 2, 3, 0, 0, 0 };
  lua_pushliteral(L, "");
  for (int i = 1; i <= 3; i++) { /* its own tables are not looked at */
    lua_pushvalue(L, i);
    lua_pushboolean(L, 1);
    lua_rawset(L, r.seen);
  }
  reach_thread(L, &r, L, 4);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  reach(L, &r, 4);
  lua_pushvalue(L, LUA_REGISTRYINDEX);
  reach(L, &r, 4);
  while (r.head < r.tail) {
    lua_rawgeti(L, r.queue, ++r.head);
    lua_rawgeti(L, r.queue, ++r.head);
    for (lua_Integer k = r.head - 1; k <= r.head; k++) {
      lua_pushnil(L);
      lua_rawseti(L, r.queue, k);
    }
    switch (lua_type(L, 5)) {
      case LUA_TTABLE: reach_table(L, &r, 5, 6); break;
      case LUA_TFUNCTION: reach_function(L, &r, 5, 6); break;
      case LUA_TUSERDATA: reach_userdata(L, &r, 5, 6); break;
      default: reach_thread(L, &r, lua_tothread(L, 5), 6);
    }
    lua_settop(L, 4);
  }
  lua_pushvalue(L, r.found);
  return 1;
}

/* own(): bytes of the engine's own objects */
static int watch_own (lua_State *L) {
  lua_pushinteger(L, (lua_Integer)getlib(L)->context->object_bytes);
  return 1;
}

/* }====================================================== */

static const luaL_Reg functions[] = {
  { "profile", watch_profile }, { "rows", watch_rows },
  { "events", watch_events },   { "storage", watch_storage },
  { "states", watch_states },   { "graph", watch_graph },
  { "source", watch_source },   { "reachable", watch_reachable },
  { "own", watch_own },         { NULL, NULL },
};

void push_watch (lua_State *L) {
  lua_newtable(L);
  addfunctions(L, functions);
}
