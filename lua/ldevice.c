/* ldevice.c - devices in Lua, and steps that are recorded on one. */

#include "lbox.h"

/* The device whose name is at i, or the default one. */
static const fnn_Device *device_at (lua_State *L, int i) {
  return lua_isnoneornil(L, i) ? getlib(L)->device : checkdevice(L, i);
}

/* fnn.device(name): the name in full, "cuda:0"; raises if there is none */
static int device_device (lua_State *L) {
  lua_pushstring(L, checkdevice(L, 1)->name);
  return 1;
}

/* fnn.best_device(): a card if there is one, else "cpu" */
static int device_best (lua_State *L) {
  const fnn_Device *d = NULL;
  guard(L, d = fnn_best_device());
  lua_pushstring(L, d->name);
  return 1;
}

static void push_device (lua_State *L, const fnn_Device *d) {
  fnn_DeviceInfo info;
  guard(L, info = fnn_device_info(d));
  lua_createtable(L, 0, 5);
  lua_pushstring(L, d->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, info.model);
  lua_setfield(L, -2, "model");
  lua_pushinteger(L, (lua_Integer)info.total);
  lua_setfield(L, -2, "total");
  lua_pushinteger(L, (lua_Integer)info.free);
  lua_setfield(L, -2, "free");
  if (d->host) return;
  lua_pushfstring(L, "%d.%d", info.major, info.minor);
  lua_setfield(L, -2, "capability");
  lua_pushfstring(L, "%d.%d", info.driver / 1000, info.driver % 1000 / 10);
  lua_setfield(L, -2, "driver");
}

/* fnn.devices(): a table of each, the CPU first */
static int device_devices (lua_State *L) {
  int n = 0;
  guard(L, n = fnn_device_count());
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    const fnn_Device *d = NULL;
    guard(L, d = fnn_device_at(i));
    push_device(L, d);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* fnn.synchronize([device]): waits until it has done all it was asked for */
static int device_synchronize (lua_State *L) {
  const fnn_Device *d = device_at(L, 1);
  guard(L, fnn_synchronize(d));
  return 0;
}

static const luaL_Reg functions[] = { { "device", device_device },
                                      { "best_device", device_best },
                                      { "devices", device_devices },
                                      { "synchronize", device_synchronize },
                                      { NULL, NULL } };

/*
** {======================================================
** Steps that are recorded once: for graph_step.lua alone
** =======================================================
*/

static fnn_Capture *checkcapture (lua_State *L, int i) {
  return checkobject(L, i, CAPTURE);
}

/* begin(device): what is asked of it is written down from now on */
static int capture_begin (lua_State *L) {
  const fnn_Device *d = device_at(L, 1);
  void **box = newbox(L, CAPTURE);
  guard(L, *box = fnn_retain(fnn_capture_begin(d)));
  return 1;
}

static int capture_end (lua_State *L) {
  fnn_Capture *c = checkcapture(L, 1);
  guard(L, fnn_capture_end(c));
  return 0;
}

/* stop(): gives up what is being recorded, if anything is */
static int capture_stop (lua_State *L) {
  guard(L, fnn_capture_stop());
  return 0;
}

/* replay(capture): false when it does not hold any more */
static int capture_replay (lua_State *L) {
  fnn_Capture *c = checkcapture(L, 1);
  bool held = false;
  guard(L, held = fnn_capture_replay(c));
  lua_pushboolean(L, held);
  return 1;
}

/* call(f, ...): as pcall, but that f cannot yield, or what comes after would
** be recorded too */
static int capture_call (lua_State *L) {
  luaL_checkany(L, 1);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

/* refuse(what): raises while a step is recorded, for what Lua computes anew
** each time */
static int capture_refuse (lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  if (getlib(L)->context->capture == NULL) return 0;
  return raise_error(L,
                     "%s: not in a step that is recorded (fnn.graph_step): "
                     "its replays run no Lua; call it outside, after the step",
                     what);
}

static const luaL_Reg capture_functions[] = {
  { "begin", capture_begin },
  { "finish", capture_end },
  { "stop", capture_stop },
  { "replay", capture_replay },
  { "refuse", capture_refuse },
  { "call", capture_call },
  { NULL, NULL },
};

void push_capture (lua_State *L) {
  lua_newtable(L);
  addfunctions(L, capture_functions);
}

/* }====================================================== */

void open_device (lua_State *L) {
  newclass(L, CAPTURE, "fnn.Capture", NULL);
  addfunctions(L, functions);
}
