/* image.c - images of whatever format: told by their first bytes. */

#include "io.h"

#include <string.h>

/* One pixel of from channels as to channels. */
static void convert (const uint8_t *x, int from, uint8_t *y, int to) {
  bool colour = from >= 3;
  uint8_t alpha = from % 2 == 0 ? x[from - 1] : 255;
  if (to <= 2)
    y[0] = colour
               ? (uint8_t)((299 * x[0] + 587 * x[1] + 114 * x[2] + 500) / 1000)
               : x[0];
  else
    for (int i = 0; i < 3; i++) y[i] = x[colour ? i : 0];
  if (to % 2 == 0) y[to - 1] = alpha;
}

Tensor *image_channels (Tensor *x, int channels) {
  int from = (int)x->shape[2];
  if (channels == 0 || channels == from) return x;
  Tensor *y = tensor_new(3, (int64_t[]){ x->shape[0], x->shape[1], channels },
                         FNN_U8, device_cpu());
  const uint8_t *px = tensor_data(x);
  uint8_t *py = tensor_data(y);
  for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++)
    convert(px + i * from, from, py + i * channels, channels);
  return y;
}

Tensor *image_read (Reader *r, int channels) {
  static const unsigned char png[4] = { 0x89, 'P', 'N', 'G' };
  unsigned char head[4];
  if (channels < 0 || channels > 4)
    fnn_throw(FNN_EARG, "read_image: channels must be 0 to 4 (got %d)",
              channels);
  size_t m = fnn_mark();
  Tensor *x = NULL;
  int64_t n = reader_some(r, head, sizeof head);
  reader_seek(r, 0);
  if (n == sizeof head && memcmp(head, png, sizeof png) == 0)
    x = fnn_png_image(png_open(r), 0);
  else if (n >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff)
    x = jpeg_read(r);
  else reader_wrong(r, "a PNG or JPEG image");
  return fnn_escape(m, image_channels(x, channels));
}

Tensor *fnn_image_read (const char *path, int channels) {
  size_t m = fnn_mark();
  return fnn_escape(m, image_read(reader_open(path), channels));
}
