/* data.h - what the files of data share. */

#ifndef data_h
#define data_h

#include "../fnn_nn.h"
#include "../core/core.h"
#include "../core/ops.h"

enum { FIELDS = 8 }; /* the most tensors that an item has */

/* What the items of a dataset have in one place: inputs, labels ... */
typedef struct Field {
  fnn_Dtype dtype;
  int ndim;
  int64_t shape[FNN_MAXDIM];
} Field;

/* Names of classes, which a dataset shares with its parts. */
typedef struct Names {
  Object o;
  int64_t n;
  size_t size; /* of text */
  char *text;  /* the names, each ended by a zero */
} Names;

/* One kind of dataset.  read fills to[k], dense tensors (n, item ...) on the
** CPU, with the n items of these ids, which are in range; NULL is a field that
** is not wanted.  It may run on the loader's thread, in a frame. */
typedef struct DatasetClass {
  const char *name;
  void (*read)(fnn_Dataset *d, int64_t n, const int64_t *ids,
               Tensor *const *to);
  void (*destroy)(fnn_Dataset *d);
} DatasetClass;

struct fnn_Dataset {
  Object o;
  const DatasetClass *kind;
  int64_t n; /* items */
  int nfields;
  Field fields[FIELDS];
  Names *classes; /* or NULL */
};

/* A zeroed dataset of this kind; size is of the whole object. */
void *dataset_new (const DatasetClass *kind, size_t size);

/* The shape of n items of field k; returns the number of dims. */
int dataset_shape (const fnn_Dataset *d, int k, int64_t n, int64_t *shape);
/* Makes d's fields and classes those of base. */
void dataset_like (fnn_Dataset *d, const fnn_Dataset *base);
/* fnn_dataset_read into tensors that are there. */
void dataset_fill (fnn_Dataset *d, int64_t n, const int64_t *ids,
                   Tensor *const *to);

/* What a loader was made with. */
const fnn_LoaderOptions *loader_settings (const fnn_Loader *l)
    LENT(loader_settings);

/* A line of JSON whose fields are read (jsonl_row.c). */
typedef struct JsonlRow {
  const char *path; /* for messages, with the line's number */
  int64_t line;
  const char *text; /* n bytes */
  size_t n;
  int nfields;
  char *const *name;
  Field *field;
} JsonlRow;

/* The shapes that were not given are those of this line. */
void jsonl_learn (const JsonlRow *r, const fnn_JsonlOptions *o);
/* The numbers of each field k in row-major order into v[k]; throws when the
** line is not as it should be. */
void jsonl_read (const JsonlRow *r, double *const *v);
/* Its two ways: the short one, which may return false, and the whole. */
bool jsonl_read_plain (const JsonlRow *r, double *const *v);
void jsonl_read_any (const JsonlRow *r, double *const *v);

/* Batches on their way to a card (stage.c): pinned blocks, a batch each. */
typedef struct Stages Stages;
Stages *stages_new (const fnn_Device *to, const fnn_Dataset *d, int64_t batch,
                    int n); /* throws */
void stages_free (Stages *s);
/* Fills block i; on any thread. */
void stage_fill (Stages *s, int i, fnn_Dataset *d, int64_t n,
                 const int64_t *ids);
/* Starts the copy of the n items in block i into new tensors of the card. */
void stage_send (Stages *s, int i, const fnn_Dataset *d, int64_t n,
                 Tensor **x);
/* What the card does from now on comes after that copy. */
void stage_await (Stages *s, int i);
/* Whether the copy is done, so that the block can be filled again. */
bool stage_sent (Stages *s, int i, bool wait);

#endif
