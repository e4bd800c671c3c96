/* io_safetensors_test.c - safetensors: the reference's files, round trips,
** and every lie that a header can tell. */

#include "io_test.h"

#include <math.h>
#include <sys/resource.h>

static Tensor *tensor_named (fnn_Safetensors *f, const char *name) {
  int64_t i = fnn_safetensors_find(f, name);
  if (i < 0) fail_msg("no tensor %s", name);
  return fnn_safetensors_read(f, i);
}

static void check_values (fnn_Safetensors *f, const char *name, fnn_Dtype t,
                          const double *want) {
  Tensor *x = tensor_named(f, name);
  if (x->dtype != t) fail_msg("%s is %s", name, fnn_dtype_name(x->dtype));
  assert_int_equal(x->numel, 5);
  for (int i = 0; i < 5; i++)
    if (dtype_get(t, tensor_data(x), i) != want[i])
      fail_msg("%s[%d] is %g", name, i, dtype_get(t, tensor_data(x), i));
}

/* Written by the reference implementation (scripts/fixtures). */
TEST(reads_every_dtype) {
  static const double small[] = { 0, 1, -1.5, 96, -0.0625 };
  static const double whole[] = { 0, 1, 5, 100, 127 };
  static const double with_sign[] = { 0, 1, -5, 100, -128 };
  static const double u32[] = { 0, 1, 5, 100, 4294967295. };
  static const double u16[] = { 0, 1, 5, 100, 65535 };
  static const double truth[] = { 1, 0, 1, 1, 0 };
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "dtypes.safetensors");
  check_values(f, "float64", FNN_F64, small);
  check_values(f, "float32", FNN_F32, small);
  check_values(f, "float16", FNN_F16, small);
  check_values(f, "bfloat16", FNN_BF16, small);
  check_values(f, "float8_e4m3fn", FNN_F32, small);
  check_values(f, "float8_e5m2", FNN_F32, small);
  check_values(f, "int64", FNN_I64, with_sign);
  check_values(f, "int32", FNN_I32, with_sign);
  check_values(f, "int16", FNN_I32, with_sign);
  check_values(f, "int8", FNN_I32, with_sign);
  check_values(f, "uint64", FNN_I64, whole);
  check_values(f, "uint32", FNN_I64, u32);
  check_values(f, "uint16", FNN_I32, u16);
  check_values(f, "uint8", FNN_U8, whole);
  check_values(f, "bool", FNN_BOOL, truth);
}

TEST(reads_shapes_and_metadata) {
  const int64_t *shape;
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "dtypes.safetensors");
  assert_int_equal(fnn_safetensors_count(f), 24);
  assert_int_equal(fnn_safetensors_find(f, "absent"), -1);
  assert_int_equal(fnn_safetensors_find(f, "__metadata__"), -1);
  int64_t i = fnn_safetensors_find(f, "matrix");
  assert_string_equal(fnn_safetensors_name(f, i), "matrix");
  assert_string_equal(fnn_safetensors_dtype(f, i), "F32");
  assert_int_equal(fnn_safetensors_shape(f, i, &shape), 2);
  assert_true(shape[0] == 2 && shape[1] == 3);
  assert_true(fnn_item(tensor_named(f, "scalar")) == 2.5);
  assert_int_equal(tensor_named(f, "scalar")->ndim, 0);
  Tensor *x = tensor_named(f, "empty");
  assert_true(x->ndim == 2 && x->shape[0] == 0 && x->shape[1] == 3);
  assert_string_equal(fnn_safetensors_meta(f, "format"), "pt");
  assert_null(fnn_safetensors_meta(f, "absent"));
  assert_int_equal(fnn_safetensors_meta_count(f), 3);
  for (i = 0; i < 3; i++)
    assert_non_null(fnn_safetensors_meta(f, fnn_safetensors_meta_key(f, i)));
  assert_null(fnn_safetensors_meta_key(f, 3));
  assert_null(fnn_safetensors_meta_key(f, -1));
}

TEST(f8_codes_are_pytorchs) {
  static const char *const names[] = { "float8_e4m3fn", "float8_e5m2",
                                       "float8_e8m0fnu" };
  char name[64];
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "dtypes.safetensors");
  for (int k = 0; k < countof(names); k++) {
    snprintf(name, sizeof name, "codes.%s", names[k]);
    const float *got = tensor_data(tensor_named(f, name));
    snprintf(name, sizeof name, "values.%s", names[k]);
    const float *want = tensor_data(tensor_named(f, name));
    for (int i = 0; i < 256; i++)
      if (isnan(want[i]) ? !isnan(got[i])
                         : memcmp(&got[i], &want[i], sizeof *got) != 0)
        fail_msg("%s: code %d is %g, not %g", names[k], i, got[i], want[i]);
  }
}

