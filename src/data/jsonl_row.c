/* jsonl_row.c - the numbers of one line of JSON.
**
** Most lines are plain: names and strings in ASCII, and numbers.  These are
** read without a tree, several times as fast.  What is not so, or does not
** fit, is read again by jansson, whose word on what is right is the last: the
** short way takes nothing that jansson does not, and gives the same numbers
** (fuzz/jsonl_fuzz.c). */

#include "data.h"

#include <stdio.h>
#include <string.h>

#include "../io/io.h"

enum { NAMES_SHOWN = 8 };

/* Whether t holds d.  From 2^53 on whole numbers are not told apart here. */
static bool fits (fnn_Dtype t, double d) {
  if (t == FNN_F32) return (float)d - (float)d == 0;
  if (dtype_is_float(t)) return true;
  double most = t == FNN_U8    ? 255
                : t == FNN_I32 ? INT32_MAX
                               : (double)((1LL << 53) - 1);
  return d <= most && d >= (t == FNN_U8 ? 0 : -most) &&
         d == (double)(int64_t)d;
}

/*
** {======================================================
** Plain lines, without a tree
** =======================================================
*/

enum { KEYS = 16, DEPTH = 8, LONG = 18 };

/* What is left of a line. */
typedef struct Scan {
  const char *p, *end;
} Scan;

static char peek (Scan *s) {
  while (s->p < s->end &&
         (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n'))
    s->p++;
  return s->p < s->end ? *s->p : '\0';
}

static bool take (Scan *s, char c) {
  if (peek(s) != c || s->p == s->end) return false;
  s->p++;
  return true;
}

static int64_t take_digits (Scan *s) {
  const char *from = s->p;
  while (s->p < s->end && *s->p >= '0' && *s->p <= '9') s->p++;
  return s->p - from;
}

/* A number as JSON spells it.  Long whole ones are left to jansson, which has
** its own bounds for them. */
static bool scan_number (Scan *s, double *v) {
  peek(s);
  const char *from = s->p;
  if (s->p < s->end && *s->p == '-') s->p++;
  bool zero = s->p < s->end && *s->p == '0', real = false;
  int64_t n = take_digits(s);
  if (n == 0 || (zero && n > 1)) return false;
  if (s->p < s->end && *s->p == '.') {
    s->p++;
    real = true;
    if (take_digits(s) == 0) return false;
  }
  if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
    s->p++;
    real = true;
    if (s->p < s->end && (*s->p == '+' || *s->p == '-')) s->p++;
    if (take_digits(s) == 0) return false;
  }
  if (!real && n > LONG) return false;
  if (!number_parse(from, (size_t)(s->p - from), v)) return false;
  if (!real) *v += 0; /* -0 is the integer 0 */
  return *v - *v == 0;
}

/* A string of ASCII without escapes. */
static bool scan_string (Scan *s, const char **text, size_t *n) {
  if (!take(s, '"')) return false;
  for (*text = s->p; s->p < s->end; s->p++) {
    unsigned char c = (unsigned char)*s->p;
    if (c == '"') {
      *n = (size_t)(s->p++ - *text);
      return true;
    }
    if (c < 32 || c >= 127 || c == '\\') return false;
  }
  return false;
}

/* A value that is not wanted: a number, a string, or arrays of them. */
static bool scan_over (Scan *s, int depth) {
  const char *text;
  size_t n;
  double v;
  char c = peek(s);
  if (c == '"') return scan_string(s, &text, &n);
  if (c != '[') return scan_number(s, &v);
  s->p++;
  if (depth == DEPTH) return false;
  if (take(s, ']')) return true;
  do {
    if (!scan_over(s, depth + 1)) return false;
  } while (take(s, ','));
  return take(s, ']');
}

static bool scan_array (Scan *s, fnn_Dtype t, int ndim, const int64_t *shape,
                        double **to) {
  if (ndim == 0) {
    double *v = (*to)++;
    return scan_number(s, v) && fits(t, *v);
  }
  if (!take(s, '[')) return false;
  for (int64_t i = 0; i < shape[0]; i++)
    if ((i > 0 && !take(s, ',')) || !scan_array(s, t, ndim - 1, shape + 1, to))
      return false;
  return take(s, ']');
}

static bool scan_field (Scan *s, const Field *f, double *to) {
  Scan ahead = *s;
  if (f->ndim < 2 || (take(&ahead, '[') && peek(&ahead) == '['))
    return scan_array(s, f->dtype, f->ndim, f->shape, &to);
  int64_t n = shape_numel(f->ndim, f->shape);
  return scan_array(s, f->dtype, 1, &n, &to);
}

/* The value of the fields of this name. */
static bool scan_value (Scan *s, const JsonlRow *r, const char *key, size_t n,
                        double *const *v, unsigned *found) {
  Scan from = *s;
  bool wanted = false;
  for (int k = 0; k < r->nfields; k++) {
    if (strlen(r->name[k]) != n || memcmp(r->name[k], key, n) != 0) continue;
    *s = from;
    if (!scan_field(s, &r->field[k], v[k])) return false;
    *found |= 1u << k;
    wanted = true;
  }
  return wanted || scan_over(s, 0);
}

bool jsonl_read_plain (const JsonlRow *r, double *const *v) {
  Scan s = { r->text, r->text + r->n };
  const char *key[KEYS];
  size_t length[KEYS];
  unsigned found = 0;
  int n = 0;
  if (!take(&s, '{')) return false;
  do {
    if (n == KEYS || !scan_string(&s, &key[n], &length[n])) return false;
    for (int i = 0; i < n; i++)
      if (length[i] == length[n] && memcmp(key[i], key[n], length[n]) == 0)
        return false;
    if (!take(&s, ':') || !scan_value(&s, r, key[n], length[n], v, &found))
      return false;
    n++;
  } while (take(&s, ','));
  if (!take(&s, '}')) return false;
  peek(&s);
  return s.p == s.end && found == (1u << r->nfields) - 1;
}

/* }====================================================== */

/*
** {======================================================
** Any line
** =======================================================
*/

/* A field that is being read, for messages and for its numbers. */
typedef struct Place {
  const JsonlRow *r;
  int k;        /* the field */
  int64_t done; /* numbers so far */
  double *to;
} Place;

static const char *kind_of (const json_t *v) {
  switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    default: return "a number";
  }
}

