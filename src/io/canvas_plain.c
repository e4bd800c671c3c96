/* canvas_plain.c - a canvas that needs no library.
**
** A pixel is covered as far as its centre lies inside a shape's edge: by half
** a pixel more is all, by half a pixel less nothing.  What one call covers is
** gathered in a mask, the most of each pixel, and laid on at once, so that a
** transparent line is no darker where it crosses itself.
**
** Letters are those of glyphs.c, drawn as strokes that join their dots: they
** can have any size, and be turned. */

#include "io.h"

#include <math.h>
#include <string.h>

/* The mask's pixels that are not zero. */
typedef struct Touched {
  int64_t x0, y0, x1, y1;
} Touched;

static const Touched nothing = { INT64_MAX, INT64_MAX, -1, -1 };

static void lay (uint8_t *p, uint32_t color, double a) {
  for (int k = 0; k < 3; k++) {
    double v = (double)((color >> 8 * k) & 0xff);
    p[k] = (uint8_t)(p[k] + a * (v - p[k]) + 0.5);
  }
}

/* Lays the mask on and clears it. */
static void lay_mask (const Surface *s, const Pen *p, Touched *t) {
  for (int64_t y = t->y0; y < t->y1; y++)
    for (int64_t x = t->x0; x < t->x1; x++) {
      uint8_t *m = s->mask + y * s->w + x;
      if (*m == 0) continue;
      lay(s->data + 4 * (y * s->w + x), p->color, p->alpha * *m / 255.0);
      *m = 0;
    }
  *t = nothing;
}

static bool covered (const Surface *s, int64_t x, int64_t y) {
  return s->mask[y * s->w + x] == 255;
}

/* Covers a pixel whose centre is as far inside a shape. */
static void cover (const Surface *s, int64_t x, int64_t y, double inside) {
  if (!(inside > -0.5)) return;
  uint8_t v = inside >= 0.5 ? 255 : (uint8_t)(255 * (inside + 0.5));
  uint8_t *m = s->mask + y * s->w + x;
  if (v > *m) *m = v;
}

/* The pixels with centres in a box, within the clip. */
static Touched pixels (const Surface *s, Touched *t, double x0, double y0,
                       double x1, double y1) {
  Touched in = { (int64_t)floor(fmax(x0, s->clip.x0)),
                 (int64_t)floor(fmax(y0, s->clip.y0)),
                 (int64_t)ceil(fmin(x1, s->clip.x1)),
                 (int64_t)ceil(fmin(y1, s->clip.y1)) };
  if (in.x0 < in.x1 && in.y0 < in.y1) {
    t->x0 = min64(t->x0, in.x0), t->y0 = min64(t->y0, in.y0);
    t->x1 = max64(t->x1, in.x1), t->y1 = max64(t->y1, in.y1);
  }
  return in;
}

/* All that is nearer than r to the segment: row by row, between the ends of
** the part of it that comes near the row. */
static void capsule (const Surface *s, Touched *t, double ax, double ay,
                     double bx, double by, double r) {
  double dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
  double inverse = length2 > 0 ? 1 / length2 : 0;
  double far = r + 1;
  Touched in = pixels(s, t, fmin(ax, bx) - far, fmin(ay, by) - far,
                      fmax(ax, bx) + far, fmax(ay, by) + far);
  for (int64_t y = in.y0; y < in.y1; y++) {
    double cy = (double)y + 0.5, from = 0, to = 1;
    if (fabs(dy) > 1e-9) {
      double u = (cy - far - ay) / dy, v = (cy + far - ay) / dy;
      from = fmin(1, fmax(0, fmin(u, v)));
      to = fmax(0, fmin(1, fmax(u, v)));
    }
    double left = fmin(ax + from * dx, ax + to * dx) - far;
    double right = fmax(ax + from * dx, ax + to * dx) + far;
    int64_t x1 = min64(in.x1, (int64_t)ceil(right));
    for (int64_t x = max64(in.x0, (int64_t)floor(left)); x < x1; x++) {
      if (covered(s, x, y)) continue;
      double px = (double)x + 0.5 - ax, py = cy - ay;
      double u = (px * dx + py * dy) * inverse;
      u = fmin(1, fmax(0, u));
      double ex = px - u * dx, ey = py - u * dy, e2 = ex * ex + ey * ey;
      if (e2 < (r + 0.5) * (r + 0.5)) cover(s, x, y, r - sqrt(e2));
    }
  }
}

static void stroke (const Surface *s, const Pen *p, int64_t n,
                    const double *xy) {
  Touched t = nothing;
  for (int64_t i = 0; i + 1 < n; i++)
    capsule(s, &t, xy[2 * i], xy[2 * i + 1], xy[2 * i + 2], xy[2 * i + 3],
            p->width / 2);
  lay_mask(s, p, &t);
}

