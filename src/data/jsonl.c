/* jsonl.c - batches of a file of JSON objects, one a line.
**
** The file is read in pieces and a batch at a time, so that memory does not
** grow with it.  To shuffle, lines wait in a pool: each draw takes one of it
** and puts the file's next line in its place.  They wait as text, so that
** leaving items out parses nothing.  The draws are keyed by (seed, epoch), and
** the order is a function of these alone. */

#include "data.h"

#include <string.h>

#include "../io/io.h"

enum { PIECE = 1 << 16, LINE_MAX_BYTES = 16 << 20, POOL_MAX = 1 << 24 };

typedef struct Line {
  char *text;
  size_t n, room;
  int64_t number; /* in the file, from 1 */
} Line;

struct fnn_Jsonl {
  Object o;
  Reader *reader; /* of an epoch, once something was read of it */
  fnn_JsonlOptions options;
  char *path;
  char *name[FIELDS]; /* of the fields */
  Field field[FIELDS];
  Tensor *x[FIELDS]; /* with reuse: those of the call before */
  Line *pool;
  int64_t size, used; /* of the pool; 1 without shuffling */
  int64_t epoch, line, draws;
  uint64_t key;
  bool ended;      /* the file; the pool may hold lines yet */
  int64_t at, got; /* in piece */
  unsigned char piece[PIECE];
};

static char *copy_text (const char *s) {
  size_t n = strlen(s) + 1;
  return memcpy(mem_new(n), s, n);
}

static void free_text (char *s) {
  if (s != NULL) mem_free(s, strlen(s) + 1);
}

static void jsonl_destroy (void *o) {
  fnn_Jsonl *j = o;
  for (int64_t i = 0; i < j->size && j->pool != NULL; i++)
    mem_free(j->pool[i].text, j->pool[i].room);
  mem_free(j->pool, (size_t)j->size * sizeof *j->pool);
  for (int k = 0; k < FIELDS; k++) {
    free_text(j->name[k]);
    fnn_release(j->x[k]);
  }
  free_text(j->path);
  fnn_release(j->reader);
}

static const Type jsonl_type = { "Jsonl", jsonl_destroy };

/*
** {======================================================
** Lines
** =======================================================
*/

static void append (fnn_Jsonl *j, Line *l, const unsigned char *p, size_t n) {
  if (n == 0) return; /* there may be no text yet */
  if (l->n + n > LINE_MAX_BYTES)
    fnn_throw(FNN_EFORMAT, "%s:%lld: a line of more than %d bytes", j->path,
              (long long)j->line + 1, LINE_MAX_BYTES);
  if (l->n + n > l->room) {
    size_t room = 2 * (l->n + n);
    l->text = mem_grow(l->text, l->room, room);
    l->room = room;
  }
  memcpy(l->text + l->n, p, n);
  l->n += n;
}

/* Bytes up to the end of the line, or of the file: false when the file is at
** its end. */
static bool read_line (fnn_Jsonl *j, Line *l) {
  bool some = false;
  l->n = 0;
  for (;;) {
    if (j->at == j->got) {
      j->got = reader_some(j->reader, j->piece, PIECE);
      j->at = 0;
      if (j->got == 0) break;
    }
    some = true;
    const unsigned char *p = j->piece + j->at;
    const unsigned char *end = memchr(p, '\n', (size_t)(j->got - j->at));
    int64_t n = end != NULL ? end - p : j->got - j->at;
    append(j, l, p, (size_t)n);
    j->at += n;
    if (end == NULL) continue;
    j->at++;
    break;
  }
  if (some) l->number = ++j->line;
  return some;
}

static bool is_blank (const Line *l) {
  for (size_t i = 0; i < l->n; i++)
    if (strchr(" \t\r", l->text[i]) == NULL || l->text[i] == '\0')
      return false;
  return true;
}

/* The next line that is not blank. */
static bool next_line (fnn_Jsonl *j, Line *l) {
  while (!j->ended) {
    if (!read_line(j, l)) j->ended = true;
    else if (!is_blank(l)) return true;
  }
  return false;
}

