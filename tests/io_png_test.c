/* io_png_test.c - PNG: each kind of image, texts, broken files; drawing. */

#define _GNU_SOURCE /* memmem */

#include "io_test.h"

/* A file that the fixture packs, as a tensor of bytes or of pixels. */
static Tensor *packed (fnn_Safetensors *f, const char *name) {
  return fnn_safetensors_read(f, fnn_safetensors_find(f, name));
}

static Reader *reader_of (Tensor *x) {
  return reader_bytes("p.png", tensor_data(x), (size_t)x->numel);
}

static bool ends_in (const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && strcmp(s + n - k, end) == 0;
}

TEST(reads_every_kind) {
  char name[128];
  int kinds = 0;
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "png.safetensors");
  for (int64_t i = 0; i < fnn_safetensors_count(f); i++) {
    const char *file = fnn_safetensors_name(f, i);
    if (ends_in(file, ".pixels") || strcmp(file, "texts") == 0) continue;
    snprintf(name, sizeof name, "%s.pixels", file);
    Tensor *want = packed(f, name);
    Tensor *got = fnn_png_image(png_open(reader_of(packed(f, file))), 0);
    if (!tensor_same_shape(got, want) ||
        memcmp(tensor_data(got), tensor_data(want), (size_t)got->numel) != 0)
      fail_msg("%s has shape %s", file, shape_text(got));
    kinds++;
  }
  assert_int_equal(kinds, 52);
}

TEST(reads_texts) {
  static const char *const want[][2] = {
    { "Title", "caf\xc3\xa9" },
    { "Packed", "long long long long long long long long long long long long "
                "long long long long long long long long " },
    { "Prompt", "\xe7\x8c\xab \xf0\x9f\x90\x88" },
    { "Squeezed", "\xc3\xbc" },
    { "Broken", "\xc3\xbf" },
  };
  const char *key;
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "png.safetensors");
  fnn_Png *p = png_open(reader_of(packed(f, "texts")));
  assert_int_equal(fnn_png_text_count(p), countof(want));
  for (int i = 0; i < countof(want); i++) {
    assert_string_equal(fnn_png_text(p, i, &key), want[i][1]);
    assert_string_equal(key, want[i][0]);
  }
}

TEST(round_trips) {
  uint8_t v[60];
  for (int i = 0; i < 60; i++) v[i] = (uint8_t)(i * 37);
  const char *path = in_folder("x.png");
  for (int n = 0; n <= 4; n++) {
    int64_t shape[] = { 3, 5, n };
    Tensor *x = fnn_tensor(FNN_U8, n == 0 ? 2 : 3, shape, v);
    fnn_png_write(path, x, 0, NULL, NULL);
    Tensor *y = fnn_png_image(fnn_png_read(path), 0);
    assert_true(y->shape[0] == 3 && y->shape[1] == 5 &&
                y->shape[2] == max64(n, 1));
    assert_memory_equal(tensor_data(y), v, (size_t)y->numel);
  }
  /* A view: turned by its strides. */
  Tensor *x = fnn_tensor(FNN_U8, 3, (int64_t[]){ 4, 5, 3 }, v);
  x = tensor_view(x, 3, (int64_t[]){ 5, 4, 3 }, (int64_t[]){ 3, 15, 1 }, 0);
  fnn_png_write(path, x, 0, NULL, NULL);
  const uint8_t *y = tensor_data(fnn_png_image(fnn_png_read(path), 0));
  for (int i = 0; i < 60; i++)
    assert_int_equal(y[i], v[i / 12 * 3 + i / 3 % 4 * 15 + i % 3]);
}

TEST(converts_channels) {
  static const uint8_t rgb[] = { 10, 20, 30, 255, 0, 0 };
  const char *path = in_folder("c.png");
  fnn_png_write(path, fnn_tensor(FNN_U8, 3, (int64_t[]){ 1, 2, 3 }, rgb), 0,
                NULL, NULL);
  fnn_Png *p = fnn_png_read(path);
  /* .299 r + .587 g + .114 b: 18.15 and 76.245 */
  assert_memory_equal(tensor_data(fnn_png_image(p, 1)), "\x12\x4c", 2);
  assert_memory_equal(tensor_data(fnn_png_image(p, 2)), "\x12\xff\x4c\xff", 4);
  assert_memory_equal(tensor_data(fnn_png_image(p, 4)),
                      "\x0a\x14\x1e\xff\xff\0\0\xff", 8);
  fnn_png_write(path, fnn_tensor(FNN_U8, 3, (int64_t[]){ 1, 1, 2 }, "\7\x80"),
                0, NULL, NULL);
  p = fnn_png_read(path);
  assert_memory_equal(tensor_data(fnn_png_image(p, 4)), "\7\7\7\x80", 4);
  assert_memory_equal(tensor_data(fnn_png_image(p, 3)), "\7\7\7", 3);
  assert_memory_equal(tensor_data(fnn_png_image(p, 1)), "\7", 1);
}

