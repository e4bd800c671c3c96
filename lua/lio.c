/* lio.c - files in Lua: safetensors, npy, IDX, CSV, PNG, drawing. */

#include <string.h>

#include "lbox.h"

/* The path at 1: the Lua half passes on what scripts give for one. */
static const char *checkpath (lua_State *L) {
  if (!lua_isstring(L, 1))
    raise_option(L, "expected a path, got %s", push_type_name(L, 1));
  return lua_tostring(L, 1);
}

/*
** {======================================================
** Safetensors
** =======================================================
*/

static fnn_Safetensors *checkreader (lua_State *L, int i) {
  return checkobject(L, i, READER);
}

/* io.open_safetensors(path): a file whose tensors are read one at a time */
static int open_safetensors (lua_State *L) {
  const char *path = checkpath(L);
  void **box = newbox(L, READER);
  guard(L, *box = fnn_retain(fnn_safetensors_open(path)));
  return 1;
}

static int reader_names (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  int64_t n = fnn_safetensors_count(f);
  lua_createtable(L, (int)n, 0);
  for (int64_t i = 0; i < n; i++) {
    lua_pushstring(L, fnn_safetensors_name(f, i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* The index of the tensor named at 2; raises if there is none. */
static int64_t checkname (lua_State *L, fnn_Safetensors *f) {
  const char *name = luaL_checkstring(L, 2);
  int64_t i = fnn_safetensors_find(f, name);
  if (i < 0) raise_error(L, "the file has no tensor '%s'", name);
  return i;
}

static int reader_has (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  lua_pushboolean(L, fnn_safetensors_find(f, luaL_checkstring(L, 2)) >= 0);
  return 1;
}

static int reader_shape (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  const int64_t *shape;
  int n = fnn_safetensors_shape(f, checkname(L, f), &shape);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* f:dtype(name): as the file has it, "F16" */
static int reader_dtype (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  lua_pushstring(L, fnn_safetensors_dtype(f, checkname(L, f)));
  return 1;
}

static int reader_read (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  int64_t i = checkname(L, f);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_safetensors_read(f, i)));
  return 1;
}

static int reader_metadata (lua_State *L) {
  fnn_Safetensors *f = checkreader(L, 1);
  int64_t n = fnn_safetensors_meta_count(f);
  lua_createtable(L, 0, (int)n);
  for (int64_t i = 0; i < n; i++) {
    const char *key = fnn_safetensors_meta_key(f, i);
    lua_pushstring(L, fnn_safetensors_meta(f, key));
    lua_setfield(L, -2, key);
  }
  return 1;
}

/* Adds a pair in the order of the keys: Lua's own order changes from run to
** run, and the same contents are to give the same bytes. */
static void insert_pair (const char **keys, const char **values, int n,
                         const char *key, const char *value) {
  for (; n > 0 && strcmp(keys[n - 1], key) > 0; n--) {
    keys[n] = keys[n - 1];
    values[n] = values[n - 1];
  }
  keys[n] = key;
  values[n] = value;
}

/* Strings of a table's keys and values, in userdata that are pushed; the
** table keeps the strings.  A finalizer may change the table while these are
** made, but not in the walk that fills them. */
static int metadata (lua_State *L, int i, const char ***keys,
                     const char ***values) {
  int most = 0, n = 0;
  *keys = *values = NULL;
  if (lua_isnoneornil(L, i)) return 0;
  luaL_checktype(L, i, LUA_TTABLE);
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) most++;
  *keys = lua_newuserdatauv(L, (size_t)(most + 1) * sizeof **keys, 0);
  *values = lua_newuserdatauv(L, (size_t)(most + 1) * sizeof **values, 0);
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      raise_error(L, "metadata are strings by names: got %s by %s",
                  luaL_typename(L, -1), luaL_typename(L, -2));
    if (n == most)
      raise_error(L, "metadata were added to while they are read");
    insert_pair(*keys, *values, n++, lua_tostring(L, -2), lua_tostring(L, -1));
  }
  return n;
}

/* io.save_safetensors(path, { { name, tensor }, ... } [, metadata]), in this
** order */
static int save_safetensors (lua_State *L) {
  const char *path = checkpath(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 3);
  int n = (int)lua_rawlen(L, 2);
  const char **names =
      lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
  fnn_Tensor **x = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *x, 0);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    names[i] = lua_tostring(L, -2);
    x[i] = testtensor(L, -1);
    if (lua_type(L, -2) != LUA_TSTRING || x[i] == NULL)
      return raise_error(L,
                         "save_safetensors: element %d: expected "
                         "{ name, tensor }",
                         i + 1);
    lua_pop(L, 3);
  }
  const char **keys, **values;
  int nmeta = metadata(L, 3, &keys, &values);
  guard(L, fnn_safetensors_write(path, n, names, x, nmeta, keys, values));
  return 0;
}

