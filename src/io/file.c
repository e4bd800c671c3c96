/* file.c - what is asked of a file before it is read. */

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
