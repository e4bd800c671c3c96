/* file.c - whole files: whether one is there, its bytes, its checksum. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#include <sys/stat.h>
#include <zlib.h>

bool fnn_is_file (const char *path) {
  const fnn_Host *h = &context()->host;
  struct stat st;
  if (h->open != NULL && !h->open(h->ud, path, "r")) return false;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

Tensor *file_read (const char *path) {
  enum { MOST = 256 << 20 };
  Reader *r = reader_open(path);
  if (r->size > MOST)
    fnn_throw(FNN_EFORMAT, "%s: %lld bytes (expected %d at most)", path,
              (long long)r->size, MOST);
  Tensor *x = tensor_new(1, &r->size, FNN_U8, device_cpu());
  reader_read(r, tensor_data(x), r->size);
  return x;
}

void file_write (const char *path, const void *p, int64_t n) {
  Writer *w = writer_open(path);
  writer_put(w, p, n);
  writer_close(w);
}

uint32_t file_crc32 (const char *path, int64_t *size) {
  enum { PIECE = 1 << 16 };
  size_t m = fnn_mark();
  Reader *r = reader_open(path);
  unsigned char *piece = mem_scratch(PIECE);
  uLong crc = crc32(0, NULL, 0);
  reader_unzip(r);
  *size = 0;
  for (int64_t n; (n = reader_some(r, piece, PIECE)) > 0; *size += n)
    crc = crc32(crc, piece, (uInt)n);
  fnn_escape(m, NULL);
  return (uint32_t)crc;
}
