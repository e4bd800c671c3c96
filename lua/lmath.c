/* lmath.c - elementwise functions, operators and reductions in Lua.
**
** Each row of map.def, zip.def and reduce.def is a method and a function of
** its name, x:exp() and fnn.exp(x); those that keep the dtype have a form in
** place, x:exp_().  A closure holds the number of its row. */

#include <math.h>
#include <string.h>

#include "../src/ops/ops.h"
#include "lbox.h"

#define row(L) ((int)lua_tointeger(L, lua_upvalueindex(2)))

/*
** {======================================================
** Unary functions
** =======================================================
*/

/* The row's parameters from place i on: numbers, or an options table. */
static void map_arguments (lua_State *L, int i, const MapRow *r, double *v) {
  const char *const names[3] = { r->arg[0], r->arg[1], NULL };
  v[0] = r->fallback[0];
  v[1] = r->fallback[1];
  if (lua_type(L, i) == LUA_TTABLE) {
    int o = options(L, i, names);
    for (int k = 0; k < r->nargs; k++) v[k] = opt_number(L, o, names[k], v[k]);
    return;
  }
  for (int k = 0; k < r->nargs; k++) v[k] = luaL_optnumber(L, i + k, v[k]);
}

/* Whether a bound of clamp, among the arguments from 2 on, is an integer that
** a double would round, and the other is one too or absent; then they are in
** v, is_integer telling which are there. */
static bool exact_bounds (lua_State *L, int op, const fnn_Tensor *x,
                          Number *v) {
  bool exact = false;
  if (op != MAP_clamp || x->dtype != FNN_I64) return false;
  lua_settop(L, 3);
  for (int k = 0; k < 2; k++) {
    if (lua_istable(L, 2)) {
      lua_pushstring(L, map_rows[op].arg[k]);
      lua_rawget(L, 2);
    } else lua_pushvalue(L, 2 + k);
    double none = k == 0 ? -INFINITY : INFINITY;
    v[k] = lua_isnil(L, -1) ? as_number(none) : checknumber(L, -1);
    lua_pop(L, 1);
    if (!v[k].is_integer && v[k].d != none) return false;
    exact = exact || (v[k].is_integer && is_rounded(v[k].i));
  }
  return exact;
}

static fnn_Tensor *clamp (fnn_Tensor *x, const Number *v) {
  if (v[0].is_integer) x = fnn_zip_integer(ZIP_maximum, x, v[0].i, false);
  if (v[1].is_integer) x = fnn_zip_integer(ZIP_minimum, x, v[1].i, false);
  return x;
}

static int map_call (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int op = row(L);
  double v[2];
  Number bound[2];
  map_arguments(L, 2, &map_rows[op], v);
  bool exact = exact_bounds(L, op, x, bound);
  void **y = newbox(L, TENSOR);
  guard(L,
        *y = fnn_retain(exact ? clamp(x, bound) : fnn_map(op, x, v[0], v[1])));
  return 1;
}

static int map_call_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int op = row(L);
  double v[2];
  Number bound[2];
  map_arguments(L, 2, &map_rows[op], v);
  bool exact = exact_bounds(L, op, x, bound);
  guard(L, if (exact) tensor_check_write("clamp", x),
        fnn_copy_(x, clamp(x, bound));
        else fnn_map_(op, x, v[0], v[1]));
  lua_settop(L, 1);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Binary functions
** =======================================================
*/

/* A number beside a tensor. */
static Number checkoperand (lua_State *L, int i) {
  if (lua_isuserdata(L, i)) checktensor(L, i); /* says if it is released */
  if (lua_type(L, i) != LUA_TNUMBER && !lua_isboolean(L, i))
    luaL_typeerror(L, i, "fnn.Tensor or number");
  return checknumber(L, i);
}

/* Inside guard. */
static fnn_Tensor *zip_with (int op, fnn_Tensor *x, Number v, bool left) {
  return v.is_integer ? fnn_zip_integer(op, x, v.i, left)
                      : fnn_zip_number(op, x, v.d, left);
}

