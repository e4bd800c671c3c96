/* lattention.c - attention in Lua. */

#include <math.h>

#include "../src/core/core.h"
#include "lbox.h"

static const char *const attention_options[] = {
  "mask", "causal", "scale", "dropout", "alibi", "generator", NULL
};

/* q:scaled_dot_product_attention(k, v [, options]) */
static int attention (lua_State *L) {
  fnn_Tensor *q = checktensor(L, 1);
  fnn_Tensor *k = checktensor(L, 2), *v = checktensor(L, 3);
  int o = options(L, 4, attention_options);
  fnn_Attention a = { .mask = opt_tensor(L, o, "mask"),
                      .alibi = opt_tensor(L, o, "alibi"),
                      .causal = opt_boolean(L, o, "causal", false),
                      .scale = opt_number(L, o, "scale", NAN),
                      .dropout = opt_number(L, o, "dropout", 0),
                      .generator = opt_generator(L, o) };
  if (a.scale == 0)
    return raise_option(L, "option 'scale': expected a number but 0, got 0");
  if (isnan(a.scale)) a.scale = 0; /* by the size of the heads */
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(fnn_scaled_dot_product_attention(q, k, v, &a)));
  return 1;
}

static const char *const rotary_options[] = { "positions", "interleaved",
                                              NULL };

/* x:rotary(cos, sin [, options]) */
static int rotary (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *places = NULL;
  fnn_Tensor *cos = checktensor(L, 2), *sin = checktensor(L, 3);
  int o = options(L, 4, rotary_options);
  int64_t first = 0;
  bool interleaved = opt_boolean(L, o, "interleaved", false);
  if (o != 0 && lua_getfield(L, o, "positions") == LUA_TNUMBER)
    first = opt_integer(L, o, "positions", 0);
  else places = opt_tensor(L, o, "positions");
  void **y = newbox(L, TENSOR);
  guard(L,
        *y = fnn_retain(fnn_rotary(x, cos, sin, places, first, interleaved)));
  return 1;
}

static const luaL_Reg both[] = {
  { "rotary", rotary },
  { "scaled_dot_product_attention", attention },
  { NULL, NULL },
};

void open_attention (lua_State *L) {
  addmethods(L, TENSOR, both);
  addfunctions(L, both);
}
