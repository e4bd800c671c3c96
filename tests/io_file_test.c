/* io_file_test.c - the reader, the writer, JSON, numbers. */

#include "io_test.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

static void open_path (void *path) { reader_open(path); }
static void write_path (void *path) { writer_open(path); }
static void append_to (void *path) { appender_open(path, false); }
static void begin_anew (void *path) { appender_open(path, true); }
static void make_folder (void *path) { folder_make(path); }

TEST(names_what_the_system_says) {
  throws(FNN_EFILE, "nowhere/x: cannot open: No such file or directory",
         open_path, (void *)"nowhere/x");
  throws(FNN_EFILE, "src: is a directory", open_path, (void *)"src");
  throws(FNN_EFILE, "nowhere/x: cannot write: No such file", write_path,
         (void *)"nowhere/x");
  throws(FNN_EFILE, "src: is a directory", write_path, (void *)"src");
  throws(FNN_EFILE, "/dev/null: is not a file", open_path,
         (void *)"/dev/null");
}

static bool refuse (void *ud, const char *path, const char *mode) {
  (void)ud;
  return strcmp(path, "Makefile") == 0 && strcmp(mode, "r") == 0;
}

TEST(asks_the_host) {
  fnn_Host host = FNN_HOST_INIT;
  host.open = refuse;
  fnn_Context *before = fnn_use(fnn_open(&host));
  throws(FNN_EFILE, "README: the host does not allow it to be read", open_path,
         (void *)"README");
  throws(FNN_EFILE, "the host does not allow it to be written", write_path,
         (void *)"Makefile");
  throws(FNN_EFILE, "the host does not allow it to be written", append_to,
         (void *)"Makefile");
  throws(FNN_EFILE, "the host does not allow it to be written", make_folder,
         (void *)"build");
  assert_int_equal(fnn_pcall(open_path, (void *)"Makefile"), FNN_OK);
  fnn_close(fnn_use(before));
}

static void read_past (void *ud) {
  char b[8];
  reader_seek(ud, 6);
  reader_read(ud, b, 8);
}

static void need_huge (void *ud) { reader_need(ud, INT64_MAX); }

TEST(reads_exactly) {
  char b[4] = "";
  Reader *r = reader_bytes("mem", "0123456789", 10);
  reader_read(r, b, 3);
  assert_string_equal(b, "012");
  assert_int_equal(reader_some(r, b, 4), 4);
  throws(FNN_EFORMAT,
         "mem: truncated: needs 8 bytes at offset 6, the file "
         "has 10",
         read_past, r);
  throws(FNN_EFORMAT, "truncated", need_huge, r);
}

static void end_of (void *r) { reader_end(r); }

static void read_900 (void *r) {
  char b[900];
  reader_read(r, b, 900);
}

TEST(reads_gzip_members) {
  char text[1000], got[2000], packed[2000];
  const char *path = in_folder("two.gz");
  for (int i = 0; i < 1000; i++) text[i] = (char)(i * 7);
  gzFile f = gzopen(path, "wb");
  gzwrite(f, text, 1000);
  gzclose(f);
  f = gzopen(path, "ab"); /* a second member */
  gzwrite(f, text, 500);
  gzclose(f);
  Reader *r = reader_open(path);
  reader_unzip(r);
  reader_read(r, got, 1499);
  assert_memory_equal(got, text, 1000);
  assert_memory_equal(got + 1000, text, 499);
  throws(FNN_EFORMAT, "has bytes after its end", end_of, r);
  reader_end(r); /* now that one byte has been taken */
  size_t n;
  char *bytes = get_file(path, &n);
  memcpy(packed, bytes, n);
  free(bytes);
  r = reader_bytes("cut", packed, 200);
  reader_unzip(r);
  throws(FNN_EFORMAT, "cut: truncated: its gzip data end early", read_900, r);
  memcpy(packed + n, "junk", 4);
  r = reader_bytes("tail", packed, n + 4);
  reader_unzip(r);
  reader_read(r, got, 1500);
  throws(FNN_EFORMAT, "tail: bad gzip data", end_of, r);
  r = reader_bytes("huge", packed, n);
  reader_unzip(r);
  throws(FNN_EFORMAT, "compressed ones cannot hold", need_huge, r);
}

TEST(replaces_whole_files) {
  const char *path = in_folder("target");
  struct stat st;
  put_file(path, "old", 3);
  chmod(path, 0640);
  Writer *w = writer_open(path);
  for (int i = 0; i < 30000; i++) writer_put(w, "0123456789", 10);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 3); /* still the old one */
  writer_close(w);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 300000);
  assert_int_equal(st.st_mode & 0777, 0640);
  size_t n;
  char *b = get_file(path, &n);
  for (size_t i = 0; i < n; i++) assert_int_equal(b[i], '0' + i % 10);
  free(b);
}

static void write_and_throw (void *ud) {
  Writer *w = writer_open(ud);
  writer_put(w, "half", 4);
  fnn_throw(FNN_EARG, "on purpose");
}

