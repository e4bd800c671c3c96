/* csv.c - tables of numbers in comma-separated values (RFC 4180).
**
** A field may be quoted, with "" for a quote and line breaks inside; a line
** ends in LF, CR LF or CR; blank lines are allowed at the end alone.  The
** file passes through one buffer; what it holds grows by doubling. */

#include "io.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 16, ROW_MAX = 16 << 20, COLUMNS_MAX = 1 << 20 };

/* Bytes that grow, counted in bytes. */
typedef struct Bytes {
  char *p;
  size_t n, cap;
} Bytes;

/* Strings, a zero after each, and where each begins (size_t). */
typedef struct Strings {
  Bytes text, start;
} Strings;

struct fnn_Csv {
  Object o;
  Tensor *values, *labels; /* retained; labels may be NULL */
  Strings columns;         /* the header's names */
  Strings classes;         /* sorted */
};

/* What reading takes; an object, so that a throw frees it. */
typedef struct Table {
  Object o;
  Reader *r; /* borrowed, as is csv */
  fnn_Csv *csv;
  fnn_CsvOptions options;
  int at, have;      /* in buffer */
  bool skip_newline; /* the last character was CR */
  int64_t line, rows;
  Strings row;  /* the fields of the row at hand */
  Bytes values; /* float or double */
  Bytes labels; /* the label of each row, a zero after each */
  Bytes order;  /* Label: the rows by label */
  int columns;  /* of the file */
  int label;    /* a column, or -1 */
  unsigned char buffer[BUFFER];
} Table;

static void bytes_free (Bytes *b) { mem_free(b->p, b->cap); }

static void bytes_add (Bytes *b, const void *p, size_t n) {
  if (n > b->cap - b->n) {
    size_t cap = b->cap == 0 ? 256 : 2 * b->cap;
    if (cap < b->n + n) cap = b->n + n;
    b->p = mem_grow(b->p, b->cap, cap);
    b->cap = cap;
  }
  memcpy(b->p + b->n, p, n);
  b->n += n;
}

static void strings_free (Strings *s) {
  bytes_free(&s->text);
  bytes_free(&s->start);
}

static void strings_add (Strings *s, const char *word) {
  bytes_add(&s->start, &s->text.n, sizeof s->text.n);
  bytes_add(&s->text, word, strlen(word) + 1);
}

static int strings_count (const Strings *s) {
  return (int)(s->start.n / sizeof(size_t));
}

/* The i-th, or NULL. */
static const char *strings_at (const Strings *s, int i) {
  if (i < 0 || i >= strings_count(s)) return NULL;
  return s->text.p + ((const size_t *)(const void *)s->start.p)[i];
}

static void csv_destroy (void *o) {
  fnn_Csv *c = o;
  fnn_release(c->values);
  fnn_release(c->labels);
  strings_free(&c->columns);
  strings_free(&c->classes);
}

static void table_destroy (void *o) {
  Table *t = o;
  strings_free(&t->row);
  bytes_free(&t->values);
  bytes_free(&t->labels);
  bytes_free(&t->order);
}

static const Type csv_type = { "Csv", csv_destroy };
static const Type table_type = { "Table", table_destroy };

/*
** {======================================================
** Rows of fields
** =======================================================
*/

/* The next character, -1 at the end; the end of a line is always '\n'. */
static int next (Table *t) {
  for (;;) {
    if (t->at == t->have) {
      t->have = (int)reader_some(t->r, t->buffer, BUFFER);
      t->at = 0;
      if (t->have == 0) return -1;
    }
    int c = t->buffer[t->at++];
    bool second = c == '\n' && t->skip_newline;
    t->skip_newline = c == '\r';
    if (!second) return c == '\r' ? '\n' : c;
  }
}

static void add_char (Table *t, int c) {
  char b = (char)c;
  if (c == 0)
    fnn_throw(FNN_EFORMAT, "%s:%lld: holds a zero byte (is it text?)",
              t->r->name, (long long)t->line);
  if (t->row.text.n >= ROW_MAX)
    fnn_throw(FNN_EFORMAT, "%s:%lld: a row has more than %d bytes", t->r->name,
              (long long)t->line, ROW_MAX);
  bytes_add(&t->row.text, &b, 1);
}

