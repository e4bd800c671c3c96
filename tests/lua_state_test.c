/* lua_state_test.c - the library in the states of a host: several, on several
** threads, with a collector and a cancel of the host's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <string.h>

#include "../lua/fnnlib.h"

static lua_State *open_state (void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  luaL_requiref(L, "fnn", luaopen_fnn, 1);
  lua_pop(L, 1);
  return L;
}

/* Runs a script that must succeed; its first result as a number. */
static double run (lua_State *L, const char *script) {
  if (luaL_dostring(L, script) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
  double v = lua_tonumber(L, 1);
  lua_settop(L, 0);
  assert_null(fnn_current());
  return v;
}

/* Runs a script that must fail with part in the message. */
static void fails (lua_State *L, const char *part, const char *script) {
  assert_int_not_equal(luaL_dostring(L, script), LUA_OK);
  if (strstr(lua_tostring(L, -1), part) == NULL)
    fail_msg("%s (expected \"%s\")", lua_tostring(L, -1), part);
  lua_settop(L, 0);
  assert_null(fnn_current());
}

static void opens_once (void **state) {
  (void)state;
  lua_State *L = open_state();
  luaopen_fnn(L);
  lua_getglobal(L, "fnn");
  assert_true(lua_rawequal(L, -1, -2));
  lua_settop(L, 0);
  fnn_openlibs(L, NULL);
  lua_getglobal(L, "fnn");
  assert_true(lua_rawequal(L, -1, -2));
  lua_close(L);
}

static void leaves_the_collector_as_it_is (void **state) {
  (void)state;
  lua_State *L = luaL_newstate();
  lua_gc(L, LUA_GCGEN, 0, 0);
  luaL_openlibs(L);
  luaL_requiref(L, "fnn", luaopen_fnn, 1);
  lua_settop(L, 0);
  run(L, "for i = 1, 40 do fnn.ones(1 << 18) end"); /* 40 MB */
  assert_int_equal(lua_gc(L, LUA_GCINC, 0, 0, 0), LUA_GCGEN);
  lua_gc(L, LUA_GCSTOP);
  double live = run(L, "for i = 1, 80 do fnn.ones(1 << 18) end\n"
                       "return fnn.memory().live");
  assert_true(live >= 80 << 20); /* nothing was collected */
  assert_false(lua_gc(L, LUA_GCISRUNNING));
  lua_gc(L, LUA_GCRESTART);
  live = run(L, "for i = 1, 80 do fnn.ones(1 << 18) end\n"
                "return fnn.memory().live");
  assert_true(live < 40 << 20);
  lua_close(L);
}

/* A cancel is no failure of what is tried: it goes on to the host. */
static void a_cancel_passes_try (void **state) {
  static const char *const scripts[] = {
    "local x = fnn.ones(300, 300)\nreturn x:try_matmul(x)",
    "local x = fnn.ones(300, 300)\n"
    "return fnn.try_no_grad(function () return x:matmul(x) end)",
    "local Block = fnn.nn.module 'Block'\n"
    "function Block:forward (x) return x:matmul(x) end\n"
    "return Block():try_forward(fnn.ones(300, 300))",
  };
  (void)state;
  lua_State *L = open_state();
  fnn_Cancel *token = fnn_cancel_token(fnn_tocontext(L));
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    fnn_cancel(token);
    fails(L, "cancelled", scripts[i]);
    assert_int_equal(run(L, "return fnn.ones(2):sum():item()"), 2);
  }
  run(L, "local y, text = fnn.ones(2):try_matmul(fnn.ones(3))\n"
         "assert(y == nil and text:find 'matmul')");
  lua_close(L);
}

/*
** {======================================================
** A script's handler of interrupts, by the token
** =======================================================
*/

static const char listen[] = "calls = 0\n"
                             "function note () calls = calls + 1 end\n"
                             "assert(fnn.on_interrupt(note) == nil)";

static const char work[] =
    "local x = fnn.ones(300, 300)\n"
    "local y = x:matmul(x)\n"
    "assert(y:eq(300):all():item())\n" /* no part of it is missing */
    "return calls";

static void a_cancel_calls_the_handler_once (void **state) {
  (void)state;
  lua_State *L = open_state();
  fnn_Cancel *token = fnn_cancel_token(fnn_tocontext(L));
  for (int i = 0; i < 3; i++) {
    run(L, listen);
    assert_int_equal(run(L, work), 0);
    fnn_cancel(token);
    assert_int_equal(run(L, work), 1);
    assert_int_equal(run(L, work), 1);
    fnn_cancel(token); /* it was called: now it is a cancel */
    fails(L, "cancelled", work);
    run(L, "assert(fnn.on_interrupt(nil) == nil)");
    assert_int_equal(run(L, work), 1);
  }
  lua_close(L);
}

static void a_handler_asked_twice_is_cancelled (void **state) {
  (void)state;
  lua_State *L = open_state();
  fnn_Cancel *token = fnn_cancel_token(fnn_tocontext(L));
  run(L, listen);
  fnn_cancel(token);
  fnn_cancel(token);
  fails(L, "cancelled", "fnn.ones(300, 300):sum()");
  assert_int_equal(run(L, work), 1);
  lua_close(L);
}

