/* npy_fuzz.c - any bytes are a .npy file or an error. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  (void)in;
  npy_read(r);
}
