/* entries.c - what is in a folder, and of which kind each is.
**
** Names in the order of their bytes, so that every machine sees the same.
** Those that begin with a dot are left out.  A link counts as what it leads
** to, and is marked: who walks down does not follow links to folders, so that
** a walk ends. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The open folder is an object, so that a throw closes it. */
typedef struct Open {
  Object o;
  DIR *dir;
} Open;

static void open_destroy (void *o) {
  if (((Open *)o)->dir != NULL) closedir(((Open *)o)->dir);
}

static void entries_destroy (void *o) {
  Entries *f = o;
  for (int64_t i = 0; i < f->n; i++)
    mem_free(f->list[i].name, strlen(f->list[i].name) + 1);
  mem_free(f->list, (size_t)f->room * sizeof *f->list);
}

static const Type open_type = { "Open", open_destroy };
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
  Open *o = object_new(&open_type, sizeof *o);
  o->dir = opendir(path);
  if (o->dir == NULL) reader_fail(path, "open the folder");
  for (;;) {
    errno = 0;
    const struct dirent *d = readdir(o->dir);
    if (d == NULL && errno != 0) reader_fail(path, "read the folder");
    if (d == NULL) break;
    if (d->d_name[0] != '.') add(f, o->dir, d->d_name);
    fnn_poll();
  }
  if (f->n > 0) qsort(f->list, (size_t)f->n, sizeof *f->list, by_bytes);
  return fnn_escape(m, f);
}
