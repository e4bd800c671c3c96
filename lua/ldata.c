/* ldata.c - datasets and loaders in Lua.  Readers of files and what is built
** of them are in fnn/data.lua. */

#include <string.h>

#include "../src/data/data.h"
#include "lbox.h"

static fnn_Dataset *checkdataset (lua_State *L, int i) {
  return checkobject(L, i, DATASET);
}

static fnn_Loader *checkloader (lua_State *L, int i) {
  return checkobject(L, i, LOADER);
}

/* Pushes n empty boxes of tensors; to has their places. */
static void push_boxes (lua_State *L, int n, void ***to) {
  for (int k = 0; k < n; k++) to[k] = newbox(L, TENSOR);
}

static void fill_boxes (int n, fnn_Tensor *const *x, void ***to) {
  for (int k = 0; k < n; k++) *to[k] = fnn_retain(x[k]);
}

/*
** {======================================================
** Datasets
** =======================================================
*/

/* Raises for a key of the table at i that a field does not have. */
static void check_keys (lua_State *L, int i) {
  lua_pushnil(L);
  while (lua_next(L, i)) {
    lua_pop(L, 1);
    bool name = lua_type(L, -1) == LUA_TSTRING;
    const char *s = name ? lua_tostring(L, -1) : "";
    if (strcmp(s, "dtype") == 0 || strcmp(s, "scale") == 0) continue;
    if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) != 1)
      raise_error(L, "a field is { tensor, dtype =, scale = }: got '%s'", s);
  }
}

/* A field from a tensor, or from { tensor, dtype =, scale = }. */
static fnn_DataField checkfield (lua_State *L, int i) {
  fnn_DataField f = { .x = testtensor(L, i), .scale = 1 };
  if (f.x != NULL) return f;
  luaL_checktype(L, i, LUA_TTABLE);
  lua_rawgeti(L, i, 1);
  f.x = testtensor(L, -1);
  if (f.x == NULL)
    raise_error(L,
                "TensorDataset: expected a tensor, or "
                "{ tensor, dtype =, scale = }, got a table of %s",
                push_type_name(L, -1));
  lua_pop(L, 1); /* the table holds it */
  check_keys(L, i);
  f.convert = true;
  f.dtype = opt_dtype(L, i, FNN_F32);
  f.scale = opt_number(L, i, "scale", 1);
  return f;
}

/* data.TensorDataset(x, y, ...): fields of tensors with as many rows */
static int new_dataset (lua_State *L) {
  int n = lua_gettop(L);
  luaL_checkany(L, 1);
  luaL_argcheck(L, n <= FIELDS, n, "too many tensors");
  fnn_DataField f[FIELDS];
  for (int k = 0; k < n; k++) f[k] = checkfield(L, k + 1);
  void **box = newbox(L, DATASET);
  guard(L, *box = fnn_retain(fnn_tensor_dataset(n, f)));
  return 1;
}

static const char *const windows_options[] = { "step", NULL };

/* data.Windows(ids, length [, { step = 1 }]) */
static int new_windows (lua_State *L) {
  fnn_Tensor *ids = checktensor(L, 1);
  int64_t length = luaL_checkinteger(L, 2);
  int64_t step = opt_integer(L, options(L, 3, windows_options), "step", 1);
  void **box = newbox(L, DATASET);
  guard(L, *box = fnn_retain(fnn_windows(ids, length, step)));
  return 1;
}

/* data.bytes(s): those of a string, (n) of u8 */
static int data_bytes (lua_State *L) {
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  int64_t shape = (int64_t)n;
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_tensor(FNN_U8, 1, &shape, s)));
  return 1;
}

static void check_list (lua_State *L, const fnn_Tensor *ids) {
  bool list = ids->ndim == 1 && tensor_is_dense(ids) && ids->dtype == FNN_I64;
  luaL_argcheck(L, list, 2, "expected a list of ids");
}

/* Ids as the host reads them: datasets are in its memory. */
static const int64_t *ids_data (const fnn_Tensor *ids) {
  return tensor_data(tensor_move(ids, device_cpu()));
}

