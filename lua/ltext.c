/* ltext.c - samplers of ids in Lua: fnn.text.Sampler.
**
**   local sampler = fnn.text.Sampler{ temperature = 0.8, top_k = 40 }
**   local id = sampler(logits, ids)
**
** The function of option 'callback' is the box's user value.  What is written
** over samplers and models is in fnn/text/. */

#include "../src/text/text.h"
#include "lbox.h"

static fnn_Sampler *checksampler (lua_State *L, int i) {
  return checkobject(L, i, SAMPLER);
}

/*
** {======================================================
** Options
** =======================================================
*/

static const char *const sampler_names[] = {
  "temperature",
  "top_k",
  "top_p",
  "min_p",
  "repetition_penalty",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "generator",
  "callback",
  NULL,
};

/* Whether the value on the top can be called. */
static bool callable (lua_State *L) {
  if (lua_isfunction(L, -1)) return true;
  if (luaL_getmetafield(L, -1, "__call") == LUA_TNIL) return false;
  lua_pop(L, 1);
  return true;
}

/* Pushes option 'callback', or nil. */
static void push_callback (lua_State *L, int o) {
  lua_pushnil(L);
  if (o == 0) return;
  lua_pop(L, 1);
  lua_pushliteral(L, "callback");
  if (lua_rawget(L, o) != LUA_TNIL && !callable(L))
    raise_option(L, "option 'callback': expected a function, got %s",
                 push_type_name(L, -1));
}

/* Whether option 'seed' is there, and what it is. */
static bool opt_seed (lua_State *L, int o, uint64_t *seed) {
  if (o == 0) return false;
  lua_pushliteral(L, "seed");
  bool given = lua_rawget(L, o) != LUA_TNIL;
  lua_pop(L, 1);
  *seed = (uint64_t)opt_integer(L, o, "seed", 0);
  return given;
}

/* fnn.text.Sampler([options]) */
static int new_sampler (lua_State *L) {
  fnn_SamplerOptions s = FNN_SAMPLER_INIT;
  uint64_t seed = 0;
  int o = options(L, 1, sampler_names);
  s.temperature = opt_number(L, o, "temperature", s.temperature);
  s.top_k = opt_integer(L, o, "top_k", s.top_k);
  s.top_p = opt_number(L, o, "top_p", s.top_p);
  s.min_p = opt_number(L, o, "min_p", s.min_p);
  s.repetition_penalty =
      opt_number(L, o, "repetition_penalty", s.repetition_penalty);
  s.frequency_penalty =
      opt_number(L, o, "frequency_penalty", s.frequency_penalty);
  s.presence_penalty =
      opt_number(L, o, "presence_penalty", s.presence_penalty);
  bool seeded = opt_seed(L, o, &seed);
  fnn_Generator *g = opt_generator(L, o);
  if (seeded && g != NULL)
    raise_option(L, "options 'seed' and 'generator': expected one of them");
  push_callback(L, o);
  void **box = newbox(L, SAMPLER);
  guard(L, if (seeded) g = fnn_generator("philox", seed);
        *box = fnn_retain(fnn_sampler(&s, g)));
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  return 1;
}

/* sampler:options(): what differs from the defaults */
static int sampler_options (lua_State *L) {
  const fnn_SamplerOptions d = FNN_SAMPLER_INIT;
  fnn_SamplerOptions o = fnn_sampler_options(checksampler(L, 1));
  const struct {
    const char *name;
    double v, fallback;
  } numbers[] = {
    { "temperature", o.temperature, d.temperature },
    { "top_p", o.top_p, d.top_p },
    { "min_p", o.min_p, d.min_p },
    { "repetition_penalty", o.repetition_penalty, d.repetition_penalty },
    { "frequency_penalty", o.frequency_penalty, d.frequency_penalty },
    { "presence_penalty", o.presence_penalty, d.presence_penalty },
  };
  lua_newtable(L);
  for (int i = 0; i < countof(numbers); i++) {
    if (numbers[i].v == numbers[i].fallback) continue;
    lua_pushnumber(L, numbers[i].v);
    lua_setfield(L, -2, numbers[i].name);
  }
  if (o.top_k != d.top_k) {
    lua_pushinteger(L, o.top_k);
    lua_setfield(L, -2, "top_k");
  }
  lua_getiuservalue(L, 1, 1);
  lua_setfield(L, -2, "callback");
  return 1;
}

