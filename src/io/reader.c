/* reader.c - checked reading of files, of bytes in memory, through gzip.
**
** A file is read by pread in pieces, between which the cancel token is
** polled, so that only what is asked for is ever resident.  What gzip holds
** is a stream: its size is not known, only bounded. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* PIECE: at a slow disk's 200 MB/s the token is polled every 20 ms. */
enum { PIECE = 4 << 20, UNZIP_INPUT = 1 << 16 };

/* Deflate's best is 258 bytes for two bits (zlib's technical notes). */
enum { UNZIP_RATIO = 1032 };

struct Unzip {
  z_stream z;
  bool open; /* z is to be closed */
  bool done;
  int64_t made; /* bytes given so far */
  unsigned char input[UNZIP_INPUT];
};

static void reader_destroy (void *o) {
  Reader *r = o;
  if (r->fd >= 0) close(r->fd);
  if (r->zip != NULL) {
    if (r->zip->open) inflateEnd(&r->zip->z);
    mem_free(r->zip, sizeof(Unzip));
  }
}

static const Type reader_type = { "Reader", reader_destroy };

void reader_fail (const char *path, const char *doing) {
  char text[128];
  if (strerror_r(errno, text, sizeof text) != 0) strcpy(text, "unknown");
  fnn_throw(FNN_EFILE, "%s: cannot %s: %s", path, doing, text);
}

void reader_allowed (const char *path, const char *mode) {
  const fnn_Host *h = &context()->host;
  if (h->open != NULL && !h->open(h->ud, path, mode))
    fnn_throw(FNN_EFILE, "%s: the host does not allow it to be %s", path,
              mode[0] == 'r' ? "read" : "written");
}

void *reader_alloc (size_t bytes) {
  if (bytes > SIZE_MAX - 16) return NULL;
  size_t *p = mem_try(bytes + 16);
  if (p == NULL) return NULL;
  *p = bytes + 16;
  return (char *)p + 16;
}

void reader_free (void *p) {
  if (p == NULL) return;
  size_t *block = (size_t *)((char *)p - 16);
  mem_free(block, *block);
}

static Reader *reader_new (const char *name) {
  size_t n = strlen(name) + 1;
  Reader *r = object_new(&reader_type, sizeof(Reader) + n);
  r->fd = -1;
  memcpy(r->name, name, n);
  return r;
}

Reader *reader_open (const char *path) {
  struct stat st;
  reader_allowed(path, "r");
  Reader *r = reader_new(path);
  /* O_NONBLOCK: a pipe must not hold us up before it is refused. */
  r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (r->fd < 0 || fstat(r->fd, &st) != 0) reader_fail(path, "open");
  if (!S_ISREG(st.st_mode))
    fnn_throw(FNN_EFILE, "%s: %s", path,
              S_ISDIR(st.st_mode) ? "is a directory" : "is not a file");
  r->size = st.st_size;
  return r;
}

Reader *reader_bytes (const char *name, const void *bytes, size_t size) {
  Reader *r = reader_new(name);
  r->bytes = bytes != NULL ? bytes : (const void *)"";
  r->size = (int64_t)size;
  return r;
}

static FNN_NORETURN void truncated (const Reader *r, int64_t n, int64_t at) {
  fnn_throw(FNN_EFORMAT,
            "%s: truncated: needs %lld bytes at offset %lld, the file has "
            "%lld",
            r->name, (long long)n, (long long)at, (long long)r->size);
}

/* n bytes of the file itself; n does not pass its end. */
static void fetch (Reader *r, void *to, int64_t n) {
  if (r->bytes != NULL) {
    memcpy(to, r->bytes + r->at, (size_t)n);
    r->at += n;
    return;
  }
  for (char *p = to; n > 0;) {
    ssize_t got = pread(r->fd, p, (size_t)min64(n, PIECE), r->at);
    if (got < 0 && errno == EINTR) got = 0;
    else if (got < 0) reader_fail(r->name, "read");
    else if (got == 0) truncated(r, n, r->at); /* it shrank */
    p += got;
    r->at += got;
    n -= got;
    fnn_poll();
  }
}

static void refill (Reader *r) {
  Unzip *u = r->zip;
  int64_t n = min64(UNZIP_INPUT, r->size - r->at);
  fetch(r, u->input, n);
  u->z.next_in = u->input;
  u->z.avail_in = (uInt)n;
}