/* One that goes while it is asked for is called, not lost. */
static void a_handler_is_replaced (void **state) {
  (void)state;
  lua_State *L = open_state();
  fnn_Cancel *token = fnn_cancel_token(fnn_tocontext(L));
  run(L, listen);
  run(L, "assert(fnn.on_interrupt(nil) == note)");
  fnn_cancel(token);
  fails(L, "cancelled", work);
  run(L, listen);
  fnn_cancel(token);
  assert_int_equal(run(L, "assert(fnn.on_interrupt(nil) == nil)\n"
                          "return calls"),
                   1);
  run(L, listen);
  fnn_cancel(token);
  assert_int_equal(run(L, "local other = function () end\n"
                          "assert(fnn.on_interrupt(other) == nil)\n"
                          "assert(fnn.on_interrupt(nil) == other)\n"
                          "return calls"),
                   1);
  lua_close(L);
}

/* Nothing that reads ahead, waits or walks loses it, and nothing is torn. */
static void a_handler_waits_for_no_op (void **state) {
  static const char *const scripts[] = {
    "local ids = fnn.arange(40)\n"
    "loader = loader or fnn.data.DataLoader(fnn.data.TensorDataset(ids),\n"
    "  { batch = 3, shuffle = true, prefetch = 2 })\n"
    "local sum = 0\n"
    "for x in loader do sum = sum + x:sum():item() end\n"
    "assert(sum == 780)\n",
    "local p = fnn.Param(fnn.ones(4))\n"
    "for i = 1, 20 do (p * 2):sum():backward() end\n"
    "assert(p:grad():eq(40):all():item())\n",
    "local path = os.tmpname()\n"
    "fnn.io.save_safetensors(path, { { 'x', fnn.ones(70000) } })\n"
    "local x = fnn.io.open_safetensors(path):read 'x'\n"
    "os.remove(path)\n"
    "assert(x:sum():item() == 70000)\n",
    "local f = coroutine.wrap(function ()\n"
    "  for i = 1, 9 do coroutine.yield(fnn.ones(i):sum():item()) end\n"
    "end)\n"
    "for i = 1, 9 do assert(f() == i) end\n",
    "assert(coroutine.wrap(fnn.ones)(3):numel() == 3)\n",
    "local a, t = 0, fnn.ones(9)\n"
    "string.gsub('aaa', 'a', function () a = a + t:sum():item() end)\n"
    "assert(a == 27)\n",
  };
  (void)state;
  lua_State *L = open_state();
  fnn_Cancel *token = fnn_cancel_token(fnn_tocontext(L));
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    run(L, listen);
    fnn_cancel(token);
    run(L, scripts[i]);
    assert_int_equal(run(L, "return fnn.ones(1) and calls"), 1);
    assert_int_equal(lua_gethookmask(L), 0);
  }
  lua_close(L);
}

static void a_handler_goes_with_its_state (void **state) {
  fnn_Host host = FNN_HOST_INIT;
  (void)state;
  host.cancel = fnn_cancel_new();
  for (int i = 0; i < 2; i++) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    fnn_openlibs(L, &host);
    lua_setglobal(L, "fnn");
    if (i == 0) run(L, listen);
    else {
      fnn_cancel(host.cancel);
      fails(L, "cancelled", work);
    }
    lua_close(L);
  }
  fnn_cancel_free(host.cancel);
}

/* }====================================================== */

/*
** {======================================================
** Threads
** =======================================================
*/

static const char step[] =
    "local nn = fnn.nn\n"
    "model = model or nn.Sequential(nn.Linear(8, 8), nn.ReLU())\n"
    "opt = opt or fnn.optim.Adam(model:parameters(), { lr = 0.01 })\n"
    "opt:zero_grad()\n"
    "model(fnn.ones(4, 8)):square():mean():backward()\n"
    "opt:step()\n"
    "count = (count or 0) + 1\n"
    "return count\n";

static void *one_step (void *L) {
  run(L, step);
  return NULL;
}

static void a_state_goes_from_thread_to_thread (void **state) {
  (void)state;
  lua_State *L = open_state();
  for (int i = 0; i < 8; i++) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, one_step, L), 0);
    pthread_join(t, NULL);
    run(L, "collectgarbage()");
  }
  assert_int_equal(run(L, step), 9);
  lua_close(L);
}

static void *closes (void *L) {
  for (int i = 0; i < 50; i++) run(L, step);
  run(L, "collectgarbage()");
  lua_close(L);
  return NULL;
}

static void states_run_side_by_side (void **state) {
  enum { N = 4 };
  pthread_t t[N];
  (void)state;
  for (int i = 0; i < N; i++)
    assert_int_equal(pthread_create(&t[i], NULL, closes, open_state()), 0);
  for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
}

/* }====================================================== */

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(opens_once),
    cmocka_unit_test(leaves_the_collector_as_it_is),
    cmocka_unit_test(a_cancel_passes_try),
    cmocka_unit_test(a_cancel_calls_the_handler_once),
    cmocka_unit_test(a_handler_asked_twice_is_cancelled),
    cmocka_unit_test(a_handler_is_replaced),
    cmocka_unit_test(a_handler_waits_for_no_op),
    cmocka_unit_test(a_handler_goes_with_its_state),
    cmocka_unit_test(a_state_goes_from_thread_to_thread),
    cmocka_unit_test(states_run_side_by_side),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