static void open_file (fnn_Jsonl *j) {
  size_t m = fnn_mark();
  j->reader = fnn_retain(reader_open(j->path));
  reader_unzip(j->reader);
  fnn_escape(m, NULL);
}

/* Fills the pool's empty places. */
static void fill_pool (fnn_Jsonl *j) {
  if (j->reader == NULL) open_file(j);
  while (j->used < j->size && next_line(j, &j->pool[j->used])) j->used++;
}

/* A place in the pool, drawn; or -1 when nothing is left. */
static int64_t draw (fnn_Jsonl *j) {
  uint32_t w[4];
  fill_pool(j);
  if (j->used == 0) return -1;
  if (j->options.shuffle == 0) return 0;
  philox(j->key, (uint64_t)j->draws++, w);
  uint64_t r = (uint64_t)w[1] << 32 | w[0];
  /* r scaled to 0 .. used - 1: the bias is below used / 2^64. */
  return (int64_t)((unsigned __int128)r * (uint64_t)j->used >> 64);
}

/* Takes the line at this place out: the last fills its place, which it then
** has room for another in. */
static void drop (fnn_Jsonl *j, int64_t i) {
  Line *last = &j->pool[--j->used], t = j->pool[i];
  j->pool[i] = *last;
  *last = t;
}

/* }====================================================== */

/*
** {======================================================
** Batches
** =======================================================
*/

/* Where the numbers of n items go. */
static void make_rows (fnn_Jsonl *j, int64_t n, Tensor **x) {
  for (int k = 0; k < j->options.nfields; k++) {
    int64_t shape[FNN_MAXDIM];
    const Field *f = &j->field[k];
    shape[0] = n;
    for (int i = 0; i < f->ndim; i++) shape[i + 1] = f->shape[i];
    if (j->x[k] != NULL && j->x[k]->shape[0] == n) {
      x[k] = j->x[k];
      tensor_written(x[k]);
      continue;
    }
    x[k] = tensor_new(f->ndim + 1, shape, f->dtype, device_cpu());
    if (!j->options.reuse) continue;
    fnn_release(j->x[k]);
    j->x[k] = fnn_retain(x[k]);
  }
}

static void store (Tensor *x, int64_t row, int64_t numel, const double *v) {
  if (x->dtype == FNN_F32) {
    float *to = (float *)tensor_data(x) + row * numel;
    for (int64_t i = 0; i < numel; i++) to[i] = (float)v[i];
    return;
  }
  for (int64_t i = 0; i < numel; i++)
    dtype_set((fnn_Dtype)x->dtype, tensor_data(x), row * numel + i, v[i]);
}

/* A line as jsonl_row.c reads it. */
static JsonlRow row_of (fnn_Jsonl *j, const Line *l) {
  return (JsonlRow){ .path = j->path,
                     .line = l->number,
                     .text = l->text,
                     .n = l->n,
                     .nfields = j->options.nfields,
                     .name = j->name,
                     .field = j->field };
}

/* A line into row i of x; x NULL: only to see whether it fits. */
static void read_row (fnn_Jsonl *j, const Line *l, int64_t i,
                      Tensor *const *x) {
  size_t m = fnn_mark();
  int64_t numel[FIELDS];
  double *v[FIELDS];
  JsonlRow r = row_of(j, l);
  if (x == NULL) jsonl_learn(&r, &j->options);
  for (int k = 0; k < j->options.nfields; k++) {
    numel[k] = shape_numel(j->field[k].ndim, j->field[k].shape);
    v[k] = mem_scratch((size_t)numel[k] * sizeof *v[k]);
  }
  jsonl_read(&r, v);
  for (int k = 0; k < j->options.nfields && x != NULL; k++)
    store(x[k], i, numel[k], v[k]);
  fnn_escape(m, NULL);
}

