/* idx_fuzz.c - any bytes are an IDX file, perhaps in gzip, or an error. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  (void)in;
  idx_read(r);
}
