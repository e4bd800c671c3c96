/* digits.c - the handwritten digits that the library carries.
**
** E. Alpaydin and C. Kaynak: Optical Recognition of Handwritten Digits, UCI
** Machine Learning Repository, 1998, doi:10.24432/C50P49, CC BY 4.0.  These
** are its 1797 test images, by 13 writers who are not in its training set, in
** the order of the copy that scikit-learn distributes under the 3-clause BSD
** licence, Copyright (c) The scikit-learn developers. */

#include "data.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE };

static const char digits[][PIXELS + 2] = {
#include "digits.inc"
};

Tensor *fnn_digits (Tensor **labels) {
  int64_t n = countof(digits), shape[] = { n, SIDE, SIDE };
  Tensor *x = tensor_new(3, shape, FNN_U8, device_cpu());
  *labels = tensor_new(1, &n, FNN_I64, device_cpu());
  uint8_t *pixel = tensor_data(x);
  int64_t *label = tensor_data(*labels);
  for (int64_t i = 0; i < n; i++) {
    for (int k = 0; k < PIXELS; k++) *pixel++ = (uint8_t)(digits[i][k] - 'a');
    *label++ = digits[i][PIXELS] - '0';
  }
  return x;
}