/* A quoted field after its quote; returns what follows it. */
static int quoted (Table *t) {
  int64_t line = t->line;
  for (;;) {
    int c = next(t);
    if (c == -1)
      fnn_throw(FNN_EFORMAT, "%s:%lld: a quote is not closed", t->r->name,
                (long long)line);
    if (c == '"') {
      c = next(t);
      if (c != '"') return c;
    }
    if (c == '\n') t->line++;
    add_char(t, c);
  }
}

/* One field into t->row; returns what follows it. */
static int read_field (Table *t, int c) {
  int separator = (unsigned char)t->options.separator;
  if (c == '"') {
    c = quoted(t);
    if (c != separator && c != '\n' && c != -1)
      fnn_throw(FNN_EFORMAT, "%s:%lld: text follows a closed quote",
                t->r->name, (long long)t->line);
    return c;
  }
  for (; c != separator && c != '\n' && c != -1; c = next(t)) add_char(t, c);
  return c;
}

/* Reads a row and returns its number of fields, 0 at the end; *line is where
** it begins.  A blank line is one empty field. */
static int read_row (Table *t, int64_t *line) {
  int n = 0, c = next(t);
  if (c == -1) return 0;
  t->row.text.n = t->row.start.n = 0;
  *line = ++t->line;
  for (;; c = next(t)) {
    bytes_add(&t->row.start, &t->row.text.n, sizeof(size_t));
    c = read_field(t, c);
    bytes_add(&t->row.text, "", 1);
    if (++n > COLUMNS_MAX)
      fnn_throw(FNN_EFORMAT, "%s:%lld: has more than %d columns", t->r->name,
                (long long)*line, COLUMNS_MAX);
    if (c != (unsigned char)t->options.separator) return n;
  }
}

static bool is_number (const char *s, double *v) {
  s += strspn(s, " \t");
  size_t n = strlen(s);
  while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
  return number_parse(s, n, v);
}

/* }====================================================== */

/*
** {======================================================
** Labels
** =======================================================
*/

/* The label of one row, and its value when it is a number. */
typedef struct Label {
  const char *name;
  int64_t row;
  double value;
  bool number;
} Label;

