/* llog.c - what fnn/log.lua and what it loads are written with: files that
** grow, checksums, who writes and when. */

#include <time.h>
#include <unistd.h>

#include "../src/io/io.h"
#include "lbox.h"

/* f(text) appends it, f(n) cuts so many bytes off the end, f() closes: the
** box in the second upvalue. */
static int append (lua_State *L) {
  size_t n;
  int box = lua_upvalueindex(2);
  if (lua_isnoneornil(L, 1)) {
    box_empty(L, box);
    return 0;
  }
  Appender *a = checkobject(L, box, READER);
  if (lua_type(L, 1) == LUA_TNUMBER) {
    int64_t cut = luaL_checkinteger(L, 1);
    guard(L, appender_cut(a, cut));
    return 0;
  }
  const char *s = luaL_checklstring(L, 1, &n);
  guard(L, appender_put(a, s, (int64_t)n));
  return 0;
}

/* appender(path, fresh): such an f, and what stands behind the last newline
** in the file; fresh: the file must not be there yet. */
static int new_appender (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  bool fresh = lua_toboolean(L, 2);
  lua_pushvalue(L, lua_upvalueindex(1));
  void **box = newbox(L, READER);
  guard(L, *box = fnn_retain(appender_open(path, fresh)));
  void **text = newbox(L, TENSOR);
  guard(L, *text = fnn_retain(appender_tail(*box)));
  fnn_Tensor *x = *text;
  lua_pushlstring(L, tensor_data(x), (size_t)x->numel);
  box_empty(L, -2);
  lua_replace(L, -2);
  lua_insert(L, -3);
  lua_pushcclosure(L, append, 2);
  lua_insert(L, -2);
  return 2;
}

static int string_crc32c (lua_State *L) {
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  lua_pushinteger(L, (lua_Integer)crc32c(s, (int64_t)n));
  return 1;
}

/* now(): seconds since 1970 */
static int now (lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + 1e-9 * (lua_Number)t.tv_nsec);
  return 1;
}

/* writer(): the machine's name and the process's number */
static int writer (lua_State *L) {
  char host[256];
  if (gethostname(host, sizeof host) != 0) host[0] = '\0';
  host[sizeof host - 1] = '\0';
  lua_pushstring(L, host);
  lua_pushinteger(L, (lua_Integer)getpid());
  return 2;
}

static const luaL_Reg functions[] = {
  { "appender", new_appender },
  { "crc32c", string_crc32c },
  { "now", now },
  { "writer", writer },
  { NULL, NULL },
};

void add_log (lua_State *L) { addfunctions(L, functions); }
