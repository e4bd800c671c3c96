/* io_array_test.c - npy and IDX: files of numpy's, hand-made ones, liars. */

#include "io_test.h"

#include <zlib.h>

static Tensor *packed; /* the bytes of one file of the fixture */

/* A reader over a file that the fixture packs. */
static Reader *unpack (const char *file) {
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "npy.safetensors");
  int64_t i = fnn_safetensors_find(f, file);
  if (i < 0) fail_msg("no file %s", file);
  packed = fnn_safetensors_read(f, i);
  return reader_bytes(file, tensor_data(packed), (size_t)packed->numel);
}

static void check_npy (const char *file, fnn_Dtype t, const double *want) {
  Tensor *x = npy_read(unpack(file));
  if (x->dtype != t) fail_msg("%s is %s", file, fnn_dtype_name(x->dtype));
  assert_true(x->ndim == 1 && x->numel == 5);
  for (int i = 0; i < 5; i++)
    if (dtype_get(t, tensor_data(x), i) != want[i])
      fail_msg("%s[%d] is %g", file, i, dtype_get(t, tensor_data(x), i));
}

TEST(reads_numpys_types) {
  static const double real[] = { 0, 1, -1.5, 96, -0.0625 };
  static const double sign[] = { 0, 1, -5, 100, -128 };
  static const double truth[] = { 1, 0, 1, 1, 0 };
  static const struct {
    const char *file;
    fnn_Dtype t;
  } reals[] = { { "<f2", FNN_F16 }, { "<f4", FNN_F32 }, { "<f8", FNN_F64 },
                { ">f2", FNN_F16 }, { ">f4", FNN_F32 }, { ">f8", FNN_F64 },
                { "v2", FNN_F32 },  { "v3", FNN_F32 } },
    wholes[] = { { "|i1", FNN_I32 }, { "<i2", FNN_I32 }, { "<i4", FNN_I32 },
                 { "<i8", FNN_I64 }, { ">i2", FNN_I32 }, { ">i4", FNN_I32 },
                 { ">i8", FNN_I64 } },
    positive[] = { { "|u1", FNN_U8 },
                   { "<u2", FNN_I32 },
                   { "<u4", FNN_I64 },
                   { ">u2", FNN_I32 },
                   { ">u4", FNN_I64 } };
  static const double last[] = { 128, 32768, 2147483648., 32768, 2147483648. };
  for (int i = 0; i < countof(reals); i++)
    check_npy(reals[i].file, reals[i].t, real);
  for (int i = 0; i < countof(wholes); i++)
    check_npy(wholes[i].file, wholes[i].t, sign);
  for (int i = 0; i < countof(positive); i++)
    check_npy(positive[i].file, positive[i].t,
              (double[]){ 0, 1, 5, 100, last[i] });
  check_npy("bool", FNN_BOOL, truth);
  const int64_t *u = tensor_data(npy_read(unpack("<u8")));
  assert_true(u[3] == 100 && u[4] == INT64_MAX);
  u = tensor_data(npy_read(unpack(">u8")));
  assert_true(u[4] == INT64_MAX);
}

TEST(reads_numpys_shapes) {
  Tensor *x = npy_read(unpack("fortran"));
  assert_true(x->ndim == 3 && x->shape[0] == 2 && x->shape[1] == 3 &&
              x->shape[2] == 4 && tensor_is_dense(x));
  const int32_t *v = tensor_data(x);
  for (int i = 0; i < 24; i++) assert_int_equal(v[i], i);
  const double *d = tensor_data(npy_read(unpack("fortran be")));
  for (int i = 0; i < 6; i++) assert_true(d[i] == i);
  x = npy_read(unpack("scalar"));
  assert_true(x->ndim == 0 && fnn_item(x) == 2.5);
  x = npy_read(unpack("empty"));
  assert_true(x->ndim == 2 && x->shape[0] == 0 && x->shape[1] == 3);
}

static void read_packed (void *file) { npy_read(unpack(file)); }

TEST(names_what_numpy_alone_reads) {
  throws(FNN_EFORMAT, "object: holds pickled Python objects", read_packed,
         (void *)"object");
  throws(FNN_EFORMAT, "its type <c16 is not read", read_packed,
         (void *)"complex");
  throws(FNN_EFORMAT, "record: its header: expected the type of plain",
         read_packed, (void *)"record");
  throws(FNN_EFORMAT, "its type <U3 is not read", read_packed, (void *)"text");
  throws(FNN_EFORMAT, "9223372036854775808 does not fit i64", read_packed,
         (void *)"u8 over");
}