/* How far (x, y), seen from a mark's centre, is inside it. */
static double inside_mark (Mark m, double r, double x, double y) {
  double ax = fabs(x), ay = fabs(y), bar = 0.36 * r;
  switch (m) {
    case MARK_SQUARE: return 0.9 * r - fmax(ax, ay);
    case MARK_DIAMOND: return (1.3 * r - ax - ay) * M_SQRT1_2;
    case MARK_TRIANGLE: /* its top at -1.2 r, its foot at 0.8 r */
      return fmin(0.8 * r - y, (1.2 * r + y - 1.7 * ax) / 1.97);
    case MARK_CROSS: {
      double u = fabs(x + y) * M_SQRT1_2, v = fabs(x - y) * M_SQRT1_2;
      return fmin(bar - fmin(u, v), 1.2 * r - fmax(u, v));
    }
    case MARK_PLUS: return fmin(bar - fmin(ax, ay), 1.2 * r - fmax(ax, ay));
    default: return r - sqrt(x * x + y * y);
  }
}

static void marks (const Surface *s, const Pen *p, Mark m, int64_t n,
                   const double *xy) {
  double far = 1.3 * p->width + 1;
  for (int64_t i = 0; i < n; i++) {
    double x = xy[2 * i], y = xy[2 * i + 1];
    Touched t = nothing;
    Touched in = pixels(s, &t, x - far, y - far, x + far, y + far);
    for (int64_t v = in.y0; v < in.y1; v++)
      for (int64_t u = in.x0; u < in.x1; u++)
        cover(s, u, v,
              inside_mark(m, p->width, (double)u + 0.5 - x,
                          (double)v + 0.5 - y));
    lay_mask(s, p, &t);
  }
}

/* How much of the pixel from v on lies between lo and hi. */
static double share (int64_t v, double lo, double hi) {
  return fmax(0, fmin((double)v + 1, hi) - fmax((double)v, lo));
}

static void rect (const Surface *s, const Pen *p, const Box *b) {
  Touched t = nothing;
  Touched in = pixels(s, &t, b->x0, b->y0, b->x1, b->y1);
  for (int64_t y = in.y0; y < in.y1; y++)
    for (int64_t x = in.x0; x < in.x1; x++)
      lay(s->data + 4 * (y * s->w + x), p->color,
          p->alpha * share(x, b->x0, b->x1) * share(y, b->y0, b->y1));
}

/*
** {======================================================
** Text
** =======================================================
*/

/* Dots of a letter's cell, its advance among them, that a size of 1 has. */
enum { ADVANCE = GLYPH_WIDTH + 1, BASE = 7, DOTS = 10 };

/* Where letters go: the place of dots, and what a dot measures. */
typedef struct Writing {
  const Surface *surface;
  Touched touched;
  double x, y, dot, r;
  bool upward;
} Writing;

/* A stroke between two dots, from the letter's left end and base line. */
static void join (Writing *w, int ax, int ay, int bx, int by) {
  double d = w->dot, c = 0.5;
  double u0 = (ax + c) * d, v0 = (ay + c - BASE) * d;
  double u1 = (bx + c) * d, v1 = (by + c - BASE) * d;
  if (w->upward)
    capsule(w->surface, &w->touched, w->x + v0, w->y - u0, w->x + v1,
            w->y - u1, w->r);
  else
    capsule(w->surface, &w->touched, w->x + u0, w->y + v0, w->x + u1,
            w->y + v1, w->r);
}

static bool dot (int c, int x, int y) {
  return x >= 0 && x < GLYPH_WIDTH && y >= 0 && y < GLYPH_HEIGHT &&
         glyph_dot(c, x, y);
}

/* Joins neighbours; across a corner only where no third dot does. */
static void letter (Writing *w, int c) {
  for (int y = 0; y < GLYPH_HEIGHT; y++)
    for (int x = 0; x < GLYPH_WIDTH; x++) {
      if (!dot(c, x, y)) continue;
      join(w, x, y, x, y);
      if (dot(c, x + 1, y)) join(w, x, y, x + 1, y);
      if (dot(c, x, y + 1)) join(w, x, y, x, y + 1);
      for (int side = -1; side <= 1; side += 2)
        if (dot(c, x + side, y + 1) && !dot(c, x + side, y) &&
            !dot(c, x, y + 1))
          join(w, x, y, x + side, y + 1);
    }
}

static bool begins (char c) { return ((unsigned char)c & 0xc0) != 0x80; }

static void text (const Surface *s, const Pen *p, double x, double y,
                  bool upward, bool bold, const char *words) {
  Writing w = { .surface = s, .touched = nothing, .upward = upward };
  w.dot = p->width / DOTS;
  w.r = w.dot * (bold ? 0.72 : 0.48);
  w.x = x, w.y = y;
  for (const char *c = words; *c != '\0'; c++) {
    if (!begins(*c)) continue;
    letter(&w, (unsigned char)*c);
    if (upward) w.y -= ADVANCE * w.dot;
    else w.x += ADVANCE * w.dot;
  }
  lay_mask(s, p, &w.touched);
}

static double text_width (double size, bool bold, const char *words) {
  (void)bold;
  int n = 0;
  for (const char *c = words; *c != '\0'; c++) n += begins(*c);
  return n == 0 ? 0 : (n * ADVANCE - 1) * size / DOTS;
}

/* }====================================================== */

static const Canvas plain = { "plain", stroke, marks, rect, text, text_width };

const Canvas *canvas_plain (void) { return &plain; }