static void zip_with_ (int op, fnn_Tensor *x, Number v) {
  if (v.is_integer) fnn_zip_integer_(op, x, v.i);
  else fnn_zip_number_(op, x, v.d);
}

static int zip_call (lua_State *L) {
  int op = row(L);
  const Lib *lib = getlib(L);
  fnn_Tensor *x = lib_totensor(L, lib, 1), *y = lib_totensor(L, lib, 2);
  if (x != NULL && y != NULL) {
    void **z = newbox(L, TENSOR);
    guard(L, *z = fnn_retain(fnn_zip(op, x, y)));
    return 1;
  }
  /* A number on one side; what is neither raises as no tensor. */
  bool left = x == NULL;
  fnn_Tensor *t = left ? y : x;
  int at = left ? 1 : 2;
  if (t == NULL) t = checktensor(L, lua_type(L, 1) == LUA_TNUMBER ? 2 : 1);
  Number v = checkoperand(L, at);
  void **z = newbox(L, TENSOR);
  guard(L, *z = fnn_retain(zip_with(op, t, v, left)));
  return 1;
}

static int zip_call_ (lua_State *L) {
  int op = row(L);
  fnn_Tensor *x = checktensor(L, 1), *y = testtensor(L, 2);
  Number v = y == NULL ? checkoperand(L, 2) : as_number(0);
  guard(L, if (y != NULL) fnn_zip_(op, x, y); else zip_with_(op, x, v));
  lua_settop(L, 1);
  return 1;
}

/* The dtype of a number that is chosen beside x: x's own where it holds the
** number. */
static fnn_Dtype choice_dtype (const fnn_Tensor *x, double v) {
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  if (dtype_is_float(t)) return t;
  if (v != trunc(v)) return FNN_F32;
  return t == FNN_BOOL && v != 0 && v != 1 ? FNN_I64 : t;
}

/* fnn.where(mask, a, b): a where the mask is true, else b. */
static int math_where (lua_State *L) {
  fnn_Tensor *c = checktensor(L, 1), *t[2];
  Number v[2] = { 0 };
  for (int k = 0; k < 2; k++) {
    t[k] = testtensor(L, k + 2);
    if (t[k] == NULL) v[k] = checkoperand(L, k + 2);
  }
  fnn_Tensor *like = t[0] != NULL ? t[0] : t[1];
  fnn_Dtype dtype = getlib(L)->dtype;
  void **y = newbox(L, TENSOR);
  guard(L, for (int k = 0; k < 2; k++) if (t[k] == NULL) t[k] =
               number_full(0, NULL, v[k],
                           like != NULL ? choice_dtype(like, v[k].d) : dtype,
                           c->storage->device);
        *y = fnn_retain(fnn_where(c, t[0], t[1])));
  return 1;
}

static int math_masked_fill (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *mask = checktensor(L, 2);
  Number v = checkoperand(L, 3);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(number_masked_fill(x, mask, v)));
  return 1;
}

static int math_lerp_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  double share = luaL_checknumber(L, 3);
  guard(L, fnn_lerp_(x, y, share));
  lua_settop(L, 1);
  return 1;
}

static int math_masked_fill_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *mask = checktensor(L, 2);
  Number v = checkoperand(L, 3);
  guard(L, tensor_check_write("masked_fill_", x);
        fnn_copy_(x, number_masked_fill(x, mask, v)));
  lua_settop(L, 1);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Reductions, softmax
** =======================================================
*/

static const char *const reduce_options[] = { "keepdim", NULL };
static const char *const spread_options[] = { "keepdim", "correction", NULL };
static const char *const norm_options[] = { "keepdim", "p", NULL };

/* The options of a row, and its parameter's fallback. */
static const char *const *row_options (int op, double *a,
                                       const char **parameter) {
  *parameter = NULL;
  *a = 0;
  if (op == REDUCE_var || op == REDUCE_std) {
    *parameter = "correction";
    *a = 1;
    return spread_options;
  }
  if (op != REDUCE_norm) return reduce_options;
  *parameter = "p";
  *a = 2;
  return norm_options;
}

