/* lrecurrent.c - recurrent layers in Lua, as methods of the input:
** y, h, c = x:lstm(w_ih, w_hh, b_ih, b_hh, { h = h, c = c }). */

#include <string.h>

#include "../src/core/core.h"
#include "lbox.h"

static const char *const lstm_options[] = { "h", "c", "lengths", "reverse",
                                            NULL };
static const char *const gru_options[] = { "h", "lengths", "reverse", NULL };
static const char *const rnn_options[] = { "h", "lengths", "reverse",
                                           "nonlinearity", NULL };

/* The lengths of the option, or NULL; left on the stack. */
static fnn_Tensor *opt_lengths (lua_State *L, int o, const fnn_Tensor *x) {
  if (o == 0) return NULL;
  lua_pushliteral(L, "lengths");
  if (lua_rawget(L, o) == LUA_TNIL) return NULL;
  if (!lua_istable(L, -1) && testtensor(L, -1) == NULL)
    raise_option(L,
                 "option 'lengths': expected a table of integers or a tensor, "
                 "got %s",
                 push_type_name(L, -1));
  return checkids(L, -1, x->storage->device);
}

static fnn_Cell opt_cell (lua_State *L, int o) {
  const char *s = opt_string(L, o, "nonlinearity", "tanh");
  if (strcmp(s, "tanh") != 0 && strcmp(s, "relu") != 0)
    raise_option(L,
                 "option 'nonlinearity': expected 'tanh' or 'relu', got "
                 "'%s'",
                 s);
  return s[0] == 't' ? FNN_RNN_TANH : FNN_RNN_RELU;
}

/* (x, w_ih, w_hh [, b_ih, b_hh] [, options]) */
static int recurrent (lua_State *L, fnn_Cell cell, const char *const *names) {
  fnn_Tensor *x = checktensor(L, 1);
  fnn_Recurrent r = { .cell = cell };
  r.w_ih = checktensor(L, 2);
  r.w_hh = checktensor(L, 3);
  int at = lua_istable(L, 4) ? 4 : 6;
  if (at == 6) {
    r.b_ih = opttensor(L, 4);
    r.b_hh = opttensor(L, 5);
  }
  int o = options(L, at, names);
  if (cell == FNN_RNN_TANH) r.cell = opt_cell(L, o);
  r.reverse = opt_boolean(L, o, "reverse", false);
  r.h = opt_tensor(L, o, "h");
  if (cell == FNN_LSTM) r.c = opt_tensor(L, o, "c");
  r.lengths = opt_lengths(L, o, x);
  void **y = newbox(L, TENSOR), **h = newbox(L, TENSOR), **c = NULL;
  if (cell == FNN_LSTM) c = newbox(L, TENSOR);
  guard(L, fnn_Tensor * last, *inner;
        *y = fnn_retain(fnn_recurrent(x, &r, &last, &inner));
        *h = fnn_retain(last); if (c != NULL) *c = fnn_retain(inner));
  return c != NULL ? 3 : 2;
}

static int lstm (lua_State *L) { return recurrent(L, FNN_LSTM, lstm_options); }
static int gru (lua_State *L) { return recurrent(L, FNN_GRU, gru_options); }
static int rnn (lua_State *L) {
  return recurrent(L, FNN_RNN_TANH, rnn_options);
}

static const luaL_Reg both[] = {
  { "lstm", lstm }, { "gru", gru }, { "rnn", rnn }, { NULL, NULL }
};

void open_recurrent (lua_State *L) {
  addmethods(L, TENSOR, both);
  addfunctions(L, both);
}
