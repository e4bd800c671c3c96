/* idx.c - the IDX format of MNIST (LeCun, Cortes, Burges).
**
** Two zero bytes, a byte for the element type, one for the number of dims;
** the dims as u32, then the elements, all big-endian. */

#include "io.h"

#include <string.h>

static Element element (int code) {
  switch (code) {
    case 0x08: return ELEMENT_U8;
    case 0x09: return ELEMENT_I8;
    case 0x0b: return ELEMENT_I16;
    case 0x0c: return ELEMENT_I32;
    case 0x0d: return ELEMENT_F32;
    case 0x0e: return ELEMENT_F64;
    default: return ELEMENT_NONE;
  }
}

Tensor *idx_read (Reader *r) {
  unsigned char head[4], dims[4 * FNN_MAXDIM];
  int64_t shape[FNN_MAXDIM];
  size_t m = fnn_mark();
  reader_unzip(r);
  if (reader_some(r, head, 4) < 4) reader_wrong(r, "an IDX file");
  Element e = element(head[2]);
  int ndim = head[3];
  if (head[0] != 0 || head[1] != 0 || e == ELEMENT_NONE || ndim == 0 ||
      ndim > FNN_MAXDIM)
    reader_wrong(r, "an IDX file");
  reader_read(r, dims, 4 * ndim);
  for (int i = 0; i < ndim; i++) {
    const unsigned char *d = dims + 4 * i;
    shape[i] = (int64_t)d[0] << 24 | d[1] << 16 | d[2] << 8 | d[3];
  }
  Tensor *x = element_read(r, e, true, ndim, shape, "data");
  reader_end(r);
  return fnn_escape(m, x);
}

Tensor *fnn_idx_read (const char *path) {
  size_t m = fnn_mark();
  return fnn_escape(m, idx_read(reader_open(path)));
}