TEST(writes_as_numpy_does) {
  static const char *const names[] = { "matrix", "scalar", "empty",
                                       "bool",   "<i8",    "<f2",
                                       "<f8",    "|u1",    "<i4" };
  const char *path = in_folder("x.npy");
  for (int i = 0; i < countof(names); i++) {
    Tensor *x = npy_read(unpack(names[i]));
    fnn_npy_write(path, x);
    size_t n;
    char *got = get_file(path, &n);
    assert_int_equal(n, packed->numel);
    assert_memory_equal(got, tensor_data(packed), n);
    free(got);
    assert_true(tensor_same_shape(x, fnn_npy_read(path)));
  }
}

static void write_bf16 (void *path) {
  fnn_npy_write(path, fnn_tensor(FNN_BF16, 0, NULL, "\0\0"));
}

TEST(writes_no_bf16) {
  throws(FNN_EDTYPE, "numpy has no bf16", write_bf16,
         (void *)in_folder("b.npy"));
}

/* A file from a version, a header and n bytes of data. */
typedef struct Lie {
  const char *error, *header;
  int data;
} Lie;

static void read_lie (void *ud) {
  const Lie *lie = ud;
  char file[1024] = "\x93NUMPY\1\0";
  size_t n = strlen(lie->header);
  file[8] = (char)n;
  file[9] = (char)(n >> 8);
  memcpy(file + 10, lie->header, n);
  npy_read(reader_bytes("lie", file, 10 + n + (size_t)lie->data));
}

#define NPY(shape) \
  "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

TEST(npy_finds_every_lie) {
  static const Lie lies[] = {
    { "expected { at", "", 0 },
    { "expected { at", "import os", 0 },
    { "expected another key", "{'a': 1}", 0 },
    { "expected shape at", "{'descr': '<f4', 'fortran_order': False}", 0 },
    { "expected another key", "{'descr': '<f4', 'descr': '<f4'}", 0 },
    { "expected False", "{'fortran_order': 1}", 0 },
    { "expected (", NPY("3"), 12 },
    { "expected a size", NPY("(-1,)"), 4 },
    { "expected a smaller size", NPY("(99999999999999999999,)"), 4 },
    { "its shape is too large", NPY("(4611686018427387904, 4)"), 4 },
    { "has more than 8 dimensions", NPY("(1,1,1,1,1,1,1,1,1)"), 4 },
    { "expected its end", NPY("(1,)") " x", 4 },
    { "truncated: needs 12 bytes at offset", NPY("(3,)"), 11 },
    { "has 1 bytes after its end", NPY("(3,)"), 13 },
    { "expected the type of plain numbers", "{'descr': '<f4", 0 },
    { "expected the type of plain numbers",
      "{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaa'", 0 },
    { "expected a key", "{descr: 1}", 0 },
  };
  for (int i = 0; i < countof(lies); i++)
    throws(FNN_EFORMAT, lies[i].error, read_lie, (void *)&lies[i]);
  Lie truth = { "",
                "{\"shape\":(3L ,1),'fortran_order':True,'descr':"
                "'=f4'}\n",
                12 };
  if (fnn_pcall(read_lie, &truth) != FNN_OK) fail_msg("%s", fnn_message());
}

typedef struct Bytes {
  const char *error, *bytes;
  size_t n;
} Bytes;

static void read_npy (void *ud) {
  npy_read(reader_bytes("f", ((Bytes *)ud)->bytes, ((Bytes *)ud)->n));
}

static void read_idx (void *ud) {
  idx_read(reader_bytes("f", ((Bytes *)ud)->bytes, ((Bytes *)ud)->n));
}

#define BYTES(error, s) \
  { error, s, sizeof(s) - 1 }

TEST(npy_names_other_files) {
  static Bytes files[] = {
    BYTES("is not a .npy file (it is empty)", ""),
    BYTES("is not a .npy file (it is a zip archive", "PK\3\4aaaaaaaa"),
    BYTES("its version 4.0 is not known", "\x93NUMPY\4\0aaaa"),
    BYTES("truncated", "\x93NUMPY\1\0\xff"),
    BYTES("truncated", "\x93NUMPY\1\0\xff\xff{"),
    BYTES("its header has 16777215 bytes", "\x93NUMPY\2\0\xff\xff\xff\0{"),
    BYTES("its header is not text", "\x93NUMPY\1\0\1\0\0"),
  };
  for (int i = 0; i < countof(files); i++)
    throws(FNN_EFORMAT, files[i].error, read_npy, &files[i]);
}

