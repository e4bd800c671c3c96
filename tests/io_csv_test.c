/* io_csv_test.c - tables in CSV. */

#include "io_test.h"

#include <math.h>

static fnn_CsvOptions labelled = { ',', -1, -1, FNN_F32 };
static fnn_CsvOptions doubles = { ';', 0, FNN_CSV_NOLABEL, FNN_F64 };

static fnn_Csv *read_text (const char *text, const fnn_CsvOptions *o) {
  return csv_read(reader_bytes("t.csv", text, strlen(text)), o);
}

static void check_values (fnn_Csv *c, int64_t rows, int64_t columns,
                          const float *want) {
  Tensor *x = fnn_csv_values(c);
  assert_true(x->ndim == 2 && x->dtype == FNN_F32);
  assert_true(x->shape[0] == rows && x->shape[1] == columns);
  assert_memory_equal(tensor_data(x), want, (size_t)x->numel * 4);
}

/* The same table in the spellings that are met. */
TEST(reads_plain_tables) {
  static const float want[] = { 1, 2.5, -3, 4e10 };
  static const char *const same[] = {
    "1,2.5\n-3,4e10\n",
    "1,2.5\n-3,4e10",
    "1,2.5\r\n-3,4e10\r\n",
    "1,2.5\r-3,4e10\r",
    "\357\273\2771,2.5\n-3,4e10\n\n\n",
    "\"1\",\"2.5\"\n\"-3\",4e10\n",
    " 1 ,\t2.5 \n-3,+4E+10\r\n\r\n",
    "x,y\n1,2.5\n-3,4e10\n",
  };
  for (int i = 0; i < countof(same); i++) {
    fnn_Csv *c = read_text(same[i], NULL);
    check_values(c, 2, 2, want);
    assert_null(fnn_csv_labels(c));
    assert_int_equal(fnn_csv_class_count(c), 0);
  }
}

TEST(keeps_names) {
  fnn_Csv *c = read_text("\"a \"\"b\"\"\",kind,\"two\nlines, one\"\n"
                         "1,x,2\n3,y,4\n",
                         &(fnn_CsvOptions){ ',', -1, 1, FNN_F32 });
  check_values(c, 2, 2, (float[]){ 1, 2, 3, 4 });
  assert_string_equal(fnn_csv_column(c, 0), "a \"b\"");
  assert_string_equal(fnn_csv_column(c, 1), "two\nlines, one");
  assert_null(fnn_csv_column(c, 2));
  assert_null(fnn_csv_column(read_text("1\n", NULL), 0));
}

static void check_labels (const char *text, int rows, const int64_t *want,
                          int classes, const char *const *names) {
  fnn_Csv *c = read_text(text, &labelled);
  Tensor *y = fnn_csv_labels(c);
  assert_true(y->ndim == 1 && y->shape[0] == rows && y->dtype == FNN_I64);
  assert_memory_equal(tensor_data(y), want, (size_t)rows * 8);
  assert_int_equal(fnn_csv_class_count(c), classes);
  for (int i = 0; i < classes; i++)
    assert_string_equal(fnn_csv_class(c, i), names[i]);
  assert_null(fnn_csv_class(c, classes));
  assert_null(fnn_csv_class(c, -1));
}

TEST(sorts_classes) {
  check_labels("h,species\n1,setosa\n2,\"alba\"\n3,setosa\n4,Zea\n", 4,
               (int64_t[]){ 2, 1, 2, 0 }, 3,
               (const char *[]){ "Zea", "alba", "setosa" });
  check_labels("1,10\n2,9\n3,x\n4,9\n5,-1\n", 5, (int64_t[]){ 2, 1, 3, 1, 0 },
               4, (const char *[]){ "-1", "9", "10", "x" });
}

TEST(reads_doubles) {
  Tensor *x = fnn_csv_values(read_text("0.1;nan\n-inf;1e-310\n", &doubles));
  const double *v = tensor_data(x);
  assert_int_equal(x->dtype, FNN_F64);
  assert_true(v[0] == 0.1 && isnan(v[1]) && v[2] == -INFINITY &&
              v[3] == 1e-310);
}

