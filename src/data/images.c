/* images.c - a dataset of the images in a folder of class folders.
**
** The folders are walked once; what is kept is paths.  A file is read,
** decoded and resized when its item is asked for, so that memory holds one
** image at a time, however many there are. */

#include "data.h"

#include <string.h>
#include <strings.h>

#include "../io/io.h"

enum { DEPTH = 32 }; /* folders in a class folder's folders */

typedef struct Images {
  fnn_Dataset d;
  char *text; /* paths, each ended by a zero */
  size_t size, room;
  int64_t *at; /* where an item's path is */
  int32_t *label;
  int64_t rooms; /* items that at and label have room for */
  bool resized;
} Images;

static void images_destroy (fnn_Dataset *d) {
  Images *m = (Images *)d;
  mem_free(m->text, m->room);
  mem_free(m->at, (size_t)m->rooms * sizeof *m->at);
  mem_free(m->label, (size_t)m->rooms * sizeof *m->label);
}

/*
** {======================================================
** Reading
** =======================================================
*/

/* (h, w, c) of bytes as (c, h, w) from 0 to 1. */
static void to_planes (float *y, const Tensor *x) {
  const uint8_t *p = tensor_data(x);
  int64_t area = x->shape[0] * x->shape[1], n = x->shape[2];
  for (int64_t c = 0; c < n; c++)
    for (int64_t i = 0; i < area; i++)
      y[c * area + i] = (float)p[i * n + c] / 255.0f;
}

static void read_image (const Images *m, int64_t id, float *to) {
  size_t mark = fnn_mark();
  const int64_t *shape = m->d.fields[0].shape;
  const char *path = m->text + m->at[id];
  Tensor *x = fnn_image_read(path, (int)shape[0]);
  int64_t h = x->shape[0], w = x->shape[1];
  if (h == shape[1] && w == shape[2]) to_planes(to, x);
  else if (!m->resized)
    fnn_throw(FNN_ESHAPE,
              "%s: has %lld by %lld pixels, the first image has %lld by %lld "
              "(option size makes them alike)",
              path, (long long)h, (long long)w, (long long)shape[1],
              (long long)shape[2]);
  else {
    Tensor *y =
        tensor_new(4, (int64_t[]){ 1, shape[0], h, w }, FNN_F32, device_cpu());
    to_planes(tensor_data(y), x);
    y = tensor_dense(
        fnn_interpolate(y, shape + 1, NULL, FNN_LINEAR, false, true));
    memcpy(to, tensor_data(y), (size_t)y->numel * sizeof *to);
  }
  fnn_escape(mark, NULL);
}

static void read_label (const Images *m, int64_t label, int64_t i,
                        Tensor *to) {
  if (m->d.fields[1].ndim == 0) {
    ((int64_t *)tensor_data(to))[i] = label;
    return;
  }
  int64_t n = m->d.fields[1].shape[0];
  float *row = (float *)tensor_data(to) + i * n;
  memset(row, 0, (size_t)n * sizeof *row);
  row[label] = 1;
}

static void images_read (fnn_Dataset *d, int64_t n, const int64_t *ids,
                         Tensor *const *to) {
  const Images *m = (const Images *)d;
  const int64_t *s = d->fields[0].shape;
  for (int64_t i = 0; i < n; i++) {
    if (to[0] != NULL)
      read_image(m, ids[i],
                 (float *)tensor_data(to[0]) + i * s[0] * s[1] * s[2]);
    if (to[1] != NULL) read_label(m, m->label[ids[i]], i, to[1]);
    fnn_poll();
  }
}

static const DatasetClass images_class = { "ImageFolder", images_read,
                                           images_destroy };

/* }====================================================== */

/*
** {======================================================
** Finding
** =======================================================
*/

/* Whether a name ends as images do that are read.  Other kinds of images are
** no other files: leaving them out unsaid would lose part of the data. */
static bool is_image (const char *folder, const char *name) {
  static const char *const others[] = { ".gif",  ".webp", ".bmp", ".tif",
                                        ".tiff", ".ppm",  ".pgm" };
  const char *end = strrchr(name, '.');
  if (end == NULL) return false;
  if (strcasecmp(end, ".png") == 0) return true;
  bool jpeg = strcasecmp(end, ".jpg") == 0 || strcasecmp(end, ".jpeg") == 0;
  if (jpeg && fnn_has_jpeg()) return true;
  if (jpeg)
    fnn_throw(FNN_EFILE, "%s/%s: is a JPEG image: this build has no libjpeg",
              folder, name);
  for (int i = 0; i < countof(others); i++)
    if (strcasecmp(end, others[i]) == 0)
      fnn_throw(FNN_EFORMAT, "%s/%s: only PNG and JPEG images are read",
                folder, name);
  return false;
}

/* "folder/name", which lasts as long as the frame. */
static char *join (const char *folder, const char *name) {
  size_t n = strlen(folder), k = strlen(name);
  char *path = mem_scratch(n + k + 2);
  memcpy(path, folder, n);
  path[n] = '/';
  memcpy(path + n + 1, name, k + 1);
  return path;
}

