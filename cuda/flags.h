/* flags.h - how a kernel tells of an id that is out of range. */

#ifndef cuda_flags_h
#define cuda_flags_h

#include "cuda.h"

/* The first wrong id of a call, in memory that card and host see. */
typedef struct Flag {
  int64_t set; /* written last by the card, cleared by the host */
  int64_t call, id, place, n;
} Flag;

/* What the blocks of one check share, all 0 between checks.  first: the count
** of ids less the first wrong place. */
typedef struct Search {
  unsigned long long first;
  unsigned arrived;
} Search;

/* The number of a call that checks ids of op in range of n `what`, and where
** its kernel tells; both strings last as long as the engine. */
int64_t flags_call (Cuda *card, const char *op, const char *what, Flag **flag,
                    Search **search);

#endif