static void *zip_alloc (void *ud, unsigned n, unsigned size) {
  (void)ud;
  return reader_alloc((size_t)n * size);
}

static void zip_free (void *ud, void *p) {
  (void)ud;
  reader_free(p);
}

void reader_unzip (Reader *r) {
  unsigned char magic[2];
  if (r->zip != NULL || r->size - r->at < 2) return;
  fetch(r, magic, 2);
  r->at -= 2;
  if (magic[0] != 0x1f || magic[1] != 0x8b) return;
  r->zip = mem_new(sizeof(Unzip));
  memset(r->zip, 0, sizeof(Unzip));
  r->zip->z.zalloc = zip_alloc;
  r->zip->z.zfree = zip_free;
  /* 16 more than the window's 15 bits: with gzip's header. */
  if (inflateInit2(&r->zip->z, 15 + 16) != Z_OK)
    fnn_throw(FNN_EMEMORY, "%s: out of memory", r->name);
  r->zip->open = true;
}

/* After one gzip member: another, or the end. */
static void next_member (Reader *r) {
  Unzip *u = r->zip;
  if (u->z.avail_in == 0 && r->at == r->size) u->done = true;
  else inflateReset(&u->z);
}

static int64_t unzip (Reader *r, unsigned char *to, int64_t n) {
  Unzip *u = r->zip;
  int64_t got = 0;
  while (got < n && !u->done) {
    if (u->z.avail_in == 0) refill(r);
    u->z.next_out = to + got;
    u->z.avail_out = (uInt)min64(n - got, PIECE);
    int64_t room = u->z.avail_out;
    int e = inflate(&u->z, Z_NO_FLUSH);
    got += room - u->z.avail_out;
    if (e == Z_STREAM_END) next_member(r);
    else if (e == Z_MEM_ERROR)
      fnn_throw(FNN_EMEMORY, "%s: out of memory", r->name);
    else if (e == Z_BUF_ERROR && r->at == r->size)
      fnn_throw(FNN_EFORMAT,
                "%s: truncated: its gzip data end early at "
                "byte %lld",
                r->name, (long long)r->size);
    else if (e != Z_OK && e != Z_BUF_ERROR)
      fnn_throw(FNN_EFORMAT, "%s: bad gzip data near byte %lld (%s)", r->name,
                (long long)(r->at - u->z.avail_in),
                u->z.msg != NULL ? u->z.msg : "unknown");
    fnn_poll();
  }
  u->made += got;
  return got;
}

int64_t reader_some (Reader *r, void *to, int64_t n) {
  if (r->zip != NULL) return unzip(r, to, n);
  n = min64(n, r->size - r->at);
  fetch(r, to, n);
  return n;
}

void reader_need (Reader *r, int64_t n) {
  if (r->zip == NULL) {
    if (n < 0 || n > r->size - r->at) truncated(r, n, r->at);
  } else if (n < 0 || n / UNZIP_RATIO > r->size)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: needs %lld bytes more, which its %lld "
              "compressed ones cannot hold",
              r->name, (long long)n, (long long)r->size);
}

void reader_read (Reader *r, void *to, int64_t n) {
  reader_need(r, n);
  if (r->zip == NULL) {
    fetch(r, to, n);
    return;
  }
  int64_t at = r->zip->made, got = unzip(r, to, n);
  if (got < n)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: needs %lld bytes at offset %lld, the "
              "compressed file holds %lld",
              r->name, (long long)n, (long long)at, (long long)(at + got));
}

void reader_end (Reader *r) {
  char byte;
  if (r->zip != NULL && unzip(r, (unsigned char *)&byte, 1) != 0)
    fnn_throw(FNN_EFORMAT, "%s: has bytes after its end at byte %lld", r->name,
              (long long)r->zip->made - 1);
  if (r->zip == NULL && r->at != r->size)
    fnn_throw(FNN_EFORMAT, "%s: has %lld bytes after its end at byte %lld",
              r->name, (long long)(r->size - r->at), (long long)r->at);
}

void reader_seek (Reader *r, int64_t at) {
  if (at < 0 || at > r->size) truncated(r, 0, at);
  r->at = at;
}
