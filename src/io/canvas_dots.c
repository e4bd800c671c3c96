/* canvas_dots.c - lines and points on the dots of braille letters.
**
** A letter of a terminal is 2 dots wide and 4 high.  Its byte has a bit a
** dot, as Unicode numbers them from U+2800 on: down the left column 1, 2, 4,
** then down the right one 8, 16, 32, and under these 64 and 128. */

#include "io.h"

#include <math.h>

static const uint8_t bits[4][2] = {
  { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
};

static void set (Tensor *to, double x, double y) {
  int64_t rows = to->shape[0], columns = to->shape[1];
  if (!(x >= 0 && y >= 0 && x < (double)(2 * columns) &&
        y < (double)(4 * rows)))
    return;
  int64_t u = (int64_t)x, v = (int64_t)y;
  uint8_t *cells = tensor_data(to);
  cells[v / 4 * columns + u / 2] |= bits[v % 4][u % 2];
}

static void segment (Tensor *to, double x0, double y0, double x1, double y1) {
  Box all = { 0, 0, (double)(2 * to->shape[1]), (double)(4 * to->shape[0]) };
  if (!canvas_clip(&all, &x0, &y0, &x1, &y1)) return;
  int64_t steps = (int64_t)ceil(fmax(fabs(x1 - x0), fabs(y1 - y0)));
  for (int64_t i = 0; i <= steps; i++) {
    double t = steps > 0 ? (double)i / (double)steps : 0;
    set(to, x0 + t * (x1 - x0), y0 + t * (y1 - y0));
  }
}

void canvas_dots (Tensor *to, bool lines, const Tensor *x, const Tensor *y) {
  if (to->dtype != FNN_U8 || to->ndim != 2 || !tensor_is_dense(to) ||
      x->dtype != FNN_F64 || y->dtype != FNN_F64 || x->numel != y->numel ||
      !tensor_is_dense(x) || !tensor_is_dense(y))
    fnn_throw(FNN_ESHAPE, "dots: expected u8 (h, w) and f64 (n) twice");
  tensor_check_write("dots", to);
  tensor_written(to);
  const double *px = tensor_data(x), *py = tensor_data(y);
  bool has = false;
  for (int64_t i = 0; i < x->numel; i++) {
    bool is = fabs(px[i]) < 1e300 && fabs(py[i]) < 1e300;
    if (is && lines && has) segment(to, px[i - 1], py[i - 1], px[i], py[i]);
    else if (is) set(to, px[i], py[i]);
    has = is;
  }
}
