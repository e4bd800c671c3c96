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

/* One kind of dataset.  read fills to[k], dense tensors (n, item ...) on the
** CPU, with the n items of these ids, which are in range; it may run on the
** loader's thread, in a frame. */
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
};

/* A zeroed dataset of this kind; size is of the whole object. */
void *dataset_new (const DatasetClass *kind, size_t size);

/* The shape of n items of field k; returns the number of dims. */
int dataset_shape (const fnn_Dataset *d, int k, int64_t n, int64_t *shape);
/* fnn_dataset_read into tensors that are there. */
void dataset_fill (fnn_Dataset *d, int64_t n, const int64_t *ids,
                   Tensor *const *to);

/* What a loader was made with. */
const fnn_LoaderOptions *loader_settings (const fnn_Loader *l);

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