/* Items go where new tensors live. */
static void read_items (fnn_Dataset *d, const fnn_Tensor *ids,
                        const fnn_Device *to, fnn_Tensor **x) {
  fnn_dataset_read(d, ids->numel, ids_data(ids), x);
  for (int k = 0; k < d->nfields; k++) x[k] = tensor_move(x[k], to);
}

static int dataset_len (lua_State *L) {
  lua_pushinteger(L, fnn_dataset_size(checkdataset(L, 1)));
  return 1;
}

/* ds:items(ids [, field]) with a field: that one alone. */
static int dataset_field (lua_State *L, fnn_Dataset *d, fnn_Tensor *ids) {
  int k = (int)checkplace(L, 3, fnn_dataset_fields(d), "field");
  void **to = newbox(L, TENSOR);
  const fnn_Device *device = getlib(L)->device;
  guard(L,
        *to = fnn_retain(tensor_move(
            fnn_dataset_read_field(d, k, ids->numel, ids_data(ids)), device)));
  return 1;
}

/* ds:items(ids [, field]): a tensor a field, of the items with these ids (from
** 0) */
static int dataset_items (lua_State *L) {
  fnn_Dataset *d = checkdataset(L, 1);
  bool one = !lua_isnoneornil(L, 3);
  fnn_Tensor *ids = checkids(L, 2, device_cpu()), *x[FIELDS];
  check_list(L, ids);
  if (one) return dataset_field(L, d, ids);
  void **to[FIELDS];
  int n = fnn_dataset_fields(d);
  push_boxes(L, n, to);
  const fnn_Device *device = getlib(L)->device;
  guard(L, read_items(d, ids, device, x); fill_boxes(n, x, to));
  return n;
}

/* Fills the boxes with the fields of one item, without the batch's dim. */
static void read_item (fnn_Dataset *d, int64_t id, const fnn_Device *device,
                       void ***to) {
  fnn_Tensor *x[FIELDS];
  fnn_dataset_read(d, 1, &id, x);
  for (int k = 0; k < d->nfields; k++)
    x[k] = fnn_select(tensor_move(x[k], device), 0, 0);
  fill_boxes(d->nfields, x, to);
}

/* ds[i]: the fields of item i, which counts from 1, in a table; nil past the
** last. */
static int dataset_item (lua_State *L, fnn_Dataset *d) {
  int64_t size = fnn_dataset_size(d), p = lua_tointeger(L, 2);
  if (p == size + 1) return 0;
  int64_t id = place(L, p, size, "dataset");
  int n = fnn_dataset_fields(d);
  void **to[FIELDS];
  luaL_checkstack(L, n + 4, "dataset");
  push_boxes(L, n, to);
  const fnn_Device *device = getlib(L)->device;
  guard(L, read_item(d, id, device, to));
  lua_createtable(L, n, 0);
  lua_insert(L, -n - 1);
  for (int k = n; k >= 1; k--) lua_rawseti(L, -k - 1, k);
  return 1;
}

