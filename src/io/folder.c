/* folder.c - folders: made, listed, and rid of what killed writers left. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
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

void folder_around (const char *path) {
  char part[PATH_MAX];
  size_t n = strlen(path);
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
}

void folder_make (const char *path) {
  reader_allowed(path, "w");
  folder_around(path);
  make_one(path, path);
}

/* An open one is an object, so that a throw closes it. */
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
  Folder *f = object_new(&folder_type, sizeof *f);
  f->d = opendir(path);
  if (f->d == NULL) reader_fail(path, "open the folder");
  return f;
}

/* The next name, or NULL. */
static const char *folder_next (Folder *f, const char *path) {
  fnn_poll();
  errno = 0;
  const struct dirent *e = readdir(f->d);
  if (e == NULL && errno != 0) reader_fail(path, "read the folder");
  return e != NULL ? e->d_name : NULL;
}

/*
** {======================================================
** What is in one, and of which kind each is
**
** Names in the order of their bytes, so that every machine sees the same.
** Those that begin with a dot are left out.  A link counts as what it leads
** to, and is marked: who walks down does not follow links to folders, so that
** a walk ends.
** =======================================================
*/

static void entries_destroy (void *o) {
  Entries *f = o;
  for (int64_t i = 0; i < f->n; i++)
    mem_free(f->list[i].name, strlen(f->list[i].name) + 1);
  mem_free(f->list, (size_t)f->room * sizeof *f->list);
}

static const Type entries_type = { "Entries", entries_destroy };

static int by_bytes (const void *a, const void *b) {
  return strcmp(((const FolderEntry *)a)->name,
                ((const FolderEntry *)b)->name);
}

static void add (Entries *f, DIR *dir, const char *name) {
  struct stat st;
  if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0) return;
  FolderEntry e = { .link = S_ISLNK(st.st_mode) };
  /* A link that leads nowhere is left out, as what has gone meanwhile is. */
  if (e.link && fstatat(dirfd(dir), name, &st, 0) != 0) return;
  e.folder = S_ISDIR(st.st_mode);
  e.file = S_ISREG(st.st_mode);
  if (f->n == f->room) {
    int64_t room = f->room > 0 ? 2 * f->room : 64;
    f->list = mem_grow(f->list, (size_t)f->room * sizeof *f->list,
                       (size_t)room * sizeof *f->list);
    f->room = room;
  }
  size_t n = strlen(name) + 1;
  e.name = mem_new(n);
  memcpy(e.name, name, n);
  f->list[f->n++] = e;
}

Entries *entries_read (const char *path) {
  size_t m = fnn_mark();
  reader_allowed(path, "r");
  Entries *f = object_new(&entries_type, sizeof *f);
  Folder *o = folder_open(path);
  for (const char *name; (name = folder_next(o, path)) != NULL;)
    if (name[0] != '.') add(f, o->d, name);
  if (f->n > 0) qsort(f->list, (size_t)f->n, sizeof *f->list, by_bytes);
  return fnn_escape(m, f);
}

Tensor *folder_names (const char *path) {
  size_t m = fnn_mark();
  const Entries *f = entries_read(path);
  int64_t size = 0;
  for (int64_t i = 0; i < f->n; i++)
    size += (int64_t)strlen(f->list[i].name) + 1;
  Tensor *x = tensor_new(1, &size, FNN_U8, device_cpu());
  char *to = size > 0 ? tensor_data(x) : NULL;
  for (int64_t i = 0; i < f->n; i++) {
    size_t n = strlen(f->list[i].name) + 1;
    memcpy(to, f->list[i].name, n);
    to += n;
  }
  return fnn_escape(m, x);
}

/* }====================================================== */

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
  const int how = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int fd = openat(folder, name, how);
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
  for (const char *name; (name = folder_next(f, path)) != NULL;)
    if (is_temporary(name) && is_left(dirfd(f->d), name))
      n += unlinkat(dirfd(f->d), name, 0) == 0;
  fnn_escape(m, NULL);
  return n;
}

void file_remove (const char *path) {
  reader_allowed(path, "w");
  if (unlink(path) != 0 && errno != ENOENT) reader_fail(path, "remove");
}
