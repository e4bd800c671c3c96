/* safetensors_fuzz.c - any bytes are a safetensors file or an error. */

#include "fuzz.h"

static void target (Reader *r, const Input *in) {
  (void)in;
  fnn_Safetensors *f = safetensors_open(r);
  for (int64_t i = 0; i < fnn_safetensors_meta_count(f); i++)
    if (fnn_safetensors_meta(f, fnn_safetensors_meta_key(f, i)) == NULL)
      abort();
  for (int64_t i = 0; i < fnn_safetensors_count(f); i++) {
    size_t m = fnn_mark();
    if (fnn_safetensors_find(f, fnn_safetensors_name(f, i)) != i) abort();
    fnn_safetensors_read(f, i);
    fnn_escape(m, NULL);
  }
}
