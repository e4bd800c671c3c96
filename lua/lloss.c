/* lloss.c - losses in Lua: a table of what each takes, and one function that
** reads it. */

#include <math.h>
#include <string.h>

#include "lbox.h"

typedef enum OptionKind {
  OPTION_NUMBER,
  OPTION_SHARE, /* a number from 0 to 1 */
  OPTION_INTEGER,
  OPTION_BOOLEAN,
  OPTION_TENSOR
} OptionKind;

/* Numbers are least at the least, or, where it is open, more. */
typedef struct Option {
  const char *name;
  OptionKind kind;
  double fallback, least;
  bool open;
} Option;

/* What was given for it: one of these. */
typedef struct Value {
  double number;
  int64_t integer;
  bool boolean;
  fnn_Tensor *tensor;
} Value;

enum { OPTIONS = 4, INPUTS = 4 };

typedef fnn_Tensor *(*Call)(fnn_Tensor *const *x, const Value *o,
                            fnn_Reduction r);

typedef struct Loss {
  const char *name;
  int inputs;
  unsigned ids; /* a bit for each input that may be a list of integers */
  Call call;
  Option options[OPTIONS + 1]; /* the last has no name */
} Loss;

/*
** {======================================================
** The losses
** =======================================================
*/

#define CALL(name, result) \
  static fnn_Tensor *call_##name(fnn_Tensor *const *x, const Value *o, \
                                 fnn_Reduction r) { \
    (void)o; \
    return result; \
  }

CALL(mse, fnn_mse(x[0], x[1], r))
CALL(l1, fnn_l1(x[0], x[1], r))
CALL(huber, fnn_huber(x[0], x[1], o[0].number, r))
CALL(smooth_l1, fnn_smooth_l1(x[0], x[1], o[0].number, r))
CALL(bce, fnn_bce(x[0], x[1], o[0].tensor, r))
CALL(bce_with_logits,
     fnn_bce_with_logits(x[0], x[1], o[0].tensor, o[1].tensor, r))
CALL(focal, fnn_focal(x[0], x[1], o[0].number, o[1].number, r))
CALL(kl_div, fnn_kl_div(x[0], x[1], o[0].boolean, r))
CALL(kl_divergence, fnn_kl_divergence(x[0], x[1], r))
CALL(gaussian_nll,
     fnn_gaussian_nll(x[0], x[1], x[2], o[0].boolean, o[1].number, r))
CALL(gaussian_nll_log_var, fnn_gaussian_nll_log_var(x[0], x[1], x[2], r))
CALL(poisson_nll,
     fnn_poisson_nll(x[0], x[1], o[0].boolean, o[1].boolean, o[2].number, r))
CALL(hinge, fnn_hinge(x[0], x[1], o[0].number, r))
CALL(hinge_embedding, fnn_hinge_embedding(x[0], x[1], o[0].number, r))
CALL(margin_ranking, fnn_margin_ranking(x[0], x[1], x[2], o[0].number, r))
CALL(triplet, fnn_triplet(x[0], x[1], x[2], o[0].number, o[1].number,
                          o[2].number, o[3].boolean, r))
CALL(contrastive, fnn_contrastive(x[0], x[1], x[2], o[0].number, r))
CALL(cosine_embedding, fnn_cosine_embedding(x[0], x[1], x[2], o[0].number, r))
CALL(info_nce, fnn_info_nce(x[0], x[1], o[0].number, r))
CALL(dice, fnn_dice(x[0], x[1], o[0].number, o[1].boolean, r))
CALL(ctc, fnn_ctc(x[0], x[1], x[2], x[3], o[0].integer, o[1].boolean, r))

static fnn_Tensor *call_cross_entropy (fnn_Tensor *const *x, const Value *o,
                                       fnn_Reduction r) {
  fnn_LossOptions all = { o[0].tensor, o[1].integer, o[2].number, r };
  return fnn_cross_entropy(x[0], x[1], &all);
}

static fnn_Tensor *call_nll (fnn_Tensor *const *x, const Value *o,
                             fnn_Reduction r) {
  fnn_LossOptions all = { o[0].tensor, o[1].integer, 0, r };
  return fnn_nll(x[0], x[1], &all);
}

