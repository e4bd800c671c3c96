/* append.c - files that grow: each piece is whole in the file when its call
** returns, so that a killed run leaves all but what it was writing. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL_MAX = 1 << 20 };

struct Appender {
  Object o;
  int fd;
  bool regular; /* a file, and no terminal or pipe */
  char path[];
};

static void appender_destroy (void *o) {
  Appender *a = o;
  if (a->fd >= 0) close(a->fd);
}

static const Type appender_type = { "Appender", appender_destroy };

Appender *appender_open (const char *path, bool fresh) {
  struct stat st;
  reader_allowed(path, "w");
  size_t n = strlen(path) + 1;
  Appender *a = object_new(&appender_type, sizeof *a + n);
  memcpy(a->path, path, n);
  a->fd = -1;
  bool there = stat(path, &st) == 0;
  if (there && S_ISDIR(st.st_mode))
    fnn_throw(FNN_EFILE, "%s: is a directory", path);
  a->regular = !there || S_ISREG(st.st_mode);
  int mode = a->regular ? O_RDWR | O_CREAT | O_APPEND : O_WRONLY;
  a->fd = open(path, mode | (fresh ? O_EXCL : 0) | O_CLOEXEC, 0666);
  if (a->fd < 0) reader_fail(path, "write");
  return a;
}

static int64_t size_of (Appender *a) {
  struct stat st;
  if (fstat(a->fd, &st) != 0) reader_fail(a->path, "read");
  return st.st_size;
}

/* A piece that does not fit on the disk leaves nothing of it. */
void appender_put (Appender *a, const void *p, int64_t n) {
  int64_t before = a->regular ? size_of(a) : 0;
  const char *from = p;
  while (n > 0) {
    ssize_t put = write(a->fd, from, (size_t)n);
    if (put < 0 && errno != EINTR) {
      int why = errno;
      if (a->regular && ftruncate(a->fd, before) != 0) errno = why;
      errno = why;
      reader_fail(a->path, "write");
    }
    from += max64(put, 0);
    n -= max64(put, 0);
  }
}

void appender_cut (Appender *a, int64_t n) {
  if (ftruncate(a->fd, max64(size_of(a) - n, 0)) != 0)
    reader_fail(a->path, "write");
}

/* Reads n bytes at a place. */
static void read_at (Appender *a, char *to, int64_t n, int64_t at) {
  while (n > 0) {
    ssize_t got = pread(a->fd, to, (size_t)n, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) reader_fail(a->path, "read");
    to += got;
    at += got;
    n -= got;
  }
}

Tensor *appender_tail (Appender *a) {
  int64_t size = a->regular ? size_of(a) : 0, n = min64(size, TAIL_MAX);
  char *text = mem_scratch((size_t)max64(n, 1));
  read_at(a, text, n, size - n);
  int64_t start = n;
  while (start > 0 && text[start - 1] != '\n') start--;
  if (start == 0 && n < size)
    fnn_throw(FNN_EFORMAT, "%s: is no file of lines", a->path);
  Tensor *x = tensor_new(1, (int64_t[]){ n - start }, FNN_U8, device_cpu());
  memcpy(tensor_data(x), text + start, (size_t)(n - start));
  return x;
}

/* CRC-32C (Castagnoli): the polynomial 0x1edc6f41, here with its bits the
** other way round (RFC 3720, B.4), four bits at a time. */
uint32_t crc32c (const void *p, int64_t n) {
  static const uint32_t of[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
    0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
    0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75
  };
  uint32_t c = 0xffffffffu;
  const unsigned char *s = p;
  for (int64_t i = 0; i < n; i++) {
    c ^= s[i];
    c = c >> 4 ^ of[c & 15];
    c = c >> 4 ^ of[c & 15];
  }
  return ~c;
}
