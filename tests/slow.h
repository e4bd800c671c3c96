/* slow.h - whether a checker that is much slower runs the tests. */

#ifndef slow_h
#define slow_h

#include <stdbool.h>
#include <stdlib.h>

/* Valgrind's run, which turns the cache off, takes less work. */
static inline bool is_slow (void) { return getenv("FNN_CACHE") != NULL; }

#endif