/* The first n rows. */
static Tensor *rows_of (const Tensor *x, int64_t n) {
  int64_t shape[FNN_MAXDIM];
  memcpy(shape, x->shape, sizeof shape);
  shape[0] = n;
  return tensor_view(x, x->ndim, shape, x->stride, x->offset);
}

int64_t fnn_jsonl_next (fnn_Jsonl *j, int64_t n, fnn_Tensor **x) {
  int64_t done = 0;
  for (int64_t i; done < n && (i = draw(j)) >= 0; done++) {
    if (done == 0) make_rows(j, n, x);
    read_row(j, &j->pool[i], done, x);
    drop(j, i);
    fnn_poll();
  }
  if (done > 0 && done < n)
    for (int k = 0; k < j->options.nfields; k++) x[k] = rows_of(x[k], done);
  return done;
}

int64_t fnn_jsonl_skip (fnn_Jsonl *j, int64_t n) {
  int64_t done = 0;
  for (int64_t i; done < n && (i = draw(j)) >= 0; done++) {
    drop(j, i);
    fnn_poll();
  }
  return done;
}

void fnn_jsonl_start (fnn_Jsonl *j, int64_t epoch) {
  uint32_t w[4];
  philox(j->options.seed, (uint64_t)epoch, w);
  j->key = (uint64_t)w[1] << 32 | w[0];
  fnn_release(j->reader);
  j->reader = NULL;
  j->ended = false;
  j->used = j->line = j->draws = j->at = j->got = 0;
}

int fnn_jsonl_fields (const fnn_Jsonl *j) { return j->options.nfields; }

/* }====================================================== */

static void check_field (const fnn_JsonlField *f) {
  switch (f->dtype) {
    case FNN_F32:
    case FNN_F64:
    case FNN_I64:
    case FNN_I32:
    case FNN_U8: break;
    default:
      fnn_throw(FNN_EDTYPE,
                "JsonlStream: field '%s': expected f32, f64, i64, i32 or u8, "
                "got %s",
                f->name, fnn_dtype_name(f->dtype));
  }
  if (f->ndim > FNN_MAXDIM - 1 ||
      (f->ndim > 0 && shape_numel(f->ndim, f->shape) < 1))
    fnn_throw(FNN_ESHAPE, "JsonlStream: field '%s': no shape of an item",
              f->name);
}

/* Learns from the first line what was not said, and whether it fits. */
static void look (fnn_Jsonl *j) {
  size_t m = fnn_mark();
  open_file(j);
  Line *l = &j->pool[0];
  if (next_line(j, l)) read_row(j, l, 0, NULL);
  fnn_jsonl_start(j, 0);
  fnn_escape(m, NULL);
}

fnn_Jsonl *fnn_jsonl_open (const char *path, const fnn_JsonlOptions *o) {
  if (o->nfields < 1 || o->nfields > FIELDS)
    fnn_throw(FNN_EARG, "JsonlStream: expected 1 to %d fields (got %d)",
              FIELDS, o->nfields);
  if (o->shuffle < 0 || o->shuffle > POOL_MAX)
    fnn_throw(FNN_EARG,
              "JsonlStream: shuffle: expected a number of lines from 0 to %d, "
              "got %lld",
              POOL_MAX, (long long)o->shuffle);
  fnn_Jsonl *j = object_new(&jsonl_type, sizeof *j);
  j->options = *o;
  j->path = copy_text(path);
  for (int k = 0; k < o->nfields; k++) {
    const fnn_JsonlField *f = &o->field[k];
    check_field(f);
    j->name[k] = copy_text(f->name);
    j->options.field[k].name = j->name[k];
    j->field[k] = (Field){ .dtype = f->dtype, .ndim = f->ndim };
    memcpy(j->field[k].shape, f->shape, sizeof f->shape);
  }
  int64_t size = o->shuffle > 0 ? o->shuffle : 1;
  j->pool = mem_new((size_t)size * sizeof *j->pool);
  memset(j->pool, 0, (size_t)size * sizeof *j->pool);
  j->size = size;
  look(j);
  return j;
}