TEST(an_error_leaves_the_old_file) {
  const char *path = in_folder("kept");
  size_t n;
  put_file(path, "old", 3);
  int files = count_files();
  throws(FNN_EARG, "on purpose", write_and_throw, (void *)path);
  assert_int_equal(count_files(), files);
  char *b = get_file(path, &n);
  assert_string_equal(b, "old");
  free(b);
}

static void write_much (void *ud) {
  static char block[100000];
  Writer *w = writer_open(ud);
  for (int i = 0; i < 10; i++) writer_put(w, block, sizeof block);
  writer_close(w);
}

TEST(a_full_disk_is_an_error) {
  const char *path = in_folder("full");
  struct rlimit old, tight = { 1 << 18, 1 << 18 };
  getrlimit(RLIMIT_FSIZE, &old);
  tight.rlim_max = old.rlim_max;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  int files = count_files();
  throws(FNN_EFILE, "full: cannot write: File too large", write_much,
         (void *)path);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  assert_int_equal(count_files(), files);
}

TEST(writes_through_links_and_to_devices) {
  const char *link = in_folder("link");
  size_t n;
  put_file(in_folder("real"), "old", 3);
  assert_int_equal(symlink("real", link), 0);
  Writer *w = writer_open(link);
  writer_put(w, "new", 3);
  writer_close(w);
  char *b = get_file(in_folder("real"), &n);
  assert_string_equal(b, "new");
  free(b);
  struct stat st;
  assert_int_equal(lstat(in_folder("link"), &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  w = writer_open("/dev/null");
  writer_put(w, "gone", 4);
  writer_close(w);
  assert_int_equal(stat("/dev/null", &st), 0);
  assert_true(S_ISCHR(st.st_mode));
}

static void parse_json (void *text) {
  json_parse("f.json", text, strlen(text));
}

static void append_too_much (void *path) {
  static char block[1 << 16];
  appender_put(appender_open(path, false), block, sizeof block);
}

/* Bytes of a file, by what was said of it. */
static void holds (const char *path, const char *text) {
  size_t n;
  char *bytes = get_file(path, &n);
  assert_string_equal(bytes, text);
  assert_int_equal(n, strlen(text));
  free(bytes);
}

TEST(appends_whole_pieces) {
  const char *path = in_folder("log");
  Appender *a = appender_open(path, true), *b = appender_open(path, false);
  assert_int_equal(appender_tail(a)->numel, 0);
  appender_put(a, "one\n", 4);
  holds(path, "one\n"); /* while it is open */
  appender_put(b, "two\nto", 6);
  appender_put(a, "rn", 2);
  Tensor *tail = appender_tail(b);
  assert_int_equal(tail->numel, 4);
  assert_memory_equal(tensor_data(tail), "torn", 4);
  appender_cut(b, 4);
  holds(path, "one\ntwo\n");
  assert_int_equal(appender_tail(a)->numel, 0);
  appender_cut(a, 100);
  holds(path, "");
}

TEST(appending_says_what_is_wrong) {
  const char *path = in_folder("there");
  put_file(path, "x", 1);
  throws(FNN_EFILE, "there: cannot write: File exists", begin_anew,
         (void *)path);
  throws(FNN_EFILE, ": is a directory", append_to, folder);
  assert_true(fcntl(0, F_GETFD) >= 0); /* nobody else's file was closed */
  throws(FNN_EFILE, "cannot make the folder: Not a directory", make_folder,
         (void *)path);
}

/* What fits of a piece is taken away again. */
TEST(a_full_disk_leaves_no_half_of_a_piece) {
  struct rlimit old, tight = { 1000, 1000 };
  const char *path = in_folder("full");
  put_file(path, "whole\n", 6);
  getrlimit(RLIMIT_FSIZE, &old);
  tight.rlim_max = old.rlim_max;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  throws(FNN_EFILE, "full: cannot write: File too large", append_too_much,
         (void *)path);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  holds(path, "whole\n");
}

/* By bits, as the definition has it; and the check value that catalogues of
** such sums give. */
TEST(crc32c_is_castagnolis) {
  uint8_t bytes[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (uint8_t)(i * i * 31);
  for (int n = 0; n <= 1000; n += 37) {
    uint32_t c = 0xffffffffu;
    for (int i = 0; i < 8 * n; i++) {
      uint32_t bit = bytes[i / 8] >> i % 8 & 1;
      c = c >> 1 ^ ((c ^ bit) & 1 ? 0x82f63b78u : 0);
    }
    assert_int_equal(crc32c(bytes, n), ~c);
  }
  assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
}

TEST(json_is_strict) {
  char deep[600];
  Json *j = json_parse("f.json", "{\"a\": [1, 2.5]}", 15);
  assert_int_equal(json_object_size(j->root), 1);
  assert_string_equal(json_text(j), "{\"a\":[1,2.5]}");
  throws(FNN_EFORMAT, "f.json:2:", parse_json, (void *)"{\n\"a\": oops}");
  throws(FNN_EFORMAT, "duplicate object key near '\"a\"'", parse_json,
         (void *)"{\"a\": 1, \"a\": 2}");
  throws(FNN_EFORMAT, "f.json:1:", parse_json, (void *)"{\"a\": NaN}");
  throws(FNN_EFORMAT, "f.json:1:", parse_json, (void *)"[\"\xff\"]");
  throws(FNN_EFORMAT, "f.json:1:", parse_json, (void *)"");
  memset(deep, '[', 300);
  memset(deep + 300, ']', 300);
  deep[599] = '\0';
  throws(FNN_EFORMAT, "f.json:1: nested deeper than 200", parse_json, deep);
}

static void read_json (void *path) { json_read(path); }

TEST(json_names_its_file) {
  const char *path = in_folder("x.json");
  put_file(path, "{\"a\":\n[1,]}", 10);
  throws(FNN_EFORMAT, "x.json:2:", read_json, (void *)path);
  put_file(path, " [1] \n", 6);
  assert_int_equal(json_array_size(json_read(path)->root), 1);
  assert_int_equal(json_object_size(json_new()->root), 0);
}

static double number_of (const char *s) {
  double v = -12345;
  assert_true(number_parse(s, strlen(s), &v));
  return v;
}

TEST(numbers_are_the_compilers) {
#define SAME(x) assert_true(number_of(#x) == x)
  SAME(0);
  SAME(1);
  SAME(-1.5);
  SAME(.25);
  SAME(3.);
  SAME(1e22);
  SAME(1e23);
  SAME(123456789012345678.);
  SAME(0.1);
  SAME(1e-5);
  SAME(2.2250738585072014e-308);
  SAME(4.9e-324);
  SAME(1.7976931348623157e308);
  SAME(9007199254740993.);
  SAME(0.000001e6);
  SAME(00012.50);
  SAME(1E+2);
  SAME(179769313486231580793728971405301199e273);
#undef SAME
  assert_true(isinf(number_of("1e400")) && isinf(number_of("-inf")));
  assert_true(isnan(number_of("NaN")) && signbit(number_of("-0")));
  assert_true(number_of("1e-99999999999999999999") == 0);
  assert_true(isinf(number_of("1e99999999999999999999")));
}

TEST(numbers_round_trip) {
  char s[64];
  uint32_t w[4];
  for (uint64_t i = 0; i < 20000; i++) {
    philox(1, i, w);
    double v;
    memcpy(&v, w, sizeof v);
    if (!isfinite(v)) continue;
    snprintf(s, sizeof s, "%.17g", v);
    assert_true(number_of(s) == v);
    v = (int32_t)w[2] * 1e-4; /* few digits: the short way */
    snprintf(s, sizeof s, "%.4f", v);
    assert_true(number_of(s) == strtod(s, NULL));
  }
}

TEST(long_numbers_round_once) {
  char s[3000];
  /* 1 + 2^-53 exactly is a tie that goes down to even; a digit further on
  ** makes it go up. */
  strcpy(s, "1.00000000000000011102230246251565404236316680908203125");
  assert_true(number_of(s) == 1.0);
  size_t n = strlen(s);
  memset(s + n, '0', 2000);
  strcpy(s + n + 2000, "1");
  assert_true(number_of(s) == 1.0000000000000002);
  memset(s, '0', 2000);
  strcpy(s + 2000, "7");
  assert_true(number_of(s) == 7);
  memset(s, '9', 400);
  s[400] = '\0';
  assert_true(isinf(number_of(s)));
}

TEST(numbers_know_no_locale) {
  static const char *const bad[] = {
    "",    "-",   ".",     "e5",    "1e",   "1e+", "1,5",  "0x10",
    "1 2", "--1", "1.2.3", "infin", "nano", "+-1", "1_000"
  };
  double v;
  for (int i = 0; i < countof(bad); i++)
    if (number_parse(bad[i], strlen(bad[i]), &v)) fail_msg("%s", bad[i]);
  /* Where the system has it, a locale whose decimal point is a comma. */
  const char *old = setlocale(LC_NUMERIC, NULL);
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
    assert_true(number_of("3.141592653589793238") == M_PI);
    setlocale(LC_NUMERIC, old);
  }
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_what_the_system_says),
    cmocka_unit_test(asks_the_host),
    cmocka_unit_test(reads_exactly),
    cmocka_unit_test(reads_gzip_members),
    cmocka_unit_test(replaces_whole_files),
    cmocka_unit_test(an_error_leaves_the_old_file),
    cmocka_unit_test(a_full_disk_is_an_error),
    cmocka_unit_test(writes_through_links_and_to_devices),
    cmocka_unit_test(appends_whole_pieces),
    cmocka_unit_test(appending_says_what_is_wrong),
    cmocka_unit_test(a_full_disk_leaves_no_half_of_a_piece),
    cmocka_unit_test(crc32c_is_castagnolis),
    cmocka_unit_test(json_is_strict),
    cmocka_unit_test(json_names_its_file),
    cmocka_unit_test(numbers_are_the_compilers),
    cmocka_unit_test(numbers_round_trip),
    cmocka_unit_test(long_numbers_round_once),
    cmocka_unit_test(numbers_know_no_locale),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
