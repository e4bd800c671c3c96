/* canvas.c - what plots are drawn on, before one of the two bodies draws.
**
** A line loses what cannot be seen before a body gets it: parts outside the
** clip, which also keeps numbers small, and points of one column of pixels
** between its first, lowest, highest and last, so that a million of them cost
** as much as the width of the picture.  Marks on one place are drawn until
** more would change nothing. */

#include "io.h"

#include <math.h>
#include <string.h>

enum {
  SIDE_MAX = 1 << 15,
  RUN_MAX = 2048,  /* points that a body gets at once ... */
  SOLID_RUN = 128, /* and of what is not transparent, where ends do not show */
  MANY_RUNS = 64
};

const Canvas *canvas_choose (bool plain) {
  const Canvas *c = plain ? NULL : canvas_cairo();
  return c != NULL ? c : canvas_plain();
}

static void check_canvas (const char *op, const Tensor *to) {
  if (to->dtype != FNN_U8 || to->ndim != 3 || to->shape[2] != 4 ||
      !tensor_is_dense(to) || !to->storage->device->host)
    fnn_throw(FNN_ESHAPE,
              "%s: expected a canvas, u8 (h, w, 4) on the cpu, got %s of "
              "shape %s",
              op, fnn_dtype_name((fnn_Dtype)to->dtype), shape_text(to));
  if (max64(to->shape[0], to->shape[1]) > SIDE_MAX)
    fnn_throw(FNN_ESHAPE, "%s: a canvas of shape %s is too large", op,
              shape_text(to));
  tensor_check_write(op, to);
}

static void check_points (const char *op, const Tensor *x, const Tensor *y) {
  const Tensor *const both[2] = { x, y };
  for (int i = 0; i < 2; i++)
    if (both[i]->dtype != FNN_F64 || both[i]->ndim != 1 ||
        !tensor_is_dense(both[i]) || !both[i]->storage->device->host)
      fnn_throw(FNN_ESHAPE, "%s: expected f64 (n) on the cpu, got %s of %s",
                op, fnn_dtype_name((fnn_Dtype)both[i]->dtype),
                shape_text(both[i]));
  if (x->numel != y->numel)
    fnn_throw(FNN_ESHAPE, "%s: x of shape %s and y of shape %s differ", op,
              shape_text(x), shape_text(y));
}

/* Not a number in place of what comparisons would let through. */
static double within (double v, double lo, double hi) {
  return v > lo ? v < hi ? v : hi : lo;
}

static Surface surface_of (const char *op, Tensor *to, const Box *clip) {
  check_canvas(op, to);
  Surface s = { .data = tensor_data(to),
                .w = to->shape[1],
                .h = to->shape[0] };
  double w = (double)s.w, h = (double)s.h;
  s.clip = (Box){ 0, 0, w, h };
  if (clip != NULL)
    s.clip = (Box){ within(clip->x0, 0, w), within(clip->y0, 0, h),
                    within(clip->x1, 0, w), within(clip->y1, 0, h) };
  tensor_written(to);
  return s;
}

/* The mask is the caller's, so that a word does not cost a whole picture. */
static void set_mask (const char *op, Surface *s, Tensor *mask) {
  if (mask->dtype != FNN_U8 || mask->numel != s->w * s->h ||
      !tensor_is_dense(mask) || !mask->storage->device->host)
    fnn_throw(FNN_ESHAPE,
              "%s: expected a mask u8 of the canvas's size, got %s", op,
              shape_text(mask));
  tensor_check_write(op, mask);
  tensor_written(mask);
  s->mask = tensor_data(mask);
}

static Pen checked_pen (const char *op, const Pen *p) {
  Pen pen = *p;
  if (!(p->width >= 0 && p->width <= 1000) || !(p->dash >= 0))
    fnn_throw(FNN_EARG, "%s: a size of %g is not 0 to 1000", op, p->width);
  pen.alpha = within(p->alpha, 0, 1);
  return pen;
}