TEST(reads_headers_alone) {
  fnn_Csv *c = read_text("a,b,c", &labelled);
  assert_true(fnn_csv_values(c)->shape[0] == 0);
  assert_true(fnn_csv_values(c)->shape[1] == 2);
  assert_int_equal(fnn_csv_labels(c)->numel, 0);
  assert_int_equal(fnn_csv_class_count(c), 0);
}

typedef struct Lie {
  const char *error, *text;
  const fnn_CsvOptions *options;
} Lie;

static void read_lie (void *ud) {
  read_text(((Lie *)ud)->text, ((Lie *)ud)->options);
}

TEST(says_line_and_column) {
  static const fnn_CsvOptions headed = { ',', 1, FNN_CSV_NOLABEL, FNN_F32 };
  static const fnn_CsvOptions bare = { ',', 0, FNN_CSV_NOLABEL, FNN_F32 };
  static const fnn_CsvOptions far = { ',', -1, 5, FNN_F32 };
  static Lie lies[] = {
    { "t.csv: is empty", "", NULL },
    { "t.csv: is empty", "\n\n", NULL },
    { "t.csv:3: has 1 fields (expected 2)", "1,2\n3,4\n5\n6,7\n", NULL },
    { "t.csv:2: has 3 fields (expected 2)", "a,b\n3,4,5\n", NULL },
    { "t.csv:2: column 2: \"x\" is not a number", "1,2\n3,x\n", NULL },
    { "t.csv:1: column 2: \"2.x\" is not a number", "1,2.x\n3,4\n", NULL },
    { "t.csv:2: column 1: \"\" is not a number", "1,2\n,4\n", NULL },
    { "t.csv:2: is blank", "1,2\n\n3,4\n", NULL },
    { "t.csv:4: column 1: \"z\" is not a number", "\"a\nb\",\"c\r\nd\"\nz,1\n",
      &headed },
    { "t.csv:1: column 1: \"a\" is not a number", "a,b\n1,2\n", &bare },
    { "t.csv:2: a quote is not closed", "1,2\n3,\"4\n5,6\n", NULL },
    { "t.csv:2: text follows a closed quote", "1,2\n3,\"4\"5\n", NULL },
    { "t.csv:1: has no column of numbers", "a\nb\n", &labelled },
  };
  for (int i = 0; i < countof(lies); i++)
    throws(FNN_EFORMAT, lies[i].error, read_lie, &lies[i]);
  throws(FNN_EARG, "csv: the separator must not be", read_lie,
         &(Lie){ "", "1\n", &(fnn_CsvOptions){ '"', 0, 0, FNN_F32 } });
  throws(FNN_EARG, "t.csv:1: has no column for the label (it has 2)", read_lie,
         &(Lie){ "", "1,2\n", &far });
}

static void read_zero (void *ud) {
  (void)ud;
  csv_read(reader_bytes("t.csv", "1,2\n3,\0\n", 8), NULL);
}

TEST(refuses_what_is_not_text) {
  throws(FNN_EFORMAT, "t.csv:2: holds a zero byte", read_zero, NULL);
}

TEST(reads_many_rows) {
  enum { ROWS = 20000 };
  char *text = malloc(ROWS * 24), *p = text;
  for (int i = 0; i < ROWS; i++)
    p += sprintf(p, "%d,%d.25,c%d\n", i, -i, i % 300);
  const char *path = in_folder("many.csv");
  put_file(path, text, (size_t)(p - text));
  free(text);
  fnn_Csv *c = fnn_csv_read(path, &labelled);
  const float *v = tensor_data(fnn_csv_values(c));
  const int64_t *y = tensor_data(fnn_csv_labels(c));
  assert_int_equal(fnn_csv_class_count(c), 300);
  for (int i = 0; i < ROWS; i++) {
    char name[16];
    assert_true(v[2 * i] == i && v[2 * i + 1] == (i == 0 ? .25f : -i - .25f));
    sprintf(name, "c%d", i % 300);
    assert_string_equal(fnn_csv_class(c, (int)y[i]), name);
  }
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_plain_tables),
    cmocka_unit_test(keeps_names),
    cmocka_unit_test(sorts_classes),
    cmocka_unit_test(reads_doubles),
    cmocka_unit_test(reads_headers_alone),
    cmocka_unit_test(says_line_and_column),
    cmocka_unit_test(refuses_what_is_not_text),
    cmocka_unit_test(reads_many_rows),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
