/* canvas_cairo.c - a canvas drawn by cairo.
**
** As libcurl, cairo is opened when it is first wanted: a script that draws
** nothing does not load it, nor the libraries behind it.  Each call makes a
** surface over the canvas's own pixels, which costs little. */

#include "io.h"

#ifndef FNN_CAIRO

const Canvas *canvas_cairo (void) { return NULL; }

#else

#include <cairo.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

/* What is used of cairo. */
/* clang-format off */
#define FUNCTIONS(X) \
  X(arc) X(clip) X(close_path) X(create) X(destroy) X(fill) \
  X(font_options_create) X(font_options_destroy) \
  X(font_options_set_hint_metrics) X(font_options_set_hint_style) \
  X(image_surface_create) X(image_surface_create_for_data) X(line_to) \
  X(move_to) X(new_path) X(rectangle) X(rotate) X(select_font_face) \
  X(set_font_options) X(set_font_size) X(set_line_cap) X(set_line_join) \
  X(set_line_width) X(set_source_rgba) X(show_text) X(status) X(stroke) \
  X(surface_destroy) X(surface_flush) X(text_extents)
/* clang-format on */

static struct {
  pthread_once_t once;
  bool found;
#define FIELD(name) __typeof__(&(cairo_##name)) name;
  FUNCTIONS(FIELD)
#undef FIELD
} cairo = { .once = PTHREAD_ONCE_INIT };

static double text_width (double size, bool bold, const char *words);

