/* io_test.h - what the tests of files share: a folder that is removed. */

#ifndef io_test_h
#define io_test_h

#include "test.h"

#include <dirent.h>
#include <unistd.h>

#include "../src/io/io.h"

#define FIXTURES "tests/fixtures/"

static char folder[] = "/tmp/fnn-test-XXXXXX";

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

/* An allocator that fails the call numbered fail_at, and all after it. */
UNUSED static int64_t calls, fail_at;

UNUSED static void *failing (void *ud, void *p, size_t osize, size_t nsize) {
  (void)ud, (void)osize;
  if (nsize == 0) {
    free(p);
    return NULL;
  }
  return ++calls >= fail_at ? NULL : realloc(p, nsize);
}

/* Runs f with ever more allocations allowed until it succeeds; files: the most
** that may lie in the folder meanwhile.  Returns how many it took. */
UNUSED static int sweep (void (*f)(void *), int files) {
  fnn_Status s = FNN_EMEMORY;
  int64_t n = 0;
  fnn_Host host = FNN_HOST_INIT;
  host.alloc = failing;
  fnn_Context *before = fnn_current();
  while (s != FNN_OK) {
    fail_at = INT64_MAX;
    fnn_Context *c = fnn_open(&host);
    fnn_use(c);
    calls = 0;
    fail_at = ++n;
    s = fnn_pcall(f, NULL);
    fail_at = INT64_MAX;
    if (s != FNN_OK && s != FNN_EMEMORY) fail_msg("%s", fnn_message());
    assert_int_equal(fnn_memory().objects, 1); /* the context's generator */
    assert_true(count_files() <= files);
    fnn_use(before);
    fnn_close(c);
  }
  return (int)n;
}

static int start (void **state) {
  return mkdtemp(folder) != NULL ? open_context(state) : -1;
}

static int stop (void **state) {
  char path[4096];
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.' || strlen(e->d_name) > 2) unlink(path);
  }
  closedir(d);
  rmdir(folder);
  return close_context(state);
}

#endif
