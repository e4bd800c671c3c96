/* lsources.c - in Lua: datasets that are read as they are asked for, and
** files of JSON lines.  The rest is in fnn/data/. */

#include <string.h>

#include "../src/data/data.h"
#include "lbox.h"

static const char *const folder_options[] = { "h", "w", "gray", "one_hot",
                                              NULL };

/* data.image_folder(path, { h =, w =, gray =, one_hot = }): ImageFolder in
** fnn/data/files.lua */
static int image_folder (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  int at = options(L, 2, folder_options);
  fnn_ImageOptions o = {
    .h = opt_integer(L, at, "h", 0),
    .w = opt_integer(L, at, "w", 0),
    .gray = opt_boolean(L, at, "gray", false),
    .one_hot = opt_boolean(L, at, "one_hot", false),
  };
  void **box = newbox(L, DATASET);
  guard(L, *box = fnn_retain(fnn_image_folder(path, &o)));
  return 1;
}

/* ds:flip_horizontal([width]) */
static int flip_horizontal (lua_State *L) {
  fnn_Dataset *d = checkobject(L, 1, DATASET);
  int64_t width = luaL_optinteger(L, 2, 0);
  void **box = newbox(L, DATASET);
  guard(L, *box = fnn_retain(fnn_mirrored(d, width)));
  return 1;
}

/* io.read_image(path [, { channels = }]) */
static int read_image (lua_State *L) {
  static const char *const names[] = { "channels", NULL };
  const char *path = luaL_checkstring(L, 1);
  int o = options(L, 2, names);
  int64_t channels = opt_integer(L, o, "channels", 0);
  luaL_argcheck(L, channels >= 0 && channels <= 4, 2,
                "channels: expected 0 to 4");
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_image_read(path, (int)channels)));
  return 1;
}

static int has_jpeg (lua_State *L) {
  lua_pushboolean(L, fnn_has_jpeg());
  return 1;
}

/*
** {======================================================
** JSON lines
** =======================================================
*/

static fnn_Jsonl *checkjsonl (lua_State *L, int i) {
  return checkobject(L, i, JSONL);
}

/* The field { name, dtype =, shape = } on the top, which has been checked to
** be one and stays in its list. */
static void read_field (lua_State *L, fnn_JsonlField *f) {
  int t = lua_gettop(L);
  lua_rawgeti(L, t, 1);
  f->name = luaL_checkstring(L, -1);
  f->dtype = opt_dtype(L, t, FNN_F32);
  lua_getfield(L, t, "shape");
  f->ndim = -1;
  if (!lua_isnil(L, -1)) {
    int next;
    f->ndim = checkshape(L, lua_gettop(L), f->shape, &next);
  }
  lua_settop(L, t - 1);
}

static const char *const jsonl_options[] = { "shuffle", "seed", "reuse",
                                             NULL };

/* data.jsonl(path, { field, ... }, options): JsonlStream in
** fnn/data/sources.lua */
static int new_jsonl (lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  int at = options(L, 3, jsonl_options);
  fnn_JsonlOptions o = {
    .shuffle = opt_integer(L, at, "shuffle", 0),
    .seed = (uint64_t)opt_integer(L, at, "seed", 0),
    .reuse = opt_boolean(L, at, "reuse", false),
  };
  int n = (int)lua_rawlen(L, 2);
  luaL_argcheck(L, n >= 1 && n <= countof(o.field), 2, "too many fields");
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, 2, k + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    read_field(L, &o.field[k]);
  }
  o.nfields = n;
  void **box = newbox(L, JSONL);
  guard(L, *box = fnn_retain(fnn_jsonl_open(path, &o)));
  return 1;
}

/* A batch where batches go. */
static int64_t next_batch (fnn_Jsonl *j, int64_t n, bool whole,
                           const fnn_Device *d, void ***to) {
  fnn_Tensor *x[FIELDS];
  int64_t got = fnn_jsonl_next(j, n, x);
  if (got == 0 || (whole && got < n)) return 0;
  for (int k = 0; k < fnn_jsonl_fields(j); k++)
    *to[k] = fnn_retain(tensor_move(x[k], d));
  return got;
}

/* j:_next(n, whole, device): a tensor a field of up to n items, of n if whole;
** or nothing */
static int jsonl_next (lua_State *L) {
  fnn_Jsonl *j = checkjsonl(L, 1);
  int64_t n = luaL_checkinteger(L, 2), got = 0;
  bool whole = lua_toboolean(L, 3);
  const fnn_Device *d = checkdevice(L, 4);
  void **to[FIELDS];
  int fields = fnn_jsonl_fields(j);
  luaL_checkstack(L, fields, "JsonlStream");
  for (int k = 0; k < fields; k++) to[k] = newbox(L, TENSOR);
  guard(L, got = next_batch(j, n, whole, d, to));
  return got > 0 ? fields : 0;
}

static int jsonl_start (lua_State *L) {
  fnn_Jsonl *j = checkjsonl(L, 1);
  int64_t epoch = luaL_checkinteger(L, 2);
  guard(L, fnn_jsonl_start(j, epoch));
  return 0;
}

/* j:_skip(n): how many items were left out */
static int jsonl_skip (lua_State *L) {
  fnn_Jsonl *j = checkjsonl(L, 1);
  int64_t n = luaL_checkinteger(L, 2), done = 0;
  guard(L, done = fnn_jsonl_skip(j, n));
  lua_pushinteger(L, done);
  return 1;
}

/* }====================================================== */

/* For sources.lua alone, as their names say. */
static const luaL_Reg jsonl_methods[] = {
  { "_next", jsonl_next },
  { "_start", jsonl_start },
  { "_skip", jsonl_skip },
  { NULL, NULL },
};

static const luaL_Reg dataset_methods[] = {
  { "flip_horizontal", flip_horizontal },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "image_folder", image_folder },
  { "jsonl", new_jsonl },
  { NULL, NULL },
};

static const luaL_Reg io_functions[] = {
  { "read_image", read_image },
  { "has_jpeg", has_jpeg },
  { NULL, NULL },
};

void open_sources (lua_State *L) {
  newclass(L, JSONL, "fnn.Jsonl", NULL);
  addmethods(L, JSONL, jsonl_methods);
  addmethods(L, DATASET, dataset_methods);
  lua_getfield(L, -1, "data");
  addfunctions(L, functions);
  lua_pop(L, 1);
  lua_getfield(L, -1, "io");
  addfunctions(L, io_functions);
  lua_pop(L, 1);
}