static void find (void) {
  void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
#define FIND(name) \
  *(void **)&cairo.name = dlsym(library, "cairo_" #name); \
  if (cairo.name == NULL) return;
  FUNCTIONS(FIND)
#undef FIND
  cairo.found = text_width(10, false, "m") > 0; /* it can write */
}

/* Cairo over the pixels of a canvas, with the pen's color. */
typedef struct Drawing {
  cairo_surface_t *surface;
  cairo_t *cr;
} Drawing;

static Drawing begin (const Surface *s, const Pen *p) {
  Drawing d;
  d.surface = cairo.image_surface_create_for_data(
      s->data, CAIRO_FORMAT_RGB24, (int)s->w, (int)s->h, (int)(4 * s->w));
  d.cr = cairo.create(d.surface);
  cairo.rectangle(d.cr, s->clip.x0, s->clip.y0, s->clip.x1 - s->clip.x0,
                  s->clip.y1 - s->clip.y0);
  cairo.clip(d.cr);
  cairo.set_source_rgba(d.cr, (p->color >> 16 & 0xff) / 255.0,
                        (p->color >> 8 & 0xff) / 255.0,
                        (p->color & 0xff) / 255.0, p->alpha);
  return d;
}

static void end (Drawing *d) {
  cairo.surface_flush(d->surface);
  cairo.destroy(d->cr);
  cairo.surface_destroy(d->surface);
}

static void stroke (const Surface *s, const Pen *p, int64_t n,
                    const double *xy) {
  Drawing d = begin(s, p);
  cairo.set_line_width(d.cr, p->width);
  cairo.set_line_cap(d.cr, CAIRO_LINE_CAP_ROUND);
  cairo.set_line_join(d.cr, CAIRO_LINE_JOIN_ROUND);
  cairo.move_to(d.cr, xy[0], xy[1]);
  for (int64_t i = 1; i < n; i++)
    cairo.line_to(d.cr, xy[2 * i], xy[2 * i + 1]);
  cairo.stroke(d.cr);
  end(&d);
}

/* A mark as a path around its centre, in units of its radius. */
static void path (cairo_t *cr, double x, double y, double r, Mark m) {
  static const double square[] = { -.9, -.9, .9, -.9, .9, .9, -.9, .9 };
  static const double triangle[] = { 0, -1.2, 1.18, .8, -1.18, .8 };
  static const double diamond[] = { 0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0 };
  static const double plus[] = { -.36, -.36, -.36, -1.2, .36,  -1.2,
                                 .36,  -.36, 1.2,  -.36, 1.2,  .36,
                                 .36,  .36,  .36,  1.2,  -.36, 1.2,
                                 -.36, .36,  -1.2, .36,  -1.2, -.36 };
  const double *points[] = { [MARK_SQUARE] = square,
                             [MARK_TRIANGLE] = triangle,
                             [MARK_DIAMOND] = diamond,
                             [MARK_CROSS] = plus,
                             [MARK_PLUS] = plus };
  const int count[] = { [MARK_SQUARE] = 4,
                        [MARK_TRIANGLE] = 3,
                        [MARK_DIAMOND] = 4,
                        [MARK_CROSS] = 12,
                        [MARK_PLUS] = 12 };
  double turn = m == MARK_CROSS ? M_SQRT1_2 : 0;
  double c = m == MARK_CROSS ? M_SQRT1_2 : 1;
  for (int i = 0; i < count[m]; i++) {
    double u = points[m][2 * i] * r, v = points[m][2 * i + 1] * r;
    cairo.line_to(cr, x + c * u - turn * v, y + turn * u + c * v);
  }
  cairo.close_path(cr);
}

static void marks (const Surface *s, const Pen *p, Mark m, int64_t n,
                   const double *xy) {
  Drawing d = begin(s, p);
  for (int64_t i = 0; i < n; i++) {
    cairo.new_path(d.cr);
    if (m == MARK_CIRCLE)
      cairo.arc(d.cr, xy[2 * i], xy[2 * i + 1], p->width, 0, 2 * M_PI);
    else path(d.cr, xy[2 * i], xy[2 * i + 1], p->width, m);
    cairo.fill(d.cr);
  }
  end(&d);
}

static void rect (const Surface *s, const Pen *p, const Box *b) {
  Drawing d = begin(s, p);
  cairo.rectangle(d.cr, b->x0, b->y0, b->x1 - b->x0, b->y1 - b->y0);
  cairo.fill(d.cr);
  end(&d);
}

/* Widths do not depend on where letters stand, so that they can be turned.
** Where the system has no font cairo draws letters of its own. */
static void set_font (cairo_t *cr, double size, bool bold) {
  cairo_font_options_t *o = cairo.font_options_create();
  cairo.font_options_set_hint_metrics(o, CAIRO_HINT_METRICS_OFF);
  cairo.font_options_set_hint_style(o, CAIRO_HINT_STYLE_SLIGHT);
  cairo.set_font_options(cr, o);
  cairo.font_options_destroy(o);
  cairo.select_font_face(cr, "sans", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD
                              : CAIRO_FONT_WEIGHT_NORMAL);
  cairo.set_font_size(cr, size);
}

static void text (const Surface *s, const Pen *p, double x, double y,
                  bool upward, bool bold, const char *words) {
  Drawing d = begin(s, p);
  set_font(d.cr, p->width, bold);
  cairo.move_to(d.cr, x, y);
  if (upward) cairo.rotate(d.cr, -M_PI / 2);
  cairo.show_text(d.cr, words);
  end(&d);
}

static double text_width (double size, bool bold, const char *words) {
  cairo_text_extents_t e = { 0 };
  cairo_surface_t *surface =
      cairo.image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
  cairo_t *cr = cairo.create(surface);
  set_font(cr, size, bold);
  cairo.text_extents(cr, words, &e);
  bool good = cairo.status(cr) == CAIRO_STATUS_SUCCESS;
  cairo.destroy(cr);
  cairo.surface_destroy(surface);
  return good ? e.x_advance : 0;
}

static const Canvas canvas = {
  "cairo", stroke, marks, rect, text, text_width
};

const Canvas *canvas_cairo (void) {
  pthread_once(&cairo.once, find);
  return cairo.found ? &canvas : NULL;
}

#endif