static int sampler_tostring (lua_State *L) {
  luaL_Buffer b;
  int some = 0;
  lua_settop(L, 1);
  sampler_options(L);
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "Sampler(");
  for (int i = 0; sampler_names[i] != NULL; i++) {
    int type = lua_getfield(L, 2, sampler_names[i]);
    if (type == LUA_TNUMBER) {
      const char *text = luaL_tolstring(L, -1, NULL);
      lua_pushfstring(L, "%s%s=%s", some++ > 0 ? ", " : "", sampler_names[i],
                      text);
      lua_replace(L, -3);
      lua_pop(L, 1);
      luaL_addvalue(&b);
    } else lua_pop(L, 1);
  }
  luaL_addchar(&b, ')');
  luaL_pushresult(&b);
  return 1;
}

/* }====================================================== */

/*
** {======================================================
** Histories
** =======================================================
*/

/* The ids of one row, the list or tensor at i, behind the n that the sampler
** has; returns how many it has then.  A tensor of ids is read to the host. */
static int64_t add_ids (lua_State *L, fnn_Sampler *s, int i, int64_t n) {
  fnn_Tensor *x = testtensor(L, i);
  int64_t *to = NULL;
  if (x != NULL) {
    if (x->dtype != FNN_I64 && x->dtype != FNN_I32)
      raise_error(L, "Sampler: expected a history of ids, i64 or i32, got %s",
                  fnn_dtype_name((fnn_Dtype)x->dtype));
    guard(L, to = sampler_room(s, n + x->numel);
          fnn_read(fnn_cast(x, FNN_I64), to + n));
    return n + x->numel;
  }
  if (lua_type(L, i) != LUA_TTABLE)
    raise_error(L, "Sampler: expected a list or a tensor of ids, got %s",
                push_type_name(L, i));
  lua_Integer count = (lua_Integer)lua_rawlen(L, i);
  guard(L, to = sampler_room(s, n + count));
  for (lua_Integer k = 1; k <= count; k++) {
    int ok;
    lua_rawgeti(L, i, k);
    to[n + k - 1] = lua_tointegerx(L, -1, &ok);
    if (!ok)
      raise_error(L,
                  "Sampler: element %d of the history: expected an integer, "
                  "got %s",
                  (int)k, push_type_name(L, -1));
    lua_pop(L, 1);
  }
  return n + count;
}

/* Of logits (n): the ids at 3.  *total: how many. */
static void one_history (lua_State *L, fnn_Sampler *s, int64_t *count) {
  const fnn_Tensor *ids = testtensor(L, 3);
  if (ids != NULL && ids->ndim != 1)
    raise_error(L,
                "Sampler: for logits of one row expected a history of shape "
                "(length), got %s",
                shape_text(ids));
  count[0] = add_ids(L, s, 3, 0);
}

/* Of logits (rows, n): the list of lists at 3, or the tensor (rows, length). */
static void histories (lua_State *L, fnn_Sampler *s, int64_t rows,
                       int64_t *count) {
  const fnn_Tensor *ids = testtensor(L, 3);
  if (ids != NULL) {
    if (ids->ndim != 2 || ids->shape[0] != rows)
      raise_error(L,
                  "Sampler: for logits of %d rows expected a history of shape "
                  "(%d, length), got %s",
                  (int)rows, (int)rows, shape_text(ids));
    add_ids(L, s, 3, 0);
    for (int64_t r = 0; r < rows; r++) count[r] = ids->shape[1];
    return;
  }
  if (lua_type(L, 3) != LUA_TTABLE || (int64_t)lua_rawlen(L, 3) != rows)
    raise_error(L,
                "Sampler: for logits of %d rows expected a list of as many "
                "histories, got %s",
                (int)rows,
                lua_istable(L, 3) ? "another number" : push_type_name(L, 3));
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++) {
    lua_rawgeti(L, 3, r + 1);
    int64_t more = add_ids(L, s, lua_gettop(L), n);
    lua_pop(L, 1);
    count[r] = more - n;
    n = more;
  }
}

