/* host.c - fnn inside a host program: two Lua states on two threads.
**
**   cc host.c -o host $(pkg-config --cflags --libs fnn-lua) -lpthread
**
** The host gives its own allocator, log, progress and memory limit; hands a
** state its own memory as a tensor; stops a training loop and a long product
** from another thread; shares a tensor between the states; moves a state to
** another thread; and closes both.  It also compiles as C++. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
#include <atomic>
using std::atomic_int;
using std::atomic_llong;
#else
#include <stdatomic.h>
#endif

#include <fnn.h>
#include <fnnlib.h>
#include <lauxlib.h>
#include <lualib.h>

/* What the host keeps for each state. */
typedef struct Player {
  const char *name;
  lua_State *L;
  fnn_Cancel *cancel;
  atomic_llong bytes; /* held through our allocator */
  atomic_int steps;   /* progress reports seen */
} Player;

static void fail (const char *what) {
  fprintf(stderr, "host: %s\n", what);
  exit(1);
}

/*
** {======================================================
** What the host gives to a state
** =======================================================
*/

static void *host_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  Player *player = (Player *)ud;
  if (nsize == 0) {
    player->bytes -= p != NULL ? (long long)osize : 0;
    free(p);
    return NULL;
  }
  void *q = realloc(p, nsize);
  if (q != NULL)
    player->bytes += (long long)nsize - (p != NULL ? (long long)osize : 0);
  return q;
}

static void host_log (void *ud, fnn_Level level, const char *text) {
  (void)level;
  printf("  [%s] %s\n", ((Player *)ud)->name, text);
}

static bool host_progress (void *ud, const char *what, int64_t step,
                           int64_t total) {
  (void)what, (void)step, (void)total;
  ((Player *)ud)->steps++;
  return false; /* go on */
}

static void open_player (Player *player, const char *name) {
  player->name = name;
  player->cancel = fnn_cancel_new();
  player->L = luaL_newstate();
  if (player->cancel == NULL || player->L == NULL) fail("no memory");
  fnn_Host host = FNN_HOST_INIT;
  host.ud = player;
  host.alloc = host_alloc;
  host.log = host_log;
  host.progress = host_progress;
  host.memory_limit = 256u << 20;
  host.cancel = player->cancel;
  luaL_openlibs(player->L);
  fnn_openlibs(player->L, &host);
  lua_setglobal(player->L, "fnn");
}

static void close_player (Player *player) {
  lua_close(player->L);
  fnn_cancel_free(player->cancel);
}

/* }====================================================== */

/* Runs a script; returns the message of its error, or NULL. */
static const char *run (Player *player, const char *script) {
  if (luaL_dostring(player->L, script) == LUA_OK) return NULL;
  return lua_tostring(player->L, -1);
}

static void must_run (Player *player, const char *script) {
  const char *message = run(player, script);
  if (message != NULL) fail(message);
  lua_settop(player->L, 0);
}

static void expect (const char *message, const char *part) {
  if (message == NULL) fail("an error was expected");
  if (strstr(message, part) == NULL) fail(message);
  printf("  as expected: %s\n", message);
}

/*
** {======================================================
** The host's own memory
** =======================================================
*/

static float samples[4] = { 1, 2, 3, 4 };
static int released;

static void release_samples (void *ud, void *data) {
  (void)ud;
  released += data == samples;
}

static void wrap (void *ud) {
  const int64_t shape[2] = { 2, 2 };
  fnn_Tensor **x = (fnn_Tensor **)ud;
  *x = (fnn_Tensor *)fnn_retain(
      fnn_wrap(FNN_F32, 2, shape, samples, release_samples, NULL, false));
}

/* A tensor over samples, as the global x: what the script writes is there. */
static void share_host_memory (Player *player) {
  fnn_Tensor *x;
  fnn_Context *before = fnn_use(fnn_tocontext(player->L));
  if (fnn_pcall(wrap, &x) != FNN_OK) fail(fnn_message());
  fnn_pushtensor(player->L, x);
  lua_setglobal(player->L, "x");
  fnn_release(x);
  fnn_use(before);
  must_run(player, "x[1][1] = 10; x[2]:mul_(2)");
  printf("host memory after the script: %g %g %g %g\n", samples[0], samples[1],
         samples[2], samples[3]);
  if (samples[0] != 10 || samples[3] != 8) fail("the memory is not shared");
  must_run(player, "x = nil; collectgarbage()");
  if (released != 1) fail("the memory was not given back");
}

/* }====================================================== */

/*
** {======================================================
** Training, and stopping it
** =======================================================
*/