#define NUMBER(name, v, least) \
  { name, OPTION_NUMBER, v, least, false }
#define ABOVE(name, v, least) \
  { name, OPTION_NUMBER, v, least, true }
#define SHARE(name, v) \
  { name, OPTION_SHARE, v, 0, false }
#define INTEGER(name, v) \
  { name, OPTION_INTEGER, v, 0, false }
#define BOOLEAN(name, v) \
  { name, OPTION_BOOLEAN, v, 0, false }
#define WEIGHT(name) \
  { name, OPTION_TENSOR, 0, 0, false }
#define MARGIN(v) NUMBER("margin", v, -INFINITY)

#define LOSS(name, inputs, ids, ...) \
  { \
#name, inputs, ids, call_##name, { __VA_ARGS__ } \
  }

static const Loss losses[] = {
  LOSS(cross_entropy, 2, 1u << 1, WEIGHT("weight"),
       INTEGER("ignore_index", -100), SHARE("label_smoothing", 0)),
  LOSS(nll, 2, 1u << 1, WEIGHT("weight"), INTEGER("ignore_index", -100)),
  LOSS(mse, 2, 0),
  LOSS(l1, 2, 0),
  LOSS(huber, 2, 0, ABOVE("delta", 1, 0)),
  LOSS(smooth_l1, 2, 0, NUMBER("beta", 1, 0)),
  LOSS(bce, 2, 0, WEIGHT("weight")),
  LOSS(bce_with_logits, 2, 0, WEIGHT("weight"), WEIGHT("pos_weight")),
  LOSS(focal, 2, 0, NUMBER("alpha", 0.25, -INFINITY), NUMBER("gamma", 2, 0)),
  LOSS(kl_div, 2, 0, BOOLEAN("log_target", false)),
  LOSS(kl_divergence, 2, 0),
  LOSS(gaussian_nll, 3, 0, BOOLEAN("full", false), ABOVE("eps", 1e-6, 0)),
  LOSS(gaussian_nll_log_var, 3, 0),
  LOSS(poisson_nll, 2, 0, BOOLEAN("log_input", true), BOOLEAN("full", false),
       NUMBER("eps", 1e-8, 0)),
  LOSS(hinge, 2, 1u << 1, MARGIN(1)),
  LOSS(hinge_embedding, 2, 1u << 1, MARGIN(1)),
  LOSS(margin_ranking, 3, 1u << 2, MARGIN(0)),
  LOSS(triplet, 3, 0, ABOVE("margin", 1, 0), ABOVE("p", 2, 0),
       NUMBER("eps", 1e-6, 0), BOOLEAN("swap", false)),
  LOSS(contrastive, 3, 1u << 2, NUMBER("margin", 1, 0)),
  LOSS(cosine_embedding, 3, 1u << 2, MARGIN(0)),
  LOSS(info_nce, 2, 0, ABOVE("temperature", 0.1, 0)),
  LOSS(dice, 2, 0, NUMBER("smooth", 1, 0), BOOLEAN("batch", false)),
  LOSS(ctc, 4, 7u << 1, INTEGER("blank", 0), BOOLEAN("zero_infinity", false)),
};

/* }====================================================== */

/*
** {======================================================
** Reading the options
** =======================================================
*/

static fnn_Reduction opt_reduction (lua_State *L, const Loss *l, int o) {
  static const char *const names[] = { "mean", "sum", "none", "batchmean" };
  const char *s = opt_string(L, o, "reduction", "mean");
  bool four = l->call == call_kl_div;
  for (int i = 0; i < (four ? 4 : 3); i++)
    if (strcmp(s, names[i]) == 0) return (fnn_Reduction)i;
  raise_option(L, "option 'reduction': expected mean, sum%s none, got '%s'",
               four ? ", batchmean or" : " or", s);
  return FNN_MEAN;
}

static double opt_least (lua_State *L, int at, const Option *o) {
  double v = opt_number(L, at, o->name, o->fallback);
  if (v > o->least || (v == o->least && !o->open)) return v;
  if (isinf(o->least))
    raise_option(L, "option '%s': expected a number, got %f", o->name, v);
  raise_option(L, "option '%s': expected a number %s %f, got %f", o->name,
               o->open ? "greater than" : "of at least", o->least, v);
  return v;
}

