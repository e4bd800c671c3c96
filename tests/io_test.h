/* io_test.h - what the tests of files share: a context, a folder that is
** removed, calls that must throw.  Run from the repository's root. */

#ifndef io_test_h
#define io_test_h

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/io/io.h"

#define FIXTURES "tests/fixtures/"
#define UNUSED __attribute__((unused))

static char folder[] = "/tmp/fnn-test-XXXXXX";
static fnn_Context *test_context;

UNUSED static int count_files (void) {
  int n = 0;
  DIR *d = opendir(folder);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n - 2;
}

/* A path in the folder; it lasts until the next call but one. */
UNUSED static const char *in_folder (const char *name) {
  static char path[2][4096];
  static int k;
  k = !k;
  snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
  return path[k];
}

UNUSED static void put_file (const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* The bytes of a file, from malloc. */
UNUSED static char *get_file (const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n + 1);
  assert_int_equal(fread(p, 1, *n, f), *n);
  p[*n] = '\0';
  fclose(f);
  return p;
}

/* Runs f(ud), which must throw a message that has part in it. */
UNUSED static void throws (fnn_Status code, const char *part,
                           void (*f)(void *), void *ud) {
  fnn_Status s = fnn_pcall(f, ud);
  if (s == FNN_OK) fail_msg("no error (expected \"%s\")", part);
  if (strstr(fnn_message(), part) == NULL || s != code)
    fail_msg("error %d \"%s\" (expected %d \"%s\")", s, fnn_message(), code,
             part);
}

/* Each test runs in a frame; after it no object may be left. */
static void (*test_body)(void **);

static void run_body (void *ud) { test_body(ud); }

static void in_frame (void (*body)(void **)) {
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

static int start (void **state) {
  (void)state;
  test_context = fnn_open(NULL);
  fnn_use(test_context);
  return mkdtemp(folder) != NULL && test_context != NULL ? 0 : -1;
}

static int stop (void **state) {
  char path[4096];
  (void)state;
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.' || strlen(e->d_name) > 2) unlink(path);
  }
  closedir(d);
  rmdir(folder);
  fnn_close(test_context);
  return 0;
}

#endif
