/* lloss.c - losses in Lua: methods of the prediction. */

#include <string.h>

#include "../src/fnn_nn.h"
#include "lbox.h"

static fnn_Reduction opt_reduction (lua_State *L, int o) {
  static const char *const names[] = { "mean", "sum", "none" };
  const char *s = opt_string(L, o, "reduction", "mean");
  for (int i = 0; i < countof(names); i++)
    if (strcmp(s, names[i]) == 0) return (fnn_Reduction)i;
  raise_error(L, "option 'reduction': expected mean, sum or none, got '%s'",
              s);
  return FNN_MEAN;
}

static const char *const entropy_options[] = { "weight", "ignore_index",
                                               "label_smoothing", "reduction",
                                               NULL };

/* x:cross_entropy(targets [, options]): targets are ids (a tensor or a list)
** or probabilities */
static int loss_cross_entropy (lua_State *L) {
  lua_settop(L, 3); /* checkids pushes */
  fnn_Tensor *x = checktensor(L, 1), *y = checkids(L, 2);
  int at = options(L, 3, entropy_options);
  fnn_LossOptions o = FNN_LOSS_INIT;
  if (at != 0 && lua_getfield(L, at, "weight") != LUA_TNIL)
    o.weight = checktensor(L, -1);
  o.ignore_index = opt_integer(L, at, "ignore_index", o.ignore_index);
  o.label_smoothing = opt_number(L, at, "label_smoothing", 0);
  o.reduction = opt_reduction(L, at);
  void **z = newbox(L, TENSOR);
  guard(L, *z = fnn_retain(fnn_cross_entropy(x, y, &o)));
  return 1;
}

static const char *const plain_options[] = { "reduction", NULL };

/* x:mse(y [, options]) */
static int loss_mse (lua_State *L) {
  fnn_Tensor *x = checktensor(L, 1), *y = checktensor(L, 2);
  fnn_LossOptions o = FNN_LOSS_INIT;
  o.reduction = opt_reduction(L, options(L, 3, plain_options));
  void **z = newbox(L, TENSOR);
  guard(L, *z = fnn_retain(fnn_mse(x, y, &o)));
  return 1;
}

static const luaL_Reg methods[] = {
  { "cross_entropy", loss_cross_entropy },
  { "mse", loss_mse },
  { NULL, NULL },
};

void open_loss (lua_State *L) { addmethods(L, TENSOR, methods); }