static void add_image (Images *m, const char *path, int64_t label) {
  size_t n = strlen(path) + 1;
  if (m->size + n > m->room) {
    size_t room = 2 * (m->size + n);
    m->text = mem_grow(m->text, m->room, room);
    m->room = room;
  }
  if (m->d.n == m->rooms) {
    int64_t old = m->rooms, rooms = old > 0 ? 2 * old : 256;
    size_t at = sizeof *m->at, k = sizeof *m->label;
    int64_t *places = mem_new((size_t)rooms * at);
    int32_t *labels = mem_try((size_t)rooms * k);
    if (labels == NULL) {
      mem_free(places, (size_t)rooms * at);
      fnn_throw(FNN_EMEMORY, "ImageFolder: out of memory for %lld images",
                (long long)rooms);
    }
    if (old > 0) {
      memcpy(places, m->at, (size_t)old * at);
      memcpy(labels, m->label, (size_t)old * k);
    }
    mem_free(m->at, (size_t)old * at);
    mem_free(m->label, (size_t)old * k);
    m->at = places;
    m->label = labels;
    m->rooms = rooms;
  }
  memcpy(m->text + m->size, path, n);
  m->at[m->d.n] = (int64_t)m->size;
  m->label[m->d.n++] = (int32_t)label;
  m->size += n;
}

/* Images of a class, in path and in folders below, but for linked ones. */
static void walk (Images *m, const char *path, int64_t label, int depth) {
  size_t mark = fnn_mark();
  const Entries *f = entries_read(path);
  for (int64_t i = 0; i < f->n; i++) {
    const FolderEntry *e = &f->list[i];
    if (e->folder && !e->link) {
      if (depth == DEPTH)
        fnn_throw(FNN_EFILE, "%s: has more than %d folders in folders", path,
                  DEPTH);
      walk(m, join(path, e->name), label, depth + 1);
    } else if (e->file && is_image(path, e->name))
      add_image(m, join(path, e->name), label);
  }
  fnn_escape(mark, NULL);
}

static void names_destroy (void *o) {
  mem_free(((Names *)o)->text, ((Names *)o)->size);
}

static const Type names_type = { "Names", names_destroy };

/* The names of f's folders. */
static Names *names_of (const Entries *f) {
  Names *m = object_new(&names_type, sizeof *m);
  for (int64_t i = 0; i < f->n; i++)
    if (f->list[i].folder) m->size += strlen(f->list[i].name) + 1;
  if (m->size == 0) return m;
  m->text = mem_new(m->size);
  char *to = m->text;
  for (int64_t i = 0; i < f->n; i++) {
    if (!f->list[i].folder) continue;
    size_t n = strlen(f->list[i].name) + 1;
    memcpy(to, f->list[i].name, n);
    to += n;
    m->n++;
  }
  return m;
}

static void find_images (Images *m, const char *path) {
  size_t mark = fnn_mark();
  const Entries *f = entries_read(path);
  m->d.classes = fnn_retain(names_of(f));
  int64_t label = 0;
  for (int64_t i = 0; i < f->n; i++) {
    if (!f->list[i].folder) continue;
    int64_t before = m->d.n;
    const char *folder = join(path, f->list[i].name);
    walk(m, folder, label++, 0);
    if (m->d.n == before)
      fnn_throw(FNN_EFILE,
                "%s: this class has no image (expected .png, .jpg or .jpeg)",
                folder);
  }
  if (label == 0)
    fnn_throw(FNN_EFILE,
              "%s: expected a folder of images for each class, "
              "found no folder",
              path);
  fnn_escape(mark, NULL);
}

/* }====================================================== */

fnn_Dataset *fnn_image_folder (const char *path, const fnn_ImageOptions *o) {
  if ((o->h != 0 || o->w != 0) &&
      (o->h < 1 || o->w < 1 || o->h > 1 << 20 || o->w > 1 << 20))
    fnn_throw(FNN_EARG,
              "ImageFolder: size: expected a height and a width of 1 to 2^20, "
              "got %lld and %lld",
              (long long)o->h, (long long)o->w);
  size_t mark = fnn_mark();
  Images *m = dataset_new(&images_class, sizeof *m);
  find_images(m, path);
  int64_t h = o->h, w = o->w;
  m->resized = h != 0;
  if (h == 0) {
    const Tensor *x = fnn_image_read(m->text + m->at[0], 0);
    h = x->shape[0];
    w = x->shape[1];
  }
  m->d.nfields = 2;
  m->d.fields[0] = (Field){ FNN_F32, 3, { o->gray ? 1 : 3, h, w } };
  m->d.fields[1] = (Field){ FNN_I64, 0, { 0 } };
  if (o->one_hot) m->d.fields[1] = (Field){ FNN_F32, 1, { m->d.classes->n } };
  return fnn_escape(mark, m);
}
