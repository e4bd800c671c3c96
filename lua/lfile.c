/* lfile.c - whole files as strings of Lua, and folders. */

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

/* io.make_folder(path) */
static int make_folder (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  guard(L, folder_make(path));
  return 0;
}

/* names(path): those in a folder, each with a zero behind, as a string */
static int list_folder (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(folder_names(path)));
  const fnn_Tensor *x = *box;
  lua_pushlstring(L, tensor_data(x), (size_t)x->numel);
  box_empty(L, -2);
  return 1;
}

static int sweep_folder (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  int n = 0;
  guard(L, n = folder_sweep(path));
  lua_pushinteger(L, n);
  return 1;
}

static int remove_file (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  guard(L, file_remove(path));
  return 0;
}

void push_folder (lua_State *L) {
  static const luaL_Reg folder[] = { { "names", list_folder },
                                     { "sweep", sweep_folder },
                                     { "remove", remove_file },
                                     { NULL, NULL } };
  lua_createtable(L, 0, 3);
  addfunctions(L, folder);
}

static const luaL_Reg functions[] = {
  { "read_text", read_text },
  { "write_text", write_text },
  { "make_folder", make_folder },
  { NULL, NULL },
};

void open_file (lua_State *L) {
  lua_getfield(L, -1, "io");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
