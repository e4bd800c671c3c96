/* data_sources_test.c - images in folders and files of JSON lines: when memory
** runs out at every allocation in turn, and as a C host uses them. */

#include "io_test.h"

#include <sys/stat.h>

#include "../src/fnn_nn.h"

#define IMAGES "spec/fixtures/images"

static void use_jpeg (void *ud) {
  (void)ud;
  if (fnn_has_jpeg()) fnn_image_read(IMAGES "/exif6.jpg", 4);
}

/* Two images of one class, in the folder of this test. */
static void use_folder (void *ud) {
  fnn_ImageOptions o = { .h = 4, .w = 5, .one_hot = true };
  fnn_Tensor *x[2];
  (void)ud;
  fnn_Dataset *d = fnn_mirrored(fnn_image_folder(folder, &o), 0);
  fnn_dataset_read(d, 2, (int64_t[]){ 0, 3 }, x);
  fnn_dataset_read_field(d, 1, 1, (int64_t[]){ 1 });
}

static const char lines[] = "{\"x\": [1, 2], \"y\": 3}\n"
                            "{\"x\": [3, 4], \"y\": 5}\n"
                            "{\"x\": [5, 6], \"y\": 7}\n";

static void use_jsonl (void *ud) {
  fnn_JsonlOptions o = { .nfields = 2,
                         .field = { { "x", FNN_F32, -1, { 0 } },
                                    { "y", FNN_I64, 0, { 0 } } },
                         .shuffle = 2,
                         .reuse = true };
  fnn_Tensor *x[2];
  (void)ud;
  fnn_Jsonl *j = fnn_jsonl_open(in_folder("m.jsonl"), &o);
  fnn_jsonl_start(j, 3);
  fnn_jsonl_skip(j, 1);
  fnn_jsonl_next(j, 2, x);
}

TEST(survives_every_allocation) {
  size_t n;
  char *png = get_file(IMAGES "/photo.png", &n);
  char path[4096];
  snprintf(path, sizeof path, "%s/class", folder);
  assert_int_equal(mkdir(path, 0700), 0);
  put_file(in_folder("class/a.png"), png, n);
  put_file(in_folder("class/b.png"), png, n);
  free(png);
  put_file(in_folder("m.jsonl"), lines, strlen(lines));
  print_message("allocations: jpeg %d, folder %d, jsonl %d\n",
                sweep(use_jpeg, 2), sweep(use_folder, 2), sweep(use_jsonl, 2));
  unlink(in_folder("class/a.png"));
  unlink(in_folder("class/b.png"));
  rmdir(path);
}

TEST(reads_lines_in_order) {
  fnn_JsonlOptions o = { .nfields = 1,
                         .field = { { "y", FNN_F64, -1, { 0 } } } };
  fnn_Tensor *x[1];
  put_file(in_folder("m.jsonl"), lines, strlen(lines));
  fnn_Jsonl *j = fnn_jsonl_open(in_folder("m.jsonl"), &o);
  assert_int_equal(fnn_jsonl_next(j, 2, x), 2);
  assert_true(((double *)tensor_data(x[0]))[1] == 5);
  assert_int_equal(fnn_jsonl_next(j, 2, x), 1);
  assert_int_equal(x[0]->shape[0], 1);
  assert_true(((double *)tensor_data(x[0]))[0] == 7);
  assert_int_equal(fnn_jsonl_next(j, 2, x), 0);
  fnn_jsonl_start(j, 1);
  assert_int_equal(fnn_jsonl_skip(j, 9), 3);
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(survives_every_allocation),
    cmocka_unit_test(reads_lines_in_order),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
