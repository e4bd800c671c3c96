/* lindex.c - elements named by ids, their order, and products, in Lua. */

#include "lbox.h"

/*
** {======================================================
** Ids
** =======================================================
*/

/* x:index_select(dim, ids): ids is an integer tensor or a table */
static int index_index_select (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  fnn_Tensor *ids = checkids(L, 3, x->storage->device);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_index_select(x, dim, ids)));
  return 1;
}

static int index_gather (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  fnn_Tensor *ids = checkids(L, 3, x->storage->device);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_gather(x, dim, ids)));
  return 1;
}

/* x:scatter_add(dim, ids, src) */
static int index_scatter_add (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  fnn_Tensor *src = checktensor(L, 4);
  fnn_Tensor *ids = checkids(L, 3, x->storage->device);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_scatter_add(x, dim, ids, src)));
  return 1;
}

static int index_scatter_add_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  fnn_Tensor *src = checktensor(L, 4);
  fnn_Tensor *ids = checkids(L, 3, x->storage->device);
  guard(L, fnn_copy_(x, fnn_scatter_add(x, dim, ids, src)));
  lua_settop(L, 1);
  return 1;
}

static int index_masked_select (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *mask = checktensor(L, 2);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_masked_select(x, mask)));
  return 1;
}

/* x:nonzero(): the ids of the elements that are not 0, a row each */
static int index_nonzero (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_nonzero(x)));
  return 1;
}

/* ids:one_hot([classes]) */
static int index_one_hot (lua_State *L) {
  fnn_Tensor *ids = checktensor(L, 1);
  int64_t classes = luaL_optinteger(L, 2, -1);
  luaL_argcheck(L, classes >= 0 || lua_isnoneornil(L, 2), 2,
                "expected 0 classes or more");
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_one_hot(ids, classes)));
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Order
** =======================================================
*/

/* A boolean, or the option of that name in a table. */
static bool flag (lua_State *L, int i, const char *name, bool d) {
  const char *const names[] = { name, NULL };
  if (lua_isboolean(L, i)) return lua_toboolean(L, i);
  return opt_boolean(L, options(L, i, names), name, d);
}

/* Puts nil before options that stand where the dim may. */
static void skip_dim (lua_State *L, int i) {
  if (!lua_istable(L, i) && !lua_isboolean(L, i)) return;
  lua_pushnil(L);
  lua_insert(L, i);
}

/* x:topk(k [, dim] [, { largest = false }]): values and their ids */
static int index_topk (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *t;
  int64_t k = luaL_checkinteger(L, 2);
  skip_dim(L, 3);
  int dim = optline(L, 3, x, -1);
  bool largest = flag(L, 4, "largest", true);
  void **y = newbox(L, TENSOR), **ids = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_topk(x, k, dim, largest, &t));
        *ids = fnn_retain(t));
  return 2;
}

/* x:sort([dim] [, { descending = true }]): values and their ids */
static int index_sort (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *t;
  skip_dim(L, 2);
  int dim = optline(L, 2, x, -1);
  bool descending = flag(L, 3, "descending", false);
  void **y = newbox(L, TENSOR), **ids = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_sort(x, dim, descending, &t));
        *ids = fnn_retain(t));
  return 2;
}

/* x:argsort(...): the ids alone */
static int index_argsort (lua_State *L) {
  index_sort(L);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Products
** =======================================================
*/

static int index_matmul (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_matmul(x, y)));
  return 1;
}

/* x:linear(weight [, bias [, act]]): act(x weight' + bias), act the name of a
** function of one number */
static int index_linear (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *w = checktensor(L, 2);
  fnn_Tensor *b = opttensor(L, 3);
  const char *name = luaL_optstring(L, 4, NULL);
  int act = name != NULL ? fnn_map_find(name) : -1;
  if (name != NULL && act < 0)
    return raise_error(L, "linear: no function of one number is called '%s'",
                       name);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_linear(x, w, b, act)));
  return 1;
}

/* fnn.einsum("ij,jk->ik", x, y ...) or a table of tensors */
static int index_einsum (lua_State *L) {
  const char *spec = luaL_checkstring(L, 1);
  if (lua_type(L, 2) != LUA_TTABLE) {
    int given = lua_gettop(L) - 1;
    lua_createtable(L, given, 0);
    lua_insert(L, 2);
    for (int i = given; i >= 1; i--) lua_rawseti(L, 2, i);
  }
  int n;
  fnn_Tensor **x = checktensors(L, 2, &n);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_einsum(spec, n, x)));
  return 1;
}

/* }====================================================== */

static const luaL_Reg methods[] = { { "index_select", index_index_select },
                                    { "gather", index_gather },
                                    { "scatter_add", index_scatter_add },
                                    { "scatter_add_", index_scatter_add_ },
                                    { "masked_select", index_masked_select },
                                    { "nonzero", index_nonzero },
                                    { "one_hot", index_one_hot },
                                    { "topk", index_topk },
                                    { "sort", index_sort },
                                    { "argsort", index_argsort },
                                    { "matmul", index_matmul },
                                    { "linear", index_linear },
                                    { NULL, NULL } };

static const luaL_Reg functions[] = { { "matmul", index_matmul },
                                      { "einsum", index_einsum },
                                      { NULL, NULL } };

void open_index (lua_State *L) {
  addmethods(L, TENSOR, methods);
  addfunctions(L, functions);
}