/* FNV-1a of the f32 bits of all codes, NaNs alike. */
static uint64_t hash_codes (float (*widen)(uint16_t)) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int code = 0; code < 65536; code++) {
    float v = widen((uint16_t)code);
    uint32_t bits = 0x7fc00000;
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    for (int i = 0; i < 4; i++)
      h = (h ^ (bits >> 8 * i & 0xff)) * 0x100000001b3u;
  }
  return h;
}

static float widen_bf16 (uint16_t code) { return bf16_to_f32(code); }

TEST(half_codes_are_pytorchs) {
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "dtypes.safetensors");
  const char *f16 = fnn_safetensors_meta(f, "f16");
  const char *bf16 = fnn_safetensors_meta(f, "bf16");
  assert_true(hash_codes(f16_to_f32) == strtoull(f16, NULL, 16));
  assert_true(hash_codes(widen_bf16) == strtoull(bf16, NULL, 16));
}

TEST(writes_the_references_bytes) {
  static const float v[] = { 0, 1, 2, 3, 4, 5 };
  const char *path = in_folder("one"), *name = "w", *key = "a";
  const char *value = "b \xc3\xa9 \"q\"";
  Tensor *x = fnn_tensor(FNN_F32, 2, (int64_t[]){ 2, 3 }, v);
  fnn_safetensors_write(path, 1, &name, &x, 1, &key, &value);
  size_t n, m;
  char *got = get_file(path, &n);
  char *want = get_file(FIXTURES "one.safetensors", &m);
  assert_int_equal(n, m);
  assert_memory_equal(got, want, n);
  free(got);
  free(want);
}

TEST(round_trips_views_in_order) {
  static const char *const names[] = { "z", "a.b", "\xc3\xa9", "", "none" };
  const char *path = in_folder("views");
  int64_t v[12];
  for (int i = 0; i < 12; i++) v[i] = i;
  Tensor *base = fnn_tensor(FNN_I64, 2, (int64_t[]){ 3, 4 }, v);
  Tensor *x[] = {
    tensor_view(base, 2, (int64_t[]){ 4, 3 }, (int64_t[]){ 1, 4 }, 0),
    fnn_tensor(FNN_BOOL, 1, (int64_t[]){ 3 }, "\1\0\1"),
    tensor_view(base, 1, (int64_t[]){ 2 }, (int64_t[]){ 1 }, 5),
    fnn_tensor(FNN_BF16, 0, NULL, "\x80\x3f"),
    fnn_tensor(FNN_F64, 2, (int64_t[]){ 0, 7 }, ""),
  };
  fnn_safetensors_write(path, 5, names, x, 0, NULL, NULL);
  fnn_Safetensors *f = fnn_safetensors_open(path);
  assert_int_equal(fnn_safetensors_count(f), 5);
  for (int i = 0; i < 5; i++) {
    assert_string_equal(fnn_safetensors_name(f, i), names[i]);
    Tensor *y = fnn_safetensors_read(f, i);
    assert_int_equal(y->dtype, x[i]->dtype);
    assert_true(tensor_same_shape(x[i], y));
  }
  const int64_t *t = tensor_data(fnn_safetensors_read(f, 0));
  for (int i = 0; i < 12; i++) assert_int_equal(t[i], i % 3 * 4 + i / 3);
  t = tensor_data(fnn_safetensors_read(f, 2));
  assert_true(t[0] == 5 && t[1] == 6);
  assert_true(fnn_item(fnn_safetensors_read(f, 3)) == 1);
  size_t n; /* 96 + 3 + 16 + 2 bytes of data: views are saved compactly */
  char *bytes = get_file(path, &n);
  assert_int_equal(n, 8 + (unsigned char)bytes[0] +
                          256 * (unsigned char)bytes[1] + 117);
  free(bytes);
}

static void write_pair (void *names) {
  Tensor *x = fnn_tensor(FNN_U8, 0, NULL, "1"), *both[] = { x, x };
  fnn_safetensors_write(in_folder("pair"), 2, names, both, 0, NULL, NULL);
}

static void write_meta (void *keys) {
  fnn_safetensors_write(in_folder("pair"), 0, NULL, NULL, 2, keys, keys);
}

TEST(refuses_bad_names) {
  throws(FNN_EARG, "the name a is given twice", write_pair,
         (const char *[]){ "a", "a" });
  throws(FNN_EARG, "a tensor's name is not UTF-8", write_pair,
         (const char *[]){ "a", "\xff" });
  throws(FNN_EARG, "__metadata__ is given twice or reserved", write_pair,
         (const char *[]){ "a", "__metadata__" });
  throws(FNN_EARG, "the metadata key a is given twice", write_meta,
         (const char *[]){ "a", "a" });
  throws(FNN_EARG, "a metadata key is not UTF-8", write_meta,
         (const char *[]){ "a", "\xc0\x80" });
}

