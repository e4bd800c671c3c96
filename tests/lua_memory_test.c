/* lua_memory_test.c - every allocation of a script's work failed in turn, the
** engine's and Lua's own, which come from one heap.
**
** The work makes a model with a module written in Lua, a matrix product and a
** normalization, takes a step with a gradient and an optimizer, calls back
** into Lua from the engine, saves a file, draws ids, and goes through
** attention and a recurrent layer.  Each time a new state does it: it must end
** in an error or in the right value, do the same work rightly afterwards, and
** give back all bytes when it is closed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lua/fnnlib.h"
#include "../src/core/core.h"
#include "slow.h"

/*
** {======================================================
** A heap that counts, checks and fails
** =======================================================
*/

enum { HEADER = 64, FRESH = 0xa5, FREED = 0xdd };

/* Of the calls since reset, those from the first to the last to fail do. */
typedef struct Heap {
  atomic_long calls, blocks, wrong;
  long first, last;
} Heap;

static void heap_fail (Heap *h, long first, long last) {
  h->calls = 0;
  h->first = first;
  h->last = last;
}

static void heap_free (Heap *h, char *block, size_t size) {
  if (*(size_t *)(void *)block != size) h->wrong++;
  memset(block, FREED, size + HEADER);
  free(block);
  h->blocks--;
}

/* Shrinking never fails, as Lua asks; a block that grows always moves. */
static void *heap_alloc (void *ud, void *p, size_t osize, size_t nsize) {
  Heap *h = ud;
  char *old = p != NULL ? (char *)p - HEADER : NULL;
  if (nsize == 0) {
    if (old != NULL) heap_free(h, old, osize);
    return NULL;
  }
  if (old == NULL || nsize > osize) {
    long call = ++h->calls;
    if (call >= h->first && call <= h->last) return NULL;
  }
  char *block = malloc(nsize + HEADER);
  if (block == NULL) abort();
  memset(block, FRESH, nsize + HEADER);
  *(size_t *)(void *)block = nsize;
  h->blocks++;
  if (old != NULL) {
    memcpy(block + HEADER, p, osize < nsize ? osize : nsize);
    heap_free(h, old, osize);
  }
  return block + HEADER;
}

/* }====================================================== */

/*
** {======================================================
** The work
** =======================================================
*/

static char folder[] = "/tmp/lua_memory_test-XXXXXX";
static char path[sizeof folder + 20];

static const char work[] =
    "local fnn, path = ...\n"
    "local nn, optim = fnn.nn, fnn.optim\n"
    "fnn.manual_seed(1)\n"
    "local Block = nn.module 'Block'\n"
    "function Block:init (n)\n"
    "  self.inner = nn.Linear(n, n)\n"
    "  self.norm = nn.LayerNorm(n)\n"
    "end\n"
    "function Block:forward (x) return x + self.norm(self.inner(x)):relu() "
    "end\n"
    "local model = nn.Sequential(Block(8), nn.Linear(8, 3))\n"
    "local opt = optim.AdamW(model:parameters(), { lr = 0.01 })\n"
    "local x = fnn.randn(4, 8)\n"
    "local y = fnn.tensor({ 0, 1, 2, 0 }, { dtype = 'i64' })\n"
    "local p = fnn.Param(fnn.ones(3))\n"
    "local function double (z)\n"
    "  return fnn.record(z * 2, 'double', { z }, function (g) return g * 2 "
    "end)\n"
    "end\n"
    "for step = 1, 2 do\n"
    "  opt:zero_grad()\n"
    "  local out = double(model(x) * p)\n"
    "  out:register_hook(function (g) return g + 0 end)\n"
    "  local loss = out:cross_entropy(y)\n"
    "  loss:backward()\n"
    "  opt:step()\n"
    "end\n"
    "model:save(path)\n"
    "local sampler = fnn.text.Sampler { top_k = 3, top_p = 0.9, seed = 1,\n"
    "  presence_penalty = 1, callback = function (l) l[1] = -1 end }\n"
    "sampler(fnn.randn(2, 5), { { 1, 2 }, { 4 } })\n"
    "local q, w = fnn.Param(fnn.randn(2, 9, 4)), fnn.Param(fnn.randn(6, 2))\n"
    "local a = fnn.scaled_dot_product_attention(q, q, q, { causal = true })\n"
    "a:rotary(fnn.ones(9, 2), fnn.ones(9, 2)):sum():backward()\n"
    "fnn.gru(fnn.ones(1, 3, 2), w, w, { lengths = { 2 } }):sum():backward()\n"
    "local loss = fnn.scope(fnn.no_grad, function ()\n"
    "  return model(x):cross_entropy(y)\n"
    "end)\n"
    "return loss:item(), assert(fnn.is_grad_enabled())\n";

/* open(heap): the standard libraries and fnn's table */
static int open_all (lua_State *L) {
  fnn_Host host = FNN_HOST_INIT;
  host.alloc = heap_alloc;
  host.ud = lua_touserdata(L, 1);
  host.threads = 1;
  luaL_openlibs(L);
  fnn_openlibs(L, &host);
  return 1;
}

/* Opens the libraries in a new state of this heap, fnn's table at 1; false
** when there is no memory. */
static bool open_state (lua_State *L, Heap *h) {
  lua_pushcfunction(L, open_all);
  lua_pushlightuserdata(L, h);
  return lua_pcall(L, 1, 1, 0) == LUA_OK;
}

