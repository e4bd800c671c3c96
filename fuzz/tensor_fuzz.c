/* tensor_fuzz.c - any bytes are calls on tensors: each gives values or raises.
**
** The bytes choose functions and methods by their places in sorted lists of
** names, and arguments of every type; results are kept in a few registers,
** which later calls take.  Plans (plans.lua) choose arguments that fit more
** often: layers and losses, forth and back, and steps of optimizers.  What
** runs for long is cancelled.  Nothing may be left behind, and the state must
** go on as before. */

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lua/fnnlib.h"

#define countof(a) ((int)(sizeof(a) / sizeof(*(a))))

enum { REGISTERS = 8, CALLS = 48 };

/* Places on the stack of the state. */
enum { FNN = 1, FUNCTIONS, METHODS, OPERATORS, PLANS, KEPT, TOP = KEPT };

typedef struct Input {
  const uint8_t *p, *end;
} Input;

static unsigned next (Input *in) { return in->p < in->end ? *in->p++ : 0; }

/*
** {======================================================
** Arguments
** =======================================================
*/

static int give_back (lua_State *L) { return lua_gettop(L); }

static const char *const words[] = { "f32",    "f64",       "f16",     "bf16",
                                     "i64",    "i32",       "u8",      "bool",
                                     "cpu",    "cuda",      "mean",    "sum",
                                     "none",   "ij,jk->ik", "bij,bjk", "ii->i",
                                     "...i,i", "" };

static const char *const keys[] = {
  "dtype",        "device",       "keepdim",      "dim",        "generator",
  "retain_graph", "correction",   "largest",      "descending", "eps",
  "reduction",    "ignore_index", "weight",       "values",     "gradient",
  "stable",       "stride",       "padding",      "dilation",   "groups",
  "ceil_mode",    "size",         "scale_factor", "mode"
};

static const lua_Number numbers[] = { 0,          0.5,      -1.5,   1e-30,
                                      1e30,       -1e300,   9.3e18, 1.0 / 0.0,
                                      -1.0 / 0.0, 0.0 / 0.0 };

static const lua_Integer integers[] = { 127,
                                        128,
                                        255,
                                        1000,
                                        65536,
                                        1 << 30,
                                        (lua_Integer)1 << 40,
                                        LUA_MAXINTEGER,
                                        LUA_MININTEGER };

static void push_register (lua_State *L, Input *in) {
  lua_rawgeti(L, KEPT, 1 + next(in) % REGISTERS);
}

static void push_argument (lua_State *L, Input *in, int depth);

static void push_list (lua_State *L, Input *in, int depth) {
  int n = (int)(next(in) % 5);
  lua_createtable(L, n, 0);
  for (int i = 1; i <= n; i++) {
    push_argument(L, in, depth);
    lua_rawseti(L, -2, i);
  }
}

static void push_options (lua_State *L, Input *in, int depth) {
  lua_newtable(L);
  for (int n = (int)(next(in) % 3); n >= 0; n--) {
    const char *key = keys[next(in) % countof(keys)];
    push_argument(L, in, depth);
    lua_setfield(L, -2, key);
  }
}

/* Mostly registers and small integers. */
static void push_argument (lua_State *L, Input *in, int depth) {
  unsigned b = next(in);
  switch (b % 16) {
    case 0:
    case 1:
    case 2:
    case 3: push_register(L, in); return;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: lua_pushinteger(L, (lua_Integer)(b / 16) - 4); return;
    case 9: lua_pushnumber(L, numbers[next(in) % countof(numbers)]); return;
    case 10: lua_pushstring(L, words[next(in) % countof(words)]); return;
    case 11: lua_pushboolean(L, b / 16 % 2); return;
    case 12:
      lua_pushinteger(L, integers[next(in) % countof(integers)]);
      return;
    case 13:
      if (depth < 3) {
        push_list(L, in, depth + 1);
        return;
      }
      break;
    case 14:
      if (depth < 2) {
        push_options(L, in, depth + 1);
        return;
      }
      break;
    case 15:
      if (b / 16 == 3) {
        lua_pushcfunction(L, give_back);
        return;
      }
  }
  lua_pushnil(L);
}

static int push_arguments (lua_State *L, Input *in) {
  int n = (int)(next(in) % 5);
  for (int i = 0; i < n; i++) push_argument(L, in, 0);
  return n;
}

/* }====================================================== */

/*
** {======================================================
** Calls
** =======================================================
*/

/* Pushes the value at a place, chosen by two bytes, of the list at t. */
static void push_chosen (lua_State *L, Input *in, int t) {
  unsigned n = (unsigned)lua_rawlen(L, t), b = next(in) << 8;
  b |= next(in);
  lua_rawgeti(L, t, 1 + b % (n > 0 ? n : 1));
}

/* Pushes a function and its arguments; returns how many. */
static int push_call (lua_State *L, Input *in) {
  unsigned what = next(in);
  if (what >= 128) {
    push_chosen(L, in, PLANS);
    push_register(L, in);
    push_register(L, in);
    return 2;
  }
  what %= 8;
  if (what < 2) {
    push_chosen(L, in, FUNCTIONS);
    return push_arguments(L, in);
  }
  if (what < 6) {
    push_chosen(L, in, METHODS);
    push_register(L, in);
    return 1 + push_arguments(L, in);
  }
  push_chosen(L, in, OPERATORS);
  push_register(L, in);
  push_argument(L, in, 0);
  push_argument(L, in, 0);
  return 3;
}