/* A file of a header and n bytes of data. */
typedef struct Lie {
  const char *error, *header;
  int data;
} Lie;

static void open_lie (void *ud) {
  const Lie *lie = ud;
  static char file[4096];
  uint64_t n = strlen(lie->header);
  memcpy(file, &n, 8);
  memcpy(file + 8, lie->header, n);
  memset(file + 8 + n, 0, (size_t)lie->data);
  fnn_Safetensors *f =
      safetensors_open(reader_bytes("lie", file, 8 + n + (size_t)lie->data));
  for (int64_t i = 0; i < fnn_safetensors_count(f); i++)
    fnn_safetensors_read(f, i);
}

#define ONE(dtype, shape, from, to) \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
  ",\"data_offsets\":[" from "," to "]}}"
#define TWO(a, b, c, d) \
  "{\"a\":{\"dtype\":\"U8\",\"shape\":[" a "],\"data_offsets\":[" b \
  "]},\"b\":{\"dtype\":\"U8\",\"shape\":[" c "],\"data_offsets\":[" d "]}}"

TEST(finds_every_lie) {
  static const Lie lies[] = {
    { "1:1:", "{", 8 },
    { "lie: is not a safetensors file", "[]", 8 },
    { "duplicate object key near '\"a\"'", "{\"a\":1,\"a\":2}", 8 },
    { "tensor a: is not described", "{\"a\":1}", 8 },
    { "tensor a: has no 'dtype'", "{\"a\":{}}", 8 },
    { "its dtype F4 is not known", ONE("F4", "[2]", "0", "1"), 1 },
    { "shape[0] is not a whole number", ONE("F32", "[-1]", "0", "4"), 4 },
    { "shape[1] is not a whole number", ONE("F32", "[1,1.0]", "0", "4"), 4 },
    { "shape[0] is not a whole number", ONE("F32", "[true]", "0", "4"), 4 },
    { "has no list 'shape'", ONE("F32", "2", "0", "8"), 8 },
    { "lie:1:", ONE("F32", "[NaN]", "0", "8"), 8 },
    { "has 9 dimensions", ONE("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1"), 1 },
    { "its offsets hold 4 bytes, F32 of shape (2) needs 8",
      ONE("F32", "[2]", "0", "4"), 4 },
    { "is too large", ONE("F32", "[4611686018427387904,4]", "0", "0"), 0 },
    { "is too large", ONE("U8", "[4294967296,4294967296,0]", "0", "0"), 0 },
    { "too big integer", ONE("U8", "[99999999999999999999]", "0", "1"), 1 },
    { "are not two whole numbers", ONE("U8", "[1]", "1", "0"), 1 },
    { "are not two whole numbers", ONE("U8", "[1]", "-1", "0"), 1 },
    { "are not two whole numbers", ONE("U8", "[1]", "0,1", "1"), 1 },
    { "truncated: tensor a ends at byte 8 of the data, the file has 7",
      ONE("F32", "[2]", "0", "8"), 7 },
    { "has 3 bytes after its last tensor", ONE("F32", "[2]", "0", "8"), 11 },
    { "has 1 bytes after its last tensor", "{}", 1 },
    { "2 bytes before tensor a belong to no tensor",
      ONE("U8", "[1]", "2", "3"), 3 },
    { "tensors a and b overlap", TWO("2", "0,2", "2", "1,3"), 3 },
    { "tensors a and b overlap", TWO("2", "0,2", "2", "0,2"), 2 },
    { "1 bytes before tensor b belong", TWO("1", "0,1", "1", "2,3"), 3 },
    { "1 bytes before tensor a belong", TWO("0", "1,1", "2", "2,4"), 4 },
    { "__metadata__ is not an object", "{\"__metadata__\":[]}", 0 },
    { "__metadata__: k is not a string", "{\"__metadata__\":{\"k\":1}}", 0 },
    { "lie:1:", "{\"\xff\":1}", 0 },
    { "nested deeper than",
      "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
      0 },
  };
  for (int i = 0; i < countof(lies); i++)
    throws(FNN_EFORMAT, lies[i].error, open_lie, (void *)&lies[i]);
}

TEST(accepts_what_is_legal) {
  static const Lie truths[] = {
    { "", "{}", 0 },
    { "", "{}        ", 0 },
    { "", ONE("F32", "[]", "0", "4"), 4 },
    { "", ONE("F32", "[0]", "0", "0"), 0 },
    { "", ONE("F32", "[0,5]", "0", "0"), 0 },
    { "", TWO("0", "3,3", "3", "0,3"), 3 }, /* out of order */
    { "", TWO("0", "0,0", "3", "0,3"), 3 },
    { "",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
      9 }, /* unaligned */
    { "",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],"
      "\"later\":1}}",
      0 },
  };
  for (int i = 0; i < countof(truths); i++)
    if (fnn_pcall(open_lie, (void *)&truths[i]) != FNN_OK)
      fail_msg("%s: %s", truths[i].header, fnn_message());
}

