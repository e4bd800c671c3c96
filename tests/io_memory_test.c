/* io_memory_test.c - files when memory runs out at every allocation in turn,
** and when the process is killed. */

#include "io_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <zlib.h>

static const char *path_of (const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void use_safetensors (void *ud) {
  static const char *const names[] = { "a", "b" };
  Tensor *x = fnn_tensor(FNN_F32, 2, (int64_t[]){ 1, 2 }, "1234567");
  Tensor *both[] = { x, x };
  (void)ud;
  fnn_safetensors_write(path_of("m"), 2, names, both, 1, names, names);
  fnn_safetensors_read(fnn_safetensors_open(path_of("m")), 1);
}

static void use_npy (void *ud) {
  (void)ud;
  fnn_npy_write(path_of("m"), fnn_tensor(FNN_U8, 0, NULL, "1"));
  fnn_npy_read(path_of("m"));
}

static void use_csv (void *ud) {
  fnn_CsvOptions o = { ',', -1, -1, FNN_F32 };
  (void)ud;
  fnn_csv_read(path_of("m.csv.gz"), &o);
}

static void use_png (void *ud) {
  static char longer[3000]; /* than what libpng reads into first */
  const char *const texts[] = { memset(longer, 'x', sizeof longer - 1),
                                "\xe7\x8c\xab" };
  (void)ud;
  fnn_png_write(path_of("m"), fnn_tensor(FNN_U8, 2, (int64_t[]){ 1, 2 }, "1"),
                2, (const char *[]){ "key", "key" }, texts);
  fnn_png_image(fnn_png_read(path_of("m")), 4);
}

static void use_append (void *ud) {
  (void)ud;
  folder_make(path_of("new/folder"));
  Appender *a = appender_open(path_of("m"), false);
  appender_put(a, "line\ntail", 9);
  appender_cut(a, appender_tail(a)->numel);
  fnn_png_encode(fnn_tensor(FNN_U8, 2, (int64_t[]){ 1, 2 }, "1"), 0, NULL,
                 NULL);
}

TEST(survives_every_allocation) {
  gzFile f = gzopen(path_of("m.csv.gz"), "wb");
  gzputs(f, "x,y\n1,a\n2,b\n");
  gzclose(f);
  print_message("allocations: safetensors %d, npy %d, csv %d, png %d\n",
                sweep(use_safetensors, 2), sweep(use_npy, 2),
                sweep(use_csv, 2), sweep(use_png, 2));
  print_message("appending %d\n", sweep(use_append, 3));
  assert_int_equal(rmdir(path_of("new/folder")), 0);
  assert_int_equal(rmdir(path_of("new")), 0);
}

static void read_big (void *ud) {
  static char header[] = "\0\0\x08\1\x7f\0\0\0";
  Reader *r = reader_bytes("big", header, 8);
  (void)ud;
  r->size = INT64_MAX; /* as a sparse file could be */
  idx_read(r);
}

TEST(keeps_to_the_limit) {
  fnn_memory_limit(1 << 20);
  throws(FNN_EMEMORY, "of the 1.0 MB allowed", read_big, NULL);
  fnn_memory_limit(0);
}

/* The file that a killed process was about to replace is whole. */
TEST(a_killed_writer_leaves_the_old_file) {
  const char *path = in_folder("kill");
  size_t n;
  put_file(path, "old", 3);
  pid_t child = fork();
  if (child == 0) {
    Writer *w = writer_open(path);
    for (int i = 0; i < 100000; i++) writer_put(w, "half", 4);
    kill(getpid(), SIGKILL);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  char *bytes = get_file(path, &n);
  assert_int_equal(n, 3);
  assert_string_equal(bytes, "old");
  free(bytes);
}

static void write_cancelled (void *path) {
  static char block[1 << 20];
  Writer *w = writer_open(path);
  fnn_cancel(fnn_cancel_token(fnn_current()));
  for (int i = 0; i < 10; i++) writer_put(w, block, sizeof block);
  writer_close(w);
}

TEST(a_cancelled_writer_leaves_no_file) {
  int files = count_files();
  fnn_Status s = fnn_pcall(write_cancelled, (void *)in_folder("cancelled"));
  assert_int_equal(s, FNN_ECANCEL);
  assert_int_equal(count_files(), files);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(survives_every_allocation),
    cmocka_unit_test(keeps_to_the_limit),
    cmocka_unit_test(a_killed_writer_leaves_the_old_file),
    cmocka_unit_test(a_cancelled_writer_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