/* ds.classes: a list of names, or nil where there are none. */
static int dataset_classes (lua_State *L, const fnn_Dataset *d) {
  int64_t n = fnn_dataset_class_count(d);
  if (n == 0) return 0;
  lua_createtable(L, (int)min64(n, INT32_MAX), 0);
  const char *s = d->classes->text;
  for (int64_t i = 0; i < n; i++, s += strlen(s) + 1) {
    lua_pushstring(L, s);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* Upvalue 2 is the class's own __index. */
static int dataset_index (lua_State *L) {
  if (lua_isinteger(L, 2)) return dataset_item(L, checkdataset(L, 1));
  if (lua_type(L, 2) == LUA_TSTRING &&
      strcmp(lua_tostring(L, 2), "classes") == 0)
    return dataset_classes(L, checkdataset(L, 1));
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

/* ds:fields(): { { shape =, dtype = }, ... } of one item */
static int dataset_fields (lua_State *L) {
  fnn_Dataset *d = checkdataset(L, 1);
  lua_newtable(L);
  for (int k = 0; k < d->nfields; k++) {
    const Field *f = &d->fields[k];
    lua_createtable(L, 0, 2);
    lua_createtable(L, f->ndim, 0);
    for (int i = 0; i < f->ndim; i++) {
      lua_pushinteger(L, f->shape[i]);
      lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "shape");
    lua_pushstring(L, fnn_dtype_name(f->dtype));
    lua_setfield(L, -2, "dtype");
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* ds:subset(ids) */
static int dataset_subset (lua_State *L) {
  fnn_Dataset *d = checkdataset(L, 1);
  fnn_Tensor *ids = checkids(L, 2, device_cpu());
  check_list(L, ids);
  void **box = newbox(L, DATASET);
  guard(L, *box = fnn_retain(fnn_subset(d, ids->numel, ids_data(ids))));
  return 1;
}

static int dataset_tostring (lua_State *L) {
  fnn_Dataset *d = checkdataset(L, 1);
  lua_pushfstring(L, "%s of %I items", d->kind->name, (LUAI_UACINT)d->n);
  for (int k = 0; k < d->nfields; k++) {
    const Field *f = &d->fields[k];
    ShapeText text;
    lua_pushfstring(L, "%s%s %s", k == 0 ? ": " : ", ",
                    fnn_dtype_name(f->dtype),
                    shape_print(&text, f->ndim, f->shape));
    lua_concat(L, 2);
  }
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Loaders
** =======================================================
*/

static const char *const loader_options[] = { "batch",      "shuffle",
                                              "seed",       "drop_last",
                                              "prefetch",   "device",
                                              "pin_memory", NULL };

/* data.loader(ds, options): of a C dataset; DataLoader in data.lua */
static int new_loader (lua_State *L) {
  fnn_Dataset *d = checkdataset(L, 1);
  int at = options(L, 2, loader_options);
  fnn_LoaderOptions o = {
    .batch = opt_integer(L, at, "batch", 1),
    .shuffle = opt_boolean(L, at, "shuffle", false),
    .drop_last = opt_boolean(L, at, "drop_last", false),
    .seed = (uint64_t)opt_integer(L, at, "seed", 0),
    .prefetch = (int)opt_integer(L, at, "prefetch", 0),
    .device = opt_device(L, at),
    .pageable = !opt_boolean(L, at, "pin_memory", true),
  };
  void **box = newbox(L, LOADER);
  guard(L, *box = fnn_retain(fnn_loader(d, &o)));
  return 1;
}

/* data.loader_facts(loader): what decides which items a batch has */
static int loader_facts (lua_State *L) {
  const fnn_Loader *l = checkloader(L, 1);
  const fnn_LoaderOptions *o = loader_settings(l);
  lua_createtable(L, 0, 5);
  lua_pushinteger(L, fnn_dataset_size(fnn_loader_dataset(l)));
  lua_setfield(L, -2, "items");
  lua_pushinteger(L, o->batch);
  lua_setfield(L, -2, "batch_size");
  lua_pushinteger(L, (lua_Integer)o->seed);
  lua_setfield(L, -2, "seed");
  lua_pushboolean(L, o->shuffle);
  lua_setfield(L, -2, "shuffle");
  lua_pushboolean(L, o->drop_last);
  lua_setfield(L, -2, "drop_last");
  return 1;
}

/* loader:next(): a tensor a field, or nothing at the epoch's end */
static int loader_next (lua_State *L) {
  fnn_Loader *l = checkloader(L, 1);
  fnn_Tensor *x[FIELDS];
  void **to[FIELDS];
  bool more = false;
  int n = fnn_dataset_fields(fnn_loader_dataset(l));
  push_boxes(L, n, to);
  guard(L, more = fnn_loader_next(l, x); if (more) fill_boxes(n, x, to));
  return more ? n : 0;
}

/* for x, y in loader do: the batches of an epoch; where it ends, the cursor
** goes to the next one. */
static int loader_call (lua_State *L) {
  fnn_Loader *l = checkloader(L, 1);
  int64_t epoch, batch;
  fnn_loader_cursor(l, &epoch, &batch);
  if (batch < fnn_loader_batches(l)) return loader_next(L);
  guard(L, fnn_loader_start(l, epoch + 1, 0));
  return 0;
}

static int loader_tostring (lua_State *L) {
  int64_t n = fnn_loader_batches(checkloader(L, 1));
  lua_pushfstring(L, "DataLoader of %I batches", (LUAI_UACINT)n);
  return 1;
}

/* loader:start(epoch, batch): epochs and batches that were done, so from 0 */
static int loader_start (lua_State *L) {
  fnn_Loader *l = checkloader(L, 1);
  lua_Integer epoch = luaL_checkinteger(L, 2);
  lua_Integer batch = luaL_optinteger(L, 3, 0);
  guard(L, fnn_loader_start(l, epoch, batch));
  lua_settop(L, 1);
  return 1;
}

static int loader_cursor (lua_State *L) {
  int64_t epoch, batch;
  fnn_loader_cursor(checkloader(L, 1), &epoch, &batch);
  lua_pushinteger(L, epoch);
  lua_pushinteger(L, batch);
  return 2;
}

static int loader_len (lua_State *L) {
  lua_pushinteger(L, fnn_loader_batches(checkloader(L, 1)));
  return 1;
}

/* data.order(n, seed, epoch): the ids 0 .. n-1 in the order of that epoch */
static int data_order (lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), epoch = luaL_checkinteger(L, 3);
  uint64_t seed = (uint64_t)luaL_checkinteger(L, 2);
  luaL_argcheck(L, n >= 0, 1, "must not be negative");
  void **box = newbox(L, TENSOR);
  guard(L, fnn_Tensor *x = fnn_empty(1, &n, FNN_I64, NULL);
        fnn_epoch_order(n, seed, epoch, tensor_data(x)); *box = fnn_retain(x));
  return 1;
}

/* data.point(view, x, i): makes the box of view show x's i-th part, so that a
** loop over items makes no boxes */
static int data_point (lua_State *L) {
  checktensor(L, 1);
  void **box = lua_touserdata(L, 1);
  fnn_Tensor *x = checktensor(L, 2);
  int64_t i = checkplace(L, 3, x->ndim > 0 ? x->shape[0] : 0, "point");
  guard(L, fnn_Tensor *y = fnn_retain(fnn_select(x, 0, i)); fnn_release(*box);
        *box = y);
  return 0;
}

/* }====================================================== */

/* data.digits_bytes(): u8 (1797, 8, 8) and i64 (1797), embedded */
static int data_digits_bytes (lua_State *L) {
  void **images = newbox(L, TENSOR), **labels = newbox(L, TENSOR);
  guard(L, fnn_Tensor * y; *images = fnn_retain(fnn_digits(&y));
        *labels = fnn_retain(y));
  return 2;
}

static const luaL_Reg dataset_methods[] = {
  { "items", dataset_items },
  { "fields", dataset_fields },
  { "subset", dataset_subset },
  { NULL, NULL },
};

static const luaL_Reg dataset_metamethods[] = {
  { "__len", dataset_len },
  { "__tostring", dataset_tostring },
  { NULL, NULL },
};

static const luaL_Reg loader_methods[] = {
  { "next", loader_next },
  { "start", loader_start },
  { "cursor", loader_cursor },
  { NULL, NULL },
};

static const luaL_Reg loader_metamethods[] = {
  { "__len", loader_len },
  { "__call", loader_call },
  { "__tostring", loader_tostring },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "TensorDataset", new_dataset },
  { "Windows", new_windows },
  { "bytes", data_bytes },
  { "loader", new_loader },
  { "loader_facts", loader_facts },
  { "order", data_order },
  { "point", data_point },
  { "digits_bytes", data_digits_bytes },
  { NULL, NULL },
};

void open_data (lua_State *L) {
  newclass(L, DATASET, "fnn.Dataset", dataset_metamethods);
  addmethods(L, DATASET, dataset_methods);
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[DATASET]);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getfield(L, -2, "__index");
  lua_pushcclosure(L, dataset_index, 2);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  newclass(L, LOADER, "fnn.Loader", loader_metamethods);
  addmethods(L, LOADER, loader_methods);
  lua_getfield(L, -1, "data");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