TEST(idx_reads_every_type) {
#define IDX(code, size, data) "\0\0" code "\1\0\0\0" size data
  static const struct {
    fnn_Dtype t;
    double want[2];
    Bytes b;
  } files[] = {
    { FNN_U8, { 1, 255 }, BYTES("", IDX("\x08", "\2", "\1\xff")) },
    { FNN_I32, { 1, -1 }, BYTES("", IDX("\x09", "\2", "\1\xff")) },
    { FNN_I32, { 258, -1 }, BYTES("", IDX("\x0b", "\2", "\1\2\xff\xff")) },
    { FNN_I32,
      { 16909060, -2 },
      BYTES("", IDX("\x0c", "\2", "\1\2\3\4\xff\xff\xff\xfe")) },
    { FNN_F32,
      { 1, -2 },
      BYTES("", IDX("\x0d", "\2", "\x3f\x80\0\0\xc0\0\0\0")) },
    { FNN_F64,
      { 1, -2 },
      BYTES("", IDX("\x0e", "\2", "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0")) },
  };
  for (int i = 0; i < countof(files); i++) {
    Tensor *x = idx_read(reader_bytes("f", files[i].b.bytes, files[i].b.n));
    assert_true(x->ndim == 1 && x->numel == 2);
    assert_int_equal(x->dtype, files[i].t);
    for (int k = 0; k < 2; k++)
      assert_true(dtype_get(files[i].t, tensor_data(x), k) ==
                  files[i].want[k]);
  }
}

TEST(idx_reads_gzip) {
  static const char bytes[] = "\0\0\x08\2\0\0\0\2\0\0\0\3abcdef";
  const char *path = in_folder("x-idx2-ubyte.gz");
  gzFile f = gzopen(path, "wb");
  gzwrite(f, bytes, sizeof bytes - 1);
  gzclose(f);
  Tensor *x = fnn_idx_read(path);
  assert_true(x->ndim == 2 && x->shape[0] == 2 && x->shape[1] == 3);
  assert_memory_equal(tensor_data(x), "abcdef", 6);
}

TEST(idx_finds_every_lie) {
  static Bytes files[] = {
    BYTES("is not an IDX file (it is empty)", ""),
    BYTES("is not an IDX file", "\0\0\x08"),
    BYTES("is not an IDX file", "\1\0\x08\1\0\0\0\1a"),
    BYTES("is not an IDX file", "\0\0\x0a\1\0\0\0\1a"),
    BYTES("is not an IDX file", "\0\0\x08\0a"),
    BYTES("is not an IDX file", "\0\0\x08\x09\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0"
                                "\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1a"),
    BYTES("(it is an HTML page", "<html>404</html>"),
    BYTES("truncated: needs 8 bytes at offset 4", "\0\0\x08\2\0\0\0\1"),
    BYTES("truncated: needs 3 bytes at offset 8", "\0\0\x08\1\0\0\0\3ab"),
    BYTES("truncated: needs 4294967295 bytes", "\0\0\x08\1\xff\xff\xff\xff"
                                               "a"),
    BYTES("its shape is too large", "\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff"
                                    "\xff\xff\xff\xff\xff"
                                    "a"),
    BYTES("has 1 bytes after its end", "\0\0\x08\1\0\0\0\1ab"),
  };
  for (int i = 0; i < countof(files); i++)
    throws(FNN_EFORMAT, files[i].error, read_idx, &files[i]);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_numpys_types),
    cmocka_unit_test(reads_numpys_shapes),
    cmocka_unit_test(names_what_numpy_alone_reads),
    cmocka_unit_test(writes_as_numpy_does),
    cmocka_unit_test(writes_no_bf16),
    cmocka_unit_test(npy_finds_every_lie),
    cmocka_unit_test(npy_names_other_files),
    cmocka_unit_test(idx_reads_every_type),
    cmocka_unit_test(idx_reads_gzip),
    cmocka_unit_test(idx_finds_every_lie),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
