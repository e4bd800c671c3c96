/* engine.c - the engine in a C program without Lua.
**
**   cc engine.c -o engine $(pkg-config --cflags --libs fnn)
**
** Fits a line to four points by gradient descent: tensors, the graph, errors
** that unwind to fnn_pcall. */

#include <fnn.h>
#include <fnn_nn.h>
#include <math.h>
#include <stdio.h>

/* y = 3 x - 1 at four places */
static const float xs[4] = { -1, 0, 1, 2 }, ys[4] = { -4, -1, 2, 5 };

static void fit (void *ud) {
  double *line = (double *)ud; /* slope and offset */
  const int64_t four[1] = { 4 }, one[1] = { 1 };
  fnn_Tensor *x = fnn_tensor(FNN_F32, 1, four, xs);
  fnn_Tensor *y = fnn_tensor(FNN_F32, 1, four, ys);
  fnn_Param *p[2];
  for (int i = 0; i < 2; i++)
    p[i] = fnn_param(fnn_zeros(1, one, FNN_F32, NULL));
  const fnn_Option options[2] = { { "lr", { 0.1 } }, { "momentum", { 0.9 } } };
  fnn_Optimizer *opt = fnn_optimizer("SGD");
  fnn_optimizer_group(opt, 2, p, 2, options);
  for (int step = 0; step < 200; step++) {
    size_t mark = fnn_mark(); /* a step's temporaries go at its end */
    fnn_Tensor *guess = fnn_add(fnn_mul(x, fnn_value(p[0])), fnn_value(p[1]));
    fnn_Tensor *off = fnn_sub(guess, y);
    fnn_optimizer_zero_grad(opt);
    fnn_backward(fnn_mean(fnn_mul(off, off), 0, NULL, false), NULL, false);
    fnn_optimizer_step(opt);
    fnn_escape(mark, NULL);
  }
  for (int i = 0; i < 2; i++) line[i] = fnn_item(fnn_value(p[i]));
}

static void mistake (void *ud) {
  const int64_t a[2] = { 2, 3 }, b[2] = { 4, 5 };
  (void)ud;
  fnn_matmul(fnn_zeros(2, a, FNN_F32, NULL), fnn_zeros(2, b, FNN_F32, NULL));
}

int main (void) {
  double line[2];
  fnn_Context *c = fnn_open(NULL);
  if (c == NULL) return 1;
  fnn_use(c);
  if (fnn_pcall(fit, line) != FNN_OK) {
    fprintf(stderr, "engine: %s\n", fnn_message());
    return 1;
  }
  printf("y = %.3f x %+.3f\n", line[0], line[1]);
  if (fnn_pcall(mistake, NULL) != FNN_ESHAPE) return 1;
  printf("a mistake: %s\n", fnn_message());
  fnn_close(c);
  return fabs(line[0] - 3) < 1e-2 && fabs(line[1] + 1) < 1e-2 ? 0 : 1;
}