static FNN_NORETURN void wrong (const Place *p, const char *text) {
  fnn_throw(FNN_EFORMAT, "%s:%lld: field '%s': %s", p->r->path,
            (long long)p->r->line, p->r->name[p->k], text);
}

static FNN_NORETURN void wrong_shape (const Place *p, int ndim,
                                      const int64_t *shape) {
  const Field *f = &p->r->field[p->k];
  ShapeText a, b;
  char text[2 * SHAPE_TEXT + 64];
  shape_print(&a, f->ndim, f->shape);
  shape_print(&b, ndim, shape);
  snprintf(text, sizeof text, "expected %s%s, got %s%s",
           f->ndim == 0 ? "one number" : "numbers of shape ",
           f->ndim == 0 ? "" : a.s,
           ndim == 0 ? "one number" : "numbers of shape ",
           ndim == 0 ? "" : b.s);
  wrong(p, text);
}

/* The shape of a value by its first elements; throws on what is no number. */
static int shape_of (const Place *p, const json_t *v, int64_t *shape) {
  int ndim = 0;
  for (; json_is_array(v); v = json_array_get(v, 0)) {
    if (ndim == FNN_MAXDIM - 1) wrong(p, "arrays in too many arrays");
    shape[ndim++] = (int64_t)json_array_size(v);
    if (json_array_size(v) == 0) wrong(p, "an empty array");
  }
  return ndim;
}

static void put_number (Place *p, const json_t *v) {
  char text[128];
  double d = 0;
  if (json_is_number(v)) d = json_number_value(v);
  else {
    snprintf(text, sizeof text, "element %lld: expected a number, got %s",
             (long long)p->done + 1, kind_of(v));
    wrong(p, text);
  }
  fnn_Dtype t = p->r->field[p->k].dtype;
  if (!fits(t, d)) {
    snprintf(text, sizeof text, "element %lld: expected %s, got %.17g",
             (long long)p->done + 1,
             t == FNN_F32  ? "a number that f32 holds"
             : t == FNN_U8 ? "a whole number from 0 to 255 (u8)"
             : t == FNN_I32
                 ? "a whole number that an i32 holds"
                 : "a whole number below 2^53 (larger ones are rounded)",
             d);
    wrong(p, text);
  }
  p->to[p->done++] = d;
}

