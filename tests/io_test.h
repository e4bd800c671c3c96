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
