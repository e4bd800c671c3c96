/* ops.h - the rows of map.def, zip.def, reduce.def and loss.def by number:
** MAP_exp, ZIP_add, REDUCE_sum, LOSS_mse.  Names and parameters of the first
** three are in ops/rows.c. */

#ifndef core_ops_h
#define core_ops_h

#define MAP(name, ...) MAP_##name,
#define ZIP(name, ...) ZIP_##name,
#define REDUCE(name, ...) REDUCE_##name,
#define LOSS(name, ...) LOSS_##name,

enum {
#include "map.def"
  MAP_COUNT
};

enum {
#include "zip.def"
  ZIP_COUNT
};

enum {
#include "reduce.def"
  REDUCE_COUNT
};

enum {
#include "loss.def"
  LOSS_COUNT
};

#undef MAP
#undef ZIP
#undef REDUCE
#undef LOSS

#endif
