/* npy.c - numpy's format of one array (NEP 1).
**
** A magic, a version, the length of a header and the header, the text of a
** Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape':
** (2, 3), }.  The header is parsed as exactly that; nothing is evaluated. */

#include "io.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC = 8, ALIGN = 64, HEADER_MAX = 1 << 16 };

typedef struct Header {
  char descr[16];
  bool fortran, seen[3];
  int ndim;
  int64_t shape[FNN_MAXDIM];
} Header;

/* A place in the header's text, which ends in a zero. */
typedef struct Scan {
  Reader *r;
  const char *s;
} Scan;

static FNN_NORETURN void malformed (Scan *p, const char *expected) {
  fnn_throw(FNN_EFORMAT, "%s: its header: expected %s at \"%.20s\"",
            p->r->name, expected, p->s);
}

static bool take (Scan *p, const char *word) {
  p->s += strspn(p->s, " \t\r\n");
  size_t n = strlen(word);
  bool is = strncmp(p->s, word, n) == 0;
  if (is) p->s += n;
  return is;
}

static void expect (Scan *p, const char *word) {
  if (!take(p, word)) malformed(p, word);
}

/* A quoted string of at most n - 1 characters. */
static void string (Scan *p, char *to, size_t n, const char *what) {
  char quote[2] = { take(p, "'") ? '\'' : '"', '\0' };
  if (quote[0] == '"' && !take(p, quote)) malformed(p, what);
  size_t k = strcspn(p->s, quote);
  if (p->s[k] == '\0' || k >= n) malformed(p, what);
  memcpy(to, p->s, k);
  to[k] = '\0';
  p->s += k + 1;
}

static int64_t size (Scan *p) {
  int64_t v = 0;
  p->s += strspn(p->s, " \t\r\n");
  if (*p->s < '0' || *p->s > '9') malformed(p, "a size");
  for (; *p->s >= '0' && *p->s <= '9'; p->s++)
    if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
        __builtin_add_overflow(v, (int64_t)(*p->s - '0'), &v))
      malformed(p, "a smaller size");
  take(p, "L"); /* Python 2's long integers */
  return v;
}

static void shape (Scan *p, Header *h) {
  expect(p, "(");
  while (!take(p, ")")) {
    if (h->ndim == FNN_MAXDIM)
      fnn_throw(FNN_EFORMAT, "%s: has more than %d dimensions", p->r->name,
                FNN_MAXDIM);
    h->shape[h->ndim++] = size(p);
    if (!take(p, ",")) {
      expect(p, ")");
      break;
    }
  }
}

static void parse (Scan *p, Header *h) {
  static const char *const keys[] = { "descr", "fortran_order", "shape" };
  char key[16];
  expect(p, "{");
  while (!take(p, "}")) {
    string(p, key, sizeof key, "a key");
    int k = 0;
    while (k < countof(keys) && strcmp(key, keys[k]) != 0) k++;
    if (k == countof(keys) || h->seen[k]) malformed(p, "another key");
    h->seen[k] = true;
    expect(p, ":");
    if (k == 0) {
      string(p, h->descr, sizeof h->descr, "the type of plain numbers");
    } else if (k == 1) {
      h->fortran = take(p, "True");
      if (!h->fortran) expect(p, "False");
    } else shape(p, h);
    if (!take(p, ",")) {
      expect(p, "}");
      break;
    }
  }
  p->s += strspn(p->s, " \t\r\n");
  if (*p->s != '\0') malformed(p, "its end");
  for (int k = 0; k < countof(keys); k++)
    if (!h->seen[k]) malformed(p, keys[k]);
}

static Element element (Reader *r, const char *descr, bool *swap) {
  static const struct {
    const char *code;
    Element e;
  } codes[] = {
    { "b1", ELEMENT_BOOL }, { "u1", ELEMENT_U8 },  { "i1", ELEMENT_I8 },
    { "u2", ELEMENT_U16 },  { "i2", ELEMENT_I16 }, { "u4", ELEMENT_U32 },
    { "i4", ELEMENT_I32 },  { "u8", ELEMENT_U64 }, { "i8", ELEMENT_I64 },
    { "f2", ELEMENT_F16 },  { "f4", ELEMENT_F32 }, { "f8", ELEMENT_F64 },
  };
  *swap = descr[0] == '>';
  if (descr[0] != '\0' && strchr("<>|=", descr[0]) != NULL)
    for (int i = 0; i < countof(codes); i++)
      if (strcmp(descr + 1, codes[i].code) == 0) return codes[i].e;
  if (strcmp(descr, "|O") == 0)
    fnn_throw(FNN_EFORMAT,
              "%s: holds pickled Python objects, which are not "
              "read",
              r->name);
  fnn_throw(FNN_EFORMAT,
            "%s: its type %s is not read (expected bools, whole "
            "or real numbers)",
            r->name, descr);
}

