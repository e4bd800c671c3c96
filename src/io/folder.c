/* folder.c - folders: made, listed, and rid of what killed writers left. */

#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static void make_one (const char *path, const char *whole) {
  struct stat st;
  if (mkdir(path, 0777) == 0) return;
  int why = errno;
  if (why == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return;
  errno = why == EEXIST ? ENOTDIR : why;
  reader_fail(whole, "make the folder");
}

void folder_make (const char *path) {
  char part[PATH_MAX];
  size_t n = strlen(path);
  reader_allowed(path, "w");
  if (n == 0 || n >= sizeof part) {
    errno = n == 0 ? ENOENT : ENAMETOOLONG;
    reader_fail(path, "make the folder");
  }
  memcpy(part, path, n + 1);
  for (char *slash = strchr(part + 1, '/'); slash != NULL;
       slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    make_one(part, path);
    *slash = '/';
  }
  make_one(part, path);
}

typedef struct Folder {
  Object o;
  DIR *d;
} Folder;

static void folder_destroy (void *o) {
  Folder *f = o;
  if (f->d != NULL) closedir(f->d);
}

static const Type folder_type = { "Folder", folder_destroy };

static Folder *folder_open (const char *path) {
  reader_allowed(path, "r");
  Folder *f = object_new(&folder_type, sizeof *f);
  f->d = opendir(path);
  if (f->d == NULL) reader_fail(path, "list");
  return f;
}

/* Two turns: how much room the names take, and the names that fit into it. */
Tensor *folder_names (const char *path) {
  size_t m = fnn_mark();
  Folder *f = folder_open(path);
  int64_t size = 0, at = 0;
  for (const struct dirent *e; (e = readdir(f->d)) != NULL;)
    size += (int64_t)strlen(e->d_name) + 1;
  char *names = mem_scratch((size_t)size + 1);
  rewinddir(f->d);
  for (const struct dirent *e; (e = readdir(f->d)) != NULL;) {
    int64_t n = (int64_t)strlen(e->d_name) + 1;
    if (n > size - at) break;
    memcpy(names + at, e->d_name, (size_t)n);
    at += n;
  }
  Tensor *x = tensor_new(1, &at, FNN_U8, device_cpu());
  if (at > 0) memcpy(tensor_data(x), names, (size_t)at);
  return fnn_escape(m, x);
}

/* Whether a writer made the name, ".fnn-0123456789abcdef.tmp". */
static bool is_temporary (const char *name) {
  static const char head[] = ".fnn-", tail[] = ".tmp";
  size_t h = sizeof head - 1, n = strlen(name);
  return n == h + 16 + sizeof tail - 1 && memcmp(name, head, h) == 0 &&
         strspn(name + h, "0123456789abcdef") == 16 &&
         strcmp(name + h + 16, tail) == 0;
}

/* A writer that lives holds a lock on its file. */
static bool is_left (int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  bool left = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return left;
}

int folder_sweep (const char *path) {
  size_t m = fnn_mark();
  int n = 0;
  reader_allowed(path, "w");
  Folder *f = folder_open(path);
  for (const struct dirent *e; (e = readdir(f->d)) != NULL;)
    if (is_temporary(e->d_name) && is_left(dirfd(f->d), e->d_name))
      n += unlinkat(dirfd(f->d), e->d_name, 0) == 0;
  fnn_escape(m, NULL);
  return n;
}

void file_remove (const char *path) {
  reader_allowed(path, "w");
  if (unlink(path) != 0 && errno != ENOENT) reader_fail(path, "remove");
}