/* x:sum(), x:sum(dim ...), x:sum({ dims } [, options]) */
static int reduce_call (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int op = row(L), dims[FNN_MAXDIM], next;
  const char *parameter;
  double a;
  const char *const *names = row_options(op, &a, &parameter);
  int n = checkdims(L, 2, x, dims, &next);
  int o = options(L, next, names);
  bool keepdim = opt_boolean(L, o, "keepdim", false);
  if (parameter != NULL) a = opt_number(L, o, parameter, a);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_reduce(op, x, n, dims, keepdim, a)));
  return 1;
}

static int math_cumsum (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = checkdim(L, 2, x);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_cumsum(x, dim)));
  return 1;
}

/* x:cross(y [, dim]); dim is one of the operand that has more */
static int math_cross (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  int dim = optdim(L, 3, x->ndim >= y->ndim ? x : y, -1);
  void **z = newbox(L, TENSOR);
  guard(L, *z = fnn_retain(fnn_cross(x, y, dim)));
  return 1;
}

static int math_softmax (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = optdim(L, 2, x, -1);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_softmax(x, dim)));
  return 1;
}

static int math_log_softmax (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  int dim = optdim(L, 2, x, -1);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_log_softmax(x, dim)));
  return 1;
}

/* }====================================================== */

/* Sets t[name] to a closure of f over the Lib and a row; t is on the top. */
static void set_row (lua_State *L, const char *name, const char *suffix,
                     lua_CFunction f, int op) {
  lua_pushfstring(L, "%s%s", name, suffix);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, op);
  lua_pushcclosure(L, f, 2);
  lua_rawset(L, -3);
}

/* All rows as entries of the table on the top, with forms in place or not. */
static void set_rows (lua_State *L, bool in_place) {
  for (int i = 0; i < MAP_COUNT; i++) {
    set_row(L, map_rows[i].name, "", map_call, i);
    if (in_place && map_rows[i].kind != KIND_TEST)
      set_row(L, map_rows[i].name, "_", map_call_, i);
  }
  for (int i = 0; i < ZIP_COUNT; i++) {
    set_row(L, zip_rows[i].name, "", zip_call, i);
    if (in_place && zip_rows[i].kind != KIND_TEST)
      set_row(L, zip_rows[i].name, "_", zip_call_, i);
  }
  for (int i = 0; i < REDUCE_COUNT; i++)
    set_row(L, reduce_rows[i].name, "", reduce_call, i);
}

static const struct {
  const char *event;
  int op;
} operators[] = {
  { "__add", ZIP_add },       { "__sub", ZIP_sub },
  { "__mul", ZIP_mul },       { "__div", ZIP_div },
  { "__pow", ZIP_pow },       { "__mod", ZIP_remainder },
  { "__idiv", ZIP_floordiv }, { "__band", ZIP_bitand },
  { "__bor", ZIP_bitor },     { "__bxor", ZIP_bitxor },
  { "__shl", ZIP_shl },       { "__shr", ZIP_shr },
};

static void set_operators (lua_State *L, Kind k) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, getlib(L)->meta[k]);
  for (int i = 0; i < countof(operators); i++)
    set_row(L, operators[i].event, "", zip_call, operators[i].op);
  set_row(L, "__unm", "", map_call, MAP_neg);
  set_row(L, "__bnot", "", map_call, MAP_bitnot);
  lua_pop(L, 1);
}

static const luaL_Reg both[] = { { "where", math_where },
                                 { "masked_fill", math_masked_fill },
                                 { "cumsum", math_cumsum },
                                 { "cross", math_cross },
                                 { "softmax", math_softmax },
                                 { "log_softmax", math_log_softmax },
                                 { NULL, NULL } };

static const luaL_Reg methods[] = { { "masked_fill_", math_masked_fill_ },
                                    { "lerp_", math_lerp_ },
                                    { NULL, NULL } };

void open_math (lua_State *L) {
  set_operators(L, TENSOR);
  set_operators(L, PARAM);
  addmethods(L, TENSOR, methods);
  addmethods(L, TENSOR, both);
  pushmethods(L, TENSOR);
  set_rows(L, true);
  lua_pop(L, 1);
  set_rows(L, false);
  addfunctions(L, both);
}
