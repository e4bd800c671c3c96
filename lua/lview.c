/* lview.c - views of tensors, and tensors put side by side, in Lua. */

#include "lbox.h"

/*
** {======================================================
** The same elements in another shape
** =======================================================
*/

/* x:reshape(sizes ...) or x:reshape{sizes}; one size may be -1 */
static int view_reshape (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t shape[FNN_MAXDIM];
  int next, n = checkshape(L, 2, shape, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_reshape(x, n, shape)));
  return 1;
}

/* x:flatten([first [, last]]): those dims as one */
static int view_flatten (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int first = 0, last = -1;
  if (x->ndim > 0) {
    first = optdim(L, 2, x, 1);
    last = optdim(L, 3, x, -1);
  }
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_flatten(x, first, last)));
  return 1;
}

/* x:unflatten(dim, sizes): that dim as several, one of which may be -1 */
static int view_unflatten (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t sizes[FNN_MAXDIM];
  int dim = checkdim(L, 2, x), next;
  int n = checkshape(L, 3, sizes, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_unflatten(x, dim, n, sizes)));
  return 1;
}

/* x:squeeze([dim]): without that dim of size 1, or without all such */
static int view_squeeze (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  bool all = lua_isnoneornil(L, 2);
  int dim = all ? 0 : checkdim(L, 2, x);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(all ? fnn_squeeze_all(x) : fnn_squeeze(x, dim)));
  return 1;
}

static int view_unsqueeze (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  luaL_checkinteger(L, 2);
  int dim = checknewdim(L, 2, x->ndim);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_unsqueeze(x, dim)));
  return 1;
}

static int view_transpose (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int a = checkdim(L, 2, x), b = checkdim(L, 3, x);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_transpose(x, a, b)));
  return 1;
}

/* x:t(): a matrix transposed */
static int view_t (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  if (x->ndim != 2)
    return raise_error(L, "t: expected a matrix, got shape %s", shape_text(x));
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_transpose(x, 0, 1)));
  return 1;
}

static int view_permute (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dims[FNN_MAXDIM], next, n = checkdims(L, 2, x, dims, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_permute(x, n, dims)));
  return 1;
}

/* x:expand(sizes ...): dims of size 1 stretched without a copy; -1 keeps */
static int view_expand (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t shape[FNN_MAXDIM];
  int next, n = checkshape(L, 2, shape, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_expand(x, n, shape)));
  return 1;
}

static int view_expand_as (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_expand(x, y->ndim, y->shape)));
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Parts
** =======================================================
*/

/* x:narrow(dim, start, length) */
static int view_narrow (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  int64_t start = checkstart(L, 3, x->shape[dim], "narrow");
  int64_t length = luaL_checkinteger(L, 4);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_narrow(x, dim, start, length)));
  return 1;
}

/* x:slice(dim [, first [, last [, step]]]): inclusive, as string.sub */
static int view_slice (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  int64_t start, step;
  int64_t length = checkrange(L, 3, x->shape[dim], &start, &step);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_slice(x, dim, start, length, step)));
  return 1;
}

/* x:select(dim, place): that place alone, without the dim */
static int view_select (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  int64_t i = checkplace(L, 3, x->shape[dim], "select");
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_select(x, dim, i)));
  return 1;
}

/* x:diagonal([offset [, a, b]]) of dims a and b, else of the first two */
static int view_diagonal (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t offset = luaL_optinteger(L, 2, 0);
  int a = optdim(L, 3, x, 1), b = optdim(L, 4, x, 2);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_diagonal(x, offset, a, b)));
  return 1;
}

/* Appends the part of x to the table on the top, as its k-th. */
static void append_part (lua_State *L, fnn_Tensor *x, int dim, int64_t start,
                         int64_t length, int64_t k) {
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_narrow(x, dim, start, length)));
  lua_rawseti(L, -2, k);
}

/* Pushes a table of the parts of size each, the last one shorter. */
static int push_parts (lua_State *L, fnn_Tensor *x, int dim, int64_t size) {
  int64_t n = x->shape[dim];
  lua_newtable(L);
  if (n == 0) append_part(L, x, dim, 0, 0, 1);
  for (int64_t start = 0, k = 1; start < n; start += size, k++)
    append_part(L, x, dim, start, min64(size, n - start), k);
  return 1;
}

