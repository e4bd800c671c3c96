/* lrandom.c - generators and random tensors in Lua. */

#include <string.h>

#include "lbox.h"

/* A seed: any 64-bit integer, or a decimal string for those from 2^63 on. */
static uint64_t checkseed (lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TSTRING) return (uint64_t)luaL_checkinteger(L, i);
  const char *s = lua_tostring(L, i);
  uint64_t v = 0;
  luaL_argcheck(L, *s != '\0', i, "expected a decimal number");
  for (; *s != '\0'; s++) {
    if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10u, &v) ||
        __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
      luaL_argerror(L, i, "expected a decimal number of 64 bits");
  }
  return v;
}

/* fnn.manual_seed(seed): of the generator that is used when none is named */
static int manual_seed (lua_State *L) {
  uint64_t seed = checkseed(L, 1);
  guard(L, fnn_manual_seed(fnn_default_generator(), seed));
  return 0;
}

static const char *const generator_options[] = { "kind", NULL };

/* fnn.Generator([seed] [, { kind = "philox" | "torch" }]) */
static int new_generator (lua_State *L) {
  int next = lua_isnoneornil(L, 1) || lua_istable(L, 1) ? 1 : 2;
  uint64_t seed = next == 2 ? checkseed(L, 1) : generator_entropy();
  if (next == 1 && lua_isnil(L, 1)) next = 2;
  int o = options(L, next, generator_options);
  const char *kind = opt_string(L, o, "kind", "philox");
  void **box = newbox(L, GENERATOR);
  guard(L, *box = fnn_retain(fnn_generator(kind, seed)));
  return 1;
}

static int default_generator (lua_State *L) {
  fnn_Generator *g = NULL;
  guard(L, g = fnn_default_generator());
  pushobject(L, GENERATOR, g);
  return 1;
}

static fnn_Generator *checkgenerator (lua_State *L, int i) {
  return checkobject(L, i, GENERATOR);
}

static int generator_manual_seed (lua_State *L) {
  fnn_Generator *g = checkgenerator(L, 1);
  uint64_t seed = checkseed(L, 2);
  guard(L, fnn_manual_seed(g, seed));
  lua_settop(L, 1);
  return 1;
}

static int generator_seed (lua_State *L) {
  lua_pushinteger(L, (lua_Integer)fnn_generator_seed(checkgenerator(L, 1)));
  return 1;
}

static int generator_kind (lua_State *L) {
  lua_pushstring(L, fnn_generator_kind(checkgenerator(L, 1)));
  return 1;
}

static int generator_state (lua_State *L) {
  fnn_Generator *g = checkgenerator(L, 1);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_generator_state(g)));
  return 1;
}

static int generator_set_state (lua_State *L) {
  fnn_Generator *g = checkgenerator(L, 1);
  fnn_Tensor *x = checktensor(L, 2);
  guard(L, fnn_generator_restore(g, x));
  return 0;
}

/*
** {======================================================
** Tensors
** =======================================================
*/

static const char *const tensor_options[] = { "dtype", "device", "generator",
                                              NULL };

typedef struct Made {
  int ndim;
  int64_t shape[FNN_MAXDIM];
  fnn_Dtype t;
  const fnn_Device *d;
  fnn_Generator *g;
} Made;

/* Reads sizes and options from i on. */
static Made checkmade (lua_State *L, int i, fnn_Dtype t) {
  Made m;
  int next;
  m.ndim = checkshape(L, i, m.shape, &next);
  int o = list_options(L, i, next, tensor_options);
  m.t = opt_dtype(L, o, t);
  m.d = opt_device(L, o);
  m.g = opt_generator(L, o);
  return m;
}

static int new_rand (lua_State *L) {
  Made m = checkmade(L, 1, getlib(L)->dtype);
  void **box = newbox(L, TENSOR);
  guard(L,
        *box = fnn_retain(fnn_uniform(m.ndim, m.shape, 0, 1, m.t, m.d, m.g)));
  return 1;
}

static int new_randn (lua_State *L) {
  Made m = checkmade(L, 1, getlib(L)->dtype);
  void **box = newbox(L, TENSOR);
  guard(L,
        *box = fnn_retain(fnn_normal(m.ndim, m.shape, 0, 1, m.t, m.d, m.g)));
  return 1;
}

/* fnn.uniform(lo, hi, shape [, options]), fnn.normal(mean, std, shape ...) */
static int new_uniform (lua_State *L) {
  double lo = luaL_checknumber(L, 1), hi = luaL_checknumber(L, 2);
  Made m = checkmade(L, 3, getlib(L)->dtype);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(
               fnn_uniform(m.ndim, m.shape, lo, hi, m.t, m.d, m.g)));
  return 1;
}