static double opt_share (lua_State *L, int at, const Option *o) {
  double v = opt_number(L, at, o->name, o->fallback);
  if (!(v >= 0 && v <= 1))
    raise_option(L, "option '%s': expected a number from 0 to 1, got %f",
                 o->name, v);
  return v;
}

static void read_option (lua_State *L, const Option *o, int at, Value *v) {
  switch (o->kind) {
    case OPTION_NUMBER: v->number = opt_least(L, at, o); return;
    case OPTION_SHARE: v->number = opt_share(L, at, o); return;
    case OPTION_INTEGER:
      v->integer = opt_integer(L, at, o->name, (int64_t)o->fallback);
      return;
    case OPTION_BOOLEAN:
      v->boolean = opt_boolean(L, at, o->name, o->fallback != 0);
      return;
    default: v->tensor = opt_tensor(L, at, o->name);
  }
}

/* Reads the options at i into v. */
static fnn_Reduction read_options (lua_State *L, const Loss *l, int i,
                                   Value *v) {
  const char *names[OPTIONS + 2] = { NULL };
  int n = 0;
  for (; l->options[n].name != NULL; n++) names[n] = l->options[n].name;
  names[n] = "reduction";
  int at = options(L, i, names);
  memset(v, 0, OPTIONS * sizeof *v);
  for (int k = 0; k < n; k++) read_option(L, &l->options[k], at, &v[k]);
  return opt_reduction(L, l, at);
}

/* loss(x, target ... [, options]) */
static int loss_call (lua_State *L) {
  const Loss *l = &losses[lua_tointeger(L, lua_upvalueindex(2))];
  fnn_Tensor *x[INPUTS];
  Value v[OPTIONS];
  lua_settop(L, l->inputs + 1); /* checkids pushes */
  for (int k = 0; k < l->inputs; k++)
    x[k] = l->ids >> k & 1 ? checkids(L, k + 1, x[0]->storage->device)
                           : checktensor(L, k + 1);
  fnn_Reduction r = read_options(L, l, l->inputs + 1, v);
  void **y = newbox(L, TENSOR);
  guard(L, *y = fnn_retain(l->call(x, v, r)));
  return 1;
}

/* check(options): raises for what the loss would not take */
static int loss_check (lua_State *L) {
  Value v[OPTIONS];
  lua_settop(L, 1);
  read_options(L, &losses[lua_tointeger(L, lua_upvalueindex(2))], 1, v);
  return 0;
}

/* }====================================================== */

static void set_function (lua_State *L, const char *name, lua_CFunction f,
                          int i) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, i);
  lua_pushcclosure(L, f, 2);
  lua_setfield(L, -2, name);
}

/* Into the table on the top, as losses: of each its function, what checks its
** options, their names, and how many inputs it has. */
void add_losses (lua_State *L) {
  lua_newtable(L);
  for (int i = 0; i < countof(losses); i++) {
    const Loss *l = &losses[i];
    lua_newtable(L);
    set_function(L, "loss", loss_call, i);
    set_function(L, "check", loss_check, i);
    lua_pushinteger(L, l->inputs);
    lua_setfield(L, -2, "inputs");
    lua_newtable(L);
    int n = 0;
    for (; l->options[n].name != NULL; n++) {
      lua_pushstring(L, l->options[n].name);
      lua_rawseti(L, -2, n + 1);
    }
    lua_pushliteral(L, "reduction");
    lua_rawseti(L, -2, n + 1);
    lua_setfield(L, -2, "options");
    lua_setfield(L, -2, l->name);
  }
  lua_setfield(L, -2, "losses");
}

/* Those that are methods of the prediction. */
void open_loss (lua_State *L) {
  pushmethods(L, TENSOR);
  for (int i = 0; i < countof(losses); i++)
    if (losses[i].call == call_cross_entropy || losses[i].call == call_mse)
      set_function(L, losses[i].name, loss_call, i);
  lua_pop(L, 1);
}
