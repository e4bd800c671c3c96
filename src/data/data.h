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

#endif
