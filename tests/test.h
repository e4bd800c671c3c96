/* test.h - what the C tests share: a context, a frame a test, calls that must
** throw.  Tests run from the repository's root. */

#ifndef test_h
#define test_h

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/core/core.h"

#define UNUSED __attribute__((unused))

static fnn_Context *test_context;

/* Runs f(ud), which must throw a message that has part in it. */
UNUSED static void throws (fnn_Status code, const char *part,
                           void (*f)(void *), void *ud) {
  fnn_Status s = fnn_pcall(f, ud);
  if (s == FNN_OK) fail_msg("no error (expected \"%s\")", part);
  if (strstr(fnn_message(), part) == NULL || s != code)
    fail_msg("error %d \"%s\" (expected %d \"%s\")", s, fnn_message(), code,
             part);
}

/* Each test runs in a frame; after it no object may be left.  A failed
** assertion jumps over all frames: the next test forgets them. */
static void (*test_body)(void **);

static void run_body (void *ud) { test_body(ud); }

UNUSED static void in_frame (void (*body)(void **)) {
  fnn_use(test_context);
  test_context->frame = NULL;
  uint64_t objects = fnn_memory().objects;
  test_body = body;
  if (fnn_pcall(run_body, NULL) != FNN_OK) fail_msg("%s", fnn_message());
  assert_int_equal(fnn_memory().objects, objects);
}

/* A cmocka test of a body that runs in a frame. */
#define TEST(name) \
  static void body_##name(void **state); \
  static void name(void **state) { \
    (void)state; \
    in_frame(body_##name); \
  } \
  static void body_##name(UNUSED void **state)

UNUSED static int open_context (void **state) {
  (void)state;
  test_context = fnn_open(NULL);
  fnn_use(test_context);
  return test_context != NULL ? 0 : -1;
}

UNUSED static int close_context (void **state) {
  (void)state;
  fnn_close(test_context);
  return 0;
}

/* How many of n cases to run: checks make them slow, and see as much in some
** of them. */
static inline int some_of (int n) { return mem_checking() ? (n + 9) / 10 : n; }

#endif
