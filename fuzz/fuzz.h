/* fuzz.h - what the fuzz targets share: one context, a limit on memory, a
** frame around each input, and the rule that nothing is left behind. */

#ifndef fuzz_h
#define fuzz_h

#include <stdlib.h>

#include "../src/io/io.h"

typedef struct Input {
  const uint8_t *bytes;
  size_t n;
} Input;

/* The target: reads the input from r. */
static void target (Reader *r, const Input *in);

static void fuzz_body (void *ud) {
  const Input *in = ud;
  target(reader_bytes("fuzz", in->bytes, in->n), in);
}

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t n) {
  static fnn_Context *context_of_all;
  if (context_of_all == NULL) {
    fnn_Host host = FNN_HOST_INIT;
    host.memory_limit = 256 << 20;
    context_of_all = fnn_open(&host);
    fnn_use(context_of_all);
  }
  uint64_t objects = fnn_memory().objects;
  fnn_pcall(fuzz_body, &(Input){ bytes, n });
  if (fnn_memory().objects != objects) abort();
  return 0;
}

#endif
