/* png_fuzz.c - any bytes are a PNG image or an error. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  (void)in;
  fnn_Png *p = png_open(r);
  fnn_png_image(p, 1);
  for (int i = 0; i < fnn_png_text_count(p); i++) fnn_png_text(p, i, NULL);
}