/* }====================================================== */

/*
** {======================================================
** Calls
** =======================================================
*/

/* Inside guard: x's own data where a script may write it: on the host, of a
** dtype that computes there. */
static fnn_Tensor *own_copy (fnn_Tensor *x) {
  bool wide = dtype_is_compute((fnn_Dtype)x->dtype) || !tensor_is_float(x);
  fnn_Tensor *host = tensor_move(fnn_detach(x), device_cpu());
  fnn_Tensor *y = wide ? host : fnn_cast(host, FNN_F32);
  return y == host ? fnn_clone(y) : y;
}

/* The sampler is at 1, logits at 2, the history or nil at 3, and on top what
** the callback returned, if there is one, for the copy of the logits at 4. */
static int choose (lua_State *L, int status, lua_KContext called) {
  (void)status;
  fnn_Sampler *s = checksampler(L, 1);
  fnn_Tensor *given = checktensor(L, 2), *x = given;
  int64_t one = 0, id = 0, *count = NULL;
  if (called) {
    if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TUSERDATA)
      raise_error(L,
                  "Sampler: the callback returned a %s (expected logits, or "
                  "nothing)",
                  push_type_name(L, -1));
    x = checktensor(L, lua_isnil(L, -1) ? 4 : lua_gettop(L));
    if (!tensor_same_shape(x, given))
      raise_error(L,
                  "Sampler: the callback returned logits of shape %s "
                  "(expected %s)",
                  shape_text(x), shape_text(given));
  }
  int64_t rows = x->ndim == 2 ? x->shape[0] : 1;
  if (!lua_isnil(L, 3) && fnn_sampler_penalizes(s)) {
    if (x->ndim == 2) {
      count = lua_newuserdatauv(L, (size_t)(rows + 1) * sizeof *count, 0);
      histories(L, s, rows, count);
    } else {
      one_history(L, s, &one);
      count = &one;
    }
  }
  if (x->ndim != 2) {
    guard(L, fnn_sample(s, x, sampler_room(s, 0), count, &id));
    lua_pushinteger(L, id);
    return 1;
  }
  void **box = newbox(L, TENSOR);
  guard(L, fnn_Tensor *y = fnn_empty(1, &rows, FNN_I64, device_cpu());
        fnn_sample(s, x, sampler_room(s, 0), count, tensor_data(y));
        *box = fnn_retain(tensor_move(y, given->storage->device)));
  return 1;
}

/* sampler(logits [, ids]): an id, or a tensor of one for each row */
static int sampler_call (lua_State *L) {
  checksampler(L, 1);
  lua_settop(L, 3);
  if (lua_type(L, 2) != LUA_TUSERDATA)
    raise_error(L, "Sampler: expected logits, got %s", push_type_name(L, 2));
  fnn_Tensor *x = checktensor(L, 2);
  if (!lua_isnil(L, 3) && !lua_istable(L, 3) && testtensor(L, 3) == NULL)
    raise_error(L, "Sampler: expected a list or a tensor of ids, got %s",
                push_type_name(L, 3));
  lua_getiuservalue(L, 1, 1);
  if (lua_isnil(L, -1)) {
    lua_settop(L, 3);
    return choose(L, LUA_OK, false);
  }
  void **box = newbox(L, TENSOR);
  guard(L, *box = fnn_retain(own_copy(x)));
  lua_insert(L, 4);
  lua_pushvalue(L, 4);
  lua_pushvalue(L, 3);
  lua_callk(L, 2, 1, true, choose);
  return choose(L, LUA_OK, true);
}

/* }====================================================== */

static const luaL_Reg metamethods[] = {
  { "__call", sampler_call },
  { "__tostring", sampler_tostring },
  { NULL, NULL },
};

static const luaL_Reg methods[] = {
  { "options", sampler_options },
  { NULL, NULL },
};

static const luaL_Reg functions[] = {
  { "Sampler", new_sampler },
  { NULL, NULL },
};

void open_text (lua_State *L) {
  newclass(L, SAMPLER, "fnn.Sampler", metamethods);
  addmethods(L, SAMPLER, methods);
  lua_getfield(L, -1, "text");
  addfunctions(L, functions);
  lua_pop(L, 1);
}
