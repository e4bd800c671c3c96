/* draw.c - rectangles and text in images. */

#include "io.h"

#include <string.h>

/* A line of text is one row of dots higher than a letter. */
enum { ADVANCE = GLYPH_WIDTH + 1, LINE = GLYPH_HEIGHT + 1 };

static void check (const char *op, const Tensor *image) {
  if (image->dtype != FNN_U8 || image->ndim != 3 || image->shape[2] != 3 ||
      !image->storage->device->host)
    fnn_throw(FNN_ESHAPE,
              "%s: expected a u8 image of shape (h, w, 3) on the "
              "cpu, got %s of shape %s",
              op, fnn_dtype_name((fnn_Dtype)image->dtype), shape_text(image));
  tensor_check_write(op, image);
}

/* Fills rows y0 to y1 - 1 between columns x0 and x1 - 1, cut off. */
static void fill (Tensor *image, int64_t x0, int64_t y0, int64_t x1,
                  int64_t y1, uint32_t color) {
  const int64_t *step = image->stride;
  uint8_t *p = tensor_data(image);
  x0 = max64(x0, 0), x1 = min64(x1, image->shape[1]);
  y0 = max64(y0, 0), y1 = min64(y1, image->shape[0]);
  for (int64_t y = y0; y < y1; y++)
    for (int64_t x = x0; x < x1; x++)
      for (int k = 0; k < 3; k++)
        p[y * step[0] + x * step[1] + k * step[2]] =
            (uint8_t)(color >> (16 - 8 * k));
}

/* Sizes beyond what an image can have become that, so that sums fit. */
static int64_t bound (int64_t v) {
  enum { FAR = 1 << 30 };
  return max64(-FAR, min64(v, FAR));
}

void fnn_draw_rect (Tensor *image, int64_t x, int64_t y, int64_t w, int64_t h,
                    int64_t line, uint32_t color) {
  check("draw_rect", image);
  tensor_written(image);
  x = bound(x), y = bound(y), w = bound(w), h = bound(h);
  if (line <= 0 || 2 * bound(line) >= min64(w, h)) {
    fill(image, x, y, x + w, y + h, color);
  } else {
    fill(image, x, y, x + w, y + line, color);
    fill(image, x, y + h - line, x + w, y + h, color);
    fill(image, x, y + line, x + line, y + h - line, color);
    fill(image, x + w - line, y + line, x + w, y + h - line, color);
  }
}

static void letter (Tensor *image, int64_t x, int64_t y, int64_t scale,
                    uint32_t color, int c) {
  for (int row = 0; row < GLYPH_HEIGHT; row++)
    for (int col = 0; col < GLYPH_WIDTH; col++)
      if (glyph_dot(c, col, row))
        fill(image, x + col * scale, y + row * scale, x + (col + 1) * scale,
             y + (row + 1) * scale, color);
}

void fnn_draw_text (Tensor *image, int64_t x, int64_t y, int scale,
                    uint32_t color, const char *text) {
  check("draw_text", image);
  if (scale < 1 || scale > 1000)
    fnn_throw(FNN_EARG, "draw_text: scale must be 1 to 1000 (got %d)", scale);
  tensor_written(image);
  int64_t left = x = bound(x);
  y = bound(y);
  for (const char *s = text; *s != '\0'; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\n') {
      x = left;
      y += LINE * scale;
    } else if ((c & 0xc0) != 0x80) { /* a box for all of a UTF-8 sequence */
      letter(image, x, y, scale, color, c);
      x += ADVANCE * scale;
    }
  }
}