typedef struct Bytes {
  const char *bytes;
  size_t n;
} Bytes;

static void open_bytes (void *ud) {
  const Bytes *b = ud;
  safetensors_open(reader_bytes("f", b->bytes, b->n));
}

TEST(names_other_files) {
  static const struct {
    const char *error;
    Bytes b;
  } files[] = {
#define FILE_OF(error, s) \
  { \
    error, { s, sizeof(s) - 1 } \
  }
    FILE_OF("it is empty", ""),
    FILE_OF("is not a safetensors file", "abc"),
    FILE_OF("is not a safetensors file", "12345678z"),
    FILE_OF("a git-lfs pointer", "version https://git-lfs.github.com/spec/v1"
                                 "\noid sha256:0\nsize 10\n"),
    FILE_OF("an HTML page", "\n<!DOCTYPE html><html>Not found</html>"),
    FILE_OF("save the weights as safetensors", "PK\3\4\x14\0\0\0\0\0\0\0"),
    FILE_OF("a Python pickle", "\x80\2}q\0(X\6\0\0\0weights."),
    FILE_OF("a GGUF file", "GGUF\3\0\0\0\0\0\0\0\0"),
    FILE_OF("f: truncated: its header has 1000 bytes, the file has 19 (an "
            "incomplete download?)",
            "\xe8\3\0\0\0\0\0\0{\"a\":{\"dtyp"),
    FILE_OF("its header has 100000001 bytes (at most 100000000)",
            "\1\xe1\xf5\5\0\0\0\0{}"),
    FILE_OF("its header has 18446744073709551615 bytes",
            "\xff\xff\xff\xff\xff\xff\xff\xff{}"),
    FILE_OF("is not a safetensors file", "\0\0\0\0\0\0\0\0\0\0"),
  };
  for (int i = 0; i < countof(files); i++)
    throws(FNN_EFORMAT, files[i].error, open_bytes, (void *)&files[i].b);
}

TEST(u64_over_range_throws) {
  static char file[128];
  const char *header = ONE("U64", "[1]", "0", "8");
  uint64_t n = strlen(header);
  memcpy(file, &n, 8);
  memcpy(file + 8, header, n);
  memset(file + 8 + n, 0xff, 8);
  fnn_Safetensors *f = safetensors_open(reader_bytes("f", file, 16 + n));
  Frame frame;
  frame_enter(&frame);
  if (setjmp(frame.jump) == 0) {
    fnn_safetensors_read(f, 0);
    fail_msg("no error");
  }
  assert_string_equal(fnn_message(),
                      "f: a: 18446744073709551615 does not fit i64");
}

/* A sparse file of 8 GB: one small tensor at its far end. */
TEST(reads_by_seeking) {
  const char *path = in_folder("sparse");
  const char *header =
      "{\"big\":{\"dtype\":\"U8\",\"shape\":[8000000000],\"data_offsets\":"
      "[0,8000000000]},\"end\":{\"dtype\":\"F32\",\"shape\":[2],"
      "\"data_offsets\":[8000000000,8000000008]}}";
  uint64_t n = strlen(header);
  float two[] = { 3, 4 };
  FILE *file = fopen(path, "wb");
  fwrite(&n, 8, 1, file);
  fwrite(header, n, 1, file);
  if (fseeko(file, 8000000000, SEEK_CUR) != 0 ||
      fwrite(two, 8, 1, file) != 1 || fclose(file) != 0) {
    unlink(path);
    skip(); /* no sparse files here */
  }
  fnn_memory_peak_reset();
  uint64_t before = fnn_memory().peak;
  fnn_Safetensors *f = fnn_safetensors_open(path);
  Tensor *x = tensor_named(f, "end");
  assert_memory_equal(tensor_data(x), two, 8);
  assert_true(fnn_memory().peak - before < 1 << 20);
  unlink(path);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_every_dtype),
    cmocka_unit_test(reads_shapes_and_metadata),
    cmocka_unit_test(f8_codes_are_pytorchs),
    cmocka_unit_test(half_codes_are_pytorchs),
    cmocka_unit_test(writes_the_references_bytes),
    cmocka_unit_test(round_trips_views_in_order),
    cmocka_unit_test(refuses_bad_names),
    cmocka_unit_test(finds_every_lie),
    cmocka_unit_test(accepts_what_is_legal),
    cmocka_unit_test(names_other_files),
    cmocka_unit_test(u64_over_range_throws),
    cmocka_unit_test(reads_by_seeking),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
