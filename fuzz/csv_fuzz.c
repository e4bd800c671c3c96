/* csv_fuzz.c - any bytes are a table in CSV or an error.  The first byte
** chooses the options. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  fnn_CsvOptions o = FNN_CSV_INIT;
  if (in->n == 0) return;
  int choice = in->bytes[0];
  reader_seek(r, 1);
  o.header = choice % 3 - 1;
  if (choice & 64) o.label = choice % 5 - 2;
  if (choice & 128) o.dtype = FNN_F64;
  fnn_Csv *c = csv_read(r, &o);
  Tensor *x = fnn_csv_values(c), *y = fnn_csv_labels(c);
  if (y != NULL && y->numel != x->shape[0]) abort();
  for (int64_t i = 0; y != NULL && i < y->numel; i++) {
    int64_t id = ((const int64_t *)tensor_data(y))[i];
    if (fnn_csv_class(c, (int)id) == NULL) abort();
  }
}
