/* row_f32.c - rows of f32 logits. */

#include <stdint.h>

typedef float real;
typedef uint32_t word;
#define CHOOSE sampler_choose_f32

#include "row.h"
