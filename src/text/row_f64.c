/* row_f64.c - rows of f64 logits. */

#include <stdint.h>

typedef double real;
typedef uint64_t word;
#define CHOOSE sampler_choose_f64

#include "row.h"
