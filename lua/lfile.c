/* lfile.c - whole files as strings of Lua. */

#include "../src/io/io.h"
#include "lbox.h"

/* io.read_text(path): the file as a string */
static int read_text (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(file_read(path)));
  const fnn_Tensor *x = *box;
  lua_pushlstring(L, tensor_data(x), (size_t)x->numel);
  box_empty(L, -2);
  return 1;
}

/* io.write_text(path, text) */
static int write_text (lua_State *L) {
  size_t n;
  const char *path = luaL_checkstring(L, 1);
  const char *s = luaL_checklstring(L, 2, &n);
  guard(L, file_write(path, s, (int64_t)n));
  return 0;
}

static const luaL_Reg functions[] = {
  { "read_text", read_text },
  { "write_text", write_text },
  { NULL, NULL },
};

void open_file (lua_State *L) {
  lua_getfield(L, -1, "io");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