static const char training[] =
    "local nn, optim = fnn.nn, fnn.optim\n"
    "fnn.manual_seed(1)\n"
    "local x = fnn.tensor{{0, 0}, {0, 1}, {1, 0}, {1, 1}}\n"
    "local y = fnn.tensor{{0}, {1}, {1}, {0}}\n"
    "local model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(),\n"
    "                            nn.Linear(16, 1))\n"
    "local opt = optim.Adam(model:parameters(), { lr = 0.02 })\n"
    "local steps = ...\n"
    "repeat\n"
    "  opt:zero_grad()\n"
    "  local loss = model(x):mse(y)\n"
    "  loss:backward()\n"
    "  opt:step()\n"
    "  steps = steps and steps - 1\n"
    "until steps == 0\n"
    "return model(x):mse(y):item()\n";

static void *train (void *ud) {
  Player *player = (Player *)ud;
  if (luaL_loadstring(player->L, training) != LUA_OK) fail("syntax");
  lua_pushinteger(player->L, 500);
  if (lua_pcall(player->L, 1, 1, 0) != LUA_OK)
    fail(lua_tostring(player->L, -1));
  printf("  %s trained to a loss of %.4f\n", player->name,
         lua_tonumber(player->L, -1));
  if (!(lua_tonumber(player->L, -1) < 0.05)) fail("it did not learn");
  lua_settop(player->L, 0);
  return NULL;
}

static void train_both (Player *a, Player *b) {
  pthread_t t;
  puts("two states train on two threads:");
  if (pthread_create(&t, NULL, train, b) != 0) fail("no thread");
  train(a);
  pthread_join(t, NULL);
}

static void *cancel_soon (void *ud) {
  const struct timespec pause = { 0, 100 * 1000 * 1000 };
  nanosleep(&pause, NULL);
  fnn_cancel((fnn_Cancel *)ud);
  return NULL;
}

/* Runs what would take very long, and cancels it from another thread. */
static void cancel (Player *player, const char *what, const char *script) {
  pthread_t t;
  printf("%s is cancelled from another thread:\n", what);
  if (pthread_create(&t, NULL, cancel_soon, player->cancel) != 0)
    fail("no thread");
  const char *message = run(player, script);
  pthread_join(t, NULL);
  expect(message, "cancel");
  lua_settop(player->L, 0);
}

/* }====================================================== */

/*
** {======================================================
** One storage in two states
** =======================================================
*/

static void take_handle (void *ud) {
  void **arg = (void **)ud;
  arg[1] = fnn_share((fnn_Tensor *)arg[0]);
}

static void make_shared (void *ud) {
  void **arg = (void **)ud;
  arg[0] = fnn_retain(fnn_shared((fnn_Share *)arg[1]));
}

static void share_between (Player *a, Player *b) {
  void *arg[2];
  must_run(a, "t = fnn.arange(6)");
  lua_getglobal(a->L, "t");
  arg[0] = fnn_totensor(a->L, -1);
  fnn_use(fnn_tocontext(a->L));
  if (fnn_pcall(take_handle, arg) != FNN_OK) fail(fnn_message());
  fnn_use(fnn_tocontext(b->L));
  if (fnn_pcall(make_shared, arg) != FNN_OK) fail(fnn_message());
  fnn_pushtensor(b->L, (fnn_Tensor *)arg[0]);
  lua_setglobal(b->L, "t");
  fnn_release(arg[0]);
  fnn_share_free((fnn_Share *)arg[1]);
  fnn_use(NULL);
  lua_settop(a->L, 0);
  must_run(b, "t[1] = 42");
  must_run(a, "assert(t[1] == 42, 'the storage is not shared')");
  puts("one storage is seen by both states");
}

/* }====================================================== */

static void *move_here (void *ud) {
  must_run((Player *)ud, "assert(fnn.ones(3):sum():item() == 3)");
  return NULL;
}

int main (void) {
  static Player a, b;
  open_player(&a, "alice");
  open_player(&b, "bob");
  share_host_memory(&a);
  train_both(&a, &b);

  puts("a state is held to its memory limit:");
  expect(run(&a, "return fnn.zeros(1 << 27)"), "out of memory");
  lua_settop(a.L, 0);

  cancel(&a, "a training loop", training);
  cancel(&b, "a long product",
         "local x = fnn.ones(3000, 3000)\n"
         "while true do x:matmul(x) end");

  share_between(&a, &b);

  pthread_t t;
  if (pthread_create(&t, NULL, move_here, &a) != 0) fail("no thread");
  pthread_join(t, NULL);
  puts("a state went to another thread and back");

  close_player(&a);
  close_player(&b);
  printf("both are closed; held by our allocator: %lld bytes\n",
         (long long)(a.bytes + b.bytes));
  return a.bytes + b.bytes == 0 ? 0 : 1;
}