static int new_normal (lua_State *L) {
  double mean = luaL_checknumber(L, 1), std = luaL_checknumber(L, 2);
  Made m = checkmade(L, 3, getlib(L)->dtype);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(
               fnn_normal(m.ndim, m.shape, mean, std, m.t, m.d, m.g)));
  return 1;
}

/* fnn.randint(lo, hi, shape [, options]): integers from lo to before hi */
static int new_randint (lua_State *L) {
  int64_t lo = luaL_checkinteger(L, 1), hi = luaL_checkinteger(L, 2);
  Made m = checkmade(L, 3, FNN_I64);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(
               fnn_randint(m.ndim, m.shape, lo, hi, m.t, m.d, m.g)));
  return 1;
}

static const char *const perm_options[] = { "device", "generator", NULL };

/* fnn.randperm(n): the ids 0 .. n-1 in random order */
static int new_randperm (lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  int o = options(L, 2, perm_options);
  const fnn_Device *d = opt_device(L, o);
  fnn_Generator *g = opt_generator(L, o);
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_randperm(n, d, g)));
  return 1;
}

static const char *const dropout_options[] = { "generator", NULL };

/* x:dropout(p [, options]) */
static int tensor_dropout (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  double p = luaL_optnumber(L, 2, 0.5);
  fnn_Generator *g = opt_generator(L, options(L, 3, dropout_options));
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_dropout(x, p, g)));
  return 1;
}

/* x:dropout1d(p [, options]), x:dropout2d: whole channels */
static int dropout_channels (lua_State *L, int dims) {
  fnn_Tensor *x = checktensor(L, 1);
  double p = luaL_optnumber(L, 2, 0.5);
  fnn_Generator *g = opt_generator(L, options(L, 3, dropout_options));
  if (x->ndim != dims + 2)
    return raise_error(L,
                       "dropout%dd: expected shape (n, channels, %s), got "
                       "%s",
                       dims, dims == 1 ? "l" : "h, w", shape_text(x));
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(fnn_dropout_channels(x, 2, p, g)));
  return 1;
}

static int tensor_dropout1d (lua_State *L) { return dropout_channels(L, 1); }
static int tensor_dropout2d (lua_State *L) { return dropout_channels(L, 2); }

/* The in-place forms: x:uniform_(lo, hi), x:normal_(mean, std). */
static int tensor_uniform_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  double lo = luaL_optnumber(L, 2, 0), hi = luaL_optnumber(L, 3, 1);
  fnn_Generator *g = opt_generator(L, options(L, 4, dropout_options));
  guard(L, tensor_check_write("uniform_", x);
        fnn_copy_(x, fnn_uniform(x->ndim, x->shape, lo, hi,
                                 (fnn_Dtype)x->dtype, x->storage->device, g)));
  lua_settop(L, 1);
  return 1;
}

static int tensor_normal_ (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1);
  double mean = luaL_optnumber(L, 2, 0), std = luaL_optnumber(L, 3, 1);
  fnn_Generator *g = opt_generator(L, options(L, 4, dropout_options));
  guard(L, tensor_check_write("normal_", x);
        fnn_copy_(x, fnn_normal(x->ndim, x->shape, mean, std,
                                (fnn_Dtype)x->dtype, x->storage->device, g)));
  lua_settop(L, 1);
  return 1;
}

/* }====================================================== */

static const luaL_Reg generator_methods[] = {
  { "manual_seed", generator_manual_seed },
  { "seed", generator_seed },
  { "kind", generator_kind },
  { "state", generator_state },
  { "set_state", generator_set_state },
  { NULL, NULL },
};

static const luaL_Reg tensor_methods[] = {
  { "dropout", tensor_dropout },     { "dropout1d", tensor_dropout1d },
  { "dropout2d", tensor_dropout2d }, { "uniform_", tensor_uniform_ },
  { "normal_", tensor_normal_ },     { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "manual_seed", manual_seed },
  { "Generator", new_generator },
  { "default_generator", default_generator },
  { "rand", new_rand },
  { "randn", new_randn },
  { "uniform", new_uniform },
  { "normal", new_normal },
  { "randint", new_randint },
  { "randperm", new_randperm },
  { NULL, NULL },
};

void open_random (lua_State *L) {
  newclass(L, GENERATOR, "fnn.Generator", NULL);
  addmethods(L, GENERATOR, generator_methods);
  addmethods(L, TENSOR, tensor_methods);
  addfunctions(L, functions);
}