TEST(round_trips_texts) {
  static const char *const keys[] = { "parameters", "Caf\xc3\xa9", "Empty" };
  static const char *const texts[] = { "a cat\nSteps: 20", "\xe7\x8c\xab",
                                       "" };
  const char *path = in_folder("t.png"), *key;
  fnn_png_write(path, fnn_tensor(FNN_U8, 2, (int64_t[]){ 1, 1 }, "\1"), 3,
                keys, texts);
  fnn_Png *p = fnn_png_read(path);
  assert_int_equal(fnn_png_text_count(p), 3);
  for (int i = 0; i < 3; i++) {
    assert_string_equal(fnn_png_text(p, i, &key), texts[i]);
    assert_string_equal(key, keys[i]);
  }
  size_t n;
  char *bytes = get_file(path, &n);
  assert_non_null(memmem(bytes, n, "tEXtparameters\0a cat", 20));
  assert_non_null(memmem(bytes, n, "iTXtCaf\xe9", 8));
  free(bytes);
}

static void write_key (void *key) {
  Tensor *x = fnn_tensor(FNN_U8, 2, (int64_t[]){ 1, 1 }, "\1");
  fnn_png_write(in_folder("k.png"), x, 1, (const char *[]){ key },
                (const char *[]){ "text" });
}

static void write_text (void *text) {
  Tensor *x = fnn_tensor(FNN_U8, 2, (int64_t[]){ 1, 1 }, "\1");
  fnn_png_write(in_folder("k.png"), x, 1, (const char *[]){ "key" },
                (const char *[]){ text });
}

static void write_image (void *x) {
  fnn_png_write(in_folder("k.png"), x, 0, NULL, NULL);
}

TEST(checks_before_it_writes) {
  static const char *const keys[] = { "",     " a",  "a ",
                                      "a  b", "a\n", "\xe7\x8c\xab" };
  char longest[81];
  for (int i = 0; i < countof(keys); i++)
    throws(FNN_EARG, "is not a keyword of PNG", write_key, (void *)keys[i]);
  memset(longest, 'a', 80);
  longest[80] = '\0';
  throws(FNN_EARG, "is not a keyword of PNG", write_key, longest);
  throws(FNN_EARG, "the text of key is not UTF-8", write_text,
         (void *)"\xe7\x8c");
  throws(FNN_ESHAPE, "png_write: expected u8 of shape (h, w)", write_image,
         fnn_tensor(FNN_F32, 2, (int64_t[]){ 1, 1 }, "\0\0\0\0"));
  throws(FNN_ESHAPE, "got u8 of shape (1, 1, 5)", write_image,
         fnn_tensor(FNN_U8, 3, (int64_t[]){ 1, 1, 5 }, "12345"));
  throws(FNN_ESHAPE, "got u8 of shape (0, 2)", write_image,
         fnn_tensor(FNN_U8, 2, (int64_t[]){ 0, 2 }, ""));
}

static void open_tensor (void *x) { png_open(reader_of(x)); }

/* A prefix of a file, and files with one byte changed, must give an image or
** an error, and leave nothing behind. */
TEST(survives_damage) {
  fnn_Safetensors *f = fnn_safetensors_open(FIXTURES "png.safetensors");
  Tensor *x = packed(f, "colour3 depth4 interlaced1 trns");
  uint8_t *bytes = tensor_data(x);
  uint64_t objects = fnn_memory().objects, live = fnn_memory().live;
  for (int64_t n = 0; n < x->numel; n++) {
    Tensor *part = tensor_view(x, 1, &n, (int64_t[]){ 1 }, 0);
    if (fnn_pcall(open_tensor, part) == FNN_OK) fail_msg("read %d", (int)n);
    fnn_escape(fnn_mark() - 1, NULL);
  }
  for (int64_t i = 0; i < x->numel; i++) {
    bytes[i] ^= 0x55;
    fnn_pcall(open_tensor, x);
    bytes[i] ^= 0x55;
  }
  assert_int_equal(fnn_memory().objects, objects);
  assert_true(fnn_memory().live <= live);
}