/* Does the work; *loss is what it gives. */
static bool do_work (lua_State *L, double *loss) {
  lua_settop(L, 1);
  if (luaL_loadbufferx(L, work, sizeof work - 1, "=work", "t") != LUA_OK)
    return false;
  lua_pushvalue(L, 1);
  lua_pushstring(L, path);
  if (lua_pcall(L, 2, 1, 0) != LUA_OK) return false;
  *loss = lua_tonumber(L, -1);
  lua_settop(L, 1);
  return true;
}

static const char *message (lua_State *L) {
  const char *s = lua_tostring(L, -1);
  return s != NULL ? s : "an error that is no string";
}

static int guarded_work (lua_State *L) {
  double *loss = lua_touserdata(L, 2);
  if (!do_work(L, loss)) lua_error(L);
  return 0;
}

/* do_work under its own pcall: lua_pushstring may raise, too. */
static bool try_work (lua_State *L, double *loss) {
  lua_pushcfunction(L, guarded_work);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, loss);
  return lua_pcall(L, 2, 0, 0) == LUA_OK;
}

static void must_work (lua_State *L, double want, long n) {
  double loss = 0;
  lua_settop(L, 1);
  if (!try_work(L, &loss)) fail_msg("after %ld: %s", n, message(L));
  if (loss != want) fail_msg("after %ld: %g (expected %g)", n, loss, want);
}

static void closed (lua_State *L, Heap *h, long n) {
  lua_close(L);
  if (fnn_current() != NULL) fail_msg("%ld: a context is left", n);
  if (h->blocks != 0) fail_msg("%ld: %ld blocks leaked", n, (long)h->blocks);
  if (h->wrong != 0) fail_msg("%ld: %ld sizes wrong", n, (long)h->wrong);
}

/* }====================================================== */

/*
** {======================================================
** The sweeps
** =======================================================
*/

/* How many calls fail from the n-th on: one, which Lua and the engine try
** again after a collection; two, the second try; all. */
static const long spans[] = { 1, 2, LONG_MAX / 2 };

/* The loss of the work when nothing fails. */
static double reference (void) {
  Heap h = { 0 };
  double loss = 0;
  lua_State *L = lua_newstate(heap_alloc, &h);
  assert_true(open_state(L, &h));
  if (!try_work(L, &loss)) fail_msg("%s", message(L));
  closed(L, &h, 0);
  assert_true(loss > 0.1 && loss < 2);
  return loss;
}

/* Fails from the n-th call of the work; whether any call did. */
static bool fail_work (long n, long span, double want) {
  Heap h = { 0 };
  double loss = 0;
  lua_State *L = lua_newstate(heap_alloc, &h);
  assert_true(open_state(L, &h));
  heap_fail(&h, n, n + span - 1);
  bool done = try_work(L, &loss);
  bool failed = h.calls >= n;
  heap_fail(&h, 0, -1);
  if (done && loss != want) fail_msg("%ld: %g (expected %g)", n, loss, want);
  if (!done && strstr(message(L), "memory") == NULL)
    fail_msg("%ld: %s", n, message(L));
  must_work(L, want, n);
  closed(L, &h, n);
  return failed;
}

static void sweep_of_the_work (void **state) {
  (void)state;
  double want = reference();
  for (int k = 0; k < countof(spans); k++) {
    long n = 1;
    while (fail_work(n, spans[k], want)) n += is_slow() ? 67 : 1;
    print_message("# %ld allocations of a step failed, %s\n", n - 1,
                  k == 0   ? "each once"
                  : k == 1 ? "each twice"
                           : "and all behind each");
  }
}

/* The same while the libraries are opened, and once more in that state. */
static bool fail_open (long n, double want) {
  Heap h = { 0 };
  lua_State *L = lua_newstate(heap_alloc, &h);
  heap_fail(&h, n, LONG_MAX);
  bool done = open_state(L, &h);
  bool failed = h.calls >= n;
  heap_fail(&h, 0, -1);
  if (!done) {
    if (strstr(message(L), "memory") == NULL)
      fail_msg("%ld: %s", n, message(L));
    lua_settop(L, 0);
    if (!open_state(L, &h)) fail_msg("after %ld: %s", n, message(L));
  }
  must_work(L, want, n);
  closed(L, &h, n);
  return failed;
}

/* How many calls the opening makes. */
static long opening (void) {
  Heap h = { 0 };
  lua_State *L = lua_newstate(heap_alloc, &h);
  heap_fail(&h, 0, -1);
  assert_true(open_state(L, &h));
  long calls = h.calls;
  closed(L, &h, 0);
  return calls;
}

/* A sample: there are thousands, most of them of the compiler of Lua.  All of
** the last, when the library says that it is open. */
static void sweep_of_the_opening (void **state) {
  (void)state;
  double want = reference();
  long n = 1, count = 0, last = opening() - 40;
  while (fail_open(n, want)) {
    count++;
    if (n < last) n += min64(is_slow() ? 401 : 29, last - n);
    else n += is_slow() ? 5 : 1;
  }
  print_message("# %ld of %ld allocations of the opening failed\n", count,
                n - 1);
}

/* }====================================================== */

static int start (void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  return 0;
}

/* A save that failed leaves nothing beside the file. */
static int stop (void **state) {
  (void)state;
  return remove(path) != 0 || rmdir(folder) != 0 ? -1 : 0;
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sweep_of_the_work),
    cmocka_unit_test(sweep_of_the_opening),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
