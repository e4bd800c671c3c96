/* jpeg_fuzz.c - any bytes are a JPEG or PNG image or an error. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  (void)in;
  image_read(r, 3);
}