static void read_header (Reader *r, Header *h) {
  unsigned char head[MAGIC + 4];
  if (reader_some(r, head, MAGIC) < MAGIC || memcmp(head, "\x93NUMPY", 6) != 0)
    reader_wrong(r, "a .npy file");
  int version = head[6], bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3 || head[7] != 0)
    fnn_throw(FNN_EFORMAT,
              "%s: its version %d.%d is not known (1.0 to 3.0 "
              "are)",
              r->name, version, head[7]);
  reader_read(r, head + MAGIC, bytes);
  int64_t n = 0;
  for (int i = bytes - 1; i >= 0; i--) n = n << 8 | head[MAGIC + i];
  if (n > HEADER_MAX)
    fnn_throw(FNN_EFORMAT, "%s: its header has %lld bytes (at most %d)",
              r->name, (long long)n, HEADER_MAX);
  reader_need(r, n);
  char *text = mem_scratch((size_t)n + 1);
  reader_read(r, text, n);
  text[n] = '\0';
  if (memchr(text, '\0', (size_t)n) != NULL)
    fnn_throw(FNN_EFORMAT, "%s: its header is not text", r->name);
  parse(&(Scan){ r, text }, h);
}

/* In Fortran's order the file is the transposed array's in C's. */
static Tensor *read_fortran (Reader *r, Element e, bool swap, Header *h) {
  int64_t turned[FNN_MAXDIM], stride[FNN_MAXDIM];
  int n = h->ndim;
  for (int i = 0; i < n; i++) turned[i] = h->shape[n - 1 - i];
  Tensor *x = element_read(r, e, swap, n, turned, "data");
  for (int i = 0; i < n; i++) stride[i] = x->stride[n - 1 - i];
  return tensor_dense(tensor_view(x, n, h->shape, stride, 0));
}

Tensor *npy_read (Reader *r) {
  Header h = { .ndim = 0 };
  bool swap;
  size_t m = fnn_mark();
  reader_unzip(r);
  read_header(r, &h);
  Element e = element(r, h.descr, &swap);
  Tensor *x = h.fortran ? read_fortran(r, e, swap, &h)
                        : element_read(r, e, swap, h.ndim, h.shape, "data");
  reader_end(r);
  return fnn_escape(m, x);
}

Tensor *fnn_npy_read (const char *path) {
  size_t m = fnn_mark();
  return fnn_escape(m, npy_read(reader_open(path)));
}

static const char *descr_of (const char *path, const Tensor *x) {
  switch ((fnn_Dtype)x->dtype) {
    case FNN_BOOL: return "|b1";
    case FNN_U8: return "|u1";
    case FNN_I32: return "<i4";
    case FNN_I64: return "<i8";
    case FNN_F16: return "<f2";
    case FNN_F32: return "<f4";
    case FNN_F64: return "<f8";
    default:
      fnn_throw(FNN_EDTYPE, "%s: numpy has no %s; convert it to f32", path,
                fnn_dtype_name((fnn_Dtype)x->dtype));
  }
}

void fnn_npy_write (const char *path, Tensor *x) {
  /* 8 sizes of at most 19 digits leave room in 256 bytes. */
  char head[2 * 256] = "\x93NUMPY\1";
  size_t m = fnn_mark();
  int n = MAGIC + 2;
  n += sprintf(head + n,
               "{'descr': '%s', 'fortran_order': False, "
               "'shape': (",
               descr_of(path, x));
  for (int i = 0; i < x->ndim; i++)
    n += sprintf(head + n, i > 0 ? ", %lld" : "%lld", (long long)x->shape[i]);
  n += sprintf(head + n, x->ndim == 1 ? ",), }" : "), }");
  while ((n + 1) % ALIGN != 0) head[n++] = ' ';
  head[n++] = '\n';
  head[MAGIC] = (char)((n - MAGIC - 2) & 0xff);
  head[MAGIC + 1] = (char)((n - MAGIC - 2) >> 8);
  Writer *w = writer_open(path);
  writer_put(w, head, n);
  writer_put(w, writer_elements(x),
             x->numel * (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype));
  writer_close(w);
  fnn_escape(m, NULL);
}