/* x:split(size [, dim]), or x:split({sizes} [, dim]): a table of views */
static int view_split (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = optdim(L, 3, x, 1);
  if (lua_type(L, 2) != LUA_TTABLE) {
    int64_t size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size > 0, 2, "expected a size of 1 or more");
    return push_parts(L, x, dim, size);
  }
  int64_t start = 0, n = (int64_t)lua_rawlen(L, 2);
  lua_newtable(L);
  for (int64_t k = 1; k <= n; k++) {
    lua_rawgeti(L, 2, k);
    int64_t size = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    append_part(L, x, dim, start, size, k);
    start += size;
  }
  if (start != x->shape[dim])
    return raise_error(L,
                       "split: the sizes make %I of the %I of the "
                       "dimension",
                       (LUAI_UACINT)start, (LUAI_UACINT)x->shape[dim]);
  return 1;
}

/* x:chunk(n [, dim]): a table of n views of one size, the last one shorter */
static int view_chunk (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t n = luaL_checkinteger(L, 2);
  int dim = optdim(L, 3, x, 1);
  luaL_argcheck(L, n > 0, 2, "expected 1 chunk or more");
  int64_t size = x->shape[dim];
  return push_parts(L, x, dim, max64(1, size / n + (size % n != 0)));
}

/* x:unbind([dim]): a table of the views of each place, without the dim */
static int view_unbind (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = optdim(L, 2, x, 1);
  lua_newtable(L);
  for (int64_t i = 0; i < x->shape[dim]; i++) {
    void **box = newbox(L, TENSOR);
    guard(L, *box = fnn_retain(fnn_select(x, dim, i)));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Joining and moving
** =======================================================
*/

/* fnn.cat({tensors} [, dim]) */
static int view_cat (lua_State *L) {
  int n;
  lua_settop(L, 2);
  fnn_Tensor **x = checktensors(L, 1, &n);
  luaL_argcheck(L, n > 0, 1, "cat: needs at least one tensor");
  int dim = x[0]->ndim > 0 ? optdim(L, 2, x[0], 1) : 0;
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_cat(n, x, dim)));
  return 1;
}

/* fnn.stack({tensors} [, dim]) */
static int view_stack (lua_State *L) {
  int n;
  lua_settop(L, 2);
  fnn_Tensor **x = checktensors(L, 1, &n);
  luaL_argcheck(L, n > 0, 1, "stack: needs at least one tensor");
  int dim = checknewdim(L, 2, x[0]->ndim);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_stack(n, x, dim)));
  return 1;
}

/* x:tile(counts ...): repeat is a word of Lua's own */
static int view_tile (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t times[FNN_MAXDIM];
  int next, n = checkshape(L, 2, times, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_repeat(x, n, times)));
  return 1;
}

/* x:flip(dims ...): all dims when none is given */
static int view_flip (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dims[FNN_MAXDIM], next, n = checkdims(L, 2, x, dims, &next);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_flip(x, n, dims)));
  return 1;
}

/* x:roll(shift [, dim]) */
static int view_roll (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t shift = luaL_checkinteger(L, 2);
  int dim = optdim(L, 3, x, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_roll(x, shift, dim)));
  return 1;
}

static int view_tril (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t diagonal = luaL_optinteger(L, 2, 0);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_tril(x, diagonal)));
  return 1;
}

static int view_triu (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int64_t diagonal = luaL_optinteger(L, 2, 0);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_triu(x, diagonal)));
  return 1;
}

/* }====================================================== */

static const luaL_Reg methods[] = { { "reshape", view_reshape },
                                    { "view", view_reshape },
                                    { "flatten", view_flatten },
                                    { "unflatten", view_unflatten },
                                    { "squeeze", view_squeeze },
                                    { "unsqueeze", view_unsqueeze },
                                    { "transpose", view_transpose },
                                    { "t", view_t },
                                    { "permute", view_permute },
                                    { "expand", view_expand },
                                    { "expand_as", view_expand_as },
                                    { "narrow", view_narrow },
                                    { "slice", view_slice },
                                    { "select", view_select },
                                    { "diagonal", view_diagonal },
                                    { "split", view_split },
                                    { "chunk", view_chunk },
                                    { "unbind", view_unbind },
                                    { "tile", view_tile },
                                    { "repeat", view_tile },
                                    { "flip", view_flip },
                                    { "roll", view_roll },
                                    { "tril", view_tril },
                                    { "triu", view_triu },
                                    { NULL, NULL } };

static const luaL_Reg functions[] = { { "cat", view_cat },
                                      { "stack", view_stack },
                                      { NULL, NULL } };

void open_view (lua_State *L) {
  addmethods(L, TENSOR, methods);
  addfunctions(L, functions);
}