/* }====================================================== */

/*
** {======================================================
** Arrays and tables
** =======================================================
*/

static int read_npy (lua_State *L) {
  const char *path = checkpath(L);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_npy_read(path)));
  return 1;
}

static int write_npy (lua_State *L) {
  const char *path = checkpath(L);
  fnn_Tensor *x = checktensor(L, 2);
  guard(L, fnn_npy_write(path, x));
  return 0;
}

static int read_idx (lua_State *L) {
  const char *path = checkpath(L);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_idx_read(path)));
  return 1;
}

/* io.is_file(path) */
static int is_file (lua_State *L) {
  const char *path = checkpath(L);
  bool yes = false;
  guard(L, yes = fnn_is_file(path));
  lua_pushboolean(L, yes);
  return 1;
}

static const char *const download_options[] = { "size", "crc32", NULL };

/* io.download(url, path [, { size =, crc32 = }]): both, or neither */
static int download (lua_State *L) {
  const char *url = luaL_checkstring(L, 1), *path = luaL_checkstring(L, 2);
  int o = options(L, 3, download_options);
  int64_t size = opt_integer(L, o, "size", -1);
  int64_t crc = opt_integer(L, o, "crc32", -1);
  if ((size < 0) != (crc < 0))
    return raise_error(L, "download: size and crc32 go together");
  guard(L, fnn_download(url, path, size, (uint32_t)crc));
  return 0;
}

static const char *const csv_options[] = { "separator", "header", "label",
                                           "dtype", NULL };

/* io.read_csv(path [, options]): the values (rows, columns), a table of the
** columns' names (empty without a header) and, when label names a column,
** its class ids and the classes' names.  Columns count from 1, or -1 from
** the end. */
static int read_csv (lua_State *L) {
  const char *path = checkpath(L);
  int o = options(L, 2, csv_options);
  fnn_CsvOptions c = FNN_CSV_INIT;
  const char *separator = opt_string(L, o, "separator", ",");
  if (strlen(separator) != 1)
    return raise_option(L, "option 'separator': expected one character");
  c.separator = *separator;
  if (o != 0) {
    lua_getfield(L, o, "header");
    if (!lua_isnil(L, -1)) c.header = opt_boolean(L, o, "header", false);
    lua_pop(L, 1);
  }
  int64_t label = opt_integer(L, o, "label", 0);
  if (label != 0) c.label = (int)(label > 0 ? label - 1 : label);
  c.dtype = opt_dtype(L, o, FNN_F32);
  void **values = newbox(L, TENSOR), **labels = newbox(L, TENSOR);
  lua_newtable(L);
  lua_newtable(L);
  void **csv = newbox(L, READER); /* keeps it while its strings are read */
  guard(L, *csv = fnn_retain(fnn_csv_read(path, &c));
        *values = fnn_retain(fnn_csv_values(*csv));
        *labels = fnn_retain(fnn_csv_labels(*csv)));
  int columns = (int)((fnn_Tensor *)*values)->shape[1];
  for (int i = 0; i < columns; i++) {
    const char *name = fnn_csv_column(*csv, i);
    if (name == NULL) break;
    lua_pushstring(L, name);
    lua_rawseti(L, -4, i + 1);
  }
  for (int i = 0; i < fnn_csv_class_count(*csv); i++) {
    lua_pushstring(L, fnn_csv_class(*csv, i));
    lua_rawseti(L, -3, i + 1);
  }
  lua_pop(L, 1);
  /* values, labels, columns, classes -> values, columns, labels, classes */
  lua_rotate(L, -3, -1);
  lua_insert(L, -2);
  if (*labels != NULL) return 4;
  lua_pop(L, 2);
  return 2;
}