bool canvas_clip (const Box *b, double *x0, double *y0, double *x1,
                  double *y1) {
  double dx = *x1 - *x0, dy = *y1 - *y0, from = 0, to = 1;
  const double slope[4] = { -dx, dx, -dy, dy };
  const double room[4] = { *x0 - b->x0, b->x1 - *x0, *y0 - b->y0,
                           b->y1 - *y0 };
  for (int i = 0; i < 4; i++) {
    if (slope[i] == 0) {
      if (room[i] < 0) return false;
      continue;
    }
    double t = room[i] / slope[i];
    if (slope[i] < 0) from = fmax(from, t);
    else to = fmin(to, t);
  }
  if (!(from <= to)) return false;
  double x = *x0, y = *y0;
  if (to < 1) *x1 = x + to * dx, *y1 = y + to * dy;
  if (from > 0) *x0 = x + from * dx, *y0 = y + from * dy;
  return true;
}

/*
** {======================================================
** Lines
** =======================================================
*/

/* A line on its way to a body: thin -> segment -> dashed -> append. */
typedef struct Line {
  const Canvas *canvas;
  Surface surface;
  Pen pen;
  Box near;      /* the clip and the width of the line around it */
  double walked; /* along the dash or the space after it */
  bool space;
  bool has;    /* a last point */
  double x, y; /* the last point */
  int n, most; /* points of the run */
  int runs;
  double run[2 * RUN_MAX];
} Line;

/* Cairo's time grows with how often a line crosses itself: one of very many
** points is left to the plain body. */
static void flush (Line *l) {
  if (l->n > 0) {
    fnn_poll();
    l->canvas->stroke(&l->surface, &l->pen, l->n, l->run);
    if (++l->runs == MANY_RUNS) l->canvas = canvas_plain(), l->most = RUN_MAX;
  }
  l->n = 0;
}

static bool goes_on (const Line *l, double x, double y) {
  const double *last = l->run + 2 * (l->n > 0 ? l->n - 1 : 0);
  return l->n > 0 && l->n < l->most && last[0] == x && last[1] == y;
}

static void append (Line *l, double x0, double y0, double x1, double y1) {
  if (!goes_on(l, x0, y0)) {
    flush(l);
    l->run[0] = x0, l->run[1] = y0;
    l->n = 1;
  }
  l->run[2 * l->n] = x1, l->run[2 * l->n + 1] = y1;
  l->n++;
}

static void dashed (Line *l, double x0, double y0, double x1, double y1) {
  double length = hypot(x1 - x0, y1 - y0), dash = l->pen.dash;
  if (!(dash > 0) || !(length > 0)) {
    append(l, x0, y0, x1, y1);
    return;
  }
  double ux = (x1 - x0) / length, uy = (y1 - y0) / length;
  for (double at = 0; at < length;) {
    double end = fmin(length, at + dash - l->walked);
    if (!l->space)
      append(l, x0 + at * ux, y0 + at * uy, x0 + end * ux, y0 + end * uy);
    l->walked += end - at;
    if (l->walked >= dash - 1e-9) l->space = !l->space, l->walked = 0;
    if (end <= at) break;
    at = end;
  }
}

/* On to (x, y), from the last point if there is one. */
static void segment (Line *l, double x, double y) {
  double x0 = l->x, y0 = l->y, x1 = x, y1 = y;
  if (l->has && canvas_clip(&l->near, &x0, &y0, &x1, &y1))
    dashed(l, x0, y0, x1, y1);
  l->has = true, l->x = x, l->y = y;
}

static void end_line (Line *l, int64_t points) {
  if (points == 1 && canvas_clip(&l->near, &l->x, &l->y, &l->x, &l->y)) {
    Pen p = l->pen;
    double xy[2] = { l->x, l->y };
    p.width = fmax(2, 1.6 * p.width);
    l->canvas->marks(&l->surface, &p, MARK_CIRCLE, 1, xy);
  }
  flush(l);
  l->has = l->space = false, l->walked = 0;
}

