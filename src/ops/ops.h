/* ops.h - what the files of ops lend to each other. */

#ifndef ops_h
#define ops_h

#include "../core/core.h"

/* Plain views of x: with dims of one place added or dropped, two dims
** exchanged, or in another shape (NULL where only a copy could show it). */
Tensor *view_insert (const Tensor *x, int dim);
Tensor *view_drop (const Tensor *x, int dim);
Tensor *view_swap (const Tensor *x, int a, int b);
Tensor *view_fold (const Tensor *x, int ndim, const int64_t *shape);

#endif