/* }====================================================== */

/*
** {======================================================
** Images
** =======================================================
*/

static const char *const png_options[] = { "channels", NULL };

/* io.read_png(path [, { channels = }]): u8 (h, w, c) and its texts */
static int read_png (lua_State *L) {
  const char *path = checkpath(L);
  int o = options(L, 2, png_options);
  int channels = (int)opt_integer(L, o, "channels", 0);
  void **image = newbox(L, TENSOR);
  lua_newtable(L);
  void **png = newbox(L, READER);
  guard(L, *png = fnn_retain(fnn_png_read(path));
        *image = fnn_retain(fnn_png_image(*png, channels)));
  for (int i = 0; i < fnn_png_text_count(*png); i++) {
    const char *key, *text = fnn_png_text(*png, i, &key);
    lua_pushstring(L, text);
    lua_setfield(L, -3, key);
  }
  lua_pop(L, 1);
  return 2;
}

/* io.write_png(path, image [, texts]) */
static int write_png (lua_State *L) {
  const char *path = checkpath(L), **keys, **texts;
  fnn_Tensor *x = checktensor(L, 2);
  int n = metadata(L, 3, &keys, &texts);
  guard(L, fnn_png_write(path, x, n, keys, texts));
  return 0;
}

/* io.encode_png(image [, texts]): the file as a string */
static int encode_png (lua_State *L) {
  const char **keys, **texts;
  fnn_Tensor *x = checktensor(L, 1);
  int n = metadata(L, 2, &keys, &texts);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_png_encode(x, n, keys, texts)));
  const fnn_Tensor *bytes = *box;
  lua_pushlstring(L, fnn_data(bytes), (size_t)fnn_numel(bytes));
  box_empty(L, -2);
  return 1;
}

/* io.draw_text(image, x, y, text [, color [, scale]]): places from 1 */
static int draw_text (lua_State *L) {
  fnn_Tensor *image = checktensor(L, 1);
  lua_Integer x = luaL_checkinteger(L, 2), y = luaL_checkinteger(L, 3);
  const char *text = luaL_checkstring(L, 4);
  lua_Integer color = luaL_optinteger(L, 5, 0xffffff);
  lua_Integer scale = luaL_optinteger(L, 6, 1);
  guard(L,
        fnn_draw_text(image, x - 1, y - 1, (int)scale, (uint32_t)color, text));
  return 0;
}

/* io.draw_rect(image, x, y, w, h [, color [, line]]): line 0 fills it */
static int draw_rect (lua_State *L) {
  fnn_Tensor *image = checktensor(L, 1);
  lua_Integer x = luaL_checkinteger(L, 2), y = luaL_checkinteger(L, 3);
  lua_Integer w = luaL_checkinteger(L, 4), h = luaL_checkinteger(L, 5);
  lua_Integer color = luaL_optinteger(L, 6, 0xffffff);
  lua_Integer line = luaL_optinteger(L, 7, 0);
  guard(L, fnn_draw_rect(image, x - 1, y - 1, w, h, line, (uint32_t)color));
  return 0;
}

/* }====================================================== */

static const luaL_Reg reader_methods[] = {
  { "names", reader_names },
  { "has", reader_has },
  { "shape", reader_shape },
  { "dtype", reader_dtype },
  { "read", reader_read },
  { "metadata", reader_metadata },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "open_safetensors", open_safetensors },
  { "save_safetensors", save_safetensors },
  { "read_npy", read_npy },
  { "write_npy", write_npy },
  { "read_idx", read_idx },
  { "read_csv", read_csv },
  { "is_file", is_file },
  { "download", download },
  { "read_png", read_png },
  { "write_png", write_png },
  { "encode_png", encode_png },
  { "draw_text", draw_text },
  { "draw_rect", draw_rect },
  { NULL, NULL },
};

void open_io (lua_State *L) {
  newclass(L, READER, "fnn.Safetensors", NULL);
  addmethods(L, READER, reader_methods);
  lua_getfield(L, -1, "io");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
