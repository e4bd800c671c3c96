/* writer.c - atomic writing.
**
** The temporary file stands in the target's folder, so that rename replaces
** the target in one step.  It is on the disk before it gets the name, and the
** folder after.  A target that is a link is written where the link leads; a
** target that is no file (/dev/null, a pipe) is written directly.  The
** temporary file is locked while its writer lives, so that one without a lock
** is known to be left over. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

enum { BUFFER = 1 << 16, PIECE = 4 << 20, TEMP_NAME = 32, TRIES = 100 };
enum { KEPT_MAX = 1 << 30 };

struct Writer {
  Object o;
  int fd;
  bool temporary; /* temp exists and is to be removed */
  char *kept;     /* bytes that go to no file */
  int64_t size, room;
  int64_t used;
  char buffer[BUFFER];
  char target[PATH_MAX];
  char temp[PATH_MAX + TEMP_NAME];
};

static void writer_destroy (void *o) {
  Writer *w = o;
  if (w->fd >= 0) close(w->fd);
  if (w->temporary) unlink(w->temp);
  mem_free(w->kept, (size_t)w->room);
}

static const Type writer_type = { "Writer", writer_destroy };

/* The length of the folder's part of a path, its slash included. */
static int folder (const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? (int)(slash - path) + 1 : 0;
}

/* Makes the temporary file under a name that nobody has. */
static void make_temp (Writer *w) {
  struct timespec t;
  uint64_t seed = (uint64_t)getpid() << 32 ^ (uintptr_t)w;
  for (uint64_t i = 0; w->fd < 0 && i < TRIES; i++) {
    uint32_t word[4];
    clock_gettime(CLOCK_REALTIME, &t);
    philox(seed + i, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
           word);
    snprintf(w->temp, sizeof w->temp, "%.*s.fnn-%08x%08x.tmp",
             folder(w->target), w->target, word[0], word[1]);
    w->fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0 && errno != EEXIST) break;
  }
  if (w->fd < 0) reader_fail(w->target, "write");
  w->temporary = true;
  flock(w->fd, LOCK_EX | LOCK_NB); /* where there are locks */
}

Writer *writer_open (const char *path) {
  struct stat st;
  reader_allowed(path, "w");
  Writer *w = object_new(&writer_type, sizeof(Writer));
  w->fd = -1;
  bool there = stat(path, &st) == 0;
  if (path[0] == '\0' || strlen(path) >= PATH_MAX) {
    errno = path[0] == '\0' ? ENOENT : ENAMETOOLONG;
    reader_fail(path, "write");
  }
  if (there && S_ISDIR(st.st_mode))
    fnn_throw(FNN_EFILE, "%s: is a directory", path);
  if (!there || realpath(path, w->target) == NULL) strcpy(w->target, path);
  if (there && access(path, W_OK) != 0) reader_fail(path, "write");
  if (there && !S_ISREG(st.st_mode)) {
    w->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (w->fd < 0) reader_fail(path, "write");
    return w;
  }
  make_temp(w);
  if (there && fchmod(w->fd, st.st_mode & 0777) != 0)
    reader_fail(path, "keep the mode of");
  return w;
}

Writer *writer_memory (void) {
  Writer *w = object_new(&writer_type, sizeof(Writer));
  w->fd = -1;
  return w;
}

static void keep (Writer *w, const char *p, int64_t n) {
  if (n > KEPT_MAX - w->size)
    fnn_throw(FNN_EARG, "write: more than %d bytes in memory", KEPT_MAX);
  if (w->size + n > w->room) {
    int64_t room = max64(w->size + n, 2 * w->room);
    w->kept = mem_grow(w->kept, (size_t)w->room, (size_t)room);
    w->room = room;
  }
  if (n > 0) memcpy(w->kept + w->size, p, (size_t)n);
  w->size += n;
}

static void drain (Writer *w, const char *p, int64_t n) {
  if (w->fd < 0) {
    keep(w, p, n);
    return;
  }
  while (n > 0) {
    ssize_t put = write(w->fd, p, (size_t)min64(n, PIECE));
    if (put < 0 && errno != EINTR) reader_fail(w->target, "write");
    p += max64(put, 0);
    n -= max64(put, 0);
    fnn_poll();
  }
}

void writer_put (Writer *w, const void *p, int64_t n) {
  if (n > BUFFER - w->used) {
    drain(w, w->buffer, w->used);
    w->used = 0;
  }
  if (n >= BUFFER) {
    drain(w, p, n);
  } else if (n > 0) {
    memcpy(w->buffer + w->used, p, (size_t)n);
    w->used += n;
  }
}

/* The new name is on the disk when its folder is; not every file system can
** do that, and none can undo the rename, so no error is made of it. */
static void sync_folder (Writer *w) {
  int n = folder(w->target);
  if (n > 0) w->target[n] = '\0';
  int fd = open(n > 0 ? w->target : ".", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void writer_close (Writer *w) {
  drain(w, w->buffer, w->used);
  w->used = 0;
  if (w->temporary && fsync(w->fd) != 0) reader_fail(w->target, "write");
  int fd = w->fd;
  w->fd = -1;
  if (close(fd) != 0) reader_fail(w->target, "write");
  if (!w->temporary) return;
  if (rename(w->temp, w->target) != 0) reader_fail(w->target, "replace");
  w->temporary = false;
  sync_folder(w);
}

Tensor *writer_bytes (Writer *w) {
  drain(w, w->buffer, w->used);
  w->used = 0;
  Tensor *x = tensor_new(1, &w->size, FNN_U8, device_cpu());
  if (w->size > 0) memcpy(tensor_data(x), w->kept, (size_t)w->size);
  return x;
}

const void *writer_elements (Tensor *x) {
  if (x->storage->device->host) return tensor_data(tensor_dense(x));
  int64_t n =
      mem_mul(x->numel, (int64_t)fnn_dtype_size(fnn_dtype_of(x)), "write");
  void *p = mem_scratch((size_t)max64(n, 1));
  fnn_read(x, p);
  return p;
}