/* Keeps the results that are tensors or the like. */
static void keep_results (lua_State *L, Input *in) {
  for (; lua_gettop(L) > TOP; lua_pop(L, 1)) {
    if (lua_type(L, -1) != LUA_TUSERDATA) continue;
    lua_pushvalue(L, -1);
    lua_rawseti(L, KEPT, 1 + next(in) % REGISTERS);
  }
}

static atomic_bool stopped; /* the input has run long enough */
static Input *current;      /* what plans read */

/* byte(): the next one of the input, 0 behind its end */
static int byte (lua_State *L) {
  lua_pushinteger(L, current != NULL ? (lua_Integer)next(current) : 0);
  return 1;
}

static int play (lua_State *L, Input *in) {
  current = in;
  for (int i = 0; i < REGISTERS; i++) {
    lua_pushnil(L);
    lua_rawseti(L, KEPT, i + 1);
  }
  for (int k = 0; k < CALLS && in->p < in->end && !stopped; k++) {
    int n = push_call(L, in);
    lua_pcall(L, n, LUA_MULTRET, 0);
    keep_results(L, in);
  }
  current = NULL;
  return 0;
}

/* }====================================================== */

/*
** {======================================================
** The state
** =======================================================
*/

/* Of these, some take long, some change the state, some print; a hook that
** holds its own Param is never collected. */
static const char setup[] =
    "local fnn = ...\n"
    "local skip = { repl = 1, gradcheck = 1, summary = 1, Generator = 1,\n"
    "  set_memory_limit = 1, set_default_device = 1, manual_seed = 1,\n"
    "  set_default_dtype = 1, default_generator = 1,\n"
    "  register_hook = 1 }\n"
    "local function sorted (t)\n"
    "  local names, values = {}, {}\n"
    "  for name, v in pairs(t) do\n"
    "    if type(v) == 'function' and not skip[name]\n"
    "       and not name:find '^try_' then\n"
    "      names[#names + 1] = name\n"
    "    end\n"
    "  end\n"
    "  table.sort(names)\n"
    "  for i, name in ipairs(names) do values[i] = t[name] end\n"
    "  return values\n"
    "end\n"
    "local meta = debug.getmetatable(fnn.ones(1))\n"
    "local operators = {}\n"
    "for name, f in pairs(meta) do\n"
    "  if type(f) == 'function' then operators[name] = f end\n"
    "end\n"
    "operators.__gc = nil\n"
    "return sorted(fnn), sorted(meta.methods), sorted(operators)\n";

static fnn_Cancel *token;
static atomic_uint inputs; /* how many have begun */

/* Cancels an input that has run for one to two seconds. */
static void *watch (void *ud) {
  const struct timespec second = { 1, 0 };
  (void)ud;
  for (unsigned seen = 0;; seen = inputs) {
    nanosleep(&second, NULL);
    if (seen != inputs || seen == 0) continue;
    stopped = true;
    fnn_cancel(token);
  }
}

static lua_State *open_state (void) {
  lua_State *L = luaL_newstate();
  fnn_Host host = FNN_HOST_INIT;
  pthread_t t;
  token = fnn_cancel_new();
  if (L == NULL || token == NULL) abort();
  host.memory_limit = 64 << 20;
  host.threads = 1;
  host.cancel = token;
  luaL_openlibs(L);
  fnn_openlibs(L, &host);
  if (luaL_loadstring(L, setup) != LUA_OK) abort();
  lua_pushvalue(L, FNN);
  if (lua_pcall(L, 1, 3, 0) != LUA_OK) abort();
  if (luaL_loadfile(L, "fuzz/plans.lua") != LUA_OK) abort();
  lua_pushvalue(L, FNN);
  lua_pushcfunction(L, byte);
  if (lua_pcall(L, 2, 1, 0) != LUA_OK) abort();
  lua_newtable(L);
  if (pthread_create(&t, NULL, watch, NULL) != 0) abort();
  return L;
}

static void poll (void *ud) {
  (void)ud;
  fnn_poll();
}

/* Forgets the registers and a cancel; returns the objects that are left.  What
** the collector finds may hold values of Lua, which the next call drops. */
static uint64_t tidy (lua_State *L) {
  lua_settop(L, TOP);
  for (int i = 0; i < REGISTERS; i++) {
    lua_pushnil(L);
    lua_rawseti(L, KEPT, i + 1);
  }
  fnn_Context *before = fnn_use(fnn_tocontext(L));
  fnn_pcall(poll, NULL);
  if (!fnn_is_grad_mode()) abort();
  for (int i = 0; i < 4; i++) {
    lua_gc(L, LUA_GCCOLLECT);
    lua_getfield(L, FNN, "trim");
    lua_pcall(L, 0, 0, 0);
  }
  uint64_t objects = fnn_memory().objects;
  fnn_use(before);
  return objects;
}

/* }====================================================== */

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t n) {
  static lua_State *L;
  static uint64_t objects;
  if (L == NULL) {
    L = open_state();
    objects = tidy(L);
  }
  Input in = { bytes, bytes + n };
  stopped = false;
  inputs++;
  play(L, &in);
  if (fnn_current() != NULL) abort();
  if (tidy(L) != objects) abort();
  return 0;
}