static int by_label (const void *a, const void *b) {
  const Label *x = a, *y = b;
  if (x->number != y->number) return x->number ? -1 : 1;
  if (x->number && x->value != y->value) return x->value < y->value ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Numbers the names in their order. */
static void set_labels (Table *t) {
  fnn_Csv *c = t->csv;
  const char *name = t->labels.p;
  for (int64_t i = 0; i < t->rows; i++, name += strlen(name) + 1) {
    Label l = { .name = name, .row = i };
    l.number = is_number(name, &l.value) && l.value == l.value;
    bytes_add(&t->order, &l, sizeof l);
  }
  Label *l = (Label *)(void *)t->order.p;
  if (t->rows > 0) qsort(l, (size_t)t->rows, sizeof *l, by_label);
  c->labels = fnn_retain(tensor_new(1, &t->rows, FNN_I64, device_cpu()));
  int64_t *id = tensor_data(c->labels);
  for (int64_t i = 0; i < t->rows; i++) {
    if (i == 0 || strcmp(l[i - 1].name, l[i].name) != 0)
      strings_add(&c->classes, l[i].name);
    id[l[i].row] = strings_count(&c->classes) - 1;
  }
}

/* }====================================================== */

/*
** {======================================================
** The table
** =======================================================
*/

/* The first row tells how many columns there are. */
static void set_columns (Table *t, int n, int64_t line) {
  int label = t->options.label;
  t->columns = n;
  t->label = -1;
  if (label != FNN_CSV_NOLABEL) {
    t->label = label < 0 ? label + n : label;
    if (t->label < 0 || t->label >= n)
      fnn_throw(FNN_EARG, "%s:%lld: has no column for the label (it has %d)",
                t->r->name, (long long)line, n);
  }
  if (n - (t->label >= 0) == 0)
    fnn_throw(FNN_EFORMAT, "%s:%lld: has no column of numbers", t->r->name,
              (long long)line);
}

static bool is_header (Table *t) {
  double v;
  if (t->options.header >= 0) return t->options.header > 0;
  for (int i = 0; i < t->columns; i++)
    if (i != t->label && is_number(strings_at(&t->row, i), &v)) return false;
  return true;
}

static void keep_header (Table *t) {
  for (int i = 0; i < t->columns; i++)
    if (i != t->label) strings_add(&t->csv->columns, strings_at(&t->row, i));
}

static void keep_row (Table *t, int64_t line) {
  double v;
  float f;
  for (int i = 0; i < t->columns; i++) {
    const char *s = strings_at(&t->row, i);
    if (i == t->label) {
      bytes_add(&t->labels, s, strlen(s) + 1);
    } else if (!is_number(s, &v)) {
      fnn_throw(FNN_EFORMAT, "%s:%lld: column %d: \"%.40s\" is not a number",
                t->r->name, (long long)line, i + 1, s);
    } else if (t->options.dtype == FNN_F64) {
      bytes_add(&t->values, &v, sizeof v);
    } else {
      f = (float)v;
      bytes_add(&t->values, &f, sizeof f);
    }
  }
  t->rows++;
}

static void skip_mark (Table *t) {
  static const unsigned char mark[] = { 0xef, 0xbb, 0xbf }; /* of UTF-8 */
  t->have = (int)reader_some(t->r, t->buffer, BUFFER);
  if (t->have >= 3 && memcmp(t->buffer, mark, 3) == 0) t->at = 3;
}

static void read_rows (Table *t) {
  int64_t line = 0, blank = 0;
  int n;
  while ((n = read_row(t, &line)) > 0) {
    bool first = t->columns == 0;
    if (n == 1 && t->row.text.n == 1) {
      if (blank == 0) blank = line;
      continue;
    }
    if (blank > 0)
      fnn_throw(FNN_EFORMAT, "%s:%lld: is blank", t->r->name,
                (long long)blank);
    if (first) set_columns(t, n, line);
    if (n != t->columns)
      fnn_throw(FNN_EFORMAT, "%s:%lld: has %d fields (expected %d)",
                t->r->name, (long long)line, n, t->columns);
    if (first && is_header(t)) keep_header(t);
    else keep_row(t, line);
  }
  if (t->columns == 0) fnn_throw(FNN_EFORMAT, "%s: is empty", t->r->name);
}

fnn_Csv *csv_read (Reader *r, const fnn_CsvOptions *o) {
  static const fnn_CsvOptions plain = FNN_CSV_INIT;
  size_t m = fnn_mark();
  Table *t = object_new(&table_type, sizeof *t);
  t->options = o != NULL ? *o : plain;
  if (t->options.dtype != FNN_F32 && t->options.dtype != FNN_F64)
    fnn_throw(FNN_EDTYPE, "csv: values are read as f32 or f64 (got %s)",
              fnn_dtype_name(t->options.dtype));
  if (strchr("\"\r\n", t->options.separator) != NULL)
    fnn_throw(FNN_EARG, "csv: the separator must not be a quote or the end "
                        "of a line");
  t->r = r;
  t->csv = object_new(&csv_type, sizeof *t->csv);
  reader_unzip(r);
  skip_mark(t);
  read_rows(t);
  int64_t shape[2] = { t->rows, t->columns - (t->label >= 0) };
  t->csv->values =
      fnn_retain(tensor_new(2, shape, t->options.dtype, device_cpu()));
  if (t->rows > 0)
    memcpy(tensor_data(t->csv->values), t->values.p, t->values.n);
  if (t->label >= 0) set_labels(t);
  return fnn_escape(m, t->csv);
}

fnn_Csv *fnn_csv_read (const char *path, const fnn_CsvOptions *o) {
  size_t m = fnn_mark();
  return fnn_escape(m, csv_read(reader_open(path), o));
}

Tensor *fnn_csv_values (const fnn_Csv *c) { return c->values; }
Tensor *fnn_csv_labels (const fnn_Csv *c) { return c->labels; }

int fnn_csv_class_count (const fnn_Csv *c) {
  return strings_count(&c->classes);
}

const char *fnn_csv_class (const fnn_Csv *c, int i) {
  return strings_at(&c->classes, i);
}

const char *fnn_csv_column (const fnn_Csv *c, int i) {
  return strings_at(&c->columns, i);
}

/* }====================================================== */
