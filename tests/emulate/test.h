/* test.h - what the tests of the emulator share: TAP, and small tools. */

#ifndef emulate_test_h
#define emulate_test_h

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/gpu.h"

/* One line of TAP. */
__attribute__((format(printf, 2, 3))) void ok (bool good, const char *fmt,
                                               ...);

/* Whether the CUDA calls went well since the last look; ok of name if not. */
bool quiet (const char *name);

/* n bytes of device memory, with a copy of host's where that is not NULL. */
void *device (const void *host, size_t n);
void fetch (void *host, const void *device, size_t n);

/* A number of -1 .. 1, the same each time the program runs. */
float noise ();

/* Whether this is the checking build. */
#ifdef EMU_CHECK
const bool checking = true;
#else
const bool checking = false;
#endif

/* Whether line n of file has the comment "here: word". */
bool line_says (const char *file, int n, const char *word);

void test_kernels ();
void test_faults ();
void test_intrinsics ();
void test_runtime ();
void test_lost (); /* the last: no call works after it */
void test_graphs ();
void test_blas ();

#endif
