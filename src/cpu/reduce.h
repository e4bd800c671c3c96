/* reduce.h - what the files of reductions share. */

#ifndef reduce_h
#define reduce_h

#include "sweep.h"

/* A row of reduce.def over real numbers; y is real, or bool for a test. */
void CPU(reduce_real)(int op, void *y, bool test, const real *x, int64_t outer,
                      int64_t n, int64_t inner, double a);
/* argmax, or argmin with least. */
void CPU(argmax_real)(int64_t *y, const real *x, int64_t outer, int64_t n,
                      int64_t inner, bool least);

/* The largest of a row, NaN if it holds one, -inf if it is empty. */
real CPU(row_max)(const real *x, int64_t n);
/* The sum of e^(x - m), each written to y unless that is NULL. */
double CPU(row_exp_sum)(real *y, const real *x, int64_t n, real m);

#endif