/* The numbers of v, whose shape from dim on is as given. */
static void put (Place *p, const json_t *v, int ndim, const int64_t *shape,
                 int dim) {
  if (dim == ndim) {
    put_number(p, v);
    return;
  }
  if (!json_is_array(v)) put_number(p, v); /* throws, or: ragged */
  if (!json_is_array(v) || (int64_t)json_array_size(v) != shape[dim])
    wrong(p, "its arrays are of different lengths");
  for (size_t i = 0; i < json_array_size(v); i++)
    put(p, json_array_get(v, i), ndim, shape, dim + 1);
}

/* A field's numbers; of a shape that is given they may also be a flat list. */
static void read_field (const JsonlRow *r, int k, const json_t *v,
                        double *to) {
  Place p = { r, k, 0, to };
  int64_t shape[FNN_MAXDIM];
  int ndim = shape_of(&p, v, shape);
  const Field *f = &r->field[k];
  bool same = ndim == f->ndim &&
              memcmp(shape, f->shape, (size_t)ndim * sizeof *shape) == 0;
  bool flat =
      f->ndim > 1 && ndim == 1 && shape[0] == shape_numel(f->ndim, f->shape);
  if (!same && !flat) wrong_shape(&p, ndim, shape);
  put(&p, v, ndim, shape, 0);
}

/* What a line has instead of the field. */
static FNN_NORETURN void no_field (const JsonlRow *r, const char *name,
                                   json_t *root) {
  char text[256];
  size_t n = 0;
  int shown = 0;
  const char *key;
  json_t *v;
  json_object_foreach(root, key, v) {
    if (shown++ == NAMES_SHOWN || n + 48 > sizeof text) break;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%.40s",
                          shown > 1 ? ", " : "", key);
  }
  text[n] = '\0';
  fnn_throw(FNN_EFORMAT, "%s:%lld: no field '%s' (it has %s)", r->path,
            (long long)r->line, name, n > 0 ? text : "none");
}

static Json *parse (const JsonlRow *r) {
  static const char bom[3] = "\xef\xbb\xbf";
  const char *s = r->text;
  size_t n = r->n;
  if (r->line == 1 && n >= sizeof bom && memcmp(s, bom, sizeof bom) == 0) {
    s += sizeof bom;
    n -= sizeof bom;
  }
  Json *t = json_parse_line(r->path, r->line, s, n);
  if (!json_is_object(t->root))
    fnn_throw(FNN_EFORMAT, "%s:%lld: expected an object, got %s", r->path,
              (long long)r->line, kind_of(t->root));
  for (int k = 0; k < r->nfields; k++)
    if (json_object_get(t->root, r->name[k]) == NULL)
      no_field(r, r->name[k], t->root);
  return t;
}

void jsonl_learn (const JsonlRow *r, const fnn_JsonlOptions *o) {
  size_t m = fnn_mark();
  const Json *t = parse(r);
  for (int k = 0; k < r->nfields; k++) {
    if (o->field[k].ndim >= 0) continue;
    Place p = { r, k, 0, NULL };
    Field *f = &r->field[k];
    f->ndim = shape_of(&p, json_object_get(t->root, r->name[k]), f->shape);
  }
  fnn_escape(m, NULL);
}

void jsonl_read_any (const JsonlRow *r, double *const *v) {
  size_t m = fnn_mark();
  const Json *t = parse(r);
  for (int k = 0; k < r->nfields; k++)
    read_field(r, k, json_object_get(t->root, r->name[k]), v[k]);
  fnn_escape(m, NULL);
}

void jsonl_read (const JsonlRow *r, double *const *v) {
  if (!jsonl_read_plain(r, v)) jsonl_read_any(r, v);
}

/* }====================================================== */
