/* init.c - the spread of initial weights: Glorot and Bengio 2010 (xavier), He
** et al. 2015 (kaiming). */

#include <math.h>

#include "nn.h"

double fnn_init_std (int ndim, const int64_t *shape, fnn_Fan fan,
                     double gain) {
  if (ndim < 2)
    fnn_throw(FNN_ESHAPE,
              "init: a weight has inputs and outputs, so at least "
              "2 dims (got shape %s)",
              shape_print(&(ShapeText){ "" }, ndim, shape));
  double field = 1; /* places that one kernel covers */
  for (int i = 2; i < ndim; i++) field *= (double)shape[i];
  double in = field * (double)shape[1], out = field * (double)shape[0];
  double n = fan == FNN_FAN_IN    ? in
             : fan == FNN_FAN_OUT ? out
                                  : (in + out) / 2;
  return n > 0 ? gain / sqrt(n) : 0;
}