static bool is_place (double x, double y) {
  return fabs(x) < 1e300 && fabs(y) < 1e300; /* false for NaN */
}

/* The points of one column, from i on: goes to the first, the lowest and
** highest in their order, and the last.  Returns the place after them. */
static int64_t column (Line *l, int64_t i, int64_t n, const double *x,
                       const double *y) {
  int64_t low = i, high = i, k = i;
  double cell = floor(2 * x[i]);
  for (; k < n && is_place(x[k], y[k]) && floor(2 * x[k]) == cell; k++) {
    if (y[k] < y[low]) low = k;
    if (y[k] > y[high]) high = k;
  }
  int64_t order[4] = { i, min64(low, high), max64(low, high), k - 1 };
  for (int j = 0; j < 4; j++)
    if (j == 0 || order[j] > order[j - 1])
      segment(l, x[order[j]], y[order[j]]);
  return k;
}

void canvas_lines (const Canvas *c, Tensor *to, Tensor *mask, const Box *clip,
                   const Pen *p, const Tensor *x, const Tensor *y) {
  check_points("lines", x, y);
  Line l = { .canvas = c, .pen = checked_pen("lines", p) };
  l.most = l.pen.alpha < 1 ? RUN_MAX : SOLID_RUN;
  l.surface = surface_of("lines", to, clip);
  set_mask("lines", &l.surface, mask);
  double r = l.pen.width + 2;
  Box b = l.surface.clip;
  l.near = (Box){ b.x0 - r, b.y0 - r, b.x1 + r, b.y1 + r };
  const double *px = tensor_data(x), *py = tensor_data(y);
  int64_t points = 0;
  for (int64_t i = 0; i < x->numel;) {
    if (is_place(px[i], py[i])) {
      int64_t next = column(&l, i, x->numel, px, py);
      points += next - i;
      i = next;
    } else {
      end_line(&l, points);
      points = 0;
      i++;
    }
  }
  end_line(&l, points);
}

/* }====================================================== */

/* How often each pixel has been the place of a mark. */
static uint8_t *new_counts (const Surface *s) {
  Tensor *count =
      tensor_new(1, (int64_t[]){ s->w * s->h }, FNN_U8, device_cpu());
  return memset(tensor_data(count), 0, (size_t)count->numel);
}

void canvas_marks (const Canvas *c, Tensor *to, Tensor *mask, const Box *clip,
                   const Pen *p, Mark m, const Tensor *x, const Tensor *y) {
  enum { EXACT = 5000, FAST = 20000 };
  check_points("marks", x, y);
  Pen pen = checked_pen("marks", p);
  Surface s = surface_of("marks", to, clip);
  set_mask("marks", &s, mask);
  int64_t n = x->numel;
  if (n > FAST) c = canvas_plain();
  const double *px = tensor_data(x), *py = tensor_data(y);
  uint8_t *seen = n > EXACT ? new_counts(&s) : NULL;
  int most = pen.alpha >= 1 ? 1 : (int)fmin(200, 5 / (pen.alpha + 0.02));
  double xy[2 * RUN_MAX];
  int k = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(px[i] >= 0 && px[i] < (double)s.w && py[i] >= 0 &&
          py[i] < (double)s.h))
      continue;
    if (seen != NULL) {
      uint8_t *cell = seen + (int64_t)py[i] * s.w + (int64_t)px[i];
      if (*cell >= most) continue;
      ++*cell;
    }
    xy[2 * k] = px[i], xy[2 * k + 1] = py[i];
    if (++k < RUN_MAX) continue;
    fnn_poll();
    c->marks(&s, &pen, m, k, xy);
    k = 0;
  }
  c->marks(&s, &pen, m, k, xy);
}