TEST(refuses_impossible_sizes) {
  /* IHDR of 1000000 x 1000000 pixels, with its checksum, and no more. */
  static const char bytes[] =
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xf\x42\x40\0\xf\x42\x40\10\6\0\0\0"
      "\x5c\x6d\x38\x7d\0\0\0\0IDAT\x35\xaf\x06\x1e";
  Tensor *x = fnn_tensor(FNN_U8, 1, (int64_t[]){ sizeof bytes - 1 }, bytes);
  throws(FNN_EFORMAT, "1000000 by 1000000 pixels do not fit its", open_tensor,
         x);
  x = fnn_tensor(FNN_U8, 1, (int64_t[]){ 3 }, "\xff\xd8\xff");
  throws(FNN_EFORMAT, "is not a PNG image (it is a JPEG image)", open_tensor,
         x);
}

static int lit (Tensor *image, int64_t y, int64_t x) {
  const uint8_t *p = tensor_data(image);
  return p[(y * image->shape[1] + x) * 3];
}

TEST(draws_rectangles) {
  Tensor *x = fnn_zeros(3, (int64_t[]){ 6, 8, 3 }, FNN_U8, NULL);
  fnn_draw_rect(x, 1, 1, 6, 4, 1, 0x010203);
  const uint8_t *p = tensor_data(x);
  assert_memory_equal(p + (1 * 8 + 1) * 3, "\1\2\3", 3);
  int n = 0;
  for (int i = 0; i < 6 * 8; i++) n += p[3 * i] != 0;
  assert_int_equal(n, 2 * 6 + 2 * 2);
  assert_true(lit(x, 2, 2) == 0 && lit(x, 4, 6) == 1 && lit(x, 2, 6) == 1);
  fnn_draw_rect(x, -5, -5, 100, 100, 0, 0xffffff);
  for (int i = 0; i < 6 * 8 * 3; i++) assert_int_equal(p[i], 255);
  fnn_draw_rect(x, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MAX, INT64_MAX, 0);
  fnn_draw_rect(x, 0, 0, 0, -3, 0, 0);
  for (int i = 0; i < 6 * 8 * 3; i++) assert_int_equal(p[i], 255);
}

TEST(draws_text) {
  static const char want[] = ".#.#.."
                             "#####."
                             ".#.#.."
                             "......"; /* of # */
  Tensor *x = fnn_zeros(3, (int64_t[]){ 40, 40, 3 }, FNN_U8, NULL);
  fnn_draw_text(x, 3, 2, 1, 0xff0000, "#");
  for (int i = 0; i < 6; i++) {
    assert_int_equal(lit(x, 2 + 1, 3 + i) != 0, want[i] == '#');
    assert_int_equal(lit(x, 2 + 2, 3 + i) != 0, want[6 + i] == '#');
  }
  fnn_fill_(x, 0);
  fnn_draw_text(x, -7, 31, 3, 0xffffff, "\xc3\xa9\nA~");
  fnn_draw_text(x, 38, -4, 2, 0xffffff, "W");
  fnn_fill_(x, 0);
  fnn_draw_text(x, 0, 0, 2, 0xffffff, " \n.");
  int n = 0;
  for (int i = 0; i < 1600; i++) n += lit(x, i / 40, i % 40) != 0;
  assert_int_equal(n, 16); /* a dot of 2 by 2, each of 2 by 2 pixels */
  assert_true(lit(x, 20 + 10, 2) != 0);
}

static void draw_bad (void *x) { fnn_draw_text(x, 0, 0, 1, 0, "a"); }

TEST(draws_into_images_alone) {
  throws(FNN_ESHAPE, "draw_text: expected a u8 image of shape (h, w, 3)",
         draw_bad, fnn_zeros(2, (int64_t[]){ 4, 4 }, FNN_U8, NULL));
  throws(FNN_ESHAPE, "got f32 of shape (4, 4, 3)", draw_bad,
         fnn_zeros(3, (int64_t[]){ 4, 4, 3 }, FNN_F32, NULL));
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_every_kind),
    cmocka_unit_test(reads_texts),
    cmocka_unit_test(round_trips),
    cmocka_unit_test(converts_channels),
    cmocka_unit_test(round_trips_texts),
    cmocka_unit_test(checks_before_it_writes),
    cmocka_unit_test(survives_damage),
    cmocka_unit_test(refuses_impossible_sizes),
    cmocka_unit_test(draws_rectangles),
    cmocka_unit_test(draws_text),
    cmocka_unit_test(draws_into_images_alone),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