void canvas_rect (const Canvas *c, Tensor *to, const Box *clip, const Pen *p,
                  const Box *b) {
  Pen pen = checked_pen("rect", p);
  Surface s = surface_of("rect", to, clip);
  Box cut = { within(b->x0, s.clip.x0, s.clip.x1),
              within(b->y0, s.clip.y0, s.clip.y1),
              within(b->x1, s.clip.x0, s.clip.x1),
              within(b->y1, s.clip.y0, s.clip.y1) };
  if (cut.x0 < cut.x1 && cut.y0 < cut.y1) c->rect(&s, &pen, &cut);
}

static void check_text (const char *op, const char *text) {
  if (!json_utf8(text, strlen(text)))
    fnn_throw(FNN_EARG, "%s: the text is not UTF-8", op);
}

void canvas_text (const Canvas *c, Tensor *to, Tensor *mask, const Pen *p,
                  double x, double y, bool upward, bool bold,
                  const char *text) {
  Pen pen = checked_pen("text", p);
  check_text("text", text);
  Surface s = surface_of("text", to, NULL);
  if (!(fabs(x) < SIDE_MAX && fabs(y) < SIDE_MAX)) return;
  set_mask("text", &s, mask);
  c->text(&s, &pen, x, y, upward, bold, text);
}

double canvas_text_width (const Canvas *c, double size, bool bold,
                          const char *text) {
  check_text("text_width", text);
  return c->text_width(within(size, 0, 1000), bold, text);
}

/*
** {======================================================
** Images
** =======================================================
*/

/* The pixels first to last - 1 of n that pixel i of m shows. */
static void shown (int64_t i, int64_t m, int64_t n, int64_t *first,
                   int64_t *last) {
  *first = i * n / m;
  *last = max64(*first + 1, (i + 1) * n / m);
}

void canvas_image (Tensor *to, const Box *clip, const Box *b,
                   const Tensor *image) {
  Surface s = surface_of("image", to, clip);
  if (image->dtype != FNN_U8 || image->ndim != 3 || image->shape[2] != 3 ||
      !tensor_is_dense(image) || !image->storage->device->host)
    fnn_throw(FNN_ESHAPE, "image: expected u8 (h, w, 3), got %s of shape %s",
              fnn_dtype_name((fnn_Dtype)image->dtype), shape_text(image));
  int64_t ih = image->shape[0], iw = image->shape[1];
  int64_t left = llrint(within(b->x0, -SIDE_MAX, SIDE_MAX));
  int64_t top = llrint(within(b->y0, -SIDE_MAX, SIDE_MAX));
  int64_t w = llrint(within(b->x1, -SIDE_MAX, SIDE_MAX)) - left;
  int64_t h = llrint(within(b->y1, -SIDE_MAX, SIDE_MAX)) - top;
  const uint8_t *from = tensor_data(image);
  if (ih == 0 || iw == 0) return;
  int64_t x_end = min64(w, llrint(s.clip.x1) - left);
  int64_t y_end = min64(h, llrint(s.clip.y1) - top);
  for (int64_t y = max64(0, llrint(s.clip.y0) - top); y < y_end; y++) {
    int64_t y0, y1, x0, x1;
    shown(y, h, ih, &y0, &y1);
    for (int64_t x = max64(0, llrint(s.clip.x0) - left); x < x_end; x++) {
      int64_t sum[3] = { 0, 0, 0 };
      shown(x, w, iw, &x0, &x1);
      for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++)
          for (int k = 0; k < 3; k++) sum[k] += from[3 * (i * iw + j) + k];
      int64_t n = (y1 - y0) * (x1 - x0);
      uint8_t *p = s.data + 4 * ((top + y) * s.w + left + x);
      for (int k = 0; k < 3; k++) p[2 - k] = (uint8_t)((sum[k] + n / 2) / n);
    }
  }
}

/* }====================================================== */
